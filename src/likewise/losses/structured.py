"""Structured losses: positive pairs with the negatives of both members."""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from likewise.engines import call_recomputed, similarities_at
from likewise.formula import (
    NEGATIVES,
    OPERATIONS,
    ClassProducts,
    Cosine,
    Declaration,
    Dot,
    Euclidean,
    Labels,
    LogSumExp,
    MatrixLoss,
    PairBatch,
    PerAnchor,
    PositiveIndex,
    RowChunk,
    RowMapper,
    Similarity,
    Term,
    TermValues,
    count,
    hyper,
    logsumexp,
    map_values,
    multiply_pairs,
    per_anchor,
    s,
    softplus,
    take_rows,
)
from likewise.losses.base import PairLoss

LEAST_FEW = 16
"""The number of positives that are few in a batch of any size, so that their pairs are computed from an index."""


class AngularLoss(PairLoss):
    r"""Angular loss: penalizes large angles at the negative of each triplet's triangle.

    $$\log\Bigl(1+\sum_{n\in N_a}e^{4\tan^2\!\alpha\,(x_a+x_p)\cdot x_n-2(1+\tan^2\!\alpha)\,x_a\cdot x_p}\Bigr)$$

    per positive pair whose anchor has a negative, unit vectors throughout.  Wang et al. 2017.  The sum over negatives is
    one of $e^{c\,s_{an}}e^{c\,s_{pn}}$: a matrix product for all pairs, or for those of each class if all anchors have few
    positives.  With references and in kernels, each of few pairs is an anchor $x_a+x_p$.

    Args:
        alpha: the angle α in degrees; the paper uses 36 to 55.  Above 66 the product would leave float32's range.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> AngularLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(1.8399)
    """

    alpha: float = hyper(default=40.0, help="angle in degrees", above=0.0, at_most=66.0, search=(30.0, 60.0))
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Cosine,)

    def declare(self) -> Declaration:
        """Few positives: products within classes, or each pair is an anchor; many: one matrix product for all pairs."""
        return MatrixLoss(
            self._compute, evaluates_formulas=True, needs_positives=True, has_fixed_shapes=False, sums_in_classes=True
        )

    def only_from_embeddings(self) -> str | None:
        """Return the reason: positives are compared with negatives, and both are references."""
        return "it compares references with references"

    def _compute(self, batch: PairBatch, rows: RowMapper) -> list[TermValues]:
        positives = rows.positive_index()
        if positives is None:
            return map_values(rows, partial(self._of_rows, whole=batch))
        products = rows.multiply_classes(4.0 * self._squared_tangent, positives)
        return self._on_pairs(batch, rows, positives) if products is None else self._in_classes(products)

    @property
    def _squared_tangent(self) -> float:
        return math.tan(math.radians(self.alpha)) ** 2

    def _in_classes(self, products: ClassProducts) -> list[TermValues]:
        """The pairs of each class, which have the same negatives; a pair counts for both of its members."""
        missing = products.sums == 0.0  # where there is no pair or no negative; NaN counts
        logits = products.sums.masked_fill(missing, 1.0).log()
        logits = torch.sub(logits, products.similarities, alpha=2.0 * (1.0 + self._squared_tangent))
        value = OPERATIONS["softplus"].compute(logits).masked_fill(missing, 0.0)
        sums = products.add_both(torch.stack([value.double(), (~missing).double(), (value != 0).double()]))
        total, units, nonzero = sums.unbind()
        return [TermValues(total.to(value.dtype), units.long(), nonzero.long())]

    def _on_pairs(self, batch: PairBatch, rows: RowMapper, known: PositiveIndex) -> list[TermValues]:
        """The pairs as anchors: ``x_a + x_p`` against the negatives of a, one log-sum-exp for each pair."""
        relation, (left, right) = batch.relation, batch.both_factors()
        assert isinstance(relation, Labels)
        anchors, place = known.mask.nonzero(as_tuple=True)
        positives = known.index[anchors, place]
        ends, mutual = anchors[None], relation.reference_labels is None or batch.local_rows is not None
        if mutual:  # a pair and its reverse have the same negatives, so one of them is enough
            own = anchors if batch.local_rows is None else anchors + batch.local_rows.offset
            # alternate between the two members, which balances the work between the ranks that hold them
            once = (own < positives) == ((own + positives) % 2 == 0)
            anchors, positives = anchors[once], positives[once]
            ends = torch.stack([own[once], positives])
        references = relation.labels if relation.reference_labels is None else relation.reference_labels
        pairs = PairBatch(
            Labels(relation.labels[anchors], references, valid=relation.valid),
            Dot(),
            anchors=take_rows(left, anchors) + take_rows(right, positives),
            references=right,
        )
        near = similarities_at(batch, anchors, positives)
        tangent = self._squared_tangent
        pull = PerAnchor("s_ap", lambda _batch: near)
        value = softplus(logsumexp(4.0 * tangent * s, NEGATIVES) - 2.0 * (1.0 + tangent) * pull)
        values = rows.evaluate(per_anchor(value, needs=(NEGATIVES,)), pairs)
        assert values.units is not None

        counted = values.units.long()
        of_pairs = torch.stack([values.total.double(), counted, counted * (values.total != 0)], dim=1)
        by_anchor = of_pairs.new_zeros(batch.shape[1 if mutual else 0], 3)
        for end in ends:
            by_anchor = by_anchor.index_add(0, end, of_pairs)
        if batch.local_rows is not None:  # the other member may be on another rank
            by_anchor = batch.group.scatter(by_anchor, batch.local_rows)
        total, units, nonzero = by_anchor.unbind(dim=1)
        return [TermValues(total.to(values.total.dtype), units.long(), nonzero.long())]

    def _of_rows(self, chunk: RowChunk, whole: PairBatch) -> list[TermValues]:
        """The sums over negatives for all pairs of some anchors: one matrix product, positives in chunks."""
        S, (positive, negative) = chunk.similarities, chunk.masks()
        c = 4.0 * self._squared_tangent
        # cosines are at most 1, so e^(c (s − 1)) cannot overflow; the limit on alpha keeps the products from underflow
        exponentials = torch.exp(c * (S - 1.0))
        of_anchors = exponentials.masked_fill(~negative, 0.0)
        if chunk.rows != slice(0, whole.shape[0]):
            of_pairs = self._sum_in_chunks(of_anchors, c, chunk, whole)
        elif isinstance(whole.relation, Labels) and whole.relation.reference_labels is None:
            of_pairs = multiply_pairs(of_anchors, of_anchors)  # both members of a pair have the same negatives
        else:
            others = chunk.batch.similarities_among_references()
            of_pairs = multiply_pairs(of_anchors, exponentials if others is S else torch.exp(c * (others - 1.0)))
        keep = positive & negative.any(dim=1, keepdim=True)
        logits = of_pairs.masked_fill(~keep, 1.0).log() + 2.0 * c - 2.0 * (1.0 + self._squared_tangent) * S
        value = torch.where(keep, OPERATIONS["softplus"].compute(logits), 0.0)
        return [TermValues(value.sum(dim=1), keep.sum(dim=1), (value != 0).sum(dim=1))]

    @staticmethod
    def _sum_in_chunks(of_anchors: Tensor, c: float, chunk: RowChunk, whole: PairBatch) -> Tensor:
        similarity, (left, right) = whole.similarity, chunk.batch.both_factors()
        assert similarity is not None

        def some(of_anchors: Tensor, positives: Tensor) -> Tensor:
            return multiply_pairs(of_anchors, torch.exp(c * (similarity.of_factors(positives, right) - 1.0)))

        positives = torch.split(right, max(len(left), 1))
        return torch.cat([call_recomputed(some, of_anchors, each) for each in positives], dim=1)


