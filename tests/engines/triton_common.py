"""What the tests of the fused engine share: its ways, batches, and the bar that it is held to.

Files named ``triton_*`` are run by ``test_triton.py`` in a process of their own: Triton's interpreter must be asked for
before anybody imports Triton.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from triton.runtime import interpreter

from likewise.engines.triton import engine, operands, program
from likewise.formula import Term
from likewise.losses import PairLoss
from likewise.miners import PairMiner

_visible: set[Any] = set()


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A device function, called by the interpreter; Triton's own prepares its language anew at each call."""
    if function.fn not in _visible:
        interpreter._patch_lang(function.fn)
        _visible.add(function.fn)
    return function.rewrite()(*args, **kwargs)


# these two are half of the time, and nothing here is about them: no index is near 2³¹
if hasattr(interpreter, "_patch_lang"):
    interpreter.InterpretedFunction.__call__ = _call
if hasattr(interpreter, "interpreter_builder"):
    object.__setattr__(interpreter.interpreter_builder.options, "sanitize_overflow", False)

WAYS = ("general", "sorted")
NEVER = 2**60
EPS = torch.finfo(torch.float32).eps


def take(patch: pytest.MonkeyPatch, way: str) -> None:
    """Lead every batch on one way, over many small tiles.

    general: folds in the order of the batch.  sorted: folds in the order of labels, with kernels for plain tiles, in
    several chunks of columns, and back in several panels.
    """
    patch.setattr(program, "SMALL", program.Shape(16 if way == "sorted" else 32, 16, 16, 4, 3))
    patch.setattr(operands, "SORT_FROM", 0 if way == "sorted" else NEVER)
    if way == "sorted":
        patch.setattr(engine, "PARTIAL", 1)
        patch.setattr(operands.Arranged, "_panels", _panels_of_sixteen)


def _panels_of_sixteen(_arranged: Any, along: int, _across: int) -> list[tuple[int, int]]:
    return [(first, min(first + 16, along)) for first in range(0, along, 16)]


def batch(m: int = 34, d: int = 5, classes: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Embeddings of any length, in classes that overlap.

    In the order of labels, the first sixteen samples have the first half of the classes for themselves: their tiles with
    the next sixteen are plain.
    """
    generator = torch.Generator().manual_seed(seed)
    half = classes // 2 if m > 16 else 0
    first, rest = (torch.randint(classes, (size,), generator=generator) for size in (min(m, 16), max(m - 16, 0)))
    labels = torch.cat([first % half if half else first, half + rest % (classes - half)])
    labels = labels[torch.randperm(m, generator=generator)]
    centers = torch.randn(classes, d, generator=generator)
    return centers[labels] + torch.randn(m, d, generator=generator), labels


def declared(part: Term | tuple[Term, ...], **options: Any) -> PairLoss:
    """A loss that is nothing but its declaration."""

    class Declared(PairLoss):
        def declare(self) -> Any:
            return part

    return Declared(**options)


def keeping(*conditions: Any) -> PairMiner:
    """A miner that is nothing but its conditions."""

    class Keeping(PairMiner):
        def keep(self, similarity: Any) -> Any:
            return conditions

        def __post_init__(self) -> None:
            pass

    return Keeping()


def outcome(loss: nn.Module, tensors: list[Tensor], *args: Any, **kwargs: Any) -> list[Tensor | None]:
    """The value, and the gradients of tensors and of everything that is learned, for a gradient that is not one."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    value = loss(leaves[0], *args, **({"references": leaves[1]} if len(leaves) > 1 else {}), **kwargs)
    weight = torch.linspace(1.5, 2.5, max(value.numel(), 1), dtype=value.dtype).reshape(value.shape)
    learned = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    found = torch.autograd.grad((value * weight).sum(), [*leaves, *learned], allow_unused=True)
    return [value.detach(), *found]


def errors(found: list[Tensor | None], true: list[Tensor | None]) -> list[float]:
    """Relative distances; infinite where one side has a gradient and the other has none."""
    result = []
    for x, t in zip(found, true, strict=True):
        if x is None or t is None:
            result.append(0.0 if x is t or not any(y is not None and y.any() for y in (x, t)) else torch.inf)
        elif not torch.isfinite(x).all():
            result.append(torch.inf)
        else:
            distance, length = (x.double() - t.double()).norm(), t.double().norm()
            result.append(float(distance / length) if length > 0 else float(distance))
    return result


def check(make: Callable[..., nn.Module], tensors: list[Tensor] | Tensor, *args: Any, **kwargs: Any) -> None:
    """The fused engine is at most twice as far from float64 as the dense one, and a few units in the last place."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    fused = outcome(make(backend="triton"), tensors, *args, **kwargs)
    dense = outcome(make(backend="dense"), tensors, *args, **kwargs)
    true = outcome(make(backend="dense").double(), [tensor.double() for tensor in tensors], *args, **kwargs)
    half = any(tensor.dtype == torch.float16 for tensor in tensors)
    for place, (own, theirs) in enumerate(zip(errors(fused, true), errors(dense, true), strict=True)):
        # a gradient in float16 is rounded once, wherever it comes from
        slack = 1e-5 if half and place else 4.0 * EPS
        assert own <= 2.0 * theirs + slack, (
            f"{'value' if not place else f'gradient {place}'}: {own:.2e}, dense {theirs:.2e}"
        )
    for x, t in zip(fused, dense, strict=True):
        if x is not None and t is not None:
            assert (x.shape, x.dtype) == (t.shape, t.dtype)
