"""Images to embeddings, and the file that keeps them."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import nn

from likewise.trunks import HEADS, POOLS, Card, Embedder, Preprocessing, build, read_card
from tests.trunks.arithmetic import arithmetic_images

IMAGES = arithmetic_images(3, 1, 32, 32)


class Fixed(nn.Module):
    """A trunk of somebody's own that gives the same maps whatever it sees."""

    out_features = 2

    def __init__(self, maps: torch.Tensor) -> None:
        super().__init__()
        self.maps = nn.Parameter(maps)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.maps


MAPS = torch.tensor([[[[1.0, 2.0], [3.0, 6.0]], [[0.0, 0.0], [0.0, 4.0]]]])


@pytest.mark.parametrize(
    ("pool", "wanted"),
    [
        ("avg", [3.0, 1.0]),
        ("max", [6.0, 4.0]),
        ("avg+max", [9.0, 5.0]),
        ("gem", [(252.0 / 4.0) ** (1 / 3), (64.0 / 4.0) ** (1 / 3)]),  # 1 + 8 + 27 + 216
    ],
)
def test_pooling(pool: str, wanted: list[float]):
    embedder = Embedder(Fixed(MAPS), None, pool=pool, head="none", normalize=False)
    torch.testing.assert_close(embedder(IMAGES), torch.tensor([wanted]))
    length = sum(value**2 for value in wanted) ** 0.5
    embedder.normalize = True
    torch.testing.assert_close(embedder(IMAGES), torch.tensor([wanted]) / length)


def test_gem_learns_its_power_and_survives_half_precision():
    embedder = Embedder(Fixed(MAPS * 100.0), None, pool="gem", head="none", normalize=False)
    embedder(IMAGES).sum().backward()
    assert embedder.pool.p.grad is not None
    assert any(each is embedder.pool.p for each in embedder.parameter_groups()["head"])
    half = embedder.pool(MAPS.half() * 1000.0)  # 6000³ is no half
    assert torch.isfinite(half).all()


def test_vectors_are_left_as_they_are():
    embedder = Embedder(Fixed(torch.tensor([[3.0, 4.0]])), None, head="none")
    torch.testing.assert_close(embedder(IMAGES), torch.tensor([[0.6, 0.8]]))


def test_heads_by_hand():
    trunk = Fixed(torch.tensor([[1.0, -2.0]]))
    linear = Embedder(trunk, 3, normalize=False)
    wanted = trunk.maps @ linear.head.weight.T + linear.head.bias
    torch.testing.assert_close(linear(IMAGES), wanted)
    mlp = Embedder(trunk, 3, head="mlp", normalize=False)
    hidden = (trunk.maps @ mlp.head[0].weight.T + mlp.head[0].bias).relu()
    torch.testing.assert_close(mlp(IMAGES), hidden @ mlp.head[2].weight.T + mlp.head[2].bias)


def test_layer_norm_by_hand():
    embedder = Embedder(Fixed(torch.tensor([[1.0, 3.0]])), None, head="none", layer_norm=True, normalize=False)
    torch.testing.assert_close(embedder(IMAGES), torch.tensor([[-1.0, 1.0]]), rtol=1e-4, atol=1e-4)
    assert not list(embedder.norm.parameters())


@pytest.mark.parametrize("dim", [64, 128, 512, 1024])
@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_sizes(dim: int, head: str):
    embeddings = Embedder("convnet", dim, head=head)(IMAGES)
    assert embeddings.shape == (3, dim)
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(3))


def test_the_tables_whole():
    for pool in POOLS:
        for head in HEADS:
            embedder = Embedder("convnet", None if head == "none" else 16, pool=pool, head=head, layer_norm=True)
            assert embedder(IMAGES).shape == (3, 256 if head == "none" else 16)


