"""`evolve.max_calls`: questions to the judge and requests to the optimizer, over all commands."""

from __future__ import annotations

from collections.abc import Collection

from rocketeval.config import EvolveConfig
from rocketeval.errors import ConfigError
from rocketeval.evolve.perspective import Perspective, Pool
from rocketeval.stages.evolve.questions import most_questions, questions
from rocketeval.stages.evolve.spending import Spending
from rocketeval.stages.evolve.split import Split


class CallLimit:
    """Compares what comes next with what the limit leaves; without a limit all may come."""

    def __init__(self, settings: EvolveConfig, split: Split, spending: Spending) -> None:
        self._settings = settings
        self._split = split
        self._spending = spending

    def check_pool(self, pool: Pool, requests: int = 0) -> None:
        """Raise ConfigError if a pool takes more than the limit, rounds aside.

        `requests` to the optimizer belong to it, those made already included. A pool that was
        asked about in full before passes: nothing is paid for it again.
        """
        limit = self._settings.max_calls
        if limit is None or all(each.importance is not None for each in pool):
            return
        asked = questions(pool, self._split.seen, self._settings.asking) + self._end(pool)
        needed = asked + max(requests, self._spending.total("optimizer").requests)
        if needed > limit:
            raise ConfigError(
                f"`evolve.max_calls` allows {limit:,} questions and requests; the "
                f"{len(pool):,} perspectives of the pool alone take up to {needed:,}, without any "
                "round.",
                hint=f"Set `evolve.max_calls` to {needed:,} at least, and to more for rounds; or "
                "begin with fewer perspectives, or fewer queries (`limit`).",
            )

    def over(
        self, name: str, news: Collection[Perspective], pool: Pool, requests: int = 0
    ) -> str | None:
        """Return why a round with these news does not fit, in words; None if it does.

        What the end can take has to fit beside it.
        """
        limit = self._settings.max_calls
        asked = questions(news, self._split.seen, self._settings.asking) + self._end(pool)
        needed, so_far = asked + requests, self._spending.calls
        if limit is None or so_far + needed <= limit:
            return None
        return (
            f"{name} and the end would take up to {needed:,} questions and requests after the "
            f"{so_far:,} so far, which is more than the {limit:,} that `evolve.max_calls` allows"
        )

    def _end(self, pool: Pool) -> int:
        """Return the most questions that the held-out cases can take."""
        return most_questions(pool, self._split.held_out, self._settings)
