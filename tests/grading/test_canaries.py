"""A judge that changes during a run, or between two commands, is noticed; an honest one passes."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.openai_server import MODEL, FakeOpenAI, by_content, serving, yes_no
from rocketeval.config import RunConfig, UntilConfig, parse_config
from rocketeval.engines.base import EngineAnswers
from rocketeval.engines.probe import PREFIX
from rocketeval.engines.replies import MOST_FINGERPRINTS, ReplyWatch
from rocketeval.errors import JudgeChanged
from rocketeval.grading.canaries import FEWEST, MOST_CANARIES, Canaries, canary_of
from rocketeval.items import Checklist, parse_item
from rocketeval.pipeline import Run
from rocketeval.prompts.rubric import RubricPrompt
from rocketeval.records import Answer, GradingTask, Query, Response, Status, Usage
from rocketeval.report.findings import read_findings
from rocketeval.report.stage import gather
from rocketeval.store.failures import Repeats, Unchecked
from rocketeval.store.ledger import count_rows
from support.command import cli
from support.make import write_grid


class Changing(FakeOpenAI):
    """A server whose model, fingerprint or weights change after some chats."""

    after = math.inf
    name = "judge-1"
    next_name = "judge-1"
    fingerprint = "fp_1"
    next_fingerprint = "fp_1"
    shift = 0.0
    noise = 0.0
    dice = random.Random(1)

    @property
    def changed(self) -> bool:
        """Whether the change has happened."""
        return len(self.chats) > self.after

    def reply(self, prompt: str, body: Any) -> dict[str, Any]:
        """Return the completion, with the names and probabilities of the moment."""
        changed = self.changed
        # The fixed questions of the first contact show a change too; here only canaries do.
        shift = self.shift if changed and not prompt.startswith(PREFIX) else 0.0
        drift = shift + self.dice.gauss(0.0, self.noise)

        def drifted(text: str) -> dict[str, float]:
            listed = by_content(text)
            odds = math.log(listed["Yes"] / listed["No"]) + drift
            return yes_no(1 / (1 + math.exp(-odds)))

        self.distribution = drifted
        return {
            **super().reply(prompt, body),
            "model": self.next_name if changed else self.name,
            "system_fingerprint": self.next_fingerprint if changed else self.fingerprint,
        }


def config(folder: Path, url: str, **judge: Any) -> RunConfig:
    """Return the config of a run with 400 items."""
    if not (folder / "benchmark").exists():
        write_grid(folder / "benchmark", queries=10, candidates=8, items=5)
    return parse_config(
        {
            "benchmark": {"path": str(folder / "benchmark")},
            "judge": {"model": MODEL, "base_url": url, "concurrency": 8, **judge},
            "output": str(folder / "runs"),
            "cache": str(folder / "cache"),
        }
    )


def stop_after(run: Run, judgments: int) -> Any:
    """Return a callback that stops a run after some judgments."""
    left = [judgments]

    def judged(_: object) -> None:
        left[0] -= 1
        if not left[0]:
            run.stop.set()

    return judged


async def test_another_model_name_stops_the_run(tmp_path: Path) -> None:
    """A reply of another model ends grading, and nothing of it is in the ledger."""
    fake = Changing()
    fake.after, fake.next_name = 120, "judge-2"
    async with serving(fake) as server:
        run = Run(config(tmp_path, server.base_url))
        with pytest.raises(JudgeChanged, match="judge-2"):
            await run.to_judgments()
    assert count_rows(run.store.ledger_folder) <= 120 // 5


@pytest.mark.parametrize("shift", [0.6, -1.5, 0.06])
async def test_drift_stops_the_run_and_is_set_aside(tmp_path: Path, shift: float) -> None:
    """Other weights under the same name stop the run; their judgments leave ledger and cache.

    The fake judge repeats its answers exactly, so a small difference is enough.
    """
    fake = Changing()
    fake.after, fake.shift = 200, shift
    async with serving(fake) as server:
        run = Run(config(tmp_path, server.base_url, canaries=0.05))
        with pytest.raises(JudgeChanged, match="differently") as caught:
            await run.to_judgments()
        assert caught.value.hint.startswith("Set aside: ")
        kept = run.store.finished()
        assert len(kept) <= 200 // 5
        assert list((run.store.path / "set_aside").rglob("*.parquet"))
        cache = tmp_path / "cache" / "judgments"
        cached = set(cache.rglob("*.parquet"))
        assert sum(count_rows(path.parent) for path in cached) <= len(kept) * max(1, len(cached))
        fake.after = math.inf
        again = Run(config(tmp_path, server.base_url, canaries=0.05))
        facts = await again.to_judgments()
    assert facts.unfinished == 0
    assert facts.continuity is not None
    assert facts.continuity.checks >= 1


async def test_a_resumed_run_checks_its_judge(tmp_path: Path) -> None:
    """A server that restarts with other weights is noticed before anything new is judged."""
    fake = Changing()
    async with serving(fake) as server:
        run = Run(config(tmp_path, server.base_url))
        run.observer.judged = stop_after(run, 20)  # type: ignore[method-assign]
        with pytest.raises(Exception, match="Stopped"):
            await run.to_judgments()
        before = run.store.finished()
        assert before
        fake.after, fake.shift = 0, 1.0
        again = Run(config(tmp_path, server.base_url))
        with pytest.raises(JudgeChanged):
            await again.to_judgments()
    assert again.store.finished() == before


async def unasked(*_: object) -> bool:
    """Make no check, as a process that is killed before it."""
    return True


async def stopped(folder: Path, url: str, after: int, **judge: Any) -> Run:
    """Return a run that was stopped after some judgments."""
    run = Run(config(folder, url, **judge))
    run.observer.judged = stop_after(run, after)  # type: ignore[method-assign]
    with pytest.raises(Exception, match="Stopped"):
        await run.to_judgments()
    return run


async def test_a_stopped_run_says_that_its_check_is_due(tmp_path: Path) -> None:
    """The manifest counts the judgments since the last check; the next command checks them."""
    async with serving(Changing()) as server:
        run = await stopped(tmp_path, server.base_url, 20, canaries=0.001)
        found = run.store.manifest().stages.grade.continuity
        assert found is not None
        assert found.unchecked == len(run.store.finished()) >= 20
        assert "due" in found.in_words
        facts = await Run(config(tmp_path, server.base_url, canaries=0.001)).to_judgments()
    assert facts.continuity is not None
    assert facts.continuity.unchecked == facts.continuity.set_aside == 0
    assert facts.continuity.items >= 8
    assert "due" not in facts.continuity.in_words


@pytest.mark.parametrize("until", [None, "interval:0.01"])
async def test_judgments_of_another_judge_before_a_stop_are_made_again(
    tmp_path: Path, until: str | None
) -> None:
    """A judge that changed shortly before a stop, and is back now, leaves no judgment behind.

    A race that stops early decides nothing from such judgments.
    """
    fake = Changing()
    async with serving(fake) as server:
        honest = await stopped(tmp_path, server.base_url, 20, canaries=0.02)
        await stopped(tmp_path, server.base_url, 10, canaries=0.02)
        kept = honest.store.finished()
        before = server.base_url
        fake.after, fake.shift = 0, 1.0
        # Too few canaries to notice the change before the stop.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Canaries, "check", unasked)
            patch.setattr(Canaries, "check_earlier", unasked)
            if until is None:
                await stopped(tmp_path, before, 20, canaries=0.001)
            else:
                await Run(config(tmp_path, before, canaries=0.001)).to_judgments()
        drifted = honest.store.finished() - kept
        assert len(drifted) >= 20
        fake.after = math.inf
        settings = config(tmp_path, before, canaries=0.001)
        goal = None if until is None else UntilConfig(goal=until)
        facts = await Run(settings.model_copy(update={"until": goal})).to_judgments()
    assert facts.unfinished == 0
    assert facts.continuity is not None
    assert facts.continuity.set_aside >= len(drifted)
    assert "set aside and made again" in facts.continuity.in_words


async def test_the_last_check_of_a_finished_run_is_made_up_for(tmp_path: Path) -> None:
    """The next command asks canaries only; if the judge is unreachable, the check stays due."""
    fake = Changing()
    async with serving(fake) as server:
        url = server.base_url
        first = Run(config(tmp_path, url, canaries=0.001))
        facts = await first.to_judgments()
        keys = sorted(first.store.finished())
        unchecked = Unchecked(first.store.ledger_folder)
        for key in keys[:30]:
            unchecked.add(key)
    gone = await Run(config(tmp_path, url, canaries=0.001)).to_judgments()
    assert gone.continuity is not None
    assert gone.continuity.unchecked == 30
    assert gone.unfinished == 0
    async with serving(fake, port=int(url.split(":")[2].split("/")[0])):
        again = await Run(config(tmp_path, url, canaries=0.001)).to_judgments()
    assert again.judged == 0
    assert again.continuity is not None
    assert facts.continuity is not None
    assert again.continuity.unchecked == 0
    assert again.continuity.items > facts.continuity.items


def test_unchecked_judgments_survive_a_kill(tmp_path: Path) -> None:
    """Each key is in the file at once; a torn one, and one without a judgment, do not count."""
    one, two, lost = b"1" * 16, b"2" * 16, b"3" * 16
    keys = Unchecked(tmp_path)
    for key in (one, two, lost):
        keys.add(key)
    with (tmp_path / ".unchecked").open("ab") as file:
        file.write(b"torn")
    again = Unchecked(tmp_path, {one, two})
    assert again.keys == [one, two]
    again.drop(1)
    assert Unchecked(tmp_path, {one, two}).keys == [two]


async def test_a_new_fingerprint_asks_the_canaries(tmp_path: Path) -> None:
    """A new system fingerprint alone is no change of the judge, but it is checked and recorded."""
    fake = Changing()
    fake.after, fake.next_fingerprint = 100, "fp_2"
    async with serving(fake) as server:
        facts = await Run(config(tmp_path, server.base_url, canaries=0.001)).to_judgments()
    assert facts.unfinished == 0
    found = facts.continuity
    assert found is not None
    assert found.fingerprints == ("fp_1", "fp_2")
    assert found.items >= 4
    assert found.largest_difference == 0.0


@pytest.mark.parametrize("noise", [0.0, 0.02])
async def test_an_honest_judge_passes(tmp_path: Path, noise: float) -> None:
    """A judge that varies as little as kernels make it vary raises no alarm."""
    fake = Changing()
    fake.noise = noise
    async with serving(fake) as server:
        facts = await Run(config(tmp_path, server.base_url, canaries=0.05)).to_judgments()
    assert facts.unfinished == 0
    found = facts.continuity
    assert found is not None
    assert found.model == "judge-1"
    assert found.items >= 10
    assert found.usage.requests == found.items


async def test_the_check_is_shown_and_kept(tmp_path: Path) -> None:
    """Terminal and report have the check in one line, also after a command that asks nothing."""
    async with serving(Changing()) as server:
        settings = config(tmp_path, server.base_url, canaries=0.05)
        run = Run(settings)
        await run.all()
        await Run(settings).to_judgments()
    again = run.store.manifest().stages.grade
    assert again.judged == 0
    assert again.continuity is not None
    assert again.continuity.items >= 10
    content = settings.model_dump(mode="json", exclude={"evolve", "distributed"})
    (tmp_path / "rocketeval.yaml").write_text(json.dumps(content))
    shown = await asyncio.to_thread(cli, tmp_path, "run")
    line = next(each for each in shown.stdout.splitlines() if each.startswith("Judge "))
    assert f"{again.continuity.items} items asked again" in line
    head = gather(run.store, settings, read_findings(run.store)).head
    assert ("judge", again.continuity.in_words) in head.cost_notes


async def test_canaries_can_be_switched_off(tmp_path: Path) -> None:
    """With a share of 0, every item is asked once."""
    async with serving(FakeOpenAI()) as server:
        facts = await Run(config(tmp_path, server.base_url, canaries=0)).to_judgments()
        assert len(server.chats) == 400
    assert facts.continuity is None


def test_a_canary_of_a_rubric_keeps_its_labels() -> None:
    """Checks and items that hardly apply are no canaries; the others keep their labels."""
    items = [
        {"text": "Says Oslo", "check": {"fn": "contains", "args": {"text": "Oslo"}}},
        {"text": "Is the date right?", "na": True},
        {"text": "How clear is it?", "levels": ["unclear", "clear"]},
        "Is it polite?",
    ]
    checklist = Checklist.from_items("q", [parse_item(item) for item in items])
    task = RubricPrompt().render(Query("q", "Where?"), Response("q", "c", "Oslo"), checklist, b"k")
    answers = (
        Answer(Status.OK, 0.5),
        Answer(Status.OK, 0.5, p_na=0.9, na_low=0.9, na_high=0.9),
        Answer(Status.OK, 0.4),
        Answer(Status.OK, 0.9),
    )
    canary = canary_of(task, answers)
    assert canary is not None
    assert canary.answer is answers[2]
    assert canary.task.left() == [0]
    assert task.labels is not None
    assert canary.task.labels == (task.labels[2],)
    assert canary.task.suffixes == (task.suffixes[2],)


class Watched:
    """An engine that only names fingerprints."""

    durable = False

    def __init__(self) -> None:
        self.watch = ReplyWatch()

    def name(self, fingerprint: str) -> None:
        """Answer under a fingerprint."""
        self.watch.check({"system_fingerprint": fingerprint})


def asked_again(engine: Watched, asked: list[bytes], own: Iterator[str] | None = None) -> Canaries:
    """Return canaries of an honest judge; `own` are the fingerprints of the canaries' replies."""

    async def ask(task: GradingTask, _: object) -> EngineAnswers:
        asked.append(task.key)
        if own is not None:
            engine.name(next(own))
        await asyncio.sleep(0)
        return EngineAnswers.of(task, {0: Answer(Status.OK, 0.5)}, Usage())

    return Canaries(ask, engine, 0.0001)  # type: ignore[arg-type]


