"""Generate a page for every loss and miner when the site is built."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from likewise import losses, miners
from likewise.formula import hyperparameters

ROOMS = {"losses": losses, "miners": miners}
BASES = {"PairLoss", "ProxyLoss", "Between", "MinedCounts", "Miner", "PairMiner", "TripletMiner"}


def described(room: str) -> list[type]:
    """Return the classes of a package that get a page."""
    exported = [getattr(ROOMS[room], name) for name in ROOMS[room].__all__ if name not in BASES]
    return [each for each in exported if inspect.isclass(each)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for room in ROOMS:
        for kind in described(room):
            files.append(File.generated(config, f"{room}/{kind.__name__}.md", content=page(room, kind)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the marker on an overview page by the list of pages."""
    for room in ROOMS:
        links = " · ".join(f"[{kind.__name__}]({room}/{kind.__name__}.md)" for kind in described(room))
        markdown = markdown.replace(f"<!-- pages: {room} -->", links)
    return markdown


def page(room: str, kind: type) -> str:
    """Return one page: the docstring with formula, source and example, and the table of hyper-parameters."""
    lines = [
        f"# {kind.__name__}",
        "",
        f"::: likewise.{room}.{kind.__name__}",
        "    options:",
        "      members: false",
        "",
    ]
    declared = hyperparameters(kind) if dataclasses.is_dataclass(kind) else {}
    if declared:
        defaults = {field.name: field.default for field in dataclasses.fields(kind)}
        lines += [
            "## Hyper-parameters",
            "",
            "| name | default | meaning | limits | search range |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [row(name, defaults[name], hyper) for name, hyper in declared.items()]
    return "\n".join(lines) + "\n"


def row(name: str, default: Any, hyper: Any) -> str:
    """Return one row of the table."""
    low, high = hyper.search
    scale = "logarithmic" if hyper.log else "linear"
    step = f", steps of {hyper.step:g}" if hyper.step else ""
    return f"| `{name}` | {default!r} | {hyper.help} | {hyper.limits()} | {low:g} to {high:g}, {scale}{step} |"
