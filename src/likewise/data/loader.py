"""Loaders of augmented image batches: prepared ahead by threads or made on the device, and the same in every run."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from likewise.data.augment import Augment, Draw
from likewise.data.cache import ImageCache
from likewise.data.resample import Bytes, PackedImages, find_kernel, send, table_of
from likewise.data.resumable_loader import Batch, Indices, ResumableLoader
from likewise.data.shards import cores

TOGETHER = 16
"""Batches whose crops are drawn together for a cache on a device, where many small operations would dominate the time."""


@dataclass(frozen=True)
class _Prepared:
    """A batch whose bytes are being copied to the device, and its random numbers."""

    packed: PackedImages
    draw: Draw
    arrived: torch.cuda.Event | None


class BatchLoader(ResumableLoader[Batch]):
    """Batches of augmented images from a cache, on a device.

    Images of a cache on the device are cropped there, without a copy.  Images of a cache in memory or on disk are
    processed ahead of time by threads: for the CPU the threads make whole batches; for another device they gather the
    rows that the crops need and copy them.

    The random numbers of a batch depend only on ``(seed, epoch, step, rank)``, not on the number of threads, so a resumed
    run sees the same batches.  The loader counts the batches that it has returned, not those prepared ahead.

    Args:
        images: a cached data set.
        batches: the images of each batch: a batch sampler, or a list of index lists.  A resumable sampler is moved to the
            position of the loader.  For any other one ``set_epoch`` is called, if it exists, and iteration starts at the
            first batch.
        augment: the augmentation.
        device: device of the batches.
        seed: seed of the augmentation.
        rank: rank of this process; each rank draws different crops.
        workers: number of threads; by default one per core, at most eight, for the CPU, and two for another device.
        prefetch: batches prepared ahead, in addition to those that the threads work on.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from likewise.data import ImageFolder
        >>> from likewise.data.cache import cached
        >>> from likewise.data.transforms import CUB128
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("cat", "dog"):
        ...     (folder / "photos" / name).mkdir(parents=True)
        ...     Image.new("RGB", (150, 140)).save(folder / "photos" / name / "a.png")
        >>> photos = cached(ImageFolder(folder / "photos"), folder / "cache", size=CUB128.cache)
        >>> loader = BatchLoader(photos, [[0, 1], [1]], CUB128.train)
        >>> [(batch.images.shape, batch.labels.tolist()) for batch in loader]
        [(torch.Size([2, 3, 112, 112]), [0, 1]), (torch.Size([1, 3, 112, 112]), [1])]
    """

    def __init__(
        self,
        images: ImageCache,
        batches: Iterable[Indices],
        augment: Augment,
        *,
        device: str | torch.device = "cpu",
        seed: int = 0,
        rank: int = 0,
        workers: int | None = None,
        prefetch: int = 2,
    ) -> None:
        if not isinstance(images, ImageCache):
            raise TypeError(
                f"images must be an ImageCache, which cached() returns, but it is a {type(images).__name__}"
            )
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be a whole number ≥ 1, but it is {workers!r}")
        if prefetch < 0:
            raise ValueError(f"prefetch must be a whole number ≥ 0, but it is {prefetch!r}")
        super().__init__(batches, device=device)
        self.images = images
        self.augment = augment
        if images.device.type != "cpu" and images.device.type != self.device.type:
            raise ValueError(f"device must be where the images are held, {images.device}, but it is {self.device}")
        self.seed = seed
        self.rank = rank
        self.workers = min(8 if self.device.type == "cpu" else 2, cores()) if workers is None else workers
        self.prefetch = prefetch
        self._spare = _Buffers(self.workers + prefetch + 2)

    @property
    def labels(self) -> Tensor:
        """The labels of all images: the ``targets`` of the sampler, if it has them, or the labels of the data set."""
        targets: Tensor | None = getattr(self.batches, "targets", None)
        return self.images.labels if targets is None else targets

    def make_batches(self, work: Iterator[tuple[int, Tensor]]) -> Iterator[Batch]:
        """Yield the batch of each step, from the indices of its images."""
        return self._on_device(work) if self.images.device.type != "cpu" else self._ahead(work)

    def _on_device(self, work: Iterator[tuple[int, Tensor]]) -> Iterator[Batch]:
        """Make batches from pixels on the device; only random numbers are copied, those of several batches at once."""
        at_once = self.augment.jitter is None and find_kernel(self.images.device) is not None
        while several := list(islice(work, TOGETHER)):
            lengths = [len(indices) for _, indices in several]
            packed = self.images.packed(indices := torch.cat([indices for _, indices in several]))
            generators = [self._generator(step) for step, _ in several]
            numbers = [self.augment.draw_numbers(*each) for each in zip(lengths, generators, strict=True)]
            orders = [self.augment.order(generator) for generator in generators]
            draw = self.augment.place(packed.sizes, torch.cat(numbers))
            table = send(table_of(packed, draw.boxes, draw.flips), self.images.device)
            labels, places = self._send_labels(indices, self.images.device)
            end = 0
            for length, order in zip(lengths, orders, strict=True):
                start, end = end, end + length
                if at_once:
                    images = self.augment.at_once(packed.pixels, table[start:end])
                else:
                    part = packed.select(slice(start, end))
                    images = self.augment.apply(part, draw.part(slice(start, end), order))
                yield Batch(images, labels[start:end], places[start:end])

    def _ahead(self, work: Iterator[tuple[int, Tensor]]) -> Iterator[Batch]:
        """Make batches in threads, and yield them in order."""
        waiting: deque[tuple[Future[Tensor] | Future[_Prepared], Tensor]] = deque()
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="likewise-batches")
        stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None  # type: ignore[no-untyped-call]
        try:
            while True:
                for step, indices in islice(work, self.workers + self.prefetch - len(waiting)):
                    waiting.append((self._submit(pool, step, indices, stream), indices))
                if not waiting:
                    return
                future, indices = waiting.popleft()
                made = future.result()
                del future
                yield self._batch(made if isinstance(made, Tensor) else self._wait_for_copy(made), indices)
                del made  # its memory can be reused by the next batch
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _submit(
        self, pool: ThreadPoolExecutor, step: int, indices: Tensor, stream: torch.cuda.Stream | None
    ) -> Future[Tensor] | Future[_Prepared]:
        if self.device.type == "cpu":
            out = self._spare.take(self.augment.buffer(len(indices)))
            return pool.submit(self._make, indices, self._generator(step), out)
        return pool.submit(self._send, indices, self._generator(step), stream)

    def _make(self, indices: Tensor, generator: Generator, out: NDArray[np.float32]) -> Tensor:
        draw = self.augment.draw(self.images.sizes[indices], generator)
        return self.augment.apply(self.images.arrays(indices), draw, out=out)

    def _send(self, indices: Tensor, generator: Generator, stream: torch.cuda.Stream | None) -> _Prepared:
        draw = self.augment.draw(self.images.sizes[indices], generator)
        packed, boxes = pack_rows(self.images.arrays(indices), draw.boxes, pin=stream is not None)
        draw = replace(draw, boxes=boxes)
        if stream is None:
            return _Prepared(replace(packed, pixels=packed.pixels.to(self.device)), draw, None)
        with torch.cuda.stream(stream):
            pixels = packed.pixels.to(self.device, non_blocking=True)
            return _Prepared(replace(packed, pixels=pixels), draw, stream.record_event())

    def _wait_for_copy(self, prepared: _Prepared) -> Tensor:
        if prepared.arrived is not None:
            current = torch.cuda.current_stream(self.device)
            current.wait_event(prepared.arrived)
            prepared.packed.pixels.record_stream(current)
        return self.augment.apply(prepared.packed, prepared.draw)

    def _batch(self, images: Tensor, indices: Tensor) -> Batch:
        return Batch(images, *self._send_labels(indices, self.device))

    def _send_labels(self, indices: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return labels (one column or several) and indices of images on a device, transferred in one copy."""
        labels = self.labels[indices]
        sent = send(torch.cat([labels.reshape(len(indices), -1), indices[:, None]], dim=1), device)
        return sent[:, :-1].reshape(labels.shape), sent[:, -1]

    def _generator(self, step: int) -> Generator:
        mixed = np.random.SeedSequence((self.seed, self.epoch, step, self.rank)).generate_state(1, np.uint64)
        return Generator().manual_seed(int(mixed[0]))


