"""Soft histograms of rows: sums in whole numbers, which a GPU uses, and second derivatives."""

from __future__ import annotations

import torch

from likewise.engines import map_rows
from likewise.engines.histograms import add_up_steps, add_up_weights
from likewise.formula import Labels, PairBatch, s

BINS = 10


def make_weights(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    index = torch.randint(BINS, (5, 2000), generator=generator)
    return index, torch.rand(5, 2000, generator=generator, dtype=dtype), torch.rand(5, 2000, generator=generator) < 0.7


def test_steps_equal_weights() -> None:
    index, upper, kept = make_weights(torch.float64)
    torch.testing.assert_close(
        add_up_steps(index, upper, kept, BINS), add_up_weights(index, upper, kept, BINS), rtol=1e-9, atol=1e-9
    )


def test_steps_have_the_same_bits_in_any_order() -> None:
    index, upper, kept = make_weights(torch.float32)
    order = torch.randperm(2000, generator=torch.Generator().manual_seed(1))
    forward = add_up_steps(index, upper, kept, BINS)
    assert torch.equal(forward, add_up_steps(index[:, order], upper[:, order], kept[:, order], BINS))
    weights = add_up_weights(index, upper, kept, BINS)
    assert not torch.equal(weights, add_up_weights(index[:, order], upper[:, order], kept[:, order], BINS))


def test_a_nan_reaches_its_row_and_no_other() -> None:
    index, upper, kept = make_weights(torch.float32)
    kept[2, 7], kept[3, 9] = True, False
    upper[2, 7], upper[3, 9] = torch.nan, 0.5
    assert add_up_steps(index, upper, kept, BINS).isnan().any(dim=1).tolist() == [False, False, True, False, False]


def test_the_derivative_can_be_differentiated() -> None:
    """A weight is linear between two nodes: the gradient is linear in the incoming one, and constant in the similarity."""
    S = torch.rand(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    relation = Labels(torch.tensor([0, 0, 1, 1, 1, 2]))

    def square_of_weights(matrix: torch.Tensor) -> torch.Tensor:
        found = map_rows(PairBatch(relation, matrix=matrix)).histograms(s * 4.0, 4)
        return found.positives.square().sum() + found.negatives.pow(3).sum()

    assert torch.autograd.gradcheck(square_of_weights, S)
    assert torch.autograd.gradgradcheck(square_of_weights, S)
