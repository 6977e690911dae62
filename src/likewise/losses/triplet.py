"""Losses on triplets and quadruplets, without ever writing one down: ranks and counts in place of B³ terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from likewise.backends import dense_masks
from likewise.core.folds import NEGATIVES, POSITIVES, add_up, count
from likewise.core.formula import OPERATIONS, PerAnchor, is_nonzero, relu, s
from likewise.core.hyper import hyper, option
from likewise.core.problem import Problem, class_values
from likewise.core.relation import Triplets
from likewise.core.similarity import Euclidean, Similarity, SimilarityLike
from likewise.core.spec import Declaration, Part, PartValues, Penalty, Reduction, WholeMatrix
from likewise.losses.module import PairLoss


class TripletLoss(PairLoss):
    r"""Triplet loss over all triplets of the batch, or over those that a miner chooses.

    $$[s_{an}-s_{ap}+\lambda]_+\qquad\text{or, soft,}\qquad\log\bigl(1+e^{s_{an}-s_{ap}+\lambda}\bigr)$$

    mean over the triplets that are not zero (``reduction="nonzero"``).  Schroff et al. 2015, Hoffer & Ailon 2015; Eq. 7
    of the unified view, Eq. 2.17 of the thesis; soft: Hermans et al. 2017.

    All triplets are summed exactly without being written down: sorting each row says how many active triplets every pair
    is in, and the loss is linear in the pairs with these counts, $O(B^2\log B)$ time and $O(B^2)$ memory.  The soft loss
    has no such shortcut: it takes one pass over the matrix for each positive that an anchor can have.

    Args:
        margin: the margin λ.
        soft: replace the hinge by a softplus.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> TripletLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2600)
    """

    margin: float = hyper(default=0.1, help="margin", at_least=-4.0, at_most=4.0, search=(0.0, 1.0), step=0.1)
    soft: bool = option(default=False, kw_only=False, help="softplus in place of the hinge")
    reduction: Reduction = option(default="nonzero", kw_only=True, help="mean, nonzero, sum or none")

    def declare(self) -> Declaration:
        """Triplets are not pairs of one anchor folded side by side, so this looks at the matrix."""
        return WholeMatrix(self._all)

    def declare_on_triplets(self) -> Declaration:
        """One term for every triplet that was chosen."""
        return WholeMatrix(self._given)

    def _all(self, problem: Problem) -> list[PartValues]:
        every = soft_triplets if self.soft else all_triplets
        return [every(problem.similarities(), *dense_masks(problem), self.margin)]

    def _given(self, problem: Problem) -> list[PartValues]:
        S, triplets = problem.similarities(), problem.relation
        assert isinstance(triplets, Triplets)
        violation = S[triplets.anchors, triplets.negatives] - S[triplets.anchors, triplets.positives] + self.margin
        value = OPERATIONS["softplus" if self.soft else "relu"].compute(violation)
        return [PartValues(*sum_by_anchor(value, triplets, len(S)))]


def sum_by_anchor(values: Tensor, triplets: Triplets, anchors: int) -> tuple[Tensor, Tensor, Tensor]:
    """Per anchor: the sum of its triplets' values, their number, and how many are not zero; gaps do not count."""
    valid = torch.ones_like(values) if triplets.valid is None else triplets.valid.to(values.dtype)
    values = values * valid

    def add(what: Tensor) -> Tensor:
        return what.new_zeros(anchors).index_add(0, triplets.anchors, what)

    return add(values), add(valid), add(is_nonzero(values).to(values.dtype))


def all_triplets(S: Tensor, positive: Tensor, negative: Tensor, margin: float) -> PartValues:
    """Every triplet's hinge, exactly, by counting: see `TripletLoss`."""
    total, active = _AllTriplets.apply(S, positive, negative, margin)  # type: ignore[no-untyped-call]
    return PartValues(total, positive.sum(dim=1) * negative.sum(dim=1), active)


