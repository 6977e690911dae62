"""ExportedModel models: every trunk agrees with torch, preprocessing inside agrees with Pillow, and nothing wrong is left."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from likewise.data import TRANSFORMS, Augment, CenterCrop
from likewise.data.shards import Shape
from likewise.search import export as room
from likewise.search.embedding import EvalTransform, eval_transform
from likewise.search.export import _Graph, _write_graph, export_model
from likewise.search.export_card import preprocessor, readme
from likewise.search.export_onnx import onnx_runner
from likewise.search.export_pixels import Pixels
from likewise.testing import loop_over
from likewise.trunks import Embedder

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


def lively(embedder: Embedder, seed: int = 0) -> Embedder:
    """Batch norms that do something, and an image that matters: a fresh network gives nearly the same for all."""
    chance = torch.Generator().manual_seed(seed)
    for module in embedder.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for value, low in ((module.running_mean, -0.5), (module.running_var, 0.5), (module.bias, -0.5)):
                value.data.copy_(low + torch.rand(value.shape, generator=chance))
    return embedder.eval()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    file = tmp_path / "glyphs.safetensors"
    lively(Embedder("convnet", 8)).save(file, classes=["wren", "owl"], metrics={"R@1": 0.75})
    return file


def test_a_trunk_as_onnx(tmp_path: Path):
    """Inverted residuals and what an embedder can have on top; on images that the export itself has not seen."""
    torch.manual_seed(1)
    embedder = lively(Embedder("efficientnet_lite0", 16, pool="gem", layer_norm=True))
    scale = embedder.preprocessing
    assert scale is not None
    shown = EvalTransform("small", 40, Augment(36, CenterCrop(36), resize=40, normalize=scale))
    _write_graph(_Graph(embedder, shown, False), "onnx", tmp_path / "model.onnx", embedder.card())
    images = scale(torch.rand(4, len(scale.order), 36, 36))
    with torch.no_grad():
        truth = embedder(images).numpy()
    assert np.abs(onnx_runner(tmp_path / "model.onnx")(images.numpy()) - truth).max() <= 1e-4
    assert np.abs(truth[0] - truth[1]).max() > 1e-3  # or the comparison would say nothing


def by_hand(image: np.ndarray, side: int, size: int) -> np.ndarray:
    """The shorter side shrunk to a length and the middle cut out, with Pillow alone: bytes ``(size, size, 3)``."""
    picture = Image.fromarray(image)
    scale = side / min(picture.size)
    wide, high = int(picture.width * scale + 1e-9), int(picture.height * scale + 1e-9)
    picture = picture.resize((wide, high), Image.Resampling.BILINEAR)
    left, top = round((wide - size) / 2), round((high - size) / 2)
    return np.asarray(picture.crop((left, top, left + size, top + size)))


def test_preprocessing_is_pillows():
    """Wide images, which Pillow resizes in the same order, to the byte."""
    chance = np.random.default_rng(0)
    pixels = Pixels(TRANSFORMS["cub128"].test, 128)
    for height, width in ((128, 128), (300, 400), (375, 500), (200, 401), (141, 187)):
        image = chance.integers(0, 256, (height, width, 3), np.uint8)
        found = pixels(torch.from_numpy(image)[None])[0].permute(1, 2, 0).numpy() * 255.0
        assert np.array_equal(np.rint(found).astype(np.uint8), by_hand(image, 128, 112)), (height, width)


@loop_over("recipe", sorted(TRANSFORMS))
def test_preprocessing_is_the_evaluations(recipe: str):
    """Long, tall, tiny and whole images; within one level of a byte for each of the two resamplings."""
    chance, shown = np.random.default_rng(0), TRANSFORMS[recipe]
    pixels = Pixels(shown.test, shown.cache)
    for height, width in ((300, 400), (400, 300), (90, 700), (700, 90), (31, 33), (2, 5), (1, 1), (257, 255)):
        image = chance.integers(0, 256, (height, width, 3), np.uint8)
        truth = shown.test([Shape(shown.cache, 3.0).of(Image.fromarray(image))], torch.Generator())
        found = pixels(torch.from_numpy(image)[None])
        assert found.shape == truth.shape
        assert float((found - truth).abs().max()) * 255.0 <= 1.01, (height, width)


def test_orders_and_scales():
    """Gray and blue-first channels, of one red pixel, worked out on paper."""
    red = torch.tensor([255, 0, 0], dtype=torch.uint8).view(1, 1, 1, 3)
    for name, expected in (("convnet", [0.299 * 2.0 - 1.0]), ("bninception", [-104.0, -117.0, 255.0 - 128.0])):
        scale = Embedder(name, 8).preprocessing
        assert scale is not None
        found = Pixels(Augment(1, CenterCrop(), normalize=scale), 8)(red)
        assert torch.allclose(found.flatten(), torch.tensor(expected), atol=1e-5)


def test_chance_is_no_part_of_a_graph():
    with pytest.raises(ValueError, match=r"augment must be a center crop without randomness"):
        Pixels(TRANSFORMS["thesis"].train, 256)


def test_with_preprocessing_inside(model: Path, tmp_path: Path):
    """Both graphs take bytes of any size and any batch, and give what the encoder gives."""
    from likewise.search.encoder import Encoder

    done = export_model(model, tmp_path / "out", formats=["onnx", "torch"], transform="glyphs")
    assert [each.files for each in done] == [("model.onnx", "embed.py"), ("model.pt2",)]
    assert all(each.levels is not None and each.levels <= 2.01 for each in done)
    program = torch.export.load(tmp_path / "out" / "model.pt2").module()
    run = onnx_runner(tmp_path / "out" / "model.onnx")
    encoder = Encoder.load(model, transform="glyphs", device="cpu")
    chance = np.random.default_rng(1)
    for count, height, width in ((1, 32, 32), (3, 50, 80), (2, 33, 200)):
        images = chance.integers(0, 256, (count, height, width, 3), np.uint8)
        truth = encoder.embed([Image.fromarray(image) for image in images])
        assert np.abs(run(images) - truth).max() < 2e-3  # a byte may differ by a level
        assert np.abs(program(torch.from_numpy(images)).detach().numpy() - run(images)).max() < 1e-4


def test_onnx_says_what_it_is(model: Path, tmp_path: Path):
    import onnx

    export_model(model, tmp_path / "out", formats=["onnx"], preprocessing=False, transform="glyphs")
    read = onnx.load(tmp_path / "out" / "model.onnx")
    onnx.checker.check_model(read)
    [images], [embeddings] = read.graph.input, read.graph.output
    sides = [side.dim_param or side.dim_value for side in images.type.tensor_type.shape.dim]
    assert (images.name, embeddings.name) == ("images", "embeddings")
    assert sides == ["batch", 1, 32, 32]
    texts = {each.key: each.value for each in read.metadata_props}
    assert json.loads(texts["likewise"])["dim"] == 8
    assert texts["images"].startswith("images (B, 1, 32, 32) in float32")
    assert {each.name for each in (tmp_path / "out").iterdir()} == {"model.onnx", "export.json"}  # no .data beside


def test_a_program_for_torch_alone_and_a_wrong_one_that_is_not_left(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What differs goes, the old file stays, and so does a file that another export is writing."""
    out = tmp_path / "out"
    out.mkdir()
    mine, dead = (out / f"model.pt2.{process}-00000000.part" for process in (os.getpid(), 2**22 + 1))
    mine.touch()
    dead.touch()
    [done] = export_model(model, out, formats=["torch"], preprocessing=False, transform="glyphs")
    assert [*out.glob("*.part")] == [mine]
    mine.unlink()
    assert done.difference <= done.tolerance
    texts = {"likewise": ""}
    program = torch.export.load(out / "model.pt2", extra_files=texts)
    images = torch.randn(7, 1, 32, 32)
    with torch.no_grad():
        assert torch.allclose(program.module()(images), Embedder.load(model)(images), atol=1e-6)
    assert json.loads(texts["likewise"])["metrics"] == {"R@1": 0.75}
    before, told = (out / "model.pt2").read_bytes(), (out / "export.json").read_text()

    def off_by_a_little(path: Path):
        run = _torch_runner(path)
        return lambda images: run(images) + np.float32(2e-4)

    _torch_runner = room._torch_runner
    monkeypatch.setattr(room, "_torch_runner", off_by_a_little)
    with pytest.raises(
        ArithmeticError, match=r"model.pt2 differs from torch by 0.0002, over 0.0001; the file was removed"
    ):
        export_model(model, out, formats=["torch"], preprocessing=False, transform="glyphs")
    assert {each.name for each in out.iterdir()} == {"model.pt2", "export.json"}
    assert ((out / "model.pt2").read_bytes(), (out / "export.json").read_text()) == (before, told)


