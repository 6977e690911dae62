"""A study as a value: methods, varied settings, seeds, a protocol; and the trials that follow from it."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from likewise.app.configuration import Split, check
from likewise.app.defaults import Tree, defaults_for, merged
from likewise.app.errors import UserError, nearest, sentence
from likewise.app.layers import with_paths
from likewise.app.objects import KINDS
from likewise.app.recalls import OF_ALL_RANKS, is_metric, metrics_of
from likewise.app.trust import NotAllowed
from likewise.formula import whole_number
from likewise.protocols import (
    COLUMNS,
    PROTOCOLS,
    Label,
    Protocol,
    Trial,
    fixed_share,
    k_fold,
)
from likewise.schema import SCHEMA

KEYS = ("name", "what", "base", "methods", "vary", "seeds", "protocol", "metric", "search")
SEARCHES = ("bayesian", "grid", "random", "thesis-grid")
SEARCH_KEYS = ("space", "how", "rounds", "at_once")
LABELS = {"data": "data", "model.trunk": "trunk", "model.dim": "dim"}
"""The label of each setting that labels every trial."""


@dataclass(frozen=True)
class StudyFile:
    """A study, as its file describes it.

    Args:
        name: the name, also of its folder.
        what: a one-sentence description.
        base: settings that all training runs share, as in ``likewise train``.
        methods: the settings that each method changes, by its name: usually the loss.
        vary: settings to vary; each combination is a separate experiment, by path: ``{"model.dim": [64, 128]}``.
        seeds: each training is repeated with every seed.
        protocol: a name, or ``{"folds": 4, "contiguous": true}`` or ``{"validation": 0.1}``.
        metric: the metric that ranks methods; a recall must use a k of ``train.ks`` or of the data set.
        search: for a study that searches the hyper-parameters of its only method: ``{"space": {"optimizer.lr":
            "1e-5:1e-2:log", "loss.margin": null}, "how": "bayesian", "rounds": 50, "at_once": 1}``.  Every key has a
            default; a path without a range uses the range that its loss declares.
        allow: packages, modules and classes that it may use in addition to the listed ones; a file cannot set it.

    Examples:
        >>> study = StudyFile("one", methods={"contrastive": {"loss": "ContrastiveLoss"}}, base={"data": "Glyphs"})
        >>> [trial.labels["dim"] for trial in study.trials()]
        [64]
    """

    name: str
    methods: Mapping[str, Tree]
    base: Tree = field(default_factory=dict)
    what: str = ""
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seeds: Sequence[int] = (0,)
    protocol: str | Tree = "own-validation"
    metric: str = "MAP@R"
    search: Tree | None = None
    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        is_name = isinstance(self.name, str) and self.name.strip() and not set(self.name) & set("/\\\0")
        if not is_name or self.name in (".", ".."):
            raise UserError(f"name must be a valid folder name, but it is {self.name!r}")
        _check_trees(self.base, self.methods)
        _check_vary(self.vary)
        if not isinstance(self.seeds, list | tuple) or not self.seeds:
            raise UserError(f"seeds must be a list of whole numbers such as [0, 1, 2], but it is {self.seeds!r}")
        try:
            distinct = {whole_number("each of seeds", seed, 0) for seed in self.seeds}
        except ValueError as error:
            raise UserError(str(error)) from error
        if len(distinct) < len(self.seeds):
            raise UserError(f"seeds must differ, but they are {list(self.seeds)}")
        if not isinstance(self.metric, str) or not is_metric(self.metric):
            raise UserError(f"metric must be one of R@K, {', '.join(OF_ALL_RANKS)}, but it is {self.metric!r}")
        self.chosen_protocol()
        if self.search is not None:
            _check_search(self)

    def trials(self) -> list[Trial]:
        """All training runs of the study: for each seed and fold, all methods."""
        folds = self.chosen_protocol().folds
        cells = list(itertools.product(itertools.product(*self.vary.values()), enumerate(folds)))
        configs = [self._configs(values, fold) for values, (_, fold) in cells]
        return [
            Trial(
                method,
                {**copy.deepcopy(config), "seed": seed},
                seed,
                fold,
                "final",
                _labels(config) | self._varied(values),
            )
            for seed in self.seeds
            for (values, (fold, _)), methods in zip(cells, configs, strict=True)
            for method, config in methods.items()
        ]

    def _configs(self, values: Sequence[Any], split: Tree) -> dict[str, Tree]:
        """The complete configuration of each method with the first seed, for some values of what is varied."""
        shared = with_paths(self.base, allow=self.allow)
        for path, value in zip(self.vary, values, strict=True):
            shared = merged(shared, with_paths(_nested(path, value), allow=self.allow))
        configs = {}
        for method, changes in self.methods.items():
            try:
                configs[method] = self._config(shared, changes, {**split}, self.seeds[0])
            except NotAllowed:
                raise
            except UserError as error:
                raise UserError(f"method {method}: {error}") from error
        return configs

    def configuration(self, method: str) -> Tree:
        """The complete configuration of a method with the first seed, without the split of the protocol.

        Examples:
            >>> study = StudyFile("one", methods={"circle": {"loss": "CircleLoss"}}, base={"data": "Glyphs"})
            >>> study.configuration("circle")["split"]["validation"] is None
            True
        """
        return self._config(with_paths(self.base, allow=self.allow), self.methods[method], {}, self.seeds[0])

    def planned(self) -> int:
        """The number of training runs; no class of the study is imported."""
        combinations = math.prod(len(values) for values in self.vary.values())
        return len(self.methods) * combinations * len(self.seeds) * len(self.chosen_protocol().folds)

    def _config(self, shared: Tree, changes: Tree, split: Tree, seed: int) -> Tree:
        """The complete configuration of one training."""
        changes = with_paths(changes, allow=self.allow)
        for path in self.vary:
            if _reaches(changes, _words(path)):
                raise UserError(f"{path} cannot be changed by a method, because the study varies it")
        settings = merged(shared, changes)
        _check_split(settings.get("split"), split)
        settings = merged(settings, {"split": split, "seed": seed})
        config = check({"schema": SCHEMA, **merged(defaults_for(settings), settings)}, self.allow)
        config["out"] = None
        if self.metric not in metrics_of(config):
            names = ", ".join(metrics_of(config))
            raise UserError(f"metric must be one of {names}, but it is {self.metric}; train.ks sets the k of recalls")
        return config

    def settings(self) -> tuple[str, ...]:
        """The columns of the table that identify an experiment.

        Examples:
            >>> study = StudyFile("one", methods={"a": {}}, vary={"model.dim": [8], "optimizer.lr": [0.1, 0.2]})
            >>> study.settings()
            ('data', 'trunk', 'dim', 'lr')
        """
        return tuple(dict.fromkeys([*LABELS.values(), *_names(self.vary).values()]))

    def _varied(self, values: Sequence[Any]) -> dict[str, Label]:
        names = _names(self.vary)
        labels = {path: _labels_of(some) for path, some in self.vary.items()}
        return {
            names[path]: labels[path][self.vary[path].index(value)]
            for path, value in zip(self.vary, values, strict=True)
        }

    def chosen_protocol(self) -> Protocol:
        """The protocol as a value."""
        if isinstance(self.protocol, str):
            if self.protocol not in PROTOCOLS:
                raise UserError(f"there is no protocol {self.protocol}{nearest(self.protocol, PROTOCOLS)}")
            return PROTOCOLS[self.protocol]
        kinds = {"folds": ("folds", "seed", "contiguous"), "validation": ("validation", "seed")}
        options = dict(self.protocol) if isinstance(self.protocol, Mapping) else {}
        kind = next((each for each in kinds if each in options), None)
        if kind is None:
            wanted = "a name, {folds: 4} or {validation: 0.1}"
            raise UserError(f"protocol must be {wanted}, but it is {self.protocol!r}; names are {', '.join(PROTOCOLS)}")
        for key in options:
            if key not in kinds[kind]:
                raise UserError(f"protocol: {kind} has no option {key}{nearest(str(key), kinds[kind])}")
        try:
            return k_fold(**options) if kind == "folds" else fixed_share(options.pop("validation"), **options)
        except (TypeError, ValueError) as error:
            raise UserError(f"protocol: {sentence(error)}") from error

    def to_dict(self) -> dict[str, Any]:
        """The content of the study's file."""
        tree: dict[str, Any] = {key: copy.deepcopy(getattr(self, key)) for key in KEYS}
        tree["base"] = {key: value for key, value in tree["base"].items() if key != "schema"}
        if tree["search"] is None:
            del tree["search"]
        return {"schema": SCHEMA} | tree | {"seeds": list(self.seeds)}


