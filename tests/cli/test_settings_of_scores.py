"""Scores and the settings that made them stay together; options that undo a check are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

import rocketeval.cli.run
from rocketeval.config import DistributedConfig, EngineConfig, load_config, parse_config
from rocketeval.engines.base import create_engine
from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.pipeline import Run
from support.in_process import cli


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The config of a finished run of recorded answers."""
    cli(tmp_path, "init", "demo", "--recorded")
    cli(tmp_path, "run", "demo/rocketeval.yaml")
    return tmp_path / "demo" / "rocketeval.yaml"


def set_scorer(config: Path, **settings: object) -> None:
    """Change the scorer in a config."""
    found = yaml.safe_load(config.read_text(encoding="utf-8"))
    found["scorer"] = {**(found.get("scorer") or {}), **settings}
    config.write_text(yaml.safe_dump(found), encoding="utf-8")


@pytest.mark.parametrize("change", [{"scale": [0, 100]}, {"kind": "hard"}])
def test_old_scores_are_not_read_with_new_settings(change: dict[str, object], config: Path) -> None:
    """Verbs that read scores refuse, and scoring again is enough."""
    folder = config.parent.parent
    set_scorer(config, **change)
    for verb in (
        ("run", str(config), "--only", "rank"),
        ("audit", str(config)),
        ("compare", "careful", "solid", str(config)),
    ):
        assert "--only score" in cli(folder, *verb, code=2).stderr
    cli(folder, "run", str(config), "--only", "score")
    cli(folder, "run", str(config), "--only", "rank")


def test_a_run_knows_what_its_scores_were_made_with(config: Path) -> None:
    """Scored again on another scale, it is not compared with a run on the old one."""
    folder, run = config.parent.parent, config.parent / "runs" / "recorded"
    shutil.copytree(run, run.with_name("before"))
    set_scorer(config, scale=[0, 100])
    cli(folder, "run", str(config), "--only", "score")
    frozen = load_config(run)
    assert frozen.scorer.scale == (0.0, 100.0)
    assert frozen.ranking.tie_margin == load_config(config).ranking.tie_margin
    refused = cli(folder, "gate", str(run), str(run.with_name("before")), code=2).stderr
    assert "scores on another scale" in refused


def test_a_config_and_its_run_are_the_same(config: Path) -> None:
    """The margin that a config leaves open is that of its run."""
    run = config.parent / "runs" / "recorded"
    assert "Gate passed" in cli(config.parent, "gate", str(config), str(run)).stdout


def test_a_run_is_shown_although_its_config_changed(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A config that is edited, or removed, while the run lasts costs nobody the result."""
    whole = rocketeval.cli.run.run_with_signals

    def then_removed(run: Run, work: object) -> object:
        found = whole(run, work)  # type: ignore[arg-type]
        config.write_text("scorer: {}\nscorer: {}\n", encoding="utf-8")
        return found

    monkeypatch.setattr(rocketeval.cli.run, "run_with_signals", then_removed)
    assert "Ranking over 12 queries" in cli(config.parent, "run", str(config)).stdout


@pytest.mark.parametrize("value", ["nan", "inf"])
@pytest.mark.parametrize(
    "arguments", [("gate", "a", "b", "--max-drop"), ("compare", "a", "b", "--min-effect")]
)
def test_limits_are_finite(arguments: tuple[str, ...], value: str, tmp_path: Path) -> None:
    """No difference is beyond NaN, so that the check would always pass."""
    assert "is not a finite number" in cli(tmp_path, *arguments, value, code=2).stderr


@pytest.mark.parametrize(
    "verb", [("labels", "next"), ("anchors", "runs/x"), ("cascade", "a", "b"), ("attack",)]
)
def test_seeds(verb: tuple[str, ...], tmp_path: Path) -> None:
    """A negative seed is a mistake of the user."""
    assert "--seed" in cli(tmp_path, *verb, "--seed", "-1", code=2).stderr


@pytest.mark.parametrize(
    "key", ["hf_AbCdEfGhIjKlMnOpQrStUvWx", "AbCdEfGhIjKlMnOp01234567", "abcdef0123456789" * 2]
)
def test_a_key_is_no_name_of_a_variable(key: str) -> None:
    """It would be written into the run; the message does not repeat it."""
    with pytest.raises(ConfigError) as error:
        parse_config({"judge": {"model": "m", "api_key_env": key}})
    assert "looks like a key" in str(error.value)
    assert key not in str(error.value)
    EngineConfig(model="m", api_key_env="MY_TEAM_OPENAI_API_KEY_2026")


def test_a_shared_folder_holds_no_password() -> None:
    """The staging folder is written into the run, too."""
    with pytest.raises(ValidationError, match="password"):
        DistributedConfig(staging="s3://AKIA:secret@bucket/folder")
    assert DistributedConfig(staging="s3://bucket/folder")


def test_a_hidden_secret_is_not_sent() -> None:
    """A run's config has *** for it."""
    with pytest.raises(ConfigError, match="hidden"):
        create_engine(EngineConfig(model="m", extra_body={"api_key": "***"}))


def test_an_address_that_cannot_be_read() -> None:
    """An open bracket is no traceback."""
    with pytest.raises(RocketEvalError, match="is not an http"):
        create_engine(EngineConfig(model="m", base_url="http://[::1/v1"))


@pytest.mark.parametrize("name", ["data .csv", " lead.csv"])
def test_data_files_with_spaces_around_the_name(name: str, tmp_path: Path) -> None:
    """The run's name has none."""
    (tmp_path / name).write_text("question,output,model\nQ,x,a\n", encoding="utf-8")
    arguments = ("--judge", "m", "--checklist", "general", "--dry-run")
    assert "1 response" in cli(tmp_path, "run", name, *arguments).stdout
