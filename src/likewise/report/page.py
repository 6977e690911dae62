"""Pages: a title, a verdict, tiles and sections, written as one self-contained file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.report.writing import package_text, policy_hash, write_html

if TYPE_CHECKING:
    from likewise.report.sprites import Sheet


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Args:
        name: its anchor.
        title: its heading.
        blocks: texts, tables, charts and any other value that has a macro of its name in the template.
        hint: after the heading.
        link: its name in the navigation; it is not listed without one.

    Examples:
        >>> Section("training", "Training", [], link="Training").name
        'training'
    """

    name: str
    title: str
    blocks: Sequence[object]
    hint: str = ""
    link: str = ""


@dataclass(frozen=True)
class Folded:
    """Sections that are shown on demand, under one heading.

    Examples:
        >>> Folded("Validation", "20 images", []).hint
        '20 images'
    """

    title: str
    hint: str
    sections: Sequence[Section]
    link: str = ""


@dataclass(frozen=True)
class Tile:
    """A fact at the top of a page.

    Args:
        label: what it is.
        value: a number, or two or three words.
        hint: a line below.
        unit: after a number; ``None`` for words.
        target: the anchor that the hint leads to.
        tone: ``"good"``, ``"bad"`` or empty.

    Examples:
        >>> Tile("R@1", "51.2", "50.1–52.3", unit="%").tone
        ''
    """

    label: str
    value: str
    hint: str = ""
    unit: str | None = None
    target: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Page:
    """A page.

    Args:
        kind: ``"report"`` or ``"study"``, above the title.
        title: of the page.
        verdict: what it says, in one sentence.
        sections: what it shows.
        what: a sentence about it, before the verdict.
        more: sentences after the verdict.
        tiles: facts at a glance.
        alarms: important warnings.
        sheets: thumbnails.
        footer: sentences at the end.

    Examples:
        >>> Page("report", "Two losses", "Nothing has been measured yet.", []).tiles
        ()
    """

    kind: str
    title: str
    verdict: str
    sections: Sequence[Section | Folded]
    what: str = ""
    more: Sequence[str] = ()
    tiles: Sequence[Tile] = ()
    alarms: Sequence[str] = ()
    sheets: Sequence[Sheet] = ()
    footer: Sequence[str] = ()


def write_page(out: Path | str, page: Page) -> Path:
    """Write a page as one HTML file that fetches nothing.

    Examples:
        >>> import tempfile
        >>> page = Page("report", "Two losses", "Nothing has been measured yet.", [])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = write_page(folder + "/page.html", page).read_text()
        >>> "Two losses" in text, "http://" in text
        (True, False)
    """
    script = package_text("page.js")
    return write_html(
        Path(out),
        "page.html.jinja",
        page=page,
        script=script,
        # only this script may run, whatever the names of classes or methods contain
        script_hash=policy_hash(script),
        style=package_text("page.css"),
        written=datetime.now(UTC).isoformat(timespec="seconds"),
    )
