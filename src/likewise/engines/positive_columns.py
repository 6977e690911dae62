"""The columns of each row's positives: an index in place of masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.formula import PositiveIndex, Side


@dataclass(frozen=True, eq=False)
class PositiveColumns:
    """The columns of each row's positives.

    Args:
        columns: ``(m, k)``, all within the width.
        exists: which of them are positives, ``(m, k)``; the others are columns without a positive of the row.
            ``None``: all are.
        width: the number of columns.
        itself: the column of the row itself, ``(m, 1)``, on neither side; ``None`` if rows are not columns.

    Examples:
        >>> import torch
        >>> PositiveColumns.within(torch.tensor([[5], [-1]]), slice(4, 8)).exists.tolist()
        [[True], [False]]
    """

    columns: Tensor
    exists: Tensor | None
    width: int
    itself: Tensor | None = None

    @classmethod
    def of_batch(cls, positives: PositiveIndex, width: int, first: int) -> PositiveColumns:
        """The columns for a batch against itself; the first row is anchor number ``first``."""
        index, exists = positives.index, positives.exists
        itself = torch.arange(first, first + len(index), device=index.device)[:, None]
        # an entry that does not exist must not point to the column of an existing one in its row
        return cls(index if exists is None else torch.where(exists, index, itself), exists, width, itself)

    @classmethod
    def within(cls, columns: Tensor, chunk: slice) -> PositiveColumns:
        """The columns inside a chunk of columns; negative indices are in none."""
        width, columns = chunk.stop - chunk.start, columns - chunk.start
        return cls(columns.clamp(0, width - 1), (columns >= 0) & (columns < width), width)

    def mask(self, over: Side) -> Tensor:
        """The pairs of a side, ``(m, width)`` booleans, for folds that need them."""
        everything = torch.ones(len(self.columns), self.width, dtype=torch.bool, device=self.columns.device)
        return self.leave_out(everything, over, False)

    def leave_out(self, values: Tensor, over: Side, instead: float) -> Tensor:
        """Write a number, in place, to every column that is not part of the side."""
        if over is not Side.BOTH:
            values = write(values, self.columns, self.exists, instead)
        return values if self.itself is None else write(values, self.itself, None, instead)

    def count(self, over: Side) -> Tensor:
        """The number of pairs of a side, ``(m,)``."""
        m, k = self.columns.shape
        everything = self.width if self.itself is None else self.width - 1
        if over is Side.BOTH or self.exists is None:
            number = {Side.BOTH: everything, Side.NEGATIVES: everything - k, Side.POSITIVES: k}[over]
            return torch.full((m,), number, device=self.columns.device)
        positives = self.exists.sum(dim=1)
        return positives if over is Side.POSITIVES else everything - positives


def write(values: Tensor, columns: Tensor, exists: Tensor | None, instead: float | Tensor) -> Tensor:
    """Write a number, or one for each column, in place, to some columns of each row, where they exist.

    Examples:
        >>> import torch
        >>> write(torch.ones(2, 2), torch.tensor([[1], [1]]), torch.tensor([[True], [False]]), 0.0)
        tensor([[1., 0.],
                [1., 1.]])
    """
    # vmap cannot write columns that it maps over into values that it does not map over
    put = values.scatter if is_transformed() else values.scatter_
    if exists is None:
        return put(1, columns, instead)
    return put(1, columns, torch.where(exists, instead, values.gather(1, columns)))
