"""The product that kernels compute: its two factors, its precision, and the similarity as a formula of it.

Half-precision embeddings are multiplied without conversion: rows are scaled by powers of two, which is exact, and the
product is normalized.  So a bfloat16 product of bfloat16 embeddings is as accurate as a float32 product.  float32
embeddings follow ``torch.set_float32_matmul_precision``: ``"highest"``, the default, computes three TF32 products, which
are as accurate as float32; ``"high"`` computes one, of numbers rounded to TF32; ``"medium"`` rounds to bfloat16.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
from torch import Tensor

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
    Pooled,
    Similarity,
    SquaredEuclidean,
    multiplies_parts_fast,
    s,
    sqrt,
    where,
)

PARTS_FROM = 2**33
"""Multiplications of a batch from which products in parts save more time than their launches take."""


class ProductSpec(NamedTuple):
    """How the two factors are multiplied.

    Args:
        symmetric: the references are the anchors, so that one kernel can compute the gradients of a pair and its mirror.
        unit: rows are scaled to unit length.
        dtype: of the operands.
        native: the embeddings have this half-precision dtype; product and gradients must be as accurate as in float32.
        precision: Triton's name of the precision of float32 products.
        in_parts: gradients by similarities are multiplied with float32 operands as sums of bfloat16 parts.
    """

    symmetric: bool
    unit: bool
    dtype: torch.dtype
    native: bool
    precision: str
    in_parts: bool = False

    @property
    def is_bitwise_symmetric(self) -> bool:
        """Whether ``a·b`` and ``b·a`` have the same bits; the order of three TF32 products depends on the side."""
        return self.precision != "tf32x3" or self.dtype != torch.float32

    @property
    def scaled(self) -> bool:
        """Whether products are normalized instead of rows."""
        return self.native and self.unit

    @property
    def rounded(self) -> bool:
        """Whether operands must be rounded to TF32 first."""
        return self.precision == "tf32" and self.dtype == torch.float32

    @property
    def summands(self) -> int:
        """The number of matrices whose sum is the gradient by similarities: two or three of bfloat16, or one."""
        return 3 if self.in_parts else 2 if self.native and self.dtype == torch.bfloat16 else 1


class Factors(NamedTuple):
    """The two factors of a batch, and the similarity as a formula of their product.

    Args:
        left: the anchors, or a matrix that torch computed from them, with their graph; a table in its dtype.
        right: the same for the references.
        product: how they are multiplied.
        link: the similarity as a formula of the product.
        link_values: the values of the link's leaves.
    """

    left: Tensor
    right: Tensor
    product: ProductSpec
    link: Formula
    link_values: dict[Formula, Tensor]


def make_factors(batch: PairBatch) -> Factors:
    """Return the factors of a batch, or raise an error that says why it has none."""
    similarity, anchors = batch.similarity, batch.anchors
    if isinstance(similarity, Pooled):
        similarity = similarity.base
    if anchors is None or similarity is None:
        raise TypeError(
            "the Triton engine needs embeddings, but only their similarities are known; give backend='dense'"
        )
    if batch.dtype != torch.float32:
        raise TypeError(f"the Triton engine computes in float32, but embeddings are {batch.dtype}; give 'chunked'")
    allowed = torch.get_float32_matmul_precision()
    dtype = torch.bfloat16 if allowed == "medium" else torch.float32
    precision = "ieee" if not _has_tf32(anchors.device) else "tf32x3" if allowed == "highest" else "tf32"
    # the rounding of half-precision embeddings exceeds that of a difference of cosines; in float32 squared norms of
    # embeddings around their mean are more accurate
    rooted = type(similarity) is Euclidean and batch.half is not None
    from_cosine = similarity.normalize and (rooted or type(similarity) is SquaredEuclidean)
    if not from_cosine and type(similarity) not in (Cosine, Dot):
        product = ProductSpec(False, False, dtype, False, precision, _pays_parts(batch, dtype, precision))
        factors = batch.both_factors()
        return Factors(*_append_squares(similarity, *factors, product), product, *_link_distance(similarity, *factors))
    relation = batch.relation.base if isinstance(batch.relation, Mined) else batch.relation
    symmetric = batch.references is None and isinstance(relation, Labels) and relation.reference_labels is None
    half = batch.half
    dtype = dtype if half is None else half
    in_parts = _pays_parts(batch, dtype, precision)
    product = ProductSpec(symmetric, similarity.normalize, dtype, half is not None, precision, in_parts)
    left, right = (
        batch.both_sides() if batch.table is None else (anchors, batch.references)
    )  # a `Factor` converts tables
    right = left if right is None else right
    link, link_values = _link_cosine(left, right, rooted=rooted) if from_cosine else (s, {})
    return Factors(left, right, product, link, link_values)


def _pays_parts(batch: PairBatch, dtype: torch.dtype, precision: str) -> bool:
    """Whether the products of gradients with float32 operands take less time as products of bfloat16 parts."""
    assert batch.anchors is not None
    (m, n), width = batch.shape, batch.anchors.shape[1]
    is_exact = dtype == torch.float32 and precision == "tf32x3"
    return is_exact and m * n * width >= PARTS_FROM and multiplies_parts_fast(batch.anchors.device)


@functools.cache
def _has_tf32(device: torch.device) -> bool:
    return device.type != "cuda" or torch.cuda.get_device_capability(device)[0] >= 8


# ------------------------------------------------------------------------------------------------ distances


def _append_squares(similarity: Similarity, left: Tensor, right: Tensor, product: ProductSpec) -> tuple[Tensor, Tensor]:
    """Append squared norms as dimensions, so that the plain product is the squared distance or ratio."""
    a, b = similarity.squares(left)[:, None], similarity.squares(right)[:, None]
    if type(similarity) in (SquaredEuclidean, Euclidean):
        # −‖a − b‖² = (2a, −‖a‖², −1) · (b, 1, ‖b‖²)
        of_left, of_right = _split(a, product), _split(b, product)
        ones, minus = [torch.ones_like(b)] * len(of_left), [-torch.ones_like(a)] * len(of_right)
        return (
            torch.cat([2.0 * left, *[-each for each in of_left], *minus], 1),
            torch.cat([right, *ones, *of_right], 1),
        )
    if type(similarity) is SNR:
        # −‖a − b‖² / ‖a‖² = (2a / ‖a‖², −1 / ‖a‖², −1) · (b, ‖b‖², 1), and zero where there is no signal
        silent = a == 0.0
        inverse = torch.where(silent, 0.0, 1.0 / a.masked_fill(silent, 1.0))
        of_left, of_right = _split(-inverse, product), _split(b, product)
        # the other products of summands are below rounding
        pairs = [(x, y) for p, x in enumerate(of_left) for y in of_right[: len(of_right) - p]]
        return (
            torch.cat([2.0 * left * inverse, *[x for x, _ in pairs], silent.to(a.dtype) - 1.0], 1),
            torch.cat([right, *[y for _, y in pairs], torch.ones_like(b)], 1),
        )
    raise TypeError(
        f"the Triton engine has no formula of the similarity {type(similarity).__name__}; give backend='chunked'"
    )


def _split(numbers: Tensor, product: ProductSpec) -> list[Tensor]:
    """Split numbers into summands that the product does not round; the gradient goes to the first."""
    if product.dtype == torch.float32 and not product.rounded:
        return [numbers]
    summands, rest = [], numbers.detach()
    for _ in range(3):
        nearest = rest.to(product.dtype).float()
        if product.rounded:
            nearest = ((rest.contiguous().view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)
        summands.append(nearest)
        rest = rest - nearest
    return [numbers + (summands[0] - numbers.detach()), *summands[1:]]


def _raise(_batch: PairBatch) -> Tensor:
    raise AssertionError("the value of this leaf comes from `Factors.link_values`")


# the nodes hold no values, because the cache of kernels would keep those of a batch alive
_ROWS, _COLUMNS = PerAnchor("‖a‖²", _raise), PerReference("‖b‖²", _raise)
_FROM_COSINE = 2.0 * s - _ROWS - _COLUMNS
_ROUNDING = 4.0 * torch.finfo(torch.float32).eps * (_ROWS + _COLUMNS)
_DISTANCE = -sqrt(where(-s > _ROUNDING, -s, 0.0))
_DISTANCE_FROM_COSINE = -sqrt(where(_ROUNDING < -_FROM_COSINE, -_FROM_COSINE, 0.0))


def _link_distance(similarity: Similarity, left: Tensor, right: Tensor) -> tuple[Formula, dict[Formula, Tensor]]:
    """Return the similarity as a formula of the product of `_append_squares`, and the values of its leaves."""
    if type(similarity) is not Euclidean:
        return s, {}
    with torch.no_grad():
        a, b = similarity.squares(left), similarity.squares(right)
    return _DISTANCE, {_ROWS: a, _COLUMNS: b}


def _link_cosine(left: Tensor, right: Tensor, *, rooted: bool) -> tuple[Formula, dict[Formula, Tensor]]:
    """Return minus the (squared) distance of unit vectors from their cosine, ``2s − 1 − 1``; a row of zeros has norm 0."""
    tiny = torch.finfo(torch.float32).tiny
    a, b = (
        (torch.linalg.vector_norm(side.detach(), torch.inf, dim=1) >= tiny).to(torch.float32) for side in (left, right)
    )
    return _DISTANCE_FROM_COSINE if rooted else _FROM_COSINE, {_ROWS: a, _COLUMNS: b}
