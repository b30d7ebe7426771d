"""Perspectives: questions a judge answers about a response or a query, and how they are asked."""

from __future__ import annotations

import re
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
    """What a perspective is about."""

    RESPONSE = "response"
    """Response-dependent: it is answered of a response, or of two side by side; yes is better."""
    QUERY = "query"
    """Response-independent: it says what sort of query this is, and so which expert judges it."""


class AnswerFormat(StrEnum):
    """How finely a judge answers."""

    CHOICE = "choice"
    """Yes or no; of two responses, A or B."""
    GRADED = "graded"
    """A grade: 1 to 5 for a response, -4 to 4 for a pair; the mean over its probabilities."""


class PerspectiveOrigin(StrEnum):
    """Where a perspective came from."""

    RULE = "rule"
    """Annotation guidelines, taken apart."""
    PRESET = "preset"
    """Written by hand for a type of instruction."""
    TRANSFER = "transfer"
    """The aim of a prompt that other evaluators use."""
    FAILURES = "failures"
    """Semantic back-propagation: the optimizer looked at what was judged wrongly."""
    DEPTH = "depth"
    """Another wording of one that is there."""
    BREADTH = "breadth"
    """Something that none of those there asks about."""
    MIX = "mix"
    """Explored from a perspective that was itself explored."""
    ROUTING = "routing"
    """A question about the query, derived from one about the response."""
    PERSON = "person"
    """Somebody added it between two rounds."""


EXPLORED = frozenset({PerspectiveOrigin.DEPTH, PerspectiveOrigin.BREADTH, PerspectiveOrigin.MIX})
"""What in-depth and in-breadth exploration bring."""


@dataclass(frozen=True)
class Perspective:
    """One question of the pool.

    >>> Perspective("Does the response answer what was asked?").id
    'ba41b3a21812'
    """

    text: str
    """A yes/no question; about a response, yes is the better answer."""
    kind: PerspectiveKind = PerspectiveKind.RESPONSE
    origin: PerspectiveOrigin = PerspectiveOrigin.PERSON
    form: AnswerFormat = AnswerFormat.CHOICE
    """How it is answered; a question about a query is always a choice."""
    parents: tuple[str, ...] = ()
    """Ids of the perspectives it was made from."""
    round: int = 0
    """The round that brought it; 0 for what is there at the beginning."""
    types: tuple[str, ...] = ()
    """Types of instruction it was written for; empty for any."""
    importance: float | None = None
    """Its share in the surrogate's decisions, as a mean over folds; None before the first fit."""
    stability: float | None = None
    """In which share of the folds it was among those worth keeping."""

    @cached_property
    def id(self) -> str:
        """A short name that its content fixes."""
        return content_hash("perspective", self.kind, self.form, self.text).hex()[:12]


