"""Open runs, and check where new ones go."""

from __future__ import annotations

from pathlib import Path

from likewise.app.errors import UserError
from likewise.train import Run


def check_out(folder: str | Path | None) -> None:
    """Refuse a folder for results that cannot be made, because it or one above it is a file.

    Examples:
        >>> check_out("/dev/null/run")
        Traceback (most recent call last):
        likewise.app.errors.UserError: --out must be a folder that can be made, but /dev/null is a file
    """
    for place in (Path(folder), *Path(folder).parents) if folder is not None else ():
        if place.exists() and not place.is_dir():
            raise UserError(f"--out must be a folder that can be made, but {place} is a file")


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
