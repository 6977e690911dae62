"""Sums over the negatives of both members of a pair of one class: all pairs of a class have the same negatives.

Rows are sorted by label, so that the members of a class are consecutive.  A chunk of rows is multiplied with all rows once,
and the exponentials of a class with each other.  The backward pass computes each chunk again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from likewise._compat import is_batch_of_gradients, is_mapped
from likewise.engines.recompute import count_busy_rows, plan_chunks
from likewise.engines.split_products import make_factors
from likewise.formula import ClassProducts, Labels, PairBatch, full_precision

TILE = 32
"""Consecutive rows whose exponentials are multiplied with each other."""

COPIES = 6
"""Matrices of a chunk's size that fit into the budget of a device; four or five are in memory at once."""

LEAST_TILES = 2
"""The smallest number of tiles of a chunk on a CPU."""


def multiply_classes(batch: PairBatch, rate: float, most: int) -> ClassProducts:
    """The pairs of one class, for a batch against itself whose labels define the pairs.

    Args:
        batch: the batch, with a similarity that is a product of its factors.
        rate: the rate of the exponential of similarities.
        most: the largest number of positives of an anchor, at most half of `TILE`.

    Examples:
        >>> from likewise.formula import Cosine
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
        >>> found = multiply_classes(PairBatch(Labels(torch.tensor([0, 1, 0])), Cosine(), anchors=x), 1.0, 1)
        >>> found.order, found.exists.flatten(), found.sums.flatten()
        (tensor([0, 2, 1]), tensor([ True, False, False]), tensor([2.2255, 0.0000, 0.0000]))
    """
    assert isinstance(batch.relation, Labels)
    labels = batch.relation.labels
    order = labels.argsort(stable=True)
    labels, m = labels[order], len(order)
    row = torch.arange(max(m, TILE), device=order.device)[:, None]
    later = row + torch.arange(1, most + 1, device=order.device)
    places, row, later = later[: TILE - most], row[:m], later[:m]
    exists = (later < m) & (labels[:, None] == labels[later.clamp_max(max(m - 1, 0))])
    # the product of scaled rows is the exponent
    rows = math.sqrt(rate) * batch.both_factors()[0].index_select(0, order)
    pairs = _Pairs(labels, exists, torch.where(exists, later, row), places)
    exponents, sums = _ClassSums.apply(rows, pairs, batch.half)  # type: ignore[no-untyped-call]
    return ClassProducts(order, exists, exponents / rate, sums)


