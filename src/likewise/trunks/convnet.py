"""A small network for glyphs and other images of 32 to 64 pixels, which is fast on a CPU."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from likewise.trunks.folding import apply_conv_norm
from likewise.trunks.preprocessing import plain
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import WeightsLike, with_weights

WIDTHS = (32, 64, 128, 256)


class ConvNet(Trunk):
    """Four convolutions, one of 5 × 5 and three of 3 × 3, with stride 2, batch norm and ReLU.

    A convolution with stride 2 costs a quarter of a convolution that is followed by pooling.

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
        # without biases, because batch norm would cancel them
        self.convs = nn.ModuleList(
            nn.Conv2d(narrow, wide, kernel, stride=2, padding=kernel // 2, bias=False)
            for narrow, wide, kernel in zip(channels, WIDTHS, kernels, strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(wide) for wide in WIDTHS)
        self.initialize()

    def forward(self, images: Tensor) -> Tensor:
        """Return the last feature map, whose side is 1/16 of that of the images, rounded up."""
        x = self.checked(images)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            assert isinstance(conv, nn.Conv2d)
            assert isinstance(norm, nn.BatchNorm2d)
            x = F.relu(apply_conv_norm(x, conv, norm))
        return x


def convnet(*, weights: WeightsLike = None, in_channels: int = 1) -> ConvNet:
    """A small network for glyphs: 0.4 million parameters, 256 features, without published weights.

    Args:
        weights: a file, or `Weights`; ``None``: random weights.
        in_channels: 1, or 3 for images in color.

    Examples:
        >>> convnet(in_channels=3).preprocessing.order
        'RGB'
    """
    return with_weights(ConvNet(in_channels=in_channels), weights, {})
