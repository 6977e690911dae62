"""Draw docs/assets/figures/glyphs.png: test characters of `likewise.data.Glyphs` as a network sees them, one to a row."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from likewise.data.glyphs import Glyphs

ROWS = 12
GAP = 2  # pixels between images
ZOOM = 2


def sheet(glyphs: Glyphs, rows: int) -> Image.Image:
    """Every image of some characters, spread over the whole list."""
    labels = np.linspace(0, len(glyphs.class_names) - 1, rows).astype(int)
    side, columns = glyphs.size + GAP, glyphs.images_per_class
    page = Image.new("L", (columns * side - GAP, rows * side - GAP), 255)
    for row, label in enumerate(labels):
        for column in range(columns):
            image = glyphs.image(int(label) * columns + column).convert("L")
            page.paste(image, (column * side, row * side))
    return page.resize((page.width * ZOOM, page.height * ZOOM), Image.Resampling.NEAREST).quantize(16)


if __name__ == "__main__":
    target = Path(
        sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "assets" / "figures" / "glyphs.png"
    )
    sheet(Glyphs("test"), ROWS).save(target, optimize=True)
    print(target)
