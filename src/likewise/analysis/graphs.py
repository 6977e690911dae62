"""The graphs that stand for a loss whatever the batch and the hyper-parameters: as few as will do, each checked.

A graph holds for the way that Python took when it was traced.  Whether it holds for others is found out, not assumed: it
is run beside the loss itself on batches of many sizes, with each hyper-parameter at either end of its range.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import Tensor, nn

from likewise.analysis.javascript.arrays import SIZES, arrays_of, tidy
from likewise.analysis.javascript.writer import body_of
from likewise.analysis.subjects import Adjustable, Subject
from likewise.analysis.tracing import Sizes, Trace, TracingError, trace
from likewise.analysis.weights import Weighing, weigh

TRACED = Sizes(samples=7, dimensions=3, classes=5)
OTHERS = tuple(
    Sizes(*each)
    for each in (
        (12, 2, 3),
        (2, 2, 1),
        (3, 2, 2),
        (1, 2, 1),
        (30, 4, 6),
        (9, 3, 1),
        (5, 2, 9),
        (40, 2, 10),
        (270, 2, 3),
        (6, 2, 250),
    )
)
MANY = 4
"""How many values a hyper-parameter has at most that has code of its own for each."""

CLOSE = 1e-8
"""How far a graph may be from its loss, of the largest entry."""

FLOOR = 1e-3
"""What counts as large where all entries are next to nothing, such as the gradient of a single sample."""


@dataclass(frozen=True, eq=False)
class Case:
    """A graph and when it is the one.

    Args:
        trace: the graph.
        condition: what sizes must satisfy, all of it; empty: whatever was not caught before.

    Examples:
        >>> from likewise.analysis.subjects import subject_of
        >>> graphs = graphs_of(subject_of(lambda s, labels: (s * s).sum(), name="Squares"))
        >>> [[case.condition for case in cases] for cases in graphs.versions]
        [[()]]
    """

    trace: Trace
    condition: tuple[sympy.Basic, ...]


@dataclass(frozen=True, eq=False)
class Graphs:
    """Everything that a script needs of a loss.

    Args:
        versions: for each combination of choices, the last varying fastest, the cases by size.
        choices: the hyper-parameters that are no inputs, and the values that they can have.
        idle: the hyper-parameters that change nothing.
        centers: proxies per class, unless a hyper-parameter says otherwise.

    Examples:
        >>> Graphs((), {}, frozenset(), 0).choices
        {}
    """

    versions: tuple[tuple[Case, ...], ...]
    choices: dict[str, tuple[float, ...]]
    idle: frozenset[str]
    centers: int


def graphs_of(subject: Subject) -> Graphs:
    """Trace a loss as often as it takes.

    Examples:
        >>> from likewise.analysis.subjects import subject_of
        >>> len(graphs_of(subject_of(lambda s, labels: (s * s).sum(), name="Squares")).versions)
        1
    """
    choices = {name: _choices(subject, name) for name, each in subject.adjustable.items() if each.whole}
    while True:
        free = {name: _inside(each) for name, each in subject.adjustable.items() if name not in choices}
        fixed = {name: subject.adjustable[name].value for name in choices}
        first = trace(subject, free, TRACED, fixed)
        body_of(arrays_of(first))  # refuses what cannot be written before anything is compared
        stubborn = _stubborn(subject, first, free, fixed)
        if not stubborn:
            break
        choices |= {name: _choices(subject, name) for name in stubborn}
    choices = {name: choices[name] for name in subject.adjustable if name in choices}
    idle = frozenset(name for name in free if _is_idle(first, name))
    versions = []
    for values in itertools.product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        begun = first if chosen == fixed else trace(subject, free, TRACED, chosen)
        versions.append(_cases(subject, begun, free, chosen))
    return Graphs(tuple(versions), choices, idle, first.centers)


def is_exact(subject: Subject) -> bool:
    """Whether the gradient goes through similarities alone, with hyper-parameters as they are by default.

    Examples:
        >>> from likewise.analysis.subjects import subject_of
        >>> from likewise.losses import SphereFaceLoss, TripletLoss
        >>> is_exact(subject_of(TripletLoss)), is_exact(subject_of(SphereFaceLoss))
        (True, False)
    """
    loss = subject.build(TRACED.classes, TRACED.dimensions, subject.defaults())
    found = []
    for seed in range(3):
        samples, labels, _ = batch(TRACED, 0, seed)
        found.append(_weigh(subject, loss, samples, labels).unexplained)
    return max(found) < CLOSE


def batch(sizes: Sizes, centers: int, seed: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Samples, labels and proxies at random.

    Examples:
        >>> batch(Sizes(4, 2, 3), 0, 0)[0].shape
        torch.Size([4, 2])
    """
    chance = torch.Generator().manual_seed(seed)
    samples = torch.randn(sizes.samples, sizes.dimensions, generator=chance, dtype=torch.float64)
    labels = torch.randint(0, sizes.classes, (sizes.samples,), generator=chance)
    shape = (sizes.classes * centers, sizes.dimensions)
    return samples, labels, torch.randn(shape, generator=chance, dtype=torch.float64) if centers else None


