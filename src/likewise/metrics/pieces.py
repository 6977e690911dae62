"""One pass over queries x references that finds, for every positive, how many negatives are above it and how many tie.

Positives are ordered among themselves and only negatives are counted.  A positive is compared with negatives from
products of the same shape as those that gave its own similarity: equal vectors tie to the last bit, and rounding never
ranks a sample against itself.

- **Mirrored** (`mirror.py`): queries among themselves by label; half of the products suffice.
- **Whole rows** (`rows.py`): anything else; a few rows of similarities at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.formula import Labels, Relation, Similarity
from likewise.metrics.counting import Tally
from likewise.metrics.tiles import Sides

BYTES_PER_POSITIVE = 256
"""A positive's place, similarity, order and counts, what is copied on the way to them, and the piece before."""


@dataclass(frozen=True, eq=False)
class Piece:
    """What is known of some queries, each with at least one positive: one column per query, positives from the top.

    Args:
        queries: which queries, ``(q,)``.
        counts: how many positives each has, ``(q,)``; slots below are padding.
        references: which reference each positive is, most similar first, ``(k, q)``.
        above: negatives more similar than the positive, ``(k, q)`` int64.
        tied: negatives exactly as similar, ``(k, q)`` int64.
    """

    queries: Tensor
    counts: Tensor
    references: Tensor
    above: Tensor
    tied: Tensor


@dataclass(frozen=True, eq=False)
class Classes:
    """Labels as codes 0, 1, …, shared by queries and references.

    Args:
        queries: ``(m,)``.
        references: ``(n,)``.
        sizes: how many references have each code.
        own: for each query the reference that is itself, −1 for none; ``None`` where no reference is a query.
    """

    queries: Tensor
    references: Tensor
    sizes: Tensor
    own: Tensor | None

    @staticmethod
    def of(relation: Labels, alone: bool) -> Classes:
        """Number the labels, whatever they are."""
        if relation.reference_labels is None:
            names, queries = torch.unique(relation.labels, return_inverse=True)
            references = queries
        else:
            names, codes = torch.unique(torch.cat([relation.labels, relation.reference_labels]), return_inverse=True)
            queries, references = codes[: len(relation.labels)], codes[len(relation.labels) :]
        own = torch.arange(len(queries), device=queries.device) if alone else relation.own
        return Classes(queries, references, torch.bincount(references, minlength=len(names)), own)


@dataclass(frozen=True, eq=False)
class Search:
    """Everything that a pass needs to know.

    Args:
        sides: queries and references.
        relation: who is positive and negative to whom, sized.
        similarity: how they are compared.
        memory: bytes that the pass may take.
    """

    sides: Sides
    relation: Relation
    similarity: Similarity
    memory: int

    def classes(self) -> Classes | None:
        """The labels, where they say everything there is to say of who is positive to whom."""
        relation = self.relation
        if not isinstance(relation, Labels) or relation.valid is not None:
            return None
        if self.sides.alone and relation.reference_labels is not None:
            return None  # other labels as a reference than as a query
        return Classes.of(relation, self.sides.alone)


# ------------------------------------------------------------------------------------------------ thresholds


@dataclass(frozen=True, eq=False)
class Positives:
    """The positives of some rows, most similar first, one column per row.

    Args:
        similarities: ``(k, q)``; infinity in the padding.
        places: their columns, ``(k, q)``.
        counts: how many each row has, ``(q,)``.
    """

    similarities: Tensor
    places: Tensor
    counts: Tensor


def positives_at(similarities: Tensor, places: Tensor, there: Tensor) -> Positives:
    """Look positives up and order them.

    Args:
        similarities: ``(q, n)``.
        places: columns of candidates, ``(q, k)``.
        there: which candidates are positives.

    Examples:
        >>> import torch
        >>> found = positives_at(
        ...     torch.tensor([[0.1, 0.7, 0.4]]), torch.tensor([[0, 1, 2]]), torch.tensor([[True, True, False]])
        ... )
        >>> found.similarities.T, found.places.T
        (tensor([[0.7000, 0.1000,    inf]]), tensor([[1, 0, 2]]))
    """
    values = similarities.gather(1, places)
    values, order = values.masked_fill_(~there, -torch.inf).sort(dim=1, descending=True, stable=True)
    counts = there.sum(dim=1)
    padding = torch.arange(values.shape[1], device=values.device) >= counts[:, None]
    values = values.masked_fill_(padding, torch.inf)
    return Positives(values.T.contiguous(), places.gather(1, order).T.contiguous(), counts)


def tie_begins(above: Tensor, tied: Tensor) -> Tensor:
    """Whether each positive, from the most similar down, does not tie with the one before it; along the first dimension.

    Where no negative ties, the order among positives is of no consequence, and each stands alone.

    Examples:
        >>> import torch
        >>> tie_begins(above=torch.tensor([0, 0, 0, 3]), tied=torch.tensor([0, 2, 2, 0]))
        tensor([ True,  True, False,  True])
    """
    begins = torch.ones_like(above, dtype=torch.bool)
    begins[1:] = (tied[1:] == 0) | (tied[1:] != tied[:-1]) | (above[1:] != above[:-1])
    return begins


def finished(tally: Tally, found: Positives, queries: Tensor, references: Tensor | None = None) -> Piece:
    """What was counted, as a piece without the queries that have no positive.

    Args:
        tally: the counts.
        found: the positives they belong to.
        queries: which queries the columns are.
        references: which reference stands at each place; without it, places are references.
    """
    padding = torch.arange(len(found.places), device=queries.device)[:, None] >= found.counts
    some = found.counts > 0
    good, all_some = torch.stack([(found.similarities.isfinite() | padding).all(), some.all()]).tolist()
    if not good:
        raise ValueError(
            "embeddings must have finite similarities, but some overflow; scale the embeddings down, or use float64"
        )
    places = found.places if references is None else references[found.places]
    piece = Piece(queries, found.counts, places, tally.above.long(), tally.tied)
    if all_some:
        return piece
    columns = (each[:, some] for each in (piece.references, piece.above, piece.tied))
    return Piece(piece.queries[some], piece.counts[some], *columns)


def gathered(pieces: Iterable[Piece], entries: int) -> Iterator[Piece]:
    """The same queries in fewer pieces of about so many entries: small ones cost more to handle than to hold.

    Examples:
        >>> import torch
        >>> one = torch.ones(1, 1, dtype=torch.int64)
        >>> [len(piece.queries) for piece in gathered([Piece(one[0], one[0], one, one, one)] * 3, 8)]
        [3]
    """
    waiting: list[Piece] = []
    for piece in pieces:
        if waiting and _entries([*waiting, piece]) > entries:  # padded to the largest, they would be more
            yield _joined(waiting)
            waiting = []
        waiting.append(piece)
    if waiting:
        yield _joined(waiting)


def _entries(pieces: list[Piece]) -> int:
    return max(len(piece.above) for piece in pieces) * sum(len(piece.queries) for piece in pieces)


def _joined(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    most = max(len(piece.above) for piece in pieces)
    queries, counts = (torch.cat([getattr(piece, name) for piece in pieces]) for name in ("queries", "counts"))
    slots = (
        torch.cat([_padded(getattr(piece, name), most) for piece in pieces], dim=1)
        for name in ("references", "above", "tied")
    )
    return Piece(queries, counts, *slots)


def _padded(slots: Tensor, most: int) -> Tensor:
    return torch.nn.functional.pad(slots, (0, 0, 0, most - len(slots)))
