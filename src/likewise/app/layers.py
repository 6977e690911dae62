"""What files and flags say, as one tree: files first, flags over them, later ones over earlier ones.

Flags win over files wherever they stand.  Where a class is changed, the arguments of the class before it go, and with a
loss the learning rates of its own parameters: an alpha that was chosen for one loss says nothing about another.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from likewise.app.defaults import Tree, merged, other_class
from likewise.app.errors import UserError, nearest, sentence
from likewise.app.objects import kind_of, resolve
from likewise.app.recipes import find_recipe
from likewise.app.trust import check_names, named_classes
from likewise.sanitize import read_yaml
from likewise.schema import upgrade


class Flag(NamedTuple):
    """A word of a command line that begins with two dashes, and its value.

    Examples:
        >>> flags_of(["--loss.alpha=3", "--cache-on", "ram"])
        [Flag(key='loss.alpha', value='3'), Flag(key='cache-on', value='ram')]
    """

    key: str
    value: str | None

    @property
    def path(self) -> tuple[str, ...]:
        """The name of the setting: dashes in its first word on the command line, underscores in a file."""
        first, *rest = self.key.split(".")
        if "_" in first:
            raise UserError(f"there is no option --{self.key}; did you mean --{'.'.join([_dashed(first), *rest])}?")
        return (first.replace("-", "_"), *rest)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def flags_of(words: Sequence[str]) -> list[Flag]:
    """The flags of a command line.

    Examples:
        >>> flags_of(["--seed", "3"])
        [Flag(key='seed', value='3')]
    """
    flags = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise UserError(f"{word!r} must follow an option, such as --config {word}")
        key, equals, value = word[2:].partition("=")
        if equals:
            flags.append(Flag(key, value))
        else:
            flags.append(Flag(key, rest.pop(0) if rest and not rest[0].startswith("--") else None))
    return flags


def allowed_by(words: Sequence[str]) -> tuple[str, ...]:
    """What a command line allows to import: packages after ``--allow``, and classes given by import path.

    Examples:
        >>> allowed_by(["--loss", "my_package.MyLoss", "--allow", "their_package", "--data.root", "a.b"])
        ('my_package.MyLoss', 'their_package')
    """
    names: list[str] = []
    for flag in flags_of(words):
        if flag.key == "allow":
            names.append(_package_name(flag.value))
        elif flag.value is not None and flag.key != "config":
            value = _read_mapping(flag.value)
            if isinstance(value, Mapping):
                names += [name for _, name in named_classes(value)]
            elif kind_of(flag.path) is not None and "." in value:
                names.append(value)
    return tuple(dict.fromkeys(names))


def _package_name(value: str | None) -> str:
    if value is None or not all(word.isidentifier() for word in value.split(".")):
        raise UserError(
            f"--allow must be followed by a package, a module or a class such as my_package, but it is {value}"
        )
    return value


def read_request(words: Sequence[str], allow: Collection[str] = ()) -> Tree:
    """The settings of a command line and its files; texts of flags are not yet converted.

    Args:
        words: flags and their values.
        allow: further allowed imports, in addition to those of the flags: see `allowed_by`.

    Examples:
        >>> read_request(["--loss", "ProxyAnchorLoss", "--loss.alpha", "16"])
        {'loss': {'class_path': 'likewise.losses.ProxyAnchorLoss', 'init_args': {'alpha': '16'}}}
    """
    files, settings = [], []
    for flag in flags_of(words):
        path = flag.path
        if flag.value is None:
            what = "the name of a file" if flag.key == "config" else "a value"
            raise UserError(f"--{flag.key} must be followed by {what}")
        if flag.key == "config":
            files.append(flag.value)
        elif flag.key != "allow":
            settings.append((path, flag.value))
    return stack(files, settings, (*allow, *allowed_by(words)))


def stack(
    files: Iterable[str | Path], settings: Iterable[tuple[tuple[str, ...], Any]], allow: Collection[str] = ()
) -> Tree:
    """Merge files and settings: later files override earlier ones, settings override files.

    Args:
        files: configuration files.
        settings: values by path.
        allow: packages, modules and classes that may be imported in addition to the listed ones.

    Examples:
        >>> stack([], [(("model", "dim"), 8), (("loss",), "CircleLoss")])
        {'model': {'dim': 8}, 'loss': {'class_path': 'likewise.losses.CircleLoss'}}
    """
    above: Tree = {}
    for path, value in settings:
        _place(above, path, value, allow)
    return overlay([*(read_file(each, allow) for each in files), above])


def overlay(layers: Iterable[Tree]) -> Tree:
    """Merge trees with import paths, later ones over earlier ones; a new loss drops the learning rates of the old one's parameters.

    Examples:
        >>> below = {"loss": {"class_path": "a.A"}, "optimizer": {"lr": 0.1, "lrs": {"proxies": 1.0}}}
        >>> overlay([below, {"loss": {"class_path": "a.B"}}])["optimizer"]
        {'lr': 0.1, 'lrs': {}}
    """
    result: Tree = {}
    for layer in layers:
        if _is_other_loss(result, layer):
            result = _without_its_rates(result)
        result = merged(result, layer)
    return result


def read_file(name: str | Path, allow: Collection[str] = ()) -> Tree:
    """A configuration file, or a packaged recipe by its name, in the current schema, with an import path for every class.

    Examples:
        >>> read_file("nowhere.yaml")
        Traceback (most recent call last):
        likewise.app.errors.UserError: --config: there is no file or recipe nowhere.yaml
    """
    import yaml

    try:
        content = read_yaml(find_recipe(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--config {name}: {sentence(error)}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{name} must be YAML, but it is not: {sentence(error)}") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise UserError(
            f"{name} must be a mapping with keys such as data, model and loss, but it is a {type(content).__name__}"
        )
    try:
        present = upgrade(content)
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error
    del present["schema"]  # not an option: the content is in the current schema now
    return with_paths(present, allow=allow)


def with_paths(tree: Mapping[str, Any], within: tuple[str, ...] = (), allow: Collection[str] = ()) -> Tree:
    """Replace class names by import paths; a class that is not allowed is an error.

    Examples:
        >>> with_paths({"loss": "CircleLoss"})
        {'loss': {'class_path': 'likewise.losses.CircleLoss'}}
    """
    check_names(tree, allow, within)
    result: Tree = {}
    for key, value in tree.items():
        path = within if key == "init_args" else (*within, key)
        kind = None if key == "init_args" else kind_of(path)
        if isinstance(value, str) and kind is not None:
            value = {"class_path": value}
        if isinstance(value, Mapping):
            value = with_paths(value, path, allow)
            strange = [each for each in value if each not in ("class_path", "init_args")] if kind is not None else []
            if strange:
                key = ".".join(path)
                raise UserError(
                    f"{key} must have only the keys class_path and init_args, but it has {strange[0]}{_meant(strange[0])}"
                )
            if kind is not None and isinstance(value.get("class_path"), str):
                value["class_path"] = resolve(kind, value["class_path"], allow)
        result[key] = value
    return result


def _meant(word: str) -> str:
    return nearest(word, ["class_path", "init_args"]) or ": write it under init_args"


def _place(tree: Tree, path: tuple[str, ...], value: Any, allow: Collection[str]) -> None:
    """Set a value in a tree; arguments are kept unless the class changes."""
    node = tree
    for place, word in enumerate(path[:-1]):
        node = _inside(node, word)
        if kind_of(path[: place + 1]) is not None:
            node = _inside(node, "init_args")
    last = path[-1]
    value = _read_mapping(value)
    if kind_of(path) is not None:
        value = with_paths({last: None if value in ("null", "None") else value}, path[:-1], allow)[last]
    elif isinstance(value, Mapping):
        value = with_paths(value, path, allow)
    node[last] = merged({last: node.get(last)}, {last: value})[last]


def _inside(node: Tree, word: str) -> Tree:
    if not isinstance(node.get(word), dict):
        node[word] = {}
    inner: Tree = node[word]
    return inner


def _read_mapping(value: Any) -> Any:
    """Parse a text in braces as a mapping; return other values unchanged."""
    import yaml

    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        return value


GROUPS = ("trunk", "head", "model", "loss")
"""Learning rates that do not belong to the parameters of a loss."""


def _is_other_loss(below: Tree, above: Tree) -> bool:
    old, new = below.get("loss"), above.get("loss")
    return isinstance(old, dict) and isinstance(new, dict) and other_class(old, new)


def _without_its_rates(tree: Tree) -> Tree:
    """Remove learning rates of the previous loss's parameters (proxies, beta)."""
    result = copy.deepcopy(tree)
    optimizer = result.get("optimizer")
    if isinstance(optimizer, dict) and isinstance(optimizer.get("lrs"), dict):
        optimizer["lrs"] = {name: rate for name, rate in optimizer["lrs"].items() if name in GROUPS}
    return result
