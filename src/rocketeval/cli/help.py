"""Help pages of verbs: options in sections, examples and exit codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from rocketeval.errors import ConfigError

OWN = "Options"
DATA = "Data files"
RUN = "Which run"
JUDGE = "Judge"
COST = "Cost"
CLUSTER = "For a cluster"
LISTS = "Lists"
OUTPUT = "Output"
SECTIONS = (OWN, DATA, RUN, JUDGE, COST, CLUSTER, LISTS, OUTPUT)
"""Headings of options, in the order of a help page."""

EXIT_CODES = {
    2: "mistake in the command, the config or the input files",
    3: "finished, but some checklists, responses or single items have no result; the same "
    "command retries failed requests",
    4: "the judge or author cannot be used",
    5: "the run directory cannot be used, or an earlier stage is missing",
    6: "--max-cost is reached; a higher limit continues from there",
    130: "interrupted; the same command continues from there",
}
"""Meaning of each exit code, the same for every verb."""
EXAMPLE_COLUMNS = 44
_ARGUMENTS = "rocketeval.arguments"

F = TypeVar("F", bound=Callable[..., Any])


class SectionOption(click.Option):
    """An option listed under a heading; with `shown_with`, only if that flag is given too."""

    def __init__(
        self,
        *args: Any,
        section: str = OWN,
        shown_with: str | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.section = section
        self.shown_with = shown_with

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the bracketed notes: the default, but not the range, which errors state."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


def option(*names: str, section: str = OWN, **attributes: Any) -> Callable[[F], F]:
    """Return a decorator that adds an option under a heading of the help page."""
    return click.option(*names, cls=SectionOption, section=section, **attributes)


def codes(*numbers: int) -> dict[int, str]:
    """Return the meaning of some exit codes."""
    return {number: EXIT_CODES[number] for number in numbers}


class VerbCommand(click.Command):
    """A verb whose help has sections, examples and exit codes."""

    def __init__(
        self,
        *args: Any,
        examples: Sequence[tuple[str, str]] = (),
        exit_codes: Mapping[int, str] | None = None,
        renamed: Mapping[str, str] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.examples = tuple(examples)
        self.exit_codes = dict(exit_codes or {})
        self.renamed = dict(renamed or {})
        """Options of earlier versions and their replacements."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; name the replacement of a renamed option."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name not in self.renamed:
                raise
            raise ConfigError(
                f"{error.option_name} is now {self.renamed[error.option_name]}."
            ) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings, without those that need a flag."""
        given: tuple[str, ...] = ctx.meta.get(_ARGUMENTS, ())
        listed: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        for parameter in self.get_params(ctx):
            flag = getattr(parameter, "shown_with", None)
            if not isinstance(parameter, click.Option) or (flag and flag not in given):
                continue
            record = parameter.get_help_record(ctx)
            if record is not None:
                # `--help` comes from click and has no section.
                listed[getattr(parameter, "section", OUTPUT)].append(record)
        if len(listed[OUTPUT]) == 1:
            # `--help` alone gets no heading.
            listed[OWN] += listed.pop(OUTPUT)
        for name, records in listed.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples, exit codes and the verb's own epilog."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write_dl(self.examples, col_max=EXAMPLE_COLUMNS)
        if self.exit_codes:
            meanings = {0: "done", **self.exit_codes}
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(code), meanings[code]) for code in sorted(meanings)])
        super().format_epilog(ctx, formatter)


def verb(
    name: str | None = None,
    *,
    examples: Sequence[tuple[str, str]] = (),
    exit_codes: Mapping[int, str] | None = None,
    renamed: Mapping[str, str] | None = None,
    epilog: str | None = None,
) -> Callable[[Callable[..., Any]], VerbCommand]:
    """Return a decorator that turns a function into a verb with a help page."""
    return click.command(
        name,
        cls=VerbCommand,
        examples=examples,
        exit_codes=exit_codes,
        renamed=renamed,
        epilog=epilog,
    )
