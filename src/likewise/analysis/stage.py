"""A batch on which a loss is looked at, real or typical, and what the loss does when its matrix is changed.

A loss asks for its similarity matrix; what it gets is ours (`likewise.formula.similarity_hook`).  So one entry can be moved
while all others stay, which no set of embeddings could do, and a batch can be given by the distribution of its cosines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from likewise.analysis.weights import Loss, before_mining, gradients, name_of, on_dense_engine, untouched
from likewise.formula import (
    Cosine,
    PairBatch,
    batch_from_embeddings,
    embeddings_of,
    full_precision,
    labels_of,
    similarity_hook,
    unit,
    whole_number,
)
from likewise.losses import ProxyLoss


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
        """The cosines below which these shares of pairs lie, if they are spread normally."""
        cosines: Tensor = self.mean + self.deviation * torch.special.ndtri(shares)
        return cosines.clamp(-0.99, 0.99)


POSITIVES = Typical(0.5, 0.25)
NEGATIVES = Typical(0.0, 0.25)
"""What a linear discriminant finds between printed characters that it never saw (docs/lens.md); change them at will."""


@dataclass(frozen=True, eq=False)
class Stage:
    """What a loss is shown: embeddings and labels, and cosines in place of the embeddings' own where that is wanted.

    Examples:
        >>> real(torch.eye(2), torch.tensor([0, 1])).design is None
        True
    """

    embeddings: Tensor
    labels: Tensor
    design: tuple[Typical, Typical] | None = None


def real(embeddings: Tensor, labels: Tensor | None) -> Stage:
    """A batch that somebody has.

    Examples:
        >>> len(real(torch.eye(2), torch.tensor([0, 1])).labels)
        2
    """
    checked = embeddings_of("embeddings", embeddings).detach()
    if labels is None:
        raise TypeError("labels must be given together with embeddings")
    return Stage(checked, labels_of("labels", labels, len(checked), checked.device, "embeddings"))


def typical(loss: Loss, positives: Typical, negatives: Typical, classes: int, per_class: int) -> Stage:
    """A batch of which only the distribution of cosines is known; nobody looks at its embeddings.

    Examples:
        >>> typical(lambda s, labels: s.sum(), POSITIVES, NEGATIVES, 3, 2).labels.tolist()
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
class Shown:
    """One look at a loss: what stood in its matrix, samples in rows, and how it pulls there.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> stage = real(torch.eye(3), torch.tensor([0, 0, 1]))
        >>> show(NTXentLoss(), stage, lambda cosines: cosines).between
        'samples against samples'
    """

    values: Tensor
    slopes: Tensor
    positive: Tensor
    negative: Tensor
    between: str

    @property
    def weights(self) -> Tensor:
        """``(1 − 2 I) ∂L/∂value``."""
        return torch.where(self.positive, -self.slopes, self.slopes)


def show(loss: Loss, stage: Stage, change: Callable[[Tensor], Tensor], *, cosines: bool = True) -> Shown:
    """Run a loss on a matrix that was changed: its slopes in the changed values.

    Args:
        loss: the loss.
        stage: the batch.
        change: maps the matrix, samples in rows, to the one that the loss shall see.
        cosines: change cosines, whatever the loss makes of them; else its own similarities.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> stage = real(torch.eye(3), torch.tensor([0, 0, 1]))
        >>> float(show(NTXentLoss(), stage, lambda cosines: cosines + 0.1).values[0, 1])
        0.10000000149011612
    """
    seen: list[tuple[PairBatch, Tensor]] = []

    def see(batch: PairBatch, matrix: Tensor) -> Tensor:
        if batch.between == "proxies against proxies":
            return matrix
        own, of_own = _linked(batch, stage) if cosines else (_own(batch, matrix, stage), lambda values: values)
        leaf = change(_turned(batch, own)).detach().clone().requires_grad_()
        seen.append((batch, leaf))
        return of_own(_turned(batch, leaf))

    with (
        torch.enable_grad(),
        untouched(loss, stage.embeddings),
        similarity_hook(see),
        on_dense_engine(loss),
        full_precision(stage.embeddings),
    ):
        value = _value(loss, stage)
    return _summed(value, seen, name_of(loss))


