"""Mining samplers: hard batches, mined over the whole data set with the embeddings of the last pass over it.

A miner selects among the images of a batch; these samplers select the images of a batch (the thesis, Section 1.2).
`likewise.train.train` embeds the whole training set before each epoch, or as often as ``mine_every`` and ``mine_steps``
say, and calls ``update``; a custom training loop does the same.  ``update`` computes a table of neighbors, which is part
of the state of the sampler; the embeddings are not stored.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.data.random_source import Array, Deck, Decks, RandomSource, whole_number
from likewise.data.samplers import Labels, ResumableSampler, check_divisible, check_enough_classes, classes_with_pairs

_CHUNK = 1 << 24  # similarities in memory at once: 64 MiB


class MiningSampler(ResumableSampler):
    """Base class of samplers that mine: they draw batches from a table computed from the embeddings of all images.

    A subclass computes the table in ``_search`` and the batches in ``_batches``.  The arguments are those of
    `ResumableSampler`; the table is part of the state.

    Examples:
        >>> issubclass(HardBatchSampler, MiningSampler)
        True
    """

    mines: bool = True
    """Whether the sampler needs embeddings."""

    _table: Array | None = None

    def update(self, embeddings: Tensor, *, epoch: int | None = None, position: int | None = None) -> None:
        """Compute the table from new embeddings; the following batches use it.

        Args:
            embeddings: embeddings of all images, ``(n, d)``, on any device, of any length.
            epoch: current epoch; pass epoch and position if a loader fetches ahead, as for ``state_dict``.
            position: number of finished batches of that epoch.
        """
        self._table = self._search(_check_and_normalize(embeddings, len(self.labels)))
        if epoch is not None:
            self.set_epoch(epoch)
        self.position = self.position if position is None else whole_number("position", position, 0)
        self._start, self._origin = (
            self.position,
            (self.epoch, self.position),
        )  # decks start again, because the table has changed

    @abstractmethod
    def _search(self, units: Tensor) -> Array:
        """Compute the table from embeddings of unit length."""

    def _mined_table(self) -> Array:
        if self._table is None:
            raise RuntimeError(
                "update(embeddings) must be called before batches are drawn: neighbors are not known yet"
            )
        return self._table

    def state_dict(self, *, epoch: int | None = None, position: int | None = None) -> dict[str, Any]:
        """Return the state of the sampler, including the table of neighbors."""
        table = None if self._table is None else torch.from_numpy(self._table)
        return {**super().state_dict(epoch=epoch, position=position), "neighbors": table}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of the sampler, including the table of neighbors."""
        super().load_state_dict(state)
        table = state.get("neighbors")
        self._table = None if table is None else table.cpu().numpy()


