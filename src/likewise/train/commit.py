"""Read the commit of the current folder with git, without running programs that the repository configures."""

from __future__ import annotations

import os
import re
import subprocess

_INERT = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol)"
    r"|(remote\..*\.(url|pushurl|fetch|tagopt)|branch\..*\.(remote|merge|rebase)|user\.(name|email))",
    re.IGNORECASE,
)
"""Settings of a repository that do not make git run a program or fetch anything."""

_QUIET = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "--no-optional-locks")


def read_commit() -> str | None:
    """Return the commit of the current folder, with ``+`` if files have changed since, or ``?`` if that is unknown.

    When git compares files, it runs programs that a repository can configure: filters, hooks, a file system monitor.  If
    the repository has a setting that is not known to be harmless, files are not compared.

    Examples:
        >>> isinstance(read_commit(), str | None)
        True
    """
    try:
        head = _ask("rev-parse", "HEAD").strip()
        settings = [line.split("\t") for line in _ask("config", "--list", "--show-scope", "--name-only").splitlines()]
        if not all(_INERT.fullmatch(name) for scope, name in settings if scope in ("local", "worktree")):
            return f"{head}?"
        changed = _ask(*_QUIET, "status", "--porcelain", "-uno", "--ignore-submodules=all")
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return f"{head}+" if changed else head


def _ask(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout
