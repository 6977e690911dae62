"""What the kernels multiply, and in which order: embeddings by label, in the dtype that the tensor cores take.

Half-precision embeddings are multiplied as they were given: scaled by powers of two, which is exact, with their lengths
taken off the product.  So a bfloat16 product of bfloat16 embeddings is as exact as a float32 one.  float32 embeddings
follow ``torch.set_float32_matmul_precision``: ``"highest"``, the default, is three TF32 products, as exact as float32;
``"high"`` is one, of numbers that were rounded to TF32; ``"medium"`` rounds to bfloat16.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from likewise.engines.triton.program import Operands
from likewise.engines.triton.rows import Factor, padded
from likewise.engines.triton.source import Pairing
from likewise.formula import (
    SNR,
    Cosine,
    Dot,
    Euclidean,
    Formula,
    Labels,
    Mined,
    PairBatch,
    PerAnchor,
    PerReference,
    Relation,
    Similarity,
    SquaredEuclidean,
    s,
    sqrt,
    where,
)

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


class Manner(NamedTuple):
    """How embeddings are multiplied.

    Args:
        symmetric: the references are the anchors, so that one kernel can serve a pair from both its sides.
        unit: rows are scaled to unit length.
        dtype: of what is multiplied.
        given: that is the dtype in which all of them were given: the product is to be as exact as float32's, and so are
            the gradients.
        precision: Triton's name for how float32 is multiplied.
    """

    symmetric: bool
    unit: bool
    dtype: torch.dtype
    given: bool
    precision: str

    @property
    def mirrors(self) -> bool:
        """Whether a product is the same to the last bit from both sides: three TF32 ones are added in an order of theirs."""
        return self.precision != "tf32x3" or self.dtype != torch.float32

    @property
    def scaled(self) -> bool:
        """Whether lengths are taken off the product."""
        return self.given and self.unit

    @property
    def rounded(self) -> bool:
        """Whether numbers must be rounded to TF32 before."""
        return self.precision == "tf32" and self.dtype == torch.float32

    @property
    def split(self) -> bool:
        """Whether slopes take two matrices of 16 bits."""
        return self.given and self.dtype == torch.bfloat16


class Compared(NamedTuple):
    """The two factors of a batch, and how its similarity is made of their product.

    Args:
        left: anchors, or a factor that torch made of them, with their graph.
        right: references.
        manner: how they are multiplied.
        bend: the similarity as a formula of the product.
        numbers: what that formula is given.
    """

    left: Tensor
    right: Tensor
    manner: Manner
    bend: Formula
    numbers: dict[Formula, Tensor]


@dataclass(eq=False)
class Arranged:
    """A batch as the kernels see it.

    Args:
        left: the anchors' side of the product.
        right: the references'; the same where they are the anchors and a pair is the same from both sides.
        operands: both, and who is positive to whom.
        manner: how they are multiplied.
        pairing: how kernels know who is positive to whom.
        bend: the similarity as a formula of the product.
        numbers: what that formula is given.
        ordered: anchors and references are in the order of their labels.
    """

    left: Factor
    right: Factor
    operands: Operands
    manner: Manner
    pairing: Pairing
    bend: Formula
    numbers: dict[Formula, Tensor]
    ordered: bool

    def sorted_rows(self, vector: Tensor) -> Tensor:
        """A vector with one entry per anchor, in the order of the operands."""
        return vector if self.left.order is None else vector[self.left.order]

    def sorted_columns(self, vector: Tensor) -> Tensor:
        """A vector with one entry per reference, in the order of the operands."""
        return vector if self.right.order is None else vector[self.right.order]

    def unsorted_rows(self, vector: Tensor) -> Tensor:
        """Back in the order of the batch."""
        return _unsorted(vector, self.left.order)

    def gradients(self, slopes: Slopes, of_left: bool, of_right: bool) -> tuple[Tensor | None, Tensor | None]:
        """The gradient by the sources of both factors, panel by panel."""
        if not (of_left or of_right):
            return None, None
        if slopes.symmetric:
            return self._symmetric(slopes), None
        # panels along the longer side, whose rows are complete in them; what they add up to is the shorter one
        m, n, width = self.operands.size
        wide = n >= m
        long, short = (self.right, self.left) if wide else (self.left, self.right)
        of_long, of_short = (of_right, of_left) if wide else (of_left, of_right)
        short_operand, whole = multiplied(short.operand), (0, min(m, n))
        summed = short_operand.new_zeros(whole[1], width, dtype=torch.float32) if of_short else None
        result = long.empty() if of_long else None
        for panel in self._panels(max(m, n), min(m, n)):
            parts = slopes.write(s, *((whole, panel) if wide else (panel, whole)), self.manner.split)
            parts = parts if wide else tuple(part.T for part in parts)  # short x panel
            if summed is not None:
                summed += sum_of_products(parts, multiplied(long.operand[slice(*panel)]))
            if result is not None:
                long.back(sum_of_products([part.T for part in parts], short_operand), panel[0], result)
            del parts
        total = None
        if summed is not None:
            total = short.empty()
            short.back(summed, 0, total)
        return (total, result) if wide else (result, total)

    def _symmetric(self, slopes: Slopes) -> Tensor:
        operand, result = multiplied(self.right.operand), self.right.empty()
        for panel in self._panels(len(operand), len(operand)):
            parts = slopes.write(s, panel, (0, len(operand)), self.manner.split)
            self.right.back(sum_of_products(parts, operand), panel[0], result)
            del parts
        return result

    def by_column(self, slopes: Slopes, node: Formula) -> Tensor:
        """The gradient by a number per reference."""
        m, n, _ = self.operands.size
        sums = [slopes.write(node, (0, m), columns, False)[0].float().sum(dim=0) for columns in self._panels(n, m)]
        return _unsorted(torch.cat(sums), self.right.order)

    def _panels(self, along: int, across: int) -> list[tuple[int, int]]:
        bytes_each = self.operands.slope_dtype.itemsize * (2 if self.manner.split else 1)
        step = max(128, PANEL // (across * bytes_each) // 128 * 128)
        return [(first, min(first + step, along)) for first in range(0, along, step)]


def multiplied(operand: Tensor) -> Tensor:
    """An operand as slopes are multiplied with it: a gradient does not fit float16's range."""
    return operand.float() if operand.dtype == torch.float16 else operand


