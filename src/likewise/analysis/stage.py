"""Stages: a real or typical batch, and the response of a loss to changes of its matrix.

A `likewise.formula.similarity_hook` replaces the similarity matrix of a loss.  One entry can thus change while all others
are fixed, which no change of embeddings could do, and a batch can be defined by the distribution of its cosines.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from likewise.analysis.weights import (
    Loss,
    before_mining,
    check_matrices,
    gradients,
    name_of,
    on_dense_engine,
    preserve_state,
)
from likewise.formula import (
    SNR,
    Cosine,
    PairBatch,
    Similarity,
    batch_from_embeddings,
    embeddings_of,
    full_precision,
    labels_of,
    similarity_hook,
    unit,
    whole_number,
)
from likewise.losses import Between, ProxyLoss


@dataclass(frozen=True)
class Typical:
    """The cosines of a batch's positive or negative pairs, as two numbers.

    Args:
        mean: their mean.
        deviation: their standard deviation.

    Examples:
        >>> Typical(0.5, 0.25).at(torch.tensor([0.5]))
        tensor([0.5000])
    """

    mean: float
    deviation: float

    def at(self, shares: Tensor) -> Tensor:
        """The quantiles of a normal distribution of cosines at these fractions."""
        cosines: Tensor = self.mean + self.deviation * torch.special.ndtri(shares)
        return cosines.clamp(-0.99, 0.99)


POSITIVES = Typical(0.5, 0.25)
NEGATIVES = Typical(0.0, 0.25)
"""The cosines of a linear discriminant on unseen printed characters (docs/lens.md)."""


@dataclass(frozen=True, eq=False)
class Stage:
    """The input of a loss: embeddings and labels, and optionally cosines that replace those of the embeddings.

    Examples:
        >>> real_stage(torch.eye(2), torch.tensor([0, 1])).design is None
        True
    """

    embeddings: Tensor
    labels: Tensor
    design: tuple[Typical, Typical] | None = None


def real_stage(embeddings: Tensor, labels: Tensor | None) -> Stage:
    """The stage of a real batch.

    Examples:
        >>> len(real_stage(torch.eye(2), torch.tensor([0, 1])).labels)
        2
    """
    checked = embeddings_of("embeddings", embeddings).detach()
    if labels is None:
        raise TypeError("labels must be given together with embeddings, but they are None")
    return Stage(checked, labels_of("labels", labels, len(checked), checked.device, "embeddings"))


def typical_stage(loss: Loss, positives: Typical, negatives: Typical, classes: int, per_class: int) -> Stage:
    """A stage that is defined by the distribution of its cosines; its embeddings are not used.

    Examples:
        >>> typical_stage(lambda s, labels: s.sum(), POSITIVES, NEGATIVES, 3, 2).labels.tolist()
        [0, 0, 1, 1, 2, 2]
    """
    whole_number("classes", classes, 2)
    whole_number("per_class", per_class, 2)
    modules = loss.modules() if isinstance(loss, nn.Module) else ()
    owners = [module for module in modules if isinstance(module, ProxyLoss)]
    for owner in owners:
        if owner.num_classes < classes:
            raise ValueError(
                f"classes must be at most {owner.num_classes}, those of {type(owner).__name__}, but it is {classes}"
            )
    labels = torch.arange(classes).repeat_interleave(per_class)
    generator = torch.Generator().manual_seed(0)
    dimension = owners[0].embedding_dim if owners else 16
    directions = torch.randn(len(labels), dimension, generator=generator, dtype=torch.float64)
    return Stage(unit(directions), labels, (positives, negatives))


@dataclass(frozen=True, eq=False)
class Observation:
    """The matrix of a loss, samples in rows, and the derivatives by its entries.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> stage = real_stage(torch.eye(3), torch.tensor([0, 0, 1]))
        >>> show(NTXentLoss(), stage, lambda cosines: cosines).between
        'samples against samples'
    """

    values: Tensor
    derivatives: Tensor
    positive: Tensor
    negative: Tensor
    between: str

    @property
    def weights(self) -> Tensor:
        """``(1 − 2 I) ∂L/∂value``."""
        return torch.where(self.positive, -self.derivatives, self.derivatives)


def show(loss: Loss, stage: Stage, change: Callable[[Tensor], Tensor], *, cosines: bool = True) -> Observation:
    """Run a loss on a changed matrix and return its derivatives by the changed values.

    Args:
        loss: the loss.
        stage: the batch.
        change: maps the matrix, samples in rows, to the one that the loss uses.
        cosines: change cosines, from which the loss's similarities follow; otherwise change its similarities.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> stage = real_stage(torch.eye(3), torch.tensor([0, 0, 1]))
        >>> float(show(NTXentLoss(), stage, lambda cosines: cosines + 0.1).values[0, 1])
        0.10000000149011612
    """
    seen: list[tuple[PairBatch, Tensor]] = []

    def see(batch: PairBatch, matrix: Tensor) -> Tensor:
        if batch.between == Between.PROXIES_PROXIES.value:
            return matrix
        own, of_own = (
            _link_cosines(batch, stage) if cosines else (_similarities_of(batch, matrix, stage), lambda values: values)
        )
        leaf = change(_samples_in_rows(batch, own)).detach().clone().requires_grad_()
        seen.append((batch, leaf))
        return of_own(_samples_in_rows(batch, leaf))

    with (
        torch.enable_grad(),
        preserve_state(loss, stage.embeddings),
        similarity_hook(see),
        on_dense_engine(loss),
        full_precision(stage.embeddings),
    ):
        value = _value(loss, stage)
    return _sum_derivatives(value, seen, name_of(loss))


def _value(loss: Loss, stage: Stage) -> Tensor:
    if isinstance(loss, nn.Module):
        result: Tensor = loss(stage.embeddings, stage.labels)
        return result
    batch = batch_from_embeddings(stage.embeddings, stage.labels, None, None, None, Cosine())
    return loss(batch.similarities(), stage.labels)


@torch.enable_grad()
def _sum_derivatives(value: Tensor, seen: list[tuple[PairBatch, Tensor]], name: str) -> Observation:
    """The derivatives by the matrix of a loss, summed if it computed the same matrix several times."""
    check_matrices(seen, name)
    if len({leaf.shape for _, leaf in seen}) > 1:
        kinds = ", ".join(batch.between for batch, _ in seen)
        raise ValueError(f"{name} reads {len(seen)} different matrices ({kinds}); analyze its terms one by one")
    leaves = [leaf for _, leaf in seen]
    derivatives = torch.stack(gradients(value.sum(), leaves)).sum(dim=0)
    batch, leaf = seen[0]
    positive, negative = (_samples_in_rows(batch, mask) for mask in before_mining(batch.relation).masks())
    between = Between.SAMPLES_PROXIES.value if batch.between == Between.PROXIES_SAMPLES.value else batch.between
    return Observation(leaf.detach(), derivatives, positive, negative, between)


def _samples_in_rows(batch: PairBatch, matrix: Tensor) -> Tensor:
    """Transpose a matrix whose anchors are proxies, so that samples are in rows; or transpose it back."""
    return matrix.T if batch.between == Between.PROXIES_SAMPLES.value else matrix


def _similarities_of(batch: PairBatch, matrix: Tensor, stage: Stage) -> Tensor:
    """The loss's similarities: of the real batch, or computed from the typical cosines."""
    if stage.design is None:
        return matrix.detach()
    cosines, of_cosines = _link_cosines(batch, stage)
    return of_cosines(cosines)


