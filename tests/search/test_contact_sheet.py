"""Contact sheets: every picture in its place, nothing over the edge, and small pictures that stay sharp."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from likewise.search.contact_sheet import CELL, EDGE, GAP, Shot, draw_contact_sheet
from likewise.search.thumbnails import thumbnail


def plain(color: str, size: tuple[int, int] = (50, 50)) -> Image.Image:
    return Image.new("RGB", size, color)


def at(sheet: Image.Image, column: int, line: int, top: int = EDGE) -> tuple[int, ...]:
    """The color in the middle of a picture's place."""
    tall = CELL + 2 * 19 + 6
    pixel = sheet.getpixel((EDGE + column * (CELL + GAP) + CELL // 2, top + line * (tall + GAP) + CELL // 2))
    assert isinstance(pixel, tuple)
    return pixel


def test_a_long_row_goes_on_under_what_was_found():
    colors = [(20 * number, 10, 200) for number in range(8)]
    row = [Shot(plain("rgb({}, {}, {})".format(*each)), "x", lead=not number) for number, each in enumerate(colors)]
    sheet = draw_contact_sheet([row], columns=4)
    assert [at(sheet, column, 0) for column in range(4)] == colors[:4]
    assert [at(sheet, column, 1) for column in range(1, 4)] == colors[4:7]
    assert at(sheet, 0, 1) == (255, 255, 255)  # the query stands alone in its column
    assert at(sheet, 1, 2) == colors[7]
    without = [Shot(shot.image, shot.title) for shot in row]
    assert at(draw_contact_sheet([without], columns=4), 0, 1) == colors[4]


def test_nothing_is_drawn_over_the_edge():
    long = "a very long name of a file " * 20
    sheet = draw_contact_sheet(
        [[Shot(plain("red", (10, 500)), long, long, lead=True), Shot(None, long)]], heading=long, detail=long
    )
    pixels = np.asarray(sheet)
    assert (pixels[:, -EDGE + 8 :] == 255).all()
    cells = pixels[EDGE + 2 * 19 :]
    assert (cells[:, :EDGE] == 255).all()
    assert (cells[:, EDGE + 2 * CELL + GAP + 2 :] == 255).all()
    assert (cells[:, EDGE + CELL + 2 : EDGE + CELL + GAP - 2] == 255).all()


def test_an_empty_sheet_and_bad_columns():
    assert draw_contact_sheet([]).size[0] >= 300
    assert draw_contact_sheet([[]]).size[0] >= 300
    with pytest.raises(ValueError, match="columns must be a whole number ≥ 2, but it is 1"):
        draw_contact_sheet([], columns=1)


def test_files_and_pixels_are_the_same_picture():
    image = plain("#2040a0", (300, 200))
    file = BytesIO()
    image.save(file, "PNG")
    one, other = (np.asarray(draw_contact_sheet([[Shot(each, "x")]])) for each in (image, file.getvalue()))
    assert np.array_equal(one, other)


def test_thumbnails_keep_their_shape_and_are_never_enlarged():
    for size, expected in [
        ((640, 480), (160, 120)),
        ((100, 1000), (16, 160)),
        ((3000, 1), (160, 1)),
        ((20, 10), (20, 10)),
    ]:
        small = Image.open(BytesIO(thumbnail(plain("green", size))))
        assert (small.format, small.size) == ("WEBP", expected)


def test_names_with_lines_and_bytes_that_are_no_picture():
    plain = draw_contact_sheet([[Shot(None, "title", "a\ufffdb.jpg")]])
    odd = draw_contact_sheet([[Shot(b"RIFF0000WEBPVP8 ", "title", "a\nb.jpg")]])
    assert plain.tobytes() == odd.tobytes()