async def finish(canaries: Canaries, number: int) -> None:
    """Finish one task with five items."""
    task = GradingTask(bytes([number]), "q", "c", "p", ("s",) * 5)
    canaries.expect(task)
    await canaries.finished(task, (Answer(Status.OK, 0.5),) * 5)


async def test_a_fingerprint_that_arrives_during_a_check_is_checked() -> None:
    """The check that is under way may have asked the server before it changed."""
    engine, asked = Watched(), list[bytes]()
    canaries = asked_again(engine, asked)
    for number in range(6):
        engine.name("fp_1")
        await finish(canaries, number)
    assert not asked
    engine.name("fp_2")
    under_way = asyncio.create_task(finish(canaries, 6))
    await asyncio.sleep(0)
    assert len(asked) == 1
    engine.name("fp_3")
    await finish(canaries, 7)
    await under_way
    before = len(asked)
    await finish(canaries, 8)
    assert len(asked) - before == 4


async def test_a_fingerprint_per_reply_costs_little() -> None:
    """Only the first few fingerprints are kept and checked."""
    engine, asked = Watched(), list[bytes]()
    canaries = asked_again(engine, asked, (f"own_{n}" for n in range(10_000)))
    for number in range(100):
        engine.name(f"fp_{number}")
        await finish(canaries, number)
    assert len(asked) <= MOST_CANARIES + 4 * MOST_FINGERPRINTS
    assert len(canaries.facts.fingerprints) == MOST_FINGERPRINTS


