"""Calibration of the judge's yes: InfoBench's human-written questions, against GPT-4's verdicts.

    python studies/papers/grade.py qwen2.5-coder-1.5b-instruct-int8 --only infobench \\
        --base-url URL                                                      # once, with a judge
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
from runs import record, stored, table  # noqa: E402

from rocketeval.audit.calibration import Calibration, calibration  # noqa: E402
from rocketeval.scoring.answers import AnswerTable  # noqa: E402
from rocketeval.text import figure, share  # noqa: E402

STUDY = "infobench"
SHOWN = "Qwen2.5-Coder-1.5B in int8"
Verdicts = dict[str, list[bool]]
"""GPT-4's verdicts on a query's items."""


def measured(data: Path = DATA) -> Calibration:
    """Return the calibration of the stored answers."""
    verdicts: Verdicts = {row["query_id"]: row["verdicts"] for row in infobench(data)["verdicts"]}
    return compared(stored(STUDY, "checklist"), verdicts)


def compared(answers: AnswerTable, verdicts: Verdicts) -> Calibration:
    """Return the calibration of a judge's answers against the verdicts."""
    reference = np.concatenate([np.array(verdicts[query]) for query in answers.query_ids])
    groups = np.repeat(np.array(answers.query_ids), answers.items)
    return calibration(answers.p_yes, reference.astype(bool), groups, bootstrap=2000)


def lines_of(found: Calibration) -> list[str]:
    """Return the figures as text."""
    error = "-" if found.by_width.error is None else f"{found.by_width.error:.3f}"
    share_yes = found.gold_yes / found.items
    constant = share_yes * (1.0 - share_yes)
    rows = [
        ["GPT-4 says no, the judge yes, %", share(found.false_yes)],
        ["GPT-4 says yes, the judge no, %", share(found.false_no)],
        ["expected calibration error", error],
        ["Brier score", figure(found.brier, ".3f")],
        ["  of a constant, the share of yes", f"{constant:.3f}"],
        ["AUC", figure(found.auc, ".2f")],
    ]
    head = [f"{found.items} items of InfoBench", f"{found.gold_yes} yes, {found.gold_no} no"]
    return table(head, rows)


def main() -> None:
    """Print the calibration, and keep it with `--record`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/calibration.*")
    given = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"There is no data in {DATA}; set ROCKETEVAL_SHARED_DATA to its folder.")
    found = measured()
    content = {SHOWN: asdict(found)}
    record("calibration", content, lines_of(found), keep=given.record)
    if given.record:
        from plots import calibration_curves

        calibration_curves(content)


if __name__ == "__main__":
    main()
