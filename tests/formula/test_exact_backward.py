"""Gradients under autocast: products of built-in losses are marked, and those of users are watched."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from likewise.formula import Cosine, Dot, Pooled, exactly, full_precision, similarity_hook
from likewise.formula.pooling import SummedCenters
from likewise.losses import AntiCollapseLoss, ContrastiveLoss, NTXentLoss

WEIGHTS = torch.randn(12, 12, generator=torch.Generator().manual_seed(3))
LAYER = torch.nn.Linear(6, 6)
LABELS = torch.arange(12) // 3


class Turned(Dot):
    """A similarity of a user, with a product."""

    def prepare(self, embeddings: Tensor) -> Tensor:
        return super().prepare(embeddings @ WEIGHTS[:6, :6])


def through_a_layer(embeddings: Tensor) -> Tensor:
    with full_precision(embeddings):
        return torch.nn.functional.linear(embeddings, LAYER.weight, LAYER.bias).square().mean()


def with_hook(embeddings: Tensor) -> Tensor:
    with similarity_hook(lambda batch, matrix: matrix @ WEIGHTS):
        return ContrastiveLoss()(embeddings, LABELS)


CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "a built-in loss": lambda x: NTXentLoss()(x, LABELS),
    "a similarity": lambda x: NTXentLoss(similarity=Turned())(x, LABELS),
    "a similarity in another": lambda x: NTXentLoss(similarity=Pooled(Turned(), 1, SummedCenters()))(x, LABELS),
    "a hook": with_hook,
    "a layer": through_a_layer,
    "a matrix that is factored": lambda x: AntiCollapseLoss()(x),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_gradients_do_not_depend_on_where_backward_is_called(call: Callable[[Tensor], Tensor]) -> None:
    found = []
    for enabled in (False, True):
        leaf = torch.randn(12, 6, generator=torch.Generator().manual_seed(0)).requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            value = call(leaf)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            found.append(torch.autograd.grad(value, leaf)[0])
    assert torch.equal(*found)


def test_a_block_inside_of_another() -> None:
    """Leaving the inner block does not end the outer one."""
    x = torch.randn(4, 3, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16), full_precision(x, marked=True):
        with torch.autocast("cpu", torch.bfloat16), full_precision(x, marked=True):
            exactly(x @ x.T)
        value = exactly(x @ x.detach().T).sum()
    with torch.autocast("cpu", torch.bfloat16):
        (gradient,) = torch.autograd.grad(value, x)
    assert torch.equal(gradient, torch.ones(4, 4) @ x.detach())


def test_without_a_mark_torch_rounds() -> None:
    """The tests above can fail: a product that is neither marked nor watched is rounded."""
    x, y = torch.randn(4, 3, requires_grad=True), torch.randn(5, 3)
    with torch.autocast("cpu", torch.bfloat16), full_precision(x, marked=True):
        value = (x @ y.T).sum()
    with torch.autocast("cpu", torch.bfloat16):
        (gradient,) = torch.autograd.grad(value, x)
    assert not torch.equal(gradient, torch.ones(4, 5) @ y)


def test_cosines_are_built_in() -> None:
    """A name and an object take the same path."""
    x = torch.randn(12, 6)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(NTXentLoss()(x, LABELS), NTXentLoss(similarity=Cosine())(x, LABELS))
