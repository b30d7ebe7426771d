"""Size of report.html, and the time a browser takes to show it and to open a query.

    python perf/report_page.py [--candidates 100] [--queries 1000] [--items 8] [--folder DIR]

Responses are about a thousand letters of words with the frequencies of English, so that they
compress like real text (the ratio is printed). The judge is the scripted engine. The browser is
Chromium, driven by Playwright. Each time is the median of five fresh pages, from the start of the
navigation (first screen) or from the click (query) until the result has been painted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import shutil
import statistics
import tempfile
import time
import zlib
from itertools import accumulate
from pathlib import Path
from typing import Any

from million import Stopwatch
from playwright.sync_api import Page, sync_playwright

from rocketeval.config import parse_config
from rocketeval.pipeline import Run
from rocketeval.store.files import write_jsonl

REPEATS = 5
PAINTED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


class Prose:
    """Random words with the frequencies of a language: few are common, most are rare."""

    def __init__(self, seed: int, lexicon: int = 20_000) -> None:
        self.rng = random.Random(seed)
        letters, weights = "etaoinshrdlcumwfgypbvk", range(22, 0, -1)
        self.words = [
            "".join(self.rng.choices(letters, weights, k=self.rng.randint(2, 9)))
            for _ in range(lexicon)
        ]
        self.weights = list(accumulate(1 / (rank + 2) for rank in range(lexicon)))

    def text(self, length: int) -> str:
        """Return about `length` letters of text."""
        words = self.rng.choices(self.words, cum_weights=self.weights, k=max(3, length // 6))
        return " ".join(words).capitalize() + "."


def write_benchmark(folder: Path, candidates: int, queries: int, items: int) -> float:
    """Write a benchmark; return the zlib compression ratio of a response."""
    prose = Prose(0)
    names = [f"q{place:05d}" for place in range(queries)]
    write_jsonl(
        folder / "queries.jsonl",
        (
            {"id": name, "text": prose.text(300), "category": f"kind {place % 8}"}
            for place, name in enumerate(names)
        ),
    )
    write_jsonl(
        folder / "checklists.jsonl",
        (
            {"query_id": name, "items": [f"Does it {prose.text(80)[:-1]}?" for _ in range(items)]}
            for name in names
        ),
    )
    for place in range(candidates):
        rows = (
            {"query_id": name, "text": prose.text(prose.rng.randint(400, 1600))} for name in names
        )
        write_jsonl(folder / "responses" / f"candidate-{place:04d}.jsonl", rows)
    sample = "".join(prose.text(1000) for _ in range(100)).encode()
    return len(sample) / len(zlib.compress(sample, 9))


def make_report(folder: Path) -> Path:
    """Run everything on the benchmark and return the report."""
    config = parse_config(
        {
            "name": "page",
            "benchmark": {"path": str(folder / "benchmark")},
            "judge": {"engine": "scripted", "model": "scripted"},
            "output": str(folder / "runs"),
            "cache": None,
        }
    )
    return asyncio.run(Run(config, observer=Stopwatch()).all()).report


def left_out(report: Path) -> list[str]:
    """Return what the page reports as left out."""
    found = re.search(r'id="head">(.*?)</script>', report.read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        return []
    losses = json.loads(found[1])["losses"]
    return [f"{loss['count']} {loss['what']}" for loss in losses if "in this file" in loss["what"]]


def first_screen(page: Page, report: Path) -> float:
    """Return the seconds until the leaderboard is painted."""
    started = time.monotonic()
    page.goto(report.as_uri(), wait_until="commit")
    page.wait_for_selector(".leaderboard tbody tr")
    page.evaluate(PAINTED)
    return time.monotonic() - started


def open_query(page: Page) -> float:
    """Return the seconds from a click on a query until its responses and checklist are painted."""
    page.goto(page.url.split("#")[0] + "#/read")
    line = page.locator("a.query-line").nth(3)
    line.wait_for()
    page.wait_for_selector(".reader-checklist .answers-table .item")
    measured: float = page.evaluate(
        """async (line) => {
            const items = () =>
                document.querySelector(".reader-checklist .answers-table")?.innerText;
            const before = items(), started = performance.now();
            line.click();
            while (items() === undefined || items() === before) {
                await new Promise(done => setTimeout(done, 1));
            }
            await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
            return (performance.now() - started) / 1000;
        }""",
        line.element_handle(),
    )
    return measured


def measure(report: Path) -> dict[str, list[float]]:
    """Return the times of every repeat, each in a fresh page."""
    times: dict[str, list[float]] = {"first screen": [], "open a query": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-quic"]
        )
        for _ in range(REPEATS):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            times["first screen"].append(first_screen(page, report))
            page.wait_for_load_state("load")
            times["open a query"].append(open_query(page))
            page.close()
        browser.close()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--folder", type=Path)
    args: Any = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as scratch:
        folder = Path(scratch)
        ratio = write_benchmark(folder / "benchmark", args.candidates, args.queries, args.items)
        print(f"{args.candidates} candidates x {args.queries} queries x {args.items} items")
        print(f"zlib compresses responses {ratio:.1f} times")
        report = make_report(folder)
        print(f"report.html {report.stat().st_size / 1e6:.1f} MB", *left_out(report), sep="\n")
        for what, seconds in measure(report).items():
            middle, slowest = statistics.median(seconds), max(seconds)
            print(f"{what:<14}{1000 * middle:>8.0f} ms median{1000 * slowest:>8.0f} ms slowest")


if __name__ == "__main__":
    main()
