"""Select the queries of the retrieval grids and the points of the map."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.report.part import Part


def choose_queries(
    part: Part, rows: Tensor, quality: Tensor, margin: Tensor, *, most: int, seed: int
) -> dict[str, list[int]]:
    """Select the best, the worst and random queries, each with at most one per class.

    Queries are sorted by quality, ties by margin.

    Args:
        part: the part.
        rows: the queries that have a positive, ``(m,)``.
        quality: the average precision of each query, ``(m,)``.
        margin: the margin of each query, ``(m,)``; see `likewise.report.neighbors.Neighbors`.
        most: the maximum number of queries of each kind.
        seed: the seed of the random queries.

    Examples:
        >>> import torch
        >>> part = Part("test", torch.eye(4), torch.tensor([0, 0, 1, 1]), ["a", "b"], lambda i: None)
        >>> quality = torch.tensor([1.0, 0.5, 0.0, 1.0])
        >>> found = choose_queries(part, torch.arange(4), quality, torch.tensor([0.1, 0.0, -0.2, 0.3]), most=2, seed=0)
        >>> found["best"], found["worst"]
        ([3, 0], [2, 1])
    """
    margin = margin.nan_to_num(neginf=-9.0)
    by_margin = margin.argsort(stable=True)
    upward = by_margin[quality[by_margin].argsort(stable=True)]
    generator = torch.Generator("cpu").manual_seed(seed)
    shuffled = torch.randperm(len(rows), generator=generator)
    orders = {"best": upward.flip(0), "worst": upward, "random": shuffled}
    return {kind: _take_one_per_class(part, rows[order], most) for kind, order in orders.items()}


def _take_one_per_class(part: Part, rows: Tensor, most: int) -> list[int]:
    seen: set[int] = set()
    chosen: list[int] = []
    for row in rows.tolist():
        label = int(part.labels[row])
        if label not in seen:
            seen.add(label)
            chosen.append(row)
        if len(chosen) == most:
            break
    return chosen


AT_LEAST = 20
"""The minimum number of images of a class on the map, if it has that many, so that a class is visible as a group."""


def choose_points(labels: Tensor, most: int, seed: int) -> Tensor:
    """Select the rows of the map, in ascending order: all of them, or as many classes as fit, each with many images.

    With thousands of classes, one point per class would not show any structure.

    Examples:
        >>> import torch
        >>> choose_points(torch.tensor([0, 0, 1, 1]), 10, 0)
        tensor([0, 1, 2, 3])
        >>> rows = choose_points(torch.arange(1000) // 10, 200, 0)
        >>> len(rows), len(set((rows // 10).tolist()))
        (200, 20)
    """
    if len(labels) <= most:
        return torch.arange(len(labels))
    generator = torch.Generator("cpu").manual_seed(seed)
    classes = torch.unique(labels)
    allowed = max(AT_LEAST, -(-most // len(classes)))
    order = torch.randperm(len(labels), generator=generator)
    # the position of each image among the shuffled images of its class
    by_class = labels[order].argsort(stable=True)
    sizes = torch.unique(labels, return_counts=True)[1]
    place = torch.arange(len(labels)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    rows = order[by_class[place < allowed]]
    # whole classes in random order, until the map is full
    turn = torch.empty(int(classes.max()) + 1, dtype=torch.int64)
    turn[classes] = torch.randperm(len(classes), generator=generator)
    return rows[turn[labels[rows]].argsort(stable=True)][:most].sort().values
