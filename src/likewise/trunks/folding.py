"""A convolution and the batch norm after it, in one pass where the norm is frozen.

A frozen batch norm multiplies each channel by one number and adds another: the convolution can do both.  It saves
the passes over the map that a norm takes, forward and backward, which is a third of a training step with frozen norms.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

_Place = tuple[int, int]
_KEPT: WeakKeyDictionary[nn.Module, tuple[tuple[_Place, ...], Tensor, Tensor]] = WeakKeyDictionary()
"""Scale and shift of frozen norms, with where and which version their numbers were when these were computed."""


def normed(x: Tensor, conv: nn.Conv2d, norm: nn.BatchNorm2d) -> Tensor:
    """``norm(conv(x))``.

    Args:
        x: a map ``(B, C, H, W)``.
        conv: the convolution.
        norm: the batch norm that follows it.

    Examples:
        >>> conv, norm = nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4)
        >>> freeze(norm)
        >>> x = torch.randn(2, 3, 5, 5)
        >>> torch.allclose(normed(x, conv, norm), norm(conv(x)), atol=1e-6)
        True
    """
    if not _at_rest(norm) or conv._forward_hooks or norm._forward_hooks:
        y: Tensor = norm(conv(x))
        return y
    scale, shift = _scale_and_shift(norm)
    if conv.bias is not None:
        shift = shift + scale * conv.bias
    y = conv._conv_forward(x, conv.weight * scale[:, None, None, None], shift)
    return y


def freeze(norm: nn.Module) -> None:
    """Declare that a batch norm is fixed: in eval mode, without gradient, and only written by a loader.

    Otherwise nothing may be cached: a replayed CUDA graph changes its values without a trace.

    Examples:
        >>> norm = nn.BatchNorm2d(4)
        >>> freeze(norm)
        >>> norm.training, norm.weight.requires_grad
        (False, False)
    """
    norm.requires_grad_(False).eval()
    norm.frozen = True  # type: ignore[assignment]


def _at_rest(norm: nn.BatchNorm2d) -> bool:
    """Whether a norm is frozen, without trained weights, and not compiled or in inference mode."""
    if not getattr(norm, "frozen", False) or norm.training or norm.weight.requires_grad or norm.running_var is None:
        return False
    return not torch.compiler.is_compiling() and not norm.running_var.is_inference()


def _scale_and_shift(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Scale and shift of each channel; recomputed when one of its tensors was written.

    Writes through ``.data``, which torch does not count, are not detected.
    """
    mean, var = norm.running_mean, norm.running_var
    assert mean is not None
    assert var is not None
    now = tuple((each.data_ptr(), each._version) for each in (norm.weight, norm.bias, mean, var))
    kept = _KEPT.get(norm)
    if kept is None or kept[0] != now:
        with torch.no_grad(), torch.inference_mode(False):
            scale = norm.weight * torch.rsqrt(var + norm.eps)
            kept = _KEPT[norm] = (now, scale, norm.bias - mean * scale)
    return kept[1], kept[2]
