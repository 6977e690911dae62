"""Import and export of vectors: a NumPy file into an index, an index into a Parquet file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from likewise.files import atomic_write
from likewise.search.columns import RESERVED, arrow

if TYPE_CHECKING:
    from likewise.search.index import Index

CHUNK = 2**16
"""Rows per row group."""

ABOUT = (
    "embeddings",
    "paths",
    "labels",
    "class_names",
    "root",
    "model_sha256",
    "card",
    "broken_paths",
    "broken_reasons",
)
"""Arrays with a fixed meaning; every other array is a column of metadata."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Embeddings with paths, labels and metadata.

    Args:
        vectors: embeddings ``(n, d)``.
        paths: file of each embedding.
        labels: class of each embedding, or ``None``.
        metadata: further columns.
        root: the folder of relative paths.
        model_sha256: checksum of the model that computed them.

    Examples:
        >>> Embeddings(np.eye(2), ["a.png", "b.png"]).labels is None
        True
    """

    vectors: NDArray[Any]
    paths: list[str]
    labels: list[str | None] | None = None
    metadata: dict[str, list[Any]] = field(default_factory=dict)
    root: str | None = None
    model_sha256: str | None = None


def read_embeddings(file: str | Path) -> Embeddings:
    """Read a NumPy file (``.npz``) of embeddings, such as `likewise embed` writes.

    Only ``embeddings`` ``(n, d)`` is required.  ``paths`` are the files (by default ``"0"``, ``"1"``, …), ``labels`` are class
    names, or indices into ``class_names`` (−1 for none), and ``root`` is the folder of relative paths.  Every other array of n
    texts, numbers or booleans is a column of metadata.  Nothing in the file is executed.

    Args:
        file: the file.

    Examples:
        >>> import tempfile
        >>> place = tempfile.mkdtemp() + "/e.npz"
        >>> np.savez(place, embeddings=np.eye(2), labels=[1, -1], class_names=["robin", "wren"], year=[2020, 2021])
        >>> content = read_embeddings(place)
        >>> content.paths, content.labels, content.metadata
        (['0', '1'], ['wren', None], {'year': [2020, 2021]})
    """
    try:
        with np.load(file, allow_pickle=False) as content:
            if not hasattr(content, "files"):
                raise ValueError("it is a single array")
            arrays = {name: content[name] for name in content.files}
    except (ValueError, EOFError, BadZipFile) as error:
        raise ValueError(
            f"{file} must be a NumPy file (.npz) of plain arrays, but it cannot be read: {error}"
        ) from error
    if "embeddings" not in arrays or arrays["embeddings"].ndim != 2:
        raise ValueError(f"{file} must have an array embeddings (n, d), but it has {', '.join(arrays) or 'nothing'}")
    vectors = arrays["embeddings"]
    paths = arrays.get("paths", np.arange(len(vectors)).astype(np.str_)).tolist()
    for name in ("paths", "labels"):
        if name in arrays and arrays[name].shape != (len(vectors),):
            raise ValueError(f"{name} in {file} must have shape ({len(vectors)},), but it has {arrays[name].shape}")
    metadata = {
        name: array.tolist() for name, array in arrays.items() if name not in ABOUT and array.shape == (len(vectors),)
    }
    if bad := [name for name in metadata if name in RESERVED]:
        raise ValueError(f"{file} must not have an array {bad[0]!r}: rename it")
    root, model = (str(arrays[name]) if name in arrays else None for name in ("root", "model_sha256"))
    return Embeddings(vectors, [str(path) for path in paths], _labels(arrays), metadata, root, model)


def _labels(arrays: dict[str, NDArray[Any]]) -> list[str | None] | None:
    if "labels" not in arrays:
        return None
    labels = arrays["labels"].tolist()
    if "class_names" not in arrays:
        return [str(label) for label in labels]
    names = arrays["class_names"].tolist()
    return [None if label < 0 else str(names[label]) for label in labels]


def write_parquet(index: Index, file: str | Path) -> int:
    """Write ids, paths, labels, metadata and unit vectors to a Parquet file, for other vector databases; return the number of rows.

    The column ``vector`` is a list of float32 of fixed size.  The metadata of the schema contains the name of the index, its
    similarity and the checksum of the model under ``likewise.*``.

    Args:
        index: an index in a folder or a database.
        file: the output file, which is replaced atomically.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> _ = index.add(np.eye(2), ["a.png", "b.png"], metadata={"year": [2020, None]})
        >>> write_parquet(index, tempfile.mkdtemp() + "/birds.parquet")
        2
    """
    pa = arrow()
    from pyarrow import parquet

    with index.still() as now, atomic_write(Path(file)) as part:
        store, card, fields = now._store, now.card, now.fields
        table, vectors = store.table(columns=[*RESERVED, *fields]), store.vectors()
        about = {"likewise.name": card.name, "likewise.similarity": card.similarity}
        if card.model is not None:
            about["likewise.model_sha256"] = card.model.sha256
        schema = table.schema.append(pa.field("vector", pa.list_(pa.float32(), card.dim))).with_metadata(about)
        with parquet.ParquetWriter(part, schema) as writer:
            for start in range(0, max(1, len(vectors)), CHUNK):
                units = np.ascontiguousarray(vectors.take(slice(start, start + CHUNK)))
                column = pa.FixedSizeListArray.from_arrays(pa.array(units.reshape(-1)), card.dim)
                some = table.slice(start, len(units)).append_column("vector", column)
                writer.write_table(some.cast(schema))
    return len(vectors)
