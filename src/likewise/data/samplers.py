"""Batch samplers: they select the images of each batch.

Pass one to a loader: ``DataLoader(data, batch_sampler=PerClassSampler(data.labels))``.  All samplers

- draw the same batches for the same seed and epoch, on every machine;
- advance to the next epoch at the end of an epoch, or to the one set with `ResumableSampler.set_epoch`;
- give each of ``world_size`` processes a shard of every batch, so that all processes take the same number of steps and
  the shards have no image in common;
- continue in the middle of an epoch after `ResumableSampler.load_state_dict`;
- draw images and classes without replacement: none repeats before all have been drawn.
"""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import Sampler

from likewise.data.random_source import Array, Deck, Decks, RandomSource, whole_number

Labels = Tensor | Array | Sequence[int]


class ResumableSampler(Sampler[list[int]], ABC):
    """Base class of batch samplers: epochs, ranks and resumption; a subclass defines the batches.

    Args:
        labels: label of each image, ``(n,)``.
        batch_size: number of images in a batch, over all processes.
        settings: everything else that the batches depend on; a state is loaded only into a sampler with equal settings.
        steps: batches per epoch; by default, the number of images divided by the batch size, at least 1.
        seed: seed of all random choices.
        rank: rank of this process, which selects its shard of each batch.
        world_size: number of processes over which each batch is split.

    Examples:
        >>> class InOrder(ResumableSampler):
        ...     def _batches(self, source):
        ...         while True:
        ...             yield from ([start, start + 1] for start in range(0, 6, 2))
        >>> sampler = InOrder([0] * 6, batch_size=2, settings={}, steps=None, seed=0, rank=0, world_size=1)
        >>> list(sampler), sampler.epoch
        ([[0, 1], [2, 3], [4, 5]], 1)
    """

    def __init__(
        self,
        labels: Labels,
        *,
        batch_size: int,
        settings: Mapping[str, int | str],
        steps: int | None,
        seed: int,
        rank: int,
        world_size: int,
    ):
        self.labels = label_array("labels", labels)
        self.batch_size = whole_number("batch_size", batch_size, 1)
        self.steps = max(1, len(self.labels) // batch_size) if steps is None else whole_number("steps", steps, 1)
        self.seed = whole_number("seed", seed, 0)
        self.world_size = whole_number("world_size", world_size, 1)
        if whole_number("rank", rank, 0) >= world_size:
            raise ValueError(f"rank must be below world_size, {world_size}, but it is {rank}")
        self.rank = rank
        self.epoch = 0
        self.position = 0
        self._start = 0  # first position of this epoch: not 0 after a state was loaded
        self._origin = 0, 0  # epoch and position of the last mining, where random numbers start again
        self._settings = {"batch_size": self.batch_size, "steps": self.steps, "seed": self.seed, **settings}

    @abstractmethod
    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        """Yield the batches of all processes without end; they depend only on ``source``."""

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[list[int]]:
        epoch, start, origin = self.epoch, self._start, self._begin(self.epoch)
        share = self.batch_size // self.world_size
        source = RandomSource(self.seed, epoch, origin) if origin else RandomSource(self.seed, epoch)
        for step, batch in enumerate(islice(self._batches(source), self.steps - origin), origin):
            if step >= start:
                self.position = step + 1
                yield batch[self.rank * share : (self.rank + 1) * share]
        if self.epoch == epoch:  # set_epoch was not called during the iteration
            self.set_epoch(epoch + 1)

    def _begin(self, epoch: int) -> int:
        """Return the position in an epoch at which its random numbers start: 0, unless mining happened inside the epoch."""
        return self._origin[1] if self._origin[0] == epoch else 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; the epoch of a loaded state continues at its position."""
        if whole_number("epoch", epoch, 0) != self.epoch:
            self.epoch, self.position, self._start = epoch, 0, 0

    def state_dict(self, *, epoch: int | None = None, position: int | None = None) -> dict[str, Any]:
        """Return the state after the last batch, for `load_state_dict`.

        Args:
            epoch: current epoch; pass epoch and position if the workers of a loader fetch ahead, because the sampler
                counts the batches that were fetched.
            position: number of finished batches of that epoch.
        """
        return {
            "sampler": type(self).__name__,
            "labels": checksum(self.labels),
            "settings": dict(self._settings),
            "epoch": self.epoch if epoch is None else whole_number("epoch", epoch, 0),
            "position": self.position if position is None else whole_number("position", position, 0),
            "origin": self._begin(self.epoch if epoch is None else epoch),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; only the rank and the number of processes may differ.

        The position stays until the epoch ends or another epoch is set: iterating again starts at the same position.
        """
        mine = self.state_dict()
        for name in ("sampler", "labels"):
            if state.get(name) != mine[name]:
                raise ValueError(f"state must be of the same {name}, {mine[name]}, but it is of {state.get(name)}")
        for name, value in mine["settings"].items():
            stored_value = state.get("settings", {}).get(name)
            if stored_value != value:
                raise ValueError(
                    f"state must be of a sampler with {name}={value}, but it is of one with {name}={stored_value}"
                )
        epoch = whole_number("epoch", state.get("epoch"), 0)
        position = whole_number("position", state.get("position"), 0)
        if position > self.steps:
            raise ValueError(f"position must be at most {self.steps}, the steps of an epoch, but it is {position}")
        self.epoch, self.position, self._start = epoch, position, position
        self._origin = epoch, whole_number("origin", state.get("origin", 0), 0)


class RandomBatchSampler(ResumableSampler):
    """Random images of all classes; no image repeats before all have been drawn.

    Args:
        labels: label of each image, ``(n,)``.
        batch_size: number of images in a batch, over all processes.
        steps: batches per epoch; by default each image is drawn once, without an incomplete last batch.
        seed: seed of all random choices.
        rank: rank of this process, which selects its shard of each batch.
        world_size: number of processes over which each batch is split.

    Examples:
        >>> sampler = RandomBatchSampler([0, 0, 1, 1, 2], batch_size=2)
        >>> len(sampler), [len(batch) for batch in sampler]
        (2, [2, 2])
    """

    def __init__(
        self,
        labels: Labels,
        *,
        batch_size: int = 128,
        steps: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        super().__init__(
            labels, batch_size=batch_size, settings={}, steps=steps, seed=seed, rank=rank, world_size=world_size
        )
        if batch_size > len(self.labels):
            raise ValueError(
                f"batch_size must be at most the number of images, {len(self.labels)}, but it is {batch_size}"
            )
        check_divisible("batch_size", batch_size, "world_size", world_size)

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        deck = Deck(np.arange(len(self.labels)), source)
        while True:
            yield deck.deal(self.batch_size)


class PerClassSampler(ResumableSampler):
    """Batches of the same number of images per class: ``classes`` x ``per_class`` images, class by class.

    The images of a class are distinct; if a class has fewer than ``per_class`` images, some are repeated.

    Args:
        labels: label of each image, ``(n,)``.
        classes: number of different classes in a batch.
        per_class: number of images per class.
        steps: batches per epoch; by default, the number of images divided by the batch size, at least 1.
        seed: seed of all random choices.
        rank: rank of this process; it gets whole classes of each batch.
        world_size: number of processes over which each batch is split.

    Examples:
        >>> labels = [0, 0, 0, 1, 1, 2, 2, 2]
        >>> sampler = PerClassSampler(labels, classes=2, per_class=2)
        >>> [[labels[index] for index in batch] for batch in sampler]
        [[1, 1, 2, 2], [0, 0, 1, 1]]
    """

    def __init__(
        self,
        labels: Labels,
        *,
        classes: int = 32,
        per_class: int = 4,
        steps: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        self.classes, self.per_class = whole_number("classes", classes, 1), whole_number("per_class", per_class, 1)
        super().__init__(
            labels,
            batch_size=classes * per_class,
            settings={"classes": self.classes, "per_class": self.per_class},
            steps=steps,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        check_enough_classes(classes, len(np.unique(self.labels)))
        check_divisible("classes", classes, "world_size", world_size)

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        decks = Decks(self.labels, source)
        deck = Deck(np.arange(len(decks.classes)), source)
        while True:
            yield [index for number in deck.deal(self.classes) for index in decks.deal(number, self.per_class)]


class PairSampler(ResumableSampler):
    """Batches of two images per class, pair after pair, for the N-pair loss (Sohn 2016).

    A class with one image is never drawn; a warning reports the number of such classes.

    Args:
        labels: label of each image, ``(n,)``.
        classes: number of different classes in a batch, which has twice as many images.
        steps: batches per epoch; by default, the number of images divided by the batch size, at least 1.
        seed: seed of all random choices.
        rank: rank of this process; it gets whole pairs of each batch.
        world_size: number of processes over which each batch is split.

    Examples:
        >>> labels = [0, 0, 1, 1, 2, 2, 2]
        >>> batch = next(iter(PairSampler(labels, classes=3)))
        >>> [labels[index] for index in batch]
        [1, 1, 2, 2, 0, 0]
    """

    def __init__(
        self,
        labels: Labels,
        *,
        classes: int = 64,
        steps: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        self.classes = whole_number("classes", classes, 1)
        super().__init__(
            labels,
            batch_size=2 * classes,
            settings={"classes": self.classes},
            steps=steps,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        check_divisible("classes", classes, "world_size", world_size)
        self._paired = classes_with_pairs(self.labels)
        check_enough_classes(classes, len(self._paired), "with two images or more")

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        decks, deck = Decks(self.labels, source), Deck(self._paired, source)
        while True:
            yield [index for number in deck.deal(self.classes) for index in decks.deal(number, 2)]


def check_divisible(name: str, value: int, by: str, divisor: int) -> None:
    """Check that a number is check_divisible by another.

    Examples:
        >>> check_divisible("classes", 32, "world_size", 3)
        Traceback (most recent call last):
        ValueError: classes must be a multiple of world_size, 3, but it is 32
    """
    if value % divisor:
        raise ValueError(f"{name} must be a multiple of {by}, {divisor}, but it is {value}")


def check_enough_classes(wanted: int, there: int, which: str = "") -> None:
    """Check that there are as many classes as a batch needs.

    Examples:
        >>> check_enough_classes(32, 10)
        Traceback (most recent call last):
        ValueError: classes must be at most 10, the number of classes, but it is 32
    """
    if wanted > there:
        number = " ".join(filter(None, ("the number of classes", which)))
        raise ValueError(f"classes must be at most {there}, {number}, but it is {wanted}")


def classes_with_pairs(labels: Array) -> Array:
    """Return the positions of the classes with two or more images; warn about the number of other classes.

    Examples:
        >>> classes_with_pairs(np.array([4, 6, 6, 4]))
        array([0, 1])
    """
    sizes = np.unique(labels, return_counts=True)[1]
    paired = np.flatnonzero(sizes > 1)
    if len(paired) < len(sizes):
        few = len(sizes) - len(paired)
        warnings.warn(
            f"{few} of {len(sizes)} classes are never drawn: a pair needs two images of a class", stacklevel=3
        )
    return paired


def label_array(name: str, labels: Labels) -> Array:
    """Return labels as a numpy array.

    Examples:
        >>> label_array("labels", [0, 1])
        array([0, 1])
    """
    array = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if array.ndim != 1 or not len(array) or not np.issubdtype(array.dtype, np.integer):
        raise TypeError(
            f"{name} must be whole numbers of shape (n,), one for each image, but they are {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)


def checksum(array: Array) -> str:
    """Return a checksum of an array of integers or booleans.

    Examples:
        >>> checksum(np.array([1, 2]))[:8]
        '0c730b69'
    """
    return hashlib.sha256(array.astype("<i8").tobytes()).hexdigest()
