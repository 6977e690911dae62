"""The evaluation transform as part of an exported graph.

It consists of two resamplings, as everywhere in this library: an image is resized to the shorter side of the cache, then
the center is resampled to the input size of the network.  Both use Pillow's algorithm: a triangle filter as wide as an
output pixel, weights of 22 bits, first along rows, then along columns, rounded to bytes after each.  Here they are products
with integer matrices in float64, in which every sum is exact, so that any runtime gives the same bytes.  Shapes inside
the graph do not depend on the size of the images: the input of the network comes from a window of fixed size.

The bytes equal those of the evaluation except in two cases, in which some differ by one level of 255: Pillow 13 processes
columns first where that is faster, mostly in tall images, and rounds in that order; and to resize a box of whole pixels
the evaluation uses torch's kernel, whose weights have 16 bits.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from likewise.data import FRACTION, LUMA, Augment, CenterCrop
from likewise.search.embedding import RATIO

BITS = 2.0**22
"""Pillow's weights are integer multiples of one over this."""


class Pixels(nn.Module):
    """The evaluation transform of images ``(B, H, W, 3)`` of bytes, RGB and upright, to network input ``(B, C, h, w)``.

    The result equals that of `likewise.data.shards.Shape` and `likewise.data.Augment` on the host, exactly or, in the cases
    that the module describes, to one level of a byte.

    Args:
        augment: crop and scaling of the evaluation, without random operations.
        cache: length of the shorter side to which images are resized first.
        ratio: largest ratio of the longer side to the shorter one; the rest is cut off at both ends.

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
        """Return the input of the network."""
        pixels = images.permute(0, 3, 1, 2).to(torch.float64)
        sides = [torch.scalar_tensor(images.shape[axis], dtype=torch.float64) for axis in (1, 2)]
        shorter = torch.minimum(*sides)
        longest = shorter * self.ratio
        cropped = [torch.minimum(side, longest) for side in sides]  # the remaining length of each side
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
        """Return start and length of the box in the stored image, along each axis."""
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
            top = torch.round((canvas - length) / 2.0)  # half pixels are rounded to the even side
            if self.resize is not None:
                stretch = side / canvas
                top, length = (torch.round(each * stretch / FRACTION) * FRACTION for each in (top, length))
            boxes.append((top, length))
        return boxes

    def _window(self, axis: int) -> int:
        """Return the number of pixels of the stored image that the box may touch along an axis, for any image size."""
        whole = math.ceil(self.ratio * self.cache) + 1
        if self.crop is None or self.resize is None:
            return whole if self.crop is None else min(whole, self.crop + 1)
        if isinstance(self.resize, tuple):
            return min(whole, math.ceil(self.crop * self.ratio * self.cache / self.resize[axis]) + 2)
        # a canvas is rounded down by up to a pixel, so that the longer side is enlarged slightly more
        return min(whole, math.ceil(self.crop * self.cache / self.resize * (1.0 + 2.0 / self.resize)) + 2)

    def _scale(self, pixels: Tensor) -> Tensor:
        if self.order == "BGR":
            pixels = pixels.flip(1)
        elif self.order == "L":
            pixels = (pixels * self.luma).sum(1, keepdim=True)
        return pixels * self.slope + self.shift


def _weights(rows: Tensor, offset: Tensor, scale: Tensor, pixels: Tensor, reach: Tensor) -> Tensor:
    """Return the weight of each input pixel for some output pixels, ``(rows, pixels)``, in integer multiples of 1 / `BITS`."""
    center = offset + (rows[:, None] + 0.5) * scale
    place = pixels.to(torch.float64)
    wide = torch.clamp(scale, min=1.0)
    weights = torch.clamp(1.0 - (place + 0.5 - center).abs() / wide, min=0.0) * (place < reach)
    # a row beyond the image has no weights; it is not read
    total = torch.clamp(weights.sum(1, keepdim=True), min=1e-9)
    return torch.floor(weights / total * BITS + 0.5)


def _along(pixels: Tensor, weights: Tensor, axis: int) -> Tensor:
    """Resample bytes ``(B, 3, H, W)`` along one axis, and round to bytes."""
    mixed = weights @ pixels if axis == 0 else pixels @ weights.T
    return torch.clamp(torch.floor((mixed + BITS / 2.0) / BITS), 0.0, 255.0)


class WithPreprocessing(nn.Module):
    """A network with its preprocessing, which takes images as bytes.

    Args:
        network: network from ``(B, C, h, w)`` to embeddings.
        transform: transform from images ``(B, H, W, 3)`` of bytes to the input of the network.

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
        """Return the embeddings of images."""
        embeddings: Tensor = self.network(self.transform(images))
        return embeddings