def _link_cosines(batch: PairBatch, stage: Stage) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The cosines of a batch, and the function from cosines to its similarities.

    A similarity is a function of inner products and squared norms.  For unit vectors the product is the cosine, shifted by
    a number if a common mean was subtracted; for other vectors the lengths are factors.
    """
    similarity = batch.similarity
    assert similarity is not None
    if stage.design is not None:
        cosines = _design_cosines(batch, stage.design).to(batch.dtype)
        one = torch.ones(1, 1, dtype=cosines.dtype, device=cosines.device)
        return cosines, lambda values: similarity.link(values, one, one)
    with torch.no_grad():
        left, right = batch.both_factors()
        products = left @ right.T
        squares = similarity.squares(left)[:, None], similarity.squares(right)[None, :]
        assert batch.anchors is not None
        anchors = batch.anchors
        references = anchors if batch.references is None else batch.references
        cosines = unit(anchors) @ unit(references).T
        # the vectors whose angles these are; SNR centers them afterwards
        prepare = (
            functools.partial(Similarity.prepare, similarity) if isinstance(similarity, SNR) else similarity.prepare
        )
        scale = prepare(anchors).norm(dim=1)[:, None] * prepare(references).norm(dim=1)[None, :]
    return cosines, lambda values: similarity.link(products + scale * (values - cosines), *squares)


def _design_cosines(batch: PairBatch, design: tuple[Typical, Typical]) -> Tensor:
    """A matrix of typical cosines.

    The multiples of the golden ratio modulo one are evenly distributed for any number of them, so every row and every
    column contains the whole distribution.
    """
    golden = (5.0**0.5 - 1.0) / 2.0
    positive, negative = before_mining(batch.relation).masks()
    square = batch.references is None
    made = torch.eye(*positive.shape, dtype=torch.float64)
    # different offsets, so that a positive and a negative do not differ by a round number, as margins do
    for mask, group, first in zip((positive, negative), design, (0.0, 0.3), strict=True):
        place = (mask.triu() if square else mask).cpu()
        shares = ((torch.arange(int(place.sum()), dtype=torch.float64) + 0.5) * golden + first) % 1.0
        made[place] = group.at(shares)
    made = made.triu() + made.triu(1).T if square else made
    return made.to(positive.device)
