"""Glyphs: the same everywhere, no look-alikes, hard for pixels and easy to learn."""

from __future__ import annotations

import hashlib
import pickle
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import Tensor, nn

from likewise.data.glyph_characters import CHARACTERS
from likewise.data.glyph_shapes import FACES, alike, distinct, draw_shape, font_folder, shared_characters
from likewise.data.glyphs import Glyphs, draw_glyphs


@pytest.fixture(scope="module")
def unseen() -> Glyphs:
    glyphs = Glyphs("test")
    glyphs.pixels()
    return glyphs


# --- the characters


def test_shared_characters_are_counted_from_the_fonts():
    shared = shared_characters()
    assert len(shared) == len(set(shared)) == 2197
    assert set("Aa8+ЖΩ♫") <= set(shared)
    assert not {unicodedata.category(each)[0] for each in shared} - set("LNS")
    assert set(CHARACTERS) < set(shared)


@pytest.mark.parametrize(
    ("split", "count", "checksum"),
    [
        ("all", 1438, "8d68654b1fa1219a"),
        ("train", 719, "dc3aa536903ba735"),
        ("val", 143, "e9c223f6d3672746"),
        ("test", 576, "08b3667436104f50"),
    ],
)
def test_the_characters_of_a_split_never_change(split: str, count: int, checksum: str):
    names = Glyphs(split, images_per_class=1).class_names
    assert len(names) == count
    assert list(names) == sorted(names)
    assert hashlib.sha256("".join(names).encode()).hexdigest()[:16] == checksum


def test_splits_are_disjoint_and_alike():
    parts = {split: Glyphs(split, images_per_class=1) for split in ("train", "val", "test")}
    names = [name for part in parts.values() for name in part.class_names]
    assert sorted(names) == list(CHARACTERS)
    whole = Glyphs("all", images_per_class=1).categories.bincount() / len(CHARACTERS)
    for part in parts.values():
        share = part.categories.bincount(minlength=9) / len(part)
        assert float((share - whole).abs().max()) < 0.1


def hausdorff(left: np.ndarray, right: np.ndarray) -> float:
    return max(
        float(ndimage.distance_transform_edt(~right)[left].max()),
        float(ndimage.distance_transform_edt(~left)[right].max()),
    )


PAIRS = [
    "A\u0391",
    "O\u041e",
    "Oo",
    "CG",
    "\u00c3\u00c4",
    "e\u00e9",
    "Il",
    "I|",
    "b6",
    "\u25a0\u25a4",
    "8B",
    "\u2190\u2192",
]


@pytest.mark.parametrize("pair", PAIRS)
def test_look_alikes_by_distance_transforms(pair: str):
    """Ink and paper within three fine pixels of each other, in at least four faces."""
    faces = 0
    for face in range(len(FACES)):
        left, right = (draw_shape(each, face) > 127 for each in pair)
        faces += hausdorff(left, right) <= 3.0 and hausdorff(~left, ~right) <= 3.0
    assert alike(pair[0], pair[1]).item() == (faces >= 4)
    assert alike(pair[1], pair[0]).item() == (faces >= 4)


def test_what_everybody_would_say():
    assert alike("AOT", "\u0391\u041e\u0422").diagonal().all()  # Greek Alpha, Cyrillic O and Te
    assert not alike("abcdefg", "hijkmnp").any()


def test_the_list_follows_the_rule():
    """Its beginning, which what comes later cannot change.

    Another release of FreeType may move a pixel, and with it a character or two.
    """
    start = "".join(each for each in shared_characters() if each < "\u0250")
    kept = {each for each in CHARACTERS if each < "\u0250"}
    assert len(start) > 400
    assert len(set(distinct(start)) ^ kept) <= 2


def test_shapes_are_normalized():
    for face in (0, 7, 10):
        for character in "I.—W·":
            shape = draw_shape(character, face)
            rows, columns = (np.flatnonzero(shape.max(axis=axis)) for axis in (1, 0))
            assert shape.shape == (64, 64)
            assert max(np.ptp(rows), np.ptp(columns)) + 1 == 44
            assert abs(rows.sum() / len(rows) - 31.5) <= 0.5
            assert abs(columns.sum() / len(columns) - 31.5) <= 0.5
    assert not draw_shape("\ufffc", 0).any()  # blank in every face, and left out


# --- the images


