"""Paths in the config: relative to its folder, and where else they may be."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from rocketeval.config import dump_config, load_config, parse_config


def write(folder: Path, text: str) -> Path:
    """Return the path of a new config file."""
    path = folder / "rocketeval.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_relative_paths_start_from_the_config_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The working directory does not matter; absolute paths and null are unchanged."""
    folder = tmp_path / "study"
    folder.mkdir()
    path = write(
        folder,
        "benchmark: {path: ../data}\n"
        "judge: {model: m, template: grade.txt}\n"
        "author: {template: /elsewhere/author.txt}\n"
        "output: out\n"
        "cache: null\n",
    )
    monkeypatch.chdir(tmp_path)
    config = load_config(path.relative_to(tmp_path))
    assert config.benchmark.path == folder / "../data"
    assert config.judge.template == folder / "grade.txt"
    assert config.author.template == Path("/elsewhere/author.txt")
    assert config.run_path == folder / "out" / "run"
    assert config.cache is None


def test_paths_in_options_start_from_the_config_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that exists only in the current folder is used as before."""
    folder = tmp_path / "study"
    (folder / "runs" / "wrote").mkdir(parents=True)
    (folder / "both.jsonl").touch()
    for name in ("both.jsonl", "here.txt"):
        (tmp_path / name).touch()
    path = write(
        folder,
        "benchmark: {path: data}\n"
        "judge: {model: m, engine: recorded, options: {file: both.jsonl}}\n"
        "method: {kind: analysis, options: {run: runs/wrote}}\n"
        "author:\n"
        "  kind: dimension\n"
        "  options: {file: dialogue, templates: {filter: here.txt, diversify: nowhere.txt}}\n",
    )
    monkeypatch.chdir(tmp_path)
    config = load_config(path.relative_to(tmp_path))
    assert config.judge.options == {"file": str(folder / "both.jsonl")}
    assert config.method.options == {"run": str(folder / "runs" / "wrote")}
    templates = {"filter": "here.txt", "diversify": str(folder / "nowhere.txt")}
    assert config.author.options == {"file": "dialogue", "templates": templates}


def test_local_model_is_found_next_to_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name, which is part of the judge's identity, stays as it was written."""
    folder = tmp_path / "study"
    folder.mkdir()
    path = write(folder, "benchmark: {path: data}\njudge: {engine: llamacpp, model: judge.gguf}\n")
    monkeypatch.chdir(tmp_path)
    assert load_config(path).judge.local_model == Path("judge.gguf")
    (tmp_path / "judge.gguf").touch()
    assert load_config(path).judge.local_model == Path("judge.gguf")
    (folder / "judge.gguf").touch()
    judge = load_config(path).judge
    assert judge.local_model == folder / "judge.gguf"
    assert judge.model == "judge.gguf"
    assert "judge.gguf" in dump_config(load_config(path))
    assert str(folder / "judge.gguf") not in dump_config(load_config(path))
    assert pickle.loads(pickle.dumps(judge)).local_model == folder / "judge.gguf"


def test_files_among_names_are_relative_to_the_config(tmp_path: Path) -> None:
    """Files and folders are resolved; URIs and packaged names are unchanged."""
    path = write(
        tmp_path,
        "benchmark: {path: data}\n"
        "judge: {model: m}\n"
        "author: {kind: file, options: {file: mine.csv, sheet: 1}}\n"
        "distributed: {staging: shared}\n"
        "evolve: {seeds: [presets, own.yaml], optimizer: {model: o, options: {texts: t.jsonl}}}\n",
    )
    config = load_config(path)
    assert config.author.options == {"file": str(tmp_path / "mine.csv"), "sheet": 1}
    assert config.distributed.staging == str(tmp_path / "shared")
    assert config.evolve.seeds == ("presets", str(tmp_path / "own.yaml"))
    assert config.evolve.optimizer is not None
    assert config.evolve.optimizer.options == {"texts": str(tmp_path / "t.jsonl")}
    assert config.cache == tmp_path / "runs/.cache"
    uri = {
        "benchmark": {"path": "data"},
        "judge": {"model": "m"},
        "distributed": {"staging": "s3://bucket/folder"},
    }
    assert parse_config(uri, where=path).distributed.staging == "s3://bucket/folder"
