"""The packaged set-ups of papers, by name: ``--config thesis/cub-resnet50``."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from likewise.app.errors import UserError, nearest

FOLDER = Path(str(files("likewise"))) / "recipes"


def list_recipes() -> dict[str, str]:
    """Every packaged recipe by its name, with the line that its file begins with.

    Examples:
        >>> list_recipes()["glyphs"]
        'Printed characters ...'
    """
    found = {}
    for name, file in _files().items():
        with file.open(encoding="utf-8") as lines:
            found[name] = next(lines, "").strip("# \n")
    return found


def _files() -> dict[str, Path]:
    return {file.relative_to(FOLDER).with_suffix("").as_posix(): file for file in sorted(FOLDER.rglob("*.yaml"))}


def find_recipe(name: str | Path) -> Path:
    """A configuration file: one that exists, or a packaged recipe by its name.

    Examples:
        >>> find_recipe("glyphs").name
        'glyphs.yaml'
        >>> find_recipe("thesis/cub-resnet")
        Traceback (most recent call last):
        likewise.app.errors.UserError: --config: there is no file or recipe thesis/cub-resnet; did you mean thesis/cub-resnet50?
    """
    if Path(name).is_file():
        return Path(name)
    recipes = _files()
    if str(name) in recipes:
        return recipes[str(name)]
    raise UserError(f"--config: there is no file or recipe {name}{nearest(str(name), recipes)}")