def test_a_zero_row_is_no_nan():
    trunk = Fixed(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    embeddings = Embedder(trunk, None, head="none")(IMAGES)
    embeddings.sum().backward()
    assert embeddings[0].tolist() == [0.0, 0.0]
    assert trunk.maps.grad[0].tolist() == [0.0, 0.0]
    assert torch.isfinite(trunk.maps.grad).all()


# ----------------------------------------------------------------------------------------------------------------------
# Training


def test_frozen_batch_norms_stay():
    embedder = Embedder("convnet", 8, freeze_bn=True)
    norms = [each for each in embedder.modules() if isinstance(each, nn.BatchNorm2d)]
    assert len(norms) == 4
    for mode in (True, False, True):
        embedder.train(mode)
        assert embedder.training is mode
        assert not any(each.training for each in norms)
    before = {key: value.clone() for key, value in embedder.state_dict().items()}
    optimizer = torch.optim.SGD(embedder.parameters(), lr=0.1, weight_decay=0.1)
    embedder(IMAGES)[:, 0].sum().backward()
    optimizer.step()
    for key, value in embedder.state_dict().items():
        assert torch.equal(value, before[key]) is ("norms" in key), key


def test_batch_norms_learn_unless_frozen():
    embedder = Embedder("convnet", 8)
    before = embedder.trunk.norms[0].running_mean.clone()
    embedder(IMAGES)[:, 0].sum().backward()
    assert embedder.trunk.norms[0].weight.grad.any()
    assert not torch.equal(embedder.trunk.norms[0].running_mean, before)


def test_parameter_groups_are_everything_that_learns():
    embedder = Embedder("convnet", 8, pool="gem", head="mlp", freeze_bn=True)
    groups = embedder.parameter_groups()
    assert {id(each) for group in groups.values() for each in group} == {
        id(each) for each in embedder.parameters() if each.requires_grad
    }
    assert len(groups["trunk"]) == 4
    assert len(groups["head"]) == 5


@pytest.mark.parametrize("options", [{}, {"pool": "gem", "head": "mlp", "layer_norm": True, "freeze_bn": True}])
def test_compiles_into_one_graph(options: dict[str, object]):
    embedder = Embedder("convnet", 8, **options)
    compiled = torch.compile(embedder, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(IMAGES), embedder(IMAGES))
    compiled(IMAGES)[:, 0].sum().backward()
    assert embedder.trunk.convs[0].weight.grad.any()


def test_autocast_gives_unit_float32():
    embedder = Embedder("convnet", 64).eval()
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        embeddings = embedder(IMAGES)
    assert embeddings.dtype == torch.float32
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(3))


def test_channels_last():
    embedder = Embedder(build("convnet", in_channels=3), 8).eval()
    images = arithmetic_images(2, 3, 32, 32)
    with torch.no_grad():
        wanted = embedder(images)
        embedder.to(memory_format=torch.channels_last)
        torch.testing.assert_close(embedder(images.to(memory_format=torch.channels_last)), wanted, rtol=1e-4, atol=1e-5)


# ----------------------------------------------------------------------------------------------------------------------
# The file


def trained() -> Embedder:
    torch.manual_seed(0)
    trunk = build("convnet", in_channels=3).to(memory_format=torch.channels_last)
    trunk.preprocessing = Preprocessing(mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6), size=40)
    embedder = Embedder(trunk, 8, pool="gem", head="mlp", freeze_bn=True, layer_norm=True)
    embedder.pool.p.data.fill_(2.5)
    return embedder


def test_saved_and_loaded(tmp_path: Path):
    embedder, images = trained().eval(), arithmetic_images(2, 3, 32, 32)
    path = tmp_path / "birds.safetensors"
    embedder.save(path, classes=["Ærfugl", "B"], metrics={"R@1": 0.25})
    loaded = Embedder.load(path)
    assert not loaded.training
    with torch.no_grad():
        torch.testing.assert_close(loaded(images), embedder(images))
    assert loaded.preprocessing == embedder.preprocessing == loaded.trunk.preprocessing
    assert loaded.freeze_bn
    card = read_card(path)
    assert card == embedder.card(classes=["Ærfugl", "B"], metrics={"R@1": 0.25})
    assert card.trunk == {"name": "convnet", "in_channels": 3}
    assert os.listdir(tmp_path) == ["birds.safetensors"]


def test_the_same_model_has_the_same_bytes(tmp_path: Path):
    """safetensors writes metadata in the order of a hash map, which differs from file to file."""
    embedder = Embedder("convnet", 8)
    for number in range(8):
        embedder.save(tmp_path / f"{number}.safetensors")
    assert len({file.read_bytes() for file in tmp_path.iterdir()}) == 1


