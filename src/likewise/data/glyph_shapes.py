"""The shapes of `Glyphs`: characters that all twelve DejaVu faces share, drawn at one size, without look-alikes.

The list of characters is stored in `likewise.data.glyph_characters`.  The rule that produced it is here, and a test
compares both.  The list is stored so that another release of Unicode, Pillow or FreeType cannot move a character to
another split.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from likewise.data.random_source import Array

FACES = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSans-BoldOblique",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique",
    "DejaVuSansMono-BoldOblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-Italic",
    "DejaVuSerif-BoldItalic",
)

# Two characters are look-alikes if, in at least this many faces, no point of one is farther from the other than this many
# pixels of the fine drawing of a 32 x 32 image; the fine drawing has two pixels per image pixel.
_ALIKE_IN = 4
_ALIKE_WITHIN = 3.0


@lru_cache(maxsize=1)
def font_folder() -> Path:
    """Return the folder of the fonts of matplotlib.

    Examples:
        >>> (font_folder() / "DejaVuSans.ttf").is_file()
        True
    """
    package = find_spec("matplotlib")  # its import takes half a second, and only the fonts are needed
    if package is None or package.origin is None:
        raise ImportError("Glyphs needs matplotlib for its fonts: pip install 'likewise[train]'")
    folder = Path(package.origin).parent / "mpl-data" / "fonts" / "ttf"
    for face in FACES:
        if not (folder / f"{face}.ttf").is_file():
            raise FileNotFoundError(f"Glyphs needs the fonts of matplotlib, but {folder / face}.ttf is not there")
    return folder


def shared_characters() -> str:
    """Return all letters, numerals and symbols (Unicode categories L, N and S) that every face has, by code point.

    Examples:
        >>> len(shared_characters())
        2197
    """
    from fontTools.ttLib import TTFont  # a dependency of matplotlib

    coded = []
    for face in FACES:
        with TTFont(font_folder() / f"{face}.ttf", lazy=True) as font:
            coded.append(set(font.getBestCmap()))
    shared = map(chr, sorted(set.intersection(*coded)))
    return "".join(character for character in shared if unicodedata.category(character)[0] in "LNS")


def draw_shape(character: str, face: int, *, size: int = 32) -> Array:
    """Draw a character at twice the resolution of an image: ``(2 size, 2 size)`` bytes, 255 for ink and 0 for paper.

    The longer side of the ink is 1.4 times the size, and the ink is centered: position on the line and size are not part
    of the shape of a character.

    Args:
        character: the character.
        face: an index into ``FACES``.
        size: size of the images that the drawing is for.

    Examples:
        >>> shape = draw_shape("I", 0)
        >>> shape.shape, int(shape.max()), int((shape.max(axis=1) > 0).sum())
        ((64, 64), 255, 44)
    """
    box, side = size * 7 // 5, size * 2
    canvas = Image.new("L", (side, side))
    em = 3 * size
    while True:  # a small shape, such as a dot, is drawn at a larger font size instead of being enlarged
        font = _font(face, em)
        left, top, right, bottom = (int(edge) for edge in font.getbbox(character))
        if max(right - left, bottom - top) >= box or em > 64 * size:
            break
        em *= 2
    drawing = Image.new("L", (right - left + 2, bottom - top + 2))
    ImageDraw.Draw(drawing).text((1 - left, 1 - top), character, fill=255, font=font)
    ink = drawing.getbbox()
    if ink is None:
        return np.asarray(canvas)
    drawing = drawing.crop(ink)
    wide, high = (max(1, round(edge * box / max(drawing.size))) for edge in drawing.size)
    canvas.paste(drawing.resize((wide, high), Image.Resampling.HAMMING), ((side - wide) // 2, (side - high) // 2))
    return np.asarray(canvas)


@lru_cache(maxsize=64)
def _font(face: int, em: int) -> ImageFont.FreeTypeFont:
    # The basic layout is always available and has no ligatures; raqm may be missing, and may place ink differently.
    return ImageFont.truetype(font_folder() / f"{FACES[face]}.ttf", em, layout_engine=ImageFont.Layout.BASIC)


def alike(some: str, others: str) -> Array:
    """Return which characters are look-alikes, as booleans ``(len(some), len(others))``.

    Two characters are look-alikes if, in at least four of the twelve faces, at 32 x 32, all ink of either lies within 1.5
    pixels of ink of the other, and all paper of either within 1.5 pixels of paper of the other (two Hausdorff distances).

    Examples:
        >>> alike("AO", "\u0391\u0416\u041e").tolist()  # Latin A and O; Greek Alpha, Cyrillic Zhe and O
        [[True, False, False], [False, False, True]]
    """
    faces = np.zeros((len(some), len(others)), dtype=np.int64)
    for face in range(len(FACES)):
        faces += _find_alike(_ink(some, face), _ink(others, face))
    return faces >= _ALIKE_IN


def distinct(characters: str) -> str:
    """Return the characters without blanks and look-alikes: the first of several look-alikes stays.

    Examples:
        >>> distinct("AB\u0391\u0392")  # Latin A and B, Greek Alpha and Beta
        'AB'
    """
    faces = np.zeros((len(characters), len(characters)), dtype=np.int64)
    blank = np.zeros(len(characters), dtype=np.bool_)
    for face in range(len(FACES)):
        ink = _ink(characters, face)
        blank |= ~ink.any(axis=(1, 2))
        faces += _find_alike(ink, ink)
    kept: list[int] = []
    for index in range(len(characters)):
        if not blank[index] and not (faces[index, kept] >= _ALIKE_IN).any():
            kept.append(index)
    return "".join(characters[index] for index in kept)


def _ink(characters: str, face: int) -> Array:
    """Return where there is ink, ``(n, 64, 64)`` booleans."""
    return np.stack([draw_shape(character, face) > 127 for character in characters])


def _find_alike(some: Array, others: Array) -> Array:
    """Return which shapes of one face are look-alikes, ``(len(some), len(others))``."""
    near, near_others = _dilate(some), _dilate(others)
    result = _roughly_inside(some, near_others) & _roughly_inside(others, near).T
    rows, columns = result.nonzero()  # few pairs need the exact comparison
    alike_in_ink = _inside(some, near_others, rows, columns) & _inside(others, near, columns, rows)
    near, near_others = _dilate(~some), _dilate(~others)
    alike_in_paper = _inside(~some, near_others, rows, columns) & _inside(~others, near, columns, rows)
    result[rows, columns] = alike_in_ink & alike_in_paper
    return result


def _dilate(shapes: Array) -> Array:
    """Return all pixels near a shape, including the shape."""
    near = np.zeros_like(shapes)
    side, reach = shapes.shape[1], int(_ALIKE_WITHIN)
    for down in range(-reach, reach + 1):
        for across in range(-reach, reach + 1):
            if down * down + across * across <= _ALIKE_WITHIN**2:
                to = (slice(max(0, down), side + min(0, down)), slice(max(0, across), side + min(0, across)))
                of = (slice(max(0, -down), side + min(0, -down)), slice(max(0, -across), side + min(0, -across)))
                near[:, *to] |= shapes[:, *of]
    return near


def _roughly_inside(some: Array, others: Array) -> Array:
    """Return whether each 4 x 4 cell that one shape touches is touched by the other: a necessary condition, cheap for all pairs."""
    cells = [
        shapes.reshape(len(shapes), 16, 4, 16, 4).any(axis=(2, 4)).reshape(len(shapes), -1) for shapes in (some, others)
    ]
    few, many = (each.astype(np.float32) for each in cells)
    # counts are exact in float32
    return np.asarray(few @ many.T == few.sum(axis=1, keepdims=True))


def _inside(some: Array, others: Array, rows: Array, columns: Array) -> Array:
    """Return whether one shape lies inside the other, for pairs of rows and columns."""
    few, many = (np.packbits(shapes.reshape(len(shapes), -1), axis=1) for shapes in (some, others))
    return np.asarray(~np.any(few[rows] & ~many[columns], axis=1))


def kinds_of(characters: Sequence[str]) -> tuple[list[int], tuple[str, ...]]:
    """Return the kind of each character, as an index, and the names of the kinds.

    Examples:
        >>> kinds, names = kinds_of("Añ8+")
        >>> [names[kind] for kind in kinds]
        ['Latin', 'Latin', 'numerals', 'mathematics']
    """
    names = (
        "Latin",
        "Greek",
        "Cyrillic",
        "Armenian",
        "Georgian",
        "other letters",
        "numerals",
        "mathematics",
        "other symbols",
    )
    return [names.index(_kind(character)) for character in characters], names


def _kind(character: str) -> str:
    category, script = unicodedata.category(character), unicodedata.name(character).split()[0].title()
    if category[0] == "L":
        return script if script in ("Latin", "Greek", "Cyrillic", "Armenian", "Georgian") else "other letters"
    return "numerals" if category[0] == "N" else "mathematics" if category == "Sm" else "other symbols"
