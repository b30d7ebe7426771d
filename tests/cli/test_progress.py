"""Progress display of a stage, with a simulated clock."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from rocketeval.cli.progress import MOST_FAILURES, LineObserver
from rocketeval.cli.progress_text import (
    FANCY,
    PLAIN,
    StageProgress,
    StepRate,
    ending,
    frame,
    marks_for,
    pack,
    sentence,
    shortened,
)
from rocketeval.config import PriceConfig
from rocketeval.observer import EngineStatus, Expected
from rocketeval.records import Answer, Failure, Judgment, Status, Usage
from rocketeval.store.manifest import StageFacts
from support.make import key, make_config

PRICE = PriceConfig(prompt=0.15, completion=0.6, currency="USD")
WIDTHS = (40, 60, 80, 99, 100, 120, 160, 200)


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def judged(*missing: Status, tokens: int = 1000) -> Judgment:
    """Return a judgment with unanswered items of these statuses."""
    answers = (Answer(Status.OK, 0.5), *(Answer(status) for status in missing))
    return Judgment(key("x"), "q", "c", answers, Usage(requests=1, prompt_tokens=tokens))


def test_recent_rate_ignores_old_steps() -> None:
    """After a fast start and a slow minute, the recent rate is slow and the mean is not."""
    clock = Clock()
    pace = StepRate(clock)
    for _ in range(300):
        clock.now += 0.1
        pace.step()
    assert pace.recent()[0] == pytest.approx(10, rel=0.05)
    for _ in range(60):
        clock.now += 1.0
        pace.step()
    rate, window = pace.recent()
    assert rate == pytest.approx(1.0, rel=0.1)
    assert window == pytest.approx(30, abs=1.5)
    assert pace.mean == pytest.approx(4.0, rel=0.05)


def test_recent_rate_of_a_slow_judge_covers_twenty_steps() -> None:
    """The window grows until it has about twenty steps."""
    clock = Clock()
    pace = StepRate(clock)
    for _ in range(100):
        clock.now += 20.0
        pace.step()
    rate, window = pace.recent()
    assert rate == pytest.approx(1 / 20, rel=0.1)
    assert 300 < window < 500


def test_time_left_uses_the_recent_rate() -> None:
    """Failed tasks do not count as left; before the first step the time is unknown."""
    clock = Clock()
    tally = StageProgress("grade", 100, 20, clock=clock)
    assert tally.seconds_left is None
    for _ in range(10):
        clock.now += 1.0
        tally.add(judged())
    for _ in range(10):
        clock.now += 1.0
        tally.fail()
    assert tally.left == 60
    assert tally.seconds_left == pytest.approx(60, rel=0.1)
    tally.stopping = True
    assert tally.seconds_left is None


def test_failures_do_not_count_for_the_rate() -> None:
    """Ten judged and ten failed responses in twenty seconds are 0.5 per second."""
    clock = Clock()
    tally = StageProgress("grade", 100, clock=clock)
    for _ in range(10):
        clock.now += 2.0
        tally.add(judged())
        tally.fail()
    assert "0:20 so far at 0.5/s" in sentence(tally, None)
    assert "0.5/s overall" in ending(tally, None, 20.0)
    assert tally.seconds_left == pytest.approx(80, rel=0.1)


def test_waiting_for_a_server_is_shown() -> None:
    """Before the first task, the server's name is shown, without control characters."""
    clock = Clock()
    tally = StageProgress("grade", clock=clock)
    tally.ask_pulse = lambda: EngineStatus(waiting="waiting for the judge m\x1b[2J at http://x/v1")
    clock.now += 32.0
    waiting = "waiting for the judge m\ufffd[2J at http://x/v1"
    assert sentence(tally, None) == f"grade: 0:32 so far, {waiting}"
    assert frame(tally, None, 80, PLAIN) == ["grade  0:32", f"  {waiting}"]


def test_plan_at_a_different_price() -> None:
    """Tokens are compared with the plan, but money is not."""
    tally = StageProgress("grade", 100, clock=Clock())
    tally.expected = Expected(3000, None, repriced=True)
    tally.add(judged(tokens=2_000_000))
    shown = sentence(tally, PRICE)
    assert "2.0M of 3.0k prompt tokens" in shown
    assert "0.30 USD, planned at a different price" in shown


