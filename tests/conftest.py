"""The order of all tests, their seed, and the seconds that each package of them takes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

import numpy as np
import pytest
import torch

from tests.report.browser import CHROMIUM, GET_CHROMIUM, NO_CHROMIUM, Browser

# some virtual machines announce AMX and kill the process that uses it; oneDNN reads this before its first product
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seconds", action="store_true", help="print the seconds of each package of tests as a table")


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Draw the same numbers in every run, whichever worker a test lands on."""
    torch.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(scope="session")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for each worker: to start it takes longer than most tests of pages."""
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.fixture
def browser(_browser: Browser) -> Browser:
    """A headless Chromium with an empty page, a large window and a light scheme."""
    _browser.reset()
    return _browser


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests first, so that no worker has a long one left at the end; those of a file go to one worker.

    Workers begin with equal slices of the list, in order, and take from each other what is left.  Fixtures of a file are
    made once where one worker has all of its tests.
    """
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    slow: dict[str, list[pytest.Item]] = {}
    quick = []
    for item in items:
        if item.get_closest_marker("slow"):
            slow.setdefault(item.nodeid.split("::")[0], []).append(item)
        else:
            quick.append(item)
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for tests in slow.values():
        min(shares, key=len).extend(tests)
    ordered: list[pytest.Item] = []
    for worker, first in enumerate(shares):
        rest = (len(items) * (worker + 1)) // workers - len(ordered) - len(first)
        ordered += first + quick[: max(rest, 0)]
        del quick[: max(rest, 0)]
    items[:] = ordered + quick


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was not tested, and the seconds of setups, calls and teardowns of all workers."""
    missing = sum(NO_CHROMIUM in str(report.longrepr) for report in terminalreporter.stats.get("skipped", ()))
    if missing:
        terminalreporter.write_line(f"not tested: {missing} tests of pages, {NO_CHROMIUM}; get it: {GET_CHROMIUM}")
    if not config.getoption("--seconds"):
        return
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                place = PurePosixPath(report.nodeid.split("::")[0])
                package = place.parent.as_posix() if len(place.parts) > 2 else place.as_posix()
                seconds[package] += report.duration
                tests[package] += report.when == "call"
    terminalreporter.section("seconds of each package")
    terminalreporter.write_line("| tests | number | seconds |\n| --- | --: | --: |")
    for package, total in seconds.most_common():
        terminalreporter.write_line(f"| `{package}` | {tests[package]:,} | {total:,.0f} |")
    terminalreporter.write_line(f"| all | {tests.total():,} | {sum(seconds.values()):,.0f} |")
