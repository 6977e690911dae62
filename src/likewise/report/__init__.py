"""Self-contained pages: about a run, about a study with its verdict, and about what losses do."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.report.lens import write_lens
    from likewise.report.page import write_report
    from likewise.report.part import Compared, Part
    from likewise.report.study import Study, StudyFigure, StudyTable, write_study

__all__ = ["Compared", "Part", "Study", "StudyFigure", "StudyTable", "write_lens", "write_report", "write_study"]

_PLACES = {
    "Compared": "part",
    "Part": "part",
    "Study": "study",
    "StudyFigure": "study",
    "StudyTable": "study",
    "write_lens": "lens",
    "write_report": "page",
    "write_study": "study",
}


def __getattr__(name: str) -> Any:
    """Import a page when it is asked for: the lens needs no torch, and opens at once."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"likewise.report.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    """What can be asked for, for whoever looks around: a shell, or the pages of the API."""
    return sorted({*globals(), *__all__})
