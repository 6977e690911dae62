"""Cache of decoded images: plain bytes on disk, in memory or on a device, reused from run to run."""

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
from likewise.data.pixel_store import PixelStore, map_file, open_store
from likewise.data.resample import Bytes, PackedImages
from likewise.data.shards import Shape, Shard, files

FORMAT = 1
"""The version of the format; it is incremented whenever the stored bytes change."""


@dataclass(frozen=True)
class _About:
    """The metadata of a cache, stored in its index."""

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
        """Return the JSON form; cameras are included only if there are any, so that earlier caches keep their keys."""
        return {name: value for name, value in asdict(self).items() if name != "cameras" or value is not None}

    def checksum(self) -> str:
        return _checksum(self.to_dict())


class ImageCache(ImageDataset):
    """A data set of decoded images; `cached` creates one, ``ImageCache.open`` reads one.

    It has the interface of the original data set, with smaller images.  Subsets by images or by classes share the pixels.

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

    def __init__(self, about: _About, store: PixelStore, positions: Tensor) -> None:
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
        """Open a folder that `cached` wrote, without the original data set."""
        folder = Path(folder)
        try:
            index = json.loads((folder / "index.json").read_text())
        except FileNotFoundError as error:
            raise FileNotFoundError(f"folder must contain a finished cache, but {folder} has no index.json") from error
        except ValueError as error:
            raise ValueError(
                f"{folder / 'index.json'} is damaged: remove the folder and cache the images again"
            ) from error
        if index.get("made", {}).get("format") != FORMAT:
            raise ValueError(f"{folder} was written by another version of this library: cache the images again")
        found = [Shard(**shard) for shard in index["shards"]]
        about = _About(**index["about"])
        return cls(about, open_store(folder, index["key"], found, index["sources"]), torch.arange(len(about.labels)))

    def image(self, index: int) -> Image.Image:
        """Return the stored image."""
        return Image.fromarray(self.array(index))

    def source(self, index: int) -> str:
        """Return the source of the original image."""
        return self._store.sources[int(self._positions[index])]

    def array(self, index: int) -> Bytes:
        """Return the stored pixels ``(h, w, 3)``, read-only."""
        return self.arrays(torch.tensor([index]))[0]

    def arrays(self, indices: Tensor) -> list[Bytes]:
        """Return the stored pixels of several images."""
        positions = self._positions.numpy()[indices.numpy()]
        self._refuse_broken(positions)
        return self._store.arrays(positions)

    def packed(self, indices: Tensor) -> PackedImages:
        """Return images without a copy, from a cache on a device or in memory (see `to`)."""
        store = self._store
        if store.mapped:
            raise ValueError("a cache must be in memory or on a device to be packed: call to() first")
        pixels = torch.from_numpy(store.shards[0]).view(-1, 3) if store.on_device is None else store.on_device
        # numpy, because torch would start a thread team to look up a few numbers
        positions = self._positions.numpy()[indices.numpy()]
        self._refuse_broken(positions)
        starts, sizes = store.starts.numpy()[positions], store.sizes.numpy()[positions]
        return PackedImages(pixels, torch.from_numpy(starts), torch.from_numpy(sizes))

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The images that could not be read; ``cache.without(cache.broken)`` excludes them."""
        if not self._store.broken:
            return ()
        indices = {position: index for index, position in enumerate(self._positions.tolist())}
        found = (replace(each, index=indices[each.index]) for each in self._store.broken if each.index in indices)
        return tuple(sorted(found, key=lambda each: each.index))

    @property
    def folder(self) -> Path:
        """The folder of the cache."""
        return self._store.folder

    @property
    def device(self) -> torch.device:
        """The device of the pixels."""
        return torch.device("cpu") if self._store.on_device is None else self._store.on_device.device

    @property
    def nbytes(self) -> int:
        """The number of bytes of the pixels."""
        return 3 * int(self.sizes.prod(1).sum())

    def to(self, device: str | torch.device, *, share: float = 0.8) -> ImageCache:
        """Copy the images to memory (``"cpu"``) or to a device.

        Args:
            device: destination of the images.
            share: the fraction of the free memory there that they may use.

        Raises:
            MemoryError: the images need more memory than that.
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
        """Read all stored bytes and compare them with their checksums.

        Raises:
            ValueError: a file has changed since it was written.
        """
        index = json.loads((self.folder / "index.json").read_text())
        for number, shard in enumerate(index["shards"]):
            if zlib.crc32(map_file(self.folder, number).data) != shard["crc32"]:
                raise ValueError(f"{files(self.folder, number)[0]} is damaged: remove it and cache the images again")

    def subset(self, indices: Sequence[int] | np.ndarray[Any, Any] | Tensor) -> ImageCache:
        """Return the images at distinct indices, or where a boolean per image is true; they share the pixels."""
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

    def _with_sources(self, dataset: ImageDataset) -> ImageCache:
        """Return the same cache with the sources of a data set, whose folder may have moved since decoding."""
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

    Each image is stored whole, resized (antialiased, bilinear) so that its shorter side has ``size`` pixels.  A checksum of
    the data set and of these settings identifies what is stored: a different data set, a changed one or another size is
    stored separately.  An interrupted call, even a killed one, is continued by the next call; several processes may make
    the same call at once.

    Args:
        dataset: the images.
        folder: folder of all cached data sets; each gets a subfolder.
        size: length of the shorter side in pixels; smaller images are not enlarged.
        max_ratio: largest ratio of the longer side to the shorter one; longer images are cut at both ends.
        workers: number of decoding processes; by default one per core; 0 decodes in this process.
        skip_broken: exclude images that cannot be read, warn, and list them as ``broken``.

    Raises:
        BrokenImage: an image cannot be read, and ``skip_broken`` is false.

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
    place = Path(folder) / f"{_file_name(dataset.name)}-{size}-{key[:16]}"
    found = _open_finished(place, made, skip_broken)
    if found is None:
        made_now = shards.build(dataset, place, shape, workers=workers, skip_broken=skip_broken)
        sources = [dataset.source(index) for index in range(len(dataset))]
        index = {"made": made, "key": key, "pillow": PIL.__version__, "about": about.to_dict(), "sources": sources}
        content = json.dumps({**index, "shards": [asdict(shard) for shard in made_now]})
        with shards.shared_write(place / "index.json") as part:
            part.write_text(content)
        shards.remove_temporary_files(place)
        found = ImageCache.open(place)
    found = found._with_sources(dataset)
    if found.broken:
        warnings.warn(
            f"{len(found.broken)} of the {len(found):,} images of {dataset.name} cannot be read, the first is"
            f" {found.broken[0].source}; .broken lists them, and .without(.broken) excludes them",
            stacklevel=2,
        )
    found.transform = dataset.transform
    return found


def _open_finished(place: Path, made: dict[str, Any], skip_broken: bool) -> ImageCache | None:
    """Return the complete cache of this data set; ``None`` if it must be created or repaired."""
    try:
        found = ImageCache.open(place)
        index = json.loads((place / "index.json").read_text())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if index["made"] == made and (skip_broken or not found.broken) else None


def _checksum(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "images"
