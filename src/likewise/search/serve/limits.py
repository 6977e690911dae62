"""Limits of a server: sizes, numbers, times and image formats, checked before an image is decoded."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from PIL import Image

from likewise.data import BrokenImage, TooLarge, decode
from likewise.formula import whole_number
from likewise.search.serve.decoders import Decoders

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "MPO")
"""Pillow's names of the formats of uploads; MPO is the JPEG of some phones, with a second picture."""

TYPES = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "AVIF": "image/avif",
}
"""Types that browsers display."""

FORMAT_NAMES = "JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF"

HEAD = 64
"""First bytes of files by type."""


@dataclass(frozen=True)
class Limits:
    """Limits of the requests to a server.

    Args:
        upload: bytes of a request body.
        in_flight: bytes of all bodies in memory at the same time; a single allowed body is always accepted.
        pixels: pixels of an image, checked before decoding, because an image of a few bytes may declare billions.
        seconds: time for a request, from its first byte to its answer.
        decode_seconds: time for decoding an image, after which its process is killed.
        decode_memory: memory of a decoding process in bytes.
        waiting: searches in the queue; further ones are rejected.
        uploads: requests with a body that are read, decoded and embedded at the same time.
        k: number of neighbors.
        vectors: number of queries in one request.
        page: number of items on a page of a listing.
        sorted: number of items of an index for which near-duplicates and clusters are computed.

    Examples:
        >>> Limits().upload
        20000000
        >>> Limits(uploads=0)
        Traceback (most recent call last):
        ValueError: uploads must be a whole number ≥ 1, but it is 0
    """

    upload: int = 20_000_000
    in_flight: int = 160_000_000
    pixels: int = 50_000_000
    seconds: float = 30.0
    decode_seconds: float = 20.0
    decode_memory: int = 1_500_000_000
    waiting: int = 256
    uploads: int = 32
    k: int = 1000
    vectors: int = 256
    page: int = 200
    sorted: int = 20_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not name.endswith("seconds"):
                whole_number(name, value, 1)
        for name in ("seconds", "decode_seconds"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name} must be a number > 0, but it is {getattr(self, name)!r}")


class RequestError(Exception):
    """A request that is answered with an error.

    Args:
        status: HTTP status of the answer, such as 422.
        sentence: the error message.
        retry: number of seconds after which the client may try again.

    Examples:
        >>> print(RequestError(404, "there is no item 7"))
        there is no item 7
    """

    def __init__(self, status: int, sentence: str, retry: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.retry = status, retry


def kind_by_content(head: bytes) -> str | None:
    """Return the type of an image by its first bytes, independent of its name.

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


def read_upload(data: bytes, limits: Limits, name: str = "the image", decoders: Decoders | None = None) -> Image.Image:
    """Decode an uploaded image, upright and in RGB, or raise an error of one sentence.

    The type is detected from the first bytes, and the size is read from the header: an image that is too large is not
    decoded.

    Args:
        data: the bytes of a file.
        limits: limits of size.
        name: name of the image in the error.
        decoders: the processes that decode it; ``None`` to decode in this process.

    Examples:
        >>> read_upload(b"%PDF-1.7", Limits())
        Traceback (most recent call last):
        likewise.search.serve.limits.RequestError: the image must be a JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF file, but it is not
    """
    if not data:
        raise RequestError(422, f"{name} must be an image, but the file is empty")
    kind = kind_by_content(data[:HEAD])
    if kind is None:
        raise RequestError(415, f"{name} must be a {FORMAT_NAMES} file, but it is not")
    formats = ["JPEG", "MPO"] if kind == "JPEG" else [kind]
    try:
        if decoders is not None:
            return decoders.decode(data, name, formats, pixels=limits.pixels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of decoders about skipped content; pixels are limited here
            return decode(data, name=name, formats=formats, pixels=limits.pixels)
    except TooLarge as large:
        raise RequestError(413, f"{name} cannot be read: {large.reason}") from large
    except BrokenImage as broken:
        raise RequestError(422, f"{name} cannot be read: {broken.reason}") from broken
    except MemoryError as error:
        raise RequestError(413, f"{name} is too large for this machine's memory") from error
