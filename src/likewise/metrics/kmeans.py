"""k-means on the device of the embeddings: Lloyd's iterations from greedy k-means++ seeds, chunk by chunk."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.formula import check_values, embeddings_of, whole_number
from likewise.metrics.arrays import Array, as_tensor
from likewise.metrics.chunks import MEMORY, fit_rows, split_rows
from likewise.metrics.precision import exact_precision
from likewise.progress import track

MAX_SEEDS_PER_ROUND = 1024
"""Seeds that one round may draw: their pairwise distances are a matrix."""

CPU_CHUNK_BYTES = 2**24
"""Chunks on a CPU are at most this large, so that they stay in its cache."""


@dataclass(frozen=True, eq=False)
class KMeans:
    """The result of `kmeans`.

    Args:
        assignments: the nearest center of each point, int64 ``(n,)``.
        centers: ``(clusters, d)``, on the device of the points; each is the mean of its points after convergence.
        inertia: the sum of the squared distances of the points to their centers.
        iterations: the number of updates of the centers.
        converged: whether the last update left all assignments unchanged.

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
    """Cluster points so that each point has the nearest center and each center is the mean of its points.

    Seeds are drawn by greedy k-means++ (Arthur and Vassilvitskii 2007; several per round if there are many), then
    Lloyd's two steps alternate until no assignment changes.  The same seed on the same machine gives the same clusters,
    on a GPU too: random numbers come from the CPU, and no sum depends on the order of threads.

    A cluster that loses its last point takes the point that is farthest from its center; several empty clusters take
    the farthest points, in the order of their numbers.  If there are fewer distinct points than clusters, some clusters
    stay empty.

    Args:
        embeddings: points, floats ``(n, d)``, which are not normalized.
        clusters: the number of clusters, at most n.
        seed: the seed of the k-means++ draws.
        iterations: the maximum number of updates of the centers.
        memory: bytes that the distances may take at once, in addition to one copy of the points.

    Returns:
        A `KMeans` with the assignments, the centers and the inertia.

    Examples:
        >>> import torch
        >>> result = kmeans(torch.tensor([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]]), 2)
        >>> bool(result.assignments[0] == result.assignments[1]), bool(result.assignments[0] == result.assignments[2])
        (True, False)
        >>> round(result.inertia, 6)
        1.0
    """
    with check_values():
        checked = embeddings_of("embeddings", as_tensor("embeddings", embeddings)).detach()
    number = whole_number("clusters", clusters, 1)
    if number > len(checked):
        raise ValueError(f"clusters must be at most the {len(checked)} embeddings, but it is {number}")
    max_updates = whole_number("iterations", iterations, 1)
    with exact_precision(checked):
        rows, scale, mean = _standardize(checked)
        points = _Points(rows, whole_number("memory", memory, 1))
        generator = torch.Generator("cpu").manual_seed(whole_number("seed", seed, 0))
        seeds, assignments = _draw_seeds(points, number, generator)
        centers = points.rows[seeds]
        converged, updates = False, 0
        while not converged and updates < max_updates:
            centers = _update_centers(points, assignments, centers)
            nearest = points.find_nearest(centers)
            converged, updates = bool((nearest == assignments).all()), updates + 1
            assignments = nearest
        inertia = float(points.measure_distances(centers, assignments).sum(dtype=torch.float64)) * scale**2
        return KMeans(assignments, centers * scale + mean, inertia, updates, converged)


def _standardize(embeddings: Tensor) -> tuple[Tensor, float, Tensor]:
    """Subtract the mean and scale entries to at most about one, so that distances neither overflow nor lose digits."""
    scale = max(abs(float(end)) for end in torch.aminmax(embeddings)) or 1.0
    points = embeddings / scale
    mean = points.mean(dim=0, keepdim=True)
    points -= mean
    return points, scale, mean * scale


class _Points:
    """Points and their distances to centers, computed a few rows at a time."""

    def __init__(self, rows: Tensor, memory: int) -> None:
        self.rows = rows
        self.memory = min(memory, CPU_CHUNK_BYTES) if rows.device.type == "cpu" else memory
        self.squares = torch.linalg.vector_norm(rows, dim=1).square()
        self.rounding = 4.0 * torch.finfo(rows.dtype).eps

    def split(self, width: int) -> list[slice]:
        """Split the points into chunks with ``width`` products per row and as many temporary numbers."""
        return split_rows(len(self.rows), fit_rows(self.memory, per_row=2 * width * self.rows.dtype.itemsize))

    def find_nearest(self, centers: Tensor) -> Tensor:
        """Return the nearest center of each point, the first one of equals."""
        squares = centers.square().sum(dim=1)
        nearest = [
            # ‖x‖² is the same for all centers
            torch.addmm(squares, self.rows[chunk], centers.T, alpha=-2.0).argmin(dim=1)
            for chunk in track(self.split(len(centers)), "k-means")
        ]
        return torch.cat(nearest)

    def update_distances(self, seeds: Tensor, distances: Tensor, owner: Tensor, first: int) -> None:
        """Lower the distances to the nearest seed where a new seed is nearer; new seeds are numbered from ``first``."""
        centers, squares = self.rows[seeds], self.squares[seeds]
        for chunk in self.split(len(seeds)):
            chunk_squares = self.squares[chunk]
            nearest, index = torch.addmm(squares, self.rows[chunk], centers.T, alpha=-2.0).min(dim=1)
            nearest += chunk_squares
            # a distance below the rounding of the subtraction is zero, so that a copy of a seed is never drawn
            nearest.masked_fill_(nearest <= self.rounding * (chunk_squares + squares[index]), 0.0)
            is_nearer = nearest < distances[chunk]
            distances[chunk] = torch.where(is_nearer, nearest, distances[chunk])
            owner[chunk] = torch.where(is_nearer, index + first, owner[chunk])

    def compute_gains(self, candidates: Tensor, distances: Tensor) -> Tensor:
        """Return by how much each candidate, as a seed, would lower the sum of the distances to the nearest seed."""
        centers, squares = self.rows[candidates], self.squares[candidates]
        gains = torch.zeros(len(candidates), dtype=torch.float64, device=centers.device)
        for chunk in track(self.split(len(candidates)), "k-means seeds"):
            changes = (self.squares[chunk] - distances[chunk])[:, None] + squares
            changes.addmm_(self.rows[chunk], centers.T, alpha=-2.0)
            gains -= changes.clamp_max_(0.0).sum(dim=0)
        return gains

    def measure_distances(self, centers: Tensor, assignments: Tensor) -> Tensor:
        """Return the squared distance of each point to its center, by subtraction: exact for a copy of the center."""
        distances = [
            (self.rows[chunk] - centers[assignments[chunk]]).square().sum(dim=1)
            for chunk in self.split(self.rows.shape[1])
        ]
        return torch.cat(distances)


