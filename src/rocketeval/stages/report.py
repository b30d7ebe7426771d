"""report: one page that shows it all."""

from __future__ import annotations

from pathlib import Path

from rocketeval.config import RunConfig
from rocketeval.store.run import RunStore


def write_report(store: RunStore, config: RunConfig) -> Path:
    return store.save_text("report.html", "")
