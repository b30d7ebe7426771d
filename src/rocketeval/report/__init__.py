"""The report of a run: one HTML file that opens from disk and asks the network for nothing."""

from __future__ import annotations

from rocketeval.report.data import (
    ReportAnswer,
    ReportData,
    ReportFigure,
    ReportQuery,
    ReportResponse,
    ReportRow,
)
from rocketeval.report.html import build_report

__all__ = [
    "ReportAnswer",
    "ReportData",
    "ReportFigure",
    "ReportQuery",
    "ReportResponse",
    "ReportRow",
    "build_report",
]
