"""ResNet-18, ResNet-50 and ResNet-101 (He et al. 2016), with torchvision's names: stride on the 3 × 3 convolution."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from likewise.trunks.folding import normed
from likewise.trunks.preprocessing import IMAGENET
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import FromUrl, Weights, WeightsLike, with_weights

PUBLISHED = {
    "resnet18": {
        "imagenet": Weights(
            FromUrl(
                "https://download.pytorch.org/models/resnet18-f37072fd.pth",
                "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec",
            ),
            IMAGENET,
        )
    },
    "resnet50": {
        "imagenet": Weights(
            FromUrl(
                "https://download.pytorch.org/models/resnet50-0676ba61.pth",
                "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a",
            ),
            IMAGENET,
        )
    },
}


class Basic(nn.Module):
    """Two 3 × 3 convolutions with a shortcut."""

    expansion = 1

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(channels, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """``(B, channels, H, W)`` to ``(B, width, H / stride, W / stride)``."""
        y = F.relu(normed(x, self.conv1, self.bn1))
        y = normed(y, self.conv2, self.bn2)
        return F.relu(y + (x if self.downsample is None else normed(x, *self.downsample)))


class Bottleneck(nn.Module):
    """A 3 × 3 convolution between two 1 × 1 ones, narrow then four times as wide, with a shortcut."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = _shortcut(channels, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """``(B, channels, H, W)`` to ``(B, 4 · width, H / stride, W / stride)``."""
        y = F.relu(normed(x, self.conv1, self.bn1))
        y = F.relu(normed(y, self.conv2, self.bn2))
        y = normed(y, self.conv3, self.bn3)
        return F.relu(y + (x if self.downsample is None else normed(x, *self.downsample)))


def _shortcut(channels: int, wanted: int, stride: int) -> nn.Sequential | None:
    """What brings the input to the output's shape, where they differ."""
    if stride == 1 and channels == wanted:
        return None
    return nn.Sequential(nn.Conv2d(channels, wanted, 1, stride=stride, bias=False), nn.BatchNorm2d(wanted))


def _stage(block: type[Basic | Bottleneck], channels: int, width: int, depth: int, *, stride: int) -> nn.Sequential:
    """Blocks of one width, of which the first has the stride."""
    later = [block(width * block.expansion, width, 1) for _ in range(depth - 1)]
    return nn.Sequential(block(channels, width, stride), *later)


class ResNet(Trunk):
    """Residual networks: a stem, then four stages of blocks that halve the side and double the width.

    Examples:
        >>> import torch
        >>> resnet18().eval()(torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 512, 2, 2])
    """

    def __init__(
        self, name: str, block: type[Basic | Bottleneck], depths: tuple[int, ...], *, in_channels: int
    ) -> None:
        super().__init__(name, in_channels=in_channels, out_features=512 * block.expansion, preprocessing=IMAGENET)
        self.conv1 = nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        grown = block.expansion
        self.layer1 = _stage(block, 64, 64, depths[0], stride=1)
        self.layer2 = _stage(block, 64 * grown, 128, depths[1], stride=2)
        self.layer3 = _stage(block, 128 * grown, 256, depths[2], stride=2)
        self.layer4 = _stage(block, 256 * grown, 512, depths[3], stride=2)
        self.initialize()

    def forward(self, images: Tensor) -> Tensor:
        """The map after the last stage, a 32nd of the images' side."""
        x = F.relu(normed(self.checked(images), self.conv1, self.bn1))
        x = F.max_pool2d(x, 3, stride=2, padding=1)
        features: Tensor = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return features


def resnet18(*, weights: WeightsLike = None, in_channels: int = 3) -> ResNet:
    """ResNet-18: 11.2 million parameters, 512 features.

    Args:
        weights: ``"imagenet"`` (torchvision's first), a file, or `Weights`; by default drawn at random.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> resnet18().out_features
        512
    """
    trunk = ResNet("resnet18", Basic, (2, 2, 2, 2), in_channels=in_channels)
    return with_weights(trunk, weights, PUBLISHED["resnet18"])


def resnet50(*, weights: WeightsLike = None, in_channels: int = 3) -> ResNet:
    """ResNet-50: 23.5 million parameters, 2048 features.

    Args:
        weights: ``"imagenet"`` (torchvision's first), a file, or `Weights`; by default drawn at random.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> resnet50().out_features
        2048
    """
    trunk = ResNet("resnet50", Bottleneck, (3, 4, 6, 3), in_channels=in_channels)
    return with_weights(trunk, weights, PUBLISHED["resnet50"])


def resnet101(*, weights: WeightsLike = None, in_channels: int = 3) -> ResNet:
    """ResNet-101: 42.5 million parameters, 2048 features; takes torchvision's weights from a file.

    Args:
        weights: a file, or `Weights`; by default drawn at random.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> resnet101().out_features
        2048
    """
    return with_weights(ResNet("resnet101", Bottleneck, (3, 4, 23, 3), in_channels=in_channels), weights, {})