def test_an_image_follows_from_seed_character_and_number_alone():
    glyphs = Glyphs("val", images_per_class=14, seed=3)
    one_by_one = [np.asarray(glyphs.image(index)) for index in (200, 13, 0)]
    pixels = glyphs.pixels()
    assert pixels.dtype == torch.uint8
    assert pixels.shape == (143 * 14, 1, 32, 32)
    for index, image in zip((200, 13, 0), one_by_one, strict=True):
        assert image.shape == (32, 32, 3)
        np.testing.assert_array_equal(image, pixels[index, 0, :, :, None].expand(-1, -1, 3))
        np.testing.assert_array_equal(image, np.asarray(glyphs.image(index)))
    more = Glyphs("all", images_per_class=24, seed=3)
    place = more.class_names.index(glyphs.class_names[5]) * 24 + 13
    np.testing.assert_array_equal(np.asarray(more.image(place)), np.asarray(glyphs.image(5 * 14 + 13)))
    other = Glyphs("val", images_per_class=14, seed=4)
    assert not torch.equal(torch.from_numpy(np.array(other.image(0)))[..., 0], pixels[0, 0])
    assert pixels is glyphs.pixels()


def test_threads_draw_the_same():
    glyphs = Glyphs("val", images_per_class=12)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda index: np.asarray(glyphs.image(index)), range(0, 600)))
    np.testing.assert_array_equal(np.stack(drawn)[..., 0], glyphs.pixels()[:600, 0])


def test_it_is_a_data_set():
    glyphs = Glyphs("val", images_per_class=13)
    image, label = glyphs[14]
    assert (image.mode, image.size, label) == ("RGB", (32, 32), 1)
    assert glyphs.source(12).endswith("in DejaVuSans, image 12")
    assert glyphs.source(23).endswith("in DejaVuSerif-Italic, image 10")
    part = glyphs.of_classes([3, 9])
    assert part.class_names == (glyphs.class_names[3], glyphs.class_names[9])
    np.testing.assert_array_equal(np.asarray(part.image(13)), np.asarray(glyphs.image(9 * 13)))
    copy = pickle.loads(pickle.dumps(glyphs))
    np.testing.assert_array_equal(np.asarray(copy.image(7)), np.asarray(glyphs.image(7)))
    assert Glyphs("val", images_per_class=1, transform=lambda image: image.size)[0] == ((32, 32), 0)


def test_the_fingerprint_knows_what_the_images_follow_from():
    variants = [{}, {"seed": 1}, {"size": 24}, {"images_per_class": 13}]
    prints = {Glyphs("val", **{"images_per_class": 12, **variant}).fingerprint for variant in variants}
    assert len(prints) == 4
    drawn = Glyphs("val", images_per_class=12)
    drawn.pixels()
    assert drawn.fingerprint in prints


@pytest.mark.parametrize("size", [8, 17, 32, 64])
def test_any_size(size: int):
    images = draw_glyphs("Ж", range(12), size=size)
    assert images.shape == (12, size, size)
    edges = np.concatenate([images[:, 0], images[:, -1]], axis=1).astype(int)
    middle = images[:, size // 4 : -size // 4, size // 4 : -size // 4].astype(int)
    assert (np.median(edges, axis=1) - middle.min(axis=(1, 2)) > 60).all()  # dark on light


def again(character: str, number: int, seed: int) -> np.ndarray:
    """One image by other means: scipy's morphology and interpolation in floating point, numpy's own generator."""
    source = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(ord(character), number))))
    words = source.integers(0, 2**64, size=10 + 512, dtype=np.uint64)
    chance = words[:10].astype(np.float64) / 2.0**64
    turn, scale, stretch, slant, right, down = 2.0 * chance[:6] - 1.0
    shape = draw_shape(character, number % 12).astype(np.float64)
    weight = -0.6 + 1.6 * chance[6]
    other = (ndimage.grey_dilation if weight > 0 else ndimage.grey_erosion)(shape, size=(3, 3), mode="nearest")
    shape += (other - shape) * abs(weight)
    for axis in (0, 1):
        shape = ndimage.convolve1d(shape, [0.25, 0.5, 0.25], axis=axis, mode="constant")
    angle = np.deg2rad(8.0) * turn
    rotate = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shear = np.array([[1.0, 0.1 * slant], [0.0, 1.0]])
    wide = np.diag([np.exp(-0.08 * stretch), np.exp(0.08 * stretch)])
    matrix = 2.0 * np.exp(-0.12 * scale) * rotate @ shear @ wide
    y, x = np.mgrid[0:32, 0:32] + 0.5
    place = matrix @ np.stack([x.ravel() - 16 - 2 * right, y.ravel() - 16 - 2 * down]) + 32.0
    ink = ndimage.map_coordinates(shape, [place[1] - 0.5, place[0] - 0.5], order=1, mode="constant").reshape(32, 32)
    dark, light, spread = np.floor(chance[7:10] * [65, 65, 32])
    sums = words[10:].view(np.uint8).reshape(32, 32, 4).sum(axis=2, dtype=np.int64)
    gray = 255 - light - (255 - light - dark) * ink / 255
    return np.clip(gray + (sums - 510) / 148 * spread, 0, 255)