class LiftedStructureLoss(PairLoss):
    r"""Lifted structure loss as first published: every positive pair against the negatives of both members.

    $$\tfrac12\Bigl[d_{ij}+\log\Bigl(\sum_{k\in N_i}e^{\lambda-d_{ik}}+\sum_{l\in N_j}e^{\lambda-d_{jl}}\Bigr)\Bigr]_+^2$$

    mean over positive pairs $i<j$, Euclidean distance of unit vectors.  Oh Song et al. 2016.  Under
    ``reduction="none"`` each member of a pair gets half of its value.

    Args:
        margin: the margin λ.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> LiftedStructureLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(1.5896)
    """

    margin: float = hyper(default=1.0, help="margin", at_least=0.0, search=(0.1, 2.0))
    similarity = "euclidean"
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Euclidean,)

    def declare(self) -> Declaration:
        """A pair needs two rows, so there are two phases: log-sum-exps of each anchor's negatives, then the pairs."""
        return MatrixLoss(self._compute, evaluates_formulas=True, needs_positives=True)

    def only_from_embeddings(self) -> str | None:
        """Return the reason: both members of a pair must be anchors."""
        return "it is defined on unordered pairs of one set and needs the negatives of both members"

    def _compute(self, batch: PairBatch, rows: RowMapper) -> list[TermValues]:
        positives = rows.positive_index(most=max(LEAST_FEW, batch.shape[1] // 64), small=False)
        if positives is None:
            return self._on_matrix(batch, rows)
        negatives = count(NEGATIVES)
        values = rows.evaluate(Term(logsumexp(self.margin + s, NEGATIVES), negatives, negatives), batch)
        assert values.units is not None
        pressure, has_negative = values.total, values.units > 0
        index = positives.index
        S = similarities_at(batch, None, index)
        joint = _log_add(pressure[:, None], batch.gather(pressure)[index])
        keep = positives.mask & (has_negative[:, None] | batch.gather(has_negative)[index])
        return [TermValues(*_sum_pairs(S, joint, keep))]

    def _on_matrix(self, batch: PairBatch, rows: RowMapper) -> list[TermValues]:
        """The same with masks, for many positives and for pairs that labels do not determine."""
        pressure, has_negative = rows.map(self._pressure)
        pressures, have_negatives = batch.gather(pressure), batch.gather(has_negative)
        # labels are symmetric; a mined relation is not, and its mask is transposed
        mirrored = None
        if not isinstance(batch.relation, Labels):
            [positive] = rows.map(lambda chunk: (chunk.masks()[0],))
            mirrored = _mirror(positive, batch)

        def pairs(chunk: RowChunk) -> tuple[Tensor, ...]:
            S, (positive, _), here = chunk.similarities, chunk.masks(), chunk.rows
            if mirrored is not None:
                positive = positive | mirrored[here]  # a pair is unordered
            joint = _log_add(pressure[here, None], pressures[None, :])
            return _sum_pairs(S, joint, positive & (has_negative[here, None] | have_negatives[None, :]))

        return [TermValues(*rows.map(pairs))]

    def _pressure(self, chunk: RowChunk) -> tuple[Tensor, ...]:
        """The logarithm of the sum over each anchor's negatives, and whether it has any."""
        _, negative = chunk.masks()
        fold = LogSumExp()
        return fold.finish(fold.start(self.margin + chunk.similarities, negative)), negative.any(dim=1)


def _sum_pairs(S: Tensor, joint: Tensor, keep: Tensor) -> tuple[Tensor, ...]:
    """The sum over each anchor's pairs, their number, and that of nonzero ones; every unordered pair is there twice."""
    value = torch.where(keep, 0.5 * torch.relu(joint - S).square(), 0.0)
    return value.sum(dim=1) / 2.0, keep.sum(dim=1) / 2.0, (value != 0).sum(dim=1) / 2.0


def _log_add(left: Tensor, right: Tensor) -> Tensor:
    """``log(eˡ + eʳ)``; the second derivative of `torch.logaddexp` is NaN where the two are far apart."""
    peak = torch.maximum(left, right).detach()
    return ((left - peak).exp() + (right - peak).exp()).log() + peak


def _mirror(positive: Tensor, batch: PairBatch) -> Tensor:
    """The transposed mask."""
    if batch.local_rows is None:
        return positive.T
    return batch.gather(positive)[:, batch.local_rows.local].T
