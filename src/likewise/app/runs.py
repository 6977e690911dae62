"""Open runs."""

from __future__ import annotations

from pathlib import Path

from likewise.app.errors import UserError
from likewise.train import Run


def open_run(folder: Path) -> Run:
    """A run, or an error that says that there is none, or none that can be read.

    Examples:
        >>> open_run(Path("nowhere"))
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a run, but it has no run.yaml
    """
    try:
        begun = Run(folder)
        _ = begun.description
    except FileNotFoundError:
        raise UserError(f"{folder} must be the folder of a run, but it has no run.yaml") from None
    except ValueError as error:  # an unknown schema
        raise UserError(str(error)) from error
    return begun
