"""A table of small pictures and the texts that describe them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

COLORS = {
    "red": (220, 30, 30),
    "green": (30, 200, 40),
    "blue": (30, 40, 220),
    "yellow": (230, 220, 30),
    "white": (240, 240, 240),
    "pink": (250, 150, 180),
}
SHADES = {"dark": 0.4, "pale": 0.7, "bright": 1.0}


def write_squares(folder: Path, images: int = 2) -> Path:
    """Squares of 18 colors, each with a text; the table is ``squares.csv``."""
    chance, rows = np.random.default_rng(0), ["image,text"]
    for color, rgb in COLORS.items():
        for shade, factor in SHADES.items():
            for number in range(images):
                name = f"{shade}-{color}-{number}.png"
                pixels = np.array(rgb) * factor + chance.normal(0, 8, (32, 32, 3))
                Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(folder / name)
                rows.append(f"{name},a {shade} {color} square")
    table = folder / "squares.csv"
    table.write_text("\n".join(rows))
    return table
