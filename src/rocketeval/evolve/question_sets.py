"""Question sets: what is asked about what, and how its answers are read.

Perspectives of one kind and form share a prompt and a set of labels, and so a judge; each such
question set is graded like a run of its own, with the perspectives as the checklist of every query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rocketeval.evolve.perspective import AnswerFormat, Perspective, PerspectiveKind
from rocketeval.grading.ask import Method
from rocketeval.grading.methods import LIKERT, YES_NO
from rocketeval.prompts.render import GradingPrompt, Template
from rocketeval.prompts.variants import PairPrompt, QueryPrompt

Asking = Literal["pairs", "each"]
PAIR_CHOICE = ("A", "B")
PAIR_GRADES = tuple("987654321")
"""From A by far to B by far. A minus sign is a token of its own, so that the first token of a
signed grade would tell its sign alone: digits from 1 to 9 stand for -4 to 4."""


@dataclass(frozen=True)
class QuestionSet:
    """One way to ask."""

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
