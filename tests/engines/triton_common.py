"""Code that the tests of the Triton engine share: its two paths, batches, and the comparison with float64.

``test_triton.py`` runs the files named ``triton_*`` in a separate process, because Triton's interpreter must be enabled
before Triton is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from triton.runtime import interpreter

from likewise.engines.triton import engine, kernels, layout
from likewise.formula import Term
from likewise.losses import PairLoss
from likewise.miners import PairMiner

_visible: set[Any] = set()


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a device function in the interpreter; Triton's own method patches its language at each call."""
    if function.fn not in _visible:
        interpreter._patch_lang(function.fn)
        _visible.add(function.fn)
    return function.rewrite()(*args, **kwargs)


# these two take half of the time, and no test depends on them: no index is near 2³¹
if hasattr(interpreter, "_patch_lang"):
    interpreter.InterpretedFunction.__call__ = _call
if hasattr(interpreter, "interpreter_builder"):
    object.__setattr__(interpreter.interpreter_builder.options, "sanitize_overflow", False)

WAYS = ("general", "sorted", "triangular")
NEVER = 2**60
EPS = torch.finfo(torch.float32).eps


def take(patch: pytest.MonkeyPatch, way: str) -> None:
    """Make every batch take one path, with many small tiles.

    general: in the order of the batch.  sorted: in the order of labels, with kernels for plain tiles, in several chunks
    of columns forward, and in several chunks backward; the operand of a table is computed in chunks, and tiles in as many
    chunks as on a GPU.  triangular: the same in one chunk, but a batch against itself computes the tiles on and above the
    diagonal.
    """
    is_sorted = way != "general"
    patch.setattr(kernels, "SMALL_SHAPE", kernels.TileShape(16 if is_sorted else 32, 16, 16, 4, 3))
    patch.setattr(kernels, "JOIN_TILES", 2)  # in several steps
    patch.setattr(layout, "MIN_SORTED_PAIRS", 0 if is_sorted else NEVER)
    patch.setattr(engine, "TRIANGLE_STATE_BYTES", NEVER if way == "triangular" else 0)
    if is_sorted:
        patch.setattr(engine, "TILE_STATE_BYTES", 1)
        patch.setattr(layout, "MAX_OPERAND_BYTES", 1)
        patch.setattr(layout.Layout, "_chunk_height", lambda _layout, _across: 16)
    choose_tiles = kernels.Operands.choose_tiles
    choose_tiles = getattr(choose_tiles, "unpatched", choose_tiles)

    def choose_in_chunks(self: kernels.Operands, m: int, n: int, large: kernels.Shapes) -> kernels.TileShape:
        return replace(choose_tiles(self, m, n, large), programs=large["half"].programs, chunks=large["half"].chunks)

    vars(choose_in_chunks)["unpatched"] = choose_tiles
    patch.setattr(kernels.Operands, "choose_tiles", choose_in_chunks if way == "sorted" else choose_tiles)


def batch(m: int = 34, d: int = 5, classes: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return embeddings of different norms, in classes that overlap.

    In the order of labels, only the first sixteen samples have the first half of the classes: their tiles with the next
    sixteen are plain.
    """
    generator = torch.Generator().manual_seed(seed)
    half = classes // 2 if m > 16 else 0
    first, rest = (torch.randint(classes, (size,), generator=generator) for size in (min(m, 16), max(m - 16, 0)))
    labels = torch.cat([first % half if half else first, half + rest % (classes - half)])
    labels = labels[torch.randperm(m, generator=generator)]
    centers = torch.randn(classes, d, generator=generator)
    return centers[labels] + torch.randn(m, d, generator=generator), labels


def declare_loss(term: Term | tuple[Term, ...], **options: Any) -> PairLoss:
    """Make a loss from its declaration."""

    class Declared(PairLoss):
        def declare(self) -> Any:
            return term

    return Declared(**options)


def make_miner(*conditions: Any) -> PairMiner:
    """Make a miner from its conditions."""

    class Keeping(PairMiner):
        def keep(self, similarity: Any) -> Any:
            return conditions

        def __post_init__(self) -> None:
            pass

    return Keeping()


def run(loss: nn.Module, tensors: list[Tensor], *args: Any, **kwargs: Any) -> list[Tensor | None]:
    """Return the value, and the gradients by tensors and parameters, for an incoming gradient other than one."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    value = loss(leaves[0], *args, **({"references": leaves[1]} if len(leaves) > 1 else {}), **kwargs)
    weight = torch.linspace(1.5, 2.5, max(value.numel(), 1), dtype=value.dtype).reshape(value.shape)
    learned = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad((value * weight).sum(), [*leaves, *learned], allow_unused=True)
    return [value.detach(), *gradients]


def relative_errors(results: list[Tensor | None], true: list[Tensor | None]) -> list[float]:
    """Return relative distances; infinite if only one of two gradients exists."""
    result = []
    for x, t in zip(results, true, strict=True):
        if x is None or t is None:
            result.append(0.0 if x is t or not any(y is not None and y.any() for y in (x, t)) else torch.inf)
        elif not torch.isfinite(x).all():
            result.append(torch.inf)
        else:
            distance, length = (x.double() - t.double()).norm(), t.double().norm()
            result.append(float(distance / length) if length > 0 else float(distance))
    return result


def check(
    make: Callable[..., nn.Module], tensors: list[Tensor] | Tensor, *args: Any, units: float = 4.0, **kwargs: Any
) -> None:
    """Assert that the error against float64 is at most twice that of the dense engine, plus some units in the last place."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    triton = run(make(backend="triton"), tensors, *args, **kwargs)
    dense = run(make(backend="dense"), tensors, *args, **kwargs)
    true = run(make(backend="dense").double(), [tensor.double() for tensor in tensors], *args, **kwargs)
    half = any(tensor.dtype == torch.float16 for tensor in tensors)
    for place, (own, theirs) in enumerate(
        zip(relative_errors(triton, true), relative_errors(dense, true), strict=True)
    ):
        # a float16 gradient is rounded once in every engine
        slack = 1e-5 if half and place else units * EPS
        assert own <= 2.0 * theirs + slack, (
            f"{'value' if not place else f'gradient {place}'}: {own:.2e}, dense {theirs:.2e}"
        )
    for x, t in zip(triton, dense, strict=True):
        if x is not None and t is not None:
            assert (x.shape, x.dtype) == (t.shape, t.dtype)
