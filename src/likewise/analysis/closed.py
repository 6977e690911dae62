"""Closed forms: the weight of a pair as a formula, derived from a loss's declaration.

A declaration consists of formulas and folds, so the chain rule is a formula too.  The derivative of a fold ``F`` of a
curve ``a`` by each of its pairs is

    log-sum-exp: e^(a − F)      sum: 1      mean: 1 / n      max, min: 1 / ties at the extreme, else 0      count: 0

times the derivative of the curve.  The derivative by a fold inside another's curve is a sum over the outer fold's pairs,
which is a fold again; by a total over the batch it is a total.  `likewise.formula.stop_gradient` has derivative zero, and
numbers per anchor, reference or pair that the batch provides (the boundary of a class, a length) are constants.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch import Tensor

from likewise.analysis.simplify import simplify
from likewise.analysis.weights import Weighed, before_mining, name_of, preserve_state, record_matrices
from likewise.engines import DenseEngine, compute_number, dense_masks, map_rows, schedule
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    ClassWeighted,
    Count,
    Declaration,
    Fold,
    Folded,
    Formula,
    Labels,
    LogSumExp,
    Max,
    Mean,
    Min,
    Mined,
    Number,
    PairBatch,
    Rank,
    Reduction,
    RelationLike,
    Side,
    Sum,
    Term,
    Thresholded,
    Total,
    Triplets,
    TripletTerm,
    add_up,
    as_similarity,
    at_least,
    batch_from_embeddings,
    count,
    counted_by,
    derivative,
    evaluate,
    exp,
    full_precision,
    ingredients,
    s,
    sort_declaration,
    walk,
    where,
)
from likewise.losses import Between, PairLoss, ProxyLoss
from likewise.miners import PairMiner, TripletMiner

_NOTHING: Formula = Number(0.0)


def weight_formulas(loss: PairLoss | ProxyLoss) -> dict[str, Formula]:
    """Return the weight ``w = (1 − 2I) ∂L/∂s`` of a positive and of a negative pair as formulas.

    If a loss has a miner, folds run over the kept pairs, and the other pairs have weight zero.

    Args:
        loss: a loss that is declared in formulas; for any other, `no_closed_form` returns the reason.

    Returns:
        ``"positives"`` and ``"negatives"`` for a loss on one set; with proxies the key starts with what is compared:
        ``"proxies against samples, positives"``.

    Examples:
        >>> from likewise.losses import MultiSimilarityLoss
        >>> weight_formulas(MultiSimilarityLoss(reduction="sum"))["positives"]
        sigmoid(logsumexp[positives](-2.0 * (s - 0.5))) * exp((-2.0 * (s - 0.5)) - logsumexp[positives](-2.0 * (s - 0.5)))
        >>> weight_formulas(MultiSimilarityLoss(reduction="sum"))["negatives"]
        sigmoid(logsumexp[negatives](50.0 * (s - 0.5))) * exp((50.0 * (s - 0.5)) - logsumexp[negatives](50.0 * (s - 0.5)))
    """
    return {
        f"{between}, {side.value}" if isinstance(loss, ProxyLoss) else side.value: formula
        for between, formulas in _of_matrices(loss).items()
        for side, formula in formulas.items()
    }


def no_closed_form(loss: Any) -> str | None:
    """Return a sentence with the reason why the weights of a loss have no closed form; ``None`` if they have one.

    Examples:
        >>> from likewise.losses import FastAPLoss, NTXentLoss
        >>> no_closed_form(NTXentLoss()) is None
        True
        >>> no_closed_form(FastAPLoss())
        'FastAPLoss has no closed form of its weights, because it is a function of the matrix and not a formula; weigh() computes them by autograd.'
    """
    reason = _reason(loss)
    if reason is None:
        return None
    return f"{name_of(loss)} has no closed form of its weights, because {reason}; weigh() computes them by autograd."


def _reason(loss: Any) -> str | None:
    if not isinstance(loss, PairLoss | ProxyLoss):
        return "it is not a single declaration"
    if isinstance(loss, ProxyLoss) and loss.corrected:
        return "each drawn class represents several classes"
    if isinstance(loss.reduction, ClassWeighted) or loss.reduction == "mean_per_anchor":
        return "its reduction weights the units of different anchors differently"
    declarations = _terms_by_matrix(loss)
    if declarations is None:
        return "it is defined on explicit triplets of a miner"
    for declaration in declarations.values():
        items = declaration if isinstance(declaration, tuple) else (declaration,)
        terms, regularizers, _ = sort_declaration(declaration)
        if len(terms) + len(regularizers) < len(items):
            return "it is a function of the matrix and not a formula"
        if any(isinstance(node, Folded) and node.over.binds_positive for term in terms for node in walk(term.total)):
            return "it folds over each positive"
    return None


def _terms_by_matrix(loss: PairLoss | ProxyLoss) -> dict[str, Declaration] | None:
    """The declarations of a loss, by what it compares; ``None`` if a miner draws triplets."""
    if isinstance(loss, ProxyLoss):
        return {between.value: declaration for between, declaration in loss.declare().items()}
    declaration = loss.declare()
    if not isinstance(loss.miner, TripletMiner) or not _is_on_triplets(declaration):
        return {"samples": declaration}
    choice = loss.miner.choice(as_similarity(loss.similarity))
    if choice is None:
        return None
    items = declaration if isinstance(declaration, tuple) else (declaration,)
    return {"samples": tuple(each.chosen_by(choice) if isinstance(each, TripletTerm) else each for each in items)}


def _is_on_triplets(declaration: Declaration) -> bool:
    items = declaration if isinstance(declaration, tuple) else (declaration,)
    return any(isinstance(each, TripletTerm) for each in items)


def _of_matrices(loss: PairLoss | ProxyLoss) -> dict[str, dict[Side, Formula]]:
    """The weights on both sides, for each matrix that a loss reads."""
    refused = no_closed_form(loss)
    if refused is not None:
        raise TypeError(refused)
    declarations = _terms_by_matrix(loss)
    assert declarations is not None
    result = {}
    for between, declaration in declarations.items():
        derivatives = [term_derivatives(term, loss.reduction) for term in sort_declaration(declaration)[0]]
        positive, negative = (
            reduce(_plus, [each[side] for each in derivatives], _NOTHING) for side in (POSITIVES, NEGATIVES)
        )
        result[between] = {POSITIVES: simplify(-positive), NEGATIVES: simplify(negative)}
    return result


def term_derivatives(term: Term, reduction: Reduction = "sum") -> dict[Side, Formula]:
    """``∂L/∂s`` of a positive and of a negative pair, for one term of a loss.

    Args:
        term: the term.
        reduction: how the term is averaged; its counts have derivative zero.

    Examples:
        >>> from likewise.formula import NEGATIVES, per_pair, relu, s
        >>> term_derivatives(per_pair(NEGATIVES, relu(s - 0.5)), "mean")[NEGATIVES]
        where(0.0 < (s - 0.5), 1.0 / at_least(total(count[negatives](1.0)), 1), 0.0)
    """
    if isinstance(reduction, Thresholded):
        term = term.within(reduction)
    multipliers: dict[Formula, Formula] = {}
    of_sides: dict[Side, Formula] = {POSITIVES: _NOTHING, NEGATIVES: _NOTHING}

    def propagate(formula: Formula, weight: Formula, over: Side | None = None) -> None:
        """Add to the multiplier of each fold and total inside a formula; for a curve, summed over the pairs."""
        for inner in ingredients(formula):
            if isinstance(inner, Folded | Total):
                share = weight * derivative(formula, inner)
                share = share if over is None else _over_pairs(simplify(share), over)
                share = _over_batch(simplify(share)) if isinstance(inner, Total) else share
                multipliers[inner] = _plus(multipliers.get(inner, _NOTHING), share)

    propagate(term.total, Number(1.0))
    for node in reversed(walk(term.total)):  # a fold follows the formulas that use it
        if isinstance(node, Total) and node in multipliers:
            propagate(node.of, multipliers[node])
        elif isinstance(node, Folded) and not _is_zero(simplify(multipliers.get(node, _NOTHING))):
            local = multipliers[node] * _fold_derivative(node)
            propagate(node.curve, local, node.over)
            for side in of_sides:
                if node.over in (side, Side.BOTH):
                    of_sides[side] = _plus(of_sides[side], local * derivative(node.curve, s))
    units = {"mean": term.units, "nonzero": term.nonzero}.get(counted_by(reduction))
    scale = Number(1.0) if units is None else 1.0 / at_least(Total(units), 1)
    return {side: simplify(formula * scale) for side, formula in of_sides.items()}


def _plus(a: Formula, b: Formula) -> Formula:
    return b if a is _NOTHING else a + b


def _over_pairs(share: Formula, over: Side) -> Formula:
    return share if _is_zero(share) else add_up(share, over)


def _over_batch(share: Formula) -> Formula:
    """The sum over all anchors; a number that is equal for all anchors is counted once per anchor."""
    if _is_zero(share):
        return share
    return Total(where(count(POSITIVES) > -1.0, share, 0.0) if share.rank < Rank.ANCHOR else share)


def _is_zero(formula: Formula) -> bool:
    return isinstance(formula, Number) and not isinstance(formula.value, Tensor) and formula.value == 0.0


def _fold_derivative(folded: Folded) -> Formula:
    """The derivative of a fold by its curve at each pair."""
    fold, over, curve = folded.fold, folded.over, folded.curve
    if isinstance(fold, LogSumExp):
        return exp(curve - folded)
    if isinstance(fold, Sum):
        return Number(1.0)
    if isinstance(fold, Mean):
        return 1.0 / at_least(count(over), 1)
    if isinstance(fold, Max | Min):
        # no value is beyond the extreme
        elsewhere = curve < folded if isinstance(fold, Max) else folded < curve
        return where(elsewhere, 0.0, 1.0 / at_least(count(over, where(elsewhere, 0, 1)), 1))
    if isinstance(fold, Count):
        return _NOTHING
    raise TypeError(_unknown_derivative(fold))


def _unknown_derivative(fold: Fold) -> str:
    return f"the derivative of a fold must be known as a formula, but that of {fold.name} is not"


def closed_weights(
    loss: PairLoss | ProxyLoss,
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
) -> tuple[Weighed, ...]:
    """Compute the weights of every pair by the formulas of `weight_formulas`, without autograd.

    If the similarities to a class's centers are pooled, the formulas apply to classes, and the derivative of the pooling
    gives the weights of the centers.

    Args:
        loss: a loss that is declared in formulas.
        embeddings: the anchors, ``(m, d)``.
        labels: their labels.
        references: what they are compared with; by default the embeddings themselves.
        reference_labels: the references' labels.
        relation: the positive and negative pairs, instead of labels.

    Returns:
        For each matrix that the loss reads the same as `likewise.analysis.weigh` computes by autograd.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> embeddings, labels = torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([0, 1])
        >>> closed_weights(ContrastiveLoss(), embeddings, labels)[0].weights
        tensor([[0.0000, 0.5000],
                [0.5000, 0.0000]])
    """
    formulas = _of_matrices(loss)
    with torch.no_grad(), preserve_state(loss, embeddings):
        if isinstance(loss, ProxyLoss):
            _, seen = record_matrices(loss, embeddings, labels, references, reference_labels, relation=relation)
            batches = {batch.between: batch for batch, _ in seen}
            return tuple(_with_proxies(loss, between, each, batches) for between, each in formulas.items())
        with full_precision(embeddings):
            batch = batch_from_embeddings(
                embeddings, labels, references, reference_labels, relation, as_similarity(loss.similarity)
            )
            (each,) = formulas.values()
            return (_weigh(batch, _pair_derivatives(_mine(loss, batch), each)),)


def _mine(loss: PairLoss, batch: PairBatch) -> PairBatch:
    miner = loss.miner
    if miner is None:
        if _is_on_triplets(loss.declare()) and isinstance(batch.relation, Triplets):
            raise TypeError(
                f"{name_of(loss)} has no closed form of its weights on explicit triplets; "
                "weigh() computes them by autograd"
            )
        return batch
    if isinstance(miner, PairMiner):
        return batch.under(Mined(batch.relation, *miner.keep(as_similarity(loss.similarity))))
    assert isinstance(miner, TripletMiner)
    return batch if _is_on_triplets(loss.declare()) else batch.under(miner.refine(map_rows(batch)))


def _with_proxies(
    loss: ProxyLoss, between: str, formulas: dict[Side, Formula], batches: dict[str, PairBatch]
) -> Weighed:
    if between != Between.SAMPLES_CLASSES.value:
        batch = batches[between]
        return _weigh(batch, _pair_derivatives(batch, formulas))
    batch = batches[Between.SAMPLES_PROXIES.value]
    assert isinstance(batch.relation, Labels)
    assert batch.relation.reference_labels is not None
    centers = loss.proxies_per_class
    classes = Labels(batch.relation.labels, batch.relation.reference_labels[::centers])
    with torch.enable_grad():
        of_centers = batch.similarities().detach().requires_grad_()
        pooled = loss.pooling(of_centers.reshape(len(of_centers), -1, centers))  # (m, classes)
        derivatives = _pair_derivatives(PairBatch(classes, matrix=pooled.detach()), formulas)
        return _weigh(batch, torch.autograd.grad(pooled, of_centers, derivatives)[0])


def _pair_derivatives(batch: PairBatch, formulas: dict[Side, Formula]) -> Tensor:
    """``∂L/∂s`` of every pair, zero for pairs that are neither positive nor negative after mining."""
    positive, negative = dense_masks(batch)
    of_positives, of_negatives = evaluate_pairs([formulas[POSITIVES], formulas[NEGATIVES]], batch)
    return torch.where(positive, -of_positives, torch.where(negative, of_negatives, 0.0))


@torch.no_grad()
def evaluate_pairs(formulas: list[Formula], batch: PairBatch) -> list[Tensor]:
    """The values of formulas for every pair of a batch, ``(m, n)`` each, without a gradient.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, NEGATIVES, PairBatch, largest, s
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.tensor([[1.0, 0.25], [0.5, 1.0]]))
        >>> evaluate_pairs([s - largest(s, NEGATIVES)], batch)
        [tensor([[0.7500, 0.0000],
                [0.0000, 0.5000]])]
    """
    engine = DenseEngine(batch)
    exact = engine.similarities
    # with a count, a plain number would be computed in torch's default dtype instead of that of the batch
    known: dict[Formula, Any] = {
        node: torch.tensor(node.value, dtype=exact.dtype, device=exact.device)
        for node in walk(*formulas)
        if isinstance(node, Number) and not isinstance(node.value, Tensor)
    }
    for stage in schedule(formulas):
        for number in stage.numbers:
            if isinstance(number, Total):
                known[number] = evaluate(number.of, known).sum()
            else:
                known[number] = compute_number(number, batch)
        known.update(engine.fold(stage.passes, known))
    engine.learn(known)
    return [torch.as_tensor(engine.per_pair(formula), dtype=exact.dtype).expand_as(exact) for formula in formulas]


def _weigh(batch: PairBatch, derivatives: Tensor) -> Weighed:
    masks = before_mining(batch.relation).masks()
    return Weighed(batch.between, batch.similarities().detach(), derivatives.detach(), *masks)
