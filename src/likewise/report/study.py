"""The page about a study: many trainings, what they came to, and what makes the comparison fair or not."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2

from likewise import __version__
from likewise.formula import whole_number
from likewise.report import words
from likewise.report.study_charts import panels_of, scatters_of, search_charts
from likewise.report.study_tables import (
    boards_of,
    csv_link,
    differences_of,
    failures_of,
    heat_of,
    matrix_of,
    openings_of,
    table_of,
    tried_of,
)
from likewise.report.study_verdict import study_alarms, study_tiles, study_verdict
from likewise.report.study_words import Row, columns_of
from likewise.report.writing import package_text, policy_hash, write_page

PARTS = ("val", "test")
COMPARED = ("a", "b", "sentence", "mean", "low", "high", "pairs", "verdict")
DIFFERENT = ("what", "values", "why", "severity")
TRIED = ("point", "value", "status")
PROTOCOL = ("name", "sentence", "source", "tuned_on_test")


@dataclass(frozen=True, eq=False)
class StudyFigure:
    """A drawing on the page of a study.

    Args:
        svg: the drawing; what is to be read on light and dark pages must have colors for both.
        caption: what is to be seen on it.
        command: draws it again.

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
        head: the names of its columns.
        rows: its cells, as they are to be read; the first of each row is its name.
        caption: what is to be seen in it.
        command: makes it again.
        words: whether its cells are words; else they are numbers, and stand at the right.

    Examples:
        >>> StudyTable(["", "seconds"], [["a training", "13.2"]]).rows[0][1]
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

    Whatever is not there yet is left out, and the page says so.  Metrics are fractions, higher is better.

    Args:
        title: of the page.
        what: a sentence about it.
        metric: the column by which methods are compared.
        rows: the tidy table of results, a dict for each training.
        protocol: its ``name``, ``sentence``, ``source`` and whether it is ``tuned_on_test``.
        tournament: what `likewise.protocols.tournament.Tournament.to_dict` gives.
        leaderboard: the rows of a leaderboard; several of them by the name of their setting.  ``None`` beside unfair
            differences means that ranking was refused: then nothing on the page is ranked.
        comparisons: for each two methods ``a``, ``b``, a ``sentence``, ``mean``, ``low`` and ``high`` of the paired
            difference of a and b (the ends ``None`` where there is one pair), the number of ``pairs`` and the
            ``verdict``: ``"better"``, ``"worse"`` or ``"not distinguishable"``.
        comparison_note: what so many comparisons mean for each of them.
        fairness: what differs and is no part of the method: ``what``, ``values`` by method, ``why`` it matters and its
            ``severity``, ``"unfair"`` or ``"note"``; ``None`` if nobody looked.
        search: by method, what was tried, in order: ``point``, ``value`` or ``None``, and ``status``.
        objective: what the search made as high as it could.
        tables: more tables, by title.
        figures: more figures by title: SVG, or `StudyFigure` with a caption and a command.
        openings: each opening of a test set on record: ``run``, ``opened``, ``why`` and whether training had
            ``finished``.  How often each run's was opened is in the rows.
        planned: how many trainings there are to be; ``None`` where that is not known.
        command: makes the study again.
        versions: of what it was made with.
        hardware: that it ran on.

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
        _has("rows", self.rows, ("method",))
        _has("comparisons", self.comparisons, COMPARED)
        _has("fairness", self.fairness or (), DIFFERENT)
        _has("openings", self.openings, ("run",))
        if self.protocol is not None:
            _has("protocol", [self.protocol], PROTOCOL)
        for method, tried in (self.search or {}).items():
            _has(f"search[{method!r}]", tried, TRIED)
        for setting, board in self.boards.items():
            _has(f"leaderboard[{setting!r}]" if setting else "leaderboard", board, ("rank", "mean", "marks"))
        for title, table in self.tables.items():
            if not isinstance(table, StudyTable):
                raise TypeError(f"tables must be of StudyTable, but {title!r} is a {type(table).__name__}")
        for title, figure in self.figures.items():
            svg = figure.svg if isinstance(figure, StudyFigure) else figure
            if not isinstance(svg, bytes) or b"<svg" not in svg[:4096]:
                raise ValueError(f"figures must be SVG as bytes, but {title!r} is not")

    @property
    def boards(self) -> Mapping[str, Sequence[Row]]:
        """The leaderboards by the name of their setting; that of a single one is empty."""
        if self.leaderboard is None:
            return {}
        return self.leaderboard if isinstance(self.leaderboard, Mapping) else {"": self.leaderboard}

    @property
    def unfair(self) -> list[Mapping[str, Any]]:
        """The differences that make the comparison unfair."""
        return [each for each in self.fairness or () if each["severity"] == "unfair"]

    @property
    def refused(self) -> bool:
        """Whether ranking was refused."""
        return not any(self.boards.values()) and bool(self.unfair)

    @property
    def checked(self) -> bool:
        """Whether somebody looked for what makes the comparison unfair."""
        return self.fairness is not None and all(
            row.get("checked", True) for rows in self.boards.values() for row in rows
        )


