"""GoogLeNet (Szegedy et al. 2015) with batch norm and the parameter names of torchvision."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from likewise.trunks.folding import apply_conv_norm
from likewise.trunks.preprocessing import Preprocessing
from likewise.trunks.sources import FromUrl
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import Weights, WeightsLike, with_weights

# torchvision normalizes with ImageNet's mean and deviation, and its network (`transform_input`) converts the result to
# pixels from -1 to 1, on which the weights, converted from TensorFlow, were trained.  Here this is one step.
PREPROCESSING = Preprocessing(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), size=224)

PUBLISHED = {
    "imagenet": Weights(
        FromUrl(
            "https://download.pytorch.org/models/googlenet-1378be20.pth",
            "1378be20a8e875cf1568b8a71654e704449655e34711a959a38b04fb34905cef",
        ),
        PREPROCESSING,
    )
}


class Convolution(nn.Module):
    """A convolution with padding, batch norm and ReLU."""

    def __init__(self, channels: int, width: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, width, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(width, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        """``(B, channels, H, W)`` to ``(B, width, H / stride, W / stride)``."""
        return F.relu(apply_conv_norm(x, self.conv, self.bn))


class Inception(nn.Module):
    """Four parallel branches: 1 × 1, two of 1 × 1 and 3 × 3, and 1 × 1 after pooling.

    The third branch has a 3 × 3 convolution, as in TensorFlow, torchvision and the published weights; the paper has 5 × 5.
    """

    def __init__(
        self, channels: int, single: int, second: tuple[int, int], third: tuple[int, int], pooled: int
    ) -> None:
        super().__init__()
        self.branch1 = Convolution(channels, single, 1)
        self.branch2 = nn.Sequential(Convolution(channels, second[0], 1), Convolution(*second, 3))
        self.branch3 = nn.Sequential(Convolution(channels, third[0], 1), Convolution(*third, 3))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), Convolution(channels, pooled, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Concatenate the outputs of the branches along the channels."""
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], dim=1)


class GoogLeNet(Trunk):
    """Nine inception blocks after a stem of three convolutions; without the auxiliary classifiers.

    Examples:
        >>> import torch
        >>> googlenet().eval()(torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 1024, 2, 2])
    """

    ignored = ("aux1.", "aux2.")

    def __init__(self, *, in_channels: int) -> None:
        super().__init__("googlenet", in_channels=in_channels, out_features=1024, preprocessing=PREPROCESSING)
        self.conv1 = Convolution(in_channels, 64, 7, stride=2)
        self.conv2 = Convolution(64, 64, 1)
        self.conv3 = Convolution(64, 192, 3)
        self.inception3a = Inception(192, 64, (96, 128), (16, 32), 32)
        self.inception3b = Inception(256, 128, (128, 192), (32, 96), 64)
        self.inception4a = Inception(480, 192, (96, 208), (16, 48), 64)
        self.inception4b = Inception(512, 160, (112, 224), (24, 64), 64)
        self.inception4c = Inception(512, 128, (128, 256), (24, 64), 64)
        self.inception4d = Inception(512, 112, (144, 288), (32, 64), 64)
        self.inception4e = Inception(528, 256, (160, 320), (32, 128), 128)
        self.inception5a = Inception(832, 256, (160, 320), (32, 128), 128)
        self.inception5b = Inception(832, 384, (192, 384), (48, 128), 128)
        self.initialize()

    def forward(self, images: Tensor) -> Tensor:
        """Return the feature map of the last block, whose side is 1/32 of that of the images."""
        x = F.max_pool2d(self.conv1(self.checked(images)), 3, stride=2, ceil_mode=True)
        x = F.max_pool2d(self.conv3(self.conv2(x)), 3, stride=2, ceil_mode=True)
        x = self.inception3b(self.inception3a(x))
        x = F.max_pool2d(x, 3, stride=2, ceil_mode=True)
        x = self.inception4c(self.inception4b(self.inception4a(x)))
        x = self.inception4e(self.inception4d(x))
        x = F.max_pool2d(x, 2, stride=2, ceil_mode=True)
        features: Tensor = self.inception5b(self.inception5a(x))
        return features


def googlenet(*, weights: WeightsLike = None, in_channels: int = 3) -> GoogLeNet:
    """GoogLeNet: 5.6 million parameters, 1024 features.

    Args:
        weights: ``"imagenet"`` (torchvision's), a file, or `Weights`; ``None``: random weights.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> googlenet().preprocessing.mean
        (0.5, 0.5, 0.5)
    """
    return with_weights(GoogLeNet(in_channels=in_channels), weights, PUBLISHED)
