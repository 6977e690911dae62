"""Crops: the boxes of a whole batch, drawn at once on the host from one generator.

A box is ``(top, left, height, width)`` in pixels.  A crop draws boxes on a canvas, which is the image or the image after a
resize.  That resize is never carried out: one later resampling goes directly from the stored pixels to the output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

Floats = NDArray[np.float64]
TRIES = 10


class Crop(Protocol):
    """Protocol of crops: objects that turn random numbers into one box per image of a batch.

    Examples:
        >>> import torch
        >>> crop: Crop = CenterCrop(2)
        >>> draw_boxes(crop, torch.tensor([[4, 6]]), torch.Generator())
        tensor([[1., 2., 2., 2.]], dtype=torch.float64)
    """

    @property
    def numbers(self) -> int:
        """How many random numbers an image takes; it is constant, so a batch depends only on its generator."""

    def place(self, sizes: Tensor, uniform: Floats) -> Floats:
        """Return boxes ``(n, 4)`` on images of these heights and widths ``(n, 2)``, from numbers in [0, 1), ``(n, numbers)``."""


def draw_boxes(crop: Crop, sizes: Tensor, generator: Generator) -> Tensor:
    """Draw a box for each image.

    Args:
        crop: the distribution of boxes.
        sizes: heights and widths of the images, ``(n, 2)``.
        generator: generator of the random numbers.

    Examples:
        >>> import torch
        >>> draw_boxes(RandomCrop(227), torch.tensor([[256, 256]]), torch.Generator().manual_seed(0))
        tensor([[ 29.,  21., 227., 227.]], dtype=torch.float64)
    """
    uniform = torch.rand(len(sizes), crop.numbers, generator=generator, dtype=torch.float64)
    return torch.from_numpy(crop.place(sizes, uniform.numpy()))


@dataclass(frozen=True)
class RandomResizedCrop:
    """A box of random area, aspect ratio and position, with the distribution of torchvision's transform of this name.

    Up to ten times an area (uniform) and an aspect ratio (log-uniform) are drawn.  The first box that fits is placed at a
    random position of the image.  If none fits, the result is the largest centered box of an allowed aspect ratio.

    Args:
        scale: range of the area of the box, as a fraction of the area of the image.
        ratio: range of width over height.
        side: range of the side of a square of the same area as the box, in pixels, drawn uniformly; replaces ``scale``.
            The reality check specifies its crops this way.

    Examples:
        >>> import torch
        >>> quarter = RandomResizedCrop(scale=(0.25, 0.25), ratio=(1.0, 1.0))
        >>> draw_boxes(quarter, torch.tensor([[8, 8]]), torch.Generator())[:, 2:]
        tensor([[4., 4.]], dtype=torch.float64)
    """

    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0)
    side: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _check_range("scale", self.scale)
        _check_range("ratio", self.ratio)
        if self.scale[1] > 1.0:
            raise ValueError(f"scale must be a fraction of the image's area, at most 1.0, but it is {self.scale}")
        if self.side is not None:
            _check_range("side", self.side)

    @property
    def numbers(self) -> int:
        """How many random numbers an image takes."""
        return 2 * TRIES + 2

    def place(self, sizes: Tensor, uniform: Floats) -> Floats:
        """Return boxes ``(n, 4)`` on images of these heights and widths ``(n, 2)``."""
        heights, widths = _heights_and_widths(sizes)
        areas = self._areas(uniform[:, :TRIES], heights * widths)
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        sides, roots = np.sqrt(areas), np.exp(low / 2 + (high - low) / 2 * uniform[:, TRIES : 2 * TRIES])
        wide, tall = np.rint(sides * roots), np.rint(sides / roots)
        fits = (wide >= 1) & (wide <= widths[:, None]) & (tall >= 1) & (tall <= heights[:, None])
        rows, first = np.arange(len(fits)), fits.argmax(1)
        found = fits[rows, first]
        shape = self._largest(heights, widths)
        box_heights = np.where(found, tall[rows, first], shape[0])
        box_widths = np.where(found, wide[rows, first], shape[1])
        down, right = heights - box_heights, widths - box_widths
        top = np.where(found, np.floor(uniform[:, -2] * (down + 1)), down // 2)
        left = np.where(found, np.floor(uniform[:, -1] * (right + 1)), right // 2)
        return np.stack([top, left, box_heights, box_widths], axis=1)

    def _areas(self, uniform: Floats, whole: Floats) -> Floats:
        if self.side is not None:
            return np.square(self.side[0] + (self.side[1] - self.side[0]) * uniform)
        shares: Floats = self.scale[0] + (self.scale[1] - self.scale[0]) * uniform
        return shares * whole[:, None]

    def _largest(self, heights: Floats, widths: Floats) -> tuple[Floats, Floats]:
        """Return heights and widths of the largest box of an allowed ratio: the image, or as much as its shorter side allows."""
        shape = widths / heights
        narrow, broad = shape < self.ratio[0], shape > self.ratio[1]
        return (
            np.where(narrow, np.rint(widths / self.ratio[0]), heights),
            np.where(broad, np.rint(heights * self.ratio[1]), widths),
        )


@dataclass(frozen=True)
class RandomCrop:
    """A box of a fixed size at a random position.

    Args:
        size: height and width of the box in pixels.

    Examples:
        >>> import torch
        >>> draw_boxes(RandomCrop(227), torch.tensor([[256, 256]]), torch.Generator().manual_seed(0))
        tensor([[ 29.,  21., 227., 227.]], dtype=torch.float64)
    """

    size: int

    @property
    def numbers(self) -> int:
        """How many random numbers an image takes."""
        return 2

    def place(self, sizes: Tensor, uniform: Floats) -> Floats:
        """Return boxes ``(n, 4)`` on images of these heights and widths ``(n, 2)``."""
        heights, widths = _heights_and_widths(sizes)
        _check_fits(self.size, heights, widths)
        top = np.floor(uniform[:, 0] * (heights - self.size + 1))
        left = np.floor(uniform[:, 1] * (widths - self.size + 1))
        side = np.full_like(top, self.size)
        return np.stack([top, left, side, side], axis=1)


@dataclass(frozen=True)
class CenterCrop:
    """A box at the center of the image.

    Args:
        size: height and width of the box in pixels; by default the whole image.

    Examples:
        >>> import torch
        >>> draw_boxes(CenterCrop(227), torch.tensor([[256, 341]]), torch.Generator())
        tensor([[ 14.,  57., 227., 227.]], dtype=torch.float64)
    """

    size: int | None = None

    @property
    def numbers(self) -> int:
        """How many random numbers an image takes."""
        return 0

    def place(self, sizes: Tensor, uniform: Floats) -> Floats:
        """Return boxes ``(n, 4)`` on images of these heights and widths ``(n, 2)``."""
        heights, widths = _heights_and_widths(sizes)
        if self.size is None:
            nothing = np.zeros_like(heights)
            return np.stack([nothing, nothing, heights, widths], axis=1)
        _check_fits(self.size, heights, widths)
        # half pixels are rounded to the even side, as in torchvision
        top, left = np.rint((heights - self.size) / 2.0), np.rint((widths - self.size) / 2.0)
        side = np.full_like(top, self.size)
        return np.stack([top, left, side, side], axis=1)


@dataclass(frozen=True)
class RandomShift:
    """The whole image, slightly scaled and shifted; the border repeats the pixels at the edge.

    Args:
        by: largest shift in each direction, as a fraction of the side of the image.
        zoom: range of the magnification, drawn log-uniformly.

    Examples:
        >>> import torch
        >>> draw_boxes(RandomShift(0.0, zoom=(2.0, 2.0)), torch.tensor([[8, 8]]), torch.Generator())
        tensor([[2., 2., 4., 4.]], dtype=torch.float64)
    """

    by: float = 0.1
    zoom: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        _check_range("zoom", self.zoom)
        if not 0.0 <= self.by <= 0.5:
            raise ValueError(f"by must lie between 0.0 and 0.5, but it is {self.by!r}")

    @property
    def numbers(self) -> int:
        """How many random numbers an image takes."""
        return 3

    def place(self, sizes: Tensor, uniform: Floats) -> Floats:
        """Return boxes ``(n, 4)`` of whole pixels, which may extend over the edges of images of these sizes ``(n, 2)``."""
        heights, widths = _heights_and_widths(sizes)
        low, high = math.log(self.zoom[0]), math.log(self.zoom[1])
        zoom = np.exp(low + (high - low) * uniform[:, 0])
        tall, wide = np.maximum(np.rint(heights / zoom), 1.0), np.maximum(np.rint(widths / zoom), 1.0)
        top = np.rint((heights - tall) / 2.0 + (2.0 * uniform[:, 1] - 1.0) * self.by * heights)
        left = np.rint((widths - wide) / 2.0 + (2.0 * uniform[:, 2] - 1.0) * self.by * widths)
        return np.stack([top, left, tall, wide], axis=1)


def canvas(sizes: Tensor, resize: int | tuple[int, int] | None) -> Tensor:
    """Return the heights and widths ``(n, 2)`` of images after a resize.

    Args:
        sizes: heights and widths of the images.
        resize: new length of the shorter side, with the aspect ratio kept; or a height and a width; or ``None``.

    Examples:
        >>> import torch
        >>> canvas(torch.tensor([[375, 500], [500, 333]]), 256)
        tensor([[256, 341],
                [384, 256]])
        >>> canvas(torch.tensor([[375, 500]]), (256, 256))
        tensor([[256, 256]])
    """
    if resize is None:
        return sizes
    if isinstance(resize, tuple):
        return torch.tensor([resize]).expand(len(sizes), 2)
    shorter = sizes.amin(1, keepdim=True)
    return sizes * resize // shorter.clamp_min(1)


def _heights_and_widths(sizes: Tensor) -> tuple[Floats, Floats]:
    if sizes.ndim != 2 or sizes.shape[1] != 2:
        raise ValueError(f"sizes must have shape (n, 2), heights and widths, but the shape is {tuple(sizes.shape)}")
    both = sizes.numpy().astype(np.float64)
    return both[:, 0], both[:, 1]


def _check_range(name: str, value: tuple[float, float]) -> None:
    if len(value) != 2 or not 0.0 < value[0] <= value[1] < math.inf:
        raise ValueError(f"{name} must be two positive numbers, the smaller one first, but it is {value!r}")


def _check_fits(size: int, heights: Floats, widths: Floats) -> None:
    small = np.minimum(heights, widths) < size
    if small.any():
        height, width = int(heights[small][0]), int(widths[small][0])
        raise ValueError(
            f"size must be at most the images' shorter side, but it is {size} and one image has {height} x {width}"
            " pixels; set resize to enlarge them"
        )
