"""Folds over each positive of an anchor, and the positions of its positives.

A fold over each positive (`likewise.formula.EACH_POSITIVE`) is computed in one of three ways:

* few positives with known positions: `expand` turns the fold of each positive into a plain fold, in which `s_p` is one
  number per anchor, so that every engine can run it;
* sums of hinges ``[s − s_p + margin]₊``: `likewise.engines.hinges` counts active triplets in sorted rows;
* everything else: `fold_each_positive` computes chunks of positives, and `likewise.engines.steps` sums of many soft steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise._compat import is_mapped
from likewise.distributed import SINGLE_PROCESS
from likewise.engines.pair_numbers import PairNumbers
from likewise.engines.recompute import call_recomputed
from likewise.engines.steps import MANY, sum_matched
from likewise.formula import (
    POSITIVES,
    Apply,
    AtPositive,
    Count,
    Folded,
    Formula,
    Labels,
    Levels,
    Mean,
    Number,
    PairBatch,
    PerAnchor,
    PerPair,
    PerReference,
    PerTriplet,
    PositiveIndex,
    Rank,
    Substitution,
    Sum,
    Term,
    TermValues,
    Triplets,
    TripletTerm,
    at_least,
    can_read_values,
    count,
    evaluate,
    has_similarity_hook,
    ingredients,
    is_nonzero,
    mentions_positive,
    s,
    s_p,
    substitute,
    walk,
    where,
)

FEW = (1, 2, 3, 4, 6, 8, 12, 16)
"""The numbers of positives that `expand` supports; each number has a kernel."""

GATHER_AT_ONCE = 2**24
"""The number of entries that may be gathered at once."""

TRIPLETS_AT_ONCE = {"cpu": 2**20, "cuda": 2**25}
"""The number of triplets that are computed at once, by kind of device."""

COUNT_FROM = 2**25
"""The number of triplets, anchors × references², from which reading the number of positives from a device pays.

