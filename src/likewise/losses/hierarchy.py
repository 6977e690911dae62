"""Losses on hierarchies: labels of shape ``(n, L)``, column 0 the finest level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from likewise.engines import plan_chunks
from likewise.formula import (
    BOTH,
    EACH_POSITIVE,
    NEGATIVES,
    POSITIVES,
    Declaration,
    Labels,
    Levels,
    Mined,
    PairBatch,
    PerPair,
    Term,
    add_up,
    at_least,
    can_read_values,
    find_levels,
    hyper,
    logsumexp,
    option,
    per_anchor,
    relevance,
    s,
    s_p,
    softplus,
    where,
)
from likewise.losses.base import LabelKind, PairLoss, finite_number
from likewise.losses.proxy_base import ProxyLoss, cross_entropy
from likewise.losses.proxy_batches import Between
from likewise.losses.soft_rank import check_offset, is_below, smaller, upper_bound_step


class _Gains(NamedTuple):
    """The gain of each level of each anchor, ``(m, L + 1)``, and the hierarchy; ``None``: classes."""

    table: Tensor
    levels: Levels | None
    batch: PairBatch


def _prepare_gains(batch: PairBatch, alpha: float) -> _Gains:
    """Return ``(l / L)^alpha``, divided by the number of the anchor's positives that share l levels with it."""
    levels = find_levels(batch.relation)
    if levels is None and batch.relation.is_graded:
        raise TypeError(
            "relation must be Levels, a hierarchy, for a loss on hierarchical average precision, but it is "
            f"{type(batch.relation).__name__}"
        )
    counts = _count_positives_by_level(batch)
    level = torch.arange(counts.shape[1], device=counts.device).to(batch.dtype)
    return _Gains((level / (counts.shape[1] - 1)) ** alpha * (level > 0) / counts.clamp_min(1), levels, batch)


def _count_positives_by_level(batch: PairBatch) -> Tensor:
    """Count the positives that share 0, 1, …, L levels with each anchor, ``(m, L + 1)``; classes have one level."""
    relation, (m, n) = batch.relation.base if isinstance(batch.relation, Mined) else batch.relation, batch.shape
    levels, index = find_levels(relation), torch.arange(max(m, n), device=relation.device)
    counts = []
    for rows in plan_chunks(m, n, index):
        positive = relation.masks(rows)[0]
        if levels is None:
            by_level = [torch.zeros_like(positive), positive]
        else:
            agreements = levels.count_agreements(index[rows, None], index[None, :n])
            by_level = [positive & (agreements == level) for level in range(levels.labels.shape[1] + 1)]
        counts.append(torch.stack([each.sum(dim=1) for each in by_level], dim=1))
    return torch.cat(counts)


def _gain_at(gains: _Gains, rows: Tensor, columns: Tensor) -> Tensor:
    if gains.levels is None:
        relevances = gains.batch.relation.relevance(rows, columns, gains.table.dtype)
        return relevances * gains.table[:, 1][rows]
    return gains.table[rows, gains.levels.count_agreements(rows, columns).long()]


def _hierarchical_ap(loss: Any) -> Term:
    """Return the term of `HAPLoss`; the step of a positive with itself is one, which counts it in both ranks."""
    difference, gain = s - s_p, PerPair("gain", _gain_at, loss.prepare_gains)
    step = upper_bound_step(difference, loss.temperature, loss.rho, loss.delta, loss.offset, loss.start)
    below = is_below(difference)
    less_relevant = relevance < relevance.at_positive
    among_positives = add_up(where(less_relevant, step, where(below, 0.0, 1.0)), POSITIVES)
    rank = at_least(among_positives + add_up(step, NEGATIVES), 1.0)
    graded = add_up(where(below, 0.0, smaller(gain, gain.at_positive)), POSITIVES)
    total = add_up(gain, POSITIVES)
    value = 1.0 - add_up(graded / rank, EACH_POSITIVE) / where(total > 0.0, total, 1.0)
    return per_anchor(value, needs=(POSITIVES,))


