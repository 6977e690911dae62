"""Indexes of format 1, which had segments and a manifest: turned into a version when they are opened first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.search.card import IndexCard, Loss, ModelEntry, Structure
from likewise.search.columns import arrow, kinds_of, make_table, number_rows
from likewise.search.vectors import Vectors, encoded_chunks
from likewise.search.versions import Draft, version_numbers
from likewise.search.writing import write_blobs, write_items, write_vectors

MANIFEST = "manifest.json"
NAMES = re.compile(r"(vectors|scales|items|thumbs|gone|near|model)-\w+\.(npy|arrow|bin|faiss|safetensors)")


def convert_older(folder: Path) -> None:
    """Write the first version from the files of format 1, and remove these; the caller holds the lock.

    Args:
        folder: the index.

    Examples:
        >>> import tempfile
        >>> convert_older(Path(tempfile.mkdtemp()))
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] No such file or directory: ...
    """
    try:
        version_numbers(folder)  # it was converted before, by a process that died while it removed the old files
    except ValueError:
        try:
            _convert(folder, json.loads((folder / MANIFEST).read_bytes()))
        except (KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{folder / MANIFEST} cannot be read: {error}") from error
    for file in folder.iterdir():
        if NAMES.fullmatch(file.name):
            file.unlink()
    (folder / MANIFEST).unlink(
        missing_ok=True
    )  # last, so that the next process continues after a crash; another process may have removed it


def _convert(folder: Path, manifest: Mapping[str, Any]) -> None:
    if manifest["format"] != 1:
        raise ValueError(f"{folder / MANIFEST} must be of format 1, but it is of format {manifest['format']}")
    card, segments = _card(manifest), [each["id"] for each in manifest["segments"]]
    gone = np.load(_named(folder, manifest["gone"])) if manifest["gone"] else np.zeros(0, np.int64)
    tables = [_table(folder, segment) for segment in segments]
    keeps = [np.flatnonzero(~np.isin(table.column("id").to_numpy(), gone)) for table in tables]
    stored = [_vectors(folder, segment, card.storage) for segment in segments]
    pairs = list(zip(segments, keeps, strict=True))
    with Draft(folder) as draft:
        chunks = (encoded_chunks(each, card.storage, keep) for each, keep in zip(stored, keeps, strict=True))
        write_vectors(draft, chain.from_iterable(chunks), sum(map(len, keeps)), card)
        living = [table.take(keep) for table, keep in zip(tables, keeps, strict=True)]
        empty = number_rows(make_table([]), np.zeros(0, np.int64))
        whole = arrow().concat_tables([empty, *living], promote_options="permissive")
        write_items(draft, whole)
        if any(each["thumbnails"] for each in manifest["segments"]):
            blobs = chain.from_iterable(_thumbnails(folder, segment, keep) for segment, keep in pairs)
            ends = np.cumsum(lengths := write_blobs(draft, "thumbnails.bin", blobs))
            with draft.write("thumbnails.npy") as file:
                np.save(file, np.stack([ends - lengths, ends], axis=1))
        if manifest["model"]:
            draft.copy("model.safetensors", _named(folder, manifest["model"]["file"]))
        if manifest["near"]:
            draft.copy("near.faiss", _named(folder, manifest["near"]["file"]))
            with draft.write("near.npy") as file:
                np.save(file, tables[0].column("id").to_numpy())
        draft.commit(IndexCard(**vars(card) | {"rows": whole.num_rows, "fields": kinds_of(whole.schema)}))


def _card(manifest: Mapping[str, Any]) -> IndexCard:
    model, near, loss = (manifest.get(name) for name in ("model", "near", "loss"))
    shared = ("name", "dim", "storage", "next_id", "calibration", "root", "created", "changed")
    return IndexCard(
        **{name: manifest[name] for name in shared},
        model=None if not model else ModelEntry(model["name"], model["sha256"], model["images"], model["card"]),
        near=near and Structure(near["kind"], near["settings"], near["recall"], near["queries"], near["faster"]),
        loss=None if not loss else Loss(**loss),
        change="convert from format 1",
    )


def _named(folder: Path, name: str) -> Path:
    """A file of the index; a manifest must not name files outside the index."""
    if not NAMES.fullmatch(name):
        raise ValueError(
            f"{folder / MANIFEST} cannot be read: it names a file {name!r}, which is not a file of an index"
        )
    return folder / name


def _vectors(folder: Path, segment: str, storage: str) -> Vectors:
    codes = np.load(_named(folder, f"vectors-{segment}.npy"), mmap_mode="r")
    return Vectors(codes, None if storage == "float32" else np.load(_named(folder, f"scales-{segment}.npy")))


def _table(folder: Path, segment: str) -> Any:
    pa = arrow()
    return pa.ipc.open_file(pa.memory_map(str(_named(folder, f"items-{segment}.arrow")))).read_all()


def _thumbnails(folder: Path, segment: str, keep: NDArray[np.int64]) -> Iterator[bytes | None]:
    offsets = folder / f"thumbs-{segment}.npy"
    if not offsets.exists():
        yield from (None for _ in keep)
        return
    places, blob = np.load(offsets), np.memmap(folder / f"thumbs-{segment}.bin", np.uint8, "r")
    for row in keep:
        yield blob[places[row] : places[row + 1]].tobytes() or None
