"""A search for negative weights: positive pairs that are pushed apart, negative ones that are pulled together."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from likewise.analysis.batches import CLOSE, TIGHT, Batch, random_batches, sizes_for
from likewise.analysis.weights import Loss, Weighed, weigh
from likewise.formula import whole_number

ROUNDING = 1e-9
"""The smallest magnitude of a negative weight relative to the batch's largest weight; smaller ones may be rounding."""


@dataclass(frozen=True, eq=False)
class NegativeWeight:
    """A pair whose weight is negative: a positive one that is pushed apart, or a negative one that is pulled together.

    Args:
        between: what is compared, in words.
        kind: ``"positive"`` or ``"negative"``.
        pair: the indices of anchor and reference.
        similarity: their similarity.
        weight: the weight.
        largest: the largest absolute weight of the batch.
        batch: the batch.

    Examples:
        >>> import torch
        >>> from likewise.losses import SupConLoss
        >>> print(negative_weights(SupConLoss()))
        a positive pair of similarity ... weighs -..., and the heaviest pair of that batch ...
    """

    between: str
    kind: str
    pair: tuple[int, int]
    similarity: float
    weight: float
    largest: float
    batch: Batch

    def __str__(self) -> str:
        return (
            f"a {self.kind} pair of similarity {self.similarity:.3f} weighs {self.weight:.3g}, "
            f"and the heaviest pair of that batch {self.largest:.3g}"
        )


def negative_weights(loss: Loss, *, batches: int = 200, seed: int = 0) -> NegativeWeight | None:
    """Search random batches, loose and tight, for a pair with a negative weight.

    The theorem of the unified view assumes ``w ≥ 0``, which holds for many losses but not for all.  A search can refute it
    for a loss; a search without a result does not prove it.

    Args:
        loss: a loss of the library, a wrapper around one, or a function of a matrix of cosines and labels.  The proxies of
            a copy are drawn for every batch.
        batches: the largest number of batches.
        seed: the seed of the random batches.

    Returns:
        The first pair with a negative weight, or ``None``.

    Examples:
        >>> from likewise.losses import MultiSimilarityLoss
        >>> negative_weights(MultiSimilarityLoss(), batches=50) is None
        True
    """
    classes, dim = sizes_for(loss)
    generator = torch.Generator().manual_seed(seed)
    loss = copy.deepcopy(loss).double() if isinstance(loss, nn.Module) else loss
    for batch in random_batches(whole_number("batches", batches, 1), classes=classes, dim=dim, seed=seed):
        if isinstance(loss, nn.Module):
            _draw_proxies(loss, batch, generator)
        for matrix in weigh(loss, batch.embeddings, batch.labels).matrices:
            found = _most_negative(matrix, batch)
            if found is not None:
                return found
    return None


def _draw_proxies(loss: nn.Module, batch: Batch, generator: torch.Generator) -> None:
    """Draw proxies near the samples of their class, or anywhere."""
    for module in loss.modules():
        proxies = getattr(module, "proxies", None)
        if not isinstance(proxies, nn.Parameter):
            continue
        per_class = len(proxies) // int(module.num_classes)  # type: ignore[arg-type]
        owners = torch.arange(len(proxies)) // per_class
        noise = torch.randn(proxies.shape, generator=generator, dtype=proxies.dtype)
        with torch.no_grad():
            proxies.copy_(noise)
            if int(torch.randint(4, (), generator=generator)):  # near the batch, with probability 3/4
                deviation = (*CLOSE, *TIGHT)[int(torch.randint(len(CLOSE) + len(TIGHT), (), generator=generator))]
                for index, owner in enumerate(owners.tolist()):
                    members = batch.embeddings[batch.labels == owner]
                    if len(members):
                        proxies[index] = members.mean(dim=0) + deviation * noise[index]


def _most_negative(matrix: Weighed, batch: Batch) -> NegativeWeight | None:
    weights: Tensor = torch.where(matrix.positive | matrix.negative, matrix.weights, 0.0)
    largest, least = float(weights.abs().max()), float(weights.min())
    if least >= -ROUNDING * largest:
        return None
    anchor, reference = divmod(int(weights.argmin()), weights.shape[1])
    kind = "positive" if bool(matrix.positive[anchor, reference]) else "negative"
    similarity = float(matrix.similarities[anchor, reference])
    return NegativeWeight(matrix.between, kind, (anchor, reference), similarity, least, largest, batch)
