"""Calls of the Triton engine: graphs, repeated calls, changed hyper-parameters, caches and memory."""

from __future__ import annotations

import copy
import gc
import io
import pickle
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from triton.runtime import interpreter

from likewise import losses, miners
from likewise.engines.triton.kernels import compile_source
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    hyper,
    largest,
    mean,
    per_anchor,
    per_pair,
    relu,
    s,
    softplus,
)
from likewise.formula.expressions import as_formula
from likewise.losses import PairLoss
from tests.engines.triton_common import WAYS, batch, check, declare_loss, kernels, make_miner, run, take

LOSSES = {
    "plain": losses.MultiSimilarityLoss,
    "mined": partial(losses.MultiSimilarityLoss, miner=miners.MultiSimilarityMiner(0.1)),
    "learned": partial(losses.NTXentLoss, learn_temperature=True),
    "distances": partial(losses.ContrastiveLoss, 0.0, -1.0, similarity="euclidean"),
    "two stages": losses.IntraPairVarianceLoss,
    "triplets": losses.TripletLoss,
}
BY_TURNS = [(name, WAYS[turn % len(WAYS)]) for turn, name in enumerate(LOSSES)]
"""Each loss on one of the paths."""


def make_leaf(embeddings: Tensor) -> Tensor:
    return embeddings.detach().clone().requires_grad_()


# ------------------------------------------------------------------------------------------------ graphs


@pytest.mark.parametrize("way", ["sorted"])
def test_without_a_graph(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, way)
    embeddings, labels = batch(19)
    loss = losses.MultiSimilarityLoss(backend="triton")
    expected = loss(make_leaf(embeddings), labels)
    assert expected.requires_grad
    assert not loss(embeddings, labels).requires_grad
    with torch.no_grad():
        assert not loss(make_leaf(embeddings), labels).requires_grad
    with torch.inference_mode():
        assert torch.equal(loss(embeddings, labels), expected.detach())


@pytest.mark.parametrize(("way", "side"), [("general", 0), ("sorted", 1)])
def test_one_side_learns(way: str, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, way)
    (anchors, labels), (references, theirs) = batch(19), batch(23, seed=1)
    found = []
    for backend in ("triton", "dense"):
        tensors = [anchors, references]
        tensors[side] = make_leaf(tensors[side])
        losses.MultiSimilarityLoss(backend=backend)(tensors[0], labels, tensors[1], theirs).backward()
        found.append(tensors[side].grad)
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(("name", "way"), BY_TURNS[1:5:2] + BY_TURNS[4:5])
def test_back_twice_and_never_again(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, way)
    embeddings, labels = batch(19)
    leaf = make_leaf(embeddings)
    value = LOSSES[name](backend="triton")(leaf, labels)
    (first,) = torch.autograd.grad(value, leaf, retain_graph=True)
    (second,) = torch.autograd.grad(value, leaf, grad_outputs=torch.tensor(-2.0), retain_graph=True)
    torch.testing.assert_close(second, -2.0 * first)
    (gradient,) = torch.autograd.grad(value, leaf, create_graph=True)
    # a penalty on the gradient must not be ignored silently
    refusal = "cannot be differentiated again; give backend='dense'"
    with pytest.raises(RuntimeError, match=refusal):
        torch.autograd.grad(gradient.square().sum(), leaf, retain_graph=True, allow_unused=True)
    with pytest.raises(RuntimeError, match=refusal) as caught:
        (value + gradient.square().sum()).backward()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("way", ["general"])
