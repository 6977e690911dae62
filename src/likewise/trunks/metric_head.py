"""A linear metric as the head of an embedder."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from likewise.trunks.embedder import Embedder


def fold_metric(embedder: Embedder, components: Any, *, normalize: bool = False) -> Embedder:
    """Fold a linear map of the embeddings into the head of an embedder.

    The result is an embedder that can be saved, indexed and exported like any other.

    Args:
        embedder: an embedder with ``normalize=False`` and a linear head, or without a head.
        components: the map, ``(n_components, dim)``: ``components_`` of a fitted estimator of `likewise.linear`.
        normalize: scale the new embeddings to unit length; distances then differ from those of the metric.

    Examples:
        >>> features = Embedder("convnet", None, head="none", normalize=False)
        >>> fold_metric(features, torch.eye(2, features.dim)).dim
        2
    """
    matrix = torch.as_tensor(components, dtype=torch.float32)
    if matrix.ndim != 2 or matrix.shape[1] != embedder.dim:
        raise ValueError(
            f"components must have shape (n_components, {embedder.dim}), but their shape is {tuple(matrix.shape)}"
        )
    if embedder.normalize:
        raise ValueError(
            "embedder must have normalize=False, because the map cannot be folded into a head before the normalization, "
            "but it has normalize=True"
        )
    if not isinstance(embedder.head, nn.Linear | nn.Identity):
        raise ValueError(f"embedder must have a linear head or none, but its head is {type(embedder.head).__name__}")
    weight, bias = _fold(embedder.head, matrix)
    pool = embedder.card().pool
    layer_norm = isinstance(embedder.norm, nn.LayerNorm)
    result = Embedder(
        copy.deepcopy(embedder.trunk), len(matrix), pool=pool, normalize=normalize,
        freeze_bn=embedder.freeze_bn, layer_norm=layer_norm,
    )  # fmt: skip
    result.pool.load_state_dict(embedder.pool.state_dict())
    head = result.head
    assert isinstance(head, nn.Linear)
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(bias)
    return result.train(embedder.training)


def _fold(head: nn.Module, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weight and the bias of a linear head followed by a linear map."""
    if not isinstance(head, nn.Linear):
        return matrix, matrix.new_zeros(len(matrix))
    weight = head.weight.detach().float().cpu()
    bias = weight.new_zeros(len(weight)) if head.bias is None else head.bias.detach().float().cpu()
    return matrix @ weight, matrix @ bias
