"""Protocols: which classes are used for training and validation, and in how many folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likewise.formula import whole_number


@dataclass(frozen=True)
class Protocol:
    """How methods are compared.

    Args:
        name: the name of the protocol.
        folds: the ``split`` section of the configuration of each fold.
        source: the publication that describes it.
        tuned_on_test: whether models are selected on the test set, because there are no validation classes; results are
            then marked.

    Examples:
        >>> PROTOCOLS["reality-check"].folds[1]
        {'folds': 4, 'fold': 1, 'contiguous': True}
    """

    name: str
    folds: tuple[Mapping[str, Any], ...]
    source: str
    tuned_on_test: bool = False

    def __str__(self) -> str:
        """Describe the protocol in one sentence."""
        if self.tuned_on_test:
            return "no validation classes: models are selected on the test set, and results are marked"
        if len(self.folds) == 1:
            if self.folds[0].get("validation") is None:
                return "the validation part of the data set, or else a share of the training classes, is held out"
            return "a fixed share of the training classes is held out for validation"
        how = "in their order" if self.folds[0].get("contiguous") else "at random"
        return f"{len(self.folds)} folds of the training classes, split {how}; each is used for validation once"


def classic() -> Protocol:
    """Train on the first half of the classes and test on the second, without validation classes; results are marked.

    Examples:
        >>> classic().tuned_on_test
        True
    """
    return Protocol("classic", ({"validation": 0.0},), "Oh Song et al. 2016", tuned_on_test=True)


def fixed_share(share: float | None = 0.1, *, seed: int = 0) -> Protocol:
    """Hold out a share of the training classes for validation, the same for all methods and seeds.

    Args:
        share: the share of the training classes; ``None``: the validation part of the data set, or 0.1 without one.
        seed: the seed of the choice of classes.

    Examples:
        >>> fixed_share(0.1).folds
        ({'validation': 0.1, 'seed': 0},)
    """
    if share is None:
        return Protocol("own-validation", ({"validation": None, "seed": seed},), "the thesis, Section 5.2")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise ValueError(f"share must be a number in (0, 1), but it is {share!r}; classic() has no validation")
    return Protocol("fixed-validation", ({"validation": share, "seed": seed},), "the thesis, Section 5.2")


def k_fold(folds: int = 10, *, seed: int = 0, contiguous: bool = False) -> Protocol:
    """Cross-validation: every training class is used for validation once.

    Args:
        folds: the number of folds.
        seed: the seed of the order of the classes.
        contiguous: split the classes in their original order.

    Examples:
        >>> len(k_fold(10).folds)
        10
    """
    count = whole_number("folds", folds, 2)
    extra: dict[str, Any] = {"contiguous": True} if contiguous else {"seed": whole_number("seed", seed, 0)}
    sections = tuple({"folds": count, "fold": fold, **extra} for fold in range(count))
    source = "the reality check" if contiguous else "the thesis, Section 5.1"
    return Protocol(f"{count}-fold", sections, source)


PROTOCOLS: Mapping[str, Protocol] = {
    "classic": classic(),
    "fixed-validation": fixed_share(),
    "own-validation": fixed_share(None),
    "thesis-folds": k_fold(10),
    "reality-check": k_fold(4, contiguous=True),
}
"""Published protocols, by name."""
