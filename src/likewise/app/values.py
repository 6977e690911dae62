"""Values against type hints: valid values of a setting, and conversion of command-line texts."""

from __future__ import annotations

import collections.abc
import os
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from inspect import isabstract, isclass
from typing import Any, Literal, Union, get_args, get_origin

from likewise.app.errors import nearest

_KINDS: Mapping[Any, tuple[str, str]] = {
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "true or false"),
    str: ("a text", "texts"),
    os.PathLike: ("a text", "texts"),
    types.NoneType: ("null", "null"),
}
"""A hint in words: one of them, and several."""


class Misfit(Exception):  # noqa: N818 - it is turned into an error that names the option
    """A value that its type hint does not allow.

    Args:
        inside: the keys of mappings that lead to the value.
        must: what the value must be, and what it is.

    Examples:
        >>> str(Misfit((), "must be a number, but it is 'x'"))
        "must be a number, but it is 'x'"
    """

    def __init__(self, inside: tuple[str, ...], must: str) -> None:
        super().__init__(must)
        self.inside = inside


def convert(value: Any, hint: Any) -> Any:
    """Convert a value to a type hint; a text is read as YAML unless the hint is a text.

    Unknown hints, such as other classes, allow every value.

    Examples:
        >>> convert("1e-3", float), convert("null", int | None), convert("3", str), convert("[1, 2]", tuple[int, ...])
        (0.001, None, '3', [1, 2])
        >>> convert(0.5, int)
        Traceback (most recent call last):
        likewise.app.values.Misfit: must be a whole number, but it is 0.5
    """
    members = members_of(hint)
    deepest: Misfit | None = None
    for candidate in _readings(value, members):
        for member in members:
            try:
                return _fit(candidate, member)
            except Misfit as misfit:
                deepest = misfit if misfit.inside else deepest
    raise deepest or Misfit((), _describe(value, members))


def is_class_hint(hint: Any) -> bool:
    """Whether a hint is a class, not a plain value: its objects are given by ``class_path`` and ``init_args``.

    Examples:
        >>> from likewise.miners import Miner
        >>> is_class_hint(Miner), is_class_hint(int), is_class_hint(tuple[int, ...])
        (True, False, False)
    """
    return isclass(hint) and get_origin(hint) is None and hint is not Any and not _is_plain(hint)


def may_import(hint: Any) -> bool:
    """Whether a parser could import what a text names: the hint has a class that is not a plain value, or a callable.

    Examples:
        >>> from collections.abc import Callable
        >>> may_import(Callable[[int], int] | None), may_import(list[type[int]]), may_import(dict[str, float])
        (True, True, False)
    """
    origin = get_origin(hint)
    if origin in (Literal, None) and not isinstance(hint, type):
        return False
    if origin in (type, collections.abc.Callable) or hint in (type, collections.abc.Callable):
        return True
    return is_class_hint(hint) or any(may_import(each) for each in get_args(hint))


def members_of(hint: Any) -> tuple[Any, ...]:
    """The types that a hint allows: those of a union, or the hint.

    Examples:
        >>> members_of(int | None)
        (<class 'int'>, <class 'NoneType'>)
    """
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(member for each in get_args(hint) for member in members_of(each))
    return (types.NoneType if hint is None else hint,)


def _is_plain(hint: Any) -> bool:
    return hint in _KINDS or issubclass(hint, Mapping | Sequence | AbstractSet | os.PathLike)


