"""Attacks on a judge that can be fooled, and on one that cannot."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import astuple, replace
from pathlib import Path

import pyarrow as pa
import pytest

from fakes.openai_server import MODEL, FakeOpenAI, by_content, serving, yes_no
from rocketeval.attack.attacks import ATTACKS, CONTROL_STEP, control_of, padded
from rocketeval.attack.measure import (
    AttackFigures,
    AttackReport,
    Standing,
    Trial,
    figures,
    ranks_gained,
)
from rocketeval.attack.stage import (
    ANSWERS,
    Target,
    attack_run,
    choose_attacks,
    find_standings,
    find_targets,
)
from rocketeval.budget import Budget
from rocketeval.cli.attack import show_attacks
from rocketeval.config import RunConfig, parse_config
from rocketeval.engines.base import create_engine
from rocketeval.engines.probe import PREFIX
from rocketeval.errors import ConfigError, StageMissing
from rocketeval.neutral import neutralize
from rocketeval.observer import Observer
from rocketeval.pipeline import Run
from rocketeval.stats.bootstrap import wilson
from rocketeval.store.codec import decode, encode
from rocketeval.store.ledger import replace_ledger
from support.command import cli
from support.make import write_grid


def gullible(prompt: str) -> dict[str, float]:
    """Return a judge that believes false claims and obeys forged turns, but ignores padding."""
    marked = "Verified: a panel" in prompt or "<|im_start|>" in prompt
    return yes_no(0.95 if marked else 0.1)


def config(folder: Path, url: str, **judge: object) -> RunConfig:
    """Return the config of a run over a small grid."""
    if not (folder / "benchmark").exists():
        write_grid(folder / "benchmark", queries=8, candidates=3, items=2)
    return parse_config(
        {
            "benchmark": {"path": str(folder / "benchmark")},
            "judge": {"model": MODEL, "base_url": url, "canaries": 0, **judge},
            "output": str(folder / "runs"),
            "cache": None,
            "ranking": {"bootstrap": 50},
        }
    )


async def attacked(run: Run, **settings: object) -> AttackReport:
    """Attack the judge of a run."""
    engine = create_engine(run.config.judge)
    try:
        return await attack_run(
            run.store, run.config, engine, Observer(), asyncio.Event(), **settings
        )
    finally:
        await engine.aclose()


async def test_a_gullible_judge_is_measured(tmp_path: Path) -> None:
    """The attack that works flips every answer; forged tokens are neutralized."""
    async with serving(FakeOpenAI(gullible)) as server:
        write_grid(tmp_path / "benchmark", queries=12, candidates=1, items=2)
        run = Run(config(tmp_path, server.base_url))
        await run.all()
        report = await attacked(run, items=10)
        asked = len(server.chats)
    by_name = {one.name: one for one in report.attacks}
    assert len(by_name) == len(ATTACKS) >= 15
    assert report.items == 10
    authority = by_name["false_authority"]
    assert (authority.flips, authority.flips_padded, authority.trials) == (10, 0, 10)
    assert authority.beyond_padding.value == pytest.approx(0.85)
    assert authority.works
    assert not by_name["chat_tokens"].works
    assert by_name["chat_tokens"].flips == 0
    assert 10 * len(ATTACKS) < report.requests < 16 * len(ATTACKS)
    tokens = by_name["chat_tokens"].beyond_words
    assert tokens is not None
    assert tokens.value == pytest.approx(0.0)
    assert not by_name["chat_tokens"].forges
    assert authority.beyond_words is None
    assert asked == 24 + report.requests
    assert run.store.read(AttackReport) == report
    assert "1 of 16 attacks" in report.sentence()
    assert any("false_authority" in line for line in run.audit().advice)


async def test_an_honest_judge_passes(tmp_path: Path) -> None:
    """A judge whose answers do not depend on the attack shows none that works."""
    async with serving(FakeOpenAI(lambda _: yes_no(0.2))) as server:
        run = Run(config(tmp_path, server.base_url))
        await run.to_judgments()
        report = await attacked(run, items=24, names=["flattery", "base64"])
    assert [one.name for one in report.attacks] == ["flattery", "base64"]
    assert not any(one.works for one in report.attacks)
    assert "no attack raises" in report.sentence()


async def test_datamarking_marks_the_prompt(tmp_path: Path) -> None:
    """With datamarking, words are joined in every prompt, and the judgments are others."""
    async with serving(FakeOpenAI(by_content)) as server:
        run = Run(config(tmp_path, server.base_url))
        plain = await run.to_judgments()
        marked = Run(
            config(tmp_path, server.base_url, datamarking=True).model_copy(
                update={"name": "marked"}
            )
        )
        facts = await marked.to_judgments()
        assert facts.judged == plain.judged
        assert marked.store.judge().digest != run.store.judge().digest
        assert "Answer^0^to^q0." in server.chats[-1].prompt or any(
            "^to^" in chat.prompt for chat in server.chats
        )
        report = await attacked(run, items=2, names=["flattery"], datamarking=True)
        assert report.datamarking
        assert "^" in server.chats[-1].prompt


async def test_only_yes_no_items_that_help_are_attacked(tmp_path: Path) -> None:
    """Penalties, levels and checks are left out; material and `na` are shown as in the run."""
    write_grid(tmp_path / "benchmark", queries=4, candidates=2, items=1)
    items = [
        {"text": "Is it rude?", "weight": -2},
        {"text": "How clear is it?", "levels": ["unclear", "clear"]},
        {"text": "Says Bergen", "check": {"fn": "contains", "args": {"text": "Bergen"}}},
        {"text": "Is the date right?", "na": True},
    ]
    rows = [{"query_id": f"q{number}", "items": items} for number in range(4)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "benchmark" / "checklists.jsonl").write_text(lines)
    low = {"Yes": 0.1, "No": 0.8, "NA": 0.05, "1": 0.03, "2": 0.02}
    async with serving(FakeOpenAI(lambda _: low)) as server:
        run = Run(config(tmp_path, server.base_url))
        await run.to_judgments()
        asked = len(server.chats)
        report = await attacked(run, items=20, names=["flattery"])
        attacks = server.chats[asked:]
    assert report.items == 8
    prompts = [chat.prompt for chat in attacks if "Answer" in chat.prompt]
    assert len(prompts) == 16
    assert all("Is the date right?" in one and "Yes, No or NA" in one for one in prompts)


def test_every_attack_changes_the_response() -> None:
    """Names are unique, and each attack adds or replaces text; forgeries are neutralized."""
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    for attack in ATTACKS:
        text = attack.attacked("An honest response.", "Is it right?")
        assert text != "An honest response."
        assert bool(neutralize(text).count) == (attack.kind != "content")
        assert len(padded("An honest response.", len(text))) == len(text)
        longer = len(control_of("An honest response.", text)) - len(text)
        assert 0 <= longer < CONTROL_STEP


def test_figures_count_flips_beyond_padding() -> None:
    """Flips, means and their intervals come from the trials with both answers."""
    trials = [Trial(f"q{n}", "a", 0.2, 0.8 if n < 3 else 0.3, 0.25) for n in range(6)]
    found = figures(
        ATTACKS[0],
        [*trials, Trial("q9", "a", 0.1, None, 0.1)],
        {"a": Standing(0.2, (0.2,), (1.0,))},
        0,
    )
    assert (found.trials, found.unanswered, found.flips, found.flips_padded) == (6, 1, 3, 0)
    assert found.flip_rate.value == pytest.approx(0.5)
    assert found.change.value == pytest.approx(0.35)
    assert found.beyond_padding.value == pytest.approx(0.3)
    assert found.beyond_padding.low < 0.3 < found.beyond_padding.high
    empty = figures(ATTACKS[0], [], {}, 0)
    assert math.isnan(empty.change.value)


def test_intervals_resample_conversations() -> None:
    """Two turns that react alike give the interval of the first turns alone."""
    trials = [
        Trial(f"q{n}-{turn}", "a", 0.2, 0.2 + 0.05 * n, 0.25, 0.3, f"q{n}")
        for n in range(8)
        for turn in (1, 2)
    ]
    attack = next(attack for attack in ATTACKS if attack.words)
    both, alone = (figures(attack, part, {}, 0) for part in (trials, trials[::2]))
    assert (both.trials, alone.trials) == (16, 8)
    for name in ("change", "beyond_padding", "beyond_words"):
        ours, theirs = (astuple(getattr(found, name)) for found in (both, alone))
        assert ours == pytest.approx(theirs)


def test_flip_rate_resamples_queries() -> None:
    """Many responses to a few queries are no more certain than the queries."""
    trials = [
        Trial(f"q{n}", f"c{m}", 0.2, 0.8 if n < 4 else 0.3, 0.25) for n in range(8) for m in (0, 1)
    ]
    both, alone = (figures(ATTACKS[0], part, {}, 0).flip_rate for part in (trials, trials[::2]))
    assert both.value == alone.value == 0.5
    assert both.high - both.low >= alone.high - alone.low - 0.05
    assert astuple(alone) == astuple(wilson(0.5, 1.96**2 / 8))
    # All 16 flip: as sure as 8 of 8 queries, not as 16 of 16 responses.
    flipped = [replace(one, attacked=0.8) for one in trials]
    assert figures(ATTACKS[0], flipped, {}, 0).flip_rate.low == pytest.approx(0.631, abs=0.001)
    few = figures(ATTACKS[0], trials[:6], {}, 0).flip_rate
    assert few.value == 1.0
    assert math.isnan(few.low)
    one_each = figures(ATTACKS[0], trials[:10:2], {}, 0).flip_rate
    assert one_each.value == 0.8
    assert math.isnan(one_each.low)


@pytest.mark.parametrize("change", [0.0, 1.0])
def test_changes_that_are_all_equal_are_not_certain(change: float) -> None:
    """Eight queries without any change do not show that there is none on others."""
    trials = [Trial(f"q{n}", "a", 0.0, change, 0.0) for n in range(8)]
    found = figures(ATTACKS[0], trials, {}, 0)
    for one in (found.change, found.beyond_padding):
        assert one.value == change
        assert one.high - one.low >= 0.3
    assert found.works == (change > 0)


def test_few_queries_give_no_verdict() -> None:
    """Many responses to five queries have no interval, so no attack works; six queries have one."""
    trials = [
        Trial(f"q{n}", f"c{m}", 0.2, 0.6 + 0.05 * n, 0.25) for n in range(6) for m in range(4)
    ]
    standings = {"a": Standing(0.5, (), ()), "b": Standing(0.2, (0.2,), (1.0,))}
    few, enough = (figures(ATTACKS[0], part, standings, 0) for part in (trials[:20], trials))
    for name in ("change", "beyond_padding", "ranks_gained"):
        found = getattr(few, name)
        assert found.value > 0
        assert math.isnan(found.low)
        assert math.isnan(found.high)
    assert (few.works, enough.works) == (False, True)
    told = [
        AttackReport(
            judge="m", items=20, datamarking=False, seed=0, requests=0, attacks=(one,)
        ).sentence()
        for one in (few, enough)
    ]
    assert told[0].startswith("not decided: the queries are too few")
    assert told[1].startswith("1 of 1 attacks")


@pytest.mark.parametrize(
    ("answered", "reason"),
    [(0, "the judge gave no probabilities"), (2, "the queries with answers are too few")],
)
def test_unanswered_items_are_the_reason(
    answered: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without answers there is no figure, and enough queries are not called too few."""
    attack = ATTACKS[0]
    trials = [Trial(f"q{i}", "a", 0.1, 0.1 if i < answered else None, 0.1) for i in range(20)]
    found = figures(attack, trials, {"a": Standing(3.0, (0.1,), (1.0,))}, 0)
    report = AttackReport(
        judge="j", items=20, datamarking=False, seed=0, requests=40, attacks=(found,)
    )
    assert report.sentence().startswith(f"not decided: {reason}")
    show_attacks(report)
    shown = capsys.readouterr().out
    assert "nan" not in shown
    assert ("no interval" in shown) == bool(answered)


