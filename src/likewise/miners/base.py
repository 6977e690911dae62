"""The base classes of miners, which select positive and negative pairs by their similarities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext

import torch
from torch import Tensor

from likewise.engines import WholeRows, can_synchronize, dense_masks, map_rows
from likewise.formula import (
    Choice,
    Cosine,
    Formula,
    Masks,
    Mined,
    PairBatch,
    Relation,
    Similarity,
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
    """Chooses pairs or triplets; the option ``miner=`` of a loss."""

    def __post_init__(self) -> None:
        check_hyperparameters(self)

    @abstractmethod
    def refine(self, rows: WholeRows) -> Relation:
        """The pairs that the miner keeps, or those that its triplets contain."""


class PairMiner(Miner):
    """A miner that keeps pairs, by a condition on each pair's similarity and on folds over its anchor's pairs.

    The conditions are formulas, so that every engine can apply them chunk by chunk.

    Examples:
        >>> from dataclasses import dataclass
        >>> from likewise.formula import NEGATIVES, hyper, largest, s
        >>> @dataclass(frozen=True)
        ... class HardPositives(PairMiner):
        ...     slack: float = hyper(default=0.0, help="added to the hardest negative")
        ...
        ...     def keep(self, similarity):
        ...         return s < largest(s, NEGATIVES) + self.slack, 2.0 < s
    """

    @abstractmethod
    def keep(self, similarity: Similarity) -> tuple[Formula, Formula]:
        """The conditions under which a positive and a negative pair are kept.

        Args:
            similarity: how embeddings are compared; `Similarity.threshold` turns a user's number into a value of ``s``.
        """

    def refine(self, rows: WholeRows) -> Mined:
        """The relation with the miner's conditions; an engine applies them."""
        assert rows.batch.similarity is not None
        return Mined(rows.batch.relation, *self.keep(rows.batch.similarity))

    def __call__(self, similarities: Tensor, relation: Relation | Tensor) -> Masks:
        """Mine a similarity matrix: the pairs that are kept, as masks."""
        with torch.no_grad():
            return Masks(*self._masks(batch_from_similarities(similarities, relation, Cosine())))

    def _masks(self, batch: PairBatch) -> tuple[Tensor, Tensor]:
        return dense_masks(batch.under(self.refine(WholeRows(batch))))

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
            positive, negative = self._masks(batch)
            anchors, positives = positive.nonzero(as_tuple=True)
            negative_anchors, negatives = negative.nonzero(as_tuple=True)
            return anchors, positives, negative_anchors, negatives


class TripletMiner(Miner):
    """A miner that chooses triplets.

    A loss over triplets uses the triplets; every other loss uses the pairs that they contain.
    """

    @abstractmethod
    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, batch: PairBatch) -> Triplets:
        """Triplets from similarities ``(m, n)`` and the masks of the candidates; gaps are marked as not valid.

        On a large batch it is called for each chunk, some anchors against all references.
        """

    def choice(self) -> Choice | None:
        """The choice as formulas of `likewise.formula.s_p` and `likewise.formula.s`; ``None`` if the miner draws.

        Pairs that tie at the chosen similarity share the gradient.
        """
        return None

    def choose(self, rows: WholeRows) -> Triplets:
        """Choose triplets by the current similarities, without gradient."""
        batch = rows.batch
        synchronize = can_synchronize(_any_tensor(batch), large=rows.large)
        found, gaps = _Columns(batch), False
        with torch.no_grad():
            for chunk in rows.chunks():
                S, (positive, negative) = chunk.similarities.detach(), chunk.masks()
                with check_values() if synchronize and rows.large else nullcontext():
                    chosen = self.mine(S, positive, negative, chunk.batch)
                chosen = chosen.with_shape(*S.shape).compact(synchronize=synchronize and rows.large)
                if not rows.large:
                    return chosen
                gaps = gaps or chosen.valid is not None
                valid = torch.ones_like(chosen.anchors) if chosen.valid is None else chosen.valid
                found.add(chunk.rows, chosen.anchors + chunk.rows.start, chosen.positives, chosen.negatives, valid)
            anchors, positives, negatives, valid = found.all()
        return Triplets(anchors, positives, negatives, valid.bool() if gaps else None, batch.shape)

    def refine(self, rows: WholeRows) -> Relation:
        """The pairs that the chosen triplets contain."""
        return self.choose(rows)

    def __call__(self, similarities: Tensor, relation: Relation | Tensor) -> Triplets:
        """Mine a matrix of cosine similarities."""
        return self.choose(map_rows(batch_from_similarities(similarities, relation, Cosine())))

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
            chosen = self.choose(WholeRows(batch)).compact(synchronize=True)
        return chosen.anchors, chosen.positives, chosen.negatives


def _any_tensor(batch: PairBatch) -> Tensor:
    found = batch.matrix if batch.anchors is None else batch.anchors
    assert found is not None
    return found


class _Columns:
    """Indices from several chunks, in memory that is allocated before that of the chunks.

    Otherwise results would be allocated between the matrices of consecutive chunks; see `likewise.engines.recompute`.
    """

    def __init__(self, batch: PairBatch) -> None:
        self.anchors, self.filled = batch.shape[0], 0
        self.room = torch.empty(4, self.anchors, dtype=torch.int64, device=batch.relation.device)

    def add(self, rows: slice, *columns: Tensor) -> None:
        """Add the indices of some rows."""
        end = self.filled + len(columns[0])
        if end > self.room.shape[1]:  # enough for all rows if each has as many as those so far, which may have the most
            larger = self.room.new_empty(4, max(end, min(end * self.anchors // max(rows.stop, 1), 2 * end)))
            larger[:, : self.filled] = self.room[:, : self.filled]
            self.room = larger
        for place, column in zip(self.room, columns, strict=True):
            place[self.filled : end] = column
        self.filled = end

    def all(self) -> tuple[Tensor, ...]:
        """All indices."""
        return self.room[:, : self.filled].unbind()


def candidates(positive: Tensor) -> tuple[Tensor, Tensor]:
    """The positives of each row as indices, and which of them exist, ``(m, k)`` both.

    If values can be read, ``k`` is the largest number of positives; otherwise every column is a candidate, because a
    smaller number would have to be read from the device.
    """
    m, n = positive.shape
    if not can_read_values(positive):
        return torch.arange(n, device=positive.device)[None, :].expand(m, n), positive
    most = max(int(positive.sum(dim=1).max()), 1) if m else 1
    index = positive.to(torch.uint8).topk(most, dim=1).indices.sort(dim=1).values
    return index, positive.gather(1, index)


def one_negative_each(positives: Tensor, negatives: Tensor, valid: Tensor) -> Triplets:
    """Triplets from matrices ``(m, k)`` of k positives of each anchor, and a negative for each of them."""
    anchors = torch.arange(len(positives), device=positives.device)[:, None].expand_as(positives)
    return Triplets(anchors.reshape(-1), positives.reshape(-1), negatives.reshape(-1), valid.reshape(-1))
