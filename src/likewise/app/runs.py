"""Open runs, and check where new ones go."""

from __future__ import annotations

import os
from pathlib import Path

from likewise.app.errors import UserError
from likewise.train import Run


def check_out(folder: str | Path | None) -> None:
    """Refuse a folder for results that cannot be made: one above it is a file, or may not be written.

    Args:
        folder: where the results go; by default below ``runs``.

    Examples:
        >>> check_out("/dev/null/run")
        Traceback (most recent call last):
        likewise.app.errors.UserError: --out must be a folder that can be made, but /dev/null is a file
    """
    target = Path(folder or "runs")
    for place in (target, *target.parents):
        if place.exists() and not place.is_dir():
            raise UserError(f"--out must be a folder that can be made, but {place} is a file")
    nearest = next(place for place in (target.absolute(), *target.absolute().parents) if place.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(f"--out must be a folder that can be made, but {nearest} may not be written by this user")


def open_run(folder: Path) -> Run:
    """A run, or an error that says that there is none, or none that can be read.

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
