"""Objectives over all pairs of points, a chunk of rows at a time: value and gradient in O(n) memory, on any device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.engines import plan_chunks
from likewise.linear.metric import Array

COPIES = 2
"""The number of matrices of a chunk's size that are in memory at once."""

ROWS = 128
"""The smallest number of rows of a chunk, so that products are efficient."""


@dataclass(frozen=True)
class Segment:
    """The rows of a chunk that are of one class, and the columns of that class; points are sorted by class."""

    rows: slice
    columns: slice


@dataclass(frozen=True)
class FewPairs:
    """Derivatives by the similarities of some pairs; those of all other pairs are zero."""

    rows: Tensor
    columns: Tensor
    weights: Tensor

    def add_to(self, gradient: Tensor, embedded: Tensor) -> None:
        """Add half of the gradient by the embedded points."""
        moves = self.weights[:, None] * (embedded[self.rows] - embedded[self.columns])
        gradient.index_add_(0, self.rows, moves, alpha=-1.0)
        gradient.index_add_(0, self.columns, moves)


class PairObjective(ABC):
    """A sum over all points i of a function of their similarities ``s_ij = −‖L x_i − L x_j‖²``.

    Args:
        points: the points, ``(n, d)``; their mean is subtracted.
        labels: the class of each, ``(n,)``, or ``None``; points are sorted by class.
        device: where to compute.
    """

    def __init__(self, points: Array, labels: NDArray[Any] | None, device: Any = None) -> None:
        order = np.arange(len(points)) if labels is None else np.argsort(labels, kind="stable")
        self.order = order
        device = torch.device("cpu" if device is None else device)
        self.points = torch.as_tensor((points - points.mean(axis=0))[order], dtype=torch.float64).to(device)
        self.ends = np.array([len(points)])
        if labels is not None:
            self.ends = np.cumsum(np.unique(labels, return_counts=True)[1])
        self.chunks = plan_chunks(len(points), len(points), self.points, copies=COPIES, least=ROWS)

    def __call__(self, components: Array) -> tuple[float, Array]:
        """The value at L, ``(n_components, d)``, and its gradient.

        With W, the derivatives by all similarities, and D, the sums of its rows plus those of its columns, the gradient is
        ``−2 Zᵀ(D − W − Wᵀ)X`` at ``Z = X Lᵀ``.  Two products of n² entries with Z give it; or one with X, because
        ``ZᵀWX = L XᵀWX``, where L has more than half as many rows as columns.
        """
        factor = torch.as_tensor(components, device=self.points.device)
        embedded = self.points @ factor.T
        is_wide = 2 * len(factor) > factor.shape[1]
        gradient = torch.zeros_like(embedded)
        scatter = factor.new_zeros((factor.shape[1],) * 2) if is_wide else None
        weights = embedded.new_zeros(len(embedded))  # D
        total = embedded.new_zeros(())
        # the product of these is minus the squared distance, without a pass over it afterwards
        squares, ones = embedded.square().sum(dim=1, keepdim=True), embedded.new_ones((len(embedded), 1))
        left, right = torch.cat([2.0 * embedded, -squares, ones], 1), torch.cat([embedded, ones, -squares], 1)
        multiplied = torch.cat([self.points if is_wide else embedded, ones], 1)  # its last column sums rows
        for rows in self.chunks:
            similarities = left[rows] @ right.T
            value, few = self.chunk(similarities, rows)
            total += value
            if few is not None:
                few.add_to(gradient, embedded)
                continue
            products = similarities @ multiplied
            weights[rows] += products[:, -1]
            weights += similarities.T @ ones[rows, 0]
            if scatter is not None:
                scatter += self.points[rows].T @ products[:, :-1]
            else:
                gradient[rows] += products[:, :-1]
                gradient += similarities.T @ embedded[rows]
        result = gradient.sub_(weights[:, None] * embedded).T @ self.points
        if scatter is not None:
            result += factor @ (scatter + scatter.T)
        return float(total), (2.0 * result).cpu().numpy()

    @abstractmethod
    def chunk(self, similarities: Tensor, rows: slice) -> tuple[Tensor, FewPairs | None]:
        """The value of a chunk of rows, and its derivative by every similarity.

        The derivatives take the place of the similarities ``(c, n)``, or only those of a few pairs are returned.
        """

    def segments(self, rows: slice) -> list[Segment]:
        """The classes of a chunk."""
        segments, start = [], rows.start
        which = int(np.searchsorted(self.ends, start, side="right"))
        while start < rows.stop:
            end = min(rows.stop, int(self.ends[which]))
            first = int(self.ends[which - 1]) if which else 0
            segments.append(Segment(slice(start - rows.start, end - rows.start), slice(first, int(self.ends[which]))))
            start, which = end, which + 1
        return segments


