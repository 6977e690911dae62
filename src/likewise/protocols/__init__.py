"""Fair comparisons: protocols, studies, executors, hyper-parameter search, repeats, leaderboards and tournaments."""

from likewise.protocols.bayes import Bayesian, Random
from likewise.protocols.combine import concatenated
from likewise.protocols.conditions import Conditions, ImageSet
from likewise.protocols.executor import Ended, Executor, ExecutorBroken, SerialExecutor, reporter, run_missing
from likewise.protocols.fairness import Difference, unfair_differences
from likewise.protocols.grid import CoordinateGrid
from likewise.protocols.leaderboard import Leaderboard, Unfair
from likewise.protocols.local import LocalExecutor
from likewise.protocols.packing import merge_study, pack_study
from likewise.protocols.pairs import Comparison, Comparisons, compare, compare_all
from likewise.protocols.protocol import PROTOCOLS, Protocol, classic, fixed_share, k_fold
from likewise.protocols.ranking import leaderboards, rank
from likewise.protocols.ray_executor import RayExecutor
from likewise.protocols.repeats import Summary, summarize
from likewise.protocols.search import Search, best, history, is_over, plan, prune
from likewise.protocols.space import Choice, Range, Tried, at_point, space_of
from likewise.protocols.study import Study
from likewise.protocols.tournament import Tournament, tournament
from likewise.protocols.trial import Result, Trial, table

__all__ = [
    "PROTOCOLS",
    "Bayesian",
    "Choice",
    "Comparison",
    "Comparisons",
    "Conditions",
    "CoordinateGrid",
    "Difference",
    "Ended",
    "Executor",
    "ExecutorBroken",
    "ImageSet",
    "Leaderboard",
    "LocalExecutor",
    "Protocol",
    "Random",
    "Range",
    "RayExecutor",
    "Result",
    "Search",
    "SerialExecutor",
    "Study",
    "Summary",
    "Tournament",
    "Trial",
    "Tried",
    "Unfair",
    "at_point",
    "best",
    "classic",
    "compare",
    "compare_all",
    "concatenated",
    "fixed_share",
    "history",
    "is_over",
    "k_fold",
    "leaderboards",
    "merge_study",
    "pack_study",
    "plan",
    "prune",
    "rank",
    "reporter",
    "run_missing",
    "space_of",
    "summarize",
    "table",
    "tournament",
    "unfair_differences",
]

# Used by other packages of the library, not part of the public API.
from likewise.protocols.combine import TEST_SET_FILE as TEST_SET_FILE
from likewise.protocols.conditions import NOT_RECORDED as NOT_RECORDED
from likewise.protocols.conditions import Recorded as Recorded
from likewise.protocols.executor import Report as Report
from likewise.protocols.executor import Runner as Runner
from likewise.protocols.local import fitting_workers as fitting_workers
from likewise.protocols.packing import read_pack as read_pack
from likewise.protocols.pairs import NoPairs as NoPairs
from likewise.protocols.search import Method as Method
from likewise.protocols.space import Point as Point
from likewise.protocols.space import Space as Space
from likewise.protocols.study import STUDY_DATABASE as STUDY_DATABASE
from likewise.protocols.study import TrialState as TrialState
from likewise.protocols.study import in_shard as in_shard
from likewise.protocols.thesis_grid import thesis_space as thesis_space
from likewise.protocols.trial import COLUMNS as COLUMNS
from likewise.protocols.trial import Label as Label
from likewise.protocols.worker_process import interruptible as interruptible
