"""Matrix products of float32 by the fastest exact method: torch's own, oneDNN on a CPU, or bfloat16 parts on a GPU.

torch multiplies matrices of float32 with MKL, which computes with half of the vector width on AMD's processors.  oneDNN,
which torch uses for convolutions and half precision, computes with the full width: on Zen 5 it takes half of the time.
For products in parts see `likewise.formula.parts`.
"""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import Parameter

from likewise._compat import is_built_with_onednn, is_transformed
from likewise._compat import multiply_with_onednn as multiply_with_onednn
from likewise.formula.parts import multiply_parts, pays_parts, split_into_parts
from likewise.formula.precision import autocast_is_on, exactly

LEAST_MULTIPLICATIONS = 2**22
"""Multiplications of a product for which oneDNN saves more time than its call costs."""

LEAST_ROWS = 64
"""Rows of a transposed product for which oneDNN takes less time."""

WIDE = 256
"""Columns of a transposed product from which oneDNN computes it about as fast as its transpose."""

FULL_WIDTH = 26
"""The first family of AMD's processors whose units are 512 bits wide (Zen 5)."""


def multiply_rows(
    left: Tensor, right: Tensor, added: Tensor | None = None, factor: float = 1.0, *, cancels: bool = False
) -> Tensor:
    """Return ``factor · left rightᵀ + added``.

    Args:
        left: ``(m, d)``.
        right: ``(n, d)``.
        added: a number per row of ``right``, ``(1, n)``.
        factor: multiplies the products.
        cancels: whether the caller subtracts numbers of about the same size, as it does for distances.

    Examples:
        >>> multiply_rows(torch.eye(2), torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5]]))
        tensor([[1.5000],
                [2.5000]])
    """
    cancels = cancels or added is not None
    if beats_torch(left, right, cancels=cancels) and is_plain(left, right, *([] if added is None else [added])):
        if pays_onednn(left, right):
            return multiply_with_onednn(left if factor == 1.0 else factor * left, right, added)
        parts = split_into_parts(left, 3)
        product = multiply_parts(parts, parts if right is left else split_into_parts(right, 3))
        return product if factor == 1.0 else product.mul_(factor)
    if added is not None:
        return exactly(torch.addmm(added, left, right.T, alpha=factor))
    product = exactly(left @ right.T)
    return product if factor == 1.0 else factor * product


def multiply_columns(left: Tensor, right: Tensor) -> Tensor:
    """Return ``leftᵀ right``.

    Args:
        left: ``(m, n)``.
        right: ``(m, d)``.

    Examples:
        >>> multiply_columns(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0]]))
        tensor([[3.],
                [6.]])
    """
    if not (beats_torch(left.T, right.T) and is_plain(left, right)):
        return left.T @ right
    if pays_parts(left.T, right.T):
        return multiply_parts(
            [each.T for each in split_into_parts(left, 3)], [each.T for each in split_into_parts(right, 3)]
        )
    if left.shape[1] < LEAST_ROWS:
        return left.T @ right
    if right.shape[1] < WIDE:
        return multiply_with_onednn(right.T, left.T).T.contiguous()
    return multiply_with_onednn(left.T, right.T)


def beats_torch(left: Tensor, right: Tensor, *, cancels: bool = False) -> bool:
    """Return whether `multiply_rows` computes ``left rightᵀ`` in less time than torch's own product.

    Only plain tensors, because subclasses and tracers know the operations of torch.  Products that cancel are not computed
    in parts, whose sums are rounded towards zero.

    Examples:
        >>> beats_torch(torch.zeros(1, 2), torch.zeros(1, 2))
        False
    """
    # the compiler cannot trace what follows
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return False
    return pays_onednn(left, right) or (not cancels and pays_parts(left, right))


def pays_onednn(left: Tensor, right: Tensor) -> bool:
    """Return whether oneDNN computes ``left rightᵀ`` in less time; users can disable oneDNN.

    Examples:
        >>> pays_onednn(torch.zeros(1, 2), torch.zeros(1, 2))
        False
    """
    return (
        left.device.type == "cpu"
        and left.dtype == right.dtype == torch.float32
        and len(left) * right.numel() >= LEAST_MULTIPLICATIONS
        and is_onednn_faster()
        and {type(left), type(right)} <= {Tensor, Parameter}
    )


def is_plain(*factors: Tensor) -> bool:
    """Return whether a product of these factors is computed as it is: without a graph, a transform, a compiler or autocast.

    Examples:
        >>> is_plain(torch.zeros(1)), is_plain(torch.zeros(1, requires_grad=True))
        (True, False)
    """
    has_graph = torch.is_grad_enabled() and any(each.requires_grad for each in factors)
    return not (has_graph or torch.compiler.is_compiling() or is_transformed() or autocast_is_on(factors[0]))


def is_onednn_faster() -> bool:
    """Return whether oneDNN multiplies float32 faster than MKL on this processor, and is not disabled."""
    return bool(torch.backends.mkldnn.enabled) and _suits_onednn()


@cache
def _suits_onednn() -> bool:
    widest = torch.backends.cpu.get_cpu_capability() == "AVX512"
    libraries = torch.backends.mkl.is_available() and is_built_with_onednn()  # type: ignore[no-untyped-call]
    return widest and libraries and has_full_width(_describe_processor())


def has_full_width(processor: str) -> bool:
    """Return whether a description is of an AMD processor with 512-bit units.

    Examples:
        >>> has_full_width("vendor_id: AuthenticAMD cpu family: 26"), has_full_width("AMD64 Family 25, AuthenticAMD")
        (True, False)
    """
    family = re.search(r"family\s*:?\s*(\d+)", processor, re.IGNORECASE)
    return "AuthenticAMD" in processor and family is not None and int(family[1]) >= FULL_WIDTH


def _describe_processor() -> str:
    """The operating system's description of the first processor."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0]
    except OSError:
        return platform.processor()
