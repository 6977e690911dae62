"""A study as a file: methods, what is varied, seeds, a protocol; and the trials that follow from it."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from likewise.app import KINDS, METRICS, Tree, UserError, defaults_for, merged, nearest, sentence
from likewise.data import atomic_write
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
from likewise.schema import SCHEMA, schema_of, upgrade_part, upgrade_setting

FILE = "study.yaml"
KEYS = ("name", "what", "base", "methods", "vary", "seeds", "protocol", "metric")
SETTINGS = {"data": "data", "model.trunk": "trunk", "model.dim": "dim"}
"""What every trial is labeled with, by its path."""


@dataclass(frozen=True)
class StudyFile:
    """What a study file says.

    Args:
        name: what it is called.
        what: a sentence.
        base: settings that all trainings share, as ``likewise train`` takes them.
        methods: by name, what each method changes: usually its loss.
        vary: settings of which every combination is an experiment of its own, by path: ``{"model.dim": [64, 128]}``.
        seeds: every training is made with each of them.
        protocol: by name, or ``{"folds": 4, "contiguous": true}`` or ``{"validation": 0.1}``.
        metric: by which methods are ranked.

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

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and self.name.strip() and not set(self.name) & set("/\\\0")
        if not named or self.name in (".", ".."):
            raise UserError(f"name must be one that a folder can have, but it is {self.name!r}")
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
        if self.metric not in METRICS:
            raise UserError(f"metric must be one of {', '.join(METRICS)}, but it is {self.metric!r}")
        self.chosen_protocol()

    def trials(self) -> list[Trial]:
        """Every training of the study, all of its methods for one seed and fold after the other."""
        from likewise.app import with_paths

        chosen = self.chosen_protocol()
        combinations = list(itertools.product(*self.vary.values()))
        base = with_paths(self.base)
        made = []
        for seed, values, fold in itertools.product(self.seeds, combinations, range(len(chosen.folds))):
            shared = base
            for path, value in zip(self.vary, values, strict=True):
                shared = merged(shared, with_paths(_nested(path, value)))
            for method, changes in self.methods.items():
                try:
                    config = self._config(shared, changes, {**chosen.folds[fold]}, seed)
                except UserError as mistake:
                    raise UserError(f"method {method}: {mistake}") from mistake
                labels = _labels(config) | self._varied(values)
                made.append(Trial(method, config, seed, fold, "final", labels))
        return made

    def _config(self, shared: Tree, changes: Tree, split: Tree, seed: int) -> Tree:
        """The complete configuration of one training."""
        from likewise.app import check, with_paths

        changes = with_paths(changes)
        for path in self.vary:
            if _reaches(changes, _words(path)):
                raise UserError(f"{path} must not be changed by a method, because the study varies it")
        given = merged(shared, changes)
        _left_to_the_protocol(given.get("split"), split)
        given = merged(given, {"split": split, "seed": seed})
        config = check({"schema": SCHEMA, **merged(defaults_for(given), given)})
        config["out"] = None
        return config

    def settings(self) -> tuple[str, ...]:
        """The columns of the table that tell one experiment from another.

        Examples:
            >>> study = StudyFile("one", methods={"a": {}}, vary={"model.dim": [8], "optimizer.lr": [0.1, 0.2]})
            >>> study.settings()
            ('data', 'trunk', 'dim', 'lr')
        """
        return tuple(dict.fromkeys([*SETTINGS.values(), *_names(self.vary).values()]))

    def _varied(self, values: Sequence[Any]) -> dict[str, Label]:
        names = _names(self.vary)
        told = {path: _told(some) for path, some in self.vary.items()}
        return {
            names[path]: told[path][self.vary[path].index(value)] for path, value in zip(self.vary, values, strict=True)
        }

    def chosen_protocol(self) -> Protocol:
        """The protocol as a value."""
        if isinstance(self.protocol, str):
            if self.protocol not in PROTOCOLS:
                raise UserError(f"there is no protocol {self.protocol}{nearest(self.protocol, PROTOCOLS)}")
            return PROTOCOLS[self.protocol]
        kinds = {"folds": ("folds", "seed", "contiguous"), "validation": ("validation", "seed")}
        said = dict(self.protocol) if isinstance(self.protocol, Mapping) else {}
        kind = next((each for each in kinds if each in said), None)
        if kind is None:
            wanted = "a name, {folds: 4} or {validation: 0.1}"
            raise UserError(f"protocol must be {wanted}, but it is {self.protocol!r}; names are {', '.join(PROTOCOLS)}")
        for key in said:
            if key not in kinds[kind]:
                raise UserError(f"protocol: there is no {key} beside {kind}{nearest(str(key), kinds[kind])}")
        try:
            return k_fold(**said) if kind == "folds" else fixed_share(said.pop("validation"), **said)
        except (TypeError, ValueError) as error:
            raise UserError(f"protocol: {sentence(error)}") from error

    def to_dict(self) -> dict[str, Any]:
        """As it is written down."""
        said: dict[str, Any] = {key: copy.deepcopy(getattr(self, key)) for key in KEYS}
        said["base"] = {key: value for key, value in said["base"].items() if key != "schema"}
        return {"schema": SCHEMA} | said | {"seeds": list(self.seeds)}


