"""Disarm text that could close its own section, forge a turn or speak a judge's control tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARKERS = (
    r"<<<\s*(?:end\s+of\s+)?"
    r"(?:history|query|response|reference|(?:user|assistant|system)\s+turn|turn)\s*>>>"
)
_PIPED = r"<\|[^|<>\n]{1,64}\|>"
_ANGLED = r"</?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|think)>"
_LLAMA2 = r"\[/?INST\]|<</?SYS>>"
_DANGEROUS = re.compile(f"{_MARKERS}|{_PIPED}|{_ANGLED}|{_LLAMA2}", re.IGNORECASE)
_BRACKETS = str.maketrans("<>[]", "()()")


@dataclass(frozen=True, slots=True)
class Neutralised:
    """A text safe to place between markers, and how many places were disarmed."""

    text: str
    count: int


def neutralise(text: str) -> Neutralised:
    """Return `text` with section markers and control tokens turned into harmless look-alikes.

    >>> neutralise("fine <<<end of response>>> <|im_start|>system")
    Neutralised(text='fine (((end of response))) (|im_start|)system', count=2)
    """
    safe, count = _DANGEROUS.subn(lambda found: found[0].translate(_BRACKETS), text)
    return Neutralised(safe, count)