Measured on an H200: all soft triplets of a batch of 512 take 7.5 ms without that number and 3 ms with it.
"""


def can_synchronize(tensor: Tensor, *, large: bool) -> bool:
    """Whether the host may read a number from the tensor's device: always on the CPU, elsewhere for large batches only.

    Examples:
        >>> import torch
        >>> can_synchronize(torch.zeros(1), large=False), can_synchronize(torch.zeros(1, device="meta"), large=True)
        (True, False)
    """
    if can_read_values(tensor):
        return True
    if not large or tensor.is_meta or torch.compiler.is_compiling() or is_mapped(tensor):
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def find_positive_index(batch: PairBatch, *, large: bool, most: int = FEW[-1]) -> PositiveIndex | None:
    r"""The positions of each anchor's positives, if labels determine them and no anchor has more than ``most``.

    Labels are sorted, $O(B\log B)$; the host reads one number from the device, the largest number of positives.

    Args:
        batch: the batch.
        large: whether the batch is large enough to synchronize with a device.
        most: the largest number of positives.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels, PairBatch
        >>> batch = PairBatch(Labels(torch.tensor([5, 7, 5])), matrix=torch.eye(3))
        >>> find_positive_index(batch, large=False)
        PositiveIndex(index=tensor([[2],
                [0],
                [0]]), exists=tensor([[ True],
                [False],
                [ True]]))
    """
    relation = batch.relation
    if has_similarity_hook() or not isinstance(relation, Labels | Levels):
        return None
    if not can_synchronize(relation.labels, large=large):
        return None
    if isinstance(relation, Levels):
        return _index_levels(relation, most)
    if relation.positives is not None:
        return relation.positives if relation.positives.index.shape[1] <= most else None
    order, first, number, place = _find_runs(relation)
    if place is not None:  # an anchor is in the run of its class but is not its own positive
        inside = (place >= 0) & (place < number)
        number = number - inside.long()
    # in a distributed batch all ranks must make the same decision, from the references, which they share
    runs = (
        number
        if batch.group is SINGLE_PROCESS
        else _lengths(relation.labels[order] if relation.reference_labels is None else relation.reference_labels[order])
    )
    needed, fewest = (
        torch.stack([runs.max(), number.min()]).tolist() if len(order) and len(runs) and len(number) else (0, 0)
    )
    if needed > most:
        return None
    width = next((few for few in FEW if few >= needed), needed)
    position = torch.arange(width, device=first.device)[None, :].expand(len(first), width)
    exists = None if fewest >= width else position < number[:, None]
    if place is not None:
        position = position + (inside[:, None] & (position >= place[:, None])).long()
    if not len(order):
        return PositiveIndex(torch.zeros_like(position), position < 0)
    position = first[:, None] + position
    return PositiveIndex(order[position if exists is None else torch.where(exists, position, 0)], exists)


def _index_levels(relation: Levels, most: int) -> PositiveIndex | None:
    """The positions of the references that agree with an anchor on some level, if there are surely few of them."""
    columns = relation.references.sort(dim=0).values.T.contiguous()
    if not columns.shape[1] or not len(relation.labels):
        return None
    # from the references, which all ranks of a distributed batch share: all must make the same decision
    if sum(int(_lengths(column).max()) for column in columns) > most:
        return None
    m, n = len(relation.labels), len(relation.references)
    chunks = [slice(first, first + max(GATHER_AT_ONCE // n, 1)) for first in range(0, m, max(GATHER_AT_ONCE // n, 1))]
    masks = [relation.masks(rows)[0] for rows in chunks]
    needed = max(int(mask.sum(dim=1).max()) for mask in masks)
    width = min(next((few for few in FEW if few >= needed), needed), n)
    found = [mask.to(torch.uint8).topk(width, dim=1) for mask in masks]
    return PositiveIndex(torch.cat([each.indices for each in found]), torch.cat([each.values for each in found]) > 0)


def _lengths(ordered: Tensor) -> Tensor:
    """The number of occurrences of each sorted label."""
    return torch.searchsorted(ordered, ordered, right=True) - torch.searchsorted(ordered, ordered)


def _find_runs(relation: Labels) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The references sorted by label, and the start and length of the run of each anchor's class.

    The last result is the anchor's position in that run, or outside of it; ``None`` if no anchor is a reference.
    """
    # torch searches non-contiguous tensors slowly and warns about it
    own, labels = relation.own, relation.labels.contiguous()
    if relation.reference_labels is None:
        references = labels
        own = torch.arange(len(labels), device=labels.device)
    else:
        references = relation.reference_labels.contiguous()
    order = references.argsort(stable=True)
    place = None
    if relation.valid is not None:
        order = order[relation.valid[order]]
    ordered = references[order]
    first = torch.searchsorted(ordered, labels)
    number = torch.searchsorted(ordered, labels, right=True) - first
    if own is not None:
        where = torch.full_like(references, -1).scatter_(0, order, torch.arange(len(order), device=order.device))
        found = torch.where(own >= 0, where[own.clamp_min(0)], -1)
        place = torch.where(found >= 0, found - first, -1)
    return order, first, number, place


# ------------------------------------------------------------------------------------------------ few positives