def sum_of_products(parts: Sequence[Tensor], operand: Tensor) -> Tensor:
    """The product of slopes with an operand; slopes may be the sum of several matrices."""
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


def _as_product(similarity: Similarity, left: Tensor, right: Tensor, manner: Manner) -> tuple[Tensor, Tensor]:
    """Factors whose plain product is the similarity before it is bent: squared norms become dimensions."""
    a, b = similarity.squares(left)[:, None], similarity.squares(right)[:, None]
    if type(similarity) in (SquaredEuclidean, Euclidean):
        # −‖a − b‖² = (2a, −‖a‖², −1) · (b, 1, ‖b‖²)
        ours, theirs = _pieces(a, manner), _pieces(b, manner)
        ones, minus = [torch.ones_like(b)] * len(ours), [-torch.ones_like(a)] * len(theirs)
        return torch.cat([2.0 * left, *[-each for each in ours], *minus], 1), torch.cat([right, *ones, *theirs], 1)
    if type(similarity) is SNR:
        # −‖a − b‖² / ‖a‖² = (2a / ‖a‖², −1 / ‖a‖², −1) · (b, ‖b‖², 1), and zero where there is no signal
        silent = a == 0.0
        inverse = torch.where(silent, 0.0, 1.0 / a.masked_fill(silent, 1.0))
        ours, theirs = _pieces(-inverse, manner), _pieces(b, manner)
        pairs = [(x, y) for p, x in enumerate(ours) for y in theirs[: len(theirs) - p]]  # the others are below rounding
        return (
            torch.cat([2.0 * left * inverse, *[x for x, _ in pairs], silent.to(a.dtype) - 1.0], 1),
            torch.cat([right, *[y for _, y in pairs], torch.ones_like(b)], 1),
        )
    raise TypeError(f"the Triton engine does not know {type(similarity).__name__}; give backend='chunked'")


