"""Static files of the search page, read once from the package."""

from __future__ import annotations

import hashlib
from importlib import resources

from fastapi import FastAPI, Request, Response

SCRIPTS = ("page", "ask", "draw", "grid", "filter", "groups", "original", "why", "docs")
FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/docs": ("docs.html", "text/html; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8") for name in SCRIPTS},
}
"""Addresses, file names and types of the static files."""


def add_files(app: FastAPI) -> None:
    """Add the routes of `FILES` to an application.

    Examples:
        >>> app = FastAPI()
        >>> add_files(app)
        >>> app.url_path_for("/page.css")
        '/page.css'
    """
    folder = resources.files("likewise.search.serve")

    def add(address: str, content: bytes, kind: str) -> None:
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'

        @app.get(address, include_in_schema=False, name=address)
        def file(request: Request) -> Response:
            headers = {"etag": tag, "cache-control": "no-cache"}
            if request.headers.get("if-none-match") == tag:
                return Response(status_code=304, headers=headers)
            return Response(content, media_type=kind, headers=headers)

    for address, (name, kind) in FILES.items():
        add(address, (folder / name).read_bytes(), kind)
