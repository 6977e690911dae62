"""Sums over all triplets of a batch, or over those that a rule chooses, without writing one down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from likewise.engines import PositiveIndex, find_positive_index, similarities_at
from likewise.formula import (
    NEGATIVES,
    Formula,
    Number,
    PairBatch,
    PerAnchor,
    Rank,
    Term,
    TermValues,
    Triplets,
    add_up,
    can_read_values,
    count,
    is_nonzero,
    where,
)
from likewise.miners import NO_POSITIVE, Choice, band_counts

ASK_FROM = 2**27
"""Triplets, of everybody with everybody, from which on it is quicker to ask a device how many positives there are."""

BLOCK = {"cpu": 2**20, "cuda": 2**25}
"""How many triplets are computed at once, by kind of device."""


# ------------------------------------------------------------------------------------------------ as formulas


def positives_as_formulas(pair_batch: PairBatch, engine: str) -> list[Formula] | None:
    """The similarities of each anchor's first, second, … positive; ``None`` where they are many, or not to be known.

    A positive that does not exist has a similarity so large that no negative is near it.
    """
    slots = find_positive_index(pair_batch, engine)
    return None if slots is None else as_formulas(slots, pair_batch, engine)


def as_formulas(slots: PositiveIndex, pair_batch: PairBatch, engine: str) -> list[Formula]:
    """The similarities of slots, each a number per anchor."""
    anchors = torch.arange(len(slots.index), device=slots.index.device)[:, None].expand_as(slots.index)
    if engine == "dense":
        pair_batch.similarities()  # it will be made anyway; then its entries need not be made twice
    found = similarities_at(pair_batch, anchors, slots.index)
    found = torch.where(slots.exists, found, torch.finfo(found.dtype).max)
    return [
        PerAnchor(f"s_ap{k + 1}", lambda _problem, column=column: column)  # type: ignore[misc]
        for k, column in enumerate(found.unbind(dim=1))
    ]


def part_of_choices(choices: list[Choice], terms: Callable[[Formula, Formula], list[Formula]]) -> Term:
    """Sum terms over chosen triplets.

    Args:
        choices: the triplets.
        terms: from the similarities of a triplet's positive and negative to its terms, each a unit of its own.
    """
    total: Formula = Number(0.0)
    units: Formula = Number(0)
    nonzero: Formula = Number(0)
    for choice in choices:
        for term in terms(choice.positive, choice.negative):
            kept, number, active = _kept(choice, term)
            total, units, nonzero = _plus(total, kept), _plus(units, number), _plus(nonzero, active)
    return Term(total, units, nonzero)


def _plus(a: Formula, b: Formula) -> Formula:
    return b if isinstance(a, Number) else a + b


def _kept(choice: Choice, term: Formula) -> tuple[Formula, Formula, Formula]:
    """A term's sum, its number and how often it is not zero, over one choice's triplets of each anchor."""
    keep, differs = choice.keep, term > 0.0
    if choice.negative.rank is not Rank.PAIR:
        keep = choice.positive < NO_POSITIVE if keep is None else keep
        return where(keep, term, 0.0), where(keep, 1, 0), where(keep & differs, 1, 0)
    everyone = where(choice.positive < NO_POSITIVE, count(NEGATIVES), 0)
    number = everyone if keep is None else count(NEGATIVES, keep)
    if term.rank is not Rank.PAIR:  # the same for all negatives of the anchor
        return number * term, number, where(differs, number, 0)
    if keep is None:
        return add_up(term, NEGATIVES), number, count(NEGATIVES, differs)
    return add_up(where(keep, term, 0.0), NEGATIVES), number, count(NEGATIVES, keep & differs)


# ------------------------------------------------------------------------------------------------ by counting


def all_triplets(S: Tensor, positive: Tensor, negative: Tensor, margin: float, band: float | None = None) -> TermValues:
    r"""Every triplet's hinge, exactly, by counting; with a band, of triplets with ``s_ap − band < s_an < s_ap`` alone.

    Sorting each row says how many active triplets every pair is in, and the loss is linear in the pairs with these
    counts: $O(B^2\log B)$ time and no number asked of the device, however many positives there are.
    """
    total, active = _AllTriplets.apply(S, positive, negative, margin, band)  # type: ignore[no-untyped-call]
    if band is None:
        return TermValues(total, positive.sum(dim=1) * negative.sum(dim=1), active)
    inside, _ = band_counts(S.detach(), positive, negative, band, below=True)
    return TermValues(total, inside.sum(dim=1), active)


def triplet_counts(
    S: Tensor, positive: Tensor, negative: Tensor, margin: float, band: float | None = None
) -> tuple[Tensor, Tensor]:
    """How many active triplets, ``s_an > s_ap − margin``, each pair is in (a positive's are negative), and each anchor."""
    width = margin if band is None else min(margin, band)
    of_positives, of_negatives = band_counts(S, positive, negative, width, below=band is not None)
    return (of_negatives - of_positives).to(S.dtype), of_positives.sum(dim=1)


class _AllTriplets(torch.autograd.Function):
    """The sum over active triplets is ``Σ_j counts_j s_j + margin · active``, with its slope in the counts."""

    @staticmethod
    def forward(
        ctx: Any, S: Tensor, positive: Tensor, negative: Tensor, margin: float, band: float | None
    ) -> tuple[Tensor, Tensor]:
        counts, active = triplet_counts(S, positive, negative, margin, band)
        ctx.save_for_backward(counts)
        ctx.mark_non_differentiable(active)
        # large sums that nearly cancel: float64 keeps what float32 would lose, and never dips below zero
        total = (counts.double() * S.double()).sum(dim=1) + margin * active.double()
        # the last step makes a new tensor: torch 2.11's compiler loses the gradient of a result that is an alias
        return total.to(S.dtype).clamp_min(0.0), active

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, _grad_active: Tensor) -> tuple[Tensor, None, None, None, None]:
        (counts,) = ctx.saved_tensors
        return grad_total[:, None] * counts, None, None, None, None


