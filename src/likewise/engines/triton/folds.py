"""The folds in Triton's language: the state of a tile, how the states of a row's tiles are joined, and the derivative.

Each class has the meaning of its counterpart in `likewise.formula.folds`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from likewise.engines.triton.printer import Writer
from likewise.formula import Count, Fold, LogSumExp, Max, Mean, Min, Sum

LOWEST = repr(torch.finfo(torch.float32).min)


class FoldTemplate(ABC):
    """The template of one fold: text for kernels.

    A kernel stores ``width`` numbers for each row of a tile.  They are the fold's state, followed by one sum for each leaf
    that needs a gradient: the curve's derivative by that leaf, weighted as the fold weights its values.  The derivative
    of a fold consists of a few *weights* per anchor, computed from the state and the gradient, and an expression that
    turns them into the gradient of each pair.
    """

    width: ClassVar[int]
    weight_count: ClassVar[int] = 1
    """The number of weights per anchor that the derivative needs; 0 if the derivative is zero."""
    identity: ClassVar[Sequence[float]]
    """The state of a row without pairs."""
    exact: ClassVar[bool] = False
    """Whether the derivative compares values bit by bit; then both passes must compute products in the same way."""

    @abstractmethod
    def fold_tile(self, writer: Writer, value: str, keep: str | None, axis: int = 1) -> tuple[list[str], str]:
        """Write the state of a tile.

        Args:
            writer: writes the lines.
            value: the name of the values.
            keep: the name of the mask of the pairs that are folded; ``None``: all of them.
            axis: 1 to fold rows, 0 to fold columns.

        Returns:
            The names of the state's numbers, and the name of the weight of each pair.
        """

    @abstractmethod
    def join(self, old: list[str], new: list[str]) -> tuple[list[str], str, str]:
        """Return lines that join two states, and the factors by which the sums of derivatives of both are multiplied."""

    @abstractmethod
    def finish(self, state: list[str]) -> str:
        """Return the expression of the fold's value."""

    @abstractmethod
    def derivative(self, value: str, weights: list[str]) -> str:
        """Return the expression of the gradient by one value; the caller masks pairs that do not belong to the fold."""

    def divisor_text(self, state: list[str]) -> str:
        """Return the expression that gradients are divided by."""
        return "1.0"

    def divisor(self, state: Tensor) -> Tensor | float:
        """Return what gradients are divided by, from the state that a kernel stored."""
        return 1.0

    def weights(self, state: Tensor, gradient: Tensor) -> list[Tensor]:
        """Return the weights, from the state that a kernel stored."""
        return [gradient / self.divisor(state)]


def _mask(keep: str | None, value: str, otherwise: str) -> str:
    return value if keep is None else f"tl.where({keep}, {value}, {otherwise})"


def _count_kept(writer: Writer, keep: str | None, axis: int) -> str:
    if keep is None:
        return writer.write("tl.full([BM], BN, tl.float32)" if axis else "tl.full([BN], BM, tl.float32)")
    return writer.write(f"tl.sum({keep}.to(tl.float32), axis={axis})")


def _spread(vector: str, axis: int) -> str:
    """A vector with one entry per folded row or column, as a tile."""
    return f"{vector}[:, None]" if axis else f"{vector}[None, :]"


class _RelativeToPeak(FoldTemplate):
    """A fold whose state is the largest value and a sum relative to it, which is at least one."""

    width = 2
    weight_count = 2

    @abstractmethod
    def rescale(self, largest: str) -> str:
        """Return the factor that makes a sum relative to ``largest`` a sum relative to ``peak``."""

    def join(self, old: list[str], new: list[str]) -> tuple[list[str], str, str]:
        lines = [
            f"peak = tl.maximum({old[0]}, {new[0]})",
            f"before, now = {self.rescale(old[0])}, {self.rescale(new[0])}",
            f"{old[0]}, {old[1]} = peak, {old[1]} * before + {new[1]} * now",
        ]
        return lines, "before", "now"

    def divisor_text(self, state: list[str]) -> str:
        return f"tl.maximum({state[1]}, 1.0)"

    def divisor(self, state: Tensor) -> Tensor:
        return state[1].clamp_min(1.0)


