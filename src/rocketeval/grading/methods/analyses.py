"""Analyses that another judge wrote: the cot run of a stronger model, read response by response."""

from __future__ import annotations

from pathlib import Path

from rocketeval.config import Section, load_config
from rocketeval.errors import ConfigError
from rocketeval.grading.schedule import Identities
from rocketeval.prompts.read_grades import without_score
from rocketeval.prompts.render import Template
from rocketeval.prompts.variants import AnalysisPrompt
from rocketeval.store.run import RunStore

WRITER = "cot"
"""The method whose runs hold analyses."""


class AnalysisOptions(Section):
    """Settings of the method analysis."""

    run: Path
    """Directory of a finished run of the same responses with method.kind cot, relative to where
    the command is run."""


def analysis_prompt(template: Template, options: AnalysisOptions) -> AnalysisPrompt:
    """Return the prompt that shows the analyses of the run that `options` name."""
    store = _written_run(options.run)
    return AnalysisPrompt(template, _analyses(store), store.judge().digest.hex(), str(options.run))


def _written_run(path: Path) -> RunStore:
    hint = f"Give the directory of a finished run with method.kind {WRITER}."
    if not (path / "run.yaml").exists():
        raise ConfigError(f"method.options.run: {path} is not a run directory.", hint=hint)
    kind = load_config(path / "run.yaml").method.kind
    if kind != WRITER:
        raise ConfigError(
            f"method.options.run: {path} was graded by the method {kind!r}, which writes no "
            "analyses.",
            hint=hint,
        )
    return RunStore(path)


def _analyses(store: RunStore) -> dict[tuple[bytes, bytes], str]:
    """Return the analysis of every response, by the content of its query and its own.

    Without the score each ends in: the judge is to give its own. Looked up as scores are, because
    a judgment may have been made for a twin of the response.
    """
    texts = {
        row["key"]: row["text"][0]
        for table in store.judgments(["key", "text"])
        for row in table.to_pylist()
        if row["text"]
    }
    queries = store.inputs.queries
    identities = Identities(store.judge().digest, queries, store.inputs.checklists())
    found: dict[tuple[bytes, bytes], str] = {}
    for head in store.inputs.heads():
        key = identities.key(head.query_id, head.hash)
        text = None if key is None else texts.get(key.hex())
        if text is not None:
            found[queries[head.query_id].content_hash, head.hash] = without_score(text)
    return found
