"""What the kernels multiply, and in which order: embeddings by label, in the dtype that the tensor cores take.

Half-precision embeddings are multiplied as they were given: scaled by powers of two, which is exact, with their lengths
taken off the product.  So a bfloat16 product of bfloat16 embeddings is as exact as a float32 one.  float32 embeddings
follow ``torch.set_float32_matmul_precision``: ``"highest"``, the default, is three TF32 products, as exact as float32;
``"high"`` is one; ``"medium"`` rounds to bfloat16.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from likewise.backends.fused.program import Operands
from likewise.backends.fused.rows import Factor
from likewise.backends.fused.source import Pairing
from likewise.core.formula import Formula, PerAnchor, PerReference, s, sqrt, where
from likewise.core.problem import Problem
from likewise.core.relation import Labels, Mined, Relation
from likewise.core.similarity import SNR, Cosine, Dot, Euclidean, Similarity, SquaredEuclidean

SORT_FROM = 2**20
"""Pairs from which on sorting by label pays: most tiles then have negatives alone."""

SORT_UP_TO = 2**28
"""Bytes of references that may be copied into another order."""

PANEL = 256 * 2**20
"""Bytes for the gradient by the similarities of a panel."""


class Slopes(Protocol):
    """Whoever writes the gradient by the similarities."""

    @property
    def symmetric(self) -> bool:
        """Whether what is written has each pair's gradient from both its sides."""

    def write(self, by: Formula, rows: tuple[int, int], columns: tuple[int, int], split: bool) -> tuple[Tensor, ...]:
        """The gradient by the similarities (or by a number per reference) of a rectangle, in one matrix or two."""


