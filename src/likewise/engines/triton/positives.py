"""The kernel that finds the positives of each sample of a batch, by comparing all labels: one launch in place of fifty."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise.engines.triton.kernels import launch

ROWS, COLUMNS = 8, 1024
"""Samples of a program, and labels that they are compared with at a time."""


@triton.jit
def _find_positives(labels, index, number, extremes, m, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Write the first positives of some samples, in order, their numbers, and the largest numbers of positives and of gaps."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    exists = row < m
    own = tl.load(labels + row, mask=exists, other=0)
    found = tl.zeros([ROWS], tl.int32)
    for begin in range(0, m, COLUMNS):
        column = begin + tl.arange(0, COLUMNS)
        other = tl.load(labels + column, mask=column < m, other=0)
        same = (own[:, None] == other[None, :]) & (row[:, None] != column[None, :])
        same = same & (exists[:, None] & (column < m)[None, :])
        hits = tl.sum(same.to(tl.int32), axis=1)
        if tl.max(hits, axis=0) > 0:
            place = found[:, None] + tl.cumsum(same.to(tl.int32), axis=1) - 1
            at = index + row.to(tl.int64)[:, None] * WIDTH + place
            tl.store(at, column.to(tl.int64)[None, :] + tl.zeros_like(place), mask=same & (place < WIDTH))
        found += hits
    tl.store(number + row, found, mask=exists)
    tl.atomic_max(extremes, tl.max(found, axis=0))
    gaps = tl.where(exists, WIDTH - tl.minimum(found, WIDTH), 0)
    tl.atomic_max(extremes + 1, tl.max(gaps, axis=0))


def find_positives(labels: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Compare all labels with each other.

    Args:
        labels: integers, ``(m,)``.
        width: positives of a sample that are written, a power of two.

    Returns:
        The first positives of each sample, ``(m, width)``, zero where there are none; the numbers of positives, ``(m,)``;
        and the largest number of positives and the largest number of missing ones, ``(2,)``.
    """
    m = len(labels)
    index = labels.new_zeros(m, width, dtype=torch.int64)
    number = labels.new_empty(m, dtype=torch.int32)
    extremes = labels.new_zeros(2, dtype=torch.int32)
    arguments = labels.contiguous(), index, number, extremes, m, width, ROWS, COLUMNS
    launch(_find_positives, triton.cdiv(m, ROWS), arguments, labels.device)
    return index, number, extremes
