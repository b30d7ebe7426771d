"""Who judges a run: asked of the engine, unless its answers are there and nothing else changed."""

from __future__ import annotations

from rocketeval.config import RunConfig
from rocketeval.engines.base import Engine
from rocketeval.grading.judge import Hashed, fingerprint
from rocketeval.hashing import content_hash
from rocketeval.records import JudgeFingerprint
from rocketeval.store.run import RunStore

NOT_ASKED_WITH = {"price", "template"}
"""Settings of a judge that change no answer; the method's hash covers the template."""


def asked_as(config: RunConfig, method: Hashed) -> str:
    """Return a hash of all that the config says about the judge and how it is asked."""
    settings = config.judge.model_dump(mode="json", exclude=NOT_ASKED_WITH)
    return content_hash(settings, method.hash).hex()


def remembered_judge(store: RunStore, config: RunConfig, method: Hashed) -> JudgeFingerprint | None:
    """Return the judge of a run that was graded with these very settings; None if it was not.

    Whoever answers under that address now may be somebody else: ask before anything is asked.
    """
    grade = store.manifest().get("stages", {}).get("grade", {})
    return store.judge() if grade.get("asked_as") == asked_as(config, method) else None


async def judge_of(
    store: RunStore, config: RunConfig, method: Hashed, engine: Engine
) -> JudgeFingerprint:
    """Return who judges the run; its engine is asked only if the run does not remember."""
    remembered = remembered_judge(store, config, method)
    return remembered or fingerprint(await engine.identify(), method)
