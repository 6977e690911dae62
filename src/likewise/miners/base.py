"""The base classes of miners, which select positive and negative pairs by their similarities."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from likewise._compat import is_inside_func
from likewise.engines import WholeRows, dense_masks, map_rows
from likewise.formula import (
    Choice,
    Cosine,
    Formula,
    Masks,
    Mined,
    PairBatch,
    Relation,
    RelationLike,
    RowChunk,
    Similarity,
    SimilarityLike,
    Triplets,
    as_similarity,
    batch_from_embeddings,
    batch_from_similarities,
    check_hyperparameters,
    full_precision,
    per_triplet,
    relu,
    s,
    s_p,
)

LOWEST = -3e38
"""Below every similarity, and finite in float32."""


class MinedCounts(NamedTuple):
    """The number of pairs and triplets that a miner keeps of a batch.

    Args:
        positives: the number of positive pairs, each counted once.
        negatives: the number of negative pairs, each counted once.
        triplets: the number of triplets that a triplet miner chooses, or that the pairs of a pair miner form.

    Examples:
        >>> MinedCounts(positives=2, negatives=3, triplets=3)._asdict()
        {'positives': 2, 'negatives': 3, 'triplets': 3}
    """

    positives: int
    negatives: int
    triplets: int


class Miner(ABC):
    """Selects pairs or triplets; the option ``miner=`` of a loss."""

    def __init_subclass__(cls) -> None:
        """Reject hyper-parameters that are learned."""
        super().__init_subclass__()
        for name, field in vars(cls).items():
            declared = field.metadata.get("hyper") if isinstance(field, dataclasses.Field) else None
            if declared is not None and declared.learn is not False:
                raise TypeError(
                    f"{cls.__name__}: {name} must not be learned, because a miner's choice has no gradient, "
                    f"but it is declared with learn={declared.learn!r}"
                )

    def __post_init__(self) -> None:
        check_hyperparameters(self)

    @abstractmethod
    def refine(self, rows: WholeRows) -> Relation:
        """Return the pairs that the miner keeps, or those that its triplets contain."""

    def count(
        self,
        embeddings: Tensor,
        labels: Tensor,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        similarity: SimilarityLike = "cosine",
    ) -> MinedCounts:
        """Count the pairs and triplets that the miner keeps of a batch; a random miner draws them.

        Args:
            embeddings: the anchors.
            labels: their labels.
            references: what the anchors are compared with; by default the embeddings themselves.
            reference_labels: the references' labels.
            similarity: how embeddings are compared; for the miner of a loss, the similarity of the loss.

        Examples:
            >>> from likewise.miners import MultiSimilarityMiner
            >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
            >>> MultiSimilarityMiner().count(embeddings, torch.tensor([0, 0, 1]))
            MinedCounts(positives=1, negatives=1, triplets=1)
        """
        with torch.no_grad(), full_precision(embeddings):
            batch = batch_from_embeddings(
                embeddings, labels, references, reference_labels, None, as_similarity(similarity)
            )
            rows = map_rows(batch)
            relation = self.refine(rows)
            positives, negatives, formed = map_rows(rows.batch.under(relation)).sum(_count_pairs)
            triplets = self._count_triplets(rows, relation)
            numbers = torch.stack([positives, negatives, formed if triplets is None else triplets])
            return MinedCounts(*(int(number) for number in numbers.tolist()))

    def _count_triplets(self, rows: WholeRows, relation: Relation) -> Tensor | None:
        """The number of chosen triplets; ``None`` for a miner that keeps pairs."""
        return None


def _count_pairs(chunk: RowChunk) -> tuple[Tensor, ...]:
    """The number of positive and negative pairs, and of the triplets that they form; exact in float64 up to 2⁵³."""
    positives, negatives = (mask.sum(dim=1).double() for mask in chunk.masks())
    return positives.sum(), negatives.sum(), (positives * negatives).sum()


def _batch_of(similarities: Tensor, relation: RelationLike | Tensor, method: str) -> PairBatch:
    """Return the batch of a matrix of cosine similarities; embeddings raise an error that names the right method."""
    shape = tuple(similarities.shape) if isinstance(similarities, Tensor) else ()
    if isinstance(relation, Tensor) and len(shape) == 2 and shape[0] != shape[1]:
        raise ValueError(
            f"similarities must be a square matrix where the relation is a tensor of labels, but it has shape {shape}; "
            f"embeddings are mined by miner.{method}(embeddings, labels)"
        )
    return batch_from_similarities(similarities, relation, Cosine())


class PairMiner(Miner):
    """A miner that selects pairs by a condition on each pair's similarity and on folds over its anchor's pairs.

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
        """Return the conditions under which a positive and a negative pair are kept.

        Args:
            similarity: how embeddings are compared; `Similarity.threshold` turns a user's number into a value of ``s``.
        """

    def refine(self, rows: WholeRows) -> Mined:
        """The relation with the miner's conditions; an engine applies them."""
        assert rows.batch.similarity is not None
        return Mined(rows.batch.relation, *self.keep(rows.batch.similarity))

    def __call__(self, similarities: Tensor, relation: RelationLike | Tensor) -> Masks:
        """Mine a similarity matrix and return the kept pairs as masks."""
        with torch.no_grad():
            return Masks(*self._masks(_batch_of(similarities, relation, "pairs")))

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
        """Return the kept pairs as indices: anchors, positives, anchors, negatives."""
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
    def mine(self, chunk: RowChunk) -> Triplets:
        """Return triplets of some anchors with all references; unused entries are marked as not valid.

        The similarities ``(m, n)`` are in ``chunk.similarities``, the candidate pairs in ``chunk.masks()``.  The method
        is called once, or once per chunk of a large batch.
        """

    def choice(self, similarity: Similarity) -> Choice | None:
        """Return the choice as formulas of `likewise.formula.s_p` and `likewise.formula.s`; ``None`` if it is random.

        Pairs that tie at the chosen similarity share the gradient.  The choice may depend on the miner's fields and on the
        similarity only, because a loss keeps what it made of the last one.

        Args:
            similarity: how embeddings are compared; `Similarity.threshold` turns a user's number into a value of ``s``.
        """
        return None

    def choose(self, rows: WholeRows) -> Triplets:
        """Choose triplets by the current similarities, without gradient."""
        return rows.choose(self.mine)

    def refine(self, rows: WholeRows) -> Relation:
        """The pairs that the chosen triplets contain."""
        return self.choose(rows)

    def __call__(self, similarities: Tensor, relation: RelationLike | Tensor) -> Triplets:
        """Mine a matrix of cosine similarities and return the triplets."""
        return self.choose(map_rows(_batch_of(similarities, relation, "triplets")))

    def triplets(
        self,
        embeddings: Tensor,
        labels: Tensor,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        similarity: SimilarityLike = "cosine",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the triplets as indices: anchors, positives, negatives."""
        with full_precision(embeddings):
            batch = batch_from_embeddings(
                embeddings, labels, references, reference_labels, None, as_similarity(similarity)
            )
            chosen = self.choose(WholeRows(batch)).compact()
        return chosen.anchors, chosen.positives, chosen.negatives

    def _count_triplets(self, rows: WholeRows, relation: Relation) -> Tensor:
        if isinstance(relation, Triplets):
            return torch.tensor(len(relation.compact().anchors), dtype=torch.float64, device=relation.device)
        assert rows.batch.similarity is not None
        # a rule that gives pairs without triplets is a formula with one unit per triplet
        choice = self.choice(rows.batch.similarity)
        assert choice is not None
        units = rows.evaluate(per_triplet(relu(s - s_p), choice=choice), rows.batch).units
        assert units is not None
        return units.double().sum()


def fill(values: Tensor, where: Tensor, number: float) -> Tensor:
    """Write a number where a mask holds: in place, except inside ``torch.func``, where vmap may map over the mask only."""
    return values.masked_fill(where, number) if is_inside_func() else values.masked_fill_(where, number)


def enumerate_triplets(positive: Tensor, negatives: Tensor, first: Tensor, end: Tensor) -> Triplets:
    """Return each positive pair with a range of its row's negatives; synchronizes to read the number of triplets.

    Args:
        positive: the positive pairs, ``(m, n)``.
        negatives: columns of negatives in some order, ``(m, n)``.
        first: where the range of each pair starts in that order, ``(m, n)``.
        end: where it ends.
    """
    number = (end - first).clamp_min(0).masked_fill(~positive, 0).reshape(-1)
    pair = torch.arange(len(number), device=number.device).repeat_interleave(number)
    offset = torch.arange(len(pair), device=number.device) - (number.cumsum(0) - number)[pair]
    anchors, positives = pair // positive.shape[1], pair % positive.shape[1]
    return Triplets(anchors, positives, negatives[anchors, first.expand_as(positive).reshape(-1)[pair] + offset])
