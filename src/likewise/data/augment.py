"""Augmentation of a batch from stored bytes to network input: crop, flip, colors and pixel scaling in one resampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from likewise.data.color import LUMA, ColorJitter, gray
from likewise.data.crops import Crop, canvas
from likewise.data.resample import (
    FRACTION,
    Bytes,
    PackedImages,
    find_kernel,
    resample_batch,
    resample_each,
    send,
    table_of,
)

Floats32 = NDArray[np.float32]
Images = PackedImages | Tensor | Sequence[Tensor] | Sequence[Bytes]


class PixelScale(Protocol):
    """Pixel scaling that a network expects, ``(x · white − mean) / std`` for x from 0 to 1, such as the preprocessing of a trunk.

    Examples:
        >>> scale: PixelScale = Normalize(mean=(127.0,) * 3, std=(128.0,) * 3, white=255.0)
        >>> scale.order
        'RGB'
    """

    @property
    def mean(self) -> tuple[float, ...]:
        """The mean of each channel."""

    @property
    def std(self) -> tuple[float, ...]:
        """The standard deviation of each channel."""

    @property
    def white(self) -> float:
        """The value of white before the mean is subtracted."""

    @property
    def order(self) -> str:
        """The order of the channels: ``"RGB"``, ``"BGR"`` or ``"L"`` for gray."""


@dataclass(frozen=True)
class Normalize:
    """Pixel scaling ``(x · white − mean) / std``, where x is 0 for black and 1 for white; by default that of ImageNet.

    Args:
        mean: subtracted from each channel.
        std: divisor of each channel.
        white: value of white before normalization: 1.0, or 255.0 for networks that were trained on bytes.
        order: ``"RGB"``, ``"BGR"``, or ``"L"`` for one gray channel.

    Examples:
        >>> Normalize().mean
        (0.485, 0.456, 0.406)
    """

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    white: float = 1.0
    order: str = "RGB"


PLAIN = Normalize((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
"""Values from 0 for black to 1 for white."""


@dataclass(frozen=True)
class Draw:
    """The random numbers of a batch, from which it can be reproduced.

    Args:
        boxes: top, left, height and width ``(n, 4)`` of each crop, in pixels of the stored image.
        flips: which images are mirrored, ``(n,)``.
        amounts: changes of brightness, contrast, saturation and hue per image, ``(n, 4)``.
        order: order of these changes.

    Examples:
        >>> import torch
        >>> Draw(torch.zeros(1, 4), torch.tensor([False])).order
        ()
    """

    boxes: Tensor
    flips: Tensor
    amounts: Tensor | None = None
    order: tuple[int, ...] = ()

    def part(self, which: slice, order: tuple[int, ...]) -> Draw:
        """Return the numbers of a slice of the images, with another order of color changes."""
        amounts = None if self.amounts is None else self.amounts[which]
        return Draw(self.boxes[which], self.flips[which], amounts, order)


@dataclass(frozen=True)
class Augment:
    """Transform from images to the input of a network; the transform of an evaluation has no random operations.

    A call takes images of any sizes as bytes and returns one batch of floats on the same device.  All random numbers are
    drawn on the host from the generator, so that the same generator gives the same crops on every device.

    Args:
        size: height and width of the result in pixels; one number for a square.
        crop: the crop of each image.
        resize: draw crops as if the images had been resized first: to this length of the shorter side, or to this height
            and width.  The images are not resized; the crop is resampled once, from the stored pixels.
        flip: probability of a horizontal flip.
        jitter: random changes of colors; ``None`` for no change.
        normalize: pixel scaling that the network expects, such as the ``preprocessing`` of a trunk; by default 0 to 1.
        dtype: floating-point dtype of the result.
        channels_last: use the memory layout ``(n, h, w, c)``; the shape stays ``(n, c, h, w)``.
        scales: scales from 0.1 to 10, one of which is drawn for each image with equal probability.  The size of the crop is
            divided by the scale around its center, so that 1.5 enlarges; a crop that extends over an edge repeats the
            edge.  The authors of the N-pair loss train with multi-scale images (Sohn 2016).  None by default.

    Examples:
        >>> import torch
        >>> from likewise.data.crops import RandomResizedCrop
        >>> augment = Augment(4, RandomResizedCrop(), flip=0.5)
        >>> photos = torch.randint(0, 256, (2, 9, 12, 3), dtype=torch.uint8)
        >>> augment(photos, torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3, 4, 4])
    """

    size: int | tuple[int, int]
    crop: Crop
    resize: int | tuple[int, int] | None = None
    flip: float = 0.0
    jitter: ColorJitter | None = None
    normalize: PixelScale = PLAIN
    dtype: torch.dtype = torch.float32
    channels_last: bool = False
    scales: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not all(isinstance(scale, int | float) and 0.1 <= scale <= 10.0 for scale in self.scales):
            raise ValueError(f"scales must be numbers from 0.1 to 10, but they are {self.scales!r}")
        for name in ("size", "resize"):
            value = getattr(self, name)
            sides = value if isinstance(value, tuple) else (value, value)
            if value is None and name == "resize":
                continue
            if len(sides) != 2 or any(
                isinstance(side, bool) or not isinstance(side, int) or side < 1 for side in sides
            ):
                raise ValueError(f"{name} must be a whole number of pixels ≥ 1, or two, but it is {value!r}")
        if not 0.0 <= self.flip <= 1.0:
            raise ValueError(f"flip must be a probability, but it is {self.flip!r}")
        if not self.dtype.is_floating_point:
            raise ValueError(f"dtype must be a floating-point dtype, but it is {self.dtype}")
        _coefficients(self.normalize)

    def draw(self, sizes: Tensor, generator: Generator) -> Draw:
        """Draw all random numbers for images of these heights and widths ``(n, 2)``, on the host."""
        return self.place(sizes, self.draw_numbers(len(sizes), generator), self.order(generator))

    def draw_numbers(self, count: int, generator: Generator) -> Tensor:
        """Draw random numbers for ``count`` images, ``(count, …)``."""
        numbers = self.crop.numbers + 1 + (0 if self.jitter is None else 4) + bool(self.scales)
        return torch.rand(count, numbers, generator=generator, dtype=torch.float64)

    def order(self, generator: Generator) -> tuple[int, ...]:
        """Draw the order of the color changes of a batch."""
        return () if self.jitter is None else tuple(torch.randperm(4, generator=generator).tolist())

    def place(self, sizes: Tensor, numbers: Tensor, order: tuple[int, ...] = ()) -> Draw:
        """Compute boxes and color changes from random numbers, for images of these sizes; several batches may be concatenated."""
        shown = canvas(sizes, self.resize)
        boxes = torch.from_numpy(self.crop.place(shown, numbers[:, : self.crop.numbers].numpy()))
        if self.scales:
            boxes = self._zoom(boxes, numbers[:, -1])
        if self.resize is not None:
            stretch = sizes.to(torch.float64) / shown
            boxes = boxes * torch.cat([stretch, stretch], dim=1)
        if self.scales or self.resize is not None:
            boxes = (boxes / FRACTION).round() * FRACTION
        flips = numbers[:, self.crop.numbers] < self.flip
        amounts = None if self.jitter is None else self.jitter.amounts(numbers[:, self.crop.numbers + 1 :][:, :4])
        return Draw(boxes, flips, amounts, order)

    def _zoom(self, boxes: Tensor, uniform: Tensor) -> Tensor:
        """Divide the size of each box by a drawn scale, around the same center."""
        scales = torch.tensor(self.scales, dtype=boxes.dtype)
        sides = boxes[:, 2:] / scales[(uniform * len(scales)).long()][:, None]
        return torch.cat([boxes[:, :2] + 0.5 * (boxes[:, 2:] - sides), sides], dim=1)

    def apply(self, images: Images, draw: Draw, *, out: Floats32 | None = None) -> Tensor:
        """Make a batch from its random numbers.

        Args:
            images: bytes, as `PackedImages`, as a tensor ``(n, h, w, 3)`` or as several of shape ``(h, w, 3)``.
            draw: the random numbers of the batch.
            out: memory for the result if the images are on the host: float32, ``(n, h, w, c)`` with channels last,
                ``(n, c, h, w)`` otherwise.
        """
        with torch.no_grad():
            packed = _pack(images)
            if isinstance(packed, PackedImages):
                if self.jitter is None and find_kernel(packed.pixels.device) is not None:
                    table = send(table_of(packed, draw.boxes, draw.flips), packed.pixels.device)
                    return self.at_once(packed.pixels, table)
                pixels = resample_batch(packed, draw.boxes, draw.flips, self.shape)
                return self._finish(self._jitter_colors(pixels / 255.0, draw) * 255.0 if self.jitter else pixels)
            if self.jitter is None:
                return self._on_host(packed, draw, self.normalize, out).to(self.dtype)
            return self._finish(self._jitter_colors(self._on_host(packed, draw, PLAIN, None), draw) * 255.0)

    def __call__(self, images: Images, generator: Generator) -> Tensor:
        """Draw random numbers and make a batch."""
        packed = _pack(images)
        if isinstance(packed, PackedImages):
            sizes = packed.sizes
        else:
            sizes = torch.tensor([image.shape[:2] for image in packed], dtype=torch.int64).reshape(-1, 2)
        return self.apply(packed, self.draw(sizes, generator))

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the result."""
        return self.size if isinstance(self.size, tuple) else (self.size, self.size)

    def buffer(self, count: int, channels: int | None = None) -> tuple[int, ...]:
        """Return the shape of ``out`` for ``count`` images, with the number of channels that the network expects."""
        channels = len(self.normalize.order) if channels is None else channels
        return (count, *self.shape, channels) if self.channels_last else (count, channels, *self.shape)

    def _on_host(self, images: Sequence[Bytes], draw: Draw, scale: PixelScale, out: Floats32 | None) -> Tensor:
        # numpy throughout, because torch would start a thread team for every operation on every image
        channels = len(scale.order)
        made: Floats32 = np.empty(self.buffer(len(images), channels), np.float32) if out is None else out
        slope, shift = (np.array(each, np.float32) for each in _coefficients(scale))
        if self.channels_last:  # coefficients repeated over a whole row, for speed
            slope, shift = (np.tile(each, self.shape[1]).reshape(-1, channels) for each in (slope, shift))
        else:
            slope, shift = slope.reshape(-1, 1, 1), shift.reshape(-1, 1, 1)
        resampled = resample_each(images, draw.boxes, self.shape)
        for place, flip, pixels in zip(made, draw.flips.tolist(), resampled, strict=True):
            ordered = _select_channels(pixels[:, ::-1] if flip else pixels, scale.order)
            if not self.channels_last:
                np.copyto(place, ordered.transpose(2, 0, 1))
            elif ordered.flags.c_contiguous:
                np.copyto(place, ordered)
            else:  # plane by plane, because loops over three channels are slow
                for plane in range(channels):
                    np.copyto(place[:, :, plane], ordered[:, :, plane])
            np.multiply(place, slope, out=place)
            np.add(place, shift, out=place)
        return torch.from_numpy(made.transpose(0, 3, 1, 2) if self.channels_last else made)

    def at_once(self, pixels: Tensor, table: Tensor) -> Tensor:
        """Make a batch with the compiled kernel, from pixels and a table (see `table_of`) on the device."""
        kernel = find_kernel(pixels.device)
        assert kernel is not None
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        shape = (len(table), len(self.normalize.order), *self.shape)
        out = torch.empty(shape, dtype=self.dtype, device=pixels.device, memory_format=layout)
        scaling = _constant((*_six_coefficients(self.normalize), *LUMA), pixels.device).view(-1)
        made: Tensor = kernel.resample(pixels, table, scaling, out, self.normalize.order, FRACTION)
        return made

    def _jitter_colors(self, images: Tensor, draw: Draw) -> Tensor:
        assert self.jitter is not None
        assert draw.amounts is not None
        return self.jitter.apply(images, send(draw.amounts, images.device), draw.order)

    def _finish(self, pixels: Tensor) -> Tensor:
        """Convert bytes to floats ``(n, 3, h, w)``, normalized for the network."""
        if self.normalize.order == "BGR":
            pixels = pixels.flip(1)
        elif self.normalize.order == "L":
            pixels = gray(pixels)
        slope, shift = (_constant(each, pixels.device) for each in _coefficients(self.normalize))
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        return torch.addcmul(shift, pixels, slope).to(self.dtype, memory_format=layout)


