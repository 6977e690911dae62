"""Losses on the soft rank of a positive: the number of references above it, through a soft step of similarity differences.

The *ranked set* of an anchor is every reference except the anchor itself.  With ``include_self=True``, as in the authors'
codes, the anchor is in the ranked set and counts as one of its positives, unless references are given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS
from likewise.engines import plan_chunks, similarities_at
from likewise.formula import (
    EACH_POSITIVE,
    NEGATIVES,
    POSITIVES,
    Cosine,
    Declaration,
    Formula,
    LabelRelation,
    Mined,
    Operand,
    PairBatch,
    PerAnchor,
    Similarity,
    Term,
    add_up,
    apply,
    at_least,
    count,
    hyper,
    log,
    logical_not,
    mean,
    one_of,
    option,
    per_anchor,
    per_pair,
    relevance,
    relu,
    s,
    s_p,
    sigmoid,
    where,
    whole_number,
)
from likewise.losses.base import LabelKind, PairLoss, finite_number

_NOWHERE = -1e4
"""Replaces an anchor's similarity to itself if it is not among the references; its step is zero."""


def is_below(difference: Formula) -> Formula:
    """Return where a difference of similarities is negative; a difference within rounding counts as zero."""
    return apply("nonzero", difference) & (difference < 0.0)


def smaller(left: Operand, right: Operand) -> Formula:
    """The smaller of two numbers."""
    return where(apply("less", left, right), left, right)


def upper_bound_step(
    difference: Formula, temperature: float, rho: float, delta: float, offset: float | None, start: float
) -> Formula:
    """SupAP's step: a sigmoid up to zero, a shifted one up to delta, then a line, so that large errors have a gradient."""
    soft = sigmoid(difference / temperature)
    first = start + 1.0 / (1.0 + math.exp(-delta / temperature)) if offset is None else offset
    wrong = where(delta < difference, rho * (difference - delta) + first, start + soft)
    return where(apply("nonzero", difference) & (difference > 0.0), wrong, soft)


def check_offset(name: str, offset: object) -> None:
    """Check the option ``offset`` of a loss."""
    if offset is not None:
        finite_number(f"{name}: offset", offset, None)


class SmoothAPLoss(PairLoss):
    r"""Smooth-AP: one minus the average precision of each anchor's ranking, with sigmoids in place of steps.

    $$1-\frac{1}{|P_i|}\sum_{p\in P_i}\frac{1+\sum_{j\in P_i,\,j\ne p}\sigma(d_{pj}/\tau)}{1+\sum_{j\ne p}\sigma(d_{pj}/\tau)},
    \qquad d_{pj}=s_{ij}-s_{ip}$$

    per anchor that has a positive; the last sum runs over the ranked set.  Brown et al. 2020.

    Args:
        temperature: the temperature τ of the sigmoid.
        include_self: leave the anchor in the ranked set, as one of its positives.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> SmoothAPLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2500)
    """

    temperature: float = hyper(default=0.01, help="temperature of the step", above=0.0, search=(0.001, 0.1), log=True)
    include_self: bool = option(default=False, kw_only=False, help="let the anchor be one of its positives")

    def ranks_itself(self) -> bool:
        """As ``include_self`` says."""
        return self.include_self

    def declare(self) -> Declaration:
        """The fraction of negatives among the references ranked up to each positive."""
        step = sigmoid((s - s_p) / self.temperature)
        positives = 0.5 + add_up(step, POSITIVES)  # a positive's step of itself is one half
        negatives = add_up(step, NEGATIVES)
        return per_anchor(mean(negatives / (positives + negatives), EACH_POSITIVE), needs=(POSITIVES,))


