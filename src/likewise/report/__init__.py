"""Self-contained pages: about a run, with its curves, neighbours and record, and about a study, with its verdict."""

from likewise.report.page import write_report
from likewise.report.part import Compared, Part
from likewise.report.study import Study, write_study

__all__ = ["Compared", "Part", "Study", "write_report", "write_study"]
