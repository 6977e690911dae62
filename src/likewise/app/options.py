"""The options of a configuration: valid names and values.

A configuration is checked here before jsonargparse completes it, against the settings and the constructors of the chosen
classes, so that every error is one sentence that names the option.
"""

from __future__ import annotations

import inspect
import os
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from types import NoneType, SimpleNamespace
from typing import Any, TypeAlias

from likewise.app.defaults import Tree
from likewise.app.errors import UserError, nearest
from likewise.app.objects import KINDS, Kind, import_class, kind_of, needed
from likewise.app.values import Misfit, convert, is_class_hint, may_import, members_of, read_text

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Option:
    """An argument of a class.

    Args:
        hint: its type hint; ``Any`` if it has none or it cannot be resolved.
        required: whether it has no default.
        may_import: whether a parser could read a text as an import path: the hint contains a class or cannot be resolved.

    Examples:
        >>> from likewise.losses import CircleLoss
        >>> options_of(CircleLoss)["gamma"]
        Option(hint=<class 'float'>, required=False, may_import=False)
    """

    hint: Any
    required: bool
    may_import: bool = False


def options_of(thing: Any) -> dict[str, Option]:
    """The arguments of a class's constructor, by name.

    Examples:
        >>> from likewise.data import ImageFolder
        >>> options_of(ImageFolder)["root"].required
        True
    """
    hints = _hints(thing)
    empty = inspect.Parameter.empty
    return {
        each.name: Option(
            hints.get(each.name, Any),
            each.default is empty,
            may_import(hints[each.name]) if each.name in hints else each.annotation is not empty,
        )
        for each in inspect.signature(thing).parameters.values()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    }


def _hints(thing: Any) -> dict[str, Any]:
    """Type hints by argument; those that cannot be resolved, because a name is not imported, are left out."""
    bases = inspect.getmro(thing)
    if not is_dataclass(thing):
        return _read_hints(thing.__init__)
    hints: dict[str, Any] = {}
    for base in reversed(bases):  # each in the namespace of its module, unlike those of a generated __init__
        if is_dataclass(base):
            hints |= _read_hints(base)
    return hints


def _read_hints(thing: Any) -> dict[str, Any]:
    """The annotations of a class or function that can be resolved, one at a time."""
    module = sys.modules.get(thing.__module__)
    names = dict(vars(module)) if module is not None else {}
    hints = {}
    for name, annotation in inspect.get_annotations(thing).items():
        try:
            holder = SimpleNamespace(__annotations__={name: annotation})
            hints[name] = typing.get_type_hints(holder, names, names)[name]
        except (NameError, AttributeError, TypeError, SyntaxError):
            continue
    return hints


def flag(path: Path) -> str:
    """The spelling of an option on the command line: dashes in the first word, underscores in the others.

    Examples:
        >>> flag(("cache_on",)), flag(("train", "log_every"))
        ('--cache-on', '--train.log_every')
    """
    return "--" + ".".join([path[0].replace("_", "-"), *path[1:]])


def check_options(tree: Mapping[str, Any], settings: Mapping[str, Any]) -> Tree:
    """Check the names and the types of a configuration's settings, and convert texts of a command line.

    Args:
        tree: a configuration whose classes are given by import paths.
        settings: the type hint of every setting by its name; a mapping of hints is a group.

    Examples:
        >>> check_options({"seed": "3"}, {"seed": int})
        {'seed': 3}
        >>> check_options({"sed": 3}, {"seed": int})
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no option --sed; did you mean --seed?
    """
    for key, value in tree.items():
        if key not in settings:
            raise _unknown_setting(key, value, settings)
    return {key: _check(value, settings[key], (key,)) for key, value in tree.items()}


def _check(value: Any, hint: Any, path: Path) -> Any:
    kind = kind_of(path)
    if kind is not None:
        return _check_named(value, members_of(hint), kind, path)
    if isinstance(hint, Mapping):
        return _check_group(value, {name: Option(each, False) for name, each in hint.items()}, path)
    for member in members_of(hint) if len(path) == 1 else ():
        if is_dataclass(member):
            return _check_group(value, options_of(member), path, NoneType in members_of(hint), member)
    if isinstance(value, Mapping) and not any(map(_takes_mapping, members_of(hint))):
        raise UserError(f"there is no option {_first_leaf(path, value)}; {flag(path)} takes a single value")
    try:
        converted = convert(value, hint)
        _check_object(converted, hint, path)
        return converted
    except Misfit as misfit:
        raise UserError(f"{flag((*path, *misfit.inside))} {misfit}") from None


