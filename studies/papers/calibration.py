"""Calibration of the judge's yes: InfoBench's human-written questions, against GPT-4's verdicts.

    python studies/papers/grade.py JUDGE --only infobench --base-url URL    # once, with a judge
    python studies/papers/calibration.py [--record]                         # from what is stored

needs InfoBench's verdicts (../shared/data next to the checkout). One response (GPT-4's) per
instruction. The reference answers are GPT-4's own verdicts on its own response, so they lean to
yes. The main figure is the share of reference-no items that the judge answers with yes.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from prepare import DATA, infobench  # noqa: E402
from runs import KEPT_JUDGES, record, stored, table  # noqa: E402

from rocketeval.audit.calibration import Calibration, calibration  # noqa: E402
from rocketeval.scoring.answers import AnswerTable  # noqa: E402
from rocketeval.text import figure, share  # noqa: E402

STUDY = "infobench"
Verdicts = dict[str, list[bool]]
"""GPT-4's verdicts on a query's items."""


def calibrations(data: Path = DATA) -> dict[str, Calibration]:
    """Return the calibration of every judge whose judgments are stored."""
    verdicts: Verdicts = {row["query_id"]: row["verdicts"] for row in infobench(data)["verdicts"]}
    return {
        shown: compared(stored(STUDY, "checklist", judge), verdicts)
        for judge, shown in KEPT_JUDGES.items()
    }


def compared(answers: AnswerTable, verdicts: Verdicts) -> Calibration:
    """Return the calibration of a judge's answers against the verdicts."""
    reference = np.concatenate([np.array(verdicts[query]) for query in answers.query_ids])
    groups = np.repeat(np.array(answers.query_ids), answers.items)
    return calibration(answers.p_yes, reference.astype(bool), groups, bootstrap=2000)


def lines_of(found: dict[str, Calibration]) -> list[str]:
    """Return the table as text."""
    rows = []
    for shown, result in found.items():
        error = "-" if result.by_width.error is None else f"{result.by_width.error:.3f}"
        wrong = (share(result.false_yes), share(result.false_no))
        sure = (error, figure(result.brier, ".3f"), figure(result.auc, ".2f"))
        rows.append([shown, f"{result.gold_yes}/{result.gold_no}", *wrong, *sure])
    head = ["", "reference yes/no", "no -> yes, %", "yes -> no, %", "ECE", "Brier", "AUC"]
    return ["InfoBench items against GPT-4's verdicts", *table(head, rows)]


def main() -> None:
    """Print the calibration of every judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/calibration.*")
    given = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"There is no data in {DATA}; set ROCKETEVAL_SHARED_DATA to its folder.")
    found = calibrations()
    content = {shown: asdict(result) for shown, result in found.items()}
    record("calibration", content, lines_of(found), keep=given.record)
    if given.record:
        from plots import calibration_curves

        calibration_curves(content)


if __name__ == "__main__":
    main()
