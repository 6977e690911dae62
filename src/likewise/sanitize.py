"""Texts that enter or leave the program: YAML of bounded size, no formulas for spreadsheets, no passwords in terminals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of a text that a spreadsheet computes."""

SECRET = ("--token", "--password")
"""Options whose values are not written anywhere."""

LARGEST = 100_000
"""The largest number of values of a YAML file."""


def escape_formula(cell: Any) -> Any:
    """Escape a cell of a CSV file, so that a spreadsheet does not compute it: a formula gets an apostrophe.

    Examples:
        >>> escape_formula("=1+1"), escape_formula(-1.5), escape_formula("a.jpg"), escape_formula("-1.5")
        ("'=1+1", -1.5, 'a.jpg', '-1.5')
    """
    if not isinstance(cell, str) or not cell.lstrip("'").startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def unescape_formula(cell: str) -> str:
    """Return the text before `escape_formula`.

    Examples:
        >>> unescape_formula("'=1+1"), unescape_formula("'n"), unescape_formula(escape_formula("'=1"))
        ('=1+1', "'n", "'=1")
    """
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell


def hide_secrets(words: Sequence[str]) -> list[str]:
    """Return a command line without tokens and without passwords in URLs, for files and terminals.

    Examples:
        >>> hide_secrets(["likewise", "serve", "postgresql://me:sesame@host/photos#birds", "--token", "sesame"])
        ['likewise', 'serve', 'postgresql://me:***@host/photos#birds', '--token', '***']
    """
    hidden: list[str] = []
    for word in words:
        if hidden and hidden[-1] in SECRET:  # also a value that begins like an option
            word = "***"
        name, equals, _ = word.partition("=")
        if equals and name in SECRET:
            word = f"{name}=***"
        hidden.append(hide_passwords(word))
    return hidden


def hide_in(text: str, words: Sequence[str]) -> str:
    """Return a message about a command line without the secrets of that command line and passwords in URLs.

    Examples:
        >>> hide_in("there is no option --sesame", ["serve", "photos", "--token", "--sesame"])
        'there is no option ***'
    """
    for word, hidden in zip(words, hide_secrets(words), strict=True):
        if hidden == "***" and word:
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", hidden, text)
    return hide_passwords(text)


def hide_passwords(text: str) -> str:
    """Return a text without passwords in URLs.

    Examples:
        >>> hide_passwords("there is no postgres://me:open sesame@host/photos?sslpassword=sesame#birds")
        'there is no postgres://me:***@host/photos?sslpassword=***#birds'
        >>> hide_passwords("there is no folder postgres:/me:sesame@host")  # as a path is printed
        'there is no folder postgres:/me:***@host'
        >>> hide_passwords("see http://localhost:8000/docs or write to me@example.org")  # a port is not a secret
        'see http://localhost:8000/docs or write to me@example.org'
    """
    text = re.sub(r"(:/+[^/\s:@#]*):(?!\d+(?:[/\s]|$))[^@\n]*(?:@[^\s@]*)*@", r"\1:***@", text)
    return re.sub(r"\b(\w*(?:password|token)=)[^&#\s]*", r"\1***", text, flags=re.IGNORECASE)


def read_yaml(text: str) -> Any:
    """Read the value of a YAML text, whose aliases must not expand to too many values.

    Raises:
        yaml.YAMLError: it is not YAML, nests too deeply, contains itself, or expands to more than 100,000 values.

    Examples:
        >>> read_yaml("{a: &a [1, 2], b: [*a, *a]}")
        {'a': [1, 2], 'b': [[1, 2], [1, 2]]}
        >>> read_yaml("a: &a [*a]")
        Traceback (most recent call last):
        yaml.error.YAMLError: it contains itself
    """
    import yaml

    try:
        tree = yaml.safe_load(text)
        if _count_values(tree, {}) > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} values")
        return tree
    except RecursionError:
        raise yaml.YAMLError("it nests too deeply") from None
    except ValueError as error:  # also a date that the calendar does not have
        raise yaml.YAMLError(str(error)) from error


def _count_values(tree: Any, counts: dict[int, int]) -> int:
    """The number of values in a tree; a subtree with several aliases is visited once and counted for each."""
    if not isinstance(tree, dict | list):
        return 1
    if id(tree) not in counts:
        counts[id(tree)] = -1
        values = [*tree, *tree.values()] if isinstance(tree, dict) else tree
        counts[id(tree)] = 1 + sum(_count_values(value, counts) for value in values)
    elif counts[id(tree)] < 0:
        raise ValueError("it contains itself")
    return counts[id(tree)]
