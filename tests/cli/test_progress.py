"""What a stage shows while it works, by a clock that the test turns."""

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
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def judged(*missing: Status, tokens: int = 1000) -> Judgment:
    """A judgment that lacks the answers whose status is named."""
    answers = (Answer(Status.OK, 0.5), *(Answer(status) for status in missing))
    return Judgment(key("x"), "q", "c", answers, Usage(requests=1, prompt_tokens=tokens))


def test_the_recent_rate_forgets_what_was_long_ago() -> None:
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


def test_a_slow_judge_has_a_longer_recent_past() -> None:
    """A rate rests on some twenty steps, however long they took; it says over how long."""
    clock = Clock()
    pace = StepRate(clock)
    for _ in range(100):
        clock.now += 20.0
        pace.step()
    rate, window = pace.recent()
    assert rate == pytest.approx(1 / 20, rel=0.1)
    assert 300 < window < 500


def test_what_is_left_is_told_by_the_recent_rate() -> None:
    """Failed tasks are not waited for; before the first step nobody can tell."""
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


def test_failures_are_no_work_that_was_done() -> None:
    """Ten judged and ten failed in twenty seconds are one judged every two."""
    clock = Clock()
    tally = StageProgress("grade", 100, clock=clock)
    for _ in range(10):
        clock.now += 2.0
        tally.add(judged())
        tally.fail()
    assert "0:20 so far at 0.5/s" in sentence(tally, None)
    assert "0.5/s overall" in ending(tally, None, 20.0)
    assert tally.seconds_left == pytest.approx(80, rel=0.1)


def test_whom_everything_waits_for_is_told() -> None:
    """Before the first task is known, a silent server has a name, without control characters."""
    clock = Clock()
    tally = StageProgress("grade", clock=clock)
    tally.ask_pulse = lambda: EngineStatus(waiting="waiting for the judge m\x1b[2J at http://x/v1")
    clock.now += 32.0
    told = "waiting for the judge m\ufffd[2J at http://x/v1"
    assert sentence(tally, None) == f"grade: 0:32 so far, {told}"
    assert frame(tally, None, 80, PLAIN) == ["grade  0:32", f"  {told}"]


def test_a_plan_at_another_price_says_so() -> None:
    """Tokens stand beside the plan's, money alone."""
    tally = StageProgress("grade", 100, clock=Clock())
    tally.expected = Expected(3000, None, repriced=True)
    tally.add(judged(tokens=2_000_000))
    shown = sentence(tally, PRICE)
    assert "2.0M of 3.0k prompt tokens" in shown
    assert "0.30 USD, planned at another price" in shown


def full_tally(clock: Clock) -> StageProgress:
    """A stage in which everything that can be told is there to be told."""
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
    """At every width all figures are there, whole, and no line touches the last column."""
    clock = Clock()
    lines = frame(full_tally(clock), PRICE, width, marks)  # type: ignore[arg-type]
    assert max(map(cell_len, lines)) < width
    shown = " ".join(" ".join(lines).split())
    for text in (
        "3,600/12,000",
        "30 %",
        "left",
        "1:00 so far at 10.0/s",
        "10.0/s in the last 3",
        "840k of about 12.3M prompt tokens",
        "0.13 of about 0.42 to 1.85 USD planned",
        "2,000 from earlier runs",
        "1,000 from the cache",
        "17 retries",
        "1 failed",
        "1,200 answers missing",
        "600 yes and no hidden",
    ):
        if width >= 60:
            assert text in shown


def test_eighty_columns_take_a_bar_and_two_lines() -> None:
    """Usual figures need no more; a wide terminal needs one line below the bar."""
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


def test_a_judge_that_hangs_is_told() -> None:
    """Silence is put into words, with the retries that go on meanwhile."""
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


def test_why_requests_are_sent_again_is_told() -> None:
    """While it goes and at the end: how many, the most frequent reason first, how many at once."""
    clock = Clock()
    tally = StageProgress("grade", 100, clock=clock)
    status = EngineStatus(
        retries=12,
        retry_reasons={"HTTP 503": 3, "timeout": 9},
        at_once=4,
        usually_at_once=16,
    )
    tally.ask_pulse = lambda: status
    told = "12 retries (timeout 9, HTTP 503 3), 4 at once instead of 16"
    assert told in sentence(tally, None)
    assert told in ", ".join(ending(tally, None, 1.0))
    assert told in " ".join(" ".join(frame(tally, None, 120, PLAIN)).split())


def test_the_time_left_waits_until_enough_is_known() -> None:
    """Five responses, or a tenth of a small run; lists that were there already do not count."""
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


def test_responses_in_the_making_count_in_part() -> None:
    """Where many are asked at once, the first finish late: their answers tell the pace before."""
    clock, answered = Clock(), 0
    tally = StageProgress("grade", 100, clock=clock)
    tally.ask_pulse = lambda: EngineStatus(answered=answered)
    # Twenty at once, two answers each: all first answers come before the second ones.
    for _ in range(25):
        clock.now += 1.0
        answered += 1
        if answered > 20:
            tally.add(judged(Status.LOW_MASS))
    assert tally.done == 5
    assert tally.seconds_left == pytest.approx(200 - 25, rel=0.05)


def test_a_batch_is_waited_for_without_a_guess() -> None:
    """What may take a day says so, and no time is invented."""
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


def test_a_long_piece_is_cut_not_broken() -> None:
    """Whatever a stage is called, a line fits."""
    assert max(map(len, pack(["x" * 300, "y"], 80))) <= 80


def test_lines_come_now_and_then(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One after two seconds, then every ten, also when nothing is finished; stage ends always."""
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
    assert "4 of 10 in 0:40" in lines[-1]


def test_failures_are_named_up_to_a_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thousand failures do not scroll the terminal away."""
    observer = LineObserver(make_config(tmp_path))
    observer.stage_began("grade", 1000)
    for number in range(1000):
        observer.failed(Failure(key(str(number)), "q\x1b[2J", "c", "why", ()))
    shown = capsys.readouterr().err
    assert shown.count("failed: ") == MOST_FAILURES
    assert "counted, not named" in shown
    assert "\x1b" not in shown


def test_checklists_that_fail_are_counted_once(tmp_path: Path) -> None:
    """A query without a checklist is one failed step, not one done."""
    observer = LineObserver(make_config(tmp_path))
    observer.stage_began("checklist", 3)
    observer.unwritten("q1", "why")
    observer.advanced()
    observer.advanced()
    assert (observer.tally.done, observer.tally.failed, observer.tally.left) == (1, 1, 1)
    assert observer.tally.pace.steps == 1


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp437", None, "no-such"])
def test_code_pages_get_plain_marks(encoding: str | None) -> None:
    """What cannot be encoded is not drawn; every plain mark is ASCII."""
    assert marks_for(encoding, {}) is PLAIN
    assert all(getattr(PLAIN, name).isascii() for name in type(PLAIN).__slots__)


@pytest.mark.parametrize("name", ["short", "qwen2.5-7b-instruct-awq-int4-v2", "\u6a21\u578b" * 20])
@pytest.mark.parametrize("width", [1, 5, 12, 30])
def test_names_keep_both_ends(name: str, width: int) -> None:
    """A cut name fits, also one whose marks are two columns wide."""
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
def test_the_locale_is_honoured(environment: dict[str, str], marks: object) -> None:
    """Python writes UTF-8 in the C locale, whose terminals may not show it."""
    assert marks_for("utf-8", environment) is marks


def test_what_stops_tells_no_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After Ctrl-C what is left is not done, however fast it went."""
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
