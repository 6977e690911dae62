"""The similarity of a sample to a class with a kernel for the matrix: one pass over the similarities each way."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.engines.installed import has_triton
from likewise.formula import BlendedCenters

MOST_CENTERS = 64
"""The number of centers up to which a kernel holds all of them at once."""

MOST_CLASSES = 2**23
"""The number of classes up to which one launch covers a row: CUDA allows 65,535 programs in the second dimension."""


@dataclass(frozen=True)
class BlendedMatrix(BlendedCenters):
    """`BlendedCenters` for a matrix of similarities on a GPU, where plain operations would read it about twenty times.

    Examples:
        >>> import torch
        >>> BlendedMatrix(1.0)(torch.tensor([[[0.0, 1.0]]]))
        tensor([[0.7311]])
    """

    def __call__(self, similarities: Tensor) -> Tensor:
        """Pool ``(m, classes, centers)`` to ``(m, classes)``."""
        across = similarities.transpose(1, 2)
        if not _runs_in_kernel(across):
            return super().__call__(similarities)
        from likewise.engines.triton.blending import Blend

        mean: Tensor = Blend.apply(across, self.temperature)  # type: ignore[no-untyped-call]
        return mean


def _runs_in_kernel(across: Tensor) -> bool:
    if not across.is_cuda or across.dtype != torch.float32:
        return False
    if across.shape[1] > MOST_CENTERS or across.shape[2] > MOST_CLASSES:
        return False
    traced = torch.compiler.is_compiling() or is_transformed()
    return across.is_contiguous() and not traced and has_triton()
