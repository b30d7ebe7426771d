"""Count the items of real checklists that the static lint flags, and the bad ones it misses.

    python studies/lint/infobench.py [--data ../shared/data] [--show] [--record]

InfoBench has 2,250 human-written questions to check responses by. A finding there is usually a
false positive, so the share should be small. A strong LLM wrote MT-Bench's checklists; CheckEval's
question sets are the published ones. The bad and good items come from tests/lint.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rocketeval.lint.static import check_checklists
from rocketeval.records import Checklist, Query

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def main() -> None:
    """Print the shares, and with --show every finding on InfoBench."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--show", action="store_true", help="also print the flagged questions")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    lines = ["items flagged share  set"]
    sets = {
        "InfoBench": infobench(given.data / "infobench"),
        "MT-Bench checklists": mt_bench(given.data / "mt_bench"),
        "CheckEval question sets": checkeval(given.data / "checkeval"),
    }
    result = []
    for name, (checklists, queries) in sets.items():
        found = check_checklists(checklists, queries)
        flagged = {(each.query_id, each.item) for each in found.findings}
        kinds = Counter(each.kind for each in found.findings).most_common()
        lines.append(f"{found.items:5} {len(flagged):7} {len(flagged) / found.items:5.1%}  {name}")
        result.append(f"{name}: " + (", ".join(f"{kind} {n}" for kind, n in kinds) or "nothing"))
    lines += [*bad_and_good(), "", *result]
    print("\n".join(lines))
    if given.show:
        print("", *findings(*sets["InfoBench"]), sep="\n")
    if given.record:
        path = HERE / "recorded" / "infobench.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


Set = tuple[list[Checklist], dict[str, Query]]


def infobench(folder: Path) -> Set:
    """Return every instruction with its questions."""
    found = list(rows(folder / "infobench_gpt4.jsonl.gz"))
    return (
        [Checklist(row["id"], tuple(row["decomposed_questions"])) for row in found],
        {row["id"]: Query(row["id"], f"{row['instruction']}\n{row['input']}") for row in found},
    )


def mt_bench(folder: Path) -> Set:
    """Return both turns of every question, with the checklists written for this project."""
    queries = {}
    for row in rows(folder / "questions.jsonl.gz"):
        for turn in (1, 2):
            name = f"{row['question_id']}-{turn}"
            queries[name] = Query(name, "\n".join(row["turns"][:turn]))
    written = rows(folder / "checklists.jsonl.gz")
    return [Checklist(row["query_id"], tuple(row["checklist"])) for row in written], queries


def checkeval(folder: Path) -> Set:
    """Return the published question sets, each as one checklist."""
    sets = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    return [
        Checklist(name, tuple(questions("\n".join(map(str, each["sub_aspect"].values())))))
        for name, each in sets.items()
    ], {}


def questions(text: str) -> Iterable[str]:
    """Return each question of a text that holds several."""
    return (each.strip() for each in re.findall(r"[^?]+\?", text))


def bad_and_good() -> list[str]:
    """Return the shares of our own bad and good items that are flagged."""
    sys.path.insert(0, str(ROOT / "tests"))
    from lint.bad_items import ALONE, TWINS
    from lint.good_items import DIFFERENT, ITEMS
    from lint.held_back_items import BAD

    bad = [(item,) for items in ALONE.values() for item in items]
    bad += [pair for pairs in TWINS.values() for pair in pairs]
    held_back = [(item,) for items in BAD.values() for item in items]
    good = [*((item,) for item in ITEMS), *DIFFERENT]
    return [
        share(bad, f"bad items of the tests, {len(ALONE) + len(TWINS)} kinds"),
        share(held_back, "bad items written after the rules (86% before rules were widened)"),
        share(good, "good items of the tests"),
    ]


def share(checklists: Iterable[tuple[str, ...]], name: str) -> str:
    """Return a line of the table; each checklist is flagged or not."""
    every = list(checklists)
    flagged = sum(bool(check_checklists([Checklist("q", own)]).findings) for own in every)
    return f"{len(every):5} {flagged:7} {flagged / len(every):5.1%}  {name}"


def findings(checklists: list[Checklist], queries: dict[str, Query]) -> list[str]:
    """Return the findings, item by item."""
    found = check_checklists(checklists, queries).findings
    return [f"{each.kind}: {each.query_id}, item {each.item}: {each.text[:160]}" for each in found]


def rows(path: Path) -> Iterable[dict[str, Any]]:
    """Return the rows of a gzipped JSON lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    main()
