"""Where checklists may be written: never in place of a file that the run is made from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rocketeval.config import RunConfig
from rocketeval.errors import ConfigError, ExportError
from rocketeval.stages.export_place import refuse_inside_run


def check_place(
    path: Path, *, force: bool, config: RunConfig | None = None, config_file: Path | None = None
) -> None:
    """Raise ExportError unless checklists can be written to `path`, which is outside of runs.

    The config, and what it names, is refused with a ConfigError, also with `force`.
    """
    if path.suffix not in (".yaml", ".yml", ".csv"):
        raise ExportError(f"{path} ends in neither .yaml nor .csv.", hint="Name it so.")
    if config_file is not None and _is_same(path, config_file):
        raise ConfigError(
            f"{path} is the config itself: checklists must not take its place.",
            hint="Give another path.",
        )
    for setting, own in _named_files(config) if config else ():
        if _is_same(path, own):
            raise ConfigError(
                f"{path} is a file of this run ({setting}): checklists must not take its place.",
                hint="Give another path, and compare the two.",
            )
    refuse_inside_run(path, config.run_path if config else None)
    _check_folder(path)
    if path.is_dir():
        raise ExportError(f"{path} is a folder.", hint="Give the path of a file.")
    # A link that leads nowhere is there, too.
    if os.path.lexists(path) and not force:
        raise ExportError(f"{path} exists already.", hint="Give another path, or --force.")


def _named_files(config: RunConfig) -> Iterator[tuple[str, Path]]:
    """Yield every file that a config names, and the run's own copy of the config."""
    author = config.author
    templates = author.options.get("templates")
    named = {
        "author.options.file": author.options.get("file"),
        "author.template": author.template,
        "judge.template": config.judge.template,
        "evaluator": config.evaluator,
        "prices": config.prices,
        "scorer.fitted": config.scorer.fitted,
        "run.yaml": config.run_path / "run.yaml",
    }
    if isinstance(templates, dict):
        named |= {f"author.options.templates.{step}": own for step, own in templates.items()}
    for setting, own in named.items():
        if isinstance(own, str | Path):
            yield setting, Path(own)


def _is_same(path: Path, own: Path) -> bool:
    """Whether both are one file, also by a link or another spelling."""
    try:
        return path.samefile(own)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(own)


def _check_folder(path: Path) -> None:
    """Raise ExportError unless the folder is there, or can be made, and can be written to."""
    folder = path.absolute().parent
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise ExportError(
            f"{path} cannot be written: {folder} is not a folder.", hint="Give another path."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ExportError(
            f"{path} cannot be written: the folder {folder} is not open to you.",
            hint="Give another path, or change the folder's rights.",
        )
