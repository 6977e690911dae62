"""Folds over each positive of an anchor, expanded where positives are few and their positions are known.

The fold of each positive becomes a plain fold, in which `likewise.formula.s_p` is one number per anchor, so that every engine
can run it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.engines.chosen import numbers_at, similarities_at
from likewise.engines.pair_numbers import PairNumbers
from likewise.formula import (
    POSITIVES,
    AtPositive,
    Count,
    Folded,
    Formula,
    Mean,
    Number,
    PairBatch,
    PerAnchor,
    PerPair,
    PerTriplet,
    PositiveIndex,
    Rank,
    Substitution,
    Sum,
    Term,
    at_least,
    count,
    evaluate,
    ingredients,
    mentions_positive,
    s,
    s_p,
    substitute,
    walk,
    where,
)


class Expanded(NamedTuple):
    """Terms without folds over each positive, and the numbers per anchor that they contain.

    Args:
        terms: the terms.
        numbers: the value of each number; these formulas cannot compute it from a batch.
    """

    terms: list[Term]
    numbers: dict[Formula, Tensor]


def expand(terms: list[Term], positives: PositiveIndex, batch: PairBatch) -> Expanded | None:
    """Expand folds over each positive into one plain fold per positive.

    Folds over the other positives, for one of them, are computed here: they need only the similarities of the positives.

    Args:
        terms: the terms.
        positives: the positions of each anchor's positives.
        batch: the batch.

    Returns:
        ``None`` if a fold over each positive is neither a sum, a mean nor a count.

    Examples:
        >>> import torch
        >>> from likewise.engines.positive_index import find_positive_index
        >>> from likewise.formula import Labels, per_triplet, relu, s, s_p
        >>> batch = PairBatch(Labels(torch.tensor([0, 0, 1])), matrix=torch.eye(3))
        >>> found = expand([per_triplet(relu(s - s_p))], find_positive_index(batch, large=False), batch)
        >>> found.terms[0].total
        where(exists1, sum[negatives](relu(s - s_p1)), 0)
        >>> found.numbers
        {s_p1: tensor([0., 0., 0.]), exists1: tensor([ True,  True, False])}
    """
    found = _find_nodes(terms)
    if found is None:
        return None
    index = positives.index.clamp_min(0)
    own: dict[Formula, Tensor] = {s_p: similarities_at(batch, None, index)}
    of_triplets: dict[PerTriplet, PairNumbers] = {}
    for leaf in found.leaves:
        if isinstance(leaf, AtPositive):
            own[leaf] = numbers_at(PairNumbers.of(leaf.pair, batch), batch, None, index)
        else:
            of_triplets[leaf] = PairNumbers.of(leaf, batch)
    for node in found.among:
        _fold_among(node, own, positives, lambda pair: numbers_at(PairNumbers.of(pair, batch), batch, None, index))
    if positives.exists is not None:
        # a positive that does not exist is left out; zero keeps its values finite
        own = {leaf: torch.where(positives.exists, values, 0.0) for leaf, values in own.items()}
    key = _TemplateKey(index.shape[1], positives.exists is not None, tuple(own))
    template = found.templates.get(key)
    if template is None or of_triplets:  # numbers of triplets are functions of the batch
        template = _make_template(terms, found.folds, key, of_triplets, index)
        if not of_triplets:
            found.templates[key] = template
    numbers: dict[Formula, Tensor] = {}
    for owner, symbols in template.symbols.items():
        values = positives.exists if owner is None else own[owner]
        assert values is not None
        numbers.update(zip(symbols, values.unbind(1), strict=True))
    return Expanded(template.terms, numbers)


class _TemplateKey(NamedTuple):
    """What the expanded terms depend on.

    Args:
        width: the number of positives.
        has_exists: whether some of them do not exist.
        leaves: what has a number for each positive.
    """

    width: int
    has_exists: bool
    leaves: tuple[Formula, ...]


class _Template(NamedTuple):
    """Expanded terms, and their numbers for each positive: by what they are numbers of, and whether it exists (``None``)."""

    terms: list[Term]
    symbols: dict[Formula | None, list[PerAnchor]]


class _TermNodes(NamedTuple):
    """The nodes of terms that matter, and the templates of these terms.

    Args:
        folds: their folds over each positive, inner ones first.
        leaves: their numbers of positives and of triplets.
        among: their folds over the other positives.
        others: the terms after the first one.
        templates: the expanded terms.
    """

    folds: list[Folded]
    leaves: list[AtPositive | PerTriplet]
    among: list[Folded]
    others: list[Term]
    templates: dict[_TemplateKey, _Template]


def _find_nodes(terms: list[Term]) -> _TermNodes | None:
    """The nodes of some terms, cached in the first one; ``None`` if they cannot be expanded."""
    is_compiling = torch.compiler.is_compiling()
    known: _TermNodes | None = None if is_compiling else terms[0].cache.get("positives")
    if known is not None and known.others == terms[1:]:
        return known
    nodes = walk(*(formula for term in terms for formula in (term.total, term.units, term.nonzero)))
    folds = [node for node in nodes if isinstance(node, Folded) and node.over.binds_positive]
    if not all(isinstance(each.fold, Sum | Mean | Count) for each in folds):
        return None
    leaves = [node for node in nodes if isinstance(node, AtPositive | PerTriplet)]
    among = [
        node for node in nodes if isinstance(node, Folded) and node.rank is Rank.POSITIVE and node.over is POSITIVES
    ]
    found = _TermNodes(folds, leaves, among, terms[1:], {})
    if not is_compiling:
        terms[0].cache["positives"] = found
    return found


def _make_template(
    terms: list[Term],
    folds: list[Folded],
    key: _TemplateKey,
    of_triplets: dict[PerTriplet, PairNumbers],
    index: Tensor,
) -> _Template:
    """Expand the folds of all terms."""
    symbols: dict[Formula | None, list[PerAnchor]] = {
        leaf: [PerAnchor(f"{leaf!r}{k + 1}", _refuse) for k in range(key.width)] for leaf in key.leaves
    }
    if key.has_exists:
        symbols[None] = [PerAnchor(f"exists{k + 1}", _refuse) for k in range(key.width)]
    each_positive = []
    for k in range(key.width):
        by: dict[Formula, Formula] = {leaf: symbols[leaf][k] for leaf in key.leaves}
        for triplet, numbers in of_triplets.items():
            by[triplet] = PerPair(f"{triplet!r}{k + 1}", partial(_of_one_positive, numbers, index[:, k]))
        each_positive.append(_Positive(Substitution(by), symbols[None][k] if key.has_exists else None))
    expanded: dict[Formula, Formula] = {}
    for each in folds:
        expanded[each] = substitute(_expand(each, each_positive), expanded)
    replace = Substitution(expanded)
    return _Template(
        [Term(*(replace(formula) for formula in (term.total, term.units, term.nonzero))) for term in terms], symbols
    )


def _refuse(_batch: PairBatch) -> Tensor:
    raise AssertionError("numbers of positives come with the expanded terms")


def _fold_among(
    folded: Folded, own: dict[Formula, Tensor], positives: PositiveIndex, compute: Callable[[PerPair], Tensor]
) -> None:
    """Add a fold over the positives of an anchor, for each of them, to the numbers per positive ``(m, k)``.

    The column of a positive and its similarity are the same number here, so that a positive ties with itself exactly.
    """
    known: dict[Formula, Any] = {leaf: values[:, :, None] for leaf, values in own.items()}
    known[s] = own[s_p][:, None, :]
    for leaf in ingredients(folded.curve):
        if isinstance(leaf, PerPair):
            at_positive = own.get(leaf.at_positive)
            known[leaf] = (compute(leaf) if at_positive is None else at_positive)[:, None, :]
        elif leaf not in known and not isinstance(leaf, Number):
            return  # a number of the batch, which an engine computes
    m, k = positives.index.shape
    value = evaluate(folded.curve, known)
    values = (value if isinstance(value, Tensor) else own[s_p].new_full((), value)).expand(m, k, k)
    keep = positives.mask[:, None, :].expand(m, k, k)
    result = folded.fold.finish(folded.fold.start(values.flatten(0, 1), keep.flatten(0, 1)))
    own[folded] = result.view(m, k).to(own[s_p].dtype)


class _Positive(NamedTuple):
    """One positive of every anchor as formulas.

    Args:
        bind: replaces its similarity and its other numbers.
        exists: whether it exists; ``None`` if all do.
    """

    bind: Substitution
    exists: PerAnchor | None

    def keep(self, formula: Formula) -> Formula:
        """The formula where the positive exists, else zero."""
        return formula if self.exists is None else where(self.exists, formula, 0)


def _of_one_positive(numbers: PairNumbers, chosen: Tensor, _batch: PairBatch, rows: Tensor, columns: Tensor) -> Tensor:
    """Numbers per triplet as numbers per pair, with one positive for each anchor."""
    return numbers.at(rows, chosen[rows], columns)


def _expand(folded: Folded, positives: list[_Positive]) -> Formula:
    """Expand a fold over each positive into a sum of plain formulas."""
    if not mentions_positive(folded.curve):
        return _repeat(folded)
    values = [positive.bind(folded.curve) for positive in positives]
    if isinstance(folded.fold, Count):
        values = [where(value, 1, 0) for value in values]
    kept = [positive.keep(value) for positive, value in zip(positives, values, strict=True)]
    total: Formula = kept[0] if kept else Number(0.0)
    for value in kept[1:]:
        total = total + value
    return total / at_least(count(POSITIVES), 1) if isinstance(folded.fold, Mean) else total


def _repeat(folded: Folded) -> Formula:
    """A fold over each positive of a formula that is equal for all of them."""
    number, value = count(POSITIVES), folded.curve
    if isinstance(folded.fold, Count):
        return number if folded is count(folded.over) else where(value, number, 0)
    return where(number > 0, value, 0.0) if isinstance(folded.fold, Mean) else number * value
