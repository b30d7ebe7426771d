"""Write docs/config.md from the config's own fields: python docs/generate.py"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from rocketeval.config import RunConfig, Section

HEAD = """\
# The config

One YAML file; paths are relative to its folder; unknown keys are refused with the nearest valid
name. API keys are never written here: `api_key_env` names the environment variable to read.

<!-- Written by docs/generate.py from src/rocketeval/config.py; do not edit. -->
"""


def sections(model: type[BaseModel], path: str = "") -> list[str]:
    """Return a table for `model` and, below it, one for each of its sections."""
    lines = [f"\n## {path or 'Top level'}\n", "| setting | default | what it is |", "|---|---|---|"]
    below: list[str] = []
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
        section = next((k for k in kinds if isinstance(k, type) and issubclass(k, Section)), None)
        where = f"{path}.{name}" if path else name
        if section:
            below += sections(section, where)
        default = "required" if field.is_required() else "" if section else show(field.default)
        lines.append(f"| `{name}` | {default} | {describe(section, where, field.description)} |")
    return lines + below


def describe(section: type[BaseModel] | None, where: str, text: str | None) -> str:
    """Return a field's own words, or where its section is."""
    if text:
        return " ".join(text.split())
    if section:
        summary = (section.__doc__ or "").strip().splitlines()[0]
        return f"{summary} See [{where}](#{where.replace('.', '').lower()})."
    return ""


def show(default: object) -> str:
    """Return a default as it would stand in YAML."""
    if default is None:
        return "none"
    if isinstance(default, tuple):
        return f"`[{', '.join(x if isinstance(x, str) else f'{x:g}' for x in default)}]`"
    return "" if default == {} else f"`{default}`"


def page() -> str:
    """Return the whole page."""
    return HEAD + "\n".join(sections(RunConfig)) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("config.md").write_text(page(), encoding="utf-8")