def _draw_seeds(points: _Points, clusters: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw seeds by greedy k-means++; return their indices and, for each point, the number of the nearest seed.

    k-means++ draws the next seed with a probability proportional to D², the squared distance to the nearest seed so
    far; the greedy variant draws ``2 + ln k`` candidates and takes the one that lowers the sum of D² most, which lowers
    the inertia by several percent.  One seed at a time is slow for thousands of clusters, so a round draws an eighth of
    the present number of seeds, each from separate candidates, and drops those that are too close to each other.
    """
    count, device = len(points.rows), points.rows.device
    owner = torch.zeros(count, dtype=torch.int64, device=device)
    distances = points.rows.new_full((count,), math.inf)
    seeds = torch.randint(count, (1,), generator=generator, device="cpu").to(device)
    points.update_distances(seeds, distances, owner, 0)
    trials = 2 + int(math.log(clusters))
    while len(seeds) < clusters:
        weights = distances.double().cpu().cumsum(0)
        if not float(weights[-1]) > 0.0:
            # all points are seeds or copies of seeds; a repeated seed stays empty, as the first of equals is nearest
            return torch.cat([seeds, seeds[:1].expand(clusters - len(seeds))]), owner
        number = max(1, min(len(seeds) // 8, clusters - len(seeds), MAX_SEEDS_PER_ROUND))
        draws = torch.rand(number, trials, generator=generator, dtype=torch.float64, device="cpu")
        candidates = torch.searchsorted(weights, draws * weights[-1], right=True).clamp_max(count - 1).to(device)
        gains, winners = points.compute_gains(candidates.flatten(), distances).view(number, trials).max(dim=1)
        order = gains.argsort(descending=True, stable=True)
        new_seeds = _drop_close(points, candidates.gather(1, winners[:, None])[order, 0], distances)
        points.update_distances(new_seeds, distances, owner, len(seeds))
        seeds = torch.cat([seeds, new_seeds])
    return seeds, owner


def _drop_close(points: _Points, candidates: Tensor, distances: Tensor) -> Tensor:
    """Drop candidates that are nearer to a candidate before them than to any seed, because they share its gain."""
    rows, squares = points.rows[candidates], points.squares[candidates]
    pairwise = torch.addmm(squares[:, None] + squares, rows, rows.T, alpha=-2.0).cpu()
    to_seeds = distances[candidates].cpu()
    nearest = torch.full_like(to_seeds, math.inf)
    selection = []
    for index in range(len(candidates)):
        if nearest[index] >= to_seeds[index]:
            selection.append(index)
            nearest = torch.minimum(nearest, pairwise[index])
    return candidates[torch.tensor(selection, device=candidates.device)]


def _update_centers(points: _Points, assignments: Tensor, centers: Tensor) -> Tensor:
    """Compute the mean of each cluster; an empty one takes the farthest point, or stays if all points are centers."""
    clusters = len(centers)
    counts = torch.bincount(assignments, minlength=clusters)
    empty = (counts == 0).nonzero()[:, 0]
    if len(empty):
        means = _compute_means(points.rows, assignments, counts)
        distances = points.measure_distances(means, assignments)
        # the mean of copies may differ from them by rounding
        distances.masked_fill_(distances <= points.rounding**2 * points.squares.max(), 0.0)
        farthest = distances.argsort(descending=True, stable=True)[: len(empty)]
        farthest = farthest[distances[farthest] > 0.0]
        assignments = assignments.clone()
        assignments[farthest] = empty[: len(farthest)]
        counts = torch.bincount(assignments, minlength=clusters)
    return torch.where((counts > 0)[:, None], _compute_means(points.rows, assignments, counts), centers)


def _compute_means(points: Tensor, assignments: Tensor, counts: Tensor) -> Tensor:
    # points sorted by cluster are summed bag by bag: unlike scatter-add, always in the same order
    order = assignments.argsort(stable=True)
    return torch.nn.functional.embedding_bag(order, points, counts.cumsum(0) - counts, mode="mean")
