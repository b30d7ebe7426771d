"""The pytest plugin: the fixture `rocketeval`, cases from a file, and baselines.

    def test_refund(rocketeval):
        rocketeval.check("Can I get a refund?", bot("Can I get a refund?"),
                         ["Does it name the 30-day limit?", "Is it polite?"], min_score=0.8)

Judged answers are kept in `.rocketeval/answers.jsonl`: an unchanged response costs nothing, and
with the file in the repository the tests run offline.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rocketeval.api import Judge
    from rocketeval.engines.base import Engine
    from rocketeval.gate.cases import ChecklistCase
    from rocketeval.grader import GradedItem, Grader, Items, ResponseGrade
    from rocketeval.records import Query, Turn

ANSWERS = ".rocketeval/answers.jsonl"
BASELINE = ".rocketeval/baseline.json"
CASES = "rocketeval_cases"
SHOWN = 300
"""Characters of a response in a failure."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and settings of the plugin."""
    group = parser.getgroup("rocketeval", "LLM outputs graded by a judge")
    group.addoption(
        "--rocketeval-offline",
        action="store_true",
        help="Use recorded answers only; an answer that is missing fails its test.",
    )
    group.addoption(
        "--rocketeval-update-baseline",
        action="store_true",
        help="Accept the present scores as the baseline of `assert_not_worse`.",
    )
    group.addoption("--rocketeval-judge", metavar="MODEL", help="Model name of the judge.")
    group.addoption("--rocketeval-base-url", metavar="URL", help="URL of the judge's server.")
    parser.addini("rocketeval_judge", "Model name of the judge.")
    parser.addini("rocketeval_base_url", "URL of the judge's server.")
    parser.addini("rocketeval_answers", "File of judged answers.", default=ANSWERS)
    parser.addini("rocketeval_baseline", "File of baselines.", default=BASELINE)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and start counting."""
    config.addinivalue_line(
        "markers", f"{CASES}(path): run the test for each case in a file, as the argument `case`."
    )
    config.stash[COUNTS] = JudgeCounts()


@dataclass
class JudgeCounts:
    """What a test session asked and reused."""

    graded: int = 0
    reused: int = 0
    asked: int = 0
    requests: int = 0
    judge: str = ""
    notes: list[str] = field(default_factory=list)

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the counts of another process."""
        for name in ("graded", "reused", "asked", "requests"):
            setattr(self, name, getattr(self, name) + other[name])
        self.judge = self.judge or other["judge"]
        self.notes += other["notes"]


COUNTS = pytest.StashKey[JudgeCounts]()


@pytest.fixture(scope="session")
def rocketeval_judge(pytestconfig: pytest.Config) -> str | Judge | Engine:
    """The judge of all tests; override it in conftest.py to return a `rocketeval.Judge`."""
    from rocketeval.api import Judge

    model = _setting(pytestconfig, "judge")
    if not model:
        pytest.fail(
            "rocketeval: no judge is set. Set `rocketeval_judge` in the pytest settings (or "
            "--rocketeval-judge, or $ROCKETEVAL_JUDGE), or override the fixture rocketeval_judge.",
            pytrace=False,
        )
    return Judge(model, _setting(pytestconfig, "base_url") or None)


@pytest.fixture(scope="session")
def rocketeval_grader(
    rocketeval_judge: str | Judge | Engine, pytestconfig: pytest.Config
) -> Iterator[Grader]:
    """The grader of all tests, with the recorded answers."""
    from rocketeval.grader import Grader

    offline = pytestconfig.getoption("rocketeval_offline") or _flag("ROCKETEVAL_OFFLINE")
    answers = pytestconfig.rootpath / pytestconfig.getini("rocketeval_answers")
    with Grader(rocketeval_judge, answers=answers, offline=offline) as grader:
        yield grader
        counts = pytestconfig.stash[COUNTS]
        counts.reused, counts.asked = grader.reused, grader.asked
        counts.requests = grader.spent.requests


@pytest.fixture
def rocketeval(request: pytest.FixtureRequest, rocketeval_grader: Grader) -> RocketEvalChecks:
    """Grade responses in a test: `check`, `score` and `assert_not_worse`."""
    return RocketEvalChecks(rocketeval_grader, request)


