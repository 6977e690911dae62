"""Layouts of the embedding map: a plane that preserves neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.formula import one_of, unit
from likewise.report import tsne

LAYOUTS = {"tsne": "t-SNE", "umap": "UMAP", "pca": "principal components"}
"""Layouts by name, and their titles on the page."""

COMPONENTS = 50
FEWEST = 8
"""Below this many points neighborhoods are not meaningful, and the map shows principal components."""


def check_layout(layout: str) -> str:
    """Refuse a layout that does not exist or whose package is not installed, before anything is computed.

    Examples:
        >>> check_layout("tsne")
        'tsne'
    """
    one_of("layout", layout, LAYOUTS)
    if layout == "umap":
        _umap()
    return layout


Places = tuple[NDArray[np.float64], str]


def lay_out(embeddings: Tensor, layout: str, seed: int) -> Places:
    """Places ``(n, 2)`` in [0, 1]² and the name of the method.

    Unit-normalized embeddings go through their first 50 principal components, which is where t-SNE and UMAP start.  Only
    UMAP uses the seed.

    Examples:
        >>> import torch
        >>> places, name = lay_out(torch.eye(3), "pca", seed=0)
        >>> places.shape, name
        ((3, 2), 'principal components')
    """
    points = _principal(unit(embeddings.double()), COMPONENTS)
    if len(points) < FEWEST:
        layout = "pca"
    if layout == "tsne":
        places: NDArray[Any] = tsne.fit_tsne(points.astype(np.float32), _start(points))
    elif layout == "umap":
        neighbors = min(15, len(points) - 1)
        umap = _umap()(n_neighbors=neighbors, init=_start(points) * 1e5, random_state=seed, n_jobs=1)
        places = umap.fit_transform(points)
    else:
        places = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))[:, :2]
    return _fitted(np.asarray(places, dtype=np.float64)), LAYOUTS[layout]


def _principal(points: Tensor, most: int) -> NDArray[np.float64]:
    """Coordinates along the largest principal directions, each with a fixed sign."""
    centered = points - points.mean(dim=0)
    directions = torch.linalg.eigh(centered.T @ centered)[1].flip(1)[:, :most]
    # an eigenvector's sign is anybody's choice: its largest entry is positive here
    largest = directions.gather(0, directions.abs().argmax(dim=0, keepdim=True))
    coordinates: NDArray[np.float64] = (centered @ (directions * torch.where(largest < 0.0, -1.0, 1.0))).numpy()
    return coordinates


def _start(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """The first two principal components, scaled down so that t-SNE can still rearrange them."""
    two = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))[:, :2]
    return (two / max(float(two[:, 0].std()), 1e-12) * 1e-4).astype(np.float32)


def _fitted(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each axis separately to the unit square: long distances on a map mean little."""
    low, high = places.min(axis=0), places.max(axis=0)
    fitted: NDArray[np.float64] = (places - low) / np.where(high - low > 1e-12, high - low, 1.0)
    return fitted


def _umap() -> Any:
    try:
        from umap import UMAP
    except ImportError:
        raise ImportError(
            "layout='umap' needs umap-learn, which is not installed: pip install umap-learn, or layout='tsne'"
        ) from None
    return UMAP