def pack_rows(images: Sequence[Bytes], boxes: Tensor, *, pin: bool = False) -> tuple[PackedImages, Tensor]:
    """Pack the rows of images that boxes cover, and return them with the boxes relative to these rows.

    Args:
        images: pixels ``(h, w, 3)``.
        boxes: top, left, height and width ``(n, 4)``.
        pin: use page-locked memory, from which a GPU copies asynchronously.

    Examples:
        >>> import numpy as np, torch
        >>> packed, boxes = pack_rows([np.zeros((9, 4, 3), np.uint8)], torch.tensor([[2.5, 0.0, 3.0, 4.0]]))
        >>> packed.sizes.tolist(), boxes.tolist()
        ([[4, 4]], [[0.5, 0.0, 3.0, 4.0]])
    """
    sides = torch.tensor([image.shape[:2] for image in images])
    # a box that extends over an edge needs the row at that edge
    first = torch.minimum(boxes[:, 0].floor().to(torch.int64).clamp_min(0), sides[:, 0] - 1)
    end = torch.minimum((boxes[:, 0] + boxes[:, 2]).ceil().to(torch.int64), sides[:, 0])
    sizes = torch.stack([torch.maximum(end, first + 1) - first, sides[:, 1]], dim=1)
    counts = sizes.prod(1)
    starts = counts.cumsum(0) - counts
    pixels = torch.empty((int(counts.sum()), 3), dtype=torch.uint8, pin_memory=pin)
    rows = zip(images, first.tolist(), (first + sizes[:, 0]).tolist(), strict=True)
    # One call, because the training loop needs the interpreter lock; numpy, because torch would start a thread team
    # for each image.
    np.concatenate([image[top:bottom].reshape(-1, 3) for image, top, bottom in rows], out=pixels.numpy())
    moved = boxes.clone()
    moved[:, 0] -= first
    return PackedImages(pixels, starts, sizes), moved


class _Buffers:
    """Reused memory for batches: allocating it takes longer than filling it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._arrays: list[NDArray[np.float32]] = []

    def take(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        for array in self._arrays:
            # references: the list, this loop and the call; a tensor or view of the array would be a fourth one
            if array.shape == shape and sys.getrefcount(array) == 3:
                return array
        array = np.empty(shape, np.float32)
        if len(self._arrays) < self._most:
            self._arrays.append(array)
        return array
