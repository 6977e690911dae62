"""Matrix products on a CPU, by the faster of two libraries that torch contains.

torch multiplies matrices of float32 with MKL, which computes with half of the vector width on AMD's processors.  oneDNN,
which torch uses for convolutions and half precision, computes with the full width: on Zen 5 it takes half of the time.
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
from likewise.formula.precision import autocast_is_on

LEAST_MULTIPLICATIONS = 2**22
"""Multiplications of a product for which oneDNN saves more time than its call costs."""

LEAST_ROWS = 64
"""Rows of a transposed product for which oneDNN takes less time."""

WIDE = 256
"""Columns of a transposed product from which oneDNN computes it about as fast as its transpose."""

FULL_WIDTH = 26
"""The first family of AMD's processors whose units are 512 bits wide (Zen 5)."""


def multiply_rows(left: Tensor, right: Tensor, added: Tensor | None = None, factor: float = 1.0) -> Tensor:
    """Return ``factor · left rightᵀ + added``.

    Args:
        left: ``(m, d)``.
        right: ``(n, d)``.
        added: a number per row of ``right``, ``(1, n)``.
        factor: multiplies the products.

    Examples:
        >>> multiply_rows(torch.eye(2), torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5]]))
        tensor([[1.5000],
                [2.5000]])
    """
    if pays_onednn(left, right) and is_plain(left, right, *([] if added is None else [added])):
        return multiply_with_onednn(left if factor == 1.0 else factor * left, right, added)
    if added is not None:
        return torch.addmm(added, left, right.T, alpha=factor)
    return left @ right.T if factor == 1.0 else factor * (left @ right.T)


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
    if not (left.shape[1] >= LEAST_ROWS and pays_onednn(left.T, right.T) and is_plain(left, right)):
        return left.T @ right
    if right.shape[1] < WIDE:
        return multiply_with_onednn(right.T, left.T).T.contiguous()
    return multiply_with_onednn(left.T, right.T)


def pays_onednn(left: Tensor, right: Tensor) -> bool:
    """Return whether oneDNN computes ``left rightᵀ`` in less time.

    Only plain tensors, because subclasses and tracers know the operations of torch; users can disable oneDNN.

    Examples:
        >>> pays_onednn(torch.zeros(1, 2), torch.zeros(1, 2))
        False
    """
    return (
        not torch.compiler.is_compiling()  # which cannot trace what follows
        and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        and left.device.type == "cpu"
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