class RocketEvalChecks:
    """What a test uses to grade responses."""

    def __init__(self, grader: Grader, request: pytest.FixtureRequest) -> None:
        self._grader = grader
        self._config = request.config
        self._test = request.node.nodeid
        self._graded: dict[str, ResponseGrade] = {}

    def check(
        self,
        query: str | Query | ChecklistCase,
        response: str,
        checklist: Items | None = None,
        *,
        min_score: float | None = None,
        min_item: float | None = None,
        missing: str = "fail",
        **more: Any,
    ) -> ResponseGrade:
        """Fail the test unless the response scores at least `min_score`, by default 0.8.

        With `min_item`, every item that applies must reach that value; for a penalty, one minus its
        answer must reach it. An unanswered item fails the test unless `missing` is "skip". Further
        arguments are those of `score`.
        """
        __tracebackhide__ = True
        graded = self.score(query, response, checklist, **more)
        least = min_score if min_score is not None else getattr(query, "min_score", None)
        least = 0.8 if least is None else least
        problem = _problem(graded, least, min_item, missing)
        if problem:
            raise AssertionError(f"{problem}\n{describe(graded, min_item)}")
        return graded

    def score(
        self,
        query: str | Query | ChecklistCase,
        response: str,
        checklist: Items | None = None,
        *,
        id: str | None = None,
        history: Sequence[Turn | Mapping[str, object]] = (),
        reference: str | None = None,
        system: str | None = None,
        context: str | Sequence[str] | None = None,
    ) -> ResponseGrade:
        """Return the graded response, without a limit; `id` names it in a baseline.

        A query without an id is named by its text.
        """
        from rocketeval.errors import RocketEvalError
        from rocketeval.gate.cases import ChecklistCase
        from rocketeval.grader import ResponseToGrade

        __tracebackhide__ = True
        if isinstance(query, ChecklistCase):
            checklist = query.checklist if checklist is None else checklist
            id, query = id or query.id, query.record
        if checklist is None:
            pytest.fail("rocketeval: no checklist is given.", pytrace=True)
        name = id or (query if isinstance(query, str) else query.id)
        given = ResponseToGrade(
            query, response, checklist, history, reference, system, context, about=self._test
        )
        try:
            graded = self._grader.submit(given).result()
        except RocketEvalError as error:
            pytest.fail(f"rocketeval: {error}", pytrace=True)
        if name in self._graded:
            pytest.fail(f"rocketeval: two responses are named {name!r}; give each its own id.")
        self._graded[name] = graded
        counts = self._config.stash[COUNTS]
        counts.graded += 1
        counts.judge = counts.judge or (graded.judge.model if graded.judge else "")
        return graded

    def assert_not_worse(
        self,
        baseline: str | None = None,
        *,
        max_drop: float | None = None,
        level: float = 0.95,
    ) -> None:
        """Fail the test if its responses score significantly worse than in the baseline.

        All responses that this test scored are compared, pair by pair. With `max_drop`, a larger
        fall of the mean fails the test, even if it is not significant. `baseline` is a file
        relative to the root of the project.
        """
        from rocketeval.compare.pair import ComparisonVerdict
        from rocketeval.errors import RocketEvalError
        from rocketeval.gate.baseline import (
            MOST_SHOWN,
            BaselineFile,
            below,
            compare_scores,
            scored_test,
        )
        from rocketeval.stats.bootstrap import least_queries
        from rocketeval.text import count_of, join_words, printable

        __tracebackhide__ = True
        if not self._graded:
            pytest.fail("rocketeval: this test has scored no response.", pytrace=True)
        file = BaselineFile(
            self._config.rootpath / (baseline or self._config.getini("rocketeval_baseline"))
        )
        notes = self._config.stash[COUNTS].notes
        try:
            now = scored_test(self._graded)
            if self._config.getoption("rocketeval_update_baseline"):
                file.write(self._test, now)
                missing = sum(one.score is None for one in now.cases.values())
                without = f", {missing} of them without a score" if missing else ""
                notes.append(f"baseline of {self._test}: {len(now.cases)} cases accepted{without}")
                return
            found = compare_scores(now, file.read(self._test), level=level)
        except RocketEvalError as error:
            pytest.fail(f"rocketeval: {error}", pytrace=True)
        notes.append(f"{self._test}: {found.comparison.verdict}, {found.summary}")
        notes.extend(found.left_out)
        if found.comparison.verdict is ComparisonVerdict.WORSE:
            raise AssertionError(f"significantly worse than the baseline: {found.describe()}")
        if max_drop is not None and below(found.comparison.effect.value, -max_drop):
            raise AssertionError(f"the mean fell by more than {max_drop:g}: {found.describe()}")
        if found.lost:
            warnings.warn(
                f"{count_of(len(found.lost), 'case has', 'cases have')} a score in the baseline "
                f"and none now, so the comparison leaves them out: "
                f"{printable(join_words(found.lost, most=MOST_SHOWN))}.",
                pytest.PytestWarning,
                stacklevel=2,
            )
        fewest = least_queries(level)
        if found.comparison.queries < fewest and max_drop is None:
            warnings.warn(
                f"{found.comparison.queries} cases cannot show a significant difference: score at "
                f"least {fewest}, or give max_drop.",
                pytest.PytestWarning,
                stacklevel=2,
            )