class SupAPLoss(PairLoss):
    r"""SupAP: an upper bound of one minus average precision, whose gradient does not vanish for large errors.

    $$1-\frac{1}{|P_i|}\sum_{p\in P_i}\frac{R^+_p}{R^+_p+R^-_p},\quad R^+_p=1+\sum_{j\in P_i,\,j\ne p}[d_{pj}\ge0],\quad
    R^-_p=\sum_{j\in N_i}H(d_{pj})$$

    per anchor that has a positive, with $d_{pj}=s_{ij}-s_{ip}$, and $H(d)=\sigma(d/\tau)$ for $d\le0$,
    $\mathrm{start}+\sigma(d/\tau)$ up to δ, and $\rho(d-\delta)+\mathrm{offset}$ beyond; $R^+$ has no gradient.  Ramzi et al.
    2021.

    Args:
        temperature: the temperature τ of the sigmoid.
        rho: the slope ρ of the line.
        delta: where the line begins, δ.
        offset: the value at which it begins; ``None``: the continuous one, ``start + σ(delta / temperature)``.
        start: what a negative above the positive costs at least, minus one half.
        include_self: leave the anchor in the ranked set, as one of its positives.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> SupAPLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.4628)
    """

    temperature: float = hyper(default=0.01, help="temperature of the step", above=0.0, search=(0.001, 0.1), log=True)
    rho: float = hyper(default=100.0, help="slope for large errors", at_least=0.0, search=(1.0, 1000.0), log=True)
    delta: float = hyper(default=0.05, help="where the line begins", at_least=0.0, search=(0.01, 0.2))
    offset: float | None = option(default=1.44, kw_only=False, help="the value at which the line begins")
    start: float = hyper(default=0.5, help="cost of an error, minus one half", at_least=0.0, search=(0.0, 1.0))
    include_self: bool = option(default=False, kw_only=False, help="let the anchor be one of its positives")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_offset(type(self).__name__, self.offset)

    def ranks_itself(self) -> bool:
        """As ``include_self`` says."""
        return self.include_self

    def declare(self) -> Declaration:
        """A count of positives, and a sum over negatives."""
        return _sup_ap(self)


def _sup_ap(loss: Any) -> Term:
    """The term of `SupAPLoss`."""
    difference = s - s_p
    step = upper_bound_step(difference, loss.temperature, loss.rho, loss.delta, loss.offset, loss.start)
    positives = at_least(count(POSITIVES, logical_not(is_below(difference))), 1)
    negatives = add_up(step, NEGATIVES)
    return per_anchor(mean(negatives / (positives + negatives), EACH_POSITIVE), needs=(POSITIVES,))


class ROADMAPLoss(PairLoss):
    r"""ROADMAP: SupAP, and a contrastive term that calibrates similarities across queries.

    $$L_\mathrm{SupAP}+\lambda\Big(\operatorname{mean}_{s_p<m_+}(m_+-s_p)+\operatorname{mean}_{s_n>m_-}(s_n-m_-)\Big)$$

    with $L_\mathrm{SupAP}$ of `SupAPLoss`; both means are over the pairs that violate their margin, under every reduction to
    one number.  Ramzi et al. 2021.

    Args:
        temperature: the temperature τ of the sigmoid.
        rho: the slope ρ of the line.
        delta: where the line begins, δ.
        offset: the value at which it begins; ``None``: the continuous one.
        start: what a negative above the positive costs at least, minus one half.
        positive_margin: positives below it are pulled.
        negative_margin: negatives above it are pushed.
        calibration_weight: the weight λ of the contrastive term.
        include_self: leave the anchor in the ranked set, as one of its positives; never in the contrastive term.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> ROADMAPLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.9228)
    """

    temperature: float = hyper(default=0.01, help="temperature of the step", above=0.0, search=(0.001, 0.1), log=True)
    rho: float = hyper(default=100.0, help="slope for large errors", at_least=0.0, search=(1.0, 1000.0), log=True)
    delta: float = hyper(default=0.05, help="where the line begins", at_least=0.0, search=(0.01, 0.2))
    offset: float | None = option(default=1.44, kw_only=False, help="the value at which the line begins")
    start: float = hyper(default=0.5, help="cost of an error, minus one half", at_least=0.0, search=(0.0, 1.0))
    positive_margin: float = hyper(
        default=0.9, help="positives below it are pulled", at_least=-1.0, at_most=1.0, search=(0.5, 1.0)
    )
    negative_margin: float = hyper(
        default=0.6, help="negatives above it are pushed", at_least=-1.0, at_most=1.0, search=(0.0, 0.9)
    )
    calibration_weight: float = hyper(
        default=1.0, help="weight of the contrastive term", at_least=0.0, search=(0.1, 10.0), log=True
    )
    include_self: bool = option(default=False, kw_only=False, help="let the anchor be one of its positives")
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Cosine,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_offset(type(self).__name__, self.offset)

    def ranks_itself(self) -> bool:
        """As ``include_self`` says."""
        return self.include_self

    def declare(self) -> Declaration:
        """SupAP's term, and two over the pairs that violate a margin; an anchor's cosine with itself violates none."""
        pull, push = relu(self.positive_margin - s), relu(s - self.negative_margin)
        return _sup_ap(self), *(
            per_pair(side, self.calibration_weight * value, among=apply("nonzero", value))
            for side, value in ((POSITIVES, pull), (NEGATIVES, push))
        )


