"""The file of an embedder: a safetensors file with a JSON card in its header.

Weights and card are in one file, which is replaced atomically, so that they always belong together.  The card can be read
without this library and without torch: a safetensors file begins with eight bytes (a little-endian length) and that many
bytes of JSON, in which ``["__metadata__"]["likewise"]`` is the card, as a JSON string.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from likewise.checksums import check_checksums, checksums
from likewise.files import atomic_write
from likewise.trunks.preprocessing import Preprocessing

FORMAT = 1
"""The version of the card format that is written; all older versions can be read."""

KEY = "likewise"


@dataclass(frozen=True)
class Card:
    """The card in the file of an embedder.

    Args:
        trunk: the recipe of the trunk, for `likewise.trunks.rebuild`; ``None`` for a custom module.
        dim: the size of the embeddings.
        pool: the name of the pooling, as in `likewise.trunks.Embedder`.
        head: the name of the head.
        normalize: whether embeddings have unit length.
        freeze_bn: whether batch norms were frozen in training.
        layer_norm: whether pooled features are normalized.
        preprocessing: the expected preprocessing, if known.
        classes: names of the training classes, if known.
        metrics: metrics as fractions.
        torch: the version of torch that wrote the file.
        calibration: thresholds and probabilities of similarities as plain values, if the model was calibrated; see
            `likewise.search.Calibration`.
        other: the card of the second tower of a `likewise.trunks.TwoTowers`.

    Examples:
        >>> card = Card(trunk=None, dim=2, pool="avg", head="linear", normalize=True, freeze_bn=False, layer_norm=False)
        >>> Card.from_json(card.to_json()) == card
        True
    """

    trunk: Mapping[str, Any] | None
    dim: int
    pool: str
    head: str
    normalize: bool
    freeze_bn: bool
    layer_norm: bool
    preprocessing: Preprocessing | None = None
    classes: tuple[str, ...] | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    torch: str = str(torch.__version__)
    calibration: Mapping[str, Any] | None = None
    other: Card | None = None

    def to_json(self) -> str:
        """Return the card as JSON."""
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        if self.preprocessing is not None:
            content["preprocessing"] = self.preprocessing.as_dict()
        if self.other is not None:
            content["other"] = json.loads(self.other.to_json())
        for name in ("calibration", "other"):
            if content[name] is None:
                del content[name]  # as in files that were written before this entry existed
        return json.dumps({"format": FORMAT} | content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Card:
        """Read the result of `to_json`; unknown entries, which a later version added, are ignored."""
        content = json.loads(text)
        if not isinstance(content, dict) or not isinstance(content.get("format"), int):
            raise ValueError("the card must have a format, but it has none")
        if content["format"] > FORMAT:
            raise ValueError(f"the card must be of format {FORMAT} or older, but it is of format {content['format']}")
        known = {each.name: content[each.name] for each in fields(cls) if each.name in content}
        if known.get("preprocessing") is not None:
            known["preprocessing"] = Preprocessing.from_dict(known["preprocessing"])
        if known.get("classes") is not None:
            known["classes"] = tuple(known["classes"])
        if known.get("other") is not None:
            known["other"] = cls.from_json(json.dumps(known["other"]))
        return cls(**known)


def read_card(path: str | Path) -> Card:
    """Read the card of an embedder's file, without its tensors.

    Args:
        path: a file that `likewise.trunks.Embedder.save` wrote.

    Examples:
        >>> import tempfile
        >>> from likewise.trunks import Embedder
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Embedder("convnet", 64).save(f"{folder}/glyphs.safetensors", classes=["A", "B"])
        ...     card = read_card(f"{folder}/glyphs.safetensors")
        >>> card.trunk, card.classes
        ({'name': 'convnet', 'in_channels': 1}, ('A', 'B'))
    """
    try:
        metadata = _header(Path(path)).get("__metadata__") or {}
    except (ValueError, OverflowError, MemoryError) as damaged:
        raise ValueError(f"{path} must be a safetensors file, but it does not start like one") from damaged
    if KEY not in metadata:
        raise ValueError(f"{path} must be a file that an Embedder wrote, but it has no card")
    try:
        return Card.from_json(metadata[KEY])
    except (RecursionError, TypeError, AttributeError) as damaged:
        raise ValueError(
            f"{path} must be a file that an Embedder wrote, but its card cannot be read: {damaged}"
        ) from None


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > path.stat().st_size:
            raise ValueError("the header is longer than the file")
        try:
            header = json.loads(file.read(length))
        except RecursionError:
            raise ValueError("the header nests too deeply") from None
    if not isinstance(header, dict):
        raise ValueError("the header is not an object")
    return header


def read_tensors(path: str | Path) -> dict[str, Tensor]:
    """Read the tensors of an embedder's file, and check them against the checksums in it.

    Raises:
        ValueError: if the file is incomplete or damaged.

    Examples:
        >>> read_tensors("nowhere.safetensors")
        Traceback (most recent call last):
        FileNotFoundError: ...
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = dict(load_file(path))
    except SafetensorError as damaged:
        raise ValueError(f"{path} must be a safetensors file, but it is damaged: {damaged}") from None
    metadata = _header(Path(path)).get("__metadata__") or {}
    check_checksums(path, tensors, metadata.get(KEY, ""), metadata)
    return tensors


def write_model(path: str | Path, state: Mapping[str, Tensor], card: Card) -> None:
    """Write tensors and card to a temporary file, sync it to disk, and rename it.

    Examples:
        >>> import tempfile
        >>> card = Card(trunk=None, dim=2, pool="avg", head="linear", normalize=True, freeze_bn=False, layer_norm=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_model(f"{folder}/a.safetensors", {"weight": torch.zeros(1)}, card)
        ...     print(read_card(f"{folder}/a.safetensors").dim)
        2
    """
    from safetensors.torch import save_file

    path = Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"path must end in .safetensors, but it is {str(path)!r}")
    # copies: the format supports neither strides, such as channels last, nor tensors that share memory
    copies = {key: value.detach().cpu().clone(memory_format=torch.contiguous_format) for key, value in state.items()}
    with atomic_write(path) as part:
        text = card.to_json()
        save_file(copies, part, metadata={"format": "pt", KEY: text, **checksums(copies, text)})
        _sort_metadata(part)


def _sort_metadata(path: Path) -> None:
    """Sort the metadata in the header of a file, so that the same model always gives the same bytes."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode().ljust(size)
        if len(text) == size:
            file.seek(8)
            file.write(text)
