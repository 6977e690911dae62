"""Folding of frozen batch norms into the convolutions before them.

A frozen batch norm scales and shifts each channel, which the convolution can do itself.  This saves the forward and
backward passes of the norm over the feature map: a third of a training step with frozen norms.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

_Place = tuple[int, int]
_CACHE: WeakKeyDictionary[nn.Module, tuple[tuple[_Place, ...], Tensor, Tensor]] = WeakKeyDictionary()
"""Scale and shift of frozen norms, with the addresses and versions of the tensors from which they were computed."""


def apply_conv_norm(x: Tensor, conv: nn.Conv2d, norm: nn.BatchNorm2d) -> Tensor:
    """Compute ``norm(conv(x))``, in one pass if the norm is frozen.

    Args:
        x: a feature map ``(B, C, H, W)``.
        conv: the convolution.
        norm: the batch norm that follows it.

    Examples:
        >>> conv, norm = nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4)
        >>> freeze(norm)
        >>> x = torch.randn(2, 3, 5, 5)
        >>> torch.allclose(apply_conv_norm(x, conv, norm), norm(conv(x)), atol=1e-6)
        True
    """
    if not _is_frozen(norm) or conv._forward_hooks or norm._forward_hooks:
        y: Tensor = norm(conv(x))
        return y
    scale, shift = _scale_and_shift(norm)
    if conv.bias is not None:
        shift = shift + scale * conv.bias
    y = conv._conv_forward(x, conv.weight * scale[:, None, None, None], shift)
    return y


def freeze(norm: nn.Module) -> None:
    """Freeze a batch norm: set evaluation mode, disable gradients, and allow its scale and shift to be cached.

    Values of other norms must not be cached, because a replayed CUDA graph changes them without increasing a version.

    Examples:
        >>> norm = nn.BatchNorm2d(4)
        >>> freeze(norm)
        >>> norm.training, norm.weight.requires_grad
        (False, False)
    """
    norm.requires_grad_(False).eval()
    norm.frozen = True  # type: ignore[assignment]


def _is_frozen(norm: nn.BatchNorm2d) -> bool:
    """Whether a norm is frozen and its scale and shift can be cached: not while compiling or in inference mode."""
    if not getattr(norm, "frozen", False) or norm.training or norm.weight.requires_grad or norm.running_var is None:
        return False
    return not torch.compiler.is_compiling() and not norm.running_var.is_inference()


def _scale_and_shift(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Return the scale and shift of each channel; they are recomputed after a tensor of the norm has changed.

    Changes through ``.data``, which do not increase the version of a tensor, are not detected.
    """
    mean, var = norm.running_mean, norm.running_var
    assert mean is not None
    assert var is not None
    now = tuple((each.data_ptr(), each._version) for each in (norm.weight, norm.bias, mean, var))
    kept = _CACHE.get(norm)
    if kept is None or kept[0] != now:
        with torch.no_grad(), torch.inference_mode(False):
            scale = norm.weight * torch.rsqrt(var + norm.eps)
            kept = _CACHE[norm] = (now, scale, norm.bias - mean * scale)
    return kept[1], kept[2]