class HAPLoss(PairLoss):
    r"""Hierarchical average precision: one minus H-AP, in which a mistake costs less if more levels are correct.

    $$1-\frac{\sum_p \mathrm{hrank}_p/\mathrm{rank}_p}{\sum_p \mathrm{rel}_p},\quad
    \mathrm{rel}_{ij}=\frac{(l_{ij}/L)^\alpha}{|\{k:l_{ik}=l_{ij}\}|},\quad
    \mathrm{hrank}_p=\mathrm{rel}_p+\sum_{j\ne p}\min(\mathrm{rel}_j,\mathrm{rel}_p)\,[d_{pj}\ge0]$$

    $$\mathrm{rank}_p=1+\sum_{j:\,l_{ij}<l_{ip}}H(d_{pj})+\sum_{j\ne p:\,l_{ij}\ge l_{ip}}[d_{pj}\ge0]$$

    per anchor; sums over p run over the references that share a level with it, $l_{ip}>0$ of L levels, sums over j over
    its ranked set, and $d_{pj}=s_{ij}-s_{ip}$.  H is the step of `likewise.losses.SupAPLoss`; the steps have no
    gradient. Ramzi et al. 2022 (HAPPIER).

    Args:
        temperature: the temperature τ of the sigmoid in H.
        rho: the slope ρ of the line in H.
        delta: where the line begins, δ.
        offset: the value at which it begins; ``None``: the continuous one.
        start: what a less relevant reference above the positive costs at least, minus one half.
        alpha: the exponent α of the relevance of a level.
        include_self: leave the anchor in the ranked set, where it agrees with itself on all levels.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> HAPLoss()(embeddings, torch.tensor([[0, 0], [1, 0], [0, 0]]))
        tensor(0.4154)
    """

    temperature: float = hyper(default=0.01, help="temperature of the step", above=0.0, search=(0.001, 0.1), log=True)
    rho: float = hyper(default=100.0, help="slope for large errors", at_least=0.0, search=(1.0, 1000.0), log=True)
    delta: float = hyper(default=0.05, help="where the line begins", at_least=0.0, search=(0.01, 0.2))
    offset: float | None = option(default=1.44, kw_only=False, help="the value at which the line begins")
    start: float = hyper(default=0.5, help="cost of an error, minus one half", at_least=0.0, search=(0.0, 1.0))
    alpha: float = hyper(default=1.0, help="exponent of the relevance of a level", above=0.0, search=(0.25, 4.0))
    include_self: bool = option(default=False, kw_only=False, help="let the anchor be one of its positives")
    label_kind: ClassVar[LabelKind] = "levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_offset(type(self).__name__, self.offset)

    def ranks_itself(self) -> bool:
        """As ``include_self`` says."""
        return self.include_self

    def prepare_gains(self, batch: PairBatch) -> _Gains:
        """The relevance of each level, by anchor."""
        return _prepare_gains(batch, self.alpha)

    def declare(self) -> Declaration:
        """A ratio of two ranks, summed over positives."""
        return _hierarchical_ap(self)


class HAPPIERLoss(ProxyLoss):
    r"""HAPPIER: hierarchical average precision, and a softmax on the finest level that clusters the classes.

    $$(1-\lambda)\,L_\mathrm{HAP}+\lambda\,L_\mathrm{softmax}$$

    with $L_\mathrm{HAP}$ of `HAPLoss` and $L_\mathrm{softmax}$ of `NormalizedSoftmaxLoss` on label column 0.  Ramzi et al. 2022.

    Args:
        weight: the weight λ of the softmax.
        cluster_temperature: the temperature of the softmax.
        temperature: the temperature τ of the sigmoid in H.
        rho: the slope ρ of the line in H.
        delta: where the line begins, δ.
        offset: the value at which it begins; ``None``: the continuous one.
        start: what a less relevant reference above the positive costs at least, minus one half.
        alpha: the exponent α of the relevance of a level.
        include_self: leave the anchor in the ranked set, where it agrees with itself on all levels.

    Examples:
        >>> import torch
        >>> embeddings, labels = torch.randn(4, 3), torch.tensor([[0, 0], [0, 0], [1, 0], [2, 1]])
        >>> HAPPIERLoss(num_classes=3, embedding_dim=3)(embeddings, labels).shape
        torch.Size([])
    """

    weight: float = hyper(default=0.1, help="weight of the softmax", at_least=0.0, at_most=1.0, search=(0.0, 1.0))
    cluster_temperature: float = hyper(
        default=0.05, help="temperature of the softmax", above=0.0, search=(0.01, 1.0), log=True
    )
    temperature: float = hyper(default=0.01, help="temperature of the step", above=0.0, search=(0.001, 0.1), log=True)
    rho: float = hyper(default=100.0, help="slope for large errors", at_least=0.0, search=(1.0, 1000.0), log=True)
    delta: float = hyper(default=0.05, help="where the line begins", at_least=0.0, search=(0.01, 0.2))
    offset: float | None = option(default=1.44, kw_only=False, help="the value at which the line begins")
    start: float = hyper(default=0.5, help="cost of an error, minus one half", at_least=0.0, search=(0.0, 1.0))
    alpha: float = hyper(default=1.0, help="exponent of the relevance of a level", above=0.0, search=(0.25, 4.0))
    include_self: bool = option(default=False, kw_only=False, help="let the anchor be one of its positives")
    label_kind: ClassVar[LabelKind] = "levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_offset(type(self).__name__, self.offset)

    def ranks_itself(self) -> bool:
        """As ``include_self`` says."""
        return self.include_self

    def prepare_gains(self, batch: PairBatch) -> _Gains:
        """The relevance of each level, by anchor."""
        return _prepare_gains(batch, self.alpha)

    def declare(self) -> dict[Between, Declaration]:
        """One term on the samples, and one on samples and proxies."""
        logit = s / self.cluster_temperature
        return {
            Between.SAMPLES_SAMPLES: _weigh(1.0 - self.weight, _hierarchical_ap(self)),
            Between.SAMPLES_PROXIES: _weigh(self.weight, cross_entropy(logit, logit)),
        }