async def test_an_answer_may_depend_on_the_prefix_cache() -> None:
    """What an engine computes differently alone is no drift, but a change of it is."""
    alone = [0.56]

    async def ask(task: GradingTask, _: object) -> EngineAnswers:
        assert task.cold
        return EngineAnswers.of(task, {0: Answer(Status.OK, alone[0])}, Usage())

    canaries = Canaries(ask, Watched(), 0.2)  # type: ignore[arg-type]
    for number in range(20):
        await finish(canaries, number)
    assert canaries.facts.checks > MOST_CANARIES
    assert canaries.facts.largest_difference == 0.0
    alone[0] = 0.53
    with pytest.raises(JudgeChanged, match="8 items asked again differ"):
        await finish(canaries, 20)


async def test_a_quantized_judge_that_was_exact_at_first_may_vary_later() -> None:
    """If two answers in a row differ, the judge varies by itself; a large difference stops it."""
    later = list[float]()

    async def ask(task: GradingTask, _: object) -> EngineAnswers:
        later.append(later.pop(0) if later else 0.5)
        return EngineAnswers.of(task, {0: Answer(Status.OK, later[-1])}, Usage())

    canaries = Canaries(ask, Watched(), 0.2)  # type: ignore[arg-type]
    for number in range(20):
        await finish(canaries, number)
    assert canaries.exact
    later[:] = [0.51, 0.488, 0.512]
    for number in range(20, 60):
        await finish(canaries, number)
    assert not canaries.exact
    assert canaries.facts.largest_difference == 0.048
    later[:] = [0.56, 0.58, 0.55]
    with pytest.raises(JudgeChanged, match=r"its own repeatability allows 0\.20"):
        await canaries.check(FEWEST)


