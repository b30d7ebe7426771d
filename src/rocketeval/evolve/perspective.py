"""Perspectives: questions about a response or a query, and the question sets they form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Literal

from rocketeval.grading.ask import Method
from rocketeval.grading.methods import LIKERT, YES_NO
from rocketeval.hashing import content_hash
from rocketeval.prompts.parse import has_unseen_marks
from rocketeval.prompts.render import GradingPrompt, Template
from rocketeval.prompts.similar import folded_words, same_words, written_words
from rocketeval.prompts.variants import PairPrompt, QueryPrompt


class PerspectiveKind(StrEnum):
    """The subject of a perspective."""

    RESPONSE = "response"
    """Response-dependent: about one response, or about two side by side; yes is better."""
    QUERY = "query"
    """Response-independent: describes the query, and so decides which expert judges it."""


class AnswerFormat(StrEnum):
    """The answer format of a perspective."""

    CHOICE = "choice"
    """Yes or no; for two responses, A or B."""
    GRADED = "graded"
    """A grade, 1 to 5 for a response or -4 to 4 for a pair: the mean over the probabilities."""


class PerspectiveOrigin(StrEnum):
    """The origin of a perspective."""

    RULE = "rule"
    """Extracted from annotation guidelines."""
    PRESET = "preset"
    """Written by hand for an instruction type."""
    TRANSFER = "transfer"
    """Taken from the prompt of another evaluator."""
    FAILURES = "failures"
    """Semantic back-propagation: proposed by the optimizer from wrongly judged cases."""
    DEPTH = "depth"
    """A rewording of an existing perspective."""
    BREADTH = "breadth"
    """An aspect that no existing perspective covers."""
    MIX = "mix"
    """Derived from a perspective of in-depth or in-breadth exploration."""
    ROUTING = "routing"
    """A question about queries, derived from one about responses."""
    PERSON = "person"
    """Added by a person."""


EXPLORED = frozenset({PerspectiveOrigin.DEPTH, PerspectiveOrigin.BREADTH, PerspectiveOrigin.MIX})
"""Origins of in-depth and in-breadth exploration."""
PROPOSED = EXPLORED | {PerspectiveOrigin.FAILURES, PerspectiveOrigin.ROUTING}
"""Origins of the proposals of a round."""


@dataclass(frozen=True)
class Perspective:
    """One question of a pool.

    >>> Perspective("Does the response answer what was asked?").id
    'ba41b3a21812'
    """

    text: str
    """A yes/no question; for a response, yes is the better answer."""
    kind: PerspectiveKind = PerspectiveKind.RESPONSE
    origin: PerspectiveOrigin = PerspectiveOrigin.PERSON
    form: AnswerFormat = AnswerFormat.CHOICE
    """The answer format; a question about a query is always a choice."""
    parents: tuple[str, ...] = ()
    """Ids of the perspectives it was made from."""
    round: int = 0
    """The round that proposed it; 0 for the initial pool."""
    types: tuple[str, ...] = ()
    """Instruction types it was written for; empty for any."""
    importance: float | None = None
    """Its mean importance in the surrogate model over folds; None before the first fit."""
    stability: float | None = None
    """Share of the folds that selected it."""

    @cached_property
    def id(self) -> str:
        """Return a short id computed from the content."""
        return content_hash("perspective", self.kind, self.form, self.text).hex()[:12]


class Pool:
    """Perspectives in order of arrival, without duplicates.

    >>> pool = Pool([Perspective("Is it kind?")])
    >>> news = [Perspective("is it kind"), Perspective("Is it short?")]
    >>> more, repeated = pool.add(news)
    >>> [each.text for each in more], [each.text for each in repeated]
    (['Is it kind?', 'Is it short?'], ['is it kind'])
    """

    def __init__(self, perspectives: Iterable[Perspective] = ()) -> None:
        self._by_id: dict[str, Perspective] = {each.id: each for each in perspectives}

    def __iter__(self) -> Iterator[Perspective]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __getitem__(self, perspective_id: str) -> Perspective:
        return self._by_id[perspective_id]

    def of(self, kind: PerspectiveKind) -> tuple[Perspective, ...]:
        """Return the perspectives of one kind."""
        return tuple(each for each in self if each.kind is kind)

    def add(self, news: Iterable[Perspective]) -> tuple[Pool, tuple[Perspective, ...]]:
        """Return the pool with the new perspectives, and the duplicates that were dropped."""
        taken = {_words(each) for each in self}
        grown, repeated = list(self), []
        for each in news:
            words = _words(each)
            if words in taken:
                repeated.append(each)
            else:
                taken.add(words)
                grown.append(each)
        return Pool(grown), tuple(repeated)

    def weigh(self, standings: Mapping[str, tuple[float, float]]) -> Pool:
        """Return the pool with importance and stability by id; None if not given."""
        return Pool(
            replace(each, importance=standing[0], stability=standing[1])
            for each in self
            for standing in (standings.get(each.id, (None, None)),)
        )


def _words(perspective: Perspective) -> tuple[PerspectiveKind, AnswerFormat, tuple[str, ...]]:
    """Return the key for duplicates: kind, format and words without case and punctuation."""
    plain = "".join(char if char.isalnum() else " " for char in perspective.text.casefold())
    return perspective.kind, perspective.form, tuple(plain.split())


Answers = Literal["choice", "graded", "both"]
_FORMS: dict[Answers, tuple[AnswerFormat, ...]] = {
    "choice": (AnswerFormat.CHOICE,),
    "graded": (AnswerFormat.GRADED,),
    "both": (AnswerFormat.CHOICE, AnswerFormat.GRADED),
}


def formats_of(answers: Answers) -> tuple[AnswerFormat, ...]:
    """Return the answer formats of a setting, in order."""
    return _FORMS[answers]


def with_formats(perspectives: Iterable[Perspective], answers: Answers) -> tuple[Perspective, ...]:
    """Return the perspectives in the configured answer formats; existing ones are unchanged.

    With `both`, the choice comes first and is the parent of the graded one. A question about a
    query is always a choice.

    >>> [each.form.value for each in with_formats([Perspective("Is it kind?")], "both")]
    ['choice', 'graded']
    """
    return in_formats(perspectives, formats_of(answers))


def in_formats(
    perspectives: Iterable[Perspective], forms: tuple[AnswerFormat, ...]
) -> tuple[Perspective, ...]:
    """Return the perspectives in these formats, without duplicates."""
    listed = list(perspectives)
    # Keep the first of two duplicates: it existed before.
    there = {each.id: each for each in reversed(listed)}
    made: dict[str, Perspective] = {}
    for each in listed:
        for formed in _formed(each, forms):
            made.setdefault(formed.id, there.get(formed.id, formed))
    return tuple(made.values())


def _formed(perspective: Perspective, forms: tuple[AnswerFormat, ...]) -> Iterator[Perspective]:
    if perspective.kind is PerspectiveKind.QUERY:
        yield _as(perspective, AnswerFormat.CHOICE)
        return
    first, *others = forms
    root = _as(perspective, first)
    yield root
    for form in others:
        yield replace(_as(perspective, form), parents=(root.id,))


def _as(perspective: Perspective, form: AnswerFormat) -> Perspective:
    """Return a perspective in another format, without the weights learned in the first."""
    if perspective.form is form:
        return perspective
    return replace(perspective, form=form, importance=None, stability=None)


LONGEST_TEXT = 500
"""Maximum characters of one perspective."""


def one_line(text: str) -> str:
    """Return a text on one line, with single spaces.

    >>> one_line(" Is it\\n  kind? ")
    'Is it kind?'
    """
    return " ".join(text.split())


def check_question(text: str) -> str:
    """Return a perspective's text on one line; raise ValueError if it is invalid."""
    if not text.strip():
        raise ValueError("this is empty: write a yes/no question.")
    if len(text) > LONGEST_TEXT:
        raise ValueError(
            f"this has {len(text)} characters; at most {LONGEST_TEXT} are allowed. Shorten it."
        )
    if has_unseen_marks(text):
        raise ValueError(
            "this contains a control character or another invisible one, such as a zero-width "
            "space: delete it."
        )
    return text


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """The existing perspective that a proposal repeats."""

    of: Perspective
    exact: bool
    """Whether the words are the same except for case and punctuation."""


