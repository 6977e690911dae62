"""Evaluation: a declaration on a batch becomes a number, on the engine that the dispatcher chooses."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.distributed import SINGLE_PROCESS
from likewise.engines.chosen import sum_triplets
from likewise.engines.constants import as_constant
from likewise.engines.dense import needs_steps
from likewise.engines.dispatch import EngineKind, Plan, choose, find_row_kernels, make_engine
from likewise.engines.expansions import find_interval
from likewise.engines.few_positives import expand
from likewise.engines.mapping import ChunkedRows, KernelRows, WholeRows
from likewise.engines.positive_index import find_positive_index
from likewise.engines.positives import reads_count
from likewise.engines.schedule import run_on
from likewise.formula import (
    Choice,
    ClassWeighted,
    Counted,
    Declaration,
    Folded,
    Formula,
    Mined,
    PairBatch,
    PerPair,
    Reduction,
    Relation,
    Similarity,
    Term,
    TermValues,
    Thresholded,
    Triplets,
    TripletTerm,
    can_read_values,
    counted_by,
    reduce,
    s,
    s_p,
    sort_declaration,
    term_within,
    walk,
)


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


def run(terms: list[Term], batch: PairBatch, reduction: Counted, backend: str = "auto") -> list[TermValues]:
    """Compute the terms of a declaration on the engine that `choose` returns.

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, Labels, PairBatch, per_pair, s
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.full((2, 2), 0.5))
        >>> run([per_pair(NEGATIVES, s)], batch, "mean", backend="dense")[0].units
        tensor([1, 1])
    """
    return _run(terms, batch, reduction, choose(batch, backend))


def _run(terms: list[Term], batch: PairBatch, reduction: Counted, plan: Plan) -> list[TermValues]:
    formulas = not _reads_pair_numbers(terms, batch)
    if not formulas and plan.rows is EngineKind.DENSE:
        batch, plan = _materialize(batch, plan)  # numbers per pair may be functions of the matrix
    if not any(term.folds_each_positive for term in terms):
        return run_on(terms, batch, make_engine(batch, plan, formulas=formulas), reduction)
    if batch.shards is not SINGLE_PROCESS:
        # an anchor and its positive may be on different ranks, and the inner fold runs over the references of all ranks
        raise TypeError(
            "a fold over EACH_POSITIVE needs all references of an anchor, but they are sharded over processes"
        )
    dense = (plan.formulas if formulas else plan.rows) is EngineKind.DENSE
    if dense:
        batch, plan = _materialize(batch, plan)  # the matrix is needed anyway, so compute it once
    positives = find_positive_index(batch, large=not dense or _reads_count(terms, batch, plan))
    expanded = None if positives is None else expand(terms, positives, batch)
    if expanded is not None:
        formulas = not _reads_pair_numbers(expanded.terms, batch)  # those of positives are numbers per anchor now
        engine = make_engine(batch, plan, positives=positives, formulas=formulas)
        return run_on(expanded.terms, batch, engine, reduction, expanded.numbers)
    if plan.rows is EngineKind.TRITON:
        raise TypeError(
            "backend must be 'auto', 'chunked' or 'dense' where anchors have many positives, or labels do not determine them, "
            "because kernels handle few positives per anchor, but it is 'triton'"
        )
    return run_on(terms, batch, make_engine(batch, plan, masked=True), reduction)


def _reads_count(terms: list[Term], batch: PairBatch, plan: Plan) -> bool:
    """Whether the dense engine would read the number of positives; then it is read first, and few are expanded."""
    nodes = (node for term in terms for node in walk(term.total) if isinstance(node, Folded))
    folds = [node for node in nodes if needs_steps(node)]
    return plan.is_automatic and bool(folds) and reads_count(folds, batch.shape, find_interval(batch))


def _materialize(batch: PairBatch, plan: Plan) -> tuple[PairBatch, Plan]:
    """The batch with its matrix, and the plan for it."""
    return batch.materialize(), plan.with_matrix()


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
    """Compute and reduce a declaration; return the loss.

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
    upstream: list[Tensor] = []
    batch = _check_gradient(batch, upstream)
    if isinstance(reduction, Thresholded):
        if matrix_losses:
            raise TypeError(
                f"reduction must not be Thresholded for a loss that is not a formula, but it is {reduction!r}"
            )
        terms = [term_within(term, reduction) for term in terms]
    weights = reduction.of_anchors(batch) if isinstance(reduction, ClassWeighted) else None
    plan = choose(batch, backend)
    if terms and matrix_losses and plan.formulas is EngineKind.DENSE:
        batch, plan = _materialize(batch, plan)  # once for all terms
    if miner is not None:
        terms, batch = _mine(terms, batch, miner, plan, bool(matrix_losses))
        plan = plan if batch.matrix is None else plan.with_matrix()
    values: list[TermValues] = []
    if isinstance(batch.relation, Triplets):
        chosen = [term for term in terms if isinstance(term, TripletTerm)]
        if chosen and plan.formulas is EngineKind.DENSE:
            batch, plan = _materialize(batch, plan)
        values += [sum_triplets(term, batch, counted_by(reduction)) for term in chosen]
        terms = [term for term in terms if not isinstance(term, TripletTerm)]
    if terms:
        values += _run(terms, batch, counted_by(reduction), plan)
    for loss in matrix_losses:
        values += loss.compute(batch, _map_rows(batch, plan, evaluates_formulas=loss.evaluates_formulas))
    added = [regularizer.value().to(batch.dtype) for regularizer in regularizers]
    value = reduce(values, added, reduction, batch.group, weights)
    _check_finite(value, batch, upstream)
    return value if batch.value_dtype is None else value.to(batch.value_dtype)


