"""A batch in which every anchor has few positives, the matrix or a panel of it: they are looked at where they are.

The dense engine masks: each fold over positives reads a whole row to find three entries, and every curve is computed for
all pairs.  Sorted labels say where the three are.  What is left of a row are its negatives, all but a few.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.backends.places import ByPlaces, Places, of_the_rest
from likewise.core.folds import State
from likewise.core.formula import Folded, Formula
from likewise.core.problem import Problem
from likewise.core.relation import Labels
from likewise.core.slots import Slots, few_positives
from likewise.core.spread import ALONE

FROM = 2**18
"""Pairs from which on it is faster than masks on a CPU; below, finding places costs more than it saves."""


def slots_of(problem: Problem) -> Slots | None:
    """The positives of each anchor, where this engine is for the problem: a batch against itself on a CPU, no miner.

    Examples:
        >>> import torch
        >>> from likewise.core import Cosine
        >>> labels = torch.arange(512) // 4
        >>> slots_of(Problem(Labels(labels), Cosine(), anchors=torch.randn(512, 8))).index.shape
        torch.Size([512, 3])
    """
    relation, (m, n) = problem.relation, problem.shape
    if not isinstance(relation, Labels) or relation.reference_labels is not None or relation.valid is not None:
        return None
    alone = problem.spread is ALONE and problem.shards is ALONE
    frozen = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if relation.device.type != "cpu" or m * n < FROM or not alone or frozen:
        return None
    return few_positives(problem, "dense")


class FewPositives(ByPlaces):
    """Folds over the matrix of a batch against itself, or over some rows of it, whose positives have known places.

    Args:
        problem: the batch, or some anchors against all of it.
        slots: where each anchor's positives are.
        first: which of the batch the first anchor is.

    Examples:
        >>> import torch
        >>> from likewise.core import POSITIVES, smallest, s
        >>> S = torch.tensor([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
        >>> problem = Problem(Labels(torch.tensor([0, 0, 1])), similarities=S)
        >>> list(FewPositives(problem, few_positives(problem, "dense")).fold([[smallest(s, POSITIVES)]], {}).values())
        [tensor([0.9000, 0.9000,    inf])]
    """

    def __init__(self, problem: Problem, slots: Slots, first: int = 0) -> None:
        self.similarities = problem.similarities()
        itself = torch.arange(first, first + len(slots.index), device=slots.index.device)[:, None]
        # an empty slot must not name a column that another slot of its row means
        columns = torch.where(slots.exists, slots.index, itself)
        self.places = Places(columns, slots.exists, self.similarities.shape[1], itself)

    def of_others(self, terms: list[Folded], numbers: dict[Formula, Tensor]) -> tuple[dict[Folded, State], Tensor]:
        """Folds over all but positives, and the similarities of the positives, from the matrix."""
        return of_the_rest(terms, self.similarities, self.places, slice(0, self.places.width), numbers)
