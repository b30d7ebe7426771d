"""The documentation site: versions next to each other, and tables that fit on a phone."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from build_site import finish_page
from site_versions import LATEST, list_versions, publish


def built(folder: Path, text: str) -> Path:
    """Return a small built site: a start page, a page in a folder, and a report."""
    for name in ("index.html", "howto/data/index.html", "gallery/chat.html"):
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)
    return folder


def files(folder: Path) -> dict[str, tuple[str, int]]:
    """Return what each file of a folder holds, and when it was written."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {str(p): (p.read_text(), p.stat().st_mtime_ns) for p in found}


def target(page: Path) -> Path:
    """Return the file that a redirecting page leads to."""
    found = re.search(r'location\.replace\("([^"]+)"', page.read_text())
    assert found is not None
    leads = Path(os.path.normpath(page.parent / found[1]))
    return leads / "index.html" if found[1].endswith("/") else leads


def test_newest_version_is_first_and_latest() -> None:
    """Versions are sorted by their numbers, not as text; one is `latest`."""
    versions = list_versions(["0.2", "0.10", "0.9", "1.0"])
    assert [version.version for version in versions] == ["1.0", "0.10", "0.9", "0.2"]
    assert [version.aliases for version in versions] == [(LATEST,), (), (), ()]


def test_second_version_leaves_the_first_untouched(tmp_path: Path) -> None:
    """Building 0.3 next to 0.2 writes no file of 0.2, and `latest` moves on."""
    site = tmp_path / "site"
    publish(built(tmp_path / "a", "two"), site, "0.2")
    before = files(site / "0.2")
    publish(built(tmp_path / "b", "three"), site, "0.3")
    assert files(site / "0.2") == before
    listed = json.loads((site / "versions.json").read_text())
    assert [(row["version"], row["aliases"]) for row in listed] == [("0.3", [LATEST]), ("0.2", [])]
    assert target(site / "index.html").read_text() == "three"


def test_rebuilt_old_version_is_not_latest(tmp_path: Path) -> None:
    """Correcting the pages of 0.2 replaces them, and 0.3 stays `latest`."""
    site = tmp_path / "site"
    publish(built(tmp_path / "a", "two"), site, "0.2")
    publish(built(tmp_path / "b", "three"), site, "0.3")
    publish(built(tmp_path / "c", "corrected"), site, "0.2")
    assert (site / "0.2" / "index.html").read_text() == "corrected"
    assert target(site / LATEST / "index.html").read_text() == "three"


def test_latest_redirects_every_page(tmp_path: Path) -> None:
    """Each page of the newest version has a page below `latest`; a removed one has none."""
    site = tmp_path / "site"
    publish(built(tmp_path / "a", "two"), site, "0.2")
    smaller = built(tmp_path / "b", "three")
    (smaller / "gallery" / "chat.html").unlink()
    assert target(site / LATEST / "gallery" / "chat.html") == site / "0.2" / "gallery" / "chat.html"
    publish(smaller, site, "0.3")
    pages = {path.relative_to(site / "0.3") for path in (site / "0.3").rglob("*.html")}
    assert {path.relative_to(site / LATEST) for path in (site / LATEST).rglob("*.html")} == pages
    assert all(target(site / LATEST / page) == site / "0.3" / page for page in pages)
    assert not any(path.is_symlink() for path in site.rglob("*"))


@pytest.mark.parametrize("name", ["", "latest", "v0.2", "../0.2", "0.2rc1"])
def test_version_is_numbers(tmp_path: Path, name: str) -> None:
    """A name that cannot be sorted, or leads elsewhere, is refused before anything is written."""
    with pytest.raises(ValueError, match=r"such as 0\.2"):
        publish(built(tmp_path / "a", "x"), tmp_path / "site", name)
    assert not (tmp_path / "site").exists()


def table(*rows: str) -> str:
    """Return a table with the columns a, b and c."""
    head = "<thead><tr><th>a</th><th>b <code>x</code></th><th>c</th></tr></thead>"
    return f"<p><table>{head}<tbody>{''.join(rows)}</tbody></table></p>"


def test_cells_of_a_wide_table_name_their_columns() -> None:
    """A long text makes a card per row; each cell but the first has the name of its column."""
    long = "word " * 20
    made = finish_page(
        table(f"<tr><td>1</td><td>{long}</td><td></td></tr>", "<tr><td>2</td><td>s</td><td>t</td>"),
        "howto/data",
    )
    assert "<table data-cards>" in made
    assert re.findall('data-label="([^"]*)"', made) == ["", "b x", "c"] * 2


def test_table_of_figures_stays_a_table() -> None:
    """Short cells are compared down a column, so they are not made cards."""
    given = table("<tr><td>1</td><td>0.5 (0.4-0.6)</td><td>7</td></tr>")
    assert finish_page(given, "howto/data") == given


def test_bar_in_a_cell_has_no_backslash() -> None:
    """Markdown needs a backslash before a bar in a table; the page does not show it."""
    shown = finish_page(table("<tr><td><code>a\\|b</code></td><td></td><td></td></tr>"), "x")
    assert "<code>a|b</code>" in shown


def test_messages_wrap() -> None:
    """Only the pages of messages have wrapped blocks."""
    assert 'class="messages md' in finish_page('<article class="md">', "reference/mistakes")
    assert finish_page('<article class="md">', "reference/cli") == '<article class="md">'
