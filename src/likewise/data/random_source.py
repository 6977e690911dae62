"""Random numbers that are the same on every machine and with every release of numpy, and sampling without replacement."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def whole_number(name: str, value: object, least: int) -> int:
    """Check that a value is an integer, of Python or numpy, not smaller than ``least``, and return it as an ``int``.

    Examples:
        >>> whole_number("seed", -1, 0)
        Traceback (most recent call last):
        ValueError: seed must be a whole number ≥ 0, but it is -1
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number ≥ {least}, but it is {value!r}")
    return int(value)


class RandomSource:
    """A source of random integers, determined by a seed and a key.

    It uses only the raw words of PCG64, which numpy guarantees to keep; numpy may change how its generators make
    permutations and floats from them.

    Args:
        seed: a non-negative integer.
        key: further integers, such as an epoch; different keys give independent sources.

    Examples:
        >>> RandomSource(0, 1).order(5).tolist(), RandomSource(0, 2).order(5).tolist()
        ([1, 3, 2, 0, 4], [1, 4, 2, 3, 0])
    """

    def __init__(self, seed: int, *key: int):
        self._source = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key))

    def words(self, count: int) -> Array:
        """Return ``count`` words of 64 random bits."""
        words: Array = self._source.random_raw(count)
        return words

    def order(self, count: int) -> Array:
        """Return the numbers below ``count`` in random order."""
        return np.argsort(self.words(count), kind="stable")

    def below(self, limit: int, count: int) -> Array:
        """Return ``count`` independent random numbers below a limit."""
        return (self.words(count) % np.uint64(limit)).astype(np.int64)


class Deck:
    """Sampling without replacement: cards are dealt in random order, and all are shuffled again when they run out.

    Args:
        cards: the values to deal.
        source: the random numbers.

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
        """Deal ``count`` different cards; if the deck has fewer, all of them, and some again."""
        if count <= len(self._left):
            dealt, self._left = self._left[:count], self._left[count:]
            return [*dealt.tolist()]
        dealt, fresh = self._left, self.cards[self._source.order(len(self.cards))]
        if count > len(self.cards):
            again = self.cards[self._source.below(len(self.cards), count - len(self.cards))]
            self._left = self._left[:0]
            return [*fresh.tolist(), *again.tolist()]
        # cards that are dealt in this call stay in the new deck for later
        new = np.flatnonzero(~np.isin(fresh, dealt))[: count - len(dealt)]
        self._left = np.delete(fresh, new)
        return [*dealt.tolist(), *fresh[new].tolist()]


class Decks:
    """A deck of images for each class, shuffled at its first deal.

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
        """Deal ``count`` images of the class at position ``number`` of ``classes``."""
        if number not in self._decks:
            self._decks[number] = Deck(self._images[number], self._source)
        return self._decks[number].deal(count)
