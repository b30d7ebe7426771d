"""Judge continuity: a few finished items are asked again, and must get the same answer.

A server can load other weights under the same name. So a small share of the items is asked again
through the run, before the first new task of a resumed run, after a new system fingerprint, and at
the end. Answers are compared as log-odds. What an engine may vary is measured on its own first
repetitions, with a floor for other kernels and other requests in flight; the floor is lower if
these were exact. A single deviation asks the other canaries too; only together do they stop the
run. Before that they are asked once more, to see what the judge varies by now: a quantized judge
may repeat exactly until another mix of requests is in flight. Other weights move every answer; such
a mix moves only some.

An engine may compute an item differently within its response than alone, depending on its prefix
cache. So each canary is asked again soon, without the cache where that can be said; this first
repetition may differ more from the answer, and later ones are compared with it.

Judgments since the last passed check are kept in the run. If a process was stopped or killed before
its last check, the next one makes it first: it asks items of these judgments again, too.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rocketeval.engines.base import Engine, EngineAnswers
from rocketeval.errors import JudgeChanged
from rocketeval.grading.schedule import cells, unfinished_tasks
from rocketeval.precision import Measured
from rocketeval.prompts.render import Prompt
from rocketeval.records import NO_ANSWER, Answer, GradingTask, JudgeFingerprint, Status
from rocketeval.store.failures import Repeats, Unchecked
from rocketeval.store.manifest import ContinuityFacts
from rocketeval.store.run import RunStore

MOST_CANARIES = 8
"""Items that are kept to be asked again."""
FEWEST = 4
"""Canaries that decide together, if there are so many."""
ON_RESUME = 2
"""Canaries that a resumed run asks before its first new task."""
FLOOR = 0.1
"""Root-mean-square difference in log-odds that other kernels and batches may cause."""
EXACT = 0.002
"""Difference of a judge that answers the same question with the same number."""
EXACT_FLOOR = 0.03
"""The floor of a judge whose repetitions were all exact."""
FEWEST_EXACT = 3
"""Repetitions that show this."""
FLOOR_IF_SOME = 0.3
"""The floor of a judge with a fine number format if half of the answers or more are as before."""
COARSE_STEPS = 3.0
"""The same in steps of a coarse number format such as bfloat16."""
REPEATED = 4.0
"""The same in multiples of the engine's own repetitions."""
EARLIER = 10.0
"""First repetitions are made this much faster than later ones, to compare those with."""
FIRST = 3.0
"""Allowed difference of the first repetition, in multiples of that of later ones."""
SUSPICIOUS = 0.5
"""Share of the allowed difference from which on the other canaries are asked, too."""
NEVER = 12.0
"""Log-odds beyond this count as this much: both answers are certain."""

Known = Mapping[int, Answer]
Ask = Callable[[GradingTask, Known], Awaitable[EngineAnswers]]


@dataclass(frozen=True, slots=True)
class Canary:
    """One item with its answer."""

    task: GradingTask
    """The task with this item alone."""
    answer: Answer


@dataclass(frozen=True, slots=True)
class Repetition:
    """A canary that was asked again."""

    canary: Canary
    now: Answer
    difference: float
    first: bool
    """Whether it is compared with the answer in the run, not with an earlier repetition."""


