"""k-means on the embeddings' own device: Lloyd's iterations from greedy k-means++ seeds, tile by tile."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.formula import check_values, embeddings_of, whole_number
from likewise.metrics.ranks import Array
from likewise.metrics.tiles import MEMORY, exactly, tensor_of, track

MOST_AT_ONCE = 1024
"""Seeds that one round may choose: their distances among each other are a matrix."""


@dataclass(frozen=True, eq=False)
class KMeans:
    """Clusters, as `kmeans` found them.

    Args:
        assignments: the nearest center of each point, int64 ``(n,)``.
        centers: ``(clusters, d)``, on the device of the points; the mean of its points where the iterations converged.
        inertia: the sum of the squared distances of the points to their centers.
        iterations: how many times the centers were moved.
        converged: whether the last move left all points where they were.

    Examples:
        >>> import torch
        >>> kmeans(torch.tensor([[0.0], [1.0], [9.0]]), 2).converged
        True
    """

    assignments: Tensor
    centers: Tensor
    inertia: float
    iterations: int
    converged: bool


def kmeans(
    embeddings: Array,
    clusters: int,
    *,
    seed: int = 0,
    iterations: int = 100,
    memory: int = MEMORY,
) -> KMeans:
    """Part points into clusters, each point with its nearest center and each center the mean of its points.

    Seeds are drawn by greedy k-means++ (Arthur and Vassilvitskii 2007; several in a round where there are many), then
    Lloyd's two steps alternate until no point changes its cluster.  The same seed on the same machine gives the same
    clusters, on a GPU too: random numbers come from the CPU, and no sum depends on the order in which threads arrive.

    A cluster that loses its last point takes the point that is farthest from its own center; several take the farthest
    ones, in the order of their numbers.  Where there are fewer different points than clusters, some stay empty.

    Args:
        embeddings: points, floats ``(n, d)``, used as they are: scale them to unit length first if that is meant.
        clusters: how many, at most n.
        seed: of the k-means++ draws.
        iterations: the most times to move the centers.
        memory: bytes that the distances may take at once, beside one copy of the points.

    Examples:
        >>> import torch
        >>> found = kmeans(torch.tensor([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]]), 2)
        >>> bool(found.assignments[0] == found.assignments[1]), bool(found.assignments[0] == found.assignments[2])
        (True, False)
        >>> round(found.inertia, 6)
        1.0
    """
    with check_values():
        given = embeddings_of("embeddings", tensor_of("embeddings", embeddings)).detach()
    number = whole_number("clusters", clusters, 1)
    if number > len(given):
        raise ValueError(f"clusters must be at most the {len(given)} embeddings, but it is {number}")
    most = whole_number("iterations", iterations, 1)
    with exactly(given):
        points, scale, middle = _placed(given)
        tiles = _Tiles(points, whole_number("memory", memory, 1))
        chooser = torch.Generator("cpu").manual_seed(whole_number("seed", seed, 0))
        seeds, assignments = _seeds(tiles, number, chooser)
        centers = points[seeds]
        converged, done = False, 0
        while not converged and done < most:
            centers = _moved(tiles, assignments, centers)
            changed = tiles.nearest(centers)
            converged, done = bool((changed == assignments).all()), done + 1
            assignments = changed
        inertia = float(tiles.own_distances(centers, assignments).sum(dtype=torch.float64)) * scale**2
        return KMeans(assignments, centers * scale + middle, inertia, done, converged)


def _placed(embeddings: Tensor) -> tuple[Tensor, float, Tensor]:
    """Points with mean zero and entries of at most about one, so that no distance overflows or drowns in a shift."""
    scale = max(abs(float(end)) for end in torch.aminmax(embeddings)) or 1.0
    points = embeddings / scale
    middle = points.mean(dim=0, keepdim=True)
    points -= middle
    return points, scale, middle * scale


class _Tiles:
    """Points, and their distances to centers a few rows at a time."""

    def __init__(self, points: Tensor, memory: int) -> None:
        self.points, self.memory = points, memory
        self.squares = torch.linalg.vector_norm(points, dim=1).square()
        self.rounding = 4.0 * torch.finfo(points.dtype).eps

    def rows(self, width: int) -> list[slice]:
        # a row of products, and what a comparison makes of it; small tiles stay in the cache of a CPU
        memory = min(self.memory, 2**24) if self.points.device.type == "cpu" else self.memory
        step = max(1, memory // (2 * width * self.points.dtype.itemsize))
        return [slice(start, start + step) for start in range(0, len(self.points), step)]

    def nearest(self, centers: Tensor) -> Tensor:
        """The nearest center of each point, the first of equals."""
        squares = centers.square().sum(dim=1)
        found = [
            # ‖x‖² is the same for all centers
            torch.addmm(squares, self.points[rows], centers.T, alpha=-2.0).argmin(dim=1)
            for rows in track(self.rows(len(centers)), "k-means")
        ]
        return torch.cat(found)

    def closer(self, chosen: Tensor, best: Tensor, owner: Tensor, first: int) -> None:
        """Lower the distances to the nearest seed where one of the newly chosen points, numbered on, is nearer."""
        centers, squares = self.points[chosen], self.squares[chosen]
        for rows in self.rows(len(chosen)):
            here = self.squares[rows]
            distances, index = torch.addmm(squares, self.points[rows], centers.T, alpha=-2.0).min(dim=1)
            distances += here
            # what is below the rounding of the subtraction is no distance: a copy of a seed is never drawn
            distances.masked_fill_(distances <= self.rounding * (here + squares[index]), 0.0)
            nearer = distances < best[rows]
            best[rows] = torch.where(nearer, distances, best[rows])
            owner[rows] = torch.where(nearer, index + first, owner[rows])

    def gains(self, candidates: Tensor, best: Tensor) -> Tensor:
        """By how much each candidate, as a seed, would lower the sum of the distances to the nearest seed."""
        centers, squares = self.points[candidates], self.squares[candidates]
        gains = torch.zeros(len(candidates), dtype=torch.float64, device=centers.device)
        for rows in track(self.rows(len(candidates)), "k-means seeds"):
            changes = (self.squares[rows] - best[rows])[:, None] + squares
            changes.addmm_(self.points[rows], centers.T, alpha=-2.0)
            gains -= changes.clamp_max_(0.0).sum(dim=0)
        return gains

    def own_distances(self, centers: Tensor, assignments: Tensor) -> Tensor:
        """The squared distance of each point to its own center, by subtracting: exact for a copy of the center."""
        found = [
            (self.points[rows] - centers[assignments[rows]]).square().sum(dim=1)
            for rows in self.rows(self.points.shape[1])
        ]
        return torch.cat(found)


def _seeds(tiles: _Tiles, clusters: int, chooser: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw seeds by greedy k-means++; the points chosen, and for each point which of them is nearest.

    k-means++ draws the next seed with a probability proportional to D², the squared distance to the nearest seed so far;
    the greedy one draws ``2 + ln k`` candidates and keeps the one that lowers the sum of D² most, which is worth several
    percent of the inertia.  One seed at a time is slow for thousands of clusters, so a round chooses an eighth of the
    number it has, each from candidates of its own, and lets pass those that are not in each other's way.
    """
    count, device = len(tiles.points), tiles.points.device
    owner = torch.zeros(count, dtype=torch.int64, device=device)
    best = tiles.points.new_full((count,), math.inf)
    seeds = torch.randint(count, (1,), generator=chooser, device="cpu").to(device)
    tiles.closer(seeds, best, owner, 0)
    trials = 2 + int(math.log(clusters))
    while len(seeds) < clusters:
        weights = best.double().cpu().cumsum(0)
        if not float(weights[-1]) > 0.0:
            # every point is a seed or a copy of one; copies attract nothing, for the first of equals is the nearest
            return torch.cat([seeds, seeds[:1].expand(clusters - len(seeds))]), owner
        wanted = max(1, min(len(seeds) // 8, clusters - len(seeds), MOST_AT_ONCE))
        draws = torch.rand(wanted, trials, generator=chooser, dtype=torch.float64, device="cpu")
        drawn = torch.searchsorted(weights, draws * weights[-1], right=True).clamp_max(count - 1).to(device)
        gains, winners = tiles.gains(drawn.flatten(), best).view(wanted, trials).max(dim=1)
        order = gains.argsort(descending=True, stable=True)
        chosen = _let_pass(tiles, drawn.gather(1, winners[:, None])[order, 0], best)
        tiles.closer(chosen, best, owner, len(seeds))
        seeds = torch.cat([seeds, chosen])
    return seeds, owner


def _let_pass(tiles: _Tiles, chosen: Tensor, best: Tensor) -> Tensor:
    """Those that are nearer to a former seed than to any that passed before them: the others would halve its gain."""
    points, squares = tiles.points[chosen], tiles.squares[chosen]
    among = torch.addmm(squares[:, None] + squares, points, points.T, alpha=-2.0).cpu()
    former = best[chosen].cpu()
    nearest = torch.full_like(former, math.inf)
    passed = []
    for index in range(len(chosen)):
        if nearest[index] >= former[index]:
            passed.append(index)
            nearest = torch.minimum(nearest, among[index])
    return chosen[torch.tensor(passed, device=chosen.device)]


def _moved(tiles: _Tiles, assignments: Tensor, centers: Tensor) -> Tensor:
    """The mean of each cluster; an empty one takes the farthest point or, where none is off its center, stays."""
    clusters = len(centers)
    counts = torch.bincount(assignments, minlength=clusters)
    empty = (counts == 0).nonzero()[:, 0]
    if len(empty):
        means = _means(tiles.points, assignments, counts)
        distances = tiles.own_distances(means, assignments)
        # a mean of copies may be off by a rounding
        distances.masked_fill_(distances <= tiles.rounding**2 * tiles.squares.max(), 0.0)
        farthest = distances.argsort(descending=True, stable=True)[: len(empty)]
        farthest = farthest[distances[farthest] > 0.0]
        assignments = assignments.clone()
        assignments[farthest] = empty[: len(farthest)]
        counts = torch.bincount(assignments, minlength=clusters)
    return torch.where((counts > 0)[:, None], _means(tiles.points, assignments, counts), centers)


def _means(points: Tensor, assignments: Tensor, counts: Tensor) -> Tensor:
    # points in the order of their clusters, summed bag by bag: unlike scattered addition, always in the same order
    order = assignments.argsort(stable=True)
    return torch.nn.functional.embedding_bag(order, points, counts.cumsum(0) - counts, mode="mean")
