"""The dispatcher: chooses the engine of a declaration.

`choose` decides from the needs of the declaration, the shapes, the dtype and the device; an engine that is requested by
name is never silently replaced.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
from enum import Enum
from typing import Protocol

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.distributed import SINGLE_PROCESS
from likewise.engines.chunked import ChunkedEngine, ColumnEngine
from likewise.engines.dense import DenseEngine
from likewise.engines.indexed import IndexedMatrix, PositiveColumns
from likewise.engines.mapping import ChunkedRows, WholeRows
from likewise.engines.positives import expand, find_positive_index, sum_triplets
from likewise.engines.schedule import Engine, run_on
from likewise.formula import (
    SNR,
    Choice,
    ClassWeighted,
    Cosine,
    Counted,
    Declaration,
    Dot,
    Euclidean,
    Formula,
    Labels,
    MatrixLoss,
    Mined,
    PairBatch,
    PerPair,
    Pooled,
    PositiveIndex,
    Reduction,
    Relation,
    Similarity,
    SquaredEuclidean,
    Term,
    TermValues,
    Thresholded,
    Triplets,
    TripletTerm,
    can_read_values,
    counted_by,
    has_similarity_hook,
    one_of,
    reduce,
    s,
    s_p,
    sort_declaration,
    term_within,
    walk,
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

KERNELS_IN_GRAPH = (2**21, 2**28)
"""The numbers of pairs between which a CUDA graph runs generated kernels: fewer need no help, more hide their launches.

