"""The attack stage: items that the judge answered with no, asked again with manipulated text."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rocketeval.attack.attacks import ATTACKS, Attack, control_of
from rocketeval.attack.measure import YES, AttackReport, Standing, Trial, figures
from rocketeval.budget import Budget, PricedBudget
from rocketeval.config import RunConfig
from rocketeval.engines.base import Engine, EngineAnswers
from rocketeval.errors import BenchmarkError, ConfigError, EngineUnavailable, StageMissing
from rocketeval.grading.ask import Ask, asks_items_independently
from rocketeval.grading.loop import GradingBudget, fingerprint
from rocketeval.grading.methods import create_method
from rocketeval.grading.schedule import cells
from rocketeval.hashing import content_hash
from rocketeval.items import ItemDetail, ItemKind
from rocketeval.observer import Observer
from rocketeval.prompts.render import GradingPrompt
from rocketeval.prompts.variants import MarkedPrompt
from rocketeval.records import (
    Answer,
    Checklist,
    GradingTask,
    Query,
    Response,
    Status,
    Usage,
)
from rocketeval.registry import nearest
from rocketeval.scoring.rubric import POINTS
from rocketeval.store.files import remove
from rocketeval.store.inputs import clusters_of
from rocketeval.store.journal import Journal
from rocketeval.store.run import RunStore
from rocketeval.workers import run_workers

ITEMS = 60
"""Items to attack by default."""
ANSWERS = "attack_answers.jsonl"
"""File of the answers of an attack that is not finished."""


@dataclass(frozen=True, slots=True)
class Target:
    """One item that the judge answered with no."""

    query: Query
    response: Response
    item: str
    detail: ItemDetail
    """How the item is asked."""
    p_yes: float

    def trial(
        self, attacked: float | None, padded: float | None, worded: float | None = None
    ) -> Trial:
        """Return the trial with these answers."""
        query_id, candidate = self.query.id, self.response.candidate
        cluster = clusters_of([self.query])[query_id]
        return Trial(query_id, candidate, self.p_yes, attacked, padded, worded, cluster)


def choose_attacks(names: Sequence[str]) -> tuple[Attack, ...]:
    """Return the attacks of these names, all without any; ConfigError for an unknown one."""
    known = {attack.name: attack for attack in ATTACKS}
    for name in names:
        if name not in known:
            raise ConfigError(f"There is no attack {name!r}.", hint=nearest(name, list(known)))
    return tuple(known[name] for name in names) if names else ATTACKS


async def attack_run(
    store: RunStore,
    config: RunConfig,
    engine: Engine,
    observer: Observer,
    stop: asyncio.Event,
    budget: Budget | None = None,
    *,
    names: Sequence[str] = (),
    items: int = ITEMS,
    datamarking: bool = False,
    seed: int = 0,
) -> AttackReport:
    """Ask items that were answered with no again, attacked and padded, and save the figures."""
    chosen = choose_attacks(names)
    method = create_method(config)
    if not asks_items_independently(method):
        raise ConfigError(
            f"Attacks need a method that asks items independently; {config.method.kind!r} does not."
        )
    prompt: GradingPrompt = method.prompt  # type: ignore[assignment]
    marking = datamarking and not isinstance(prompt, MarkedPrompt)
    if marking:
        prompt = MarkedPrompt(prompt.template)
    judge = store.judge()
    targets = list(find_targets(store, judge.digest, items, seed))
    if not targets:
        raise BenchmarkError(
            "The judge answered no item of this run with no, so there is nothing to attack.",
            hint="Judge weaker responses first. Only yes/no items with a positive weight count.",
        )
    store.check_judge(fingerprint(await engine.identify(), method))
    ask = method.asking(engine)
    if budget is not None and config.judge.price is not None:
        limit = GradingBudget(
            PricedBudget(budget, config.judge.price), engine, config.judge.extra_body
        )
        await limit.learn()
        ask = limit.within(ask)
    answers = AttackAnswers(store.path / ANSWERS, judge.digest)
    ask = answers.within(ask)
    concurrency = config.judge.concurrency or engine.in_flight
    more = 0
    if marking:
        more = len(targets)
        targets = await _marked_targets(targets, prompt, ask, concurrency, stop)
    observer.stage_began("attack", len(chosen) * len(targets), 0)
    trials, requests = await try_attacks(chosen, targets, prompt, ask, concurrency, stop, observer)
    standings = find_standings(store, config, judge.digest)
    report = AttackReport(
        judge=judge.name,
        items=len(targets),
        datamarking=datamarking or config.judge.datamarking,
        seed=seed,
        requests=requests + more,
        attacks=tuple(
            figures(attack, trials[attack.name], standings, seed, len(chosen)) for attack in chosen
        ),
    )
    if not stop.is_set():
        store.save(report)
        answers.drop()
    return report


class AttackAnswers:
    """The judge's answers to changed responses, which a stopped command leaves to the next one."""

    def __init__(self, path: Path, judge: bytes) -> None:
        self._journal = Journal(path)
        self._judge = judge.hex()
        self._known: dict[str, float] = {row["key"]: row["p_yes"] for row in self._journal.rows()}

    def within(self, ask: Ask) -> Ask:
        """Return `ask` for tasks of one item: known answers are reused, and new ones are kept."""

        async def asked(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            shown = (task.prefix, task.suffixes, task.labels)
            key = content_hash("attack", self._judge, *shown).hex()
            if key in self._known:
                return EngineAnswers((Answer(Status.OK, self._known[key]),), Usage())
            graded = await ask(task, known)
            p_yes = graded.answers[0].p_yes
            if p_yes is not None:
                self._journal.append({"key": key, "p_yes": p_yes})
                self._known[key] = p_yes
            return graded

        return asked

    def drop(self) -> None:
        """Remove the answers, because the attack is finished."""
        remove(self._journal.path)


async def _marked_targets(
    targets: Sequence[Target],
    prompt: GradingPrompt,
    ask: Ask,
    concurrency: int,
    stop: asyncio.Event,
) -> list[Target]:
    """Return the targets that are answered no with marked words, too, with that answer.

    Otherwise the effect of the marks alone would count as that of every attack.
    """
    waiting = list(reversed(targets))
    found: list[Target] = []

    async def work() -> None:
        while waiting and not stop.is_set():
            target = waiting.pop()
            p_yes = await _answer(target, target.response.text, prompt, ask)
            if p_yes is not None and p_yes < YES:
                found.append(replace(target, p_yes=p_yes))

    await run_workers(work, min(concurrency, len(targets)), stop=stop)
    if not found and not stop.is_set():
        raise BenchmarkError(
            "With marked words, the judge answers none of these items with no, so there is "
            "nothing to attack.",
            hint="Attack without --datamarking, or more items (--items).",
        )
    return sorted(found, key=lambda one: (one.query.id, one.response.candidate))


def find_targets(store: RunStore, judge: bytes, most: int, seed: int) -> Iterator[Target]:
    """Yield up to `most` items answered with no: a random one of each random response."""
    checklists, queries = store.inputs.checklists(), store.inputs.queries
    rows: list[tuple[str, str, dict[int, float]]] = []
    for query_id, candidate, answers in _answered(store, judge):
        attackable = _attackable(checklists[query_id])
        places = {n: p for n, p in answers.items() if n in attackable and p < YES}
        if places:
            rows.append((query_id, candidate, places))
    dice = random.Random(seed)
    found: list[tuple[str, str, int, float]] = []
    # The ledger has the order in which answers arrived; the choice depends on the seed alone.
    for query_id, candidate, places in sorted(rows, key=lambda row: row[:2]):
        place = dice.choice(sorted(places))
        found.append((query_id, candidate, place, places[place]))
    chosen = dice.sample(found, min(most, len(found)))
    wanted = {(query_id, candidate) for query_id, candidate, _, _ in chosen}
    texts = {
        (one.query_id, one.candidate): one
        for one in store.inputs.responses_to(sorted({query_id for query_id, _ in wanted}))
        if (one.query_id, one.candidate) in wanted
    }
    for query_id, candidate, place, p_yes in sorted(chosen):
        item, detail = checklists[query_id].items[place], checklists[query_id].detail(place)
        yield Target(queries[query_id], texts[query_id, candidate], item, detail, p_yes)


def _attackable(checklist: Checklist) -> set[int]:
    """Return the positions of the items for which a candidate wants a yes from the judge.

    A yes to an item of negative weight costs points, and code decides checks. Levels are no yes.
    """
    return {
        place
        for place, detail in enumerate(checklist.every_detail)
        if detail.kind is ItemKind.YES_NO and detail.weight > 0
    }


async def try_attacks(
    attacks: Sequence[Attack],
    targets: Sequence[Target],
    prompt: GradingPrompt,
    ask: Ask,
    concurrency: int,
    stop: asyncio.Event,
    observer: Observer,
) -> tuple[dict[str, list[Trial]], int]:
    """Return the trials by attack, and the number of requests.

    One worker asks all texts of a target, one after the other, so that the server finds what they
    share in its prefix cache. Attacks with the same control ask it once.
    """
    waiting = list(reversed(targets))
    trials: dict[str, list[Trial]] = {attack.name: [] for attack in attacks}
    requests = 0

    async def work() -> None:
        nonlocal requests
        while waiting:
            target, found = waiting.pop(), dict[str, float | None]()
            for attack in attacks:
                shown = texts_of(attack, target)
                for text in shown:
                    if stop.is_set():
                        return
                    if text not in found:
                        requests += 1
                        found[text] = await _answer(target, text, prompt, ask)
                trials[attack.name].append(target.trial(*(found[text] for text in shown)))
                observer.advanced()

    await run_workers(work, max(1, min(concurrency, len(targets))), stop=stop)
    return {name: sorted(own, key=_place) for name, own in trials.items()}, requests


def texts_of(attack: Attack, target: Target) -> list[str]:
    """Return the responses to ask about: attacked, padded and, for a forgery, with its words."""
    text = target.response.text
    attacked, worded = attack.attacked(text, target.item), attack.worded(text)
    controls = [control_of(text, attacked), *([] if worded is None else [worded])]
    return [attacked, *controls]


def _place(trial: Trial) -> tuple[str, str]:
    """Return what sorts trials, so that figures do not depend on the order of the answers."""
    return trial.query_id, trial.candidate


async def _answer(target: Target, text: str, prompt: GradingPrompt, ask: Ask) -> float | None:
    """Return p_yes for one item of a changed response."""
    checklist = Checklist(target.query.id, (target.item,), details=(target.detail,))
    response = replace(target.response, text=text)
    task: GradingTask = prompt.render(target.query, response, checklist, b"attack")
    key = content_hash("attack", target.query.id, response.candidate, target.item, text)
    graded = await ask(replace(task, key=key), {})
    if graded.unavailable:
        raise EngineUnavailable(graded.failure or "The judge gave no answer.")
    return graded.answers[0].p_yes


def find_standings(store: RunStore, config: RunConfig, judge: bytes) -> dict[str, Standing]:
    """Return the standing of every candidate with an item that can be attacked.

    The scores are the run's own, else means of the answers by weight. An answer counts by its
    item's weight; for a scorer that learns, that is an approximation.
    """
    checklists = store.inputs.checklists()
    low, high = config.scorer.scale
    earned = config.scorer.kind == POINTS
    found: dict[str, list[tuple[float, list[tuple[float, float]]]]] = {}
    for query_id, candidate, answers in _answered(store, judge):
        checklist = checklists[query_id]
        attackable = _attackable(checklist)
        known = [(place, p, checklist.detail(place).weight) for place, p in answers.items()]
        whole = sum(max(w, 0.0) if earned else abs(w) for _, _, w in known)
        if not whole:
            continue
        score = sum(w * p if earned or w > 0 else -w * (1 - p) for _, p, w in known) / whole
        points = [(p, (high - low) * w / whole) for n, p, w in known if n in attackable]
        found.setdefault(candidate, []).append((low + (high - low) * score, points))
    scores = _mean_scores(store)
    return {
        name: Standing(
            scores.get(name, sum(score for score, _ in own) / len(own)),
            tuple(p for _, points in own for p, _ in points),
            tuple(worth / len(own) for _, points in own for _, worth in points),
        )
        for name, own in sorted(found.items())
    }


def _answered(store: RunStore, judge: bytes) -> Iterator[tuple[str, str, dict[int, float]]]:
    """Yield query, candidate and p_yes by item of each judgment of the run's own responses."""
    keys = {
        cell.key.hex(): (cell.query_id, cell.candidate)
        for cell in cells(store.inputs, judge)
        if cell.key is not None
    }
    for table in store.judgments(["key", "p_yes"]):
        for row in table.to_pylist():
            if row["key"] in keys:
                known = {place: p for place, p in enumerate(row["p_yes"]) if p is not None}
                yield *keys[row["key"]], known


def _mean_scores(store: RunStore) -> dict[str, float]:
    """Return the mean score of each candidate; empty before the run is scored."""
    try:
        scores = store.scores(["candidate", "score"])
    except StageMissing:
        return {}
    means = scores.group_by("candidate").aggregate([("score", "mean")]).to_pylist()
    return {row["candidate"]: row["score_mean"] for row in means if row["score_mean"] is not None}
