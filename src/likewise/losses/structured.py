"""Losses on positive pairs in the light of the negatives of both their members."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from likewise.engines import PositiveIndex, dense_masks, find_positive_index, in_panels, in_rows, run, similarities_at
from likewise.formula import (
    NEGATIVES,
    OPERATIONS,
    Cosine,
    Declaration,
    Dot,
    Euclidean,
    FromProblem,
    Labels,
    LogSumExp,
    MatrixLoss,
    PairBatch,
    PerAnchor,
    Similarity,
    SimilarityLike,
    TermValues,
    hyper,
    logsumexp,
    option,
    per_anchor,
    s,
    softplus,
)
from likewise.losses.base import PairLoss


class AngularLoss(PairLoss):
    r"""Angular loss: the angle at the negative of every triangle shall be small.

    $$\log\Bigl(1+\sum_{n\in N_a}e^{4\tan^2\!\alpha\,(x_a+x_p)\cdot x_n-2(1+\tan^2\!\alpha)\,x_a\cdot x_p}\Bigr)$$

    per positive pair whose anchor has a negative, unit vectors throughout.  Wang et al. 2017.  Where no anchor has
    many positives, each pair is an anchor $x_a+x_p$ of its own; with many, the sum over negatives of
    $e^{c\,s_{an}}e^{c\,s_{pn}}$ is one matrix product for all pairs.

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
        """Few positives: each pair is an anchor of its own; many: one matrix product for all pairs."""
        return FromProblem(self._pairwise)

    def only_from_embeddings(self) -> str | None:
        """Positives meet negatives, and both are references."""
        return "it compares references with references"

    def _pairwise(self, batch: PairBatch, engine: str) -> Declaration:
        slots = find_positive_index(batch, engine)
        if slots is None:
            return MatrixLoss(self._compute if engine == "dense" else self._of_panel, streams="by rows")
        return MatrixLoss(partial(self._on_pairs, slots=slots, engine=engine), "itself")

    def _on_pairs(self, batch: PairBatch, slots: PositiveIndex, engine: str) -> list[TermValues]:
        """The pairs as anchors: ``x_a + x_p`` against the negatives of a, one log-sum-exp for each pair."""
        relation, (left, right) = batch.relation, batch.factors()
        assert isinstance(relation, Labels)
        anchors, place = slots.exists.nonzero(as_tuple=True)
        positives = slots.index[anchors, place]
        ends, mutual = anchors[None], relation.reference_labels is None or batch.local_rows is not None
        if mutual:  # a pair and its mirror image have the same negatives: once is enough
            own = anchors if batch.local_rows is None else anchors + batch.local_rows.offset
            # at either end by turns, so that processes which share the ends share the work
            once = (own < positives) == ((own + positives) % 2 == 0)
            anchors, positives = anchors[once], positives[once]
            ends = torch.stack([own[once], positives])
        references = relation.labels if relation.reference_labels is None else relation.reference_labels
        pairs = PairBatch(
            Labels(relation.labels[anchors], references, valid=relation.valid),
            Dot(),
            anchors=left.index_select(0, anchors) + right.index_select(0, positives),
            references=right,
        )
        near = similarities_at(batch, anchors, positives)
        tangent = math.tan(math.radians(self.alpha)) ** 2
        pull = PerAnchor("s_ap", lambda _problem: near)
        value = softplus(logsumexp(4.0 * tangent * s, NEGATIVES) - 2.0 * (1.0 + tangent) * pull)
        part = per_anchor(value, needs=(NEGATIVES,))
        # a batch without a positive pair leaves nothing to an engine
        values = run([part], pairs, "mean", engine if len(anchors) else "dense")[0]
        assert values.units is not None

        counted = values.units.long()
        of_pairs = torch.stack([values.total.double(), counted, counted * (values.total != 0)], dim=1)
        by_anchor = of_pairs.new_zeros(batch.shape[1 if mutual else 0], 3)
        for end in ends:
            by_anchor = by_anchor.index_add(0, end, of_pairs)
        if batch.local_rows is not None:  # the other end may be another process's
            by_anchor = batch.group.scatter(by_anchor, batch.local_rows)
        total, units, nonzero = by_anchor.unbind(dim=1)
        return [TermValues(total.to(values.total.dtype), units.long(), nonzero.long())]

    def _compute(self, batch: PairBatch) -> list[TermValues]:
        between = batch.among_references()
        return self._of_sums(batch, lambda of_anchor, c: of_anchor @ torch.exp(c * (between - 1.0)).T)

    def _of_panel(self, batch: PairBatch) -> list[TermValues]:
        """The same without similarities of all references: some positives at a time, made again in the backward pass."""
        similarity, (left, right) = batch.similarity, batch.factors()
        assert similarity is not None

        def sums(of_anchor: Tensor, c: float) -> Tensor:
            def some(of_anchor: Tensor, positives: Tensor) -> Tensor:
                return of_anchor @ torch.exp(c * (similarity.of_factors(positives, right) - 1.0)).T

            return torch.cat(
                [
                    checkpoint(some, of_anchor, rows, use_reentrant=False, preserve_rng_state=False)
                    for rows in torch.split(right, max(len(left), 1))
                ],
                dim=1,
            )

        return self._of_sums(batch, sums)

    def _of_sums(self, batch: PairBatch, sums: Callable[[Tensor, float], Tensor]) -> list[TermValues]:
        S, (positive, negative) = batch.similarities(), dense_masks(batch)
        tangent = math.tan(math.radians(self.alpha)) ** 2
        c = 4.0 * tangent
        # cosines end at 1, so e^(c (s − 1)) cannot overflow; the limit on alpha keeps the products from vanishing
        of_pairs = sums(torch.exp(c * (S - 1.0)).masked_fill(~negative, 0.0), c)
        keep = positive & negative.any(dim=1, keepdim=True)
        logits = of_pairs.masked_fill(~keep, 1.0).log() + 2.0 * c - 2.0 * (1.0 + tangent) * S
        value = torch.where(keep, OPERATIONS["softplus"].compute(logits), 0.0)
        return [TermValues(value.sum(dim=1), keep.sum(dim=1), (value != 0).sum(dim=1))]


