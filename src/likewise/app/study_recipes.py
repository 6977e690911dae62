"""Recipes in studies: configuration files that a study names, and the protocol that follows from a split."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from likewise.app.configuration import Split
from likewise.app.defaults import Tree
from likewise.app.errors import UserError
from likewise.app.layers import overlay, read_file, with_paths

RECIPE_KEY = "config"
"""Names configuration files in the base and in the methods of a study, as ``--config`` does on a command line."""


def apply_recipes(study: Tree, allow: Collection[str] = (), folder: Path = Path()) -> Tree:
    """A study with the content of the files that its base and its methods name, overridden by their other keys.

    The protocol of the study replaces the split of a recipe in the base; a study without a protocol has the one that
    follows from that split.

    Args:
        study: the content of a study file in the current schema.
        allow: packages, modules and classes that the files may use in addition to the listed ones.
        folder: where the study's file is: relative file names start there.

    Examples:
        >>> apply_recipes({"base": {"config": "nowhere.yaml"}})
        Traceback (most recent call last):
        likewise.app.errors.UserError: --config: there is no file or recipe nowhere.yaml
    """
    study = dict(study)
    base, methods = study.get("base"), study.get("methods")
    if isinstance(base, Mapping) and RECIPE_KEY in base:
        recipe = _read("base", base[RECIPE_KEY], allow, folder)
        study.setdefault("protocol", protocol_of(recipe.get("split")))
        study["base"] = overlay([leave_to_protocol(recipe), with_paths(_others(base), allow=allow)])
    if isinstance(methods, Mapping):
        study["methods"] = {
            name: overlay(
                [_read(f"methods.{name}", part[RECIPE_KEY], allow, folder), with_paths(_others(part), allow=allow)]
            )
            if isinstance(part, Mapping) and RECIPE_KEY in part
            else part
            for name, part in methods.items()
        }
    return study


def _others(part: Mapping[str, Any]) -> Tree:
    return {key: value for key, value in part.items() if key != RECIPE_KEY}


def _read(path: str, names: Any, allow: Collection[str], folder: Path) -> Tree:
    files = [names] if isinstance(names, str) else names
    if not isinstance(files, list) or not files or not all(isinstance(name, str) for name in files):
        raise UserError(f"{path}.{RECIPE_KEY} must be a YAML file or a list of them, but it is {names!r}")
    places = [folder / name if (folder / name).is_file() else name for name in files]
    return overlay(read_file(place, allow) for place in places)


def protocol_of(split: Mapping[str, Any] | None) -> str | Tree:
    """The protocol of a study equivalent to a split.

    Examples:
        >>> protocol_of({"validation": 0.25, "test": 0.2}), protocol_of(None), protocol_of({"validation": 0.0})
        ({'validation': 0.25, 'seed': 0}, 'own-validation', 'classic')
    """
    split = split or {}
    if split.get("folds") is not None:
        raise UserError(
            f"split.folds is set by the protocol of the study and must not be given, but it is {split['folds']}; "
            f"use the protocol {{folds: {split['folds']}}}"
        )
    share, seed = split.get("validation"), split.get("seed", 0)
    if share is not None and not share:
        return "classic"
    return "own-validation" if share is None and not seed else {"validation": share, "seed": seed}


def leave_to_protocol(config: Mapping[str, Any]) -> Tree:
    """A configuration with the defaults in place of the settings of a protocol: the split except for the share of the test.

    Examples:
        >>> leave_to_protocol({"seed": 1, "split": {"validation": 0.25, "test": 0.3}})
        {'seed': 1, 'split': {'validation': None, 'test': 0.3}}
    """
    split, defaults = config.get("split"), vars(Split())
    if not isinstance(split, Mapping):
        return dict(config)
    return {
        **config,
        "split": {key: value if key == "test" else defaults.get(key, value) for key, value in split.items()},
    }
