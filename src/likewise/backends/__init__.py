"""Engines: one meaning, several ways to compute it."""

from likewise.backends.choose import BACKENDS, choose, run
from likewise.backends.dense import DenseEngine, dense_masks
from likewise.backends.passes import Engine
from likewise.backends.streamed import StreamedEngine, by_rows, in_panels

__all__ = [
    "BACKENDS",
    "DenseEngine",
    "Engine",
    "StreamedEngine",
    "by_rows",
    "choose",
    "dense_masks",
    "in_panels",
    "run",
]
