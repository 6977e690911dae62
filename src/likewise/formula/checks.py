"""Checks of arguments: each runs once per call; its error is one sentence with the argument, its value and the rule.

Shapes, dtypes and devices are always checked.  Values are always checked on CPU tensors, on other devices only inside
`check_values`, because reading them synchronizes the host with the device.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from likewise._compat import is_mapped

_values_checked: ContextVar[bool | None] = ContextVar("values_checked", default=None)


@contextmanager
def check_values(read: bool = True) -> Iterator[None]:
    """Check the values of tensors on every device inside this block, not only on the CPU.

    Args:
        read: whether values are read; ``False`` turns the checks off on every device, the CPU included.

    Examples:
        >>> with check_values():
        ...     pass
    """
    token = _values_checked.set(read)
    try:
        yield
    finally:
        _values_checked.reset(token)


def can_read_values(tensor: Tensor) -> bool:
    """Return whether the values of a tensor may be read at this point.

    Examples:
        >>> import torch
        >>> can_read_values(torch.zeros(1))
        True
    """
    if torch.compiler.is_compiling() or tensor.is_meta or is_mapped(tensor):
        return False
    decided = _values_checked.get()
    return tensor.device.type == "cpu" if decided is None else decided


def one_of(name: str, value: object, choices: Iterable[str], more: str = "") -> Any:
    """Return the value if it is one of the choices.

    Examples:
        >>> one_of("reduction", "mean", ["mean", "sum"])
        'mean'
    """
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {listed}{' ' + more if more else ''}, but it is {value!r}")
    return value


def whole_number(name: str, value: object, least: int) -> int:
    """Return a whole number, also one of numpy, if it is at least ``least``; otherwise raise an error.

    Examples:
        >>> whole_number("size", 3, 1)
        3
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number ≥ {least}, but it is {value!r}")
    return int(value)


def embeddings_of(name: str, value: object) -> Tensor:
    """Check embeddings: a float tensor of shape ``(n, d)`` with at least one row and column, finite.

    Half precision is widened to float32, in which every loss accumulates.

    Examples:
        >>> import torch
        >>> embeddings_of("embeddings", torch.zeros(2, 3, dtype=torch.float16)).dtype
        torch.float32
    """
    checked = embeddings_as_given(name, value)
    return checked if checked.dtype in (torch.float32, torch.float64) else checked.float()


def embeddings_as_given(name: str, value: object) -> Tensor:
    """Check embeddings as `embeddings_of` does, and keep their dtype.

    Examples:
        >>> import torch
        >>> embeddings_as_given("embeddings", torch.zeros(2, 3, dtype=torch.float16)).dtype
        torch.float16
    """
    checked = rows_of(name, value)
    check_finite(name, checked)
    return checked


def check_finite(name: str, rows: Tensor) -> None:
    """Check that embeddings are finite, if their values may be read.

    Examples:
        >>> import torch
        >>> check_finite("embeddings", torch.tensor([[0.0], [torch.inf]]))
        Traceback (most recent call last):
        ...
        ValueError: embeddings must be finite, but row 1 contains NaN or infinity
    """
    # a finite sum proves finite entries and is cheap; an infinite one may be an overflow, so check each row
    if can_read_values(rows) and not math.isfinite(rows.detach().sum(dtype=torch.float32).item()):
        broken = (~torch.isfinite(rows.detach())).any(dim=1).nonzero()
        if len(broken):
            raise ValueError(f"{name} must be finite, but row {int(broken[0])} contains NaN or infinity")