def triplet_counts(S: Tensor, positive: Tensor, negative: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """How many active triplets, ``s_an > s_ap − margin``, each pair is in, and how many each anchor has.

    Each row is sorted once: the negatives' similarities, then the positives' thresholds ``s_ap − margin``.  Equal keys
    stay in that order, so that a negative *at* a threshold is not counted as above it.
    """
    n = S.shape[1]
    keys = torch.cat([S.masked_fill(~negative, -torch.inf), (S - margin).masked_fill(~positive, torch.inf)], dim=1)
    order = keys.argsort(dim=1, stable=True)
    is_threshold = order >= n
    real = torch.cat([negative, positive], dim=1).gather(1, order)
    thresholds_below = (is_threshold & real).cumsum(dim=1, dtype=torch.int32)
    negatives_below = (~is_threshold & real).cumsum(dim=1, dtype=torch.int32)
    negatives_above = negatives_below[:, -1:] - negatives_below
    counts = torch.where(is_threshold, negatives_above, thresholds_below) * real
    back = torch.empty_like(counts).scatter_(1, order, counts)
    of_negatives, of_positives = back[:, :n], back[:, n:]
    return (of_negatives - of_positives).to(S.dtype), of_positives.sum(dim=1)


class _AllTriplets(torch.autograd.Function):
    """The sum over active triplets is ``Σ_j counts_j s_j + margin · active``, with its slope in the counts."""

    @staticmethod
    def forward(ctx: Any, S: Tensor, positive: Tensor, negative: Tensor, margin: float) -> tuple[Tensor, Tensor]:
        counts, active = triplet_counts(S, positive, negative, margin)
        ctx.save_for_backward(counts)
        ctx.mark_non_differentiable(active)
        # large sums that nearly cancel: float64 keeps what float32 would lose, and never dips below zero
        total = (counts.double() * S.double()).sum(dim=1) + margin * active.double()
        return total.clamp_min(0.0).to(S.dtype), active

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, _grad_active: Tensor) -> tuple[Tensor, None, None, None]:
        (counts,) = ctx.saved_tensors
        return grad_total[:, None] * counts, None, None, None


def soft_triplets(S: Tensor, positive: Tensor, negative: Tensor, margin: float) -> PartValues:
    """Every triplet's softplus: one B x B matrix per positive an anchor can have, never all of them at once."""

    def terms(S: Tensor, slot: Tensor) -> Tensor:
        softplus: Tensor = OPERATIONS["softplus"].compute(S - S.gather(1, slot[:, None]) + margin)
        return softplus

    return by_positive(S, positive, negative, terms)


def by_positive(S: Tensor, positive: Tensor, negative: Tensor, terms: Callable[[Tensor, Tensor], Tensor]) -> PartValues:
    """Sum a function of every triplet: the k-th positive of all anchors at a time, against all their negatives.

    Args:
        S: similarities, ``(m, n)``.
        positive: the positive pairs.
        negative: the negative pairs.
        terms: from similarities and one positive for each anchor, ``(m,)``, to the terms of all references, ``(m, n)``.
    """
    # the one place where a loss asks the device for a number; a compiled graph takes every column for a slot instead
    unknown = torch.compiler.is_compiling() or positive.is_meta
    slots = S.shape[1] if unknown else max(int(positive.sum(dim=1).max()), 1)
    # the positives of each anchor first, in a stable order
    index = positive.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :slots]

    def of_slot(S: Tensor, slot: Tensor) -> tuple[Tensor, Tensor]:
        value = torch.where(positive.gather(1, slot[:, None]) & negative, terms(S, slot), 0.0)
        return value.sum(dim=1), is_nonzero(value).sum(dim=1)

    # a matrix for each slot may stay where there is room for all of them; else each is made again in the backward pass
    roomy = slots * S.numel() <= 2**24
    total, nonzero = S.sum(dim=1) * 0.0, torch.zeros(len(S), dtype=torch.int64, device=S.device)
    for slot in index.unbind(dim=1):
        value, number = of_slot(S, slot) if roomy else checkpoint(of_slot, S, slot, use_reentrant=False)
        total, nonzero = total + value, nonzero + number
    return PartValues(total, positive.sum(dim=1) * negative.sum(dim=1), nonzero)


