"""Decoding of image files to upright RGB images, or one error sentence that names the file and the problem."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageCms, UnidentifiedImageError
from PIL.Image import Transpose

_ORIENTATION = 0x0112  # the EXIF tag of the camera orientation
_UPRIGHT = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}


class BrokenImage(Exception):  # noqa: N818 - named after the cause
    """An image that cannot be read, and the reason.

    Args:
        source: the file, or a description of the origin of the image.
        reason: why the image cannot be read; ``None`` if the source is the whole message (the worker of a data loader
            passes an error on as text).

    Examples:
        >>> print(BrokenImage("cat.jpg", "the file is empty"))
        cannot read the image cat.jpg: the file is empty
    """

    def __init__(self, source: str, reason: str | None = None):
        super().__init__(source if reason is None else f"cannot read the image {source}: {reason}")
        self.source = source
        self.reason = reason


@dataclass(frozen=True)
class Broken:
    """A broken image of a data set, as returned by `find_broken`.

    Examples:
        >>> print(Broken(3, "cat.jpg", "the file is empty"))
        3: cat.jpg: the file is empty
    """

    index: int
    source: str
    reason: str

    def __str__(self) -> str:
        return f"{self.index}: {self.source}: {self.reason}"


class TooLarge(BrokenImage):
    """An image that would need too much memory or time.

    Examples:
        >>> print(TooLarge("cat.jpg", "it has 900 scans"))
        cannot read the image cat.jpg: it has 900 scans
    """


SCANS = 64
"""The largest number of scans of a JPEG file: each is a pass over all pixels, and encoders write 10 to 20."""

PROGRAMS = ("EPS", "WMF")
"""Formats that Pillow does not decode itself: it would pass the file to Ghostscript or to the operating system."""

TILE = 4
"""The largest ratio of the pixels of a TIFF tile to those of the image: a tile is allocated as a whole."""


def decode(
    source: str | os.PathLike[str] | bytes,
    *,
    name: str | None = None,
    formats: Sequence[str] | None = None,
    pixels: int | None = None,
) -> Image.Image:
    """Read an image from a file or from the bytes of a file, as upright RGB.

    Gray, palette, CMYK, LAB and 16-bit images are converted; transparent images are composited on white; only the first
    frame of an animation is read; the EXIF orientation is applied.  Color profiles are ignored.

    Args:
        source: a path, or the bytes of a file.
        name: name of the image in error messages; by default its path.
        formats: Pillow's names of the allowed formats; by default all except EPS and WMF, which run other programs.
        pixels: largest number of pixels; by default Pillow's limit.

    Raises:
        BrokenImage: the file is missing, empty, truncated or not an image.
        TooLarge: it has too many pixels, too many scans or too large tiles.

    Examples:
        >>> from io import BytesIO
        >>> file = BytesIO()
        >>> Image.new("LA", (2, 1), (0, 0)).save(file, "PNG")  # a transparent image, on white
        >>> decode(file.getvalue()).getpixel((0, 0))
        (255, 255, 255)
        >>> decode(file.getvalue(), name="a.png", pixels=1)
        Traceback (most recent call last):
        likewise.data.decode.TooLarge: cannot read the image a.png: it must have at most 1 pixels, but it has 2 x 1: make it smaller
    """
    if name is None:
        name = f"of {len(source)} bytes" if isinstance(source, bytes) else os.fspath(source)
    try:
        with _open(source) as file, Image.open(file, formats=None if formats is None else list(formats)) as image:
            _check_size(image, file, name, pixels)
            image.load()
            return to_rgb(image)
    except BrokenImage:
        raise
    except FileNotFoundError as error:
        raise BrokenImage(name, "there is no such file") from error
    except UnidentifiedImageError as error:
        empty = len(source) == 0 if isinstance(source, bytes) else os.path.getsize(source) == 0
        raise BrokenImage(name, "the file is empty" if empty else "it is not an image of a known format") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise TooLarge(name, f"it is too large to be decoded safely ({_first_line(error)})") from error
    except MemoryError:
        raise
    except Exception as error:  # a decoder may raise nearly anything on invalid data
        reason = _first_line(error)
        raise BrokenImage(name, "the file is cut off" if _is_cut_off(source, reason) else reason) from error


def _is_cut_off(source: str | os.PathLike[str] | bytes, reason: str) -> bool:
    """Return whether the decoder reports a truncated file, or a RIFF file (WebP) is shorter than its header states."""
    if "truncated" in reason.lower():
        return True
    if not isinstance(source, bytes) and not os.path.isfile(source):
        return False
    with _open(source) as file:
        head = file.read(8)
        return head[:4] == b"RIFF" and file.seek(0, os.SEEK_END) < 8 + int.from_bytes(head[4:], "little")


def _check_size(image: Image.Image, file: BinaryIO, name: str, pixels: int | None) -> None:
    """Reject a file whose header or structure implies excessive memory or time; nothing is decoded."""
    if image.format in PROGRAMS:
        raise BrokenImage(name, f"it is an {image.format} file, which only an external program can decode")
    width, height = image.size
    if pixels is not None and width * height > pixels:
        raise TooLarge(
            name, f"it must have at most {pixels:,} pixels, but it has {width:,} x {height:,}: make it smaller"
        )
    if image.format in ("JPEG", "MPO"):
        file.seek(0)
        data = file.read()
        scans = data.count(b"\xff\xda")  # an upper bound: other segments may contain these bytes
        if scans > SCANS and (scans := count_scans(data)) > SCANS:
            raise TooLarge(name, f"it must have at most {SCANS} scans, but it has {scans:,}")
    elif image.format == "TIFF":
        across, down = (_first(image.tag_v2.get(tag)) for tag in (322, 323))  # type: ignore[attr-defined]
        if across * down > max(TILE * width * height, 2**20):
            raise TooLarge(name, f"its tiles of {across:,} x {down:,} pixels are larger than the image")


def _first(value: object) -> int:
    value = value[0] if isinstance(value, tuple) and value else value
    return value if isinstance(value, int) else 0


_MARKER = re.compile(rb"\xff+([^\x00\xd0-\xd7\xff])")
"""A marker in the data of a scan; 0xff 0x00 is an escaped 0xff, and restart markers do not end the scan."""


def count_scans(data: bytes) -> int:
    """Count the scans of a JPEG file.

    Examples:
        >>> from io import BytesIO
        >>> for progressive in (False, True):
        ...     file = BytesIO()
        ...     Image.new("RGB", (64, 64)).save(file, "JPEG", progressive=progressive)
        ...     print(count_scans(file.getvalue()))
        1
        10
    """
    scans, place = 0, 2  # after the first marker, which has no length
    while (found := _MARKER.search(data, place)) is not None:
        marker, place = found[1][0], found.end()
        if marker == 0xD9:  # the end; another picture may follow
            break
        if marker in (0x01, 0xD8):
            continue
        scans += marker == 0xDA
        place += max(2, int.from_bytes(data[place : place + 2], "big"))
    return scans


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert an image to plain RGB, upright, without the metadata of its file.

    Examples:
        >>> to_rgb(Image.new("CMYK", (1, 1), (0, 255, 255, 0))).getpixel((0, 0))
        (255, 0, 0)
        >>> to_rgb(Image.fromarray(np.array([[0, 257 * 7, 65535]], dtype=np.uint16))).getpixel((1, 0))
        (7, 7, 7)
    """
    turn = _UPRIGHT.get(_orientation(image))
    if image.mode.startswith("I") or image.mode == "F":
        rgb = _from_deep_gray(image)
    elif image.mode == "LAB":
        rgb = _from_lab(image)
    elif image.mode in ("LA", "RGBA", "PA", "La", "RGBa") or "transparency" in image.info:
        # Pillow converts premultiplied gray only to this mode
        clear = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
        rgb = Image.alpha_composite(Image.new("RGBA", image.size, "white"), clear).convert("RGB")
    else:
        rgb = image.convert("RGB")
    upright = rgb if turn is None else rgb.transpose(turn)
    upright.info = {}  # otherwise the orientation would be applied twice
    return upright


