"""Folds over rows whose positives have known places: a column or a few of each row, and all the others are negatives.

A mask of a row says for every column what one index says.  Folds over positives look at those columns alone; a
log-sum-exp over negatives leaves them out by writing −∞ there.  No mask is made or read, and the curve of the positives,
a margin on an angle say, is computed where it matters and nowhere else.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.engines.schedule import Engine
from likewise.formula import (
    Apply,
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
    evaluate,
    s,
    walk,
)

_FARTHEST = -80.0
"""e⁻⁸⁰ is nothing beside the peak's e⁰, and what lies further below would be denormal, which is slow to multiply."""

_LOG2_E = 1.0 / math.log(2.0)

_THEMSELVES = (LogSumExp, Sum, Mean, Max, Min)
"""Folds that leave a single value as it is."""


@dataclass(frozen=True, eq=False)
class Places:
    """Where each row's positives are among the columns.

    Args:
        columns: ``(m, k)``, all within the width.
        here: which of them are positives, ``(m, k)``, the others naming columns that no positive of the row has; ``None``:
            all are.
        width: how many columns there are.
        itself: the column of the row itself, ``(m, 1)``, which is on neither side; ``None`` where rows are no columns.

    Examples:
        >>> import torch
        >>> Places.within(torch.tensor([[5], [-1]]), slice(4, 8)).here.tolist()
        [[True], [False]]
    """

    columns: Tensor
    here: Tensor | None
    width: int
    itself: Tensor | None = None

    @classmethod
    def within(cls, columns: Tensor, block: slice) -> Places:
        """The places that are in a block of the columns; negative ones are nowhere."""
        width, columns = block.stop - block.start, columns - block.start
        return cls(columns.clamp(0, width - 1), (columns >= 0) & (columns < width), width)

    def mask(self, over: Side) -> Tensor:
        """The pairs of a side, for folds that must be told, ``(m, width)``."""
        everybody = torch.ones(len(self.columns), self.width, dtype=torch.bool, device=self.columns.device)
        return self.leave_out(everybody, over, False)

    def leave_out(self, values: Tensor, over: Side, instead: float) -> Tensor:
        """Write a number wherever a side that is not the positives' has nothing, in a tensor that nobody else has."""
        if over is not Side.BOTH:
            values = write(values, self.columns, self.here, instead)
        return values if self.itself is None else write(values, self.itself, None, instead)

    def counted(self, over: Side) -> Tensor:
        """How many pairs a side has, ``(m,)``."""
        m, k = self.columns.shape
        everybody = self.width if self.itself is None else self.width - 1
        if over is Side.BOTH or self.here is None:
            number = {Side.BOTH: everybody, Side.NEGATIVES: everybody - k, Side.POSITIVES: k}[over]
            return torch.full((m,), number, device=self.columns.device)
        positives = self.here.sum(dim=1)
        return positives if over is Side.POSITIVES else everybody - positives


def write(values: Tensor, columns: Tensor, here: Tensor | None, instead: float) -> Tensor:
    """Write a number into places of each row, where they are here, in a tensor that nobody else has.

    Examples:
        >>> import torch
        >>> write(torch.ones(2, 2), torch.tensor([[1], [1]]), torch.tensor([[True], [False]]), 0.0)
        tensor([[1., 0.],
                [1., 1.]])
    """
    if here is None:
        return values.scatter_(1, columns, instead)
    return values.scatter_(1, columns, torch.where(here, instead, values.gather(1, columns)))


def broadcast(numbers: dict[Formula, Tensor], columns: slice | Tensor) -> dict[Formula, Any]:
    """Numbers as matrices: per anchor ``(m, 1)``; per reference ``(1, width)``, or ``(m, k)`` at their places.

    Examples:
        >>> import torch
        >>> bias = PerReference("bias", lambda batch: torch.arange(3.0))
        >>> broadcast({bias: torch.arange(3.0)}, torch.tensor([[2], [1]]))[bias].tolist()
        [[2.0], [1.0]]
    """
    shaped: dict[Formula, Any] = {}
    for node, value in numbers.items():
        if isinstance(node, PerReference):
            shaped[node] = value[None, columns] if isinstance(columns, slice) else value[columns]
        else:
            shaped[node] = value[:, None] if node.rank == Rank.ANCHOR else value
    return shaped