Measured on an H200 (tests/engines/graphs_gpu.py): at 1,024 squared kernels take as long as the whole matrix, at 2,048
squared between 70 and 90%.
"""

INDEX_FROM = 2**18
"""The number of pairs from which an index of positives is faster than masks on a CPU, its computation included."""

IN_KERNELS = (Cosine, Dot, Euclidean, SNR, SquaredEuclidean)


class Plan(Enum):
    """How a batch is executed: one of three engines, the chunked one on rows or on a table of references."""

    DENSE = "dense"
    CHUNKED = "chunked"
    TRITON = "triton"


class PairRule(Protocol):
    """A miner that keeps pairs by conditions."""

    def keep(self, similarity: Similarity) -> tuple[Formula, Formula]:
        """The conditions under which a positive and a negative pair are kept."""


class TripletRule(Protocol):
    """A miner that chooses triplets."""

    def choice(self, similarity: Similarity) -> Choice | None:
        """The choice as formulas; ``None`` for a miner that draws."""

    def choose(self, rows: WholeRows) -> Triplets:
        """The chosen triplets."""

    def refine(self, rows: WholeRows) -> Relation:
        """The pairs that the chosen triplets contain."""


def choose(batch: PairBatch, backend: str = "auto", *, formulas: bool = True) -> Plan:
    """The engine for a batch.

    Args:
        batch: the batch.
        backend: the user's option; ``"auto"`` decides by size, dtype and device.
        formulas: whether only formulas of similarities are executed; Triton supports nothing else without the matrix.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> choose(PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))).value
        'dense'
    """
    one_of("backend", backend, BACKENDS)
    if backend != "auto":
        return Plan(backend)
    # a hook needs the matrix, and a given matrix need not be avoided
    if batch.matrix is not None or has_similarity_hook() or _is_traced():
        return Plan.DENSE
    m, n = batch.shape
    pairs, device = batch.group.largest(m) * n, batch.relation.device.type  # the same decision on all ranks
    if formulas and pairs >= TRITON_FROM and _runs_in_kernels(batch):
        return Plan.TRITON
    return Plan.CHUNKED if pairs >= CHUNK_FROM.get(device, CHUNK_FROM["cuda"]) else Plan.DENSE


def _is_traced() -> bool:
    """Whether torch sees every operation: torch.compile makes its own tiles; transforms differentiate plain operations."""
    return torch.compiler.is_compiling() or is_transformed()


def choose_in_graph(
    declarations: list[Declaration], similarity: Similarity, miner: object, dtype: torch.dtype, pairs: int
) -> Plan:
    """The engine for a loss on one set of embeddings that is captured in a CUDA graph and must not synchronize.

    Args:
        declarations: everything that the loss declares.
        similarity: how embeddings are compared.
        miner: the loss's miner, or ``None``.
        dtype: the dtype of embeddings and references together.
        pairs: the number of pairs.

    Examples:
        >>> from likewise.formula import NEGATIVES, per_pair
        >>> choose_in_graph([per_pair(NEGATIVES, s)], Cosine(), None, torch.float32, 100).value
        'dense'
    """
    least, most = KERNELS_IN_GRAPH
    terms = [item for each in declarations for item in (each if isinstance(each, tuple) else (each,))]
    # folds over each positive read the number of positives from the device, and numbers per pair are matrices
    plain = all(isinstance(term, Term) and not (term.folds_each_positive or term.reads_pair_numbers) for term in terms)
    mined = miner is None or hasattr(miner, "keep")
    fits = least <= pairs < most and dtype != torch.float64 and type(similarity) in IN_KERNELS
    return Plan.TRITON if fits and plain and mined and _has_triton() else Plan.DENSE


def _runs_in_kernels(batch: PairBatch) -> bool:
    fits = batch.dtype == torch.float32 and type(batch.similarity) in IN_KERNELS and batch.matrix is None
    # kernels finish their folds, but shards need unfinished states
    return batch.relation.device.type == "cuda" and fits and batch.shards is SINGLE_PROCESS and _has_triton()


@functools.cache
def _has_triton() -> bool:
    there = importlib.util.find_spec("triton") is not None
    if not there:
        warnings.warn(
            "Triton is not installed, so large batches on the GPU run in chunks; pip install triton", stacklevel=2
        )
    return there


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
    if not _has_triton():
        raise ImportError("backend='triton' needs Triton, which comes with torch for CUDA on Linux: pip install triton")


def make_engine(
    batch: PairBatch,
    backend: str = "auto",
    *,
    masked: bool = False,
    positives: PositiveIndex | None = None,
    formulas: bool = True,
) -> Engine:
    """An engine on a batch.

    Args:
        batch: the batch.
        backend: the user's option.
        masked: use masks, for folds over each positive that were not expanded.
        positives: the positions of each anchor's positives, if already computed.
        formulas: see `choose`.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels
        >>> type(make_engine(PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2)))).__name__
        'DenseEngine'
    """
    plan = choose(batch, backend, formulas=formulas and not masked)
    if plan is Plan.TRITON:
        _check_triton(batch)
        if isinstance(batch.similarity, Pooled):
            raise TypeError(
                "backend must be 'auto', 'chunked' or 'dense' where centers are pooled, which is not a formula, "
                "but it is 'triton'"
            )
        from likewise.engines.triton import TritonEngine

        return TritonEngine(batch)
    on_table = batch.table == "references" and isinstance(batch.relation, Labels) and not masked
    if plan is Plan.CHUNKED:
        if on_table:
            return ColumnEngine(batch)
        return ChunkedEngine(batch, None if masked or backend != "auto" else _index_positives(batch, positives))
    if backend != "auto" or masked or has_similarity_hook() or _is_traced():
        return DenseEngine(batch)
    if on_table and batch.relation.device.type == "cpu":
        return ColumnEngine(batch, whole=True)
    positives = _index_positives(batch, positives)
    if positives is None:
        return DenseEngine(batch)
    return IndexedMatrix(batch.similarities(), PositiveColumns.of_batch(positives, batch.shape[1], 0))


def _index_positives(batch: PairBatch, found: PositiveIndex | None = None) -> PositiveIndex | None:
    """The positions of each anchor's positives, for a large batch against itself on a CPU, without a miner."""
    relation, (m, n) = batch.relation, batch.shape
    if not isinstance(relation, Labels) or relation.reference_labels is not None or relation.valid is not None:
        return None
    local = batch.group is SINGLE_PROCESS and batch.shards is SINGLE_PROCESS
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if relation.device.type != "cpu" or m * n < INDEX_FROM or not local or traced:
        return None
    return find_positive_index(batch, large=False) if found is None else found


