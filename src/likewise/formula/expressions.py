"""Formulas: the small language in which losses are declared.

A loss of this library is a formula, not a program.  A formula consists of:

* ``s``, the similarity of one anchor and one reference, and ``s_p``, that of the anchor and one of its positives;
* numbers: hyper-parameters, learned scalars, one number per anchor, per reference or per pair
  (`likewise.formula.pair_numbers`);
* arithmetic on them, with the functions of `likewise.formula.operations`;
* folds (`likewise.formula.folds`), which reduce a row of pairs to one number per anchor.

A formula has a *rank*: `Rank.PAIR` if it contains a bare ``s``, `Rank.POSITIVE` if it contains only a bare ``s_p``,
`Rank.ANCHOR` if both are inside folds, `Rank.NUMBER` if it is the same for the whole batch.  A formula of rank PAIR is
called a curve.

A fold over positives, negatives or both binds ``s``.  If its curve also contains ``s_p``, the result is one number for
each positive of each anchor, such as the soft rank of a positive or the hinges of its triplets.  A fold over each
positive (`likewise.formula.EACH_POSITIVE`) binds ``s_p`` and gives one number per anchor.

Formulas are immutable data.  Engines evaluate them (`evaluate`), differentiate them (`derivative`: a kernel has no autograd)
and print them; no engine knows which loss it runs.

    >>> from likewise.formula import s, softplus, derivative
    >>> softplus(50.0 * (s - 0.5))
    softplus(50.0 * (s - 0.5))
    >>> derivative(50.0 * (s - 0.5), s)
    50.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Union

import torch
from torch import Tensor

if TYPE_CHECKING:
    from likewise.formula.batch import PairBatch
    from likewise.formula.folds import Fold, Side

Operand = Union["Formula", float, Tensor]


class Rank(IntEnum):
    """What a formula varies over: nothing within a batch, anchors, the positives of an anchor, or pairs.

    Examples:
        >>> Rank.NUMBER < Rank.ANCHOR < Rank.POSITIVE < Rank.PAIR
        True
    """

    NUMBER = 0
    ANCHOR = 1
    POSITIVE = 2
    PAIR = 3


class Formula:
    """A node of a formula.  Build formulas with `s`, folds, numbers and the functions of this module.

    Conditions are combined with ``&``, ``|`` and ``~``.  ``x ** n`` with a whole number is a product; if n is negative,
    its value and derivative are zero at ``x = 0``.  With any other exponent they are zero where ``x ≤ 0``.

    Examples:
        >>> from likewise.formula import s, relu
        >>> curve = relu(1.0 - s)
        >>> curve, curve.rank.name
        (relu(1.0 - s), 'PAIR')
    """

    rank: Rank

    of_positive: ClassVar[bool] = False
    """Whether the node is a number of the positive that a fold over each positive binds, as `s_p` is."""

    def __add__(self, other: Operand) -> Formula:
        return apply("add", self, other)

    def __radd__(self, other: Operand) -> Formula:
        return apply("add", other, self)

    def __sub__(self, other: Operand) -> Formula:
        return apply("sub", self, other)

    def __rsub__(self, other: Operand) -> Formula:
        return apply("sub", other, self)

    def __mul__(self, other: Operand) -> Formula:
        return apply("mul", self, other)

    def __rmul__(self, other: Operand) -> Formula:
        return apply("mul", other, self)

    def __truediv__(self, other: Operand) -> Formula:
        return apply("div", self, other)

    def __rtruediv__(self, other: Operand) -> Formula:
        return apply("div", other, self)

    def __pow__(self, exponent: Operand) -> Formula:
        if type(exponent) in (int, float) and float(exponent).is_integer():  # type: ignore[arg-type]
            return _whole_power(self, int(exponent))  # type: ignore[arg-type]
        if as_formula(exponent).rank is not Rank.NUMBER:
            raise TypeError(f"the exponent of a power must be a number, but it is {exponent!r}; write exp(b * log(a))")
        if isinstance(exponent, float) and not torch.compiler.is_compiling() and not math.isfinite(exponent):
            raise ValueError(f"the exponent of a power must be finite, but it is {exponent!r}")
        return apply("power", self, exponent)

    def __rpow__(self, base: Operand) -> Formula:
        raise TypeError(
            f"the exponent of a power must be a number, but it is {self!r}; write exp(({self!r}) * log({base!r}))"
        )

    def __abs__(self) -> Formula:
        return apply("abs", self)

    def __neg__(self) -> Formula:
        return apply("neg", self)

    def __lt__(self, other: Operand) -> Formula:
        return apply("less", self, other)

    def __gt__(self, other: Operand) -> Formula:
        return apply("less", other, self)

    def __and__(self, other: Operand) -> Formula:
        return apply("both", self, other)

    def __or__(self, other: Operand) -> Formula:
        return apply("either", self, other)

    def __invert__(self) -> Formula:
        return apply("not", self)

    def __bool__(self) -> bool:
        raise TypeError("a formula has no truth value; use where(condition, then, otherwise)")

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The direct operands of this node."""
        return ()


