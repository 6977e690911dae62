"""What each fold does with a tile inside a kernel, how the tiles of a row join, and the fold's slope.

Parallel to `likewise.formula.folds`, whose meaning it must have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from likewise.engines.triton.text import Writer
from likewise.formula import Count, Fold, LogSumExp, Max, Mean, Min, Sum

LOWEST = repr(torch.finfo(torch.float32).min)


class Tiled(ABC):
    """One fold, as text for kernels.

    ``width`` numbers are left of each row of a tile: the state, and behind it, for each number that a gradient goes
    through, the sum of the curve's slopes by it, weighted as the fold weighs its values.  A fold's slope is a few
    *weights* per anchor, made from its state and its gradient, and a text that takes them to each pair.
    """

    width: ClassVar[int]
    weight_count: ClassVar[int] = 1
    """How many weights per anchor its slope needs; none: it has no slope."""
    identity: ClassVar[Sequence[str]]
    """The state of a row without any pair."""
    exact: ClassVar[bool] = False
    """Whether its slope looks for the very bits that its tile found: products must be made alike, forward and back."""

    @abstractmethod
    def tile(self, writer: Writer, value: str, keep: str | None) -> tuple[list[str], str]:
        """Write the state of a tile; the names of its numbers, and of the weight of each pair."""

    @abstractmethod
    def joined(self, old: list[str], new: list[str]) -> tuple[list[str], str, str]:
        """Lines that add a tile's state to a row's, and what both sides' sums of slopes must be multiplied by."""

    @abstractmethod
    def finished(self, state: list[str]) -> str:
        """One number per anchor."""

    @abstractmethod
    def derivative(self, value: str, weights: list[str]) -> str:
        """The gradient by a value of a tile; what is not kept is masked by the caller."""

    def divisor_text(self, state: list[str]) -> str:
        """What a gradient is divided by to reach the values."""
        return "1.0"

    def divisor(self, state: Tensor) -> Tensor | float:
        """The same, of a state that kernels left."""
        return 1.0

    def weights(self, state: Tensor, gradient: Tensor) -> list[Tensor]:
        """The weights, from a state that kernels left."""
        return [gradient / self.divisor(state)]


def _kept(keep: str | None, value: str, otherwise: str) -> str:
    return value if keep is None else f"tl.where({keep}, {value}, {otherwise})"


def _number_kept(writer: Writer, keep: str | None) -> str:
    if keep is None:
        return writer.write("tl.full([BM], BN, tl.float32)")
    return writer.write(f"tl.sum({keep}.to(tl.float32), axis=1)")


class _Peaked(Tiled):
    """A largest value, and a sum over the pairs relative to it, at least one."""

    width = 2
    weight_count = 2

    @abstractmethod
    def moved(self, largest: str) -> str:
        """What a sum relative to one largest value is multiplied by to be relative to the peak of both."""

    def joined(self, old: list[str], new: list[str]) -> tuple[list[str], str, str]:
        lines = [
            f"peak = tl.maximum({old[0]}, {new[0]})",
            f"before, now = {self.moved(old[0])}, {self.moved(new[0])}",
            f"{old[0]}, {old[1]} = peak, {old[1]} * before + {new[1]} * now",
        ]
        return lines, "before", "now"

    def divisor_text(self, state: list[str]) -> str:
        return f"tl.maximum({state[1]}, 1.0)"

    def divisor(self, state: Tensor) -> Tensor:
        return state[1].clamp_min(1.0)


class _LogSumExp(_Peaked):
    identity: ClassVar[Sequence[str]] = (LOWEST, "0.0")

    def tile(self, writer: Writer, value: str, keep: str | None) -> tuple[list[str], str]:
        value = writer.write(_kept(keep, value, LOWEST))
        peak = writer.write(f"tl.max({value}, axis=1)")
        weight = writer.write(_kept(keep, f"tl.exp({value} - {peak}[:, None])", "0.0"))
        return [peak, writer.write(f"tl.sum({weight}, axis=1)")], weight

    def moved(self, largest: str) -> str:
        return f"tl.exp({largest} - peak)"

    def finished(self, state: list[str]) -> str:
        return f"tl.log({self.divisor_text(state)}) + {state[0]}"

    def derivative(self, value: str, weights: list[str]) -> str:
        return f"{weights[0]} * tl.exp(tl.minimum({value} - {weights[1]}, 0.0))"

    def weights(self, state: Tensor, gradient: Tensor) -> list[Tensor]:
        return [*super().weights(state, gradient), state[0]]


