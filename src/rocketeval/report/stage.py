"""The report stage: write one page with all results of a run, or a folder for a static host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rocketeval.audit.audit import Audit
from rocketeval.config import RunConfig
from rocketeval.errors import ExportError
from rocketeval.report.blocks import WHOLE_BLOCKS, ReportSource, served_detail
from rocketeval.report.cells import make_cells
from rocketeval.report.content import RunContent
from rocketeval.report.findings import Findings, read_findings
from rocketeval.report.head import evaluator_blocks, make_head
from rocketeval.report.page import embedded_page, served_page
from rocketeval.store.files import make_folder, refuse_inside_run
from rocketeval.store.run import RunStore

_READ_AT_ONCE = 64


def write_report(store: RunStore, config: RunConfig) -> Path:
    """Write report.html and return its path; raise StageMissing before the audit."""
    store.read(Audit)
    source = gather(store, config, read_findings(store))
    return store.save_text("report.html", embedded_page(source))


def write_folder(store: RunStore, config: RunConfig, folder: Path) -> int:
    """Write the whole report as a page and one file per block; return the number of files.

    Any host of static files can serve it, and it has no size limit. Raise ExportError if the folder
    is not empty.
    """
    store.read(Audit)
    refuse_inside_run(folder, store.path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExportError(
            f"{folder} exists and is not empty.", hint="Give a new folder, or delete this one."
        )
    source = gather(store, config, read_findings(store))
    make_folder(folder / "block")
    count = 0
    for name, block in _every_block(source):
        (folder / "block" / f"{name}.bin").write_bytes(block)
        count += 1
    # The files of the run stay where they are: its config may name private servers and paths.
    head = replace(source.head, blocks="folder", files=())
    (folder / "index.html").write_text(served_page(head, "report"), encoding="utf-8")
    return count + 1


def _every_block(source: ReportSource) -> Iterator[tuple[str, bytes]]:
    places = range(len(source.detail))
    source.content.hold(places)
    for name in (*WHOLE_BLOCKS, "evaluator"):
        block = source.block(name)
        if block is not None:
            yield name, block
    for start in range(0, len(places), _READ_AT_ONCE):
        batch = places[start : start + _READ_AT_ONCE]
        for place, texts in zip(batch, source.content.texts(batch), strict=True):
            yield f"query-{place}", source.query_block(place, texts=True, found=texts)


def gather(
    store: RunStore, config: RunConfig, findings: Findings, provisional: str = ""
) -> ReportSource:
    """Return a run's report: its head, and blocks that are built on demand.

    `provisional` gives the reason if the figures are not final. Results of stages that have not run
    are left out.
    """
    ranking = findings.ranking
    candidates = [*(row.candidate for row in ranking.rows), *ranking.unranked]
    cells = make_cells(findings.scores, list(store.inputs.queries), candidates)
    content = RunContent(store, config, findings, cells)
    head = make_head(store, config, findings, cells, provisional)
    detail = served_detail(cells.scores, content.items)
    return ReportSource(head, content, detail, evaluator_blocks(findings.evaluator))
