"""The pool of a run as a file that people may add to at any time, also while a command runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from rocketeval.evolve.forms import Answers, with_forms
from rocketeval.evolve.perspective import Origin, Perspective, Pool
from rocketeval.evolve.pool_file import read_pool, write_pool
from rocketeval.stages.evolve.history import History


@dataclass(frozen=True)
class Found:
    """What stands in the file."""

    pool: Pool
    elsewhere: int
    """Entries of a round that this run has not done: somebody brought them from elsewhere."""


class SharedPool:
    """Reads and writes the file without losing what people put into it."""

    def __init__(self, path: Path, answers: Answers, history: History) -> None:
        self.path = path
        self._answers = answers
        self._history = history

    def read(self, rounds: int) -> Found:
        """Return the pool after so many finished rounds, with all that people added.

        What a round of this run proposed that was not finished is left out: its journal brings
        it again.
        """
        proposed = self._history.proposed()
        there: list[Perspective] = []
        elsewhere = 0
        for each in read_pool(self.path):
            if each.round <= rounds:
                there.append(each)
            elif each.id not in proposed or each.origin is Origin.PERSON:
                there.append(_by_a_person(each))
                elsewhere += 1
        return Found(Pool(with_forms(there, self._answers)), elsewhere)

    def write(self, pool: Pool, rounds: int) -> tuple[Perspective, ...]:
        """Write a pool and behind it what people added meanwhile, which is returned.

        ConfigError, and the file stays as it is, if it cannot be read.
        """
        added: tuple[Perspective, ...] = ()
        if self.path.exists():
            grown, _ = pool.add(self.read(rounds).pool)
            added = tuple(map(_by_a_person, _beyond(pool, grown)))
        write_pool(Pool([*pool, *added]), self.path)
        return added


def _beyond(pool: Pool, grown: Pool) -> Iterable[Perspective]:
    known = {each.id for each in pool}
    return (each for each in grown if each.id not in known)


def _by_a_person(each: Perspective) -> Perspective:
    """Return it as new: what it was worth elsewhere does not hold here."""
    return replace(each, origin=Origin.PERSON, round=0, importance=None, stability=None)
