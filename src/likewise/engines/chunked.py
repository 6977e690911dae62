"""The streamed engine: the dense one on panels of anchors, each made again in the backward pass.

A panel is some anchors against all references, so every fold of a row is whole in it: passes, mining and curves happen
on a matrix that fits the cache, and nothing is kept of it but one number per anchor and fold.  Memory grows with the
batch and the panel.  What a panel computes, an engine that holds the matrix computes, so the meaning cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from likewise.engines.dense import DenseEngine, dense_masks, last_uses
from likewise.engines.few import FewPositives
from likewise.engines.panels import Panels, Results
from likewise.engines.places import numbers_of
from likewise.engines.positives import PositiveIndex
from likewise.engines.schedule import Engine, compute_folds
from likewise.formula import (
    Count,
    Folded,
    Formula,
    Masks,
    Mined,
    PairBatch,
    PerReference,
    Rank,
    State,
    TermValues,
    Total,
    walk,
)

BUDGET = {"cpu": 20 * 2**20, "cuda": 2**30}
"""Bytes that a panel and what is computed from it may take, by kind of device."""

COPIES = 10
"""Matrices of a panel's size that are alive at once in a backward pass."""

LEAST_ROWS = 16
"""A thinner panel would read all references for too little work."""


class ChunkedEngine(Engine):
    """Folds over panels of the similarity matrix, which never exists as a whole.

    Args:
        pair_batch: the batch.
        slots: where each anchor's few positives are, if that is known: panels need no masks then.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels, NEGATIVES, PairBatch, largest, s
        >>> pair_batch = PairBatch(
        ...     Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.tensor([[1.0, 0.0], [0.6, 0.8]])
        ... )
        >>> list(ChunkedEngine(pair_batch).fold([[largest(s, NEGATIVES)]], {}).values())
        [tensor([0.6000, 0.6000])]
    """

    def __init__(self, pair_batch: PairBatch, slots: PositiveIndex | None = None) -> None:
        self.pair_batch, self.slots = pair_batch, slots
        self.mined = _batch_numbers(pair_batch)

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Tensor]) -> dict[Formula, Tensor]:
        """One vector per fold, panel by panel."""
        terms: list[Folded] = [term for each in passes for term in each]
        steep = _with_slopes(passes)

        def compute(engine: Engine, of_panel: dict[Formula, Tensor], back: bool) -> Results:
            folds = engine.fold(steep if back else passes, of_panel)
            return tuple(folds.get(term) for term in terms)

        return dict(zip(terms, self._in_panels(terms, known, compute), strict=True))

    def states(self, terms: list[Folded], known: dict[Formula, Tensor]) -> list[State]:
        """The folds of one pass, not finished, panel by panel."""
        sizes: list[int] = []

        def compute(engine: Engine, of_panel: dict[Formula, Tensor], back: bool) -> Results:
            states = engine.states(terms, of_panel)
            sizes[:] = map(len, states)
            return tuple(vector for state in states for vector in state)

        vectors = iter(self._in_panels(terms, known, compute))
        return [tuple(next(vectors) for _ in range(size)) for size in sizes]

    def _in_panels(
        self,
        terms: list[Folded],
        known: dict[Formula, Tensor],
        compute: Callable[[Engine, dict[Formula, Tensor], bool], Results],
    ) -> list[Tensor]:
        numbers, ends = numbers_of(terms, known), last_uses(terms)

        def of_panel(panel: PairBatch, rows: slice, values: Sequence[Tensor], back: bool) -> Results:
            parts = {
                node: value[rows] if _per_anchor(node) else value for node, value in zip(numbers, values, strict=True)
            }
            return compute(self._engine(panel, rows, ends), parts, back)

        return Panels(self.pair_batch, list(panels(self.pair_batch)), of_panel, list(numbers.values())).run()

    def _engine(self, panel: PairBatch, rows: slice, ends: dict[Formula, list[Formula]]) -> Engine:
        """Who computes a panel."""
        if self.slots is None:
            return DenseEngine(panel, self.mined, ends)
        return FewPositives(panel, PositiveIndex(self.slots.index[rows], self.slots.exists[rows]), rows.start)


def _with_slopes(passes: list[list[Folded]]) -> list[list[Folded]]:
    """Without counts, which have no slope, but for those that a curve refers to."""
    used = {node for terms in passes for term in terms for node in walk(term.curve)}
    kept = [[term for term in terms if term in used or not isinstance(term.fold, Count)] for terms in passes]
    return [terms for terms in kept if terms]


