"""Images of every kind become upright RGB, and what cannot be read is named."""

from __future__ import annotations

import pickle
import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

from likewise.data import BrokenImage, decode, to_rgb
from likewise.data.decode import crop_to_box


def file_of(image: Image.Image, kind: str, **options: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def first(data: bytes) -> tuple[int, ...]:
    image = decode(data)
    assert image.mode == "RGB"
    assert type(image) is Image.Image
    return image.getpixel((0, 0))


def test_gray_and_bitmaps():
    assert first(file_of(Image.new("L", (2, 2), 77), "PNG")) == (77, 77, 77)
    assert first(file_of(Image.new("1", (2, 2), 1), "PNG")) == (255, 255, 255)
    assert first(file_of(Image.new("L", (8, 8), 77), "JPEG")) == (77, 77, 77)


def test_cmyk():
    """Full magenta and yellow is red; a JPEG by Adobe's convention stores the inks upside down, a TIFF does not."""
    red = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    assert first(file_of(red, "TIFF")) == (255, 0, 0)
    jpeg = file_of(red, "JPEG", quality=100)
    assert b"Adobe" in jpeg
    assert np.abs(np.subtract(first(jpeg), (255, 0, 0))).max() <= 2
    dark = file_of(Image.new("CMYK", (16, 16), (0, 0, 0, 204)), "JPEG", quality=100)
    assert np.abs(np.subtract(first(dark), (51, 51, 51))).max() <= 2


def test_palettes():
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((1, 0), 1)
    assert first(file_of(image, "PNG")) == (10, 20, 30)
    assert first(file_of(image, "GIF")) == (10, 20, 30)
    clear = decode(file_of(image, "PNG", transparency=0))
    assert clear.getpixel((0, 0)) == (255, 255, 255)
    assert clear.getpixel((1, 0)) == (200, 100, 50)
    half = decode(file_of(image, "PNG", transparency=bytes([255, 51])))
    # a fifth of the color on four fifths of white
    assert half.getpixel((1, 0)) == (round(0.2 * 200 + 204), round(0.2 * 100 + 204), round(0.2 * 50 + 204))


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_transparency_lies_on_white(kind: str):
    options = {"lossless": True, "exact": True} if kind == "WEBP" else {}
    assert first(file_of(Image.new("RGBA", (2, 2), (100, 0, 0, 0)), kind, **options)) == (255, 255, 255)
    assert first(file_of(Image.new("RGBA", (2, 2), (100, 0, 0, 255)), kind, **options)) == (100, 0, 0)
    assert first(file_of(Image.new("RGBA", (2, 2), (0, 0, 0, 51)), kind, **options)) == (204, 204, 204)


def test_transparency_of_other_kinds():
    assert first(file_of(Image.new("LA", (2, 2), (0, 0)), "PNG")) == (255, 255, 255)
    assert first(file_of(Image.new("RGB", (2, 2), (1, 2, 3)), "PNG", transparency=(1, 2, 3))) == (255, 255, 255)
    assert first(file_of(Image.new("L", (2, 2), 9), "PNG", transparency=9)) == (255, 255, 255)
    assert first(file_of(Image.new("L", (2, 2), 9), "PNG", transparency=8)) == (9, 9, 9)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_sixteen_bits_are_scaled(kind: str):
    values = np.array([[0, 128, 129, 257, 25700, 32768, 65535]], dtype=np.uint16)
    image = decode(file_of(Image.fromarray(values), kind))
    assert np.asarray(image)[0, :, 0].tolist() == [0, 0, 1, 1, 100, 128, 255]


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int, depth: int, color: int, rows: bytes, extra: bytes = b"") -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_sixteen_bits_of_every_color():
    """Written by hand, since Pillow writes no such file."""
    pixel = struct.pack(">HHH", 65535, 32768, 257)
    assert np.abs(np.subtract(first(png(1, 1, 16, 2, b"\0" + pixel)), (255, 128, 1))).max() <= 1
    clear = struct.pack(">HHHH", 0, 0, 0, 0)
    assert first(png(1, 1, 16, 6, b"\0" + clear)) == (255, 255, 255)
    gray = struct.pack(">H", 500)
    assert first(png(1, 1, 16, 0, b"\0" + gray, chunk(b"tRNS", gray))) == (255, 255, 255)
    assert first(png(1, 1, 16, 0, b"\0" + gray)) == (2, 2, 2)


def test_thirty_two_bits_have_no_white():
    for image in (Image.new("F", (2, 2), 0.5), Image.new("I", (2, 2), 70000)):
        with pytest.raises(BrokenImage, match=r"32-bit values .* no defined white"):
            decode(file_of(image, "TIFF"), name="scan.tif")


