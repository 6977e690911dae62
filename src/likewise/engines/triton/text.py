"""Formulas as the text of a kernel.

A kernel is generated from a declaration, never from a loss: the same few lines of template serve them all.  Numbers that
a user may turn (hyper-parameters) are arguments of the kernel, so that a search compiles it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from likewise.formula import OPERATIONS, Apply, Folded, Formula, Number, PerAnchor, PerReference, Total, Variable

LITERALS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
"""Numbers that belong to the shape of a formula; every other one is an argument."""


@dataclass(frozen=True)
class Leaf:
    """What a kernel is given for a node that it cannot compute.

    Args:
        node: the node.
        kind: ``"number"`` for the host's, ``"scalar"`` for the device's, ``"row"`` or ``"column"`` for vectors.
    """

    node: Formula
    kind: str


def leaf_of(node: Formula) -> Leaf | None:
    """The leaf that a node is, or ``None`` where the kernel computes it."""
    if isinstance(node, Number):
        if isinstance(node.value, Tensor):
            return Leaf(node, "scalar")
        return None if float(node.value) in LITERALS else Leaf(node, "number")
    if isinstance(node, Total):
        return Leaf(node, "scalar")
    if isinstance(node, PerReference):
        return Leaf(node, "column")
    if isinstance(node, PerAnchor | Folded):
        return Leaf(node, "row")
    return None


def shape_of(roots: list[Formula]) -> tuple[tuple[Any, ...], list[Leaf]]:
    """What formulas have in common with others of the same shape, as a key; and their leaves, in a fixed order.

    Examples:
        >>> from likewise.formula import s
        >>> shape_of([3.0 * s])[0] == shape_of([4.0 * s])[0], shape_of([3.0 * s])[0] == shape_of([3.0 + s])[0]
        (True, False)
    """
    shape = _Shape({}, [], [])
    ends = [shape.visit(root) for root in roots]
    return (*shape.key, *ends), shape.leaves


@dataclass(eq=False)
class _Shape:
    """A shape while it is written down; a function that calls itself by name would keep what it saw in a cycle."""

    places: dict[Formula, int]
    leaves: list[Leaf]
    key: list[Any]

    def visit(self, node: Formula) -> int:
        place = self.places.get(node)
        if place is not None:
            return place
        if isinstance(node, Apply):
            entry: tuple[Any, ...] = (node.operation, *[self.visit(argument) for argument in node.arguments])
        elif isinstance(node, Variable):
            entry = ("s",)
        else:
            leaf = leaf_of(node)
            if leaf is None:
                assert isinstance(node, Number)
                entry = ("=", float(node.value))
            else:
                self.leaves.append(leaf)
                entry = (leaf.kind,)
        self.key.append(entry)
        self.places[node] = len(self.key) - 1
        return len(self.key) - 1


class Writer:
    """Writes formulas as lines of a kernel, each value once.

    Args:
        names: what leaves and `s` are called.
        indent: how deep the lines stand.
        prefix: how the names of new values begin.

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
        """The name of a formula's value; the lines that compute it are written if they are not there yet."""
        if node in self.names:
            return self.names[node]
        if isinstance(node, Number):
            assert not isinstance(node.value, Tensor)
            return repr(float(node.value))
        assert isinstance(node, Apply), f"{node!r} is known to nobody"
        name = self.write(
            OPERATIONS[node.operation].triton.format(*[self.value(argument) for argument in node.arguments])
        )
        self.names[node] = name
        return name

    def write(self, text: str) -> str:
        """The name of an expression's value."""
        if text.isidentifier():
            return text
        if text not in self._written:
            name = f"{self.prefix}{len(self._written)}"
            self.line(f"{name} = {text}")
            self._written[text] = name
        return self._written[text]

    def line(self, text: str) -> None:
        """A line as it is."""
        self.lines.append(self.indent + text)


def varies(node: Formula) -> bool:
    """Whether a formula has a value of its own for every pair: a whole tile, and not a row, a column or a number."""
    if isinstance(node, Apply):
        return any(varies(argument) for argument in node.arguments)
    return isinstance(node, Variable)


def holds(node: Formula) -> bool:
    """Whether a formula is a condition, true or false, and not a number.

    Examples:
        >>> from likewise.formula import s
        >>> holds(0.5 < s), holds(s)
        (True, False)
    """
    return isinstance(node, Apply) and (
        node.operation in ("less", "nonzero", "both") or (node.operation == "where" and all(map(holds, node.arguments)))
    )


def apart(formulas: Sequence[Formula]) -> tuple[Formula, ...]:
    """The same formulas with folds of their own: over another relation, the same fold is another number.

    Examples:
        >>> from likewise.formula import NEGATIVES, count
        >>> (copy,) = apart([count(NEGATIVES)])
        >>> copy, copy is count(NEGATIVES)
        (count[negatives](1.0), False)
    """
    made: dict[Formula, Formula] = {}
    return tuple(_again(formula, made) for formula in formulas)


def _again(node: Formula, made: dict[Formula, Formula]) -> Formula:
    if node not in made:
        copy = node
        if isinstance(node, Apply):
            copy = Apply(node.operation, tuple(_again(argument, made) for argument in node.arguments))
        elif isinstance(node, Folded):
            copy = Folded(node.fold, node.over, _again(node.curve, made))
        elif isinstance(node, Total):
            copy = Total(_again(node.of, made))
        made[node] = copy
    return made[node]
