"""The similarity of a sample to a class: the similarities to its centers, weighted by their softmax."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.engines.dispatch import has_triton

MOST_CENTERS = 64
"""The number of centers up to which a kernel holds all of them at once."""

MOST_CLASSES = 2**23
"""The number of classes up to which one launch covers a row: CUDA allows 65,535 programs in the second dimension."""


def blend(across: Tensor, temperature: float) -> Tensor:
    r"""The mean of similarities over centers, weighted by $\mathrm{softmax}(s/T)$, ``(m, centers, classes) -> (m, classes)``.

    Args:
        across: the similarities to each center of each class.
        temperature: the temperature T.

    Examples:
        >>> import torch
        >>> blend(torch.tensor([[[0.0], [1.0]]]), temperature=1.0)
        tensor([[0.7311]])
    """
    if _runs_in_kernel(across):
        from likewise.engines.triton.blending import Blend

        mean: Tensor = Blend.apply(across, temperature)  # type: ignore[no-untyped-call]
        return mean
    return (torch.softmax(across / temperature, dim=1) * across).sum(dim=1)


def _runs_in_kernel(across: Tensor) -> bool:
    if not across.is_cuda or across.dtype != torch.float32:
        return False
    if across.shape[1] > MOST_CENTERS or across.shape[2] > MOST_CLASSES:
        return False
    traced = torch.compiler.is_compiling() or is_transformed()
    return across.is_contiguous() and not traced and has_triton()
