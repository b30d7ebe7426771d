"""Items whose answer nobody doubts, to see whether a judge finds it.

Every response has as many items to be answered yes as no, so that neither a liking for a response
nor a liking for yes looks like judgement. The items to be answered no are those that weak judges
wave through: a part that is missing, one example too few, a fact that is negated or wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocketeval.hashing import content_hash
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Checklist, GradingTask, Query, Response, Turn


@dataclass(frozen=True, slots=True)
class GoldCase:
    """A response with items whose answers are known."""

    name: str
    query: str
    response: str
    yes: tuple[str, ...]
    """Items to be answered yes."""
    no: tuple[str, ...]
    """Items to be answered no."""

    @property
    def items(self) -> tuple[str, ...]:
        """All items, those to be answered yes first."""
        return self.yes + self.no

    @property
    def expected(self) -> tuple[bool, ...]:
        """The known answers, in the order of `items`."""
        return (True,) * len(self.yes) + (False,) * len(self.no)

    def task(self, prompt: GradingPrompt, salt: str = "") -> GradingTask:
        """Return the task that asks a judge about this case.

        A `salt` stands in the history and makes a prompt that no server has in its cache yet.
        """
        history = (Turn("user", f"(conversation {salt})"),) if salt else ()
        return prompt.render(
            Query(self.name, self.query, history),
            Response(self.name, "gold", self.response),
            Checklist(self.name, self.items),
            content_hash("doctor", self.name, salt),
        )


GOLD = (
    GoldCase(
        "museum",
        "Plan a day at the city museum with two children. Give times, a lunch stop and the price "
        "of the tickets.",
        "Meet at the main entrance at 10:00. Start with the dinosaur hall, which children usually "
        "like best, and stay for about an hour. At 11:15 take the lift to the second floor to see "
        "the model ships. Have lunch at 12:30 in the garden cafe, or bring your own sandwiches. "
        "After lunch the science room is open, where everything may be touched. Leave at about "
        "15:15, before anyone gets tired. Wear comfortable shoes.",
        yes=(
            "Does the response say at what time to meet?",
            "Does the plan include a stop for lunch?",
            "Does the plan visit the dinosaur hall before the model ships?",
            "Does the response advise on what shoes to wear?",
        ),
        no=(
            "Does the response say how much the tickets cost?",
            "Does the plan include a film in the museum's cinema?",
            "Does the response say that the model ships are on the ground floor?",
            "Does the response advise on how to travel to the museum?",
        ),
    ),
    GoldCase(
        "energy",
        "Name three sources of renewable energy.",
        "Solar power turns sunlight into electricity. Wind power uses turbines that moving air "
        "turns.",
        yes=("Does the response name wind power?",),
        no=("Does the response name three sources of renewable energy?",),
    ),
    GoldCase(
        "capital",
        "What is the capital of Australia, and on which continent is it?",
        "The capital of Australia is Sydney. It lies on the continent of Australia.",
        yes=("Does the response say on which continent the capital is?",),
        no=("Does the response name Canberra as the capital of Australia?",),
    ),
    GoldCase(
        "sunglasses",
        "May I look at the sun through ordinary sunglasses?",
        "No. Ordinary sunglasses do not protect your eyes: looking at the sun through them can "
        "damage your sight for good. Use certified eclipse glasses instead.",
        yes=("Does the response recommend eclipse glasses?",),
        no=("Does the response say that ordinary sunglasses protect the eyes from the sun?",),
    ),
    GoldCase(
        "breakfast",
        "List four ideas for breakfast as bullet points.",
        "You could have porridge with berries, scrambled eggs on toast, yoghurt with honey, or a "
        "banana smoothie.",
        yes=("Does the response give four ideas for breakfast?",),
        no=("Are the ideas written as bullet points?",),
    ),
    GoldCase(
        "discount",
        "A shirt costs 40 euros and is reduced by 25 percent. What does it cost now?",
        "25 percent of 40 euros is 10 euros. 40 + 10 = 50, so the shirt now costs 50 euros.",
        yes=("Does the response say that 25 percent of 40 euros is 10 euros?",),
        no=("Does the response conclude that the shirt now costs 30 euros?",),
    ),
    GoldCase(
        "translation",
        "Translate 'Good morning, my friends' into French and into Spanish.",
        "French: Bonjour, mes amis.",
        yes=("Does the response give a French translation?",),
        no=("Does the response give a Spanish translation?",),
    ),
    GoldCase(
        "wedding",
        "Write a short, polite note declining Ana's invitation to her wedding, and give a reason.",
        "Dear Ana, thank you so much for inviting me to your wedding. I am very sorry, but I will "
        "not be able to come. I wish you both a wonderful day. Warmly, Tom",
        yes=("Does the note thank Ana for the invitation?",),
        no=("Does the note give a reason for not coming?",),
    ),
    GoldCase(
        "function",
        "Write a Python function that returns the larger of two numbers. Give it a docstring.",
        "def larger(a, b):\n    if a > b:\n        return a\n    return b",
        yes=("Is the function named `larger`?",),
        no=("Does the function have a docstring?",),
    ),
)
"""Twelve items to be answered yes and twelve no; the first case, the longest, has eight of them."""
