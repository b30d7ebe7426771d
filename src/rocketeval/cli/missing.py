"""Counts of everything that is missing from a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketeval.cli.text import printable
from rocketeval.text import count_of

if TYPE_CHECKING:
    from rocketeval.records import Status
    from rocketeval.store.manifest import ChecklistFacts, GradeFacts, Stages


MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Missing:
    """Counts of missing, empty and absent data of a run."""

    queries_without_checklist: int
    responses_not_judged: int
    """Running again retries them."""
    responses_without_score: int
    """Includes the responses that were not judged."""
    answers_missing: int
    responses_empty: int
    """Responses without text; they are judged."""
    responses_absent: int
    """Responses that a candidate lacks to queries that others answered."""

    @property
    def gaps(self) -> int:
        """The total of missing checklists, judgments, scores and answers."""
        return (
            self.queries_without_checklist
            + self.responses_not_judged
            + self.responses_without_score
            + self.answers_missing
        )


def find_missing(stages: Stages) -> Missing:
    """Return the counts of missing data from the stages of a run."""
    return Missing(
        queries_without_checklist=len(stages.checklist.failures),
        responses_not_judged=_unjudged(stages.grade),
        responses_without_score=stages.score.without_score,
        answers_missing=stages.score.missing_answers,
        responses_empty=stages.load.empty_responses,
        responses_absent=stages.load.absent_responses,
    )


def missing_in_words(missing: Missing, stages: Stages) -> Iterator[str]:
    """Yield one line per kind of missing data."""
    waiting = stages.grade.responses_without_checklist
    if missing.queries_without_checklist:
        lacking = list(stages.checklist.failures)
        names = ", ".join(map(printable, lacking[:MOST_NAMED]))
        more = ", ..." * (len(lacking) > MOST_NAMED)
        some = count_of(len(lacking), "query has", "queries have")
        so = f": {count_of(waiting, 'response is', 'responses are')} not judged" if waiting else ""
        yield f"{some} no checklist ({names}{more}){so}"
    rejected = min(missing.responses_not_judged, stages.grade.rejected)
    if rejected:
        some = count_of(rejected, "response was", "responses were")
        named = "; ".join(map(printable, stages.grade.rejected_named))
        more = "; ..." * (rejected > len(stages.grade.rejected_named))
        yield f"{some} rejected by the judge's server: {named}{more}"
        yield (
            "a retry will not help: serve the judge with a larger context, or shorten or remove "
            "these responses"
        )
    if missing.responses_not_judged > rejected:
        some = count_of(missing.responses_not_judged - rejected, "response", "responses")
        yield f"{some} could not be judged; run it again to retry"
    unscored = missing.responses_without_score - missing.responses_not_judged - waiting
    if unscored > 0:
        yield f"{count_of(unscored, 'judged response has', 'judged responses have')} no score"
    if missing.answers_missing:
        some = (
            f"{missing.answers_missing:,} of {count_of(stages.score.answers, 'answer', 'answers')}"
        )
        yield f"{some} missing{_why(stages.score.statuses)}"
    if missing.responses_empty:
        yield f"{count_of(missing.responses_empty, 'response is', 'responses are')} empty"
    if missing.responses_absent:
        yield f"{count_of(missing.responses_absent, 'response is', 'responses are')} absent"
    yield from unknown_in_words(stages.checklist)


def notes_of(stages: Stages) -> Iterator[str]:
    """Yield one line per oddity that was accepted."""
    yield from map(printable, (*stages.load.notes, *stages.checklist.notes))


def unknown_in_words(checklist: ChecklistFacts) -> Iterator[str]:
    """Yield a line about ids in a checklist file that match no query, if any."""
    unknown = checklist.unknown
    if unknown:
        # Earlier versions stored all names and no count.
        count = len(unknown) if checklist.unknown_count is None else checklist.unknown_count
        named = ", ".join(_meant(*pair) for pair in list(unknown.items())[:MOST_NAMED])
        if count > MOST_NAMED:
            named += f" and {count - MOST_NAMED:,} more"
        some = count_of(count, "id", "ids")
        match = "matches" if count == 1 else "match"
        yield printable(f"{some} in the checklists {match} no query, ignored: {named}")


def _meant(name: str, nearest: str | None) -> str:
    return repr(name) if nearest is None else f"{name!r} (did you mean {nearest!r}?)"


def _unjudged(grade: GradeFacts) -> int:
    # Earlier versions counted identical responses once.
    found = grade.responses_unfinished
    return grade.unfinished if found is None else found


def _why(statuses: Mapping[str, int]) -> str:
    from rocketeval.cli.progress_text import MISSING

    whys = [
        f"{count:,} {why}" for status, why in MISSING.items() if (count := _count(statuses, status))
    ]
    return f": {', '.join(whys)}" if whys else ""


def _count(statuses: Mapping[str, int], status: Status) -> int:
    return statuses.get(status.value, 0)
