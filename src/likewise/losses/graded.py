"""Losses on graded pairs: the similarities of pairs should have the order of their scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from likewise.distributed import current_group
from likewise.formula import (
    OPERATIONS,
    LogSumExp,
    RelationLike,
    can_read_values,
    embeddings_of,
    full_precision,
    same_device,
    unit,
)
from likewise.losses.base import finite_number

LARGEST_SCALE = 200.0
"""The largest scale whose exponentials float64 can represent."""


class _ScoreLoss(nn.Module):
    """A loss on pairs of rows with a score each.

    Args:
        scale: the scale λ, at most 200.
    """

    def __init__(self, scale: float = 20.0) -> None:
        super().__init__()
        self.scale = _check_scale(scale)

    def similarities(self, left: Tensor, right: Tensor) -> Tensor:
        """Return one number per pair, from the unit vectors of its two rows."""
        raise NotImplementedError

    def forward(
        self,
        embeddings: Tensor,
        scores: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the loss of the pairs.

        Args:
            embeddings: one side of the pairs, ``(n, d)``.
            scores: the score of each pair, ``(n,)``, any real dtype; only their order matters.
            references: the other side, ``(n, d)``.
            reference_labels: must be ``None``, as must ``relation``.
            relation: see ``reference_labels``.
        """
        with full_precision(embeddings):
            left, scores, right = _check_pairs(embeddings, scores, references, reference_labels, relation)
            return _rank_by_score(self.similarities(unit(left), unit(right)), scores, self.scale)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"scale={self.scale}"


class CoSENTLoss(_ScoreLoss):
    r"""CoSENT: ranks pairs with a higher score as more similar than pairs with a lower score.

    $$\log\Bigl(1+\sum_{y_k>y_l}e^{\lambda(s_l-s_k)}\Bigr)$$

    over pairs of pairs; pair k is row k of embeddings and row k of references, $s_k$ its cosine and $y_k$ its score.
    Pairs with equal scores are not compared.  Su 2022; computed in $O(n\log n)$.

    Args:
        scale: the scale λ, at most 200.

    Examples:
        >>> import torch
        >>> left, right = torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> CoSENTLoss(scale=1.0)(left, torch.tensor([0.2, 0.9]), right)
        tensor(1.3133)
    """

    def similarities(self, left: Tensor, right: Tensor) -> Tensor:
        """Cosines."""
        return (left * right).sum(dim=1)


class AnglELoss(_ScoreLoss):
    r"""AnglE: CoSENT with the difference of angles in complex space in place of the cosine.

    $$s_k=\Bigl|\sum_m a_m b_m+\sum_{m\le D/2}\bigl(a_{m+D/2}\,b_m-a_m\,b_{m+D/2}\bigr)\Bigr|$$

    on the unit vectors a and b of pair k, whose halves are the real and the imaginary part; an odd dimension is padded with a zero.
    Li & Li 2024.

    Args:
        scale: the scale λ of `CoSENTLoss`.

    Examples:
        >>> import torch
        >>> left, right = torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> AnglELoss(scale=1.0)(left, torch.tensor([0.2, 0.9]), right)
        tensor(0.6931)
    """

    def similarities(self, left: Tensor, right: Tensor) -> Tensor:
        """The real part plus the imaginary part of a complex product."""
        a, b = (nn.functional.pad(rows, (0, rows.shape[1] % 2)) for rows in (left, right))
        (real_a, imaginary_a), (real_b, imaginary_b) = a.chunk(2, dim=1), b.chunk(2, dim=1)
        product = (a * b).sum(dim=1) + (imaginary_a * real_b - real_a * imaginary_b).sum(dim=1)
        return product.abs()


def _check_scale(scale: float) -> float:
    if not 0.0 < finite_number("scale", scale, None) <= LARGEST_SCALE:
        raise ValueError(f"scale must be a number > 0 and ≤ {LARGEST_SCALE:g}, but it is {scale!r}")
    return float(scale)


def _check_pairs(
    embeddings: Tensor,
    scores: Tensor | None,
    references: Tensor | None,
    reference_labels: Tensor | None,
    relation: RelationLike | None,
) -> tuple[Tensor, Tensor, Tensor]:
    left = embeddings_of("embeddings", embeddings)
    if scores is None or references is None:
        name = "scores" if scores is None else "references"
        raise TypeError(f"{name} must be given, one for each of the {len(left)} embeddings, but it is None")
    if reference_labels is not None or relation is not None:
        name = "relation" if reference_labels is None else "reference_labels"
        raise ValueError(f"{name} must be None for a loss on graded pairs, whose rows are the pairs, but it is given")
    right = embeddings_of("references", references)
    if right.shape != left.shape:
        raise ValueError(
            f"references must have the shape of embeddings, {tuple(left.shape)}, but the shape is {tuple(right.shape)}"
        )
    same_device("references", right, left.device, "embeddings")
    return left, _check_scores(scores, left), right.to(torch.promote_types(left.dtype, right.dtype))


def _check_scores(scores: Tensor, rows: Tensor) -> Tensor:
    if not isinstance(scores, Tensor) or scores.is_complex():
        what = f"of dtype {scores.dtype}" if isinstance(scores, Tensor) else f"a {type(scores).__name__}"
        raise TypeError(f"scores must be a tensor of real numbers, but it is {what}")
    if scores.shape != rows.shape[:1]:
        raise ValueError(f"scores must have shape ({len(rows)},), but the shape is {tuple(scores.shape)}")
    same_device("scores", scores, rows.device, "embeddings")
    if can_read_values(scores) and not bool(scores.isfinite().all()):
        raise ValueError("scores must be finite, but one of them is not")
    # searchsorted does not take booleans
    return scores.detach().to(torch.uint8 if scores.dtype == torch.bool else scores.dtype)


def _rank_by_score(similarities: Tensor, scores: Tensor, scale: float) -> Tensor:
    """``log(1 + Σ e^(scale (s_l − s_k)))`` over the pairs of all ranks with ``scores_k > scores_l``."""
    group = current_group()
    rows = group.rows(similarities)
    similarities, scores = group.gather(similarities, rows), group.gather(scores, rows)
    scores, order = scores.sort()
    # the second derivative of torch.logcumsumexp is wrong; exponents are at most 2√2 · LARGEST_SCALE apart, which float64 holds
    logits = scale * similarities[order].double()
    peak = logits.detach().max()
    lower = torch.searchsorted(scores, scores)  # the number of pairs with a lower score
    of_lower = (logits - peak).exp().cumsum(dim=0).log()[(lower - 1).clamp_min(0)] + peak
    fold = LogSumExp()
    [total] = fold.finish(fold.start((of_lower - logits)[None], (lower > 0)[None]))
    value: Tensor = OPERATIONS["softplus"].compute(total)
    return value.to(similarities.dtype)
