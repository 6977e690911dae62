"""Pages: a title, a verdict, tiles and sections, written as one self-contained HTML file."""

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
        name: the anchor.
        title: the heading.
        blocks: texts, tables, charts and other values with a macro in the template.
        hint: a text after the heading.
        link: the name in the navigation; empty: not listed.

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
        label: the name of the fact.
        value: a number, or a few words.
        hint: a line below the value.
        unit: the unit of a number; ``None`` for words.
        target: the anchor to which the hint links.
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
        kind: ``"report"`` or ``"study"``, shown above the title.
        title: the title.
        verdict: the result in one sentence.
        sections: the sections.
        what: a description in one sentence, shown before the verdict.
        more: sentences after the verdict.
        tiles: facts at the top of the page.
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
    """Write a page as one HTML file that loads no external files.

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
        # the content security policy allows only this script, whatever the names of classes or methods contain
        script_hash=policy_hash(script),
        style=package_text("page.css"),
        written=datetime.now(UTC).isoformat(timespec="seconds"),
    )
