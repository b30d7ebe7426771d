"""A whole run in one call, and a judge for single questions."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson

from rocketeval.config import JudgeConfig, RunConfig, load_config, parse_config
from rocketeval.engines.base import Engine, ask_engine, create_engine
from rocketeval.errors import ConfigError, EngineError
from rocketeval.items import ParsedItem, parse_item
from rocketeval.observer import Observer
from rocketeval.pipeline import Outcome, Run
from rocketeval.records import Answer, Checklist, Query, Response, Turn

GENERAL = "general"
"""Name of the packaged checklist for all queries."""
MESSAGES = 'A message is such as {"role": "user", "content": "Hello"}, or a rocketeval Turn.'
_TURN = ("role", "content")
Config = RunConfig | Mapping[str, Any] | Path | str
"""A config, a mapping of settings as in YAML, or the path of a YAML file."""


async def arun(
    config: Config,
    *,
    judge: Engine | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Run every stage and return the outcome; `judge` replaces the config's engine."""
    return await _open(config, judge, observer).all()


def run(
    config: Config,
    *,
    judge: Engine | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Like `arun`, for synchronous code; also works in a notebook with a running event loop."""
    return finish(_open(config, judge, observer))


def finish(opened: Run) -> Outcome:
    """Run every stage of an opened run from synchronous code, also inside a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(opened.all())
    loops: list[asyncio.AbstractEventLoop] = []

    async def work() -> Outcome:
        loops.append(asyncio.get_running_loop())
        return await opened.all()

    with ThreadPoolExecutor(1, thread_name_prefix="rocketeval") as pool:
        outcome = pool.submit(asyncio.run, work())
        try:
            return outcome.result()
        except KeyboardInterrupt:
            # Stop the thread's run, so that it spends nothing more; its loop may be asleep.
            for loop in loops:
                loop.call_soon_threadsafe(opened.stop.set)
            raise


def _open(config: Config, judge: Engine | None, observer: Observer | None) -> Run:
    if isinstance(config, Mapping):
        chosen = parse_config(dict(config))
    elif isinstance(config, RunConfig):
        chosen = config
    else:
        chosen = load_config(config)
    return Run(chosen, judge=judge, observer=observer)


class Judge:
    """A judge model: settings to share between evaluations, and single questions.

    >>> import asyncio, rocketeval
    >>> judge = Judge(engine=rocketeval.ScriptedEngine(lambda prefix, item: 0.8))
    >>> answers = asyncio.run(judge.answers("1 + 1?", "2", ["Is it right?", "Is it short?"]))
    >>> [answer.p_yes for answer in answers]
    [0.8, 0.8]

    `model` and `base_url` name a model on an OpenAI-compatible server; a path that ends in .gguf is
    loaded into this process. Further settings are those of `judge` in the config, such as
    `concurrency`. `engine` is the name of an engine, such as "openai_sampled", or an engine object
    instead of settings.
    """

    def __init__(
        self,
        model: str | None = None,
        base_url: str | None = None,
        *,
        engine: Engine | str | None = None,
        **settings: object,
    ) -> None:
        if isinstance(engine, str):
            settings, engine = {**settings, "engine": engine}, None
        if (model is None) == (engine is None):
            raise ConfigError(
                "A judge needs either a model or an engine.",
                hint='Judge("qwen2.5-3b-instruct", base_url="http://127.0.0.1:8000/v1")',
            )
        self.engine = engine
        """The engine object, if one was given."""
        self.settings = engine_settings(model or "engine", base_url, settings)
        """The `judge` section of a config."""
        self._engines: dict[int, Engine] = {}

    async def answers(
        self,
        query: str | Query,
        response: str | Response,
        checklist: Sequence[str | Mapping[str, object]] | Checklist,
        *,
        history: Sequence[Turn | Mapping[str, object]] = (),
    ) -> tuple[Answer, ...]:
        """Return the answers to the items of a checklist about one response, in its order.

        Nothing is stored. Raises EngineError if the judge cannot be used, or fails on an item.
        """
        from rocketeval.checklists.rubric import RubricOptions, bind_checklist
        from rocketeval.checks.runner import CheckRunner
        from rocketeval.prompts.rubric import RubricPrompt

        asked = query if isinstance(query, Query) else as_query(query, history)
        given = response
        if not isinstance(given, Response):
            given = Response(asked.id, "response", as_text(given, "response"))
        items = checklist
        if not isinstance(items, Checklist):
            items = Checklist.from_items(asked.id, checklist_items(items, "checklist"))
        options = RubricOptions()
        bound = bind_checklist(items, asked, options)
        task = RubricPrompt().render(asked, given, bound, b"")
        decided: dict[int, Answer] = {}
        if task.checks:
            runner = CheckRunner(options.checks)
            try:
                decided = await runner.run(task.checks)
            finally:
                runner.close()
        found = await ask_engine(await self._engine_here(), task, decided)
        if found.failure is not None:
            raise EngineError(f"The judge cannot be used: {found.failure}")
        return found.answers

    async def score(
        self,
        query: str | Query,
        response: str | Response,
        checklist: Sequence[str | Mapping[str, object]] | Checklist,
        *,
        history: Sequence[Turn | Mapping[str, object]] = (),
        scale: tuple[float, float] = (1.0, 10.0),
    ) -> float | None:
        """Return the mean answer on a scale, by the items' weights; None without an answer."""
        import numpy as np

        from rocketeval.scoring.answers import RubricColumns
        from rocketeval.scoring.rubric import weighted_mean

        asked = checklist
        if not isinstance(asked, Checklist):
            asked = Checklist.from_items("query", checklist_items(asked, "checklist"))
        answers = await self.answers(query, response, asked, history=history)
        columns = RubricColumns(
            np.array([answer.p_yes for answer in answers], dtype=np.float64),
            np.array([detail.weight for detail in asked.every_detail]),
            np.array([1.0 - (answer.p_na or 0.0) for answer in answers]),
        )
        (mean,) = weighted_mean(columns, np.array([0, len(answers)])).tolist()
        low, high = scale
        return None if math.isnan(mean) else low + (high - low) * mean

    async def aclose(self) -> None:
        """Close the connections that `answers` opened."""
        while self._engines:
            _, engine = self._engines.popitem()
            await engine.aclose()

    async def __aenter__(self) -> Judge:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _engine_here(self) -> Engine:
        """Return the engine of the running event loop; connections belong to one loop."""
        if self.engine is not None:
            return self.engine
        loop = id(asyncio.get_running_loop())
        if loop not in self._engines:
            engine = create_engine(JudgeConfig.model_validate(self.settings))
            self._engines[loop] = engine
            await engine.ready()
        return self._engines[loop]


def as_judge(judge: str | Judge | Engine, base_url: str | None) -> Judge:
    """Return the judge that a model name, a judge or an engine object means."""
    if isinstance(judge, str):
        return Judge(judge, base_url)
    if base_url is not None:
        owner = "judge object" if isinstance(judge, Judge) else "engine"
        raise ConfigError(f"The {owner} has its own URL: drop `base_url`.")
    return judge if isinstance(judge, Judge) else Judge(engine=judge)


def engine_settings(
    model: str, base_url: str | None, more: Mapping[str, object]
) -> dict[str, object]:
    """Return the settings of an engine; a GGUF file is loaded into this process."""
    named: dict[str, object] = {"model": model, **more}
    if model.endswith(".gguf"):
        named = {"engine": "llamacpp", **named, "model": str(Path(model).expanduser().absolute())}
    if base_url is not None:
        named["base_url"] = base_url
    return named


def general_author() -> dict[str, object]:
    """Return the `author` section with the packaged checklist for all queries."""
    from rocketeval.checklists.simple import GENERAL_ITEMS

    return {"kind": "fixed", "options": {"items": list(GENERAL_ITEMS)}}


def as_query(
    text: object,
    history: object = (),
    reference: str | None = None,
    system: str | None = None,
    context: object = None,
) -> Query:
    """Return a query made of a caller's arguments; ConfigError names the one that is wrong."""
    return Query(
        "query",
        as_text(text, "query"),
        _turns(history, "history"),
        reference,
        system=system,
        context=None if context is None else _passages(context, "context"),
    )


def as_text(given: object, what: str) -> str:
    """Return the argument `what` if it is a text; raise ConfigError otherwise."""
    if isinstance(given, str):
        return given
    missing = given is None or (isinstance(given, float) and math.isnan(given))
    hint = 'Leave the row out, or give "" for an empty text.' if missing else "Convert it first."
    kind = "missing" if missing else f"of type {type(given).__name__}"
    raise ConfigError(f"`{what}` must be a text, but is {kind}.", hint=hint)


def _passages(given: object, what: str) -> tuple[str, ...]:
    """Return passages given as one text or a list of texts."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable) or isinstance(given, Mapping | bytes):
        raise ConfigError(f"`{what}` must be a text or a list of texts.")
    return tuple(as_text(each, f"{what}[{place}]") for place, each in enumerate(given))


def _turns(given: object, what: str) -> tuple[Turn, ...]:
    """Return turns given as records or as objects with `role` and `content`."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ConfigError(f"`{what}` must be a list of messages.", hint=MESSAGES)
    turns = []
    for place, each in enumerate(given):
        if isinstance(each, Mapping):
            parts = (as_text(each.get(name), f"{what}[{place}].{name}") for name in _TURN)
            each = Turn(*parts)
        if not isinstance(each, Turn):
            raise ConfigError(f"`{what}[{place}]` is not a message.", hint=MESSAGES)
        turns.append(each)
    return tuple(turns)


def checklist_items(given: object, what: str) -> list[ParsedItem]:
    """Return checklist items given as texts or objects; raise ConfigError that names the item."""
    if isinstance(given, str):
        raise ConfigError(
            f"`{what}` must be a list of items.",
            hint=f"For one item, give a list: {orjson.dumps([given]).decode()}.",
        )
    items = list(given) if isinstance(given, Iterable) else []
    if not items or isinstance(given, Mapping):
        raise ConfigError(
            f"`{what}` must be a list of items.",
            hint='Such as ["Is it correct?", {"text": "Is it rude?", "weight": -1}].',
        )
    parsed = []
    for place, item in enumerate(items, 1):
        try:
            parsed.append(parse_item(item))
        except ValueError as error:
            raise ConfigError(f"`{what}`, item {place}: {error}") from None
    return parsed
