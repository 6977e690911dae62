"""Render templates, compute hashes of scripts, and write pages."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from likewise import __version__
from likewise.files import write_text
from likewise.text import moment


@cache
def package_text(name: str) -> str:
    """Read a template, a style sheet or a script of this package.

    Examples:
        >>> package_text("page.js")[:12]
        '"use strict"'
    """
    return (resources.files("likewise.report") / name).read_text(encoding="utf-8")


def policy_hash(text: str) -> str:
    """Return the hash of an inline script or style sheet for a content security policy.

    Examples:
        >>> policy_hash("")
        'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def write_html(out: Path, template: str, **values: Any) -> Path:
    """Render a template and write the page; the file is replaced atomically.

    Args:
        out: the file; its folder is created if needed.
        template: the name of the template.
        values: the variables of the template.

    Examples:
        >>> import tempfile
        >>> names = dict.fromkeys(("title", "first", "style", "style_hash"), "")
        >>> write_html(Path(tempfile.mkdtemp()) / "a.html", "lens.html.jinja", scripts=[], **names).name
        'a.html'
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, _environment().get_template(template).render(version=__version__, **values))
    return out


def render(block: object) -> Markup:
    """Render a block as HTML, with the macro of the same name.

    Examples:
        >>> from likewise.report.blocks import Code
        >>> render(Code("likewise train"))
        Markup('<pre tabindex="0"><code>likewise train</code></pre>')
    """
    macro = getattr(_environment().get_template("blocks.html.jinja").module, type(block).__name__.lower())
    return Markup(macro(block)).strip()


@cache
def _environment() -> jinja2.Environment:
    """Return the template environment, which compiles each template once per process."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(package_text),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["moment"] = moment
    environment.globals["render"] = render
    return environment
