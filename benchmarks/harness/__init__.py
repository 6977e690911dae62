"""What benchmarks share: options, the record of the machine, timing, memory, child processes, results, pages."""

from benchmarks.harness.children import limit_memory, run_in_child
from benchmarks.harness.environment import GIB, MIB, Busy, cores, high_water, machine, out_of_memory, versions
from benchmarks.harness.options import make_parser
from benchmarks.harness.page import COLORS, DOCS, GRAY, fill, finish, number, start, table, times
from benchmarks.harness.results import RESULTS, Journal, commit, fingerprint, read, result_path, resume, write
from benchmarks.harness.timing import CLOCKS, Step, relative, summary, take_turns

__all__ = [
    "CLOCKS",
    "COLORS",
    "DOCS",
    "GIB",
    "GRAY",
    "MIB",
    "RESULTS",
    "Busy",
    "Journal",
    "Step",
    "commit",
    "cores",
    "fill",
    "fingerprint",
    "finish",
    "high_water",
    "limit_memory",
    "machine",
    "make_parser",
    "number",
    "out_of_memory",
    "read",
    "relative",
    "result_path",
    "resume",
    "run_in_child",
    "start",
    "summary",
    "table",
    "take_turns",
    "times",
    "versions",
    "write",
]
