"""Images embedded part by part, each part a file: killed at any moment, the same command goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from likewise.app import UserError, sentence
from likewise.cli.pictures import Pictures
from likewise.cli.screen import note
from likewise.data import BrokenImage, atomic_write, cores, progress, write_aside
from likewise.search import Embedding, ahead, pixels, thumbnail


@contextmanager
def written(out: Path) -> Iterator[None]:
    """Turn a full disk, or a folder in which nobody may write, into a mistake that names what was to be written.

    Examples:
        >>> with written(Path("a.npz")):
        ...     raise PermissionError(13, "Permission denied", "a.npz.parts")
        Traceback (most recent call last):
        likewise.app.errors.UserError: a.npz cannot be written: a.npz.parts: Permission denied
    """
    try:
        yield
    except BrokenPipeError:  # whoever read the screen has seen enough
        raise
    except OSError as refusal:
        said = refusal.strerror if refusal.filename is None and refusal.strerror else sentence(refusal)
        raise UserError(f"{out} cannot be written: {said}") from refusal


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time for a folder of parts; the system lets go when it dies.

    Examples:
        >>> import tempfile
        >>> with alone(Path(tempfile.mkdtemp()) / "a.npz.parts"):
        ...     pass
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(f"another process is writing {str(folder).removesuffix('.parts')}") from None
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True)
class Slices:
    """A folder of parts.

    Args:
        folder: where they are.
        pictures: what is embedded.
        size: images in a part: what a kill costs.
        thumbnails: the side of the small pictures that are made on the way; 0 for none.

    Examples:
        >>> Slices(Path("a.parts"), Pictures(Path(), ("a.png",) * 5, None, ()), 2).starts
        range(0, 5, 2)
    """

    folder: Path
    pictures: Pictures
    size: int
    thumbnails: int = 0

    @property
    def starts(self) -> range:
        """The number of the first image of each part."""
        return range(0, len(self.pictures), self.size)

    def file(self, start: int) -> Path:
        """Where a part is."""
        return self.folder / f"{start // self.size:06d}.npz"

    def begin(self, about: dict[str, Any]) -> None:
        """Go on with parts of the same model and input, and with no others."""
        told = self.folder / "about.json"
        if told.exists():
            if json.loads(told.read_text()) != about:
                raise UserError(
                    f"{self.folder} holds parts of another model or other images: remove it, or choose another -o"
                )
            done = len(list(self.folder.glob("*.npz")))
            if done:
                note(f"going on after {done} part{'s' * (done != 1)} of {self.size:,} images")
            return
        write_aside(told, json.dumps(about).encode())

    def missing(self) -> list[int]:
        """The first images of the parts that are not there yet."""
        return [start for start in self.starts if not self.file(start).exists()]

    def embed_part(self, start: int, embedding: Embedding) -> None:
        """Embed one part."""
        with ThreadPoolExecutor(cores(), thread_name_prefix="likewise-decode") as pool:
            self._embed_part(start, embedding, pool, lambda count: None)

    def embed(self, embedding: Embedding) -> None:
        """Embed what is not there yet, part by part."""
        missing = self.missing()
        done = len(self.pictures) - sum(min(self.size, len(self.pictures) - start) for start in missing)
        with (
            ThreadPoolExecutor(cores(), thread_name_prefix="likewise-decode") as pool,
            progress("embedding", len(self.pictures), "img", done=done) as advance,
        ):
            for start in missing:
                self._embed_part(start, embedding, pool, advance)

    def _embed_part(self, start: int, embedding: Embedding, pool: ThreadPoolExecutor, advance: Any) -> None:
        paths = [str(self.pictures.root / path) for path in self.pictures.paths[start : start + self.size]]
        shape, side = embedding.shown.shape, self.thumbnails

        def read(path: str) -> tuple[NDArray[np.uint8], bytes]:
            image = pixels(path)
            return shape.of(image), thumbnail(image, side) if side else b""

        rows: list[int] = []
        vectors, small, broken = [], [], []
        for first, some in ahead(pool, paths, embedding.batch, read):
            good = []
            for number, each in enumerate(some, start + first):
                if isinstance(each, BrokenImage):
                    broken.append((number, each.reason or "it cannot be read"))
                else:
                    rows.append(number)
                    good.append(each[0])
                    small.append(each[1])
            if good:
                vectors.append(embedding(good))
            advance(len(some))
        with atomic_write(self.file(start)) as part, part.open("wb") as file:
            np.savez(
                file,
                rows=np.array(rows, np.int64),
                embeddings=np.concatenate(vectors) if vectors else np.zeros((0, embedding.model.dim), np.float32),
                broken=np.array([number for number, _ in broken], np.int64),
                reasons=np.array([reason for _, reason in broken], np.str_),
                thumbs=np.frombuffer(b"".join(small), np.uint8),
                lengths=np.array([len(each) for each in small], np.int64),
            )

    def gathered(self) -> Gathered:
        """All parts, one after the other; small pictures are read when they are asked for."""
        names = ("rows", "embeddings", "broken", "reasons", "lengths")
        gathered: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
        for start in self.starts:
            with np.load(self.file(start), allow_pickle=False) as part:
                for name in names:
                    gathered[name].append(part[name])
        counts = [len(each) for each in gathered["rows"]]
        whole = {name: np.concatenate(each) for name, each in gathered.items()}
        files = [self.file(start) for start in self.starts]
        lengths = whole.pop("lengths")
        small = Small(files, counts, lengths) if self.thumbnails else None
        return Gathered(**whole, thumbnails=small)


class Small(Sequence[bytes]):
    """Small pictures in the files of parts; one part's are in memory at a time.

    Args:
        files: of parts.
        counts: how many pictures are in each.
        lengths: bytes of each picture.

    Examples:
        >>> len(Small([], [], np.zeros(0, np.int64)))
        0
    """

    def __init__(self, files: Sequence[Path], counts: Sequence[int], lengths: NDArray[np.int64]) -> None:
        self._files, self._first = files, np.cumsum([0, *counts])
        self._lengths = lengths
        self._held: tuple[int, bytes, NDArray[np.int64]] | None = None

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
        part = int(np.searchsorted(self._first, place, side="right")) - 1
        if self._held is None or self._held[0] != part:
            with np.load(self._files[part], allow_pickle=False) as content:
                ends = np.cumsum([0, *self._lengths[self._first[part] : self._first[part + 1]]])
                self._held = part, content["thumbs"].tobytes(), ends
        _, content_bytes, ends = self._held
        inside = place - int(self._first[part])
        return content_bytes[ends[inside] : ends[inside + 1]]


@dataclass(frozen=True)
class Gathered:
    """Embeddings and faults, with the numbers of their images.

    Args:
        rows: which images were embedded.
        embeddings: their vectors.
        broken: which images could not be read.
        reasons: why.
        thumbnails: a WebP file for each embedded image, if they were made.

    Examples:
        >>> list(Gathered.__dataclass_fields__)
        ['rows', 'embeddings', 'broken', 'reasons', 'thumbnails']
    """

    rows: NDArray[np.int64]
    embeddings: NDArray[np.float32]
    broken: NDArray[np.int64]
    reasons: NDArray[np.str_]
    thumbnails: Small | None = None
