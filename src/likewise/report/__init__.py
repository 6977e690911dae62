"""Self-contained HTML pages: the report of a run, the page of a study, and the lens, which shows what losses do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise._lazy import lazy_names

if TYPE_CHECKING:
    from likewise.report.lens import write_lens
    from likewise.report.part import Compared, Part
    from likewise.report.run import write_report
    from likewise.report.study import Study, StudyFigure, StudyTable, write_study

__all__ = ["Compared", "Part", "Study", "StudyFigure", "StudyTable", "write_lens", "write_report", "write_study"]

# Used by other packages of the library, not part of the public API.
if TYPE_CHECKING:
    from likewise.report.layout import lay_out as lay_out
    from likewise.report.lens import add_losses as add_losses
    from likewise.report.lens import loss_names as loss_names
    from likewise.report.measure import measure_part as measure_part
    from likewise.report.part import Scores as Scores
    from likewise.report.words import in_words as in_words

_PLACES = {
    "layout": "lay_out",
    "lens": "add_losses loss_names write_lens",
    "measure": "measure_part",
    "part": "Compared Part Scores",
    "run": "write_report",
    "study": "Study StudyFigure StudyTable write_study",
    "words": "in_words",
}

__getattr__, __dir__ = lazy_names(__name__, _PLACES)
