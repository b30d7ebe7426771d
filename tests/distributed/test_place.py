"""What cannot be done on a cluster is said before anything is paid for."""

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
    """Without Ray, the error says what to install."""
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    monkeypatch.setattr("rocketeval.distributed.cluster.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'rocketeval\[ray\]'"):
        on(tmp_path).load()


def test_nobody_pays_for_ray_who_does_not_use_it() -> None:
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
            "max_cost cannot be kept on Ray",
        ),
        ({"judge": {"engine": "openai_batch", "model": "m"}}, "'openai_batch' is a queue"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """A limit on money and batch engines belong to one machine."""
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match=message):
        on(tmp_path, **changes).load()
    assert not (tmp_path / "runs").exists()


def test_an_engine_made_in_python_stays_here(tmp_path: Path) -> None:
    """An engine object cannot be sent to other machines."""
    pytest.importorskip("ray")
    run = Run(make_config(tmp_path, distributed={"cluster": "ray"}), judge=ScriptedEngine())
    with pytest.raises(ConfigError, match="cannot be sent to a cluster"):
        run.load()


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_does_not_answer_is_named_soon(tmp_path: Path) -> None:
    """An address where nothing listens ends the command at once, with what to do."""
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
def test_an_address_must_be_one(place: str) -> None:
    """A place that is no address is refused with the forms there are."""
    with pytest.raises(ConfigError, match="is no address"):
        check_address(place)


def test_ray_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine of a cluster, $RAY_ADDRESS leads to it; elsewhere a local one is started."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert cluster_address("ray") == "local"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert cluster_address("ray") == "10.0.0.1:6379"


@pytest.mark.parametrize("actors", [[3, 2], [0, 2], 0])
def test_workers_must_be_possible(actors: object, tmp_path: Path) -> None:
    """A range of workers goes up and starts above nothing."""
    with pytest.raises(ConfigError, match=r"distributed\.actors"):
        parse_config(
            {
                "benchmark": {"path": "x"},
                "judge": {"model": "m"},
                "distributed": {"actors": actors},
            }
        )


def test_a_replica_holds_no_password() -> None:
    """Keys belong in the environment, also for replicas."""
    with pytest.raises(ValueError, match="belong in the environment"):
        DistributedConfig(replicas=("http://me:secret@host/v1",))


def test_what_was_asked_again_is_told() -> None:
    """The re-sent share and what was left out are said in words."""
    facts = RayFacts("ray", asked=1100, asked_again=100, duplicates=8, torn=0)
    assert on_ray(facts) == (
        "On Ray (ray): 1,100 responses judged, 100 of them again (9.1%), 8 duplicate rows dropped"
    )


def test_errors_of_the_cluster_are_ours() -> None:
    """A cluster that cannot be used has an exit code of its own kind."""
    assert ClusterError("x").exit_code == 4
