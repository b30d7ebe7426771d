"""Audits keep their names on disk and are read back as records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from rocketeval.audit.audit import Audit
from rocketeval.audit.wording import (
    AuditFigure,
    bias_figures,
    label_figures,
    level_rows,
    rating_figures,
    vote_figures,
)
from rocketeval.errors import StageMissing, StoreError
from rocketeval.exports.tables import audit_table
from rocketeval.report.figures import figures, tables
from rocketeval.store.manifest import Manifest
from rocketeval.store.run import RunStore
from support.make import as_json

FIGURE = {"value": 0.5, "low": 0.25, "high": None}
MEASURED = {"value": FIGURE, "queries": 4, "gold": 9, "spread": None}
BOTH = {"with_ties": MEASURED, "without_ties": MEASURED}
AGREEMENT = {
    "with_ties": FIGURE,
    "without_ties": FIGURE,
    "votes": 12,
    "used": 11,
    "decisive": 9,
    "unusable": 1,
}
VOTERS = {"with_ties": FIGURE, "without_ties": FIGURE, "pairs": 5, "decisive_pairs": 4}
COEFFICIENT = {"value": 0.5, "interval": FIGURE, "p_value": 0.25}
ORDER = {"spearman": COEFFICIENT, "kendall": COEFFICIENT, "n": 4, "unmatched": [], "reason": None}
COEFFICIENTS = {"pearson": FIGURE, "spearman": FIGURE, "kendall": FIGURE, "reason": None}
LABELS = {
    **COEFFICIENTS,
    "rmse": FIGURE,
    "responses": 9,
    "unusable": 0,
    "candidates": ORDER,
    "levels": {
        level: {**COEFFICIENTS, "n": 3, "left_out": 1}
        for level in ("responses", "per query", "candidates")
    },
}
KEPT: dict[str, Any] = {
    "agreement": dict.fromkeys(("judge", "hard yes/no", "longer response"), AGREEMENT),
    "voters": VOTERS,
    "ratings": ORDER,
    "labels": {"all labels": {"judge": LABELS, "longer response": LABELS}},
    "refused": {"labels": 2, "votes": 0},
    "categories": [
        {"category": name, "agreement": AGREEMENT, "voters": VOTERS, "pooled": pooled}
        for name, pooled in (("maths", []), ("other", ["art"]))
    ],
    "tie_margin": 0.1,
    "margins": [{"margin": 0.1, "with_ties": FIGURE, "ties": 0.2}],
    "vote_differences": {"longer response": BOTH},
    "label_differences": {"all labels": {"longer response": MEASURED}},
    "bias": {
        "length": {
            "scores": FIGURE,
            "gold": FIGURE,
            "scores_with_gold": FIGURE,
            "excess": FIGURE,
            "lost_to_longer": FIGURE,
            "queries": 4,
            "gold_queries": 3,
            "left_out": 1,
            "lost": 6,
        },
        "own_family": {
            "preference": FIGURE,
            "at_equal_gold": FIGURE,
            "family": ["a"],
            "queries": 3,
            "left_out": 0,
            "reason": None,
        },
        "queries": 4,
        "queries_skipped": 2,
    },
    "advice": ["One.", "Two."],
}
"""An audit.json as users have it on their disks, from before there were schema versions."""


def read(folder: Path, kept: dict[str, Any]) -> Audit:
    """Return the audit of a run with this audit.json."""
    (folder / "audit.json").write_text(json.dumps(kept))
    return RunStore(folder).read(Audit)


def without_new(found: Any, kept: Any) -> Any:
    """Return the JSON without names that `kept` lacks, which must have no value."""
    if isinstance(found, dict) and isinstance(kept, dict):
        new = {name: found[name] for name in found if name not in kept}
        assert all(value in (None, {}, []) for value in new.values()), new
        return {name: without_new(found[name], kept[name]) for name in kept if name in found}
    if isinstance(found, list) and isinstance(kept, list) and len(found) == len(kept):
        return [without_new(one, other) for one, other in zip(found, kept, strict=True)]
    return found


def test_audit_keeps_its_names_on_disk(tmp_path: Path) -> None:
    """Every name and value survives a round trip; what is new has no value in an old audit."""
    audit = read(tmp_path, KEPT)
    store = RunStore(tmp_path)
    assert store.save(audit)
    assert not store.save(audit)
    again = orjson.loads((tmp_path / "audit.json").read_bytes())
    assert again.pop("schema") == 1
    assert without_new(again, KEPT) == KEPT
    assert as_json(store.read(Audit)) == as_json(audit)


def test_every_figure_reaches_its_displays(tmp_path: Path) -> None:
    """A lost name would lose a row on the page."""
    audit = read(tmp_path, KEPT)
    assert audit.bias is not None
    assert len(list(bias_figures(audit.bias))) == 7
    assert len(list(vote_figures(audit))) == 8
    assert len(list(label_figures(audit, "Spearman"))) == 6
    assert len(list(level_rows(audit.labels["all labels"]))) == 4
    assert len(list(rating_figures(audit))) == 2
    shown = (*vote_figures(audit), *rating_figures(audit), *bias_figures(audit.bias))
    assert all(isinstance(each, AuditFigure) and each.value is not None for each in shown)
    assert len(figures(audit)) == 11
    assert [len(table.rows) for table in tables(audit)] == [2, 1, 4, 7]


def test_exported_audit_has_one_row_per_number(tmp_path: Path) -> None:
    """Rows are named by path; unknown bounds and numbers are missing."""
    table = audit_table(read(tmp_path, KEPT))
    rows = {(row["section"], row["figure"]): row for row in table.to_pylist()}
    assert len(rows) == table.num_rows
    judge = rows["agreement", "judge > with_ties"]
    assert [judge[name] for name in ("value", "low", "high")] == [0.5, 0.25, None]
    assert rows["categories", "maths > agreement > used"]["value"] == 11.0
    assert rows["margins", "0.1 > ties"]["value"] == 0.2
    assert rows["tie_margin", ""]["value"] == 0.1
    assert rows["bias", "own_family > preference"]["value"] == 0.5
    assert ("vote_differences", "longer response > with_ties > spread") not in rows
    assert not [name for section, name in rows if section in ("schema", "advice")]


def test_older_audit_is_read_without_newer_fields(tmp_path: Path) -> None:
    """An audit without biases, categories and margins is read."""
    audit = read(tmp_path, {name: KEPT[name] for name in ("agreement", "labels", "refused")})
    assert audit.bias is None
    assert audit.categories == ()
    assert len(figures(audit)) == 8


@pytest.mark.parametrize(
    "kept", [{**KEPT, "schema": 2}, {**KEPT, "voters": {"pairs": 1}}, {"agreement": {"judge": 3}}]
)
def test_audit_of_another_version_is_refused(tmp_path: Path, kept: dict[str, Any]) -> None:
    """The error is one sentence with a hint."""
    with pytest.raises(StoreError, match=r"was written by (another|a newer) version") as caught:
        read(tmp_path, kept)
    assert "un `rocketeval audit`" in (caught.value.hint or "")


def test_missing_audit_is_none_or_names_its_stage(tmp_path: Path) -> None:
    """Reading returns None, or raises with the stage to run."""
    store = RunStore(tmp_path)
    assert store.read_if_made(Audit) is None
    with pytest.raises(StageMissing, match="There is no run"):
        store.read(Audit)
    store.save(Manifest())
    with pytest.raises(StageMissing, match=r"no audit\.json yet"):
        store.read(Audit)
