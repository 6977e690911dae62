"""Configuration schemas: a configuration that was written under older names is read through one table of changes.

The configuration of a run, a trial, a recipe or a study states its schema (``schema: 2``); without it, the schema is 1.
Code that reads a configuration calls `upgrade` first, so that old names occur only here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 2
"""The schema of the configurations that are written here; every older one can be read."""

Tree = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """A change of one setting in schema 2.

    Args:
        key: the setting as schema 1 names it, dotted as on the command line.  ``loss.x`` is also the argument of a
            wrapped loss and of the loss that the lens compares with.
        name: the last word of its new name; ``None`` if it is unchanged.
        of: the class that has the argument; ``None`` for any class.
        values: a mapping from old to new values; other values are unchanged.
        negates: whether numbers change their sign if the loss compares distances.

    Examples:
        >>> upgrade({"loss": {"class_path": "ProxyGMLLoss", "init_args": {"neighbours": 8}}})["loss"]["init_args"]
        {'neighbors': 8}
    """

    key: str
    name: str | None = None
    of: str | None = None
    values: Mapping[Any, Any] = field(default_factory=dict)
    negates: bool = False

    def concerns(self, words: Sequence[str], owner: str | None) -> bool:
        """Return whether a setting is this one, by the words of its key and the class that has it, if known."""
        return self.key == _canonical(words) and (self.of is None or owner in (None, self.of))

    def value(self, old: Any, *, distance: bool) -> Any:
        """Return the new value for an old one."""
        if self.negates:
            number = isinstance(old, int | float) and not isinstance(old, bool)
            return 0.0 - old if number and distance else old  # not -0.0
        return self.values.get(old, old) if isinstance(old, str) else old


CHANGES = (
    Change("plan", "train"),
    Change("images", "transform"),
    Change("lens.beside", "compare_with"),
    Change("hold", "cache_on", values={"device": "gpu", "memory": "ram"}),
    Change("loss.neighbours", "neighbors", of="ProxyGMLLoss"),
    Change("loss.backend", values={"streamed": "chunked", "fused": "triton"}),
    # margins of a distance are distances, and were its negatives
    Change("loss.positive_margin", of="ContrastiveLoss", negates=True),
    Change("loss.negative_margin", of="ContrastiveLoss", negates=True),
    Change("loss.miner.positive_margin", of="PairMarginMiner", negates=True),
    Change("loss.miner.negative_margin", of="PairMarginMiner", negates=True),
)
"""All changes in schema 2, except import paths (see `PACKAGES`)."""

ADDED: Mapping[str, Mapping[str, Any]] = {"NormalizedSoftmaxLoss": {"normalize_embeddings": True}}
"""Arguments that schema 1 did not have, by class, with the values that it implied."""

IMPLIED: Mapping[str, Mapping[str, Any] | None] = {
    "model": {"freeze": None, "text": None},
    "language": None,
    "scales": None,
    "train": {"ks": None, "mine_every": None, "mine_steps": None, "clip_value": None},
}
"""Settings that joined schema 2 later, with the values that a description without them implies; keys of trials leave
them out at these values, so that a new setting changes no key."""

PACKAGES = {"core": "formula", "losses": "losses", "miners": "miners", "data": "data"}
"""Packages whose classes a configuration may name, by their names in schema 1: a path through one of their modules becomes
the path through the package."""

DISTANCES = ("euclidean", "squared_euclidean", "snr", "Euclidean", "SquaredEuclidean", "SNR")
"""Similarities that are negative distances, by name and by class."""

ON_DISTANCES = ("FastAPLoss", "LiftedStructureLoss", "MarginLoss", "NCALoss", "SNRContrastiveLoss")
"""Losses whose default similarity is a negative distance."""


def omit_implied(config: Mapping[str, Any]) -> Tree:
    """Return the configuration without settings of `IMPLIED` at their implied values.

    Examples:
        >>> omit_implied({"model": {"dim": 64, "freeze": None}, "language": None, "seed": 0})
        {'model': {'dim': 64}, 'seed': 0}
    """
    result = {part: value for part, value in config.items() if value is not None or IMPLIED.get(part, {}) is not None}
    for part, settings in IMPLIED.items():
        if settings and isinstance(result.get(part), Mapping):
            result[part] = {
                name: value for name, value in result[part].items() if name not in settings or value != settings[name]
            }
    return result


def upgrade(config: Mapping[str, Any]) -> Tree:
    """Return the configuration in the current schema.

    Args:
        config: a configuration of any schema, complete or a part of one.

    Examples:
        >>> upgrade({"loss": {"class_path": "likewise.losses.pair.CircleLoss", "init_args": {"backend": "fused"}}})
        {'schema': 2, 'loss': {'class_path': 'likewise.losses.CircleLoss', 'init_args': {'backend': 'triton'}}}
        >>> upgrade({"schema": 3})
        Traceback (most recent call last):
        ValueError: schema must be a whole number from 1 to 2, but it is 3; a newer likewise may read it
    """
    rest = {key: value for key, value in config.items() if key != "schema"}
    return {"schema": SCHEMA, **upgrade_part(rest, schema_of(config))}


def schema_of(config: Mapping[str, Any]) -> int:
    """Return the schema that a configuration, a run's description or a study states.

    Examples:
        >>> schema_of({"seed": 0}), schema_of({"schema": 2, "seed": 0})
        (1, 2)
    """
    schema = config.get("schema", 1)
    if type(schema) is not int or not 1 <= schema <= SCHEMA:
        newer = "; a newer likewise may read it" if isinstance(schema, int) and schema > SCHEMA else ""
        raise ValueError(f"schema must be a whole number from 1 to {SCHEMA}, but it is {schema!r}{newer}")
    return schema


def upgrade_part(tree: Mapping[str, Any], schema: int) -> Tree:
    """Return sections of a configuration in the current schema, for files that state their schema elsewhere.

    Examples:
        >>> upgrade_part({"loss": {"init_args": {"neighbours": 8}}}, 1)
        {'loss': {'init_args': {'neighbors': 8}}}
        >>> upgrade_part({"loss": {"init_args": {"neighbours": 8}}}, 2)
        {'loss': {'init_args': {'neighbours': 8}}}
    """
    return _upgrade_tree(tree, (), None, distance=False) if schema < SCHEMA else dict(tree)


def upgrade_setting(key: str, value: Any, schema: int) -> tuple[str, Any]:
    """Return the dotted key and the value of one setting in the current schema; a list has values to choose from.

    Examples:
        >>> upgrade_setting("loss.neighbours", [4, 8], 1), upgrade_setting("loss.backend", "fused", 1)
        (('loss.neighbors', [4, 8]), ('loss.backend', 'triton'))
    """
    if schema == SCHEMA:
        return key, value
    old = [word for word in key.split(".") if word != "init_args"]
    new = list(old)
    for place in range(len(old)):
        for change in CHANGES:
            if change.concerns(old[: place + 1], None):
                new[place] = change.name or old[place]
                if place == len(old) - 1:
                    several = isinstance(value, list | tuple)
                    values = [change.value(each, distance=False) for each in (value if several else [value])]
                    value = values if several else values[0]
    return ".".join(new), value


def upgrade_label(name: str, value: Any, schema: int) -> tuple[str, Any]:
    """Return the name and the value of a setting in a table, whose name may be the last word of its key.

    Examples:
        >>> upgrade_label("neighbours", 8, 1), upgrade_label("loss.neighbours", 8, 1), upgrade_label("dim", 8, 1)
        (('neighbors', 8), ('loss.neighbors', 8), ('dim', 8))
    """
    for change in CHANGES if "." not in name and schema < SCHEMA else ():
        if change.key.rpartition(".")[2] == name:
            return change.name or name, change.value(value, distance=False)
    return upgrade_setting(name, value, schema)


def upgrade_description(said: Mapping[str, Any]) -> Tree:
    """Return the contents of a run's ``run.yaml``, with its configuration and settings in the current schema.

    Examples:
        >>> upgrade_description({"seed": 3, "config": {"loss": {"init_args": {"neighbours": 8}}}})["config"]
        {'schema': 2, 'loss': {'init_args': {'neighbors': 8}}}
    """
    config = said.get("config")
    settings = {key: said[key] for key in ("optimizer", "schedule", "plan") if key in said}
    if schema_of(said) == SCHEMA:
        return dict(said)
    rest = {key: value for key, value in said.items() if key not in settings}
    present = {"config": upgrade(config)} if isinstance(config, Mapping) else {}
    return {**rest, **upgrade_part(settings, schema_of(said)), **present}


def _upgrade_tree(tree: Mapping[str, Any], words: tuple[str, ...], owner: str | None, *, distance: bool) -> Tree:
    """A part of a configuration, by the words of its key, the class that owns it and whether the loss compares distances."""
    result: Tree = {}
    path = tree.get("class_path")
    named = path.rpartition(".")[2] if isinstance(path, str) else None
    for key, old in tree.items():
        if key == "class_path":
            result[key] = _face(old) if isinstance(old, str) else old
        elif key == "init_args" and isinstance(old, Mapping):
            own = _on_distances(named, old) if _canonical(words) == "loss" else distance
            result[key] = {**ADDED.get(named or "", {}), **_upgrade_tree(old, words, named, distance=own)}
        else:
            here, name, value = (*words, key), key, old
            for change in CHANGES:
                if change.concerns(here, owner):
                    name, value = change.name or name, change.value(value, distance=distance)
            result[name] = _upgrade_tree(value, here, None, distance=distance) if isinstance(value, Mapping) else value
    return result


def _canonical(words: Sequence[str]) -> str:
    """The key of a setting, with every loss in the place of the outermost."""
    left = list(words)
    if len(left) > 2 and left[:2] == ["lens", "beside"]:
        left[:2] = ["loss"]
    while left[:2] == ["loss", "loss"]:
        left[:2] = ["loss"]
    return ".".join(left)


def _on_distances(loss: str | None, arguments: Mapping[str, Any]) -> bool:
    said = arguments.get("similarity")
    if isinstance(said, Mapping):
        said = str(said.get("class_path", "")).rpartition(".")[2]
    return said in DISTANCES if said is not None else loss in ON_DISTANCES


def _face(path: str) -> str:
    """A class by the package that exports it."""
    words = path.split(".")
    if len(words) < 3 or words[0] != "likewise" or words[1] not in PACKAGES:
        return path
    return f"likewise.{PACKAGES[words[1]]}.{words[-1]}"