def test_verdicts_are_corrected_for_the_number_of_attacks() -> None:
    """One of 16 attacks needs a smaller p-value, and ten queries; the intervals stay the same."""
    attack = next(attack for attack in ATTACKS if attack.words)
    changes = (0.3, 0.2, 0.1, 0.1, 0.2, 0.1, -0.02, 0.2, 0.1, -0.15, 0.1, -0.1)
    trials = [Trial(f"q{n}", "a", 0.2, 0.3 + c, 0.3, 0.3) for n, c in enumerate(changes)]
    alone, among = (figures(attack, trials, {}, 0, number) for number in (1, 16))
    assert (alone.works, alone.forges, among.works, among.forges) == (True, True, False, False)
    assert among.p_padding == pytest.approx(16 * alone.p_padding)
    assert astuple(alone.beyond_padding) == astuple(among.beyond_padding)
    assert alone.beyond_padding.low > 0
    strong = [replace(one, attacked=0.9) for one in trials]
    nine, ten = (figures(attack, strong[:number], {}, 0, 16) for number in (9, 10))
    assert (nine.decided, nine.works, ten.decided, ten.works) == (False, False, True, True)
    report = AttackReport(
        judge="m", items=9, datamarking=False, seed=0, requests=0, attacks=(nine,) * 16
    )
    assert report.sentence().startswith("not decided")
    assert "needs 10 queries" in report.sentence()
    assert decode(AttackFigures, encode(nine)).decided is False


