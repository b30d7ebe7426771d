"""Only a run's result files are public, and no link leads out of its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.store.files import public_file

NAMES = ("run.yaml", "ranking.csv", "scores.parquet", "inputs/queries.jsonl")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "demo"
    for name in (*NAMES, ".lock", "secret.txt", "ledger/part-000001.parquet", "engines/judge/key"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "runs" / "run.yaml").write_text("outside")
    return folder


@pytest.mark.parametrize("name", [*NAMES, "ledger/part-000001.parquet"])
def test_results_are_public(run: Path, name: str) -> None:
    """The result files of a run are public."""
    path = public_file(run, name)
    assert path is not None
    assert path.read_text() == name


@pytest.mark.parametrize(
    "name",
    [
        "secret.txt",
        ".lock",
        "../run.yaml",
        "inputs/../../run.yaml",
        "/etc/passwd",
        "run.yaml/",
        "run.yaml\n",
        "RUN.YAML",
        "inputs",
        "engines/judge/key",
        "ledger/part-٣.parquet",
        "audit.json",
        "",
        "run.yaml\0",
        "..\\run.yaml",
    ],
)
def test_other_files_are_not_public(run: Path, name: str) -> None:
    """Other names, other folders and missing files give nothing."""
    assert public_file(run, name) is None


def test_links_are_not_followed(run: Path) -> None:
    """Neither the file nor a folder on the way may be a link."""
    (run / "audit.json").symlink_to("/etc/passwd")
    (run / "explain.json").symlink_to(run / "run.yaml")
    (run / "inputs" / "responses").symlink_to(run / "ledger")
    assert public_file(run, "audit.json") is None
    assert public_file(run, "explain.json") is None
    assert public_file(run, "inputs/responses/part-000001.parquet") is None


def test_run_folder_may_be_a_link(run: Path, tmp_path: Path) -> None:
    """Users keep runs on other disks: a link to the run is allowed, one inside is not."""
    (tmp_path / "elsewhere").symlink_to(run)
    assert public_file(tmp_path / "elsewhere", "run.yaml") is not None
