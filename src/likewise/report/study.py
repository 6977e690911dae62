"""The page of a study: its data, and `write_study`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.formula import whole_number
from likewise.report.page import write_page
from likewise.report.study_names import Row
from likewise.report.study_page import study_page

PARTS = ("val", "test")
COMPARISON_KEYS = ("a", "b", "sentence", "mean", "low", "high", "pairs", "verdict")
DIFFERENCE_KEYS = ("what", "values", "why", "severity")
ROUND_KEYS = ("point", "value", "status")
PROTOCOL_KEYS = ("name", "sentence", "source", "tuned_on_test")


@dataclass(frozen=True, eq=False)
class StudyFigure:
    """A drawing on the page of a study.

    Args:
        svg: the SVG, with colors that are readable on light and dark pages.
        caption: the caption.
        command: the command that draws it.

    Examples:
        >>> StudyFigure(b"<svg/>", "Nothing.", "python draw.py").caption
        'Nothing.'
    """

    svg: bytes
    caption: str = ""
    command: str = ""


@dataclass(frozen=True)
class StudyTable:
    """A table of words and numbers on the page of a study.

    Args:
        head: the names of the columns.
        rows: the cells as texts; the first cell of a row is its name.
        caption: the caption.
        command: the command that computes it.
        words: whether cells are words, aligned to the left; numbers are aligned to the right.

    Examples:
        >>> StudyTable(["", "seconds"], [["one run", "13.2"]]).rows[0][1]
        '13.2'
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    command: str = ""
    words: bool = False

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.head):
                raise ValueError(
                    f"rows must have a cell for each of the {len(self.head)} columns, but row {number} has {len(row)}"
                )


