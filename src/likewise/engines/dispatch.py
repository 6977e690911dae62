"""The dispatcher: chooses the engine of a declaration.

`choose` decides from the needs of the declaration, the shapes, the dtype and the device; an engine that is requested by
name is never silently replaced.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import NamedTuple

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.distributed import SINGLE_PROCESS
from likewise.engines.chunked import ChunkedEngine, ColumnEngine
from likewise.engines.dense import DenseEngine
from likewise.engines.indexed import IndexedMatrix
from likewise.engines.installed import has_triton
from likewise.engines.positive_columns import PositiveColumns
from likewise.engines.positive_index import FEW, find_positive_index
from likewise.engines.schedule import Engine
from likewise.formula import (
    SNR,
    BlendedCenters,
    Cosine,
    Declaration,
    Dot,
    Euclidean,
    Formula,
    Labels,
    MatrixLoss,
    NearestCenter,
    PairBatch,
    Pooled,
    PositiveIndex,
    Regularizer,
    RowHistograms,
    Similarity,
    SquaredEuclidean,
    Term,
    TripletTerm,
    has_similarity_hook,
    one_of,
)

BACKENDS: tuple[str, ...] = ("auto", "dense", "chunked", "triton")

CHUNK_FROM = {"cpu": 2**22, "cuda": 2**28}
"""The number of pairs from which the matrix is computed in chunks, by kind of device (docs/benchmarks-engines.md).

On two cores chunks take 59 ms against 51 at 2,048 squared, in a fraction of the memory, and 255 against 401 at twice that.
On a GPU they are slower at any measured size, up to 16,384 squared, and are used where the matrix takes a GiB.
"""

TRITON_FROM = 2**23
"""The number of pairs from which generated kernels are faster than the whole matrix on a GPU.

Measured on an H200 (docs/benchmarks-engines.md): at 2,048 squared 2.4 ms against the matrix's 2.1, at 8,192 squared 4.8
against 8.7.
"""

KERNELS_IN_GRAPH = (2**21, 2**31)
"""The numbers of pairs between which a CUDA graph runs generated kernels.

Fewer pairs do not need kernels; more pairs hide the kernel launches.