@pytest.mark.parametrize(
    ("character", "number", "seed"), [("A", 0, 0), ("ß", 7, 1), ("♫", 21, 2), ("╬", 34, 0), ("g", 5, 9)]
)
def test_an_image_by_other_means(character: str, number: int, seed: int):
    drawn = draw_glyphs(character, [number], seed=seed)[0].astype(np.float64)
    difference = np.abs(drawn - again(character, number, seed))
    assert difference.max() < 6.0  # whole numbers and 1/1024ths against floating point
    assert difference.mean() < 1.5


def test_images_look_as_they_did():
    """Means of 8 x 8 blocks; another release of Pillow or FreeType may change them a little, but no more."""
    stored = {
        ("8", 0): [[206, 201, 199, 206], [207, 150, 140, 207], [204, 151, 139, 206], [206, 177, 158, 205]],
        ("Ж", 5): [[206, 180, 166, 205], [207, 104, 81, 205], [205, 112, 65, 202], [208, 180, 179, 203]],
        ("♫", 22): [[196, 178, 125, 187], [197, 167, 161, 192], [194, 113, 149, 196], [193, 183, 146, 191]],
    }
    for (character, number), blocks in stored.items():
        drawn = draw_glyphs(character, [number])[0].reshape(4, 8, 4, 8).mean(axis=(1, 3))
        np.testing.assert_allclose(drawn, blocks, atol=3.0)


# --- how hard it is


def recall_at_1(embeddings: Tensor, labels: Tensor, queries: Tensor, cosine: bool) -> float:
    embeddings = embeddings.flatten(1).float()
    if cosine:
        embeddings = nn.functional.normalize(embeddings, dim=1)
    hits = 0
    for some in queries.split(500):
        closer = 2.0 * embeddings[some] @ embeddings.T - embeddings.square().sum(dim=1)
        closer[torch.arange(len(some)), some] = -torch.inf
        hits += int((labels[closer.argmax(dim=1)] == labels[some]).sum())
    return hits / len(queries)


@pytest.mark.parametrize("cosine", [True, False])
def test_pixels_are_not_enough(unseen: Glyphs, cosine: bool):
    """A sample of 1,000 queries against all images: 65% are far outside of its error."""
    queries = torch.randperm(len(unseen), generator=torch.Generator().manual_seed(0))[:1000]
    found = recall_at_1(unseen.pixels(), unseen.labels, queries, cosine)
    assert 0.3 < found < 0.55


# --- refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Glyphs("dev"), "split must be one of 'train', 'val', 'test', 'all', but it is 'dev'"),
        (lambda: Glyphs(size=4), "size must be a whole number ≥ 8, but it is 4"),
        (lambda: Glyphs(images_per_class=0), "images_per_class must be a whole number ≥ 1, but it is 0"),
        (lambda: Glyphs(seed=-1), "seed must be a whole number ≥ 0, but it is -1"),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch):
    font_folder.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"Glyphs needs matplotlib for its fonts: pip install 'likewise\[train\]'"):
        Glyphs()


def test_without_its_fonts(monkeypatch: pytest.MonkeyPatch, tmp_path):
    font_folder.cache_clear()
    package = ModuleSpec("matplotlib", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("likewise.data.glyph_shapes.find_spec", lambda name: package)
    with pytest.raises(FileNotFoundError, match=r"needs the fonts of matplotlib, but .*DejaVuSans\.ttf is not there"):
        Glyphs()
