"""Training: a resumable loop, the complete record of each run, and a sealed test set."""

from likewise.train.description import Data
from likewise.train.embedding import Embedded, embed, evaluate, evaluate_both_ways
from likewise.train.entry import train
from likewise.train.frozen import FeatureLoader
from likewise.train.groups import Group, parameter_groups
from likewise.train.guards import Collapsed, NotFinite
from likewise.train.run import Run
from likewise.train.sealed import Sealed
from likewise.train.settings import OptimizerConfig, ScheduleConfig, TrainConfig
from likewise.train.two_sided import TwoSided

__all__ = [
    "Collapsed",
    "Data",
    "Embedded",
    "FeatureLoader",
    "Group",
    "NotFinite",
    "OptimizerConfig",
    "Run",
    "ScheduleConfig",
    "Sealed",
    "TrainConfig",
    "TwoSided",
    "embed",
    "evaluate",
    "evaluate_both_ways",
    "parameter_groups",
    "train",
]

# Used by other packages of the library, not part of the public API.
from likewise.train.checkpoint import load_checkpoint as load_checkpoint
from likewise.train.embedding import RECALLS as RECALLS
from likewise.train.embedding import directions as directions
from likewise.train.mining import mining_losses as mining_losses
from likewise.train.settings import check_ks as check_ks