def expand(terms: list[Term], positives: PositiveIndex, batch: PairBatch) -> list[Term] | None:
    """Expand folds over each positive into one plain fold per positive.

    Args:
        terms: the terms.
        positives: the positions of each anchor's positives.
        batch: the batch.

    Folds over the other positives, for one of them, are computed here: they need only the similarities of the positives.

    Returns:
        The terms; ``None`` if a fold over each positive is neither a sum, a mean nor a count.

    Examples:
        >>> import torch
        >>> from likewise.formula import per_triplet, relu, s, s_p
        >>> batch = PairBatch(Labels(torch.tensor([0, 0, 1])), matrix=torch.eye(3))
        >>> [term] = expand([per_triplet(relu(s - s_p))], find_positive_index(batch, large=False), batch)
        >>> term.total
        where(exists1, sum[negatives](relu(s - s_p1)), 0)
    """
    roots = [formula for term in terms for formula in (term.total, term.units, term.nonzero)]
    folds = [node for node in walk(*roots) if isinstance(node, Folded) and node.over.binds_positive]
    if not all(isinstance(each.fold, Sum | Mean | Count) for each in folds):
        return None
    anchors = torch.arange(len(positives.index), device=positives.index.device)[:, None].expand_as(positives.index)
    index = positives.index.clamp_min(0)
    leaves = {node for node in walk(*roots) if isinstance(node, AtPositive | PerTriplet)}
    own: dict[Formula, Tensor] = {s_p: similarities_at(batch, anchors, index)}
    of_triplets: dict[PerTriplet, PairNumbers] = {}
    for leaf in leaves:
        if isinstance(leaf, AtPositive):
            own[leaf] = numbers_at(PairNumbers.of(leaf.pair, batch), batch, anchors, index)
        else:
            of_triplets[leaf] = PairNumbers.of(leaf, batch)
    for node in walk(*roots):
        if isinstance(node, Folded) and node.rank is Rank.POSITIVE and node.over is POSITIVES:
            _fold_among(
                node, own, positives, lambda pair: numbers_at(PairNumbers.of(pair, batch), batch, anchors, index)
            )
    each_positive = [
        _Positive(k, own, of_triplets, index, None if positives.exists is None else positives.exists[:, k])
        for k in range(index.shape[1])
    ]
    expanded: dict[Formula, Formula] = {}
    for each in folds:  # inner folds come first
        expanded[each] = substitute(_expand(each, each_positive), expanded)
    return [
        Term(*(substitute(formula, expanded) for formula in (term.total, term.units, term.nonzero))) for term in terms
    ]


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
    values = _as_tensor(evaluate(folded.curve, known), own[s_p]).expand(m, k, k)
    keep = positives.mask[:, None, :].expand(m, k, k)
    result = folded.fold.finish(folded.fold.start(values.flatten(0, 1), keep.flatten(0, 1)))
    own[folded] = result.view(m, k).to(own[s_p].dtype)


class _Positive:
    """One positive of every anchor as formulas: its similarity and its other numbers, and whether it exists."""

    def __init__(
        self,
        k: int,
        own: dict[Formula, Tensor],
        of_triplets: dict[PerTriplet, PairNumbers],
        index: Tensor,
        exists: Tensor | None,
    ) -> None:
        by: dict[Formula, Formula] = {}
        for leaf, values in own.items():
            # a positive that does not exist is left out; zero keeps its values finite
            column = values[:, k] if exists is None else torch.where(exists, values[:, k], 0.0)
            by[leaf] = PerAnchor(f"{leaf!r}{k + 1}", partial(_constant, column))
        for triplet, numbers in of_triplets.items():
            by[triplet] = PerPair(f"{triplet!r}{k + 1}", partial(_of_one_positive, numbers, index[:, k]))
        self.exists = None if exists is None else PerAnchor(f"exists{k + 1}", partial(_constant, exists))
        self.bind = Substitution(by)

    def keep(self, formula: Formula) -> Formula:
        return formula if self.exists is None else where(self.exists, formula, 0)


def _constant(values: Tensor, _batch: PairBatch) -> Tensor:
    return values


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


# ------------------------------------------------------------------------------------------------ any number of positives


class Pairs(NamedTuple):
    """The matrix and its masks, ``(m, n)`` each, with the numbers that formulas refer to, broadcast to it."""

    known: dict[Formula, Any]
    positive: Tensor
    negative: Tensor

    def mask(self, folded: Folded) -> Tensor:
        """The pairs that a fold runs over."""
        sides = {"positives": self.positive, "negatives": self.negative}
        return sides.get(folded.over.value, self.positive | self.negative)


