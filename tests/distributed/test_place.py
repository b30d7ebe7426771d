"""Settings that a cluster does not support are refused before money is spent."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from loopback import free_port

from rocketeval.cli.stages import on_ray
from rocketeval.config import DistributedConfig, parse_config
from rocketeval.distributed.cluster import check_address, cluster_address
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import ClusterError, ConfigError
from rocketeval.pipeline import Run
from rocketeval.store.manifest import RayFacts
from support.command import cli
from support.make import make_config


def on(tmp_path: Path, **changes: Any) -> Run:
    return Run(make_config(tmp_path, distributed={"cluster": "ray"}, **changes))


def test_ray_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Ray, the error names the package to install."""
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    monkeypatch.setattr("rocketeval.distributed.cluster.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'rocketeval\[ray\]'"):
        on(tmp_path).load()


def test_ray_is_not_imported_without_use() -> None:
    """Neither the command nor a local run imports Ray."""
    code = "import rocketeval.cli.main, rocketeval.pipeline, sys; assert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {
                "max_cost": 5,
                "judge": {
                    "engine": "scripted",
                    "model": "m",
                    "price": {"prompt": 1, "completion": 1},
                },
            },
            "max_cost is not supported on Ray",
        ),
        ({"judge": {"engine": "openai_batch", "model": "m"}}, "'openai_batch' is a queue"),
    ],
)
def test_unsupported_settings_are_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """max_cost and batch engines work on one machine only."""
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match=message):
        on(tmp_path, **changes).load()
    assert not (tmp_path / "runs").exists()


def test_python_engine_is_refused(tmp_path: Path) -> None:
    """An engine object cannot be sent to other machines."""
    pytest.importorskip("ray")
    run = Run(make_config(tmp_path, distributed={"cluster": "ray"}), judge=ScriptedEngine())
    with pytest.raises(ConfigError, match="cannot be sent to a cluster"):
        run.load()


@pytest.mark.filterwarnings("ignore")
def test_unreachable_cluster_is_reported_quickly(tmp_path: Path) -> None:
    """If nothing listens at the address, the command ends at once with a hint."""
    pytest.importorskip("ray")
    port = free_port()
    make_config(tmp_path)
    (tmp_path / "rocketeval.yaml").write_text(
        "benchmark: {path: benchmark}\njudge: {engine: scripted, model: m}\ncache: null\n"
    )
    started = time.monotonic()
    done = cli(tmp_path, "run", "--only", "grade", "--on", f"ray://127.0.0.1:{port}", code=4)
    assert f"No Ray cluster answers at ray://127.0.0.1:{port}" in done.stderr
    assert "ray start --head" in done.stderr
    assert time.monotonic() - started < 120


@pytest.mark.parametrize("place", ["kubernetes", "ray://head", "ray://:1", "head:port"])
def test_invalid_address_is_refused(place: str) -> None:
    """The error lists the valid forms."""
    with pytest.raises(ConfigError, match="is not the address"):
        check_address(place)


def test_ray_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """$RAY_ADDRESS is used if set; otherwise a local cluster is started."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert cluster_address("ray") == "local"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert cluster_address("ray") == "10.0.0.1:6379"


@pytest.mark.parametrize("actors", [[3, 2], [0, 2], 0])
def test_invalid_number_of_workers_is_refused(actors: object, tmp_path: Path) -> None:
    """A range of workers must increase and start above zero."""
    with pytest.raises(ConfigError, match=r"distributed\.actors"):
        parse_config(
            {
                "benchmark": {"path": "x"},
                "judge": {"model": "m"},
                "distributed": {"actors": actors},
            }
        )


def test_replica_url_has_no_password() -> None:
    """Keys belong in the environment, also for replicas."""
    with pytest.raises(ValueError, match="belong in the environment"):
        DistributedConfig(replicas=("http://me:secret@host/v1",))


def test_repeated_requests_are_reported() -> None:
    """The summary gives the repeated share and the ignored rows."""
    facts = RayFacts("ray", asked=1100, asked_again=100, duplicates=8, torn=0)
    shown = on_ray(facts)
    assert all(each in shown for each in ("(ray)", "1,100", " 100 ", "9.1%", " 8 "))


def test_cluster_errors_have_an_exit_code() -> None:
    """An unusable cluster has its own exit code."""
    assert ClusterError("x").exit_code == 4
