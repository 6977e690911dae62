"""BN-Inception (Ioffe & Szegedy 2015), with the parameter names of Cadene's ``pretrainedmodels``."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from likewise.trunks.folding import apply_conv_norm
from likewise.trunks.preprocessing import Preprocessing
from likewise.trunks.sources import FromUrl
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import Weights, WeightsLike, with_weights

# the weights were converted from Caffe, which reads images as bytes in BGR order
PREPROCESSING = Preprocessing(mean=(104.0, 117.0, 128.0), std=(1.0, 1.0, 1.0), white=255.0, order="BGR", size=224)

PUBLISHED = {
    "imagenet": Weights(
        FromUrl(
            "http://data.lip6.fr/cadene/pretrainedmodels/bn_inception-52deb4733.pth",
            "52deb473314542a5c2f87e9e6f26f4ca42fe863d15f986414dbae8c2dfdd2353",
        ),
        PREPROCESSING,
    )
}


class Block(NamedTuple):
    """Widths of one inception block; a block without a 1x1 branch halves the map and appends its pooled input."""

    single: int  # 1x1; 0: no such branch
    second: tuple[int, int]  # 1x1, then 3x3
    double: tuple[int, int]  # 1x1, then 3x3 twice
    pooled: int  # 1x1 after pooling; 0: no convolution
    pool: str = "avg"


BLOCKS = {
    "3a": Block(64, (64, 64), (64, 96), 32),
    "3b": Block(64, (64, 96), (64, 96), 64),
    "3c": Block(0, (128, 160), (64, 96), 0, "max"),
    "4a": Block(224, (64, 96), (96, 128), 128),
    "4b": Block(192, (96, 128), (96, 128), 128),
    "4c": Block(160, (128, 160), (128, 160), 128),
    "4d": Block(96, (128, 192), (160, 192), 128),
    "4e": Block(0, (128, 192), (192, 256), 0, "max"),
    "5a": Block(352, (192, 320), (160, 224), 128),
    "5b": Block(352, (192, 320), (192, 224), 128, "max"),
}


class BNInception(Trunk):
    """Ten inception blocks after a stem of three convolutions.

    Examples:
        >>> import torch
        >>> bninception().eval()(torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 1024, 2, 2])
    """

    classifier = "last_linear"

    def __init__(self, *, in_channels: int) -> None:
        super().__init__("bninception", in_channels=in_channels, out_features=1024, preprocessing=PREPROCESSING)
        self._add("conv1_7x7_s2", in_channels, 64, 7, stride=2)
        self._add("conv2_3x3_reduce", 64, 64, 1)
        self._add("conv2_3x3", 64, 192, 3)
        channels = 192
        for name, block in BLOCKS.items():
            channels = self._add_block(f"inception_{name}", channels, block)
        self.initialize()

    def _add(self, name: str, channels: int, width: int, kernel: int, stride: int = 1) -> None:
        self.add_module(name, nn.Conv2d(channels, width, kernel, stride=stride, padding=kernel // 2))
        self.add_module(f"{name}_bn", nn.BatchNorm2d(width))

    def _add_block(self, name: str, channels: int, block: Block) -> int:
        """Add the layers of a block, and return the number of its output channels."""
        stride = 1 if block.single else 2
        if block.single:
            self._add(f"{name}_1x1", channels, block.single, 1)
        self._add(f"{name}_3x3_reduce", channels, block.second[0], 1)
        self._add(f"{name}_3x3", *block.second, 3, stride)
        self._add(f"{name}_double_3x3_reduce", channels, block.double[0], 1)
        self._add(f"{name}_double_3x3_1", *block.double, 3)
        self._add(f"{name}_double_3x3_2", block.double[1], block.double[1], 3, stride)
        if block.pooled:
            self._add(f"{name}_pool_proj", channels, block.pooled, 1)
        return block.single + block.second[1] + block.double[1] + (block.pooled or channels)

    def _apply_to(self, x: Tensor, *names: str) -> Tensor:
        """Apply convolution, batch norm and ReLU of each name in turn."""
        for name in names:
            conv, norm = self.get_submodule(name), self.get_submodule(f"{name}_bn")
            assert isinstance(conv, nn.Conv2d)
            assert isinstance(norm, nn.BatchNorm2d)
            x = F.relu(apply_conv_norm(x, conv, norm))
        return x

    def _block(self, x: Tensor, name: str, block: Block) -> Tensor:
        second = self._apply_to(x, f"{name}_3x3_reduce", f"{name}_3x3")
        double = self._apply_to(x, f"{name}_double_3x3_reduce", f"{name}_double_3x3_1", f"{name}_double_3x3_2")
        if not block.single:
            return torch.cat([second, double, F.max_pool2d(x, 3, stride=2, ceil_mode=True)], dim=1)
        pooled = (F.avg_pool2d if block.pool == "avg" else F.max_pool2d)(x, 3, stride=1, padding=1)
        pooled = self._apply_to(pooled, f"{name}_pool_proj")
        return torch.cat([self._apply_to(x, f"{name}_1x1"), second, double, pooled], dim=1)

    def forward(self, images: Tensor) -> Tensor:
        """Return the feature map of the last block, whose side is 1/32 of that of the images."""
        x = self._apply_to(self.checked(images), "conv1_7x7_s2")
        x = F.max_pool2d(x, 3, stride=2, ceil_mode=True)
        x = self._apply_to(x, "conv2_3x3_reduce", "conv2_3x3")
        x = F.max_pool2d(x, 3, stride=2, ceil_mode=True)
        for name, block in BLOCKS.items():
            x = self._block(x, f"inception_{name}", block)
        return x

    def convert(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Convert batch norms of shape ``(1, C)``, which the published file has, to ``(C,)``."""
        rows = {key for key, value in state.items() if "_bn." in key and value.ndim == 2 and len(value) == 1}
        return {key: value[0] if key in rows else value for key, value in state.items()}


def bninception(*, weights: WeightsLike = None, in_channels: int = 3) -> BNInception:
    """BN-Inception: 10.3 million parameters, 1024 features; the trunk of the reality check and of the unified view.

    Args:
        weights: ``"imagenet"`` (Cadene's), a file, or `Weights`; ``None``: random weights.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> bninception().preprocessing.order
        'BGR'
    """
    return with_weights(BNInception(in_channels=in_channels), weights, PUBLISHED)
