"""Functions of whole formulas: their nodes, their leaves, and the replacement of nodes."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from likewise.formula.expressions import Apply, Folded, Formula, Number, Total, s, s_p
from likewise.formula.folds import Side


def substitute(node: Formula, by: Mapping[Formula, Formula]) -> Formula:
    """Replace nodes of a formula, also inside folds; unchanged nodes are shared with the original.

    A variable is replaced where no fold inside the formula binds it.

    Examples:
        >>> from likewise.formula import EACH_POSITIVE, NEGATIVES, add_up, mean, s, s_p
        >>> substitute(add_up(s - s_p, NEGATIVES), {s_p: Number(0.5)})
        sum[negatives](s - 0.5)
        >>> substitute(s_p - mean(s_p, EACH_POSITIVE), {s_p: Number(0.5)})
        0.5 - mean[each positive](s_p)
    """
    return Substitution(by)(node)


class Substitution:
    """A replacement of free nodes in several formulas; nodes that the formulas share stay shared.

    Examples:
        >>> from likewise.formula import relu, s, s_p
        >>> replace, hinge = Substitution({s_p: Number(0.5)}), relu(s - s_p)
        >>> replace(hinge) is replace(hinge + 1.0).arguments[0]
        True
    """

    def __init__(self, by: Mapping[Formula, Formula]) -> None:
        self._by = dict(by)
        self._known: dict[tuple[Formula, frozenset[Formula]], Formula] = {}

    def __call__(self, node: Formula, bound: frozenset[Formula] = frozenset()) -> Formula:
        """The formula with its free nodes replaced; ``bound`` are variables that folds around it bind."""
        if node in self._by and node not in bound:
            return self._by[node]
        if (node, bound) not in self._known:
            self._known[node, bound] = self._rebuild(node, bound)
        return self._known[node, bound]

    def _rebuild(self, node: Formula, bound: frozenset[Formula]) -> Formula:
        if isinstance(node, Folded):
            bound = bound | self._bound_by(node.over)
        parts = [self(part, bound) for part in node.parts]
        if all(new is old for new, old in zip(parts, node.parts, strict=True)):
            return node
        if isinstance(node, Apply):
            return Apply(node.operation, tuple(parts))
        if isinstance(node, Folded):
            return Folded(node.fold, node.over, parts[0])
        return Total(parts[0]) if isinstance(node, Total) else node

    def _bound_by(self, over: Side) -> set[Formula]:
        """The replaced nodes that a fold over this side binds."""
        if over.binds_positive:
            return {node for node in self._by if node is s_p or node.of_positive}
        return {node for node in self._by if node is s}


def ingredients(formula: Formula) -> list[Formula]:
    """The leaves of a formula except constants: `s`, learned scalars, and numbers that must be computed first.

    Examples:
        >>> from likewise.formula import NEGATIVES, logsumexp, s, softplus
        >>> ingredients(softplus(logsumexp(s, NEGATIVES) - 2.0 * s))
        [logsumexp[negatives](s), s]
    """
    leaves: dict[Formula, None] = {}
    _ingredients(formula, leaves)
    return list(leaves)


def _ingredients(node: Formula, leaves: dict[Formula, None]) -> None:
    if isinstance(node, Apply):
        for argument in node.arguments:
            _ingredients(argument, leaves)
    elif not isinstance(node, Number) or isinstance(node.value, Tensor):
        leaves[node] = None


def walk(*roots: Formula) -> list[Formula]:
    """Every node below the roots once, operands before the nodes that contain them.

    Examples:
        >>> from likewise.formula import relu, s
        >>> walk(relu(s))
        [s, relu(s)]
    """
    order: dict[Formula, None] = {}
    for root in roots:
        _walk(root, order)
    return list(order)


def _walk(node: Formula, order: dict[Formula, None]) -> None:
    if node not in order:
        for part in node.parts:
            _walk(part, order)
        order[node] = None