def run(terms: list[Term], batch: PairBatch, reduction: Counted, backend: str = "auto") -> list[TermValues]:
    """Compute the terms of a declaration on the engine that `choose` returns.

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, Labels, PairBatch, per_pair, s
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.full((2, 2), 0.5))
        >>> run([per_pair(NEGATIVES, s)], batch, "mean", backend="dense")[0].units
        tensor([1, 1])
    """
    formulas = not _reads_pair_numbers(terms, batch)
    if not formulas and choose(batch, backend, formulas=False) is Plan.DENSE:
        batch = batch.materialize()  # numbers per pair may be functions of the matrix
    if not any(term.folds_each_positive for term in terms):
        return run_on(terms, batch, make_engine(batch, backend, formulas=formulas), reduction)
    if batch.shards is not SINGLE_PROCESS:
        # an anchor and its positive may be on different ranks, and the inner fold runs over the references of all ranks
        raise TypeError(
            "a fold over EACH_POSITIVE needs all references of an anchor, but they are sharded over processes"
        )
    plan = choose(batch, backend, formulas=formulas)
    if plan is Plan.DENSE:
        batch = batch.materialize()  # the matrix is needed anyway, so compute it once
    positives = find_positive_index(batch, large=plan is not Plan.DENSE)
    expanded = None if positives is None else expand(terms, positives, batch)
    if expanded is not None:
        formulas = not _reads_pair_numbers(expanded, batch)  # those of positives are numbers per anchor now
        engine = make_engine(batch, backend, positives=positives, formulas=formulas)
        return run_on(expanded, batch, engine, reduction)
    if backend == "triton":
        raise TypeError(
            "backend must be 'auto', 'chunked' or 'dense' where anchors have many positives, or labels do not determine them, "
            "because kernels handle few positives per anchor, but it is 'triton'"
        )
    return run_on(terms, batch, make_engine(batch, backend, masked=True), reduction)


def _reads_pair_numbers(terms: list[Term], batch: PairBatch) -> bool:
    """Whether the terms or the miner's conditions have numbers per pair, which kernels read from a whole matrix."""
    relation = batch.relation
    conditions = walk(relation.keep_positive, relation.keep_negative) if isinstance(relation, Mined) else []
    return any(term.reads_pair_numbers for term in terms) or any(isinstance(each, PerPair) for each in conditions)


def evaluate_declaration(
    declaration: Declaration,
    batch: PairBatch,
    reduction: Reduction,
    backend: str = "auto",
    miner: PairRule | TripletRule | None = None,
) -> Tensor:
    """Compute and reduce a declaration.

    Args:
        declaration: terms, regularizers and functions of the matrix.
        batch: the batch.
        reduction: how units are averaged.
        backend: the user's option.
        miner: chooses pairs or triplets.

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, Labels, PairBatch, per_pair, s
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.full((2, 2), 0.5))
        >>> evaluate_declaration(per_pair(NEGATIVES, s), batch, "mean")
        tensor(0.5000)
    """
    terms, regularizers, matrix_losses = sort_declaration(declaration)
    if isinstance(reduction, Thresholded):
        if matrix_losses:
            raise TypeError(
                f"reduction must not be Thresholded for a loss that is not a formula, but it is {reduction!r}"
            )
        terms = [term_within(term, reduction) for term in terms]
    weights = reduction.of_anchors(batch) if isinstance(reduction, ClassWeighted) else None
    if terms and matrix_losses and choose(batch, backend) is Plan.DENSE:
        batch = batch.materialize()  # once for all terms
    if miner is not None:
        terms, batch = _mine(terms, batch, miner, backend, bool(matrix_losses))
    values: list[TermValues] = []
    if isinstance(batch.relation, Triplets):
        chosen = [term for term in terms if isinstance(term, TripletTerm)]
        if chosen and choose(batch, backend) is Plan.DENSE:
            batch = batch.materialize()
        values += [sum_triplets(term, batch) for term in chosen]
        terms = [term for term in terms if not isinstance(term, TripletTerm)]
    if terms:
        values += run(terms, batch, counted_by(reduction), backend)
    for loss in matrix_losses:
        values += loss.compute(batch, map_rows(batch, backend, loss))
    added = [regularizer.value().to(batch.dtype) for regularizer in regularizers]
    value = reduce(values, added, reduction, batch.group, weights)
    _check_finite(value, batch)
    return value if batch.value_dtype is None else value.to(batch.value_dtype)


