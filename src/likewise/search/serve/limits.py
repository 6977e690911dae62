"""What a server accepts: how large, how many, how long, and which images; checked before anything is decoded."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from PIL import Image

from likewise.data import BrokenImage, TooLarge, decode
from likewise.formula import whole_number
from likewise.search.serve.decoders import Decoders

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
        in_flight: bytes of all bodies that are held at the same time; one that is allowed is always accepted.
        pixels: of an image, before it is decoded: an image of a few bytes may claim billions.
        seconds: for a request, from its first byte to its answer.
        decode_seconds: for decoding an image; its process is killed then.
        decode_memory: bytes that a process may take that decodes images.
        waiting: searches that may wait; one more is refused.
        uploads: requests with a body that are read, decoded and embedded at the same time.
        k: neighbors that may be asked for.
        vectors: queries in one request.
        page: items on a page of a listing.
        sorted: items of an index that is sorted into near-duplicates or clusters.

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


def read_upload(data: bytes, limits: Limits, name: str = "the image", decoders: Decoders | None = None) -> Image.Image:
    """An uploaded image, upright and in RGB, or one sentence that says why not.

    Its type is known by its first bytes, and its size is read from its header: nothing is decoded that is too large.

    Args:
        data: the bytes of a file.
        limits: how large it may be.
        name: what it is called in the sentence.
        decoders: the processes that decode it; ``None``: this process does.

    Examples:
        >>> read_upload(b"%PDF-1.7", Limits())
        Traceback (most recent call last):
        likewise.search.serve.limits.Refused: the image must be a JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF file, but it is none of these
    """
    if not data:
        raise Refused(422, f"{name} must be an image, but the file is empty")
    kind = kind_by_content(data[:HEAD])
    if kind is None:
        raise Refused(415, f"{name} must be a {SPOKEN} file, but it is none of these")
    formats = ["JPEG", "MPO"] if kind == "JPEG" else [kind]
    try:
        if decoders is not None:
            return decoders.decode(data, name, formats, pixels=limits.pixels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a decoder on what it passes over; pixels are limited here
            return decode(data, name=name, formats=formats, pixels=limits.pixels)
    except TooLarge as large:
        raise Refused(413, f"{name} cannot be read: {large.reason}") from large
    except BrokenImage as broken:
        raise Refused(422, f"{name} cannot be read: {broken.reason}") from broken
    except MemoryError as error:
        raise Refused(413, f"{name} is too large for this machine's memory") from error
