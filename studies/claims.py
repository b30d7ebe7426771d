"""Write the page of claims: what the papers say, and what the recorded studies show.

    python studies/claims.py            print the page
    python studies/claims.py --write    write docs/evidence/claims.md and recorded/claims.svg

Every figure is read from a study's recorded output. The rule for the last column is fixed: a claim
is *seen* if the whole interval is on the claimed side, *contradicted* if it is on the other side,
and *open* otherwise.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

STUDIES = Path(__file__).parent
PAGE = STUDIES.parent / "docs" / "evidence" / "claims.md"
JUDGE = "Qwen2.5-Coder-1.5B"
HEAD = """\
# What the papers claim, and what we see

<!-- Written by studies/claims.py; do not edit. -->

One row per claim of the four papers that we tested, and a few comparisons of our own ("not in the
paper"). The judge is Qwen2.5-Coder-1.5B-Instruct; the papers' judges of that size are other models,
so levels differ and directions should not. Our Direct and our grades average the digit over its
probabilities; RocketEval's Direct and CheckEval's G-Eval take one digit that is written. A claim is
**seen** if the whole 95% interval of our figure is on the claimed side, *contradicted* if it is on
the other side, and open otherwise.
How each study was made, and at which size, is in [the studies](reproduction.md). Rows with "int8"
are computed from judgments that are stored in the repository; the judgments of the other rows by
this judge were not kept.

| paper | claim | paper's figure | ours | size | result |
|---|---|---|---|---|---|
"""
END = """
## Plots

All claims about a difference: ours with its interval, and the paper's figure.

![Differences: ours with intervals, and the papers'](../../studies/recorded/claims.svg)

![Mean scores and arena ratings on Arena-Hard](../../studies/arena_hard/recorded/order.svg)

![Agreement by judge, and by the cost of a cascade](../../studies/mt_bench/recorded/sizes.svg)

![Agreement with votes, by way to score](../../studies/mt_bench/recorded/arms.svg)

![Correlation with ratings on Topical-Chat](../../studies/papers/recorded/topical_chat.svg)

![Correlation with ratings on SummEval](../../studies/papers/recorded/summeval.svg)

![Answers that change with the earlier ones](../../studies/papers/recorded/uncertainty.svg)
"""


@dataclass(frozen=True)
class Claim:
    """A claim, the paper's figure, and ours."""

    paper: str
    text: str
    published: str
    figure: dict[str, float]
    """Our value with its interval, as a share or a correlation."""
    size: str
    above: float = 0.0
    """The claim is that the figure is larger than this."""
    percent: bool = True

    @property
    def paper_value(self) -> float | None:
        """The paper's figure, where it is one number; in points for shares."""
        found = re.match(r"[+-]?\d+(\.\d+)?", self.published)
        return float(found.group()) if found else None

    @property
    def verdict(self) -> str:
        """What the fixed rule says."""
        if self.figure["low"] > self.above:
            return "**seen**"
        return "*contradicted*" if self.figure["high"] < self.above else "open"

    def row(self) -> str:
        """Return the row of the table."""
        scale, digits = (100.0, 1) if self.percent else (1.0, 2)
        value, low, high = (self.figure[name] * scale for name in ("value", "low", "high"))
        sign = "+" if self.above == 0.0 and self.percent else ""
        ours = f"{value:{sign}.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
        cells = (self.paper, self.text, self.published, ours, self.size, self.verdict)
        return "| " + " | ".join(cells) + " |"


def recorded(path: str) -> Any:
    """Return a study's recorded output."""
    return json.loads((STUDIES / path).read_text(encoding="utf-8"))


def turned(figure: dict[str, float]) -> dict[str, float]:
    """Return a difference the other way around."""
    return {"value": -figure["value"], "low": -figure["high"], "high": -figure["low"]}


def claims() -> list[Claim]:
    """Return the tested claims, with the recorded figures."""
    found: list[Claim] = []
    arms = {
        turns: {row["name"]: row for row in rows}
        for turns, rows in recorded("mt_bench/recorded/arms.json").items()
    }

    def stored(name: str) -> tuple[dict[str, float], str]:
        """Return how far the checklist is ahead of a way, on as many turns as were graded."""
        row = arms["both turns"].get(name) or arms["first turn"][name]
        return turned(row["difference"]), f"{row['queries']} queries, 1.5B in int8"

    rocket = "RocketEval, Tables 2, 7"
    for text, published, (figure, size) in (
        (
            "probabilities over counted yes and no, points of agreement",
            "+14.4",
            stored("checklist, yes counted"),
        ),
        ("checklist over Direct", "+35.6", stored("Direct")),
        (
            "a checklist per query over one for all",
            "+14.2",
            stored("fixed checklist"),
        ),
        (
            "items asked independently over in sequence",
            "+5.0; -7.3 to +9.4 over 13 judges, called not significant",
            stored("checklist, items in sequence"),
        ),
        (
            "checklist over an analysis with a score (CoT)",
            "+29.6",
            stored("CoT"),
        ),
    ):
        found.append(Claim(rocket, text, published, figure, size))
    supervised = {
        row["method"].strip(): row for row in recorded("mt_bench/recorded/supervised.json")
    }
    trained = supervised["Extra Trees, KL weight"]
    found.append(
        Claim(
            rocket,
            "trees trained on labels over the mean",
            "-0.5; -3.4 to +8.3 over 13 judges",
            trained["gain"],
            f"{trained['queries']} queries, 1.5B in int8",
        )
    )
    arena = recorded("arena_hard/recorded/order.json")
    size = f"{arena['prompts']} prompts, 1.5B in int8"
    checklist = "checklist, mean of p_yes"
    found += [
        Claim(
            "RocketEval, Table 6",
            "mean scores order 12 candidates as the arena does, Spearman above 0.95",
            "0.99",
            arena["orders"]["12 test"][checklist]["spearman"],
            size,
            above=0.95,
            percent=False,
        ),
        Claim(
            "not in the paper",
            "checklists are closer to the arena than response length (difference, 22 candidates)",
            "-",
            turned(arena["orders"]["all 22"]["response length"]["from_checklist"]),
            size,
            percent=False,
        ),
    ]
    for way, text, published in (
        ("checklist, 0.5B judge", "the 1.5B judge is closer to the arena than 0.5B", "0.18"),
        ("Direct", "checklists are closer to the arena than Direct", "0.45"),
    ):
        if (other := arena["partial"].get(way)) is None:
            continue
        for paper, which, candidates, own in (
            ("RocketEval, Table 6", "12 test", 12, published),
            ("not in the paper", "all 22", 22, "-"),
        ):
            found.append(
                Claim(
                    paper,
                    f"{text} (difference, {candidates} candidates)",
                    own,
                    turned(other[which]["from_checklist"]),
                    f"{other['prompts']} prompts, in int8",
                    percent=False,
                )
            )
    smaller = recorded("mt_bench/recorded/sizes.json")
    own = next(row for row in smaller["sizes"] if row["judge"] == "1.5b")
    found.append(
        Claim(
            "RocketEval, Table 2",
            "the 1.5B judge agrees more than 0.5B, points of agreement",
            "+6.4 (but 3B 3.3 below 1.5B)",
            own["gain"],
            "80 queries, both in int8",
        )
    )
    authors = recorded("mt_bench/recorded/authors.json")
    others = [row for row in authors["rows"] if row["difference"]]
    closest = max(others, key=lambda row: float(row["difference"]["value"]))
    significant = sum(row["p_value"] < 0.05 for row in others)
    found.append(
        Claim(
            "not in the paper",
            f"our checklists over rubrics by {closest['author']}, points of agreement (the "
            f"smallest of {len(others)} differences; {significant} significant after correction)",
            "-",
            turned(closest["difference"]),
            f"{authors['queries']} queries, 1.5B in int8",
        )
    )
    samples = recorded("mt_bench/recorded/samples.json")
    found.append(
        Claim(
            "RocketEval, Fig. 4",
            "three samples at temperature 1 differ on more than half of the items",
            "> 50 (WildBench)",
            samples["differ"],
            f"{samples['items']} items of {samples['queries']} queries, 1.5B in int8",
            above=0.5,
        )
    )
    uncertainty = recorded("papers/recorded/uncertainty.json")
    found.append(
        Claim(
            "RocketEval, Fig. 5",
            "earlier answers change later items more often (position 5 and later minus 2 to 4)",
            "rises (WildBench)",
            uncertainty["rise"],
            f"{uncertainty['found']['items']} items, 1.5B in int8",
        )
    )
    found += [claim for benchmark in CRITERIA for claim in by_criterion(benchmark)]
    return found + [claim for benchmark in MAD_EVAL for claim in by_perspectives(benchmark)]


MAD_EVAL = {
    "pandalm": ("PandaLM", "+10.8 (7B)", "625 pairs"),
    "mt_bench": ("MT-Bench", "+8.4 (7B)", "205 pairs of 19 queries"),
}
"""By benchmark: its title, the paper's gain over a single prompt, and the size of the study in bf16
where no other is recorded."""


def by_perspectives(benchmark: str) -> list[Claim]:
    """Return the claims about evaluators that were evolved on a benchmark."""
    title, published, size = MAD_EVAL[benchmark]
    made = recorded(f"mad_eval/recorded/{benchmark}.json")
    if found := made.get("held_out"):
        size = f"{found['cases']} pairs of {found['queries']} queries, 1.5B in int8"
    arms = made.get("all of these", made.get("seeds"))["arms"]

    def lead(over: str) -> Any:
        arm = arms[over]
        return arm.get("lead") or turned(arm["gain"])

    over = f"many perspectives over a single prompt, {title}"
    claims = [Claim("MAD-Eval, Table 1", over, published, lead("single prompt"), size)]
    planned = {
        "single prompt, cut points learned": "the same with learned cut points (our plan's figure)",
        "plain checklist, cut points learned": "many perspectives over the query's own checklist",
    }
    claims += [
        Claim("not in the paper", f"{text}, {title}", "-", lead(arm), size)
        for arm, text in planned.items()
        if "lead" in arms.get(arm, ())
    ]
    if benchmark == "pandalm":
        text = (
            f"two experts, forced, over one forest, {title} (left to choose, validation takes one)"
        )
        claims.append(
            Claim("MAD-Eval, Table 1", text, "+2.6 (7B)", arms["2 experts"]["gain"], size)
        )
    return claims


RUBRIC, PERPLEXITY = "4 full rubric", "1 perplexity"
LENGTH, COPIED = "response length", "copied pairs of words"
COUNTED, PROBABILITIES = "checklist, yes counted", "checklist, probabilities"
CHECKEVAL, EVALUATOR, OWN = (
    "CheckEval, Tables 1, 8",
    "Evaluating the Evaluator, Table 2",
    "not in the paper",
)


class Compared(NamedTuple):
    """A claim about the difference of two ways to judge one criterion at a time."""

    paper: str
    text: str
    published: str
    row: str
    """The row of our table."""
    kind: str
    """Its figure."""


CRITERIA: dict[str, tuple[Compared, ...]] = {
    "topical_chat": (
        Compared(
            CHECKEVAL,
            "counted questions over a grade with a full rubric, Topical-Chat, Spearman",
            "+0.12 (over G-Eval; 7B and larger, questions in one prompt)",
            f"{COUNTED} minus {RUBRIC}",
            "Spearman, all",
        ),
        Compared(
            OWN,
            "counted questions over the grade, Topical-Chat, in conversations (our plan's figure)",
            "-",
            f"{COUNTED} minus {RUBRIC}",
            "Spearman, conversations",
        ),
        Compared(
            OWN,
            "the questions as probabilities over the grade, Topical-Chat, Spearman",
            "-",
            f"{PROBABILITIES} minus {RUBRIC}",
            "Spearman, all",
        ),
        Compared(
            EVALUATOR,
            "a full rubric over perplexity, Topical-Chat, Pearson",
            "+0.24 (7B and larger; means over different judges)",
            f"{RUBRIC} minus {PERPLEXITY}",
            "Pearson, all",
        ),
        Compared(
            OWN,
            "the questions as probabilities over response length, Topical-Chat, in conversations "
            "(not planned)",
            "-",
            f"{PROBABILITIES} minus {LENGTH}",
            "Spearman, conversations",
        ),
    ),
    "summeval": (
        Compared(
            CHECKEVAL,
            "counted questions over a grade with a full rubric, SummEval, Spearman in articles",
            "+0.08 (over G-Eval; 7B and larger, questions in one prompt)",
            f"{COUNTED} minus {RUBRIC}",
            "Spearman, articles",
        ),
        Compared(
            OWN,
            "the questions as probabilities over the grade, SummEval, Spearman in articles",
            "-",
            f"{PROBABILITIES} minus {RUBRIC}",
            "Spearman, articles",
        ),
        Compared(
            EVALUATOR,
            "perplexity over a generic prompt, SummEval, Pearson",
            "+0.06 (7B and larger; means over different judges)",
            f"{PERPLEXITY} minus 2 generic prompt",
            "Pearson, all",
        ),
        Compared(
            OWN,
            "perplexity over a generic prompt, SummEval, in articles (our plan's figure)",
            "-",
            f"{PERPLEXITY} minus 2 generic prompt",
            "Spearman, articles",
        ),
        Compared(
            OWN,
            "perplexity over counting pairs of words that the article has, SummEval, in articles "
            "(not planned)",
            "-",
            f"{PERPLEXITY} minus {COPIED}",
            "Spearman, articles",
        ),
        Compared(
            OWN,
            "the questions as probabilities over counting such pairs, SummEval, in articles (not "
            "planned)",
            "-",
            f"{PROBABILITIES} minus {COPIED}",
            "Spearman, articles",
        ),
    ),
}
"""The claims about judging one criterion at a time, by benchmark."""


def by_criterion(benchmark: str) -> list[Claim]:
    """Return the claims about judging one criterion at a time on a benchmark."""
    made = recorded(f"papers/recorded/{benchmark}.json")
    figures = {row["name"]: row["figures"] for row in made["rows"]}
    size = f"{made['size']}, 1.5B in int8"
    return [
        Claim(
            each.paper, each.text, each.published, figures[each.row][each.kind], size, percent=False
        )
        for each in CRITERIA[benchmark]
    ]


def not_tested() -> list[tuple[str, str, str]]:
    """Return the claims that were not tested: the paper, the claim, and why."""
    return [
        (
            "RocketEval",
            "a fiftieth of the cost of GPT-4o for 1,000 tests",
            "tokens were measured ([cost](reproduction.md)); there was no GPU to rent",
        ),
        (
            "RocketEval, Fig. 5",
            "smaller judges depend more on earlier answers",
            "an earlier run of the 135M judge, whose judgments were not stored, showed the "
            "opposite: 7.4% of its answers changed (5.1-9.5), and 26.5% (16.9-35.6) of the 1.5B "
            "judge's",
        ),
        (
            "CheckEval",
            "alpha between judges rises from 0.09 to 0.48",
            "it needs several judges that are better than chance on these data; of an earlier run "
            "of two judges, one at chance, alpha was -0.12 to 0.01 (judgments not stored)",
        ),
        (
            "CheckEval",
            "one prompt with all questions works (7B and larger)",
            "the 1.5B judge says yes to nearly all of them",
        ),
        (
            "MAD-Eval",
            "rounds of evolution keep raising accuracy",
            "two rounds, and the optimizer was a recording of our own answers",
        ),
    ]


def page() -> str:
    """Return the whole page."""
    lines = [HEAD + "\n".join(claim.row() for claim in claims()), ""]
    lines += ["## Not tested, or not at the paper's size", ""]
    lines += ["| paper | claim | why |", "|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in not_tested()]
    return "\n".join(lines) + "\n" + END


def draw(found: Sequence[Claim]) -> None:
    """Write claims.svg: our differences with intervals, and the paper's where it has one."""
    from charts import pyplot, save

    panels = {
        "points": [claim for claim in found if claim.percent and claim.above == 0.0],
        "correlation": [claim for claim in found if not claim.percent and claim.above == 0.0],
    }
    heights = [len(rows) for rows in panels.values()]
    picture, axes = pyplot.subplots(
        2, 1, figsize=(10, 0.33 * sum(heights) + 2), height_ratios=heights
    )
    colors = {"**seen**": "#2a6f97", "open": "#808080", "*contradicted*": "#c0392b"}
    for panel, (unit, rows) in zip(axes, panels.items(), strict=True):
        scale = 100.0 if unit == "points" else 1.0
        for place, claim in enumerate(rows):
            value, low, high = (scale * claim.figure[name] for name in ("value", "low", "high"))
            ends = [[value - low], [high - value]]
            panel.errorbar(value, place, xerr=ends, fmt="o", color=colors[claim.verdict])
            if claim.paper_value is not None:
                panel.plot(claim.paper_value, place, "x", color="#e07a5f", markersize=7)
        panel.axvline(0, color="black", linewidth=0.6)
        panel.set_yticks(
            range(len(rows)), [claim.text.split(", points of agreement")[0] for claim in rows]
        )
        panel.tick_params(axis="y", labelsize=7)
        panel.set_ylim(len(rows) - 0.4, -0.6)
        panel.set_xlabel("points" if unit == "points" else "difference of correlations")
    for verdict, color in colors.items():
        axes[0].errorbar([], [], xerr=[], fmt="o", color=color, label=f"ours: {verdict.strip('*')}")
    axes[0].plot([], [], "x", color="#e07a5f", label="the paper (other judges and data)")
    axes[0].legend(frameon=False, fontsize=7, loc="lower right")
    save(picture, STUDIES / "recorded" / "claims.svg")


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
        draw(claims())
    else:
        print(page())
