"""A printer of formulas in Triton's language.

A kernel is generated from a declaration, never from a loss: one short template serves all losses.  Hyper-parameters are
arguments of the kernel, so that a search over them compiles it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from likewise.formula import (
    OPERATIONS,
    Apply,
    Folded,
    Formula,
    Number,
    PerAnchor,
    PerPair,
    PerReference,
    Total,
    Variable,
)

LITERALS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
"""Numbers that are printed as they are; every other number is an argument of the kernel."""


@dataclass(frozen=True)
class Leaf:
    """An argument of a kernel: a node of a formula that the kernel does not compute.

    Args:
        node: the node.
        kind: ``"number"`` for a number of the host, ``"scalar"`` for one in device memory, ``"row"`` for a vector with
            one entry per anchor, ``"column"`` for one per reference and ``"pair"`` for a matrix.
    """

    node: Formula
    kind: str


def as_leaf(node: Formula) -> Leaf | None:
    """Return a node as a leaf, or ``None`` if the kernel computes it."""
    if isinstance(node, Number):
        if isinstance(node.value, Tensor):
            return Leaf(node, "scalar")
        return None if float(node.value) in LITERALS else Leaf(node, "number")
    if isinstance(node, Total):
        return Leaf(node, "scalar")
    if isinstance(node, PerReference):
        return Leaf(node, "column")
    if isinstance(node, PerPair):
        return Leaf(node, "pair")
    if isinstance(node, PerAnchor | Folded):
        return Leaf(node, "row")
    return None


def find_structure(roots: list[Formula]) -> tuple[tuple[Any, ...], list[Leaf]]:
    """Return a key that formulas of the same structure share, and the leaves in a fixed order.

    Examples:
        >>> from likewise.formula import s
        >>> (product, _), (other, _), (total, _) = (
        ...     find_structure([formula]) for formula in (3.0 * s, 4.0 * s, 3.0 + s)
        ... )
        >>> product == other, product == total
        (True, False)
    """
    structure = _Structure({}, [], [])
    ends = [structure.visit(root) for root in roots]
    return (*structure.key, *ends), structure.leaves


@dataclass(eq=False)
class _Structure:
    """The state of a traversal.  A recursive closure would hold its nodes in a reference cycle."""

    positions: dict[Formula, int]
    leaves: list[Leaf]
    key: list[Any]

    def visit(self, node: Formula) -> int:
        position = self.positions.get(node)
        if position is not None:
            return position
        if isinstance(node, Apply):
            entry: tuple[Any, ...] = (node.operation, *[self.visit(argument) for argument in node.arguments])
        elif isinstance(node, Variable):
            entry = ("s",)
        else:
            leaf = as_leaf(node)
            if leaf is None:
                assert isinstance(node, Number)
                entry = ("=", float(node.value))
            else:
                self.leaves.append(leaf)
                entry = (leaf.kind,)
        self.key.append(entry)
        self.positions[node] = len(self.key) - 1
        return len(self.key) - 1


class Writer:
    """Write formulas as lines of a kernel, each value once.

    Args:
        names: names of `s` and of the leaves.
        indent: the indentation of the lines.
        prefix: the prefix of the names of new values.

    Examples:
        >>> from likewise.formula import relu, s
        >>> writer = Writer({s: "s"}, "    ", "x")
        >>> writer.value(relu(s - 1.0)), writer.lines
        ('x1', ['    x0 = s - 1.0', '    x1 = tl.maximum(x0, 0.0)'])
    """

    def __init__(self, names: dict[Formula, str], indent: str, prefix: str) -> None:
        self.names = dict(names)
        self.indent = indent
        self.prefix = prefix
        self.lines: list[str] = []
        self._written: dict[str, str] = {}

    def value(self, node: Formula) -> str:
        """Return the name of a formula's value; write the lines that compute it if they do not exist yet."""
        if node in self.names:
            return self.names[node]
        if isinstance(node, Number):
            assert not isinstance(node.value, Tensor)
            return repr(float(node.value))
        assert isinstance(node, Apply), f"{node!r} has no name in this kernel"
        name = self.write(
            OPERATIONS[node.operation].triton.format(*[self.value(argument) for argument in node.arguments])
        )
        self.names[node] = name
        return name

    def write(self, text: str) -> str:
        """Return the name of an expression's value; write the line that computes it if it does not exist yet."""
        if text.isidentifier():
            return text
        if text not in self._written:
            name = f"{self.prefix}{len(self._written)}"
            self.line(f"{name} = {text}")
            self._written[text] = name
        return self._written[text]

    def line(self, text: str) -> None:
        """Append a line as it is."""
        self.lines.append(self.indent + text)


def varies_by_pair(node: Formula) -> bool:
    """Return whether a formula has one value per pair: a tile, and not a row, a column or a number."""
    if isinstance(node, Apply):
        return any(varies_by_pair(argument) for argument in node.arguments)
    return isinstance(node, Variable | PerPair)


def is_condition(node: Formula) -> bool:
    """Return whether a formula is a condition (true or false) and not a number.

    Examples:
        >>> from likewise.formula import s
        >>> is_condition(0.5 < s), is_condition(s)
        (True, False)
    """
    return isinstance(node, Apply) and (
        node.operation in ("less", "nonzero", "both", "either")
        or (node.operation == "where" and all(map(is_condition, node.arguments)))
    )


def copy_folds(formulas: Sequence[Formula]) -> tuple[Formula, ...]:
    """Copy formulas so that their folds are new nodes: a fold over another relation has another value.

    Examples:
        >>> from likewise.formula import NEGATIVES, count
        >>> (copy,) = copy_folds([count(NEGATIVES)])
        >>> copy, copy is count(NEGATIVES)
        (count[negatives](1.0), False)
    """
    copies: dict[Formula, Formula] = {}
    return tuple(_copy(formula, copies) for formula in formulas)


def _copy(node: Formula, copies: dict[Formula, Formula]) -> Formula:
    if node not in copies:
        copy = node
        if isinstance(node, Apply):
            copy = Apply(node.operation, tuple(_copy(argument, copies) for argument in node.arguments))
        elif isinstance(node, Folded):
            copy = Folded(node.fold, node.over, _copy(node.curve, copies))
        elif isinstance(node, Total):
            copy = Total(_copy(node.of, copies))
        copies[node] = copy
    return copies[node]
