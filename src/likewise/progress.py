"""Progress on the standard error: a bar on a terminal, plain lines elsewhere, nothing inside `quiet`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Step = TypeVar("Step")

MINUTE = 60.0
"""Seconds between two lines if there is no terminal."""

_quiet: ContextVar[bool] = ContextVar("likewise_quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Show no progress inside the block; ``--quiet`` of the command line.

    Examples:
        >>> with quiet():
        ...     is_quiet()
        True
    """
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def is_quiet() -> bool:
    """Whether progress is silenced.

    Examples:
        >>> is_quiet()
        False
    """
    return _quiet.get()


class Advance:
    """Counts progress; the base class shows nothing.

    Examples:
        >>> Advance()(3)
    """

    def __call__(self, amount: int) -> None:
        """Advance the count."""

    def describe(self, text: str) -> None:
        """Set the text next to the bar, or at the end of a line."""

    def print_line(self, text: str) -> None:
        """Print a line if there is no bar, for example at the end of an epoch."""


class _Bar(Advance):
    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def __call__(self, amount: int) -> None:
        self._bar.update(amount)

    def describe(self, text: str) -> None:
        self._bar.set_postfix_str(text, refresh=False)


class _Lines(Advance):
    def __init__(self, label: str, total: int | None, unit: str, done: int) -> None:
        self._label, self._total, self._unit, self._done = label, total, unit, done
        self._text = ""
        self._next = time.monotonic() + MINUTE

    def __call__(self, amount: int) -> None:
        self._done += amount
        if time.monotonic() >= self._next:
            total = "" if self._total is None else f" of {self._total:,}"
            text = f", {self._text}" if self._text else ""
            self.print_line(f"{self._label}: {self._done:,}{total} {self._unit}{text}")

    def describe(self, text: str) -> None:
        self._text = text

    def print_line(self, text: str) -> None:
        self._next = time.monotonic() + MINUTE
        print(text, file=sys.stderr, flush=True)


@contextmanager
def progress(
    label: str, total: int | None, unit: str, *, done: int = 0, show: bool = True, delay: float = 2.0
) -> Iterator[Advance]:
    """Report progress to the standard error: a bar on a terminal, elsewhere a line once a minute.

    Args:
        label: what is being done.
        total: the total count, if it is known.
        unit: the unit of the count; ``"B"`` counts bytes, in thousands.
        done: the initial count.
        show: ``False`` in processes that repeat what another one reports.
        delay: seconds before the bar is shown, so that a quick task shows none.

    Examples:
        >>> with progress("counting", 3, "sheep") as advance:
        ...     for _ in range(3):
        ...         advance(1)
    """
    if is_quiet() or not show:
        yield Advance()
        return
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is None or not sys.stderr.isatty():
        yield _Lines(label, total, unit, done)
        return
    scale = unit == "B"
    # leave=None: a bar inside another one disappears when it ends
    with tqdm(desc=label, total=total, initial=done, unit=unit, unit_scale=scale, delay=delay, leave=None) as bar:
        yield _Bar(bar)


def track(steps: Sequence[Step], label: str) -> Iterator[Step]:
    """Iterate over steps and report progress.

    Args:
        steps: the items to iterate over.
        label: what is being done.

    Examples:
        >>> list(track([1, 2, 3], "counting"))
        [1, 2, 3]
    """
    with progress(label, len(steps), "chunk") as advance:
        for step in steps:
            yield step
            advance(1)
