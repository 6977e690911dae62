"""Products of float32 matrices on a GPU as products of their bfloat16 parts, which accumulate in float32.

The 24 digits of a float32 number are those of three bfloat16 numbers: the number rounded, the rest rounded, and the rest
of that.  Six products of parts have all summands that float32 can hold.  On GPUs for data centers, which multiply bfloat16
a dozen times as fast as float32, they take half of the time.  Measured on an H200 with unit vectors, 8,192 x 512 x 8,192
(``python -m benchmarks.engines.parts``): 0.72 against 1.46 ms with the splitting, an error of 2.1e-8 against 1.8e-8.

Tensor cores round sums towards zero, so that sums of products of one sign are up to 6e-7 too small; where a product is
subtracted from a number of its size, torch's float32 product is used, except for gradients.  Infinite numbers, and those near the largest one,
give NaN; of numbers below 1e-33 some digits are lost.

`likewise.metrics.triton_products` multiplies parts in one order for all pairs, for metrics, which compare similarities
exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor
from torch.nn import Parameter

_TORCH = tuple(int(number) for number in torch.__version__.split("+")[0].split(".")[:2])

CAPABILITIES = ((8, 0), (9, 0), (10, 0), (10, 3))
"""Compute capabilities of GPUs for data centers; others multiply bfloat16 at most four times as fast as float32."""

LEAST_MULTIPLICATIONS = 2**32
"""Multiplications of a product for which parts save more time than their launches take."""

LEAST_REUSE = 700
"""Multiplications for each number that is split, for which parts save more time than splitting takes."""

MOST_NUMBERS = 2**26
"""Numbers of both factors that are split at once; their parts and copies of them take about 1.2 GB."""

ALIGNMENT = 8
"""The sides of products in parts, and the rows of chunks, are multiples of this; other products of bfloat16 are slow."""

SUMMANDS, MOST_CHUNKS = 1024, 16
"""Products that a GPU adds at a time, and the number of such chunks of a sum: the error of rounding towards zero grows with
the number of summands."""


def pays_parts(left: Tensor, right: Tensor) -> bool:
    """Return whether ``left rightᵀ`` takes less time in parts, and the caller wants all digits of float32.

    Examples:
        >>> pays_parts(torch.zeros(8, 8), torch.zeros(8, 8))
        False
    """
    return (
        left.is_cuda
        and left.dtype == right.dtype == torch.float32
        and repays_splitting(left, right)
        and not (len(left) % ALIGNMENT or len(right) % ALIGNMENT or left.shape[1] % ALIGNMENT)
        and torch.get_float32_matmul_precision() == "highest"
        and multiplies_parts_fast(left.device)
        and {type(left), type(right)} <= {Tensor, Parameter}
    )


def repays_splitting(left: Tensor, right: Tensor) -> bool:
    """Return whether a product is large, and each of its numbers is multiplied often.

    Examples:
        >>> repays_splitting(torch.zeros(8, 8), torch.zeros(8, 8))
        False
    """
    numbers, multiplications = left.numel() + right.numel(), len(left) * right.numel()
    return numbers <= MOST_NUMBERS and multiplications >= max(LEAST_MULTIPLICATIONS, LEAST_REUSE * numbers)


@cache
def multiplies_parts_fast(device: torch.device) -> bool:
    """Return whether a GPU multiplies bfloat16 far faster than float32, and torch accumulates the products in float32.

    Examples:
        >>> multiplies_parts_fast(torch.device("cpu"))
        False
    """
    return accumulates_in_float32(device) and torch.cuda.get_device_capability(device) in CAPABILITIES


def accumulates_in_float32(device: torch.device) -> bool:
    """Return whether torch multiplies half-precision matrices into a float32 result on a device.

    Examples:
        >>> accumulates_in_float32(torch.device("cpu"))
        False
    """
    return device.type == "cuda" and torch.version.hip is None and _TORCH >= (2, 8)


def split_into_parts(matrix: Tensor, number: int) -> list[Tensor]:
    """Split a float32 matrix in bfloat16 parts, the largest first.

    Examples:
        >>> high, low = split_into_parts(torch.tensor([1.001]), 2)
        >>> high.float() + low.float()
        tensor([1.0010])
    """
    parts = [matrix.to(torch.bfloat16)]
    rest = matrix - parts[0]
    for _ in range(number - 1):
        parts.append(rest.to(torch.bfloat16))
        rest.sub_(parts[-1])
    return parts


def multiply_parts(left: Sequence[Tensor], right: Sequence[Tensor]) -> Tensor:
    """Return ``left rightᵀ`` in float32 from the parts of both, without the products that are too small to matter.

    Examples:
        >>> rows = torch.tensor([[1.001, 2.0]])
        >>> multiply_parts(split_into_parts(rows, 3), split_into_parts(rows, 3))
        tensor([[5.0020]])
    """
    pairs = pair_parts(left, right)
    (m, inner), n = left[0].shape, len(right[0])
    # copies of the factors take less time than adding to the product
    if m * n > (m + n) * inner and inner < 2 * SUMMANDS:
        both = [torch.cat(some, dim=1) for some in zip(*pairs, strict=True)]
        return multiply_into_float32(both[0], both[1].T)
    return add_part_products([(some, others.T) for some, others in pairs], None)


def add_part_products(pairs: Sequence[tuple[Tensor, Tensor]], total: Tensor | None) -> Tensor:
    """Add the products of pairs of parts, the smallest first, to a float32 total, in place.

    The last product is added in chunks of `SUMMANDS`.  The errors of the others are smaller by the size of their parts.

    Examples:
        >>> parts = split_into_parts(torch.eye(2), 2)
        >>> add_part_products(pair_parts(parts, parts), torch.ones(2, 2))
        tensor([[2., 1.],
                [1., 2.]])
    """
    *small, (left, right) = pairs
    for some, others in small:
        total = multiply_into_float32(some, others, total)
    inner = left.shape[1]
    count = min(inner // SUMMANDS, MOST_CHUNKS)
    if count < 2:
        return multiply_into_float32(left, right, total)
    height = inner // count // ALIGNMENT * ALIGNMENT
    whole = count * height
    chunks = left[:, :whole].reshape(-1, count, height).transpose(0, 1), right[:whole].reshape(count, height, -1)
    if accumulates_in_float32(left.device):
        product = torch.bmm(*chunks, out_dtype=torch.float32).sum(dim=0)
    else:
        product = torch.bmm(*(each.float() for each in chunks)).sum(dim=0)
    if whole < inner:
        product = multiply_into_float32(left[:, whole:], right[whole:], product)
    return product if total is None else total.add_(product)


def pair_parts(left: Sequence[Tensor], right: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Return the pairs of parts whose products matter, the smallest first.

    Examples:
        >>> parts = split_into_parts(torch.tensor([1.001]), 2)
        >>> [(round(float(some), 4), round(float(other), 4)) for some, other in pair_parts(parts, parts)]
        [(0.001, 1.0), (1.0, 0.001), (1.0, 1.0)]
    """
    degrees = reversed(range(len(left)))
    return [(left[i], right[degree - i]) for degree in degrees for i in reversed(range(degree + 1))]


def multiply_into_float32(left: Tensor, right: Tensor, total: Tensor | None = None) -> Tensor:
    """Multiply two matrices of one dtype into a float32 result, or add their product, in place, to a float32 total.

    Examples:
        >>> multiply_into_float32(torch.ones(1, 2).bfloat16(), torch.ones(2, 1).bfloat16(), torch.ones(1, 1))
        tensor([[3.]])
    """
    if left.dtype == torch.float32:
        return left @ right if total is None else total.addmm_(left, right)
    if not accumulates_in_float32(left.device):
        product = left.float() @ right.float()
    elif total is None or _TORCH < (2, 11):  # 2.8 adds only totals in the dtype of the factors
        product = torch.mm(left, right, out_dtype=torch.float32)
    else:
        return torch.addmm(total, left, right, out_dtype=torch.float32, out=total)
    return product if total is None else total.add_(product)