class HardBatchSampler(MiningSampler):
    """Batches of similar classes: ``classes`` x ``per_class`` images, class by class.

    Anchor classes are drawn at random.  To each of them the sampler adds the classes whose mean embeddings are most
    similar (cosine) and that are not in the batch yet.  A nearest-neighbor pass before each epoch is the idea of Harwood
    et al. 2017; with classes in place of samples it suits losses that use the whole batch.  The loss and its miner decide
    which pairs of the batch count.  With ``normalize=False`` the neighbors are the classes with the smallest mean squared
    distance between their images: the anchor-neighbor sampling of Ge et al. 2018.

    All processes must pass the same embeddings to ``update``; otherwise their shards belong to different batches.

    Args:
        labels: label of each image, ``(n,)``.
        classes: number of different classes in a batch.
        per_class: number of images per class; images of smaller classes are repeated.
        anchors: number of classes drawn at random; each gets the same number of neighbors.
        normalize: normalize the mean embeddings of classes before they are compared.
        steps: batches per epoch; by default, the number of images divided by the batch size, at least 1.
        seed: seed of all random choices.
        rank: rank of this process; it gets whole classes of each batch.
        world_size: number of processes over which each batch is split.

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
        check_enough_classes(classes, len(np.unique(self.labels)))
        check_divisible("classes", classes, "anchors", anchors)
        check_divisible("classes", classes, "world_size", world_size)

    def _search(self, units: Tensor) -> Array:
        """Return the neighbors of each class."""
        numbers = torch.from_numpy(np.unique(self.labels, return_inverse=True)[1]).to(units.device)
        sums = units.new_zeros(int(numbers.max()) + 1, units.shape[1]).index_add_(0, numbers, units)
        # the mean squared distance between unit vectors of two classes is two minus twice the product of their means
        counts = torch.bincount(numbers)[:, None]
        means = torch.nn.functional.normalize(sums, dim=1) if self.normalize else sums / counts
        # A batch holds classes - 1 others: this many neighbors are always enough to fill it.
        return nearest_rows(means, torch.arange(len(means), device=means.device), self.classes - 1)

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        near = self._mined_table()
        images = Decks(self.labels, source)
        deck = Deck(np.arange(len(images.classes)), source)
        while True:
            chosen: list[int] = []
            for group in range(1, self.anchors + 1):
                anchor = deck.deal(1)[0]
                while anchor in chosen:  # it is in the batch as a neighbor
                    anchor = deck.deal(1)[0]
                chosen.append(anchor)
                wanted = group * self.classes // self.anchors - len(chosen)
                chosen += [other for other in near[anchor].tolist() if other not in chosen][:wanted]
            yield [index for number in chosen for index in images.deal(number, self.per_class)]


class HardPairSampler(MiningSampler):
    """Batches of a few positive pairs and their hard negatives (Oh Song et al. 2016; figure 18 of the thesis).

    Each pair is two random images of a class.  It is followed by the images of other classes that are most similar
    (cosine) to either image of the pair and not in the batch yet, nearest first, alternating between the two images.
    If all stored neighbors of a pair are in the batch, random images replace them.

    A class with one image has no pair, but its image may be a neighbor; a warning reports the number of such classes.
    All processes must pass the same embeddings to ``update``; otherwise their shards belong to different batches.

    Args:
        labels: label of each image, ``(n,)``.
        batch_size: number of images in a batch, over all processes.
        pairs: number of positive pairs in a batch, each of a different class; they get the same number of neighbors.
        neighbors: number of hard neighbors stored per image.
        steps: batches per epoch; by default, the number of images divided by the batch size, at least 1.
        seed: seed of all random choices.
        rank: rank of this process; it gets whole pairs of each batch with their neighbors.
        world_size: number of processes over which each batch is split.

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
        check_divisible("batch_size", batch_size, "pairs", pairs)
        check_divisible("pairs", pairs, "world_size", world_size)
        self._paired = classes_with_pairs(self.labels)
        if pairs > len(self._paired):
            raise ValueError(
                f"pairs must be at most {len(self._paired)}, the classes with two images or more, but it is {pairs}"
            )

    def _search(self, units: Tensor) -> Array:
        """Return the neighbors of each image among the images of other classes."""
        return nearest_rows(units, torch.from_numpy(self.labels).to(units.device), self.neighbors)

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        near = self._mined_table()
        images, deck = Decks(self.labels, source), Deck(self._paired, source)
        others = Deck(np.arange(len(self.labels)), source)
        size = self.batch_size // self.pairs
        while True:
            groups = [images.deal(number, 2) for number in deck.deal(self.pairs)]
            taken = {index for group in groups for index in group}
            for group in groups:
                # (2, k) in column order alternates: the nearest of the first image, the nearest of the second, …
                nearest = near[group].T.reshape(-1)
                group += _take(nearest[nearest >= 0].tolist(), taken, size - 2, others)
            yield [index for group in groups for index in group]


