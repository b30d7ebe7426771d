"""A synthetic benchmark: votes prefer brief responses for sums and long ones for stories.

Everything is text: an evaluator finds the rule only if it asks the right questions. The judge
answers a question by its words and by the text it sees, with noise. The optimizer is a function of
its prompt and learns only from the mistakes in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

from rocketeval.evolve.perspective import Perspective, PerspectiveKind, PerspectiveOrigin, Pool
from rocketeval.evolve.pool import write_pool
from rocketeval.hashing import content_hash
from rocketeval.store.files import write_jsonl

CANDIDATES = ("ash", "birch", "cedar", "elm")
MOST_SENTENCES = 12
SENTENCE_WORDS = 8
TIE = 1
"""Responses that differ by at most this many sentences are a tie."""
NOISE = 0.02
"""Standard deviation of a grade from 0 to 1."""
BRIEF = "Does the response keep itself brief?"
DETAIL = "Does the response go into detail?"
CALCULATION = "Does the query ask for a calculation?"
OVERALL = "Is the response a good answer to the query as a whole?"
SEEDS = (
    Perspective(OVERALL, origin=PerspectiveOrigin.TRANSFER),
    Perspective("Is the response polite?", origin=PerspectiveOrigin.RULE),
    Perspective("Is everything that the response states correct?", origin=PerspectiveOrigin.RULE),
    Perspective("Is the response clear and easy to follow?", origin=PerspectiveOrigin.RULE),
    Perspective(
        "Does the query set a form for the answer?", PerspectiveKind.QUERY, PerspectiveOrigin.PRESET
    ),
)
"""The seed perspectives; none of them reveals the rule."""
_OPENERS = ("", "Of course, gladly!", "Here you are.", "Well then.")
_ASIDES = (
    "Take this slowly and look at each part.",
    "Nothing in it is hard once you begin.",
    "The first part leads on to the next.",
    "Keep the rest in mind while you read.",
    "Every step stands on the one before it.",
    "It helps to say it aloud just once.",
    "Some people would put this quite another way.",
    "After that there is only little left over.",
    "Look back at the start before going on.",
    "One more thing belongs to it as well.",
    "So the pieces fall into place by themselves.",
    "That is how it ends, and quite well.",
)
"""Each of `SENTENCE_WORDS` words, for sums and stories alike: only their number differs."""
_ENDS = ("by", "den", "ford", "ham", "mouth", "stead", "ton", "wick")
_HEROES = ("a fox", "a baker", "two sisters", "an old king", "a lighthouse keeper", "a shy owl")
_THINGS = ("a lantern", "the lost key", "a paper boat", "the last train", "a silver spoon")
_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gil", "Hana", "Ida", "Jon", "Kim", "Lea")
_TOWNS = tuple(f"{one}{other}" for one in ("Al", "Bel", "Cor", "Dun") for other in _ENDS)
_FILLER = (
    "Is the response free of spelling mistakes?",
    "Does the response keep one tone throughout?",
    "Does the response use the active voice?",
    "Is the response free of foreign words?",
    "Does the response begin with its main point?",
    "Does the response avoid figures of speech?",
    "Does the response name what it assumes?",
    "Is each sentence of the response complete?",
    "Does the response speak to the reader directly?",
    "Does the response avoid exclamation marks?",
)
"""What the optimizer writes when it finds nothing; the answers carry no information."""


@dataclass(frozen=True)
class Planted:
    """A benchmark and the rule behind its votes."""

    queries: tuple[Mapping[str, Any], ...]
    responses: tuple[Mapping[str, Any], ...]
    votes: tuple[Mapping[str, Any], ...]
    rule: Mapping[tuple[str, str, str], str]
    """The winner by the rule, by query and both candidates."""

    def is_sum(self, query_id: str) -> bool:
        """Return whether a query is a sum; otherwise it asks for a story."""
        return query_id.startswith("sum")

    def ceiling(self, query_ids: Sequence[str] | None = None) -> float:
        """Return the share of votes that follow the rule, on some queries or on all."""
        chosen = None if query_ids is None else set(query_ids)
        right = [
            self.rule[vote["query_id"], vote["candidate_a"], vote["candidate_b"]] == vote["winner"]
            for vote in self.votes
            if chosen is None or vote["query_id"] in chosen
        ]
        return sum(right) / len(right)

    def write(self, folder: Path) -> Path:
        """Write the benchmark and `seeds.yaml` into a folder; return the folder."""
        write_jsonl(folder / "queries.jsonl", self.queries)
        write_jsonl(folder / "responses.jsonl", self.responses)
        write_jsonl(folder / "votes.jsonl", self.votes)
        write_pool(Pool(SEEDS), folder / "seeds.yaml")
        return folder


def make_planted(
    queries: int = 120, *, flipped: float = 0.1, shuffled: bool = False, seed: int = 0
) -> Planted:
    """Return a benchmark with six votes per query, a known share of them flipped.

    If the votes are `shuffled`, they do not depend on the responses.
    """
    random = Random(seed)
    asked = [_query(number, random) for number in range(queries)]
    responses, votes, rule = [], [], {}
    for query in asked:
        lengths = {name: random.randint(1, MOST_SENTENCES) for name in CANDIDATES}
        for name, sentences in lengths.items():
            text = _response(sentences, random)
            responses.append({"query_id": query["id"], "candidate": name, "text": text})
        for first, second in combinations(CANDIDATES, 2):
            one, other = random.sample((first, second), 2)
            winner = _winner(query["id"], lengths[one], lengths[other])
            rule[query["id"], one, other] = winner
            if random.random() < flipped:
                winner = random.choice([each for each in ("a", "b", "tie") if each != winner])
            row = {"query_id": query["id"], "candidate_a": one, "candidate_b": other}
            votes.append({**row, "winner": winner})
    if shuffled:
        winners = [vote["winner"] for vote in votes]
        random.shuffle(winners)
        votes = [{**vote, "winner": won} for vote, won in zip(votes, winners, strict=True)]
    return Planted(tuple(asked), tuple(responses), tuple(votes), rule)


def _query(number: int, random: Random) -> dict[str, Any]:
    if number % 2:
        hero, thing = random.choice(_HEROES), random.choice(_THINGS)
        text = f"Write a little story about {hero} and {thing}. {_tail(number)}"
        return {"id": f"story-{number:03d}", "text": text}
    one, other = random.randint(11, 99), random.randint(11, 99)
    return {"id": f"sum-{number:03d}", "text": f"What is {one} plus {other}? {_tail(number)}"}


def _tail(number: int) -> str:
    """Return words that make every query different and carry no information."""
    return f"This is for {_NAMES[number % len(_NAMES)]} of {_TOWNS[number // len(_NAMES)]}."


def _response(sentences: int, random: Random) -> str:
    opener = random.choice(_OPENERS)
    body = random.sample(_ASIDES, sentences)
    return " ".join(part for part in (opener, *body) if part)


def _winner(query_id: str, one: int, other: int) -> str:
    if abs(one - other) <= TIE:
        return "tie"
    return "a" if (one < other) == query_id.startswith("sum") else "b"


# --- The judge

_SHOWN = re.compile(r"<<<response>>>\n(.*?)\n<<<end of response>>>", re.DOTALL)
_QUERY = re.compile(r"<<<query>>>\n(.*?)\n<<<end of query>>>", re.DOTALL)


def judge_says(prefix: str, suffix: str) -> float:
    """Return the probability of yes, or the grade, from the question's words and the text."""
    question = suffix.split("\n")[0].casefold()
    responses = _SHOWN.findall(prefix)
    if responses:
        said = [_of_response(question, text) for text in responses]
        true = said[0] if len(said) == 1 else 0.5 + 0.5 * (said[0] - said[1])
    else:
        true = _of_query(question, _QUERY.findall(prefix)[-1])
    noise = Random(content_hash("noise", prefix, question)).gauss(0.0, NOISE)
    return min(0.999, max(0.001, true + noise))


