"""One self-contained page about a run: curves, numbers with intervals, what is found, a map, and the record."""

from likewise.report.page import write_report
from likewise.report.part import Compared, Part

__all__ = ["Compared", "Part", "write_report"]
