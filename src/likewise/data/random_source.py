"""Random numbers that are the same on every machine and under every release of numpy, and decks of cards."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def whole_number(name: str, value: object, least: int) -> int:
    """Return a whole number, numpy's included, that is not smaller than ``least``.

    Examples:
        >>> whole_number("seed", -1, 0)
        Traceback (most recent call last):
        ValueError: seed must be a whole number ≥ 0, but it is -1
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number ≥ {least}, but it is {value!r}")
    return int(value)


class RandomSource:
    """A source of random whole numbers, known by a seed and a key.

    Only raw words of PCG64 are used, which numpy promises not to change; how its generators make permutations and
    floats of them, it may change.

    Args:
        seed: a whole number, not negative.
        key: more whole numbers, such as an epoch; different keys give independent sources.

    Examples:
        >>> RandomSource(0, 1).order(5).tolist(), RandomSource(0, 2).order(5).tolist()
        ([1, 3, 2, 0, 4], [1, 4, 2, 3, 0])
    """

    def __init__(self, seed: int, *key: int):
        self._source = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key))

    def words(self, count: int) -> Array:
        """So many words of 64 random bits."""
        words: Array = self._source.random_raw(count)
        return words

    def order(self, count: int) -> Array:
        """The numbers below ``count`` in random order."""
        return np.argsort(self.words(count), kind="stable")

    def below(self, limit: int, count: int) -> Array:
        """So many numbers below a limit, each by itself."""
        return (self.words(count) % np.uint64(limit)).astype(np.int64)


class Deck:
    """Cards dealt without repetition; when they have run out, all are shuffled again.

    Args:
        cards: what to deal.
        source: shuffles.

    Examples:
        >>> deck = Deck(np.arange(5), RandomSource(0))
        >>> first, second = deck.deal(3), deck.deal(3)
        >>> sorted(first + second[:2]), len(set(second))
        ([0, 1, 2, 3, 4], 3)
    """

    def __init__(self, cards: Array, source: RandomSource):
        self.cards = cards
        self._source = source
        self._left = cards[:0]

    def deal(self, count: int) -> list[int]:
        """So many different cards; of a deck that has fewer, all of them and others again."""
        if count <= len(self._left):
            dealt, self._left = self._left[:count], self._left[count:]
            return [*dealt.tolist()]
        dealt, fresh = self._left, self.cards[self._source.order(len(self.cards))]
        if count > len(self.cards):
            again = self.cards[self._source.below(len(self.cards), count - len(self.cards))]
            self._left = self._left[:0]
            return [*fresh.tolist(), *again.tolist()]
        # what is in hand already stays in the fresh deck for later
        new = np.flatnonzero(~np.isin(fresh, dealt))[: count - len(dealt)]
        self._left = np.delete(fresh, new)
        return [*dealt.tolist(), *fresh[new].tolist()]


class Decks:
    """A deck of images for each class, shuffled when it is first dealt from.

    Examples:
        >>> decks = Decks(np.array([7, 5, 7]), RandomSource(0))
        >>> decks.classes.tolist(), decks.sizes.tolist(), sorted(decks.deal(1, 2))
        ([5, 7], [1, 2], [0, 2])
    """

    def __init__(self, labels: Array, source: RandomSource):
        self.classes, self.sizes = np.unique(labels, return_counts=True)
        self._images = np.split(np.argsort(labels, kind="stable"), np.cumsum(self.sizes)[:-1])
        self._decks: dict[int, Deck] = {}
        self._source = source

    def deal(self, number: int, count: int) -> list[int]:
        """So many images of the class at this place in ``classes``."""
        if number not in self._decks:
            self._decks[number] = Deck(self._images[number], self._source)
        return self._decks[number].deal(count)