def test_a_folder_for_hubs(model: Path, tmp_path: Path):
    out = tmp_path / "birds"
    [done] = export_model(
        model, out, formats=["hub"], transform="glyphs", facts={"data": "Glyphs: drawn", "loss": "CircleLoss"}
    )
    assert done.difference == 0.0
    assert {each.name for each in out.iterdir()} == {*done.files, "export.json"}
    assert (out / "model.safetensors").read_bytes() == model.read_bytes()
    _, front, text = (out / "README.md").read_text().split("---\n", 2)
    said = yaml.safe_load(front)
    assert said["library_name"] == "likewise"
    assert "convnet" in said["tags"]
    [results] = said["model-index"][0]["results"]
    assert results["metrics"] == [{"name": "R@1", "type": "R@1", "value": 0.75}]
    assert results["dataset"]["name"] == "Glyphs: drawn"
    for heading in ("# birds", "## Metrics", "## Intended use", "## Limitations", "## How to load it"):
        assert f"\n{heading}\n" in text
    assert 'Encoder.load("model.safetensors", transform="glyphs")' in text
    assert json.loads((out / "config.json").read_text())["likewise"]["classes"] == ["wren", "owl"]
    assert json.loads((out / "preprocessor_config.json").read_text())["likewise"]["order"] == "L"


