"""Nearest neighbors and confused classes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.formula import unit
from likewise.progress import track
from likewise.report.part import Part

ENTRIES = 2**22
"""The maximum number of similarities in memory."""


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest references of some rows, nearest first, by cosine similarity.

    Args:
        rows: the queries, ``(m,)``.
        index: the rows of their neighbors, ``(m, k)``.
        score: the similarities of the neighbors, ``(m, k)``.
        margin: the similarity to the nearest row of the same class minus that of another class, ``(m,)``; −inf if the class
            has no other image.

    Examples:
        >>> import torch
        >>> labels = torch.tensor([0, 0, 1])
        >>> part = Part("test", torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]), labels, ["a", "b"], lambda i: None)
        >>> found = nearest(part, 2)
        >>> found.index.tolist(), [round(each, 1) for each in found.margin.tolist()]
        ([[1, 2], [0, 2], [1, 0]], [0.8, 0.2, -inf])
    """

    rows: Tensor
    index: Tensor
    score: Tensor
    margin: Tensor


def nearest(part: Part, k: int, rows: Tensor | None = None) -> Neighbors:
    """Find the k nearest references of the queries, or of other rows; a row is not its own neighbor.

    Examples:
        >>> import torch
        >>> labels = torch.tensor([0, 0, 1])
        >>> roles = torch.tensor([True, False, False])
        >>> points = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> nearest(Part("test", points, labels, ["a", "b"], lambda i: None, roles), 5).index
        tensor([[1, 2]])
    """
    rows = part.queries if rows is None else rows
    references = part.references
    points = unit(part.embeddings)
    searched, classes = points[references].T.contiguous(), part.labels[references]
    ids, gallery = part.ids, part.ids[references]
    same_id, same_class = _Members(gallery), _Members(classes)
    met = torch.bincount(gallery, minlength=int(ids.max()) + 1)[ids[rows]]  # references that are excluded for a row
    k = max(1, min(k, len(references) - int(met.max())))
    # an index of members takes several integers for each, a matrix of similarities one number for each reference
    step = max(1, ENTRIES // max(len(references), 8 * same_id.most, 8 * same_class.most))
    chunks = []
    for some in track(torch.split(rows, step), "neighbors"):
        scores = points[some] @ searched
        same_id.leave_out(scores, ids[some])
        # a stable order of few candidates, so that ties do not depend on the algorithm that selects them
        score, place = scores.topk(k, dim=1)
        own, other = _best_of_both(scores, part.labels[some], classes, same_class, score, place)
        place, order = place.sort(dim=1, stable=True)
        score, by_score = score.gather(1, order).sort(dim=1, descending=True, stable=True)
        # -inf without another image of the class; +inf without another class
        margin = torch.where(own.isinf(), own, own - other.clamp_min(-1.0))
        chunks.append((references[place.gather(1, by_score)], score, margin))
    index, score, margin = (torch.cat(each) for each in zip(*chunks, strict=True))
    return Neighbors(rows, index, score, margin)


class _Members:
    """The positions of each value in a vector."""

    def __init__(self, values: Tensor) -> None:
        self.ordered, self.order = values.sort(stable=True)
        self.most = int(torch.unique_consecutive(self.ordered, return_counts=True)[1].max())

    def find(self, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """The positions of each wanted value, ``(m, most)``, and which of them exist."""
        first = torch.searchsorted(self.ordered, wanted)
        number = torch.searchsorted(self.ordered, wanted, right=True) - first
        position = torch.arange(int(number.max()) if len(number) else 0)
        exist = position < number[:, None]
        return self.order[torch.where(exist, first[:, None] + position, 0)], exist

    def leave_out(self, scores: Tensor, unwanted: Tensor) -> None:
        """Write −inf, in place, to the columns with each row's unwanted value."""
        columns, exist = self.find(unwanted)
        row, at = exist.nonzero(as_tuple=True)
        scores[row, columns[row, at]] = -torch.inf


def _best_of_both(
    scores: Tensor, labels: Tensor, classes: Tensor, same_class: _Members, score: Tensor, place: Tensor
) -> tuple[Tensor, Tensor]:
    """Similarity to the nearest of the same class and of another; more is read only where it is not among the first k."""
    same = classes[place] == labels[:, None]
    own, other = (score.masked_fill(left_out, -torch.inf).amax(dim=1) for left_out in (~same, same))
    rest = own.isinf().nonzero()[:, 0]
    members, exist = same_class.find(labels[rest])
    if members.shape[1]:
        own[rest] = scores[rest[:, None], members].masked_fill_(~exist, -torch.inf).amax(dim=1)
    rest = other.isinf().nonzero()[:, 0]
    others = scores[rest]
    same_class.leave_out(others, labels[rest])
    other[rest] = others.amax(dim=1)
    return own, other


@dataclass(frozen=True)
class Confusion:
    """Two confused classes.

    Args:
        classes: their labels, the smaller first.
        mistakes: the number of queries of one class whose nearest neighbor has the other class.
        queries: the number of queries of both classes.
        examples: rows of queries and their nearest neighbors, with similarities, the most similar first.

    Examples:
        >>> Confusion((0, 1), 3, 12, ((4, 7),)).share
        0.25
    """

    classes: tuple[int, int]
    mistakes: int
    queries: int
    examples: tuple[tuple[int, int, float], ...]

    @property
    def share(self) -> float:
        """The share of mistakes among the queries of both classes."""
        return self.mistakes / self.queries


def confusions(part: Part, neighbors: Neighbors, most: int, examples: int) -> list[Confusion]:
    """Return the pairs of classes with the most mistakes; ties are sorted by their share.

    Examples:
        >>> import torch
        >>> labels = torch.tensor([0, 1, 1, 2, 2])
        >>> points = torch.tensor([[1.0, 0.1], [1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [0.1, 1.0]])
        >>> part = Part("test", points, labels, ["a", "b", "c"], lambda i: None)
        >>> [(each.classes, each.mistakes, each.queries) for each in confusions(part, nearest(part, 1), 5, 2)]
        [((0, 1), 2, 3), ((1, 2), 1, 4)]
    """
    first, score = neighbors.index[:, 0], neighbors.score[:, 0]
    ours, theirs = part.labels[neighbors.rows], part.labels[first]
    wrong = (ours != theirs).nonzero()[:, 0]
    sizes = torch.bincount(ours, minlength=len(part.class_names)).tolist()
    by_pair: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
    for at in wrong[score[wrong].argsort(descending=True, stable=True)].tolist():
        pair = (int(min(ours[at], theirs[at])), int(max(ours[at], theirs[at])))
        by_pair.setdefault(pair, []).append((int(neighbors.rows[at]), int(first[at]), float(score[at])))
    pairs = [
        Confusion(pair, len(mistakes), sizes[pair[0]] + sizes[pair[1]], tuple(_drop_mirrored(mistakes)[:examples]))
        for pair, mistakes in by_pair.items()
    ]
    return sorted(pairs, key=lambda each: (-each.mistakes, -each.share, each.classes))[:most]


def _drop_mirrored(mistakes: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """Remove the second of two queries that are each other's neighbors: it shows the same images."""
    seen: set[frozenset[int]] = set()
    distinct = []
    for query, neighbor, score in mistakes:
        if frozenset((query, neighbor)) not in seen:
            seen.add(frozenset((query, neighbor)))
            distinct.append((query, neighbor, score))
    return distinct