def _has(name: str, rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
    for number, row in enumerate(rows):
        missing = [key for key in keys if key not in row] if isinstance(row, Mapping) else list(keys)
        if missing:
            raise ValueError(
                f"{name} must have {', '.join(keys)} in each entry, but entry {number} lacks {missing[0]!r}"
            )


def write_study(out: Path | str, study: Study) -> Path:
    """Write one self-contained HTML page about a study: it fetches nothing, and what it shows is inside it.

    The same study gives the same bytes, but for the time of writing.  The file is written beside its place and renamed.

    Args:
        out: the file.
        study: what the page is about, however far it got.

    Returns:
        Where the page is.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = write_study(folder + "/study.html", Study("Losses on glyphs")).read_text()
        >>> "Nothing has been trained yet." in page, "http://" in page
        (True, False)
    """
    return write_page(Path(out), _render(study))


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(package_text),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("percent", "count", "many", "moment", "short", "duration"):
        environment.filters[name] = getattr(words, name)
    return environment


def _render(study: Study) -> str:
    script = package_text("page.js") + package_text("study.js")
    columns = columns_of(study.rows, study.metric)
    colors = {name: number for number, name in enumerate(_methods(study))}
    panels = panels_of(study.rows, study.metric, colors)
    shown = {
        "study": study,
        "script": script,
        # the only script that may run is this one, whatever a method is called
        "script_hash": policy_hash(script),
        "style": package_text("page.css") + package_text("study.css"),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "colors": colors,
        "verdict": study_verdict(study),
        "tiles": study_tiles(study),
        "alarms": study_alarms(study),
        "boards": boards_of(study, colors, {panel.title: panel.filter for panel in panels}),
        "heat": None if study.refused else heat_of(study.tournament),
        "panels": panels,
        "matrix": matrix_of(study.comparisons),
        "tried": tried_of(study.search or {}, colors),
        "search_charts": search_charts(study.search or {}, study.objective, colors),
        "scatters": scatters_of(study.search or {}, colors),
        "differences": differences_of(study.fairness or ()),
        "failures": failures_of(study.rows, columns),
        "opened": openings_of(study.rows, study.openings),
        "table": table_of(study.rows, columns, study.metric),
        "csv": csv_link(study.rows),
        "figures": _drawings(study.figures),
        "meanings": words.METRICS,
    }
    return _environment().get_template("study.html.jinja").render(shown)


def _drawings(figures: Mapping[str, bytes | StudyFigure]) -> list[dict[str, str]]:
    """Figures as a page holds them."""
    made = []
    for title, figure in figures.items():
        each = figure if isinstance(figure, StudyFigure) else StudyFigure(figure)
        data = base64.b64encode(each.svg).decode()
        made.append({"title": title, "data": data, "caption": each.caption, "command": each.command})
    return made


def _methods(study: Study) -> list[str]:
    """Every method by name, in the order of the table; colors go by it."""
    standings = (study.tournament or {}).get("standings", ())
    named = [str(row["method"]) for row in study.rows] + [str(name) for name in study.search or {}]
    named += [str(row["method"]) for rows in study.boards.values() for row in rows if "method" in row]
    return list(dict.fromkeys(named + [str(each["method"]) for each in standings]))
