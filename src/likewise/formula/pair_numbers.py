"""Numbers per pair and per triplet: leaves of formulas whose values are matrices that engines compute in chunks.

`PerPair` is, for example, a soft target, a relevance, or the similarity of a pair according to another model.
`PerTriplet` also depends on the positive that a fold over each positive binds.  Gradients flow to everything that they
are computed from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from likewise.formula.batch import PairBatch
from likewise.formula.expressions import Formula, Rank


@dataclass(frozen=True, eq=False, repr=False)
class PerPair(Formula):
    """One number per pair, computed from the batch: a relevance, a soft target, the similarity of another model.

    Engines compute it for some pairs at a time, so that they do not need the whole matrix; only the Triton engine
    stores it.

    Args:
        name: as formulas are printed.
        compute: maps the batch and the indices of anchors and references to numbers; differentiable.  The indices
            broadcast: ``(r, 1)`` and ``(1, c)`` for a chunk of the matrix, equal shapes for chosen pairs.  The result has
            the broadcast shape, or one that expands to it.  It is called as often as an engine needs, so it must not
            draw random numbers or call collectives.
        prepare: computes, once per batch, a value that is passed to ``compute`` in place of the batch: work shared by
            all chunks.

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, add_up, pair_entries, s
        >>> targets = torch.tensor([[1.0, 0.2], [0.2, 1.0]])
        >>> target = PerPair("target", lambda batch, rows, columns: pair_entries(targets, rows, columns))
        >>> add_up(square := (s - target) * (s - target), NEGATIVES), square.rank.name
        (sum[negatives]((s - target) * (s - target)), 'PAIR')
    """

    name: str
    compute: Callable[[Any, Tensor, Tensor], Tensor]
    prepare: Callable[[PairBatch], Any] | None = None
    rank = Rank.PAIR
    _at_positive: ClassVar[AtPositive | None] = None  # not a field: torch.compile hashes fields, and they are a cycle

    @property
    def at_positive(self) -> AtPositive:
        """The number of the anchor and the positive that a fold over each positive binds, as `s_p` is for `s`."""
        at_positive = self._at_positive
        if at_positive is None:  # made on demand, because the two refer to each other
            at_positive = AtPositive(self)
            object.__setattr__(self, "_at_positive", at_positive)
        return at_positive

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class AtPositive(Formula):
    """A number per pair at the pair of the anchor and one of its positives; `PerPair.at_positive` makes it.

    Examples:
        >>> from likewise.formula import EACH_POSITIVE, mean, s_p
        >>> relevance = PerPair("relevance", lambda batch, rows, columns: (rows == columns).double())
        >>> mean(relevance.at_positive * s_p, EACH_POSITIVE)
        mean[each positive](relevance_p * s_p)
    """

    pair: PerPair
    rank = Rank.POSITIVE
    of_positive: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The number per pair."""
        return (self.pair,)

    def __repr__(self) -> str:
        return f"{self.pair.name}_p"


@dataclass(frozen=True, eq=False, repr=False)
class PerTriplet(Formula):
    """One number per anchor, positive and reference, such as the angle at the anchor between positive and negative.

    Args:
        name: as formulas are printed.
        compute: maps the batch and the indices of anchors, positives and references to numbers; differentiable.  The
            three indices broadcast, as those of `PerPair` do.
        prepare: computes, once per batch, a value that is passed to ``compute`` in place of the batch.

    Examples:
        >>> from likewise.formula import per_triplet, relu, s, s_p
        >>> gap = PerTriplet("gap", lambda batch, rows, positives, columns: (positives - columns).abs())
        >>> per_triplet(relu(s - s_p + 0.1 * gap)).total
        sum[each positive](sum[negatives](relu((s - s_p) + (0.1 * gap))))
    """

    name: str
    compute: Callable[[Any, Tensor, Tensor, Tensor], Tensor]
    prepare: Callable[[PairBatch], Any] | None = None
    rank = Rank.PAIR
    of_positive: ClassVar[bool] = True

    def __repr__(self) -> str:
        return self.name


def _relevance(batch: PairBatch, rows: Tensor, columns: Tensor) -> Tensor:
    return batch.relation.relevance(rows, columns, batch.dtype)


relevance = PerPair("relevance", _relevance)
"""The relevance of each pair, in [0, 1], that the relation gives (`likewise.formula.Relation.relevance`)."""
