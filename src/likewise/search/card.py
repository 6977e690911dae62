"""The card of an index: content, model and measurements."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from likewise.search.vectors import STORAGES

FORMAT = 2
"""The version of the layout; 1 had segments and a manifest."""

CARD_FILE = "card.json"

FILES = (
    *("vectors.npy", "scales.npy", "items.arrow", "model.safetensors", "near.faiss", "near.npy"),
    *("thumbnails.bin", "thumbnails-added.bin", "thumbnails.npy"),
)
"""Every file that a version may have besides its card."""


@dataclass(frozen=True)
class ModelEntry:
    """The model that made an index's vectors.

    Args:
        name: the name of its file or trunk.
        sha256: the checksum of its file.
        transform: the name of its transform, if one was named.
        card: the card in its file.
        kept: whether the index has a copy.

    Examples:
        >>> ModelEntry("best.safetensors", "00aa", None, {}).name
        'best.safetensors'
    """

    name: str
    sha256: str
    transform: str | None
    card: Mapping[str, Any]
    kept: bool = True


@dataclass(frozen=True)
class Structure:
    """An approximate structure, and the share of an exact search's results that it finds.

    Args:
        kind: ``"hnsw"`` or ``"ivfpq"``.
        settings: how it was built and is searched.
        recall: the share of the ten nearest that it finds, measured; ``None`` if not measured.
        queries: the number of queries of that measurement.
        faster: queries per second relative to exact search, on the machine that built it.

    Examples:
        >>> Structure("hnsw", {"effort": 64}, 0.99, 200, 30.0).recall
        0.99
    """

    kind: str
    settings: Mapping[str, Any]
    recall: float | None
    queries: int
    faster: float | None = None


@dataclass(frozen=True)
class Loss:
    """The cost of storing vectors in fewer bits: the share of the ten nearest that are still the ten nearest.

    Args:
        recall: against float32, measured.
        queries: the number of queries.
        among: the number of items.

    Examples:
        >>> Loss(0.98, 200, 10_000).recall
        0.98
    """

    recall: float
    queries: int
    among: int


@dataclass(frozen=True)
class FileEntry:
    """A file of a version.

    Args:
        bytes: its size.
        sha256: its checksum.

    Examples:
        >>> FileEntry(128, "00aa").bytes
        128
    """

    bytes: int
    sha256: str


@dataclass(frozen=True)
class IndexCard:
    """The content and the measurements of an index.

    Args:
        name: its name.
        dim: the size of its vectors.
        storage: how they are stored.
        similarity: the score; always the cosine.
        rows: the number of items.
        fields: columns of metadata and what they hold, hidden ones included.
        next_id: the id of the next new item.
        model: the model that made the vectors.
        near: the approximate structure.
        loss: the cost of the storage.
        calibration: when two items are the same, as `likewise.search.Calibration` writes it.
        root: the folder that relative paths start from.
        created: when the index was made, in seconds since 1970.
        changed: when this version was written.
        change: a description of the change in this version.
        files: the files of this version; none in a database.
        version: a word that differs between any two states of the index.

    Examples:
        >>> card = IndexCard("birds", 128)
        >>> IndexCard.from_json(card.to_json()) == card
        True
    """

    name: str
    dim: int
    storage: str = "float32"
    similarity: str = "cosine"
    rows: int = 0
    fields: Mapping[str, str] = field(default_factory=dict)
    next_id: int = 0
    model: ModelEntry | None = None
    near: Structure | None = None
    loss: Loss | None = None
    calibration: Mapping[str, Any] | None = None
    root: str | None = None
    created: float = field(default_factory=time.time)
    changed: float = field(default_factory=time.time)
    change: str = ""
    files: Mapping[str, FileEntry] = field(default_factory=dict)
    version: str = ""

    def to_json(self) -> str:
        """The card as JSON, its format first."""
        return json.dumps({"format": FORMAT} | asdict(self), ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> IndexCard:
        """The inverse of `to_json`; entries that a later likewise of the same format adds are passed over."""
        content = json.loads(text)
        if not isinstance(content, dict) or not isinstance(content.get("format"), int):
            raise ValueError("it has no format")
        if content["format"] > FORMAT:
            raise ValueError(
                f"it is of format {content['format']} and this likewise knows formats up to {FORMAT}; a newer one reads it"
            )
        known = {each.name: content[each.name] for each in fields(cls) if each.name in content}
        for name, entry in (("model", ModelEntry), ("near", Structure), ("loss", Loss)):
            if known.get(name) is not None:
                known[name] = entry(
                    **{"transform" if key == "images" else key: each for key, each in known[name].items()}
                )
        known["files"] = {name: FileEntry(**each) for name, each in known.get("files", {}).items()}
        card = cls(**known)
        card._check()
        return card

    def _check(self) -> None:
        """Refuse content that likewise does not write, in particular file names outside of the folder."""
        if type(self.dim) is not int or self.dim < 1 or self.storage not in STORAGES:
            raise ValueError(f"it has vectors of {self.dim!r} numbers, stored as {self.storage!r}")
        if type(self.rows) is not int or not isinstance(self.created, int | float) or not 0 <= self.created < 2**40:
            raise ValueError(f"it has {self.rows!r} rows, made at {self.created!r}")
        for name in self.files:
            if name not in FILES:
                raise ValueError(f"it names a file {name!r}, which is not a file of an index")


def read_index_card(version: Path) -> IndexCard:
    """The card in the folder of a version.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / CARD_FILE).write_text(IndexCard("birds", 2).to_json())
        >>> read_index_card(folder).dim
        2
    """
    file = version / CARD_FILE
    try:
        return IndexCard.from_json(file.read_bytes().decode())
    except KeyError as error:
        raise ValueError(f"{file} cannot be read: it has no {error}") from error
    except RecursionError:
        raise ValueError(f"{file} cannot be read: it nests too deeply") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
