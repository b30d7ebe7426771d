"""Everything that a run lacks, counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rocketeval.benchmarks.load import absent_responses
from rocketeval.cli.progress_text import MISSING
from rocketeval.cli.text import printable
from rocketeval.records import Status
from rocketeval.text import count_of

MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Missing:
    """What is not there, and what only looks as if it were."""

    queries_without_checklist: int
    responses_not_judged: int
    """Another run tries them again."""
    responses_without_score: int
    """Those above included."""
    answers_missing: int
    responses_empty: int
    """Responses without a word in them: judged, but worth knowing."""
    responses_absent: int
    """Candidates' missing responses to queries that others answered."""

    @property
    def gaps(self) -> int:
        """How much is missing that should be there."""
        return (
            self.queries_without_checklist
            + self.responses_not_judged
            + self.responses_without_score
            + self.answers_missing
        )


def find_missing(stages: Mapping[str, Any]) -> Missing:
    """Return what the stages of a run say is missing."""
    load, grade, score = (stages.get(name, {}) for name in ("load", "grade", "score"))
    return Missing(
        queries_without_checklist=len(stages.get("checklist", {}).get("failures", ())),
        responses_not_judged=_unjudged(grade),
        responses_without_score=score.get("without_score", 0),
        answers_missing=score.get("missing_answers", 0),
        responses_empty=load.get("empty_responses", 0),
        responses_absent=absent_responses(load),
    )


def missing_in_words(missing: Missing, stages: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line about everything that is missing."""
    if missing.queries_without_checklist:
        lacking = list(stages["checklist"]["failures"])
        names = ", ".join(map(printable, lacking[:MOST_NAMED]))
        more = ", ..." * (len(lacking) > MOST_NAMED)
        some = count_of(len(lacking), "query has", "queries have")
        waiting = stages.get("grade", {}).get("responses_without_checklist", 0)
        so = f": {count_of(waiting, 'response is', 'responses are')} not judged" if waiting else ""
        yield f"{some} no checklist ({names}{more}){so}"
    if missing.responses_not_judged:
        some = count_of(missing.responses_not_judged, "response", "responses")
        yield f"{some} could not be judged; run it again to retry"
    grade = stages.get("grade", {})
    told = missing.responses_not_judged + grade.get("responses_without_checklist", 0)
    unscored = missing.responses_without_score - told
    if unscored > 0:
        yield f"{count_of(unscored, 'judged response has', 'judged responses have')} no score"
    if missing.answers_missing:
        some = count_of(missing.answers_missing, "answer is", "answers are")
        yield f"{some} missing{_why(stages.get('score', {}).get('statuses', {}))}"
    if missing.responses_empty:
        yield f"{count_of(missing.responses_empty, 'response is', 'responses are')} empty"
    if missing.responses_absent:
        yield f"{count_of(missing.responses_absent, 'response is', 'responses are')} absent"
    yield from unknown_in_words(stages.get("checklist", {}))


def unknown_in_words(checklist: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line about ids in a checklist file that no query has, if there are any."""
    unknown = checklist.get("unknown") or {}
    if unknown:
        # Runs of earlier versions name all of them and count none.
        count = checklist.get("unknown_count", len(unknown))
        named = ", ".join(_meant(*pair) for pair in list(unknown.items())[:MOST_NAMED])
        if count > MOST_NAMED:
            named += f" and {count - MOST_NAMED:,} more"
        some = count_of(count, "id", "ids")
        are = "is no query" if count == 1 else "are no queries"
        yield printable(f"{some} in the checklist file {are} and passed over: {named}")


def _meant(name: str, nearest: str | None) -> str:
    return repr(name) if nearest is None else f"{name!r} (did you mean {nearest!r}?)"


def _unjudged(grade: Mapping[str, Any]) -> int:
    # Runs that were graded by earlier versions counted equal responses once.
    found: int = grade.get("responses_unfinished", grade.get("unfinished", 0))
    return found


def _why(statuses: Mapping[str, int]) -> str:
    whys = [
        f"{count:,} {why}" for status, why in MISSING.items() if (count := _count(statuses, status))
    ]
    return f": {', '.join(whys)}" if whys else ""


def _count(statuses: Mapping[str, int], status: Status) -> int:
    return statuses.get(status.value, 0)
