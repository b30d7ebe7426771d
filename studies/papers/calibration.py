"""Calibration of the judge's yes: InfoBench's human-written questions, against GPT-4's verdicts.

    python studies/papers/calibration.py [--limit N] [--record]

One response (GPT-4's) per instruction. The reference answers are GPT-4's own verdicts on its own
response, so they lean to yes. The main figure is the share of reference-no items that the judge
answers with yes.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

import numpy as np
from runs import JUDGES, graded, record, rows_of, table

from rocketeval.audit.calibration import calibration
from rocketeval.text import figure, share


def main() -> None:
    """Print the calibration of every judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    verdicts = {row["query_id"]: row["verdicts"] for row in rows_of("infobench", "verdicts")}
    rows, content = [], {}
    for judge, shown in JUDGES.items():
        found = graded("infobench", "checklist", judge, given.limit)
        if found is None:
            continue
        known = {query: p for (query, _), p in found.by_cell().items()}
        p = np.concatenate(list(known.values()))
        gold = np.concatenate([np.array(verdicts[query], dtype=bool) for query in known])
        groups = np.concatenate([[query] * len(answers) for query, answers in known.items()])
        result = calibration(p, gold, groups)
        content[shown] = asdict(result)
        error = "-" if result.by_width.error is None else f"{result.by_width.error:.3f}"
        wrong = (share(result.false_yes), share(result.false_no))
        sure = (error, figure(result.brier, ".3f"), figure(result.auc, ".2f"))
        rows.append([shown, f"{result.gold_yes}/{result.gold_no}", *wrong, *sure])
    head = ["", "reference yes/no", "no -> yes, %", "yes -> no, %", "ECE", "Brier", "AUC"]
    lines = ["InfoBench items against GPT-4's verdicts", *table(head, rows)]
    record("calibration", content, lines, keep=given.record)
    if given.record:
        from plots import calibration_curves

        calibration_curves(content)


if __name__ == "__main__":
    main()
