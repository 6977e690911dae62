"""Losses that are functions of the matrix and not formulas, and the interface through which they read the matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import pad

from likewise.formula.batch import PairBatch
from likewise.formula.expressions import Formula
from likewise.formula.labels import PositiveIndex
from likewise.formula.reductions import TermValues
from likewise.formula.terms import Term

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, eq=False)
class RowChunk:
    """Some anchors against all references: the input of a function of matrix rows.

    Args:
        batch: these anchors as a batch, with their rows of the matrix.
        rows: which anchors of the whole batch they are.
        masks: computes the positive and the negative pairs, ``(rows, n)`` booleans, after mining.
        candidates: computes the columns that may be true in each row of a mask of positives, and which of them are,
            ``(rows, k)``; all columns if the engine may not read their number from the device.

    Examples:
        >>> import torch
        >>> from likewise.engines import map_rows
        >>> from likewise.formula import Labels, PairBatch
        >>> rows = map_rows(PairBatch(Labels(torch.tensor([0, 0, 1])), matrix=torch.eye(3)))
        >>> rows.map(lambda chunk: (chunk.candidates(chunk.masks()[0]).index,))
        [tensor([[1],
                [0],
                [0]])]
    """

    batch: PairBatch
    rows: slice
    masks: Callable[[], tuple[Tensor, Tensor]]
    candidates: Callable[[Tensor], PositiveIndex]

    @property
    def similarities(self) -> Tensor:
        """The rows of the matrix, ``(rows, n)``."""
        return self.batch.similarities()


class RowHistograms(NamedTuple):
    """Soft histograms of each anchor's pairs, and the number of pairs in them.

    Args:
        positives: the weights of the positives at each node, ``(m, bins + 1)``.
        negatives: the same for the negatives.
        positive_counts: the number of positives, ``(m,)``.
        negative_counts: the same for the negatives.
    """

    positives: Tensor
    negatives: Tensor
    positive_counts: Tensor
    negative_counts: Tensor


class ClassProducts(NamedTuple):
    """Pairs of one class, each once, and their sums over negatives; rows are sorted by label.

    Args:
        order: the anchor of each row, ``(m,)``.
        exists: whether a row and the one that comes ``k + 1`` rows later are of one class, ``(m, K)``.
        similarities: of these pairs, ``(m, K)``.
        sums: ``Σ_n e^(rate · (s_an + s_pn))`` over the negatives n of these pairs, ``(m, K)``.
    """

    order: Tensor
    exists: Tensor
    similarities: Tensor
    sums: Tensor

    def add_both(self, values: Tensor) -> Tensor:
        """Add values of pairs, ``(…, m, K)``, zero where there is none, to both members: ``(…, m)``, in the order of anchors."""
        *shape, m, most = values.shape
        # rows that are one entry longer than those of the result: each is one place farther to the right
        skewed = pad(values.transpose(-1, -2), (1, most)).flatten(-2)[..., : most * (m + most)]
        total = values.sum(dim=-1) + skewed.reshape(*shape, most, m + most)[..., :m].sum(dim=-2)
        return torch.zeros_like(total).index_copy(-1, self.order, total)


RowStatistics: TypeAlias = Callable[[RowChunk, Tensor, Tensor], list[Tensor]]
"""From a chunk and its positive and negative pairs to one number per row, ``(rows,)``, for each of several formulas."""


class RowMapper(Protocol):
    """Runs functions of matrix rows: on the whole matrix, or on chunks that are recomputed in the backward pass."""

    def map(self, function: Callable[[RowChunk], tuple[Tensor, ...]]) -> list[Tensor]:
        """Concatenate a function's tensors, which have one row per anchor, over chunks of anchors."""

    def sum(self, function: Callable[[RowChunk], tuple[Tensor, ...]]) -> list[Tensor]:
        """Sum a function's tensors, which have fixed shapes, over chunks of anchors."""

    def evaluate(self, term: Term, batch: PairBatch) -> TermValues:
        """The values and units of a term on another batch, computed by the engine that the dispatcher chooses."""

    def histograms(self, position: Formula, bins: int) -> RowHistograms:
        """Histograms of each anchor's positives and negatives over ``bins + 1`` nodes, with linear interpolation.

        ``position`` is a formula of `likewise.formula.s`, in units of bins, from 0 to ``bins``; values outside are clamped.
        """

    def excess(self, limits: Tensor, classes: Tensor, *, apart: bool) -> tuple[Tensor, Tensor] | None:
        """The sum of ``[s − limit]₊`` over the batch's negative pairs, and the number of pairs above each limit, ``(m, k)``.

        ``None`` if no kernel computes it.  ``limits`` are infinite where there is none; ``classes`` are numbers below m.
        ``apart`` excludes the pairs that contain the class of the limit's anchor.
        """

    def multiply_classes(self, rate: float, positives: PositiveIndex) -> ClassProducts | None:
        """Sums over the negatives of both members of each pair of one class; ``None`` where pairs are computed one by one.

        Args:
            rate: the rate of the exponentials that are multiplied and summed.
            positives: from `positive_index`.
        """

    def statistics(self, formulas: Sequence[Formula]) -> RowStatistics:
        """A function that computes formulas with one number per anchor, without gradient, for the rows of a chunk.

        Statistics of the whole batch that the formulas need are computed when this method is called.
        """

    def positive_index(self, most: int | None = None, *, small: bool = True) -> PositiveIndex | None:
        """The positions of each anchor's positives; ``None`` if labels do not determine them or they exceed ``most``.

        With ``small=False`` also for a small matrix, on which masks are faster.
        """


