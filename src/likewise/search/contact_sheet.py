"""Contact sheets: a query and its matches with scores, as one image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from likewise.data import BrokenImage, decode
from likewise.formula import whole_number

CELL, GAP, EDGE, LINE = 176, 16, 28, 19
"""Pixels: the side of a picture, the gap between pictures, the margin, and the height of a line of text."""

PAPER, INK, GRAY, FRAME, ACCENT = "#ffffff", "#1c2024", "#667079", "#e3e6ea", "#3451b2"
COLUMNS = 6
"""Pictures per line."""

PIXELS = 4_000_000
"""The largest number of pixels of a stored thumbnail."""


@dataclass(frozen=True)
class Shot:
    """A picture on a sheet and its caption.

    Args:
        image: the bytes of a file, pixels, or ``None`` if there is no picture.
        title: the first line of the caption, in bold.
        text: the second line of the caption.
        lead: whether it is the query.

    Examples:
        >>> Shot(None, "0.912", "wren/1.jpg").lead
        False
    """

    image: bytes | Image.Image | None
    title: str
    text: str = ""
    lead: bool = False


def draw_contact_sheet(
    rows: Sequence[Sequence[Shot]], *, heading: str = "", detail: str = "", columns: int = COLUMNS
) -> Image.Image:
    """Draw pictures in rows; a long row continues on the next line, below its second picture.

    Args:
        rows: the rows: a query and its matches, or a group.
        heading: heading of the sheet.
        detail: smaller text after the heading.
        columns: pictures per line.

    Examples:
        >>> draw_contact_sheet([[Shot(Image.new("RGB", (40, 30)), "query", lead=True), Shot(None, "0.912")]]).size
        (424, 276)
    """
    columns = whole_number("columns", columns, 2)
    lines = [line for row in rows for line in _lines(row, columns)]
    wide = max((place + 1 for line in lines for place, _ in line), default=1)
    width = 2 * EDGE + wide * CELL + (wide - 1) * GAP
    top = EDGE + (2 * LINE if heading else 0)
    tall = CELL + 2 * LINE + 6
    sheet = Image.new("RGB", (max(width, 320), top + len(lines) * (tall + GAP) - GAP + EDGE), PAPER)
    draw = ImageDraw.Draw(sheet)
    if heading:
        heading = _shorten(draw, heading, sheet.width - 2 * EDGE, 20, front=False)
        draw.text((EDGE, EDGE - 8), heading, INK, _font(20))
        start = EDGE + draw.textlength(heading + "   ", _font(20))
        if sheet.width - EDGE - start > LINE:
            draw.text(
                (start, EDGE - 4), _shorten(draw, detail, sheet.width - EDGE - start, 14, front=False), GRAY, _font(14)
            )
    for number, line in enumerate(lines):
        for place, shot in line:
            _place(sheet, draw, shot, EDGE + place * (CELL + GAP), top + number * (tall + GAP))
    return sheet


def _lines(row: Sequence[Shot], columns: int) -> list[list[tuple[int, Shot]]]:
    """Split a row into lines of columns and pictures."""
    first, rest = [(0, row[0])] if row else [], list(row[1:])
    indent = 1 if row and row[0].lead else 0  # below the matches, so that the query is separate
    lines = [first + [(place + 1, shot) for place, shot in enumerate(rest[: columns - 1])]]
    rest = rest[columns - 1 :]
    while rest:
        lines.append([(place + indent, shot) for place, shot in enumerate(rest[: columns - indent])])
        rest = rest[columns - indent :]
    return lines


def _place(sheet: Image.Image, draw: ImageDraw.ImageDraw, shot: Shot, left: int, top: int) -> None:
    picture = _fit_picture(shot.image)
    box = (left, top, left + CELL - 1, top + CELL - 1)
    draw.rounded_rectangle(box, 6, "#f5f6f8", ACCENT if shot.lead else FRAME, 3 if shot.lead else 1)
    if picture is None:
        draw.text((left + CELL / 2, top + CELL / 2), "no picture", GRAY, _font(14), anchor="mm")
    else:
        sheet.paste(picture, (left + (CELL - picture.width) // 2, top + (CELL - picture.height) // 2))
    title = _shorten(draw, shot.title, CELL, 16, front=False)
    draw.text((left, top + CELL + 4), title, ACCENT if shot.lead else INK, _font(16))
    draw.text((left, top + CELL + 5 + LINE), _shorten(draw, shot.text, CELL, 13), GRAY, _font(13))


def _fit_picture(image: bytes | Image.Image | None) -> Image.Image | None:
    """Return the whole picture, fitted into its frame; small ones are enlarged, by an integer factor if very small."""
    if image is None:
        return None
    try:
        opened = decode(image, pixels=PIXELS) if isinstance(image, bytes) else image.convert("RGB")
    except BrokenImage:  # not an image, or a decompression bomb in an untrusted index
        return None
    side = CELL - 8
    scale = side / max(opened.size)
    size = (max(1, round(opened.width * scale)), max(1, round(opened.height * scale)))
    return opened.resize(size, Image.Resampling.NEAREST if scale >= 4.0 else Image.Resampling.LANCZOS)


def _shorten(draw: ImageDraw.ImageDraw, text: str, width: float, size: int, *, front: bool = True) -> str:
    """Shorten a long text at its front, because the end of a path is more informative."""
    text = "".join(
        one if one.isprintable() else "�" for one in text
    )  # the width of a name with line breaks is undefined
    if draw.textlength(text, _font(size)) <= width:
        return text
    while text and draw.textlength("…" + text, _font(size)) > width:
        text = text[1:] if front else text[:-1]
    return "…" + text if front else text.rstrip() + "…"


@lru_cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return DejaVu Sans, which matplotlib contains and which covers most scripts; otherwise Pillow's font, which is limited to Latin."""
    spec = find_spec("matplotlib")
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        file = Path(folder) / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
        if file.is_file():
            return ImageFont.truetype(file, round(0.86 * size))  # it is wider than other fonts of the same height
    return ImageFont.load_default(size)
