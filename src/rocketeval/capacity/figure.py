"""A number that says where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["given", "measured", "estimated", "paper", "measured elsewhere", "assumed"]
"""Given: on the command line or in the config. Measured: in this run or of its own files.
Estimated: from this run, by a rule of thumb. Paper: as published for RocketEval. Measured
elsewhere: by a script of this repository on another machine. Assumed: nobody measured it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that a plan rests on."""

    value: float
    source: Source
    note: str = ""
    """How it was measured, or what it stands for."""
