"""Products of rows with themselves: values and gradients, once and twice, against plain products."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from likewise.formula import Cosine, Dot, SquaredEuclidean, products
from likewise.formula.products import multiply_pairs


def _both(rows: Tensor, added: Tensor | None, factor: float) -> tuple[Tensor, Tensor]:
    """The product of one tensor with itself, and of two equal ones."""
    return multiply_pairs(rows, rows, added, factor), multiply_pairs(rows, rows.view_as(rows), added, factor)


@pytest.mark.parametrize("small_side", [0, 256])
@pytest.mark.parametrize(("with_added", "factor"), [(False, 1.0), (False, 2.0), (True, 2.0)])
def test_gradient(small_side: int, with_added: bool, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "SMALL_SIDE", small_side)
    generator = torch.Generator().manual_seed(0)
    rows, grad = (torch.randn(size, dtype=torch.float64, generator=generator) for size in ((5, 3), (5, 5)))
    added = torch.randn(1, 5, dtype=torch.float64, generator=generator) if with_added else None
    learned = [each.requires_grad_() for each in (rows, added) if each is not None]
    one, two = _both(rows, added, factor)
    assert type(one.grad_fn).__name__ == "_SelfProductBackward" != type(two.grad_fn).__name__
    assert torch.equal(one, two)
    for upstream in (grad, grad.T):
        before = upstream.clone()
        pairs = (torch.autograd.grad(each, learned, upstream, retain_graph=True) for each in (one, two))
        for ours, plain in zip(*pairs, strict=True):
            torch.testing.assert_close(ours, plain)
        assert torch.equal(upstream, before)
    assert torch.autograd.gradgradcheck(
        lambda *inputs: multiply_pairs(inputs[0], inputs[0], *inputs[1:], factor=factor), learned
    )


def test_similarities_under_autocast() -> None:
    rows = torch.randn(30, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for similarity in (Cosine(), Dot(), SquaredEuclidean()):
        with torch.autocast("cpu", torch.bfloat16):
            similarities = similarity(rows)
        (gradient,) = torch.autograd.grad(similarities.float().square().sum(), rows)
        assert gradient.isfinite().all()


def test_many_rows_and_few_dimensions_take_two_products() -> None:
    rows = torch.ones(9, 1, requires_grad=True)
    assert type(multiply_pairs(rows, rows).grad_fn).__name__ == "MmBackward0"
    assert type(multiply_pairs(rows[:8], rows[:8]).grad_fn).__name__ == "MmBackward0"  # two tensors
