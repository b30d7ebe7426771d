"""Scorers on recorded judge probabilities, compared with human ratings.

    python studies/stage3_recorded.py [--data FOLDER] [--quick] [--record]

FOLDER holds llm_rubric, hanna and hellobench; a missing dataset is skipped with a message. Every
score is out-of-fold: its fit did not see the label it is compared with. Correlations are computed
within folds and averaged, errors over all responses. Intervals are 95% intervals that resample
dialogues or prompts with all their responses. The fits are kept, so the intervals do not cover
another draw of the training labels. A star marks a difference whose interval excludes zero. The
study makes many comparisons: about one in twenty would be starred by chance.

--quick uses fewer trees, resamples and stories; --record writes the output to studies/recorded.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from stage3 import hanna, hellobench, llm_rubric
from stage3.compare import Comparison, Effort, compare, render, tally
from stage3.design import Design, Floats
from stage3.figures import STORY_FIGURES

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "shared" / "data"
FOLDS = 5

CLOSING = """\
What this shows: how much a supervised scorer adds to the mean of the same recorded answers, if \
it learns from some of the labels and is tested on others.
What it does not show: anything about checklists per query, or about RocketEval's own judge and \
prompts. These items are fixed rubrics, rated by other judges on scales of four or five steps. \
HelloBench holds no human scores, so it says nothing about agreement with people. \
The forests of the pooled designs learn from far more labels than a query usually has; the \
designs by prompt, with eight or nine labels each, are closer to that."""


class Page:
    """The printed output, kept for the record."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.facts: dict[str, Any] = {}

    def say(self, *lines: str) -> None:
        """Print lines at once, and keep them."""
        print("\n".join(lines), flush=True)
        self.lines += lines

    def record(self) -> None:
        """Write the output to studies/recorded."""
        folder = HERE / "recorded"
        folder.mkdir(exist_ok=True)
        text = "\n".join(self.lines) + "\n"
        (folder / "stage3_recorded.txt").write_text(text, encoding="utf-8")
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        (folder / "stage3_recorded.json").write_bytes(orjson.dumps(self.facts, option=options))


Study = Callable[[Path, Effort, bool, Page], list[Comparison]]


def study_llm_rubric(folder: Path, effort: Effort, quick: bool, page: Page) -> list[Comparison]:
    """Compare on dialogues; the source's own baseline must match its published figures."""
    found = []
    for design in llm_rubric.load(folder, FOLDS, effort.seed):
        baseline = {"Q0 alone": llm_rubric.expected_q0(design)}
        if not found:
            page.say(*wrapped(check_anchor(design, baseline["Q0 alone"])), "")
        if quick and "upper" in design.name:
            continue
        found.append(compare(design, effort, baseline))
        page.say(*found[-1].lines(), "")
    return found


def check_anchor(design: Design, scores: Floats) -> str:
    """Return a line saying that the source's baseline was reproduced; exit if it was not."""
    whole = replace(design, folds=np.zeros_like(design.folds))
    ours = {title: figure(whole, scores, whole.scored) for title, figure in STORY_FIGURES.items()}
    result = ", ".join(f"{title} {ours[title]:.6f}" for title in llm_rubric.ANCHOR)
    if any(abs(ours[title] - value) > 1e-6 for title, value in llm_rubric.ANCHOR.items()):
        sys.exit(f"FAILED: expected Q0 gives {result}; the source prints {llm_rubric.ANCHOR}")
    return f"Check: expected Q0 on the real dialogues matches what the source prints: {result}"


def study_hanna(folder: Path, effort: Effort, quick: bool, page: Page) -> list[Comparison]:
    """Compare on stories, judge by judge."""
    gaps, ratings = hanna.missing(folder)
    page.say(f"{gaps} of {ratings} ratings are below 1 and count as missing", "")
    found = []
    for design in hanna.load(folder, FOLDS, effort.seed, quick):
        found.append(compare(design, effort))
        page.say(*found[-1].lines(), "")
    return found


def study_hellobench(folder: Path, effort: Effort, quick: bool, page: Page) -> list[Comparison]:
    """Compare plain and weighted means; the distillation is not evidence about people."""
    rows, left_out = hellobench.load(folder)
    page.say(f"{len(rows)} responses; {left_out} more have no category and no weights", "")
    agreement = hellobench.agreement(rows, effort.resamples, effort.seed)
    page.facts["hellobench agreement"] = agreement
    cells = [
        [task, f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"]
        for task, found in agreement.items()
    ]
    page.say(*render(["plain against weighted mean, over models", "Spearman"], cells), "")
    design = hellobench.distillation(rows, 15 if quick else 150, 5, effort.seed)
    found = compare(design, effort)
    page.say(
        "Distillation: the labels are a weighted mean of the same answers.", *found.lines(), ""
    )
    page.facts["hellobench distillation"] = found.facts()
    return []


STUDIES: dict[str, tuple[str, Study]] = {
    "llm_rubric": (llm_rubric.PUBLISHED, study_llm_rubric),
    "hanna": (hanna.PUBLISHED, study_hanna),
    "hellobench": (hellobench.PUBLISHED, study_hellobench),
}


def main() -> None:
    args = parse_arguments()
    trees, resamples = (20, 100) if args.quick else (100, 1000)
    effort = Effort(args.trees or trees, args.resamples or resamples, args.seed)
    page = Page()
    page.say(*heading(effort, args.quick))
    comparisons: list[Comparison] = []
    for name in args.only:
        published, study = STUDIES[name]
        page.say("", f"== {name}", *wrapped(published), "")
        if not (args.data / name).is_dir():
            page.say(f"skipped: {args.data / name} is not there")
            continue
        found = study(args.data / name, effort, args.quick, page)
        page.facts[name] = [comparison.facts() for comparison in found]
        comparisons += found
    page.say(*conclusion(comparisons))
    if args.record:
        page.record()


def heading(effort: Effort, quick: bool) -> Iterable[str]:
    """Return the settings of the study."""
    yield f"{effort.trees} trees per forest, {effort.resamples} resamples, {FOLDS} folds"
    if quick:
        yield "QUICK: a check of the script; do not quote these figures"


def conclusion(comparisons: list[Comparison]) -> Iterable[str]:
    """Return how often each method was better than the mean, with a caveat."""
    yield "== together"
    if comparisons:
        yield f"Number of the {len(comparisons)} designs with human labels, by paired interval."
        yield from tally(comparisons, "Spearman")
        yield ""
    for paragraph in CLOSING.splitlines():
        yield from wrapped(paragraph)


def wrapped(paragraph: str) -> list[str]:
    """Return the lines of a paragraph."""
    return textwrap.wrap(paragraph, 100)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--trees", type=int, help="trees of each forest")
    parser.add_argument("--resamples", type=int, help="resamples behind each interval")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