def _value(loss: Loss, stage: Stage) -> Tensor:
    if isinstance(loss, nn.Module):
        result: Tensor = loss(stage.embeddings, stage.labels)
        return result
    batch = batch_from_embeddings(stage.embeddings, stage.labels, None, None, None, Cosine())
    return loss(batch.similarities(), stage.labels)


@torch.enable_grad()
def _summed(value: Tensor, seen: list[tuple[PairBatch, Tensor]], name: str) -> Shown:
    """The slopes in what a loss saw, added where it made the same matrix several times."""
    if not seen:
        raise ValueError(
            f"{name} made no similarity matrix of samples that could be watched, so that there is no pair to weigh; "
            "give a loss of the library, or a function of a similarity matrix and labels"
        )
    if len({leaf.shape for _, leaf in seen}) > 1:
        kinds = ", ".join(batch.between for batch, _ in seen)
        raise ValueError(f"{name} looks at {len(seen)} different matrices ({kinds}); look at its parts one by one")
    leaves = [leaf for _, leaf in seen]
    slopes = torch.stack(gradients(value.sum(), leaves)).sum(dim=0)
    batch, leaf = seen[0]
    positive, negative = (_turned(batch, mask) for mask in before_mining(batch.relation).masks())
    between = "samples against proxies" if batch.between == "proxies against samples" else batch.between
    return Shown(leaf.detach(), slopes, positive, negative, between)


def _turned(batch: PairBatch, matrix: Tensor) -> Tensor:
    """Samples in rows, whoever is the anchor; and back again."""
    return matrix.T if batch.between == "proxies against samples" else matrix


def _own(batch: PairBatch, matrix: Tensor, stage: Stage) -> Tensor:
    """The loss's own similarities: of the real batch, or those that belong to the typical cosines."""
    if stage.design is None:
        return matrix.detach()
    cosines, of_cosines = _linked(batch, stage)
    return of_cosines(cosines)


def _linked(batch: PairBatch, stage: Stage) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The cosines of a batch, and what its similarity makes of others in their place.

    A similarity is a function of inner products and squared norms.  Of unit vectors the product is the cosine, or shifted
    from it by a number where a common mean was taken off; other vectors have their lengths as a factor.
    """
    similarity = batch.similarity
    assert similarity is not None
    if stage.design is not None:
        cosines = _designed(batch, stage.design).to(batch.dtype)
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
        lengths = anchors.norm(dim=1)[:, None] * references.norm(dim=1)[None, :]
        scale = torch.ones_like(cosines) if similarity.normalize else lengths
    return cosines, lambda values: similarity.link(products + scale * (values - cosines), *squares)


def _designed(batch: PairBatch, design: tuple[Typical, Typical]) -> Tensor:
    """A matrix of typical cosines.

    The multiples of the golden ratio, taken modulo one, are spread evenly however many one takes: so every row and every
    column has the whole distribution in it.
    """
    golden = (5.0**0.5 - 1.0) / 2.0
    positive, negative = before_mining(batch.relation).masks()
    square = batch.references is None
    made = torch.eye(*positive.shape, dtype=torch.float64)
    # from two places of the circle, lest a positive and a negative differ by a round number, as margins are
    for mask, group, first in zip((positive, negative), design, (0.0, 0.3), strict=True):
        place = (mask.triu() if square else mask).cpu()
        shares = ((torch.arange(int(place.sum()), dtype=torch.float64) + 0.5) * golden + first) % 1.0
        made[place] = group.at(shares)
    made = made.triu() + made.triu(1).T if square else made
    return made.to(positive.device)
