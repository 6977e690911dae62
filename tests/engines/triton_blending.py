"""The softmax-weighted mean over centers in Triton's interpreter; test_triton.py runs it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from likewise.engines.triton.blending import COLUMNS, Blend
from likewise.formula import BlendedCenters


def blend(across: Tensor, temperature: float) -> Tensor:
    """Plain operations on ``(m, centers, classes)``."""
    return BlendedCenters(temperature)(across.transpose(1, 2))


def differentiate(value: Tensor, by: Tensor, grad: Tensor) -> Tensor:
    return torch.autograd.grad(value, by, grad)[0]


@pytest.mark.parametrize("shape", [(3, 10, COLUMNS + 44), (5, 1, 7), (2, 3, COLUMNS), (4, 16, 3), (0, 3, 4), (2, 4, 0)])
def test_value_and_gradient_against_float64(shape: tuple[int, int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    across = torch.randn(*shape, generator=generator).requires_grad_()
    grad = torch.randn(shape[0], shape[2], generator=generator)
    value, exact = Blend.apply(across, 0.1), across.detach().double().requires_grad_()
    truth = blend(exact, 0.1)
    plain = across.detach().requires_grad_()
    error = (blend(plain, 0.1).double() - truth).abs().max() if truth.numel() else 0.0
    assert (value.double() - truth).abs().sum() <= 2.0 * error * truth.numel() + 1e-6 * truth.numel()
    torch.testing.assert_close(
        differentiate(value, across, grad).double(), differentiate(truth, exact, grad.double()), rtol=1e-5, atol=1e-4
    )


def test_equal_centers_and_large_similarities_stay_finite() -> None:
    across = torch.full((2, 4, 5), 3e4).requires_grad_()
    value = Blend.apply(across, 0.01)
    torch.testing.assert_close(value, torch.full((2, 5), 3e4))
    torch.testing.assert_close(differentiate(value, across, torch.ones(2, 5)), torch.full((2, 4, 5), 0.25))


def test_the_second_derivative_is_that_of_plain_operations() -> None:
    found = []
    for function in (Blend.apply, blend):
        across = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(1)).requires_grad_()
        (slope,) = torch.autograd.grad(function(across, 0.5).pow(2).sum(), across, create_graph=True)
        found.append(torch.autograd.grad(slope.pow(2).sum(), across)[0])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)
