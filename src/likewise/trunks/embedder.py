"""Embedder: a trunk, a pooling, a head, and normalization to unit length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from likewise.trunks.card import Card, read_card, read_tensors, write_model
from likewise.trunks.folding import freeze as fold
from likewise.trunks.pooling import POOLS
from likewise.trunks.preprocessing import Preprocessing
from likewise.trunks.registry import build, rebuild
from likewise.trunks.text import TextTrunk
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import WeightsLike, load_state


def _mlp(features: int, dim: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, features), nn.ReLU(), nn.Linear(features, dim))


OTHER = "other."
"""The prefix of the tensor names of a second tower in a file; see `likewise.trunks.TwoTowers`."""

HEADS: Mapping[str, Callable[[int, int], nn.Module]] = {
    "linear": nn.Linear,
    "mlp": _mlp,
    "none": lambda features, dim: nn.Identity(),
}
"""The heads of an `Embedder`, by name."""


class Embedder(nn.Module):
    """A network that maps preprocessed images ``(B, C, H, W)`` to embeddings ``(B, dim)``.

    Args:
        trunk: a name for `likewise.trunks.build`; or a module that maps images to feature maps ``(B, C, H, W)`` or vectors
            ``(B, C)``, with the number of channels ``C`` as ``out_features`` (or ``num_features``, as in timm); or a
            `likewise.trunks.TextTrunk`, which maps token ids to vectors.
        dim: the size of the embeddings; ``None`` with ``head="none"``: that of the trunk.
        pool: ``"avg"``, ``"max"``, ``"avg+max"`` (their sum) or ``"gem"``; vectors are not pooled.
        head: ``"linear"``, ``"mlp"`` (one hidden layer with the width of the trunk), or ``"none"``.
        normalize: scale embeddings to unit length.
        freeze_bn: freeze the batch norms of the trunk: always in evaluation mode, without gradient.
        layer_norm: apply layer normalization without learned parameters to the pooled features, as ProxyNCA++ does
            (Teh et al. 2020).
        freeze: ``"trunk"``: train only the head.  Trunk and pooling stay in evaluation mode, without gradient, and
            `forward` also accepts the result of `features`, ``(B, C)``.  It is not stored in the file of a model.
        weights: weights of a trunk that is given by name; see `likewise.trunks.build`.

    Attributes:
        trunk: the network.
        dim: the size of the embeddings.
        preprocessing: the preprocessing that the trunk expects, if known.

    Examples:
        >>> import torch
        >>> embedder = Embedder("convnet", 64)
        >>> glyphs = torch.randint(256, (2, 1, 32, 32), dtype=torch.uint8)
        >>> embedder(embedder.preprocessing(glyphs)).shape
        torch.Size([2, 64])
    """

    def __init__(
        self,
        trunk: str | nn.Module,
        dim: int | None,
        *,
        pool: str = "avg",
        head: str = "linear",
        normalize: bool = True,
        freeze_bn: bool = False,
        layer_norm: bool = False,
        freeze: str | None = None,
        weights: WeightsLike = None,
    ) -> None:
        super().__init__()
        _one_of("pool", pool, POOLS)
        _one_of("head", head, HEADS)
        if freeze not in (None, "trunk"):
            raise ValueError(f"freeze must be 'trunk' or None, but it is {freeze!r}")
        if freeze == "trunk" and head == "none":
            raise ValueError(
                "head must be 'linear' or 'mlp' with freeze='trunk', which trains only the head, but it is 'none'"
            )
        if isinstance(trunk, str):
            trunk = build(trunk, weights=weights)
        elif weights is not None:
            raise ValueError(f"weights must be None for a trunk that is a module, but it is {weights!r}")
        features = _features_of(trunk)
        self.trunk = trunk
        self.dim = _dim_of(dim, head, features)
        self.preprocessing: Preprocessing | None = getattr(trunk, "preprocessing", None)
        self.normalize, self.freeze_bn, self.freeze = normalize, freeze_bn, freeze
        self._names = (pool, head)
        self.pool = POOLS[pool]()
        self.norm = nn.LayerNorm(features, elementwise_affine=False) if layer_norm else nn.Identity()
        self.head = HEADS[head](features, self.dim)
        if freeze_bn:
            for norm in self._batch_norms():
                fold(norm)
        if freeze == "trunk":
            for part in (self.trunk, self.pool):
                part.requires_grad_(False)
        self.train(self.training)

    def _batch_norms(self) -> list[nn.Module]:
        return [each for each in self.trunk.modules() if isinstance(each, nn.modules.batchnorm._BatchNorm)]

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode; frozen batch norms and a frozen trunk stay in evaluation mode."""
        super().train(mode)
        if self.freeze == "trunk":
            self.trunk.eval()
            self.pool.eval()
        if self.freeze_bn:
            for norm in self._batch_norms():
                norm.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Compute embeddings ``(B, dim)`` of preprocessed images; normalized ones are at least float32."""
        is_features = self.freeze == "trunk" and images.ndim == 2 and images.is_floating_point()
        features = images if is_features else self.features(images)
        embeddings: Tensor = self.head(self.norm(features))
        return _unit(embeddings) if self.normalize else embeddings

    def features(self, images: Tensor) -> Tensor:
        """Compute the input of the head: the pooled output of the trunk, ``(B, C)``.

        Examples:
            >>> Embedder("convnet", 64).features(torch.zeros(2, 1, 32, 32)).shape
            torch.Size([2, 256])
        """
        features: Tensor = self.trunk(images)
        if features.ndim == 4:
            features = self.pool(features)
        elif features.ndim != 2:
            raise ValueError(
                f"trunk must return maps (B, C, H, W) or vectors (B, C), but its shape is {tuple(features.shape)}"
            )
        return features

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Return the trained parameters as ``"trunk"`` and ``"head"`` (with the pooling), for separate learning rates.

        Examples:
            >>> groups = Embedder("convnet", 64).parameter_groups()
            >>> optimizer = torch.optim.AdamW(
            ...     [{"params": groups["trunk"], "lr": 1e-4}, {"params": groups["head"], "lr": 1e-3}]
            ... )
            >>> {name: len(group) for name, group in groups.items()}
            {'trunk': 12, 'head': 2}
        """
        of_trunk = [each for each in self.trunk.parameters() if each.requires_grad]
        others = [each for part in (self.pool, self.head) for each in part.parameters() if each.requires_grad]
        return {"trunk": of_trunk, "head": others}

    def card(self, *, classes: Sequence[str] | None = None, metrics: Mapping[str, float] | None = None) -> Card:
        """Return the card that `save` writes: everything except the tensors.

        Examples:
            >>> Embedder("convnet", 64).card(metrics={"R@1": 0.9}).metrics
            {'R@1': 0.9}
        """
        pool, head = self._names
        return Card(
            trunk=self.trunk.recipe() if isinstance(self.trunk, Trunk | TextTrunk) else None,
            dim=self.dim,
            pool=pool,
            head=head,
            normalize=self.normalize,
            freeze_bn=self.freeze_bn,
            layer_norm=isinstance(self.norm, nn.LayerNorm),
            preprocessing=self.preprocessing,
            classes=None if classes is None else tuple(map(str, classes)),
            metrics={str(name): float(value) for name, value in (metrics or {}).items()},
        )

    def save(
        self,
        path: str | Path,
        *,
        classes: Sequence[str] | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Write the model and its card to one safetensors file; `likewise.trunks.read_card` reads the card.

        The file is replaced atomically: after a crash, the old one is still complete.

        Args:
            path: a file that ends in ``.safetensors``.
            classes: names of the training classes.
            metrics: metrics as fractions.

        Examples:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Embedder("convnet", 64).save(f"{folder}/glyphs.safetensors", metrics={"R@1": 0.9})
            ...     print(Embedder.load(f"{folder}/glyphs.safetensors").dim)
            64
        """
        write_model(path, self.state_dict(), self.card(classes=classes, metrics=metrics))

    @classmethod
    def load(cls, path: str | Path, *, trunk: nn.Module | None = None, other: bool = False) -> Self:
        """Read a file that `save` wrote, on the CPU and in evaluation mode.

        Args:
            path: the file.
            trunk: the module, for a model that was saved with a custom trunk; its parameters are loaded from the file.
            other: load the second tower of a `likewise.trunks.TwoTowers`.
        """
        card, tensors = read_card(path), read_tensors(path)
        if other:
            if card.other is None:
                raise ValueError(f"{path} must have two towers, but it has one")
            card = card.other
            tensors = {name.removeprefix(OTHER): each for name, each in tensors.items() if name.startswith(OTHER)}
        if trunk is None:
            if card.trunk is None:
                raise ValueError(f"{path} was saved with a custom trunk; pass that module as trunk=")
            _check_sizes(card, None, tensors)
            trunk = rebuild(card.trunk)
        _check_sizes(card, trunk, tensors)
        embedder = cls(
            trunk,
            card.dim,
            pool=card.pool,
            head=card.head,
            normalize=card.normalize,
            freeze_bn=card.freeze_bn,
            layer_norm=card.layer_norm,
        )
        embedder.preprocessing = card.preprocessing
        if isinstance(trunk, Trunk) and card.preprocessing is not None:
            trunk.preprocessing = card.preprocessing
        load_state(embedder, tensors, skip=() if other else (OTHER,))
        return embedder.eval()


def _check_sizes(card: Card, trunk: nn.Module | None, tensors: Mapping[str, Tensor]) -> None:
    """Raise an error for a card that describes a larger network than its file contains, before memory is allocated."""
    total = sum(each.numel() for each in tensors.values())
    if trunk is None:
        recipe = card.trunk or {}
        taken = recipe.get("in_features", 1)
        wide = {each.shape[1] for each in tensors.values() if each.ndim == 2 and len(each) > 1}
        if taken != 1 and taken not in wide:
            raise ValueError(f"in_features of the card must be a size of its tensors, but it is {taken!r}")
    elif card.head != "none" and isinstance(card.dim, int) and card.dim * _features_of(trunk) > total:
        raise ValueError(f"dim of the card must fit its {total:,} numbers, but it is {card.dim:,}")


def _unit(vectors: Tensor) -> Tensor:
    """Scale rows to unit length; a row of zeros stays zero and gets no gradient."""
    vectors = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    norms = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    units: Tensor = vectors / norms.masked_fill(norms == 0.0, torch.inf)
    return units


def _one_of(name: str, value: str, choices: Mapping[str, object]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, but it is {value!r}")


def _features_of(trunk: nn.Module) -> int:
    for name in ("out_features", "num_features"):
        features = getattr(trunk, name, None)
        if isinstance(features, int):
            return features
    raise TypeError(
        f"trunk must have its number of channels as out_features, but the {type(trunk).__name__} has no such attribute"
    )


def _dim_of(dim: int | None, head: str, features: int) -> int:
    if head == "none":
        if dim not in (None, features):
            raise ValueError(f"dim must be None or the trunk's {features} with head='none', but it is {dim!r}")
        return features
    if not isinstance(dim, int) or isinstance(dim, bool) or dim < 1:
        raise ValueError(f"dim must be a whole number ≥ 1, but it is {dim!r}")
    return dim
