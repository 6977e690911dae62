"""Engines: one meaning, several ways to compute it."""

from likewise.backends.choose import BACKENDS, run
from likewise.backends.dense import DenseEngine, dense_masks
from likewise.backends.passes import Engine

__all__ = ["BACKENDS", "DenseEngine", "Engine", "dense_masks", "run"]