Measured on an H200 (tests/engines/graphs_gpu.py): at 1,024 squared kernels take as long as the whole matrix, at 2,048
squared between 70 and 90%.
"""

CHUNKS_IN_GRAPH = 2**28
"""The number of pairs below which a CUDA graph runs chunks; more chunks hide their launches and take more memory."""

INDEX_FROM = 2**18
"""The number of pairs from which an index of positives is faster than masks on a CPU, its computation included."""

IN_KERNELS = (Cosine, Dot, Euclidean, SNR, SquaredEuclidean)
MOST_POOLED_CENTERS = 31
"""The number of centers per class up to which kernels pool: the bits of an integer tell which centers are nearest."""


class EngineKind(Enum):
    """One of the three engines."""

    DENSE = "dense"
    CHUNKED = "chunked"
    TRITON = "triton"


class Plan(NamedTuple):
    """The engines that execute a batch; chosen once per loss and passed on.

    Args:
        backend: the user's option.
        formulas: the engine of formulas of similarities.
        rows: the engine of everything else: functions of matrix rows, and formulas with numbers per pair, which kernels
            do not support.

    Examples:
        >>> Plan("auto", EngineKind.TRITON, EngineKind.CHUNKED).with_matrix().rows.value
        'dense'
    """

    backend: str
    formulas: EngineKind
    rows: EngineKind

    @property
    def is_automatic(self) -> bool:
        """Whether the dispatcher chose the engine."""
        return self.backend == "auto"

    def with_matrix(self) -> Plan:
        """Return the plan for the same batch after its matrix was computed, when engines need not avoid it."""
        return self._replace(formulas=EngineKind.DENSE, rows=EngineKind.DENSE) if self.is_automatic else self


def choose(batch: PairBatch, backend: str = "auto") -> Plan:
    """Choose the engines for a batch.

    Args:
        batch: the batch.
        backend: the user's option; ``"auto"`` decides by size, dtype and device.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> choose(PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))).formulas.value
        'dense'
    """
    one_of("backend", backend, BACKENDS)
    if backend != "auto":
        return Plan(backend, EngineKind(backend), EngineKind(backend))
    # a hook needs the matrix, and a given matrix need not be avoided
    if batch.matrix is not None or has_similarity_hook() or _is_traced():
        return Plan(backend, EngineKind.DENSE, EngineKind.DENSE)
    m, n = batch.shape
    pairs, device = batch.group.largest(m) * n, batch.relation.device.type  # the same decision on all ranks
    rows = EngineKind.CHUNKED if pairs >= CHUNK_FROM.get(device, CHUNK_FROM["cuda"]) else EngineKind.DENSE
    products = pairs * (1 if batch.similarity is None else batch.similarity.pooled)
    in_kernels = products >= TRITON_FROM and _runs_in_kernels(batch)
    return Plan(backend, EngineKind.TRITON if in_kernels else rows, rows)


def _is_traced() -> bool:
    """Return whether torch must trace plain operations: under torch.compile and transforms of torch.func."""
    return torch.compiler.is_compiling() or is_transformed()


def choose_in_graph(
    declarations: list[Declaration],
    similarity: Similarity,
    miner: object,
    dtype: torch.dtype,
    pairs: int,
    *,
    whole: bool = True,
) -> EngineKind:
    """Choose the engine for a loss on one set of embeddings that is captured in a CUDA graph and must not synchronize.

    Args:
        declarations: everything that the loss declares.
        similarity: how embeddings are compared.
        miner: the loss's miner, or ``None``.
        dtype: the dtype of embeddings and references together.
        pairs: the number of pairs, with each center counted.
        whole: whether a graph could run the whole matrix instead; then kernels run only losses that do not depend on the
            number of positives.

    Examples:
        >>> from likewise.formula import NEGATIVES, Cosine, per_pair, s
        >>> choose_in_graph([per_pair(NEGATIVES, s)], Cosine(), None, torch.float32, 100).value
        'dense'
    """
    least, most = KERNELS_IN_GRAPH
    terms = _list_terms(declarations)
    sums_in_classes = bool(terms) and all(map(_sums_in_classes, terms))
    if sums_in_classes and not whole and miner is None and pairs < CHUNKS_IN_GRAPH:
        return EngineKind.CHUNKED
    fixed = all(_has_fixed_shapes(term) for term in terms)
    if whole:
        fixed = fixed and all(isinstance(term, Term) and not term.folds_each_positive for term in terms)
    mined = miner is None or (not whole and _is_rule(miner, similarity, terms))
    if hasattr(miner, "keep"):  # labels do not determine the positives that it keeps
        mined = whole or not needs_positives(declarations)
    fits = least <= pairs < most and dtype != torch.float64 and _has_kernels(similarity)
    fits = fits and _pays_in_kernels(similarity, is_half=dtype != torch.float32)
    return EngineKind.TRITON if fits and fixed and mined and has_triton() else EngineKind.DENSE


def _list_terms(declarations: list[Declaration]) -> list[Term | MatrixLoss]:
    """Return everything that reads a matrix; a regularizer does not."""
    items = [item for each in declarations for item in (each if isinstance(each, tuple) else (each,))]
    return [item for item in items if not isinstance(item, Regularizer)]


def _has_fixed_shapes(term: Term | MatrixLoss) -> bool:
    """Whether kernels compute a term without reading from the device, once they know the positives."""
    if isinstance(term, MatrixLoss):
        return term.evaluates_formulas and term.has_fixed_shapes
    return not term.reads_pair_numbers  # numbers per pair are matrices


def _sums_in_classes(term: Term | MatrixLoss) -> bool:
    """Whether a term sums within classes, in tensors of fixed shapes once the positives are known."""
    return isinstance(term, MatrixLoss) and term.sums_in_classes


def _is_rule(miner: object, similarity: Similarity, terms: list[Term | MatrixLoss]) -> bool:
    """Whether a miner's choice of triplets is a formula, and only terms on triplets use it."""
    choice = getattr(miner, "choice", None)
    return (
        choice is not None and all(isinstance(each, TripletTerm) for each in terms) and choice(similarity) is not None
    )


