"""What a server accepts: how large, how many, how long, and which images; checked before anything is decoded."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from likewise.data import BrokenImage, decode
from likewise.formula import whole_number

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "MPO")
"""Pillow's names of what an upload may be; MPO is a telephone's JPEG with a second picture in it."""

TYPES = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "AVIF": "image/avif",
}
"""What browsers show as it is."""

SPOKEN = "JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF"

HEAD = 64
"""Bytes by which a type is known."""


@dataclass(frozen=True)
class Limits:
    """How much a server takes on.

    Args:
        upload: bytes of a request's body.
        pixels: of an image, before it is decoded: an image of a few bytes may claim billions.
        seconds: for a request, from its first byte to its answer.
        waiting: searches that may wait; one more is told to come back.
        uploads: requests with a body that are read, decoded and embedded at the same time.
        k: neighbors that may be asked for.
        vectors: queries in one request.
        page: items on a page of a listing.

    Examples:
        >>> Limits().upload
        20000000
        >>> Limits(uploads=0)
        Traceback (most recent call last):
        ValueError: uploads must be a whole number ≥ 1, but it is 0
    """

    upload: int = 20_000_000
    pixels: int = 50_000_000
    seconds: float = 30.0
    waiting: int = 256
    uploads: int = 32
    k: int = 1000
    vectors: int = 256
    page: int = 200

    def __post_init__(self) -> None:
        for name in ("upload", "pixels", "waiting", "uploads", "k", "vectors", "page"):
            whole_number(name, getattr(self, name), 1)
        if not self.seconds > 0.0:
            raise ValueError(f"seconds must be a number > 0, but it is {self.seconds!r}")


class Refused(Exception):  # noqa: N818 - it names what it is about
    """A request that is answered with a sentence and not with a result.

    Args:
        status: of the answer, such as 422.
        sentence: what is wrong.
        retry: after how many seconds it may be asked again.

    Examples:
        >>> print(Refused(404, "there is no item 7"))
        there is no item 7
    """

    def __init__(self, status: int, sentence: str, retry: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.retry = status, retry


def kind_by_content(head: bytes) -> str | None:
    """What an image is by its first bytes, whatever its name says.

    Examples:
        >>> kind_by_content(b"GIF89a..."), kind_by_content(b"<svg xmlns="), kind_by_content(b"")
        ('GIF', None, None)
    """
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "WEBP"
    if head.startswith(b"BM"):
        return "BMP"
    if head.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return "TIFF"
    if head[4:8] == b"ftyp" and head[8:12] in (b"avif", b"avis"):
        return "AVIF"
    return None


def checked_image(data: bytes, limits: Limits, name: str = "the image") -> Image.Image:
    """An uploaded image, upright and in RGB, or one sentence that says why not.

    Its type is known by its first bytes, and its size is read from its header: nothing is decoded that is too large.

    Args:
        data: the bytes of a file.
        limits: how large it may be.
        name: what it is called in the sentence.

    Examples:
        >>> checked_image(b"%PDF-1.7", Limits())
        Traceback (most recent call last):
        likewise.search.serve.limits.Refused: the image must be a JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF file, but it is none of these
    """
    if not data:
        raise Refused(422, f"{name} must be an image, but the file is empty")
    kind = kind_by_content(data[:HEAD])
    if kind is None:
        raise Refused(415, f"{name} must be a {SPOKEN} file, but it is none of these")
    width, height = _size(data, kind, name)
    if width * height > limits.pixels:
        raise Refused(
            413,
            f"{name} must have at most {limits.pixels:,} pixels, but it has {width:,} x {height:,}: make it smaller",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a decoder on what it passes over; pixels are limited here
            return decode(data, name=name)
    except BrokenImage as broken:
        raise Refused(422, f"{name} cannot be read: {broken.reason}") from broken
    except MemoryError as error:
        raise Refused(413, f"{name} is too large for this machine's memory") from error


def _size(data: bytes, kind: str, name: str) -> tuple[int, int]:
    """Width and height as the header has them."""
    formats = ["JPEG", "MPO"] if kind == "JPEG" else [kind]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's own bound is a warning first
            with Image.open(io.BytesIO(data), formats=formats) as image:
                return image.size
    except Image.DecompressionBombError:
        raise Refused(413, f"{name} is too large to be decoded safely: make it smaller") from None
    except Exception:  # a parser that meets garbage may raise nearly anything
        raise Refused(422, f"{name} cannot be read: it begins as a {kind} file and does not go on as one") from None


def place_below(root: Path | None, path: str) -> Path | None:
    """The file of an item, if it is there and below its index's root, links followed; otherwise nothing.

    Args:
        root: where the index's images are.
        path: as the index has it; never what a user sent.

    Examples:
        >>> place_below(Path("/photos"), "../etc/passwd") is None
        True
    """
    if root is None or "\0" in path:
        return None
    try:
        top = root.resolve(strict=True)
        file = (top / path).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    return file if file.is_relative_to(top) and file.is_file() else None
