"""The base class of trunks."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from likewise.trunks.preprocessing import Preprocessing, plain


class Trunk(nn.Module):
    """A network that maps images ``(B, in_channels, H, W)`` to feature maps ``(B, out_features, h, w)``, or to vectors.

    Args:
        name: the name for `likewise.trunks.build`.
        in_channels: 3, or 1 for gray images.
        out_features: the number of channels of the feature map.
        preprocessing: the preprocessing of the weights; with another number of channels, pixels are scaled to ±1.

    Examples:
        >>> from likewise.trunks import build
        >>> trunk = build("convnet")
        >>> trunk.name, trunk.in_channels, trunk.out_features
        ('convnet', 1, 256)
    """

    classifier: ClassVar[str] = "fc"
    """The name of the classifier in published state dicts; the trunk does not have this layer."""

    ignored: ClassVar[tuple[str, ...]] = ()
    """Prefixes of other entries of published state dicts that are not loaded."""

    def __init__(self, name: str, *, in_channels: int, out_features: int, preprocessing: Preprocessing) -> None:
        super().__init__()
        if in_channels not in (1, 3):
            raise ValueError(f"in_channels must be 1 or 3, but it is {in_channels!r}")
        self.name = name
        self.in_channels = in_channels
        self.out_features = out_features
        fits = len(preprocessing.mean) == in_channels
        self.preprocessing = preprocessing if fits else plain(in_channels, preprocessing.size)

    def recipe(self) -> dict[str, Any]:
        """Return the arguments from which `likewise.trunks.rebuild` creates this network, without its weights."""
        return {"name": self.name, "in_channels": self.in_channels}

    def checked(self, images: Tensor) -> Tensor:
        """Check the shape and dtype of the images, and return them."""
        if images.ndim != 4 or images.shape[1] != self.in_channels:
            raise ValueError(
                f"images must have shape (B, {self.in_channels}, H, W), but the shape is {tuple(images.shape)}"
            )
        if not images.is_floating_point():
            raise TypeError(f"images must be preprocessed to a floating-point dtype, but the dtype is {images.dtype}")
        return images

    def convert(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Convert a published state dict to the names and shapes of this class; the default returns it unchanged.

        If the names belong to a variant of the network, the trunk switches to that variant.
        """
        return state

    def use_variant(self, name: str) -> None:
        """Switch to a variant of the network, for which other weights were trained; most trunks have none."""
        raise ValueError(f"{self.name} has no variant {name!r}")

    def initialize(self) -> None:
        """Initialize convolutions as He et al. 2015 (fan out), which preserves the variance of activations."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan_out = module.out_channels // module.groups * module.kernel_size[0] * module.kernel_size[1]
                nn.init.normal_(module.weight, std=(2.0 / fan_out) ** 0.5)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