def evaluated(
    subject: Subject, values: Mapping[str, float], samples: Tensor, labels: Tensor, proxies: Tensor | None, classes: int
) -> list[Tensor]:
    """What the loss itself says: its value, each matrix and its slopes, the gradient, the proxies' gradient.

    Examples:
        >>> from likewise.analysis.subjects import subject_of
        >>> subject = subject_of(lambda s, labels: (s * s).sum(), name="Squares")
        >>> [each.shape for each in evaluated(subject, {}, *batch(Sizes(4, 2, 3), 0, 0), 3)]
        [torch.Size([]), torch.Size([4, 4]), torch.Size([4, 4]), torch.Size([4, 2])]
    """
    loss: Any = subject.build(classes, samples.shape[1], values)
    if proxies is not None:
        with torch.no_grad():
            loss.proxies.copy_(proxies)
    weighing = _weigh(subject, loss, samples, labels)
    results = [weighing.value.sum()]
    for matrix in weighing.matrices:
        results += [matrix.similarities, matrix.slopes]
    results.append(weighing.gradient)
    if proxies is not None:
        (gradient,) = torch.autograd.grad(loss(samples, labels).sum(), [loss.proxies], allow_unused=True)
        results.append(torch.zeros_like(proxies) if gradient is None else gradient)
    return results


def _weigh(subject: Subject, loss: Any, samples: Tensor, labels: Tensor) -> Weighing:
    if isinstance(loss, nn.Module):
        return weigh(loss, samples, labels)
    return weigh(loss, samples, labels, similarity=subject.similarity)


def agrees(subject: Subject, graph: Trace, values: Mapping[str, float], sizes: Sizes) -> bool:
    """Whether a graph says what its loss says; a batch that the loss refuses, or has no finite value for, says nothing.

    Examples:
        >>> from likewise.analysis.subjects import subject_of
        >>> subject = subject_of(lambda s, labels: (s * s).sum(), name="Squares")
        >>> agrees(subject, trace(subject, {}, Sizes(7, 3, 5)), {}, Sizes(4, 2, 3))
        True
    """
    samples, labels, proxies = batch(sizes, graph.centers, seed=sizes.samples)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a deviation of one sample
            expected = evaluated(subject, values, samples, labels, proxies, sizes.classes)
    except (RuntimeError, IndexError, ValueError):
        return True
    if not all(bool(each.isfinite().all()) for each in expected):
        return True
    try:
        found = graph(samples, labels, proxies, values)
    except (RuntimeError, IndexError, ZeroDivisionError):  # a size that this graph cannot be run on
        return False
    if [each.shape for each in found] != [each.shape for each in expected]:
        return False
    pairs = [(a, b) for a, b in zip(found, expected, strict=True) if b.numel()]
    return all(bool(((a - b).abs() <= CLOSE * (b.abs().max() + FLOOR)).all()) for a, b in pairs)


# ------------------------------------------------------------------------------------------------ hyper-parameters


def _inside(adjustable: Adjustable) -> float:
    """A value off the ends, at which nothing special happens."""
    least, most = adjustable.range()
    if adjustable.hyper.log and least > 0:
        return float(least * (most / least) ** 0.4142)
    return least + (most - least) * 0.4142


