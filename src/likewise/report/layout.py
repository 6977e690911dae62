"""Layouts of the embedding map: two-dimensional positions that preserve neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.formula import one_of, unit
from likewise.report import tsne

LAYOUTS = {"tsne": "t-SNE", "umap": "UMAP", "pca": "principal components"}
"""Layouts by name, with their titles on the page."""

COMPONENTS = 50
FEWEST = 8
"""With fewer points neighborhoods are not meaningful, and the map shows principal components."""


def check_layout(layout: str) -> str:
    """Check that a layout exists and that its package is installed.

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
    """Compute positions ``(n, 2)`` in [0, 1]², and return them with the name of the method.

    Embeddings are normalized and reduced to 50 principal components before t-SNE or UMAP.  Only UMAP uses the seed.

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
    return _scale_to_square(np.asarray(places, dtype=np.float64)), LAYOUTS[layout]


def _principal(points: Tensor, most: int) -> NDArray[np.float64]:
    """Return the coordinates along the first principal components, with deterministic signs."""
    centered = points - points.mean(dim=0)
    directions = torch.linalg.eigh(centered.T @ centered)[1].flip(1)[:, :most]
    # the sign of an eigenvector is arbitrary: make its largest entry positive
    largest = directions.gather(0, directions.abs().argmax(dim=0, keepdim=True))
    coordinates: NDArray[np.float64] = (centered @ (directions * torch.where(largest < 0.0, -1.0, 1.0))).numpy()
    return coordinates


def _start(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the first two principal components, scaled down so that t-SNE can rearrange them."""
    two = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))[:, :2]
    return (two / max(float(two[:, 0].std()), 1e-12) * 1e-4).astype(np.float32)


def _scale_to_square(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each axis separately to the unit square; long distances on a map are not meaningful."""
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
