"""Defaults of a training: one table, which ``likewise train --print-config`` shows applied."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

Tree: TypeAlias = dict[str, Any]
"""A configuration, or a part of one, as plain values."""

Config: TypeAlias = Mapping[str, Any]
"""The same, only read."""

PHOTOGRAPHS: Mapping[str, Any] = {
    "transform": "cub128",
    "model": {"trunk": "efficientnet_lite0", "weights": "imagenet", "dim": 512, "freeze_bn": True},
    "loss": {"class_path": "likewise.losses.MultiSimilarityLoss"},
    "sampler": {"class_path": "likewise.data.PerClassSampler"},
}
"""Defaults for every data set."""


@dataclass(frozen=True)
class Rule:
    """A default that depends on something else.

    Args:
        key: the setting that it depends on.
        value: the value of that setting, with ``*`` for any ending; ``None`` for null.
        then: the defaults that hold in that case.

    Examples:
        >>> Rule("model.trunk", "timm:*", {}).holds("timm:vit_small_patch16_224")
        True
    """

    key: str
    value: str | None
    then: Mapping[str, Any]

    def holds(self, value: object) -> bool:
        """Whether a value is the one that the rule is about."""
        if self.value is None or not isinstance(value, str):
            return value is self.value
        return fnmatchcase(value, self.value)


RULES = (
    Rule(
        "data",
        "likewise.data.Glyphs",
        {"transform": "glyphs", "model": {"trunk": "convnet", "dim": 64}, "optimizer": {"lr": 1e-3}},
    ),
    Rule(
        "data",
        "likewise.data.PairTable",
        {
            "model": {"text": "minilm", "dim": 256},
            "loss": {"class_path": "likewise.losses.NTXentLoss"},
            "sampler": {"class_path": "likewise.data.PerClassSampler", "init_args": {"classes": 64, "per_class": 1}},
        },
    ),
    *(
        Rule("model.trunk", name, {"model": {"weights": None}})  # no published weights, or only as a file
        for name in ("convnet", "lenet", "alexnet", "resnet101", "vit_*", "mlp", "linear")
    ),
    Rule("model.trunk", "timm:*", {"model": {"weights": "pretrained"}}),
    Rule("model.trunk", "transformers:*", {"model": {"weights": "pretrained"}}),
    Rule("model.weights", None, {"model": {"freeze_bn": False}}),  # random batch norm statistics must be trained
)
"""Defaults that depend on other choices, applied in this order."""


def defaults_for(chosen: Mapping[str, Any]) -> Tree:
    """The defaults for the user's choices.

    Args:
        chosen: what the user gave, as a tree.

    Examples:
        >>> defaults_for({"data": {"class_path": "likewise.data.Glyphs"}})["model"]["trunk"]
        'convnet'
        >>> defaults_for({"model": {"trunk": "convnet"}})["model"]["weights"] is None
        True
    """
    made: Tree = copy.deepcopy(dict(PHOTOGRAPHS))
    for rule in RULES:
        if rule.holds(_value(merged(made, chosen), rule.key)):
            made = merged(made, rule.then)
    return made


def _value(tree: Mapping[str, Any], key: str) -> object:
    value: Any = tree
    for word in key.split("."):
        value = value.get(word, "") if isinstance(value, Mapping) else ""
    return value.get("class_path", "") if isinstance(value, Mapping) else value


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Merge two trees, the second over the first; a new class drops the arguments of the old one.

    Examples:
        >>> circle = {"loss": {"class_path": "CircleLoss", "init_args": {"gamma": 64}}}
        >>> merged(circle, {"loss": {"class_path": "CircleLoss", "init_args": {"margin": 0.2}}})
        {'loss': {'class_path': 'CircleLoss', 'init_args': {'gamma': 64, 'margin': 0.2}}}
        >>> merged(circle, {"loss": {"class_path": "RAWLoss"}})
        {'loss': {'class_path': 'RAWLoss'}}
    """
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping) and not other_class(old, value):
            result[key] = merged(old, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def other_class(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two entries have different classes.

    Examples:
        >>> other_class({"class_path": "CircleLoss"}, {"init_args": {"gamma": 64}})
        False
    """
    return "class_path" in old and "class_path" in new and old["class_path"] != new["class_path"]


def cache_folder(given: str | None) -> Path:
    """The folder of decoded images.

    Examples:
        >>> cache_folder("~/images").is_absolute()
        True
    """
    if given is not None:
        return Path(given).expanduser()
    if os.environ.get("LIKEWISE_CACHE"):
        return Path(os.environ["LIKEWISE_CACHE"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "likewise"
