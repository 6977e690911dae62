"""Two encoders with a common embedding space, such as images and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from likewise.data import Sides
from likewise.trunks.card import Card, write_model
from likewise.trunks.embedder import OTHER, Embedder
from likewise.trunks.preprocessing import Preprocessing


class TwoTowers(nn.Module):
    """Two embedders with the same dimension, one for anchors and one for references.

    Both are saved in one file, from which `likewise.trunks.Embedder.load` reads either tower.

    Args:
        anchors: the first tower; the one of images, if there is one.
        references: the second tower.

    Examples:
        >>> from likewise.trunks import build_text
        >>> towers = TwoTowers(Embedder("convnet", 8), Embedder(build_text("ngrams"), 8))
        >>> tokens = towers.references.trunk.tokenize(["a", "b", "c"])
        >>> towers(Sides(torch.zeros(3, 1, 32, 32), tokens)).shape
        torch.Size([6, 8])
    """

    def __init__(self, anchors: Embedder, references: Embedder) -> None:
        super().__init__()
        if anchors.dim != references.dim:
            raise ValueError(
                f"references must have the dim of anchors, {anchors.dim}, but it has {references.dim}: "
                "use the same dim for both"
            )
        self.anchors, self.references = anchors, references

    @property
    def dim(self) -> int:
        """The size of the embeddings."""
        return self.anchors.dim

    @property
    def preprocessing(self) -> Preprocessing | None:
        """The preprocessing of the first tower; ``None`` if it embeds texts."""
        return self.anchors.preprocessing

    @property
    def freeze(self) -> str | None:
        """The frozen part of both towers."""
        return self.anchors.freeze

    @property
    def towers(self) -> tuple[Embedder, Embedder]:
        """Both towers."""
        return self.anchors, self.references

    def forward(self, inputs: Sides) -> Tensor:
        """Compute embeddings of anchors and references in alternating rows, ``(2 n, dim)``; or of one side, ``(n, dim)``."""
        found = [
            tower(side)
            for tower, side in zip(self.towers, (inputs.anchors, inputs.references), strict=True)
            if side is not None
        ]
        return found[0] if len(found) == 1 else torch.stack(found, dim=1).flatten(0, 1)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Return the trained parameters of both towers as ``"trunk"`` and ``"head"``."""
        first, second = (tower.parameter_groups() for tower in self.towers)
        return {name: [*first[name], *second[name]] for name in first}

    def card(self, *, classes: Sequence[str] | None = None, metrics: Mapping[str, float] | None = None) -> Card:
        """Return the card of the first tower, which contains that of the second."""
        return replace(self.anchors.card(classes=classes, metrics=metrics), other=self.references.card())

    def save(
        self,
        path: str | Path,
        *,
        classes: Sequence[str] | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Write both towers to one safetensors file; see `likewise.trunks.Embedder.save`."""
        others = {f"{OTHER}{name}": value for name, value in self.references.state_dict().items()}
        write_model(path, self.anchors.state_dict() | others, self.card(classes=classes, metrics=metrics))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote, on the CPU and in evaluation mode."""
        return cls(Embedder.load(path), Embedder.load(path, other=True)).eval()
