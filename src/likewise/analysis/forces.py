"""Forces: the direction in which a loss moves each embedding, by pairs (figures 2, 3 and 9 of the overview).

The force on an embedding is its negative gradient.  Through the similarity matrix it is a sum over pairs, so it splits
into contributions of positive and of negative pairs; and at each point into a radial component along the embedding,
which only changes its length, and a tangential component, which rotates it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from likewise.analysis.weights import Loss, as_leaf, before_mining, gradients, preserve_state, record_matrices
from likewise.formula import embeddings_of, unit, whole_number
from likewise.losses import ProxyLoss


@dataclass(frozen=True, eq=False)
class Forces:
    """The force on each embedding and its components: ``whole = attraction + repulsion + rest``.

    Args:
        embeddings: the embeddings, ``(m, d)``.
        attraction: the contribution of positive pairs, ``(m, d)``; it attracts if their weights are not negative.
        repulsion: the contribution of negative pairs, ``(m, d)``.
        rest: the contribution that does not come from pairs: an embedding's similarity with itself, its length.

    Examples:
        >>> from likewise.losses import TripletLoss
        >>> x = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]], dtype=torch.float64)
        >>> found = forces(TripletLoss(), x, torch.tensor([0, 0, 1]))
        >>> found.attraction[1], found.repulsion[2]
        (tensor([ 0.3600, -0.4800], dtype=torch.float64), tensor([-0.2240,  0.1680], dtype=torch.float64))
    """

    embeddings: Tensor
    attraction: Tensor
    repulsion: Tensor
    rest: Tensor

    @property
    def whole(self) -> Tensor:
        """Minus the gradient, ``(m, d)``."""
        return self.attraction + self.repulsion + self.rest

    def radial(self, part: Tensor | None = None) -> Tensor:
        """The radial component of a force (by default the whole), along the embeddings."""
        force = self.whole if part is None else part
        outward = unit(self.embeddings)
        return outward * (outward * force).sum(dim=1, keepdim=True)

    def tangential(self, part: Tensor | None = None) -> Tensor:
        """The tangential component of a force (by default the whole), which rotates the embeddings."""
        force = self.whole if part is None else part
        return force - self.radial(force)


@torch.enable_grad()
def forces(loss: Loss, embeddings: Tensor, labels: Tensor | None = None) -> Forces:
    """Compute the forces of a loss on a batch.

    Args:
        loss: a loss of the library, a wrapper, or a function of a similarity matrix and labels.
        embeddings: the batch, ``(m, d)``.
        labels: their labels.

    Returns:
        A `Forces` with the contributions of positive and negative pairs.

    Examples:
        >>> from likewise.losses import ContrastiveLoss
        >>> x = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
        >>> forces(ContrastiveLoss(), x, torch.tensor([0, 0])).tangential()
        tensor([[ 0.0000,  0.8000],
                [ 0.6400, -0.4800]], dtype=torch.float64)
    """
    leaf = as_leaf(embeddings)
    with preserve_state(loss, leaf):
        value, seen = record_matrices(loss, leaf, labels)
    matrices = [matrix for _, matrix in seen]
    gradient, *derivatives = gradients(value.sum(), [leaf, *matrices])
    masks = [before_mining(batch.relation).masks() for batch, _ in seen]
    pulls, pushes = (
        gradients(matrices, [leaf], [each * mask[side] for each, mask in zip(derivatives, masks, strict=True)])[0]
        for side in (0, 1)
    )
    return Forces(leaf.detach(), -pulls, -pushes, pulls + pushes - gradient)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The trajectory of points on a circle or a sphere under gradient descent.

    Args:
        positions: their positions, unit vectors, ``(steps + 1, m, d)``.
        proxies: the positions of the proxies, ``(steps + 1, p, d)``; ``None`` for a loss without proxies.
        values: the loss at each step, ``(steps + 1,)``.
        labels: the points' labels, ``(m,)``.
        proxy_labels: the proxies' labels, ``(p,)``.

    Examples:
        >>> from likewise.losses import ContrastiveLoss
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
        >>> rolled = roll(ContrastiveLoss(), x, torch.tensor([0, 0]), steps=20, rate=0.1)
        >>> bool(rolled.values[-1] < rolled.values[0])
        True
    """

    positions: Tensor
    proxies: Tensor | None
    values: Tensor
    labels: Tensor
    proxy_labels: Tensor | None = None


def roll(loss: Loss, embeddings: Tensor, labels: Tensor, steps: int = 100, rate: float = 0.05) -> Trajectory:
    """Minimize a loss over a batch, and its proxies, by gradient descent on the unit sphere.

    Args:
        loss: a loss of the library, a wrapper, or a function of a similarity matrix and labels; a copy of it is trained.
        embeddings: the initial points; they are scaled to unit length before the first step and after each.
        labels: their labels.
        steps: the number of steps.
        rate: the learning rate.

    Returns:
        A `Trajectory` with the positions and the loss at every step.

    Examples:
        >>> from likewise.losses import ProxyAnchorLoss
        >>> x = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        >>> roll(ProxyAnchorLoss(2, 3), x, torch.tensor([0, 0, 0, 1, 1, 1]), steps=2).proxies.shape
        torch.Size([3, 2, 3])
    """
    whole_number("steps", steps, 0)
    if not rate > 0.0:
        raise ValueError(f"rate must be a number > 0, but it is {rate!r}")
    points = unit(embeddings_of("embeddings", embeddings).detach())
    loss = copy.deepcopy(loss).to(points.dtype) if isinstance(loss, nn.Module) else loss
    learned = list(loss.parameters()) if isinstance(loss, nn.Module) else []
    owners = [
        module for module in (loss.modules() if isinstance(loss, nn.Module) else ()) if isinstance(module, ProxyLoss)
    ]
    places, values, of_proxies = [points], [], [_stack_proxies(owners)]
    for _ in range(steps):
        value, gradient, derivatives = _descent(loss, points, labels, learned)
        values.append(value)
        points = unit(points - rate * gradient)
        with torch.no_grad():
            for parameter, step in zip(learned, derivatives, strict=True):
                parameter.sub_(rate * step)
        places.append(points)
        of_proxies.append(_stack_proxies(owners))
    values.append(_descent(loss, points, labels, learned)[0])
    if not owners:
        return Trajectory(torch.stack(places), None, torch.stack(values), labels)
    classes = torch.cat([torch.arange(len(each.proxies)) // each.proxies_per_class for each in owners])
    return Trajectory(torch.stack(places), torch.stack(of_proxies), torch.stack(values), labels, classes)


@torch.enable_grad()
def _descent(
    loss: Loss, points: Tensor, labels: Tensor, learned: list[nn.Parameter]
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The value of a loss, its gradient by the points, and by its parameters."""
    leaf = as_leaf(points)
    value, _ = record_matrices(loss, leaf, labels)
    gradient, *derivatives = gradients(value.sum(), [leaf, *learned])
    return value.detach().sum(), gradient, derivatives


def _stack_proxies(owners: list[ProxyLoss]) -> Tensor:
    """The proxies of all losses that have some, scaled to unit length."""
    return torch.cat([unit(each.proxies.detach()) for each in owners]) if owners else torch.empty(0)
