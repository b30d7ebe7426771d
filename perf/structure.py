"""Layout of the code: modules, folders, lines, importers, cycles, loose dicts.

    python perf/structure.py [--source src/rocketeval] [--list]

Reads the source as text and runs none of it, so it measures any checkout. `tests/test_layout.py`
enforces the limits.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "rocketeval"
LOOSE = ("dict[str, Any]", "Mapping[str, Any]")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One source file."""

    name: str
    path: Path
    tree: ast.Module
    lines: int

    @property
    def folder(self) -> str:
        """Return the dotted name of its folder."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def is_package(self) -> bool:
        """Return whether it is an `__init__.py`."""
        return self.path.name == "__init__.py"


@dataclass(frozen=True)
class Structure:
    """The measured modules and their imports."""

    modules: tuple[Module, ...]
    imports: dict[str, set[str]]
    """Names of the modules that each module imports at load time."""
    all_imports: dict[str, set[str]]
    """The same, including imports inside functions and for type checking."""

    @property
    def lines(self) -> int:
        """Return the lines of all files."""
        return sum(module.lines for module in self.modules)

    @property
    def files(self) -> list[Module]:
        """Return all modules except package `__init__` files."""
        return [module for module in self.modules if not module.is_package]

    @property
    def folders(self) -> Counter[str]:
        """Return the number of modules in each folder."""
        return Counter(module.folder for module in self.files)

    @property
    def lone(self) -> list[tuple[str, str]]:
        """Return modules with a single importer that is in another folder."""
        importers = defaultdict(set)
        for name, found in self.all_imports.items():
            for other in found:
                importers[other].add(name)
        by_name = {module.name: module for module in self.modules}
        return [
            (module.name, importer)
            for module in self.files
            for importer in importers[module.name]
            if len(importers[module.name]) == 1 and by_name[importer].folder != module.folder
        ]

    def cycle(self) -> list[str]:
        """Return modules that import each other at load time; empty if there are none."""
        left = {name: set(found) for name, found in self.imports.items()}
        while ready := [name for name, found in left.items() if not found & left.keys()]:
            for name in ready:
                del left[name]
        return sorted(left)

    def loose_signatures(self) -> list[str]:
        """Return names used by another package that take, return or hold a dict of anything."""
        used = self._used_elsewhere()
        return [
            f"{module.name}.{name}"
            for module in self.modules
            for name, owner, text in _signatures(module.tree)
            if (module.name, owner) in used and any(loose in text for loose in LOOSE)
        ]

    def _used_elsewhere(self) -> set[tuple[str, str]]:
        used = set()
        for module in self.modules:
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
                    ours, theirs = (_top(name) for name in (module.name, node.module or ""))
                    if ours != theirs:
                        used |= {(node.module or "", alias.name) for alias in node.names}
        return used


def measure(source: Path) -> Structure:
    """Return the structure of the package in the folder `source`."""
    modules = tuple(_module(path, source) for path in sorted(source.rglob("*.py")))
    names = {module.name for module in modules}
    loaded = {module.name: _imports(module, names, loading=True) for module in modules}
    every = {module.name: _imports(module, names, loading=False) for module in modules}
    return Structure(modules, loaded, every)


def _module(path: Path, source: Path) -> Module:
    parts = [PACKAGE, *path.relative_to(source).with_suffix("").parts]
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    return Module(name, path, ast.parse(text), len(text.splitlines()))


def _imports(module: Module, names: set[str], *, loading: bool) -> set[str]:
    found = set()
    for node in _statements(module.tree.body) if loading else ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                found.add(inside if inside in names else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return (found & names) - {module.name}


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run at load time, not those in functions or for type checking."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) != "TYPE_CHECKING":
            yield from _statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _statements([*node.body, *node.orelse, *node.finalbody])


def _signatures(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield (name, the top-level name it belongs to, the annotations) of public definitions."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node.name, _annotations(node)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, Function) and not inner.name.startswith("_"):
                    yield f"{node.name}.{inner.name}", node.name, _annotations(inner)
                elif isinstance(inner, ast.AnnAssign):
                    name = ast.unparse(inner.target)
                    yield f"{node.name}.{name}", node.name, ast.unparse(inner.annotation)


def _annotations(node: Function) -> str:
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    found = [each.annotation for each in every if each is not None and each.annotation]
    return " ".join(map(ast.unparse, [*found, *([node.returns] if node.returns else [])]))


def _top(name: str) -> str:
    return ".".join(name.split(".")[:2])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    source = Path(__file__).parents[1] / "src" / PACKAGE
    parser.add_argument("--source", type=Path, default=source)
    parser.add_argument("--list", action="store_true", help="also list the modules")
    given = parser.parse_args()
    found = measure(given.source)
    sizes = sorted(module.lines for module in found.files)
    folder, most = found.folders.most_common(1)[0]
    lone, loose = found.lone, found.loose_signatures()
    written = sum(module.path.read_text().count(each) for module in found.modules for each in LOOSE)
    rows = {
        "modules, without package __init__ files": len(found.files),
        "folders": len(found.folders),
        f"modules in the largest folder ({folder})": most,
        "lines": found.lines,
        "lines of a module, median": sizes[len(sizes) // 2],
        "lines of a module, 90th percentile": sizes[len(sizes) * 9 // 10],
        "lines of the longest module": sizes[-1],
        "modules with one importer, in another folder": len(lone),
        "  as a share": f"{100 * len(lone) / len(found.files):.1f}%",
        "modules in import cycles": len(found.cycle()),
        "loose dicts in total": written,
        "loose dicts in names used by another package": len(loose),
    }
    for name, value in rows.items():
        print(f"{name:<48}{value if isinstance(value, str) else f'{value:,}':>8}")
    if given.list:
        longest = sorted(found.files, key=lambda module: -module.lines)[:10]
        print(*(f"{module.lines:>5} {module.name}" for module in longest), sep="\n")
        print(*(f"lone: {name} <- {importer}" for name, importer in lone), sep="\n")
        print(*(f"loose: {name}" for name in loose), sep="\n")


if __name__ == "__main__":
    main()
