"""The order of all tests, and the scripts that some are about."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def script() -> Iterator[Callable[[str], ModuleType]]:
    """A script of benchmarks/ by its name; they find each other by their folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests first, as many for each worker: at the end nobody has a long one left while others have nothing to do.

    Workers begin with equal slices of the list, in order, and take from each other what is left.
    """
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    slow = [item for item in items if item.get_closest_marker("slow")]
    quick = [item for item in items if not item.get_closest_marker("slow")]
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        first = slow[worker::workers]
        rest = (len(items) * (worker + 1)) // workers - len(ordered) - len(first)
        ordered += first + quick[: max(rest, 0)]
        del quick[: max(rest, 0)]
    items[:] = ordered + quick
