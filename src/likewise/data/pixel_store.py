"""The pixels of a cache: in mapped files, in memory or on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.data.decode import Broken
from likewise.data.resample import Bytes
from likewise.data.shards import Shard, files


@dataclass(frozen=True)
class PixelStore:
    """The pixels of all images that were stored together: in mapped files, in one array, or on a device."""

    folder: Path
    key: str
    shards: tuple[Bytes, ...]  # on the host
    shard_of: NDArray[np.int64]  # (n,)
    starts: Tensor  # (n,) in pixels, from the beginning of the shard
    sizes: Tensor  # (n, 2)
    sources: tuple[str, ...]
    broken: tuple[Broken, ...]
    mapped: bool = False
    on_device: Tensor | None = None  # (pixels, 3)

    def arrays(self, positions: NDArray[np.int64]) -> list[Bytes]:
        """Return images as arrays on the host, as views where possible."""
        starts, shards = self.starts.numpy()[positions].tolist(), self.shard_of[positions].tolist()
        sizes = self.sizes.numpy()[positions].tolist()
        arrays = []
        for start, shard, (height, width) in zip(starts, shards, sizes, strict=True):
            end = start + height * width
            flat = self.shards[shard][3 * start : 3 * end] if self.on_device is None else self._copy_to_host(start, end)
            arrays.append(flat.reshape(height, width, 3))
        return arrays

    def _copy_to_host(self, start: int, end: int) -> Bytes:
        assert self.on_device is not None
        copied: Bytes = self.on_device[start:end].cpu().numpy()
        return copied

    def gather(self, positions: Tensor, device: torch.device) -> PixelStore:
        """Copy some images into one array on the host or one tensor on a device."""
        sizes = self.sizes[positions]
        counts = sizes.prod(1)
        starts = counts.cumsum(0) - counts
        flat = np.empty(3 * int(counts.sum()), np.uint8)
        for image, start in zip(self.arrays(positions.numpy()), starts.tolist(), strict=True):
            flat[3 * start : 3 * start + image.size] = image.reshape(-1)
        broken = {each.index: each for each in self.broken}
        return PixelStore(
            self.folder,
            self.key,
            shards=(flat,) if device.type == "cpu" else (),
            shard_of=np.zeros(len(positions), np.int64),
            starts=starts,
            sizes=sizes,
            sources=tuple(self.sources[position] for position in positions.tolist()),
            broken=tuple(
                replace(broken[position], index=index)
                for index, position in enumerate(positions.tolist())
                if position in broken
            ),
            on_device=None if device.type == "cpu" else torch.from_numpy(flat).view(-1, 3).to(device),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Pickle mapped files by name, not by content."""
        state = dict(vars(self))
        if self.mapped:
            state["shards"] = len(self.shards)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state["shards"], int):
            state["shards"] = tuple(map_file(state["folder"], number) for number in range(state["shards"]))
        vars(self).update(state)


def open_store(folder: Path, key: str, found: Sequence[Shard], sources: Sequence[str]) -> PixelStore:
    """Open finished shards as a store of mapped files.

    Args:
        folder: folder of the shards.
        key: checksum of the data set and the settings of the cache.
        found: the index of each shard.
        sources: source of each image.
    """
    mapped = tuple(map_file(folder, number) for number in range(len(found)))
    for number, (shard, pixels) in enumerate(zip(found, mapped, strict=True)):
        if pixels.size != shard.nbytes:
            raise ValueError(
                f"{files(folder, number)[0]} must have {shard.nbytes} bytes, but it has {pixels.size}:"
                " remove it and cache the images again"
            )
    sizes = torch.tensor([pair for shard in found for pair in zip(shard.heights, shard.widths, strict=True)])
    counts = [len(shard.heights) for shard in found]
    ends = sizes.prod(1).cumsum(0)
    before = torch.tensor([0, *(shard.nbytes // 3 for shard in found[:-1])]).cumsum(0)  # pixels in earlier shards
    return PixelStore(
        folder,
        key,
        shards=mapped,
        shard_of=np.repeat(np.arange(len(found)), counts),
        starts=ends - sizes.prod(1) - before.repeat_interleave(torch.tensor(counts)),
        sizes=sizes,
        sources=tuple(sources),
        broken=tuple(Broken(**each) for shard in found for each in shard.broken),
        mapped=True,
    )


def map_file(folder: Path, number: int) -> Bytes:
    """Map the pixels of a shard into memory."""
    path = files(folder, number)[0]
    if not path.stat().st_size:
        return np.zeros(0, np.uint8)
    # The array is marked writable only so that torch does not warn; writes would not reach the file.  It is a plain
    # array, because creating views of a memmap is slower.
    return np.asarray(np.memmap(path, np.uint8, mode="c"))
