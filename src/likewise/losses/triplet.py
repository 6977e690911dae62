"""Losses on triplets and quadruplets, without ever writing one down: ranks and counts in place of B³ terms."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.engines import FEW, dense_masks, find_positive_index
from likewise.formula import (
    NEGATIVES,
    OPERATIONS,
    POSITIVES,
    Declaration,
    Euclidean,
    Formula,
    FromProblem,
    MatrixLoss,
    PairBatch,
    PerAnchor,
    Reduction,
    Regularizer,
    Similarity,
    SimilarityLike,
    Term,
    TermValues,
    Triplets,
    add_up,
    class_values,
    count,
    hyper,
    option,
    relu,
    s,
    softplus,
)
from likewise.losses.all_quadruplets import all_quadruplets
from likewise.losses.all_triplets import (
    all_triplets,
    as_formulas,
    by_positive,
    part_of_choices,
    positives_as_formulas,
    similarities_of,
    sum_by_anchor,
)
from likewise.losses.base import PairLoss
from likewise.miners import Choice, TripletMiner


class TripletLoss(PairLoss):
    r"""Triplet loss over all triplets of the batch, or over those that a miner chooses.

    $$[s_{an}-s_{ap}+\lambda]_+\qquad\text{or, soft,}\qquad\log\bigl(1+e^{s_{an}-s_{ap}+\lambda}\bigr)$$

    mean over the triplets that are not zero (``reduction="nonzero"``).  Schroff et al. 2015, Hoffer & Ailon 2015; Eq. 7
    of the unified view, Eq. 2.17 of the thesis; soft: Hermans et al. 2017.

    All triplets are summed exactly without being written down.  Where no anchor has many positives, each of them is a
    threshold for the anchor's negatives, a formula that every engine runs.  With many, sorting each row says how many
    active triplets every pair is in, and the loss is linear in the pairs with these counts, $O(B^2\log B)$.  The soft loss
    has no such shortcut: it takes one pass for each positive.  On a GPU the number of positives is asked of large batches
    alone; small ones never wait.

    A miner that is a rule (`likewise.miners.SemiHardMiner`, `BatchHardMiner`, `EasyPositiveMiner`) is summed in the same
    way on large batches; of several pairs at exactly the chosen similarity each then gets its share of the gradient,
    where a named triplet gives all of it to one of them.

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
    takes_triplets: ClassVar[bool] = True

    def declare(self) -> Declaration:
        """Few positives: a formula for each of them; many: counts from sorted rows."""
        return FromProblem(self._every)

    def declare_on_triplets(self) -> Declaration:
        """One term for every triplet that was chosen."""
        return FromProblem(lambda pair_batch, engine: MatrixLoss(partial(self._given, engine=engine), "itself"))

    def declare_choices(self, miner: TripletMiner, pair_batch: PairBatch, engine: str) -> Declaration | None:
        """What a miner's rule chooses, where it can be summed without being written down."""
        if engine == "dense" and miner.band is None:
            return None
        choices = miner.choices(lambda: positives_as_formulas(pair_batch, engine))
        if choices is not None:
            return part_of_choices(choices, self._terms)
        return None if miner.band is None else MatrixLoss(partial(self._all, band=miner.band), "by rows")

    def _terms(self, positive: Formula, negative: Formula) -> list[Formula]:
        violation = negative - (positive - self.margin)
        return [softplus(violation) if self.soft else relu(violation)]

    def _every(self, pair_batch: PairBatch, engine: str) -> Declaration:
        positives = positives_as_formulas(pair_batch, engine)
        if positives is None:
            return MatrixLoss(self._all, "by rows")
        return part_of_choices([Choice(positive, s) for positive in positives], self._terms)

    def _all(self, pair_batch: PairBatch, band: float | None = None) -> list[TermValues]:
        S, (positive, negative) = pair_batch.similarities(), dense_masks(pair_batch)
        if not self.soft:
            return [all_triplets(S, positive, negative, self.margin, band)]

        def terms(S: Tensor, to_positive: Tensor, _index: Tensor) -> tuple[list[Tensor], Tensor | None]:
            value = OPERATIONS["softplus"].compute(S - to_positive + self.margin)
            return [value], None if band is None else (to_positive - band < S) & (to_positive > S)

        return [by_positive(S, positive, negative, terms)]

    def _given(self, pair_batch: PairBatch, engine: str) -> list[TermValues]:
        triplets = pair_batch.relation
        assert isinstance(triplets, Triplets)
        to_positive, to_negative = similarities_of(pair_batch, triplets, engine)
        value = OPERATIONS["softplus" if self.soft else "relu"].compute(to_negative - to_positive + self.margin)
        return [TermValues(*sum_by_anchor(value, triplets, pair_batch.shape[0]))]


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
    takes_triplets: ClassVar[bool] = True
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

    def _boundary(self, pair_batch: PairBatch) -> Tensor:
        """One β per anchor."""
        assert isinstance(self.beta, Tensor)
        beta = self.beta.to(pair_batch.dtype)
        return beta.expand(pair_batch.shape[0]) if self.num_classes is None else class_values(beta, pair_batch, "beta")

    def _penalty(self) -> tuple[Regularizer, ...]:
        assert isinstance(self.beta, Tensor)
        return (Regularizer(self.nu * self.beta.mean()),) if self.nu > 0.0 else ()

    def declare(self) -> Declaration:
        """A pair is in as many triplets as its anchor has partners on the other side: products of counts."""
        beta = PerAnchor("beta", self._boundary)
        pull, push = relu(self.margin - s - beta), relu(self.margin + beta + s)  # the distance is -s
        positives, negatives = count(POSITIVES), count(NEGATIVES)
        total = negatives * add_up(pull, POSITIVES) + positives * add_up(push, NEGATIVES)
        nonzero = negatives * count(POSITIVES, pull > 0.0) + positives * count(NEGATIVES, push > 0.0)
        return (Term(total, 2 * positives * negatives, nonzero), *self._penalty())

    def declare_on_triplets(self) -> Declaration:
        """Both terms of every triplet that was chosen."""
        given = FromProblem(lambda pair_batch, engine: MatrixLoss(partial(self._given, engine=engine), "itself"))
        return (given, *self._penalty())

    def declare_choices(self, miner: TripletMiner, pair_batch: PairBatch, engine: str) -> Declaration | None:
        """What a miner's rule chooses, where it can be summed without being written down."""
        if engine == "dense" and miner.band is None:
            return None
        choices = miner.choices(lambda: positives_as_formulas(pair_batch, engine))
        if choices is not None:
            beta = PerAnchor("beta", self._boundary)
            terms = part_of_choices(choices, lambda p, n: [relu(self.margin - p - beta), relu(self.margin + beta + n)])
            return (terms, *self._penalty())
        if miner.band is None:
            return None
        return (MatrixLoss(partial(self._in_band, band=miner.band), "by rows"), *self._penalty())

    def _in_band(self, pair_batch: PairBatch, band: float) -> list[TermValues]:
        S, (positive, negative) = pair_batch.similarities(), dense_masks(pair_batch)
        beta = self._boundary(pair_batch)[:, None, None]

        def terms(S: Tensor, to_positive: Tensor, _index: Tensor) -> tuple[list[Tensor], Tensor | None]:
            pull, push = torch.relu(self.margin - to_positive - beta), torch.relu(self.margin + beta + S)
            inside = (to_positive - band < S) & (to_positive > S)
            return [pull.expand_as(inside), push.expand_as(inside)], inside

        return [by_positive(S, positive, negative, terms)]

    def _given(self, pair_batch: PairBatch, engine: str) -> list[TermValues]:
        triplets = pair_batch.relation
        assert isinstance(triplets, Triplets)
        to_positive, to_negative = similarities_of(pair_batch, triplets, engine)
        beta = self._boundary(pair_batch)[triplets.anchors]
        pull, push = torch.relu(self.margin - to_positive - beta), torch.relu(self.margin + beta + to_negative)
        # one part: positive and negative terms are units of the same average
        pulls, pushes = (sum_by_anchor(terms, triplets, pair_batch.shape[0]) for terms in (pull, push))
        return [TermValues(*(a + b for a, b in zip(pulls, pushes, strict=True)))]