def test_the_card_is_readable_without_any_library(tmp_path: Path):
    """Eight bytes of length, then JSON: what will still be readable in twenty years."""
    trained().save(tmp_path / "birds.safetensors", classes=["A"], metrics={"MAP@R": 0.5})
    content = (tmp_path / "birds.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    card = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["likewise"])
    assert card == {
        "format": 1,
        "trunk": {"name": "convnet", "in_channels": 3},
        "dim": 8,
        "pool": "gem",
        "head": "mlp",
        "normalize": True,
        "freeze_bn": True,
        "layer_norm": True,
        "preprocessing": {
            "mean": [0.1, 0.2, 0.3],
            "std": [0.4, 0.5, 0.6],
            "white": 1.0,
            "order": "RGB",
            "size": 40,
        },
        "classes": ["A"],
        "metrics": {"MAP@R": 0.5},
        "torch": str(torch.__version__),
    }
    with safe_open(tmp_path / "birds.safetensors", "pt") as file:  # and any reader of safetensors takes the tensors
        assert set(file.keys()) == set(trained().state_dict())


def test_a_file_of_today(tmp_path: Path):
    """A file of format 1, made here without `save`: whatever is changed later must still read it."""
    from safetensors.torch import save_file

    card = (
        '{"format": 1, "trunk": {"name": "convnet", "in_channels": 1}, "dim": 256, "pool": "max", "head": "none",'
        ' "normalize": false, "freeze_bn": false, "layer_norm": false, "preprocessing": null, "classes": null,'
        ' "metrics": {}, "torch": "2.6.0", "something later": 3}'
    )
    trunk = build("convnet").eval()
    state = {f"trunk.{key}": value for key, value in trunk.state_dict().items()}
    save_file(state, tmp_path / "old.safetensors", metadata={"likewise": card})
    loaded = Embedder.load(tmp_path / "old.safetensors")
    with torch.no_grad():
        torch.testing.assert_close(loaded(IMAGES), trunk(IMAGES).amax(dim=(2, 3)))
    assert loaded.preprocessing is None


def test_a_crash_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "birds.safetensors"
    trained().save(path)
    before = path.read_bytes()
    with path.open("rb") as reader:  # who reads the old file goes on reading it: a new one takes its name
        trained().save(path, metrics={"R@1": 1.0})
        assert reader.read() == before
    before = path.read_bytes()

    def full(*arguments: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        Embedder("convnet", 64).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["birds.safetensors"]


def test_a_trunk_of_ones_own(tmp_path: Path):
    embedder = Embedder(Fixed(MAPS), 4).eval()
    embedder.save(tmp_path / "own.safetensors")
    with pytest.raises(ValueError, match=r"was saved with a custom trunk; pass that module as trunk="):
        Embedder.load(tmp_path / "own.safetensors")
    loaded = Embedder.load(tmp_path / "own.safetensors", trunk=Fixed(torch.zeros_like(MAPS)))
    torch.testing.assert_close(loaded(IMAGES), embedder(IMAGES))
    with pytest.raises(ValueError, match=r"'trunk.maps' has the shape \(1, 2, 2, 2\) and must have \(1, 2\)"):
        Embedder.load(tmp_path / "own.safetensors", trunk=Fixed(torch.zeros(1, 2)))


def test_other_files_are_refused(tmp_path: Path):
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, tmp_path / "plain.safetensors")
    with pytest.raises(ValueError, match="must be a file that an Embedder wrote, but it has no card"):
        read_card(tmp_path / "plain.safetensors")
    for content in (b"", b"\xff" * 100, struct.pack("<Q", 4) + b"[{]}"):
        (tmp_path / "not.safetensors").write_bytes(content)
        with pytest.raises(ValueError, match="must be a safetensors file, but it does not start like one"):
            read_card(tmp_path / "not.safetensors")
    card = Card(None, 2, "avg", "linear", True, False, False).to_json().replace('"format": 1', '"format": 2')
    with pytest.raises(ValueError, match="the card must be of format 1 or older, but it is of format 2"):
        Card.from_json(card)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Embedder("convnet", 8, pool="mean"),
            "pool must be one of 'avg', 'max', 'avg.max', 'gem', but it is 'mean'",
        ),
        (lambda: Embedder("convnet", 8, head="conv"), "head must be one of 'linear', 'mlp', 'none', but it is 'conv'"),
        (lambda: Embedder("convnet", 0), "dim must be a whole number ≥ 1, but it is 0"),
        (lambda: Embedder("convnet", None), "dim must be a whole number ≥ 1, but it is None"),
        (
            lambda: Embedder("convnet", 8, head="none"),
            "dim must be None or the trunk's 256 with head='none', but it is 8",
        ),
        (lambda: Embedder(nn.Flatten(), 8), "trunk must have its number of channels as out_features, but the Flatten"),
        (lambda: Embedder(build("convnet"), 8, weights="a.pt"), "weights must be None for a trunk that is a module"),
        (
            lambda: Embedder(Fixed(torch.zeros(1, 2, 3)), 8)(IMAGES),
            r"trunk must return maps .* its shape is \(1, 2, 3\)",
        ),
        (lambda: Embedder("convnet", 8).save("birds.pt"), "path must end in .safetensors, but it is 'birds.pt'"),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
