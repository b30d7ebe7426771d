"""Build one version of the documentation site.

    python docs/build_site.py [FOLDER] [--version 0.2] [--reports REPORTS]

The pages go into FOLDER/VERSION (default: `site`, and the first two numbers of the package's
version); other versions in FOLDER stay as they are. docs/site_versions.py lists them. FOLDER can be
served by any static host.

Needs `pip install zensical` next to RocketEval, which makes the reports of the gallery; REPORTS is
a folder with those that docs/build_gallery.py made before. The pages of docs/ are staged together
with every file of the repository that they link to, so that the site is complete without the
repository; a broken link or anchor fails the build.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from runpy import run_path

from site_versions import publish

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
GALLERY = DOCS / "gallery"
"""Where pages link to the gallery's reports; docs/build_gallery.py makes them."""
LINK = re.compile(r"(\]\()(?!https?://|mailto:|#)([^)\s#]+)(#[^)\s]*)?(\))")
STAGED = ("*.md", "*.svg", "*.png", "*.ipynb", "*.css")


class Staging:
    """A copy of the pages, and of the files that they link to, below `files/`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._staged: dict[Path, Path] = {}

    def stage(self) -> None:
        """Copy every page of docs/ and what it links to."""
        for pattern in STAGED:
            for path in sorted(DOCS.rglob(pattern)):
                self.place(path)
        for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
            self.place(ROOT / name)

    def place(self, path: Path) -> Path:
        """Copy a file or folder once, and return its place in the staging folder."""
        if path in self._staged:
            return self._staged[path]
        if path.is_dir():
            readme = path / "README.md"
            return self.place(readme) if readme.exists() else self._list(path)
        inside = path.is_relative_to(DOCS)
        below = path.relative_to(DOCS) if inside else Path("files") / path.relative_to(ROOT)
        target = self._staged[path] = self.folder / below
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(self._linked(path, target), encoding="utf-8")
        else:
            shutil.copyfile(path, target)
        return target

    def _linked(self, page: Path, target: Path) -> str:
        """Return a page whose links lead to staged files."""

        def replaced(found: re.Match[str]) -> str:
            linked = (page.parent / found[2]).resolve()
            if linked.parent == GALLERY and (self.folder / "gallery" / linked.name).exists():
                return found[0]
            if not linked.exists() or not linked.is_relative_to(ROOT):
                sys.exit(f"{page.relative_to(ROOT)} links to {found[2]}, which does not exist.")
            # Zensical finds pages by their Markdown files; the front page has another name there.
            placed = self.place(DOCS / "index.md" if linked == ROOT / "README.md" else linked)
            return found[1] + os.path.relpath(placed, target.parent) + (found[3] or "") + found[4]

        return LINK.sub(replaced, page.read_text(encoding="utf-8"))

    def _list(self, folder: Path) -> Path:
        """Write a page that lists a folder without a README."""
        below = folder.relative_to(ROOT)
        target = self._staged[folder] = self.folder / "files" / below / "index.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        files = [path for path in sorted(folder.iterdir()) if path.is_file()]
        names = [
            f"- [{path.name}]({os.path.relpath(self.place(path), target.parent)})" for path in files
        ]
        head = [f"# Files in {below.name}", "", f"In the repository: `{below}`", ""]
        target.write_text("\n".join([*head, *names]) + "\n", encoding="utf-8")
        return target


MESSAGES = ("reference/mistakes", "reference/data_mistakes")
"""Pages whose blocks are sentences: their lines are wrapped."""
LONG = 24
"""A table with a longer text after its first column is shown as one card per row on a phone."""


def finish_page(html: str, page: str) -> str:
    """Return a built page whose tables and messages can be read on a phone, with docs/style.css."""
    if page in MESSAGES:
        html = html.replace('<article class="', '<article class="messages ', 1)
    # A picture of a whole window is too small on a phone: a tap opens it alone.
    html = re.sub(r'(?<!">)(<img[^>]* src="([^"]+\.png)"[^>]*>)', r'<a href="\2">\1</a>', html)
    return re.sub(r"<table>.*?</table>", lambda found: label_cells(found[0]), html, flags=re.DOTALL)


def label_cells(table: str) -> str:
    """Return a table whose cells name their columns, if it has long texts; else as it is.

    >>> label_cells("<table><tr><th>a</th></tr><tr><td>short</td></tr></table>")
    '<table><tr><th>a</th></tr><tr><td>short</td></tr></table>'
    """
    # Inside code, Zensical keeps the backslash that a table needs before a bar.
    table = table.replace("\\|", "|")
    labels = [plain(head) for head in re.findall(r"<th[^>]*>(.*?)</th>", table, re.DOTALL)]
    cells = [plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", table, re.DOTALL)]
    later = [cell for place, cell in enumerate(cells) if place % max(1, len(labels))]
    if max(map(len, later), default=0) <= LONG:
        return table
    # Below the title of a card, a single further cell needs no name.
    named = [""] + (labels[1:] if len(labels) > 2 else [""])
    numbers = itertools.count()

    def labeled(found: re.Match[str]) -> str:
        return f'<td data-label="{named[next(numbers) % len(labels)]}"{found[1]}>'

    return re.sub(r"<td([^>]*)>", labeled, table).replace("<table>", "<table data-cards>", 1)


def plain(html: str) -> str:
    """Return HTML as text that is safe in an attribute."""
    return re.sub(r"<[^>]+>", "", html).strip().replace('"', "&quot;")


def package_version() -> str:
    """Return the first two numbers of the package's version: a patch release has no own pages."""
    version: str = run_path(str(ROOT / "src" / "rocketeval" / "_version.py"))["__version__"]
    return ".".join(version.split(".")[:2])


def build(folder: Path, version: str, reports: Path | None = None) -> int:
    """Build a version of the site into a folder; return the exit code of the generator."""
    with tempfile.TemporaryDirectory() as scratch:
        staging = Path(scratch)
        gallery = staging / "docs" / "gallery"
        if reports is None:
            subprocess.run([sys.executable, DOCS / "build_gallery.py", gallery], check=True)
        else:
            shutil.copytree(reports, gallery)
        Staging(staging / "docs").stage()
        shutil.copyfile(DOCS / "zensical.toml", staging / "zensical.toml")
        command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
        code = subprocess.run(command, cwd=staging, check=False).returncode
        if code == 0:
            # Its links start at the root of the host, which is wrong below a version.
            (staging / "site" / "404.html").unlink()
            for page in (staging / "site").rglob("index.html"):
                below = page.parent.relative_to(staging / "site").as_posix()
                page.write_text(finish_page(page.read_text("utf-8"), below), encoding="utf-8")
            versions = publish(staging / "site", folder, version)
            pages = sum(1 for _ in (folder / version).rglob("*.html"))
            listed = ", ".join(known.version for known in versions)
            print(f"{pages} pages in {folder / version}; versions: {listed}")
    return code


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path("site"))
    parser.add_argument("--version", default=package_version())
    parser.add_argument("--reports", type=Path)
    args = parser.parse_args()
    return build(args.folder, args.version, args.reports)


if __name__ == "__main__":
    sys.exit(main())
