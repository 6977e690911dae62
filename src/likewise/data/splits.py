"""Splits of classes into training, validation and test: immutable values that can be printed, saved and verified.

The three parts have no class in common.  For a data set that is a training part (``CUB200(split="train")``), split its
number of classes; for a whole data set, split the result of `half_split`, which leaves the test classes unchanged.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path

from likewise.data.dataset import ImageDataset
from likewise.data.random_source import RandomSource, whole_number
from likewise.files import write_text

_FORMAT = "likewise split 1"


@dataclass(frozen=True)
class Split:
    """The classes for training, for validation and for test.

    Args:
        name: description of how the split was made.
        classes: number of classes; the parts need not use all of them.
        train: training classes.
        val: validation classes.
        test: test classes.
        seed: seed of the random choice, if there was one.

    Examples:
        >>> split = Split("by hand", 5, train=[3, 0], test=[4])
        >>> print(split)
        by hand: 5 classes, 2 train, 0 val, 1 test, 2 in no part (044ac38e)
        >>> split.train
        (0, 3)
        >>> Split("by hand", 5, train=[0, 1], val=[1])
        Traceback (most recent call last):
        ValueError: train and val must have no class in common, but both have class 1
    """

    name: str
    classes: int
    train: tuple[int, ...]
    val: tuple[int, ...] = ()
    test: tuple[int, ...] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, but it is {self.name!r}")
        object.__setattr__(self, "classes", whole_number("classes", self.classes, 1))
        owner: dict[int, str] = {}
        for part in ("train", "val", "test"):
            chosen = _classes(part, getattr(self, part), self.classes)
            for each in chosen:
                if each in owner:
                    raise ValueError(
                        f"{owner[each]} and {part} must have no class in common, but both have class {each}"
                    )
                owner[each] = part
            object.__setattr__(self, part, chosen)
        if self.seed is not None:
            object.__setattr__(self, "seed", whole_number("seed", self.seed, 0))

    def __str__(self) -> str:
        rest = self.classes - len(self.train) - len(self.val) - len(self.test)
        counts = f"{len(self.train):,} train, {len(self.val):,} val, {len(self.test):,} test"
        left = f", {rest:,} in no part" if rest else ""
        return f"{self.name}: {self.classes:,} classes, {counts}{left} ({self.checksum[:8]})"

    @property
    def checksum(self) -> str:
        """SHA-256 of the content of the split, 64 hexadecimal digits."""
        content = json.dumps(self._fields(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def _fields(self) -> dict[str, object]:
        parts: dict[str, object] = {part: list(getattr(self, part)) for part in ("train", "val", "test")}
        return {"name": self.name, "classes": self.classes, "seed": self.seed, **parts}

    def apply(self, dataset: ImageDataset) -> dict[str, ImageDataset]:
        """Return the parts of a data set, ``{"train": …, "val": …, "test": …}``, without empty parts."""
        if len(dataset.class_names) != self.classes:
            raise ValueError(
                f"dataset must have the {self.classes} classes that the split {self.name!r} was made for, "
                f"but {dataset.name} has {len(dataset.class_names)}"
            )
        parts = {"train": self.train, "val": self.val, "test": self.test}
        return {part: dataset.of_classes(classes) for part, classes in parts.items() if classes}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the split as JSON with its checksum; the file is replaced atomically."""
        target = Path(path)
        content = json.dumps({"format": _FORMAT, **self._fields(), "checksum": self.checksum}, indent=1)
        write_text(target, content + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Split:
        """Read a split that `save` wrote; raise an error if the file was changed since."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)} must be a saved split, but it is not JSON: {error}") from None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f"{os.fspath(path)} must be a saved split of the format {_FORMAT!r}, but it is not")
        names = ("name", "classes", "train", "val", "test", "seed")
        missing = [name for name in (*names, "checksum") if name not in content]
        if missing:
            raise ValueError(f"{os.fspath(path)} must be a saved split, but {missing[0]} is missing")
        split = cls(**{name: content[name] for name in names})
        if split.checksum != content["checksum"]:
            raise ValueError(
                f"{os.fspath(path)} must have the checksum that it states, {content['checksum']}, but its content "
                f"has {split.checksum}: it was changed after it was saved"
            )
        return split


def half_split(classes: int) -> Split:
    """The classic split (Oh Song et al. 2016): the first half of the classes for training, the second for test.

    Args:
        classes: number of classes; if it is odd, test gets one more.

    Examples:
        >>> print(half_split(200))
        first half: 200 classes, 100 train, 0 val, 100 test (7599515c)
    """
    middle = whole_number("classes", classes, 2) // 2
    return Split("first half", classes, train=tuple(range(middle)), test=tuple(range(middle, classes)))


def fixed_validation(of: Split | int, *, share: float = 0.1, seed: int = 0) -> Split:
    """Use a random fraction of the training classes for validation (the thesis, Section 5.2: 90/10).

    The choice is random because consecutive classes may be similar: the first three of CUB are albatrosses.

    Args:
        of: the split whose training classes are divided, or a number of classes that are all for training.
        share: fraction of the training classes, rounded to whole classes.
        seed: seed of the choice.

    Examples:
        >>> print(fixed_validation(half_split(200)))
        first half, 10% validation, seed 0: 200 classes, 90 train, 10 val, 100 test (2aa14954)
        >>> print(fixed_validation(100, share=0.05, seed=3))
        5% validation, seed 3: 100 classes, 95 train, 5 val, 0 test (268747ab)
    """
    split = _training(of)
    if isinstance(share, bool) or not isinstance(share, Real) or not 0.0 < share < 1.0:
        raise ValueError(f"share must be between 0 and 1, but it is {share!r}")
    count = int(len(split.train) * float(share) + 0.5)
    if not 0 < count < len(split.train):
        raise ValueError(
            f"share must leave classes on both sides, but {share!r} of {len(split.train)} training classes is {count}"
        )
    shuffled = _shuffle(split.train, seed)
    name = _extend_name(split, f"{100.0 * float(share):g}% validation, seed {seed}")
    return replace(split, name=name, train=shuffled[count:], val=shuffled[:count], seed=seed)


def random_folds(of: Split | int, *, folds: int = 10, seed: int = 0) -> tuple[Split, ...]:
    """K-fold cross-validation over classes in random order (the thesis, Section 5.1: 10 folds).

    Every training class is for validation in exactly one fold, and for training in all others.

    Args:
        of: the split whose training classes are divided, or a number of classes that are all for training.
        folds: number of folds; their sizes differ by at most one class.
        seed: seed of the order of the classes.

    Examples:
        >>> folds = random_folds(100)
        >>> len(folds)
        10
        >>> print(folds[0])
        random fold 1 of 10, seed 0: 100 classes, 90 train, 10 val, 0 test (7ca545c8)
    """
    split = _training(of)
    return _folds(split, _shuffle(split.train, seed), folds, "random fold", seed)


def contiguous_folds(of: Split | int, *, folds: int = 4) -> tuple[Split, ...]:
    """K-fold cross-validation over classes in their order (the reality check: 4 folds).

    Four folds of `half_split` are 0-12.5%, 12.5-25%, 25-37.5% and 37.5-50% of all classes.

    Args:
        of: the split whose training classes are divided, or a number of classes that are all for training.
        folds: number of folds; their sizes differ by at most one class.

    Examples:
        >>> folds = contiguous_folds(half_split(16))
        >>> [fold.val for fold in folds]
        [(0, 1), (2, 3), (4, 5), (6, 7)]
        >>> print(folds[0])
        first half, contiguous fold 1 of 4: 16 classes, 6 train, 2 val, 8 test (42ef1b5d)
    """
    split = _training(of)
    return _folds(split, split.train, folds, "contiguous fold", None)


def _folds(split: Split, order: tuple[int, ...], folds: int, what: str, seed: int | None) -> tuple[Split, ...]:
    count = whole_number("folds", folds, 2)
    if count > len(order):
        raise ValueError(f"folds must not be more than the {len(order)} training classes, but it is {count}")
    edges = [number * len(order) // count for number in range(count + 1)]
    made = []
    for number, (start, stop) in enumerate(pairwise(edges), 1):
        name = _extend_name(split, f"{what} {number} of {count}") + ("" if seed is None else f", seed {seed}")
        rest = order[:start] + order[stop:]
        made.append(replace(split, name=name, train=rest, val=order[start:stop], seed=seed))
    return tuple(made)


def _training(of: Split | int) -> Split:
    """Return a split whose training classes may be divided further."""
    if not isinstance(of, Split):
        if not isinstance(of, Integral) or isinstance(of, bool):
            raise TypeError(f"of must be a split or a number of classes, but it is {of!r}")
        return Split("", of, train=tuple(range(whole_number("of", of, 1))))
    if of.val:
        raise ValueError(f"of must be a split without validation classes, but {of.name!r} has {len(of.val)}")
    return of


def _extend_name(split: Split, addition: str) -> str:
    return f"{split.name}, {addition}" if split.name else addition


def _shuffle(classes: tuple[int, ...], seed: int) -> tuple[int, ...]:
    order = RandomSource(whole_number("seed", seed, 0)).order(len(classes))
    return tuple(classes[position] for position in order.tolist())


def _classes(part: str, classes: Iterable[int], count: int) -> tuple[int, ...]:
    """Return the classes of a part in ascending order."""
    chosen = sorted(whole_number(f"every class of {part}", each, 0) for each in classes)
    if chosen and chosen[-1] >= count:
        raise ValueError(f"every class of {part} must be below {count}, the number of classes, but one is {chosen[-1]}")
    twice = [each for each, following in pairwise(chosen) if each == following]
    if twice:
        raise ValueError(f"{part} must have every class once, but it has class {twice[0]} twice")
    return tuple(chosen)