def _of_response(question: str, text: str) -> float:
    length = len(text.split()) / ((MOST_SENTENCES + 1) * SENTENCE_WORDS)
    if any(word in question for word in ("brief", "short", "few words")):
        return 1.0 - length
    if any(word in question for word in ("detail", "elaborate", "at length")):
        return length
    if "polite" in question:
        return 0.9 if "gladly" in text else 0.2
    return _chance(question, text)


def _of_query(question: str, text: str) -> float:
    has_digits = any(mark.isdigit() for mark in text)
    if "calculation" in question:
        return 0.9 if has_digits else 0.1
    return _chance(question, text)


def _chance(question: str, text: str) -> float:
    """Return a pseudo-random number, the same for the same content."""
    return Random(content_hash("chance", question, text)).random()


# --- The optimizer

_CASE = re.compile(
    r"<<<query>>>\n(?P<query>.*?)\n<<<end of query>>>.*?"
    r"Response A:\n<<<response>>>\n(?P<a>.*?)\n<<<end of response>>>.*?"
    r"Response B:\n<<<response>>>\n(?P<b>.*?)\n<<<end of response>>>\n"
    r"People's verdict: (?P<verdict>[^\n]*)",
    re.DOTALL,
)
_NUMBERED = re.compile(r"^(\d+)\. .*$", re.MULTILINE)
CLEAR = 0.75
"""Share of the verdicts that must agree before the optimizer infers a reason."""


