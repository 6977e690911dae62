"""Folds over rows with an index of their positives: a few columns of each row; all other columns are negatives.

A mask has an entry for every column; an index has one for every positive.  Folds over positives read only these columns,
and a log-sum-exp over negatives writes −∞ there.  Masks are not computed, and the curve of the positives, such as a
margin on an angle, is computed only for positives.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.engines.dense import last_uses
from likewise.engines.indexed_logsumexp import curve_values, start_logsumexp
from likewise.engines.pair_numbers import PairNumbers
from likewise.engines.positive_columns import PositiveColumns
from likewise.engines.schedule import Engine
from likewise.formula import (
    Folded,
    Formula,
    LogSumExp,
    Max,
    Mean,
    Min,
    Number,
    PerReference,
    Rank,
    Side,
    State,
    Sum,
    count,
    s,
    walk,
)

_KEEPS_ONE_VALUE = (LogSumExp, Sum, Mean, Max, Min)
"""Folds that return a single value unchanged."""


def broadcast(numbers: dict[Formula, Any], columns: slice | Tensor, rows: int) -> dict[Formula, Any]:
    """Return numbers as matrices: per anchor, per reference and per pair.

    Their shapes are ``(m, 1)`` per anchor; ``(1, width)`` per reference and ``(m, width)`` per pair, or ``(m, k)`` for
    chosen columns.

    Args:
        numbers: the numbers.
        columns: a chunk of columns, or chosen ones of each row, ``(m, k)``.
        rows: the number of rows m.

    Examples:
        >>> import torch
        >>> bias = PerReference("bias", lambda batch: torch.arange(3.0))
        >>> broadcast({bias: torch.arange(3.0)}, torch.tensor([[2], [1]]), rows=2)[bias].tolist()
        [[2.0], [1.0]]
    """
    shaped: dict[Formula, Any] = {}
    for node, value in numbers.items():
        if isinstance(value, PairNumbers):
            shaped[node] = value.chunk(rows, columns) if isinstance(columns, slice) else value.at_columns(columns)
        elif isinstance(node, PerReference):
            shaped[node] = value[None, columns] if isinstance(columns, slice) else value[columns]
        else:
            shaped[node] = value[:, None] if node.rank == Rank.ANCHOR else value
    return shaped


def collect_numbers(folds: list[Folded], known: dict[Formula, Any]) -> dict[Formula, Any]:
    """Return the numbers in curves other than `s`: known ones, and learned scalars, which also get a gradient.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, add_up
        >>> scale = Number(torch.tensor(2.0))
        >>> collect_numbers([add_up(scale * s, POSITIVES)], {})
        {learned(2): tensor(2.)}
    """
    found: dict[Formula, Any] = {}
    for node in walk(*(each.curve for each in folds)):
        if node in known:
            found[node] = known[node]
        elif isinstance(node, Number) and isinstance(node.value, Tensor):
            found[node] = node.value
    return found


def start_positives(
    folds: list[Folded], own: Tensor, positives: PositiveColumns, numbers: dict[Formula, Any]
) -> dict[Folded, State]:
    """The states of folds over positives.

    Args:
        folds: the folds.
        own: the similarities of the positives, ``(m, k)``.
        positives: their columns.
        numbers: the numbers in the curves: per anchor ``(m,)``, per reference ``(n,)`` and per pair (`PairNumbers`).

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, add_up
        >>> positives = PositiveColumns(torch.tensor([[1]]), None, width=3)
        >>> list(start_positives([add_up(2.0 * s, POSITIVES)], torch.tensor([[0.4]]), positives, {}).values())
        [(tensor([0.8000]),)]
    """
    pairs = {s: own, **broadcast(numbers, positives.columns, len(own))}
    keep = torch.ones_like(own, dtype=torch.bool) if positives.exists is None else positives.exists
    return {
        each: (positives.count(each.over),)
        if _is_count(each)
        else each.fold.start(curve_values(each.curve, pairs), keep)
        for each in folds
    }


def fold_positives(
    folds: list[Folded], own: Tensor, positives: PositiveColumns, numbers: dict[Formula, Any]
) -> dict[Formula, Tensor]:
    """Finished folds over positives; the arguments are those of `start_positives`.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, logsumexp
        >>> positives = PositiveColumns(torch.tensor([[1]]), None, width=3)
        >>> list(fold_positives([logsumexp(2.0 * s, POSITIVES)], torch.tensor([[0.4]]), positives, {}).values())
        [tensor([0.8000])]
    """
    one = positives.exists is None and own.shape[1] == 1
    plain = [each for each in folds if one and isinstance(each.fold, _KEEPS_ONE_VALUE)]
    pairs = {s: own, **broadcast(numbers, positives.columns, len(own))} if plain else {}
    results: dict[Formula, Tensor] = {each: curve_values(each.curve, pairs)[:, 0] for each in plain}
    states = start_positives([each for each in folds if each not in results], own, positives, numbers)
    return results | {each: each.fold.finish(state) for each, state in states.items()}


def start_others(
    folds: list[Folded],
    similarities: Tensor,
    positives: PositiveColumns,
    columns: slice,
    numbers: dict[Formula, Any],
) -> tuple[dict[Folded, State], Tensor]:
    """The states of folds over negatives and over both sides, and the similarities of the positives.

    Args:
        folds: the folds.
        similarities: some columns of the matrix, ``(m, width)``.
        positives: the positives among these columns.
        columns: which of all references the columns are.
        numbers: the numbers in the curves: per anchor ``(m,)``, per reference ``(n,)`` and per pair (`PairNumbers`).

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, largest
        >>> similarities = torch.tensor([[0.1, 0.9, 0.3]])
        >>> positives = PositiveColumns(torch.tensor([[1]]), None, width=3)
        >>> states, own = start_others([largest(s, NEGATIVES)], similarities, positives, slice(0, 3), {})
        >>> list(states.values()), own
        ([(tensor([0.3000]), tensor([1]))], tensor([[0.9000]]))
    """
    pairs: dict[Formula, Any] = {s: similarities, **broadcast(numbers, columns, len(similarities))}
    states: dict[Folded, State] = {}
    masks: dict[Side, Tensor] = {}
    own: Tensor | None = None
    ends = last_uses(folds)
    for each in folds:
        if _is_count(each):
            states[each] = (positives.count(each.over),)
        elif type(each.fold) is LogSumExp and not is_transformed():
            *state, seen = start_logsumexp(each, pairs, positives)
            states[each], own = tuple(state), seen if own is None else own
        else:
            if each.over not in masks:
                masks[each.over] = positives.mask(each.over)
            states[each] = each.fold.start(curve_values(each.curve, pairs), masks[each.over])
        for node in ends.get(each, ()):
            pairs.pop(node, None)
    return states, similarities.gather(1, positives.columns) if own is None else own


class IndexedEngine(Engine):
    """An engine with an index of each row's positives; folds over positives read only these columns.

    Examples:
        >>> issubclass(IndexedEngine, Engine)
        True
    """

    positives: PositiveColumns

    @abstractmethod
    def start_others(self, folds: list[Folded], numbers: dict[Formula, Any]) -> tuple[dict[Folded, State], Tensor]:
        """The states of folds over negatives and both sides, and the similarities of the positives.

        Args:
            folds: the folds.
            numbers: the numbers in their curves.
        """

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Any]) -> dict[Formula, Tensor]:
        """One vector per fold."""
        results: dict[Formula, Tensor] = {}
        for folds in passes:
            near, states, own, numbers = self._run_pass(folds, {**known, **results})
            results |= {each: each.fold.finish(state) for each, state in states.items()}
            results |= fold_positives(near, own, self.positives, numbers)
        return results

    def states(self, folds: list[Folded], known: dict[Formula, Any]) -> list[State]:
        """The unfinished folds of one pass: the references may be one of several shards."""
        near, states, own, numbers = self._run_pass(folds, known)
        states |= start_positives(near, own, self.positives, numbers)
        return [states[each] for each in folds]

    def _run_pass(
        self, folds: list[Folded], known: dict[Formula, Any]
    ) -> tuple[list[Folded], dict[Folded, State], Tensor, dict[Formula, Any]]:
        """The pending folds over positives, the states of the others, the positives' similarities, and the numbers."""
        near = [each for each in folds if each.over is Side.POSITIVES]
        others = [each for each in folds if each.over is not Side.POSITIVES]
        return near, *self.start_others(others, collect_numbers(others, known)), collect_numbers(near, known)


class IndexedMatrix(IndexedEngine):
    """Folds over the matrix of a batch against itself, or over some of its rows.

    Args:
        similarities: the rows, ``(m, n)``.
        positives: the columns of their positives.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, PositiveIndex, smallest, s
        >>> S = torch.tensor([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
        >>> index = PositiveIndex(torch.tensor([[1], [0], [0]]), torch.tensor([[True], [True], [False]]))
        >>> engine = IndexedMatrix(S, PositiveColumns.of_batch(index, 3, 0))
        >>> list(engine.fold([[smallest(s, POSITIVES)]], {}).values())
        [tensor([0.9000, 0.9000,    inf])]
    """

    def __init__(self, similarities: Tensor, positives: PositiveColumns) -> None:
        self.similarities, self.positives = similarities, positives

    def start_others(self, folds: list[Folded], numbers: dict[Formula, Any]) -> tuple[dict[Folded, State], Tensor]:
        """Compute the states from the matrix."""
        return start_others(folds, self.similarities, self.positives, slice(0, self.positives.width), numbers)


def _is_count(folded: Folded) -> bool:
    """Whether a fold counts pairs without a condition."""
    return folded is count(folded.over)