def full_tally(clock: Clock) -> StageProgress:
    """Return a stage with every figure that can be shown."""
    tally = StageProgress(
        "grade", 12_000, 3_000, part="rubric:criterion=fluency (2 of 3)", clock=clock
    )
    tally.earlier, tally.cached = 2_000, 1_000
    tally.expected = Expected(12_345_678, 1.85, least_cost=0.42, exact=False)
    tally.ask_pulse = lambda: EngineStatus(retries=17)
    for _ in range(600):
        clock.now += 0.1
        tally.add(judged(Status.LOW_MASS, Status.HIDDEN, tokens=1400))
    tally.fail()
    return tally


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("marks", [FANCY, PLAIN])
def test_no_line_is_wider_than_the_terminal(width: int, marks: object) -> None:
    """At every width, all figures are complete, and no line reaches the last column."""
    clock = Clock()
    lines = frame(full_tally(clock), PRICE, width, marks)  # type: ignore[arg-type]
    assert max(map(cell_len, lines)) < width
    shown = " ".join(" ".join(lines).split())
    for text in (
        "3,600/12,000",
        "30%",
        "left",
        "1:00 so far at 10.0/s",
        "10.0/s in the last 3",
        "840k of about 12.3M prompt tokens",
        "0.13 of about 0.42 to 1.85 USD planned",
        "2,000 reused from earlier runs",
        "1,000 reused from the cache",
        "17 retries",
        "1 failed",
        "1,200 answers missing",
        "600 yes and no hidden",
    ):
        if width >= 60:
            assert text in shown


def test_eighty_columns_need_a_bar_and_two_lines() -> None:
    """A wide terminal needs only one line below the bar."""
    clock = Clock()
    tally = StageProgress("grade", 1200, 300, clock=clock)
    tally.earlier = 300
    tally.expected = Expected(3_400_000, 0.31)
    tally.ask_pulse = lambda: EngineStatus(retries=3)
    for _ in range(100):
        clock.now += 0.1
        tally.add(judged(tokens=2000))
    assert len(frame(tally, PRICE, 80, FANCY)) == 3
    assert len(frame(tally, PRICE, 160, FANCY)) == 2


def test_stalled_judge_is_shown() -> None:
    """The time without a finished step and the retries are shown."""
    clock = Clock()
    tally = StageProgress("grade", 100, clock=clock)
    for _ in range(10):
        clock.now += 1.0
        tally.add(judged())
    tally.ask_pulse = lambda: EngineStatus(retries=5)
    clock.now += 45.0
    shown = sentence(tally, None)
    assert "nothing finished for 0:45" in shown
    assert "5 retries" in shown


def test_reasons_of_retries_are_shown() -> None:
    """The most frequent reason is first, and a lowered concurrency is shown."""
    clock = Clock()
    tally = StageProgress("grade", 100, clock=clock)
    status = EngineStatus(
        retries=12,
        retry_reasons={"HTTP 503": 3, "timeout": 9},
        at_once=4,
        usually_at_once=16,
    )
    tally.ask_pulse = lambda: status
    retries = "12 retries (timeout 9, HTTP 503 3), 4 in flight instead of 16"
    assert retries in sentence(tally, None)
    assert retries in ", ".join(ending(tally, None, 1.0))
    assert retries in " ".join(" ".join(frame(tally, None, 120, PLAIN)).split())


def test_time_left_needs_five_steps() -> None:
    """Five steps, or a tenth of a small stage, are needed; reused ones do not count."""
    clock = Clock()
    tally = StageProgress("checklist", 1000, clock=clock)
    tally.earlier = 400
    for _ in range(400):
        tally.step()
    assert (tally.done, tally.seconds_left) == (400, None)
    for _ in range(4):
        clock.now += 10.0
        tally.step()
    assert tally.seconds_left is None
    clock.now += 10.0
    tally.step()
    assert tally.seconds_left == pytest.approx(595 * 10.0)


def test_partly_answered_responses_count_in_part() -> None:
    """With many in flight, single answers determine the rate before responses finish."""
    clock, answered = Clock(), 0
    tally = StageProgress("grade", 100, clock=clock)
    tally.ask_pulse = lambda: EngineStatus(answered=answered)
    # Twenty in flight with two answers each: all first answers come before the second ones.
    for _ in range(25):
        clock.now += 1.0
        answered += 1
        if answered > 20:
            tally.add(judged(Status.LOW_MASS))
    assert tally.done == 5
    assert tally.seconds_left == pytest.approx(200 - 25, rel=0.05)