def fold_each_positive(folds: list[Folded], pairs: Pairs) -> list[Tensor]:
    """Folds over each positive, in chunks of positives of all anchors against all their references.

    Large batches read the largest number of positives from the device; in small ones every reference is a candidate, and those
    that are not positives are masked.

    Examples:
        >>> import torch
        >>> from likewise.formula import EACH_POSITIVE, NEGATIVES, add_up, relu
        >>> S, labels = torch.tensor([[1.0, 0.5, 0.7]]), torch.tensor([[False, True, False]])
        >>> pairs = Pairs({s: S}, labels, torch.tensor([[False, False, True]]))
        >>> fold_each_positive([add_up(add_up(relu(s - s_p), NEGATIVES), EACH_POSITIVE)], pairs)
        [tensor([0.2000])]
    """
    S, (m, n) = pairs.known[s], pairs.positive.shape
    index = find_candidates(pairs.positive, large=m * n * n > COUNT_FROM)
    sums = sum_matched(folds, S, pairs.negative, index) if index.shape[1] >= MANY else {}

    def start(S: Tensor, some: Tensor, *chunks: Tensor) -> tuple[Tensor, ...]:
        return _start_positives(S, some, index, folds, pairs, dict(zip(sums, chunks, strict=True)))

    inner = {node for node in walk(*(each.curve for each in folds)) if isinstance(node, Folded)} - sums.keys()
    all_columns = any(node.rank is Rank.POSITIVE and node.over is not POSITIVES for node in inner)
    steps = map_positives(S, index, start, *sums.values(), width=n if all_columns else index.shape[1])
    results, first = [], 0
    for folded, size in zip(folds, _state_sizes(folds, S), strict=True):
        states = [step[first : first + size] for step in steps]
        results.append(folded.fold.finish(reduce(folded.fold.merge, states)))
        first += size
    return results


def _state_sizes(folds: list[Folded], like: Tensor) -> list[int]:
    one = like.detach()[:1, :1]
    return [len(folded.fold.start(one, one > one)) for folded in folds]


