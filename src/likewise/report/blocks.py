"""The blocks of a page: texts, tables, charts and groups of them.

`likewise.report.writing.render` renders each with the macro of the same name in ``blocks.html.jinja``.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from likewise.report.charts import Chart
from likewise.report.row_charts import RowChart


@dataclass(frozen=True)
class Text:
    """A paragraph.

    Args:
        text: plain text, or `markupsafe.Markup`.
        kind: ``"note"``, ``"statement"``, ``"empty"``, ``"alarm"``, or empty for plain text.

    Examples:
        >>> Text("In percent.").kind
        'note'
    """

    text: str
    kind: str = "note"


@dataclass(frozen=True)
class Cell:
    """A cell of a table with more than a text.

    Args:
        text: the text.
        small: a smaller line below the text.
        kind: CSS classes.
        title: the tooltip.
        filter: the filter of a link to the complete table of a study.
        rank: a number before the text.
        color: the color of a square before the text.
        marks: labels, and whether each is a warning.
        fold: a text that is shown on demand.
        number: the sort key.
        heat: the strength of the background color, from 0 to 100.
        span: the number of columns that the cell spans.

    Examples:
        >>> Cell("51.2", "50.1–52.3").small
        '50.1–52.3'
    """

    text: str
    small: str = ""
    kind: str = ""
    title: str = ""
    filter: str = ""
    rank: str = ""
    color: int | None = None
    marks: tuple[tuple[str, bool], ...] = ()
    fold: str = ""
    number: str = ""
    heat: int | None = None
    span: int = 1


def yes_or_no(value: object) -> Cell:
    """Create a cell that says yes or no; no is marked as bad.

    Examples:
        >>> yes_or_no(False).kind
        'bad'
    """
    return Cell("yes") if value else Cell("no", kind="bad")


@dataclass(frozen=True)
class Table:
    """A table; the first cell of each row is its heading.

    Args:
        label: the name for screen readers.
        head: the names of the columns.
        rows: texts or cells.
        kind: ``"numbers"``, ``"plain"``, ``"heat"`` or ``"all"`` (sortable, with a filter).

    Examples:
        >>> Table("Scores", ["method", "R@1"], [["triplet", "51.2"]]).kind
        'numbers'
    """

    label: str
    head: Sequence[str | Cell]
    rows: Sequence[Sequence[str | Cell]]
    kind: str = "numbers"


@dataclass(frozen=True)
class Charts:
    """Charts side by side.

    Args:
        charts: the charts.
        kind: ``"charts"``, ``"panels"`` (wider) or ``"scatters"`` (smaller).

    Examples:
        >>> Charts([]).kind
        'charts'
    """

    charts: Sequence[Chart | RowChart]
    kind: str = "charts"


@dataclass(frozen=True)
class Drawing:
    """An SVG image.

    Examples:
        >>> Drawing("Map", b"<svg/>").data
        'PHN2Zy8+'
    """

    title: str
    svg: bytes
    blocks: Sequence[object] = ()

    @property
    def data(self) -> str:
        """The image, base64-encoded."""
        return base64.b64encode(self.svg).decode()


@dataclass(frozen=True)
class Code:
    """A command or a configuration.

    Examples:
        >>> Code("likewise train").can_copy
        False
    """

    text: str
    can_copy: bool = False


@dataclass(frozen=True)
class Definitions:
    """Names with values.

    Args:
        entries: a name, its value, and for ``"facts"`` its meaning.
        kind: ``"pairs"``, ``"meanings"`` or ``"facts"``.

    Examples:
        >>> Definitions([("torch", "2.11")]).kind
        'pairs'
    """

    entries: Sequence[tuple[str, ...]]
    kind: str = "pairs"


@dataclass(frozen=True)
class Sentences:
    """A list of sentences.

    Examples:
        >>> Sentences(["a is better than b."]).sentences[0]
        'a is better than b.'
    """

    sentences: Sequence[str]


@dataclass(frozen=True)
class Group:
    """Blocks in one box.

    Args:
        kind: CSS classes.
        blocks: the blocks.
        title: the title of the box.
        hint: a text after the title.
        color: the color of a square before the title.

    Examples:
        >>> Group("columns", []).title
        ''
    """

    kind: str
    blocks: Sequence[object]
    title: str = ""
    hint: str = ""
    color: int | None = None


@dataclass(frozen=True)
class Fold:
    """Blocks that are shown on demand.

    Examples:
        >>> Fold("Details", [Text("a")]).is_open
        False
    """

    summary: str
    blocks: Sequence[object]
    is_open: bool = False
