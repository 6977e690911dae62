"""Vision transformers (Dosovitskiy et al. 2021): tiny, small and base, with the parameter names of timm."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from likewise.trunks.preprocessing import plain
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import WeightsLike, with_weights

PATCH, SIDE, DEPTH = 16, 224, 12


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """``(B, N, D)`` to the same."""
        qkv = self.qkv(x).reshape(*x.shape[:2], 3, self.heads, -1)  # (B, N, 3, heads, D / heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, heads, N, D / heads)
        y = F.scaled_dot_product_attention(query, key, value)
        z: Tensor = self.proj(y.transpose(1, 2).flatten(2))
        return z


class Perceptron(nn.Module):
    """A perceptron whose hidden layer is four times as wide as its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """``(B, N, D)`` to the same."""
        y: Tensor = self.fc2(F.gelu(self.fc1(x)))
        return y


class Block(nn.Module):
    """Attention and a perceptron, each with layer norm before it and a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = Perceptron(width)

    def forward(self, x: Tensor) -> Tensor:
        """``(B, N, D)`` to the same."""
        x = x + self.attn(self.norm1(x))
        y: Tensor = x + self.mlp(self.norm2(x))
        return y


class PatchEmbed(nn.Module):
    """A linear map of patches of 16 × 16 pixels."""

    def __init__(self, in_channels: int, width: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(in_channels, width, PATCH, stride=PATCH)

    def forward(self, images: Tensor) -> Tensor:
        """``(B, C, H, W)`` to ``(B, D, H / 16, W / 16)``."""
        y: Tensor = self.proj(images)
        return y


class VisionTransformer(Trunk):
    """Twelve blocks over patches and a class token; the features are the class token after the last norm.

    Images can have other sizes than 224 pixels, in multiples of 16; position embeddings are then interpolated.

    Examples:
        >>> import torch
        >>> vit_tiny().eval()(torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 192])
    """

    classifier = "head"

    def __init__(self, name: str, width: int, heads: int, *, in_channels: int) -> None:
        preprocessing = plain(in_channels, SIDE)
        super().__init__(name, in_channels=in_channels, out_features=width, preprocessing=preprocessing)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + (SIDE // PATCH) ** 2, width))
        self.patch_embed = PatchEmbed(in_channels, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.initialize()

    def initialize(self) -> None:
        """Initialize as the code of the paper does: small normal weights, zero biases."""
        nn.init.normal_(self.cls_token, std=1e-6)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Return the class token, ``(B, D)``."""
        height, width = self.checked(images).shape[2:]
        if height % PATCH or width % PATCH:
            raise ValueError(f"images must have sides that are multiples of {PATCH}, but they are {height} x {width}")
        patches = self.patch_embed(images)  # (B, D, h, w)
        tokens = patches.flatten(2).transpose(1, 2)  # (B, h · w, D)
        tokens = torch.cat([self.cls_token.expand(len(images), -1, -1), tokens], dim=1)
        features: Tensor = self.norm(self.blocks(tokens + self.positions(*patches.shape[2:])))
        return features[:, 0]

    def positions(self, height: int, width: int) -> Tensor:
        """Return the position embeddings of a grid of patches, ``(1, 1 + h · w, D)``."""
        side = SIDE // PATCH
        if (height, width) == (side, side):
            return self.pos_embed
        grid = self.pos_embed[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2).float()  # (1, D, 14, 14)
        grid = F.interpolate(grid, (height, width), mode="bicubic", antialias=True)
        return torch.cat([self.pos_embed[:, :1], grid.flatten(2).transpose(1, 2).to(self.pos_embed.dtype)], dim=1)


def vit_tiny(*, weights: WeightsLike = None, in_channels: int = 3) -> VisionTransformer:
    """ViT-Ti/16: 5.5 million parameters, 192 features; takes weights of timm's vit_tiny_patch16_224 from a file.

    Args:
        weights: a file, or `Weights`; ``None``: random weights.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> vit_tiny().out_features
        192
    """
    return with_weights(VisionTransformer("vit_tiny", 192, 3, in_channels=in_channels), weights, {})


def vit_small(*, weights: WeightsLike = None, in_channels: int = 3) -> VisionTransformer:
    """ViT-S/16: 21.7 million parameters, 384 features; takes weights of timm's vit_small_patch16_224 from a file.

    Args:
        weights: a file, or `Weights`; ``None``: random weights.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> vit_small().out_features
        384
    """
    return with_weights(VisionTransformer("vit_small", 384, 6, in_channels=in_channels), weights, {})


def vit_base(*, weights: WeightsLike = None, in_channels: int = 3) -> VisionTransformer:
    """ViT-B/16: 85.8 million parameters, 768 features; takes weights of timm's vit_base_patch16_224 from a file.

    Args:
        weights: a file, or `Weights`; ``None``: random weights.
        in_channels: 3, or 1 for gray images.

    Examples:
        >>> vit_base().out_features
        768
    """
    return with_weights(VisionTransformer("vit_base", 768, 12, in_channels=in_channels), weights, {})
