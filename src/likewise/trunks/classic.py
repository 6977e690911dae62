"""LeNet-5 (LeCun et al. 1998) and AlexNet (Krizhevsky 2014, with the parameter names of torchvision)."""

from __future__ import annotations

import re

import torch.nn.functional as F
from torch import Tensor, nn

from likewise.trunks.preprocessing import IMAGENET, plain
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import WeightsLike, with_weights


class LeNet(Trunk):
    """Two convolutions with average pooling and two linear layers, each followed by tanh; for images of 32 pixels.

    Feature maps of larger images are averaged to 5 × 5.

    Examples:
        >>> import torch
        >>> lenet()(torch.zeros(2, 1, 32, 32)).shape
        torch.Size([2, 84])
    """

    def __init__(self, *, in_channels: int) -> None:
        super().__init__("lenet", in_channels=in_channels, out_features=84, preprocessing=plain(in_channels, 32))
        self.conv1 = nn.Conv2d(in_channels, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.initialize()

    def forward(self, images: Tensor) -> Tensor:
        """Return the last hidden layer, ``(B, 84)``."""
        x = F.avg_pool2d(self.conv1(self.checked(images)).tanh(), 2)
        x = F.adaptive_avg_pool2d(self.conv2(x).tanh(), 5)
        features: Tensor = self.fc2(self.fc1(x.flatten(1)).tanh()).tanh()
        return features


class AlexNet(Trunk):
    """Five convolutions and two linear layers of 4096 with dropout: the single-column version of torchvision.

    Examples:
        >>> import torch
        >>> alexnet().eval()(torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 4096])
    """

    classifier = "classifier.6"

    def __init__(self, *, in_channels: int) -> None:
        super().__init__("alexnet", in_channels=in_channels, out_features=4096, preprocessing=IMAGENET)
        # the keys are the indices in torchvision's sequence, whose other modules have no parameters
        convs = {
            "0": nn.Conv2d(in_channels, 64, 11, stride=4, padding=2),
            "3": nn.Conv2d(64, 192, 5, padding=2),
            "6": nn.Conv2d(192, 384, 3, padding=1),
            "8": nn.Conv2d(384, 256, 3, padding=1),
            "10": nn.Conv2d(256, 256, 3, padding=1),
        }
        self.features = nn.ModuleDict(convs)
        self.initialize()
        self.hidden = nn.ModuleDict({"1": nn.Linear(256 * 6 * 6, 4096), "4": nn.Linear(4096, 4096)})

    def forward(self, images: Tensor) -> Tensor:
        """Return the last hidden layer, ``(B, 4096)``."""
        x = self.checked(images)
        for name, conv in self.features.items():
            x = F.relu(conv(x))
            if name in ("0", "3", "10"):
                x = F.max_pool2d(x, 3, stride=2)
        x = F.adaptive_avg_pool2d(x, 6).flatten(1)
        for layer in self.hidden.values():
            x = F.relu(layer(F.dropout(x, 0.5, self.training)))
        return x

    def convert(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Rename the hidden layers, which belong to the classifier in torchvision."""
        names = {name: re.sub(r"^classifier\.([14])\.", r"hidden.\1.", name) for name in state}
        return {names[name]: tensor for name, tensor in state.items()}


def lenet(*, weights: WeightsLike = None, in_channels: int = 1) -> LeNet:
    """LeNet-5: 60,856 parameters, 84 features; for images of 32 pixels, without published weights.

    Args:
        weights: a file, or `Weights`; ``None``: random weights.
        in_channels: 1, or 3 for images in color.

    Examples:
        >>> lenet().out_features
        84
    """
    return with_weights(LeNet(in_channels=in_channels), weights, {})


def alexnet(*, weights: WeightsLike = None, in_channels: int = 3) -> AlexNet:
    """AlexNet: 57.0 million parameters, 4096 features; takes torchvision's weights from a file.

    Args:
        weights: a file, or `Weights`; ``None``: random weights.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> alexnet().out_features
        4096
    """
    return with_weights(AlexNet(in_channels=in_channels), weights, {})