def numbers_of(terms: list[Folded], known: dict[Formula, Tensor]) -> dict[Formula, Tensor]:
    """What the curves refer to beside `s`: numbers that are known, and learned scalars, which get a gradient, too.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, add_up
        >>> scale = Number(torch.tensor(2.0))
        >>> numbers_of([add_up(scale * s, POSITIVES)], {})
        {learned(2): tensor(2.)}
    """
    found: dict[Formula, Tensor] = {}
    for node in walk(*(term.curve for term in terms)):
        if node in known:
            found[node] = known[node]
        elif isinstance(node, Number) and isinstance(node.value, Tensor):
            found[node] = node.value
    return found


def of_positives(
    terms: list[Folded], own: Tensor, places: Places, numbers: dict[Formula, Tensor]
) -> dict[Folded, State]:
    """Folds over positives, not finished, from the similarities at their places.

    Args:
        terms: the folds.
        own: the similarities, ``(m, k)``.
        places: where they are among all references.
        numbers: what the curves refer to, per anchor ``(m,)`` and per reference ``(n,)``.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, add_up
        >>> places = Places(torch.tensor([[1]]), None, width=3)
        >>> list(of_positives([add_up(2.0 * s, POSITIVES)], torch.tensor([[0.4]]), places, {}).values())
        [(tensor([0.8000]),)]
    """
    pairs = {s: own, **broadcast(numbers, places.columns)}
    keep = torch.ones_like(own, dtype=torch.bool) if places.here is None else places.here
    return {
        term: (places.counted(term.over),) if _is_count(term) else term.fold.start(_matrix(term.curve, pairs), keep)
        for term in terms
    }


def finished(terms: list[Folded], own: Tensor, places: Places, numbers: dict[Formula, Tensor]) -> dict[Formula, Tensor]:
    """Folds over positives, finished; what a fold leaves of a single value is the value.

    Args:
        terms: the folds.
        own: the similarities, ``(m, k)``.
        places: where they are among all references.
        numbers: what the curves refer to, per anchor ``(m,)`` and per reference ``(n,)``.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, logsumexp
        >>> places = Places(torch.tensor([[1]]), None, width=3)
        >>> list(finished([logsumexp(2.0 * s, POSITIVES)], torch.tensor([[0.4]]), places, {}).values())
        [tensor([0.8000])]
    """
    one = places.here is None and own.shape[1] == 1
    themselves = [term for term in terms if one and isinstance(term.fold, _THEMSELVES)]
    pairs = {s: own, **broadcast(numbers, places.columns)} if themselves else {}
    results: dict[Formula, Tensor] = {term: _matrix(term.curve, pairs)[:, 0] for term in themselves}
    states = of_positives([term for term in terms if term not in results], own, places, numbers)
    return results | {term: term.fold.finish(state) for term, state in states.items()}


