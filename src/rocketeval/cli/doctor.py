"""`rocketeval doctor`: check a judge, and print the verdict and the figures."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.help import JUDGE, codes, option, verb
from rocketeval.cli.options import DEFAULT_CONFIG, loaded
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.progress_text import marks_for
from rocketeval.cli.text import make_console
from rocketeval.errors import EngineError, Stopped
from rocketeval.text import count_of, printable

if TYPE_CHECKING:
    from rich.text import Text

    from rocketeval.config import JudgeConfig, RunConfig
    from rocketeval.doctor.examine import Examination
    from rocketeval.engines.base import EngineFinding
    from rocketeval.observer import Observer


STYLES = {"good": "green", "note": "yellow", "bad": "red"}
VERDICT_STYLES = {"READY": "green", "CARE": "yellow", "UNUSABLE": "red"}


def show_examination(examination: Examination, settings: JudgeConfig) -> None:
    """Print the verdict, one line per finding, and the cost of the check."""
    from rich.table import Table
    from rich.text import Text

    console = make_console()
    known = marks_for(sys.stdout.encoding)
    marks = {"good": known.good, "note": "!", "bad": known.bad}
    console.print(Text(printable(f"Judge {settings.model}{_where(settings)}"), style="bold"))
    console.print(_verdict(examination))
    console.print(_meaning(examination, marks), highlight=False, markup=False)
    console.print()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in examination.findings:
        mark = Text(marks[finding.level], style=STYLES[finding.level])
        table.add_row(mark, Text(printable(finding.name)), _message(finding, known.arrow))
    console.print(table)
    if examination.usage.requests:
        console.print(_cost(examination, settings), style="dim", highlight=False, markup=False)


def _message(finding: EngineFinding, arrow: str) -> Text:
    from rich.text import Text

    message = Text(printable(finding.told), style="red" if finding.level == "bad" else "")
    if finding.advice:
        message.append(f"\n{arrow} {printable(finding.advice)}", style="dim")
    return message


def _verdict(examination: Examination) -> Text:
    from rich.text import Text

    verdict = examination.verdict
    names = ", ".join(printable(finding.name.strip()) for finding in examination.reasons)
    reasons = f" ({names})" if names else ""
    style = f"bold {VERDICT_STYLES[verdict.name]}"
    return Text(f"Verdict: {verdict}{reasons}", style=style)


def _meaning(examination: Examination, marks: Mapping[str, str]) -> str:
    """Return a short paragraph on what the verdict means for a run."""
    from rocketeval.doctor.examine import DoctorVerdict
    from rocketeval.doctor.forecast import in_words

    figures, verdict = examination.figures, examination.verdict
    sentences = []
    if figures.items is not None:
        sentences.append(
            f"The judge answered {figures.right} of {figures.items} test questions correctly."
        )
    if verdict is DoctorVerdict.READY:
        sentences.append("You can use it as it is.")
    elif verdict is DoctorVerdict.CARE:
        sentences.append(f"You can use it; first read the advice marked {marks['note']} below.")
    else:
        sentences.append(
            "A run with it would fail or give meaningless scores; fix what is marked "
            f"{marks['bad']} below, or choose another judge."
        )
    if examination.run is not None:
        sentences.append(f"This run would take {in_words(examination.run)}.")
    return " ".join(sentences)


def _cost(examination: Examination, settings: JudgeConfig) -> str:
    from rocketeval.prices import money, shown_money

    usage, price = examination.usage, settings.price
    parts = [
        count_of(usage.requests, "request", "requests"),
        f"{usage.prompt_tokens:,} prompt tokens",
    ]
    if price is not None:
        parts.append(shown_money(money(usage, price), price.currency))
    asked = ", ".join(parts)
    judge = examination.fingerprint
    digest = f" Judge {judge.digest.hex()[:12]}." if judge else ""
    total = f"{examination.seconds:.1f} s in total"
    return f"This check sent {asked}, besides the probe, and took {total}.{digest}"


def _where(settings: JudgeConfig) -> str:
    from rocketeval.engines.server import base_url

    at = f" at {base_url(settings)}" if settings.engine == "openai" else ""
    return at if settings.engine == "recorded" else f"{at} (engine {settings.engine})"


PATIENCE = 20.0
"""Seconds to retry one request, because a person is waiting."""


@verb(
    examples=[
        ("rocketeval doctor", "check the judge of rocketeval.yaml"),
        ("rocketeval doctor --judge MODEL --base-url http://127.0.0.1:8000/v1", "any judge"),
    ],
    exit_codes={
        0: "ready, or usable with care",
        **codes(2),
        4: "do not use this judge",
        130: "interrupted; no result",
    },
)
@click.argument("config", type=click.Path(path_type=Path, dir_okay=False), required=False)
@option(
    "--quick", is_flag=True, help="Skip repeatability and rate; sends only a third of the requests."
)
@option(
    "--judge",
    metavar="MODEL",
    section=JUDGE,
    help="Judge model; overrides the config's. Required without a config.",
)
@option(
    "--base-url",
    metavar="URL",
    section=JUDGE,
    help="The judge's endpoint; overrides the config's.",
)
@option(
    "--engine",
    metavar="NAME",
    section=JUDGE,
    help="openai (any OpenAI-compatible server), openai_batch, openai_sampled (no "
    "log-probabilities), decisions, systemone, vllm, llamacpp, recorded (replays saved answers), "
    "scripted (made-up answers, for tests) or a plugin; overrides the config's.",
)
@option(
    "--transport",
    metavar="NAME",
    section=JUDGE,
    help="Request format of an HTTP server: auto (the fastest that returns exact "
    "probabilities of yes and no), chat (works on all), "
    "chat_exact, chat_batch, completions, generative_scoring, sglang_generate or sglang_score; "
    "overrides the config's.",
)
@with_output
def command(
    config: Path | None,
    judge: str | None,
    base_url: str | None,
    engine: str | None,
    transport: str | None,
    quick: bool,
    output: Output,
) -> int:
    """Check that a judge works before you spend money on it.

    Identifies the server, checks its log-probabilities, picks the fastest transport (request
    format), scores the judge on 24 items with known answers, and measures how much answers
    vary when a request is repeated, and how fast they arrive. With a config, it predicts how long
    the run will take. It sends about a hundred small requests; --quick sends a third of them.

    The judge is taken from CONFIG (default rocketeval.yaml, if it exists), or from --judge and
    --base-url.
    """
    import asyncio
    from functools import partial

    from rocketeval.cli.progress import make_observer
    from rocketeval.cli.run_with_signals import ticking
    from rocketeval.doctor.examine import DoctorVerdict

    given = {"model": judge, "base_url": base_url, "engine": engine, "transport": transport}
    settings, run = _settings(config, {name: value for name, value in given.items() if value})
    observer = make_observer(None, quiet=output.quiet)
    try:
        work = partial(_examine, settings, run, observer, quick=quick)
        examination = asyncio.run(ticking(observer, work))
    except KeyboardInterrupt:
        raise Stopped("Interrupted; no result.", hint="--quick sends fewer requests.") from None
    finally:
        observer.closed()
    output.give(
        examination.to_json(settings.price), lambda: show_examination(examination, settings)
    )
    return EngineError.exit_code if examination.verdict is DoctorVerdict.UNUSABLE else 0


async def _examine(
    settings: JudgeConfig, run: RunConfig | None, observer: Observer, *, quick: bool
) -> Examination:
    from rocketeval.doctor.examine import examine
    from rocketeval.engines.base import create_engine
    from rocketeval.grading.loop import grading_prompt

    prompt = grading_prompt(settings.template)
    patience = min(settings.patience, PATIENCE)
    # Batch engines report open batches only if they have a folder.
    with TemporaryDirectory(prefix="rocketeval-doctor-") as home:
        engine = create_engine(settings.model_copy(update={"patience": patience}), Path(home))
        try:
            return await examine(engine, prompt, quick=quick, observer=observer, run=run)
        finally:
            await engine.aclose()


def _settings(path: Path | None, given: dict[str, Any]) -> tuple[JudgeConfig, RunConfig | None]:
    """Return the judge with the options applied, and the config; None if there is no config."""
    if path is None and DEFAULT_CONFIG.exists():
        path = DEFAULT_CONFIG
    if path is None:
        return _without_config(given), None
    config = loaded(path)
    judge = _with_price(config, _parsed({**config.judge.model_dump(), **given}))
    return judge, config.model_copy(update={"judge": judge})


def _without_config(given: dict[str, Any]) -> JudgeConfig:
    if "model" not in given:
        raise click.UsageError(
            f"Which judge? Give --judge MODEL and --base-url URL, or a config ({DEFAULT_CONFIG})."
        )
    settings = _parsed(given)
    # Never fall back to the paid hosted API because a URL was forgotten.
    if settings.engine == "openai" and not (settings.base_url or os.environ.get("OPENAI_BASE_URL")):
        raise click.UsageError("Where is the judge? Give --base-url URL, or set $OPENAI_BASE_URL.")
    return settings


def _parsed(raw: dict[str, Any]) -> JudgeConfig:
    from rocketeval.config import JudgeConfig, parse_options

    return parse_options(raw, JudgeConfig, "The judge")


def _with_price(config: RunConfig, judge: JudgeConfig) -> JudgeConfig:
    from rocketeval.prices import with_prices

    return with_prices(config.model_copy(update={"judge": judge})).judge
