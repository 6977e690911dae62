"""Conversion of class names to integer labels, which all metrics and losses take."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor


def encode_labels(
    labels: Iterable[Hashable], names: Sequence[Hashable] | None = None
) -> tuple[Tensor, tuple[Hashable, ...]]:
    """Number class names from zero, in the sorted order of the names.

    The codes do not depend on the order of the samples, so the same classes have the same codes in every run.  To
    encode a second set, such as a gallery, with the same codes, pass the names of the first.

    Args:
        labels: one name per sample: a list, an array, a pandas column, a tensor; strings, numbers, tuples or anything
            else that can be hashed and sorted.
        names: the class names in the order of their codes; by default the sorted names of the labels.

    Returns:
        An int64 tensor ``codes`` and the tuple ``names``, with ``names[codes[i]] == labels[i]``.

    Examples:
        >>> codes, names = encode_labels(["wren", "albatross", "wren"])
        >>> codes, names
        (tensor([1, 0, 1]), ('albatross', 'wren'))
        >>> encode_labels(["albatross"], names)[0]
        tensor([0])
    """
    values = _list_values(labels)
    classes = _sort_names(values) if names is None else tuple(_list_values(names, "names"))
    codes = {name: code for code, name in enumerate(classes)}
    if len(codes) < len(classes):
        duplicate = next(name for code, name in enumerate(classes) if codes[name] != code)
        raise ValueError(f"names must be different from each other, but {duplicate!r} is there twice")
    try:
        indices = [codes[value] for value in values]
    except KeyError as unknown:
        raise ValueError(f"labels must be among the {len(classes)} names, but one is {unknown.args[0]!r}") from None
    return torch.tensor(indices, dtype=torch.int64, device="cpu"), classes


def _list_values(labels: Any, argument: str = "labels") -> list[Any]:
    """The labels as plain Python values, one per sample."""
    if isinstance(labels, str | bytes):
        raise TypeError(f"{argument} must be several labels, but it is one string, {labels!r}")
    if not isinstance(labels, Iterable):
        raise TypeError(f"{argument} must be one label per sample, but it is a {type(labels).__name__}")
    dimensions = getattr(labels, "ndim", 1)
    if dimensions != 1:
        raise ValueError(f"{argument} must have shape (n,), but it has {dimensions} dimensions")
    values: list[Any] = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    # labels of data sets are often tensors of one number, which are never equal as keys
    values = [value.item() if isinstance(value, Tensor) and value.numel() == 1 else value for value in values]
    for index, value in enumerate(values):
        if not isinstance(value, Hashable):
            raise TypeError(f"{argument} must be hashable, but entry {index} is a {type(value).__name__}")
        # a missing entry of a table is NaN, which is not equal to itself
        if value != value or value is None:
            raise ValueError(f"{argument} must not be missing, but entry {index} is {value!r}")
    return values


def _sort_names(values: list[Any]) -> tuple[Any, ...]:
    distinct = set(values)
    try:
        return tuple(sorted(distinct))
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in distinct}))
        raise TypeError(f"labels must be of one kind that can be sorted, but they are of {kinds}") from None