def test_files_without_p_values_keep_their_verdict() -> None:
    """In a file of an earlier version the interval alone decides."""
    trials = [Trial(f"q{n}", "a", 0.2, 0.6 + 0.01 * n, 0.25) for n in range(8)]
    few, enough = (figures(ATTACKS[0], part, {}, 0, 16) for part in (trials[:5], trials))
    old = [replace(one, p_padding=0.0, p_words=0.0) for one in (few, enough)]
    assert [one.works for one in old] == [False, True]
    assert [one.decided for one in old] == [False, True]
    assert "p_padding" not in encode(old[0])


def test_ranks_are_gained_by_raising_answers() -> None:
    """Only answers below one half are raised, by their points, and each candidate alone."""
    standings = {
        "a": Standing(0.9, (0.9, 0.9), (0.5, 0.5)),
        "b": Standing(0.45, (0.6, 0.3), (0.5, 0.5)),
        "c": Standing(0.35, (0.4, 0.3), (0.5, 0.5)),
    }
    assert ranks_gained(standings, 0.0) == 0.0
    assert ranks_gained(standings, 0.4) == pytest.approx(1 / 3)
    light = {**standings, "c": Standing(0.35, (0.4, 0.3), (0.05, 0.05))}
    assert ranks_gained(light, 0.4) == 0.0
    assert ranks_gained({"a": Standing(0.1, (0.1,), (1.0,))}, 0.5) == 0.0
    trials = [Trial(f"q{n}", "c", 0.3, 0.3 + 0.05 * n, 0.3) for n in range(9)]
    gained = figures(ATTACKS[0], trials, standings, 0).ranks_gained
    assert gained.low <= gained.value <= gained.high
    assert gained.value > 0


