"""The evaluator that a run is given, and what must suit it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rocketeval.config import AuthorConfig, RunConfig, ScorerConfig
from rocketeval.errors import ArtifactError, ConfigError
from rocketeval.evolve.artifact import load_evaluator
from rocketeval.evolve.evaluator import Evaluator
from rocketeval.evolve.perspective import Perspective
from rocketeval.evolve.sheets import Sheet
from rocketeval.grading.methods.kinds import YES_NO
from rocketeval.hashing import content_hash
from rocketeval.records import JudgeFingerprint
from rocketeval.stages.evolve.finish import HELD_OUT
from rocketeval.stages.evolve.rounds import SEEN
from rocketeval.stages.evolve.said import by_sheet
from rocketeval.store.run import RunStore

FOLDER = "evaluator"
"""Where the run keeps what the judge said, a run inside the run for each sheet."""
ANSWERED = (SEEN, HELD_OUT)
"""Where a run that evolved its evaluator has answers to the same questions."""
_ALSO_USED = {"scale", "tie_margin", "price"}
"""Settings of the scorer and the author that mean something with an evaluator, too, or cost
nothing."""


@dataclass(frozen=True)
class Given:
    """An evaluator as it was read."""

    path: Path
    evaluator: Evaluator
    hash: str
    """Hex hash of the file, so that scores are made by the evaluator that was asked."""

    @property
    def asked(self) -> tuple[Perspective, ...]:
        """What a judge has to answer: of the questions about queries only what a router weighs."""
        return self.evaluator.asked

    @property
    def sheets(self) -> dict[Sheet, list[Perspective]]:
        """The perspectives of each sheet."""
        return by_sheet(self.asked, self.evaluator.asking)

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says of it."""
        evaluator = self.evaluator
        return {
            "file": str(self.path),
            "hash": self.hash,
            "task": evaluator.task,
            "asking": evaluator.asking,
            "about_responses": len(evaluator.about_responses),
            "about_queries": len(self.asked) - len(evaluator.about_responses),
            "experts": len(evaluator.experts),
        }


def open_evaluator(config: RunConfig) -> Given:
    """Return the evaluator that the config names; ArtifactError says why it cannot be used."""
    path = config.evaluator
    assert path is not None
    evaluator = load_evaluator(path)
    return Given(path, evaluator, content_hash(path.read_bytes().hex()).hex())


def with_evaluator(config: RunConfig) -> RunConfig:
    """Return the config without an author where an evaluator says what is asked."""
    if config.evaluator is None:
        return config
    return config.model_copy(update={"author": AuthorConfig()})


def as_graded(config: RunConfig) -> RunConfig:
    """Return the config with the evaluator that its run was graded with, if it names none.

    So `grade --evaluator FILE` is told once, and the stages after it know.
    """
    if config.evaluator is not None:
        return config
    grade = RunStore(config.run_path).manifest().get("stages", {}).get("grade", {})
    file = grade.get("evaluator", {}).get("file")
    return config.model_copy(update={"evaluator": Path(file)}) if file else config


def not_used(config: RunConfig) -> list[str]:
    """Return the sections that say something which an evaluator has no use for."""
    sections = {
        "author": (config.author, AuthorConfig()),
        "scorer": (config.scorer, ScorerConfig()),
    }
    found = [
        name
        for name, (own, usual) in sections.items()
        if own.model_dump(exclude=_ALSO_USED) != usual.model_dump(exclude=_ALSO_USED)
    ]
    return [*found, *(["judge.template"] if config.judge.template is not None else [])]


def check_usable(config: RunConfig, *, own_engine: bool) -> Given:
    """Return the evaluator; raise, before anything is paid for, if the run cannot use it."""
    if config.distributed.cluster is not None:
        raise ConfigError(
            "A run with an evaluator is judged on this machine, not on Ray.",
            hint="Use --on local, or leave `distributed.cluster` out.",
        )
    if own_engine:
        raise ConfigError(
            "An evaluator asks in several ways, each with an engine of its own: one engine made "
            "in Python cannot be all of them.",
            hint="Let the run make its engines from the config.",
        )
    if config.method.kind != "checklist" or config.judge.labels != YES_NO:
        raise ConfigError(
            f"method.kind: {config.method.kind!r} asks in its own way, and an evaluator in its.",
            hint="Leave `method` and `judge.labels` out, or the evaluator.",
        )
    given = open_evaluator(config)
    for sheet in given.sheets:
        fitted = given.evaluator.judges.get(sheet.name)
        if fitted is not None:
            told = {"model": config.judge.model, "template": sheet.method().hash}
            _refuse_changes(given.path, asdict(fitted), {**asdict(fitted), **told})
    return given


def check_judge(given: Given, sheet: str, judge: JudgeFingerprint) -> None:
    """Raise ArtifactError unless the evaluator learned from this judge's answers."""
    fitted = given.evaluator.judges.get(sheet)
    if fitted is None:
        raise ArtifactError(
            f"{given.path} does not say which judge answered its sheet {sheet!r}.",
            hint="Evolve the evaluator again, or take an undamaged copy of the file.",
        )
    _refuse_changes(given.path, asdict(fitted), asdict(judge))


def _refuse_changes(path: Path, theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    changed = [
        f"{name} {theirs[name]!r} -> {value!r}"
        for name, value in ours.items()
        if theirs[name] != value
    ]
    if changed:
        raise ArtifactError(
            f"{path} was fitted to another judge's answers ({', '.join(changed)}).",
            hint="Two judges' answers do not compare: evolve an evaluator with this judge.",
        )
