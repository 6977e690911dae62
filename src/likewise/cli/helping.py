"""The text of ``likewise train --help``: every option in a line or two, with the options of each class."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterator
from typing import Any

from likewise.cli.screen import bold, columns, paragraph


def help_of(parser: ArgumentParser) -> str:
    """The help of a parser, as text.

    Examples:
        >>> parser = ArgumentParser(usage="likewise train [--OPTION VALUE …]", add_help=False)
        >>> _ = parser.add_argument("--seed", default=0, help="the random seed.")
        >>> print(help_of(parser), end="")
        usage: likewise train [--OPTION VALUE …]
        <BLANKLINE>
        options
          --seed  the random seed (0)
    """
    pieces = [] if parser.usage is None else [f"usage: {parser.usage}"]
    pieces += [paragraph(each) for each in (parser.description or "").split("\n\n") if each.strip()]
    wide = max((len(name) for group in parser._action_groups for name, _ in _rows(group)), default=0)
    for group in parser._action_groups:
        rows = [(name.ljust(wide), text) for name, text in _rows(group)]
        if rows:
            pieces.append(f"{bold(_title(group, rows))}\n{columns(rows)}")
    return "\n\n".join(pieces) + "\n"


def _title(group: Any, rows: list[tuple[str, str]]) -> str:
    """The description of a group; those of torch base classes are left out."""
    title = (group.title or "options").split(":")[0]
    known = {"--data": "The data", "--loss": "The loss", "--sampler": "The batches", "--config": "General"}
    return next((each for name, each in known.items() if rows[0][0].strip() == name), title)


def _rows(group: Any) -> Iterator[tuple[str, str]]:
    for action in group._group_actions:
        name = action.option_strings[0] if action.option_strings else action.dest
        if action.help is SUPPRESS or name.endswith(".help") or name == "--help":
            continue
        yield name, _text(action, name)


def _text(action: Action, name: str) -> str:
    text = " ".join((action.help or "").replace("`", "").split()).rstrip(".").replace("%%", "%")
    return text + _default(action.default)


def _default(value: object) -> str:
    if value is None or value is SUPPRESS or value == {} or value == ():
        return ""
    if isinstance(value, bool):
        return f" ({str(value).lower()})"
    return f" ({value:g})" if isinstance(value, float) else f" ({value})"
