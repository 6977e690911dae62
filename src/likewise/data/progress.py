"""Progress: a bar on a terminal, a plain line once a minute elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MINUTE = 60.0
"""Seconds between two lines where there is no terminal."""


@contextmanager
def progress(
    label: str, total: int | None, unit: str, *, done: int = 0, delay: float = 1.0
) -> Iterator[Callable[[int], object]]:
    """Report progress to the standard error: a bar on a terminal, elsewhere a line once a minute.

    Args:
        label: what is being done.
        total: how much there is to do, where that is known.
        unit: what is counted; ``"B"`` counts bytes in units of a thousand.
        done: how much was done before.
        delay: seconds before the bar is shown, so that what is quick leaves no trace.

    Examples:
        >>> with progress("counting", 3, "sheep") as advance:
        ...     for _ in range(3):
        ...         _ = advance(1)
    """
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is None or not sys.stderr.isatty():
        yield _Lines(label, total, unit, done)
        return
    scale = unit == "B"
    with tqdm(desc=label, total=total, initial=done, unit=unit, unit_scale=scale, delay=delay) as bar:
        yield bar.update


class _Lines:
    """Prints how much is done, once a minute."""

    def __init__(self, label: str, total: int | None, unit: str, done: int) -> None:
        self.label, self.total, self.unit, self.done = label, total, unit, done
        self._next = time.monotonic() + MINUTE

    def __call__(self, amount: int) -> None:
        self.done += amount
        now = time.monotonic()
        if now >= self._next:
            self._next = now + MINUTE
            total = "" if self.total is None else f" of {self.total:,}"
            print(f"{self.label}: {self.done:,}{total} {self.unit}", file=sys.stderr, flush=True)
