"""Magnet sampler: batches of neighboring clusters; classes are clustered again whenever the trainer mines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np
import torch
from torch import Tensor

from likewise.data.hard_samplers import MiningSampler, nearest_rows
from likewise.data.random_source import Array, Decks, RandomSource, whole_number
from likewise.data.samplers import Labels, check_divisible

_WEIGHTS = 1_000_000  # weights are integers, in millionths of the largest one


class MagnetSampler(MiningSampler):
    r"""Batches of a cluster and its nearest clusters of other classes, with the same number of images each (Rippel et al. 2016).

    Each class is clustered by k-means on unit vectors whenever the trainer mines (``mine_every``).  The first cluster of a
    batch is drawn in proportion to the mean Magnet loss of its images; the others are the clusters of other classes with
    the nearest means, in Euclidean distance.  The paper keeps a running estimate of the losses; here they are computed at
    the time of mining, for all images against the means of all clusters.

    The labels of a batch come from ``targets``: two columns, a cluster and its class, as `likewise.losses.MagnetLoss`
    takes them.  Losses on hierarchies accept them, too.

    Args:
        labels: label of each image, ``(n,)``.
        per_class: number of clusters per class; a class with fewer images has one cluster per image.
        clusters: number of clusters in a batch.
        per_cluster: number of images per cluster; images of smaller clusters are repeated.
        alpha: gap of the Magnet loss that weights the first cluster.
        steps: batches per epoch; by default, the number of images divided by the batch size, at least 1.
        seed: seed of all random choices.
        rank: rank of this process; it gets whole clusters of each batch.
        world_size: number of processes over which each batch is split.

    Examples:
        >>> sampler = MagnetSampler([0, 0, 0, 0, 1, 1, 1, 1], per_class=2, clusters=2, per_cluster=2, steps=1)
        >>> angles = torch.tensor([0.0, 0.1, 1.5, 1.6, 0.3, 0.4, 3.0, 3.1])
        >>> sampler.update(torch.stack([angles.cos(), angles.sin()], dim=1))
        >>> [[sorted(batch[:2]), sorted(batch[2:])] for batch in sampler]
        [[[4, 5], [0, 1]]]
        >>> sampler.targets[[0, 1, 2, 3]].tolist()
        [[0, 0], [0, 0], [1, 0], [1, 0]]
    """

    def __init__(
        self,
        labels: Labels,
        *,
        per_class: int = 3,
        clusters: int = 12,
        per_cluster: int = 4,
        alpha: float = 1.0,
        steps: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        self.per_class, self.clusters = whole_number("per_class", per_class, 1), whole_number("clusters", clusters, 2)
        self.per_cluster, self.alpha = whole_number("per_cluster", per_cluster, 1), float(alpha)
        if not math.isfinite(self.alpha):
            raise ValueError(f"alpha must be a finite number, but it is {alpha!r}")
        super().__init__(
            labels,
            batch_size=clusters * per_cluster,
            settings={
                "per_class": self.per_class,
                "clusters": self.clusters,
                "per_cluster": self.per_cluster,
                "alpha": repr(self.alpha),
            },
            steps=steps,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        check_divisible("clusters", clusters, "world_size", world_size)
        sizes = np.minimum(np.unique(self.labels, return_counts=True)[1], per_class)
        most = int(sizes.sum() - sizes.max()) + 1
        if clusters > most:
            raise ValueError(
                f"clusters must be at most {most}, the number of clusters of all classes but the largest, plus one, but it is {clusters}"
            )

    @property
    def targets(self) -> Tensor:
        """The cluster and the class of each image, ``(n, 2)``."""
        return torch.from_numpy(np.stack([self._mined_table()[:, 0], self.labels], axis=1))

    def _search(self, units: Tensor) -> Array:
        """Return, for each image, its cluster, the weight of the cluster and the cluster's neighbors, ``(n, clusters + 1)``."""
        clusters, owners = self._cluster(units)
        sums = units.new_zeros(len(owners), units.shape[1]).index_add_(0, clusters, units)
        means = sums / torch.bincount(clusters, minlength=len(owners)).clamp_min(1)[:, None]
        losses = _magnet_losses(units, means, clusters, owners, self.alpha)
        totals = losses.new_zeros(len(owners)).index_add_(0, clusters, losses)
        costs = totals / torch.bincount(clusters, minlength=len(owners)).clamp_min(1)
        largest = costs.max()
        weights = (_WEIGHTS * costs / largest).round().long() if largest > 0.0 else torch.ones_like(costs).long()
        near = nearest_rows(means, owners, self.clusters - 1, squared=True)
        of_cluster = np.concatenate([weights.cpu().numpy()[:, None], near], axis=1)
        numbers = clusters.cpu().numpy()
        return np.concatenate([numbers[:, None], of_cluster[numbers]], axis=1)

    def _cluster(self, units: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cluster of each image, numbered over all classes without gaps, and the class of each cluster."""
        from likewise.metrics import kmeans

        clusters = torch.zeros(len(units), dtype=torch.int64, device=units.device)
        owners: list[int] = []
        for label in np.unique(self.labels):
            rows = torch.from_numpy(np.flatnonzero(self.labels == label)).to(units.device)
            found = kmeans(units[rows], min(self.per_class, len(rows)), seed=self.seed, iterations=20).assignments
            names, numbers = torch.unique(found, return_inverse=True)
            clusters[rows] = numbers.to(clusters.device) + len(owners)
            owners += [int(label)] * len(names)
        return clusters, torch.tensor(owners, device=units.device)

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        table = self._mined_table()
        images = Decks(table[:, 0], source)
        first = np.unique(table[:, 0], return_index=True)[1]
        ends, near = np.cumsum(table[first, 1]), table[first, 2:]
        while True:
            drawn = int(np.searchsorted(ends, source.below(int(ends[-1]), 1)[0], side="right"))
            chosen = [drawn, *(cluster for cluster in near[drawn].tolist() if cluster >= 0)]
            # k-means may return fewer clusters than requested: the first ones are then repeated
            filled = islice(cycle(chosen), self.clusters)
            yield [index for cluster in filled for index in images.deal(cluster, self.per_cluster)]


def _magnet_losses(units: Tensor, means: Tensor, clusters: Tensor, owners: Tensor, alpha: float) -> Tensor:
    """Return the Magnet loss of each image against the means of all clusters, computed in chunks of images."""
    near = (units - means[clusters]).square().sum(dim=1)
    steepness = 0.5 / (near.sum() / max(len(units) - 1, 1)).clamp_min(1e-6)
    losses = []
    for rows in torch.split(torch.arange(len(units), device=units.device), max(1, (1 << 24) // len(means))):
        logits = -steepness * torch.cdist(units[rows], means).square()
        logits = logits.masked_fill(owners[clusters[rows], None] == owners, -torch.inf)
        losses.append(torch.relu(alpha + (steepness * near[rows] + logits.logsumexp(dim=1)).double()))
    return torch.cat(losses)