def map_positives(
    S: Tensor, index: Tensor, compute: Callable[..., tuple[Tensor, ...]], *others: Tensor, width: int | None = None
) -> list[tuple[Tensor, ...]]:
    """What a function gives for some positives of all anchors at a time.

    Args:
        S: similarities, ``(m, n)``.
        index: the columns of the candidates, ``(m, K)``; one that is not a positive is left to the function.
        compute: maps the similarities, the columns of some candidates, ``(m, k)``, and their other numbers to tensors.
        others: more numbers of each candidate, ``(m, K)``.
        width: the number of columns that the function compares a candidate with; by default all.

    Examples:
        >>> import torch
        >>> S = torch.tensor([[1.0, 0.5, 0.7]])
        >>> map_positives(S, torch.tensor([[1]]), lambda S, some: (S.gather(1, some),))
        [(tensor([[0.5000]]),)]
    """
    m, n = len(S), S.shape[1] if width is None else width
    size = max(TRIPLETS_AT_ONCE.get(S.device.type, TRIPLETS_AT_ONCE["cuda"]) // max(m * n, 1), 1)
    # all steps stay in memory if they fit; otherwise each is recomputed in the backward pass
    roomy = index.shape[1] * m * n <= 2**24
    chunks = zip(*(torch.split(each, size, dim=1) for each in (index, *others)), strict=True)
    return [compute(S, *some) if roomy else call_recomputed(compute, S, *some) for some in chunks]


def find_candidates(mask: Tensor, *, large: bool) -> Tensor:
    """The columns that may be true in each row of a mask, ``(m, k)``, ascending.

    Args:
        mask: booleans, ``(m, n)``.
        large: whether the batch is large enough to synchronize with a device.  ``k`` is the largest number in a row if
            it may be read; otherwise every column is a candidate.

    Examples:
        >>> import torch
        >>> find_candidates(torch.tensor([[False, True, True], [True, False, False]]), large=False)
        tensor([[1, 2],
                [0, 1]])
    """
    m, n = mask.shape
    if not can_synchronize(mask, large=large):
        return torch.arange(n, device=mask.device)[None, :].expand(m, n)
    most = max(int(mask.sum(dim=1).max()), 1) if m else 1
    return mask.to(torch.uint8).topk(min(most, n), dim=1).indices.sort(dim=1).values


def _start_positives(
    S: Tensor, some: Tensor, index: Tensor, folds: list[Folded], pairs: Pairs, sums: dict[Formula, Tensor]
) -> tuple[Tensor, ...]:
    """The states of folds over some positives ``(m, k)``, one after the other.

    Their inner folds over negatives run over similarities ``(m, k, n)``, unless their sums are known; those over positives,
    over the columns of all candidates, ``(m, k, K)``.
    """
    m, k = some.shape
    everywhere = {node: _lift(node, value) for node, value in pairs.known.items()}
    everywhere |= {s: S[:, None, :], s_p: S.gather(1, some)[:, :, None]}
    for node in walk(*(folded.curve for folded in folds)):
        if isinstance(node, AtPositive):
            everywhere[node] = pairs.known[node.pair].gather(1, some)[:, :, None]
        elif isinstance(node, PerTriplet):
            everywhere[node] = pairs.known[node].at_positives(some, S.shape[1])
        elif node in sums:
            everywhere[node] = sums[node][:, :, None]
        elif isinstance(node, Folded) and node.rank is Rank.POSITIVE:
            known, keep = everywhere, pairs.mask(node)
            if node.over is POSITIVES:
                known, keep = _gather_columns(everywhere, index), keep.gather(1, index)
            keep = keep[:, None, :].expand(m, k, keep.shape[1])
            values = _as_tensor(evaluate(node.curve, known), S).expand(keep.shape)
            state = node.fold.start(values.flatten(0, 1), keep.flatten(0, 1))
            everywhere[node] = node.fold.finish(state).view(m, k, 1)
    keep = pairs.positive.gather(1, some)
    states: list[Tensor] = []
    for folded in folds:
        value = _as_tensor(evaluate(folded.curve, everywhere), S).expand(m, k, 1)[:, :, 0]
        if not value.is_floating_point():  # a count, which every fold accepts
            value = value.to(S.dtype)
        states += folded.fold.start(value, keep)
    return tuple(states)


def _gather_columns(known: dict[Formula, Any], index: Tensor) -> dict[Formula, Any]:
    """Numbers of all columns, ``(m or 1, k or 1, n)``, at some of them ``(m, K)``; other numbers stay."""
    chosen: dict[Formula, Any] = {}
    for node, value in known.items():
        if not isinstance(value, Tensor) or node.rank is not Rank.PAIR:
            chosen[node] = value
        elif not isinstance(node, Apply):  # what is computed from numbers is computed from the chosen ones
            shape = (len(index), value.shape[1], value.shape[2])
            at = index[:, None, :].expand(len(index), value.shape[1], index.shape[1])
            chosen[node] = value.expand(shape).gather(2, at)
    return chosen


def _lift(node: Formula, value: Any) -> Any:
    """A number per anchor ``(m, 1)`` or per pair ``(m, n)`` with an axis for positives."""
    if not isinstance(value, Tensor) or value.ndim < 2:
        return value
    return value[:, :, None] if node.rank is Rank.ANCHOR else value[:, None, :]


def _as_tensor(value: Any, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else like.new_full((), value)


# ------------------------------------------------------------------------------------------------ explicit triplets


def sum_triplets(term: TripletTerm, batch: PairBatch) -> TermValues:
    """A term over explicit triplets: per anchor the sum of the values, their number, and the number of nonzero ones.

    Examples:
        >>> import torch
        >>> from likewise.formula import per_triplet, relu
        >>> zero, one, two = torch.tensor([0]), torch.tensor([1]), torch.tensor([2])
        >>> batch = PairBatch(Triplets(zero, one, two).with_shape(3, 3), matrix=torch.tensor([[1.0, 0.2, 0.5]] * 3))
        >>> sum_triplets(per_triplet(relu(s - s_p)), batch).total
        tensor([0.3000, 0.0000, 0.0000])
    """
    triplets = batch.relation
    assert isinstance(triplets, Triplets)
    known: dict[Formula, Any] = {
        s_p: similarities_at(batch, triplets.anchors, triplets.positives),
        s: similarities_at(batch, triplets.anchors, triplets.negatives),
    }
    for node in {node for value in term.values for node in ingredients(value)} - known.keys():
        known |= _numbers_of_triplets(node, batch, triplets)
    valid = torch.ones_like(triplets.anchors) if triplets.valid is None else triplets.valid.long()

    def add(numbers: Tensor) -> Tensor:
        return numbers.new_zeros(batch.shape[0]).index_add(0, triplets.anchors, numbers)

    values = [evaluate(value, known) * valid for value in term.values]
    units = valid * len(values)
    if term.thresholds is not None:
        counted = [evaluate(term.thresholds.contains(value), known) & (valid > 0) for value in term.values]
        values = [torch.where(each, value, 0.0) for each, value in zip(counted, values, strict=True)]
        units = torch.stack(counted).sum(dim=0)
    return TermValues(
        add(sum(values[1:], values[0])),
        add(units),
        add(sum((is_nonzero(value).long() for value in values), torch.zeros_like(valid))),
    )


def _numbers_of_triplets(node: Formula, batch: PairBatch, triplets: Triplets) -> dict[Formula, Tensor]:
    """The number of each explicit triplet that a leaf of its value is."""
    anchors, positives, negatives = triplets.anchors, triplets.positives, triplets.negatives
    if isinstance(node, PerAnchor | PerReference):
        return {node: node.compute(batch)[anchors if isinstance(node, PerAnchor) else negatives]}
    if isinstance(node, AtPositive):
        return {node: numbers_at(PairNumbers.of(node.pair, batch), batch, anchors, positives)}
    if isinstance(node, PerPair):
        return {node: numbers_at(PairNumbers.of(node, batch), batch, anchors, negatives)}
    if isinstance(node, PerTriplet):
        return {node: numbers_at(PairNumbers.of(node, batch), batch, anchors, positives, negatives)}
    return {}


# ------------------------------------------------------------------------------------------------ chosen pairs


def numbers_at(numbers: PairNumbers, batch: PairBatch, *index: Tensor) -> Tensor:
    """Numbers per pair, or per triplet, at indices of one shape, differentiable; many are recomputed in the backward pass.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.eye(2))
        >>> gap = PairNumbers.of(PerPair("gap", lambda _batch, rows, columns: rows - columns), batch)
        >>> numbers_at(gap, batch, torch.tensor([0, 1]), torch.tensor([1, 1]))
        tensor([-1.,  0.])
    """
    # compute may gather an embedding for every index
    width = 1 if batch.anchors is None else batch.anchors.shape[1]
    return _in_chunks(numbers.at, index, max(GATHER_AT_ONCE // width, 1))


def _in_chunks(compute: Callable[..., Tensor], index: tuple[Tensor, ...], size: int) -> Tensor:
    """A function of indices of one shape, in chunks that are recomputed in the backward pass if there are many."""
    chunks = list(zip(*(torch.split(each.reshape(-1), size) for each in index), strict=True))
    roomy = len(chunks) == 1 and index[0].numel() <= size // 4
    found = [compute(*chunk) if roomy else call_recomputed(compute, *chunk) for chunk in chunks]
    return torch.cat(found).view(index[0].shape)


def similarities_at(batch: PairBatch, anchors: Tensor, references: Tensor) -> Tensor:
    """The similarities of chosen pairs, differentiable: ``anchors`` and ``references`` are indices of one shape.

    They are entries of the matrix if the batch holds it; otherwise inner products, recomputed in the backward pass.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels, PairBatch
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.tensor([[1.0, 0.0], [0.6, 0.8]]))
        >>> similarities_at(batch, torch.tensor([0, 1]), torch.tensor([1, 1]))
        tensor([0.6000, 1.0000])
    """
    if batch.matrix is not None:
        S = batch.matrix
        return S.reshape(-1).index_select(0, (anchors * S.shape[1] + references).reshape(-1)).view(anchors.shape)
    similarity, (left, right) = batch.similarity, batch.both_factors()
    assert similarity is not None

    squares = similarity._both_squares(left, right) if similarity.uses_squares else None

    def of_some(some: Tensor, others: Tensor) -> Tensor:
        products = (left.index_select(0, some) * right.index_select(0, others)).sum(dim=1)
        if squares is None:
            return similarity.of_products(products, products.new_empty(0), products.new_empty(0))
        of_left, of_right = squares
        return similarity.of_products(products, of_left[some, 0], of_right[0, others])

    return _in_chunks(of_some, (anchors, references), max(GATHER_AT_ONCE // left.shape[1], 1))
