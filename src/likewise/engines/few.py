"""A batch in which every anchor has few positives, the matrix or a panel of it: they are looked at where they are.

The dense engine masks: each fold over positives reads a whole row to find three entries, and every curve is computed for
all pairs.  Sorted labels say where the three are.  What is left of a row are its negatives, all but a few.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS
from likewise.engines.places import ByPlaces, Places, of_the_rest
from likewise.engines.positives import PositiveIndex, find_positive_index
from likewise.formula import Folded, Formula, Labels, PairBatch, State

FROM = 2**18
"""Pairs from which on it is faster than masks on a CPU; below, finding places costs more than it saves."""


def slots_of(pair_batch: PairBatch) -> PositiveIndex | None:
    """The positives of each anchor, where this engine is for the pair_batch: a batch against itself on a CPU, no miner.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine
        >>> labels = torch.arange(512) // 4
        >>> slots_of(PairBatch(Labels(labels), Cosine(), anchors=torch.randn(512, 8))).index.shape
        torch.Size([512, 3])
    """
    relation, (m, n) = pair_batch.relation, pair_batch.shape
    if not isinstance(relation, Labels) or relation.reference_labels is not None or relation.valid is not None:
        return None
    alone = pair_batch.group is SINGLE_PROCESS and pair_batch.shards is SINGLE_PROCESS
    frozen = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if relation.device.type != "cpu" or m * n < FROM or not alone or frozen:
        return None
    return find_positive_index(pair_batch, "dense")


class FewPositives(ByPlaces):
    """Folds over the matrix of a batch against itself, or over some rows of it, whose positives have known places.

    Args:
        pair_batch: the batch, or some anchors against all of it.
        slots: where each anchor's positives are.
        first: which of the batch the first anchor is.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, smallest, s
        >>> S = torch.tensor([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
        >>> pair_batch = PairBatch(Labels(torch.tensor([0, 0, 1])), similarities=S)
        >>> list(
        ...     FewPositives(pair_batch, find_positive_index(pair_batch, "dense"))
        ...     .fold([[smallest(s, POSITIVES)]], {})
        ...     .values()
        ... )
        [tensor([0.9000, 0.9000,    inf])]
    """

    def __init__(self, pair_batch: PairBatch, slots: PositiveIndex, first: int = 0) -> None:
        self.similarities = pair_batch.similarities()
        itself = torch.arange(first, first + len(slots.index), device=slots.index.device)[:, None]
        # an empty slot must not name a column that another slot of its row means
        columns = torch.where(slots.exists, slots.index, itself)
        self.places = Places(columns, slots.exists, self.similarities.shape[1], itself)

    def of_others(self, terms: list[Folded], numbers: dict[Formula, Tensor]) -> tuple[dict[Folded, State], Tensor]:
        """Folds over all but positives, and the similarities of the positives, from the matrix."""
        return of_the_rest(terms, self.similarities, self.places, slice(0, self.places.width), numbers)
