"""Names become networks in one table; other packages' models through their adapters, where those packages import."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
import torch

from likewise import trunks
from likewise.trunks import TRUNKS, Embedder, Trunk, build, rebuild

PAGE = Path(__file__).parents[2] / "docs" / "trunks.md"


def imports(name: str) -> bool:
    try:
        importlib.import_module(name)
    except Exception:
        return False
    return True


def test_every_trunk_is_exported_and_on_its_page():
    for name, entry in TRUNKS.items():
        assert getattr(trunks, name) is entry.make
        assert f"[`{name}`]" in PAGE.read_text(), f"add {name} to the table of docs/trunks.md"


def test_the_numbers_on_the_page():
    rows = re.findall(r"^\| \[`(\w+)`\].*?\| ([\d,]+) \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert {name for name, _, _ in rows} == set(TRUNKS)
    for name, parameters, features in rows:
        with torch.device("meta"):
            trunk = build(name)
        assert sum(each.numel() for each in trunk.parameters()) == int(parameters.replace(",", "")), name
        assert trunk.out_features == int(features), name


@pytest.mark.parametrize("name", TRUNKS)
def test_recipes_are_plain_and_make_the_same_network(name: str):
    with torch.device("meta"):
        first = build(name, in_channels=1)
        again = rebuild(json.loads(json.dumps(first.recipe())))
    assert {key: value.shape for key, value in again.state_dict().items()} == {
        key: value.shape for key, value in first.state_dict().items()
    }


@pytest.mark.parametrize("name", ["resnet19", "", "timm:", "torchvision:resnet50", "resnet50:timm"])
def test_unknown_names(name: str):
    message = r"name must be one of 'convnet', .*, or start with 'timm:' or 'transformers:', but it is"
    with pytest.raises(ValueError, match=message):
        build(name)


@pytest.mark.parametrize("package", ["timm", "transformers"])
@pytest.mark.parametrize("failure", [ModuleNotFoundError("No module named 'x'"), RuntimeError("op nms\nlong story")])
def test_a_package_that_does_not_import_is_one_sentence(package: str, failure: Exception, monkeypatch):
    def refuse(name: str) -> ModuleType:
        raise failure

    monkeypatch.setattr(importlib, "import_module", refuse)
    reason = str(failure).splitlines()[0]
    with pytest.raises(ImportError) as caught:
        build(f"{package}:some_model")
    assert str(caught.value) == (f"'{package}:' trunks need the package {package}, which cannot be imported: {reason}")


def test_other_packages_weights_are_their_own():
    with pytest.raises(
        ValueError, match=r"weights of timm:resnet50 must be 'pretrained' or None, but it is 'imagenet'"
    ):
        build("timm:resnet50", weights="imagenet")


# ----------------------------------------------------------------------------------------------------------------------
# timm


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the package's own
@pytest.mark.parametrize(
    ("model", "ndim"), [("resnet18", 4), ("mobilenetv3_small_050", 4), ("vit_tiny_patch16_224", 2)]
)
def test_timm(model: str, ndim: int, tmp_path: Path):
    if not imports("timm"):
        pytest.skip("timm does not import here")
    trunk = build(f"timm:{model}").eval()
    images = torch.randn(2, 3, 224, 224)
    with torch.no_grad():
        features = trunk(images)
        assert features.ndim == ndim
        assert features.shape[1] == trunk.out_features
        if model == "resnet18":  # the same names as torchvision's and ours
            ours = build("resnet18").eval()
            ours.load_state_dict(trunk.model.state_dict())
            torch.testing.assert_close(ours(images), features, rtol=1e-4, atol=1e-4)
        embedder = Embedder(trunk, 8).eval()
        embedder.save(tmp_path / "timm.safetensors")
        torch.testing.assert_close(Embedder.load(tmp_path / "timm.safetensors")(images), embedder(images))


# ----------------------------------------------------------------------------------------------------------------------
# transformers

TINY = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "image_size": 32,
    "patch_size": 8,
}


def saved(kind: str, folder: Path) -> Path:
    """A tiny model on the disk, as it would come from the hub."""
    import transformers

    models = {
        "vit": lambda: transformers.ViTModel(transformers.ViTConfig(**TINY)),
        "vit without pooling": lambda: transformers.ViTModel(transformers.ViTConfig(**TINY), add_pooling_layer=False),
        "resnet": lambda: transformers.ResNetModel(
            transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
        ),
    }
    models[kind]().save_pretrained(folder)
    said = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.25, 0.25, 0.25], "rescale_factor": 1 / 255}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the package's own
@pytest.mark.parametrize("kind", ["vit", "vit without pooling", "resnet"])
def test_transformers(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if not imports("transformers"):
        pytest.skip("transformers does not import here")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import transformers

    torch.manual_seed(0)
    folder = saved(kind, tmp_path / "model")
    trunk = build(f"transformers:{folder}", weights="pretrained").eval()
    assert trunk.preprocessing.mean == (0.5, 0.4, 0.3)
    assert trunk.preprocessing.white == pytest.approx(1.0)
    reference = transformers.AutoModel.from_pretrained(folder).eval()
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        output, features = reference(pixel_values=images), trunk(images)
        wanted = {
            "vit": lambda: output.pooler_output,
            "vit without pooling": lambda: output.last_hidden_state[:, 0],
            "resnet": lambda: output.last_hidden_state,
        }[kind]()
        torch.testing.assert_close(features, wanted)
        assert features.shape[1] == trunk.out_features == 16
        embedder = Embedder(trunk, 8).eval()
        embedder.save(tmp_path / "model.safetensors")
        (folder / "config.json").unlink()  # the hub may be gone: the card knows enough
        loaded = Embedder.load(tmp_path / "model.safetensors")
        torch.testing.assert_close(loaded(images), embedder(images))
        assert loaded.preprocessing == trunk.preprocessing
    trained = Embedder(trunk, 8).train()
    trained(images)[:, 0].sum().backward()
    assert all(parameter.grad is not None for parameter in trained.parameters())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_transformers_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if not imports("transformers"):
        pytest.skip("transformers does not import here")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = saved("vit", tmp_path / "model")
    with pytest.raises(ValueError, match=r"in_channels of .* must be 3, but it is 1"):
        build(f"transformers:{folder}", in_channels=1)
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(ValueError, match=r"must have a preprocessor_config.json"):
        build(f"transformers:{folder}", weights="pretrained")
    assert isinstance(build(f"transformers:{folder}"), Trunk)  # without weights nothing is expected
