"""``python -m`` puts the current folder first; files there, such as those of another person's run, must not replace modules."""

import os
import sys


def leave_current_folder() -> None:
    """Remove the first entry of ``sys.path``, which ``python -m`` adds, unless likewise itself is there.

    Examples:
        >>> callable(leave_current_folder)
        True
    """
    homes = [os.path.dirname(os.path.abspath(each)) for each in sys.modules["likewise"].__path__]
    if not sys.flags.safe_path and os.path.abspath(sys.path[0]) not in homes:
        del sys.path[0]
