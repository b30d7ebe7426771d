"""The notebook runs from top to bottom, in a running event loop, with the scripted engine."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import rocketeval

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebooks" / "rank_prompts.ipynb"


def right(prefix: str, item: str) -> float:
    """Answer like a judge that knows a few facts."""
    return 0.1 if any(word in prefix for word in ("not sure", "About", "Purple", "5.")) else 0.8


async def test_notebook_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every cell runs, and each last expression that is shown has a display."""
    real = rocketeval.Judge
    scripted = rocketeval.ScriptedEngine(right)
    monkeypatch.setattr(rocketeval, "Judge", lambda *_, **__: real(engine=scripted))
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    space: dict[str, Any] = {"__name__": "__main__"}
    shown = [await run_cell("".join(cell["source"]), space) for cell in cells if is_code(cell)]
    result = space["result"]
    assert "full" in result._repr_html_()
    assert [each.candidate for each in result.ranking][-1] == "vague"
    assert any("<iframe" in each._repr_html_() for each in shown if hasattr(each, "_repr_html_"))
    assert shown[-1] == pytest.approx(0.1)
    assert not (tmp_path / "runs").exists()


def is_code(cell: dict[str, Any]) -> bool:
    """Return whether a cell is code; the stored notebook has no outputs."""
    assert not cell.get("outputs")
    return cell["cell_type"] == "code"


async def run_cell(source: str, space: dict[str, Any]) -> Any:
    """Run a cell like a notebook: `await` at the top level, and the last expression's value."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    await finished(eval(compile(tree, "cell", "exec", flags=flags), space))
    if not isinstance(last, ast.Expr):
        return None
    return await finished(eval(compile(ast.Expression(last.value), "cell", "eval", flags), space))


async def finished(value: Any) -> Any:
    """Await a value if it is awaitable."""
    return await value if inspect.isawaitable(value) else value