def _weigh(weight: float, term: Term) -> Term:
    """A term times a number."""
    assert term.value is not None
    return Term(weight * term.total, term.units, term.nonzero, value=weight * term.value)


_LOWEST = -1e30
"""Replaces a logit that a log-sum-exp excludes."""


class CSLLoss(ProxyLoss):
    r"""CSL: pulls a sample closer to its class than to classes of other groups, by a margin on each level.

    $$\sum_l\log\Big(1+\sum_{k:\,h_{kl}\ne y_l}e^{\gamma s_k}\sum_{k:\,h_{k0}=y_0}e^{-\gamma s_k}\,e^{\gamma m_l}\Big)$$

    per sample, with the cosines $s_k$ to the proxies of all classes k, and $h_{kl}$ the label of class k on level l.  Sun et al.
    2021 (Dynamic Metric Learning), in the form that HAPPIER's authors compare with.

    Args:
        hierarchy: the labels of each class on every level, ``(num_classes, L)``; column 0 is the class.
        margins: the margin of each level, as cosines.
        scale: the scale γ of the cosines.

    Examples:
        >>> import torch
        >>> hierarchy = torch.tensor([[0, 0], [1, 0], [2, 1]])
        >>> loss = CSLLoss(3, 4, hierarchy, margins=(0.25, 0.35))
        >>> loss(torch.randn(5, 4), hierarchy[[0, 1, 2, 2, 0]]).shape
        torch.Size([])
    """

    hierarchy: Tensor
    margins: Sequence[float] = option(default=(0.25, 0.35, 0.45), kw_only=False, help="margin of each level")
    scale: float = hyper(default=32.0, help="scale of the cosines", above=0.0, search=(1.0, 100.0), log=True)
    label_kind: ClassVar[LabelKind] = "levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        hierarchy = Levels.check_rows(f"{name}: hierarchy", vars(self).pop("hierarchy"))
        if len(hierarchy) != self.num_classes:
            raise ValueError(f"{name}: hierarchy must have {self.num_classes} rows, but it has {len(hierarchy)}")
        classes = torch.arange(self.num_classes, device=hierarchy.device)
        if can_read_values(hierarchy) and not bool((hierarchy[:, 0] == classes).all()):
            raise ValueError(f"{name}: hierarchy must have the classes 0, 1, … in column 0, but it has others")
        if not isinstance(self.margins, Sequence) or len(self.margins) != hierarchy.shape[1]:
            raise ValueError(
                f"{name}: margins must have one number for each of the {hierarchy.shape[1]} levels of hierarchy, but it "
                f"is {self.margins!r}"
            )
        self.margins = tuple(finite_number(f"{name}: margins", each, None) for each in self.margins)
        self.register_buffer("hierarchy", hierarchy)

    def check_batch(self, embeddings: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor]:
        """Check samples and the number of levels; labels ``(n,)`` are expanded to the levels of their classes."""
        samples, checked = super().check_batch(embeddings, labels)
        if checked.ndim == 2 and checked.shape[1] != len(self.margins):
            raise ValueError(
                f"labels must have shape (n, {len(self.margins)}), one column for each level of hierarchy, but the shape is "
                f"{tuple(checked.shape)}"
            )
        return samples, checked

    def differ(self, level: int) -> PerPair:
        """Return a mask of whether a proxy's class and the sample are in different groups on a level."""
        return PerPair(f"differs on level {level}", _Differ(self.hierarchy[:, level], level))

    def declare(self) -> dict[Between, Declaration]:
        """For each level a softplus of two log-sum-exps."""
        logit, total = self.scale * s, None
        own = logsumexp(-logit, POSITIVES)
        for level, margin in enumerate(self.margins):
            others = (
                logsumexp(where(self.differ(level) > 0.5, logit, _LOWEST), BOTH)
                if level
                else logsumexp(logit, NEGATIVES)
            )
            value = softplus(others + own + self.scale * margin)
            total = value if total is None else total + value
        assert total is not None
        return {Between.SAMPLES_PROXIES: per_anchor(total, needs=(POSITIVES,))}


class _Differ:
    """Returns whether the groups of a sample and of a proxy's class differ on one level, as a function of indices."""

    def __init__(self, groups: Tensor, level: int) -> None:
        self.groups, self.level = groups, level

    def __call__(self, batch: PairBatch, rows: Tensor, columns: Tensor) -> Tensor:
        assert isinstance(batch.relation, Labels)
        assert batch.relation.reference_labels is not None
        assert batch.labels is not None
        groups, labels = self.groups.to(batch.labels.device), batch.labels
        own = labels[:, self.level] if labels.ndim == 2 else groups[labels]
        return own[rows] != groups[batch.relation.reference_labels[columns]]