class SmartMiningSampler(MiningSampler):
    """Batches of anchors, each with a hard positive and hard negatives, mined over all images (Harwood et al. 2017).

    Anchors are drawn from all images whose class has at least two images.  The positive is drawn from the ``neighbors``
    least similar images (cosine) of the class, and negatives from the ``neighbors`` most similar images of other
    classes.  They are drawn because the hardest ones are often outliers or wrong labels.  If all of them are in the batch
    already, random images replace them.

    There are two differences from the paper: the search is exact where the paper uses an approximate graph of neighbors,
    and ``neighbors`` sets how hard the samples are where the paper uses a controller.  The paper's global loss is a
    separate choice.

    Args:
        labels: label of each image, ``(n,)``.
        batch_size: number of images in a batch, over all processes.
        anchors: number of anchors in a batch; each comes with a positive and an equal part of the negatives.
        neighbors: number of hard positives and negatives to draw from; fewer are harder.
        steps: batches per epoch; by default, the number of images divided by the batch size, at least 1.
        seed: seed of all random choices.
        rank: rank of this process; it gets whole anchors of each batch with their images.
        world_size: number of processes over which each batch is split.

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
        check_divisible("batch_size", batch_size, "anchors", anchors)
        check_divisible("anchors", anchors, "world_size", world_size)
        numbers = np.unique(self.labels, return_inverse=True)[1]
        self._paired = np.flatnonzero(np.isin(numbers, classes_with_pairs(self.labels)))
        if anchors > len(self._paired):
            raise ValueError(
                f"anchors must be at most {len(self._paired)}, the images of classes with two or more, but it is {anchors}"
            )

    def _search(self, units: Tensor) -> Array:
        """Return the nearest images of other classes and the farthest of the same class, for each image, ``(n, 2 k)``."""
        labels = torch.from_numpy(self.labels).to(units.device)
        count = min(self.neighbors, len(units) - 1)
        return np.concatenate([nearest_rows(units, labels, count), _farthest(units, labels, count)], axis=1)

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        near, far = np.split(self._mined_table(), 2, axis=1)
        deck, others = Deck(self._paired, source), Deck(np.arange(len(self.labels)), source)
        size = self.batch_size // self.anchors
        while True:
            groups = [[anchor] for anchor in deck.deal(self.anchors)]
            taken = {anchor for [anchor] in groups}
            for group in groups:
                group += _take(_shuffle(far[group[0]], source), taken, 1, others)
            for group in groups:
                group += _take(_shuffle(near[group[0]], source), taken, size - 2, others)
            yield [index for group in groups for index in group]


def _farthest(units: Tensor, owners: Tensor, count: int) -> Array:
    """Return the least similar rows of the same owner for each row, farthest first; −1 if there are fewer than ``count``."""
    table = np.full((len(units), count), -1, dtype=np.int32)
    for owner in torch.unique(owners):
        rows = (owners == owner).nonzero()[:, 0]
        similar = (units[rows] @ units[rows].T).fill_diagonal_(torch.inf)
        own = min(count, len(rows) - 1)
        table[rows.cpu().numpy(), :own] = rows[similar.topk(own, dim=1, largest=False)[1]].cpu().numpy()
    return table


def _shuffle(row: Array, source: RandomSource) -> list[int]:
    known = row[row >= 0]
    return [*known[source.order(len(known))].tolist()]


def _take(wanted: list[int], taken: set[int], count: int, others: Deck) -> list[int]:
    """Take ``count`` wanted images that are not taken yet, then others, and mark them as taken."""
    chosen = [index for index in dict.fromkeys(wanted) if index not in taken][:count]
    taken.update(chosen)
    while len(chosen) < count:
        index = others.deal(1)[0]
        if index not in taken:
            chosen.append(index)
            taken.add(index)
    return chosen


def nearest_rows(units: Tensor, owners: Tensor, count: int, *, squared: bool = False) -> Array:
    """Return the most similar rows of another owner for each row, nearest first; −1 if there are fewer than ``count``.

    The similarity matrix is computed in chunks of rows.

    Args:
        units: the rows.
        owners: owner of each row.
        count: number of neighbors.
        squared: compare squared distances instead of inner products; both agree for rows of equal length.
    """
    count = min(count, len(units) - 1)
    table = np.empty((len(units), count), dtype=np.int32)
    for start in range(0, len(units), max(1, _CHUNK // len(units))):
        rows = slice(start, start + max(1, _CHUNK // len(units)))
        similar = units[rows] @ units.T
        if squared:
            similar -= 0.5 * units.square().sum(dim=1)
        similar.masked_fill_(owners[rows, None] == owners[None, :], -torch.inf)
        values, indices = similar.topk(count, dim=1)
        table[rows] = indices.masked_fill(values == -torch.inf, -1).cpu().numpy()
    return table


def _check_and_normalize(embeddings: Tensor, rows: int) -> Tensor:
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
