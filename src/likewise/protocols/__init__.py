"""Fair by construction: protocols, boards and workers, search, repeats, tournaments, published numbers."""

from likewise.protocols.bayes import Bayesian, Random
from likewise.protocols.board import merge
from likewise.protocols.combine import concatenated
from likewise.protocols.fairness import Difference, described, unfair_differences
from likewise.protocols.file_board import FileBoard
from likewise.protocols.grid import CoordinateGrid
from likewise.protocols.leaderboard import Leaderboard, Unfair, leaderboards, rank
from likewise.protocols.pairs import Comparison, Comparisons, compare, compare_all
from likewise.protocols.protocol import PROTOCOLS, Protocol, classic, fixed_share, k_fold
from likewise.protocols.published import published
from likewise.protocols.reality import Improvement, improvements, papers_versus_reality
from likewise.protocols.repeats import Summary, summarize
from likewise.protocols.search import Search, best, history, is_over, plan, prune
from likewise.protocols.space import Choice, Range, Tried, at_point, space_of
from likewise.protocols.sql_board import SqlBoard
from likewise.protocols.tournament import Tournament, tournament
from likewise.protocols.trial import Result, Trial, table
from likewise.protocols.worker import work

__all__ = [
    "PROTOCOLS",
    "Bayesian",
    "Choice",
    "Comparison",
    "Comparisons",
    "CoordinateGrid",
    "Difference",
    "FileBoard",
    "Improvement",
    "Leaderboard",
    "Protocol",
    "Random",
    "Range",
    "Result",
    "Search",
    "SqlBoard",
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
    "described",
    "fixed_share",
    "history",
    "improvements",
    "is_over",
    "k_fold",
    "leaderboards",
    "merge",
    "papers_versus_reality",
    "plan",
    "prune",
    "published",
    "rank",
    "space_of",
    "summarize",
    "table",
    "tournament",
    "unfair_differences",
    "work",
]

# Used by other packages of the library, not part of the public API.
from likewise.protocols.board import Board as Board
from likewise.protocols.board import Standing as Standing
from likewise.protocols.combine import TEST_SET_FILE as TEST_SET_FILE
from likewise.protocols.leaderboard import entries_of as entries_of
from likewise.protocols.pairs import NoPairs as NoPairs
from likewise.protocols.published import data_of as data_of
from likewise.protocols.reality import comparison as comparison
from likewise.protocols.reality import draw_improvements as draw_improvements
from likewise.protocols.search import Method as Method
from likewise.protocols.space import Point as Point
from likewise.protocols.space import Space as Space
from likewise.protocols.trial import COLUMNS as COLUMNS
from likewise.protocols.trial import Label as Label