def _per_anchor(node: Formula) -> bool:
    return node.rank == Rank.ANCHOR and not isinstance(node, PerReference)


def _batch_numbers(pair_batch: PairBatch) -> dict[Formula, Tensor]:
    """What a miner's conditions need to know of the whole batch, which no panel can say."""
    relation = pair_batch.relation
    if not isinstance(relation, Mined):
        return {}
    with torch.no_grad():
        base = pair_batch.under(relation.base)
        conditions = [relation.keep_positive, relation.keep_negative]
        known = compute_folds(conditions, ChunkedEngine(base), base, only_totals=True)
    return {node: value for node, value in known.items() if isinstance(node, Total)}


def in_panels(pair_batch: PairBatch, compute: Callable[[PairBatch, slice], tuple[Tensor, ...]]) -> list[Tensor]:
    """Vectors with one entry per anchor, computed on panels; nothing of a panel is kept for the backward pass.

    Args:
        pair_batch: the whole.
        compute: maps a panel, and the rows that it is, to vectors with one entry for each of its anchors.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels, PairBatch
        >>> pair_batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
        >>> in_panels(pair_batch, lambda panel, rows: (panel.similarities().sum(dim=1),))
        [tensor([1., 1.])]
    """
    return Panels(pair_batch, list(panels(pair_batch)), lambda panel, rows, _numbers, _back: compute(panel, rows)).run()


def panels(pair_batch: PairBatch) -> Iterator[slice]:
    """Rows of a pair_batch, as many at a time as the budget for its device allows.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, PairBatch
        >>> list(panels(PairBatch(Labels(torch.tensor([0, 1])), similarities=torch.eye(2))))
        [slice(0, 2, None)]
    """
    m, n = pair_batch.shape
    budget = BUDGET.get(pair_batch.relation.device.type, BUDGET["cuda"])
    height = max(LEAST_ROWS, budget // (COPIES * n * pair_batch.dtype.itemsize))
    count = max(1, -(-m // height))
    height = max(1, -(-m // count))  # all alike
    # a share may be empty, and is one panel then
    return (slice(first, min(first + height, m)) for first in range(0, max(m, 1), height))


def in_rows(
    pair_batch: PairBatch, compute: Callable[[PairBatch], tuple[Tensor, ...]], backend: str = "chunked"
) -> list[Tensor]:
    """Tensors with one row per anchor that depend on that anchor's row of similarities alone.

    Args:
        pair_batch: the whole.
        compute: maps a pair_batch to the tensors; it is called on panels, or on the whole.
        backend: ``"dense"``: on the whole, with its graph.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, PairBatch
        >>> pair_batch = PairBatch(Labels(torch.tensor([0, 1])), similarities=torch.eye(2))
        >>> in_rows(pair_batch, lambda panel: (panel.similarities().sum(dim=1),))
        [tensor([1., 1.])]
    """
    if backend == "dense":
        return list(compute(pair_batch))
    mined = _batch_numbers(pair_batch)

    def of_panel(panel: PairBatch, _rows: slice) -> tuple[Tensor, ...]:
        if mined:  # conditions that refer to the whole batch cannot be read off a panel
            panel = panel.under(Masks(*dense_masks(panel, mined)))
        return compute(panel)

    return in_panels(pair_batch, of_panel)


def by_rows(
    pair_batch: PairBatch, compute: Callable[[PairBatch], list[TermValues]], backend: str = "chunked"
) -> list[TermValues]:
    """The values of a loss that is no formula, but whose value for an anchor depends on that anchor's row alone.

    Args:
        pair_batch: the whole.
        compute: maps a pair_batch to the values of the loss's parts; it is called on panels, or on the whole.
        backend: ``"dense"``: on the whole, with its graph.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, TermValues, PairBatch
        >>> pair_batch = PairBatch(Labels(torch.tensor([0, 1])), similarities=torch.eye(2))
        >>> by_rows(pair_batch, lambda panel: [TermValues(panel.similarities().sum(dim=1), None, None)])
        [TermValues(total=tensor([1., 1.]), units=None, nonzero=None)]
    """
    if backend == "dense":
        return compute(pair_batch)
    shapes: list[list[bool]] = []

    def flat(panel: PairBatch) -> tuple[Tensor, ...]:
        values = compute(panel)
        shapes[:] = [[field is not None for field in value] for value in values]
        return tuple(field for value in values for field in value if field is not None)

    vectors = iter(in_rows(pair_batch, flat))
    return [TermValues(*(next(vectors) if there else None for there in shape)) for shape in shapes]  # type: ignore[arg-type]
