"""The program: find the command, run it, and separate user errors from bugs."""

from __future__ import annotations

import errno
import importlib
import os
import re
import shlex
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from types import TracebackType
from typing import Any, TextIO

from likewise import __version__
from likewise.app import NotAllowed, Note, UserError, nearest
from likewise.cli.arguments import QUIET
from likewise.cli.commands import COMMANDS
from likewise.cli.packages import Package, find_package, missing_packages
from likewise.cli.screen import bold, columns
from likewise.progress import quiet
from likewise.sanitize import hide_in, hide_passwords, hide_secrets

STARTED = time.monotonic()
"""Start time of the program, before a command imports torch."""

EXAMPLES = (
    "likewise demo",
    "likewise train --data ImageFolder --data.root photos --loss ProxyAnchorLoss",
    "likewise index runs/photos-efficientnet_lite0-proxyanchor-1 photos -o photos.index",
    "likewise serve photos.index",
)

NEXT_STEP = re.compile(r"\blikewise [a-z]|\bpip install|\bapt-get|--[a-z]|did you mean")
"""Matches error messages that already name a next step: a command, an option or a suggestion."""

OUT = ("-o", "--out")
"""Options that name a file or a folder to write."""

NO_ROOM = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EISDIR,
    errno.ENAMETOOLONG,
)
"""File system errors that the user can fix."""


def main(words: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        words: the arguments without the program's name (default: ``sys.argv[1:]``).

    Returns:
        The exit code: 0 for success, 2 for a user error, 1 for any other failure, 130 after Ctrl-C.

    Examples:
        >>> main(["trian"])
        2
    """
    if words is None:  # run as a program: Python prints tracebacks of bugs
        words = sys.argv[1:]
        sys.excepthook = partial(_print_fault, words)
    words = list(words)
    debug = "--debug" in words or bool(os.environ.get("LIKEWISE_DEBUG"))
    words = [word for word in words if word != "--debug"]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            warnings.simplefilter("always", Note)
            return _run(words)
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (UserError, OSError, KeyboardInterrupt) as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if isinstance(error, OSError) and (error.errno not in NO_ROOM or (error.filename is None and not full)):
            raise
        if debug:
            _print_fault(words, type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            print("stopped", file=sys.stderr)
            return 130
        if isinstance(error, OSError):
            error = UserError(_describe_refused(error))
        print(f"likewise: {hide_in(str(error), words)}", file=sys.stderr)
        if isinstance(error, NotAllowed):
            print(f"if you trust it: {_command([*words, *error.flags])}", file=sys.stderr)
        elif sys.stderr.isatty() and not NEXT_STEP.search(str(error)):  # in a log, one error stays one line
            print(f"next: likewise {words[0]} --help", file=sys.stderr)
        return 2


def _print_fault(
    words: Sequence[str], kind: type[BaseException], error: BaseException, place: TracebackType | None
) -> None:
    """Print a traceback without the secrets of the command line."""
    print(hide_in("".join(traceback.format_exception(kind, error, place)), words), end="", file=sys.stderr)


def _describe_refused(error: OSError) -> str:
    """Describe a file system error; a full disk does not damage existing files, because files are replaced atomically."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.filename} cannot be written or read: {error.strerror}"
    place = "the output of this command" if error.filename is None else error.filename
    return f"{place} cannot be written: {error.strerror}. Complete files are kept; free some space and run the command again"


def _command(words: Sequence[str]) -> str:
    """A command line for the shell, with secrets hidden."""
    return shlex.join(hide_secrets(["likewise", *words]))


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"likewise {__version__}")
        return 0
    name, *rest = words
    if name not in COMMANDS:
        raise UserError(
            f"there is no command {name}{nearest(name, COMMANDS) or '; likewise --help lists the commands'}"
        )
    _refuse_urls(rest)
    command = COMMANDS[name]
    silence = quiet() if command.shows_progress and QUIET in rest else nullcontext()
    lacking = missing_packages(command.extra) if command.extra is not None else []
    if lacking:
        raise UserError(_describe_missing(name, lacking[0]))
    try:
        with silence:
            rest = [word for word in rest if word != QUIET] if command.shows_progress else rest
            code: int = getattr(importlib.import_module(command.module), command.function)(rest)
    except SystemExit as end:  # after --help
        return int(end.code or 0)
    except ModuleNotFoundError as missing:
        package = find_package(missing.name or "")
        if package is None:
            raise
        raise UserError(_describe_missing(name, package)) from missing
    return code


def _refuse_urls(words: Sequence[str]) -> None:
    """Refuse a URL as an output path: it would create a folder whose name contains the password."""
    for before, word in zip(["", *words], words, strict=False):
        name, _, value = word.partition("=")
        place = word if before in OUT else value if name in OUT else ""
        if "://" in place:
            raise UserError(
                f"--out must be a file or a folder, but it is the URL {place}; for a database use likewise index --store"
            )


def _describe_missing(command: str, package: Package) -> str:
    return f"likewise {command} needs {package.name}: {package.get}"


def overview() -> str:
    """The text of ``likewise --help``.

    Examples:
        >>> print(overview().splitlines()[0])
        likewise: deep metric learning. Train embeddings, measure them honestly, use them.
    """
    lines = ["likewise: deep metric learning. Train embeddings, measure them honestly, use them.", ""]
    lines += ["usage: likewise COMMAND [options]      likewise COMMAND --help", ""]
    wide = max(map(len, COMMANDS))
    for group in dict.fromkeys(command.group for command in COMMANDS.values()):
        rows = [(name.ljust(wide), each.help) for name, each in COMMANDS.items() if each.group == group]
        lines += [bold(group), columns(rows), ""]
    lines += [bold("examples"), *(f"  {example}" for example in EXAMPLES), ""]
    lines += [f"{QUIET} hides progress; results and errors are still printed."]
    lines += ["--debug or LIKEWISE_DEBUG=1 shows the traceback of an error."]
    return "\n".join(lines)


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> Any:
    """Print a warning as a sentence, without the file and line."""
    print(f"note: {hide_passwords(str(message))}", file=sys.stderr)