def _check_trees(base: Any, methods: Any) -> None:
    if not isinstance(base, Mapping):
        raise UserError(f"base must have keys such as data and model, but it is {base!r}")
    if not isinstance(methods, Mapping) or not methods:
        raise UserError("methods must have at least one method and the settings that it changes")
    for name, changes in methods.items():
        if not isinstance(name, str) or not name.strip():
            raise UserError(f"names of methods must be texts, but one is {name!r}")
        if not isinstance(changes, Mapping):
            raise UserError(
                f"method {name} must be a mapping of settings such as {{loss: CircleLoss}}, but it is {changes!r}"
            )


def _check_vary(vary: Any) -> None:
    if not isinstance(vary, Mapping):
        raise UserError(f"vary must map settings such as model.dim to lists of values, but it is {vary!r}")
    for path, values in vary.items():
        if not isinstance(path, str) or path.split(".")[0] in ("", "seed", "split", "out"):
            raise UserError(
                f"vary must contain settings such as model.dim, not seeds or protocol, but it contains {path!r}"
            )
        if not isinstance(values, list | tuple) or not values:
            raise UserError(f"vary: {path} must have a list of values, but it is {values!r}")
        if any(values[place] in values[:place] for place in range(len(values))):
            raise UserError(f"vary: the values of {path} must differ, but they are {values!r}")


