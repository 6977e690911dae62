"""The reality check's row "Pretrained": the network before training, its features reduced by PCA.

The features are standardized, projected to their first principal components and scaled to unit length.  Mean, deviation
and components are those of the test images themselves: no label is used, and the evaluation code beside the paper
(`BaseTester` of pytorch-metric-learning, with `pca`) does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.formula import unit
from likewise.train import Embedded, evaluate
from studies.untrained import embed_untrained


def reduce_by_pca(features: Tensor, dim: int) -> Tensor:
    """Standardized features on their first principal components, as rows of unit length.

    Args:
        features: of shape ``(n, features)``.
        dim: the number of components, at most the number of rows and of features.

    Examples:
        >>> reduce_by_pca(torch.tensor([[0.0, 0.0], [1.0, 1.0], [3.0, 3.0]]), 1).abs().flatten().tolist()
        [1.0, 1.0, 1.0]
    """
    if not 1 <= dim <= min(features.shape):
        raise ValueError(f"dim must be a whole number in [1, {min(features.shape)}], but it is {dim}")
    values = features.double()
    deviation = values.std(0, correction=0)
    values = (values - values.mean(0)) / torch.where(deviation > 0, deviation, 1.0)
    _, vectors = torch.linalg.eigh(values.T @ values)  # ascending
    return unit(values @ vectors[:, -dim:]).float()


def measure_pretrained(place: Path, config: Mapping[str, Any], dims: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """The metrics of the untrained network at several sizes, by the names of these.

    Args:
        place: where its embeddings of the test set are kept.
        config: a complete configuration; its data and its trunk are used.
        dims: sizes by name, such as ``{"concatenated": 512, "separated": 128}``.
    """
    config = {**config, "model": {**config["model"], "normalize": False}}
    stored = np.load(embed_untrained(place, config, "the features before training, by which nothing is chosen"))
    features, labels = torch.from_numpy(stored["embeddings"]), torch.from_numpy(stored["labels"])
    is_query = torch.from_numpy(stored["is_query"]) if len(stored["is_query"]) else None
    return {
        name: dict(evaluate(Embedded(reduce_by_pca(features, dim), labels), is_query, ks=(1,)))
        for name, dim in dims.items()
    }
