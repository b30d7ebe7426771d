"""Attack a real judge on short responses, and keep its answers without any text.

    python studies/robustness/attacks.py CONFIG --answers FILE [--items 60] [--datamarked 20]
    python studies/robustness/attacks.py CONFIG --answers FILE --known
    python studies/robustness/attacks.py --read studies/robustness/recorded/attacks.jsonl

CONFIG names a graded run of the judge. The script chooses the shortest responses with an item
that the judge answered with no, one item per response, and asks them again with every attack of
`rocketeval attack` and with padding of about the same length. The first `--datamarked` of them are
asked a second time with datamarking. FILE keeps every answer under the hash of its prompt, so
that a stopped study continues. One line per trial goes to standard output: the two hashes and
probabilities, the query's id and the candidate. `--known` asks nothing, and prints the trials of
the items whose answers are all in FILE. `--read` prints the tables of such a record.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rocketeval.attack.attacks import ATTACKS
from rocketeval.attack.measure import AttackReport, Trial, figures
from rocketeval.attack.stage import Target, find_targets, texts_of, try_attacks
from rocketeval.cli.attack import show_attacks
from rocketeval.config import RunConfig, load_config
from rocketeval.engines.base import EngineAnswers, create_engine
from rocketeval.engines.recorded import prompt_hash
from rocketeval.grading.ask import Ask
from rocketeval.grading.loop import fingerprint
from rocketeval.grading.methods import create_method
from rocketeval.observer import Observer
from rocketeval.prompts.render import GradingPrompt, Template
from rocketeval.prompts.variants import MarkedPrompt
from rocketeval.records import Answer, Checklist, GradingTask, Status, Usage
from rocketeval.store.run import RunStore


@dataclass
class Remembered:
    """A judge that is asked once per prompt: its answers are appended to a file."""

    ask: Ask
    file: Path
    most: int
    """Computed prompt tokens after which the study stops."""
    known: dict[str, float | None] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        self.known = known_answers(self.file)

    async def __call__(self, task: GradingTask, _: Mapping[int, Answer]) -> EngineAnswers:
        """Return the answer to a task with one item."""
        name = prompt_hash(task.prefix + task.suffixes[0])
        if name not in self.known:
            if self.usage.prompt_tokens - self.usage.cached_tokens > self.most:
                sys.exit(f"stopped after {self.usage}")
            found = await self.ask(task, {})
            if found.failure is not None:
                return found
            self.usage += found.usage
            self.known[name] = found.answers[0].p_yes
            with self.file.open("a") as file:
                file.write(json.dumps({"prompt": name, "p_yes": self.known[name]}) + "\n")
        p_yes = self.known[name]
        status = Status.OK if p_yes is not None else Status.LOW_MASS
        return EngineAnswers.of(task, {0: Answer(status, p_yes)}, Usage())


def shortest(store: RunStore, items: int) -> list[Target]:
    """Return the targets with the shortest prompts."""

    def length(target: Target) -> int:
        turns = sum(len(turn.content) for turn in target.query.history)
        return turns + len(target.query.text) + len(target.response.text)

    every = find_targets(store, store.judge().digest, sys.maxsize, seed=0)
    return sorted(every, key=length)[:items]


def hash_of(target: Target, text: str, prompt: GradingPrompt) -> str:
    """Return the hash of the prompt that asks the target's item about a text."""
    checklist = Checklist(target.query.id, (target.item,), details=(target.detail,))
    task = prompt.render(target.query, replace(target.response, text=text), checklist, b"")
    return prompt_hash(task.prefix + task.suffixes[0])


def prompts_of(target: Target, prompt: GradingPrompt) -> Iterator[str]:
    """Yield the hashes of all prompts about a target."""
    for attack in ATTACKS:
        for text in texts_of(attack, target):
            yield hash_of(target, text, prompt)


