"""Output for a terminal: tables that fit its width, notes, and color only on a terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from likewise.text import align

if TYPE_CHECKING:
    from likewise.data import Broken


def width() -> int:
    """The width of the terminal or COLUMNS, limited to 40 to 100 columns.

    Examples:
        >>> 40 <= width() <= 100
        True
    """
    return max(40, min(100, shutil.get_terminal_size((80, 24)).columns))


def bold(text: str) -> str:
    """Bold text on a terminal, unless NO_COLOR is set.

    Examples:
        >>> bold("R@1")
        'R@1'
    """
    shown = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return f"\033[1m{text}\033[0m" if shown else text


def note(text: str) -> None:
    """Print a note to the standard error.

    Examples:
        >>> note("the training of this run has not ended")
    """
    print(f"note: {text}", file=sys.stderr)


def suggest(*words: str) -> None:
    """Print the suggested next command to standard error, so that piped output is unchanged.

    Args:
        words: the arguments of the command, after ``likewise``.

    Examples:
        >>> suggest("serve", "birds.index")
    """
    print(f"next: {shlex.join(['likewise', *words])}", file=sys.stderr)


def columns(rows: Iterable[Sequence[str]], *, indent: int = 2, least: int = 24) -> str:
    """Format rows as columns; the last column is wrapped to the remaining width.

    If too little width remains, the last column is printed below the others.

    Args:
        rows: cells, as many in each row.
        indent: spaces in front.
        least: minimum width of the last column.

    Examples:
        >>> print(columns([("R@1", "0.912"), ("MAP@R", "0.704")]))
          R@1    0.912
          MAP@R  0.704
    """
    cells = [list(row) for row in rows]
    if not cells:
        return ""
    lines = []
    for (*_, last), front in zip(cells, align([*row[:-1], ""] for row in cells), strict=True):
        head = " " * indent + front
        if width() - len(head) >= least:
            lines.append((_fill(last, head, " " * len(head)) or head).rstrip())
        else:
            lines.append(head.rstrip())
            lines.append(_fill(last, " " * (indent + 4), " " * (indent + 4)))
    return "\n".join(line for line in lines if line.strip())


def table(rows: Iterable[Sequence[str]], *, indent: int = 2) -> str:
    """Format rows as columns without wrapping, so that paths can be copied.

    Args:
        rows: cells, as many in each row.
        indent: spaces in front.

    Examples:
        >>> print(table([("rank", "path"), ("1", "wren/1.jpg")]))
          rank  path
          1     wren/1.jpg
    """
    return "\n".join(" " * indent + line.rstrip() for line in align(rows))


def paragraph(text: str, *, indent: int = 0) -> str:
    r"""Wrap text to the width of the terminal.

    Examples:
        >>> paragraph("a  word and\nanother")
        'a word and another'
    """
    return _fill(" ".join(text.split()), " " * indent, " " * indent)


def _fill(text: str, first: str, rest: str) -> str:
    """Wrap to the terminal's width; a path is never broken, so that it can be copied."""
    return textwrap.fill(
        text,
        width(),
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )


def print_broken(broken: Sequence[Broken], rest: str = "are not listed", *, shown: int = 20) -> None:
    """Print images that could not be read to standard error.

    Args:
        broken: the images.
        rest: describes where the others are listed.
        shown: number of images printed.

    Examples:
        >>> print_broken([])
    """
    for each in broken[:shown]:
        print(f"left out: {each.source}: {each.reason}", file=sys.stderr)
    if len(broken) > shown:
        print(f"left out: {len(broken) - shown:,} more, which {rest}", file=sys.stderr)
