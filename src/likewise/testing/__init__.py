"""The contracts that losses and miners keep, as test classes: add one row and inherit all of it.

They ship with the library, so that a loss outside it can be held to the same contract.  Needs the ``testing`` extra.
"""

from likewise.testing.batches import LABELS, Batch, make_batch
from likewise.testing.losses import LossCase, LossContract, Oracle
from likewise.testing.miners import MinerCase, MinerContract
from likewise.testing.waiting import nobody_waits, value_without_waiting

__all__ = [
    "LABELS",
    "Batch",
    "LossCase",
    "LossContract",
    "MinerCase",
    "MinerContract",
    "Oracle",
    "make_batch",
    "nobody_waits",
    "value_without_waiting",
]
