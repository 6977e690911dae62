"""What is written to a terminal: tables that fit its width, notes, and no color where nobody sees it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence


def width() -> int:
    """The width of the terminal, or what COLUMNS says; at least 40, and 100 is wide enough for text.

    Examples:
        >>> 40 <= width() <= 100
        True
    """
    return max(40, min(100, shutil.get_terminal_size((80, 24)).columns))


def bold(text: str) -> str:
    """Text that stands out, on a terminal that has not been asked for plain text (NO_COLOR).

    Examples:
        >>> bold("R@1")
        'R@1'
    """
    shown = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return f"\033[1m{text}\033[0m" if shown else text


def note(text: str) -> None:
    """A sentence beside the result, to the standard error.

    Examples:
        >>> note("this training has not ended")
    """
    print(f"note: {text}", file=sys.stderr)


def columns(rows: Iterable[Sequence[str]], *, indent: int = 2, least: int = 24) -> str:
    """Rows in columns; the last column is wrapped to the width that is left.

    Where too little is left for it, it stands under the others.

    Args:
        rows: cells, as many in each row.
        indent: spaces in front.
        least: how narrow the last column may become.

    Examples:
        >>> print(columns([("R@1", "0.912"), ("MAP@R", "0.704")]))
          R@1    0.912
          MAP@R  0.704
    """
    cells = [list(row) for row in rows]
    if not cells:
        return ""
    wide = [max(len(row[place]) for row in cells) for place in range(len(cells[0]) - 1)]
    start = indent + sum(each + 2 for each in wide)
    lines = []
    for *front, last in cells:
        head = " " * indent + "".join(cell.ljust(each + 2) for cell, each in zip(front, wide, strict=True))
        if width() - start >= least:
            lines.append((_filled(last, head, " " * start) or head).rstrip())
        else:
            lines.append(head.rstrip())
            lines.append(_filled(last, " " * (indent + 4), " " * (indent + 4)))
    return "\n".join(line for line in lines if line.strip())


def paragraph(text: str, *, indent: int = 0) -> str:
    r"""Text in lines that fit.

    Examples:
        >>> paragraph("a  word and\nanother")
        'a word and another'
    """
    return _filled(" ".join(text.split()), " " * indent, " " * indent)


def _filled(text: str, first: str, rest: str) -> str:
    """Lines of the terminal's width; paths and commands are not broken at their hyphens."""
    return textwrap.fill(text, width(), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
