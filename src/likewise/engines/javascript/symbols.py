"""Symbols: hyper-parameters that are numbers for Python and named expressions for a printer."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from likewise.formula import Apply, Formula, Number, Rank, apply, evaluate


@dataclass(frozen=True, eq=False, repr=False)
class Parameter(Formula):
    """A hyper-parameter by name.

    Examples:
        >>> Parameter("alpha")
        alpha
    """

    name: str
    rank = Rank.NUMBER

    def __repr__(self) -> str:
        return self.name


class Symbol(float):
    """A number that stores how it was computed from hyper-parameters.

    A loss whose hyper-parameters are symbols declares its formula as usual: Python compares a symbol by its value, arithmetic
    with numbers gives another symbol, and a formula shows it by name.  A Python function of the value, such as `math.log`,
    gives a plain number; the functions of `likewise.formula` give formulas.

    Args:
        value: the number.
        formula: how it was computed.

    Examples:
        >>> from likewise.formula import s
        >>> margin = Symbol(0.1, Parameter("margin"))
        >>> margin < 0.2, (1.0 + margin) * s
        (True, (1.0 + margin) * s)
    """

    formula: Formula

    def __new__(cls, value: float, formula: Formula) -> Symbol:
        """Make a float and attach the formula."""
        symbol = super().__new__(cls, value)
        symbol.formula = formula
        return symbol

    def __neg__(self) -> Symbol:
        return Symbol(-float(self), apply("neg", self.formula))

    def __repr__(self) -> str:
        text = repr(self.formula)
        return f"({text})" if isinstance(self.formula, Apply) and " " in text else text


def formula_of(value: float) -> Formula:
    """Return the formula of a symbol, or a plain number as a formula.

    Examples:
        >>> formula_of(2.0), formula_of(-Symbol(0.1, Parameter("margin")))
        (2.0, -margin)
    """
    return value.formula if isinstance(value, Symbol) else Number(value)


def value_at(value: float, hyperparameters: Mapping[str, float]) -> float:
    """Return the value of a symbol for other hyper-parameters; a plain number does not change.

    Examples:
        >>> value_at(1.0 - Symbol(0.1, Parameter("margin")), {"margin": 0.25})
        0.75
    """
    if not isinstance(value, Symbol):
        return value
    names = [node for node in _leaves(value.formula) if isinstance(node, Parameter)]
    return float(
        evaluate(value.formula, {node: torch.tensor(hyperparameters[node.name], dtype=torch.float64) for node in names})
    )


def _leaves(node: Formula) -> list[Formula]:
    return [leaf for part in node.parts for leaf in _leaves(part)] if node.parts else [node]


def _make_method(name: str, reflected: bool = False) -> Callable[..., Any]:
    compute = {"div": operator.truediv}.get(name) or getattr(operator, name)

    def method(self: Symbol, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented  # formulas and tensors treat it as a number
        left, right = (other, self) if reflected else (self, other)
        return Symbol(compute(float(left), float(right)), apply(name, formula_of(left), formula_of(right)))

    return method


for _name, _python in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "truediv")):
    setattr(Symbol, f"__{_python}__", _make_method(_name))
    setattr(Symbol, f"__r{_python}__", _make_method(_name, reflected=True))