def _may_overflow(batch: PairBatch) -> bool:
    """Whether embeddings are not normalized, so that a formula may overflow where similarities do not."""
    return batch.similarity is not None and not batch.similarity.bounded and batch.anchors is not None


def _check_finite(value: Tensor, batch: PairBatch, upstream: list[Tensor]) -> None:
    """Check the loss of embeddings that are not normalized, and store the gradient of the loss for `_check_gradient`."""
    if not _may_overflow(batch) or not can_read_values(value):
        return
    finite = torch.isfinite(value.detach())
    if not finite.all():
        raise ValueError(
            f"the loss must be finite, but it is {value.detach()[~finite].flatten()[0].item()}; {_describe_norms(batch)}"
        )
    if value.requires_grad and not is_transformed():
        value.register_hook(lambda grad: upstream.__setitem__(slice(None), [] if grad is None else [grad.detach()]))  # type: ignore[no-untyped-call]


def _check_gradient(batch: PairBatch, upstream: list[Tensor]) -> PairBatch:
    """The batch with a check, in the backward pass, that the gradient of embeddings is finite if that of the loss is.

    A derivative may overflow where the loss does not.

    Args:
        batch: the batch.
        upstream: holds the gradient of the loss in the backward pass.
    """
    anchors = batch.anchors
    if not _may_overflow(batch) or anchors is None or not anchors.requires_grad or batch.table == "anchors":
        return batch
    if not can_read_values(anchors) or is_transformed():
        return batch

    def check(grad: Tensor | None) -> None:
        if grad is None:
            return
        finite = torch.isfinite(grad.detach()).all(dim=1)
        if not finite.all() and all(bool(torch.isfinite(each).all()) for each in upstream):
            row = int((~finite).nonzero()[0])
            raise ValueError(
                f"the gradient of embeddings must be finite, but that of row {row} is not; {_describe_norms(batch)}"
            )

    alias = anchors.view_as(anchors)  # the caller's tensor keeps its hooks
    alias.register_hook(check)  # type: ignore[no-untyped-call]
    return batch.replace(anchors=alias)


