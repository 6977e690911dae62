"""The layout of a batch for kernels: operands in the order of their labels, and gradients back in the order of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from likewise.engines.triton.factor import Factor, pad_width
from likewise.engines.triton.kernels import Operands
from likewise.engines.triton.pooling import PoolTemplate, find_pool_template
from likewise.engines.triton.product import ProductSpec, make_factors
from likewise.engines.triton.tile_source import Pairing
from likewise.formula import (
    Formula,
    Labels,
    Mined,
    PairBatch,
    Pooled,
    Relation,
    TableUse,
    add_part_products,
    multiply_into_float32,
    pair_parts,
    s,
    split_into_parts,
)

MIN_SORTED_PAIRS = 2**20
"""The number of pairs from which a batch is sorted by label; most tiles then contain only negatives."""

MAX_SORTED_BYTES = 2**28
"""Bytes of references that may be copied into another order."""

MAX_OPERAND_BYTES = 2**28
"""Bytes of a table's operand; a larger one is computed in chunks of so many bytes, in each pass."""

CHUNK_BYTES = 256 * 2**20
"""Bytes for the gradient by the similarities of a chunk."""


class GradientWriter(Protocol):
    """Writes gradients by similarities."""

    @property
    def symmetric(self) -> bool:
        """Whether the gradient of each pair includes that of its mirror."""

    def write(self, by: Formula, rows: tuple[int, int], columns: tuple[int, int], summands: int) -> Tensor:
        """Return the gradient by the similarities (or by another leaf) of a rectangle: ``(rows, summands, columns)``."""


