"""What identifies a method: nothing new for the checklist, everything for the others."""

from __future__ import annotations

from rocketeval.grading.ask import Method, each_item_independently, sequentially, writes_score
from rocketeval.prompts.render import GradingPrompt, Template
from rocketeval.prompts.variants import ForcedPrompt, TranscriptPrompt

PAID_FOR = "eb04af136b989e996a73fd235b2e13c2"
"""The fingerprint of every checklist judgment that was ever paid for."""


def test_the_checklist_is_the_judge_it_always_was() -> None:
    """Another fingerprint would make all judgments that exist worthless."""
    assert GradingPrompt().hash == PAID_FOR
    assert Method("checklist", GradingPrompt()).hash == PAID_FOR
    assert Method("fixed", GradingPrompt(), each_item_independently, 1).hash == PAID_FOR


def test_ablations_keep_their_fingerprints() -> None:
    """Judgments of the ablations are paid for as well."""
    sequential = Method("sequential", TranscriptPrompt(), sequentially)
    assert sequential.hash == "e8adcd2067d1db5855679280c90716bd"
    assert Method("all_yes", ForcedPrompt("Yes")).hash == "67a74eb3e9b8ae9ec8abf490c77256bd"
    assert Method("all_no", ForcedPrompt("No")).hash == "2d0aaa067d6b9d3506d7f9e613e2d292"


def test_all_that_decides_an_answer_is_in_the_hash() -> None:
    """Name, tokens that may be written, the prompt, and how the text is read."""
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
