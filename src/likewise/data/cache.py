"""A data set decoded once: its images as plain bytes on disk, in memory or on a device, reused from run to run."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from likewise.data import shards
from likewise.data.dataset import ImageDataset
from likewise.data.decode import Broken, BrokenImage
from likewise.data.memory import free_memory
from likewise.data.resample import Bytes, PackedImages
from likewise.data.shards import Shape, Shard, files

FORMAT = 1
"""The version of the format: a change of the stored bytes increments it."""


@dataclass(frozen=True)
class _About:
    """The entries of a store's index."""

    name: str
    split: str | None
    labels: list[int]
    class_names: list[str]
    categories: list[int] | None
    category_names: list[str]
    is_query: list[bool] | None
    cameras: list[int] | None = None

    @classmethod
    def of(cls, dataset: ImageDataset) -> _About:
        return cls(
            name=dataset.name,
            split=dataset.split,
            labels=dataset.labels.tolist(),
            class_names=list(dataset.class_names),
            categories=None if dataset.categories is None else dataset.categories.tolist(),
            category_names=list(dataset.category_names),
            is_query=None if dataset.is_query is None else dataset.is_query.tolist(),
            cameras=None if dataset.cameras is None else dataset.cameras.tolist(),
        )

    def to_dict(self) -> dict[str, Any]:
        """The form in an index; cameras only if there are any, so that earlier stores keep their keys."""
        return {name: value for name, value in asdict(self).items() if name != "cameras" or value is not None}

    def checksum(self) -> str:
        return _checksum(self.to_dict())


