"""Texts that leave the program: no formulas for spreadsheets, no passwords in files and terminals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet computes."""

SECRET = ("--token", "--password")
"""Options whose values are not written anywhere."""


def escape_formula(cell: Any) -> Any:
    """A cell of a CSV file that no spreadsheet computes: texts that begin like a formula get an apostrophe.

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
    """The text that `escape_formula` escaped.

    Examples:
        >>> unescape_formula("'=1+1"), unescape_formula("'n"), unescape_formula(escape_formula("'=1"))
        ('=1+1', "'n", "'=1")
    """
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell


def hide_secrets(words: Sequence[str]) -> list[str]:
    """A command line without tokens and without the passwords of URLs, for files and terminals.

    Examples:
        >>> hide_secrets(["likewise", "serve", "postgresql://me:sesame@host/photos#birds", "--token", "sesame"])
        ['likewise', 'serve', 'postgresql://me:***@host/photos#birds', '--token', '***']
    """
    hidden: list[str] = []
    for word in words:
        if hidden and hidden[-1] in SECRET and not word.startswith("--"):
            word = "***"
        name, equals, _ = word.partition("=")
        if equals and name in SECRET:
            word = f"{name}=***"
        hidden.append(hide_passwords(word))
    return hidden


def hide_passwords(text: str) -> str:
    """A text without the passwords of URLs.

    Examples:
        >>> hide_passwords("there is no postgres://me:open sesame@host/photos?sslpassword=sesame#birds")
        'there is no postgres://me:***@host/photos?sslpassword=***#birds'
    """
    text = re.sub(r"(://[^/\s:@#]*):[^@\n]*(?:@[^\s@]*)*@", r"\1:***@", text)
    return re.sub(r"\b(\w*(?:password|token)=)[^&#\s]*", r"\1***", text, flags=re.IGNORECASE)
