"""Losses as graphs: run once on tensors without numbers, a loss writes down every operation that it and its gradient do.

The graph has ATen's operations alone, functional and decomposed, with the number of samples, dimensions and classes as
symbols and hyper-parameters as inputs.  `likewise.analysis.script` writes JavaScript from it.

Nothing is asked of a loss but that it runs on the dense engine without looking at values.  Three things that Python would
turn into plain numbers are kept: ``len`` of a tensor, hyper-parameters, and functions of `math` of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import Tensor, nn

from likewise.analysis.sliders import Slider, Substitutes, nothing_forgotten
from likewise.analysis.subjects import Subject
from likewise.analysis.weights import on_dense_engine
from likewise.formula import (
    PairBatch,
    as_similarity,
    batch_from_embeddings,
    check_values,
    full_precision,
    similarity_hook,
)


@dataclass(frozen=True)
class Sizes:
    """How large a batch is.

    Examples:
        >>> Sizes(samples=7, dimensions=3, classes=5).classes
        5
    """

    samples: int
    dimensions: int
    classes: int


@dataclass(frozen=True, eq=False)
class Trace:
    """A loss and its gradients as a graph.

    Args:
        name: what the loss is called.
        module: the graph, which can be run: samples, labels, proxies, constants, hyper-parameters in; the loss, each
            matrix and its slopes, the gradient by samples and by proxies out.
        free: the hyper-parameters that are inputs.
        constants: tensors that the loss holds and that are inputs of the graph.
        centers: proxies per class; 0 without proxies.
        between: what each matrix compares, in words.
        symbols: the names of sizes in the graph: ``"n"``, ``"d"`` and ``"c"``.
        guards: what the path that was traced took for granted about them.

    Examples:
        >>> from likewise.analysis.subjects import subject_of
        >>> from likewise.losses import NTXentLoss
        >>> trace(subject_of(NTXentLoss()), {"temperature": 0.3}, Sizes(7, 3, 5)).between
        ('samples against samples',)
    """

    name: str
    module: torch.fx.GraphModule
    free: tuple[str, ...]
    constants: tuple[Tensor, ...]
    centers: int
    between: tuple[str, ...]
    symbols: dict[sympy.Symbol, str]
    guards: tuple[sympy.Basic, ...]

    def __call__(
        self, samples: Tensor, labels: Tensor, proxies: Tensor | None, values: Mapping[str, float]
    ) -> list[Tensor]:
        """Run the graph on a batch."""
        given = [samples, labels]
        if self.centers:
            assert proxies is not None
            given.append(proxies.reshape(-1, self.centers, proxies.shape[1]))
        numbers = [torch.tensor(float(values[name]), dtype=torch.float64) for name in self.free]
        results: list[Tensor] = list(self.module(*given, *self.constants, *numbers))
        return results


VALUE_ASKED = "it asks for the value of a tensor, which a script cannot know beforehand"


class TracingError(TypeError):
    """A loss that cannot be written as a graph.

    Examples:
        >>> from likewise.analysis.subjects import subject_of
        >>> try:
        ...     trace(
        ...         subject_of(lambda s, labels: s.sum() if s.sum() > 0 else s.mean(), name="Mine"), {}, Sizes(7, 3, 5)
        ...     )
        ... except TracingError as error:
        ...     print(error)
        Mine cannot be traced: it asks for the value of a tensor, which a script cannot know beforehand
    """


def trace(
    subject: Subject,
    free: Mapping[str, float],
    sizes: Sizes,
    fixed: Mapping[str, float] | None = None,
    *,
    of_one_size: bool = False,
) -> Trace:
    """Write a loss down as a graph.

    Args:
        subject: the loss.
        free: hyper-parameters that become inputs, with the values by which Python decides its way.
        sizes: a batch whose size decides likewise; the graph does not depend on it further.
        fixed: hyper-parameters that become constants.
        of_one_size: accept a graph that holds for one size alone.

    Examples:
        >>> from likewise.analysis.subjects import subject_of
        >>> graph = trace(subject_of(lambda s, labels: (s * s).sum(), name="Squares"), {}, Sizes(7, 3, 5))
        >>> graph(torch.eye(2, dtype=torch.float64), torch.tensor([0, 1]), None, {})[0]
        tensor(2., dtype=torch.float64)
    """
    from torch._dispatch.python import enable_python_dispatcher
    from torch._subclasses import FakeTensorMode
    from torch.func import functionalize
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    numbers: dict[str, Tensor] = {}
    sliders = {name: Slider(value, lambda name=name: numbers[name]) for name, value in free.items()}  # type: ignore[misc]
    with nothing_forgotten():
        loss: Any = subject.build(sizes.classes, sizes.dimensions, {**(fixed or {}), **sliders})
    centers = loss.proxies_per_class if subject.has_proxies else 0
    held = _held(loss, free, subject.has_proxies)
    between: list[str] = []

    env = ShapeEnv(duck_shape=False, specialize_zero_one=False)
    mode = FakeTensorMode(shape_env=env)
    n, d, c = (_size(env, name, hint) for name, hint in zip("ndc", vars(sizes).values(), strict=True))
    symbols = {size.node.expr: name for size, name in zip((n, d, c), "ndc", strict=True)}
    with mode:
        inputs = [torch.empty(n, d, dtype=torch.float64), torch.zeros(n, dtype=torch.int64)]
        if centers:
            inputs.append(torch.empty(c, centers, d, dtype=torch.float64))
        inputs += [torch.empty(tensor.shape, dtype=tensor.dtype) for _, _, tensor in held]
        inputs += [torch.empty((), dtype=torch.float64) for _ in free]

    def run(samples: Tensor, labels: Tensor, *more: Tensor) -> list[Tensor]:
        rest = list(more)
        samples = samples.detach().requires_grad_()
        proxies = rest.pop(0).flatten(0, 1).detach().requires_grad_() if centers else None
        if proxies is not None:
            _put(loss, "proxies", proxies)
            loss.num_classes, loss.embedding_dim = c, d
        for module, name, _ in held:
            _put(module, name, rest.pop(0))
        for name, number in zip(free, rest, strict=True):
            numbers[name] = number
            if isinstance(getattr(loss, name, None), Tensor):  # what it learns, all entries alike
                _put(loss, name, number.expand(getattr(loss, name).shape))
        return _value_and_gradients(subject, loss, samples, labels, proxies, between)

    try:
        with nothing_forgotten(), Substitutes(), enable_python_dispatcher(), mode:
            written = make_fx(run)(*inputs)
            module = make_fx(functionalize(written), decomposition_table=_decompositions())(*inputs)
    except Exception as error:
        raise TracingError(f"{subject.name} cannot be traced: {_reason(error)}") from error
    module.graph.eliminate_dead_code()
    module.recompile()
    guards = tuple(guard.expr for guard in env.guards)
    if not of_one_size:
        _check_sizes(subject.name, sizes, guards, symbols)
    constants = tuple(tensor for _, _, tensor in held)
    return Trace(subject.name, module, tuple(free), constants, centers, tuple(between), symbols, guards)


def _value_and_gradients(
    subject: Subject, loss: Any, samples: Tensor, labels: Tensor, proxies: Tensor | None, between: list[str]
) -> list[Tensor]:
    """The loss, each matrix with its slopes, and the gradients: what `likewise.analysis.weigh` says, and proxies'."""
    seen: list[tuple[str, Tensor]] = []

    def see(batch: PairBatch, matrix: Tensor) -> Tensor:
        seen.append((batch.between, matrix))
        return matrix

    with torch.enable_grad(), check_values(False), similarity_hook(see), on_dense_engine(loss):
        if isinstance(loss, nn.Module):
            value = loss(samples, labels)
        else:
            with full_precision(samples):
                similarity = as_similarity(subject.similarity)
                batch = batch_from_embeddings(samples, labels, None, None, None, similarity)
                value = loss(batch.similarities(), labels)
        total = value.sum()
    used = [(words, matrix) for words, matrix in seen if matrix.requires_grad and total.requires_grad]
    between[:] = [words for words, _ in used]
    matrices = [matrix for _, matrix in used]
    by = [*matrices, samples] + ([] if proxies is None else [proxies])
    found = torch.autograd.grad(total, by, allow_unused=True) if total.requires_grad else [None] * len(by)
    slopes = [torch.zeros_like(each) if grad is None else grad for each, grad in zip(by, found, strict=True)]
    pairs = [each.detach() for pair in zip(matrices, slopes, strict=False) for each in pair]
    return [total.detach(), *pairs, *slopes[len(matrices) :]]