def _pieces(numbers: Tensor, manner: Manner) -> list[Tensor]:
    """Numbers as sums of others that a rounded product does not round; the first of them has the gradient."""
    if manner.dtype == torch.float32 and not manner.rounded:
        return [numbers]
    pieces, rest = [], numbers.detach()
    for _ in range(3):
        near = rest.to(manner.dtype).float()
        if manner.rounded:
            near = ((rest.contiguous().view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)
        pieces.append(near)
        rest = rest - near
    return [numbers + (pieces[0] - numbers.detach()), *pieces[1:]]


def _given(_problem: PairBatch) -> Tensor:
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


def _chord(batch: PairBatch) -> tuple[Formula, dict[Formula, Tensor]]:
    """Minus the squared distance of unit vectors from their cosine, ``2s − 1 − 1``; a row of zeros has no length."""
    assert batch.anchors is not None
    tiny = torch.finfo(torch.float32).tiny
    a = (batch.anchors.detach().abs().amax(dim=1) >= tiny).to(torch.float32)
    b = a if batch.references is None else (batch.references.detach().abs().amax(dim=1) >= tiny).to(torch.float32)
    return _CHORD, {_ROWS: a, _COLUMNS: b}


# ------------------------------------------------------------------------------------------------ arranging


def compared(batch: PairBatch) -> Compared:
    """The factors of a batch, or one sentence that says why there can be none."""
    similarity, anchors = batch.similarity, batch.anchors
    if anchors is None or similarity is None:
        raise TypeError(
            "the Triton engine needs embeddings, but only their similarities are known; give backend='dense'"
        )
    if batch.dtype != torch.float32:
        raise TypeError(f"the Triton engine computes in float32, but embeddings are {batch.dtype}; give 'chunked'")
    allowed = torch.get_float32_matmul_precision()
    dtype = torch.bfloat16 if allowed == "medium" else torch.float32
    precision = "ieee" if not _capable(anchors.device) else "tf32x3" if allowed == "highest" else "tf32"
    chord = type(similarity) is SquaredEuclidean and similarity.normalize
    if not chord and type(similarity) not in (Cosine, Dot):
        manner = Manner(False, False, dtype, False, precision)
        factors = batch.both_factors()
        return Compared(*_as_product(similarity, *factors, manner), manner, *_bend(similarity, *factors))
    relation = batch.relation.base if isinstance(batch.relation, Mined) else batch.relation
    itself = batch.references is None and isinstance(relation, Labels) and relation.reference_labels is None
    half = batch.half
    manner = Manner(itself, similarity.normalize, dtype if half is None else half, half is not None, precision)
    anchors = anchors.to(batch.dtype)
    references = anchors if batch.references is None else batch.references.to(batch.dtype)
    bend, numbers = _chord(batch) if chord else (s, {})
    return Compared(anchors, references, manner, bend, numbers)


def arrange(batch: PairBatch) -> Arranged:
    """Put a batch into the form that kernels take."""
    both = compared(batch)
    manner, relation = both.manner, batch.relation
    if isinstance(relation, Mined):
        relation = relation.base
    if isinstance(relation, Mined):
        raise TypeError("the Triton engine takes one miner, but the relation is mined already; give backend='chunked'")
    rows, columns, marks = _order(relation, both.left.shape[1], *batch.shape)

    def factor(source: Tensor, order: Tensor | None) -> Factor:
        unit, scaled, rounded = manner.unit, manner.scaled, manner.rounded
        return Factor(source, order, unit=unit, dtype=manner.dtype, scaled=scaled, rounded=rounded)

    left = factor(both.left, rows)
    right = left if manner.symmetric else factor(both.right, columns)
    operands = Operands(
        left.operand, right.operand, None if left.scale is None or right.scale is None else (left.scale, right.scale),
        marks.labels, marks.ids, marks.valid, marks.codes,
        manner.precision, (*batch.shape, padded(both.left.shape[1])), manner.dtype, both.left.device,
    )  # fmt: skip
    return Arranged(left, right, operands, manner, marks.pairing, both.bend, both.numbers, marks.ordered)


@functools.cache
def _capable(device: torch.device) -> bool:
    return device.type != "cuda" or torch.cuda.get_device_capability(device)[0] >= 8


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
    if own is not None:
        mine, everyone = own.to(torch.int32), torch.arange(n, device=own.device, dtype=torch.int32)
        ids = (mine if rows is None else mine[rows], everyone if columns is None else everyone[columns])
    valid = None if relation.valid is None else in_bytes(relation.valid)
    if valid is not None and columns is not None:
        valid = valid[columns]
    pairing = pairing_of(relation)
    ordered = rows is not None and valid is None and (columns is not None or relation.ordered)
    return rows, columns, _Marks(pairing, ordered, (labels.contiguous(), references.contiguous()), ids, valid)


def in_bytes(valid: Tensor) -> Tensor:
    """Booleans as the bytes that they are."""
    return (valid if valid.dtype == torch.bool else valid != 0).contiguous().view(torch.uint8)


def pairing_of(relation: Labels) -> Pairing:
    """How kernels know from labels who is positive to whom."""
    return Pairing(
        itself=relation.reference_labels is None, own=relation.own is not None, valid=relation.valid is not None
    )


def _ranks(ordered: Tensor) -> Tensor:
    """Labels that are in order, of any width, as small numbers in the same order."""
    steps = torch.zeros_like(ordered, dtype=torch.int32)
    steps[1:] = ordered[1:] != ordered[:-1]
    return steps.cumsum(0, dtype=torch.int32)
