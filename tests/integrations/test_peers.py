"""Scorers for other frameworks, run by the installed framework with a judge of known answers."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from integrations.peers import BAD, EXPECTED, GOOD, ITEMS, PEERS, QUERY
from integrations.word_judge import MODEL, serving

from rocketeval import ScriptedEngine
from rocketeval.errors import ConfigError
from rocketeval.integrations.promptfoo import get_assert
from rocketeval.integrations.shared import asked_in, checklist_for, open_grader
from rocketeval.records import Checklist, Turn

STUDY = Path(__file__).parents[2] / "studies" / "integrations" / "peers.py"


@pytest.mark.parametrize("name", [name for name, (package, _) in PEERS.items() if package])
def test_framework_reports_the_score(name: str) -> None:
    """The framework itself runs the scorer, and reports the score that the judge's rules imply."""
    package = PEERS[name][0]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed; studies/integrations/peers.py runs it elsewhere")
    command = [sys.executable, str(STUDY), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "again: 0 HTTP requests" in done.stdout


def test_promptfoo_assertion_names_the_items() -> None:
    """The assertion returns pass, score, reason and one component per item."""
    with serving() as server:
        config = {"judge": MODEL, "base_url": server.base_url}
        prompt = {"raw": QUERY, "label": "p"}
        context = {"prompt": prompt, "vars": {"checklist": ITEMS}, "config": config}
        good, bad = get_assert(GOOD, context), get_assert(BAD, context)
        down = get_assert(GOOD, {**context, "config": {**config, "judge": "nobody"}})
    assert (good["pass"], bad["pass"], down["pass"]) == (True, False, False)
    assert "nobody" in down["reason"]
    assert good["score"] == pytest.approx(EXPECTED[GOOD], abs=0.02)
    assert "failed (0.0" in bad["reason"]
    assert [part["pass"] for part in bad["componentResults"]] == [False, False]


def test_promptfoo_assertion_fails_without_a_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing judge fails the test case with what to do, instead of an exception."""
    monkeypatch.delenv("ROCKETEVAL_JUDGE", raising=False)
    found = get_assert(GOOD, {"prompt": QUERY, "vars": {"checklist": ITEMS}})
    assert found["pass"] is False
    assert "ROCKETEVAL_JUDGE" in found["reason"]


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the judge; equal settings share a grader."""
    monkeypatch.setenv("ROCKETEVAL_JUDGE", "some-model")
    monkeypatch.setenv("ROCKETEVAL_BASE_URL", "http://127.0.0.1:9/v1")
    grader = open_grader()
    assert grader is open_grader("some-model")
    assert grader.judge.settings["base_url"] == "http://127.0.0.1:9/v1"


def test_checklist_of_a_case_goes_first() -> None:
    """A case's own items replace the default; a text has one item per line."""
    assert checklist_for(["a?"], ["b?"]) == ["a?"]
    assert checklist_for(None, "a?\n\n b?") == ["a?", "b?"]
    assert len(checklist_for(None, None)) == 7
    with pytest.raises(ConfigError):
        checklist_for({"a": 1}, None)
    own = Checklist("query", ("a?",))
    assert checklist_for(own, None) is own
    assert checklist_for(" ", ["b?"]) == ["b?"]


@pytest.mark.parametrize(("own", "default"), [([], ["b?"]), ([], None), (None, []), (None, "\n")])
def test_an_empty_checklist_is_refused(own: object, default: Any) -> None:
    """An empty list does not become the general items."""
    with pytest.raises(ConfigError, match="no items"):
        checklist_for(own, default)


def test_a_checklist_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of a file is not an item; a file without items for all queries is refused."""
    monkeypatch.chdir(tmp_path)
    Path("items.yaml").write_text("for_all: {items: [Is it right?, Is it short?]}")
    Path("items.json").write_text('["Is it right?"]')
    Path("by_id.yaml").write_text("queries: {q1: {items: [Is it right?]}}")
    for given, count in (("items.yaml", 2), ("file://items.yaml", 2), ("items.json", 1)):
        found = checklist_for(None, given)
        assert isinstance(found, Checklist)
        assert len(found.items) == count
    with pytest.raises(ConfigError, match=r"lost\.yaml"):
        checklist_for(None, "lost.yaml")
    with pytest.raises(ConfigError, match=r"by_id\.yaml has checklists by query id"):
        checklist_for(None, "by_id.yaml")
    with pytest.raises(ConfigError, match="path of a file"):
        checklist_for("items.yaml", None)


def test_an_item_that_ends_like_a_file_is_an_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence about a file is judged; a relative path with spaces needs `file://`."""
    monkeypatch.chdir(tmp_path)
    for item in ("The answer mentions config.yaml", "Is the answer saved as\ta.csv"):
        assert checklist_for(item, None) == [item]
        assert checklist_for(None, item) == [item]
    folder = tmp_path / "my items"
    folder.mkdir()
    (folder / "a.json").write_text('["Is it right?"]')
    for path in ("file://my items/a.json", f"{folder}/a.json"):
        found = checklist_for(None, path)
        assert isinstance(found, Checklist)
        assert found.items == ("Is it right?",)
        with pytest.raises(ConfigError, match="path of a file"):
            checklist_for(path, None)


def fine(config: dict[str, object], **context: object) -> dict[str, Any]:
    """Return what the assertion returns with a judge that likes everything."""
    judge = ScriptedEngine(lambda prefix, item: 0.9)
    given = {"prompt": QUERY, "vars": {}, **context, "config": {"judge": judge, **config}}
    return get_assert(GOOD, given)


def test_promptfoo_settings(tmp_path: Path) -> None:
    """A checklist file is read, the general items are named, and mistakes are messages."""
    path = tmp_path / "items.yaml"
    path.write_text("for_all: {items: [Is it right?]}")
    found = fine({"checklist": str(path)})
    assert [part["reason"] for part in found["componentResults"]] == ["0.90: Is it right?"]
    assert "general items" not in found["reason"]
    assert "general items" in fine({})["reason"]
    assert fine({"threshold": "0.95", "checklist": ["a?"]})["pass"] is False
    for config, context, word in (
        ({"threshold": "80%"}, {}, "'80%'"),
        ({"threshold": 80}, {}, "threshold"),
        ({"checklist": str(tmp_path / "lost.yaml")}, {}, "lost.yaml"),
        ({}, {"vars": {"checklist": []}}, "no items"),
        ({}, {"prompt": None}, "no prompt"),
        ({}, {"prompt": {"label": "p"}}, "no prompt"),
    ):
        wrong = fine(config, **context)
        assert wrong["pass"] is False
        assert word in wrong["reason"]


def test_promptfoo_outputs_that_are_no_text_are_judged_as_json() -> None:
    """The judge sees an object as the importer of promptfoo's results writes it."""
    shown: list[str] = []
    judge = ScriptedEngine(lambda prefix, item: bool(shown.append(prefix)) or 0.9)
    context = {"prompt": QUERY, "vars": {"checklist": ["a?"]}, "config": {"judge": judge}}
    assert get_assert({"city": "Zürich", "n": [1, None]}, context)["pass"]
    assert '{"city":"Zürich","n":[1,null]}' in shown[0]
    assert "is missing" in get_assert(None, context)["reason"]


def test_messages_of_several_parts() -> None:
    """The text parts of a message are its text; a prompt without a question is refused."""
    parts = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "you"}]
    assert asked_in([{"role": "user", "content": parts}]) == ("Hi\nyou", ())
    with pytest.raises(ConfigError, match="no user message"):
        asked_in([{"role": "system", "content": "Be brief."}])


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is 1 + 1?"},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "And 2 + 2?"},
]
BEFORE = tuple(Turn(each["role"], each["content"]) for each in CHAT[:3])