class RecallAtKLoss(PairLoss):
    r"""A differentiable recall at k, from the soft rank of each positive.

    $$1-\frac{1}{|K|}\sum_{k\in K}\frac{\min(k,\sum_{p\in P_i}\sigma((k-r_{ip})/\tau_k))}{\min(k,|P_i|)},\qquad
    r_{ip}=1+\sum_{j\ne p}\sigma((s_{ij}-s_{ip})/\tau)$$

    per anchor that has a positive; the sum in $r_{ip}$ runs over the ranked set.  A k larger than the batch is replaced by
    its number of anchors.  Patel et al. 2022.

    Args:
        ks: the numbers k of retrieved references.
        temperature: the temperature τ of the rank.
        k_temperature: the temperature $\tau_k$ of the step at k.
        include_self: leave the anchor in the ranked set, where it takes a rank and is not one of its positives.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> RecallAtKLoss(ks=(1,))(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.6155)
    """

    ks: Sequence[int] = option(default=(1, 2, 4, 8, 16), kw_only=False, help="the numbers of retrieved references")
    temperature: float = hyper(default=0.01, help="temperature of the rank", above=0.0, search=(0.001, 0.1), log=True)
    k_temperature: float = hyper(default=1.0, help="temperature at k", above=0.0, search=(0.1, 10.0), log=True)
    include_self: bool = option(default=False, kw_only=False, help="let the anchor take a rank")

    def __post_init__(self) -> None:
        super().__post_init__()
        name = f"{type(self).__name__}: ks"
        if isinstance(self.ks, str) or not isinstance(self.ks, Sequence) or not self.ks:
            raise ValueError(f"{name} must be one or several whole numbers, but it is {self.ks!r}")
        self.ks = tuple(whole_number(name, k, 1) for k in self.ks)

    def declare(self) -> Declaration:
        """For each k a sum over positives of the step of their rank at k."""
        step = sigmoid((s - s_p) / self.temperature)
        rank = 0.5 + add_up(step, POSITIVES) + add_up(step, NEGATIVES)  # a positive's step of itself is one half
        if self.include_self:
            rank = rank + sigmoid((ITSELF - s_p) / self.temperature)
        recalls = []
        for k in self.ks:
            limit = smaller(BATCH_SIZE, float(k))
            hits = add_up(sigmoid((limit - rank) / self.k_temperature), EACH_POSITIVE)
            recalls.append(smaller(hits, limit) / smaller(at_least(count(POSITIVES), 1), limit))
        return per_anchor(1.0 - sum(recalls[1:], recalls[0]) / len(recalls), needs=(POSITIVES,))


class PNPLoss(PairLoss):
    r"""PNP: a function of the soft number of negatives above each positive.

    $$\frac{1}{|P_i|}\sum_{p\in P_i}f(n_{ip}),\qquad n_{ip}=\sum_{j\in N_i}\sigma((s_{ij}-s_{ip})/\tau)$$

    per anchor that has another positive, with $f(n)=n$ (``"O"``), $\log(1+n)$ (``"Ds"``), $1-(1+n)^{-\alpha}$ (``"Dq"``),
    $(1+n)\log(1+n)$ (``"Iu"``), $(bn-\log(1+bn))/b^2$ (``"Ib"``).  Li et al. 2021.

    Args:
        variant: the function f.
        alpha: the exponent α of ``"Dq"``.
        b: the number b of ``"Ib"``.
        temperature: the temperature τ of the sigmoid.
        include_self: let the anchor be one of its positives, where it has another one.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> PNPLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.5000)
    """

    variant: str = option(default="O", kw_only=False, help="the function of the number of negatives")
    alpha: float = hyper(default=1.0, help="exponent of Dq", above=0.0, search=(0.25, 4.0), log=True)
    b: float = hyper(default=2.0, help="number of Ib", above=0.0, search=(0.5, 8.0), log=True)
    temperature: float = hyper(default=0.01, help="temperature of the step", above=0.0, search=(0.001, 0.1), log=True)
    include_self: bool = option(default=False, kw_only=False, help="let the anchor be one of its positives")

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(f"{type(self).__name__}: variant", self.variant, ("O", "Ds", "Dq", "Iu", "Ib"))

    def penalty(self, n: Formula) -> Formula:
        """The function f of the number of negatives above a positive."""
        if self.variant == "Dq":
            return 1.0 - (1.0 + n) ** -self.alpha
        if self.variant == "Ib":
            return (self.b * n - log(1.0 + self.b * n)) / (self.b * self.b)
        return {"O": n, "Ds": log(1.0 + n), "Iu": (1.0 + n) * log(1.0 + n)}[self.variant]

    def declare(self) -> Declaration:
        """The mean over positives, the anchor among them if it is included."""
        above = add_up(sigmoid((s - s_p) / self.temperature), NEGATIVES)
        if not self.include_self:
            return per_anchor(mean(self.penalty(above), EACH_POSITIVE), needs=(POSITIVES,))
        included, above_itself = ITSELF > -1.0, add_up(sigmoid((s - ITSELF) / self.temperature), NEGATIVES)
        total = add_up(self.penalty(above), EACH_POSITIVE) + where(included, self.penalty(above_itself), 0.0)
        return per_anchor(total / at_least(count(POSITIVES) + where(included, 1, 0), 1), needs=(POSITIVES,))


