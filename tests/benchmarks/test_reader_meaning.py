"""What readers must not misread: the same words in another place, another shape or another file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.test_readers import opened
from contracts.benchmark_folders import write_jsonl
from support.data_files import PEERS, log_likelihoods


def sample(number: int, text: str, name: str) -> dict[str, Any]:
    """Return a generated sample of lm-eval under one filter."""
    return {
        "doc_id": number,
        "doc": {},
        "target": "2",
        "arguments": {"gen_args_0": {"arg_0": f"Q{number}", "arg_1": {"until": []}}},
        "resps": [["It is 2."]],
        "filtered_resps": [text],
        "filter": name,
        "metrics": [],
    }


@pytest.mark.parametrize("new", [True, False])
def test_log_likelihoods_are_no_responses(new: bool, tmp_path: Path) -> None:
    """Numbers that lm-eval writes as text are not taken for what a model wrote."""
    rows = [sample(0, "It is 2.", "none"), {**sample(1, "x", "none"), **log_likelihoods(new)}]
    reader = opened(write_jsonl(tmp_path / "samples_t.jsonl", rows))
    assert [response.text for response in reader.responses()] == ["It is 2."]
    assert "a log-likelihood task: the model wrote no text" in reader.summary.skipped


def test_the_whole_response_is_preferred_to_a_filtered_one(tmp_path: Path) -> None:
    """Of several filters, `none` is read, wherever it stands; without it, the first."""
    rows = [sample(n, text, name) for name, text in (("strict", "2"), ("none", "It is 2."))
            for n in range(2)]  # fmt: skip
    reader = opened(write_jsonl(tmp_path / "samples_t.jsonl", rows))
    assert {response.text for response in reader.responses()} == {"It is 2."}
    assert "filter: none" in reader.mapping()["response"]
    assert reader.summary.unused == 2
    first = opened(write_jsonl(tmp_path / "samples_u.jsonl", rows[:2]))
    assert {response.text for response in first.responses()} == {"2"}


def test_passages_of_csv_files() -> None:
    """A list as Python writes it is several passages."""
    for response in opened(PEERS / "ragas" / "single.csv").responses():
        assert response.context == (
            "France is a country in Europe. Its capital is Paris.",
            "Berlin is in Germany.",
        )