def _check_trees(base: Any, methods: Any) -> None:
    if not isinstance(base, Mapping):
        raise UserError(f"base must have keys such as data and model, but it is {base!r}")
    if not isinstance(methods, Mapping) or not methods:
        raise UserError("methods must name at least one method and what it changes")
    for name, changes in methods.items():
        if not isinstance(name, str) or not name.strip():
            raise UserError(f"methods must be called by words, but one is called {name!r}")
        if not isinstance(changes, Mapping):
            raise UserError(
                f"method {name} must say what it changes, such as {{loss: CircleLoss}}, but it is {changes!r}"
            )


def _check_vary(vary: Any) -> None:
    if not isinstance(vary, Mapping):
        raise UserError(f"vary must name settings such as model.dim with lists of values, but it is {vary!r}")
    for path, values in vary.items():
        if not isinstance(path, str) or path.split(".")[0] in ("", "seed", "split", "out"):
            raise UserError(
                f"vary must name settings such as model.dim, besides seeds and protocol, but it names {path!r}"
            )
        if not isinstance(values, list | tuple) or not values:
            raise UserError(f"vary: {path} must have a list of values, but it is {values!r}")
        if any(values[place] in values[:place] for place in range(len(values))):
            raise UserError(f"vary: the values of {path} must differ, but they are {values!r}")


def _left_to_the_protocol(said: Any, split: Tree) -> None:
    """Refuse what a protocol would overrule, or what would change it."""
    from likewise.app import Split

    for key, value in said.items() if isinstance(said, Mapping) else ():
        own = key == "test" or (key == "seed" and "seed" not in split) or not hasattr(Split(), str(key))
        if not own and value not in (getattr(Split(), key), split.get(key)):
            raise UserError(f"split.{key} must be left to the protocol of the study, but it is {value}")


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
    """Whether a tree says something about a setting."""
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
    """The column of each setting that is varied: its last word, or its path where that would mean two things."""
    last = {path: path.rpartition(".")[2] for path in vary}
    taken = [*SETTINGS.values(), *COLUMNS, *last.values()]
    return {path: SETTINGS.get(path) or (path if taken.count(last[path]) > 1 else last[path]) for path in vary}


def _told(values: Sequence[Any]) -> list[Label]:
    """Values as labels: a class by its name, with its arguments where two would have the same."""
    short = [_class_name(value) for value in values]
    told: list[Label] = []
    for value, name in zip(values, short, strict=True):
        if name is not None and short.count(name) == 1:
            told.append(name)
        elif value is None or isinstance(value, str | int | float | bool):
            told.append(value)
        elif name is not None:
            told.append(f"{name} {json.dumps(value.get('init_args') or {}, default=str)}")
        else:
            told.append(json.dumps(value, default=str))
    return told


def _class_name(value: Any) -> str | None:
    path = value.get("class_path") if isinstance(value, Mapping) else None
    return path.rpartition(".")[2] if isinstance(path, str) else None


def read_study(source: Path) -> StudyFile:
    """Read a study file, of any schema.

    Examples:
        >>> read_study(Path("nowhere.yaml"))
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no study nowhere.yaml
    """
    try:
        said = yaml.safe_load(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"there is no study {source}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{source} must be a study in YAML, but it is not: {sentence(error)}") from error
    if not isinstance(said, dict):
        raise UserError(f"{source} must have keys such as name and methods, but it is a {type(said).__name__}")
    if said.get("board", "") is None:
        del said["board"]  # written by earlier versions
    for key in said:
        if key not in (*KEYS, "schema"):
            raise UserError(f"{source}: there is no key {key} in a study{nearest(str(key), KEYS)}")
    try:
        given = {"name": source.stem, "methods": {}, **_upgrade_study(said)}
    except ValueError as error:
        raise UserError(f"{source}: {error}") from error
    try:
        return StudyFile(**given)
    except UserError as mistake:
        raise UserError(f"{source}: {mistake}") from mistake


def _upgrade_study(said: Tree) -> Tree:
    """What a study file says, in the present schema; what is no tree is left to be refused."""
    schema = schema_of(said)

    def part(tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        own = schema_of({"schema": schema, **tree})  # a configuration that was pasted in may say its own
        return upgrade_part({key: value for key, value in tree.items() if key != "schema"}, own)

    given = {key: value for key, value in said.items() if value is not None and key != "schema"}  # empty says nothing
    methods, vary = given.get("methods"), given.get("vary")
    if "base" in given:
        given["base"] = part(given["base"])
    if isinstance(methods, dict):
        given["methods"] = {name: part(changes) for name, changes in methods.items()}
    if isinstance(vary, dict):
        given["vary"] = dict(
            upgrade_setting(key, values, schema) if isinstance(key, str) else (key, values)
            for key, values in vary.items()
        )
    return given


def presets() -> dict[str, Path]:
    """The studies that come with the library, by name.

    Examples:
        >>> sorted(presets())
        ['smoke', 'tiny']
    """
    folder = Path(str(files("likewise.cli"))) / "studies"
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def write_study(folder: Path, study: StudyFile) -> None:
    """Write a study into its folder, which must not hold another one."""
    written = folder / FILE
    if written.exists():
        if read_study(written).to_dict() != yaml.safe_load(yaml.safe_dump(study.to_dict())):
            raise UserError(f"{folder} must hold the same study, but its {FILE} is another one: choose another --out")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out must be a folder that can be made, but {folder} is not: {error.strerror}") from error
    write_atomically(written, yaml.safe_dump(study.to_dict(), sort_keys=False, allow_unicode=True))


def write_atomically(path: Path, text: str) -> None:
    """Write a text so that it is there whole or not at all."""
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")
