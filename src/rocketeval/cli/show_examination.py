"""How an examination of a judge looks in a terminal."""

from __future__ import annotations

import sys

from rich.table import Table
from rich.text import Text

from rocketeval.cli.tables import make_console
from rocketeval.cli.terminal import marks_for
from rocketeval.cli.words import printable
from rocketeval.config import JudgeConfig
from rocketeval.cost import money, shown_money
from rocketeval.doctor.examination import Examination, Verdict
from rocketeval.engines.base import Finding
from rocketeval.engines.openai_http import base_url
from rocketeval.names import counted

STYLES = {"good": "green", "note": "yellow", "bad": "red"}
VERDICT_STYLES = {Verdict.READY: "green", Verdict.CARE: "yellow", Verdict.UNUSABLE: "red"}


def show_examination(examination: Examination, settings: JudgeConfig) -> None:
    """Print a line per finding, then the verdict and what the examination cost."""
    console = make_console()
    known = marks_for(sys.stdout.encoding)
    marks = {"good": known.good, "note": "!", "bad": known.bad}
    console.print(Text(printable(f"Judge {settings.model}{_where(settings)}"), style="bold"))
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in examination.findings:
        mark = Text(marks[finding.level], style=STYLES[finding.level])
        table.add_row(mark, Text(printable(finding.name)), _told(finding, known.arrow))
    console.print(table)
    console.print(_verdict(examination))
    if examination.usage.requests:
        console.print(_cost(examination, settings), style="dim", highlight=False, markup=False)


def _told(finding: Finding, arrow: str) -> Text:
    told = Text(printable(finding.told), style="red" if finding.level == "bad" else "")
    if finding.advice:
        told.append(f"\n{arrow} {printable(finding.advice)}", style="dim")
    return told


def _verdict(examination: Examination) -> Text:
    verdict = examination.verdict
    names = ", ".join(printable(finding.name.strip()) for finding in examination.reasons)
    reasons = f" ({names})" if names else ""
    return Text(f"Verdict: {verdict}{reasons}", style=f"bold {VERDICT_STYLES[verdict]}")


def _cost(examination: Examination, settings: JudgeConfig) -> str:
    usage, price = examination.usage, settings.price
    parts = [
        counted(usage.requests, "request", "requests"),
        f"{usage.prompt_tokens:,} prompt tokens",
    ]
    if price is not None:
        parts.append(shown_money(money(usage, price), price.currency))
    asked = ", ".join(parts)
    judge = examination.fingerprint
    digest = f" Judge {judge.digest.hex()[:12]}." if judge else ""
    return f"Asked {asked} (the probe not counted), {examination.seconds:.1f} s in all.{digest}"


def _where(settings: JudgeConfig) -> str:
    at = f" at {base_url(settings)}" if settings.engine == "openai" else ""
    return f"{at} (engine {settings.engine})"