def test_changed_embeddings_are_noticed(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the dense engine: the gradient at changed embeddings would be silently wrong."""
    take(monkeypatch, way)
    embeddings, labels = batch(19)
    for backend in ("triton", "dense"):
        changed = make_leaf(embeddings) * 1.0
        value = losses.MultiSimilarityLoss(backend=backend, reduction="none")(changed, labels).sum()
        changed.mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            value.backward()


@pytest.mark.parametrize("way", ["general"])
def test_autocast_changes_nothing(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, way)
    embeddings, labels = batch(19)
    loss = losses.MultiSimilarityLoss(backend="triton")
    expected, gradient = run(loss, [embeddings], labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, same = run(loss, [embeddings], labels)
    assert torch.equal(expected, found)
    assert torch.equal(gradient, same)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_bits_twice(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, way)
    torch.use_deterministic_algorithms(True)
    try:
        make = LOSSES["mined" if way != "general" else "two stages"]
        first, second = (run(make(backend="triton"), [batch(19)[0]], batch(19)[1]) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    finally:
        torch.use_deterministic_algorithms(False)


# ------------------------------------------------------------------------------------------------ changed numbers


class Hinge(PairLoss):
    """Numbers in a curve, between folds and in a count."""

    margin: float = hyper(default=0.3, help="where negatives stop to matter")
    scale: float = hyper(default=4.0, help="how steep")

    def declare(self):
        hardest = softplus(self.scale * (largest(s, NEGATIVES) - mean(s, POSITIVES) + self.margin))
        return per_anchor(hardest / self.scale), per_pair(NEGATIVES, relu(s - self.margin))


def count_compiled() -> int:
    return compile_source.cache_info().misses


def test_a_search_compiles_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are arguments of the kernel; literals (0.5, 1, 2) are part of another kernel, which is correct too."""
    take(monkeypatch, "general")
    embeddings, labels = batch(19)
    run(Hinge(0.11, 3.0, backend="triton"), [embeddings], labels)
    before = count_compiled()
    for margin, scale in ((0.2, 5.0), (-0.4, 0.7)):
        check(partial(Hinge, margin, scale), embeddings, labels)
    assert count_compiled() == before
    for margin, scale in ((0.5, 1.0), (0.2, 2.0), (0.5, 5.0)):
        check(partial(Hinge, margin, scale), embeddings, labels)


@pytest.mark.parametrize("way", ["sorted"])
def test_a_changed_attribute_counts(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, way)
    embeddings, labels = batch(19)
    loss = Hinge(backend="triton", miner=miners.MultiSimilarityMiner(0.1))
    for margin, epsilon in ((0.3, 0.1), (0.6, 0.1), (0.6, 0.4), (0.5, 0.4)):
        loss.margin, loss.miner = margin, miners.MultiSimilarityMiner(epsilon)
        dense = Hinge(margin, backend="dense", miner=miners.MultiSimilarityMiner(epsilon))
        torch.testing.assert_close(loss(embeddings, labels), dense(embeddings, labels))


@pytest.mark.parametrize("way", ["general"])
def test_a_number_that_loss_and_miner_share(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One object in two places is one argument; the next loss of that structure may have two."""
    take(monkeypatch, way)
    embeddings, labels = batch(19)
    for first, second in ((0.11, None), (0.11, 0.37), (0.23, None)):
        values = []
        for backend in ("triton", "dense"):
            one = as_formula(first)
            other = one if second is None else as_formula(second)
            loss = declare_loss(
                per_pair(NEGATIVES, relu(s - one)), backend=backend, miner=make_miner(s < 3.0, other < s)
            )
            values.append(loss(embeddings, labels))
        torch.testing.assert_close(*values)


def test_other_sizes_and_dtypes_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels from the cache fit the next batch."""
    for way in WAYS:
        take(monkeypatch, way)
        for m, d, dtype in (
            (19, 5, torch.float32),
            (3, 5, torch.float16),
            (5, 17, torch.float32),
            (19, 5, torch.float16),
        ):
            embeddings, labels = batch(m, d)
            check(losses.MultiSimilarityLoss, embeddings.to(dtype), labels)


# ------------------------------------------------------------------------------------------------ what is kept


@pytest.mark.parametrize("name", LOSSES)
def test_losses_can_be_copied_after_use(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = batch(19)
    take(monkeypatch, "general")
    loss = LOSSES[name](backend="triton")
    expected = loss(embeddings, labels)
    loss(make_leaf(embeddings), labels).backward()
    stored = io.BytesIO()
    torch.save(loss, stored)
    stored.seek(0)
    copies = [copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), torch.load(stored, weights_only=False)]
    for other in copies:
        assert torch.equal(other(embeddings, labels), expected)


def count_tensors() -> int:
    return sum(issubclass(type(each), Tensor) for each in gc.get_objects())


@pytest.mark.parametrize(("name", "way"), BY_TURNS)
def test_nothing_grows(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tensor outlives its call, and none is part of a reference cycle."""
    take(monkeypatch, way)
    embeddings, labels = batch(6, 3, 2)

    def step() -> None:
        leaf = make_leaf(embeddings)
        LOSSES[name](backend="triton")(leaf, labels).backward()

    step()
    gc.collect()
    before = count_tensors()
    gc.disable()
    try:
        for _ in range(2):
            step()
        assert count_tensors() == before
    finally:
        gc.enable()


def test_kernels_keep_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of kernels does not hold the norms of a batch."""
    take(monkeypatch, "general")
    embeddings, labels = batch(7)
    losses.MultiSimilarityLoss(backend="triton")(embeddings, labels)
    gc.collect()
    before = count_tensors()
    for similarity in ("euclidean", "squared_euclidean"):
        losses.MultiSimilarityLoss(backend="triton", similarity=similarity)(embeddings, labels)
    gc.collect()
    assert count_tensors() == before


# ------------------------------------------------------------------------------------------------ devices


def test_the_device_of_the_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    assert kernels.use_device(torch.device("cuda:0")) is kernels.use_device(torch.device("cpu"))
    other = kernels.use_device(torch.device("cuda:1"))
    assert isinstance(other, torch.cuda.device)
    assert other.idx == 1


@pytest.mark.parametrize("way", WAYS)
def test_every_launch_is_on_its_device(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inside: list[torch.device] = []

    class Guard:
        def __init__(self, device: torch.device) -> None:
            self.device = device

        def __enter__(self) -> None:
            inside.append(self.device)

        def __exit__(self, *_: object) -> None:
            inside.pop()

    launched, made = [], interpreter.GridExecutor.__call__

    def launch(self: Any, *args: Any, **options: Any) -> Any:
        launched.append(list(inside))
        return made(self, *args, **options)

    monkeypatch.setattr(interpreter.GridExecutor, "__call__", launch)
    monkeypatch.setattr(kernels, "use_device", Guard)
    take(monkeypatch, way)
    embeddings, labels = batch(19)
    losses.MultiSimilarityLoss(backend="triton")(embeddings.requires_grad_(), labels).backward()
    assert launched
    assert all(devices == [torch.device("cpu")] for devices in launched)
