"""Sums of soft steps in sorted rows, against every triplet written out in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from likewise.engines import positives
from likewise.engines.positive_steps import sum_positives
from likewise.engines.steps import match_step, sum_steps
from likewise.formula import NEGATIVES, POSITIVES, add_up, evaluate, relevance, s, s_p, sigmoid, where
from likewise.losses import HAPLoss
from likewise.losses.soft_rank import upper_bound_step

CURVES = {
    "sigmoid": sigmoid((s - s_p) / 0.1),
    "SupAP": upper_bound_step(s - s_p, 0.01, 100.0, 0.05, 1.44, 0.5),
    "continuous, wide": upper_bound_step(s - s_p, 0.2, 10.0, 0.02, None, 0.3),
    "narrow, flat": upper_bound_step(s - s_p, 0.001, 0.0, 0.05, 1.0, 0.0),
}


@pytest.mark.parametrize("name", CURVES)
def test_sums_and_gradients(name: str) -> None:
    """Also where rows tie, and where an anchor has no negative."""
    generator = torch.Generator().manual_seed(0)
    negative = torch.rand(5, 90, generator=generator) < 0.6
    negative[4] = False
    index = torch.stack([torch.randperm(90, generator=generator)[:20] for _ in range(5)])
    weights = torch.randn(5, 20, generator=generator, dtype=torch.float64)
    curve = CURVES[name]
    step = match_step(add_up(curve, NEGATIVES))
    assert step is not None
    for dtype, slack in ((torch.float64, 1e-12), (torch.float32, 2e-6)):
        S = (torch.rand(5, 90, generator=generator, dtype=torch.float64) * 2.0 - 1.0).to(dtype)
        S[:, 1::9] = S[:, ::9]
        leaf, truth = S.clone().requires_grad_(), S.double().requires_grad_()
        values = evaluate(curve, {s: truth[:, None, :], s_p: truth.gather(1, index)[:, :, None]})
        wanted = (values * negative[:, None, :]).sum(dim=2)
        found = sum_steps(leaf, negative, index, step)
        torch.testing.assert_close(found.double(), wanted, rtol=slack, atol=slack)
        (expected,) = torch.autograd.grad((wanted * weights).sum(), truth)
        (gradient,) = torch.autograd.grad((found * weights).sum(), leaf, create_graph=dtype is torch.float64)
        torch.testing.assert_close(gradient.double(), expected, rtol=slack, atol=slack * float(expected.abs().max()))
        if dtype is torch.float32:
            (again,) = torch.autograd.grad((sum_steps(leaf, negative, index, step) * weights).sum(), leaf)
            torch.testing.assert_close(again, gradient)


def test_sums_over_positives_by_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hierarchical average precision by level is that of every pair of positives, also where rows tie."""
    index = torch.arange(48)
    labels = torch.stack(
        [index // 3, index // 12, index // 36], dim=1
    )  # an anchor of the last group has fewer positives
    embeddings = torch.randn(48, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    embeddings[1::7] = embeddings[::7]
    matched: list[bool] = []

    def watch(*arguments: Any) -> Tensor | None:
        found = sum_positives(*arguments)
        matched.append(found is not None)
        return found

    def run() -> tuple[Tensor, Tensor]:
        leaf = embeddings.clone().requires_grad_()
        value = HAPLoss(temperature=0.1)(leaf, labels)
        return value, torch.autograd.grad(value, leaf)[0]

    monkeypatch.setattr(positives, "sum_positives", watch)
    found = run()
    assert sum(matched) == 2
    monkeypatch.setattr(positives, "MANY", 1000)
    torch.testing.assert_close(found, run(), rtol=1e-11, atol=1e-13)


def test_what_is_no_step() -> None:
    """Numbers per pair, other sides and conditions that look down are left to the enumeration."""
    soft = sigmoid((s - s_p) / 0.1)
    for curve in (sigmoid(s + s_p), soft * relevance, where(s - s_p < 0.1, soft, 0.0), soft + sigmoid(s - s_p)):
        assert match_step(add_up(curve, NEGATIVES)) is None
    assert match_step(add_up(soft, POSITIVES)) is None