@dataclass(frozen=True, eq=False)
class MatrixLoss:
    """The declaration of a loss that is a function of the matrix and not a formula.

    Args:
        compute: maps the batch and a `RowMapper` to the values of the loss's terms.  It reads the matrix through the
            mapper, in one phase or several, so that it also runs on chunks.
        evaluates_formulas: whether it delegates to formulas or to functions (`RowMapper.evaluate`, `RowMapper.histograms`,
            `RowMapper.excess`) that kernels can execute.
        needs_positives: whether it calls `RowMapper.positive_index`.
        has_fixed_shapes: whether the shapes of its tensors depend only on the numbers of samples, dimensions and positives,
            so that a CUDA graph can run its kernels.
        sums_in_classes: whether it calls `RowMapper.multiply_classes`, and then has fixed shapes also without kernels.

    Examples:
        >>> import torch
        >>> from likewise.losses import PairLoss
        >>> class MeanSimilarity(PairLoss):
        ...     def declare(self):
        ...         def mean_of_rows(S, positive, negative):
        ...             value = S.mean(dim=1)
        ...             return [TermValues(value, torch.ones_like(value), value != 0)]
        ...
        ...         return MatrixLoss.by_rows(mean_of_rows)
        >>> MeanSimilarity()(torch.eye(2), torch.tensor([0, 1]))
        tensor(0.5000)
    """

    compute: Callable[[PairBatch, RowMapper], list[TermValues]]
    evaluates_formulas: bool = False
    needs_positives: bool = False
    has_fixed_shapes: bool = True
    sums_in_classes: bool = False

    @classmethod
    def by_rows(cls, function: Callable[[Tensor, Tensor, Tensor], list[TermValues]]) -> Self:
        """A loss whose value for an anchor depends on that anchor's row: a function of S and the two masks."""
        return cls(lambda _batch, rows: map_values(rows, lambda chunk: function(chunk.similarities, *chunk.masks())))


def map_values(rows: RowMapper, function: Callable[[RowChunk], list[TermValues]]) -> list[TermValues]:
    """Term values from a function of rows; see `RowMapper.map`."""
    present: list[list[bool]] = []

    def flat(chunk: RowChunk) -> tuple[Tensor, ...]:
        values = function(chunk)
        present[:] = [[field is not None for field in value] for value in values]
        return tuple(field for value in values for field in value if field is not None)

    vectors = iter(rows.map(flat))
    return [TermValues(*(next(vectors) if there else None for there in each)) for each in present]  # type: ignore[arg-type]