async def test_a_mix_of_requests_moves_some_answers_and_other_weights_move_all() -> None:
    """In both cases the answers repeat exactly, before and after."""
    moved = dict[bytes, float]()

    async def ask(task: GradingTask, _: object) -> EngineAnswers:
        return EngineAnswers.of(task, {0: Answer(Status.OK, moved.get(task.key, 0.5))}, Usage())

    canaries = Canaries(ask, Watched(), 0.2)  # type: ignore[arg-type]
    for number in range(20):
        await finish(canaries, number)
    assert canaries.exact
    keys = [canary.task.key for canary in canaries.kept]
    moved |= dict.fromkeys(keys[:2], 0.52)
    await canaries.check(MOST_CANARIES)
    assert not canaries.exact
    moved |= dict.fromkeys(keys[:3], 0.55)
    await canaries.check(MOST_CANARIES)
    assert canaries.facts.largest_difference == 0.2007
    moved |= dict.fromkeys(keys[:3], 0.65)
    with pytest.raises(JudgeChanged, match=r"8 items asked again differ by 0\.38"):
        await canaries.check(MOST_CANARIES)
    moved |= dict.fromkeys(keys, 0.53)
    with pytest.raises(JudgeChanged, match=r"8 items asked again differ by 0\.12"):
        await canaries.check(MOST_CANARIES)


