"""Contracts of losses, miners and similarities as test classes: a subclass lists its cases and inherits all tests.

The contracts ship with the library, so that losses, miners and similarities of other projects can be tested in the same
way.  They need the ``testing`` extra.
"""

from importlib.util import find_spec

if find_spec("pytest") is None or find_spec("hypothesis") is None:
    raise ImportError("likewise.testing needs pytest and hypothesis: pip install 'likewise[testing]'")

from likewise.testing.batches import LABELS, Batch, make_batch
from likewise.testing.loops import loop_over
from likewise.testing.losses import LossCase, LossContract, Oracle
from likewise.testing.miners import MinerCase, MinerContract
from likewise.testing.similarities import Curved, SimilarityCase, SimilarityContract
from likewise.testing.synchronization import evaluate_without_synchronization, forbid_synchronization

__all__ = [
    "LABELS",
    "Batch",
    "Curved",
    "LossCase",
    "LossContract",
    "MinerCase",
    "MinerContract",
    "Oracle",
    "SimilarityCase",
    "SimilarityContract",
    "evaluate_without_synchronization",
    "forbid_synchronization",
    "loop_over",
    "make_batch",
]
