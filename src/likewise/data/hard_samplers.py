"""Hard batches, mined over the whole data set by the embeddings of the last pass over it.

A miner can only choose from the images in a batch; these samplers choose the images of a batch (the
thesis, Section 1.2).  `likewise.train.train` embeds the whole training set before each epoch, or as often as
``mine_every`` and ``mine_steps`` say, and calls ``update``; in your own loop, do the same.  The embeddings are only
read there: a table of neighbors is kept, and it is part of the sampler's state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.data.random_source import Array, Deck, Decks, RandomSource, whole_number
from likewise.data.samplers import Labels, ResumableSampler, divisible, enough_classes, with_pairs

_TILE = 1 << 24  # similarities held at once: 64 MiB


class MiningSampler(ResumableSampler):
    """The base of samplers that mine: a table computed from the embeddings of all images, stored in the state.

    A subclass says which table, in ``_search``, and what a batch is.  The arguments are those of `ResumableSampler`.

    Examples:
        >>> issubclass(HardBatchSampler, MiningSampler)
        True
    """

    mines: bool = True
    """Whether it needs embeddings at all."""

    _table: Array | None = None

    def update(self, embeddings: Tensor, *, epoch: int | None = None, position: int | None = None) -> None:
        """Mine: the batches that follow are chosen by these embeddings.

        Args:
            embeddings: of all images, ``(n, d)``, on any device; they need not be of unit length.
            epoch: where the training is; give both where a loader fetches ahead, as for ``state_dict``.
            position: number of finished batches of that epoch.
        """
        self._table = self._search(_units(embeddings, len(self.labels)))
        if epoch is not None:
            self.set_epoch(epoch)
        self.position = self.position if position is None else whole_number("position", position, 0)
        self._start, self._origin = self.position, (self.epoch, self.position)  # old decks are of another table

    @abstractmethod
    def _search(self, units: Tensor) -> Array:
        """The table, of embeddings of unit length."""

    def _mined(self) -> Array:
        if self._table is None:
            raise RuntimeError(
                "update(embeddings) must be called before batches are drawn: neighbors are not known yet"
            )
        return self._table

    def state_dict(self, *, epoch: int | None = None, position: int | None = None) -> dict[str, Any]:
        """As for every sampler, with the table of neighbors."""
        table = None if self._table is None else torch.from_numpy(self._table)
        return {**super().state_dict(epoch=epoch, position=position), "neighbors": table}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As for every sampler, with the table of neighbors."""
        super().load_state_dict(state)
        table = state.get("neighbors")
        self._table = None if table is None else table.cpu().numpy()


