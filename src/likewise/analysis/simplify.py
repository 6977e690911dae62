"""Simplification of formulas: constants are multiplied, conditions are moved outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

from torch import Tensor

from likewise.formula import Apply, Formula, Number, where

PRODUCTS = ("mul", "div", "neg")
SUMS = ("add", "sub")


def simplify(formula: Formula) -> Formula:
    """Simplify a formula: multiply its constants and move the conditions of a product outside.

    The operands of folds and functions are unchanged: a fold that two formulas share stays one node, computed once.

    Examples:
        >>> from likewise.formula import relu, s, derivative
        >>> derivative(3.0 * relu(0.2 - s) / 3.0, s)
        (1.0 / 3.0) * (3.0 * (where(0.0 < (0.2 - s), 1, 0) * -1.0))
        >>> simplify(derivative(3.0 * relu(0.2 - s) / 3.0, s))
        where(0.0 < (0.2 - s), -1.0, 0.0)
    """
    if not isinstance(formula, Apply):
        return formula
    if formula.operation in PRODUCTS or _is_conditional(formula):
        product = _Factors.of(formula)
        return product.under_conditions(product.unconditional())
    if formula.operation in SUMS:
        return _sum(formula, *map(simplify, formula.arguments))
    if formula.operation == "where":
        return _choice(formula, *map(simplify, formula.arguments[1:]))
    return formula


def _constant(node: Formula) -> float | None:
    """The value of a constant; ``None`` for anything else, learned numbers included."""
    if isinstance(node, Number) and not isinstance(node.value, Tensor):
        return node.value
    return None


def _is_conditional(node: Formula) -> bool:
    """Whether a formula is zero unless a condition holds."""
    return isinstance(node, Apply) and node.operation == "where" and _constant(node.arguments[2]) == 0.0


def _choice(node: Apply, then: Formula, otherwise: Formula) -> Formula:
    same = _constant(then)
    if same is not None and same == _constant(otherwise):
        return then
    unchanged = then is node.arguments[1] and otherwise is node.arguments[2]
    return node if unchanged else where(node.arguments[0], then, otherwise)


def _sum(node: Apply, left: Formula, right: Formula) -> Formula:
    adds = node.operation == "add"
    a, b = _constant(left), _constant(right)
    if a is not None and b is not None:
        return Number(a + b if adds else a - b)
    if b == 0.0:
        return left
    if a == 0.0:
        return right if adds else negate(right)
    here, there = _Factors.of(left, plain=True), _Factors.of(right, plain=True)
    if here.conditions and here.conditions.keys() == there.conditions.keys():
        return here.under_conditions(_sum(node, here.unconditional(), there.unconditional()))
    if there.constant < 0.0:
        return left - negate(right) if adds else left + negate(right)
    if here.constant < 0.0 and adds:
        return right - negate(left)
    unchanged = left is node.arguments[0] and right is node.arguments[1]
    return node if unchanged else left + right if adds else left - right


def negate(node: Formula) -> Formula:
    """Minus a formula, with the sign inside a sum.

    Examples:
        >>> from likewise.formula import exp, s
        >>> negate(s - exp(s)), negate(-2.0 * s)
        (exp(s) - s, 2.0 * s)
    """
    if isinstance(node, Apply) and node.operation == "sub":
        return node.arguments[1] - node.arguments[0]
    if isinstance(node, Apply) and node.operation == "add":
        return negate(node.arguments[0]) - node.arguments[1]
    return simplify(-node)


@dataclass
class _Factors:
    """The factors of a product: constants, numerator, denominator, and the conditions under which it is not zero."""

    above: float = 1.0
    below: float = 1.0
    factors: list[Formula] = field(default_factory=list)
    divisors: list[Formula] = field(default_factory=list)
    conditions: dict[Formula, None] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Formula, *, plain: bool = False) -> _Factors:
        """The factors of a formula; ``plain`` if it is already simplified."""
        product = cls()
        product.take(node, plain=plain)
        return product

    @property
    def constant(self) -> float:
        """The number in front."""
        return self.above / self.below

    def take(self, node: Formula, *, under: bool = False, plain: bool = False) -> None:
        """Multiply with a formula, or divide by it."""
        constant = _constant(node)
        if constant is not None and not (under and constant == 0.0):
            if under:
                self.below *= constant
            else:
                self.above *= constant
        elif isinstance(node, Apply) and node.operation in ("mul", "div"):
            self.take(node.arguments[0], under=under, plain=plain)
            self.take(node.arguments[1], under=under != (node.operation == "div"), plain=plain)
        elif isinstance(node, Apply) and node.operation == "neg":
            self.above = -self.above
            self.take(node.arguments[0], under=under, plain=plain)
        elif isinstance(node, Apply) and _is_conditional(node) and not under:
            self._take_condition(node.arguments[0])
            self.take(node.arguments[1], plain=plain)
        elif plain:
            (self.divisors if under else self.factors).append(node)
        else:
            self.take(simplify(node), under=under, plain=True)

    def _take_condition(self, node: Formula) -> None:
        """Add a condition; both operands of a conjunction."""
        if isinstance(node, Apply) and node.operation == "both":
            for half in node.arguments:
                self._take_condition(half)
        else:
            self.conditions[node] = None

    def unconditional(self) -> Formula:
        """The product where all conditions hold."""
        if self.constant == 0.0:
            return Number(0.0)
        if not self.factors:
            result: Formula = Number(self.constant)
        elif self.constant == -1.0:
            result = negate(self.factors[0]) if self._is_sum() else -_times(self.factors)
        else:
            result = _times(self.factors) if self.constant == 1.0 else self.constant * _times(self.factors)
        return result / _times(self.divisors) if self.divisors else result

    def _is_sum(self) -> bool:
        only = self.factors[0]
        return len(self.factors) == 1 and isinstance(only, Apply) and only.operation in SUMS

    def under_conditions(self, formula: Formula) -> Formula:
        """A formula, zero where a condition does not hold."""
        if not self.conditions or _constant(formula) == 0.0:
            return formula
        return where(reduce(lambda a, b: a & b, self.conditions), formula, 0.0)


def _times(factors: list[Formula]) -> Formula:
    return reduce(lambda a, b: a * b, factors)
