"""Thumbnails on sheets: a few WebP images inside the page instead of thousands."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image

COLUMNS, ROWS = 32, 32
"""Thumbnails on a sheet; a sheet with thumbnails of 64 pixels takes 16 MiB on a phone."""

METHOD = 4
"""WebP effort, from 0 to 6: smaller files than 4 take twice the time."""


@dataclass(frozen=True)
class Tile:
    """Where a thumbnail is.

    Args:
        sheet: the number of its sheet, counted over the whole page.
        x: the share of the way from the first column to the last, in percent.
        y: the same for rows.

    Examples:
        >>> Tile(0, 100.0, 0.0).style
        '--x:100%;--y:0%'
    """

    sheet: int
    x: float
    y: float

    @property
    def style(self) -> str:
        """The position for the page's style sheet."""
        return f"--x:{self.x:.5g}%;--y:{self.y:.5g}%"


@dataclass(frozen=True)
class Sheet:
    """A sheet of thumbnails, encoded.

    Args:
        number: counted over the whole page.
        columns: thumbnails in a row.
        rows: rows of thumbnails.
        data: a data URI.

    Examples:
        >>> sheets, tiles = sprite_sheets({7: Image.new("RGB", (64, 64))}, first=0)
        >>> sheets[0].columns, sheets[0].data[:23], tiles[7]
        (1, 'data:image/webp;base64,', Tile(sheet=0, x=0.0, y=0.0))
    """

    number: int
    columns: int
    rows: int
    data: str


def thumbnail(image: Image.Image, side: int) -> Image.Image:
    """The whole image within a square, never larger than it was; with transparent margins where it is not square.

    Examples:
        >>> thumbnail(Image.new("L", (200, 100)), 64).size, thumbnail(Image.new("L", (32, 32)), 64).size
        ((64, 32), (32, 32))
    """
    mode = "RGBA" if image.has_transparency_data else "RGB"
    image = image if image.mode == mode else image.convert(mode)
    scale = side / max(image.size)
    if scale >= 1.0:
        return image
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def sprite_sheets(
    thumbnails: Mapping[int, Image.Image], *, first: int, quality: int = 75
) -> tuple[list[Sheet], dict[int, Tile]]:
    """Put thumbnails on sheets.

    Args:
        thumbnails: by any number; see `thumbnail`.
        first: the number of the first sheet.
        quality: of the WebP images, up to 100.

    Returns:
        The sheets, and where each thumbnail is.

    Examples:
        >>> sheets, tiles = sprite_sheets({row: Image.new("RGB", (16, 16)) for row in range(1025)}, first=3)
        >>> [(sheet.number, sheet.columns, sheet.rows) for sheet in sheets], tiles[1].x, tiles[1024].sheet
        ([(3, 32, 32), (4, 1, 1)], 3.225806451612903, 4)
    """
    rows = list(thumbnails)
    largest = max((max(image.size) for image in thumbnails.values()), default=16)
    side = -(-largest // 16) * 16  # WebP's blocks: no color runs from one thumbnail into the next
    sheets, tiles = [], {}
    for number, start in enumerate(range(0, len(rows), COLUMNS * ROWS), start=first):
        some = rows[start : start + COLUMNS * ROWS]
        columns, lines = min(COLUMNS, len(some)), -(-len(some) // COLUMNS)
        for place, row in enumerate(some):
            y, x = divmod(place, COLUMNS)
            tiles[row] = Tile(number, 100.0 * x / max(1, columns - 1), 100.0 * y / max(1, lines - 1))
        data = _encode_sheet([thumbnails[row] for row in some], columns, lines, side, quality)
        sheets.append(Sheet(number, columns, lines, data))
    return sheets, tiles


def _encode_sheet(images: Sequence[Image.Image], columns: int, rows: int, side: int, quality: int) -> str:
    # images that are smaller than their place are enlarged to it, so that all are equally large on the page
    images = [_enlarge(image, side) for image in images]
    opaque = all(image.mode == "RGB" and image.size == (side, side) for image in images)
    # what no thumbnail covers is transparent where one shows its ground, and black where none can
    sheet = Image.new("RGB" if opaque else "RGBA", (columns * side, rows * side))
    for place, image in enumerate(images):
        y, x = divmod(place, columns)
        sheet.paste(image, (x * side + (side - image.width) // 2, y * side + (side - image.height) // 2))
    buffer = io.BytesIO()
    sheet.save(buffer, "WEBP", quality=quality, method=METHOD)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _enlarge(image: Image.Image, side: int) -> Image.Image:
    scale = side / max(image.size)
    if scale <= 1.0:
        return image
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.NEAREST if scale == int(scale) else Image.Resampling.BICUBIC)


LADDER = ((64, 75), (64, 50), (48, 50), (32, 40))
"""Sides and qualities of the map's thumbnails, tried in turn until they fit."""


def fitting_sheets(
    thumbnails: Mapping[int, Image.Image], *, first: int, budget: int
) -> tuple[list[Sheet], dict[int, Tile]]:
    """Sheets of at most ``budget`` bytes in all: smaller or coarser thumbnails where the finest do not fit.

    The smallest are taken as they are.

    Examples:
        >>> sheets, tiles = fitting_sheets({0: Image.new("RGB", (64, 64))}, first=0, budget=10_000)
        >>> len(sheets), len(tiles)
        (1, 1)
    """
    for side, quality in LADDER:
        smaller = {row: thumbnail(image, side) for row, image in thumbnails.items()}
        sheets, tiles = sprite_sheets(smaller, first=first, quality=quality)
        if sum(len(sheet.data) for sheet in sheets) <= budget:
            break
    return sheets, tiles