def _pack(images: Images) -> PackedImages | Sequence[Bytes]:
    """Return images on a device as `PackedImages`, and images on the host as arrays."""
    if isinstance(images, PackedImages):
        if images.pixels.device.type != "cpu":
            return images
        pixels = images.pixels.numpy()
        spans = zip(images.starts.tolist(), images.sizes.tolist(), strict=True)
        return [pixels[start : start + height * width].reshape(height, width, 3) for start, (height, width) in spans]
    for image in images if len(images) else ():
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype not in (torch.uint8, np.uint8):
            raise ValueError(f"images must be bytes of shape (h, w, 3), but one is {image.dtype} {tuple(image.shape)}")
    tensors: list[Any] = list(images)
    if tensors and isinstance(tensors[0], Tensor):
        if tensors[0].device.type != "cpu":
            return PackedImages.of(images if isinstance(images, Tensor) else tensors)
        return [image.numpy() for image in tensors]
    return tensors


def _select_channels(pixels: Bytes, order: str) -> NDArray[Any]:
    """Return pixels ``(h, w, 3)`` with the channels that a network expects."""
    if order == "L":
        return (pixels @ np.array(LUMA, np.float32))[:, :, None]
    return pixels[:, :, ::-1] if order == "BGR" else pixels


def _coefficients(scale: PixelScale) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return factor and offset of each channel, applied to bytes."""
    if scale.order not in ("RGB", "BGR", "L"):
        raise ValueError(f"normalize must have the order 'RGB', 'BGR' or 'L', but it is {scale.order!r}")
    if not len(scale.mean) == len(scale.std) == len(scale.order):
        raise ValueError(f"normalize must have one mean and std for each channel of {scale.order}, but it is {scale}")
    if not all(std > 0.0 for std in scale.std):
        raise ValueError(f"normalize must have a positive std, but it is {scale.std}")
    slope = tuple(scale.white / 255.0 / std for std in scale.std)
    return slope, tuple(-mean / std for mean, std in zip(scale.mean, scale.std, strict=True))


def _six_coefficients(scale: PixelScale) -> tuple[float, ...]:
    """Return three factors, then three offsets, even for one channel."""
    slope, shift = _coefficients(scale)
    return (*slope, *slope, *slope)[:3] + (*shift, *shift, *shift)[:3]


@lru_cache(maxsize=64)
def _constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Return numbers per channel on a device; they are copied once, because a copy per batch would block the host."""
    return torch.tensor(values, dtype=torch.float32, device=device).view(1, -1, 1, 1)
