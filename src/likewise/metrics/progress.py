"""Progress bars for passes that take more than two seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Step = TypeVar("Step")


def track(steps: Sequence[Step], what: str) -> Iterable[Step]:
    """Iterate with a progress bar on a terminal after two seconds; without a terminal or tqdm there is no bar.

    Args:
        steps: the items to iterate over.
        what: the label of the bar.

    Examples:
        >>> list(track([1, 2, 3], "counting"))
        [1, 2, 3]
    """
    try:
        from tqdm import tqdm
    except ImportError:
        return steps
    bar: Callable[..., Iterable[Step]] = tqdm
    return bar(steps, desc=what, delay=2.0, disable=None, leave=False)
