"""Numbers per pair on a batch: computed for the pairs that an engine requests, and never stored as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from likewise.formula import PairBatch, PerPair, PerTriplet, broadcast_shape


class PairNumbers(NamedTuple):
    """A number per pair, or per triplet, on a batch.

    Args:
        leaf: the node of the formula.
        source: the argument of its ``compute``: the batch, or the result of ``prepare``.
        dtype: the dtype of the batch.
        device: the device of the batch.
        first: the index of the anchor in row 0.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> gap = PerPair("gap", lambda batch, rows, columns: rows - columns)
        >>> batch = PairBatch(Labels(torch.tensor([0, 0, 1])), matrix=torch.eye(3))
        >>> PairNumbers.of(gap, batch).rows(slice(2, 3)).chunk(1, slice(0, 2))
        tensor([[2., 1.]])
    """

    leaf: PerPair | PerTriplet
    source: Any
    dtype: torch.dtype
    device: torch.device
    first: int = 0

    @classmethod
    def of(cls, leaf: PerPair | PerTriplet, batch: PairBatch) -> PairNumbers:
        """Return the numbers of a batch; work shared by chunks is done here."""
        source = batch if leaf.prepare is None else leaf.prepare(batch)
        return cls(leaf, source, batch.dtype, batch.relation.device)

    def rows(self, rows: slice) -> PairNumbers:
        """The numbers of a chunk of rows."""
        return self._replace(first=self.first + rows.start)

    def chunk(self, rows: int, columns: slice) -> Tensor:
        """The numbers of the first rows against some columns, ``(rows, columns)``."""
        return self.at(self._range(0, rows)[:, None], self._range(columns.start, columns.stop)[None, :])

    def at_columns(self, columns: Tensor) -> Tensor:
        """The numbers of the first rows against chosen columns of each, ``(m, k)``."""
        return self.at(self._range(0, len(columns))[:, None], columns)

    def at_positives(self, positives: Tensor, columns: int) -> Tensor:
        """The numbers per triplet of the first rows with chosen positives ``(m, k)`` and all columns, ``(m, k, columns)``."""
        rows = self._range(0, len(positives))[:, None, None]
        return self.at(rows, positives[:, :, None], self._range(0, columns)[None, None, :])

    def at(self, rows: Tensor, *others: Tensor) -> Tensor:
        """The numbers of chosen pairs, or of chosen triplets; the indices broadcast."""
        values = self.leaf.compute(self.source, rows + self.first if self.first else rows, *others)
        shape = broadcast_shape(rows, *others)
        if not isinstance(values, Tensor) or not _expands(values.shape, shape):
            what = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else f"a {type(values).__name__}"
            raise ValueError(
                f"compute of {self.leaf!r} must return one number for each pair, a tensor of shape {tuple(shape)}, "
                f"but it returned {what}"
            )
        return values.to(self.dtype).expand(shape)

    def _range(self, first: int, end: int) -> Tensor:
        return torch.arange(first, end, device=self.device)


def _expands(shape: torch.Size, to: torch.Size) -> bool:
    """Whether a tensor of one shape expands to another."""
    missing = len(to) - len(shape)
    return missing >= 0 and all(size in (1, wide) for size, wide in zip(shape, to[missing:], strict=True))


Node = TypeVar("Node")


def cut_rows(numbers: Mapping[Node, Any], rows: slice) -> dict[Node, Any]:
    """Return numbers for a chunk of rows: those per pair are replaced by the chunk's, the others are unchanged.

    Examples:
        >>> cut_rows({"margin": 0.5}, slice(2, 4))
        {'margin': 0.5}
    """
    return {node: value.rows(rows) if isinstance(value, PairNumbers) else value for node, value in numbers.items()}