@dataclass(eq=False)
class Layout:
    """A batch in the form that kernels read.

    Args:
        left: the factor of the anchors.
        right: the factor of the references; the same object if the product is symmetric.
        operands: the tensors that kernels read.
        product: how the factors are multiplied.
        pairing: how kernels determine which pairs are positive and negative.
        link: the similarity as a formula of the product.
        link_values: the values of the link's leaves.
        ordered: anchors and references are sorted by label.
        column_order: the order of the matrix's columns; ``None`` for that of the batch.
        pool: how the centers of a column are pooled; ``None`` if a column is a reference.
    """

    left: Factor
    right: Factor
    operands: Operands
    product: ProductSpec
    pairing: Pairing
    link: Formula
    link_values: dict[Formula, Tensor]
    ordered: bool
    column_order: Tensor | None = None
    pool: PoolTemplate | None = None

    @property
    def centers(self) -> int:
        """The number of references of each column."""
        return 1 if self.pool is None else self.pool.centers

    def sort_rows(self, vector: Tensor) -> Tensor:
        """Bring a vector with one entry per anchor into the order of the operands."""
        return vector if self.left.order is None else vector[self.left.order]

    def sort_columns(self, vector: Tensor) -> Tensor:
        """Bring a vector with one entry per reference into the order of the operands."""
        return vector if self.column_order is None else vector[self.column_order]

    def unsort_rows(self, vector: Tensor) -> Tensor:
        """Bring a vector with one entry per anchor back into the order of the batch."""
        return _unsort(vector, self.left.order)

    def columns(self, first: int, end: int) -> tuple[Operands, int]:
        """Return operands that contain some columns, and the number of the first of these in them."""
        if not self.right.streamed:
            return self.operands, first
        return self.operands.cut(first, end, *self.right.rows(first, end)), 0

    @property
    def most_columns(self) -> int:
        """The number of columns whose operand may be in memory at once."""
        if not self.right.streamed:
            return 2**62
        return MAX_OPERAND_BYTES // (self.operands.size[2] * self.operands.dtype.itemsize)

    def compute_gradients(
        self, writer: GradientWriter, of_left: bool, of_right: bool, use: TableUse | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """Compute the gradients by the sources of both factors, in chunks; that of a table may be passed on instead."""
        if not (of_left or of_right):
            return None, None
        if writer.symmetric:
            return self._compute_symmetric(writer), None
        # chunks divide the longer side, whose gradients they complete; those of the shorter side are summed over chunks
        m, n, _ = self.operands.size
        wide = n >= m and self.pool is None  # the centers of some classes are not consecutive
        long, short = (self.right, self.left) if wide else (self.left, self.right)
        of_long, of_short = (of_right, of_left) if wide else (of_left, of_right)
        whole = 0, m if wide else n
        short_parts = self._split(short.operand)  # a streamed factor is the longer one
        summed = torch.zeros_like(short.operand, dtype=torch.float32) if of_short else None
        passes_on = use is not None and wide and long.order is None and use.is_only()  # the references are the table
        result = long.new_gradient() if of_long and not passes_on else None
        for chunk in self._chunks(n if wide else m, len(short.operand)):
            gradients = writer.write(s, *((whole, chunk) if wide else (chunk, whole)), self.product.summands)
            to_short, to_long = (multiply, multiply_transposed) if wide else (multiply_transposed, multiply)
            if summed is not None:
                to_short(gradients, self._split(long.rows(*chunk)[0]), summed)
            if of_long:
                by_rows, rows = to_long(gradients, short_parts), slice(*chunk)
                if result is None:
                    out = long.new_gradient(chunk[1] - chunk[0])
                else:
                    out = result if long.order is not None else result[rows]
                long.backward(by_rows, chunk[0], out)
                if use is not None and passes_on:
                    use.take(rows, out)
            del gradients
        total = None
        if summed is not None:
            total = short.new_gradient()
            short.backward(summed, 0, total)
        return (total, result) if wide else (result, total)

    def _compute_symmetric(self, writer: GradientWriter) -> Tensor:
        """Compute the gradient of a batch against itself from the pairs on and above the diagonal.

        The gradient of a pair includes that of its mirror, so that each chunk of rows needs only the columns from its
        first row on, and is multiplied twice: as it is and transposed.
        """
        operand, height = self.right.operand, len(self.right.operand)
        parts, total = self._split(operand), torch.zeros_like(operand, dtype=torch.float32)
        for first, end in self._triangular_chunks(height):
            gradients = writer.write(s, (first, end), (first, height), self.product.summands)
            multiply(gradients, [part[first:] for part in parts], total[first:end])
            if end < height:
                multiply_transposed(gradients[:, :, end - first :], [part[first:end] for part in parts], total[end:])
            del gradients
        result = self.right.new_gradient()
        self.right.backward(total, 0, result)
        return result

    def compute_column_gradient(self, writer: GradientWriter, node: Formula) -> Tensor:
        """Compute the gradient by a value per reference."""
        m, n, _ = self.operands.size
        sums = [writer.write(node, (0, m), columns, 1)[:, 0].float().sum(dim=0) for columns in self._chunks(n, m)]
        return _unsort(torch.cat(sums), self.column_order)

    def compute_pair_gradient(self, writer: GradientWriter, node: Formula) -> Tensor:
        """Compute the gradient by a value per pair, a matrix."""
        m, n, _ = self.operands.size
        chunks = [
            _unsort(writer.write(node, (0, m), columns, 1)[:, 0].float(), self.left.order)
            for columns in self._chunks(n, m)
        ]
        return _unsort(torch.cat(chunks, dim=1).T, self.column_order).T

    def sort_pairs(self, matrix: Tensor) -> Tensor:
        """Bring a matrix with one entry per pair into the order of the operands."""
        matrix = self.sort_rows(matrix)
        return matrix if self.column_order is None else matrix[:, self.column_order]

    def _split(self, operand: Tensor) -> list[Tensor]:
        """Return the parts of an operand that gradients are multiplied with."""
        if self.product.in_parts:
            return split_into_parts(operand, 3)
        # gradients exceed the range of float16
        return [operand.float() if operand.dtype == torch.float16 else operand]

    def _chunks(self, along: int, across: int) -> list[tuple[int, int]]:
        step = self._chunk_height(across)
        return [(first, min(first + step, along)) for first in range(0, along, step)]

    def _triangular_chunks(self, size: int) -> list[tuple[int, int]]:
        """Chunks of rows that contain the columns from their first row on; later ones are higher."""
        chunks, first = [], 0
        while first < size:
            end = min(first + self._chunk_height(size - first), size)
            chunks.append((first, end))
            first = end
        return chunks

    def _chunk_height(self, across: int) -> int:
        summands = self.product.summands
        bytes_each = self.operands.gradient_dtype.itemsize if summands == 1 else 2 * summands
        return max(128, min(CHUNK_BYTES // (across * bytes_each), self.most_columns) // 128 * 128)


def multiply(gradients: Tensor, parts: list[Tensor], total: Tensor | None = None) -> Tensor:
    """Multiply gradients of pairs, ``(rows, summands, columns)``, with the parts of the columns' operand; add to a total."""
    summands = gradients.unbind(1)
    if len(parts) > 1:
        return add_part_products(pair_parts(summands, parts), total)
    for summand in summands:
        total = multiply_into_float32(summand, parts[0], total)
    assert total is not None
    return total


def multiply_transposed(gradients: Tensor, parts: list[Tensor], total: Tensor | None = None) -> Tensor:
    """Multiply gradients of pairs, transposed, with the parts of the rows' operand; add to a total if given."""
    if len(parts) > 1:
        return add_part_products([(summand.T, part) for summand, part in pair_parts(gradients.unbind(1), parts)], total)
    # both summands of a row are multiplied with the row of the operand, so that one product adds them
    summands = gradients.shape[1]
    repeated = parts[0] if summands == 1 else parts[0].repeat_interleave(summands, dim=0)
    return multiply_into_float32(gradients.flatten(0, 1).T, repeated, total)


def _unsort(rows: Tensor, order: Tensor | None) -> Tensor:
    return rows if order is None else torch.empty_like(rows).index_copy_(0, order, rows)


# ------------------------------------------------------------------------------------------------ laying out


def lay_out(batch: PairBatch) -> Layout:
    """Bring a batch into the form that kernels read."""
    factors = make_factors(batch)
    product, relation = factors.product, batch.relation
    if isinstance(relation, Mined):
        relation = relation.base
    if isinstance(relation, Mined):
        raise TypeError("the Triton engine takes one miner, but the relation is mined already; give backend='chunked'")
    rows, columns, pairs = _sort_by_label(relation, factors.left.shape[1], *batch.shape)

    def make_factor(source: Tensor, order: Tensor | None, *, streamed: bool = False) -> Factor:
        halved = product.native and product.dtype == torch.bfloat16 and source.dtype != torch.bfloat16
        return Factor(
            source, order, unit=product.unit, dtype=product.dtype, scaled=product.scaled, rounded=product.rounded,
            halved=halved, streamed=streamed,
        )  # fmt: skip

    pool = find_pool_template(batch.similarity) if isinstance(batch.similarity, Pooled) else None
    left = make_factor(factors.left, rows)
    large = factors.right.numel() * product.dtype.itemsize > MAX_OPERAND_BYTES
    streamed = batch.table == "references" and large and batch.shape[1] >= batch.shape[0] and pool is None
    order = _sort_centers(columns, pool, factors.right)
    right = left if product.symmetric else make_factor(factors.right, order, streamed=streamed)
    operands = Operands(
        left.operand, right.operand, None if left.scale is None or right.scale is None else (left.scale, right.scale),
        pairs.labels, pairs.ids, pairs.valid, pairs.codes,
        product.precision, (*batch.shape, pad_width(factors.left.shape[1])), product.dtype, factors.left.device,
    )  # fmt: skip
    return Layout(
        left, right, operands, product, pairs.pairing, factors.link, factors.link_values, pairs.ordered, columns, pool
    )


def _sort_centers(columns: Tensor | None, pool: PoolTemplate | None, references: Tensor) -> Tensor | None:
    """Return the order of the references: the first centers of all classes, then the second."""
    if pool is None:
        return columns
    classes = len(references) // pool.centers
    by_class = torch.arange(len(references), device=references.device).view(classes, pool.centers)
    return (by_class if columns is None else by_class[columns]).T.flatten()


@dataclass(frozen=True, eq=False)
class _PairTensors:
    """The tensors from which kernels determine positive and negative pairs; see `Operands`."""

    pairing: Pairing
    ordered: bool = False
    labels: tuple[Tensor, Tensor] | None = None
    ids: tuple[Tensor, Tensor] | None = None
    valid: Tensor | None = None
    codes: Tensor | None = None


def _sort_by_label(relation: Relation, width: int, m: int, n: int) -> tuple[Tensor | None, Tensor | None, _PairTensors]:
    """Return the order of anchors and references in the operands, and the tensors of the relation in that order."""
    if not isinstance(relation, Labels):
        positive, negative = relation.masks()
        codes = positive.to(torch.uint8) + 2 * negative.to(torch.uint8)
        return None, None, _PairTensors(Pairing(uses_codes=True), codes=codes)
    labels, references, own = relation.labels, relation.reference_labels, relation.own
    rows: Tensor | None = None
    columns: Tensor | None = None
    if m * n >= MIN_SORTED_PAIRS:
        if references is None:
            rows = columns = labels.argsort(stable=True)
            labels = references = _rank_sorted(labels[rows])
        elif relation.ordered:
            rows = labels.argsort(stable=True)
            labels = labels[rows]
        else:
            both = torch.cat([labels, references])
            order = both.argsort(stable=True)
            ranks = torch.empty_like(order, dtype=torch.int32).index_copy_(0, order, _rank_sorted(both[order]))
            labels, references = ranks[:m], ranks[m:]
            rows = labels.argsort(stable=True)
            labels = labels[rows]
            if own is not None or 4 * n * width <= MAX_SORTED_BYTES:
                columns = references.argsort(stable=True)
                references = references[columns]
    elif references is None:
        references = labels
    ids = None
    if own is not None:
        row_ids, column_ids = own.to(torch.int32), torch.arange(n, device=own.device, dtype=torch.int32)
        ids = (row_ids if rows is None else row_ids[rows], column_ids if columns is None else column_ids[columns])
    valid = None if relation.valid is None else _as_bytes(relation.valid)
    if valid is not None and columns is not None:
        valid = valid[columns]
    ordered = rows is not None and valid is None and (columns is not None or relation.ordered)
    labels, references = labels.contiguous(), references.contiguous()
    return rows, columns, _PairTensors(_find_pairing(relation), ordered, (labels, references), ids, valid)


def _as_bytes(valid: Tensor) -> Tensor:
    """Return a mask as bytes, without a copy if it is boolean."""
    return (valid if valid.dtype == torch.bool else valid != 0).contiguous().view(torch.uint8)


def _find_pairing(relation: Labels) -> Pairing:
    """Return how kernels determine positive and negative pairs from labels."""
    return Pairing(
        same_batch=relation.reference_labels is None, own=relation.own is not None, valid=relation.valid is not None
    )


def _rank_sorted(labels: Tensor) -> Tensor:
    """Return the dense ranks of sorted labels, as int32."""
    steps = torch.zeros_like(labels, dtype=torch.int32)
    steps[1:] = labels[1:] != labels[:-1]
    return steps.cumsum(0, dtype=torch.int32)
