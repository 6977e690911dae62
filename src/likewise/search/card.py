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
"""The version of the format; version 1 had segments and a manifest."""

CARD_FILE = "card.json"

FILES = (
    *("vectors.npy", "scales.npy", "items.arrow", "model.safetensors", "near.faiss", "near.npy"),
    *("thumbnails.bin", "thumbnails-added.bin", "thumbnails.npy"),
)
"""All files that a version may have in addition to its card."""


@dataclass(frozen=True)
class ModelEntry:
    """The model that computed the vectors of an index.

    Args:
        name: name of its file or trunk.
        sha256: checksum of its file.
        transform: name of its transform, if one was given.
        card: the card in its file.
        kept: whether the index has a copy of the model.

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
    """An approximate structure and its measured recall.

    Args:
        kind: ``"hnsw"`` or ``"ivfpq"``.
        settings: settings of the construction and of the search.
        recall: measured recall of the ten nearest; ``None`` if not measured.
        queries: number of queries of that measurement.
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
    """The cost of storing vectors in fewer bits: the fraction of the ten nearest that stay among the ten nearest.

    Args:
        recall: recall against float32, measured.
        queries: number of queries.
        among: number of items.

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
        bytes: size of the file.
        sha256: checksum of the file.

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
        name: name of the index.
        dim: dimension of the vectors.
        storage: storage type of the vectors.
        similarity: the score; always the cosine.
        rows: number of items.
        fields: columns of metadata and their types, including hidden columns.
        next_id: id of the next new item.
        model: the model that computed the vectors.
        near: the approximate structure.
        loss: the measured cost of the storage type.
        calibration: thresholds and probabilities of similarities, as written by `likewise.search.Calibration`.
        root: the folder of relative paths.
        created: time of creation, in seconds since 1970.
        changed: time at which this version was written.
        change: description of the change in this version.
        files: files of this version; none in a database.
        version: a string that differs between any two states of the index.

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
        """Return the card as JSON, its format first."""
        return json.dumps({"format": FORMAT} | asdict(self), ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> IndexCard:
        """Create a card from the result of `to_json`; entries that a later version of likewise adds to the format are ignored."""
        content = json.loads(text)
        if not isinstance(content, dict) or not isinstance(content.get("format"), int):
            raise ValueError("it has no format")
        if content["format"] > FORMAT:
            raise ValueError(
                f"it has format {content['format']}, and this version of likewise reads formats up to {FORMAT}; install a newer one"
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
        """Reject content that likewise does not write, in particular file names outside the folder."""
        if type(self.dim) is not int or self.dim < 1 or self.storage not in STORAGES:
            raise ValueError(f"it has vectors of dimension {self.dim!r} and storage {self.storage!r}")
        if type(self.rows) is not int or not isinstance(self.created, int | float) or not 0 <= self.created < 2**40:
            raise ValueError(f"it has {self.rows!r} rows and was created at {self.created!r}")
        for name in self.files:
            if name not in FILES:
                raise ValueError(f"it names a file {name!r}, which is not a file of an index")


def read_index_card(version: Path) -> IndexCard:
    """Read the card in the folder of a version.

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
