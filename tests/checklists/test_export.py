"""Exported checklists never overwrite files of a run or its config."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rocketeval.checklists.export import check_export_path
from rocketeval.config import RunConfig
from rocketeval.errors import ConfigError, ExportError
from support.make import make_config


def naming(folder: Path, setting: str) -> RunConfig:
    """A config that names `mine.yaml` in one of its settings."""
    mine = folder / "mine.yaml"
    changes: dict[str, dict[str, Any]] = {
        "file": {"author": {"kind": "file", "options": {"file": str(mine)}}},
        "dimension": {"author": {"kind": "dimension", "options": {"file": mine}}},
        "step": {"author": {"kind": "dimension", "options": {"templates": {"filter": mine}}}},
        "author": {"author": {"template": mine}},
        "judge": {"judge": {"engine": "scripted", "model": "m", "template": mine}},
        "prices": {"prices": mine},
    }
    return make_config(folder, **changes[setting])


@pytest.mark.parametrize("setting", ["file", "dimension", "step", "author", "judge", "prices"])
def test_files_named_in_the_config_are_never_overwritten(tmp_path: Path, setting: str) -> None:
    """Not through another spelling or a link, and not with --force."""
    config = naming(tmp_path, setting)
    (tmp_path / "mine.yaml").write_text("mine")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.yaml").symlink_to("mine.yaml")
    (tmp_path / "hard.yaml").hardlink_to(tmp_path / "mine.yaml")
    for place in ("mine.yaml", "sub/../mine.yaml", "link.yaml", "hard.yaml"):
        for force in (True, False):
            with pytest.raises(ConfigError, match="must not overwrite") as refused:
                check_export_path(tmp_path / place, force=force, config=config)
            assert "--force" not in str(refused.value)
    check_export_path(tmp_path / "other.yaml", force=False, config=config)


def test_config_is_never_overwritten(tmp_path: Path) -> None:
    """Neither the user's file nor the copy in the run."""
    config, own = make_config(tmp_path), tmp_path / "rocketeval.yaml"
    own.write_text("name: mine")
    with pytest.raises(ConfigError, match="is the config itself"):
        check_export_path(own, force=True, config=config, config_file=own)
    with pytest.raises(ConfigError, match=r"\(run\.yaml\)"):
        check_export_path(config.run_path / "run.yaml", force=True, config=config)


def test_run_files_are_never_overwritten(tmp_path: Path) -> None:
    """Neither of the config's own run nor of another, as with other exports."""
    config, other = make_config(tmp_path), tmp_path / "other"
    other.mkdir()
    for name in ("run.yaml", "manifest.json"):
        (other / name).write_text("{}")
    for run, given in ((config.run_path, config), (other, config), (other, None)):
        with pytest.raises(ExportError, match="inside the run"):
            check_export_path(run / "ranking.csv", force=True, config=given)


def test_unwritable_path_is_found_early(tmp_path: Path) -> None:
    """A file in place of a folder at any depth, or a folder in place of the file."""
    (tmp_path / "file").write_text("")
    for place in ("file/new.yaml", "file/deeper/new.yaml"):
        with pytest.raises(ExportError, match="file is not a folder"):
            check_export_path(tmp_path / place, force=True)
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(ExportError, match="is a folder"):
        check_export_path(tmp_path / "folder.yaml", force=True)
    check_export_path(tmp_path / "new" / "deeper" / "new.yaml", force=False)
    assert not (tmp_path / "new").exists()


def test_folder_without_permission_is_found_early(tmp_path: Path) -> None:
    """Also if it is the first of several to create."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if os.access(closed, os.W_OK):
        pytest.skip("no folder is closed to this user")
    for place in ("new.yaml", "deeper/new.yaml"):
        with pytest.raises(ExportError, match="no permission"):
            check_export_path(closed / place, force=False)
