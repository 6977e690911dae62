"""Embeddings from files, as points with classes."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from likewise.linear.metric import Array


def load_embeddings(file: str | Path) -> tuple[Array, NDArray[np.int64]]:
    """Return points and classes, as `fit` takes them, from a NumPy file (``.npz``) written by ``likewise embed``.

    Args:
        file: a file with the arrays ``embeddings`` ``(n, d)`` and ``labels`` ``(n,)``, whole numbers.

    Returns:
        The embeddings in float64, and the labels.

    Examples:
        >>> import tempfile
        >>> place = tempfile.mkdtemp() + "/e.npz"
        >>> np.savez(place, embeddings=np.eye(2, dtype=np.float16), labels=[4, 7])
        >>> load_embeddings(place)[1]
        array([4, 7])
    """
    try:
        with np.load(file, allow_pickle=False) as content:
            arrays = {name: content[name] for name in ("embeddings", "labels") if name in content.files}
    except (ValueError, EOFError, AttributeError, BadZipFile) as error:
        raise ValueError(
            f"file must be a NumPy file (.npz) of plain arrays, but {file} cannot be read: {error}"
        ) from error
    missing = [name for name in ("embeddings", "labels") if name not in arrays]
    if missing:
        raise ValueError(
            f"file must have the arrays embeddings and labels, but {file} has no {' and no '.join(missing)}"
        )
    points, labels = np.asarray(arrays["embeddings"], np.float64), arrays["labels"]
    if points.ndim != 2 or labels.shape != (len(points),) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"file must have embeddings (n, d) and n whole numbers as labels, but their shapes in {file} are "
            f"{points.shape} and {labels.shape}"
        )
    return points, labels.astype(np.int64)
