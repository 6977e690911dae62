"""Open runs, and check where new ones go."""

from __future__ import annotations

import os
from pathlib import Path

from likewise.app.errors import UserError
from likewise.train import Run


def check_out(folder: str | Path | None) -> None:
    """Refuse an output folder that cannot be created: a parent is a file or not writable.

    Args:
        folder: the output folder; by default below ``runs``.

    Examples:
        >>> check_out("/dev/null/run")
        Traceback (most recent call last):
        likewise.app.errors.UserError: --out must be a folder that can be created, but /dev/null is a file
    """
    target = Path(folder or "runs")
    for place in (target, *target.parents):
        if place.exists() and not place.is_dir():
            raise UserError(f"--out must be a folder that can be created, but {place} is a file")
    nearest = next(place for place in (target.absolute(), *target.absolute().parents) if place.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(f"--out must be a folder that can be created, but this user cannot write to {nearest}")


def open_run(folder: Path) -> Run:
    """Open a run, or raise an error if there is none or it cannot be read.

    Examples:
        >>> open_run(Path("nowhere"))
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a run, but it has no run.yaml
    """
    try:
        run = Run(folder)
        _ = run.description
    except FileNotFoundError:
        raise UserError(f"{folder} must be the folder of a run, but it has no run.yaml") from None
    except ValueError as error:  # an unknown schema
        raise UserError(str(error)) from error
    return run