@dataclass(frozen=True)
class _Store:
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
        """Images as arrays of the host, views where that is possible."""
        starts, shards = self.starts.numpy()[positions].tolist(), self.shard_of[positions].tolist()
        sizes = self.sizes.numpy()[positions].tolist()
        arrays = []
        for start, shard, (height, width) in zip(starts, shards, sizes, strict=True):
            end = start + height * width
            flat = self.shards[shard][3 * start : 3 * end] if self.on_device is None else self._fetched(start, end)
            arrays.append(flat.reshape(height, width, 3))
        return arrays

    def _fetched(self, start: int, end: int) -> Bytes:
        assert self.on_device is not None
        copied: Bytes = self.on_device[start:end].cpu().numpy()
        return copied

    def gather(self, positions: Tensor, device: torch.device) -> _Store:
        """Some of the images, concatenated in one array on the host or one tensor on a device."""
        sizes = self.sizes[positions]
        counts = sizes.prod(1)
        starts = counts.cumsum(0) - counts
        flat = np.empty(3 * int(counts.sum()), np.uint8)
        for image, start in zip(self.arrays(positions.numpy()), starts.tolist(), strict=True):
            flat[3 * start : 3 * start + image.size] = image.reshape(-1)
        broken = {each.index: each for each in self.broken}
        return _Store(
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
            state["shards"] = tuple(_mapped(state["folder"], number) for number in range(state["shards"]))
        vars(self).update(state)


class ImageCache(ImageDataset):
    """A data set of decoded images; `cached` makes one, ``ImageCache.open`` reads one.

    It is a data set like the one it was made from, with smaller images: it can be cut by images or by classes, and the
    parts share its pixels.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from likewise.data import ImageFolder
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("cat", "dog"):
        ...     (folder / "photos" / name).mkdir(parents=True)
        ...     Image.new("RGB", (50, 40), "red").save(folder / "photos" / name / "a.png")
        >>> photos = cached(ImageFolder(folder / "photos"), folder / "cache", size=32)
        >>> photos.sizes.tolist(), photos.image(1).getpixel((0, 0))
        ([[32, 40], [32, 40]], (255, 0, 0))
        >>> ImageCache.open(photos.folder).of_classes([1]).class_names
        ('dog',)
    """

    def __init__(self, about: _About, store: _Store, positions: Tensor) -> None:
        super().__init__(
            about.name,
            torch.tensor(about.labels, dtype=torch.int64),
            about.class_names,
            split=about.split,
            categories=None if about.categories is None else torch.tensor(about.categories, dtype=torch.int64),
            category_names=about.category_names,
            is_query=None if about.is_query is None else torch.tensor(about.is_query, dtype=torch.bool),
            cameras=None if about.cameras is None else torch.tensor(about.cameras, dtype=torch.int64),
        )
        self._store = store
        self._positions = positions
        self.sizes = store.sizes[positions]
        """Heights and widths of the images, ``(n, 2)``; zeros for a broken one."""

    @classmethod
    def open(cls, folder: str | Path) -> ImageCache:
        """Open a store of `cached`, without its original data set."""
        folder = Path(folder)
        try:
            index = json.loads((folder / "index.json").read_text())
        except FileNotFoundError as error:
            raise FileNotFoundError(f"folder must contain a finished cache, but {folder} has no index.json") from error
        except ValueError as error:
            raise ValueError(
                f"{folder / 'index.json'} is damaged: remove the folder, and store the images again"
            ) from error
        if index.get("made", {}).get("format") != FORMAT:
            raise ValueError(f"{folder} was stored by another version of this library: store the images again")
        found = [Shard(**shard) for shard in index["shards"]]
        about = _About(**index["about"])
        return cls(about, _open(folder, index["key"], found, index["sources"]), torch.arange(len(about.labels)))

    def image(self, index: int) -> Image.Image:
        """The stored image."""
        return Image.fromarray(self.array(index))

    def source(self, index: int) -> str:
        """The source that the image was decoded from."""
        return self._store.sources[int(self._positions[index])]

    def array(self, index: int) -> Bytes:
        """The stored pixels ``(h, w, 3)``, read-only."""
        return self.arrays(torch.tensor([index]))[0]

    def arrays(self, indices: Tensor) -> list[Bytes]:
        """The stored pixels of several images."""
        positions = self._positions.numpy()[indices.numpy()]
        self._refuse_broken(positions)
        return self._store.arrays(positions)

    def packed(self, indices: Tensor) -> PackedImages:
        """Some images where they are, for a cache that is held on a device or in memory (see `to`)."""
        store = self._store
        if store.mapped:
            raise ValueError("a cache must be held in memory or on a device to be packed: call to first")
        pixels = torch.from_numpy(store.shards[0]).view(-1, 3) if store.on_device is None else store.on_device
        # numpy: torch would start a team of threads to look up a few numbers
        positions = self._positions.numpy()[indices.numpy()]
        self._refuse_broken(positions)
        starts, sizes = store.starts.numpy()[positions], store.sizes.numpy()[positions]
        return PackedImages(pixels, torch.from_numpy(starts), torch.from_numpy(sizes))

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The images that could not be read; ``cache.without(cache.broken)`` leaves them out."""
        if not self._store.broken:
            return ()
        indices = {position: index for index, position in enumerate(self._positions.tolist())}
        found = (replace(each, index=indices[each.index]) for each in self._store.broken if each.index in indices)
        return tuple(sorted(found, key=lambda each: each.index))

    @property
    def folder(self) -> Path:
        """The folder of the store."""
        return self._store.folder

    @property
    def device(self) -> torch.device:
        """The device of its pixels."""
        return torch.device("cpu") if self._store.on_device is None else self._store.on_device.device

    @property
    def nbytes(self) -> int:
        """The number of bytes of its pixels."""
        return 3 * int(self.sizes.prod(1).sum())

    def to(self, device: str | torch.device, *, share: float = 0.8) -> ImageCache:
        """Copy the images to memory (``"cpu"``) or to a device.

        Args:
            device: where to hold them.
            share: the part of the free memory there that they may take.

        Raises:
            MemoryError: they would take more.
        """
        device = torch.device(device)
        free = free_memory(device)
        if free is not None and self.nbytes > share * free:
            raise MemoryError(
                f"the images must fit into {share:.0%} of the free memory of {device}, {share * free / 2**30:.1f} GiB,"
                f" but they take {self.nbytes / 2**30:.1f} GiB"
            )
        store = self._store.gather(self._positions, device)
        return ImageCache(_About.of(self), store, torch.arange(len(self)))

    def verify(self) -> None:
        """Read all stored bytes and compare them with the checksums that were taken when they were made.

        Raises:
            ValueError: a file has changed since.
        """
        index = json.loads((self.folder / "index.json").read_text())
        for number, shard in enumerate(index["shards"]):
            if zlib.crc32(_mapped(self.folder, number).data) != shard["crc32"]:
                raise ValueError(f"{files(self.folder, number)[0]} is damaged: remove it, and store the images again")

    def subset(self, indices: Sequence[int] | np.ndarray[Any, Any] | Tensor) -> ImageCache:
        """These images, given by distinct indices or by one boolean for each; they share the pixels."""
        part = super().subset(indices)
        chosen = np.asarray(indices)
        return self._part(
            part, torch.arange(len(self))[torch.from_numpy(chosen if chosen.size else chosen.astype(int))]
        )

    def _role(self, query: bool) -> ImageCache:
        part = super()._role(query)
        assert self.is_query is not None
        return self._part(part, (self.is_query == query).nonzero()[:, 0])

    def _part(self, part: ImageDataset, indices: Tensor) -> ImageCache:
        made = ImageCache(_About.of(part), self._store, self._positions[indices])
        made.transform = self.transform
        return made

    def _now_at(self, dataset: ImageDataset) -> ImageCache:
        """The same with the data set's sources: the decoded folder may have moved."""
        if self.source(0) == dataset.source(0):
            return self
        sources = tuple(dataset.source(index) for index in range(len(dataset)))
        broken = tuple(replace(each, source=sources[each.index]) for each in self._store.broken)
        return ImageCache(_About.of(self), replace(self._store, sources=sources, broken=broken), self._positions)

    def _refuse_broken(self, positions: NDArray[np.int64]) -> None:
        if self._store.broken:
            asked = set(positions.tolist())
            for each in self._store.broken:
                if each.index in asked:
                    raise BrokenImage(each.source, each.reason)

    def _contents(self) -> Iterable[bytes]:
        yield self._store.key.encode()
        yield self._positions.numpy().tobytes()


def cached(
    dataset: ImageDataset,
    folder: str | Path,
    *,
    size: int = 256,
    max_ratio: float = 3.0,
    workers: int | None = None,
    skip_broken: bool = False,
) -> ImageCache:
    """Decode a data set once, and read the stored pixels afterwards.

    Each image is stored whole, resized (antialiased, bilinear) so that its shorter side has ``size`` pixels.  What is
    stored is known by a checksum of the data set and of these settings: another data set, a changed one or another size
    is stored separately.  A call that is interrupted, even by a kill, continues where it was; several
    processes may make the same call at once.

    Args:
        dataset: the images.
        folder: the folder of stored data sets; each gets a subfolder.
        size: the shorter side in pixels; smaller images are not enlarged.
        max_ratio: the largest ratio of the longer side to the shorter one; longer images are cut at both ends.
        workers: processes that decode; by default one for each core, and 0 for this process itself.
        skip_broken: leave out images that cannot be read, warn, and list them as ``broken``.

    Raises:
        BrokenImage: an image cannot be read, and is not to be skipped.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from likewise.data import ImageFolder
        >>> folder = Path(tempfile.mkdtemp())
        >>> (folder / "photos" / "cat").mkdir(parents=True)
        >>> Image.new("RGB", (500, 375)).save(folder / "photos" / "cat" / "a.png")
        >>> cached(ImageFolder(folder / "photos"), folder / "cache", size=256).sizes
        tensor([[256, 341]])
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"size must be a whole number ≥ 1, but it is {size!r}")
    if not max_ratio >= 1.0:
        raise ValueError(f"max_ratio must be ≥ 1.0, but it is {max_ratio!r}")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 0):
        raise ValueError(f"workers must be a whole number ≥ 0, but it is {workers!r}")
    if not len(dataset):
        raise ValueError(f"dataset must have at least one image, but {dataset.name} is empty")
    shape, about = Shape(size, float(max_ratio)), _About.of(dataset)
    made = {"format": FORMAT, "fingerprint": dataset.fingerprint, "about": about.checksum(), **asdict(shape)}
    made["images_per_shard"] = shards.IMAGES
    key = _checksum(made)
    place = Path(folder) / f"{_plain(dataset.name)}-{size}-{key[:16]}"
    found = _open_finished(place, made, skip_broken)
    if found is None:
        made_now = shards.build(dataset, place, shape, workers=workers, skip_broken=skip_broken)
        sources = [dataset.source(index) for index in range(len(dataset))]
        index = {"made": made, "key": key, "pillow": PIL.__version__, "about": about.to_dict(), "sources": sources}
        content = json.dumps({**index, "shards": [asdict(shard) for shard in made_now]})
        with shards.shared_write(place / "index.json") as part:
            part.write_text(content)
        shards.tidy(place)
        found = ImageCache.open(place)
    found = found._now_at(dataset)
    if found.broken:
        warnings.warn(
            f"{len(found.broken)} of the {len(found):,} images of {dataset.name} cannot be read, the first is"
            f" {found.broken[0].source}; broken lists them, and without(broken) leaves them out",
            stacklevel=2,
        )
    found.transform = dataset.transform
    return found


def _open_finished(place: Path, made: dict[str, Any], skip_broken: bool) -> ImageCache | None:
    """The complete store of this data set; ``None`` if it must be created or repaired."""
    try:
        found = ImageCache.open(place)
        index = json.loads((place / "index.json").read_text())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if index["made"] == made and (skip_broken or not found.broken) else None


def _open(folder: Path, key: str, found: Sequence[Shard], sources: Sequence[str]) -> _Store:
    mapped = tuple(_mapped(folder, number) for number in range(len(found)))
    for number, (shard, pixels) in enumerate(zip(found, mapped, strict=True)):
        if pixels.size != shard.nbytes:
            raise ValueError(
                f"{files(folder, number)[0]} must have {shard.nbytes} bytes, but it has {pixels.size}:"
                " remove it, and store the images again"
            )
    sizes = torch.tensor([pair for shard in found for pair in zip(shard.heights, shard.widths, strict=True)])
    counts = [len(shard.heights) for shard in found]
    ends = sizes.prod(1).cumsum(0)
    before = torch.tensor([0, *(shard.nbytes // 3 for shard in found[:-1])]).cumsum(0)  # pixels in earlier shards
    return _Store(
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


def _mapped(folder: Path, number: int) -> Bytes:
    path = files(folder, number)[0]
    if not path.stat().st_size:
        return np.zeros(0, np.uint8)
    # What is written into it would not reach the file, but torch need not warn.  A plain array, because views of a
    # memmap are slower to make.
    return np.asarray(np.memmap(path, np.uint8, mode="c"))


def _checksum(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "images"