def rows_of(
    targets: list[Target], prompt: GradingPrompt, known: Mapping[str, float | None]
) -> Iterator[dict[str, object]]:
    """Yield the trials of all attacks on items whose answers are all known."""
    missing = {
        id(target) for target in targets for each in prompts_of(target, prompt) if each not in known
    }
    for attack in ATTACKS:
        for target in targets:
            if id(target) in missing:
                continue
            prompts = [hash_of(target, text, prompt) for text in texts_of(attack, target)]
            yield {
                "attack": attack.name,
                "datamarking": isinstance(prompt, MarkedPrompt),
                **asdict(target.trial(*(known[each] for each in prompts))),
                "prompts": prompts,
            }


def known_answers(answers: Path) -> dict[str, float | None]:
    """Return the answers in a file, by the hash of their prompt."""
    lines = answers.read_text().splitlines() if answers.exists() else []
    return {row["prompt"]: row["p_yes"] for row in map(json.loads, lines)}


def show_known(config: RunConfig, answers: Path, items: int, marked: int) -> None:
    """Print one line per trial of the items whose answers are all known."""
    targets, known = shortest(RunStore(config.run_path), items), known_answers(answers)
    plain = GradingPrompt(Template.load("grade"))
    for chosen, prompt in ((targets, plain), (targets[:marked], MarkedPrompt())):
        for row in rows_of(chosen, prompt, known):
            print(json.dumps(row))


async def study(config: RunConfig, answers: Path, items: int, marked: int, most: int) -> None:
    """Ask the judge what is missing."""
    store = RunStore(config.run_path)
    targets = shortest(store, items)
    plain = GradingPrompt(Template.load("grade"))
    engine = create_engine(config.judge, None)
    try:
        store.check_judge(fingerprint(await engine.identify(), create_method(config)))
        judge = Remembered(engine.grade, answers, most)
        for chosen, prompt in ((targets, plain), (targets[:marked], MarkedPrompt())):
            if chosen:
                await try_attacks(
                    *(ATTACKS, chosen, prompt, judge, config.judge.concurrency or 2),
                    *(asyncio.Event(), Observer()),
                )
            print(f"{len(chosen)} items: {judge.usage}", file=sys.stderr)
    finally:
        await engine.aclose()


def read(record: Path) -> None:
    """Print the tables of a record: all items, then those asked with and without datamarking."""
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    marked = {(row["query_id"], row["candidate"]) for row in rows if row["datamarking"]}
    show("Without datamarking, all items", [row for row in rows if not row["datamarking"]], False)
    if marked:
        both = [row for row in rows if (row["query_id"], row["candidate"]) in marked]
        for on in (False, True):
            title = f"The first {len(marked)} items, {'with' if on else 'without'} datamarking"
            show(title, [row for row in both if row["datamarking"] == on], on)


def show(title: str, rows: list[dict[str, object]], datamarking: bool) -> None:
    """Print one table."""
    names = ("query_id", "candidate", "before", "attacked", "padded", "worded")
    trials: dict[str, list[Trial]] = {attack.name: [] for attack in ATTACKS}
    for row in rows:
        trials[str(row["attack"])].append(Trial(*(row.get(name) for name in names)))  # type: ignore[arg-type]
    prompts = {each for row in rows for each in row["prompts"]}  # type: ignore[attr-defined]
    report = AttackReport(
        judge="",
        items=max(map(len, trials.values())),
        datamarking=datamarking,
        seed=0,
        requests=len(prompts),
        attacks=tuple(
            figures(attack, trials[attack.name], {}, 0, len(ATTACKS)) for attack in ATTACKS
        ),
    )
    print(f"# {title}: {report.items} items, {report.requests} requests")
    show_attacks(report)
    print()


def main() -> None:
    """Ask the judge, or read a record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("config", type=Path, nargs="?")
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--datamarked", type=int, default=20)
    parser.add_argument("--most", type=int, default=250_000, help="computed prompt tokens")
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--read", type=Path)
    args = parser.parse_args()
    if args.read:
        read(args.read)
        return
    if not args.config or not args.answers:
        parser.error("CONFIG and --answers are needed")
    config = load_config(args.config)
    if not args.known:
        asyncio.run(study(config, args.answers, args.items, args.datamarked, args.most))
    show_known(config, args.answers, args.items, args.datamarked)


if __name__ == "__main__":
    main()