def describe(graded: ResponseGrade, min_item: float | None = None) -> str:
    """Return the items of a graded response for people, the failed ones first.

    With `min_item`, an item below it is a failed one. Answers are shown as the judge gave them.
    """
    from rocketeval.text import printable

    lines = [
        f"  query:    {_short(graded.query.text)}",
        f"  response: {_short(graded.response.text)}",
        f"  judge:    {graded.judged_by}",
    ]
    outcomes = [
        (item.shown_answer, " ".join(item.title.split()), _reaches(item, min_item))
        for item in graded.items
    ]
    lines += [f"  FAILED {answer}  {title}" for answer, title, ok in outcomes if ok is False]
    lines += [f"  UNANSWERED ({answer})  {title}" for answer, title, ok in outcomes if ok is None]
    lines += [f"  passed {answer}  {title}" for answer, title, ok in outcomes if ok]
    return "\n".join(map(printable, lines))


def _reaches(item: GradedItem, min_item: float | None) -> bool | None:
    """Return whether an item passes, with `min_item` as its limit; None if it is unanswered."""
    from rocketeval.gate.baseline import below

    if min_item is None or item.value is None or item.not_applicable:
        return item.passed
    return not below(item.value, min_item)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a marked test once per case of its file."""
    marker = metafunc.definition.get_closest_marker(CASES)
    if marker is None or "case" not in metafunc.fixturenames:
        return
    from rocketeval.errors import RocketEvalError
    from rocketeval.gate.cases import odd_fields, read_cases

    path = marker.args[0] if marker.args else marker.kwargs.get("path")
    if path is None:
        raise pytest.UsageError(f'{metafunc.definition.nodeid}: write @pytest.mark.{CASES}("FILE")')
    try:
        cases = read_cases(Path(metafunc.definition.path).parent / path)
    except RocketEvalError as error:
        raise pytest.UsageError(str(error)) from None
    for sentence in odd_fields(cases):
        metafunc.definition.warn(pytest.PytestWarning(f"{path}: {sentence}"))
    metafunc.parametrize("case", cases, ids=[case.id for case in cases])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts of an xdist worker to its controller."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["rocketeval"] = vars(session.config.stash[COUNTS])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Add the counts of an xdist worker."""
    found = getattr(node, "workeroutput", {}).get("rocketeval")
    if found:
        node.config.stash[COUNTS].add(found)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what the judge was asked, and the comparisons with baselines."""
    counts = config.stash[COUNTS]
    if not counts.graded:
        return
    from rocketeval.text import printable

    terminalreporter.write_sep("-", "rocketeval")
    terminalreporter.write_line(
        f"{counts.graded} responses graded by {counts.judge or 'code checks'}: {counts.asked} "
        f"items asked in {counts.requests} requests, {counts.reused} answers reused"
    )
    for note in counts.notes:
        terminalreporter.write_line(printable(note))


def _problem(
    graded: ResponseGrade, least: float, min_item: float | None, missing: str
) -> str | None:
    """Return why a response fails; None if it passes."""
    from rocketeval.gate.baseline import below

    if graded.unanswered and missing != "skip":
        return f"{len(graded.unanswered)} of {len(graded.items)} items have no answer"
    if graded.score is None:
        return "no item has an answer"
    if below(graded.score, least):
        wide = (
            graded.low is not None and graded.high is not None and graded.high - graded.low > 0.01
        )
        bounds = f" ({graded.low:.2f} to {graded.high:.2f})" if wide else ""
        return f"score {graded.score:.2f}{bounds} is below {least:.2f}"
    if min_item is not None:
        failed = sum(_reaches(item, min_item) is False for item in graded.items)
        if failed:
            return f"{failed} of {len(graded.items)} items are below {min_item:.2f}"
    return None


def _short(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= SHOWN else f"{joined[:SHOWN]}..."


def _setting(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"rocketeval_{name}") or os.environ.get(f"ROCKETEVAL_{name.upper()}")
    return str(given or config.getini(f"rocketeval_{name}") or "")


def _flag(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")
