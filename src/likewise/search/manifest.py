"""The one file of an index that is ever replaced: what belongs to it, and how it was made.

Everything else in the folder is written once under a name of its own and never changed.  A file that no manifest names
is what a crash left behind; the next writer removes it.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from likewise.data import aside

FORMAT = 1
"""The version of the layout that is written here; every older one can be read."""

MANIFEST_FILE = "manifest.json"

STORAGES = ("float32", "float16", "int8")
"""How vectors may be stored."""

OURS = ("vectors-", "scales-", "items-", "thumbs-", "gone-", "near-", "model-")
"""How the names of files begin that a manifest may name."""


@dataclass(frozen=True)
class SegmentEntry:
    """A segment, as the manifest names it.

    Args:
        id: part of its files' names.
        rows: how many items are in it, removed ones included.
        thumbnails: whether there are any.

    Examples:
        >>> SegmentEntry("ab12", 3, False).files("int8")
        ['vectors-ab12.npy', 'items-ab12.arrow', 'scales-ab12.npy']
    """

    id: str
    rows: int
    thumbnails: bool

    def files(self, storage: str) -> list[str]:
        """The names of its files."""
        names = [f"vectors-{self.id}.npy", f"items-{self.id}.arrow"]
        if storage != "float32":
            names.append(f"scales-{self.id}.npy")
        if self.thumbnails:
            names += [f"thumbs-{self.id}.bin", f"thumbs-{self.id}.npy"]
        return names


@dataclass(frozen=True)
class ModelEntry:
    """The model whose vectors are in an index.

    Args:
        file: its copy in the folder.
        name: what it was called where it came from.
        sha256: the checksum of the file.
        images: the recipe by which images are shown to it, if one was named.
        card: what its file says about it.

    Examples:
        >>> ModelEntry("model-00aa.safetensors", "best.safetensors", "00aa", None, {}).name
        'best.safetensors'
    """

    file: str
    name: str
    sha256: str
    images: str | None
    card: Mapping[str, Any]


@dataclass(frozen=True)
class NearEntry:
    """An approximate structure, and how well it finds what an exact search finds.

    Args:
        kind: ``"hnsw"`` or ``"ivfpq"``.
        file: where it is.
        segments: the segments whose rows it covers, in order; others are searched exactly.
        settings: how it was made and is searched.
        recall: the share of the ten nearest that it finds, measured.
        queries: over so many queries.
        faster: how many times as many queries a second as an exact search, measured on the machine that built it.

    Examples:
        >>> NearEntry("hnsw", "near-1.faiss", ("1",), {"ef": 64}, 0.99, 200, 30.0).recall
        0.99
    """

    kind: str
    file: str
    segments: tuple[str, ...]
    settings: Mapping[str, Any]
    recall: float
    queries: int
    faster: float


@dataclass(frozen=True)
class Loss:
    """What storing vectors in fewer bits costs: the share of the ten nearest that are still the ten nearest.

    Args:
        recall: against float32, measured.
        queries: over so many queries.
        among: so many items.

    Examples:
        >>> Loss(0.98, 200, 10_000).recall
        0.98
    """

    recall: float
    queries: int
    among: int


@dataclass(frozen=True)
class Manifest:
    """What an index consists of.

    Args:
        name: what it is called.
        dim: the size of its vectors.
        storage: how they are stored.
        similarity: what scores are; always the cosine.
        segments: its items, in the order of their numbers.
        gone: the file with the numbers of removed items.
        next_id: the number that the next item gets.
        model: whose vectors they are.
        near: an approximate structure.
        loss: what the storage costs.
        calibration: when two items are the same, as `likewise.search.Calibration` wrote it.
        root: where relative paths begin.
        created: when, in seconds since 1970.
        changed: the same for the last change.
        revision: counts changes.

    Examples:
        >>> manifest = Manifest("birds", 128)
        >>> Manifest.from_json(manifest.to_json()) == manifest
        True
    """

    name: str
    dim: int
    storage: str = "float32"
    similarity: str = "cosine"
    segments: tuple[SegmentEntry, ...] = ()
    gone: str | None = None
    next_id: int = 0
    model: ModelEntry | None = None
    near: NearEntry | None = None
    loss: Loss | None = None
    calibration: Mapping[str, Any] | None = None
    root: str | None = None
    created: float = field(default_factory=time.time)
    changed: float = field(default_factory=time.time)
    revision: int = 0

    def to_json(self) -> str:
        """The manifest as JSON, its format first."""
        return json.dumps({"format": FORMAT} | asdict(self), ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """The inverse of `to_json`; entries that a later likewise of the same format added are passed over."""
        content = json.loads(text)
        if not isinstance(content, dict) or not isinstance(content.get("format"), int):
            raise ValueError("it has no format")
        if content["format"] > FORMAT:
            raise ValueError(
                f"it is of format {content['format']} and this likewise knows formats up to {FORMAT}; a newer one reads it"
            )
        known = {each.name: content[each.name] for each in fields(cls) if each.name in content}
        known["segments"] = tuple(SegmentEntry(**each) for each in known.get("segments", ()))
        if known.get("model") is not None:
            known["model"] = ModelEntry(**known["model"])
        if known.get("near") is not None:
            known["near"] = NearEntry(**(known["near"] | {"segments": tuple(known["near"]["segments"])}))
        if known.get("loss") is not None:
            known["loss"] = Loss(**known["loss"])
        found = cls(**known)
        found._check()
        return found

    def _check(self) -> None:
        """Refuse what nobody here has written; above all names that lead out of the folder."""
        if type(self.dim) is not int or self.dim < 1 or self.storage not in STORAGES:
            raise ValueError(f"it has vectors of {self.dim!r} numbers, stored as {self.storage!r}")
        for name in self.files():
            if not name.startswith(OURS) or Path(name).name != name or "\\" in name:
                raise ValueError(f"it names a file {name!r}, which is none of an index")

    def files(self) -> set[str]:
        """The names of all files that belong to the index, beside the manifest."""
        names = {name for segment in self.segments for name in segment.files(self.storage)}
        names |= {each for each in (self.gone, self.model and self.model.file, self.near and self.near.file) if each}
        return names

    def next(self, **changes: Any) -> Manifest:
        """The manifest after a change."""
        return replace(self, changed=time.time(), revision=self.revision + 1, **changes)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an index.

    Examples:
        >>> read_manifest(Path("nowhere"))
        Traceback (most recent call last):
        FileNotFoundError: there is no index nowhere
    """
    try:
        content = (folder / MANIFEST_FILE).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if folder.exists():
            raise ValueError(f"{folder} must be the folder of an index, but it has no {MANIFEST_FILE}") from None
        raise FileNotFoundError(f"there is no index {folder}") from None
    try:
        return Manifest.from_json(content.decode())
    except KeyError as error:
        raise ValueError(f"{folder / MANIFEST_FILE} cannot be read: it has no {error}") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{folder / MANIFEST_FILE} cannot be read: {error}") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put a manifest in place: from this moment on the index is the new one, and until then it is the old one.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_manifest(folder, Manifest("birds", 2))
        >>> read_manifest(folder).dim
        2
    """
    sync(folder)  # the names of the new files
    with aside(folder / MANIFEST_FILE) as part:
        part.write_text(manifest.to_json(), encoding="utf-8")
    sync(folder)


def sync(path: Path) -> None:
    """Make sure that a file's bytes, or a folder's names, are on the disk.

    Examples:
        >>> sync(Path("."))
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # Windows does not open folders, and renames there are durable by themselves
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def new_id() -> str:
    """A name that no other file has.

    Examples:
        >>> len(new_id())
        12
    """
    return uuid.uuid4().hex[:12]


def remove_leftovers(folder: Path, manifest: Manifest) -> int:
    """Remove what a crash left behind: files of ours that the manifest does not name; only a writer may do this.

    Examples:
        >>> remove_leftovers(Path("."), Manifest("birds", 2))
        0
    """
    named, count = manifest.files(), 0
    for file in folder.iterdir():
        left = file.name.startswith(OURS) and file.name not in named
        if left or (file.name.startswith(MANIFEST_FILE) and file.name.endswith(".part")):
            file.unlink(missing_ok=True)
            count += 1
    return count