class _Pairs(NamedTuple):
    """The pairs of one class.

    Rows are in overlapping tiles: each begins ``TILE − K`` rows, its own, after the one before it.

    Args:
        labels: the labels of rows, ascending, ``(m,)``.
        exists: whether a row and the one ``k + 1`` rows later are of one class, ``(m, K)``.
        columns: the later row; the row itself where there is none, ``(m, K)``.
        places: the places of the K later rows of each own row of a tile, ``(TILE − K, K)``.
    """

    labels: Tensor
    exists: Tensor
    columns: Tensor
    places: Tensor

    @property
    def tiles(self) -> int:
        """The number of tiles."""
        return -(-len(self.exists) // len(self.places))

    def cut(self, rows: Tensor) -> Iterator[_Chunk]:
        """Chunks of rows, and the rows after them that are of the same classes."""
        m, (height, most) = len(self.exists), self.places.shape
        least = count_busy_rows(m, rows, height) if rows.is_cuda else LEAST_TILES
        for chunk in plan_chunks(self.tiles * height, m, rows, height, copies=COPIES, least=least):
            own = slice(chunk.start, min(chunk.stop, m))
            reach = slice(own.start, min(own.stop + most, m))
            tiles = slice(chunk.start // height, chunk.stop // height)
            yield _Chunk(own, reach, tiles, self.labels[reach, None] == self.labels, self.columns[own], self.places)

    def spread(self, gradient: Tensor) -> Tensor:
        """Each tile's gradient by the products of its rows, ``(tiles, TILE, TILE)``, symmetric, from that by the sums."""
        height, most = self.places.shape
        end = self.tiles * height
        by_tile = pad(gradient, (0, 0, 0, end - len(gradient))).view(self.tiles, height, most)
        factors = gradient.new_zeros(self.tiles, TILE, TILE)
        factors[:, :height].scatter_(2, self.places.expand_as(by_tile), by_tile)
        return factors + factors.transpose(1, 2)


class _Chunk(NamedTuple):
    """Some tiles.

    Args:
        own: their own rows.
        reach: these and the K rows after them, the rows of the matrices of a chunk.
        tiles: the tiles.
        same: the pairs of one class, ``(reach, m)``.
        columns: of the own rows; see `_Pairs`.
        places: see `_Pairs`.
    """

    own: slice
    reach: slice
    tiles: slice
    same: Tensor
    columns: Tensor
    places: Tensor

    def exponentiate(self, exponents: Tensor) -> Tensor:
        """The exponentials of negative pairs, in place; zero for the others."""
        return exponents.exp_().masked_fill_(self.same, 0.0)

    def sum_products(self, values: Tensor, sums: Tensor) -> None:
        """Write the sums of the products of each row with those after it, ``(tiles, TILE − K, K)``."""
        tiles = self._tile(values)
        products = torch.bmm(tiles[:, : len(self.places)], tiles.transpose(1, 2))
        torch.gather(products, 2, self.places.expand_as(sums), out=sums)

    def differentiate(self, values: Tensor, factors: Tensor) -> Tensor:
        """The gradient by the values, ``(reach, m)``, from that by the products of each tile's rows."""
        (height, most), m, tiles = self.places.shape, values.shape[1], self._tile(values)
        end = len(tiles) * height
        result = values.new_empty(end + most, m)
        within = torch.bmm(factors[:, :height], tiles, out=result[:end].view(-1, height, m))
        beyond = torch.bmm(factors[:, height:], tiles)  # the first rows of the next tile
        within[1:, :most].add_(beyond[:-1])
        result[end:] = beyond[-1]
        return result[: len(values)]

    def _tile(self, values: Tensor) -> Tensor:
        """Tiles of rows, ``(tiles, TILE, m)``, a view unless rows are missing."""
        height, most = self.places.shape
        missing = (self.tiles.stop - self.tiles.start) * height + most - len(values)
        values = pad(values, (0, 0, 0, missing)) if missing else values
        return values.unfold(0, TILE, height).transpose(1, 2)


class _ClassSums(torch.autograd.Function):
    """The exponents of the pairs of one class, and the sums of products of exponentials over negatives, ``(m, K)`` each."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, pairs: _Pairs, half: torch.dtype | None) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(rows)
        ctx.pairs, ctx.half = pairs, half
        near, sums = rows.new_empty(pairs.exists.shape), rows.new_empty(pairs.tiles, *pairs.places.shape)
        factors = make_factors(rows, half)
        for chunk in pairs.cut(rows):
            exponents = factors.multiply(chunk.reach)
            torch.gather(exponents[: len(chunk.columns)], 1, chunk.columns, out=near[chunk.own])
            chunk.sum_products(chunk.exponentiate(exponents), sums[chunk.tiles])
            del exponents  # before the next ones are computed
        return near, sums.flatten(0, 1)[: len(rows)].masked_fill(~pairs.exists, 0.0)

    @staticmethod
    def backward(ctx: Any, of_near: Tensor, of_sums: Tensor) -> tuple[Tensor, None, None]:
        (rows,), pairs = ctx.saved_tensors, ctx.pairs
        with full_precision(rows):
            if torch.is_grad_enabled() or any(
                is_batch_of_gradients(each) or is_mapped(each) for each in (of_near, of_sums)
            ):
                return _differentiate(rows, pairs, of_near, of_sums), None, None
            total, factors, missing = torch.zeros_like(rows), make_factors(rows, ctx.half), ~pairs.exists
            of_near, of_products = of_near.masked_fill(missing, 0.0), pairs.spread(of_sums.masked_fill(missing, 0.0))
            for chunk in pairs.cut(rows):
                values = chunk.exponentiate(factors.multiply(chunk.reach))
                gradient = chunk.differentiate(values, of_products[chunk.tiles]).mul_(values)
                del values
                # zero so far, because members of a class are no negatives of each other
                gradient[: len(chunk.columns)].scatter_(1, chunk.columns, of_near[chunk.own])
                factors.pass_on(gradient, chunk.reach, total)
                del gradient
        return total, None, None


def _differentiate(rows: Tensor, pairs: _Pairs, of_near: Tensor, of_sums: Tensor) -> Tensor:
    """The gradient on the whole matrix, in operations that can be differentiated and mapped."""

    def place(numbers: Tensor) -> Tensor:
        numbers = numbers.masked_fill(~pairs.exists, 0.0)
        return rows.new_zeros(len(rows), len(rows)).scatter(1, pairs.columns, numbers)

    values = (rows @ rows.T).exp().masked_fill(pairs.labels[:, None] == pairs.labels, 0.0)
    factors = place(of_sums)
    gradient = ((factors + factors.T) @ values) * values + place(of_near)
    return (gradient + gradient.T) @ rows
