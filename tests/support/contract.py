"""The names in web/src/contract.ts, which the page and the report's data share."""

from __future__ import annotations

import re
from pathlib import Path

CONTRACT = Path(__file__).parents[2] / "web" / "src" / "contract.ts"


def contract_names() -> dict[str, list[str]]:
    """Return the fields of every interface, in order."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", CONTRACT.read_text("utf-8"), flags=re.DOTALL)
    interfaces = re.findall(r"^export interface (\w+) \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    return {name: re.findall(r"^  (\w+)\??: ", body, re.MULTILINE) for name, body in interfaces}