def needs_positives(declarations: list[Declaration]) -> bool:
    """Return whether kernels need the positions of each anchor's positives, whose number is read from the device.

    Examples:
        >>> from likewise.formula import NEGATIVES, per_pair, per_triplet, relu, s, s_p
        >>> needs_positives([per_pair(NEGATIVES, s)]), needs_positives([per_triplet(relu(s - s_p))])
        (False, True)
    """
    return any(
        each.needs_positives if isinstance(each, MatrixLoss) else each.folds_each_positive
        for each in _list_terms(declarations)
    )


def _runs_in_kernels(batch: PairBatch) -> bool:
    fits = batch.dtype == torch.float32 and _has_kernels(batch.similarity) and batch.matrix is None
    fits = fits and _pays_in_kernels(batch.similarity, is_half=batch.half is not None)
    # kernels finish their folds, but shards need unfinished states
    return batch.relation.device.type == "cuda" and fits and batch.shards is SINGLE_PROCESS and has_triton()


def _has_kernels(similarity: Similarity | None) -> bool:
    """Whether kernels can compute a similarity."""
    if not isinstance(similarity, Pooled):
        return type(similarity) in IN_KERNELS
    pools = isinstance(similarity.pool, NearestCenter | BlendedCenters) and similarity.centers <= MOST_POOLED_CENTERS
    return pools and type(similarity.base) in (Cosine, Dot)


def _pays_in_kernels(similarity: Similarity | None, *, is_half: bool) -> bool:
    """Whether kernels are faster than the whole matrix.

    Blended centers are multiplied twice in the backward pass.  In exact float32, which takes three products of TF32, that
    is slower than a matrix: 31 ms against 13 for 8,192 samples and 2,048 classes of ten centers on an H200.
    """
    if not isinstance(similarity, Pooled) or not isinstance(similarity.pool, BlendedCenters):
        return True
    return is_half or torch.get_float32_matmul_precision() != "highest"


def _check_triton(batch: PairBatch) -> None:
    """Raise an error that states the reason if Triton cannot run here."""
    if is_transformed():
        raise ValueError(
            "backend must be 'auto', 'chunked' or 'dense' inside a transform of torch.func and in forward-mode "
            "differentiation, but it is 'triton'"
        )
    device = batch.relation.device.type
    if device != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        raise ValueError(f"backend must be 'dense' or 'chunked' on this device, {device}, but it is 'triton'")
    if not has_triton():
        raise ImportError("backend='triton' needs Triton, which comes with torch for CUDA on Linux: pip install triton")
    if isinstance(batch.similarity, Pooled) and not _has_kernels(batch.similarity):
        raise TypeError(
            f"backend must be 'auto', 'chunked' or 'dense' for {batch.similarity.centers} centers that are pooled by "
            f"{type(batch.similarity.pool).__name__}, which has no kernel, but it is 'triton'"
        )


class RowKernels:
    """Functions of the whole matrix that kernels compute, for a `likewise.formula.MatrixLoss`.

    Args:
        batch: the batch.
    """

    def __init__(self, batch: PairBatch) -> None:
        self.batch = batch

    def histograms(self, position: Formula, bins: int) -> RowHistograms:
        """Histograms of each anchor's positives and negatives."""
        _check_triton(self.batch)
        from likewise.engines.triton import compute_histograms

        return compute_histograms(self.batch, position, bins)

    def excess(self, limits: Tensor, classes: Tensor, *, apart: bool) -> tuple[Tensor, Tensor] | None:
        """The excess of all negative pairs over limits; ``None`` unless labels give few limits per anchor on one process."""
        batch, relation = self.batch, self.batch.relation
        own = isinstance(relation, Labels) and relation.reference_labels is None and relation.valid is None
        # sums in steps need similarities of limited size
        similarity = batch.similarity
        fits = (
            type(similarity) in (Cosine, Euclidean, SquaredEuclidean) and similarity is not None and similarity.bounded
        )
        if not (own and fits and batch.group is SINGLE_PROCESS and 0 < limits.shape[1] <= FEW[-1]):
            return None
        _check_triton(batch)
        from likewise.engines.triton import compute_excess

        return compute_excess(batch, limits, classes, apart=apart)


