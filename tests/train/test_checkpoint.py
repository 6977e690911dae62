"""A checkpoint is whole or it is not there, and what is not one is refused in a sentence."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from likewise.train.checkpoint import (
    load_checkpoint,
    load_optimizer,
    load_rng_state,
    optimizer_tensors,
    rng_tensors,
    save_checkpoint,
    save_model,
)
from likewise.trunks import Embedder, read_card
from tests.train.small import same


def test_everything_comes_back(tmp_path):
    tensors = {
        "model": {"weight": torch.randn(3, 2).t(), "count": torch.tensor(7), "empty": torch.empty(0, 0)},
        "rng_state 0": {"torch": torch.get_rng_state()},
        "half": {"a/b.c": torch.ones(2, dtype=torch.bfloat16), "bool": torch.tensor([True])},
    }
    state = {"step": 3, "best": 0.1 + 0.2, "loader": {"epoch": 1}, "none": None, "inf": float("inf")}
    save_checkpoint(tmp_path / "last.safetensors", tensors, state)
    found, said = load_checkpoint(tmp_path / "last.safetensors")
    assert found.keys() == tensors.keys()
    assert all(same(found[part], tensors[part]) for part in tensors)
    assert {name: said[name] for name in state} == state
    assert [file.name for file in tmp_path.iterdir()] == ["last.safetensors"]


def test_tied_weights(tmp_path):
    weight = torch.randn(2, 2)
    save_checkpoint(tmp_path / "last.safetensors", {"model": {"a": weight, "b": weight, "c": weight[:1]}}, {})
    found, _ = load_checkpoint(tmp_path / "last.safetensors")
    assert torch.equal(found["model"]["c"], weight[:1])


def test_an_error_while_writing_leaves_the_old_one(tmp_path, monkeypatch):
    file = tmp_path / "last.safetensors"
    save_checkpoint(file, {"model": {"a": torch.ones(1)}}, {"step": 1})

    def half(tensors, path, metadata):
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("likewise.train.checkpoint.save_file", half)
    with pytest.raises(OSError, match=r"no space left"):
        save_checkpoint(file, {"model": {"a": torch.zeros(1)}}, {"step": 2})
    assert load_checkpoint(file)[1]["step"] == 1
    assert [each.name for each in tmp_path.iterdir()] == ["last.safetensors"]


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "header"])
def test_a_damaged_file(tmp_path, damage):
    file = tmp_path / "last.safetensors"
    save_checkpoint(file, {"model": {"a": torch.ones(100)}}, {"step": 1})
    whole = file.read_bytes()
    broken = {"empty": b"", "text": b"hello, world" * 10, "cut": whole[:-50], "header": whole[:20] + b"#" + whole[21:]}
    file.write_bytes(broken[damage])
    with pytest.raises(ValueError, match=rf"^{file} must be the checkpoint of a training run, but") as refused:
        load_checkpoint(file)
    assert "\n" not in str(refused.value)


def test_a_file_of_another_kind(tmp_path):
    file = tmp_path / "last.safetensors"
    save_file({"a": torch.ones(1)}, file)
    with pytest.raises(ValueError, match=r"must be the checkpoint of a training run, but it is another file$"):
        load_checkpoint(file)
    Embedder("convnet", 4).save(file)
    with pytest.raises(ValueError, match=r"must be the checkpoint of a training run, but it is another file$"):
        load_checkpoint(file)
    save_file({"a": torch.ones(1)}, file, metadata={"likewise checkpoint": json.dumps({"format": 999})})
    with pytest.raises(ValueError, match=r"must be a checkpoint of format 1, but it is of format 999$"):
        load_checkpoint(file)


OPTIMIZERS = {
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, fused=True),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1, fused=True),
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, fused=True),
    "plain SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, fused=True),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.1, momentum=0.5, foreach=True),
}


@pytest.mark.parametrize("layout", ["contiguous", "channels last"])
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_an_optimizer_goes_on(tmp_path, make, layout):
    """Two steps at once, or one, a file, and one more."""

    def network() -> nn.Module:
        torch.manual_seed(0)
        net = nn.Conv2d(3, 4, 3)
        return net.to(memory_format=torch.channels_last) if layout == "channels last" else net

    def step(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        images = torch.arange(2 * 3 * 25, dtype=torch.float32).reshape(2, 3, 5, 5).sin()
        (net(images) * torch.linspace(0, 1, 9).reshape(3, 3)).square().sum().backward()
        optimizer.step()

    first = network()
    optimizer = make(first.parameters())
    step(first, optimizer)
    save_checkpoint(
        tmp_path / "last.safetensors",
        {"model": first.state_dict(), "optimizer": optimizer_tensors(optimizer)},
        {},
    )
    step(first, optimizer)
    second = network()
    other = make(second.parameters())
    tensors, _ = load_checkpoint(tmp_path / "last.safetensors")
    second.load_state_dict(tensors["model"])
    load_optimizer(other, tensors.get("optimizer", {}))
    step(second, other)
    assert same(first.state_dict(), second.state_dict())


def test_chance_goes_on():
    def draws() -> tuple[object, ...]:
        return (
            torch.rand(3).tolist(),
            torch.randn(3).tolist(),
            random.random(),
            random.gauss(0, 1),
            np.random.rand(3).tolist(),
            np.random.randn(3).tolist(),
        )

    for warm in range(3):  # gauss keeps every second number for later
        for _ in range(warm):
            random.gauss(0, 1), np.random.randn(), torch.randn(1)
        before = rng_tensors()
        expected = draws()
        draws()
        load_rng_state({name: tensor.clone() for name, tensor in before.items()})
        assert draws() == expected


def test_a_model_with_a_save_of_its_own(tmp_path):
    model = Embedder("convnet", 4)
    save_model(model, tmp_path / "best.safetensors", ["a", "b"], {"R@1": 0.5})
    assert read_card(tmp_path / "best.safetensors").classes == ("a", "b")
    assert read_card(tmp_path / "best.safetensors").metrics == {"R@1": 0.5}
    assert same(Embedder.load(tmp_path / "best.safetensors").state_dict(), model.state_dict())


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_plain_module(tmp_path, layout):
    model = nn.Conv2d(3, 4, 3).to(memory_format=layout)
    save_model(model, tmp_path / "model.safetensors", metrics={"R@1": 0.5})
    assert same(load_file(tmp_path / "model.safetensors"), model.state_dict())