@dataclass(frozen=True, slots=True)
class _KnownQuestion:
    """A question that exists in one or both answer formats."""

    first: Perspective
    words: frozenset[str]
    ids: set[str] = field(default_factory=set)


class KnownQuestions:
    """Index of the existing questions, to find near-duplicates in any answer format.

    >>> asked = KnownQuestions([Perspective("Is the tone polite?")])
    >>> found = asked.duplicate_of(Perspective("Is the tone of the response courteous?"))
    >>> found.of.text, found.exact
    ('Is the tone polite?', False)
    """

    def __init__(self, perspectives: Iterable[Perspective] = ()) -> None:
        self._questions: dict[tuple[PerspectiveKind, tuple[str, ...]], _KnownQuestion] = {}
        for each in perspectives:
            self.add(each)

    def add(self, perspective: Perspective) -> None:
        """Add a perspective to the index."""
        asked = _KnownQuestion(perspective, folded_words(written_words(perspective.text)))
        self._questions.setdefault(_key(perspective), asked).ids.add(perspective.id)

    def duplicate_of(self, proposal: Perspective) -> NearDuplicate | None:
        """Return the first exact duplicate, or else the first near-duplicate.

        A rewording may be a near-duplicate of the perspective it rewords, but not an exact one.
        """
        same = self._questions.get(_key(proposal))
        if same is not None:
            return NearDuplicate(same.first, exact=True)
        words = folded_words(written_words(proposal.text))
        for (kind, _), asked in self._questions.items():
            may_be = kind is proposal.kind and asked.ids.isdisjoint(proposal.parents)
            if may_be and same_words(words, asked.words):
                return NearDuplicate(asked.first, exact=False)
        return None