class NDCGLoss(PairLoss):
    r"""NDCG: one minus the normalized discounted cumulative gain, with a soft rank in the discount.

    $$1-\frac{1}{I_i}\sum_{p\in P_i}\frac{r_{ip}}{\log_2(1+\rho_{ip})},\qquad
    \rho_{ip}=1+\sum_{j\ne p}\sigma((s_{ij}-s_{ip})/\tau)$$

    per anchor that has a positive.  $r_{ip}\in[0,1]$ is the relevance that the relation gives: 1 for classes, the fraction of
    levels that agree for labels ``(n, L)``.  The sum over j runs over the ranked set, and
    $I_i=\sum_k r_{i(k)}/\log_2(1+k)$, with relevances in descending order, is the gain of the best ranking.  Qin et al. 2010
    (ApproxNDCG), with the relevance itself as the gain.

    Args:
        temperature: the temperature τ of the sigmoid.
        include_self: leave the anchor in the ranked set, as one of its positives with relevance 1.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> NDCGLoss()(embeddings, torch.tensor([[0, 0], [1, 0], [2, 1]]))
        tensor(0.1845)
    """

    temperature: float = hyper(default=0.01, help="temperature of the step", above=0.0, search=(0.001, 0.1), log=True)
    include_self: bool = option(default=False, kw_only=False, help="let the anchor be one of its positives")
    label_kind: ClassVar[LabelKind] = "levels"

    def ranks_itself(self) -> bool:
        """As ``include_self`` says."""
        return self.include_self

    def declare(self) -> Declaration:
        """A sum of discounted relevances over positives, divided by the largest possible one."""
        step = sigmoid((s - s_p) / self.temperature)
        rank = 0.5 + add_up(step, POSITIVES) + add_up(step, NEGATIVES)  # a positive's step of itself is one half
        gain = add_up(math.log(2.0) * relevance.at_positive / log(1.0 + rank), EACH_POSITIVE)
        return per_anchor(1.0 - gain / where(IDEAL_GAIN > 0.0, IDEAL_GAIN, 1.0), needs=(POSITIVES,))


# ------------------------------------------------------------------------------------------------ numbers per anchor


def _similarity_to_itself(batch: PairBatch) -> Tensor:
    """The similarity of each anchor to itself, `_NOWHERE` where it is not among the references."""
    relation = batch.relation.base if isinstance(batch.relation, Mined) else batch.relation
    rows, own = torch.arange(batch.shape[0], device=relation.device), None
    if isinstance(relation, LabelRelation):
        own = rows if relation.reference_labels is None else relation.own
    if own is None:
        return torch.full((batch.shape[0],), _NOWHERE, dtype=batch.dtype, device=relation.device)
    there, valid = own >= 0, getattr(relation, "valid", None)
    own = own.clamp_min(0)
    if valid is not None:
        there = there & valid[own]
    return torch.where(there, similarities_at(batch, rows, own), _NOWHERE)


def _count_anchors(batch: PairBatch) -> Tensor:
    """The number of anchors on all ranks, for each anchor."""
    size = torch.full((), float(batch.shape[0]), dtype=batch.dtype, device=batch.relation.device)
    return (size if batch.group is SINGLE_PROCESS else batch.group.total(size)).expand(batch.shape[0])


def _ideal_gain(batch: PairBatch) -> Tensor:
    """The discounted sum of each anchor's relevances in descending order."""
    relation, (m, n) = batch.relation, batch.shape
    index = torch.arange(max(m, n), device=relation.device)
    discount = 1.0 / torch.log2(index[:n].to(batch.dtype) + 2.0)
    sums = []
    for rows in plan_chunks(m, n, discount):
        relevances = relation.relevance(index[rows, None], index[None, :n], batch.dtype)
        sums.append(relevances.sort(dim=1, descending=True).values @ discount)
    return torch.cat(sums)


ITSELF = PerAnchor("itself", _similarity_to_itself)
BATCH_SIZE = PerAnchor("batch size", _count_anchors)
IDEAL_GAIN = PerAnchor("ideal gain", _ideal_gain)