def _check_finite(value: Tensor, batch: PairBatch) -> None:
    """Check the loss of embeddings that are not normalized: a formula may overflow where similarities do not."""
    if batch.similarity is None or batch.similarity.bounded or batch.anchors is None or not can_read_values(value):
        return
    finite = torch.isfinite(value.detach())
    if finite.all():
        return
    sides = [each.detach() for each in (batch.anchors, batch.references) if each is not None]
    norm = max(float(torch.linalg.vector_norm(each, dim=1, dtype=torch.float64).amax()) for each in sides)
    raise ValueError(
        f"the loss must be finite, but it is {value.detach()[~finite].flatten()[0].item()}; embeddings that are not "
        f"normalized have norms of up to {norm:.1e} here, and a formula that multiplies or squares similarities may overflow"
    )


def map_rows(batch: PairBatch, backend: str = "auto", loss: MatrixLoss | None = None) -> WholeRows:
    """A mapper that runs functions of matrix rows on the whole matrix or on chunks.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, PairBatch
        >>> type(map_rows(PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.eye(2)))).__name__
        'WholeRows'
    """
    if backend == "triton" and not (loss is not None and loss.evaluates_formulas):
        raise TypeError(
            "backend must be 'auto', 'chunked' or 'dense' for a loss that is not a formula, but it is 'triton'"
        )

    def evaluate(term: Term, other: PairBatch) -> TermValues:
        # an engine needs at least one pair
        return run([term], other, "mean", backend if other.shape[0] else "dense")[0]

    plan = choose(batch, backend, formulas=False)
    return WholeRows(batch, evaluate) if plan is Plan.DENSE else ChunkedRows(batch, evaluate)


def _mine(
    terms: list[Term], batch: PairBatch, miner: PairRule | TripletRule, backend: str, has_matrix_loss: bool
) -> tuple[list[Term], PairBatch]:
    """The terms and the batch after mining."""
    assert batch.similarity is not None
    if hasattr(miner, "keep"):
        return terms, batch.under(Mined(batch.relation, *miner.keep(batch.similarity)))
    on_triplets = any(isinstance(term, TripletTerm) for term in terms)
    choice = miner.choice(batch.similarity) if on_triplets and not has_matrix_loss else None
    if choice is not None and _sums_by_rule(choice, terms, batch, backend):
        return [term.chosen_by(choice) if isinstance(term, TripletTerm) else term for term in terms], batch
    # vmap needs the same number of triplets for every batch that it maps over, which a chunk does not give
    rows = map_rows(batch, "dense" if is_transformed() else "chunked" if backend == "triton" else backend)
    rows.prepare()  # with a graph: mining has none, but the loss uses the same matrix
    if not on_triplets:
        return terms, rows.batch.under(miner.refine(rows))
    return terms, rows.batch.under(miner.choose(rows))


def _sums_by_rule(choice: Choice, terms: list[Term], batch: PairBatch, backend: str) -> bool:
    """Whether a rule is summed without enumerating triplets.

    A rule that keeps all negatives in a band has too many triplets to enumerate.  With one negative per positive or
    anchor, enumeration is faster if there is a matrix; without a matrix the rule is a formula if it has no fold per
    positive, or if positives are few.  A rule chooses a similarity and not a pair, so numbers per pair need the triplets
    unless it runs over all pairs.
    """
    every_pair = choice.negative is s and choice.positive is s_p
    if not every_pair and any(term.reads_pair_numbers for term in terms):
        return False
    if choice.negative is s:
        return True
    if choose(batch, backend) is Plan.DENSE:
        return False
    return choice.positive is not s_p or find_positive_index(batch, large=True) is not None
