"""Prompts about two responses side by side, and about a query without any response."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from rocketeval.errors import BenchmarkError
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Query, Response

QUERY_ALONE = "(the query)"
"""Stands for a candidate where no response is shown."""


class PairPrompt(GradingPrompt):
    """Shows the two responses that `pair_up` made one of."""

    shows = ("history", "query")
    own = ("first", "second")

    def own_values(self, query: Query, response: Response) -> Mapping[str, str]:
        """Return the texts of both responses."""
        first, second = orjson.loads(response.text)
        return {"first": first, "second": second}


class QueryPrompt(GradingPrompt):
    """Shows the query and no response; `query_alone` stands for one."""

    shows = ("history", "query")


def pair_up(first: Response, second: Response) -> Response:
    """Return two responses to a query as one that a judge is shown, with an identity of its own.

    >>> pair_up(Response("q", "x", "Hi."), Response("q", "y", "Ho.")).candidate
    '["x","y"]'
    """
    if first.history != second.history:
        raise BenchmarkError(
            f"{first.candidate!r} and {second.candidate!r} had different conversations before "
            f"query {first.query_id!r}, which cannot be shown side by side.",
            hint="Set `evolve.asking: each`, or leave later turns out of the benchmark.",
        )
    both = orjson.dumps([first.text, second.text]).decode()
    name = pair_name(first.candidate, second.candidate)
    return Response(first.query_id, name, both, first.history)


def pair_name(first: str, second: str) -> str:
    """Return what a pair of candidates is called: no other pair is called the same."""
    return orjson.dumps([first, second]).decode()


def query_alone(query: Query) -> Response:
    """Return what stands for a response where only the query is asked about."""
    return Response(query.id, QUERY_ALONE, "")
