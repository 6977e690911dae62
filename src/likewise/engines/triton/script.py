"""Launches that are written down once, with the places of their arguments, and run for every batch of the same kind.

What takes time in a small batch is finding out what to launch: shapes, strides, arguments in their order.  All of it is
the same from batch to batch but for a few addresses and numbers, which are filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.engines.triton.program import Launch, Launcher


class Place(NamedTuple):
    """Where an argument will be.

    Args:
        base: which of the tensors of a run.
        offset: how many bytes behind its beginning; only in a tensor that was laid out with `Room`.
        dtype: of what is there.
    """

    base: int
    offset: int
    dtype: torch.dtype


class Value(NamedTuple):
    """A number of a run.

    Args:
        which: of them.
    """

    which: int


class Room:
    """Lays out one tensor for everything that a run needs only for itself.

    Args:
        base: its place among the tensors of a run.

    Examples:
        >>> room = Room(2)
        >>> room.take(3, torch.float32), room.take(1, torch.bfloat16), room.bytes
        (Place(base=2, offset=0, dtype=torch.float32), Place(base=2, offset=64, dtype=torch.bfloat16), 128)
    """

    def __init__(self, base: int) -> None:
        self.base = base
        self.bytes = 0

    def take(self, count: int, dtype: torch.dtype) -> Place:
        """A place for so many numbers, at an address that loads in whole vectors."""
        place = Place(self.base, self.bytes, dtype)
        self.bytes += max(64, -(-count * dtype.itemsize // 64) * 64)
        return place


def within(room: Tensor, place: Place, shape: tuple[int, ...], stride: tuple[int, ...]) -> Tensor:
    """A tensor that lies in a room.

    Examples:
        >>> within(torch.arange(8.0), Place(0, 8, torch.float32), (2, 2), (3, 1))
        tensor([[2., 3.],
                [5., 6.]])
    """
    same = room if room.dtype == place.dtype else room.view(place.dtype)
    return same.as_strided(shape, stride, place.offset // place.dtype.itemsize)


class Step(NamedTuple):
    """A launch.

    Args:
        kernel: what.
        programs: how many.
        arguments: numbers and constants as they are; a `Place` for each pointer, a `Value` for each number of a run.
        warps: of each program.
        stages: of the pipeline that loads.
    """

    kernel: Launcher
    programs: int
    arguments: tuple[Any, ...]
    warps: int = 4
    stages: int = 2


class _Ready(NamedTuple):
    """A step whose kernel is compiled: what is fixed of its arguments, and what goes where in them."""

    launch: Launch
    programs: int
    arguments: list[Any]
    places: list[tuple[int, int, int]]
    values: list[tuple[int, int]]


class Script:
    """Some steps, one after another.

    Args:
        steps: in the order in which they run.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self._ready: list[_Ready] | None = None

    def run(self, tensors: Sequence[Tensor], values: Sequence[float], stream: int) -> None:
        """Run them on the current device.

        Args:
            tensors: what places are counted in; those of every run must agree in everything that Triton specializes for.
            values: the numbers.
            stream: where to launch.
        """
        if self._ready is None:
            self._ready = self._first(tensors, values)
            return
        addresses = [tensor.data_ptr() for tensor in tensors]
        for launch, programs, fixed, places, numbers in self._ready:
            arguments = fixed.copy()
            for at, base, offset in places:
                arguments[at] = addresses[base] + offset
            for at, which in numbers:
                arguments[at] = values[which]
            launch(programs, stream, arguments)

    def _first(self, tensors: Sequence[Tensor], values: Sequence[float]) -> list[_Ready] | None:
        """Run them on tensors, which the interpreter and Triton's compiler need; how to launch them from now on."""
        ready: list[_Ready] = []
        for kernel, programs, arguments, warps, stages in self.steps:
            given = [_tensor(each, tensors) if isinstance(each, Place) else each for each in arguments]
            given = [values[each.which] if isinstance(each, Value) else each for each in given]
            launch = kernel.first(programs, given, warps=warps, stages=stages)
            if launch is not None:
                places = [(at, x.base, x.offset) for at, x in enumerate(arguments) if isinstance(x, Place)]
                numbers = [(at, x.which) for at, x in enumerate(arguments) if isinstance(x, Value)]
                ready.append(_Ready(launch, programs, list(arguments), places, numbers))
        return ready if len(ready) == len(self.steps) else None


def _tensor(place: Place, tensors: Sequence[Tensor]) -> Tensor:
    tensor = tensors[place.base]
    if place.offset == 0 and tensor.dtype == place.dtype:
        return tensor
    return tensor.view(place.dtype)[place.offset // place.dtype.itemsize :]
