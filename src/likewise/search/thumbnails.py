"""Thumbnails of items, as WebP files."""

from __future__ import annotations

import io

from PIL import Image

THUMBNAIL_SIDE = 160
"""The longer side of a thumbnail in pixels."""

QUALITY, METHOD = 78, 2
"""Quality (of 100) and encoding effort (of 6) of WebP: more effort takes longer than decoding the photograph."""


def thumbnail(image: Image.Image, side: int = THUMBNAIL_SIDE) -> bytes:
    """Return an image reduced to fit into a square, never enlarged, as a WebP file.

    Args:
        image: an upright image in RGB.
        side: side of the square, in pixels.

    Examples:
        >>> Image.open(io.BytesIO(thumbnail(Image.new("RGB", (400, 100)), 64))).size
        (64, 16)
    """
    scale = side / max(image.size)
    if scale < 1.0:
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    file = io.BytesIO()
    image.save(file, "WEBP", quality=QUALITY, method=METHOD)
    return file.getvalue()