def _key(perspective: Perspective) -> tuple[PerspectiveKind, tuple[str, ...]]:
    return perspective.kind, tuple(written_words(perspective.text))


Asking = Literal["pairs", "each"]
PAIR_CHOICE = ("A", "B")
PAIR_GRADES = tuple("987654321")
"""Labels from "A is far better" to "B is far better". The digits 9 to 1 stand for 4 to -4: a minus
sign is a separate token, so the first token of a signed grade would only give its sign."""


@dataclass(frozen=True)
class QuestionSet:
    """Perspectives of one kind and format, which share a prompt, labels and a judge.

    It is graded as a separate run, with the perspectives as every query's checklist.
    """

    name: str
    """Name of the folder with its judgments."""
    prompt: type[GradingPrompt]
    template: str
    labels: tuple[str, ...]
    """The judge's answer labels, best first."""
    signed: bool = False
    """Whether answers range from -1 (b is better) to 1 (a is better)."""

    def method(self) -> Method:
        """Return the grading method."""
        return Method(self.name, self.prompt(Template.load(self.template)))


QUESTION_SETS: dict[tuple[PerspectiveKind, AnswerFormat, Asking], QuestionSet] = {
    (PerspectiveKind.RESPONSE, AnswerFormat.CHOICE, "each"): QuestionSet(
        "each-choice", GradingPrompt, "grade", YES_NO
    ),
    (PerspectiveKind.RESPONSE, AnswerFormat.GRADED, "each"): QuestionSet(
        "each-graded", GradingPrompt, "likert", LIKERT
    ),
    (PerspectiveKind.RESPONSE, AnswerFormat.CHOICE, "pairs"): QuestionSet(
        "pairs-choice", PairPrompt, "pair_choice", PAIR_CHOICE, signed=True
    ),
    (PerspectiveKind.RESPONSE, AnswerFormat.GRADED, "pairs"): QuestionSet(
        "pairs-graded", PairPrompt, "pair_graded", PAIR_GRADES, signed=True
    ),
}
QUERIES = QuestionSet("queries", QueryPrompt, "query", YES_NO)


def question_set_of(perspective: Perspective, asking: Asking) -> QuestionSet:
    """Return the question set of a perspective."""
    if perspective.kind is PerspectiveKind.QUERY:
        return QUERIES
    return QUESTION_SETS[perspective.kind, perspective.form, asking]
