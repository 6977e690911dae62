"""Engines: one meaning, several ways to compute it."""

from likewise.backends.choose import BACKENDS, choose, run, whole
from likewise.backends.dense import DenseEngine, dense_masks
from likewise.backends.passes import Engine
from likewise.backends.streamed import StreamedEngine, by_rows, in_panels, in_rows

__all__ = [
    "BACKENDS",
    "DenseEngine",
    "Engine",
    "StreamedEngine",
    "by_rows",
    "choose",
    "dense_masks",
    "in_panels",
    "in_rows",
    "run",
    "whole",
]
