"""Engines: one meaning, several ways to compute it."""

from likewise.engines.chunked import ChunkedEngine, by_rows, in_panels, in_rows
from likewise.engines.dense import DenseEngine, dense_masks
from likewise.engines.dispatch import BACKENDS, choose, run
from likewise.engines.schedule import Engine

__all__ = [
    "BACKENDS",
    "ChunkedEngine",
    "DenseEngine",
    "Engine",
    "by_rows",
    "choose",
    "dense_masks",
    "in_panels",
    "in_rows",
    "run",
]

# What the other packages use beside the public names.
from likewise.engines import graphs as graphs
from likewise.engines.chunked import panels as panels
from likewise.engines.places import ByPlaces as ByPlaces
from likewise.engines.places import Places as Places
from likewise.engines.places import numbers_of as numbers_of
from likewise.engines.places import of_the_rest as of_the_rest
from likewise.engines.positives import FEW as FEW
from likewise.engines.positives import PositiveIndex as PositiveIndex
from likewise.engines.positives import can_synchronize as can_synchronize
from likewise.engines.positives import find_positive_index as find_positive_index
from likewise.engines.positives import similarities_at as similarities_at
from likewise.engines.schedule import compute_folds as compute_folds
from likewise.engines.schedule import run_on as run_on
from likewise.engines.schedule import schedule as schedule