def fill_self(similarities: Tensor, rows: slice, value: float) -> None:
    """Set the similarity of each point of a chunk to itself."""
    similarities[:, rows].fill_diagonal_(value)


class NCAObjective(PairObjective):
    """``−Σ_i Σ_{j of the class} softmax_{j ≠ i}(s_ij)``."""

    def chunk(self, similarities: Tensor, rows: slice) -> tuple[Tensor, FewPairs | None]:
        """Minus the probability of a neighbor of the class."""
        fill_self(similarities, rows, -torch.inf)
        torch.softmax(similarities, dim=1, out=similarities)
        segments = self.segments(rows)
        inside = [similarities[each.rows, each.columns].clone() for each in segments]
        probability = torch.cat([own.sum(dim=1) for own in inside])
        similarities *= probability[:, None]
        for each, own in zip(segments, inside, strict=True):
            similarities[each.rows, each.columns] -= own
        return -probability.sum(), None


class MCMLObjective(PairObjective):
    """``Σ_i [mean_{j of the class} −s_ij + log Σ_{k ≠ i} e^{s_ik} − log |P_i|]``, over points that have a positive."""

    def chunk(self, similarities: Tensor, rows: slice) -> tuple[Tensor, FewPairs | None]:
        """The divergence from the uniform distribution over the class."""
        total = similarities.new_zeros(())
        fill_self(similarities, rows, 0.0)
        pulls = []
        for each in self.segments(rows):
            others = each.columns.stop - each.columns.start - 1
            pulls.append((each, others))
            if others:
                total -= similarities[each.rows, each.columns].sum() / others
                total -= (each.rows.stop - each.rows.start) * float(np.log(others))
        fill_self(similarities, rows, -torch.inf)
        partition = torch.logsumexp(similarities, dim=1, keepdim=True)
        torch.exp_(similarities.sub_(partition))
        for each, others in pulls:
            if others:
                total += partition[each.rows].sum()
                similarities[each.rows, each.columns] -= 1.0 / others
            else:
                similarities[each.rows] = 0.0
        fill_self(similarities, rows, 0.0)
        return total, None


class MLKRObjective(PairObjective):
    """``Σ_i (ŷ_i − y_i)²`` with ``ŷ_i = Σ_{j ≠ i} softmax(s_ij) y_j``."""

    def __init__(self, points: Array, targets: Array, device: Any = None) -> None:
        super().__init__(points, None, device)
        self.targets = torch.as_tensor(targets, dtype=torch.float64).to(self.points.device)

    def chunk(self, similarities: Tensor, rows: slice) -> tuple[Tensor, FewPairs | None]:
        """The squared error of the leave-one-out regression."""
        fill_self(similarities, rows, -torch.inf)
        torch.softmax(similarities, dim=1, out=similarities)
        guess = similarities @ self.targets
        error = guess - self.targets[rows]
        similarities *= (self.targets - guess[:, None]).mul_(2.0 * error[:, None])
        return error.square().sum(), None
