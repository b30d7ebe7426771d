"""What engines inside this process share: errors for settings and packages they cannot use."""

from __future__ import annotations

from importlib.util import find_spec

from rocketeval.config import EngineConfig
from rocketeval.errors import ConfigError


def refuse_settings(config: EngineConfig, *names: str) -> None:
    """Raise ConfigError if one of these settings, which only a server understands, is set."""
    for name in names:
        if getattr(config, name):
            raise ConfigError(
                f"`{name}` means nothing to the engine {config.engine}, which runs in this "
                "process.",
                hint="Remove it, or ask a server with `engine: openai`.",
            )


def need_package(engine: str, package: str, install: str) -> None:
    """Raise ConfigError with the line that installs `package`, unless it is installed."""
    if find_spec(package) is None:
        raise ConfigError(
            f"The engine {engine} needs the package {package}, which is not installed.",
            hint=install,
        )