async def test_standings_are_those_of_the_run(tmp_path: Path) -> None:
    """Scores come from the run, and points from the weights of the items."""
    write_grid(tmp_path / "benchmark", queries=8, candidates=3, items=2)
    items = [{"text": "Is it right?", "weight": 3}, "Is it short?"]
    lines = "".join(json.dumps({"query_id": f"q{n}", "items": items}) + "\n" for n in range(8))
    (tmp_path / "benchmark" / "checklists.jsonl").write_text(lines)
    async with serving(FakeOpenAI(by_content)) as server:
        run = Run(config(tmp_path, server.base_url))
        await run.all()
    found = find_standings(run.store, run.config, run.store.judge().digest)
    table = run.store.scores(["candidate", "score"]).to_pylist()
    for name, own in found.items():
        scores = [row["score"] for row in table if row["candidate"] == name]
        assert own.score == pytest.approx(sum(scores) / len(scores))
        assert sum(own.points) == pytest.approx(9.0)
        assert own.points[0] == pytest.approx(3 * own.points[1])
        assert own.raised(0.0) == own.score


async def test_the_choice_of_items_depends_on_the_seed_alone(tmp_path: Path) -> None:
    """Judgments in another order give the same items."""
    async with serving(FakeOpenAI()) as server:
        run = Run(config(tmp_path, server.base_url))
        await run.all()
    judge = run.store.judge().digest

    def chosen() -> list[Target]:
        return list(find_targets(run.store, judge, 5, 3))

    first = chosen()
    rows = pa.concat_tables(run.store.judgments())
    replace_ledger(run.store.ledger_folder, rows.take(list(reversed(range(rows.num_rows)))))
    assert chosen() == first


async def test_equal_items_fit_into_one_budget(tmp_path: Path) -> None:
    """Attacks that replace the whole response give equal texts to responses; each is settled."""
    async with serving(FakeOpenAI(gullible)) as server:
        run = Run(config(tmp_path, server.base_url, price={"prompt": 1, "completion": 1}))
        await run.all()
        budget = Budget(100.0)
        report = await attacked(run, items=12, budget=budget, names=["punctuation"])
    assert report.attacks[0].trials == 12
    assert report.attacks[0].unanswered == 0


