"""Names of classes become whole numbers once, at the door; everything behind it takes integers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor


def encode_labels(
    labels: Iterable[Hashable], names: Sequence[Hashable] | None = None
) -> tuple[Tensor, tuple[Hashable, ...]]:
    """Number class names from zero, in the sorted order of the names.

    The order of the samples does not matter to the numbers, so the same classes get the same codes in every run.  To
    encode a second set, such as a gallery, with the same codes, give the names of the first.

    Args:
        labels: one name per sample: a list, an array, a pandas column, a tensor; strings, numbers, tuples or anything
            else that can be hashed and sorted.
        names: the class names in the order of their codes; without it, the sorted names that occur.

    Returns:
        An int64 tensor ``codes`` and the tuple ``names``, with ``names[codes[i]] == labels[i]``.

    Examples:
        >>> codes, names = encode_labels(["wren", "albatross", "wren"])
        >>> codes, names
        (tensor([1, 0, 1]), ('albatross', 'wren'))
        >>> encode_labels(["albatross"], names)[0]
        tensor([0])
    """
    values = _values(labels)
    known = _sorted_names(values) if names is None else tuple(_values(names, "names"))
    codes = {name: code for code, name in enumerate(known)}
    if len(codes) < len(known):
        twice = next(name for code, name in enumerate(known) if codes[name] != code)
        raise ValueError(f"names must be different from each other, but {twice!r} is there twice")
    try:
        encoded = [codes[value] for value in values]
    except KeyError as unknown:
        raise ValueError(f"labels must be among the {len(known)} names, but one is {unknown.args[0]!r}") from None
    return torch.tensor(encoded, dtype=torch.int64, device="cpu"), known


def _values(labels: Any, argument: str = "labels") -> list[Any]:
    """The labels as plain Python values, one per sample."""
    if isinstance(labels, str | bytes):
        raise TypeError(f"{argument} must be several labels, but it is one string, {labels!r}")
    if not isinstance(labels, Iterable):
        raise TypeError(f"{argument} must be one label per sample, but it is a {type(labels).__name__}")
    dimensions = getattr(labels, "ndim", 1)
    if dimensions != 1:
        raise ValueError(f"{argument} must have shape (n,), but it has {dimensions} dimensions")
    values: list[Any] = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    # a data set's labels are often single numbers in tensors, which are never equal as keys
    values = [value.item() if isinstance(value, Tensor) and value.numel() == 1 else value for value in values]
    for index, value in enumerate(values):
        if not isinstance(value, Hashable):
            raise TypeError(f"{argument} must be hashable, but entry {index} is a {type(value).__name__}")
        # a missing entry of a table arrives as NaN, which is not even equal to itself
        if value != value or value is None:
            raise ValueError(f"{argument} must not be missing, but entry {index} is {value!r}")
    return values


def _sorted_names(values: list[Any]) -> tuple[Any, ...]:
    distinct = set(values)
    try:
        return tuple(sorted(distinct))
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in distinct}))
        raise TypeError(f"labels must be of one kind that can be sorted, but they are of {kinds}") from None