def test_no_time_left_while_waiting_for_a_batch() -> None:
    """The wait for a batch is shown without an estimate."""
    clock = Clock()
    tally = StageProgress("grade", 100, clock=clock)
    tally.add(judged())
    waiting = "waiting for 1 batch at the server (within 24h): 3 of 9 requests answered"
    tally.ask_pulse = lambda: EngineStatus(waiting=waiting)
    clock.now += 600.0
    shown = sentence(tally, None)
    assert waiting in shown
    assert " left" not in shown
    assert " left" not in "".join(frame(tally, None, 80, FANCY))


def test_long_piece_is_cut_not_wrapped() -> None:
    """A line fits, whatever the name of the stage."""
    assert max(map(len, pack(["x" * 300, "y"], 80))) <= 80


def test_lines_are_written_at_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first after two seconds, then every ten, and one at the end of a stage."""
    clock = Clock()
    observer = LineObserver(make_config(tmp_path), clock=clock)
    observer.stage_entered("grade")
    observer.stage_began("grade", 10)
    for second in range(40):
        clock.now += 1.0
        if second < 4:
            observer.judged(judged())
        observer.tick()
    observer.stage_ended("grade", StageFacts(seconds=40.0))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5
    assert all(re.match(r"\d\d:\d\d:\d\d grade: ", line) for line in lines)
    assert "nothing finished for" in lines[-2]
    assert "4 of 10 responses in 0:40" in lines[-1]


def test_only_the_first_failures_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thousand failures do not flood the terminal."""
    observer = LineObserver(make_config(tmp_path))
    observer.stage_began("grade", 1000)
    for number in range(1000):
        observer.failed(Failure(key(str(number)), "q\x1b[2J", "c", "why", ()))
    shown = capsys.readouterr().err
    assert shown.count("failed: ") == MOST_FAILURES
    assert "counted but not listed" in shown
    assert "\x1b" not in shown


def test_failed_checklists_are_counted_once(tmp_path: Path) -> None:
    """A query without a checklist is one failed step and no finished one."""
    observer = LineObserver(make_config(tmp_path))
    observer.stage_began("checklist", 3)
    observer.unwritten("q1", "why")
    observer.advanced()
    observer.advanced()
    assert (observer.tally.done, observer.tally.failed, observer.tally.left) == (1, 1, 1)
    assert observer.tally.pace.steps == 1


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp437", None, "no-such"])
def test_code_pages_get_plain_marks(encoding: str | None) -> None:
    """Encodings without the Unicode marks get ASCII marks."""
    assert marks_for(encoding, {}) is PLAIN
    assert all(getattr(PLAIN, name).isascii() for name in type(PLAIN).__slots__)


@pytest.mark.parametrize("name", ["short", "qwen2.5-7b-instruct-awq-int4-v2", "\u6a21\u578b" * 20])
@pytest.mark.parametrize("width", [1, 5, 12, 30])
def test_cut_names_keep_both_ends(name: str, width: int) -> None:
    """A cut name fits, even with characters that are two columns wide."""
    shown = shortened(name, width, "\u2026")
    assert cell_len(shown) <= width
    if cell_len(name) > width >= 5:
        assert shown[0] == name[0]
        assert shown[-1] == name[-1]


@pytest.mark.parametrize(
    ("environment", "marks"),
    [
        ({"LANG": "C"}, PLAIN),
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, PLAIN),
        ({"LC_CTYPE": "C", "LANG": "de_DE.UTF-8"}, PLAIN),
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, PLAIN),
        ({"LC_ALL": "de_DE.UTF-8", "LANG": "C"}, FANCY),
        ({"LANG": "C.UTF-8"}, FANCY),
        ({"LC_CTYPE": "C.UTF-8"}, FANCY),
        ({"LANG": "C", "PYTHONIOENCODING": "utf-8"}, FANCY),
        ({}, FANCY),
    ],
)
def test_locale_is_honored(environment: dict[str, str], marks: object) -> None:
    """The C locale gets ASCII marks, although Python writes UTF-8 there."""
    assert marks_for("utf-8", environment) is marks


def test_no_time_left_after_a_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After Ctrl-C, the time left is not shown."""
    clock = Clock()
    observer = LineObserver(make_config(tmp_path), clock=clock)
    observer.stage_began("grade", 10)
    clock.now += 3.0
    observer.judged(judged())
    observer.stopping()
    clock.now += 11.0
    observer.judged(judged())
    first, second = capsys.readouterr().err.splitlines()
    assert " left" in first
    assert " left" not in second