def optimizer_writes(prompt: str) -> str:
    """Return the optimizer's answer; it depends only on the prompt."""
    if "# Cases that it judged wrongly" in prompt:
        return _explain(prompt)
    if "# Important questions" in prompt or "# Questions about responses" in prompt:
        listed = prompt.partition("<<<reference>>>")[2].partition("<<<end of reference>>>")[0]
        return "\n".join(f"{number}. DROP" for number in _NUMBERED.findall(listed))
    return _listed(_fillers(prompt, 4))


def _explain(prompt: str) -> str:
    """Compare the preferred responses by length, with digits and without."""
    longer_wins: dict[bool, list[bool]] = {True: [], False: []}
    for case in _CASE.finditer(prompt):
        ahead = len(case["a"].split()) - len(case["b"].split())
        if case["verdict"] in ("A is better", "B is better") and ahead:
            has_digits = any(mark.isdigit() for mark in case["query"])
            longer_wins[has_digits].append((ahead > 0) == (case["verdict"] == "A is better"))
    liked = {sort: _clear(result) for sort, result in longer_wins.items()}
    about = {False: BRIEF, True: DETAIL}
    questions = [about[longer] for longer in about if longer in liked.values()]
    apart = None not in liked.values() and liked[True] != liked[False]
    shown = "\n".join(
        [
            "# Analysis",
            "People seem to look at the length of responses." if questions else "Nothing is clear.",
            "# About responses",
            _listed(questions or _fillers(prompt, 2)),
            "# About queries",
        ]
    )
    return f"{shown}\n{_listed([CALCULATION]) if apart else 'none'}"


def _clear(result: Sequence[bool]) -> bool | None:
    """Return whether the longer one wins; None if too few cases agree."""
    if len(result) < 2:
        return None
    share = sum(result) / len(result)
    return None if 1.0 - CLEAR < share < CLEAR else share > 0.5


def _fillers(prompt: str, count: int) -> list[str]:
    return Random(content_hash("filler", prompt)).sample(_FILLER, count)


def _listed(questions: Sequence[str]) -> str:
    return "\n".join(f"{number}. {question}" for number, question in enumerate(questions, 1))
