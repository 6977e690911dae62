"""A cache of the last declaration of a loss, valid until an attribute changes: a loss declares once, runs often."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor, nn

from likewise.formula import (
    ClassWeighted,
    MatrixLoss,
    Number,
    Regularizer,
    Similarity,
    Term,
    Thresholded,
    walk,
)
from likewise.miners import Miner

_CONSTANT = (int, float, str, tuple, type(None), Similarity, Miner, ClassWeighted, Thresholded)
"""Types of attributes that are immutable."""


_IGNORED = {"_declaration", *(name for name in vars(nn.Module()) if name[0] == "_")}
"""Attributes that a declaration does not depend on: torch's, and the cached declaration."""


def cached_declaration(loss: Any, ignored: frozenset[str] = frozenset()) -> Any:
    """Return the last result of ``declare`` if no attribute has changed; a loss with parameters declares at every call.

    Args:
        loss: a module with ``declare()``.
        ignored: parameters that embeddings are compared with and that do not occur in formulas.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> loss = NTXentLoss()
        >>> cached_declaration(loss) is cached_declaration(loss)
        True
    """
    if torch.compiler.is_compiling() or loss._buffers or loss._modules or loss._parameters.keys() - ignored:
        return loss.declare()
    names = [name for name in vars(loss) if name not in _IGNORED]
    now = [vars(loss)[name] for name in names]
    before, were, declaration = vars(loss).get("_declaration", ((), (), None))
    if declaration is None or before != names or not all(map(operator.is_, were, now)):
        declaration, reads_parameters = _declare(loss)
        plain = not ignored or (not reads_parameters and _is_plain(declaration))
        if plain and all(isinstance(value, _CONSTANT) for value in now):
            vars(loss)["_declaration"] = names, now, declaration
    return declaration


class _TrackedParameters(dict[str, Any]):
    """Parameters that record whether one was read."""

    was_read = False

    def __getitem__(self, name: str) -> Any:
        self.was_read = True
        return super().__getitem__(name)

    def items(self) -> Any:
        self.was_read = True
        return super().items()


def _declare(loss: Any) -> tuple[Any, bool]:
    """Return the declaration, and whether it reads parameters, in which case it may change at every step."""
    parameters = loss._parameters
    tracked = _TrackedParameters(parameters)
    vars(loss)["_parameters"] = tracked
    try:
        return loss.declare(), tracked.was_read
    finally:
        vars(loss)["_parameters"] = parameters


def _is_plain(declaration: Any) -> bool:
    """Return whether the declaration of a proxy loss is free of numbers computed from the proxies."""
    items = [item for each in declaration.values() for item in (each if isinstance(each, tuple) else (each,))]
    if not all(isinstance(item, Term | Regularizer | MatrixLoss) for item in items):
        return False
    terms = [item for item in items if isinstance(item, Term)]
    formulas = [formula for term in terms for formula in (term.total, term.units, term.nonzero)]
    return not any(isinstance(node, Number) and isinstance(node.value, Tensor) for node in walk(*formulas))


def state_without_declaration(loss: nn.Module) -> dict[str, Any]:
    """Return the state of a loss without the cached declaration.

    Examples:
        >>> "_declaration" in state_without_declaration(nn.Module())
        False
    """
    return {name: value for name, value in vars(loss).items() if name != "_declaration"}
