"""Named transforms: cropping and scaling of images in training and in evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from likewise.data.augment import Augment, PixelScale
from likewise.data.crops import CenterCrop, RandomCrop, RandomResizedCrop, RandomShift


@dataclass(frozen=True)
class Transform:
    """Cropping, augmentation and scaling of images, in training and in evaluation.

    Args:
        train: the transform in training.
        test: the transform in evaluation.
        cache: length of the shorter side of cached images, in pixels.

    Examples:
        >>> REALITY_CHECK.train.size, REALITY_CHECK.test.crop
        (227, CenterCrop(size=227))
    """

    train: Augment
    test: Augment
    cache: int

    def using(
        self, normalize: PixelScale, *, dtype: torch.dtype = torch.float32, channels_last: bool = False
    ) -> Transform:
        """Return the same crops with the pixel scaling that a network expects."""
        train, test = (
            replace(each, normalize=normalize, dtype=dtype, channels_last=channels_last)
            for each in (self.train, self.test)
        )
        return replace(self, train=train, test=test)

    def at_scales(self, scales: Sequence[float]) -> Transform:
        """Return the same transform with training images at several scales (`likewise.data.Augment`)."""
        return replace(self, train=replace(self.train, scales=tuple(scales)))


REALITY_CHECK = Transform(
    Augment(227, RandomResizedCrop(side=(40, 256)), resize=256, flip=0.5),
    Augment(227, CenterCrop(227), resize=256),
    cache=256,
)
"""The reality check as described in its text: shorter side 256 px, a crop of 40 to 256 px and of ratio 3/4 to 4/3, resized to 227 px, random flip."""

REALITY_CHECK_CODE = Transform(
    Augment(227, RandomResizedCrop(scale=(0.16, 1.0), ratio=(0.75, 1.33)), resize=256, flip=0.5),
    Augment(227, CenterCrop(227), resize=256),
    cache=256,
)
"""The reality check as in its published configuration, where 0.16 (times 256: 41) is a fraction of the area, not of the side."""

THESIS = Transform(
    Augment(224, RandomResizedCrop(), flip=0.5),
    Augment(224, CenterCrop(224), resize=256),
    cache=256,
)
"""The published code of the thesis: 8% to 100% of the area, resized to 224 px; its text mentions only the single crop of the official setup."""

UNIFIED_VIEW = Transform(
    Augment(227, RandomCrop(227), resize=(256, 256), flip=0.5),
    Augment(227, CenterCrop(227), resize=(256, 256)),
    cache=256,
)
"""The unified view: resized to 256 x 256 px without keeping the aspect ratio, a random crop of 227 px, random flip."""

CUB128 = Transform(
    Augment(112, RandomResizedCrop(scale=(0.16, 1.0)), flip=0.5),
    Augment(112, CenterCrop(112), resize=128),
    cache=128,
)
"""Small photographs for quick experiments: shorter side 128 px, 16% to 100% of the area, resized to 112 px, random flip."""

CUB176 = replace(CUB128, train=replace(CUB128.train, size=176), test=replace(CUB128.test, size=176))
"""`CUB128` with crops enlarged to 176 px, which is closer to the 224 px of ImageNet training."""

GLYPHS = Transform(
    Augment(32, RandomShift(0.08, zoom=(0.9, 1.1))),
    Augment(32, CenterCrop()),
    cache=32,
)
"""Drawn characters: small random scale and shift, without flips (b is not d)."""

TRANSFORMS = {
    "cub128": CUB128,
    "cub176": CUB176,
    "glyphs": GLYPHS,
    "reality-check": REALITY_CHECK,
    "reality-check-code": REALITY_CHECK_CODE,
    "thesis": THESIS,
    "unified-view": UNIFIED_VIEW,
}
"""All transforms by name."""