def of_the_rest(
    terms: list[Folded], similarities: Tensor, places: Places, block: slice, numbers: dict[Formula, Tensor]
) -> tuple[dict[Folded, State], Tensor]:
    """Folds over negatives and over both sides of some columns, not finished, and the similarities at the places.

    Args:
        terms: the folds.
        similarities: ``(m, width)``.
        places: where the positives are among these columns.
        block: which of all references the columns are.
        numbers: what the curves refer to, per anchor ``(m,)`` and per reference ``(n,)``.

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, largest
        >>> similarities, places = torch.tensor([[0.1, 0.9, 0.3]]), Places(torch.tensor([[1]]), None, width=3)
        >>> states, own = of_the_rest([largest(s, NEGATIVES)], similarities, places, slice(0, 3), {})
        >>> list(states.values()), own
        ([(tensor([0.3000]), tensor([1]))], tensor([[0.9000]]))
    """
    pairs: dict[Formula, Any] = {s: similarities, **broadcast(numbers, block)}
    states: dict[Folded, State] = {}
    masks: dict[Side, Tensor] = {}
    own: Tensor | None = None
    for term in terms:
        if _is_count(term):
            states[term] = (places.counted(term.over),)
        elif type(term.fold) is LogSumExp:
            *state, seen = _log_sum_exp(term, pairs, places)
            states[term], own = tuple(state), seen if own is None else own
        else:
            if term.over not in masks:
                masks[term.over] = places.mask(term.over)
            states[term] = term.fold.start(_matrix(term.curve, pairs), masks[term.over])
    return states, similarities.gather(1, places.columns) if own is None else own


class ByPlaces(Engine):
    """An engine that knows where each row's positives are: folds over them look at nothing else.

    Examples:
        >>> issubclass(ByPlaces, Engine)
        True
    """

    places: Places

    @abstractmethod
    def of_others(self, terms: list[Folded], numbers: dict[Formula, Tensor]) -> tuple[dict[Folded, State], Tensor]:
        """Folds over all but positives, not finished, and the similarities at the positives' places.

        Args:
            terms: the folds.
            numbers: what their curves refer to.
        """

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Tensor]) -> dict[Formula, Tensor]:
        """One vector per fold."""
        results: dict[Formula, Tensor] = {}
        for terms in passes:
            near, states, own, numbers = self._pass(terms, {**known, **results})
            results |= {term: term.fold.finish(state) for term, state in states.items()}
            results |= finished(near, own, self.places, numbers)
        return results

    def states(self, terms: list[Folded], known: dict[Formula, Tensor]) -> list[State]:
        """The folds of one pass, not finished: the references may be one of several shares."""
        near, states, own, numbers = self._pass(terms, known)
        states |= of_positives(near, own, self.places, numbers)
        return [states[term] for term in terms]

    def _pass(
        self, terms: list[Folded], known: dict[Formula, Tensor]
    ) -> tuple[list[Folded], dict[Folded, State], Tensor, dict[Formula, Tensor]]:
        """The folds over positives, still to do; the states of the others; own similarities; and numbers for the curves."""
        numbers = numbers_of(terms, known)
        near = [term for term in terms if term.over is Side.POSITIVES]
        rest = [term for term in terms if term.over is not Side.POSITIVES]
        return near, *self.of_others(rest, numbers), numbers


def _is_count(term: Folded) -> bool:
    """Whether a fold counts pairs without a condition."""
    return term is count(term.over)


def _matrix(curve: Formula, pairs: dict[Formula, Any]) -> Tensor:
    """A curve for every pair; a constant is one for all."""
    values, similarities = evaluate(curve, pairs), pairs[s]
    values = values if isinstance(values, Tensor) else similarities.new_full((), values)
    matrix: Tensor = values.expand_as(similarities)
    return matrix


def _log_sum_exp(term: Folded, pairs: dict[Formula, Any], places: Places) -> tuple[Tensor, Tensor, Tensor | None]:
    """The peak, the total, and the similarities at the places, where they come along for nothing."""
    line, where = _line(term.curve), (places.columns, places.here, places.itself, term.over)
    if line is None:
        values = _matrix(term.curve, pairs)
        peak, total, _ = _PeakAndTotal.apply(values, 1.0, 0.0, *where)  # type: ignore[no-untyped-call]
        return peak, total, None
    similarities, (factor, shift) = pairs[s], line
    # in the dtype of what they multiply: a number in half precision must not be rounded once more, by a division say
    numbers = {
        node: value.to(similarities.dtype) if isinstance(value, Tensor) else value
        for node, value in pairs.items()
        if node.rank < Rank.PAIR
    }
    peak, total, own = _PeakAndTotal.apply(similarities, evaluate(factor, numbers), shift, *where)  # type: ignore[no-untyped-call]
    return peak, total, own


