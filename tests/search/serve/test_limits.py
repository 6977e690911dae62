"""What is let in: by content, by size before decoding, and never by a path that a user gives."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest
from PIL import Image

from likewise.search.places import place_below
from likewise.search.serve.limits import FORMATS, Limits, RequestError, kind_by_content, read_upload
from likewise.testing import loop_over
from tests.search.serve.conftest import as_file, draw


def png_claiming(width: int, height: int) -> bytes:
    """A file of some hundred bytes that says it is so large."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(64))) + chunk(b"IEND", b"")


KINDS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")


@loop_over("kind", KINDS)
def test_images_are_known_by_their_bytes(kind: str):
    data = as_file(draw("disc", "teal", 1), kind)
    assert kind_by_content(data) == kind
    assert kind in FORMATS
    image = read_upload(data, Limits())
    assert image.mode == "RGB"
    assert image.size == (120, 90)


@loop_over("kind", ["ICO", "PPM", "TGA", "PCX", "JPEG2000"])
def test_other_types_are_refused_though_pillow_could(kind: str):
    with pytest.raises(RequestError, match="must be a JPEG, PNG") as refused:
        read_upload(as_file(draw("disc", "teal", 1), kind), Limits())
    assert refused.value.status == 415


@loop_over(
    "data, status",
    [
        (b"", 422),
        (b"hello, I am a text", 415),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", 415),
        (b"<!doctype html><script>1</script>", 415),
        (b"PK\x03\x04" + bytes(60), 415),
        (b"%!PS-Adobe-3.0 EPSF-3.0", 415),
        (b"GIF89a/*" + bytes(50) + b"*/=1;alert(1)", 422),
        (b"\xff\xd8\xff" + b"<script>" * 20, 422),
        (b"BM" + bytes(80), 422),
        (b"RIFF\x10\0\0\0WEBPVP8 " + bytes(40), 422),
        (b"II*\0" + bytes(40), 422),
        (b"\0\0\0\x20ftypavif" + bytes(60), 422),
    ],
)
def test_what_is_no_image(data: bytes, status: int):
    with pytest.raises(RequestError) as refused:
        read_upload(data, Limits())
    assert refused.value.status == status
    assert "\n" not in str(refused.value)


@loop_over("kind", KINDS)
@loop_over("share", [0.1, 0.5, 0.9])
def test_truncated(kind: str, share: float):
    data = as_file(draw("ring", "crimson", 2, (300, 200)), kind)
    with pytest.raises(RequestError) as refused:
        read_upload(data[: int(len(data) * share)], Limits())
    assert refused.value.status in (413, 422)


@loop_over("size", [(100_000, 100_000), (2**31 - 1, 2**31 - 1), (8000, 7000), (60_000_000, 1)])
def test_a_bomb_is_refused_before_it_is_decoded(size: tuple[int, int]):
    data = png_claiming(*size)
    tracemalloc.start()
    try:
        with pytest.raises(RequestError) as refused:
            read_upload(data, Limits())
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()
    assert refused.value.status == 413


def test_pixels_at_the_limit_pass():
    data = as_file(Image.new("L", (100, 50)))
    assert read_upload(data, Limits(pixels=5000)).size == (100, 50)
    with pytest.raises(RequestError, match="at most 4,999 pixels, but it has 100 x 50"):
        read_upload(data, Limits(pixels=4999))


def test_a_polyglot_is_an_image_and_nothing_else():
    """What follows an image is neither looked at nor handed on."""
    data = as_file(draw("square", "orange", 4), "JPEG")
    image = read_upload(data + b"<script>alert(1)</script>PK\x03\x04", Limits())
    assert image.tobytes() == read_upload(data, Limits()).tobytes()
    assert image.info == {}


def test_places_below_a_root(tmp_path: Path):
    root, outside = tmp_path / "root", tmp_path / "secret.png"
    (root / "a").mkdir(parents=True)
    (root / "a" / "in.png").write_bytes(b"x")
    outside.write_bytes(b"secret")
    (root / "link.png").symlink_to(outside)
    (root / "up").symlink_to(tmp_path)
    (root / "fine.png").symlink_to(root / "a" / "in.png")
    assert place_below(root, "a/in.png") == (root / "a" / "in.png").resolve()
    assert place_below(root, "fine.png") is not None
    assert place_below(root, str(root / "a" / "in.png")) is not None
    for path in (
        "../secret.png",
        "a/../../secret.png",
        str(outside),
        "link.png",
        "up/secret.png",
        "a",
        "",
        "a\0b",
        "/",
    ):
        assert place_below(root, path) is None, path
    assert place_below(None, "a/in.png") is None