def crop_to_box(image: Image.Image, box: Sequence[float], name: str) -> Image.Image:
    """Crop an image to a box of left, top, width and height; a box of NaN returns the whole image.

    Examples:
        >>> crop_to_box(Image.new("RGB", (10, 10)), (2.0, 3.0, 4.0, 100.0), "a").size
        (4, 7)
    """
    if any(np.isnan(box)):
        return image
    left, top, width, height = box
    edges = max(0, round(left)), max(0, round(top)), round(left + width), round(top + height)
    right, bottom = min(image.width, edges[2]), min(image.height, edges[3])
    if right <= edges[0] or bottom <= edges[1]:
        sides = f"({left:g}, {top:g}, {width:g}, {height:g})"
        raise BrokenImage(name, f"its box {sides} contains none of its {image.width} x {image.height} pixels")
    return image.crop((edges[0], edges[1], right, bottom))


def _open(source: str | os.PathLike[str] | bytes) -> BinaryIO:
    return BytesIO(source) if isinstance(source, bytes) else open(source, "rb")


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # the pixels are valid even if the EXIF block is damaged
        return 1


def _from_lab(image: Image.Image) -> Image.Image:
    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    rgb = ImageCms.profileToProfile(image, lab, srgb, outputMode="RGB")
    assert rgb is not None  # None is returned only for a conversion in place
    return rgb


def _from_deep_gray(image: Image.Image) -> Image.Image:
    """Scale 16 bits to 8; Pillow's conversion would clip all values above 255."""
    sixteen = image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM"))
    if not sixteen:
        raise ValueError(f"its 32-bit values (mode {image.mode}) have no defined white: save it with 8 or 16 bits")
    values = np.asarray(image).astype(np.int64)
    gray = ((values + 128) // 257).clip(0, 255).astype(np.uint8)  # 65535 = 257 · 255
    if isinstance(image.info.get("transparency"), int):
        gray[values == image.info["transparency"]] = 255
    return Image.fromarray(gray).convert("RGB")


def _first_line(error: Exception) -> str:
    """Return the first line of an error, for use inside a sentence."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text.strip() or type(error).__name__).splitlines()[0].rstrip(".")