def _size(env: Any, name: str, hint: int) -> torch.SymInt:
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    source = ConstantSource(name)
    symbol = env.create_symbol(hint, source=source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None)
    made: torch.SymInt = env.create_symintnode(symbol, hint=hint, source=source)
    return made


def _held(loss: Any, free: Mapping[str, float], has_proxies: bool) -> list[tuple[nn.Module, str, Tensor]]:
    """Tensors that a loss holds beside proxies and hyper-parameters: constants to a script."""
    if not isinstance(loss, nn.Module):
        return []
    known = {*free, *(["proxies"] if has_proxies else [])}
    return [
        (module, name, tensor.detach())
        for module in loss.modules()
        for table in (module._parameters, module._buffers)
        for name, tensor in table.items()
        if tensor is not None and not (module is loss and name in known)
    ]


def _put(module: Any, name: str, tensor: Tensor) -> None:
    """Put a tensor in the place of a parameter or a buffer."""
    module._parameters.pop(name, None)
    module._buffers.pop(name, None)
    vars(module)[name] = tensor


def _decompositions() -> dict[Any, Any]:
    """Torch's own, down to its core operations, and these further down."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    aten = torch.ops.aten
    further = get_decompositions([aten._softmax, aten._log_softmax, aten.addmm, aten.logaddexp, aten.gelu])
    means = {aten.mean.default: _mean, aten.mean.dim: _mean, aten.var.correction: _variance}
    return {**core_aten_decompositions(), **further, **means, aten.linalg_vector_norm.default: _norm}


def _mean(tensor: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    dims = list(range(tensor.ndim)) if dim is None or dim == [] else dim
    number = math.prod(tensor.shape[each] for each in dims)
    return tensor.sum(dims, keepdim=keepdim) / number


def _variance(tensor: Tensor, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
    dims = list(range(tensor.ndim)) if dim is None or dim == [] else dim
    number = math.prod(tensor.shape[each] for each in dims)
    apart = tensor - _mean(tensor, dims, keepdim=True)
    return (apart * apart).sum(dims, keepdim=keepdim) / (number - correction)


def _norm(
    tensor: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    dims = list(range(tensor.ndim)) if dim is None else dim
    if ord == 2:
        return (tensor * tensor).sum(dims, keepdim=keepdim).sqrt()
    if ord in (math.inf, -math.inf):
        return tensor.abs().amax(dims, keepdim) if ord > 0 else tensor.abs().amin(dims, keepdim)
    return (tensor.abs() ** ord).sum(dims, keepdim=keepdim) ** (1.0 / ord)


def _check_sizes(name: str, sizes: Sizes, guards: tuple[sympy.Basic, ...], symbols: Mapping[sympy.Symbol, str]) -> None:
    """Refuse a graph that holds for one number of samples, dimensions or classes alone."""
    words = {"n": "the number of samples", "d": "the number of dimensions", "c": "the number of classes"}
    traced = dict(zip(symbols, vars(sizes).values(), strict=True))
    for symbol, number in traced.items():
        others = [other for other in range(max(number - 2, 2), number + 5) if other != number]
        if not any(all(guard.subs({**traced, symbol: other}) for guard in guards) for other in others):
            raise TracingError(f"{name} cannot be traced: it needs {words[symbols[symbol]]} as a plain number")


def _reason(error: Exception) -> str:
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    if isinstance(error, GuardOnDataDependentSymNode) or "DataDependent" in type(error).__name__:
        return VALUE_ASKED
    return " ".join(str(error).split())[:300] or type(error).__name__