# ------------------------------------------------------------------------------------------------ one by one

Terms = Callable[[Tensor, Tensor, Tensor], tuple[list[Tensor], Tensor | None]]


def by_positive(S: Tensor, positive: Tensor, negative: Tensor, terms: Terms) -> TermValues:
    """Sum functions of every triplet: some positives of all anchors at a time, against all their negatives.

    It takes as many blocks as the anchor with most positives needs.  How many that is, is asked of a device for large
    batches only; else every reference takes a positive's place, and those that are none count nothing.

    Args:
        S: similarities, ``(m, n)``.
        positive: the positive pairs.
        negative: the negative pairs.
        terms: from similarities ``(m, 1, n)``, the positives' ``(m, k, 1)`` and the positives' indices ``(m, k)`` to
            terms of all triplets ``(m, k, n)``, and which of the triplets count (``None``: all).
    """
    m, n = S.shape
    unknown = torch.compiler.is_compiling() or positive.is_meta
    if unknown or not (can_read_values(positive) or m * n * n > ASK_FROM):
        index = torch.arange(n, device=S.device)[None, :].expand(m, n)
    else:
        most = max(int(positive.sum(dim=1).max()), 1) if m else 1
        index = positive.to(torch.uint8).topk(most, dim=1).indices

    def of_block(S: Tensor, block: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values, keep = terms(S[:, None, :], S.gather(1, block)[:, :, None], block)
        exists = positive.gather(1, block)[:, :, None] & negative[:, None, :]
        exists = exists if keep is None else exists & keep
        values = [torch.where(exists, value, 0.0) for value in values]
        sums = [value.sum(dim=(1, 2)) for value in values]
        differ = [is_nonzero(value).sum(dim=(1, 2)) for value in values]
        return _sum(sums), exists.sum(dim=(1, 2)) * len(values), _sum(differ)

    size = max(BLOCK.get(S.device.type, BLOCK["cuda"]) // max(m * n, 1), 1)
    # blocks may stay where there is room for all of them; else each is made again in the backward pass
    roomy = index.shape[1] * m * n <= 2**24 or not torch.is_grad_enabled()
    results = [
        of_block(S, block) if roomy else checkpoint(of_block, S, block, use_reentrant=False, preserve_rng_state=False)
        for block in torch.split(index, size, dim=1)
    ]
    total, units, nonzero = (_sum(list(each)) for each in zip(*results, strict=True))
    return TermValues(total, units, nonzero)


def _sum(values: list[Tensor]) -> Tensor:
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


# ------------------------------------------------------------------------------------------------ written down


def similarities_of(pair_batch: PairBatch, triplets: Triplets, engine: str) -> tuple[Tensor, Tensor]:
    """The similarities of triplets' positives and negatives to their anchors."""
    if engine == "dense":
        pair_batch.similarities()
    return (
        similarities_at(pair_batch, triplets.anchors, triplets.positives),
        similarities_at(pair_batch, triplets.anchors, triplets.negatives),
    )


def sum_by_anchor(values: Tensor, triplets: Triplets, anchors: int) -> tuple[Tensor, Tensor, Tensor]:
    """Per anchor: the sum of its triplets' values, their number, and how many are not zero; gaps do not count."""
    valid = torch.ones_like(triplets.anchors) if triplets.valid is None else triplets.valid.long()
    values = values * valid

    def add(what: Tensor) -> Tensor:
        return what.new_zeros(anchors).index_add(0, triplets.anchors, what)

    return add(values), add(valid), add(is_nonzero(values).long())