class Pool:
    """Perspectives in the order they came, no two with the same words.

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
        """Return those about responses, or those about queries."""
        return tuple(each for each in self if each.kind is kind)

    def add(self, news: Iterable[Perspective]) -> tuple[Pool, tuple[Perspective, ...]]:
        """Return the pool with what is new, and what only repeats words that are there."""
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
        """Return the pool with importance and stability by id; None where none is given."""
        return Pool(
            replace(each, importance=standing[0], stability=standing[1])
            for each in self
            for standing in (standings.get(each.id, (None, None)),)
        )


def _words(perspective: Perspective) -> tuple[PerspectiveKind, AnswerFormat, tuple[str, ...]]:
    """What two perspectives share that ask the same: case and punctuation do not count."""
    plain = "".join(char if char.isalnum() else " " for char in perspective.text.casefold())
    return perspective.kind, perspective.form, tuple(plain.split())


Answers = Literal["choice", "graded", "both"]
_FORMS: dict[Answers, tuple[AnswerFormat, ...]] = {
    "choice": (AnswerFormat.CHOICE,),
    "graded": (AnswerFormat.GRADED,),
    "both": (AnswerFormat.CHOICE, AnswerFormat.GRADED),
}


def formats_of(answers: Answers) -> tuple[AnswerFormat, ...]:
    """Return the forms that a setting stands for, the first one first."""
    return _FORMS[answers]


def with_formats(perspectives: Iterable[Perspective], answers: Answers) -> tuple[Perspective, ...]:
    """Return the perspectives in the wanted forms; what is there in one of them stays as it is.

    With `both`, the choice comes first and is the parent of the graded one. A question about a
    query is always a choice.

    >>> [each.form.value for each in with_formats([Perspective("Is it kind?")], "both")]
    ['choice', 'graded']
    """
    return in_formats(perspectives, formats_of(answers))


def in_formats(
    perspectives: Iterable[Perspective], forms: tuple[AnswerFormat, ...]
) -> tuple[Perspective, ...]:
    """Return the perspectives in these forms, each once."""
    listed = list(perspectives)
    # Of two the same the first stays: it was there before.
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
    """Return a perspective in a form; what was learned of it in another does not hold."""
    if perspective.form is form:
        return perspective
    return replace(perspective, form=form, importance=None, stability=None)


LONGEST_TEXT = 500
"""Characters of one perspective."""


def one_line(text: str) -> str:
    """Return a text on one line, with single blanks.

    >>> one_line(" Is it\\n  kind? ")
    'Is it kind?'
    """
    return " ".join(text.split())


def check_question(text: str) -> str:
    """Return the text of a perspective, on one line; ValueError says what is wrong with it."""
    if not text.strip():
        raise ValueError("this is empty: write a yes/no question.")
    if len(text) > LONGEST_TEXT:
        raise ValueError(
            f"this has {len(text)} characters; {LONGEST_TEXT} are allowed. Ask one short question."
        )
    if has_unseen_marks(text):
        raise ValueError(
            "this holds a control character, or another that nobody sees, such as a blank without "
            "width: delete it."
        )
    return text


_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Scripts that do not part words, so that a whole sentence would count as one."""


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """The perspective that a proposal repeats."""

    of: Perspective
    exact: bool
    """Whether the words are the same, case and punctuation aside; else almost the same."""


@dataclass(frozen=True, slots=True)
class _KnownQuestion:
    """What is asked in one or in both forms."""

    first: Perspective
    words: frozenset[str]
    ids: set[str] = field(default_factory=set)


class KnownQuestions:
    """What is asked already: tells whether a proposal repeats it, in whatever form.

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
        """Count a perspective among those that are asked."""
        asked = _KnownQuestion(perspective, _folded(perspective.text))
        self._questions.setdefault(_key(perspective), asked).ids.add(perspective.id)

    def duplicate_of(self, proposal: Perspective) -> NearDuplicate | None:
        """Return the first that asks the same in the same, else in almost the same words.

        A rewording may come near the perspective that it rewords, as long as it is not the same.
        """
        same = self._questions.get(_key(proposal))
        if same is not None:
            return NearDuplicate(same.first, exact=True)
        words = _folded(proposal.text)
        for (kind, _), asked in self._questions.items():
            may_be = kind is proposal.kind and asked.ids.isdisjoint(proposal.parents)
            if may_be and same_words(words, asked.words):
                return NearDuplicate(asked.first, exact=False)
        return None


def _key(perspective: Perspective) -> tuple[PerspectiveKind, tuple[str, ...]]:
    return perspective.kind, tuple(written_words(perspective.text))


def _folded(text: str) -> frozenset[str]:
    """Return the words to compare; none where a script does not part them."""
    return frozenset() if _WITHOUT_SPACES.search(text) else folded_words(written_words(text))


Asking = Literal["pairs", "each"]
PAIR_CHOICE = ("A", "B")
PAIR_GRADES = tuple("987654321")
"""From A by far to B by far. A minus sign is a token of its own, so that the first token of a
signed grade would tell its sign alone: digits from 1 to 9 stand for -4 to 4."""


@dataclass(frozen=True)
class QuestionSet:
    """One way to ask: perspectives of one kind and form share a prompt, labels and a judge.

    It is graded like a run of its own, with the perspectives as the checklist of every query.
    """

    name: str
    """The folder of its judgments."""
    prompt: type[GradingPrompt]
    template: str
    labels: tuple[str, ...]
    """Words the judge answers with, best first."""
    signed: bool = False
    """Whether its answers go from -1 (for b) to 1 (for a)."""

    def method(self) -> Method:
        """Return how the judge is asked."""
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
    """Return the question set that a perspective is asked on."""
    if perspective.kind is PerspectiveKind.QUERY:
        return QUERIES
    return QUESTION_SETS[perspective.kind, perspective.form, asking]
