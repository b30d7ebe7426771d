"""The description that a package index shows, made from README.md at build time.

An index shows the text without the repository: a relative link would be dead there. If
`[project.urls]` in pyproject.toml has a `Repository`, links and pictures lead to the released
version in it. Without one, a link becomes its text, and the picture and the list of pages are left
out. Commands install the package by its name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|mailto:)([^)\s]+)\)")
COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
INSTALL = re.compile(r"pip install \.\s+# in a clone of this repository; ")
PAGES = re.compile(r"^## Documentation\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
NO_PAGES = """## Documentation

The source repository contains the documentation in `docs/`; `make site` builds it as a web site
with search. `rocketeval --help` lists the commands.

License: Apache-2.0. No telemetry.
"""


def description(readme: str, version: str, repository: str | None) -> str:
    """Return the README as it is right on a package index."""
    text = COMMENT.sub("", readme)
    text = INSTALL.sub("pip install rocketeval    # ", text)
    text = text.replace('pip install ".[', 'pip install "rocketeval[')
    if repository is None:
        text = PAGES.sub(NO_PAGES, text)

    def replaced(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        if repository is None:
            return "" if picture else words
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({repository.rstrip('/')}/{kind}/v{version}/{path})"

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(replaced, text))


class IndexDescription(MetadataHookInterface):
    """Set the dynamic field `readme` of the package's metadata."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description to the metadata."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        text = description(readme, metadata["version"], repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