def _readings(value: Any, members: Sequence[Any]) -> Iterator[Any]:
    """Possible readings of a value: a literal choice or null, then the YAML value, then the text itself."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        yield value
        return
    if any(get_origin(member) is Literal and value in get_args(member) for member in members):
        yield value
    elif value in ("null", "None") and types.NoneType in members:
        yield None
    elif not value.strip():  # YAML reads null, but an unset shell variable is not a choice
        yield value
    else:
        read = read_text(value)
        if not isinstance(read, str):
            yield read
        yield value


def read_text(text: str) -> Any:
    """The value that YAML reads in a text; numbers as Python writes them.

    Examples:
        >>> read_text("[1, 2]"), read_text("!!str a.b"), read_text("010"), read_text("2021-99-99")
        ([1, 2], 'a.b', 10, '2021-99-99')
    """
    import yaml

    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):  # such as a date that the calendar does not have
        return text
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _read_number(text)
    return value


def _read_number(text: str) -> int | float | str:
    """A number as Python writes it: YAML 1.1 reads 010 as 8 and 1:30 as 90."""
    try:
        return int(text)
    except ValueError:
        try:
            return float(text.replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:
            return text


def _fit(value: Any, member: Any) -> Any:
    """Convert the value to one type."""
    origin = get_origin(member) or member
    if origin is Literal:
        fits = any(value == each and type(value) is type(each) for each in get_args(member))
    elif origin is float:
        return _number(value)
    elif origin in _KINDS:
        fits = isinstance(value, str if origin is os.PathLike else origin) and (
            origin is not int or not isinstance(value, bool)
        )
    elif isclass(origin) and issubclass(origin, Mapping):
        return _fit_mapping(value, member)
    elif _is_sequence(origin):
        return _fit_sequence(value, member)
    else:
        fits = not is_class_hint(origin) or isinstance(value, str) or _is_object(value, origin)
    if not fits:
        raise Misfit((), _describe(value, (member,)))
    return value


def _is_object(value: Any, origin: Any) -> bool:
    """Whether a mapping describes an object of a class: by its class, or a dataclass by its fields."""
    plain = is_dataclass(origin) and not isabstract(origin)
    return isinstance(value, Mapping) and (plain or "class_path" in value)


def _number(value: Any) -> float:
    """A number; YAML takes 1e-3 for a text."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise Misfit((), _describe(value, (float,)))


def _is_sequence(origin: Any) -> bool:
    return isclass(origin) and (origin is Iterable or issubclass(origin, Sequence | AbstractSet)) and origin is not str


def _fit_mapping(value: Any, member: Any) -> Any:
    if not isinstance(value, Mapping):
        raise Misfit((), _describe(value, (member,)))
    inner = get_args(member)[1] if len(get_args(member)) == 2 else Any
    result = {}
    for key, each in value.items():
        try:
            result[key] = convert(each, inner)
        except Misfit as misfit:
            raise Misfit((str(key), *misfit.inside), str(misfit)) from None
    return result


def _fit_sequence(value: Any, member: Any) -> list[Any]:
    hints = _element_hints(member, len(value)) if isinstance(value, list | tuple) else None
    if hints is None:
        raise Misfit((), _describe(value, (member,)))
    try:
        return [convert(each, hint) for each, hint in zip(value, hints, strict=True)]
    except Misfit:
        raise Misfit((), _describe(value, (member,))) from None


def _element_hints(member: Any, length: int) -> list[Any] | None:
    """The hints of a list's elements; ``None`` where a tuple has another length."""
    hints = get_args(member)
    if get_origin(member) is tuple and not (len(hints) == 2 and hints[1] is Ellipsis):
        return list(hints) if len(hints) == length else None
    return [hints[0] if hints else Any] * length


def _describe(value: Any, members: Sequence[Any]) -> str:
    """What a value must be, and what it is."""
    choices = [each for member in members if get_origin(member) is Literal for each in get_args(member)]
    must = " or ".join(
        dict.fromkeys(_words(member) for member in sorted(members, key=lambda each: each is types.NoneType))
    )
    hint = nearest(value, map(str, choices)) if isinstance(value, str) else ""
    if value is False and "no" in choices:
        hint = " (YAML reads an unquoted no as false: write 'no')"
    return f"must be {must}, but it is {'null' if value is None else repr(value)}{hint}"


def _words(member: Any) -> str:
    """A type in words."""
    origin = get_origin(member) or member
    if origin is Literal:
        return f"one of {', '.join(map(repr, get_args(member)))}"
    if origin in _KINDS:
        return _KINDS[origin][0]
    if isclass(origin) and issubclass(origin, Mapping):
        return "a mapping such as {a: 1}"
    if _is_sequence(origin):
        return _list_words(member)
    return f"a {getattr(member, '__name__', member)}"


def _list_words(member: Any) -> str:
    hints = get_args(member)
    fixed = get_origin(member) is tuple and Ellipsis not in hints
    several = _KINDS[hints[0]][1] if hints and hints[0] in _KINDS else "values"
    example = {"texts": "[a, b]", "numbers": "[0.5, 0.9]"}.get(several, "[1, 2]")
    return f"a list of {f'{len(hints)} ' if fixed else ''}{several} such as {example}"
