"""A whole loss in one function, for batches so small that launching kernels is all they cost.

From embeddings to the number: unit length, folds, the loss and the weights of its gradient are one kernel each, and so is
each step back.  Nothing per anchor goes through autograd: the slopes of the loss by its folds are formulas too.  What is
done here is what `schedule.run` and `reduce` do, for losses without numbers from outside (a learned temperature, a
boundary for each class, a mean over the batch); those take the longer way.

What is launched is written down for the first batch of a kind (`Call`) and only filled in for the next.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS
from likewise.engines.schedule import schedule
from likewise.engines.triton.once import once
from likewise.engines.triton.operands import (
    SORT_FROM,
    Manner,
    compared,
    in_bytes,
    multiplied,
    pairing_of,
    sum_of_products,
)
from likewise.engines.triton.plan import Kernel, Plan, make_plan
from likewise.engines.triton.program import FOLDING, ROWS, SLOPES, Operands, on, stream_of
from likewise.engines.triton.rows import BACK, PREPARE, back_arguments, in_rows, padded, prepare_arguments
from likewise.engines.triton.script import Place, Room, Script, Step, Value, within
from likewise.engines.triton.source import Pairing
from likewise.engines.triton.text import Leaf, shape_of
from likewise.engines.triton.tiles import TILED
from likewise.formula import Folded, Formula, Labels, Mined, Number, PairBatch, Reduction, Relation, Term, walk

UP_TO = 4096
"""Anchors up to which one program adds them up."""

RUNS = 64
"""Kinds of batches that a loss remembers."""


def whole(parts: list[Term], batch: PairBatch, reduction: Reduction) -> Tensor | None:
    """The loss as a number, or ``None`` where it must take the longer way."""
    relation = batch.relation
    base = relation.base if isinstance(relation, Mined) else relation
    if not isinstance(base, Labels) or reduction == "none":
        return None
    m, n = batch.shape
    if m > UP_TO or m * n >= SORT_FROM or batch.group is not SINGLE_PROCESS or batch.shards is not SINGLE_PROCESS:
        return None
    loss, values = _loss_of(parts, reduction, relation)
    if loss is None:
        return None
    left, right, manner, bend, numbers = compared(batch)
    a = in_rows(left)
    b = a if right is left else in_rows(right)
    labels = base.labels.contiguous()
    references = labels if base.reference_labels is None else base.reference_labels.contiguous()
    tensors = [a, b, labels, references]
    if base.own is not None:
        tensors += [base.own.to(torch.int32), torch.arange(n, device=labels.device, dtype=torch.int32)]
    if base.valid is not None:
        tensors.append(in_bytes(base.valid))
    tensors += numbers.values()
    learns = torch.is_grad_enabled()
    call = Call(
        (m, n), a.shape[1], (a.stride(0), b.stride(0)), (a.dtype, b.dtype), a.device, manner, bend, pairing_of(base),
        (learns and left.requires_grad, learns and right.requires_grad),
        tuple([place for place, tensor in enumerate(tensors) if tensor.data_ptr() % 16]),
    )  # fmt: skip
    run = loss.runs.get(call)
    if run is None:
        run = loss.run(call, tuple(numbers))
    if True not in call.wanted:
        return run(tensors, values)[0]
    return _Whole.apply(run, tensors, values, left, right)  # type: ignore[no-any-return, no-untyped-call]


# ------------------------------------------------------------------------------------------------ what is declared


@dataclass(eq=False)
class Loss:
    """A loss and its miner but for their numbers, and what was generated for them.

    Args:
        totals: what the parts add up to.
        counts: what they are divided by.
        keep: the miner's conditions.
        places: where numbers of these formulas stand among those of a call.
    """

    totals: list[Formula]
    counts: list[Formula]
    keep: tuple[Formula, ...]
    places: dict[Formula, int]
    plans: dict[tuple[Manner, Formula, Pairing], Plan] = field(default_factory=dict)
    runs: dict[Call, Run] = field(default_factory=dict)

    def run(self, call: Call, numbers: tuple[Formula, ...]) -> Run:
        """Write down what a kind of batch needs."""
        key = call.manner, call.bend, call.pairing
        if key not in self.plans:
            self.plans[key] = make_plan(self.totals, self.counts, self.keep, *key)
        if len(self.runs) >= RUNS:
            self.runs.clear()
        self.runs[call] = Layout(self.plans[key], call, self.places, numbers).run()
        return self.runs[call]


class _Described(NamedTuple):
    """A declaration: its other parts, formulas, shape, leaves and numbers; and the loss that it is without a miner."""

    others: list[Term]
    totals: list[Formula]
    counts: list[Formula]
    shape: Any
    leaves: list[Leaf]
    values: list[float]
    alone: Loss | None


_LOSSES: dict[Any, Loss | None] = {}
_SHAPES: weakref.WeakKeyDictionary[Term, dict[Reduction, _Described]] = weakref.WeakKeyDictionary()
"""The shape of a declaration, which a loss keeps from call to call."""


def _loss_of(parts: list[Term], reduction: Reduction, relation: Relation) -> tuple[Loss | None, list[float]]:
    """The loss of a declaration, if it has a short way, and the numbers of this call."""
    described = _described(parts, reduction)
    if not isinstance(relation, Mined):
        return described.alone, described.values
    keep = relation.keep_positive, relation.keep_negative
    conditions, leaves = shape_of(list(keep), deep=True)
    # a number that loss and miner share is one argument of a kernel, where others have two
    places = {leaf.node: place for place, leaf in enumerate(described.leaves)}
    key = (described.shape, conditions, tuple([places.get(leaf.node) for leaf in leaves]), reduction)
    loss = _remembered(key, described.totals, described.counts, keep, [*described.leaves, *leaves])
    return loss, [_value(leaf) for leaf in (*described.leaves, *leaves)] if loss is not None else []


def _described(parts: list[Term], reduction: Reduction) -> _Described:
    remembered, others = _SHAPES.get(parts[0]), parts[1:]
    if remembered is None:
        remembered = _SHAPES[parts[0]] = {}
    described = remembered.get(reduction)
    # a loss may make its other parts anew at each call
    if described is None or described.others != others:
        totals = [part.total for part in parts]
        counts = [] if reduction == "sum" else [part.units if reduction == "mean" else part.nonzero for part in parts]
        shape, leaves = shape_of([*totals, *counts], deep=True)
        loss = _remembered((shape, (), (), reduction), totals, counts, (), leaves)
        values = [_value(leaf) for leaf in leaves] if loss is not None else []
        described = _Described(others, totals, counts, shape, leaves, values, loss)
        remembered[reduction] = described
    return described


def _value(leaf: Leaf) -> float:
    assert isinstance(leaf.node, Number)
    return float(leaf.node.value)


def _remembered(
    key: Any, totals: list[Formula], counts: list[Formula], keep: tuple[Formula, ...], leaves: list[Leaf]
) -> Loss | None:
    if key not in _LOSSES:
        places = {leaf.node: place for place, leaf in enumerate(leaves)}
        possible = _possible([*totals, *counts], keep, leaves)
        _LOSSES[key] = Loss(totals, counts, keep, places) if possible else None
    return _LOSSES[key]


def _possible(roots: list[Formula], keep: tuple[Formula, ...], leaves: list[Leaf]) -> bool:
    """Whether a loss needs nothing but folds that kernels know, and no numbers from outside."""
    if any(isinstance(node, Folded) and type(node.fold) not in TILED for node in walk(*roots, *keep)):
        return False
    for formulas in (roots, list(keep)):
        stages = schedule(formulas)
        if len(stages) > 1 or stages[0].numbers:
            return False
    return all(leaf.kind == "number" for leaf in leaves)


# ------------------------------------------------------------------------------------------------ what is launched


class Call(NamedTuple):
    """Everything about a batch that what is launched depends on, but for numbers.

    Args:
        rows: how many anchors and references.
        d: how many dimensions.
        strides: of the rows of both.
        dtypes: of both.
        device: of everything.
        manner: how they are multiplied.
        bend: the similarity as a formula of the product.
        pairing: how kernels know who is positive to whom.
        wanted: whose gradient is.
        odd: which tensors begin at an address that does not load in whole vectors.
    """

    rows: tuple[int, int]
    d: int
    strides: tuple[int, int]
    dtypes: tuple[torch.dtype, torch.dtype]
    device: torch.device
    manner: Manner
    bend: Formula
    pairing: Pairing
    wanted: tuple[bool, bool]
    odd: tuple[int, ...]


class Layout:
    """Writes down what a kind of batch needs: first what tensors there are, then what is launched on them.

    Args:
        plan: the kernels.
        call: the kind of batch.
        places: where numbers stand among those of a call.
        numbers: what the similarity's formula is given, in the order of the tensors.
    """

    def __init__(self, plan: Plan, call: Call, places: dict[Formula, int], numbers: tuple[Formula, ...]) -> None:
        self.plan, self.call, self.places = plan, call, places
        self.steps: list[Step] = []
        base = 4  # anchors, references and the labels of both
        self.ids = None
        if call.pairing.own:
            self.ids = Place(base, 0, torch.int32), Place(base + 1, 0, torch.int32)
            base += 2
        self.valid = None
        if call.pairing.valid:
            self.valid = Place(base, 0, torch.uint8)
            base += 1
        self.known: dict[Formula, Place] = {node: Place(base + k, 0, torch.float32) for k, node in enumerate(numbers)}
        self.room = Room(base + len(numbers))
        self.value = Place(self.room.base + 1, 0, torch.float32)

    def run(self) -> Run:
        """What runs it."""
        call, manner = self.call, self.call.manner
        left, left_scale = self.factor(0)
        right, right_scale = (left, left_scale) if manner.symmetric else self.factor(1)
        operands = Operands(
            left, right, None if left_scale is None else (left_scale, right_scale),
            (Place(2, 0, torch.int64), Place(3, 0, torch.int64)), self.ids, self.valid, None,
            manner.precision, (*call.rows, padded(call.d)), manner.dtype, call.device,
        )  # fmt: skip
        weights = self.forward(operands)
        if True not in call.wanted:
            return Run(call, self.room.bytes, Script(self.steps), [], [], Script([]))
        slopes = self.slopes(operands, weights)
        sides: list[tuple[int, Place]] = []
        back: list[Step] = []
        for side, operand, scale in ((0, right, left_scale), (1, left, right_scale)):
            if call.wanted[side] and not (side and self.plan.symmetric):
                product = self.value.base + 1 + 2 * len(sides)
                arguments = back_arguments(
                    Place(side, 0, call.dtypes[side]), None, scale, Place(product, 0, torch.float32),
                    Place(product + 1, 0, torch.float32), call.strides[side], call.d, unit=manner.unit,
                )  # fmt: skip
                back.append(Step(BACK, call.rows[side], arguments))
                sides.append((side, operand))
        return Run(call, self.room.bytes, Script(self.steps), slopes, sides, Script(back))

    def factor(self, side: int) -> tuple[Place, Place | None]:
        """One side of the product as it is multiplied, and its scale."""
        call, manner = self.call, self.call.manner
        rows, width, stride, dtype = call.rows[side], padded(call.d), call.strides[side], call.dtypes[side]
        x = Place(side, 0, dtype)
        as_it_is = width == stride == call.d and dtype == manner.dtype
        if as_it_is and not (manner.unit or manner.rounded):
            return x, None
        operand = self.room.take(rows * width, manner.dtype)
        scale = self.room.take(rows, torch.float32) if manner.scaled else None
        arguments = prepare_arguments(x, None, operand, scale, stride, call.d, unit=manner.unit, rounded=manner.rounded)
        self.steps.append(Step(PREPARE, rows, arguments))
        return operand, scale

    def forward(self, operands: Operands) -> Place:
        """The folds, the loss, and the weights of its gradient."""
        plan, (m, n, _) = self.plan, operands.size
        shape = operands.cut(m, n, SLOPES if plan.exact else FOLDING)
        count = -(-n // shape.columns)
        states = []
        for each in plan.passes:
            tiles = self.room.take(count * each.width * m, torch.float32)
            joined = self.room.take((each.width + len(each.terms)) * m, torch.float32)
            given = self.given(each.folding)
            programs, arguments = operands.arguments(shape, (tiles, tiles), (0, m), (0, n), each.width * m, given)
            self.steps.append(Step(each.folding.compiled, programs, arguments, shape.warps, shape.stages))
            self.steps.append(Step(each.joining, -(-m // ROWS), (tiles, joined, m, count, ROWS)))
            for k, fold in enumerate(each.folds, start=each.width):
                self.known[fold] = joined._replace(offset=joined.offset + 4 * k * m)
            states.append(joined)
        weights = self.room.take(plan.weights * m, torch.float32)
        given = [*states[plan.mining :], *self.given(plan.combine)]
        arguments = (self.value, weights, m, *given, 1024 if m > 256 else 256)
        self.steps.append(Step(plan.combine.compiled, 1, arguments))
        return weights

    def slopes(self, operands: Operands, weights: Place) -> list[Place]:
        """The gradient by the similarities, in one matrix or two."""
        plan, (m, n, _), dtype = self.plan, operands.size, operands.slope_dtype
        stride = n + -n % 16  # rows that begin at multiples of 16 are stored in whole vectors
        first = self.room.take(m * stride, dtype)
        both = [first, self.room.take(m * stride, dtype)] if self.call.manner.split else [first]
        given = self.given(plan.slopes)
        given += [weights._replace(offset=weights.offset + 4 * k * m) for k in range(plan.weights)]
        shape = operands.cut(m, n, SLOPES)
        programs, arguments = operands.arguments(shape, (both[0], both[-1]), (0, m), (0, n), stride, given)
        self.steps.append(Step(plan.slopes.compiled, programs, arguments, shape.warps, shape.stages))
        return both

    def given(self, kernel: Kernel) -> list[Any]:
        """What a kernel is given for its leaves: places, numbers of the call, and constants of the similarity."""
        found: list[Any] = []
        for leaf in kernel.leaves:
            if leaf.kind != "number":
                found.append(self.known[leaf.node])
            elif leaf.node in self.places:
                found.append(Value(self.places[leaf.node]))
            else:
                found.append(_value(leaf))
        return found


class Run(NamedTuple):
    """What is launched for batches of one kind.

    Args:
        call: the kind.
        bytes: of the room.
        before: everything up to the gradient by the similarities.
        slopes: where that is, in one matrix or two.
        sides: for each gradient that is wanted, whose it is and the operand that it takes.
        back: from the factors' gradients to those of the sources.
    """

    call: Call
    bytes: int
    before: Script
    slopes: list[Place]
    sides: list[tuple[int, Place]]
    back: Script

    def __call__(self, tensors: list[Tensor], values: list[float]) -> tuple[Tensor, list[Tensor | None]]:
        """The loss, and the gradients by both factors."""
        call, device = self.call, self.call.device
        found: list[Tensor | None] = [None, None]
        with on(device):
            stream = stream_of(device)
            room = torch.empty(self.bytes // 4, dtype=torch.float32, device=device)
            value = torch.empty((), dtype=torch.float32, device=device)
            here = [*tensors, room, value]
            self.before.run(here, values, stream)
            if not self.sides:
                return value, found
            (m, n), d = call.rows, call.d
            width, stride = padded(d), (n + -n % 16, 1)
            slopes = [within(room, place, (m, n), stride) for place in self.slopes]
            for side, place in self.sides:
                other = call.rows[1 - side], width
                operand = here[place.base] if place.base < 2 else within(room, place, other, (width, 1))
                parts = [part.T for part in slopes] if side else slopes
                gradient = found[side] = torch.empty(call.rows[side], d, dtype=torch.float32, device=device)
                here += [sum_of_products(parts, multiplied(operand)), gradient]
            self.back.run(here, values, stream)
        return value, found


class _Whole(torch.autograd.Function):
    """The loss as a function of the two factors."""

    @staticmethod
    def forward(ctx: Any, run: Run, tensors: list[Tensor], values: list[float], *_factors: Tensor) -> Tensor:
        # the gradient of a number is known as soon as the number; only a factor is missing
        value, ctx.gradients = run(tensors, values)
        ctx.dtypes = run.call.dtypes
        return value

    @staticmethod
    @once
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_left, by_right = (
            None if each is None else (each * gradient).to(dtype)
            for each, dtype in zip(ctx.gradients, ctx.dtypes, strict=True)
        )
        return None, None, None, by_left, by_right