class QuadrupletLoss(PairLoss):
    r"""Quadruplet loss: a triplet loss, and positive pairs against negative pairs of other classes.

    $$\mathrm{mean}\,[s_{an}-s_{ap}+\lambda_1]_+ + \mathrm{mean}\,[s_{nk}-s_{ap}+\lambda_2]_+$$

    over all triplets, and over all $(a,p,n,k)$ whose classes of $a$, $n$ and $k$ are all different; each mean over the
    terms that are not zero.  Chen et al. 2017, in similarity form.  All quadruplets are summed exactly: each negative pair
    finds its place among the sorted positive pairs, $O(B^2\log B)$ in place of $O(B^4)$.

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
        """All triplets, and positive pairs among the negative pairs of other anchors."""
        return FromProblem(self._every)

    def declare_on_triplets(self) -> Declaration:
        """Triplets name no second negative."""
        raise TypeError(
            "QuadrupletLoss is defined on all quadruplets of a batch and takes no triplets and no triplet miner"
        )

    def only_from_embeddings(self) -> str | None:
        """Similarities of a set with itself are needed, and the classes of all three."""
        return "it compares pairs of different anchors and needs everyone's label"

    def _every(self, pair_batch: PairBatch, engine: str) -> Declaration:
        if pair_batch.labels is None:
            raise TypeError("QuadrupletLoss needs labels, because three classes must differ; it takes no relation")
        slots = find_positive_index(pair_batch, engine, most=pair_batch.shape[1])
        if slots is None:
            compute = partial(all_quadruplets, margin=self.margin2, slots=None, engine="dense")
            return (
                MatrixLoss(self._triplets, "by rows"),
                MatrixLoss(lambda pair_batch: [compute(pair_batch)]),
            )
        compute = partial(all_quadruplets, margin=self.margin2, slots=slots, engine=engine)
        quadruplets = MatrixLoss(lambda pair_batch: [compute(pair_batch)], "itself")
        if slots.index.shape[1] > FEW[-1]:
            return MatrixLoss(self._triplets, "by rows"), quadruplets
        triplets = [Choice(positive, s) for positive in as_formulas(slots, pair_batch, engine)]
        hinges = part_of_choices(triplets, lambda positive, negative: [relu(negative - (positive - self.margin1))])
        return hinges, quadruplets

    def _triplets(self, pair_batch: PairBatch) -> list[TermValues]:
        return [all_triplets(pair_batch.similarities(), *dense_masks(pair_batch), self.margin1)]
