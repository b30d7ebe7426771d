"""Help pages of all verbs, and a check that every command named anywhere is valid."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rocketeval.cli.help import VerbCommand
from rocketeval.cli.main import GROUPS, RENAMED, VERBS, group
from rocketeval.cli.stages import STAGES
from rocketeval.engines.base import ENGINES
from rocketeval.engines.transports.registry import TRANSPORTS
from rocketeval.errors import RocketEvalError
from rocketeval.explain.candidate import NEIGHBOURS
from rocketeval.lint.findings import KINDS
from support.in_process import cli

ROOT = Path(__file__).parents[2]
PROGRAM = click.Context(group, info_name="rocketeval")


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with the words that call it."""
    for verb in VERBS:
        command = group.get_command(PROGRAM, verb)
        assert command is not None
        if isinstance(command, click.Group):
            for name, inner in command.commands.items():
                yield f"{verb} {name}", inner
        else:
            yield verb, command


COMMANDS = dict(commands())


def test_help_groups_every_verb() -> None:
    """Headings are in order, each above its verbs, and the page has at most 45 lines."""
    shown = cli(Path.cwd(), "--help").stdout
    marks = [f"\n{heading}:\n" for heading in GROUPS]
    assert [shown.index(mark) for mark in marks] == sorted(shown.index(mark) for mark in marks)
    assert re.findall(r"^  ([a-z]+)  +[A-Z]", shown, re.MULTILINE) == list(VERBS)
    assert len(shown.splitlines()) <= 45


@pytest.mark.parametrize("words", COMMANDS)
def test_help_of_a_verb(words: str) -> None:
    """Help fits 80 columns and has a summary, examples, and a text for every option."""
    command = COMMANDS[words]
    assert isinstance(command, VerbCommand)
    shown = cli(Path.cwd(), *words.split(), "--help").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert (command.help or "").splitlines()[0].endswith(".")
    assert command.examples
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name


def test_cluster_options_are_listed_with_the_flag() -> None:
    """`plan --help` lists the cluster options only with --cluster."""
    brief = cli(Path.cwd(), "plan", "--help").stdout
    assert "--cluster" in brief
    assert "--restart-minutes" not in brief
    assert "--restart-minutes" in cli(Path.cwd(), "plan", "--cluster", "--help").stdout


def test_help_lists_the_values_of_options() -> None:
    """Help names every engine, transport and kind of finding, and the number of neighbors."""
    doctor, lint = (cli(Path.cwd(), verb, "--help").stdout for verb in ("doctor", "lint"))
    for name in (*ENGINES.names(), *TRANSPORTS):
        assert re.search(rf"\b{name}\b", doctor), name
    for name in KINDS:
        assert re.search(rf"\b{name}\b", lint), name
    assert NEIGHBOURS == 4
    explain = cli(Path.cwd(), "explain", "--help").stdout
    assert "four candidates nearest" in " ".join(explain.split())


@pytest.mark.parametrize("old", RENAMED)
def test_renamed_verb_names_its_replacement(old: str) -> None:
    """The error is one line, with exit code 2 and a valid command."""
    stderr = cli(Path.cwd(), old, "rocketeval.yaml", code=2).stderr
    assert len(stderr.splitlines()) == 1
    assert f"`rocketeval {RENAMED[old]}`" in stderr
    check(RENAMED[old].split())


def test_renamed_option_names_its_replacement() -> None:
    """The error names the new option."""
    for words, command in COMMANDS.items():
        if isinstance(command, VerbCommand):
            for old, new in command.renamed.items():
                stderr = cli(Path.cwd(), *words.split(), old, "x", code=2).stderr
                assert old in stderr
                assert new in stderr


def check(words: list[str]) -> None:
    """Raise unless the words after `rocketeval` are a verb with valid options."""
    if words[0] in ("--help", "--version"):
        return
    command = group.get_command(PROGRAM, words[0])
    assert command is not None, f"no verb {words[0]}"
    rest = words[1:]
    if isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        inner = command.get_command(PROGRAM, rest[0])
        assert inner is not None, f"no verb {words[0]} {rest[0]}"
        command, rest = inner, rest[1:]
    context = click.Context(command, parent=PROGRAM, info_name=words[0])
    try:
        command.make_parser(context).parse_args(list(rest))
    except click.BadOptionUsage as error:
        # Texts may name an option such as `audit --against` without its value.
        if not error.message.endswith("requires an argument."):
            raise
    given = rest[rest.index("--only") + 1] if "--only" in rest else None
    assert given in (None, "STAGE", *STAGES), f"no stage {given}"


@pytest.mark.parametrize(
    "words", ["nope", "run --onyl rank", "run --only audit", "labels advise", "lint --most 3"]
)
def test_check_finds_invalid_commands(words: str) -> None:
    """Unknown verbs, options and stages raise."""
    with pytest.raises((AssertionError, click.UsageError)):
        check(words.split())


_INLINE = re.compile(r"`(?:\$ )?rocketeval ([^`]+)`")
_LINE = re.compile(r"^\s*(?:\$ )?rocketeval ((?:[a-z-]|VERB)[^\n]*)", re.MULTILINE)

_MAKES = re.compile(r'COMMAND: ClassVar\[str\] = "([^"]+)"')


def named_in(text: str) -> Iterator[str]:
    """Yield the words after `rocketeval` in inline code and on separate lines."""
    for pattern in (_INLINE, _LINE):
        yield from (" ".join(found.split()) for found in pattern.findall(text))


def literals(source: str) -> Iterator[str]:
    """Yield every string of a module, with X for each placeholder."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named_commands() -> Iterator[tuple[str, str]]:
    """Yield every command named in documents, messages and pages, with the file."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("studies/**/*.md")]
    for path in pages:
        if path.name == "mistakes.md":
            # That page shows invalid commands on purpose.
            continue
        for named in named_in(path.read_text()):
            yield str(path.relative_to(ROOT)), named
    for folder in ("src", "studies", "perf", "docs"):
        for path in (ROOT / folder).rglob("*.py"):
            source, where = path.read_text(), str(path.relative_to(ROOT))
            for text in literals(source):
                yield from ((where, named) for named in named_in(text))
            # The command that recreates a file of the run.
            yield from ((where, named) for named in _MAKES.findall(source))
    for path in (ROOT / "web" / "src").rglob("*.tsx"):
        for named in re.findall(r"<code>rocketeval ([^<]+)</code>", path.read_text()):
            yield str(path.relative_to(ROOT)), re.sub(r"\{.*?\}", "X", named)


def test_every_named_command_is_valid() -> None:
    """Documents, messages, help, studies and report pages name only valid verbs and options."""
    found = set(named_commands())
    assert len(found) > 150
    wrong = []
    for where, named in sorted(found):
        # Drop comments, other programs in a pipe, and alternatives.
        words = shlex.split(re.split(r" #| \\?\| |\s{3,}| > ", named)[0].replace("'", "\\'"))
        if words[0] in ("VERB", "X") or words[0].startswith("X"):
            continue
        try:
            check(words)
        except (AssertionError, click.UsageError, RocketEvalError) as error:
            wrong.append(f"{where}: rocketeval {named}: {error}")
    assert wrong == []
