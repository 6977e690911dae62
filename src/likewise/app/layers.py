"""From a command line to one configuration: defaults, then files, then flags, each over the ones before.

Flags win over files wherever they stand.  Where a class is changed, the arguments of the class before it go, and with a
loss the learning rates of its own parameters: an alpha that was chosen for one loss says nothing about another.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.app.defaults import Tree, defaults_for, merged, other_class
from likewise.app.errors import Mistake, nearest, sentence
from likewise.app.objects import KINDS, Kind, resolve
from likewise.schema import upgrade


@dataclass(frozen=True)
class Flag:
    """A word of a command line that begins with two dashes, with its value.

    Examples:
        >>> [flag.words for flag in flags_of(["--loss.alpha=3", "--print_config"])]
        [('--loss.alpha=3',), ('--print_config',)]
    """

    key: str
    value: str | None
    joined: bool

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command line again."""
        if self.value is None:
            return (f"--{self.key}",)
        return (f"--{self.key}={self.value}",) if self.joined else (f"--{self.key}", self.value)

    @property
    def path(self) -> tuple[str, ...]:
        """The key without what jsonargparse may be told in between."""
        return tuple(word for word in self.key.split(".") if word not in ("init_args", "class_path"))


@dataclass(frozen=True)
class Request:
    """What a command line asks for.

    Args:
        below: defaults and files, merged.
        flags: the rest of the command line.
        given: what files and flags say, as far as it can be read without knowing the options.
        chosen: the same with the defaults below it.

    Examples:
        >>> request = read_request(["--data", "Glyphs"])
        >>> "loss" in request.given, request.chosen["loss"]["class_path"]
        (False, 'likewise.losses.MultiSimilarityLoss')
    """

    below: Tree
    flags: tuple[str, ...]
    given: Tree
    chosen: Tree


def flags_of(words: Sequence[str]) -> list[Flag]:
    """The flags of a command line.

    Examples:
        >>> flags_of(["--seed", "3"])
        [Flag(key='seed', value='3', joined=False)]
    """
    flags = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise Mistake(f"{word!r} must follow an option, such as --config {word}")
        key, equals, value = word[2:].partition("=")
        if equals:
            flags.append(Flag(key, value, True))
        elif rest and not rest[0].startswith("--"):
            flags.append(Flag(key, rest.pop(0), False))
        else:
            flags.append(Flag(key, None, False))
    return flags


def read_request(words: Sequence[str]) -> Request:
    """Merge what files say, make room for what flags say, and put the defaults below.

    Examples:
        >>> read_request(["--loss", "ProxyAnchorLoss"]).flags
        ('--loss', 'likewise.losses.ProxyAnchorLoss')
    """
    files: Tree = {}
    flags: list[Flag] = []
    for flag in flags_of(words):
        if flag.key == "config":
            above = read_file(flag.value)
            if _another_loss(files, above):
                files = _without_its_rates(files)
            files = merged(files, above)
        else:
            flags = _with(flags, _resolved(flag))
    given = files
    for flag in flags:
        given = merged(given, _tree(flag))
    below = merged(defaults_for(given), files)
    for flag in flags:
        if flag.value is not None and flag.path and kind_of(flag.path) is not None:
            if _another_loss(below, _tree(flag)):
                below = _without_its_rates(below)
            below = _without_another(below, flag)
    return Request(below, tuple(word for flag in flags for word in flag.words), given, merged(below, given))


