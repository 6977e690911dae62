"""A small network for glyphs and other images of 32 to 64 pixels: quick on two CPU cores."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from likewise.trunks.folding import normed
from likewise.trunks.preprocessing import plain
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import WeightsLike, with_weights

WIDTHS = (32, 64, 128, 256)


class ConvNet(Trunk):
    """Four convolutions, 5 × 5 and then 3 × 3, each with batch norm and rectifier; each halves the side.

    Halving in the convolution costs a quarter of what pooling after it would.

    Examples:
        >>> import torch
        >>> convnet()(torch.zeros(2, 1, 32, 32)).shape
        torch.Size([2, 256, 2, 2])
    """

    def __init__(self, *, in_channels: int) -> None:
        super().__init__(
            "convnet", in_channels=in_channels, out_features=WIDTHS[-1], preprocessing=plain(in_channels, 32)
        )
        channels, kernels = (in_channels, *WIDTHS[:-1]), (5, 3, 3, 3)
        # no biases: batch norm would cancel them
        self.convs = nn.ModuleList(
            nn.Conv2d(narrow, wide, kernel, stride=2, padding=kernel // 2, bias=False)
            for narrow, wide, kernel in zip(channels, WIDTHS, kernels, strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(wide) for wide in WIDTHS)
        self.initialize()

    def forward(self, images: Tensor) -> Tensor:
        """The map after the last convolution, a 16th of the images' side, rounded up."""
        x = self.checked(images)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            assert isinstance(conv, nn.Conv2d)
            assert isinstance(norm, nn.BatchNorm2d)
            x = F.relu(normed(x, conv, norm))
        return x


def convnet(*, weights: WeightsLike = None, in_channels: int = 1) -> ConvNet:
    """A small network for glyphs: 0.4 million parameters, 256 features; there are no published weights.

    Args:
        weights: a file, or `Weights`; by default drawn at random.
        in_channels: 1, or 3 for images in color.

    Examples:
        >>> convnet(in_channels=3).preprocessing.order
        'RGB'
    """
    return with_weights(ConvNet(in_channels=in_channels), weights, {})
