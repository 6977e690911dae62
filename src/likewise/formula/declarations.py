"""Declarations: everything that a loss declares about one matrix."""

from __future__ import annotations

from typing import TypeAlias
from weakref import WeakKeyDictionary

import torch

from likewise.formula.matrix_losses import MatrixLoss
from likewise.formula.reductions import Thresholded
from likewise.formula.terms import Regularizer, Term

Declared: TypeAlias = Term | Regularizer | MatrixLoss


Declaration: TypeAlias = Declared | tuple[Declared, ...]


def sort_declaration(declaration: Declaration) -> tuple[list[Term], list[Regularizer], list[MatrixLoss]]:
    """Sort the parts of a declaration by kind.

    Examples:
        >>> sort_declaration(MatrixLoss(lambda batch, rows: []))[0]
        []
    """
    items = declaration if isinstance(declaration, tuple) else (declaration,)
    for item in items:
        if not isinstance(item, Term | Regularizer | MatrixLoss):
            raise TypeError(
                "declare() must return terms, made with per_anchor, per_pair or per_triplet, Regularizer or MatrixLoss, "
                f"but it returned {item!r}"
            )
    terms = [item for item in items if isinstance(item, Term)]
    regularizers = [item for item in items if isinstance(item, Regularizer)]
    matrix_losses = [item for item in items if isinstance(item, MatrixLoss)]
    return terms, regularizers, matrix_losses


# a loss declares once and runs many times
_WITHIN: WeakKeyDictionary[Term, dict[Thresholded, Term]] = WeakKeyDictionary()


def term_within(term: Term, thresholds: Thresholded) -> Term:
    """Return `Term.within`, cached for the term.

    Examples:
        >>> from likewise.formula import NEGATIVES, per_pair, relu, s
        >>> term_within(per_pair(NEGATIVES, relu(s)), Thresholded(low=0.5)).units
        count[negatives](0.5 < relu(s))
    """
    if torch.compiler.is_compiling():
        return term.within(thresholds)
    made = _WITHIN.setdefault(term, {})
    if thresholds not in made:
        made[thresholds] = term.within(thresholds)
    return made[thresholds]
