"""Progress on a terminal, silence elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(
    label: str, total: int | None, unit: str, *, done: int = 0, delay: float = 1.0
) -> Iterator[Callable[[int], object]]:
    """A bar that is told how much was done; none without a terminal, without tqdm, or in the first second.

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
        yield lambda amount: None
        return
    scale = unit == "B"
    # disable=None: only a terminal is shown a bar
    with tqdm(desc=label, total=total, initial=done, unit=unit, unit_scale=scale, disable=None, delay=delay) as bar:
        yield bar.update
