"""Tables of proxies in the Triton engine: operands in chunks, rounded tables, and updates in the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise import losses
from likewise.engines.triton import factor
from likewise.losses import optimizer_in_backward
from tests.engines.triton_common import EPS, batch, layout, relative_errors, take

CLASSES, DIM = 41, 5
HEADS: dict[str, Callable[..., losses.ProxyLoss]] = {
    "arc-face": losses.ArcFaceLoss,
    "softmax-bias": lambda *a, **o: losses.SoftmaxLoss(*a, bias=True, **o),
    "proxy-nca": losses.ProxyNCALoss,
    "learned": lambda *a, **o: losses.NormalizedSoftmaxLoss(*a, learn_temperature=True, **o),
}


def make(name: str, backend: str = "triton") -> losses.ProxyLoss:
    torch.manual_seed(3)
    loss = HEADS[name](CLASSES, DIM, backend=backend)
    with torch.no_grad():
        loss.proxies.normal_()
    return loss


def results(loss: losses.ProxyLoss, embeddings: Tensor, labels: Tensor) -> list[Tensor]:
    leaf = embeddings.detach().clone().requires_grad_()
    value = loss(leaf, labels)
    return [value.detach(), *torch.autograd.grad(1.5 * value, [leaf, *loss.parameters()])]


@pytest.mark.parametrize("name", HEADS)
def test_an_operand_in_chunks_is_that_of_all_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits, because chunks are made of whole tiles."""
    take(monkeypatch, "sorted")
    embeddings, labels = batch(19, DIM, CLASSES)
    computed: list[int] = []
    original = factor.Factor._compute

    def compute(self: factor.Factor, first: int, end: int) -> Any:
        computed.append(end - first)
        return original(self, first, end)

    monkeypatch.setattr(factor.Factor, "_compute", compute)
    chunked = results(make(name), embeddings, labels)
    assert max(computed) <= max(16, len(embeddings))  # never the table
    monkeypatch.setattr(layout, "MAX_OPERAND_BYTES", 2**28)
    computed.clear()
    whole = results(make(name), embeddings, labels)
    assert CLASSES in computed
    for left, right in zip(chunked, whole, strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_table_of_another_dtype_is_not_converted(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """float32 embeddings and proxies in half precision: computed in float32, with a gradient that is rounded once."""
    take(monkeypatch, "sorted")
    embeddings, labels = batch(19, DIM, CLASSES)
    found = results(make("arc-face").to(dtype), embeddings, labels)
    expected = results(make("arc-face", "dense").to(dtype).double(), embeddings.double(), labels)
    assert found[2].dtype == dtype
    for error, bound in zip(relative_errors(found, expected), (8 * EPS, 64 * EPS, 2.0**-8), strict=True):
        assert error < bound


def test_rows_are_rounded_to_bfloat16_first() -> None:
    """The table of autocast: norms are those of the rounded rows, and the derivative of rounding is one."""
    x = torch.randn(7, 16, generator=torch.Generator().manual_seed(0)) * 10.0 ** torch.linspace(-20, 20, 7)[:, None]
    rounded = x.bfloat16().float()
    made = [
        factor.Factor(rows, None, unit=True, dtype=torch.float32, halved=halved)
        for rows, halved in ((x, True), (rounded, False))
    ]
    assert torch.equal(made[0].operand, made[1].operand)
    gradients = [each.new_gradient() for each in made]
    for each, gradient in zip(made, gradients, strict=True):
        each.backward(torch.linspace(-1, 1, 7 * 16).reshape(7, 16), 0, gradient)
    assert torch.equal(*gradients)


@pytest.mark.parametrize(("name", "way"), [*zip(HEADS, ("general", "sorted") * 2, strict=True), ("arc-face", "sorted")])
def test_an_update_in_the_backward_pass(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same proxies as after a step of the optimizer; the gradient is passed on in chunks, across their borders."""
    take(monkeypatch, way)
    monkeypatch.setattr(optimizer_in_backward, "CHUNK_BYTES", 7 * DIM * 4)
    taken: list[int] = []
    original = losses.OptimizerInBackward._take_in_chunks

    def take_rows(self: Any, rows: slice, gradient: Tensor) -> None:
        taken.append(len(gradient))
        original(self, rows, gradient)

    monkeypatch.setattr(losses.OptimizerInBackward, "_take_in_chunks", take_rows)
    proxies = []
    for fused in (True, False):
        loss = make(name)
        rule: Callable[[Any], torch.optim.Optimizer] = lambda some: torch.optim.Adam(some, lr=0.1)  # noqa: E731
        optimizer = losses.OptimizerInBackward(loss, rule).optimizer if fused else rule([loss.proxies])
        for seed in range(2):
            embeddings, labels = batch(19, DIM, CLASSES, seed)
            loss(embeddings.requires_grad_(), labels).backward()
            if not fused:
                optimizer.step()
            loss.proxies.grad = None
        proxies.append(loss.proxies.detach())
    assert torch.equal(*proxies)
    if (
        name == "softmax-bias"
    ):  # with numbers per class, which may depend on the proxies, the gradient exists as a whole
        assert not taken
        return
    assert sum(taken) == 2 * CLASSES
    assert (max(taken) == 16) == (way == "sorted")