def _line(curve: Formula) -> tuple[Formula, float] | None:
    """A curve as ``factor · (s + shift)``, where it is one: a factor for the batch or for each anchor, a constant shift."""
    if curve is s:
        return Number(1.0), 0.0
    if not isinstance(curve, Apply):
        return None
    *_, last = arguments = curve.arguments
    if curve.operation == "neg":
        line = _line(last)
        return None if line is None else (-1.0 * line[0], line[1])
    if curve.operation in ("add", "sub") and arguments[0] is s and isinstance(last, Number):
        constant = last.value
        # a number that is learned has a gradient, and is left to the formula
        return (
            None if isinstance(constant, Tensor) else (Number(1.0), constant if curve.operation == "add" else -constant)
        )
    if curve.operation == "mul" and arguments[0].rank < Rank.PAIR:
        number, line = arguments[0], _line(last)
    elif curve.operation in ("mul", "div") and last.rank < Rank.PAIR:
        number, line = last if curve.operation == "mul" else 1.0 / last, _line(arguments[0])
    else:
        return None
    return None if line is None else (number * line[0], line[1])


class _PeakAndTotal(torch.autograd.Function):
    """The state of a log-sum-exp over one side of rows of ``scale · (v + shift)``, and the values at the positives' places.

    The slope of both is written out: it is one matrix, which autograd would add up from two.
    """

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        scale: Tensor | float,
        shift: float,
        columns: Tensor,
        here: Tensor | None,
        itself: Tensor | None,
        over: Side,
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights = (values + shift).mul_(scale) if shift else values * scale
        weights = Places(columns, here, values.shape[1], itself).leave_out(weights, over, -torch.inf)
        # no result in place: torch 2.11's compiler loses its gradient
        peak = weights.amax(dim=1).clamp_min(torch.finfo(values.dtype).min)
        # a power of two takes a third of the time of a power of e on a CPU
        torch.threshold_(weights.sub_(peak[:, None]), _FARTHEST, -torch.inf).mul_(_LOG2_E).exp2_()
        # a row that is not empty sums to one at least; an empty one gets a logarithm of zero, and no gradient
        total = weights.sum(dim=1).clamp_min(1.0)
        ctx.number, ctx.shift, ctx.over = None if isinstance(scale, Tensor) else scale, shift, over
        learned = scale if isinstance(scale, Tensor) else None
        ctx.save_for_backward(values, learned, columns, here, itself, peak, weights)
        ctx.mark_non_differentiable(peak)
        ctx.set_materialize_grads(False)
        return peak, total, values.gather(1, columns)

    @staticmethod
    def backward(ctx: Any, _peak: Tensor | None, total: Tensor | None, own: Tensor | None) -> tuple[Tensor | None, ...]:
        values, scale, columns, here, itself, peak, weights = ctx.saved_tensors
        scale = ctx.number if scale is None else scale
        again = torch.is_grad_enabled()
        if again:  # somebody differentiates again: make the weights once more, from what is given
            places = Places(columns, here, values.shape[1], itself)
            weights = torch.exp(((values + ctx.shift) * scale - peak[:, None]).clamp(_FARTHEST, 0.0))
            weights = weights * places.leave_out(torch.ones_like(weights), ctx.over, 0.0)
        of_values, of_scale = None, None
        if total is not None:
            of_values = weights * (total[:, None] * scale)
            if ctx.needs_input_grad[1]:
                along = (weights * (values + ctx.shift)).sum(dim=1, keepdim=True)
                of_scale = (along * total[:, None]).sum_to_size(scale.shape)
        if own is not None:
            of_values = torch.zeros_like(values) if of_values is None else of_values
            add = of_values.scatter_add if again else of_values.scatter_add_
            of_values = add(1, columns, own)
        return of_values, of_scale, None, None, None, None, None