def read_file(name: str | None) -> Tree:
    """A configuration file in the present schema, with every class by its import path.

    Examples:
        >>> read_file("nowhere.yaml")
        Traceback (most recent call last):
        likewise.app.errors.Mistake: --config: there is no file nowhere.yaml
    """
    import yaml

    if name is None:
        raise Mistake("--config must be followed by the name of a file")
    try:
        content = yaml.safe_load(Path(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Mistake(f"--config: there is no file {name}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"--config {name}: {sentence(error)}") from error
    except yaml.YAMLError as error:
        raise Mistake(f"{name} must be YAML, but it is not: {sentence(error)}") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise Mistake(f"{name} must have keys such as data, model and loss, but it is a {type(content).__name__}")
    try:
        present = upgrade(content)
    except ValueError as error:
        raise Mistake(f"{name}: {error}") from error
    del present["schema"]  # no option: what is read is of the present one
    return with_paths(present)


def with_paths(tree: Mapping[str, Any], within: tuple[str, ...] = ()) -> Tree:
    """A tree in which every class stands with its import path.

    Examples:
        >>> with_paths({"loss": "CircleLoss"})
        {'loss': {'class_path': 'likewise.losses.CircleLoss'}}
    """
    result: Tree = {}
    for key, value in tree.items():
        path = within if key == "init_args" else (*within, key)
        kind = None if key == "init_args" else kind_of(path)
        if isinstance(value, str) and kind is not None:
            value = {"class_path": value}
        if isinstance(value, Mapping):
            value = with_paths(value, path)
            strange = [each for each in value if each not in ("class_path", "init_args")] if kind is not None else []
            if strange:
                key = ".".join(path)
                raise Mistake(f"{key} must have class_path and init_args, but it has {strange[0]}{_meant(strange[0])}")
            if kind is not None and isinstance(value.get("class_path"), str):
                value["class_path"] = resolve(kind, value["class_path"])
        result[key] = value
    return result


def _meant(word: str) -> str:
    return nearest(word, ["class_path", "init_args"]) or ": write it under init_args"


def kind_of(path: tuple[str, ...]) -> Kind | None:
    """What a key gives by name: ``loss``, and ``miner`` or ``loss`` anywhere inside it; ``lens.beside`` is a loss, too.

    Examples:
        >>> kind_of(("loss", "miner")).what, kind_of(("lens", "beside")).what, kind_of(("plan", "epochs"))
        ('miner', 'loss', None)
    """
    if path[:2] == ("lens", "beside"):
        path = ("loss", *path[2:])
    inside = len(path) == 1 or (path[0] == "loss" and path[-1] in ("loss", "miner"))
    return KINDS.get(path[-1]) if inside and (len(path) > 1 or path[-1] != "miner") else None


def _resolved(flag: Flag) -> Flag:
    key = flag.path[:-1] if flag.path and flag.path[-1] == "help" else flag.path
    kind = kind_of(key) if key else None
    by_name = flag.value is not None and flag.value not in ("null", "None") and not flag.value.startswith("{")
    if kind is None or not by_name or flag.value is None or flag.value.endswith((".yaml", ".yml", ".json")):
        return flag
    return Flag(flag.key, resolve(kind, flag.value), flag.joined)


def _with(flags: list[Flag], new: Flag) -> list[Flag]:
    """The flags with one more; a class stands before its arguments.

    Given a second time, it takes the place of the first one, and of that one's arguments.
    """
    if new.value is None or not new.path or kind_of(new.path) is None:
        return [*flags, new]
    inside = [flag for flag in flags if flag.path[: len(new.path)] == new.path]
    before = [flag for flag in inside if flag.path == new.path]
    others = [flag for flag in flags if flag not in inside]
    if before and before[-1].value != new.value:
        return [*others, new]
    return [*others, new, *(flag for flag in inside if flag not in before)]


def _tree(flag: Flag) -> Tree:
    """A flag as a tree, as far as defaults depend on it."""
    import yaml

    try:
        value: Any = None if flag.value is None else yaml.safe_load(flag.value)
    except yaml.YAMLError:
        value = flag.value
    path = flag.path[:-1] if flag.path[-1:] == ("help",) else flag.path
    if path and kind_of(path) is not None and isinstance(value, str):
        value = {"class_path": value}
    for place in range(len(path) - 1, -1, -1):
        value = {path[place]: value}
        if place and kind_of(path[:place]) is not None:
            value = {"init_args": value}
    return value if isinstance(value, dict) else {}


GROUPS = ("trunk", "head", "model", "loss")
"""Learning rates that are not those of one loss's own parameters."""


def _another_loss(below: Tree, above: Tree) -> bool:
    old, new = below.get("loss"), above.get("loss")
    return isinstance(old, dict) and isinstance(new, dict) and other_class(old, new)


def _without_its_rates(tree: Tree) -> Tree:
    """The tree without learning rates for what the loss before had to learn: its proxies, its beta."""
    result = copy.deepcopy(tree)
    optimizer = result.get("optimizer")
    if isinstance(optimizer, dict) and isinstance(optimizer.get("lrs"), dict):
        optimizer["lrs"] = {name: rate for name, rate in optimizer["lrs"].items() if name in GROUPS}
    return result


def _without_another(tree: Tree, flag: Flag) -> Tree:
    """The tree without the entry that a flag replaces by one of another class."""
    *inside, last = [
        word
        for place, word in enumerate(flag.path)
        for word in (("init_args", word) if place and kind_of(flag.path[:place]) is not None else (word,))
    ]
    result = copy.deepcopy(tree)
    node: Any = result
    for word in inside:
        node = node.get(word) if isinstance(node, dict) else None
    old = node.get(last) if isinstance(node, dict) else None
    if isinstance(old, dict) and old.get("class_path") != flag.value:
        del node[last]
    return result
