"""Images embedded chunk by chunk, each chunk a file: a killed process continues with the chunks that are missing."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from likewise.app.errors import Note, UserError
from likewise.app.images import ImageList
from likewise.data import Broken, cores
from likewise.files import atomic_write, hold_lock, write_text
from likewise.progress import progress
from likewise.search import Embedding, embed_batches, thumbnail

SUFFIX = ".chunks"
DESCRIPTION, IMAGES = "about.json", "images.json"


@contextmanager
def lock_chunks(folder: Path) -> Iterator[None]:
    """Lock a folder of chunks for one process; the system releases the lock when the process ends.

    Examples:
        >>> import tempfile
        >>> with lock_chunks(Path(tempfile.mkdtemp()) / "a.npz.chunks"):
        ...     pass
    """
    folder.mkdir(parents=True, exist_ok=True)
    refusal = UserError(f"another process is writing {str(folder).removesuffix(SUFFIX)}")
    with hold_lock(folder / ".lock", refusal):
        yield


@dataclass(frozen=True)
class ChunkFolder:
    """A folder with one file for each chunk of a list of images.

    Args:
        folder: the folder of the chunks.
        images: the images to embed.
        size: images per chunk; a killed process loses at most one chunk.
        thumbnails: the side of the thumbnails that are made from the decoded images; 0 for none.

    Examples:
        >>> ChunkFolder(Path("a.chunks"), ImageList(Path(), ("a.png",) * 5), 2).starts
        range(0, 5, 2)
    """

    folder: Path
    images: ImageList
    size: int
    thumbnails: int = 0

    @property
    def starts(self) -> range:
        """The number of the first image of each chunk."""
        return range(0, len(self.images), self.size)

    def file(self, start: int) -> Path:
        """The file of a chunk."""
        return self.folder / f"{start // self.size:06d}.npz"

    def begin(self, description: Mapping[str, Any]) -> None:
        """Continue chunks of the same model and input, and refuse others."""
        content = {**description, "size": self.size, "thumbnails": self.thumbnails}
        file = self.folder / DESCRIPTION
        if not file.exists():
            write_text(file, json.dumps(content))
            return
        if json.loads(file.read_text()) != content:
            raise UserError(
                f"{self.folder} contains chunks of another model or other images: remove it, or choose another --out"
            )
        done = len(self.starts) - len(self.missing())
        if done:
            text = f"continuing after {done} chunk{'s' * (done != 1)} of {self.size:,} images"
            warnings.warn(text, Note, stacklevel=2)

    def write_images(self) -> None:
        """Write the list of images for other processes: they open the folder with `open_chunks`."""
        content = {"root": str(self.images.root.absolute()), "paths": self.images.paths}
        write_text(self.folder / IMAGES, json.dumps(content))

    def missing(self) -> list[int]:
        """The first images of the chunks that are not embedded yet."""
        return [start for start in self.starts if not self.file(start).exists()]

    def count(self, starts: Sequence[int]) -> int:
        """The number of images in some chunks."""
        return sum(min(self.size, len(self.images) - start) for start in starts)

    def embed(self, embedding: Embedding, starts: Sequence[int] | None = None) -> None:
        """Embed the chunks that are missing, or these, with a progress bar."""
        missing = self.missing() if starts is None else starts
        with (
            ThreadPoolExecutor(cores(), thread_name_prefix="likewise-decode") as pool,
            progress("embedding", len(self.images), "img", done=len(self.images) - self.count(missing)) as advance,
        ):
            for start in missing:
                self._embed_chunk(start, embedding, pool, advance)

    def _embed_chunk(
        self, start: int, embedding: Embedding, pool: ThreadPoolExecutor, advance: Callable[[int], object]
    ) -> None:
        files = [str(self.images.root / path) for path in self.images.paths[start : start + self.size]]
        side = self.thumbnails
        rows: list[int] = []
        vectors, small, broken = [np.zeros((0, embedding.model.dim), np.float32)], [], []
        for batch in embed_batches(embedding, files, lambda image: thumbnail(image, side) if side else b"", pool):
            rows += [start + row for row in batch.rows]
            vectors.append(batch.vectors)
            small += batch.extras
            broken += [(start + row, each.reason or "it cannot be read") for row, each in batch.broken]
            advance(batch.count)
        with atomic_write(self.file(start)) as part, part.open("wb") as file:
            np.savez(
                file,
                rows=np.array(rows, np.int64),
                embeddings=np.concatenate(vectors),
                broken=np.array([number for number, _ in broken], np.int64),
                reasons=np.array([reason for _, reason in broken], np.str_),
                thumbs=np.frombuffer(b"".join(small), np.uint8),
                lengths=np.array([len(each) for each in small], np.int64),
            )

    def gather(self) -> EmbeddedImages:
        """Read all chunks, one after the other; thumbnails are read when they are used."""
        names = ("rows", "embeddings", "broken", "reasons", "lengths")
        columns: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
        for start in self.starts:
            with np.load(self.file(start), allow_pickle=False) as chunk:
                for name in names:
                    columns[name].append(chunk[name])
        counts = [len(each) for each in columns["rows"]]
        whole = {name: np.concatenate(each) for name, each in columns.items()}
        files = [self.file(start) for start in self.starts]
        small = ThumbnailFiles(files, counts, whole["lengths"]) if self.thumbnails else None
        broken = [
            Broken(int(row), str(self.images.root / self.images.paths[row]), str(reason))
            for row, reason in zip(whole["broken"], whole["reasons"], strict=True)
        ]
        return EmbeddedImages(whole["rows"], whole["embeddings"], tuple(broken), small)


def open_chunks(folder: Path) -> ChunkFolder:
    """Open a folder of chunks in a process that embeds some of them.

    Examples:
        >>> import tempfile
        >>> chunks = ChunkFolder(Path(tempfile.mkdtemp()), ImageList(Path("photos"), ("a.png",) * 5), 2)
        >>> chunks.begin({"model": "birds"})
        >>> chunks.write_images()
        >>> len(open_chunks(chunks.folder).images)
        5
    """
    description = json.loads((folder / DESCRIPTION).read_text())
    content = json.loads((folder / IMAGES).read_text())
    images = ImageList(Path(content["root"]), tuple(content["paths"]))
    return ChunkFolder(folder, images, description["size"], description["thumbnails"])


class ThumbnailFiles(Sequence[bytes]):
    """Thumbnails in the files of chunks; those of one chunk are in memory at a time.

    Args:
        files: chunk files.
        counts: number of thumbnails in each file.
        lengths: size of each thumbnail in bytes.

    Examples:
        >>> len(ThumbnailFiles([], [], np.zeros(0, np.int64)))
        0
    """

    def __init__(self, files: Sequence[Path], counts: Sequence[int], lengths: NDArray[np.int64]) -> None:
        self._files, self._first = files, np.cumsum([0, *counts])
        self._lengths = lengths
        self._chunk: tuple[int, bytes, NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self._lengths)

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        number = int(np.searchsorted(self._first, place, side="right")) - 1
        if self._chunk is None or self._chunk[0] != number:
            with np.load(self._files[number], allow_pickle=False) as content:
                ends = np.cumsum([0, *self._lengths[self._first[number] : self._first[number + 1]]])
                self._chunk = number, content["thumbs"].tobytes(), ends
        _, thumbnails, ends = self._chunk
        inside = place - int(self._first[number])
        return thumbnails[ends[inside] : ends[inside + 1]]


@dataclass(frozen=True)
class EmbeddedImages:
    """Embeddings and broken images, with the numbers of their images in the list.

    Args:
        rows: numbers of the embedded images.
        embeddings: their vectors.
        broken: the images that could not be read.
        thumbnails: a WebP file for each embedded image, if requested.

    Examples:
        >>> EmbeddedImages(np.array([0]), np.zeros((1, 8), np.float32), ()).broken
        ()
    """

    rows: NDArray[np.int64]
    embeddings: NDArray[np.float32]
    broken: tuple[Broken, ...]
    thumbnails: ThumbnailFiles | None = None