def _check_search(study: StudyFile) -> None:
    search = study.search
    if not isinstance(search, Mapping):
        raise UserError(f"search must have keys such as space and rounds, but it is {search!r}")
    for key in search:
        if key not in SEARCH_KEYS:
            raise UserError(f"search: there is no key {key}{nearest(str(key), SEARCH_KEYS)}")
    if len(study.methods) > 1 or study.vary:
        raise UserError("a study with a search must have one method and an empty vary: write one study per method")
    if study.chosen_protocol().tuned_on_test:
        raise UserError("--protocol must have validation classes for the search, but classic has none")
    how = search.get("how", "bayesian")
    if how not in SEARCHES:
        raise UserError(f"there is no search {how}{nearest(str(how), SEARCHES)}")
    for key in ("rounds", "at_once"):
        try:
            whole_number(f"--{key.replace('_', '-')}", search.get(key, 1), 1)
        except ValueError as error:
            raise UserError(str(error)) from error
    if not isinstance(search.get("space") or {}, Mapping):
        raise UserError(f"search: space must map paths to ranges, but it is {search['space']!r}")


def _check_split(settings: Any, split: Tree) -> None:
    """Refuse settings that conflict with the protocol."""
    for key, value in settings.items() if isinstance(settings, Mapping) else ():
        is_free = key == "test" or (key == "seed" and "seed" not in split) or not hasattr(Split(), str(key))
        if not is_free and value not in (getattr(Split(), key), split.get(key)):
            raise UserError(f"split.{key} is set by the protocol of the study and must not be given, but it is {value}")


def _words(path: str) -> list[str]:
    return [word for word in path.split(".") if word not in ("init_args", "class_path")]


def _nested(path: str, value: Any) -> Tree:
    """A setting as a tree; the arguments of a class are named without ``init_args``, as on the command line."""
    words = _words(path)
    for place in range(len(words) - 1, -1, -1):
        value = {words[place]: value}
        if place and words[place - 1] in KINDS and (place == 1 or words[0] == "loss"):
            value = {"init_args": value}
    tree: Tree = value
    return tree


def _reaches(tree: Any, words: Sequence[str]) -> bool:
    """Whether a tree has a value for a setting."""
    if not words:
        return True
    if not isinstance(tree, Mapping):
        return False
    inside = tree.get("init_args", tree) if words[0] not in tree else tree
    return isinstance(inside, Mapping) and words[0] in inside and _reaches(inside[words[0]], words[1:])


def _labels(config: Tree) -> dict[str, Label]:
    data = config["data"]["class_path"].rpartition(".")[2]
    return {"data": data, "trunk": config["model"]["trunk"], "dim": config["model"]["dim"]}


def _names(vary: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """The column of each setting that is varied: its last word, or its path where that is ambiguous."""
    last = {path: path.rpartition(".")[2] for path in vary}
    taken = [*LABELS.values(), *COLUMNS, *last.values()]
    return {path: LABELS.get(path) or (path if taken.count(last[path]) > 1 else last[path]) for path in vary}


def _labels_of(values: Sequence[Any]) -> list[Label]:
    """Values as labels: a class by its name, with its arguments where two labels would be equal."""
    short = [_class_name(value) for value in values]
    labels: list[Label] = []
    for value, name in zip(values, short, strict=True):
        if name is not None and short.count(name) == 1:
            labels.append(name)
        elif value is None or isinstance(value, str | int | float | bool):
            labels.append(value)
        elif name is not None:
            labels.append(f"{name} {json.dumps(value.get('init_args') or {}, default=str)}")
        else:
            labels.append(json.dumps(value, default=str))
    return labels


def _class_name(value: Any) -> str | None:
    path = value.get("class_path") if isinstance(value, Mapping) else None
    return path.rpartition(".")[2] if isinstance(path, str) else None