class LiftedStructureLoss(PairLoss):
    r"""Lifted structure loss as first published: every positive pair against the negatives of both its ends.

    $$\tfrac12\Bigl[d_{ij}+\log\Bigl(\sum_{k\in N_i}e^{\lambda-d_{ik}}+\sum_{l\in N_j}e^{\lambda-d_{jl}}\Bigr)\Bigr]_+^2$$

    mean over positive pairs $i<j$, Euclidean distance of unit vectors.  Oh Song et al. 2016.  Under
    ``reduction="none"`` half of a pair's value goes to either end.

    Args:
        margin: the margin λ.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> LiftedStructureLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(1.5896)
    """

    margin: float = hyper(default=1.0, help="margin", at_least=0.0, search=(0.1, 2.0))
    similarity: SimilarityLike = option(
        default="euclidean", kw_only=True, help="how two embeddings are compared; higher is closer"
    )
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Euclidean,)

    def declare(self) -> Declaration:
        """A pair looks at both its rows, so there are two passes: what presses on each, then the pairs."""
        return FromProblem(self._in_two_passes)

    def only_from_embeddings(self) -> str | None:
        """Both members of a pair must be anchors."""
        return "it is defined on unordered pairs of one set, where both members have negatives of their own"

    def _in_two_passes(self, batch: PairBatch, engine: str) -> Declaration:
        # who is positive from the other end is in another row: labels say it, a mined relation does not
        mutual = isinstance(batch.relation, Labels)
        compute = partial(self._compute, engine=engine if mutual else "dense")
        return MatrixLoss(compute, "itself" if mutual else "not")

    def _compute(self, batch: PairBatch, engine: str) -> list[TermValues]:
        pressure, has_negative = in_rows(batch, self._pressure, engine)
        pressures, have_negatives = batch.gather(pressure), batch.gather(has_negative)

        def pairs(batch: PairBatch, rows: slice) -> tuple[Tensor, ...]:
            S, (positive, _) = batch.similarities(), dense_masks(batch)
            if not isinstance(batch.relation, Labels):
                positive = positive | _mirrored(positive, batch)  # a pair is unordered, however it was named
            joint = torch.logaddexp(pressure[rows, None], pressures[None, :])
            keep = positive & (has_negative[rows, None] | have_negatives[None, :])
            value = torch.where(keep, 0.5 * torch.relu(joint - S).square(), 0.0)
            # every unordered pair stands in the matrix twice
            return value.sum(dim=1) / 2.0, keep.sum(dim=1) / 2.0, (value != 0).sum(dim=1) / 2.0

        if engine == "dense":
            return [TermValues(*pairs(batch, slice(None)))]
        return [TermValues(*in_panels(batch, pairs))]

    def _pressure(self, batch: PairBatch) -> tuple[Tensor, ...]:
        """The logarithm of what each anchor's negatives add up to, and whether it has any."""
        _, negative = dense_masks(batch)
        fold = LogSumExp()
        pressure = fold.finish(fold.start(self.margin + batch.similarities(), negative))
        # far below any distance, yet finite: the logarithm of two empty sums has no slope
        return pressure.clamp_min(-1e6), negative.any(dim=1)


def _mirrored(positive: Tensor, batch: PairBatch) -> Tensor:
    """The same pairs named from their other end."""
    if batch.local_rows is None:
        return positive.T
    return batch.gather(positive)[:, batch.local_rows.own].T