def test_promptfoo_chat_prompts_are_conversations() -> None:
    """The judge sees the last question and the turns before it, not JSON."""
    shown: list[str] = []
    judge = ScriptedEngine(lambda prefix, item: bool(shown.append(prefix)) or 0.9)
    get_assert("4", {"prompt": json.dumps(CHAT), "vars": {"checklist": ["a?"]},
                     "config": {"judge": judge}})  # fmt: skip
    assert "And 2 + 2?" in shown[0]
    assert "What is 1 + 1?" in shown[0]
    assert '"role"' not in shown[0]
    # A prompt of a system message only has no question apart from it: it is graded as a text.
    alone = get_assert("4", {"prompt": json.dumps(CHAT[:1]), "vars": {"checklist": ["a?"]},
                             "config": {"judge": judge}})  # fmt: skip
    assert alone["pass"]
    assert "Be brief." in shown[1]


@pytest.mark.parametrize("name", ["messages", "input", "prompt", "conversation"])
def test_mlflow_chat_inputs_are_conversations(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are read whatever their field; MLflow itself runs in the study."""
    entities, scorers = ModuleType("mlflow.entities"), ModuleType("mlflow.genai.scorers")
    entities.AssessmentSource = entities.Feedback = object  # type: ignore[attr-defined]
    scorers.Scorer = object  # type: ignore[attr-defined]
    stubs = (ModuleType("mlflow"), ModuleType("mlflow.genai"), entities, scorers)
    for module in stubs:
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "rocketeval.integrations.mlflow", raising=False)
    query_of = import_module("rocketeval.integrations.mlflow").query_of
    monkeypatch.delitem(sys.modules, "rocketeval.integrations.mlflow")
    assert query_of({name: CHAT}) == ("And 2 + 2?", BEFORE)
    assert query_of({"question": ["a", "b"]}) == ("['a', 'b']", ())


def test_inspect_samples_are_read_as_in_its_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample's query, earlier turns, choices and targets; Inspect itself runs in the study."""
    scorer, solver = ModuleType("inspect_ai.scorer"), ModuleType("inspect_ai.solver")
    for name in ("Score", "Scorer", "Target"):
        setattr(scorer, name, object)
    scorer.mean = scorer.stderr = lambda: None  # type: ignore[attr-defined]
    scorer.scorer = lambda metrics: lambda function: function  # type: ignore[attr-defined]
    solver.TaskState = object  # type: ignore[attr-defined]
    stubs = {
        "inspect_ai": ModuleType("inspect_ai"),
        scorer.__name__: scorer,
        solver.__name__: solver,
    }
    for name, module in stubs.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "rocketeval.integrations.inspect_ai", raising=False)
    asked = import_module("rocketeval.integrations.inspect_ai")._asked
    monkeypatch.delitem(sys.modules, "rocketeval.integrations.inspect_ai")
    messages = [
        SimpleNamespace(model_dump=lambda exclude_none, given=given: given) for given in CHAT
    ]
    assert asked(SimpleNamespace(input=messages, choices=[])) == ("And 2 + 2?", BEFORE)
    choices = [SimpleNamespace(value="2"), SimpleNamespace(value="3")]
    found = asked(SimpleNamespace(input="What is 1 + 1?", choices=choices))
    assert found == ("What is 1 + 1?\n\nA) 2\nB) 3", ())