def _stubborn(subject: Subject, graph: Trace, free: Mapping[str, float], fixed: Mapping[str, float]) -> list[str]:
    """Hyper-parameters on which a loss depends in another way than its graph."""
    found = []
    for name in free:
        ends = (*subject.adjustable[name].range(), subject.adjustable[name].value)
        tried = [{**free, **fixed, name: value} for value in ends]
        if not all(agrees(subject, graph, values, sizes) for values in tried for sizes in (TRACED, OTHERS[0])):
            found.append(name)
    return found


def _is_idle(graph: Trace, name: str) -> bool:
    inputs = [node for node in graph.module.graph.nodes if node.op == "placeholder"]
    return not inputs[len(inputs) - len(graph.free) + graph.free.index(name)].users


def _choices(subject: Subject, name: str) -> tuple[float, ...]:
    """Few values of a hyper-parameter that has code of its own for each: round ones, the ends and the default."""
    adjustable = subject.adjustable[name]
    least, most = adjustable.range()
    if not adjustable.whole:
        return tuple(sorted({least, (least + most) / 2.0, most, adjustable.value}))
    if most - least < MANY:
        return tuple(range(int(least), int(most) + 1))
    if _shapes_proxies(subject, name):  # what a page can show
        most = max(5, adjustable.value)
    rounded = {digit * 10**power for power in range(7) for digit in (1, 2, 5)}
    needed = {least, most, adjustable.value}
    return _thinned(sorted({value for value in rounded if least <= value <= most} | needed), needed)


def _thinned(values: list[float], needed: set[float]) -> tuple[float, ...]:
    """Fewer values: those go first that are nearest to the one before them."""
    while len(values) > MANY:
        spare = [k for k, value in enumerate(values) if value not in needed]
        del values[min(spare, key=lambda k: values[k] / values[k - 1])]
    return tuple(values)


def _shapes_proxies(subject: Subject, name: str) -> bool:
    """Whether a hyper-parameter says how many proxies there are."""
    if not subject.has_proxies:
        return False
    more = {name: subject.adjustable[name].value + 1}
    return bool(_centers(subject, more) != _centers(subject, {}))


def _centers(subject: Subject, values: Mapping[str, float]) -> Any:
    loss: Any = subject.build(2, 2, {**subject.defaults(), **values})
    return loss.proxies_per_class


# ------------------------------------------------------------------------------------------------ sizes


def _cases(subject: Subject, graph: Trace, free: Mapping[str, float], fixed: Mapping[str, float]) -> tuple[Case, ...]:
    """As many graphs as it takes for batches of all sizes."""
    values = {**subject.defaults(), **fixed}
    cases: list[Case] = []
    here = [TRACED, *OTHERS]
    while left := [sizes for sizes in here if not agrees(subject, graph, values, sizes)]:
        if TRACED in left:
            raise TracingError(
                f"{subject.name} cannot be traced: on a random batch its graph says something else than it"
            )
        broken = [{guard for guard in graph.guards if not _holds(guard, graph, sizes)} for sizes in left]
        turning = set.intersection(*broken) or set.union(*broken)
        if not turning or len(cases) == MANY:
            raise TracingError(
                f"{subject.name} cannot be traced: what it does with {left[0].samples} samples of {left[0].classes} "
                f"classes is not what it does with {TRACED.samples} of {TRACED.classes}, and nothing says where it turns"
            )
        condition = [guard for guard in dict.fromkeys(graph.guards) if guard in turning]
        cases.append(Case(graph, tuple(dict.fromkeys(_in_words(guard, graph) for guard in condition))))
        here = [sizes for sizes in here if not all(_holds(guard, graph, sizes) for guard in condition)]
        largest = max(left, key=lambda sizes: (sizes.classes, sizes.samples))
        graph = trace(subject, free, largest, fixed, of_one_size=True)
    return (*cases, Case(graph, ()))


def _holds(guard: sympy.Basic, graph: Trace, sizes: Sizes) -> bool:
    numbers = {"n": sizes.samples, "d": sizes.dimensions, "c": sizes.classes}
    return bool(guard.subs({symbol: numbers[name] for symbol, name in graph.symbols.items()}))


def _in_words(guard: sympy.Basic, graph: Trace) -> sympy.Basic:
    """A condition on sizes, in the symbols that scripts have for them."""
    renamed = guard.subs({symbol: SIZES[name] for symbol, name in graph.symbols.items()})
    return renamed.func(*(tidy(side) for side in renamed.args))