@dataclass
class Canaries:
    """The canaries of a grading."""

    ask: Ask
    engine: Engine
    share: float
    """Share of the finished items to ask again; 0 asks none."""
    step: float = 0.0
    """Step of the judge's number format; 0 if it is fine or unknown."""
    noise: float = 0.0
    """The judge's measured repeatability."""
    kept: list[Canary] = field(default_factory=list)
    facts: ContinuityFacts = field(default_factory=ContinuityFacts)
    suspects: Unchecked = field(default_factory=Unchecked)
    """Judgments finished since the last passed check."""
    repeats: Repeats = field(default_factory=Repeats)
    """First repetitions of the canaries."""
    _distances: list[float] = field(default_factory=list)
    _differences: list[float] = field(default_factory=list)
    """Differences of all repetitions that passed, first ones too."""
    _largest: float = 0.0
    _due: float = 0.0
    _unrepeated: float = -1.0
    """Grows to 1 until another canary is repeated for the first time; later in a small run."""
    _tried: set[bytes] = field(default_factory=set)
    """Canaries whose first repetition was asked for."""
    _next: int = 0
    _busy: bool = False
    _owed: bool = False
    """Whether a new fingerprint was seen that no check has followed yet."""
    _varies: bool = False
    """Whether two answers in a row differed."""

    @property
    def allowed(self) -> float:
        """The difference in log-odds that the judge's own repeatability allows."""
        own = self._distances[:MOST_CANARIES]
        repeated = _mean_size(own) if len(own) > 2 else 0.0
        floor = _floor(self.step, self.noise, EXACT_FLOOR if self.exact else FLOOR)
        return max(floor, min(REPEATED * repeated, 2 * floor))

    @property
    def exact(self) -> bool:
        """Whether the judge has a fine number format and repeated its first answers exactly."""
        own = self._differences[:MOST_CANARIES]
        fine = not self.step and not self._varies
        return fine and len(own) >= FEWEST_EXACT and max(own) <= EXACT

    @property
    def first(self) -> float:
        """How much more a first repetition may differ: it may be computed differently."""
        return 1.0 if self.exact else FIRST

    def keep(self, canaries: Iterable[Canary]) -> None:
        """Keep answers of an earlier process as canaries."""
        for canary in canaries:
            if len(self.kept) < MOST_CANARIES:
                self.kept.append(canary)

    def expect(self, task: GradingTask) -> None:
        """Note that a judgment is about to be recorded."""
        if self.share:
            self.suspects.add(task.key)

    async def finished(self, task: GradingTask, answers: tuple[Answer, ...]) -> None:
        """Note a finished task, and ask canaries again when they are due."""
        if not self.share:
            return
        asked = self.share * (len(answers) - len(task.checks))
        self._due += asked
        self._unrepeated += EARLIER * asked
        if len(self.kept) < MOST_CANARIES and (canary := canary_of(task, answers)) is not None:
            self.kept.append(canary)
        if self._unrepeated >= 1.0:
            await self._repeat_first()
        self._see_fingerprints()
        if self._owed:
            await self.check(FEWEST)
        elif self._due >= 1.0:
            self._due -= 1.0
            await self.check(1)

    async def check(self, count: int) -> None:
        """Ask `count` canaries again; JudgeChanged if the judge answers differently than before."""
        if self._busy or not self.kept or not self.share:
            return
        self._busy = True
        if self._owed:
            count, self._owed = max(count, FEWEST), False
        try:
            trusted = len(self.suspects)
            if await self._repeat(count):
                self.suspects.drop(trusted)
        finally:
            self._busy = False

    async def check_earlier(self, unchecked: Iterable[Canary]) -> bool:
        """Make the check that an earlier process left out; return whether it found no change.

        `unchecked` are canaries of its unchecked judgments. If they differ although the judge is
        the same as before, another judge answered them. JudgeChanged if the judge is not the same.
        """
        trusted = bool(self.kept)
        if trusted and not await self._repeat(FEWEST):
            return True
        own = list(unchecked)
        found = await self._asked_again(own)
        if not found:
            return True
        if await self._differ(found):
            if not trusted:
                raise self._changed(found)
            return False
        self._passed(found)
        self.suspects.drop(len(self.suspects))
        self.keep(own)
        return True

    async def _repeat(self, count: int) -> bool:
        """Ask canaries again; return whether one was answered. JudgeChanged if they differ."""
        chosen = self._in_turn(count)
        found = await self._asked_again(chosen)
        if self._size(found) > SUSPICIOUS * self.allowed:
            others = [canary for canary in self.kept if canary not in chosen]
            found += await self._asked_again(others)
            if await self._differ(found):
                raise self._changed(found)
        if found:
            self._passed(found)
        return bool(found)

    async def _differ(self, found: list[Repetition]) -> bool:
        """Return whether the answers differ by more than the judge's repeatability allows."""
        same = sum(one.difference <= EXACT for one in found)
        some_moved = not self.step and len(found) >= FEWEST and same >= len(found) / 2
        if self._size(found) > self.allowed:
            again = [(one, await self._ask_again(one.canary)) for one in found]
            moved = [distance(one.now, now) for one, now in again if now is not None]
            if max(moved, default=0.0) > EXACT:
                # Earlier repetitions were luck if these, right after one another, differ more.
                self._varies = True
                self._distances = max(moved, self._distances[:MOST_CANARIES], key=_mean_size)
            elif some_moved:
                self._varies = True
        return self._size(found) > max(self.allowed, FLOOR_IF_SOME if some_moved else 0.0)

    def _passed(self, found: list[Repetition]) -> None:
        sizes = self._sizes(found)
        self._distances += sizes
        self._differences += sizes
        largest = max(self.facts.largest_difference or 0.0, self._largest)
        self.facts = replace(
            self.facts, checks=self.facts.checks + 1, largest_difference=round(largest, 4)
        )

    def _in_turn(self, count: int) -> list[Canary]:
        """Return the canaries to ask next, those with a first repetition before the others."""
        known = self.repeats.p_yes
        places = range(self._next, self._next + len(self.kept))
        ordered = [self.kept[place % len(self.kept)] for place in places]
        ordered.sort(key=lambda canary: canary.task.key not in known)
        self._next += count
        return ordered[:count]

    async def _asked_again(self, canaries: Iterable[Canary]) -> list[Repetition]:
        """Ask canaries again, and compare each with its first repetition if it has one."""
        found = []
        for canary in canaries:
            now = await self._ask_again(canary)
            first = self.repeats.p_yes.get(canary.task.key)
            if now is None:
                continue
            before = canary.answer if first is None else replace(canary.answer, p_yes=first)
            difference = distance(before, now)
            self._largest = max(self._largest, difference)
            found.append(Repetition(canary, now, difference, first is None))
        return found

    def _sizes(self, found: list[Repetition]) -> list[float]:
        """Return how much answers differ, in terms of later repetitions."""
        return [one.difference / (self.first if one.first else 1.0) for one in found]

    def _size(self, found: list[Repetition]) -> float:
        """Return the root-mean-square difference of answers."""
        return _mean_size(self._sizes(found))

    async def _ask_again(self, canary: Canary) -> Answer | None:
        """Return the judge's answer now; None if it failed."""
        graded = await self.ask(canary.task, {})
        self.facts = replace(
            self.facts, items=self.facts.items + 1, usage=self.facts.usage + graded.usage
        )
        answer = graded.answers[0]
        return None if graded.failure is not None or answer.status in NO_ANSWER else answer

    async def _repeat_first(self) -> None:
        """Ask the next canary for the first time again, for later ones to be compared with."""
        tried = self._tried | self.repeats.p_yes.keys()
        canary = next((one for one in self.kept if one.task.key not in tried), None)
        if canary is None:
            return
        self._unrepeated = 0.0
        self._tried.add(canary.task.key)
        now = await self._ask_again(canary)
        if now is None or now.p_yes is None:
            return
        difference = distance(canary.answer, now)
        if difference <= self.first * self.allowed:
            self._differences.append(difference)
            self.repeats.add(canary.task.key, now.p_yes)
        else:
            self.kept.remove(canary)
            self._owed = True

    def _see_fingerprints(self) -> None:
        """Owe a check if the replies name a new fingerprint, also while a check is under way."""
        seen = fingerprints_of(self.engine)
        if len(seen) > len(self.facts.fingerprints) > 0:
            self._owed = True
        model = model_of(self.engine) if seen else ""
        if seen and (seen, model) != (self.facts.fingerprints, self.facts.model):
            self.facts = replace(self.facts, fingerprints=seen, model=model)

    def _changed(self, found: list[Repetition]) -> JudgeChanged:
        size, allowed = self._size(found), self.allowed
        digits = 2 if f"{size:.2f}" != f"{allowed:.2f}" else 3
        return JudgeChanged(
            f"The judge answers differently than before: {len(found)} items asked again differ by "
            f"{size:.{digits}f} in log-odds; its own repeatability allows "
            f"{allowed:.{digits}f}. Its weights, precision or settings were changed.",
            hint="Serve the first model again and run the same command, or give the run another "
            "`name`. If the server is known to vary this much, `judge.canaries: 0` switches the "
            "check off.",
        )


