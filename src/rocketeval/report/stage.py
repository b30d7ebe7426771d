"""The report stage: write one page with all results of a run."""

from __future__ import annotations

from pathlib import Path

from rocketeval.audit.audit import Audit
from rocketeval.config import RunConfig
from rocketeval.report.blocks import ReportSource, served_detail
from rocketeval.report.cells import make_cells
from rocketeval.report.content import RunContent
from rocketeval.report.findings import Findings, read_findings
from rocketeval.report.head import evaluator_blocks, make_head
from rocketeval.report.page import embedded_page
from rocketeval.store.run import RunStore


def write_report(store: RunStore, config: RunConfig) -> Path:
    """Write report.html and return its path; raise StageMissing before the audit."""
    store.read(Audit)
    source = gather(store, config, read_findings(store))
    return store.save_text("report.html", embedded_page(source))


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
