"""Read and write studies as YAML files."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from likewise.app.defaults import Tree
from likewise.app.errors import UserError, nearest, sentence
from likewise.app.study_file import KEYS, StudyFile
from likewise.app.study_recipes import apply_recipes
from likewise.files import write_text
from likewise.sanitize import read_yaml
from likewise.schema import schema_of, upgrade_part, upgrade_setting

STUDY_FILE = "study.yaml"
"""The file of a study, in its folder."""


def read_study(source: str | os.PathLike[str], *, allow: Collection[str] = ()) -> StudyFile:
    """Read a study file, of any schema.

    Args:
        source: a YAML file, or a folder with a ``study.yaml``.
        allow: packages, modules and classes that it and its recipes may use in addition to the listed ones.

    Examples:
        >>> read_study("nowhere.yaml")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no study nowhere.yaml
    """
    file = Path(source) / STUDY_FILE if Path(source).is_dir() else Path(source)
    try:
        tree = read_yaml(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"there is no study {file}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{file} must be a study in YAML, but it is not: {sentence(error)}") from error
    try:
        return make_study(tree, name=file.stem, allow=allow, folder=file.parent)
    except UserError as error:
        separator = " " if str(error).startswith("must have keys") else ": "
        raise UserError(f"{file}{separator}{error}") from error


def make_study(tree: Any, *, name: str = "study", allow: Collection[str] = (), folder: Path = Path()) -> StudyFile:
    """A study from the content of a study file, of any schema.

    Args:
        tree: a dict with the keys of `StudyFile`; ``config`` in its base and methods names recipes.
        name: the name of the study if it has none.
        allow: packages, modules and classes that it and its recipes may use in addition to the listed ones.
        folder: the folder that relative names of recipes start from.

    Examples:
        >>> study = make_study(
        ...     {"base": {"data": "Glyphs"}, "methods": {"circle": {"loss": "CircleLoss"}}, "seeds": [0, 1]}
        ... )
        >>> study.name, len(study.trials())
        ('study', 2)
    """
    if not isinstance(tree, Mapping):
        raise UserError(f"must have keys such as name and methods, but it is a {type(tree).__name__}")
    for key in tree:
        if key not in (*KEYS, "schema"):
            raise UserError(f"there is no key {key} in a study{nearest(str(key), KEYS)}")
    try:
        arguments = {"name": name, "methods": {}, **apply_recipes(_upgrade_study(dict(tree)), allow, folder)}
    except ValueError as error:
        raise UserError(str(error)) from error
    return StudyFile(**arguments, allow=tuple(allow))


def _upgrade_study(tree: Tree) -> Tree:
    """A study in the current schema; values of a wrong type are left for `StudyFile` to refuse."""
    schema = schema_of(tree)

    def upgrade(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        own = schema_of({"schema": schema, **part})  # a pasted configuration may have a schema
        return upgrade_part({key: value for key, value in part.items() if key != "schema"}, own)

    present = {key: value for key, value in tree.items() if value is not None and key != "schema"}
    methods, vary = present.get("methods"), present.get("vary")
    if "base" in present:
        present["base"] = upgrade(present["base"])
    if isinstance(methods, dict):
        present["methods"] = {name: upgrade(changes) for name, changes in methods.items()}
    if isinstance(vary, dict):
        present["vary"] = dict(
            upgrade_setting(key, values, schema) if isinstance(key, str) else (key, values)
            for key, values in vary.items()
        )
    return present


def find_presets() -> dict[str, Path]:
    """The packaged studies, by name.

    Examples:
        >>> sorted(find_presets())
        ['smoke', 'tiny']
    """
    folder = Path(str(files("likewise.app"))) / "presets"
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def write_study(folder: Path, study: StudyFile) -> None:
    """Write a study into its folder, which must not hold another one; a search may get more rounds.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_study(folder, StudyFile("one", methods={"circle": {"loss": "CircleLoss"}}))
        >>> write_study(folder, StudyFile("one", methods={"circle": {"loss": "CircleLoss"}}, seeds=[1]))
        Traceback (most recent call last):
        likewise.app.errors.UserError: ... must hold the same study, but its study.yaml differs in seeds: [0] in the file and
        [1] now; choose another --out
    """
    file, tree = folder / STUDY_FILE, yaml.safe_load(yaml.safe_dump(study.to_dict()))
    if file.exists():
        before = read_study(file).to_dict()
        difference = _find_difference(_without_pace(before, tree), _without_pace(tree, tree))
        if difference is not None:
            path, there, here = difference
            values = f"{there!r} in the file and {here!r} now"
            raise UserError(
                f"{folder} must hold the same study, but its {STUDY_FILE} differs in {path}: {values}; choose another --out"
            )
        if before == tree:
            return
    make_folder(folder)
    write_text(file, yaml.safe_dump(study.to_dict(), sort_keys=False, allow_unicode=True))


def make_folder(folder: Path) -> None:
    """Create an output folder.

    Examples:
        >>> make_folder(Path("/dev/null/study"))
        Traceback (most recent call last):
        likewise.app.errors.UserError: --out must be a folder that can be created, but /dev/null/study is not: Not a directory
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out must be a folder that can be created, but {folder} is not: {error.strerror}") from error


def _without_pace(tree: Tree, wanted: Tree) -> Tree:
    """A study without the number of rounds of its search, and, if its file has none yet, without the search."""
    search = tree.get("search")
    if search is None:
        return {**tree, "search": {key: (wanted.get("search") or {}).get(key) for key in _SAME}}
    return {**tree, "search": {key: search.get(key) for key in _SAME}}


_SAME = ("space", "how")
"""Keys of a search that cannot change; rounds can be added."""


def _find_difference(before: Any, now: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The first key in which two trees differ, and both values."""
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return None if before == now else (path, before, now)
    for key in dict.fromkeys([*before, *now]):
        difference = _find_difference(before.get(key), now.get(key), f"{path}.{key}".removeprefix("."))
        if difference is not None:
            return difference
    return None
