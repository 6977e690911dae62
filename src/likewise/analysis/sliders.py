"""What Python would forget while a loss is traced: hyper-parameters, and sizes that it asks for as plain numbers."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map


class Slider(float):
    """A number that knows where it came from: torch sees a tensor in its place, Python a float.

    Arithmetic with numbers gives another one; a condition on it is decided by its value.

    Examples:
        >>> import torch
        >>> twice = 2.0 * Slider(0.5, lambda: torch.tensor(0.7))
        >>> twice == 1.0, twice + torch.zeros(1)
        (True, tensor([1.4000]))
    """

    _tensor: Callable[[], Tensor]

    def __new__(cls, value: float, tensor: Callable[[], Tensor]) -> Slider:
        """A float that remembers."""
        made = super().__new__(cls, value)
        made._tensor = tensor
        return made

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map(_as_tensor, (args, kwargs or {}))
        return function(*args, **kwargs)


def _as_tensor(value: Any) -> Any:
    return value._tensor() if isinstance(value, Slider) else value


def _combined(function: Callable[..., Any], torch_function: Callable[..., Any], *operands: Any) -> Any:
    """A function of numbers of which some are sliders."""
    if any(isinstance(operand, Tensor) for operand in operands):
        return torch_function(*map(_as_tensor, operands))
    plain = [float(operand) if isinstance(operand, Slider) else operand for operand in operands]
    if not all(isinstance(operand, int | float) for operand in plain):
        return NotImplemented
    return Slider(function(*plain), lambda: torch_function(*map(_as_tensor, operands)))


def _add_arithmetic() -> None:
    for name in ("add", "sub", "mul", "truediv", "pow"):
        function = getattr(operator, name)

        def forward(self: Slider, other: Any, function: Any = function) -> Any:
            return _combined(function, function, self, other)

        def backward(self: Slider, other: Any, function: Any = function) -> Any:
            return _combined(function, function, other, self)

        setattr(Slider, f"__{name}__", forward)
        setattr(Slider, f"__r{name}__", backward)
    for name in ("neg", "abs"):
        function = getattr(operator, name)
        setattr(Slider, f"__{name}__", lambda self, function=function: _combined(function, function, self))


_add_arithmetic()

_MATH: dict[str, Callable[..., Tensor]] = {
    **{name: getattr(torch, name) for name in ("cos", "sin", "tan", "sqrt", "exp", "log", "log1p", "expm1", "tanh")},
    "radians": torch.deg2rad,
    "degrees": torch.rad2deg,
}


@contextmanager
def nothing_forgotten() -> Iterator[None]:
    """Let ``len`` of a tensor stay a symbol and functions of `math` stay sliders inside this block.

    What is called with anything else does what it always did, in other threads too.

    Examples:
        >>> import torch
        >>> with nothing_forgotten():
        ...     root = math.sqrt(Slider(4.0, lambda: torch.tensor(9.0)))
        >>> root == 2.0, root * torch.ones(1)
        (True, tensor([3.]))
    """
    length, counting = builtins.len, builtins.range
    before = {name: getattr(math, name) for name in _MATH}

    def symbolic_length(value: Any) -> Any:
        return value.shape[0] if isinstance(value, Tensor) and value.ndim else length(value)

    def of_slider(name: str) -> Callable[..., Any]:
        def function(value: Any, *more: Any) -> Any:
            if isinstance(value, Slider) and not more:
                return _combined(before[name], _MATH[name], value)
            return before[name](value, *more)

        return function

    try:
        builtins.len = symbolic_length
        builtins.range = _SymbolicRange  # type: ignore[assignment,misc]
        for name in _MATH:
            setattr(math, name, of_slider(name))
        yield
    finally:
        builtins.len, builtins.range = length, counting  # type: ignore[misc]
        for name, function in before.items():
            setattr(math, name, function)


_RANGE = range


class _RangeKind(type):
    """What makes ``isinstance(…, range)`` mean what it did."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _RANGE)

    def __call__(cls, *bounds: Any) -> Any:
        if not any(isinstance(bound, torch.SymInt) for bound in bounds):
            return _RANGE(*bounds)
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        counted = []
        while (start < stop) if step > 0 else (start > stop):  # each comparison is taken for granted afterwards
            counted.append(start)
            start = start + step
        return counted


class _SymbolicRange(metaclass=_RangeKind):
    """``range`` whose bounds may be symbols: loops over few blocks of many rows."""


class Substitutes(TorchFunctionMode):
    """Torch's functions that ask for a plain size, in other words.

    Examples:
        >>> import torch
        >>> with Substitutes():
        ...     torch.ones(2, 2).fill_diagonal_(0.0)
        tensor([[0., 1.],
                [1., 0.]])
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _SUBSTITUTES.get(function, function)(*args, **(kwargs or {}))


def _fill_diagonal(matrix: Tensor, value: float) -> Tensor:
    rows, columns = (torch.arange(size, device=matrix.device) for size in matrix.shape)
    return matrix.masked_fill_(rows[:, None] == columns[None, :], value)


def _take_along(tensor: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        return tensor.flatten().gather(0, indices.flatten())
    dim = dim % tensor.ndim
    shape = list(
        torch.broadcast_shapes(  # type: ignore[no-untyped-call]
            *(each.select(dim, 0).shape for each in (tensor, indices))
        )
    )
    wide = [each.expand([*shape[:dim], each.shape[dim], *shape[dim:]]) for each in (tensor, indices)]
    return wide[0].gather(dim, wide[1])


_SUBSTITUTES: dict[Any, Callable[..., Tensor]] = {
    Tensor.fill_diagonal_: _fill_diagonal,
    Tensor.take_along_dim: _take_along,
    torch.take_along_dim: _take_along,
}
