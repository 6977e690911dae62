"""Text encoder: the text tower of a model with two towers, from texts to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.trunks import TEXT_TRUNKS, Embedder, TextTrunk, read_card

AT_ONCE = 64
"""Texts per batch."""


class TextEncoder:
    """A model that embeds texts.

    Args:
        model: an embedder with a `likewise.trunks.TextTrunk`; it is set to evaluation mode.

    Examples:
        >>> from likewise.trunks import build_text
        >>> TextEncoder(Embedder(build_text("ngrams"), 8)).embed(["a yellow bird", "a wren"]).shape
        (2, 8)
    """

    def __init__(self, model: Embedder) -> None:
        if not isinstance(model.trunk, TextTrunk):
            raise TypeError(f"model must embed texts, but its trunk is a {type(model.trunk).__name__}")
        self.model, self._tokenize = model.eval(), model.trunk.tokenize

    @classmethod
    def load(cls, file: str | Path, *, indexed: bool = False) -> TextEncoder:
        """Read the text tower from the file of a model.

        Args:
            file: a ``.safetensors`` file that a `likewise.trunks.TwoTowers` wrote.
            indexed: for the texts of an index, not for queries; of two text towers this is the second, that of references.

        Examples:
            >>> import tempfile
            >>> file = tempfile.mkdtemp() + "/glyphs.safetensors"
            >>> Embedder("convnet", 8).save(file)
            >>> TextEncoder.load(file)
            Traceback (most recent call last):
            ValueError: ...glyphs.safetensors has no text tower: train a model with one by likewise train --data PairTable
        """
        card = read_card(file)
        sides = [
            other for other, each in ((False, card), (True, card.other)) if each is not None and _is_text(each.trunk)
        ]
        if not sides:
            raise ValueError(f"{file} has no text tower: train a model with one by likewise train --data PairTable")
        return cls(Embedder.load(file, other=sides[-1 if indexed else 0]))

    @property
    def dim(self) -> int:
        """The dimension of the embeddings."""
        return self.model.dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors ``(n, dim)`` of texts."""
        found = [np.zeros((0, self.dim), np.float32)]
        with torch.inference_mode():
            for start in range(0, len(texts), AT_ONCE):
                tokens = self._tokenize(texts[start : start + AT_ONCE])
                found.append(self.model(tokens).float().numpy())
        return np.concatenate(found)


def _is_text(trunk: object) -> bool:
    return isinstance(trunk, dict) and trunk.get("name") in TEXT_TRUNKS
