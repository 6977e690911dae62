"""The objective of large-margin nearest neighbors: pulls target neighbors, pushes impostors beyond a margin."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.linear.metric import Array
from likewise.linear.stream import FewPairs, PairObjective


class LMNNObjective(PairObjective):
    """``r Σ_i Σ_{j∈T_i} d²_ij + (1 − r) Σ_i Σ_{j∈T_i} Σ_l [1 + d²_ij − d²_il]₊`` over points l of other classes.

    ``width`` replaces the hinge by ``z²/(2·width)`` up to ``z = width``, a parabola that joins the line; zero: the hinge itself.
    After the product, only targets and pairs inside the margin count.
    """

    def __init__(
        self, points: Array, labels: NDArray[Any], n_neighbors: int, regularization: float, device: Any = None
    ) -> None:
        super().__init__(points, labels, device)
        self.regularization, self.width = regularization, 0.0
        self.targets, self.valid = self._find_targets(n_neighbors)

    def _find_targets(self, n_neighbors: int) -> tuple[Tensor, Tensor]:
        """The nearest points of the class, ``(n, k)``, and which of them exist: small classes have fewer."""
        targets = torch.arange(len(self.points), device=self.points.device)[:, None].repeat(1, n_neighbors)
        valid = torch.zeros_like(targets, dtype=torch.bool)
        squares = self.points.square().sum(dim=1)
        for rows in self.chunks:
            for each in self.segments(rows):
                here = slice(rows.start + each.rows.start, rows.start + each.rows.stop)
                members = self.points[each.columns]
                squared = torch.addmm(squares[each.columns], self.points[here], members.T, alpha=-2.0)
                own = torch.arange(here.start, here.stop, device=squared.device) - each.columns.start
                squared[torch.arange(len(own), device=own.device), own] = torch.inf
                k = min(n_neighbors, len(members) - 1)
                if k:
                    nearest = squared.topk(k, dim=1, largest=False).indices
                    targets[here, :k] = nearest + each.columns.start
                    valid[here, :k] = True
        return targets, valid

    def pull_matrix(self) -> Array:
        """The mean of ``(x_i − x_j)(x_i − x_j)ᵀ`` over targets."""
        total = self.points.new_zeros((self.points.shape[1],) * 2)
        for rows in self.chunks:
            differences = (self.points[rows, None] - self.points[self.targets[rows]])[self.valid[rows]]
            total += differences.T @ differences
        return np.asarray((total / max(1, int(self.valid.sum()))).cpu().numpy())

    def transform(self, root: Array) -> LMNNObjective:
        """The objective on the points ``root x`` in place of ``x``, with the same targets."""
        other = copy.copy(self)
        other.points = self.points @ torch.as_tensor(root, device=self.points.device).T
        return other

    def smooth(self, width: float) -> LMNNObjective:
        """The same objective with hinges that are parabolas up to ``width``."""
        other = copy.copy(self)
        other.width = width
        return other

    def chunk(self, similarities: Tensor, rows: slice) -> tuple[Tensor, FewPairs | None]:
        """The targets and the hinges of a chunk."""
        targets, valid = self.targets[rows], self.valid[rows]
        distances = -similarities.gather(1, targets).masked_fill_(~valid, 0.0)
        for each in self.segments(rows):
            similarities[each.rows, each.columns] = -torch.inf
        reach = torch.where(valid, 1.0 + distances, -torch.inf)
        inside = similarities > -reach.max(dim=1, keepdim=True).values
        row, column = inside.nonzero(as_tuple=True)
        slope, value = self._hinge(reach[row] + similarities[row, column, None])  # (pairs, k)
        pull, push = self.regularization, 1.0 - self.regularization
        factors = pull * valid + push * torch.zeros_like(distances).index_add_(0, row, slope)
        total = pull * distances.sum() + push * value.sum()
        own = torch.arange(len(targets), device=row.device)[:, None].expand_as(targets)
        pairs = FewPairs(
            torch.cat([row, own[valid]]) + rows.start,
            torch.cat([column, targets[valid]]),
            torch.cat([push * slope.sum(dim=1), -factors[valid]]),
        )
        if len(pairs.rows) * self.points.shape[1] <= similarities.numel():
            return total, pairs
        similarities.zero_()
        similarities[pairs.rows - rows.start, pairs.columns] = pairs.weights
        return total, None

    def _hinge(self, excess: Tensor) -> tuple[Tensor, Tensor]:
        """The derivative of every hinge, and its value."""
        if self.width == 0.0:
            return (excess > 0.0).to(excess.dtype), excess.clamp_min(0.0)
        slope = (excess / self.width).clamp_(0.0, 1.0)
        return slope, torch.where(slope < 1.0, 0.5 * slope * slope * self.width, excess - 0.5 * self.width)