def test_a_preprocessor_that_others_read():
    """What an image processor makes of its file, by hand, is what the network is shown."""
    embedder = Embedder("resnet18", 8)
    shown = eval_transform(embedder, "thesis")
    said = preprocessor(shown)
    image = np.random.default_rng(0).integers(0, 256, (400, 500, 3), np.uint8)
    cut = by_hand(image, said["size"]["shortest_edge"], said["crop_size"]["height"])
    scaled = (cut * said["rescale_factor"] - said["image_mean"]) / said["image_std"]
    truth = shown.augment([shown.shape.of(Image.fromarray(image))], torch.Generator())[0]
    assert said["resample"] == Image.Resampling.BILINEAR
    assert np.abs(scaled.transpose(2, 0, 1) - truth.numpy()).max() < 1e-5


def test_titles_and_facts_cannot_break_the_front_matter():
    embedder = Embedder("convnet", 8)
    card, title = embedder.card(metrics={"R@1": 0.5}), 'a: "b"\n- c # d'
    text = readme(card, eval_transform(embedder, None), name=None, facts={"data": "---"}, title=title)
    said = yaml.safe_load(text.split("---\n")[1])
    assert said["model-index"][0]["name"] == title


def test_refusals(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ValueError, match=r"each of formats must be one of 'onnx', 'torch', 'hub', but it is 'tflite'"):
        export_model(model, tmp_path, formats=["tflite"])
    with pytest.raises(TypeError, match=r"formats must be one or more of onnx, torch, hub in a list"):
        export_model(model, tmp_path, formats="onnx")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ImportError, match=r"pip install 'likewise\[export\]'"):
        export_model(model, tmp_path / "none", transform="glyphs")
    assert not [*(tmp_path / "none").iterdir()]


def test_embeddings_that_are_not_of_unit_length_are_held_to_their_size(tmp_path: Path):
    embedder = lively(Embedder("convnet", 8, normalize=False))
    with torch.no_grad():
        embedder.head.weight *= 1000.0
    shown = replace(eval_transform(embedder, "glyphs"))
    done = _write_graph(_Graph(embedder, shown, False), "torch", tmp_path / "model.pt2", embedder.card())
    assert done.tolerance > 1e-3
