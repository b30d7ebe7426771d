"""The study on recorded judge probabilities: no label scores its own response."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from stage3 import llm_rubric
from stage3.compare import Effort, compare
from stage3.design import Design, folds_by, table
from stage3.figures import measure
from stage3.methods import CONSTANT, MEAN, METHODS, STRAIGHT_LINE, Method, out_of_fold
from stage3_recorded import check_anchor

from support.forked import run_script

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
REFERENCE = {"Pearson": "mean", "Spearman": "mean", "Kendall": "mean", "RMSE": "mean"}


def example() -> Design:
    """Return a design whose labels follow the mean answer, with noise."""
    random = np.random.default_rng(3)
    names = [f"d{number:03}" for number in range(60)]
    p_yes = random.uniform(size=(60, 4))
    labels = np.clip(1 + 3 * p_yes.mean(axis=1) + random.normal(scale=0.5, size=60), 1, 4)
    answers = table(["q"] * 60, names, p_yes)
    return Design("example", answers, labels, (1.0, 4.0), folds_by(names, 3, 0), names, "dialogues")


def test_folds_keep_units_together() -> None:
    """All responses of a unit are held out together, and folds have similar sizes."""
    units = [f"u{number % 13}" for number in range(50)]
    folds = folds_by(units, 4, seed=1)
    together = {
        unit: {int(f) for u, f in zip(units, folds, strict=True) if u == unit} for unit in units
    }
    assert all(len(found) == 1 for found in together.values())
    sizes = np.bincount([found.pop() for found in together.values()])
    assert sorted(sizes.tolist()) == [3, 3, 3, 4]


@pytest.mark.parametrize("method", [m for m in METHODS if m.available], ids=lambda m: m.name)
def test_no_label_affects_its_own_score(method: Method) -> None:
    """Changed labels of one fold leave that fold's scores unchanged, to the last bit."""
    design = example()
    held = design.folds == 1
    labels = np.where(held, 5.0 - design.labels, design.labels)
    changed = Design(**{**vars(design), "labels": labels})
    before, after = (out_of_fold(method, d, seed=0, trees=5) for d in (design, changed))
    assert before[held].tobytes() == after[held].tobytes()
    if method is not MEAN:
        assert before[~held].tobytes() != after[~held].tobytes()


def test_figures_agree_with_scipy() -> None:
    """Correlations are weighted means over folds, the error is over all, differences are paired."""
    design = example()
    random = np.random.default_rng(8)
    ours, mean = design.labels + random.normal(size=60), random.uniform(size=60)
    found = measure(design, {"mean": mean, "ours": ours}, REFERENCE, times=50, seed=0)["ours"]
    folds = [design.folds == fold for fold in range(3)]
    for title, test in (
        ("Pearson", stats.pearsonr),
        ("Spearman", stats.spearmanr),
        ("Kendall", stats.kendalltau),
    ):
        both = [
            np.mean([test(column[rows], design.labels[rows]).statistic for rows in folds])
            for column in (ours, mean)
        ]
        assert found[title].figure.value == pytest.approx(both[0], abs=1e-12)
        assert found[title].minus.value == pytest.approx(both[0] - both[1], abs=1e-12)
        assert found[title].figure.low < both[0] < found[title].figure.high
    assert found["RMSE"].figure.value == pytest.approx(
        np.sqrt(np.mean((ours - design.labels) ** 2))
    )


def test_straight_line_keeps_the_order_of_the_mean() -> None:
    """A calibration changes no rank within folds; the constant has an error and no order."""
    found = compare(example(), Effort(trees=2, resamples=20, seed=0)).measured
    assert found[MEAN.name]["Spearman"].figure.value > 0.3
    assert found[STRAIGHT_LINE.name]["Spearman"].minus.value == pytest.approx(0.0, abs=1e-12)
    assert found[STRAIGHT_LINE.name]["RMSE"].minus.value == 0.0
    assert found[CONSTANT.name].keys() == {"RMSE"}


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as compressed JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


def write_hanna(folder: Path) -> None:
    """Write stories whose human ratings follow one criterion of one judge, with one gap."""
    random = np.random.default_rng(0)
    criteria = ("RE", "CH", "EM", "SU", "EG", "CX")
    rows = []
    for story in range(8):
        for system in range(5):
            judges = {
                name: {c: random.integers(1, 6, size=4).astype(float).tolist() for c in criteria}
                for name in ("A", "B")
            }
            value = float(np.mean(judges["A"]["SU"]))
            means = dict.fromkeys(criteria, value)
            rows.append(
                {"system": f"s{system}", "story": story, "human_mean": means, "judges": judges}
            )
    rows[0]["judges"]["B"]["RE"][2] = -1.0
    write_lines(folder / "hanna_scores.jsonl.gz", rows)


def write_hellobench(folder: Path) -> None:
    """Write prompts of a category with weights, and one of a category without."""
    random = np.random.default_rng(0)
    rows = [
        {
            "model": f"m{model}",
            "task": "chat",
            "id": f"chat_{prompt}",
            "category": "rewrite" if prompt else None,
            "scores": (random.integers(0, 5, size=3) / 4).tolist(),
        }
        for prompt in range(9)
        for model in range(8)
    ]
    write_lines(folder / "gpt4o_checklist_judgements.jsonl.gz", rows)
    weights = {"REGRESSION_DICT": {"rewrite": [80.0, 15.0, 5.0]}}
    (folder / "human_regression_weights.json").write_text(json.dumps(weights))


def test_script_reads_the_formats(tmp_path: Path) -> None:
    """Synthetic files: gaps are counted, absent data is skipped with a reason, tables appear."""
    write_hanna(tmp_path / "hanna")
    write_hellobench(tmp_path / "hellobench")
    options = ("--quick", "--data", str(tmp_path), "--trees", "2", "--resamples", "9")
    done = run_script(ROOT / "studies" / "stage3_recorded.py", *options, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"skipped: {tmp_path / 'llm_rubric'} is not there" in done.stdout
    assert "1 of 1920 ratings are below 1 and count as missing" in done.stdout
    assert "64 responses; 8 more have no category" in done.stdout
    assert "A, all stories, folds of prompts: 40 responses, 8 prompts" in done.stdout
    assert "A, each prompt by itself, folds of systems: 40 responses, 8 prompts" in done.stdout
    assert "distillation of the weighted score, 8 prompts, folds of models" in done.stdout
    assert "What it does not show" in done.stdout


needs_data = pytest.mark.skipif(
    not (DATA / "llm_rubric").is_dir(), reason=f"no recorded data in {DATA}"
)


@needs_data
def test_published_baseline_is_reproduced() -> None:
    """Expected Q0 on the real dialogues equals the figures in LLM-Rubric's README."""
    design = llm_rubric.load(DATA / "llm_rubric", folds=5, seed=0)[0]
    output = check_anchor(design, llm_rubric.expected_q0(design))
    assert "RMSE 0.918676, Pearson 0.177301, Spearman 0.086675, Kendall 0.065928" in output


@needs_data
def test_different_baseline_stops_the_script() -> None:
    """Changed data gives no table under the source's name."""
    design = llm_rubric.load(DATA / "llm_rubric", folds=5, seed=0)[0]
    scores = llm_rubric.expected_q0(design)
    scores[0] += 0.01
    with pytest.raises(SystemExit, match="FAILED: expected Q0 gives"):
        check_anchor(design, scores)
