"""Pair miners: conditions on a pair's similarity and on folds of its row."""

from __future__ import annotations

from dataclasses import dataclass

from likewise.formula import NEGATIVES, POSITIVES, Formula, Number, Similarity, hyper, largest, s, smallest
from likewise.miners.base import PairMiner


def _could_be_violated(margin: float) -> tuple[Formula, Formula]:
    """Return conditions for pairs of triplets that violate the margin: each side against the hardest pair of the other.

    An anchor without positives or without negatives keeps nothing, because the missing fold is infinite.
    """
    return s - margin < largest(s, NEGATIVES), s + margin > smallest(s, POSITIVES)


@dataclass(frozen=True)
class MultiSimilarityMiner(PairMiner):
    r"""Keeps positives less similar than the hardest negative, and negatives more similar than the hardest positive.

    A positive is kept if $s_{ij}-\varepsilon<\max_{k\in N_i}s_{ik}$, a negative if
    $s_{ik}+\varepsilon>\min_{j\in P_i}s_{ij}$.  Wang et al. 2019.

    Args:
        epsilon: the slack ε.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> MultiSimilarityMiner().pairs(embeddings, torch.tensor([0, 0, 1]))
        (tensor([1]), tensor([0]), tensor([1]), tensor([2]))
    """

    epsilon: float = hyper(default=0.1, help="slack", at_least=0.0, search=(0.0, 1.0), step=0.1)

    def keep(self, similarity: Similarity) -> tuple[Formula, Formula]:
        """Each side against the hardest of the other."""
        return _could_be_violated(self.epsilon)


@dataclass(frozen=True)
class ValidTripletMiner(PairMiner):
    r"""Valid-triplet hard mining (VTHM): keeps pairs of triplets that violate the margin.

    A negative is kept if $s_{ij}>s_{ip^*}-\lambda$ with $p^*$ the least similar positive, a positive if
    $s_{ij}<s_{in^*}+\lambda$ with $n^*$ the most similar negative: Section 5.1 of the unified view.  Moving λ to the
    other side of the inequality shows that this is `MultiSimilarityMiner` with ε = λ, and it is computed as such.

    Args:
        margin: the margin λ.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> ValidTripletMiner().pairs(embeddings, torch.tensor([0, 0, 1]))
        (tensor([1]), tensor([0]), tensor([1]), tensor([2]))
    """

    margin: float = hyper(default=0.1, help="margin", at_least=0.0, search=(0.0, 1.0), step=0.1)

    def keep(self, similarity: Similarity) -> tuple[Formula, Formula]:
        """Each side against the hardest of the other."""
        return _could_be_violated(self.margin)


@dataclass(frozen=True)
class PairMarginMiner(PairMiner):
    """Keeps positives below one similarity and negatives above another; margins of a distance are distances.

    Args:
        positive_margin: positives less similar (further away) than this are kept.
        negative_margin: negatives more similar (closer) than this are kept.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> PairMarginMiner(0.9, 0.7).pairs(embeddings, torch.tensor([0, 0, 1]))
        (tensor([0, 1]), tensor([1, 0]), tensor([1, 2]), tensor([2, 1]))
    """

    positive_margin: float = hyper(
        default=0.8, help="positives less similar than this are kept", search=(0.0, 1.0), step=0.1
    )
    negative_margin: float = hyper(
        default=0.2, help="negatives more similar than this are kept", search=(0.0, 1.0), step=0.1
    )

    def keep(self, similarity: Similarity) -> tuple[Formula, Formula]:
        """A threshold for each side."""
        # as formulas, because torch.compile cannot compare a formula with a number that changes between calls
        positive, negative = similarity.threshold(self.positive_margin), similarity.threshold(self.negative_margin)
        return s < Number(positive), s > Number(negative)
