"""What miners have in common: they refine who is positive and negative to whom, by looking at similarities."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from likewise.backends import dense_masks
from likewise.core.checks import full_precision
from likewise.core.formula import Formula
from likewise.core.hyper import check_hyperparameters
from likewise.core.problem import Problem, problem_from_embeddings, problem_from_similarities
from likewise.core.relation import Masks, Mined, Relation, Triplets
from likewise.core.similarity import Cosine, SimilarityLike, as_similarity


class Miner(ABC):
    """Chooses pairs or triplets; give one to a loss as ``miner=``."""

    def __post_init__(self) -> None:
        check_hyperparameters(self)

    @abstractmethod
    def refine(self, problem: Problem) -> Relation:
        """The relation that is left of a problem's."""


class PairMiner(Miner):
    """A miner that keeps pairs, by a condition on each pair's similarity and on folds over its anchor's pairs.

    The conditions are formulas, so that every engine can apply them tile by tile.

    Examples:
        >>> from dataclasses import dataclass
        >>> from likewise.core import NEGATIVES, hyper, largest, s
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

    def refine(self, problem: Problem) -> Mined:
        """Write the conditions beside the relation; nothing is computed yet."""
        return Mined(problem.relation, *self.keep())

    def __call__(self, similarities: Tensor, relation: Relation | Tensor) -> Masks:
        """Mine a similarity matrix: the pairs that are kept, as masks."""
        with torch.no_grad():
            problem = problem_from_similarities(similarities, relation, Cosine())
            return Masks(*dense_masks(problem.under(self.refine(problem))))

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
            problem = problem_from_embeddings(
                embeddings, labels, references, reference_labels, None, as_similarity(similarity)
            )
            positive, negative = dense_masks(problem.under(self.refine(problem)))
            anchors, positives = positive.nonzero(as_tuple=True)
            negative_anchors, negatives = negative.nonzero(as_tuple=True)
            return anchors, positives, negative_anchors, negatives


class TripletMiner(Miner):
    """A miner that chooses triplets.

    Triplet losses take the triplets; every other loss takes the pairs that they touch.
    """

    @abstractmethod
    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, problem: Problem) -> Triplets:
        """Triplets from similarities ``(m, n)`` and the masks of what may be chosen; gaps are marked as not valid."""

    def refine(self, problem: Problem) -> Triplets:
        """Choose triplets by the current similarities, without gradient."""
        S = problem.similarities().detach()
        with torch.no_grad():
            positive, negative = dense_masks(problem)
            return self.mine(S, positive, negative, problem).sized(*S.shape).compact()

    def __call__(self, similarities: Tensor, relation: Relation | Tensor) -> Triplets:
        """Mine a matrix of cosine similarities."""
        return self.refine(problem_from_similarities(similarities, relation, Cosine()))

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
            problem = problem_from_embeddings(
                embeddings, labels, references, reference_labels, None, as_similarity(similarity)
            )
            chosen = self.refine(problem).compact(wait=True)
        return chosen.anchors, chosen.positives, chosen.negatives


def one_negative_per_pair(negatives: Tensor, valid: Tensor) -> Triplets:
    """Triplets from a matrix that names one negative for each (anchor, positive)."""
    m, n = negatives.shape
    anchors = torch.arange(m, device=negatives.device)[:, None].expand(m, n)
    positives = torch.arange(n, device=negatives.device)[None, :].expand(m, n)
    return Triplets(anchors.reshape(-1), positives.reshape(-1), negatives.reshape(-1), valid.reshape(-1))
