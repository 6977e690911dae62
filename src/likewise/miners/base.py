"""What miners have in common: they refine who is positive and negative to whom, by looking at similarities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.engines import can_synchronize, dense_masks, panels
from likewise.formula import (
    Cosine,
    Formula,
    Masks,
    Mined,
    PairBatch,
    Relation,
    SimilarityLike,
    Triplets,
    as_similarity,
    batch_from_embeddings,
    batch_from_similarities,
    can_read_values,
    check_hyperparameters,
    check_values,
    full_precision,
)


class Miner(ABC):
    """Chooses pairs or triplets; give one to a loss as ``miner=``."""

    def __post_init__(self) -> None:
        check_hyperparameters(self)

    @abstractmethod
    def refine(self, batch: PairBatch, engine: str = "dense") -> Relation:
        """The relation that is left of a batch's; with any engine but the dense one, without making the matrix."""


class PairMiner(Miner):
    """A miner that keeps pairs, by a condition on each pair's similarity and on folds over its anchor's pairs.

    The conditions are formulas, so that every engine can apply them tile by tile.

    Examples:
        >>> from dataclasses import dataclass
        >>> from likewise.formula import NEGATIVES, hyper, largest, s
        >>> @dataclass(frozen=True)
        ... class HardPositives(PairMiner):
        ...     slack: float = hyper(default=0.0, help="added to the hardest negative")
        ...
        ...     def keep(self):
        ...         return s < largest(s, NEGATIVES) + self.slack, 2.0 < s
    """

    @abstractmethod
    def keep(self) -> tuple[Formula, Formula]:
        """The conditions under which a positive and a negative pair are kept."""

    def refine(self, batch: PairBatch, engine: str = "dense") -> Mined:
        """Write the conditions beside the relation; nothing is computed yet."""
        return Mined(batch.relation, *self.keep())

    def __call__(self, similarities: Tensor, relation: Relation | Tensor) -> Masks:
        """Mine a similarity matrix: the pairs that are kept, as masks."""
        with torch.no_grad():
            batch = batch_from_similarities(similarities, relation, Cosine())
            return Masks(*dense_masks(batch.under(self.refine(batch))))

    def pairs(
        self,
        embeddings: Tensor,
        labels: Tensor,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        similarity: SimilarityLike = "cosine",
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The pairs that are kept, as indices: anchors, positives, anchors, negatives."""
        with torch.no_grad(), full_precision(embeddings):
            batch = batch_from_embeddings(
                embeddings, labels, references, reference_labels, None, as_similarity(similarity)
            )
            positive, negative = dense_masks(batch.under(self.refine(batch)))
            anchors, positives = positive.nonzero(as_tuple=True)
            negative_anchors, negatives = negative.nonzero(as_tuple=True)
            return anchors, positives, negative_anchors, negatives


@dataclass(frozen=True, eq=False)
class Choice:
    """Triplets with one positive for each anchor, as formulas: none of them is written down.

    Args:
        positive: the positive's similarity, one per anchor.
        negative: the negative's similarity, one per anchor; or `likewise.formula.s`: every negative pair.
        keep: which of these triplets are chosen; ``None``: all.

    Examples:
        >>> from likewise.formula import NEGATIVES, POSITIVES, largest, s, smallest
        >>> Choice(smallest(s, POSITIVES), largest(s, NEGATIVES)).negative
        max[negatives](s)
    """

    positive: Formula
    negative: Formula
    keep: Formula | None = None


NO_POSITIVE = 1e38
"""A similarity above this stands for a positive that does not exist."""


class TripletMiner(Miner):
    """A miner that chooses triplets.

    Triplet losses take the triplets; every other loss takes the pairs that they touch.
    """

    @property
    def band(self) -> float | None:
        """The λ of a miner that chooses every triplet with ``s_ap − λ < s_an < s_ap``; ``None`` for any other."""
        return None

    @abstractmethod
    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, batch: PairBatch) -> Triplets:
        """Triplets from similarities ``(m, n)`` and the masks of what may be chosen; gaps are marked as not valid.

        On a large batch it is called on panels, some anchors against all references.
        """

    def choices(self, positives: Callable[[], list[Formula] | None]) -> list[Choice] | None:
        """What the miner chooses, as formulas; ``None`` where it cannot be said so.

        Args:
            positives: gives the similarities of each anchor's first, second, … positive as formulas, above
                `NO_POSITIVE` where there is none; ``None`` where there are many.
        """
        return None

    def refine(self, batch: PairBatch, engine: str = "dense") -> Triplets:
        """Choose triplets by the current similarities, without gradient."""
        if engine == "dense":
            S = batch.similarities().detach()
            with torch.no_grad():
                positive, negative = dense_masks(batch)
                return self.mine(S, positive, negative, batch).sized(*S.shape).compact()
        ask = can_synchronize(prepared(batch), engine)
        found, gaps = _Columns(batch), False
        with torch.no_grad():
            for rows in panels(batch):
                panel = batch.rows(rows)
                S, (positive, negative) = panel.similarities(), dense_masks(panel)
                with check_values() if ask else nullcontext():
                    chosen = self.mine(S, positive, negative, panel)
                chosen = chosen.sized(*S.shape).compact(wait=ask)
                gaps = gaps or chosen.valid is not None
                valid = torch.ones_like(chosen.anchors) if chosen.valid is None else chosen.valid
                found.add(rows, chosen.anchors + rows.start, chosen.positives, chosen.negatives, valid)
            anchors, positives, negatives, valid = found.all()
        return Triplets(anchors, positives, negatives, valid.bool() if gaps else None, batch.shape)

    def touched(self, batch: PairBatch, engine: str = "dense") -> Relation:
        """The pairs that the chosen triplets touch."""
        return self.refine(batch, engine)

    def __call__(self, similarities: Tensor, relation: Relation | Tensor) -> Triplets:
        """Mine a matrix of cosine similarities."""
        return self.refine(batch_from_similarities(similarities, relation, Cosine()))

    def triplets(
        self,
        embeddings: Tensor,
        labels: Tensor,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        similarity: SimilarityLike = "cosine",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The triplets as indices: anchors, positives, negatives."""
        with full_precision(embeddings):
            batch = batch_from_embeddings(
                embeddings, labels, references, reference_labels, None, as_similarity(similarity)
            )
            chosen = self.refine(batch).compact(wait=True)
        return chosen.anchors, chosen.positives, chosen.negatives


class _Columns:
    """Indices that panel after panel finds, in memory that is there before the panels'.

    What each panel leaves would lie between its matrices and those of the next: see `likewise.engines.panels`.
    """

    def __init__(self, batch: PairBatch) -> None:
        self.anchors, self.filled = batch.shape[0], 0
        self.room = torch.empty(4, self.anchors, dtype=torch.int64, device=batch.relation.device)

    def add(self, rows: slice, *columns: Tensor) -> None:
        """What was found in some rows."""
        end = self.filled + len(columns[0])
        if end > self.room.shape[1]:  # for all rows, if they find as many as those so far; but those may be the richest
            larger = self.room.new_empty(4, max(end, min(end * self.anchors // max(rows.stop, 1), 2 * end)))
            larger[:, : self.filled] = self.room[:, : self.filled]
            self.room = larger
        for place, column in zip(self.room, columns, strict=True):
            place[self.filled : end] = column
        self.filled = end

    def all(self) -> tuple[Tensor, ...]:
        """Everything that was found."""
        return self.room[:, : self.filled].unbind()


def prepared(batch: PairBatch) -> Tensor:
    """What similarities are made of, made with its graph before the graph is switched off: the loss will need it."""
    return batch.similarities() if batch.anchors is None else batch.factors()[0]


def candidates(positive: Tensor) -> tuple[Tensor, Tensor]:
    """The positives of each row as indices, and which of them exist, ``(m, k)`` both.

    Where values may be looked at ``k`` is the largest number of positives; elsewhere every column is a candidate, because
    a smaller number would have to be asked of the device.
    """
    m, n = positive.shape
    if not can_read_values(positive):
        return torch.arange(n, device=positive.device)[None, :].expand(m, n), positive
    most = max(int(positive.sum(dim=1).max()), 1) if m else 1
    index = positive.to(torch.uint8).topk(most, dim=1).indices.sort(dim=1).values
    return index, positive.gather(1, index)


def one_negative_each(positives: Tensor, negatives: Tensor, valid: Tensor) -> Triplets:
    """Triplets from matrices ``(m, k)`` that name k positives of each anchor, and a negative for each of them."""
    anchors = torch.arange(len(positives), device=positives.device)[:, None].expand_as(positives)
    return Triplets(anchors.reshape(-1), positives.reshape(-1), negatives.reshape(-1), valid.reshape(-1))
