"""Words that this project does not use where people read, and what to write instead.

    python tests/language/terms.py [PATH...]    # prints each use; exit code 1 if there is one

Without a path, everything that people read is checked: Markdown, the page's TypeScript, and in
Python the docstrings, comments and strings (of tests: docstrings, comments and names). What a judge
or an author LLM reads, such as prompt templates, is not checked: other words would be other
judgments.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "studies", "perf", "docs", "web/src")
SUFFIXES = {".py", ".md", ".ts", ".sh"}
SKIPPED = (
    "tests/language/",
    "tests/reference/frozen/",
    "studies/runs/",
    "docs/reference/python.md",  # from docstrings, which are checked where they are written
)


@dataclass(frozen=True)
class Term:
    """A banned word or phrase, as a regular expression, and its replacement."""

    pattern: str
    instead: str
    example: str
    """A text that the pattern must find."""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern in any case and across line breaks."""
        return re.compile(self.pattern.replace(" ", r"\s+"), re.IGNORECASE)


_COUNTED = (
    r"(?:a|an|one|two|\d+) "
    r"(?:rows?|lines?|tokens?|calls?|requests?|files?|bytes?|words?|items?|prompts?)"
)
TERMS = (
    Term(
        r"\b(?:told|tell|tells|telling) (?:\w+ )?apart\b", "tied, distinguish", "are not told apart"
    ),
    Term(r"\btold\b", "said, reported, shown", "as far as it is told"),
    Term(r"\bbeside\b", "next to, compared with, with", "beside the figure"),
    Term(r"\bstands?\b(?! for\b| in for\b|ard|alone|-)", "is, appears", "where it stands"),
    Term(rf"\b{_COUNTED} (?:a|an) \w+", "per", "one row a response"),
    Term(r"\basked alone\b", "asked independently", "each item asked alone"),
    Term(r"\btaken over\b", "reused", "was taken over from the cache"),
    Term(r"\banother voter\b", "human-human agreement", "another voter 67%"),
    Term(r"\b(?:held|holds?|holding) (?:\w+ ){0,4}against\b", "compared with", "held against"),
    Term(r"\b(?:knows?|reads?) nothing\b", "baseline", "rules that know nothing"),
    Term(r"\b(?:is|are) gone\b", "unreachable, closed, missing", "the judge is gone"),
    Term(r"\bceiling\b", "human-human agreement, upper bound", "the ceiling"),
    Term(r"\b(?:whoever|whosever)\b", "name the actor", "whoever answers"),
    Term(r"\b(?:by|of) (?:mere )?luck\b", "by chance", "by luck alone"),
    Term(
        r"\bas far as (?:can be|it is|they are|is) \w+\b", "say what is known", "as far as is known"
    ),
    Term(r"\bclearly ahead\b", "significantly better", "clearly ahead of others"),
    Term(r"\binseparable\b", "tied", "inseparable candidates"),
    Term(r"\bsomething other\b", "something else", "something other"),
    Term(r"\bmend(?:s|ed|ing)?\b", "fix", "what was mended"),
    Term(r"\banew\b", "again", "made anew"),
    Term(r"\bmust be had\b", "is required", "a key must be had"),
    Term(r"\d %(?![\w(<{*.\d])", "no space before the percent sign", "75 % of the votes"),
    Term(r"\bso many quer(?:y|ies)\b", "12 queries", "so many queries tell"),
    Term(r"\bpaid for once\b", "reused from the ledger or cache", "it is paid for once"),
    Term(r"\bpurse\b", "budget", "the purse"),
    Term(r"\b(?:judgement|licence|catalogue)s?\b", "American spelling", "a judgement"),
)
ALLOWED: dict[str, tuple[str, ...]] = {
    # Options and JSON keys of earlier versions, and keys of recorded files.
    "CHANGELOG.md": ("audit --beside RUN", "instead of `told`", "findings `judgement`"),
    "src/rocketeval/cli/audit.py": ("--beside",),
    "studies/authoring/real_author.py": ("told", "two sentences"),
    "studies/authoring/show_authoring.py": ("told",),
    "studies/papers/uncertainty.py": ("told",),
    # Fields of the report's data.
    "src/rocketeval/report/model.py": ("ceiling",),
    "src/rocketeval/report/trust.py": ("ceiling",),
    "web/src/contract.ts": ("beside", "ceiling"),
    "docs/howto/methods.md": ("comparison.advice.told",),
    # Recorded output.
    "docs/howto/distributed.md": ("one request a response, 64 in flight",),
    "docs/howto/scale.md": ("8 items a response, scorer mean",),
    # Read by an author LLM: other words would be another request.
    "src/rocketeval/checklists/instance.py": ("What you wrote stands between the markers",),
    "src/rocketeval/lint/static.py": ("asked alone",),
    "src/rocketeval/lint/wording_checks.py": ("asked alone",),
    "src/rocketeval/prompts/parse.py": ("stands where",),
    "src/rocketeval/prompts/read_perspectives.py": ("stands",),
    "studies/mad_eval/planted_benchmark.py": ("Every step stands on the one before it.",),
}
"""Uses that are right, by file: some of the text around them, as it is written."""


@dataclass(frozen=True)
class Use:
    """One use of a banned term."""

    path: str
    line: int
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r}: write {self.instead}"


@cache
def prose(path: Path) -> tuple[tuple[int, str], ...]:
    """Return what people read in a file, with the line on which each piece starts."""
    return tuple(_prose(path))


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, text
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    tree = ast.parse(text)
    is_test = (ROOT / "tests") in path.parents
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not is_test:
            yield node.lineno, node.value
        if is_test and isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            name = "" if isinstance(node, ast.Module) else node.name.replace("_", " ")
            line = getattr(node, "lineno", 1)
            if name.startswith("test "):
                yield line, name
            yield line, ast.get_docstring(node) or ""


def uses_in(path: Path) -> Iterator[Use]:
    """Yield the banned terms of one file."""
    name = path.relative_to(ROOT).as_posix() if ROOT in path.parents else path.as_posix()
    allowed = ALLOWED.get(name, ())
    pieces = prose(path)
    # Most terms are in no piece of a file: one search per term instead of one per piece.
    whole = "\n\0\n".join(text for _, text in pieces)
    used = [term for term in TERMS if term.regex.search(whole)]
    for line, text in pieces:
        for term in used:
            for match in term.regex.finditer(text):
                around = " ".join(text[max(0, match.start() - 60) : match.end() + 60].split())
                if not any(each in around for each in allowed):
                    at = line + text.count("\n", 0, match.start())
                    yield Use(name, at, " ".join(match.group().split()), term.instead)


def checked_files() -> list[Path]:
    """Return every file that people read."""
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    found = [path for path in [*ROOT.glob("*.md"), *inside] if path.suffix in SUFFIXES]
    return sorted(
        path
        for path in found
        if path.is_file()
        and not path.relative_to(ROOT).as_posix().startswith(SKIPPED)
        and "node_modules" not in path.parts
    )


def main(names: list[str]) -> int:
    """Print the uses in these files and folders; return 1 if there is one."""
    paths: list[Path] = []
    for name in names:
        given = Path(name).resolve()
        paths += [given] if given.is_file() else [p for p in checked_files() if given in p.parents]
    uses = [use for path in (paths if names else checked_files()) for use in uses_in(path)]
    for use in uses:
        sys.stdout.write(f"{use}\n")
    return int(bool(uses))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