def find_row_kernels(batch: PairBatch, plan: Plan, *, formulas: bool) -> RowKernels | None:
    """Return the kernels for functions of the matrix, or ``None`` if these are computed from rows.

    Args:
        batch: the batch.
        plan: what `choose` returned for it.
        formulas: whether the miner's conditions are formulas of similarities.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
        >>> find_row_kernels(batch, choose(batch), formulas=True) is None
        True
    """
    return RowKernels(batch) if (plan.formulas if formulas else plan.rows) is EngineKind.TRITON else None


def make_engine(
    batch: PairBatch,
    plan: Plan,
    *,
    masked: bool = False,
    positives: PositiveIndex | None = None,
    formulas: bool = True,
) -> Engine:
    """Construct an engine for a batch.

    Args:
        batch: the batch.
        plan: what `choose` returned for it.
        masked: use masks, for folds over each positive that were not expanded.
        positives: the positions of each anchor's positives, if already computed.
        formulas: whether only formulas of similarities are executed.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
        >>> type(make_engine(batch, choose(batch))).__name__
        'DenseEngine'
    """
    kind = plan.formulas if formulas and not masked else plan.rows
    if kind is EngineKind.TRITON:
        _check_triton(batch)
        from likewise.engines.triton import TritonEngine

        return TritonEngine(batch)
    on_table = batch.table == "references" and isinstance(batch.relation, Labels) and not masked
    can_index = plan.is_automatic and not masked
    if kind is EngineKind.CHUNKED:
        if on_table:
            return ColumnEngine(batch)
        return ChunkedEngine(batch, _index_positives(batch, positives) if can_index else None)
    if not can_index or has_similarity_hook() or _is_traced():
        return DenseEngine(batch)
    if on_table and batch.relation.device.type == "cpu":
        return ColumnEngine(batch, whole=True)
    columns = _index_columns(batch, positives)
    return DenseEngine(batch) if columns is None else IndexedMatrix(batch.similarities(), columns)


def _index_columns(batch: PairBatch, positives: PositiveIndex | None) -> PositiveColumns | None:
    """The columns of each anchor's positives in the matrix on a CPU, where they are faster than masks; else ``None``."""
    relation, width = batch.relation, batch.shape[1]
    if not isinstance(relation, Labels) or not _is_on_one_cpu(batch) or relation.valid is not None:
        return None
    known = relation.positives
    apart = relation.reference_labels is not None and relation.own is None  # no anchor is among the references
    if known is not None and known.exists is None and apart:
        return PositiveColumns(known.index, None, width)
    positives = _index_positives(batch, positives)
    return None if positives is None else PositiveColumns.of_batch(positives, width, 0)


def _index_positives(batch: PairBatch, found: PositiveIndex | None = None) -> PositiveIndex | None:
    """The positions of each anchor's positives, for a large batch against itself on a CPU, without a miner."""
    relation, (m, n) = batch.relation, batch.shape
    if not isinstance(relation, Labels) or relation.reference_labels is not None or relation.valid is not None:
        return None
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if m * n < INDEX_FROM or not _is_on_one_cpu(batch) or traced:
        return None
    return find_positive_index(batch, large=False) if found is None else found


def _is_on_one_cpu(batch: PairBatch) -> bool:
    """Whether the whole batch is on this process's CPU."""
    is_local = batch.group is SINGLE_PROCESS and batch.shards is SINGLE_PROCESS
    return is_local and batch.relation.device.type == "cpu"
