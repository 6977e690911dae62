"""Validation and conversion of the arguments of an index: vectors, images and a model."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from likewise.search.encoder import Encoder
from likewise.search.matches import Floats
from likewise.search.vectors import encode


def check_vectors(name: str, value: Any, dim: int, *, empty: bool = False) -> NDArray[Any]:
    """Check that vectors are finite numbers ``(n, d)``, and return them as an array.

    Args:
        name: name of the argument; ``"queries"`` may be a single vector.
        value: an array, a tensor, or lists.
        dim: required dimension of the vectors.
        empty: whether zero vectors are allowed.

    Examples:
        >>> check_vectors("vectors", [[1, 2, 3]], 2)
        Traceback (most recent call last):
        ValueError: vectors must have shape (n, 2), but the shape is (1, 3)
    """
    if isinstance(value, torch.Tensor):
        value = value.detach().to("cpu", torch.float64 if value.dtype == torch.float64 else torch.float32).numpy()
    array: NDArray[Any] = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be numbers (n, {dim}), or images, but the dtype is {array.dtype}")
    if array.ndim == 1 and name == "queries":
        array = array[None]
    if array.ndim != 2 or array.shape[1] != dim or (not len(array) and not empty):
        raise ValueError(f"{name} must have shape (n, {dim}), but the shape is {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise ValueError(f"{name} must be finite, but row {row} contains NaN or infinity")
    return array


def embed_queries(queries: Any, dim: int, encoder: Callable[[], Encoder]) -> Floats:
    """Convert queries, vectors or images, to vectors of unit length.

    Args:
        queries: vectors, or an image, or several (a path, a PIL image, the bytes of a file).
        dim: dimension of the vectors.
        encoder: function that loads the model for images; called only if there are images.

    Examples:
        >>> embed_queries([3.0, 4.0], 2, lambda: None)
        array([[0.6, 0.8]], dtype=float32)
    """
    kinds = (str, os.PathLike, bytes, Image.Image)
    listed = [queries] if isinstance(queries, kinds) else queries
    if isinstance(listed, list | tuple) and listed and isinstance(listed[0], kinds):
        return encode(encoder().embed(listed), "float32")[0]
    return encode(check_vectors("queries", listed, dim), "float32")[0]


def write_model_file(
    model: str | Path | Encoder | None, transform: str | None, folder: Path
) -> tuple[Path | None, str | None, str | None]:
    """Make sure that a model is in a file; return the file, the name of its transform, and the name of the model.

    Args:
        model: a ``.safetensors`` file, the name of a published trunk, an encoder, or ``None``.
        transform: name of the requested transform.
        folder: folder of the file that is written if the model is not in a file.

    Examples:
        >>> write_model_file(None, "glyphs", Path())
        (None, 'glyphs', None)
    """
    if model is None:
        return None, transform, None
    if not isinstance(model, Encoder) and Path(model).is_file():
        return Path(model), transform, None
    encoder = model if isinstance(model, Encoder) else Encoder.load(model, transform, "cpu")
    name = str((encoder.card.trunk or {}).get("name", "model"))
    encoder.model.save(folder / "model.safetensors")
    return folder / "model.safetensors", transform or encoder.transform_name, name