def canary_of(task: GradingTask, answers: tuple[Answer, ...]) -> Canary | None:
    """Return the item of a task whose answer shows a change best: the least certain one."""
    usable = [
        (abs(answer.p_yes - 0.5), place)
        for place, answer in enumerate(answers)
        if answer.p_yes is not None and place not in task.checks and applies(answer)
    ]
    if not usable or len(answers) != len(task.suffixes):
        return None
    _, place = min(usable)
    return Canary(single_item(task, place), answers[place])


def single_item(task: GradingTask, place: int) -> GradingTask:
    """Return the task with one item alone, asked without the server's prefix cache."""
    labels = None if task.labels is None else (task.labels[place],)
    suffixes = (task.suffixes[place],)
    return replace(task, suffixes=suffixes, items=1, labels=labels, checks={}, cold=True)


def applies(answer: Answer) -> bool:
    """Return whether the item more likely applies; otherwise its value is mostly noise."""
    return answer.p_na is None or answer.p_na < 0.5


def finished_canaries(
    store: RunStore,
    prompt: Prompt,
    judge: bytes,
    finished: Collection[bytes],
    repeated: Collection[bytes] = (),
) -> Iterator[Canary]:
    """Yield a few finished judgments of a run as canaries, spread over the run.

    Those that were `repeated` before are preferred.
    """
    if not finished:
        return
    wanted = [cell.key for cell in cells(store.inputs, judge) if cell.key in finished]
    known = [key for key in wanted if key in repeated]
    spread = wanted[:: max(1, len(wanted) // MOST_CANARIES)]
    chosen = set(list(dict.fromkeys([*known, *spread]))[:MOST_CANARIES])
    judged = store.judgments_of(key.hex() for key in chosen if key)

    def other(key: bytes) -> bool:
        return key not in chosen

    for task in unfinished_tasks(store.inputs, prompt, judge, other):
        canary = canary_of(task, judged[task.key.hex()].answers)
        if canary is not None:
            yield canary


def distance(before: Answer, now: Answer) -> float:
    """Return the difference of two answers in log-odds; large if nothing is known of one.

    An answer without a probability may have bounds and a mass: small differences around a limit
    of the readout are small here, too.

    >>> distance(Answer(Status.OK, 0.5), Answer(Status.OK, 0.5))
    0.0
    >>> round(distance(Answer(Status.OK, 0.5), Answer(Status.OK, 0.25)), 2)
    1.1
    >>> low_mass = Answer(Status.LOW_MASS, None, 0.5, 0.5, mass=0.09)
    >>> round(distance(Answer(Status.OK, 0.5, 0.5, 0.5, mass=0.1), low_mass), 2)
    0.11
    """
    if before.p_yes is not None and now.p_yes is not None:
        return abs(_log_odds(before.p_yes) - _log_odds(now.p_yes))
    if before.status == now.status:
        return 0.0
    one, two = _range(before), _range(now)
    if one is None or two is None:
        return NEVER
    gap = max(0.0, one[0] - two[1], two[0] - one[1])
    if Status.LOW_MASS not in (before.status, now.status):
        return gap
    if not before.mass or not now.mass:
        return NEVER
    return max(gap, min(NEVER, abs(math.log(before.mass / now.mass))))


def _range(answer: Answer) -> tuple[float, float] | None:
    """Return the log-odds that an answer may have; None if nothing is known of them."""
    low = answer.p_yes if answer.p_yes is not None else answer.p_low
    high = answer.p_yes if answer.p_yes is not None else answer.p_high
    return None if low is None or high is None else (_log_odds(low), _log_odds(high))


def _mean_size(differences: list[float]) -> float:
    """Return the root mean square."""
    return math.hypot(*differences) / math.sqrt(max(1, len(differences)))


def _log_odds(p: float) -> float:
    if p <= 0.0 or p >= 1.0:
        return math.copysign(NEVER, p - 0.5)
    return max(-NEVER, min(NEVER, math.log(p) - math.log1p(-p)))


def noise_of(judge: JudgeFingerprint) -> tuple[float, float]:
    """Return the step and noise that were measured when the judge was identified."""
    if not judge.measured:
        return 0.0, 0.0
    measured = Measured.parse(judge.measured)
    return measured.step, measured.noise


def allowed_difference(judge: JudgeFingerprint) -> float:
    """Return the difference in log-odds that a judge's measured repeatability allows.

    The first repetition of an answer may differ by `FIRST` times as much.
    """
    return _floor(*noise_of(judge))


def _floor(step: float, noise: float, least: float = FLOOR) -> float:
    return max(least, COARSE_STEPS * step, REPEATED * noise)


def model_of(engine: object) -> str:
    """Return the model name in an engine's replies; empty if it has none."""
    watch = getattr(engine, "watch", None)
    return "" if watch is None else str(watch.model)


def fingerprints_of(engine: object) -> tuple[str, ...]:
    """Return the system fingerprints in an engine's replies, in order of appearance."""
    watch = getattr(engine, "watch", None)
    return () if watch is None else tuple(watch.fingerprints)


def resume_watch(engine: object, facts: ContinuityFacts | None) -> None:
    """Compare an engine's replies with those of an earlier process; JudgeChanged if another."""
    watch = getattr(engine, "watch", None)
    if watch is not None and facts is not None:
        watch.resume(facts.model, facts.fingerprints)


def can_repeat(engine: Engine) -> bool:
    """Return whether single items can be asked again at once, over a connection.

    Counted samples differ each time, so they cannot show that the judge changed.
    """
    repeats = bool(getattr(engine, "repeatable", True))
    return hasattr(engine, "watch") and not engine.durable and repeats