@dataclass(frozen=True, eq=False)
class Study:
    """A tournament, a comparison or a search, as plain data.

    The page notes what is missing.  Metrics are fractions; higher is better.

    Args:
        title: the title of the page.
        what: a description in one sentence.
        metric: the column by which methods are compared.
        rows: the tidy table of results, one dict per run.
        protocol: the ``name``, ``sentence`` and ``source`` of the protocol, and whether it is ``tuned_on_test``.
        tournament: the result of `likewise.protocols.Tournament.to_dict`.
        leaderboard: the rows of a leaderboard, or of several leaderboards by the name of their setting.  ``None`` with unfair
            differences means that the ranking was refused; then nothing on the page is ranked.
        comparisons: for each two methods ``a`` and ``b``: a ``sentence``; ``mean``, ``low`` and ``high`` of the paired
            difference (``None`` for the limits of a single pair); the number of ``pairs``; and the ``verdict``:
            ``"better"``, ``"worse"`` or ``"not distinguishable"``.
        comparison_note: a sentence on the correction for multiple comparisons.
        fairness: differences between runs besides the method: ``what`` differs, ``values`` by method, ``why`` it matters, and
            its ``severity``, ``"unfair"`` or ``"note"``; ``None`` if this was not checked.
        search: the rounds of each method, in order: ``point``, ``value`` or ``None``, and ``status``.
        objective: the column that the search maximizes.
        tables: more tables, by title.
        figures: more figures, by title: SVG, or `StudyFigure` with a caption and a command.
        openings: recorded openings of test sets: ``run``, ``opened``, ``why``, and whether training had ``finished``.  The
            rows contain the number of openings of each run.
        planned: the number of runs of the complete study; ``None`` if it is unknown.
        command: the command that runs the study.
        versions: versions of the software.
        hardware: the hardware.

    Examples:
        >>> rows = [{"method": "triplet", "dim": 64, "seed": 0, "test MAP@R": 0.31, "run": "runs/1"}]
        >>> Study("One loss", rows=rows).metric
        'test MAP@R'
    """

    title: str
    what: str = ""
    metric: str = "test MAP@R"
    rows: Sequence[Row] = ()
    protocol: Mapping[str, Any] | None = None
    tournament: Mapping[str, Any] | None = None
    leaderboard: Sequence[Row] | Mapping[str, Sequence[Row]] | None = None
    comparisons: Sequence[Mapping[str, Any]] = ()
    comparison_note: str = ""
    fairness: Sequence[Mapping[str, Any]] | None = None
    search: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    objective: str = "val MAP@R"
    tables: Mapping[str, StudyTable] = field(default_factory=dict)
    figures: Mapping[str, bytes | StudyFigure] = field(default_factory=dict)
    openings: Sequence[Mapping[str, Any]] = ()
    planned: int | None = None
    command: str = ""
    versions: str = ""
    hardware: str = ""

    def __post_init__(self) -> None:
        for name, value in (("metric", self.metric), ("objective", self.objective)):
            if value.partition(" ")[0] not in PARTS or not value.partition(" ")[2]:
                raise ValueError(f"{name} must be a column such as 'test MAP@R' or 'val R@1', but it is {value!r}")
        if self.planned is not None:
            whole_number("planned", self.planned, 0)
        _check_keys("rows", self.rows, ("method",))
        _check_keys("comparisons", self.comparisons, COMPARISON_KEYS)
        _check_keys("fairness", self.fairness or (), DIFFERENCE_KEYS)
        _check_keys("openings", self.openings, ("run",))
        if self.protocol is not None:
            _check_keys("protocol", [self.protocol], PROTOCOL_KEYS)
        for method, rounds in (self.search or {}).items():
            _check_keys(f"search[{method!r}]", rounds, ROUND_KEYS)
        for setting, board in self.boards.items():
            _check_keys(f"leaderboard[{setting!r}]" if setting else "leaderboard", board, ("rank", "mean", "marks"))
        for title, table in self.tables.items():
            if not isinstance(table, StudyTable):
                raise TypeError(f"tables must be StudyTable objects, but {title!r} is a {type(table).__name__}")
        for title, figure in self.figures.items():
            svg = figure.svg if isinstance(figure, StudyFigure) else figure
            if not isinstance(svg, bytes) or b"<svg" not in svg[:4096]:
                raise ValueError(f"figures must be bytes of an SVG, but {title!r} is not")

    @property
    def boards(self) -> Mapping[str, Sequence[Row]]:
        """The leaderboards by the name of their setting, which is empty for a single one."""
        if self.leaderboard is None:
            return {}
        return self.leaderboard if isinstance(self.leaderboard, Mapping) else {"": self.leaderboard}

    @property
    def unfair(self) -> list[Mapping[str, Any]]:
        """The differences that make the comparison unfair."""
        return [each for each in self.fairness or () if each["severity"] == "unfair"]

    @property
    def is_refused(self) -> bool:
        """Whether the ranking was refused because it is unfair."""
        return not any(self.boards.values()) and bool(self.unfair)

    @property
    def is_checked(self) -> bool:
        """Whether the fairness of the comparison was checked in full."""
        return self.fairness is not None and all(
            row.get("checked", True) for rows in self.boards.values() for row in rows
        )


def _check_keys(name: str, rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
    for number, row in enumerate(rows):
        missing = [key for key in keys if key not in row] if isinstance(row, Mapping) else list(keys)
        if missing:
            raise ValueError(
                f"{name} must have {', '.join(keys)} in each entry, but entry {number} lacks {missing[0]!r}"
            )


def write_study(out: Path | str, study: Study) -> Path:
    """Write a self-contained HTML page about a study, which loads no external files.

    The same study gives the same bytes, except for the time of writing.  The file is replaced atomically.

    Args:
        out: the file.
        study: the study, which can be incomplete.

    Returns:
        The path of the page.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = write_study(folder + "/study.html", Study("Losses on glyphs")).read_text()
        >>> "Nothing has been trained yet." in page, "http://" in page
        (True, False)
    """
    return write_page(out, study_page(study))