class _Max(_Peaked):
    identity: ClassVar[Sequence[str]] = ('float("-inf")', "0.0")
    exact = True
    sign: ClassVar[str] = ""

    def tile(self, writer: Writer, value: str, keep: str | None) -> tuple[list[str], str]:
        value = writer.write(_kept(keep, f"{self.sign}{value}", 'float("-inf")'))
        peak = writer.write(f"tl.max({value}, axis=1)")
        reached = f"{value} == {peak}[:, None]" if keep is None else f"({value} == {peak}[:, None]) & {keep}"
        weight = writer.write(f"({reached}).to(tl.float32)")
        return [peak, writer.write(f"tl.sum({weight}, axis=1)")], weight

    def moved(self, largest: str) -> str:
        return f"({largest} == peak).to(tl.float32)"

    def finished(self, state: list[str]) -> str:
        return f"{self.sign}{state[0]}"

    def derivative(self, value: str, weights: list[str]) -> str:
        return f"tl.where({value} == {weights[1]}, {weights[0]}, 0.0)"

    def weights(self, state: Tensor, gradient: Tensor) -> list[Tensor]:
        return [*super().weights(state, gradient), -state[0] if self.sign else state[0]]


class _Min(_Max):
    sign = "-"


class _Added(Tiled):
    """A state whose numbers are sums."""

    def joined(self, old: list[str], new: list[str]) -> tuple[list[str], str, str]:
        return [f"{before} = {before} + {now}" for before, now in zip(old, new, strict=True)], "1.0", "1.0"

    def finished(self, state: list[str]) -> str:
        return state[0]

    def derivative(self, value: str, weights: list[str]) -> str:
        return weights[0]


class _Sum(_Added):
    width = 1
    identity: ClassVar[Sequence[str]] = ("0.0",)

    def tile(self, writer: Writer, value: str, keep: str | None) -> tuple[list[str], str]:
        return [writer.write(f"tl.sum({_kept(keep, value, '0.0')}, axis=1)")], "1.0"


class _Mean(_Sum):
    width = 2
    identity: ClassVar[Sequence[str]] = ("0.0", "0.0")

    def tile(self, writer: Writer, value: str, keep: str | None) -> tuple[list[str], str]:
        (total,), weight = super().tile(writer, value, keep)
        return [total, _number_kept(writer, keep)], weight

    def finished(self, state: list[str]) -> str:
        return f"{state[0]} / {self.divisor_text(state)}"

    def divisor_text(self, state: list[str]) -> str:
        return f"tl.maximum({state[1]}, 1.0)"

    def divisor(self, state: Tensor) -> Tensor:
        return state[1].clamp_min(1.0)


class _Count(_Added):
    width = 1
    weight_count = 0
    identity: ClassVar[Sequence[str]] = ("0.0",)

    def tile(self, writer: Writer, value: str, keep: str | None) -> tuple[list[str], str]:
        if value == "1.0":  # a count without a condition
            return [_number_kept(writer, keep)], "0.0"
        both = f"({value})" if keep is None else f"({value} & {keep})"
        return [writer.write(f"tl.sum({both}.to(tl.float32), axis=1)")], "0.0"

    def weights(self, state: Tensor, gradient: Tensor) -> list[Tensor]:
        return []


TILED: dict[type[Fold], Tiled] = {
    LogSumExp: _LogSumExp(),
    Sum: _Sum(),
    Mean: _Mean(),
    Max: _Max(),
    Min: _Min(),
    Count: _Count(),
}


def tiled(fold: Fold) -> Tiled:
    """The kernel's side of a fold, or one sentence if it has none.

    Examples:
        >>> tiled(Sum()).width
        1
    """
    known = TILED.get(type(fold))
    if known is None:
        raise TypeError(f"the Triton engine has no {fold.name} fold; give backend='chunked'")
    return known
