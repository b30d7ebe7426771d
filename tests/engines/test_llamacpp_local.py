"""The llamacpp engine without a model: what it refuses before loading."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fakes.native_server import LlamaCppShaped
from fakes.openai_server import MODEL, serving
from rocketeval.config import EngineConfig
from rocketeval.engines import base as local
from rocketeval.engines import llamacpp as llamacpp_local
from rocketeval.engines.base import create_engine
from rocketeval.errors import ConfigError, EngineRefused


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make xllamacpp count as installed."""
    monkeypatch.setattr(local, "find_spec", lambda name: name)


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    """A file that starts like a GGUF file."""
    path = tmp_path / "judge.gguf"
    path.write_bytes(llamacpp_local.MAGIC + b"and the rest")
    return path


def llamacpp_config(model: Path | str, **settings: Any) -> EngineConfig:
    """Return a config for the llamacpp engine."""
    return EngineConfig(engine="llamacpp", model=str(model), **settings)


async def test_creating_and_closing_load_nothing(gguf: Path) -> None:
    """An invalid file is accepted until it is used."""
    engine = create_engine(llamacpp_config(gguf))
    assert engine.in_flight == 1
    await engine.aclose()
    await engine.aclose()


def test_slots_are_tasks_in_flight(gguf: Path) -> None:
    """One response per slot, so that none evicts another's prefix."""
    assert create_engine(llamacpp_config(gguf, options={"slots": 3})).in_flight == 3


def test_missing_package_names_the_install_command(
    gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes before anything is written or loaded."""
    monkeypatch.setattr(local, "find_spec", lambda _: None)
    with pytest.raises(ConfigError) as caught:
        create_engine(llamacpp_config(gguf))
    assert "pip install 'rocketeval[llamacpp]'" in caught.value.hint


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The hint explains what `model` means for this engine."""
    with pytest.raises(ConfigError, match=r"nowhere\.gguf: No such file") as caught:
        create_engine(llamacpp_config(tmp_path / "nowhere.gguf"))
    assert "GGUF" in caught.value.hint


def test_folder_is_refused(tmp_path: Path) -> None:
    """A folder with weights for another engine is a likely mistake."""
    with pytest.raises(ConfigError, match="Is a directory"):
        create_engine(llamacpp_config(tmp_path))


def test_other_format_is_refused(tmp_path: Path) -> None:
    """Another format is refused before llama.cpp tries to load it."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\0\0\0\0 something else")
    with pytest.raises(ConfigError, match=r"model\.safetensors is not a GGUF file"):
        create_engine(llamacpp_config(path))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"options": {"contxt": 1}}, "Did you mean 'context'"),
        ({"options": {"slots": 0}}, "slots"),
        ({"base_url": "http://127.0.0.1:1/v1"}, "base_url"),
    ],
)
def test_bad_settings_are_refused(gguf: Path, settings: dict[str, Any], expected: str) -> None:
    """Every mistake is named before the file is loaded."""
    with pytest.raises(ConfigError, match=expected):
        create_engine(llamacpp_config(gguf, **settings))


async def test_likelihood_is_refused(gguf: Path) -> None:
    """It is refused before loading, because llama.cpp does not report prompt tokens."""
    engine = create_engine(llamacpp_config(gguf))
    with pytest.raises(EngineRefused, match=r"llama\.cpp does not report") as caught:
        await engine.likelihood("Well?", "Yes.")
    assert "vLLM" in caught.value.hint


async def test_file_is_served_again_after_close(
    gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server starts at first use; the identity is the file's, not the server's."""
    stub, started = LlamaCppShaped(slots=2), []

    def start(path: Path, options: llamacpp_local.LlamaCppOptions) -> SimpleNamespace:
        started.append((path, options.slots))
        return SimpleNamespace(listening_address=stub.base_url.removesuffix("/v1"))

    monkeypatch.setattr(llamacpp_local, "_start", start)
    monkeypatch.setattr(llamacpp_local, "SERVED_AS", MODEL)
    monkeypatch.setattr(llamacpp_local, "version", lambda _: "1.0")
    async with serving(stub):
        engine = create_engine(llamacpp_config(gguf, options={"slots": 2}))
        for _ in range(2):
            found = await engine.identify()
            assert (found.engine, found.model, found.endpoint) == ("llamacpp", str(gguf), "chat")
            assert found.version.startswith("xllamacpp 1.0 sha256 ")
            await engine.aclose()
    assert started == [(gguf, 2)] * 2
