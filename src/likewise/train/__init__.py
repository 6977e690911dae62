"""Train: a loop that can be killed, a record that is complete, a test set that is sealed."""

from likewise.train.description import Data
from likewise.train.embedding import Embedded, embed, evaluate
from likewise.train.groups import Group, parameter_groups
from likewise.train.loop import Collapsed, train
from likewise.train.run import Run
from likewise.train.sealed import Sealed
from likewise.train.settings import Optimizer, Plan, Schedule
from likewise.train.step import NotFinite

__all__ = [
    "Collapsed",
    "Data",
    "Embedded",
    "Group",
    "NotFinite",
    "Optimizer",
    "Plan",
    "Run",
    "Schedule",
    "Sealed",
    "embed",
    "evaluate",
    "parameter_groups",
    "train",
]
