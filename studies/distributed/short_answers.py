"""A small benchmark of our own texts: thirty questions, ten responses each, four items."""

from __future__ import annotations

from pathlib import Path

from rocketeval.store.files import write_jsonl

QUESTIONS = (
    ("What do bees make?", "honey", "They collect nectar and keep it in cells of wax."),
    ("What is ice?", "frozen water", "It floats because it is lighter than the liquid."),
    ("What does a baker sell?", "bread", "It comes out of the oven early in the morning."),
    ("What falls from clouds?", "rain", "Small drops join until the air cannot hold them."),
    ("What do sheep give us?", "wool", "It is cut once a year and spun into yarn."),
    ("What does a clock show?", "the time", "One hand is for hours, a longer one for minutes."),
    ("What grows on an oak?", "acorns", "Squirrels hide them for the winter."),
    ("What lights the day?", "the sun", "It rises in the east and sets in the west."),
    ("What do cows eat?", "grass", "They chew it twice before it is digested."),
    ("What is a week?", "seven days", "It begins on Monday in many calendars."),
    ("What holds up a roof?", "walls", "Beams carry the weight down to them."),
    ("What do fish breathe with?", "gills", "Water flows through them and leaves its oxygen."),
    ("What is paper made from?", "wood", "It is ground to pulp, pressed and dried."),
    ("What does a compass point to?", "the north", "Its needle follows the field of the earth."),
    ("What do hens lay?", "eggs", "Most of them do so nearly every day in summer."),
    ("What is in the sea?", "salt water", "Rivers have carried the minerals there."),
    ("What warms a stove?", "fire", "It needs dry logs and a draught of air."),
    ("What do you write with?", "a pen", "Ink runs to its tip and dries on the page."),
    ("What comes after winter?", "spring", "The days grow longer and buds open."),
    ("What does a ladder have?", "rungs", "They are set at equal distances between two rails."),
    ("What do spiders spin?", "webs", "The threads are thin and stronger than they look."),
    ("What is cheese made of?", "milk", "It is warmed, thickened and left to ripen."),
    ("What does a sail catch?", "wind", "Turned the right way, it even takes a boat upwind."),
    ("What do roots take up?", "water", "Fine hairs draw it out of the soil."),
    ("What does a library lend?", "books", "Readers bring them back after some weeks."),
    ("What do you see at night?", "stars", "Far from towns there are thousands of them."),
    ("What is a dozen?", "twelve", "Eggs are often counted that way."),
    ("What does a violin have?", "strings", "A bow makes them sound."),
    ("What covers a bird?", "feathers", "They keep it warm and let it fly."),
    ("What turns a mill?", "a river", "Its current pushes the paddles of the wheel."),
)
ITEMS = (
    "Does the response answer the question correctly?",
    "Does the response give a reason or a detail?",
    "Is the response a single sentence?",
    "Is the response polite?",
)


def write_short_answers(folder: Path, items: int = len(ITEMS)) -> None:
    """Write queries, checklists of `items` items and responses into a folder."""
    names = [f"q{number:02d}" for number in range(len(QUESTIONS))]
    write_jsonl(
        folder / "queries.jsonl",
        ({"id": name, "text": asked} for name, (asked, _, _) in zip(names, QUESTIONS, strict=True)),
    )
    checklist = ITEMS[:items]
    write_jsonl(
        folder / "checklists.jsonl", ({"query_id": name, "items": checklist} for name in names)
    )
    answers = [_answers(number) for number in range(len(QUESTIONS))]
    for candidate in answers[0]:
        write_jsonl(
            folder / "responses" / f"{candidate}.jsonl",
            (
                {"query_id": name, "text": given[candidate]}
                for name, given in zip(names, answers, strict=True)
            ),
        )


def _answers(number: int) -> dict[str, str]:
    """Return ten responses to a question, by the style of the candidate."""
    asked, right, detail = QUESTIONS[number]
    _, wrong, other = QUESTIONS[(number + 7) % len(QUESTIONS)]
    return {
        "brief": f"{right.capitalize()}.",
        "plain": f"The answer is {right}.",
        "thorough": f"The answer is {right}. {detail}",
        "wordy": f"You ask: {asked} Many things come to mind, but in the end it is {right}. "
        f"{detail} There would be more to say, and another day we may.",
        "friendly": f"What a nice question, thank you! It is {right}. {detail}",
        "rude": f"Everyone knows that. It is {right}. Look it up next time.",
        "wrong": f"The answer is {wrong}.",
        "sure_and_wrong": f"The answer is certainly {wrong}. {other}",
        "evasive": "I would rather not say. It depends on many things.",
        "torn": f"It is either {right} or {wrong}. {detail} {other}",
    }
