"""Make the reports of the gallery: python docs/build_gallery.py FOLDER

The runs in gallery/ are finished from their stored judgments (studies/judgments.py), so that no
judge is asked. Each becomes FOLDER/NAME.html. Prints what docs/gallery.md says about them: the
rankings, and the comment of the gate. docs/build_site.py calls this.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "gallery"
sys.path.insert(0, str(ROOT / "studies"))

from judgments import restore  # noqa: E402

from rocketeval.config import load_config  # noqa: E402
from rocketeval.gate.ci import compare_runs, gate_comment  # noqa: E402
from rocketeval.pipeline import Outcome, Run  # noqa: E402


@dataclass(frozen=True, slots=True)
class GalleryRun:
    """A config in gallery/ and its stored judgments."""

    config: str
    judgments: tuple[str, ...] = ()
    """Files of judgments; none if the config's judge is recorded in the package."""


RUNS = {
    "chat": GalleryRun("chat/rocketeval.yaml"),
    "rag": GalleryRun("rag/rocketeval.yaml", ("rag/judgments.parquet",)),
    "summaries": GalleryRun("summaries/rocketeval.yaml", ("summaries/judgments.parquet",)),
    "regression": GalleryRun(
        "regression/rocketeval.yaml",
        ("regression/base.parquet", "regression/head.parquet"),
    ),
}
"""Each run with a report, by the name of its page."""
BASE = GalleryRun("regression/base.yaml", ("regression/base.parquet",))
HEAD = GalleryRun("regression/head.yaml", ("regression/head.parquet",))


async def finish(given: GalleryRun, output: Path) -> Outcome:
    """Run every stage of a config below `output`, with its stored judgments."""
    config = load_config(GALLERY / given.config).model_copy(update={"output": output})
    run = Run(config)
    if not given.judgments:
        return await run.all()
    for file in given.judgments:
        await restore(config, GALLERY / file)
    run.score()
    ranking, audit = run.rank(), run.audit()
    run.explain()
    return Outcome(run.store.path, ranking, audit, run.report(), run.store.manifest().stages)


async def comment_of_gate(output: Path) -> str:
    """Return the comment of `rocketeval gate` about the two versions of the support bot."""
    head, base = await finish(HEAD, output), await finish(BASE, output)
    return gate_comment(compare_runs(head.path, base.path), "gallery/regression.html")


def ranking_in_words(outcome: Outcome) -> str:
    """Return the candidates from best to worst, in groups of ties."""
    rows = outcome.ranking.rows
    groups = [
        " and ".join(f"`{row.candidate}`" for row in rows if row.group == group)
        + (" (tied)" if sum(row.group == group for row in rows) > 1 else "")
        for group in dict.fromkeys(row.group for row in rows)
    ]
    return ", then ".join(groups)


async def make_reports(folder: Path) -> None:
    """Write one report per run into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, given in RUNS.items():
            outcome = await finish(given, Path(scratch))
            shutil.copyfile(outcome.report, folder / f"{name}.html")
            print(f"{name}.html: {ranking_in_words(outcome)}")
        print(await comment_of_gate(Path(scratch)))


if __name__ == "__main__":
    asyncio.run(make_reports(Path(sys.argv[1])))
