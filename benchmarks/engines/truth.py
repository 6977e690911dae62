"""What a timed call should have computed: each loss once more, from its formula, in float64 and plain torch.

Nothing here shares a line with the package.  A formula maps a stretch of rows of the similarity matrix to its parts:
for each anchor the sum over its units, and how many units it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

Parts = list[tuple[Tensor, Tensor]]
Formula = Callable[[Tensor, Tensor, Tensor], Parts]
"""Similarities, positives and negatives, all ``(rows, references)``, to parts."""

PANEL = 2**27
"""Entries of a stretch of rows; a GiB in float64."""


class Batch(NamedTuple):
    """Anchors against references; ``None``: against themselves, nobody is its own positive."""

    anchors: Tensor
    labels: Tensor
    references: Tensor | None = None
    reference_labels: Tensor | None = None

    def panel(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Similarities and masks of some rows."""
        references = self.anchors if self.references is None else self.references
        labels = self.labels if self.reference_labels is None else self.reference_labels
        S = F.normalize(self.anchors[rows].double()) @ F.normalize(references.double()).T
        same = self.labels[rows, None] == labels[None, :]
        positive = same.clone()
        if self.references is None:
            positive[torch.arange(len(rows), device=rows.device), rows] = False
        return S, positive, ~same


def whole(name: str, batch: Batch) -> float:
    """The loss of the batch."""
    n = len(batch.anchors if batch.references is None else batch.references)
    everyone = torch.arange(len(batch.anchors), device=batch.anchors.device)
    totals: list[tuple[float, float]] = []
    for rows in everyone.split(max(1, PANEL // n)):
        parts = FORMULAS[name](*batch.panel(rows))
        sums = [(float(value.sum()), float(units.sum())) for value, units in parts]
        totals = [(a + c, b + d) for (a, b), (c, d) in zip(totals, sums, strict=True)] if totals else sums
    return sum(value / max(units, 1.0) for value, units in totals)


def some(name: str, batch: Batch, rows: Tensor) -> Tensor:
    """The value of some anchors, the sum over their units."""
    return torch.stack([value for value, _ in FORMULAS[name](*batch.panel(rows))]).sum(dim=0)


def gradients(name: str, batch: Batch) -> list[Tensor]:
    """The gradient of the loss for the anchors and, where there are any, the references; in one piece."""
    leaves = [x.detach().double().requires_grad_() for x in (batch.anchors, batch.references) if x is not None]
    own = Batch(leaves[0], batch.labels, leaves[1] if len(leaves) > 1 else None, batch.reference_labels)
    parts = FORMULAS[name](*own.panel(torch.arange(len(batch.anchors), device=batch.anchors.device)))
    total = torch.stack([value.sum() / units.sum().clamp_min(1) for value, units in parts]).sum()
    return list(torch.autograd.grad(total, leaves))


def gradient_of_some(name: str, batch: Batch, rows: Tensor) -> Tensor:
    """The gradient of the mean over anchors, each of which is one unit, for some of them; references stand still."""
    leaf = batch.anchors[rows].detach().double().requires_grad_()
    few = Batch(leaf, batch.labels[rows], batch.references, batch.reference_labels)
    ((value, _),) = FORMULAS[name](*few.panel(torch.arange(len(rows), device=rows.device)))
    return torch.autograd.grad(value.sum() / len(batch.anchors), leaf)[0]


# ------------------------------------------------------------------------------------------------ formulas


def _lse(values: Tensor, keep: Tensor) -> Tensor:
    return values.masked_fill(~keep, -1e30).logsumexp(dim=1)


def _sum(values: Tensor, keep: Tensor) -> Tensor:
    return values.masked_fill(~keep, 0.0).sum(dim=1)


def _each(values: Tensor) -> Parts:
    return [(values, torch.ones_like(values))]


def _active(values: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    kept = values.masked_fill(~keep, 0.0)
    return kept.sum(dim=1), (kept > 0.0).sum(dim=1)


def multi_similarity(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    attraction = F.softplus(_lse(-2.0 * (S - 0.5), positive)) / 2.0
    return _each(attraction + F.softplus(_lse(50.0 * (S - 0.5), negative)) / 50.0)


def multi_similarity_mined(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    with torch.no_grad():
        hardest_negative = S.masked_fill(~negative, -torch.inf).amax(dim=1, keepdim=True)
        hardest_positive = S.masked_fill(~positive, torch.inf).amin(dim=1, keepdim=True)
        gap_above, gap_below = hardest_negative - S, S - hardest_positive
    return multi_similarity(S, positive & (gap_above > -0.1), negative & (gap_below > -0.1))


def circle(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    pull = _lse(-80.0 * (1.4 - S).clamp_min(0.0).detach() * (S - 0.6), positive)
    push = _lse(80.0 * (S + 0.4).clamp_min(0.0).detach() * (S - 0.4), negative)
    return _each(F.softplus(pull + push))


def nt_xent(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    logits = S / 0.07
    return [(_sum(F.softplus(_lse(logits, negative)[:, None] - logits), positive), positive.sum(dim=1))]


def contrastive(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    return [_active((1.0 - S).clamp_min(0.0), positive), _active((S - 0.5).clamp_min(0.0), negative)]


def generalized_lifted(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    return _each((_lse(0.5 - S, positive) + _lse(S, negative)).clamp_min(0.0))


def binomial(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    attraction = _sum(F.softplus(2.0 * (0.5 - S)), positive) / positive.sum(dim=1).clamp_min(1)
    return _each(attraction + _sum(F.softplus(50.0 * (S - 0.5)), negative) / negative.sum(dim=1).clamp_min(1))


def _triplets(S: Tensor, positive: Tensor, negative: Tensor, margin: float, semi_hard: bool) -> Parts:
    """One positive of each anchor at a time, the first, the second, …"""
    value, units = S.new_zeros(len(S)), S.new_zeros(len(S))
    order = positive.long().cumsum(dim=1)
    for place in range(1, int(order.max()) + 1):
        chosen = positive & (order == place)
        s_p = _sum(S, chosen)[:, None]
        keep = negative & chosen.any(dim=1, keepdim=True)
        if semi_hard:
            keep = keep & (s_p - S > 0.0) & (s_p - S < margin)
        of_place = _active((S - s_p + margin).clamp_min(0.0), keep)
        value, units = value + of_place[0], units + of_place[1]
    return [(value, units)]


def all_triplets(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    return _triplets(S, positive, negative, 0.1, semi_hard=False)


def semi_hard(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    return _triplets(S, positive, negative, 0.1, semi_hard=True)


def normalized_softmax(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    return _each(F.softplus(_lse(S / 0.05, negative) - _sum(S / 0.05, positive)))


def arc_face(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    margin = math.radians(28.6)
    own = _sum(S, positive)
    turned = torch.cos(torch.arccos(own.clamp(-1.0, 1.0)) + margin)
    own = torch.where(own < -math.cos(margin), own - margin * math.sin(margin), turned)
    return _each(F.softplus(_lse(64.0 * S, negative) - 64.0 * own))


def proxy_anchor(S: Tensor, positive: Tensor, negative: Tensor) -> Parts:
    pull = F.softplus(_lse(-32.0 * (S - 0.1), positive))
    return [(pull, positive.any(dim=1)), *_each(F.softplus(_lse(32.0 * (S + 0.1), negative)))]


FORMULAS: dict[str, Formula] = {
    "Multi-similarity": multi_similarity,
    "Multi-similarity + miner": multi_similarity_mined,
    "Circle": circle,
    "NT-Xent": nt_xent,
    "Contrastive": contrastive,
    "Generalized lifted": generalized_lifted,
    "Binomial deviance": binomial,
    "Triplet, all": all_triplets,
    "Triplet, semi-hard": semi_hard,
    "Normalized softmax": normalized_softmax,
    "ArcFace": arc_face,
    "Proxy-Anchor": proxy_anchor,
}
"""With the hyper-parameters of `pairings.PAIRINGS` and `pairings.HEADS`."""
