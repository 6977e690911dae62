"""The API, made when the site is built: an index of each package by its files, and a page for each name."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from tools.docs_pages import ROOMS, described

MARK = re.compile(r"<!-- api: (\w+) -->")
LINK = re.compile(r"((?:\.\./)*)api/(\w+)\.md#likewise\.\w+\.(\w+)")
MACHINERY = re.compile(r'<h\d id="([\w.]+\.__(?!init__|call__)\w+__)"')
"""What Python adds to classes: nothing that a reader looks for."""

PAGE = """---
title: {name}
---

::: likewise.{package}.{name}
    options:
      heading_level: 1
      show_root_heading: true
      show_root_toc_entry: true
      filters: ["!^_"]
      members_order: source
      merge_init_into_class: {init}
"""


@cache
def package(name: str) -> ModuleType:
    """A package of likewise."""
    return importlib.import_module(f"likewise.{name}")


def has_page(where: str, name: str) -> bool:
    """Whether a name is a class or a function; constants and modules are described where they are used."""
    value = getattr(package(where), name)
    return inspect.isclass(value) or inspect.isroutine(value) or inspect.isfunction(inspect.unwrap(value))


def place(where: str, name: str) -> str | None:
    """The page of a name, from the folder of pages; losses and miners have theirs already."""
    if name not in package(where).__all__ or not has_page(where, name):
        return None
    if where in ROOMS and name in {each.__name__ for each in described(where)}:
        return f"{where}/{name}.md"
    return f"api/{where}/{name}.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each name of each package whose index asks for it."""
    for index in [each for each in files.documentation_pages() if each.src_uri.startswith("api/")]:
        for where in MARK.findall(index.content_string):
            for name in package(where).__all__:
                address = place(where, name)
                if address is not None and address.startswith("api/"):
                    protocol = getattr(
                        getattr(package(where), name), "_is_protocol", False
                    )  # its constructor is Python's
                    content = PAGE.format(name=name, package=where, init=str(not protocol).lower())
                    files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write the indexes, and lead links to a name to its page."""

    def linked(found: re.Match[str]) -> str:
        address = place(found[2], found[3])
        return found[0] if address is None else found[1] + address

    return MARK.sub(lambda found: write_index(found[1]), LINK.sub(linked, markdown))


def write_index(where: str) -> str:
    """Names and first sentences, under the title of the file that each is written in."""
    groups: dict[str, list[str]] = {}
    for name in package(where).__all__:
        address, value = place(where, name), getattr(package(where), name)
        if address is not None:
            groups.setdefault(title(value), []).append(f"| [`{name}`](../{address}) | {first_sentence(value)} |")
    head = "\n\n| name | |\n| --- | --- |\n"
    return "\n\n".join(f"## {group}{head}" + "\n".join(rows) for group, rows in groups.items())


def title(value: Any) -> str:
    """The first sentence of the file that something is written in."""
    module = inspect.getmodule(value)
    text = (inspect.getdoc(module) or "Others").split("\n")[0]
    return re.split(r"[.;:] |[.;:]$|, (?=and|with|which)", text)[0].rstrip(".")


def first_sentence(value: Any) -> str:
    """Of a docstring, on one line of a table."""
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    text = re.split(r"(?<=[^.][.])\s", text)[0]
    return text.replace("|", "\\|")


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Refuse what no reader looks for."""
    found = MACHINERY.findall(html)
    if found:
        raise PluginError(f"{page.file.src_uri} describes {', '.join(found[:3])}: leave it out with a filter")
    return html