def rows_of(name: str, value: object) -> Tensor:
    """Check the type, layout, shape and dtype of embeddings, and not their values.

    Examples:
        >>> import torch
        >>> rows_of("embeddings", torch.full((1, 2), torch.nan)).shape
        torch.Size([1, 2])
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, but it is a {type(value).__name__}")
    check_dense(name, value)
    if value.ndim != 2:
        raise ValueError(f"{name} must have shape (n, d), but the shape is {tuple(value.shape)}")
    if not value.is_floating_point():
        raise TypeError(f"{name} must be of a floating-point dtype, but the dtype is {value.dtype}")
    if 0 in value.shape:
        raise ValueError(f"{name} must have at least one row and one column, but the shape is {tuple(value.shape)}")
    return value


def check_dense(name: str, value: Tensor) -> None:
    """Check that a tensor is not sparse.

    Examples:
        >>> import torch
        >>> check_dense("labels", torch.tensor([0, 1]).to_sparse())
        Traceback (most recent call last):
        TypeError: labels must be a dense tensor, but its layout is torch.sparse_coo: to_dense() makes it one
    """
    if value.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, but its layout is {value.layout}: to_dense() makes it one")


def check_squared_norms(name: str, rows: Tensor, room: float = 1.0) -> None:
    """Check that the dtype can represent the squared norms of raw embeddings, which losses without normalization use.

    Args:
        name: the argument.
        rows: the embeddings, ``(n, d)``.
        room: by how much the largest squared norm must stay below the largest number.

    Examples:
        >>> import torch
        >>> check_squared_norms("embeddings", torch.tensor([[1.0, 0.0], [0.0, 2e19]]))
        Traceback (most recent call last):
        ...
        ValueError: embeddings must have norms of at most 1.8e+19 where they are not normalized, because float32 represents no larger squares, but row 1 has norm 2.0e+19
    """
    if not can_read_values(rows):
        return
    dtype = torch.promote_types(rows.dtype, torch.float32)  # in which half precision is computed
    limit = torch.finfo(dtype).max / room
    largest = max(abs(float(each)) for each in torch.aminmax(rows.detach()))
    if largest * largest * rows.shape[1] <= limit:  # a power that overflows would be an error
        return
    norms = torch.linalg.vector_norm(rows.detach(), dim=1, dtype=torch.float64)
    too_long = (norms > math.sqrt(limit)).nonzero()
    if len(too_long):
        row = int(too_long[0])
        norm = math.hypot(*rows[row].tolist())  # a norm can be finite although its square is not
        raise ValueError(
            f"{name} must have norms of at most {math.sqrt(limit):.1e} where they are not normalized, because "
            f"{str(dtype).removeprefix('torch.')} represents no larger squares, but row {row} has norm {norm:.1e}"
        )


def labels_of(name: str, value: object, rows: int | None, device: torch.device | None, others: str) -> Tensor:
    """Check labels: an integer tensor of shape ``(rows,)`` on the given device; any integer dtype, any ids.

    ``None`` for rows or device leaves that open.

    Examples:
        >>> import torch
        >>> labels_of("labels", torch.tensor([0, 1], dtype=torch.uint8), 2, torch.device("cpu"), "embeddings")
        tensor([0, 1])
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} must be a tensor, but it is a {type(value).__name__}: torch.as_tensor makes one of numbers, "
            "likewise.metrics.encode_labels of names"
        )
    check_dense(name, value)
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise TypeError(f"{name} must be of an integer dtype, but the dtype is {value.dtype}")
    if value.ndim != 1:
        raise ValueError(f"{name} must have shape (n,), but the shape is {tuple(value.shape)}")
    if rows is not None and value.shape[0] != rows:
        raise ValueError(f"{name} must have one entry for each of the {rows} {others}, but it has {len(value)}")
    if device is not None:
        same_device(name, value, device, others)
    return value.to(torch.int64)


def same_device(name: str, value: Tensor, device: torch.device, others: str) -> None:
    """Check that a tensor is on the device of the others.

    Examples:
        >>> import torch
        >>> same_device("labels", torch.zeros(1), torch.device("cpu"), "embeddings")
    """
    if value.device != device:
        raise ValueError(f"{name} must be on the device of {others}, {device}, but it is on {value.device}")