class MarginLoss(PairLoss):
    r"""Margin loss with a learned boundary β between positive and negative distances.

    $$\frac{\sum_{(a,p,n)}[\lambda+d_{ap}-\beta]_+ + [\lambda+\beta-d_{an}]_+}{\text{number of non-zero terms}}+\nu\,\bar\beta$$

    over all triplets, or over those that a miner chooses (`likewise.miners.DistanceWeightedMiner` in the paper); positive
    and negative terms are counted separately.  Wu et al. 2017; Eq. 2.23 of the thesis with
    $I_{ij}=\pm1$.  Distances are Euclidean, between unit vectors.

    Args:
        margin: the margin λ; the thesis uses 0.5.
        beta: the boundary, or where it starts.
        num_classes: one β for each class of the anchor; labels must then be 0 … num_classes − 1.
        learn_beta: make β a parameter.
        nu: weight of the mean β.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> MarginLoss()(embeddings, torch.tensor([0, 0, 1])).detach()
        tensor(0.8114)
    """

    margin: float = hyper(default=0.2, help="margin", at_least=0.0, search=(0.0, 1.0), step=0.1)
    beta: float | Tensor = hyper(
        default=1.2, help="boundary between positive and negative distances", search=(0.5, 1.5)
    )
    num_classes: int | None = option(default=None, kw_only=False, help="one beta for each class of the anchor")
    learn_beta: bool = option(default=True, kw_only=False, help="make beta a parameter")
    nu: float = hyper(default=0.0, help="weight of the mean beta", at_least=0.0, search=(1e-4, 0.1), log=True)
    similarity: SimilarityLike = option(
        default="euclidean", kw_only=True, help="how two embeddings are compared; higher is closer"
    )
    reduction: Reduction = option(default="nonzero", kw_only=True, help="mean, nonzero, sum or none")
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Euclidean,)
    suggested_lr: ClassVar[float | None] = 5e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_classes is not None and (not isinstance(self.num_classes, int) or self.num_classes < 1):
            raise ValueError(
                f"MarginLoss: num_classes must be a whole number ≥ 1 or None, but it is {self.num_classes!r}"
            )
        start = torch.full((self.num_classes or 1,), float(self.beta))
        if self.learn_beta:
            self.beta = nn.Parameter(start)
        else:
            del self.beta
            self.register_buffer("beta", start)

    def _boundary(self, problem: Problem) -> Tensor:
        """One β per anchor."""
        assert isinstance(self.beta, Tensor)
        beta = self.beta.to(problem.dtype)
        return beta.expand(problem.shape[0]) if self.num_classes is None else class_values(beta, problem, "beta")

    def _penalty(self) -> tuple[Penalty, ...]:
        assert isinstance(self.beta, Tensor)
        return (Penalty(self.nu * self.beta.mean()),) if self.nu > 0.0 else ()

    def declare(self) -> Declaration:
        """A pair is in as many triplets as its anchor has partners on the other side: products of counts."""
        beta = PerAnchor("beta", self._boundary)
        pull, push = relu(self.margin - s - beta), relu(self.margin + beta + s)  # the distance is -s
        positives, negatives = count(POSITIVES), count(NEGATIVES)
        total = negatives * add_up(pull, POSITIVES) + positives * add_up(push, NEGATIVES)
        nonzero = negatives * count(POSITIVES, pull > 0.0) + positives * count(NEGATIVES, push > 0.0)
        return (Part(total, 2 * positives * negatives, nonzero), *self._penalty())

    def declare_on_triplets(self) -> Declaration:
        """Both terms of every triplet that was chosen."""
        return (WholeMatrix(self._given), *self._penalty())

    def _given(self, problem: Problem) -> list[PartValues]:
        S, triplets = problem.similarities(), problem.relation
        assert isinstance(triplets, Triplets)
        beta = self._boundary(problem)[triplets.anchors]
        pull = torch.relu(self.margin - S[triplets.anchors, triplets.positives] - beta)
        push = torch.relu(self.margin + beta + S[triplets.anchors, triplets.negatives])
        # one part: positive and negative terms are units of the same average
        pulls, pushes = (sum_by_anchor(terms, triplets, len(S)) for terms in (pull, push))
        return [PartValues(*(a + b for a, b in zip(pulls, pushes, strict=True)))]