class _LogSumExp(_RelativeToPeak):
    identity: ClassVar[Sequence[float]] = (torch.finfo(torch.float32).min, 0.0)

    def fold_tile(self, writer: Writer, value: str, keep: str | None, axis: int = 1) -> tuple[list[str], str]:
        value = writer.write(_mask(keep, value, LOWEST))
        peak = writer.write(f"tl.max({value}, axis={axis})")
        weight = writer.write(_mask(keep, f"tl.exp({value} - {_spread(peak, axis)})", "0.0"))
        return [peak, writer.write(f"tl.sum({weight}, axis={axis})")], weight

    def rescale(self, largest: str) -> str:
        return f"tl.exp({largest} - peak)"

    def finish(self, state: list[str]) -> str:
        return f"tl.log({self.divisor_text(state)}) + {state[0]}"

    def derivative(self, value: str, weights: list[str]) -> str:
        return f"{weights[0]} * tl.exp(tl.minimum({value} - {weights[1]}, 0.0))"

    def weights(self, state: Tensor, gradient: Tensor) -> list[Tensor]:
        return [*super().weights(state, gradient), state[0]]


class _Max(_RelativeToPeak):
    identity: ClassVar[Sequence[float]] = (-math.inf, 0.0)
    exact = True
    sign: ClassVar[str] = ""

    def fold_tile(self, writer: Writer, value: str, keep: str | None, axis: int = 1) -> tuple[list[str], str]:
        value = writer.write(_mask(keep, f"{self.sign}{value}", 'float("-inf")'))
        peak = writer.write(f"tl.max({value}, axis={axis})")
        reached = f"({value} == {_spread(peak, axis)})" + ("" if keep is None else f" & {keep}")
        weight = writer.write(f"({reached}).to(tl.float32)")
        return [peak, writer.write(f"tl.sum({weight}, axis={axis})")], weight

    def rescale(self, largest: str) -> str:
        return f"({largest} == peak).to(tl.float32)"

    def finish(self, state: list[str]) -> str:
        return f"{self.sign}{state[0]}"

    def derivative(self, value: str, weights: list[str]) -> str:
        return f"tl.where({value} == {weights[1]}, {weights[0]}, 0.0)"

    def weights(self, state: Tensor, gradient: Tensor) -> list[Tensor]:
        return [*super().weights(state, gradient), -state[0] if self.sign else state[0]]


class _Min(_Max):
    sign = "-"


class _Additive(FoldTemplate):
    """A fold whose state consists of sums."""

    def join(self, old: list[str], new: list[str]) -> tuple[list[str], str, str]:
        return [f"{before} = {before} + {now}" for before, now in zip(old, new, strict=True)], "1.0", "1.0"

    def finish(self, state: list[str]) -> str:
        return state[0]

    def derivative(self, value: str, weights: list[str]) -> str:
        return weights[0]


class _Sum(_Additive):
    width = 1
    identity: ClassVar[Sequence[float]] = (0.0,)

    def fold_tile(self, writer: Writer, value: str, keep: str | None, axis: int = 1) -> tuple[list[str], str]:
        return [writer.write(f"tl.sum({_mask(keep, value, '0.0')}, axis={axis})")], "1.0"


class _Mean(_Sum):
    width = 2
    identity: ClassVar[Sequence[float]] = (0.0, 0.0)

    def fold_tile(self, writer: Writer, value: str, keep: str | None, axis: int = 1) -> tuple[list[str], str]:
        (total,), weight = super().fold_tile(writer, value, keep, axis)
        return [total, _count_kept(writer, keep, axis)], weight

    def finish(self, state: list[str]) -> str:
        return f"{state[0]} / {self.divisor_text(state)}"

    def divisor_text(self, state: list[str]) -> str:
        return f"tl.maximum({state[1]}, 1.0)"

    def divisor(self, state: Tensor) -> Tensor:
        return state[1].clamp_min(1.0)


class _Count(_Additive):
    width = 1
    weight_count = 0
    identity: ClassVar[Sequence[float]] = (0.0,)

    def fold_tile(self, writer: Writer, value: str, keep: str | None, axis: int = 1) -> tuple[list[str], str]:
        if value == "1.0":  # a count without a condition
            return [_count_kept(writer, keep, axis)], "0.0"
        both = f"({value})" if keep is None else f"({value} & {keep})"
        return [writer.write(f"tl.sum({both}.to(tl.float32), axis={axis})")], "0.0"

    def weights(self, state: Tensor, gradient: Tensor) -> list[Tensor]:
        return []


TEMPLATES: dict[type[Fold], FoldTemplate] = {
    LogSumExp: _LogSumExp(),
    Sum: _Sum(),
    Mean: _Mean(),
    Max: _Max(),
    Min: _Min(),
    Count: _Count(),
}


def find_template(fold: Fold) -> FoldTemplate:
    """Return the template of a fold, or raise an error if the fold has none.

    Examples:
        >>> find_template(Sum()).width
        1
    """
    template = TEMPLATES.get(type(fold))
    if template is None:
        raise TypeError(f"the Triton engine has no {fold.name} fold; give backend='chunked'")
    return template
