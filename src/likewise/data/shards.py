"""Shards of decoded images: files of plain bytes, written by several processes, any of which may be killed.

A store is a folder.  Each shard is a file of pixels and a short JSON file.  Both are written to a temporary file and
renamed, the JSON last, so a shard exists if its JSON does.  ``index.json`` is written when all shards exist; a process
that finds shards without an index continues from them.  Several processes may fill one folder: each takes the shards in
a random order and skips those that are finished; two processes that make the same shard write the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from likewise.data.decode import Broken, BrokenImage
from likewise.files import atomic_write
from likewise.progress import progress

IMAGES = 256
"""Images per shard."""

PART = ".part"
"""The suffix of files that are being written."""

Bytes = NDArray[np.uint8]


class Source(Protocol):
    """Protocol of data that can be stored: any data set of this library."""

    def __len__(self) -> int:
        """The number of images."""

    def image(self, index: int) -> Image.Image:
        """Decode an image."""

    def source(self, index: int) -> str:
        """Return the source of an image."""


@dataclass(frozen=True)
class Shape:
    """The stored size of images.

    Args:
        size: length of the shorter side, in pixels; smaller images keep their size.
        max_ratio: the largest ratio of the longer side to the shorter one; longer images are cut at both ends.

    Examples:
        >>> from PIL import Image
        >>> Shape(size=128, max_ratio=2.0).of(Image.new("RGB", (500, 375))).shape
        (128, 170, 3)
        >>> Shape(size=128, max_ratio=2.0).of(Image.new("RGB", (900, 300))).shape
        (128, 256, 3)
        >>> Shape(size=128, max_ratio=2.0).of(Image.new("RGB", (30, 20))).shape
        (20, 30, 3)
    """

    size: int
    max_ratio: float

    def of(self, image: Image.Image) -> Bytes:
        """Return the pixels of an image as they are stored: ``(h, w, 3)``."""
        shorter, longer = min(image.size), min(float(max(image.size)), self.max_ratio * min(image.size))
        box: tuple[float, float, float, float] = (0, 0, *image.size)
        if longer < max(image.size):
            cut, wide = (max(image.size) - longer) / 2.0, image.width > image.height
            box = (cut, 0, image.width - cut, shorter) if wide else (0, cut, shorter, image.height - cut)
        target = min(self.size, shorter)
        long = int(target * longer / shorter)
        size = (long, target) if image.width >= image.height else (target, long)
        if box != (0, 0, *size):
            image = image.resize(size, Image.Resampling.BILINEAR, box=box)
        return np.asarray(image)


@dataclass(frozen=True)
class Shard:
    """The index of a shard: the sizes of its images, its length, its checksum, and its broken images."""

    heights: list[int]
    widths: list[int]
    crc32: int
    broken: list[dict[str, Any]] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """The length of the file of pixels."""
        return 3 * sum(height * width for height, width in zip(self.heights, self.widths, strict=True))


def files(folder: Path, number: int) -> tuple[Path, Path]:
    """Return the files of a shard: pixels and JSON.

    Examples:
        >>> [path.name for path in files(Path("x"), 3)]
        ['00003.u8', '00003.json']
    """
    return folder / f"{number:05d}.u8", folder / f"{number:05d}.json"


def read_shard(folder: Path, number: int) -> Shard | None:
    """Read a finished shard; return ``None`` if it is missing or damaged.

    Examples:
        >>> read_shard(Path("/nowhere"), 0)
    """
    pixels, about = files(folder, number)
    try:
        shard = Shard(**json.loads(about.read_text()))
        return shard if pixels.stat().st_size == shard.nbytes else None
    except (OSError, ValueError, TypeError):
        return None


@contextlib.contextmanager
def shared_write(path: Path) -> Iterator[Path]:
    """Write a file that other processes may write at the same time with the same bytes, and remove temporary files.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "a")
        >>> with shared_write(path) as part:
        ...     _ = part.write_bytes(b"whole")
        >>> path.read_bytes()
        b'whole'
    """
    try:
        with atomic_write(path) as part:
            yield part
    except FileNotFoundError:
        if not path.exists():
            raise


@dataclass(frozen=True)
class _Work(Dataset[tuple[int, Shard | Broken]]):
    """The missing shards; indexing makes one, in the calling process."""

    source: Source
    folder: Path
    shape: Shape
    skip_broken: bool

    def __getitem__(self, number: int) -> tuple[int, Shard | Broken]:
        done = self.find_finished(number)
        if done is not None:  # another process has finished it
            return number, done
        images: list[Bytes] = []
        broken: list[Broken] = []
        for index in range(number * IMAGES, min((number + 1) * IMAGES, len(self.source))):
            stored = self._read_stored(index)
            if isinstance(stored, Broken):
                if not self.skip_broken:
                    return number, stored
                broken.append(stored)
                stored = np.zeros((0, 0, 3), np.uint8)
            images.append(stored)
        return number, self._write(number, images, broken)

    def find_finished(self, number: int) -> Shard | None:
        """Return the shard if it is finished; one with broken images is made again unless they are skipped."""
        done = read_shard(self.folder, number)
        return done if done is not None and (self.skip_broken or not done.broken) else None

    def _read_stored(self, index: int) -> Bytes | Broken:
        try:
            return self.shape.of(self.source.image(index))
        except BrokenImage as error:
            return Broken(index, self.source.source(index), error.reason or str(error))
        except OSError as error:
            return Broken(index, self.source.source(index), str(error))

    def _write(self, number: int, images: list[Bytes], broken: list[Broken]) -> Shard:
        pixels, about = files(self.folder, number)
        checksum = 0
        with shared_write(pixels) as part, part.open("wb") as file:
            for image in images:
                content = image.tobytes()
                checksum = zlib.crc32(content, checksum)
                file.write(content)
        heights, widths = [image.shape[0] for image in images], [image.shape[1] for image in images]
        shard = Shard(heights, widths, checksum, [asdict(each) for each in broken])
        with shared_write(about) as part:
            part.write_text(json.dumps(asdict(shard)))
        return shard


def build(
    source: Source, folder: Path, shape: Shape, *, workers: int | None = None, skip_broken: bool = False
) -> list[Shard]:
    """Make all missing shards of a store.

    Args:
        source: the images.
        folder: folder of the store.
        shape: the stored size of images.
        workers: number of processes; by default one per core; 0 uses this process.
        skip_broken: record images that cannot be read, and continue.

    Raises:
        BrokenImage: an image cannot be read, and ``skip_broken`` is false.

    Examples:
        >>> import tempfile
        >>> from PIL import Image
        >>> class Gray:
        ...     __len__ = lambda self: 2
        ...     image = lambda self, index: Image.new("RGB", (4, 3))
        ...     source = lambda self, index: "nowhere"
        >>> build(Gray(), Path(tempfile.mkdtemp()), Shape(8, 3.0))[0].heights
        [3, 3]
    """
    folder.mkdir(parents=True, exist_ok=True)
    work = _Work(source, folder, shape, skip_broken)
    numbers = range(-(-len(source) // IMAGES))
    found = ((number, work.find_finished(number)) for number in numbers)
    shards = {number: shard for number, shard in found if shard is not None}
    missing = [number for number in numbers if number not in shards]
    random.SystemRandom().shuffle(missing)  # so that several processes rarely make the same shard
    wanted = cores() if workers is None else workers
    loader = DataLoader(
        work,
        batch_size=None,
        sampler=missing,
        num_workers=min(wanted, len(missing)) if len(missing) > 1 else 0,
        collate_fn=_identity,
        generator=torch.Generator(),  # otherwise the loader draws a seed from the global generator
    )
    done = sum(len(shard.heights) for shard in shards.values())
    with progress("decoding", len(source), "img", done=done) as advance:
        for number, result in loader:
            if isinstance(result, Broken):
                raise BrokenImage(result.source, f"{result.reason} (skip_broken=True excludes such images)")
            shards[number] = result
            advance(len(result.heights))
    return [shards[number] for number in numbers]


def remove_temporary_files(folder: Path) -> None:
    """Remove the temporary files of killed processes from a finished store.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> (folder / "00000.u8.1-2.part").touch()
        >>> remove_temporary_files(folder)
        >>> list(folder.iterdir())
        []
    """
    for part in folder.glob(f"*{PART}"):
        part.unlink(missing_ok=True)


def cores() -> int:
    """Return the number of cores that this process may use.

    Examples:
        >>> cores() >= 1
        True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _identity(value: Any) -> Any:
    return value