@dataclass(frozen=True, eq=False, repr=False)
class Variable(Formula):
    """A similarity that a fold binds.  There are two: `s` and `s_p`.

    Examples:
        >>> from likewise.formula import s, s_p
        >>> s.rank.name, s_p.rank.name
        ('PAIR', 'POSITIVE')
    """

    name: str
    rank: Rank

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name  # a copy of a formula refers to the same variable


s = Variable("s", Rank.PAIR)
s_p = Variable("s_p", Rank.POSITIVE)


@dataclass(frozen=True, eq=False, repr=False)
class Number(Formula):
    """A constant, or a tensor without dimensions (a learned scalar).

    Examples:
        >>> Number(0.5)
        0.5
    """

    value: float | Tensor
    rank = Rank.NUMBER

    def __repr__(self) -> str:
        if not isinstance(self.value, Tensor):
            return repr(self.value)
        return "learned(on meta)" if self.value.is_meta else f"learned({self.value.item():g})"


@dataclass(frozen=True, eq=False, repr=False)
class PerAnchor(Formula):
    """One number per anchor, computed from the batch, such as the beta of a class or the norm of an embedding.

    ``compute`` maps the `PairBatch` to a tensor with one entry per anchor and is differentiable.

    Examples:
        >>> PerAnchor("norm", lambda batch: batch.anchors.norm(dim=1))
        norm
    """

    name: str
    compute: Callable[[PairBatch], Tensor]
    rank = Rank.ANCHOR

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class PerReference(Formula):
    """One number per reference, computed from the batch, such as the bias of a class.

    ``compute`` maps the `PairBatch` to a tensor with one entry per reference and is differentiable.

    Examples:
        >>> PerReference("bias", lambda batch: torch.zeros(batch.shape[1]))
        bias
    """

    name: str
    compute: Callable[[PairBatch], Tensor]
    rank = Rank.PAIR

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class Apply(Formula):
    """An operation of the table `likewise.formula.operations.OPERATIONS` on other formulas."""

    operation: str
    arguments: tuple[Formula, ...]

    @property
    def rank(self) -> Rank:  # type: ignore[override]
        """The largest rank among the arguments."""
        rank = Rank.NUMBER
        for argument in self.arguments:
            if argument.rank > rank:
                rank = argument.rank
        return rank

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The arguments."""
        return self.arguments

    def __repr__(self) -> str:
        symbol = _symbol(self)
        words = [repr(a) if _is_atom(a) else f"({a!r})" for a in self.arguments]
        if symbol and len(words) == 2:
            return f"{words[0]} {symbol} {words[1]}"
        if symbol:
            return f"{symbol}{words[0]}"
        return f"{self.operation}({', '.join(map(repr, self.arguments))})"


def _symbol(node: Apply) -> str:
    from likewise.formula.operations import OPERATIONS  # imported late, because the table refers to the nodes

    return OPERATIONS[node.operation].symbol


def _is_atom(node: Formula) -> bool:
    return not (isinstance(node, Apply) and _symbol(node))


@dataclass(frozen=True, eq=False, repr=False)
class Folded(Formula):
    """A fold of a curve over one anchor's positives, negatives or both: one number per anchor.

    A curve that contains `s_p` gives one number for each positive of the anchor; a fold over each positive binds `s_p`.

    Examples:
        >>> from likewise.formula import EACH_POSITIVE, NEGATIVES, add_up, logsumexp, relu, s, s_p
        >>> logsumexp(50.0 * s, NEGATIVES)
        logsumexp[negatives](50.0 * s)
        >>> hinges = add_up(relu(s - s_p), NEGATIVES)
        >>> hinges.rank.name, add_up(hinges, EACH_POSITIVE).rank.name
        ('POSITIVE', 'ANCHOR')
    """

    fold: Fold
    over: Side
    curve: Formula
    rank: Rank = field(init=False)

    def __post_init__(self) -> None:
        if self.over.binds_positive and self.curve.rank is Rank.PAIR:
            raise ValueError(
                "a fold over EACH_POSITIVE must be of one number per positive, but its formula, "
                f"{self.curve!r}, has one per pair; fold s over POSITIVES, NEGATIVES or BOTH first"
            )
        per_positive = not self.over.binds_positive and mentions_positive(self.curve)
        object.__setattr__(self, "rank", Rank.POSITIVE if per_positive else Rank.ANCHOR)

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The curve."""
        return (self.curve,)

    def __repr__(self) -> str:
        return f"{self.fold.name}[{self.over.value}]({self.curve!r})"