class HardBatchSampler(MiningSampler):
    """Classes that are near each other, with the same number of images each: ``classes`` x ``per_class``, class by class.

    Some anchor classes are dealt at random; each brings the classes whose mean embeddings are most similar to its own
    (cosine) and that are not in the batch yet.  A nearest-neighbor pass before each epoch is the idea of Harwood et
    al. 2017; with classes in place of samples, it serves losses that use the whole batch.  How hard the pairs are
    that count is left to the loss and its miner.  With ``normalize=False`` the neighbors are the classes of the least mean
    squared distance between their images: the anchor-neighbor sampling of Ge et al. 2018.

    Every process must be given the same embeddings, or the shares will not fit together.

    Args:
        labels: one for each image.
        classes: number of different classes in a batch.
        per_class: number of images per class; images of smaller classes are repeated.
        anchors: number of classes drawn at random; the others are their neighbors, the same number for each.
        normalize: scale the mean embeddings of classes to unit length before they are compared.
        steps: batches per epoch; ``None``: the number of images divided by the size of a batch, but at least 1.
        seed: of all choices.
        rank: the rank of this process, which takes whole classes of each batch.
        world_size: the number of processes that share each batch.

    Examples:
        >>> import torch
        >>> labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
        >>> sampler = HardBatchSampler(labels, classes=2, per_class=2, anchors=1)
        >>> angles = torch.tensor([0.0, 3.0, 0.1, 3.1])[labels]  # 0 is near 2, and 1 near 3
        >>> sampler.update(torch.stack([angles.cos(), angles.sin()], dim=1))
        >>> [labels[batch].tolist() for batch in sampler]
        [[3, 3, 1, 1], [1, 1, 3, 3]]
    """

    def __init__(
        self,
        labels: Labels,
        *,
        classes: int = 32,
        per_class: int = 4,
        anchors: int = 4,
        normalize: bool = True,
        steps: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        self.classes, self.per_class = whole_number("classes", classes, 1), whole_number("per_class", per_class, 1)
        self.anchors, self.normalize = whole_number("anchors", anchors, 1), normalize
        settings: dict[str, int | str] = {"classes": self.classes, "per_class": self.per_class, "anchors": self.anchors}
        super().__init__(
            labels,
            batch_size=classes * per_class,
            settings=settings if normalize else {**settings, "normalize": 0},
            steps=steps,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        enough_classes(classes, len(np.unique(self.labels)))
        divisible("classes", classes, "anchors", anchors)
        divisible("classes", classes, "world_size", world_size)

    def _search(self, units: Tensor) -> Array:
        """Each class's neighbors."""
        numbers = torch.from_numpy(np.unique(self.labels, return_inverse=True)[1]).to(units.device)
        sums = units.new_zeros(int(numbers.max()) + 1, units.shape[1]).index_add_(0, numbers, units)
        # the mean squared distance of unit vectors is two minus twice the product of the means
        counts = torch.bincount(numbers)[:, None]
        means = torch.nn.functional.normalize(sums, dim=1) if self.normalize else sums / counts
        # A batch holds classes - 1 others: so many neighbors are always enough to fill it.
        return nearest_rows(means, torch.arange(len(means), device=means.device), self.classes - 1)

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        near = self._mined()
        images = Decks(self.labels, source)
        deck = Deck(np.arange(len(images.classes)), source)
        while True:
            chosen: list[int] = []
            for group in range(1, self.anchors + 1):
                anchor = deck.deal(1)[0]
                while anchor in chosen:  # it came as a neighbor; that was its turn
                    anchor = deck.deal(1)[0]
                chosen.append(anchor)
                wanted = group * self.classes // self.anchors - len(chosen)
                chosen += [other for other in near[anchor].tolist() if other not in chosen][:wanted]
            yield [index for number in chosen for index in images.deal(number, self.per_class)]


class HardPairSampler(MiningSampler):
    """A few positive pairs and then their hard neighbors (Oh Song et al. 2016; figure 18 of the thesis).

    Each pair is two images of a class, dealt at random.  After it come the images of other classes that are most
    similar to either of the two (cosine), nearest first and in turn, and that are not in the batch yet.  Where the
    neighbors kept for a pair are all in the batch, random images replace them.

    A class with one image has no pair, but its image may come as a neighbor; a warning reports their number.
    Every process must be given the same embeddings, or the shares will not fit together.

    Args:
        labels: one for each image.
        batch_size: of the batch that all processes share.
        pairs: how many positive pairs a batch has, each of another class; they share the rest of it evenly.
        neighbors: number of hard neighbors stored per image.
        steps: batches per epoch; ``None``: the number of images divided by the size of a batch, but at least 1.
        seed: of all choices.
        rank: the rank of this process, which takes whole pairs with their neighbors of each batch.
        world_size: the number of processes that share each batch.

    Examples:
        >>> import torch
        >>> labels = torch.tensor([0, 0, 1, 1, 2, 2])
        >>> sampler = HardPairSampler(labels, batch_size=3, pairs=1)
        >>> angles = torch.tensor([0.0, 0.2, 1.4, 3.0, 1.2, 3.3])
        >>> sampler.update(torch.stack([angles.cos(), angles.sin()], dim=1))
        >>> list(sampler)
        [[2, 3, 4], [5, 4, 3]]
    """

    def __init__(
        self,
        labels: Labels,
        *,
        batch_size: int = 128,
        pairs: int = 16,
        neighbors: int = 32,
        steps: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        self.pairs, self.neighbors = whole_number("pairs", pairs, 1), whole_number("neighbors", neighbors, 1)
        super().__init__(
            labels,
            batch_size=batch_size,
            settings={"pairs": self.pairs, "neighbors": self.neighbors},
            steps=steps,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        if not 2 * pairs <= batch_size <= len(self.labels):
            raise ValueError(
                f"batch_size must be between {2 * pairs}, the images of all pairs, and {len(self.labels)}, all images, "
                f"but it is {batch_size}"
            )
        divisible("batch_size", batch_size, "pairs", pairs)
        divisible("pairs", pairs, "world_size", world_size)
        self._paired = with_pairs(self.labels)
        if pairs > len(self._paired):
            raise ValueError(
                f"pairs must be at most {len(self._paired)}, the classes with two images or more, but it is {pairs}"
            )

    def _search(self, units: Tensor) -> Array:
        """Each image's neighbors among the images of other classes."""
        return nearest_rows(units, torch.from_numpy(self.labels).to(units.device), self.neighbors)

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        near = self._mined()
        images, deck = Decks(self.labels, source), Deck(self._paired, source)
        others = Deck(np.arange(len(self.labels)), source)
        size = self.batch_size // self.pairs
        while True:
            groups = [images.deal(number, 2) for number in deck.deal(self.pairs)]
            taken = {index for group in groups for index in group}
            for group in groups:
                # (2, k) read down the columns: the nearest of the one, the nearest of the other, the second of the one …
                nearest = near[group].T.reshape(-1)
                group += _take(nearest[nearest >= 0].tolist(), taken, size - 2, others)
            yield [index for group in groups for index in group]


class SmartMiningSampler(MiningSampler):
    """Anchors, each with a hard positive and some of its hard negatives, found among all images (Harwood et al. 2017).

    Anchors are dealt from all images that have a second one in their class.  A positive is drawn from the ``neighbors``
    images of its class that are least similar to it (cosine), and negatives from the ``neighbors`` images of other
    classes that are most similar: drawn, because the hardest of all are often outliers or wrong labels.  Where these are
    all in the batch already, random images replace them.

    The search is exact, where the paper's is approximate (a graph of neighbors), and how hard samples are is set by
    ``neighbors``, where the paper has a controller that changes it; its global loss is left to the loss.

    Args:
        labels: one for each image.
        batch_size: of the batch that all processes share.
        anchors: how many anchors a batch has; each brings a positive and as many negatives as there is room for.
        neighbors: from how many hard positives and negatives it is drawn: the fewer, the harder.
        steps: batches per epoch; ``None``: the number of images divided by the size of a batch, but at least 1.
        seed: of all choices.
        rank: the rank of this process, which takes whole anchors with their images of each batch.
        world_size: the number of processes that share each batch.

    Examples:
        >>> import torch
        >>> labels = torch.tensor([0, 0, 1, 1, 2, 2])
        >>> sampler = SmartMiningSampler(labels, batch_size=3, anchors=1, neighbors=1)
        >>> angles = torch.tensor([0.0, 0.2, 1.4, 3.0, 1.2, 3.3])
        >>> sampler.update(torch.stack([angles.cos(), angles.sin()], dim=1))
        >>> list(sampler)
        [[3, 2, 5], [1, 0, 4]]
    """

    def __init__(
        self,
        labels: Labels,
        *,
        batch_size: int = 126,
        anchors: int = 42,
        neighbors: int = 16,
        steps: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        self.anchors, self.neighbors = whole_number("anchors", anchors, 1), whole_number("neighbors", neighbors, 1)
        super().__init__(
            labels,
            batch_size=batch_size,
            settings={"anchors": self.anchors, "neighbors": self.neighbors},
            steps=steps,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        if not 3 * anchors <= batch_size <= len(self.labels):
            raise ValueError(
                f"batch_size must be between {3 * anchors}, a triplet for each anchor, and {len(self.labels)}, all images, "
                f"but it is {batch_size}"
            )
        divisible("batch_size", batch_size, "anchors", anchors)
        divisible("anchors", anchors, "world_size", world_size)
        numbers = np.unique(self.labels, return_inverse=True)[1]
        self._paired = np.flatnonzero(np.isin(numbers, with_pairs(self.labels)))
        if anchors > len(self._paired):
            raise ValueError(
                f"anchors must be at most {len(self._paired)}, the images of classes with two or more, but it is {anchors}"
            )

    def _search(self, units: Tensor) -> Array:
        """The nearest images of other classes and the farthest of the same class, for each image, ``(n, 2 k)``."""
        labels = torch.from_numpy(self.labels).to(units.device)
        count = min(self.neighbors, len(units) - 1)
        return np.concatenate([nearest_rows(units, labels, count), _farthest(units, labels, count)], axis=1)

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        near, far = np.split(self._mined(), 2, axis=1)
        deck, others = Deck(self._paired, source), Deck(np.arange(len(self.labels)), source)
        size = self.batch_size // self.anchors
        while True:
            groups = [[anchor] for anchor in deck.deal(self.anchors)]
            taken = {anchor for [anchor] in groups}
            for group in groups:
                group += _take(_shuffled(far[group[0]], source), taken, 1, others)
            for group in groups:
                group += _take(_shuffled(near[group[0]], source), taken, size - 2, others)
            yield [index for group in groups for index in group]


def _farthest(units: Tensor, owners: Tensor, count: int) -> Array:
    """The rows least similar to each row and of the same owner, farthest first; −1 where there are not so many."""
    table = np.full((len(units), count), -1, dtype=np.int32)
    for owner in torch.unique(owners):
        rows = (owners == owner).nonzero()[:, 0]
        similar = (units[rows] @ units[rows].T).fill_diagonal_(torch.inf)
        own = min(count, len(rows) - 1)
        table[rows.cpu().numpy(), :own] = rows[similar.topk(own, dim=1, largest=False)[1]].cpu().numpy()
    return table


def _shuffled(row: Array, source: RandomSource) -> list[int]:
    known = row[row >= 0]
    return [*known[source.order(len(known))].tolist()]


def _take(wanted: list[int], taken: set[int], count: int, others: Deck) -> list[int]:
    """So many of those that are wanted and not taken yet, then others; they are taken now."""
    chosen = [index for index in dict.fromkeys(wanted) if index not in taken][:count]
    taken.update(chosen)
    while len(chosen) < count:
        index = others.deal(1)[0]
        if index not in taken:
            chosen.append(index)
            taken.add(index)
    return chosen


def nearest_rows(units: Tensor, owners: Tensor, count: int, *, squared: bool = False) -> Array:
    """The rows most similar to each row and of another owner, nearest first; −1 where there are fewer.

    The matrix of similarities is made a few rows at a time.

    Args:
        units: the rows.
        owners: the owner of each.
        count: how many.
        squared: compare by distance, and not by inner product, which is the same for rows of equal length.
    """
    count = min(count, len(units) - 1)
    table = np.empty((len(units), count), dtype=np.int32)
    for start in range(0, len(units), max(1, _TILE // len(units))):
        rows = slice(start, start + max(1, _TILE // len(units)))
        similar = units[rows] @ units.T
        if squared:
            similar -= 0.5 * units.square().sum(dim=1)
        similar.masked_fill_(owners[rows, None] == owners[None, :], -torch.inf)
        values, indices = similar.topk(count, dim=1)
        table[rows] = indices.masked_fill(values == -torch.inf, -1).cpu().numpy()
    return table


def _units(embeddings: Tensor, rows: int) -> Tensor:
    if not isinstance(embeddings, Tensor) or not embeddings.is_floating_point() or embeddings.ndim != 2:
        raise TypeError(f"embeddings must be a float tensor of shape (n, d), but it is {_describe(embeddings)}")
    if len(embeddings) != rows:
        raise ValueError(f"embeddings must have one row for each of the {rows} labels, but it has {len(embeddings)}")
    finite = torch.isfinite(embeddings).all(dim=1)
    if not bool(finite.all()):
        raise ValueError(f"embeddings must be finite, but row {int((~finite).nonzero()[0])} contains NaN or infinity")
    return torch.nn.functional.normalize(embeddings.detach().float(), dim=1)


def _describe(value: object) -> str:
    return f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
