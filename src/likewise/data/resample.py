"""Resampling of boxes of images to one size: Pillow's antialiased bilinear filter, on the host or the device.

All implementations compute the same: crop the box (the whole pixels around it, if it has fractions), then resize.  Enlarging
is plain bilinear interpolation; when shrinking, the triangle filter is as wide as an output pixel, so that every input
pixel counts and nothing aliases.

- On the host, image by image: torch's kernel for bytes, which is a vectorized version of Pillow's arithmetic; Pillow for
  boxes with fractions of pixels.  Values are rounded to bytes, as in Pillow.
- On a device, the whole batch: one gather of the boxes, then the filter as two batched matrix products, horizontally and
  vertically, in float32 and without rounding.  A flip reverses the matrix, without additional cost.
- On a GPU with Triton, the same in one kernel (`likewise.data.kernel`), including the pixel scaling of the network.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

Bytes = NDArray[np.uint8]
FRACTION = 2.0**-20
"""The unit of box coordinates, as a fraction of a pixel."""


@dataclass(frozen=True)
class PackedImages:
    """Images of different sizes concatenated in one tensor, on any device.

    Args:
        pixels: pixels of all images ``(p, 3)`` as bytes, row by row.
        starts: first pixel of each image, ``(n,)``, on the host.
        sizes: heights and widths ``(n, 2)``, on the host.

    Examples:
        >>> import torch
        >>> images = PackedImages.of([torch.zeros(2, 3, 3, dtype=torch.uint8), torch.ones(1, 1, 3, dtype=torch.uint8)])
        >>> images.pixels.shape, images.starts.tolist(), images.sizes.tolist()
        (torch.Size([7, 3]), [0, 6], [[2, 3], [1, 1]])
    """

    pixels: Tensor
    starts: Tensor
    sizes: Tensor

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def of(cls, images: Sequence[Tensor] | Tensor) -> PackedImages:
        """Pack images ``(h, w, 3)`` of bytes that are on one device."""
        sizes = torch.tensor([image.shape[:2] for image in images], dtype=torch.int64).reshape(-1, 2)
        counts = sizes.prod(1)
        if isinstance(images, Tensor):
            pixels = images.reshape(-1, 3)
        else:
            pixels = torch.cat([image.reshape(-1, 3) for image in images])
        return cls(pixels, counts.cumsum(0) - counts, sizes)

    def select(self, indices: Tensor | slice) -> PackedImages:
        """Return some of the images; their pixels are not copied."""
        return PackedImages(self.pixels, self.starts[indices], self.sizes[indices])


def resample_each(images: Iterable[Bytes], boxes: Tensor, size: tuple[int, int]) -> Iterator[Bytes]:
    """Yield one resized box of each image, on the host: bytes ``(size[0], size[1], 3)``, possibly a view.

    Args:
        images: pixels ``(h, w, 3)``.
        boxes: top, left, height and width ``(n, 4)``; pixels outside an image repeat its edges.
        size: height and width of the result.

    Examples:
        >>> import numpy as np, torch
        >>> image = np.arange(4, dtype=np.uint8).reshape(1, 4, 1).repeat(3, axis=2)
        >>> [small] = resample_each([image], torch.tensor([[0.0, 0.0, 1.0, 4.0]]), (1, 2))
        >>> small[0, :, 0]
        array([1, 2], dtype=uint8)
    """
    low = boxes[:, :2].floor()
    high = (boxes[:, :2] + boxes[:, 2:]).ceil()
    of_whole_pixels = (high - low == boxes[:, 2:]).all(1).tolist()
    edges = torch.cat([low, high], dim=1).to(torch.int64).tolist()
    within = torch.cat([boxes[:, :2] - low, boxes[:, :2] - low + boxes[:, 2:]], dim=1)[:, [1, 0, 3, 2]].tolist()
    for image, (top, left, bottom, right), whole, box in zip(images, edges, of_whole_pixels, within, strict=True):
        part = image[top:bottom, left:right]
        if top < 0 or left < 0 or part.shape[0] < bottom - top or part.shape[1] < right - left:
            part = image[_clip_positions(top, bottom, image.shape[0])][:, _clip_positions(left, right, image.shape[1])]
        if not whole:
            resized = Image.fromarray(part).resize(size[::-1], Image.Resampling.BILINEAR, box=tuple(box))
            yield np.asarray(resized)
        elif part.shape[:2] == size:
            yield part
        else:
            # numpy makes the copy, because torch would start a thread team for each image.
            one = (
                torch.from_numpy(part.copy()).unsqueeze(0).permute(0, 3, 1, 2)
            )  # channels last; otherwise the kernel transposes
            yield F.interpolate(one, size, mode="bilinear", antialias=True).permute(0, 2, 3, 1)[0].numpy()


def _clip_positions(begin: int, end: int, length: int) -> NDArray[np.intp]:
    return np.arange(begin, end).clip(0, length - 1)


def resample_batch(images: PackedImages, boxes: Tensor, flips: Tensor, size: tuple[int, int]) -> Tensor:
    """Return one resized box of each image, on the device of the images: ``(n, 3, size[0], size[1])`` in float32, from 0 to 255.

    Args:
        images: the pixels.
        boxes: top, left, height and width ``(n, 4)``, on the host; pixels outside an image repeat its edges.
        flips: which images to mirror, ``(n,)`` booleans, on the host.
        size: height and width of the result.

    Examples:
        >>> import torch
        >>> images = PackedImages.of([torch.arange(4, dtype=torch.uint8).reshape(1, 4, 1).expand(1, 4, 3)])
        >>> resample_batch(images, torch.tensor([[0.0, 0.0, 1.0, 4.0]]), torch.tensor([True]), (1, 2))[0, 0]
        tensor([[2.2857, 0.7143]])
    """
    spans = (np.ceil(_ends(boxes)) - np.floor(boxes[:, :2].numpy())).max(0).astype(int).tolist()
    known = send(table_of(images, boxes, flips), images.pixels.device)
    start, sizes, low, reach, flip = known[:, :1], known[:, 1:3], known[:, 3:5], known[:, 5:7], known[:, 7:8]
    offset_and_extent = known[:, 8:].to(torch.float32) * FRACTION

    places, weights = [], []
    for axis in (0, 1):
        place = low[:, axis, None] + torch.arange(spans[axis], device=known.device)
        # pixels outside an image repeat its edge
        places.append(torch.minimum(place.clamp_min(0), sizes[:, axis, None] - 1))
        offset, extent = offset_and_extent[:, axis], offset_and_extent[:, axis + 2]
        weights.append(triangle_weights(offset, extent, reach[:, axis], size[axis], spans[axis]))
    index = (start + places[0] * sizes[:, 1, None])[:, :, None] + places[1][:, None, :]
    chosen = images.pixels.index_select(0, index.flatten())
    source = chosen.view(len(images), spans[0], spans[1], 3).permute(0, 3, 1, 2)
    source = source.to(torch.float32, memory_format=torch.contiguous_format)
    down, across = weights[0], torch.where(flip[:, :, None] > 0, weights[1].flip(1), weights[1])
    with torch.autocast(known.device.type, enabled=False):
        narrowed = torch.bmm(source.reshape(len(images), -1, spans[1]), across.transpose(1, 2))  # (n, 3 · h, W)
        return torch.matmul(down.unsqueeze(1), narrowed.view(len(images), 3, spans[0], size[1]))  # (n, 3, H, W)


def table_of(images: PackedImages, boxes: Tensor, flips: Tensor) -> Tensor:
    """Return the table from which a device makes a batch, as integers ``(n, 12)``: one small copy.

    The columns are start and size of the image, the first pixel of the box and the number of pixels it touches, whether to
    flip, and the offset of the box inside its first pixel and its length, in units of `FRACTION`.

    Examples:
        >>> import torch
        >>> images = PackedImages.of(torch.zeros(1, 4, 6, 3, dtype=torch.uint8))
        >>> table_of(images, torch.tensor([[0.5, 2.0, 3.0, 4.0]]), torch.tensor([True]))
        tensor([[      0,       4,       6,       0,       2,       4,       4,       1,
                  524288,       0, 3145728, 4194304]])
    """
    table = np.empty((len(images), 12), np.int64)
    box = boxes.numpy()
    low = np.floor(box[:, :2])
    table[:, 0] = images.starts.numpy()
    table[:, 1:3] = images.sizes.numpy()
    table[:, 3:5] = low
    table[:, 5:7] = np.ceil(_ends(boxes)) - low
    table[:, 7] = flips.numpy()
    table[:, 8:10] = np.rint((box[:, :2] - low) / FRACTION)
    table[:, 10:] = np.rint(box[:, 2:] / FRACTION)
    return torch.from_numpy(table)


def _ends(boxes: Tensor) -> NDArray[np.float64]:
    box = boxes.numpy()
    ends: NDArray[np.float64] = box[:, :2] + box[:, 2:]
    return ends


def triangle_weights(offset: Tensor, extent: Tensor, reach: Tensor, size: int, span: int) -> Tensor:
    """Return the weight of each input pixel for each output pixel along one axis: ``(n, size, span)``; rows sum to one.

    Args:
        offset: start of the box, in pixels, ``(n,)``.
        extent: length of the box, ``(n,)``.
        reach: number of valid pixels among the ``span`` ones, ``(n,)``; the others have weight zero.
        size: number of output pixels.
        span: number of input pixels.

    Examples:
        >>> import torch
        >>> one = torch.ones(1)
        >>> triangle_weights(0 * one, 4 * one, 4 * one, 2, 4)
        tensor([[[0.4286, 0.4286, 0.1429, 0.0000],
                 [0.0000, 0.1429, 0.4286, 0.4286]]])
    """
    pixels = torch.arange(span, device=offset.device, dtype=torch.float32)
    scale = (extent / size).to(torch.float32)[:, None, None]  # (n, 1, 1) input pixels per output pixel
    middle = torch.arange(size, device=offset.device, dtype=torch.float32) + 0.5
    center = offset.to(torch.float32)[:, None, None] + scale * middle[:, None]
    weights = (1.0 - (pixels + 0.5 - center).abs() / scale.clamp_min(1.0)).clamp_min(0.0)
    weights = weights * (pixels < reach[:, None, None])
    return weights / weights.sum(2, keepdim=True)


@lru_cache(maxsize=8)
def find_kernel(device: torch.device) -> ModuleType | None:
    """Return the kernel if the device is a GPU and Triton can build it, else ``None``; warn if Triton is installed but cannot build.

    Examples:
        >>> import torch
        >>> find_kernel(torch.device("cpu")) is None
        True
    """
    if device.type != "cuda":
        return None
    try:
        from likewise.data import kernel
    except ImportError:
        return None
    try:
        kernel.probe(device)
    except Exception as error:  # without a C compiler Triton raises various errors
        warnings.warn(f"Triton cannot compile kernels on this machine, so crops are slower: {error}", stacklevel=2)
        return None
    return kernel


def send(values: Tensor, device: torch.device) -> Tensor:
    """Copy a small tensor from the host to a device without waiting for the device.

    Examples:
        >>> import torch
        >>> send(torch.ones(2), torch.device("cpu"))
        tensor([1., 1.])
    """
    if device.type != "cuda":
        return values.to(device)
    # a copy from pageable memory would wait until the device is idle
    return values.pin_memory().to(device, non_blocking=True)
