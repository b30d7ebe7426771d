"""The hash of a method: unchanged for checklists, complete for the others."""

from __future__ import annotations

from rocketeval.grading.ask import Method, each_item_independently, sequentially, writes_score
from rocketeval.prompts.render import GradingPrompt, Template
from rocketeval.prompts.variants import ForcedPrompt, TranscriptPrompt

PAID_FOR = "eb04af136b989e996a73fd235b2e13c2"
"""The template hash of every checklist judgment made so far."""


def test_checklist_hash_is_unchanged() -> None:
    """Another hash would void all existing judgments."""
    assert GradingPrompt().hash == PAID_FOR
    assert Method("checklist", GradingPrompt()).hash == PAID_FOR
    assert Method("fixed", GradingPrompt(), each_item_independently, 1).hash == PAID_FOR


def test_ablation_hashes_are_unchanged() -> None:
    """Judgments of the ablations would be void as well."""
    sequential = Method("sequential", TranscriptPrompt(), sequentially)
    assert sequential.hash == "e8adcd2067d1db5855679280c90716bd"
    assert Method("all_yes", ForcedPrompt("Yes")).hash == "67a74eb3e9b8ae9ec8abf490c77256bd"
    assert Method("all_no", ForcedPrompt("No")).hash == "2d0aaa067d6b9d3506d7f9e613e2d292"


def test_hash_covers_everything_that_decides_an_answer() -> None:
    """Name, token limit, prompt, and the rules that read the text."""
    asking, prompt = writes_score(9), GradingPrompt(Template.load("cot"))
    plain = Method("cot", prompt, asking, 9, "rules")
    others = [
        Method("coot", prompt, asking, 9, "rules"),
        Method("cot", prompt, asking, 10, "rules"),
        Method("cot", GradingPrompt(), asking, 9, "rules"),
        Method("cot", prompt, asking, 9, "other rules"),
    ]
    assert plain.hash not in {other.hash for other in others}
    assert plain.hash == Method("cot", prompt, writes_score(9), 9, "rules").hash
