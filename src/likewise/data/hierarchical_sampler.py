"""Hierarchical sampler: batches with few categories per level, so that negatives are similar."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor

from likewise.data.random_source import Array, Deck, Decks, RandomSource, whole_number
from likewise.data.samplers import Labels, ResumableSampler, check_divisible, checksum, label_array


class HierarchicalSampler(ResumableSampler):
    """Batches of few categories, some classes of each, and some images of each class.

    Classes of one category differ only in details, so a batch from few categories has hard negatives.  Categories may have
    several levels, such as genus and family: a batch then has few families, some genera of each, and some classes of each
    genus.  A category with too few classes (or too few categories in it) is never drawn; a warning reports their number.

    Args:
        labels: label of each image, ``(n,)``.
        categories: category of each image, ``(n,)``, or one per level, ``(n, levels)``, finest first; all images of a
            class, or of a category, must be in one category of the next level.
        groups: number of different categories in a batch, with the same number from each coarser one; one number per
            level, finest first.
        classes: number of different classes in a batch, with the same number from each category.
        per_class: number of images per class; images of smaller classes are repeated.
        steps: batches per epoch; by default, the number of images divided by the batch size, at least 1.
        seed: seed of all random choices.
        rank: rank of this process; it gets whole classes of each batch.
        world_size: number of processes over which each batch is split.

    Examples:
        >>> labels = [0, 0, 1, 1, 2, 2, 3, 3]
        >>> categories = [0, 0, 0, 0, 1, 1, 1, 1]
        >>> sampler = HierarchicalSampler(labels, categories, groups=1, classes=2, per_class=2)
        >>> [sorted(batch) for batch in sampler]
        [[4, 5, 6, 7], [0, 1, 2, 3]]
        >>> levels = np.stack([np.arange(16) // 2, np.arange(16) // 8], axis=1)  # genus and family of each class
        >>> sampler = HierarchicalSampler(np.arange(16), levels, groups=(2, 1), classes=4, per_class=1, steps=2)
        >>> [sorted(batch) for batch in sampler]
        [[10, 11, 12, 13], [0, 1, 6, 7]]
    """

    def __init__(
        self,
        labels: Labels,
        categories: Labels,
        *,
        groups: int | Sequence[int] = 2,
        classes: int = 32,
        per_class: int = 4,
        steps: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        counts = tuple(groups) if isinstance(groups, Sequence) else (groups,)
        self.groups = tuple(whole_number("groups", each, 1) for each in counts)
        self.classes, self.per_class = whole_number("classes", classes, 1), whole_number("per_class", per_class, 1)
        levels = _level_arrays(categories)
        super().__init__(
            labels,
            batch_size=classes * per_class,
            settings={
                "groups": self.groups[0] if len(self.groups) == 1 else str(self.groups),
                "classes": self.classes,
                "per_class": self.per_class,
                "categories": checksum(np.concatenate(levels)),
            },
            steps=steps,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        if len(levels) != len(self.groups):
            raise ValueError(
                f"groups must have one number for each of the {len(levels)} levels of categories, but it has {len(self.groups)}"
            )
        for level, coarser in enumerate(self.groups):
            name, finer = ("classes", self.classes) if level == 0 else ("groups", self.groups[level - 1])
            check_divisible(name, finer, "groups", coarser)
        check_divisible("classes", classes, "world_size", world_size)
        self._families = self._large_families(levels)

    def _large_families(self, levels: Sequence[Array]) -> list[list[Array]]:
        """Return, for each level, the members of each category that is large enough: classes, or categories of the level below."""
        names, members = np.unique(self.labels, return_inverse=True)
        kept, found = np.arange(len(names)), []
        for number, categories in enumerate(levels):
            if len(categories) != len(self.labels):
                raise ValueError(
                    f"categories must have one entry for each of the {len(self.labels)} labels, but it has {len(categories)}"
                )
            of_member = _coarser(members, categories, names, "class" if number == 0 else "category")
            needed = (self.classes, *self.groups)[number] // self.groups[number]
            names, families = np.unique(of_member), []
            large = []
            for place, category in enumerate(names):
                family = np.flatnonzero(of_member[kept] == category)  # positions among the members that can be drawn
                if len(family) >= needed:
                    families.append(kept[family] if number == 0 else family)
                    large.append(place)
            self._check_enough(number, len(large), len(names), needed)
            found.append(families)
            kept, members = np.array(large), np.searchsorted(names, categories)
        return found

    def _check_enough(self, number: int, large: int, there: int, needed: int) -> None:
        what = f"with {needed} {'classes' if number == 0 else 'categories in it'} or more"
        if self.groups[number] > large:
            raise ValueError(f"groups must be at most {large}, the categories {what}, but it is {self.groups[number]}")
        if large < there:
            warnings.warn(
                f"{there - large} of {there} categories are never drawn: only {large} are {what}", stacklevel=5
            )

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        images = Decks(self.labels, source)
        decks = [[Deck(family, source) for family in families] for families in self._families]
        top = Deck(np.arange(len(decks[-1])), source)
        counts = (self.classes, *self.groups)
        while True:
            chosen = top.deal(self.groups[-1])
            for number in reversed(range(len(decks))):
                each = counts[number] // self.groups[number]
                chosen = [member for category in chosen for member in decks[number][category].deal(each)]
            yield [index for member in chosen for index in images.deal(member, self.per_class)]


def _level_arrays(categories: Labels) -> list[Array]:
    """Return the labels of each level, finest first."""
    array = categories.detach().cpu().numpy() if isinstance(categories, Tensor) else np.asarray(categories)
    if array.ndim == 2 and array.shape[1]:
        return [label_array("categories", column) for column in array.T]
    return [label_array("categories", array)]


def _coarser(members: Array, categories: Array, names: Array, what: str) -> Array:
    """Return the category of each member; ``members`` holds the number of the member of each image."""
    first = np.unique(members, return_index=True)[1]
    found: Array = categories[first]
    mixed = np.flatnonzero(found[members] != categories)
    if len(mixed):
        member = members[mixed[0]]
        raise ValueError(
            f"categories must be the same for all images of a {what}, but {what} {names[member]} is in {found[member]} and in "
            f"{categories[mixed[0]]}"
        )
    return found