def mentions_positive(node: Formula) -> bool:
    """Return whether a formula contains `s_p` outside the folds that bind it.

    Examples:
        >>> from likewise.formula import EACH_POSITIVE, add_up, s, s_p
        >>> mentions_positive(s - s_p), mentions_positive(add_up(s_p, EACH_POSITIVE))
        (True, False)
    """
    if isinstance(node, Apply):
        return any(mentions_positive(argument) for argument in node.arguments)
    return node.rank is Rank.POSITIVE or node.of_positive


@dataclass(frozen=True, eq=False, repr=False)
class Total(Formula):
    """The sum of a formula of rank ANCHOR over all anchors of the batch.

    Use it for a statistic of the whole batch; engines make one more pass for it.

    Examples:
        >>> from likewise.formula import POSITIVES, add_up, s
        >>> Total(add_up(s, POSITIVES))
        total(sum[positives](s))
    """

    of: Formula
    rank = Rank.NUMBER

    @property
    def parts(self) -> tuple[Formula, ...]:
        """What is summed."""
        return (self.of,)

    def __repr__(self) -> str:
        return f"total({self.of!r})"


def as_formula(operand: Operand) -> Formula:
    """Wrap a plain number or a tensor without dimensions; formulas pass through.

    Examples:
        >>> as_formula(2)
        2
    """
    if isinstance(operand, Formula):
        return operand
    if isinstance(operand, Tensor):
        if operand.ndim != 0:
            raise ValueError(
                f"a tensor in a formula must have no dimensions, but its shape is {tuple(operand.shape)}; "
                "one number per anchor enters as PerAnchor"
            )
    elif not torch.compiler.is_compiling() and not hasattr(operand, "__float__"):
        raise TypeError(
            f"a formula must consist of formulas, numbers and tensors without dimensions, but {operand!r} is a "
            f"{type(operand).__name__}"
        )
    return Number(operand)


def is_number(node: Formula, value: float) -> bool:
    """Return whether a node is a plain number of this value.

    Examples:
        >>> is_number(Number(1), 1.0), is_number(s, 1.0)
        (True, False)
    """
    return isinstance(node, Number) and not isinstance(node.value, Tensor) and node.value == value


def apply(operation: str, *operands: Operand) -> Formula:
    """Build the node of an operation.

    Examples:
        >>> from likewise.formula import s
        >>> apply("square", s)
        square(s)
    """
    # formulas may be built at every call of a loss, and a list with a plain test is fastest
    arguments = tuple([operand if isinstance(operand, Formula) else as_formula(operand) for operand in operands])
    if operation == "mul" and is_number(arguments[0], 1.0):
        return arguments[1]  # a factor of one is dropped
    if operation in _TAKES_CONDITIONS:
        _check_conditions(operation, arguments)
    return Apply(operation, arguments)


_TAKES_CONDITIONS = {
    "where": (1, "the first argument of where"),
    "both": (2, "an operand of &"),
    "either": (2, "an operand of |"),
    "not": (1, "the operand of ~"),
}
"""How many of an operation's first arguments are conditions, and their name."""


def _check_conditions(operation: str, arguments: tuple[Formula, ...]) -> None:
    number, name = _TAKES_CONDITIONS[operation]
    for argument in arguments[:number]:
        is_true_or_false = isinstance(argument, Number) and isinstance(argument.value, bool)
        # a number that a function computes from the batch may be a boolean
        is_known = isinstance(argument, Apply | Variable | Number | Folded | Total)
        if is_known and not is_true_or_false and not is_condition(argument):
            raise TypeError(f"{name} must be a condition such as s < 0.5, but it is {argument!r}")


def is_condition(node: Formula) -> bool:
    """Return whether a formula is a condition (true or false) and not a number.

    Examples:
        >>> from likewise.formula import s
        >>> is_condition(0.5 < s), is_condition(~(s < 0.5)), is_condition(s)
        (True, True, False)
    """
    if not isinstance(node, Apply):
        return False
    if node.operation in ("where", "stop_gradient"):
        return all(map(is_condition, node.arguments))
    return node.operation in ("less", "nonzero", "both", "either", "not")


def _whole_power(base: Formula, exponent: int) -> Formula:
    """Return a power as products: this also works for negative numbers, and products are faster than logarithms."""
    if exponent < 0:
        divisor = _whole_power(base, -exponent)
        if isinstance(divisor, Number) and not isinstance(divisor.value, Tensor):
            return Number(1.0 / divisor.value if divisor.value else 0.0)
        nonzero = (divisor < 0.0) | (divisor > 0.0)
        return apply(
            "where", nonzero, 1.0 / apply("where", nonzero, divisor, 1), 0.0
        )  # an integer 1, because a count is an integer
    if exponent < 2:
        return base if exponent else Number(1.0)
    half = apply("square", _whole_power(base, exponent // 2))
    return half * base if exponent % 2 else half