async def test_a_judge_may_vary_more_than_at_first() -> None:
    """If it does so from one moment to the next, it is no other judge; a larger shift is one."""
    shift, turn = [0.002], [0]

    async def ask(task: GradingTask, _: object) -> EngineAnswers:
        turn[0] += 1
        p_yes = 0.5 + shift[0] * (turn[0] % 3 - 1)
        return EngineAnswers.of(task, {0: Answer(Status.OK, p_yes)}, Usage())

    canaries = Canaries(ask, Watched(), 0.2)  # type: ignore[arg-type]
    for number in range(20):
        await finish(canaries, number)
    assert not canaries.exact
    assert canaries.allowed == 0.1
    shift[0] = 0.04
    await canaries.check(FEWEST)
    assert canaries.allowed == pytest.approx(0.2)
    shift[0] = 0.12
    with pytest.raises(JudgeChanged, match=r"its own repeatability allows 0\.20"):
        await canaries.check(FEWEST)


async def test_each_canary_is_repeated_first_once() -> None:
    """Tasks that finish at the same time do not ask for the same repetition."""
    asked = list[bytes]()
    canaries = asked_again(Watched(), asked)
    canaries.share = 0.02
    await asyncio.gather(*(finish(canaries, number) for number in range(9)))
    assert len(asked) == len(set(asked)) == 8


def test_first_repetitions_survive_a_kill(tmp_path: Path) -> None:
    """A repetition is in the file at once; one that was cut is ignored."""
    first = Repeats(tmp_path)
    first.add(bytes(16), 0.25)
    first.add(bytes([1] * 16), 0.5)
    with (tmp_path / ".repeats").open("ab") as file:
        file.write(b"torn")
    again = Repeats(tmp_path)
    assert again.p_yes == {bytes(16): 0.25, bytes([1] * 16): 0.5}
    again.drop([bytes(16)])
    assert Repeats(tmp_path).p_yes == {bytes([1] * 16): 0.5}


async def test_a_priced_run_may_ask_a_canary_twice_at_once(tmp_path: Path) -> None:
    """A new fingerprint early in the run asks canaries while others are first asked again."""
    fake = Changing()
    fake.after, fake.next_fingerprint = 50, "fp_2"
    price = {"prompt": 1.0, "completion": 1.0}
    async with serving(fake) as server:
        made = config(tmp_path, server.base_url, price=price).model_copy(update={"max_cost": 100.0})
        facts = await Run(made).to_judgments()
    assert (facts.judged, facts.unfinished) == (80, 0)


@pytest.mark.parametrize(
    "reply", [Answer(Status.NO_LOGPROBS), Answer(Status.LOW_MASS, None, 0.5, 0.5, mass=0.098)]
)
async def test_one_reply_near_a_limit_is_no_other_judge(reply: Answer) -> None:
    """A fault of the moment is left out; a mass just below its limit is a small difference."""
    usual, repeated = Answer(Status.OK, 0.5, 0.5, 0.5, mass=0.1), list[bytes]()

    async def ask(task: GradingTask, _: object) -> EngineAnswers:
        repeated.append(task.key)
        odd = task.key == bytes([1]) and repeated.count(task.key) > 2
        return EngineAnswers.of(task, {0: reply if odd else usual}, Usage())

    canaries = Canaries(ask, Watched(), 1.0)  # type: ignore[arg-type]
    for number in range(40):
        task = GradingTask(bytes([number]), "q", "c", "p", ("s",) * 5)
        canaries.expect(task)
        await canaries.finished(task, (usual,) * 5)
    assert repeated.count(bytes([1])) > 3