def test_lab():
    lab = ImageCms.profileToProfile(
        Image.new("RGB", (2, 2), (200, 30, 60)),
        ImageCms.createProfile("sRGB"),
        ImageCms.createProfile("LAB"),
        outputMode="LAB",
    )
    assert np.abs(np.subtract(first(file_of(lab, "TIFF")), (200, 30, 60))).max() <= 4


# Where the top left pixel of the upright picture was stored, of a picture 2 wide and 3 high, by the EXIF standard.
CORNERS = {1: (0, 0), 2: (1, 0), 3: (1, 2), 4: (0, 2), 5: (0, 0), 6: (0, 2), 7: (1, 2), 8: (1, 0)}


@pytest.mark.parametrize("orientation", CORNERS)
def test_a_camera_is_turned_upright(orientation: int):
    stored = Image.new("RGB", (2, 3), "black")
    stored.putpixel(CORNERS[orientation], (255, 255, 255))
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = decode(file_of(stored, "PNG", exif=exif))
    assert image.size == ((3, 2) if orientation >= 5 else (2, 3))
    assert image.getpixel((0, 0)) == (255, 255, 255)
    assert np.asarray(image).sum() == 3 * 255
    assert to_rgb(image).size == image.size  # not turned twice


def test_damaged_exif_loses_no_picture():
    jpeg = file_of(Image.new("RGB", (8, 8), "red"), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08garbage")
    with pytest.warns(UserWarning, match="Corrupt EXIF data"):  # Pillow's
        found = first(jpeg)
    assert np.abs(np.subtract(found, (255, 0, 0))).max() <= 2


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_of_an_animation(kind: str):
    frames = [Image.new("RGB", (4, 4), color) for color in ("red", "blue")]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = file_of(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    with Image.open(BytesIO(data)) as image:
        assert image.n_frames == 2
    assert first(data) == (255, 0, 0)


def noise(size: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (size, size, 3), dtype=np.uint8))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])
def test_truncated_files(tmp_path: Path, kind: str):
    path = tmp_path / f"half.{kind.lower()}"
    data = file_of(noise(64), kind)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(BrokenImage) as caught:
        decode(path)
    text = str(caught.value)
    assert text.startswith(f"cannot read the image {path}: ")
    assert "\n" not in text


def test_files_that_are_no_images(tmp_path: Path):
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(BrokenImage, match=r"empty\.jpg: the file is empty"):
        decode(tmp_path / "empty.jpg")
    (tmp_path / "page.jpg").write_text("<html>404</html>")
    with pytest.raises(BrokenImage, match=r"page\.jpg: it is not an image of a known format"):
        decode(tmp_path / "page.jpg")
    with pytest.raises(BrokenImage, match=r"none\.jpg: there is no such file"):
        decode(tmp_path / "none.jpg")
    with pytest.raises(BrokenImage, match="Is a directory"):
        decode(tmp_path)
    with pytest.raises(BrokenImage, match="the attachment: the file is empty"):
        decode(b"", name="the attachment")


def test_a_decompression_bomb_is_not_decoded():
    bomb = png(50_000, 50_000, 1, 0, b"\0")
    with pytest.raises(BrokenImage, match="too large to be decoded safely"):
        decode(bomb, name="bomb.png")


def test_the_error_survives_being_sent():
    error = pickle.loads(pickle.dumps(BrokenImage("a.jpg", "the file is empty")))
    assert str(error) == "cannot read the image a.jpg: the file is empty"
    assert (error.source, error.reason) == ("a.jpg", "the file is empty")
    assert str(BrokenImage("told by a worker")) == "told by a worker"


def test_crops():
    image = Image.new("RGB", (10, 8))
    image.putpixel((3, 2), (255, 0, 0))
    cut = crop_to_box(image, (3.0, 2.0, 4.0, 5.0), "a")
    assert cut.size == (4, 5)
    assert cut.getpixel((0, 0)) == (255, 0, 0)
    assert crop_to_box(image, (-3.0, -2.0, 100.0, 100.0), "a").size == (10, 8)
    assert crop_to_box(image, [float("nan")] * 4, "a").size == (10, 8)
    with pytest.raises(BrokenImage, match=r"its box \(20, 0, 4, 4\) contains none of its 10 x 8 pixels"):
        crop_to_box(image, (20.0, 0.0, 4.0, 4.0), "a")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])
def test_a_truncated_image_is_said_to_be_cut_off(kind: str, tmp_path: Path):
    noise = np.random.default_rng(0).integers(0, 255, (48, 48, 3), dtype=np.uint8)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    Image.fromarray(noise).save(whole, kind)
    assert decode(whole).size == (48, 48)
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    for source, name in ((cut, str(cut)), (cut.read_bytes(), f"of {cut.stat().st_size} bytes")):
        with pytest.raises(BrokenImage) as broken:
            decode(source)
        assert str(broken.value) == f"cannot read the image {name}: the file is cut off"
