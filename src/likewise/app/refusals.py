"""What jsonargparse has to say about a mistake, in one sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import Any

from likewise.app.errors import Mistake, nearest


class Refusal(Mistake):
    """A mistake in one option.

    Args:
        key: the option.
        words: the sentence about it, with ``{}`` where the option stands.

    Examples:
        >>> print(Refusal("alpha", "{} must be a number, but it is 'x'").inside("loss"))
        --loss.alpha must be a number, but it is 'x'
    """

    def __init__(self, key: str, words: str) -> None:
        super().__init__(words.replace("{}", f"--{key}"))
        self.key = key
        self.words = words

    def inside(self, outer: str) -> Refusal:
        """The same mistake, seen from further outside."""
        return Refusal(f"{outer}.{self.key}", self.words.replace("; did you mean --", f"; did you mean --{outer}."))


def refusal(message: str, error: BaseException | None, options: Iterable[Any]) -> Mistake:
    r"""The mistake that an error of a parser is about.

    Args:
        message: what the parser says.
        error: what it had caught, which may be a refusal of a parser inside it.
        options: its options, argparse's actions.

    Examples:
        >>> print(refusal("unrecognized arguments: --sed 3", None, []))
        there is no option --sed
        >>> print(refusal("Parser key \"dim\":\n  Expected a <class 'int'>. Got value: x", None, []))
        --dim must be a whole number, but it is 'x'
    """
    key = re.match(r'Parser key "([^"]+)"', message)
    while error is not None:
        if isinstance(error, Refusal):
            return error.inside(key[1]) if key else error
        if isinstance(error, Mistake):
            return error
        error = error.__cause__ or error.__context__
    for pattern, say in _PATTERNS:
        found = re.search(pattern, message)
        if found:
            return say(found, list(options))
    if key:
        return _among_several(key[1], message) or Refusal(key[1], _about_value(message))
    return Mistake(" ".join(message.split()))


def _among_several(key: str, message: str) -> Refusal | None:
    """Where one of several classes may be given: the mistake in the one that was, or that it is none of them."""
    inner = re.search(
        r"Problem with given class_path '[^']+':\s*(.+?)\s*(?=\n\s*-|\n\s*Given value)", message, re.DOTALL
    )
    if inner:
        text = " ".join(inner[1].split())
        option = re.search(r"--([\w.]+)", text)
        return (
            Refusal(option[1], text.replace(option[0], "{}", 1)).inside(key) if option else Refusal(key, "{}: " + text)
        )
    others = re.findall(r"Import path .*?does not correspond to a subclass of (\w+)", message)
    value = re.search(r"Given value: (\S+)", message)
    if others and value:
        return Refusal(key, f"{{}} must be a {' or a '.join(others)}, but it is {value[1]}")
    return None


def _unknown(name: str, options: list[Any]) -> Refusal:
    known = [each.dest for each in options if each.dest not in ("help", "print_config")]
    hint = nearest(name, known).replace("did you mean ", "did you mean --")
    return Refusal(name, "there is no option {}" + hint)


def _missing(name: str, options: list[Any]) -> Refusal:
    said = [each.help for each in options if each.dest == name and each.help]
    return Refusal(name, "{} must be given" + (f": {plain_help(said[0])}" if said else ""))


def plain_help(text: str) -> str:
    """A phrase of a docstring without its markup, up to the first semicolon.

    Examples:
        >>> plain_help("a loss; kept as ``.loss``.")
        'a loss'
    """
    return " ".join(text.split(";")[0].replace("`", "").split()).rstrip(".")


_OF_PARTS = "{} must be a file, or its options must be given one by one"

_PATTERNS: tuple[tuple[str, Callable[[re.Match[str], list[Any]], Mistake]], ...] = (
    (r"unrecognized arguments: --([^\s=]+)", lambda found, options: _unknown(found[1], options)),
    (r"^Option '([^']+)' is not accepted", lambda found, options: _unknown(found[1], options)),
    (r"Group '([^']+)' does not accept option '([^']+)'", lambda f, options: _unknown(f"{f[1]}.{f[2]}", options)),
    (r"arguments are required: ([^,\s]+)", lambda found, options: _missing(found[1], options)),
    (r'^Parser key "([^"]+)":\s*Unable to load config', lambda found, _: Refusal(found[1], _OF_PARTS)),
    (r"argument --(\S+): expected", lambda found, options: Refusal(found[1], "{} must be followed by a value")),
)


_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "NoneType": "null",
    "tuple": "a list such as [1, 2]",
    "list": "a list such as [1, 2]",
    "collections.abc.Sequence": "a list such as [1, 2]",
    "collections.abc.Iterable": "a list such as [1, 2]",
    "collections.abc.Mapping": "a mapping such as {a: 1}",
    "dict": "a mapping such as {a: 1}",
}


def _about_value(message: str) -> str:
    """What a value must be, and what it is."""
    value = re.search(r"(?:Got value|Given value): (.*)", message, re.DOTALL)
    text = " ".join(value[1].split()) if value else "something else"
    choices: list[str] = []
    for listed in dict.fromkeys(re.findall(r"Literal\[(.*?)\]", message)):
        choices += ast.literal_eval(f"[{listed}]")
    kinds = [_TYPES.get(name, name) for name in re.findall(r"Expected an? <class '([^']+)'>", message)]
    one_of = [f"one of {', '.join(map(repr, choices))}"] if choices else []
    must = " or ".join(dict.fromkeys([*one_of, *kinds])) or " ".join(message.split(":", 1)[-1].split())
    if must == "null":
        return "{} must be null, or its options must be given one by one"
    hint = nearest(text, choices)
    if text == "False" and "no" in choices:
        hint = " (a plain no is false in YAML: write 'no')"
    shown = text if text in ("True", "False", "None") or text.startswith(("[", "{")) else repr(text)
    return f"{{}} must be {must}, but it is {shown}{hint}"