class QuadrupletLoss(PairLoss):
    r"""Quadruplet loss: a triplet loss, and positive pairs against negative pairs of other classes.

    $$\mathrm{mean}\,[s_{an}-s_{ap}+\lambda_1]_+ + \mathrm{mean}\,[s_{nk}-s_{ap}+\lambda_2]_+$$

    over all triplets, and over all $(a,p,n,k)$ whose classes of $a$, $n$ and $k$ are all different; each mean over the
    terms that are not zero.  Chen et al. 2017, in similarity form.  All quadruplets are summed exactly by sorting
    pairs, $O(B^2\log B)$ in place of $O(B^4)$.

    Args:
        margin1: the margin of the triplets.
        margin2: the margin of the quadruplets, smaller as they are the weaker demand.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
        >>> QuadrupletLoss()(embeddings, torch.tensor([0, 0, 1, 2]))
        tensor(0.3100)
    """

    margin1: float = hyper(
        default=0.1, help="margin of the triplets", at_least=-4.0, at_most=4.0, search=(0.0, 1.0), step=0.1
    )
    margin2: float = hyper(
        default=0.05, help="margin of the quadruplets", at_least=-4.0, at_most=4.0, search=(0.0, 1.0), step=0.1
    )
    reduction: Reduction = option(default="nonzero", kw_only=True, help="mean, nonzero, sum or none")
    takes_references: ClassVar[bool] = False

    def declare(self) -> Declaration:
        """A positive pair meets negative pairs of other anchors, so this looks at the matrix."""
        return WholeMatrix(self._compute)

    def declare_on_triplets(self) -> Declaration:
        """Triplets name no second negative."""
        raise TypeError(
            "QuadrupletLoss is defined on all quadruplets of a batch and takes no triplets and no triplet miner"
        )

    def only_from_embeddings(self) -> str | None:
        """Similarities of a set with itself are needed, and the classes of all three."""
        return "it compares pairs of different anchors and needs everyone's label"

    def _compute(self, problem: Problem) -> list[PartValues]:
        if problem.labels is None:
            raise TypeError("QuadrupletLoss needs labels, because three classes must differ; it takes no relation")
        S = problem.similarities()
        positive, negative = dense_masks(problem)
        return [
            all_triplets(S, positive, negative, self.margin1),
            all_quadruplets(S, positive, negative, problem.labels, self.margin2),
        ]


def all_quadruplets(S: Tensor, positive: Tensor, negative: Tensor, labels: Tensor, margin: float) -> PartValues:
    """Every positive pair's hinges against the negative pairs that do not touch its class.

    A negative pair touches two classes.  So: all negative pairs, less those with their first member in the class, less
    those with their second.
    """
    rows, columns = labels[:, None].expand_as(S), labels[None, :].expand_as(S)
    everything = torch.zeros_like(rows)
    excess, active = sums_above(S, negative, everything, S - margin, everything)
    for members in (rows, columns):
        touching, touching_active = sums_above(S, negative, members, S - margin, rows)
        excess, active = excess - touching, active - touching_active
    same = (rows == columns).double()
    pairs = negative.sum(dim=1).double(), negative.sum(dim=0).double()
    eligible = negative.sum() - same @ (pairs[0] + pairs[1])
    total = torch.where(positive, excess, 0.0).sum(dim=1).clamp_min(0.0).to(S.dtype)
    return PartValues(total, positive.sum(dim=1) * eligible, torch.where(positive, active, 0).sum(dim=1))


def sums_above(
    values: Tensor, is_value: Tensor, value_group: Tensor, thresholds: Tensor, threshold_group: Tensor
) -> tuple[Tensor, Tensor]:
    """For each threshold ``t``: ``Σ (v − t)`` over the values above it in its group, and their number.

    One sort by (group, key) and running sums in float64; a value *at* a threshold is not above it.
    """
    n = values.numel()
    keys = torch.cat([values.masked_fill(~is_value, 0.0).reshape(-1), thresholds.reshape(-1)]).double()
    groups = torch.cat([value_group.reshape(-1), threshold_group.reshape(-1)])
    counted = torch.cat([is_value.reshape(-1), torch.zeros_like(thresholds, dtype=torch.bool).reshape(-1)])
    order = keys.detach().argsort(stable=True)
    order = order[groups[order].argsort(stable=True)]
    keys, groups, counted = keys[order], groups[order], counted[order]
    ends = torch.searchsorted(groups, groups, right=True) - 1  # where each one's group ends
    running, number = torch.where(counted, keys, 0.0).cumsum(dim=0), counted.cumsum(dim=0)
    above = number[ends] - number
    excess = running[ends] - running - above * keys
    back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))[n:]
    return excess[back].view_as(thresholds), above[back].view_as(thresholds)
