"""Which engine runs a declaration.  One function decides, and it never falls back silently."""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings

import torch

from likewise.distributed import SINGLE_PROCESS
from likewise.engines.chunked import ChunkedEngine
from likewise.engines.dense import DenseEngine
from likewise.engines.few import FewPositives, slots_of
from likewise.engines.schedule import Engine, run_on
from likewise.formula import (
    SNR,
    Cosine,
    Dot,
    Euclidean,
    PairBatch,
    Reduction,
    SquaredEuclidean,
    Term,
    TermValues,
    has_similarity_hook,
    one_of,
)

BACKENDS: tuple[str, ...] = ("auto", "dense", "chunked", "triton")

STREAM_FROM = {"cpu": 2**22, "cuda": 2**28}
"""Pairs from which on a matrix is streamed, by kind of device (docs/benchmarks-engines.md).

On two cores streaming takes 59 ms against 51 at 2,048 squared, in a fraction of the memory, and 255 against 401 at twice
that.  On a GPU it is slower at any size that was measured, up to 16,384 squared, and begins where the matrix takes a GiB.
"""

FUSE_FROM = 2**23
"""Pairs from which on generated kernels win over the whole matrix on a GPU.

Measured on an H200 (docs/benchmarks-engines.md): at 2,048 squared 2.4 ms against the matrix's 2.1, at 8,192 squared 4.8
against 8.7.
"""

FUSES = (Cosine, Dot, Euclidean, SNR, SquaredEuclidean)


def choose(batch: PairBatch, backend: str = "auto", *, formulas: bool = True) -> str:
    """The engine for a batch: ``"auto"`` decides by its size, dtype and device.

    Args:
        batch: the batch.
        backend: what the user asked for.
        formulas: whether the loss is one; the fused engine takes nothing else.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> choose(PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2)))
        'dense'
    """
    one_of("backend", backend, BACKENDS)
    if backend == "triton" and not formulas:
        raise TypeError("the fused engine takes formulas, and this loss is none; give backend='chunked' or 'dense'")
    if backend != "auto":
        return backend
    # who has the matrix, or shows it to somebody, needs no engine that avoids it; a compiler makes its own tiles
    if batch.is_matrix or has_similarity_hook() or torch.compiler.is_compiling():
        return "dense"
    (m, n), device = batch.extent, batch.relation.device.type
    if formulas and m * n >= FUSE_FROM and _fuses(batch):
        return "triton"
    return "chunked" if m * n >= STREAM_FROM.get(device, STREAM_FROM["cuda"]) else "dense"


def _fuses(batch: PairBatch) -> bool:
    """Whether generated kernels take a batch."""
    fits = batch.dtype == torch.float32 and type(batch.similarity) in FUSES and not batch.is_matrix
    # kernels finish their folds, and shares of references must not
    return batch.relation.device.type == "cuda" and fits and batch.shards is SINGLE_PROCESS and _triton_is_there()


@functools.cache
def _triton_is_there() -> bool:
    there = importlib.util.find_spec("triton") is not None
    if not there:
        warnings.warn("Triton is not installed, so batches on the GPU are not fused; pip install triton", stacklevel=2)
    return there


def engine_for(batch: PairBatch, backend: str = "auto") -> Engine:
    """An engine on a batch.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> type(engine_for(PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2)))).__name__
        'DenseEngine'
    """
    name = choose(batch, backend)
    if name != "triton":
        # where an anchor's few positives are is known without a mask
        slots = slots_of(batch) if backend == "auto" else None
        if name == "chunked":
            return ChunkedEngine(batch, slots)
        return DenseEngine(batch) if slots is None else FewPositives(batch, slots)
    _check_fused(batch)
    from likewise.engines.triton import TritonEngine

    return TritonEngine(batch)


def _check_fused(batch: PairBatch) -> None:
    """Say in one sentence why there is no fused engine here, if there is none."""
    device = batch.relation.device.type
    if device != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        raise ValueError(f"backend must be 'dense' or 'chunked' on this device, {device}, but it is 'triton'")
    if not _triton_is_there():
        raise ImportError("backend='triton' needs Triton, which comes with torch for CUDA on Linux: pip install triton")


def run(parts: list[Term], batch: PairBatch, reduction: Reduction, backend: str = "auto") -> list[TermValues]:
    """Compute the parts of a declaration on the engine of that name; ``"auto"`` chooses by size and device.

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, Labels, PairBatch, per_pair, s
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), similarities=torch.full((2, 2), 0.5))
        >>> run([per_pair(NEGATIVES, s)], batch, "mean", backend="dense")[0].units
        tensor([1, 1])
    """
    return run_on(parts, batch, engine_for(batch, backend), reduction)
