"""The rank of every positive of every query: what all retrieval metrics follow from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from likewise.formula import Labels, Relation, SimilarityLike, as_similarity, check_values, one_of, whole_number
from likewise.metrics.mirror import layout_of, mirrored
from likewise.metrics.pieces import Piece, Search, tie_begins
from likewise.metrics.rows import by_class, by_mask
from likewise.metrics.tiles import MEMORY, Sides, exactly, labels_from, sides, tensor_of

TIES = ("expected", "optimistic", "pessimistic")

Array: TypeAlias = Any
"""A tensor, or a numpy array, which is taken as a CPU tensor that shares its memory."""

Relevance: TypeAlias = Relation | Callable[[Tensor, Tensor], Tensor] | Array
"""A relation, a boolean matrix, or a function of two index vectors that gives a boolean matrix."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """The positives of all queries, one entry each: queries in order, the most similar positive first.

    Args:
        query: which query, ``(p,)``.
        reference: which reference is the positive, ``(p,)``.
        above: how many negatives are more similar to the query than the positive is, ``(p,)``.
        tied: how many negatives are exactly as similar, ``(p,)``.
        positives: how many positives each query has, ``(m,)``; zero for queries that have none and no entry here.
        ties: how ties are resolved in `rank`.

    Examples:
        >>> import torch
        >>> same = torch.ones(3, 1)
        >>> ranks(same, torch.tensor([7, 7, 8])).rank.tolist()
        [1.5, 1.5]
        >>> ranks(same, torch.tensor([7, 7, 8]), ties="pessimistic").rank.tolist()
        [2.0, 2.0]
    """

    query: Tensor
    reference: Tensor
    above: Tensor
    tied: Tensor
    positives: Tensor
    ties: str = "expected"

    @property
    def rank(self) -> Tensor:
        """The rank of each positive among all references of its query, the first being 1, ``(p,)`` float64.

        Under ``"expected"``, where a positives and b negatives tie, the i-th of the positives has the expectation of its
        rank over all orders of the tied, which is ``i (a + b + 1) / (a + 1)`` places into the tie.
        """
        before = torch.arange(len(self.query), device=self.query.device) - _starts(self.positives)[self.query]
        before = before.double()
        if self.ties == "optimistic":
            return 1.0 + before + self.above
        if self.ties == "pessimistic":
            return 1.0 + before + self.above + self.tied
        first, alike = _tie_groups(self)
        return self.above + first + (before - first + 1.0) * (alike + self.tied + 1.0) / (alike + 1.0)


def _starts(positives: Tensor) -> Tensor:
    return positives.cumsum(0) - positives


def _tie_groups(found: Ranks) -> tuple[Tensor, Tensor]:
    """For each positive, the positives before those that tie with it, and how many tie, itself included."""
    new = tie_begins(found.above, found.tied)
    new[1:] |= found.query[1:] != found.query[:-1]
    group = new.cumsum(0) - 1
    begins = new.nonzero().squeeze(1)
    alike = torch.diff(begins, append=begins.new_tensor([len(new)]))[group]
    return (begins[group] - _starts(found.positives)[found.query]).double(), alike.double()


def ranks(
    embeddings: Array,
    labels: Array | None = None,
    references: Array | None = None,
    reference_labels: Array | None = None,
    *,
    similarity: SimilarityLike = "cosine",
    ties: str = "expected",
    relevant: Relevance | None = None,
    own: Array | None = None,
    memory: int = MEMORY,
) -> Ranks:
    """Rank every positive of every query: one plus how many references are more similar to the query.

    Equals sorting the whole row of similarities of each query, without the sort, the matrix or a limit on the rank.
    Exact for the dtype at hand: float64 embeddings are compared in float64, everything else in float32.

    Args:
        embeddings: queries, ``(m, d)``, any float dtype.
        labels: their labels, ``(m,)``, any integers.
        references: what is searched, ``(n, d)``; without it the queries are searched among themselves, and none finds
            itself.
        reference_labels: their labels, ``(n,)``.
        similarity: ``"cosine"``, ``"dot"``, ``"euclidean"``, ``"squared_euclidean"``, ``"snr"`` or an object.
        ties: ``"expected"`` (over all orders of the tied), ``"optimistic"`` or ``"pessimistic"``.
        relevant: who is positive to whom, in place of labels: a boolean matrix ``(m, n)``; a function of query indices
            and reference indices that gives a boolean matrix; or a relation, whose pairs that are neither positive nor
            negative are left out.
        own: for each query the index of the reference that is the query itself, −1 for none, where references contain
            queries.
        memory: bytes that the pass may take beside its inputs and its result.

    Examples:
        >>> import torch
        >>> found = ranks(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]]), torch.tensor([7, 7, 8]))
        >>> found.query.tolist(), found.rank.tolist()
        ([0, 1], [2.0, 2.0])
    """
    one_of("ties", ties, TIES)
    search = make_search(embeddings, labels, references, reference_labels, similarity, relevant, own, memory)
    m, device = len(search.sides.queries), search.sides.queries.device
    positives = torch.zeros(m, dtype=torch.int64, device=device)
    flat: list[list[Tensor]] = [[], [], [], []]
    for piece in pieces(search):
        positives[piece.queries] = piece.counts
        there = torch.arange(len(piece.above), device=device) < piece.counts[:, None]
        columns = (piece.queries[:, None].expand(there.shape), piece.references.T, piece.above.T, piece.tied.T)
        for entries, column in zip(flat, columns, strict=True):
            entries.append(column[there])
    order = _joined(flat[0], None, positives).argsort(stable=True)
    query, reference, above, tied = (_joined(entries, order, positives) for entries in flat)
    return Ranks(query, reference, above, tied, positives, ties)


def _joined(entries: list[Tensor], order: Tensor | None, empty: Tensor) -> Tensor:
    """Parts as one, in an order, and the parts let go: a result of all positives need not be there twice."""
    whole = torch.cat(entries) if entries else empty[:0]
    if order is None:
        return whole
    entries.clear()
    return whole[order]


def pieces(search: Search) -> Iterator[Piece]:
    """All queries that have a positive, each in exactly one piece, in no particular order."""
    steps = _pieces(search)
    while True:
        # around each step and not around the whole: whoever stops in between is left as before
        with exactly(search.sides.queries):
            piece = next(steps, None)
        if piece is None:
            return
        if len(piece.queries):
            yield piece


def _pieces(search: Search) -> Iterator[Piece]:
    """Choose the way: mirrored where half of the products suffice and few positives are compared, else whole rows."""
    alone, classes = search.sides.alone, search.classes()
    if classes is None:
        yield from by_mask(search)
        return
    sizes = classes.sizes[classes.queries]
    rest = sizes > (1 if alone else 0)
    if alone and search.similarity.mirrors and (layout := layout_of(search, classes)) is not None:
        yield from mirrored(search, layout)
        rest[layout.order[: layout.small]] = False
    yield from by_class(search, classes, rest.nonzero().squeeze(1))


# ------------------------------------------------------------------------------------------------ input


def make_search(
    embeddings: Array,
    labels: Array | None,
    references: Array | None,
    reference_labels: Array | None,
    similarity: SimilarityLike,
    relevant: Relevance | None,
    own: Array | None,
    memory: int,
) -> Search:
    """Check everything that a caller gave, and say what is searched.

    Examples:
        >>> import torch
        >>> make_search(torch.eye(2), torch.tensor([0]), None, None, "cosine", None, None, 1)
        Traceback (most recent call last):
        ...
        ValueError: labels must have one entry for each of the 2 embeddings, but it has 1
    """
    similarity = as_similarity(similarity)
    both = sides(embeddings, references, similarity)
    memory = whole_number("memory", memory, 1)
    with check_values():
        if relevant is None:
            relation: Relation = _labels(both, labels, reference_labels, own)
        elif reference_labels is not None or own is not None:
            raise ValueError("relevant replaces labels, reference_labels and own; leave reference_labels and own out")
        else:
            relation = _relevance(both, tensor_of("relevant", relevant))
    return Search(both, relation, similarity, memory)


def _labels(both: Sides, labels: Array | None, reference_labels: Array | None, own: Array | None) -> Labels:
    m, n, device = len(both.queries), len(both.references), both.queries.device
    if labels is None:
        raise ValueError("labels must be given, or relevant in their place, but both are None")
    labels = labels_from("labels", labels, m, device, "embeddings")
    if both.alone:
        if reference_labels is not None:
            others = labels_from("reference_labels", reference_labels, n, device, "references")
            if not torch.equal(labels, others):
                raise ValueError("reference_labels must be left out where the references are the embeddings themselves")
        if own is not None:
            raise ValueError("own must be left out where the references are the embeddings themselves")
        return Labels(labels)
    if reference_labels is None:
        raise ValueError("reference_labels must be given together with references, but it is None")
    reference_labels = labels_from("reference_labels", reference_labels, n, device, "references")
    own = None if own is None else labels_from("own", own, m, device, "embeddings")
    return Labels(labels, reference_labels, own)


def _relevance(both: Sides, relevant: object) -> Relation:
    m, n, device = len(both.queries), len(both.references), both.queries.device
    if isinstance(relevant, Relation):
        relation = relevant.sized(m, n)
    elif isinstance(relevant, Tensor):
        if relevant.dtype != torch.bool or relevant.shape != (m, n):
            raise ValueError(
                f"relevant must be a boolean matrix of shape ({m}, {n}), queries x references, but it is of dtype "
                f"{relevant.dtype} and shape {tuple(relevant.shape)}"
            )
        relation = _Function(_cut(relevant), both.alone, (m, n), relevant.device)
    elif callable(relevant):
        relation = _Function(relevant, both.alone, (m, n), device)
    else:
        raise TypeError(
            f"relevant must be a boolean matrix, a function or a Relation, but it is a {type(relevant).__name__}"
        )
    if relation.device != device:
        raise ValueError(f"relevant must be on the device of embeddings, {device}, but it is on {relation.device}")
    return relation


def _cut(relevant: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """A matrix as a function of indices; whole rows, which are asked for most often, are copied once."""

    def function(rows: Tensor, columns: Tensor) -> Tensor:
        return relevant[rows] if len(columns) == relevant.shape[1] else relevant[rows[:, None], columns]

    return function


@dataclass(frozen=True, eq=False)
class _Function(Relation):
    """A user's function of indices; called for a few rows at a time."""

    function: Callable[[Tensor, Tensor], Tensor]
    alone: bool
    shape: tuple[int, int]
    where: torch.device

    @property
    def device(self) -> torch.device:
        return self.where

    def masks(self, rows: slice | None = None, columns: slice | None = None) -> tuple[Tensor, Tensor]:
        left = torch.arange(self.shape[0], device=self.where)[rows or slice(None)]
        right = torch.arange(self.shape[1], device=self.where)[columns or slice(None)]
        positive = self.function(left, right)
        if (
            not isinstance(positive, Tensor)
            or positive.dtype != torch.bool
            or positive.shape != (len(left), len(right))
        ):
            got = (positive.dtype, tuple(positive.shape)) if isinstance(positive, Tensor) else type(positive).__name__
            raise ValueError(
                f"relevant must return a boolean tensor of shape ({len(left)}, {len(right)}) for so many queries and "
                f"references, but it returned {got}"
            )
        if not self.alone:
            return positive, ~positive
        own = left[:, None] == right
        return positive & ~own, ~positive & ~own

    def sized(self, anchors: int, references: int) -> Relation:
        return self
