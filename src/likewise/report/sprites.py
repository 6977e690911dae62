"""Sprite sheets: thumbnails are combined to a few WebP images."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image
from PIL import WebPImagePlugin as WebPImagePlugin  # else the first save imports the plugins of all formats

COLUMNS, ROWS = 32, 32
"""Columns and rows of a sheet; a sheet with thumbnails of 64 pixels needs 16 MiB of memory in a browser."""

METHOD = 1
"""The effort of the WebP encoder, from 0 to 6: 4 takes twice the time for files that are 2% smaller."""


@dataclass(frozen=True)
class Tile:
    """The position of a thumbnail.

    Args:
        sheet: the number of its sheet on the page.
        x: the horizontal position, from 0% for the first column to 100% for the last.
        y: the vertical position, in the same way.

    Examples:
        >>> Tile(0, 100.0, 0.0).style
        '--x:100%;--y:0%'
    """

    sheet: int
    x: float
    y: float

    @property
    def style(self) -> str:
        """The position as CSS."""
        return f"--x:{self.x:.5g}%;--y:{self.y:.5g}%"


@dataclass(frozen=True)
class Sheet:
    """A sheet of thumbnails, encoded.

    Args:
        number: the number of the sheet on the page.
        columns: the number of thumbnails in a row.
        rows: the number of rows.
        data: the image, as a data URI.

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
    """Shrink an image to fit a square; smaller images are not enlarged.

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
    return image.resize(size, Image.Resampling.HAMMING)  # a third of the time of Lanczos


def sprite_sheets(
    thumbnails: Mapping[int, Image.Image], *, first: int, quality: int = 75
) -> tuple[list[Sheet], dict[int, Tile]]:
    """Combine thumbnails to sheets.

    Args:
        thumbnails: the thumbnails, by row; see `thumbnail`.
        first: the number of the first sheet.
        quality: the quality of the WebP images, up to 100.

    Returns:
        The sheets, and the position of each thumbnail.

    Examples:
        >>> sheets, tiles = sprite_sheets({row: Image.new("RGB", (16, 16)) for row in range(1025)}, first=3)
        >>> [(sheet.number, sheet.columns, sheet.rows) for sheet in sheets], tiles[1].x, tiles[1024].sheet
        ([(3, 32, 32), (4, 1, 1)], 3.225806451612903, 4)
    """
    rows = list(thumbnails)
    largest = max((max(image.size) for image in thumbnails.values()), default=16)
    side = -(-largest // 16) * 16  # a multiple of WebP's block size, so that colors do not leak into the next thumbnail
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
    # enlarge small images, so that all thumbnails have the same size on the page
    images = [_enlarge(image, side) for image in images]
    opaque = all(image.mode == "RGB" and image.size == (side, side) for image in images)
    # the background is transparent, unless opaque thumbnails cover all of it
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


SMALL = 64
"""The side of a thumbnail on the map."""

LADDER = ((SMALL, 75), (SMALL, 50), (48, 50), (32, 40))
"""Sizes and qualities of the thumbnails of a map, tried in this order until they fit."""


def fitting_sheets(
    thumbnails: Mapping[int, Image.Image], *, first: int, budget: int
) -> tuple[list[Sheet], dict[int, Tile]]:
    """Create sheets of at most ``budget`` bytes in total, with smaller or coarser thumbnails if needed.

    If even the smallest thumbnails do not fit, they are used anyway.

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
