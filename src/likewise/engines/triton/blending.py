"""Kernels for a softmax-weighted mean over the centers of a class: one pass over the similarities in each direction.

Plain operations read or write the matrix of similarities about eight times forward and twelve times backward.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise._compat import is_transformed
from likewise.triton_tools import use_device

COLUMNS = 256
"""Classes of one program, at most."""


@triton.jit
def _load(S, row, column, classes, centers, CENTERS: tl.constexpr):
    """Return the similarities of a row to the centers of some classes, their addresses, and the mask of what exists."""
    center = tl.arange(0, CENTERS)
    where = row * classes * centers + center[:, None] * classes + column[None, :]
    exists = (center[:, None] < centers) & (column[None, :] < classes)
    return tl.load(S + where, mask=exists, other=-float("inf")), where, exists


@triton.jit
def _weights(s, exists, rate):
    """Return the softmax over centers; zero where nothing exists."""
    largest = tl.max(s, axis=0)
    weights = tl.where(exists, tl.exp((s - tl.where(largest == -float("inf"), 0.0, largest)[None, :]) * rate), 0.0)
    total = tl.sum(weights, axis=0)
    return weights / tl.where(total == 0.0, 1.0, total)[None, :]


@triton.jit
def _forward(S, MEAN, classes, centers, rate, CENTERS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    s, _where, exists = _load(S, row, column, classes, centers, CENTERS)
    mean = tl.sum(_weights(s, exists, rate) * tl.where(exists, s, 0.0), axis=0)
    tl.store(MEAN + row * classes + column, mean, mask=column < classes)


@triton.jit
def _backward(S, MEAN, GRAD, OUT, classes, centers, rate, CENTERS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    s, where, exists = _load(S, row, column, classes, centers, CENTERS)
    at = row * classes + column
    mean = tl.load(MEAN + at, mask=column < classes, other=0.0)
    grad = tl.load(GRAD + at, mask=column < classes, other=0.0)
    value = grad[None, :] * _weights(s, exists, rate) * (1.0 + (tl.where(exists, s, 0.0) - mean[None, :]) * rate)
    tl.store(OUT + where, value, mask=exists)


class Blend(torch.autograd.Function):
    r"""$\sum_k w_k s_k$ with $w=\mathrm{softmax}(s/T)$; the derivative by $s_k$ is $w_k(1+(s_k-\sum_l w_l s_l)/T)$."""

    @staticmethod
    def forward(ctx: Any, across: Tensor, temperature: float) -> Tensor:
        """``(m, centers, classes) -> (m, classes)``, contiguous float32."""
        mean = across.new_empty(across.shape[0], across.shape[2])
        _launch(_forward, across, temperature, mean)
        ctx.save_for_backward(across, mean)
        ctx.temperature = temperature
        return mean

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """One kernel; plain operations where the gradient itself is differentiated or mapped."""
        across, mean = ctx.saved_tensors
        if torch.is_grad_enabled() or is_transformed():
            weights = torch.softmax(across / ctx.temperature, dim=1)
            mean = (weights * across).sum(dim=1, keepdim=True)
            return grad[:, None] * weights * (1.0 + (across - mean) / ctx.temperature), None
        of_across = torch.empty_like(across)
        _launch(_backward, across, ctx.temperature, mean, grad.contiguous(), of_across)
        return of_across, None


def _launch(kernel: Any, across: Tensor, temperature: float, *tensors: Tensor) -> None:
    m, centers, classes = across.shape
    if across.numel():
        columns = min(COLUMNS, max(32, triton.next_power_of_2(classes)))
        grid = (m, triton.cdiv(classes, columns))
        with use_device(across.device):
            kernel[grid](
                across,
                *tensors,
                classes,
                centers,
                1.0 / temperature,
                CENTERS=triton.next_power_of_2(centers),
                COLUMNS=columns,
            )