@dataclass(eq=False)
class Arranged:
    """A problem as the kernels see it.

    Args:
        left: the anchors' side of the product.
        right: the references'; the same where they are the anchors and a pair is the same from both sides.
        operands: both, and who is positive to whom.
        pairing: how kernels know that.
        bend: the similarity as a formula of the product.
        numbers: what that formula is given.
        ordered: anchors and references are in the order of their labels.
        split: gradients are to be as exact as float32 although they are multiplied in 16 bits.
    """

    left: Factor
    right: Factor
    operands: Operands
    pairing: Pairing
    bend: Formula
    numbers: dict[Formula, Tensor]
    ordered: bool
    split: bool

    @property
    def symmetric(self) -> bool:
        """Whether one kernel can serve a pair from both its sides."""
        return self.left is self.right

    @property
    def mirrors(self) -> bool:
        """Whether a product is the same to the last bit from both sides: three TF32 ones are added in an order of theirs."""
        return self.operands.precision != "tf32x3" or self.operands.left.dtype != torch.float32

    def sorted_rows(self, vector: Tensor) -> Tensor:
        """A vector with one entry per anchor, in the order of the operands."""
        return vector if self.left.order is None else vector[self.left.order]

    def sorted_columns(self, vector: Tensor) -> Tensor:
        """A vector with one entry per reference, in the order of the operands."""
        return vector if self.right.order is None else vector[self.right.order]

    def unsorted_rows(self, vector: Tensor) -> Tensor:
        """Back in the order of the problem."""
        return _unsorted(vector, self.left.order)

    def gradients(
        self, slopes: Slopes, of_left: bool, of_right: bool, dtype: torch.dtype | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """The gradient by the sources of both factors, panel by panel; in their dtypes unless another is given."""
        if not (of_left or of_right):
            return None, None
        if slopes.symmetric:
            return self._symmetric(slopes, dtype), None
        # panels along the longer side, whose rows are complete in them; what they add up to is the shorter one
        wide = len(self.operands.right) >= len(self.operands.left)
        long, short = (self.right, self.left) if wide else (self.left, self.right)
        of_long, of_short = (of_right, of_left) if wide else (of_left, of_right)
        long_operand, short_operand = _multiplied(long.operand), _multiplied(short.operand)
        summed = torch.zeros_like(short_operand, dtype=torch.float32) if of_short else None
        result = long.empty(dtype) if of_long else None
        for panel in self._panels(len(long_operand), len(short_operand)):
            whole = (0, len(short_operand))
            parts = slopes.write(s, *((whole, panel) if wide else (panel, whole)), self.split)
            parts = parts if wide else tuple(part.T for part in parts)  # short x panel
            if summed is not None:
                for part in parts:
                    summed += _multiply(part, long_operand[slice(*panel)])
            if result is not None:
                long.back(_sum_of_products([part.T for part in parts], short_operand), panel[0], result)
            del parts
        total = None
        if summed is not None:
            total = short.empty(dtype)
            short.back(summed, 0, total)
        return (total, result) if wide else (result, total)

    def _symmetric(self, slopes: Slopes, dtype: torch.dtype | None) -> Tensor:
        operand, result = _multiplied(self.right.operand), self.right.empty(dtype)
        for panel in self._panels(len(operand), len(operand)):
            parts = slopes.write(s, panel, (0, len(operand)), self.split)
            self.right.back(_sum_of_products(list(parts), operand), panel[0], result)
            del parts
        return result

    def by_column(self, slopes: Slopes, node: Formula) -> Tensor:
        """The gradient by a number per reference."""
        m, n = len(self.operands.left), len(self.operands.right)
        sums = [slopes.write(node, (0, m), columns, False)[0].float().sum(dim=0) for columns in self._panels(n, m)]
        return _unsorted(torch.cat(sums), self.right.order)

    def _panels(self, along: int, across: int) -> list[tuple[int, int]]:
        bytes_each = (2 if self.operands.left.dtype == torch.bfloat16 else 4) * (2 if self.split else 1)
        step = max(128, PANEL // (across * bytes_each) // 128 * 128)
        return [(first, min(first + step, along)) for first in range(0, along, step)]


def _multiplied(operand: Tensor) -> Tensor:
    # a gradient does not fit float16's range
    return operand.float() if operand.dtype == torch.float16 else operand


def _sum_of_products(parts: list[Tensor], operand: Tensor) -> Tensor:
    total = _multiply(parts[0], operand)
    for part in parts[1:]:
        total += _multiply(part, operand)
    return total


def _unsorted(rows: Tensor, order: Tensor | None) -> Tensor:
    return rows if order is None else torch.empty_like(rows).index_copy_(0, order, rows)


def _multiply(left: Tensor, right: Tensor) -> Tensor:
    """A product with a float32 result."""
    if left.dtype == torch.float32:
        return left @ right
    if left.is_cuda and _TAKES_OUT_DTYPE:
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()


_TAKES_OUT_DTYPE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 8)


# ------------------------------------------------------------------------------------------------ similarities


def _as_product(similarity: Similarity, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Factors whose plain product is the similarity before it is bent: squared norms become dimensions."""
    if type(similarity) in (SquaredEuclidean, Euclidean):
        # −‖a − b‖² = (2a, −‖a‖², −1) · (b, 1, ‖b‖²)
        a, b = similarity.squares(left)[:, None], similarity.squares(right)[:, None]
        return torch.cat([2.0 * left, -a, -torch.ones_like(a)], 1), torch.cat([right, torch.ones_like(b), b], 1)
    if type(similarity) is SNR:
        # −‖a − b‖² / ‖a‖² = (2a / ‖a‖², −1 / ‖a‖², −1) · (b, ‖b‖², 1), and zero where there is no signal
        a, b = similarity.squares(left)[:, None], similarity.squares(right)[:, None]
        silent = a == 0.0
        inverse = torch.where(silent, 0.0, 1.0 / a.masked_fill(silent, 1.0))
        one = torch.ones_like(b)
        return torch.cat([2.0 * left * inverse, -inverse, silent.to(a.dtype) - 1.0], 1), torch.cat([right, b, one], 1)
    raise TypeError(f"the fused engine does not know {type(similarity).__name__}; give backend='streamed'")


def _given(_problem: Problem) -> Tensor:
    raise AssertionError("the number is given, not computed")


# formulas without the numbers of any batch: plans that are made from them would keep those
_ROWS, _COLUMNS = PerAnchor("‖a‖²", _given), PerReference("‖b‖²", _given)
_CHORD = 2.0 * s - _ROWS - _COLUMNS
_DISTANCE = -sqrt(where(4.0 * torch.finfo(torch.float32).eps * (_ROWS + _COLUMNS) < -s, -s, 0.0))


def _bend(similarity: Similarity, left: Tensor, right: Tensor) -> tuple[Formula, dict[Formula, Tensor]]:
    """The similarity as a formula of that product, and the numbers in it."""
    if type(similarity) is not Euclidean:
        return s, {}
    with torch.no_grad():
        a, b = similarity.squares(left), similarity.squares(right)
    return _DISTANCE, {_ROWS: a, _COLUMNS: b}


def _chord(problem: Problem) -> tuple[Formula, dict[Formula, Tensor]]:
    """Minus the squared distance of unit vectors from their cosine, ``2s − 1 − 1``; a row of zeros has no length."""
    assert problem.anchors is not None
    tiny = torch.finfo(torch.float32).tiny
    a = (problem.anchors.detach().abs().amax(dim=1) >= tiny).to(torch.float32)
    b = a if problem.references is None else (problem.references.detach().abs().amax(dim=1) >= tiny).to(torch.float32)
    return _CHORD, {_ROWS: a, _COLUMNS: b}


# ------------------------------------------------------------------------------------------------ arranging


def arrange(problem: Problem) -> Arranged:
    """Put a problem into the form that kernels take, or say in one sentence why that cannot be."""
    similarity = problem.similarity
    if problem.anchors is None or similarity is None:
        raise TypeError(
            "the fused engine needs embeddings, but only their similarities are known; give backend='dense'"
        )
    if problem.dtype != torch.float32:
        raise TypeError(f"the fused engine computes in float32, but embeddings are {problem.dtype}; give 'streamed'")
    relation = problem.relation.base if isinstance(problem.relation, Mined) else problem.relation
    if isinstance(relation, Mined):
        raise TypeError("the fused engine takes one miner, but the relation is mined already; give backend='streamed'")
    itself = problem.references is None and isinstance(relation, Labels) and relation.reference_labels is None
    rows, columns, marks = _order(relation, problem.anchors.shape[1], *problem.shape)
    dtype = torch.bfloat16 if torch.get_float32_matmul_precision() == "medium" else torch.float32
    bend: Formula = s
    numbers: dict[Formula, Tensor] = {}
    split = False
    if type(similarity) in (Cosine, Dot) or (type(similarity) is SquaredEuclidean and similarity.normalize):
        unit = similarity.normalize
        if type(similarity) is SquaredEuclidean:
            bend, numbers = _chord(problem)
        if itself:
            given = problem.given
            dtype = dtype if given is None else given.dtype
            left = right = Factor(problem.anchors, rows, unit=unit, dtype=dtype, given=given)
            split = given is not None and dtype == torch.bfloat16
        else:
            references = problem.anchors if problem.references is None else problem.references
            left = Factor(problem.anchors, rows, unit=unit, dtype=dtype)
            right = Factor(references, columns, unit=unit, dtype=dtype)
    else:
        factors = problem.factors()
        bend, numbers = _bend(similarity, *factors)
        left, right = (
            Factor(factor, order, unit=False, dtype=dtype)
            for factor, order in zip(_as_product(similarity, *factors), (rows, columns), strict=True)
        )
    scale = None if left.scale is None or right.scale is None else (left.scale, right.scale)
    operands = Operands(
        left.operand, right.operand, scale, marks.labels, marks.ids, marks.valid, marks.codes,
        _precision(left.operand.device),
    )  # fmt: skip
    return Arranged(left, right, operands, marks.pairing, bend, numbers, marks.ordered, split)


@functools.cache
def _capable(device: torch.device) -> bool:
    return device.type != "cuda" or torch.cuda.get_device_capability(device)[0] >= 8


def _precision(device: torch.device) -> str:
    if not _capable(device):
        return "ieee"
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


@dataclass(frozen=True, eq=False)
class _Marks:
    pairing: Pairing
    ordered: bool = False
    labels: tuple[Tensor, Tensor] | None = None
    ids: tuple[Tensor, Tensor] | None = None
    valid: Tensor | None = None
    codes: Tensor | None = None


def _order(relation: Relation, width: int, m: int, n: int) -> tuple[Tensor | None, Tensor | None, _Marks]:
    """The order of anchors and references, and who is positive to whom in it."""
    if not isinstance(relation, Labels):
        positive, negative = relation.masks()
        return None, None, _Marks(Pairing(coded=True), codes=positive.to(torch.uint8) + 2 * negative.to(torch.uint8))
    labels, references, own = relation.labels, relation.reference_labels, relation.own
    rows: Tensor | None = None
    columns: Tensor | None = None
    if m * n >= SORT_FROM:
        if references is None:
            rows = columns = labels.argsort(stable=True)
            labels = references = _ranks(labels[rows])
        else:
            both = torch.cat([labels, references])
            order = both.argsort(stable=True)
            ranks = torch.empty_like(order, dtype=torch.int32).index_copy_(0, order, _ranks(both[order]))
            labels, references = ranks[:m], ranks[m:]
            rows = labels.argsort(stable=True)
            labels = labels[rows]
            if not relation.ordered and (own is not None or 4 * n * width <= SORT_UP_TO):
                columns = references.argsort(stable=True)
                references = references[columns]
    elif references is None:
        references = labels
    ids = None
    if own is not None or relation.reference_labels is None:
        # what is made while a graph is recorded belongs to that graph
        recorded = labels.is_cuda and torch.cuda.is_current_stream_capturing()
        everyone = (_count_up.__wrapped__ if recorded else _count_up)(n, labels.device)
        mine = everyone if own is None else own.to(torch.int32)
        ids = (mine if rows is None else mine[rows], everyone if columns is None else everyone[columns])
    valid = None
    if relation.valid is not None:
        valid = (relation.valid if columns is None else relation.valid[columns]).to(torch.uint8)
    pairing = Pairing(own=ids is not None, valid=valid is not None)
    ordered = rows is not None and valid is None and (columns is not None or relation.ordered)
    return rows, columns, _Marks(pairing, ordered, (labels.contiguous(), references.contiguous()), ids, valid)


@functools.lru_cache(maxsize=8)
def _count_up(n: int, device: torch.device) -> Tensor:
    return torch.arange(n, device=device, dtype=torch.int32)


def _ranks(ordered: Tensor) -> Tensor:
    """Labels that are in order, of any width, as small numbers in the same order."""
    steps = torch.zeros_like(ordered, dtype=torch.int32)
    steps[1:] = ordered[1:] != ordered[:-1]
    return steps.cumsum(0, dtype=torch.int32)
