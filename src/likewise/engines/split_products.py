"""Products of bfloat16 matrices that accumulate in float32, and of float32 matrices that are split in two of these.

A float32 number is the sum of two bfloat16 numbers and a rest of 2⁻¹⁸.  Three products of such halves take a fraction of
the time of one in float32, and their error is far below the rounding of bfloat16 embeddings and of their gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from likewise.formula import (
    accumulates_in_float32,
    multiply_columns,
    multiply_into_float32,
    multiply_rows,
    pair_parts,
    split_into_parts,
)


def make_factors(rows: Tensor, half: torch.dtype | None) -> PlainFactors | SplitFactors:
    """The products of rows with each other, without a graph: on a GPU of halves, if the embeddings were bfloat16.

    Examples:
        >>> make_factors(torch.tensor([[1.0], [2.0]]), None).multiply(slice(0, 1))
        tensor([[1., 2.]])
    """
    # otherwise halves are converted to float32 first
    pays = rows.dtype == torch.float32 and half == torch.bfloat16 and accumulates_in_float32(rows.device)
    return SplitFactors.of(rows) if pays else PlainFactors(rows)


class PlainFactors(NamedTuple):
    """Rows that are multiplied with each other in their dtype."""

    rows: Tensor

    def multiply(self, some: slice) -> Tensor:
        """The products of some rows with all rows."""
        return multiply_rows(self.rows[some], self.rows)

    def pass_on(self, gradient: Tensor, some: slice, total: Tensor) -> None:
        """Add the gradient by the rows to a total, from that by the products of some rows."""
        total[some].add_(multiply_rows(gradient, self.rows.T))
        total.add_(multiply_columns(gradient, self.rows[some]))


class SplitFactors(NamedTuple):
    """Rows that are multiplied with each other as the sums of their halves.

    Args:
        left: the rounded rows, the rest, and the rounded rows, ``(m, 3 d)``.
        right: the rounded rows, the same, and the rest, so that one product has all summands but the smallest.

    Examples:
        >>> rows = torch.tensor([[1.001, 2.0]])
        >>> SplitFactors.of(rows).multiply(slice(0, 1))
        tensor([[5.0020]])
    """

    left: Tensor
    right: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> SplitFactors:
        """Split rows."""
        high, low = split_into_parts(rows, 2)
        return cls(torch.cat([high, low, high], dim=1), torch.cat([high, high, low], dim=1))

    def multiply(self, some: slice) -> Tensor:
        """The products of some rows with all rows."""
        return multiply_into_float32(self.left[some], self.right.T)

    def pass_on(self, gradient: Tensor, some: slice, total: Tensor) -> None:
        """Add the gradient by the rows to a total, from that by the products of some rows."""
        d = self.left.shape[1] // 3
        halves = self.left[:, :d], self.left[:, d : 2 * d]
        for part, rows in pair_parts(split_into_parts(gradient, 2), halves):
            multiply_into_float32(part, rows, total[some])
            multiply_into_float32(part.T, rows[some], total)