def _describe_norms(batch: PairBatch) -> str:
    sides = [each.detach() for each in (batch.anchors, batch.references) if each is not None]
    norm = max(float(torch.linalg.vector_norm(each, dim=1, dtype=torch.float64).amax()) for each in sides)
    return (
        f"embeddings that are not normalized have norms of up to {norm:.1e} here, and a formula that multiplies or squares "
        "similarities may overflow"
    )


def map_rows(batch: PairBatch, backend: str = "auto") -> WholeRows:
    """Return a mapper that runs functions of matrix rows on the whole matrix or on chunks.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, PairBatch
        >>> type(map_rows(PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.eye(2)))).__name__
        'WholeRows'
    """
    return _map_rows(batch, choose(batch, backend))


def _map_rows(batch: PairBatch, plan: Plan, *, evaluates_formulas: bool = False) -> WholeRows:
    if plan.rows is EngineKind.TRITON and not evaluates_formulas:
        raise TypeError(
            "backend must be 'auto', 'chunked' or 'dense' for a loss that is not a formula, but it is 'triton'"
        )

    def evaluate(term: Term, other: PairBatch) -> TermValues:
        # an engine needs at least one pair
        return run([term], other, "mean", plan.backend if other.shape[0] else "dense")[0]

    kernels = find_row_kernels(batch, plan, formulas=not _reads_pair_numbers([], batch)) if evaluates_formulas else None
    kinds = {EngineKind.DENSE: WholeRows, EngineKind.CHUNKED: ChunkedRows, EngineKind.TRITON: KernelRows}
    return kinds[plan.rows](batch, evaluate, kernels)


def _mine(
    terms: list[Term], batch: PairBatch, miner: PairRule | TripletRule, plan: Plan, has_matrix_loss: bool
) -> tuple[list[Term], PairBatch]:
    """Return the terms and the batch after mining."""
    assert batch.similarity is not None
    if hasattr(miner, "keep"):
        return terms, batch.under(Mined(batch.relation, *miner.keep(batch.similarity)))
    on_triplets = any(isinstance(term, TripletTerm) for term in terms)
    choice = miner.choice(batch.similarity) if on_triplets and not has_matrix_loss else None
    if choice is not None and _sums_by_rule(choice, terms, batch, plan):
        key = as_constant((miner, batch.similarity))
        return [_apply_choice(term, choice, key) if isinstance(term, TripletTerm) else term for term in terms], batch
    if is_transformed():  # vmap needs the same number of triplets in every batch, which chunks do not have
        plan = plan._replace(rows=EngineKind.DENSE)
    elif plan.rows is EngineKind.TRITON or (on_triplets and plan.formulas is EngineKind.TRITON):
        plan = plan._replace(rows=EngineKind.CHUNKED)  # triplets need only their own similarities with a graph
    rows = _map_rows(batch, plan)
    rows.prepare()  # with a graph: mining has none, but the loss uses the same matrix
    if not on_triplets:
        return terms, rows.batch.under(miner.refine(rows))
    return terms, rows.batch.under(miner.choose(rows))


def _apply_choice(term: TripletTerm, choice: Choice, key: Hashable) -> TripletTerm:
    """Return a term over the triplets of a rule.

    Args:
        term: the term, which keeps its last result.
        choice: the rule.
        key: the miner and the similarity as constants; ``NotImplemented`` if they are none, and nothing is kept.
    """
    if torch.compiler.is_compiling() or key is NotImplemented:
        return term.chosen_by(choice)
    known: tuple[Hashable, TripletTerm] | None = term.cache.get("chosen")
    if known is None or known[0] != key:
        known = term.cache["chosen"] = key, term.chosen_by(choice)
    return known[1]


def _sums_by_rule(choice: Choice, terms: list[Term], batch: PairBatch, plan: Plan) -> bool:
    """Return whether a rule is summed without enumerating triplets.

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
    if plan.formulas is EngineKind.DENSE:
        return False
    return choice.positive is not s_p or find_positive_index(batch, large=True) is not None
