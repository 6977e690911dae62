"""What our evaluation does to an image before a network sees it, as part of an exported graph.

Two resamplings, as everywhere else here: an image is shrunk to the shorter side at which it would be stored, then the
middle of it is resampled to the network's size.  Both are Pillow's: a triangle as wide as an output pixel, weights of 22
bits, first along rows, then along columns, rounded to bytes after each.  Here they are products with matrices of whole
numbers in float64, in which every sum is exact: any runtime gives the same bytes.  Shapes inside the graph do not
depend on the images' size: what the network sees comes from a window of the stored image whose size is known.

The bytes are those of our evaluation but for two cases, in which some differ by one level in 255: Pillow 13 takes the
columns first where that is quicker, in tall images mostly, and rounds in that order; and where a box of whole pixels is
resized, our evaluation uses torch's kernel, whose weights have 16 bits.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from likewise.data import FRACTION, LUMA, Augment, CenterCrop
from likewise.search.embedding import RATIO

BITS = 2.0**22
"""Pillow's weights are whole multiples of one over this."""


class Pixels(nn.Module):
    """Images ``(B, H, W, 3)`` of bytes, RGB and upright, as our evaluation shows them to a network: ``(B, C, h, w)``.

    What `likewise.data.shards.Shape` and `likewise.data.Augment` make on the host, to the byte or, where this module says
    so, to one level of it.

    Args:
        augment: the crop and scaling of the evaluation; nothing in it may be left to chance.
        cache: the length of the shorter side to which images are shrunk first.
        ratio: the longer side counts at most so many times the shorter one; what is more is cut off at both ends.

    Examples:
        >>> import torch
        >>> from likewise.data import TRANSFORMS
        >>> shown = Pixels(TRANSFORMS["thesis"].test, 256)
        >>> shown(torch.zeros(2, 300, 400, 3, dtype=torch.uint8)).shape
        torch.Size([2, 3, 224, 224])
    """

    def __init__(self, augment: Augment, cache: int, ratio: float = RATIO) -> None:
        super().__init__()
        if not isinstance(augment.crop, CenterCrop) or augment.flip or augment.jitter is not None:
            raise ValueError(f"augment must be a center crop without randomness, but it is {augment}")
        self.size, self.crop, self.resize = augment.shape, augment.crop.size, augment.resize
        self.cache, self.ratio, self.order = cache, ratio, augment.normalize.order
        scale = augment.normalize
        slope = [scale.white / 255.0 / std for std in scale.std]
        shift = [-mean / std for mean, std in zip(scale.mean, scale.std, strict=True)]
        for name, values in (("slope", slope), ("shift", shift), ("luma", LUMA)):
            self.register_buffer(name, torch.tensor(values, dtype=torch.float32).view(-1, 1, 1), persistent=False)
        self.slope: Tensor
        self.shift: Tensor
        self.luma: Tensor

    def forward(self, images: Tensor) -> Tensor:
        """What the network is shown."""
        pixels = images.permute(0, 3, 1, 2).to(torch.float64)
        sides = [torch.scalar_tensor(images.shape[axis], dtype=torch.float64) for axis in (1, 2)]
        shorter = torch.minimum(*sides)
        longest = shorter * self.ratio
        cropped = [torch.minimum(side, longest) for side in sides]  # what is left of each side
        target = torch.clamp(shorter, max=float(self.cache))
        stored = [torch.floor(target * side / shorter) for side in cropped]
        boxes = self._boxes(stored)
        windows = [self._window(axis) for axis in (0, 1)]
        for axis in (1, 0):  # along rows first
            start = torch.floor(boxes[axis][0])
            rows = start + torch.arange(windows[axis], dtype=torch.float64)
            cut = (sides[axis] - cropped[axis]) / 2.0
            weights = _weights(
                rows, cut, cropped[axis] / stored[axis], torch.arange(images.shape[1 + axis]), sides[axis]
            )
            pixels = _along(pixels, weights, axis)
        for axis in (1, 0):
            top, length = boxes[axis]
            start, end = torch.floor(top), torch.ceil(top + length)
            rows = torch.arange(self.size[axis], dtype=torch.float64)
            weights = _weights(rows, top - start, length / self.size[axis], torch.arange(windows[axis]), end - start)
            pixels = _along(pixels, weights, axis)
        return self._scale(pixels.to(torch.float32))

    def _boxes(self, stored: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
        """Where the box begins in the stored image, and its length, along each axis."""
        shorter = torch.minimum(*stored)
        boxes = []
        for axis, side in enumerate(stored):
            if self.resize is None:
                canvas = side
            elif isinstance(self.resize, tuple):
                canvas = torch.scalar_tensor(float(self.resize[axis]), dtype=torch.float64)
            else:
                canvas = torch.floor(side * self.resize / shorter)
            length = canvas if self.crop is None else torch.full_like(canvas, float(self.crop))
            top = torch.round((canvas - length) / 2.0)  # half a pixel goes to the even side
            if self.resize is not None:
                stretch = side / canvas
                top, length = (torch.round(each * stretch / FRACTION) * FRACTION for each in (top, length))
            boxes.append((top, length))
        return boxes

    def _window(self, axis: int) -> int:
        """Pixels of the stored image that the box may touch along an axis, whatever the image's size."""
        whole = math.ceil(self.ratio * self.cache) + 1
        if self.crop is None or self.resize is None:
            return whole if self.crop is None else min(whole, self.crop + 1)
        if isinstance(self.resize, tuple):
            return min(whole, math.ceil(self.crop * self.ratio * self.cache / self.resize[axis]) + 2)
        # a canvas is rounded down by up to a pixel, so that the longer side is stretched a little more
        return min(whole, math.ceil(self.crop * self.cache / self.resize * (1.0 + 2.0 / self.resize)) + 2)

    def _scale(self, pixels: Tensor) -> Tensor:
        if self.order == "BGR":
            pixels = pixels.flip(1)
        elif self.order == "L":
            pixels = (pixels * self.luma).sum(1, keepdim=True)
        return pixels * self.slope + self.shift


def _weights(rows: Tensor, offset: Tensor, scale: Tensor, pixels: Tensor, reach: Tensor) -> Tensor:
    """What each input pixel counts for some output pixels, ``(rows, pixels)``, in whole multiples of 1 / `BITS`."""
    center = offset + (rows[:, None] + 0.5) * scale
    place = pixels.to(torch.float64)
    wide = torch.clamp(scale, min=1.0)
    weights = torch.clamp(1.0 - (place + 0.5 - center).abs() / wide, min=0.0) * (place < reach)
    # a row beyond the image touches nothing; it is not read
    total = torch.clamp(weights.sum(1, keepdim=True), min=1e-9)
    return torch.floor(weights / total * BITS + 0.5)


def _along(pixels: Tensor, weights: Tensor, axis: int) -> Tensor:
    """Bytes ``(B, 3, H, W)`` resampled along one axis, and rounded to bytes."""
    mixed = weights @ pixels if axis == 0 else pixels @ weights.T
    return torch.clamp(torch.floor((mixed + BITS / 2.0) / BITS), 0.0, 255.0)


class WithPreprocessing(nn.Module):
    """A network that takes bytes: what our evaluation shows of them, and the network behind it.

    Args:
        network: from ``(B, C, h, w)`` to embeddings.
        transform: from images ``(B, H, W, 3)`` of bytes to what the network takes.

    Examples:
        >>> import torch
        >>> from likewise.data import TRANSFORMS
        >>> from likewise.trunks import Embedder
        >>> embedder = Embedder("convnet", 8).eval()
        >>> whole = WithPreprocessing(embedder, Pixels(TRANSFORMS["glyphs"].using(embedder.preprocessing).test, 32))
        >>> whole(torch.zeros(2, 40, 50, 3, dtype=torch.uint8)).shape
        torch.Size([2, 8])
    """

    def __init__(self, network: nn.Module, transform: Pixels) -> None:
        super().__init__()
        self.network, self.transform = network, transform

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings of images."""
        embeddings: Tensor = self.network(self.transform(images))
        return embeddings
