"""Layouts of the embedding map: two-dimensional positions that preserve neighbors."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
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
ITERATIONS = 500
"""Iterations of t-SNE: half of scikit-learn's 1,000, for a Kullback-Leibler divergence 2% to 6% higher in half the time."""

SUBPROCESS_POINTS = 1024
"""The number of points from which t-SNE runs in a separate process, because it takes longer than starting one."""

FEWEST = 8
"""With fewer points neighborhoods are not meaningful, and the map shows principal components."""


def check_layout(layout: str) -> str:
    """Check that a layout exists and that its package is installed.

    Examples:
        >>> check_layout("tsne")
        'tsne'
    """
    one_of("layout", layout, LAYOUTS)
    if layout == "tsne" and find_spec("sklearn") is None:
        raise ImportError(
            "layout='tsne' needs scikit-learn, which is not installed: pip install 'likewise[report]', or layout='pca'"
        )
    if layout == "umap":
        _umap()
    return layout


Places = tuple[NDArray[np.float64], str]


def lay_out(embeddings: Tensor, layout: str, seed: int) -> Places:
    """Compute positions ``(n, 2)`` in [0, 1]², and return them with the name of the method.

    Embeddings are normalized and reduced to 50 principal components before t-SNE or UMAP.

    Examples:
        >>> import torch
        >>> places, name = lay_out(torch.eye(3), "pca", seed=0)
        >>> places.shape, name
        ((3, 2), 'principal components')
    """
    return start_layout(embeddings, layout, seed, allow_subprocess=False)()


def start_layout(embeddings: Tensor, layout: str, seed: int, *, allow_subprocess: bool = True) -> Callable[[], Places]:
    """Start a layout and return a function that waits for the result of `lay_out`.

    Args:
        embeddings: ``(n, d)``.
        layout: a name of `LAYOUTS`.
        seed: the seed of the layout.
        allow_subprocess: whether t-SNE of many points can run in a separate process.

    Examples:
        >>> import torch
        >>> start_layout(torch.eye(3), "pca", seed=0)()[1]
        'principal components'
    """
    points = _principal(unit(embeddings.double()), COMPONENTS)
    if len(points) < FEWEST:
        layout = "pca"
    if layout == "tsne":
        check_layout(layout)
        finish = _start_tsne(
            points.astype(np.float32), _start(points), seed, allow_subprocess and len(points) >= SUBPROCESS_POINTS
        )
        return lambda: (_scale_to_square(np.asarray(finish(), dtype=np.float64)), LAYOUTS[layout])
    if layout == "umap":
        neighbors = min(15, len(points) - 1)
        umap = _umap()(n_neighbors=neighbors, init=_start(points) * 1e5, random_state=seed, n_jobs=1)
        places = umap.fit_transform(points)
    else:
        places = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))[:, :2]
    return lambda: (_scale_to_square(np.asarray(places, dtype=np.float64)), LAYOUTS[layout])


def _start_tsne(
    points: NDArray[np.float32], start: NDArray[np.float32], seed: int, allow_subprocess: bool
) -> Callable[[], NDArray[Any]]:
    def compute() -> NDArray[Any]:
        places: NDArray[Any] = tsne.fit_tsne(points, start, seed, ITERATIONS)
        return places

    if not allow_subprocess or not sys.executable:
        return compute
    given = io.BytesIO()
    np.savez(given, points=points, start=start)
    # -P: do not import modules from the current folder
    command = [sys.executable, "-P", str(Path(tsne.__file__)), str(seed), str(ITERATIONS)]
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return compute
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as file:  # the return code shows the failure
        file.write(given.getbuffer())

    def wait() -> NDArray[Any]:
        with process:
            assert process.stdout is not None
            data = process.stdout.read()
        if process.returncode:
            return compute()
        places: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
        return places

    return wait


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