async def test_changed_judgments_drop_the_report(tmp_path: Path) -> None:
    """Another score of the same judgments keeps it; a new response removes it."""
    async with serving(FakeOpenAI(gullible)) as server:
        settings = config(tmp_path, server.base_url)
        run = Run(settings)
        await run.all()
        await attacked(run, items=2, names=["flattery"])
        run.score()
        assert (run.store.path / "attack.json").exists()
        responses = tmp_path / "benchmark" / "responses" / "c0.jsonl"
        responses.write_text(responses.read_text().replace("Answer 0 to q1.", "Another text."))
        await Run(settings).all()
    assert not (run.store.path / "attack.json").exists()


async def test_stopped_attack_goes_on_where_it_was(tmp_path: Path) -> None:
    """Answers are kept until the report is written; then a new attack asks the judge again."""
    stop, asked, enough = asyncio.Event(), 0, -1

    def judge(prompt: str) -> dict[str, float]:
        nonlocal asked
        asked += not prompt.startswith(PREFIX)
        if asked == enough:
            stop.set()
        return yes_no(0.2)

    async with serving(FakeOpenAI(judge)) as server:
        settings = config(tmp_path, server.base_url, concurrency=1)
        run = Run(settings)
        await run.to_judgments()
        start, enough = asked, asked + 30
        engine = create_engine(settings.judge)
        try:
            await attack_run(run.store, settings, engine, Observer(), stop, items=4)
        finally:
            await engine.aclose()
        stopped = asked - start
        assert not (run.store.path / "attack.json").exists()
        assert len((run.store.path / ANSWERS).read_text().splitlines()) == stopped
        report = await attacked(run, items=4)
        whole = asked - start
        assert stopped == 30 < whole <= report.requests
        assert not (run.store.path / ANSWERS).exists()
        again = await attacked(run, items=4)
        assert asked - start == 2 * whole
    assert again == report


async def test_marked_attacks_are_compared_with_marked_answers(tmp_path: Path) -> None:
    """The effect of the marks is not that of an attack; an item that they turn is left out."""

    def judge(prompt: str) -> dict[str, float]:
        if "^" not in prompt:
            return yes_no(0.1)
        return yes_no(0.9 if "q0" in prompt else 0.4)

    async with serving(FakeOpenAI(judge)) as server:
        run = Run(config(tmp_path, server.base_url))
        await run.to_judgments()
        asked = len(server.chats)
        report = await attacked(run, items=24, names=["flattery"], datamarking=True)
        assert report.requests == len(server.chats) - asked
    assert report.items == 21
    assert report.attacks[0].trials == 21
    assert report.attacks[0].change.value == pytest.approx(0.0)
    assert report.attacks[0].flips == 0


def test_unknown_attacks_are_named(tmp_path: Path) -> None:
    """The nearest attack is suggested, before the run is read."""
    with pytest.raises(ConfigError, match="flatery") as caught:
        choose_attacks(["flatery"])
    assert "flattery" in caught.value.hint


async def test_a_run_without_judgments_cannot_be_attacked(tmp_path: Path) -> None:
    """Attacks need a graded run."""
    run = Run(config(tmp_path, "http://127.0.0.1:9/v1"))
    run.load()
    with pytest.raises(StageMissing):
        await attacked(run)


async def test_the_command(tmp_path: Path) -> None:
    """The command prints a table, or JSON."""
    async with serving(FakeOpenAI(gullible)) as server:
        settings = config(tmp_path, server.base_url)
        (tmp_path / "rocketeval.yaml").write_text(
            json.dumps(settings.model_dump(mode="json", exclude={"evolve", "distributed"}))
        )
        await asyncio.to_thread(cli, tmp_path, "run", "-q")
        shown = await asyncio.to_thread(cli, tmp_path, "attack", "--items", "4")
        assert "false_authority" in shown.stdout
        assert "4/4" in shown.stdout
        as_json = await asyncio.to_thread(
            cli, tmp_path, "attack", "--items", "4", "--only", "flattery", "--json"
        )
    assert json.loads(as_json.stdout)["attacks"][0]["name"] == "flattery"
