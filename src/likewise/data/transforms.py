"""Transforms: how images are cropped and scaled in training and in evaluation, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from likewise.data.augment import Augment, PixelScale
from likewise.data.crops import CenterCrop, RandomCrop, RandomResizedCrop, RandomShift


@dataclass(frozen=True)
class Transform:
    """Crops, augmentation and scaling of images, in training and in evaluation.

    Args:
        train: for training.
        test: for evaluation.
        cache: the length of the shorter side at which images are worth storing.

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
        """The same crops, scaled as a network expects it."""
        train, test = (
            replace(each, normalize=normalize, dtype=dtype, channels_last=channels_last)
            for each in (self.train, self.test)
        )
        return replace(self, train=train, test=test)

    def at_scales(self, scales: Sequence[float]) -> Transform:
        """The same with training images at several scales (`likewise.data.Augment`); evaluation stays as it is."""
        return replace(self, train=replace(self.train, scales=tuple(scales)))


REALITY_CHECK = Transform(
    Augment(227, RandomResizedCrop(side=(40, 256)), resize=256, flip=0.5),
    Augment(227, CenterCrop(227), resize=256),
    cache=256,
)
"""The reality check as its text has it: shorter side 256, a crop of 40 to 256 px and 3/4 to 4/3, to 227 px, mirrored or not."""

REALITY_CHECK_CODE = Transform(
    Augment(227, RandomResizedCrop(scale=(0.16, 1.0), ratio=(0.75, 1.33)), resize=256, flip=0.5),
    Augment(227, CenterCrop(227), resize=256),
    cache=256,
)
"""The reality check as its published configuration has it: 0.16 (times 256: 41) is a share of the area there, not of the side."""

THESIS = Transform(
    Augment(224, RandomResizedCrop(), flip=0.5),
    Augment(224, CenterCrop(224), resize=256),
    cache=256,
)
"""The thesis' published code: 8% to 100% of the area, to 224 px; its text names only the single crop of the official setup."""

UNIFIED_VIEW = Transform(
    Augment(227, RandomCrop(227), resize=(256, 256), flip=0.5),
    Augment(227, CenterCrop(227), resize=(256, 256)),
    cache=256,
)
"""The unified view: squeezed to 256 x 256, a random crop of 227 px, mirrored or not."""

CUB128 = Transform(
    Augment(112, RandomResizedCrop(scale=(0.16, 1.0)), flip=0.5),
    Augment(112, CenterCrop(112), resize=128),
    cache=128,
)
"""Small photographs for quick experiments: shorter side 128, 16% to 100% of the area, to 112 px, mirrored or not."""

CUB176 = replace(CUB128, train=replace(CUB128.train, size=176), test=replace(CUB128.test, size=176))
"""The same parts of the same photographs, enlarged to 176 px: nearer to the 224 px that a network learned on ImageNet."""

GLYPHS = Transform(
    Augment(32, RandomShift(0.08, zoom=(0.9, 1.1))),
    Augment(32, CenterCrop()),
    cache=32,
)
"""Drawn characters: a little larger or smaller, a little off their place, never mirrored (b is not d)."""

TRANSFORMS = {
    "cub128": CUB128,
    "cub176": CUB176,
    "glyphs": GLYPHS,
    "reality-check": REALITY_CHECK,
    "reality-check-code": REALITY_CHECK_CODE,
    "thesis": THESIS,
    "unified-view": UNIFIED_VIEW,
}
"""Every transform by its name."""