def _check_object(value: Any, hint: Any, path: Path) -> None:
    """Check that an object inside a value, given by its ``class_path``, is of the class that the hint names."""
    if isinstance(value, Mapping) and "class_path" in value:
        bases = tuple(filter(is_class_hint, members_of(hint))) or (import_class(KINDS["loss"].base),)
        name = value["class_path"]
        if not isinstance(name, str) or not set(value) <= {"class_path", "init_args"}:
            raise UserError(
                f"{flag(path)} must have only the keys class_path and init_args, but it has {', '.join(map(str, value))}"
            )
        thing = import_class(name) if "." in name else None  # the parser resolves other names among known subclasses
        if thing is not None and not (inspect.isclass(thing) and issubclass(thing, bases)):
            names = " or a ".join(base.__name__ for base in bases)
            raise UserError(f"{flag(path)} must be a {names}, but it is {name}")
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, each in inner:
        if isinstance(each, Mapping | list | tuple):
            _check_object(each, Any, (*path, str(key)))


def _refuse_path(value: Any, path: Path) -> None:
    """Refuse a text that a parser would import or read from a file: an object is given by its ``class_path``, which is checked."""
    if isinstance(value, str):
        read = read_text(value)
        file = os.path.expanduser(value)
        if os.path.exists(file) and not os.path.isdir(file):
            raise UserError(f"{flag(path)} must not be a file name, but there is a file {value}")
        if read == value and any(sign in value for sign in "./\\") and not _is_number(value):
            raise UserError(
                f"{flag(path)} must be a mapping with class_path and init_args, but it is the text {value!r}"
            )
        if read != value:
            _refuse_path(read, path)
    elif isinstance(value, Mapping):
        for key, each in _importing(value).items():
            _refuse_path(each, (*path, str(key)))
    for each in value if isinstance(value, list | tuple) else ():
        _refuse_path(each, path)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _importing(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those arguments of an object that may be objects; every value of a mapping without a class."""
    name, arguments = value.get("class_path"), value.get("init_args") or {}
    if not isinstance(name, str):
        return value
    thing = import_class(name) if "." in name else None
    if not isinstance(arguments, Mapping) or not inspect.isclass(thing):
        return {key: each for key, each in value.items() if key != "class_path"}
    options = options_of(thing)
    return {key: each for key, each in arguments.items() if key not in options or options[key].may_import}


def _takes_mapping(hint: Any) -> bool:
    origin = typing.get_origin(hint) or hint
    return hint is Any or is_class_hint(hint) or (inspect.isclass(origin) and issubclass(origin, Mapping))


def _check_group(
    value: Any, options: Mapping[str, Option], path: Path, optional: bool = False, owner: Any = None
) -> Tree | None:
    """A group of settings, such as those of the model."""
    if value in (None, "null", "None") and optional:
        return None
    if not isinstance(value, Mapping):
        must = (
            f"{'null, or ' if optional else ''}set by its options: {', '.join(flag((*path, each)) for each in options)}"
        )
        raise UserError(f"{flag(path)} must be {must}")
    _check_names(value, options, path, flag(path))
    return _check_arguments(value, options, path, owner)


def _check_named(value: Any, members: tuple[Any, ...], kind: Kind, path: Path) -> Tree | None:
    """A class and its options."""
    if value is None and (len(path) == 1 or NoneType in members or Any in members):
        return None  # data and loss are checked for the whole configuration
    spec = value if isinstance(value, Mapping) else {}
    arguments = spec.get("init_args") or {}
    if not isinstance(spec.get("class_path"), str) or not isinstance(arguments, Mapping):
        inside = list(arguments) if isinstance(arguments, Mapping) else []
        example = {"root": "ImageFolder", "path": "ImageTable"}.get(inside[0], "NAME") if inside else "NAME"
        if inside and path == ("data",):
            raise UserError(f"--data is missing: --data {example} --data.{inside[0]} {arguments[inside[0]]}")
        reason = f": {flag((*path, inside[0]))} is one of its options" if inside else ""
        raise UserError(f"{flag(path)} must be the name of a {kind.what}{reason}")
    spec = {key: each for key, each in spec.items() if key != "init_args" or each is not None}
    thing = import_class(spec["class_path"])
    bases = tuple(filter(is_class_hint, members))
    if bases and not issubclass(thing, bases):
        names = " or a ".join(base.__name__ for base in bases)
        raise UserError(f"{flag(path)} must be a {names}, but it is {spec['class_path']}")
    return {**spec, **_check_init(arguments, thing, kind, path)}


def _check_init(arguments: Mapping[str, Any], thing: Any, kind: Kind, path: Path) -> Tree:
    """The arguments of a class, without those derived from other settings."""
    filled = {*kind.filled, *needed(kind, thing)}
    taken = options_of(thing)
    for name in arguments:
        if name in filled and name in taken:
            raise UserError(f"there is no option {flag((*path, name))}: its value is derived from other settings")
    options = {name: option for name, option in taken.items() if name not in filled}
    if any(each.kind is each.VAR_KEYWORD for each in inspect.signature(thing).parameters.values()):
        options |= {name: Option(Any, False) for name in arguments if name not in options}
    _check_names(arguments, options, path, thing.__name__)
    checked = _check_arguments(arguments, options, path, thing)
    return {"init_args": checked} if checked else {}


def _check_names(value: Mapping[str, Any], options: Mapping[str, Option], path: Path, owner: str) -> None:
    for name in value:
        if name not in options:
            close = nearest(name, options).replace("did you mean ", f"did you mean {flag((*path, ''))}")
            known = f"; {owner} has {', '.join(options)}" if options else f"; {owner} has no options"
            raise UserError(f"there is no option {flag((*path, name))}{close or known}")


def _check_arguments(value: Mapping[str, Any], options: Mapping[str, Option], path: Path, owner: Any) -> Tree:
    for name, each in value.items():
        if options[name].may_import and kind_of((*path, name)) is None:
            _refuse_path(each, (*path, name))
    checked = {name: _check(each, options[name].hint, (*path, name)) for name, each in value.items()}
    for name, option in options.items():
        if option.required and name not in value:
            meaning = _meaning(owner, name)
            raise UserError(f"{flag((*path, name))} must be given" + (f": {meaning}" if meaning else ""))
    return checked


def _meaning(thing: Any, name: str) -> str:
    """The description of an argument in a docstring, up to the first semicolon."""
    from docstring_parser import parse

    for base in thing.__mro__:
        for each in parse(base.__doc__ or "").params:
            if each.arg_name == name and each.description:
                return " ".join(each.description.split(";")[0].replace("`", "").split()).rstrip(".")
    return ""


def _unknown_setting(key: str, value: Any, settings: Mapping[str, Any]) -> UserError:
    """The error about an unknown setting."""
    if key.replace("-", "_") in settings:
        return UserError(f"{key} must be written {key.replace('-', '_')} in files and in Python")
    name = _first_leaf((key,), value)
    known = [flag(path) for path in _paths(settings)]
    close = nearest(name, known)
    return UserError(f"there is no option {name}{close or '; likewise train --help lists the options'}")


def _paths(settings: Mapping[str, Any], within: Path = ()) -> Iterator[Path]:
    """All options that do not depend on the chosen classes."""
    for name, hint in settings.items():
        path = (*within, name)
        yield path
        if isinstance(hint, Mapping):
            yield from _paths(hint, path)
        for member in members_of(hint) if kind_of(path) is None else ():
            if is_dataclass(member):
                yield from ((*path, each) for each in options_of(member))


def _first_leaf(path: Path, value: Any) -> str:
    """The first option inside a value."""
    while isinstance(value, Mapping) and value:
        key, value = next(iter(value.items()))
        path = (*path, str(key))
    return flag(path)
