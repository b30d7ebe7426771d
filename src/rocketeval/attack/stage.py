"""The attack stage: items that the judge answered with no, asked again with manipulated text."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rocketeval.attack.attacks import ATTACKS, Attack, control_of
from rocketeval.attack.measure import YES, AttackReport, Trial, figures
from rocketeval.budget import Budget, PricedBudget
from rocketeval.config import RunConfig
from rocketeval.engines.base import Engine
from rocketeval.errors import BenchmarkError, ConfigError, EngineUnavailable
from rocketeval.grading.ask import Ask
from rocketeval.grading.loop import GradingBudget, fingerprint
from rocketeval.grading.methods import create_method
from rocketeval.grading.schedule import cells
from rocketeval.grading.work import asks_items_independently
from rocketeval.items import ItemDetail, ItemKind
from rocketeval.observer import Observer
from rocketeval.prompts.render import GradingPrompt
from rocketeval.prompts.variants import MarkedPrompt
from rocketeval.records import Checklist, GradingTask, Query, Response
from rocketeval.registry import nearest
from rocketeval.store.run import RunStore
from rocketeval.workers import run_workers

ITEMS = 60
"""Items to attack by default."""


@dataclass(frozen=True, slots=True)
class Target:
    """One item that the judge answered with no."""

    query: Query
    response: Response
    item: str
    detail: ItemDetail
    """How the item is asked."""
    p_yes: float

    def trial(self, attacked: float | None, padded: float | None) -> Trial:
        """Return the trial with these two answers."""
        query_id, candidate = self.query.id, self.response.candidate
        return Trial(query_id, candidate, self.p_yes, attacked, padded)


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
    if datamarking and not isinstance(prompt, MarkedPrompt):
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
    observer.stage_began("attack", len(chosen) * len(targets), 0)
    concurrency = config.judge.concurrency or engine.in_flight
    trials, requests = await try_attacks(chosen, targets, prompt, ask, concurrency, stop, observer)
    answers = _answers(store, judge.digest)
    report = AttackReport(
        judge=judge.model,
        items=len(targets),
        datamarking=datamarking or config.judge.datamarking,
        seed=seed,
        requests=requests,
        attacks=tuple(figures(attack, trials[attack.name], answers, seed) for attack in chosen),
    )
    if not stop.is_set():
        store.save(report)
    return report


def find_targets(store: RunStore, judge: bytes, most: int, seed: int) -> Iterator[Target]:
    """Yield up to `most` items answered with no: a random one of each random response."""
    checklists, queries = store.inputs.checklists(), store.inputs.queries
    keys = {
        cell.key.hex(): (cell.query_id, cell.candidate)
        for cell in cells(store.inputs, judge)
        if cell.key is not None
    }
    dice = random.Random(seed)
    found: list[tuple[str, str, int, float]] = []
    for table in store.judgments(["key", "p_yes"]):
        for row in table.to_pylist():
            if row["key"] not in keys:
                continue
            attackable = _attackable(checklists[keys[row["key"]][0]])
            answers = enumerate(row["p_yes"])
            places = [n for n, p in answers if n in attackable and p is not None and p < YES]
            if places:
                place = dice.choice(places)
                found.append((*keys[row["key"]], place, row["p_yes"][place]))
    found.sort()
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
                text = attack.attacked(target.response.text, target.item)
                control = control_of(target.response.text, text)
                for shown in (text, control):
                    if stop.is_set():
                        return
                    if shown not in found:
                        requests += 1
                        found[shown] = await _answer(target, shown, prompt, ask)
                trials[attack.name].append(target.trial(found[text], found[control]))
                observer.advanced()

    await run_workers(work, min(concurrency, len(targets)), stop=stop)
    return {name: sorted(own, key=_place) for name, own in trials.items()}, requests


def _place(trial: Trial) -> tuple[str, str]:
    """Return what sorts trials, so that figures do not depend on the order of the answers."""
    return trial.query_id, trial.candidate


async def _answer(target: Target, text: str, prompt: GradingPrompt, ask: Ask) -> float | None:
    """Return p_yes for one item of a changed response."""
    checklist = Checklist(target.query.id, (target.item,), details=(target.detail,))
    response = replace(target.response, text=text)
    task: GradingTask = prompt.render(target.query, response, checklist, b"attack")
    graded = await ask(replace(task, key=text.encode()[-64:] + target.item.encode()[:64]), {})
    if graded.unavailable:
        raise EngineUnavailable(graded.failure or "The judge gave no answer.")
    return graded.answers[0].p_yes


def _answers(store: RunStore, judge: bytes) -> dict[str, list[float]]:
    """Return the p_yes of all answers to items that can be attacked, by candidate."""
    checklists = store.inputs.checklists()
    keys = {cell.key.hex(): cell.query_id for cell in cells(store.inputs, judge) if cell.key}
    found: dict[str, list[float]] = {}
    for table in store.judgments(["key", "candidate", "p_yes"]):
        for row in table.to_pylist():
            if row["key"] not in keys:
                continue
            attackable = _attackable(checklists[keys[row["key"]]])
            known = [p for n, p in enumerate(row["p_yes"]) if n in attackable and p is not None]
            found.setdefault(row["candidate"], []).extend(known)
    return {name: own for name, own in found.items() if own}
