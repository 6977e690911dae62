"""Serve an index, or a plain folder of pictures, as a search page and a JSON API."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch

from likewise.app.embedding import EmbeddingStart
from likewise.app.errors import UserError, making
from likewise.app.index_places import is_near, open_index
from likewise.app.indexing import IndexResult, index_folder, update_index
from likewise.data import cores
from likewise.search import Index, is_index, is_url

if TYPE_CHECKING:
    import uvicorn

SERVING_MODEL = "efficientnet_lite0"
"""The model for a folder of pictures without an index."""

CONNECTIONS, HEADERS = 512, 16_384
"""Maximum number of connections, and of bytes in a request's headers."""

SERVER_TOKEN = "LIKEWISE_TOKEN"
"""The environment variable for a token that should not be visible in the process list."""


@dataclass(frozen=True)
class Service:
    """A server that is about to start.

    Args:
        index: the served index.
        address: the URL of its page on this machine.
        port: the port.
        token: the required bearer token; ``None`` for none.
        loopback: whether only this machine can reach it.
        files: whether it shows the image files themselves.
        server: the server, whose ``started`` becomes true.

    Examples:
        >>> from dataclasses import fields
        >>> [each.name for each in fields(Service)]
        ['index', 'address', 'port', 'token', 'loopback', 'files', 'server']
    """

    index: Index
    address: str
    port: int
    token: str | None
    loopback: bool
    files: bool
    server: uvicorn.Server


def find_served(place: str) -> Path | None:
    """The folder to serve; ``None`` for a database, whose URL may contain a password and is never printed.

    Examples:
        >>> find_served("nowhere.index")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no index and no folder of pictures nowhere.index
    """
    if is_url(place):
        return None
    if "://" in place:
        raise UserError("INDEX must be a folder or begin with postgresql://, but it is another URL")
    if not Path(place).is_dir():
        # a mistyped URL may contain a password
        secret = place.startswith("postgres") or "@" in place or "password" in place
        raise UserError(f"there is no index and no folder of pictures {'of that name' if secret else place}")
    return Path(place)


def index_next_to(
    folder: str | Path, *, model: str | Path = SERVING_MODEL, on_start: Callable[[EmbeddingStart], object] | None = None
) -> IndexResult:
    """Build or update the index of a folder of pictures next to it, ``FOLDER.index``.

    Args:
        folder: the pictures.
        model: the model, if there is no index yet.
        on_start: called before the first image is embedded.

    Raises:
        UserError: the folder has no pictures, or the index cannot be written.

    Examples:
        >>> index_next_to("nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no folder or table nowhere
    """
    place = index_place(folder)
    if is_index(place):
        return update_index(place, folder, prune=True, on_start=on_start)
    return index_folder(model, folder, place, on_start=on_start)


def index_place(folder: str | Path) -> Path:
    """Where the index of a folder of pictures is.

    Examples:
        >>> index_place("photos").name
        'photos.index'
    """
    place = Path(folder).resolve()
    return place.with_name(place.name + ".index")


def choose_token(token: str | None) -> str | None:
    """The bearer token of a server: the given one, a random one for ``""``, or that of the environment.

    Examples:
        >>> choose_token("wren"), len(choose_token(""))
        ('wren', 16)
    """
    if token is None:
        token = os.environ.get(SERVER_TOKEN) or None
    elif token == "":
        token = secrets.token_urlsafe(12)
    if token is not None and (not token.isascii() or not token.isprintable() or " " in token):
        raise UserError("--token must be ASCII letters, digits and signs without spaces")
    return token


def check_host(host: str, *, behind_proxy: bool) -> None:
    """Refuse addresses that other machines can reach unless a proxy is in front: the server does not limit slow headers.

    Examples:
        >>> check_host("127.0.0.1", behind_proxy=False)
    """
    from likewise.search import is_loopback

    if not is_loopback(host) and not behind_proxy:
        raise UserError(
            f"--host must be a loopback address such as 127.0.0.1, but it is {host}: put a proxy in front "
            "that limits clients and slow requests, and add --behind-proxy"
        )


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind a socket, or raise an error that tells why it failed.

    Examples:
        >>> bind_socket("127.0.0.1", 70000)
        Traceback (most recent call last):
        likewise.app.errors.UserError: --port must be from 0 to 65535, but it is 70000
    """
    if not 0 <= port <= 65535:
        raise UserError(f"--port must be from 0 to 65535, but it is {port}")
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UserError(f"--host must be an address of this machine, but {host} is not one") from None
    bound = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(256)
    except OSError as error:
        bound.close()
        hint = "; choose another --port, or --port 0 for any free one" if error.errno is not None else ""
        raise UserError(f"{host}:{port} cannot be served: {error.strerror}{hint}") from None
    return bound


def check_server_packages() -> None:
    """Raise an error if a package of the server is missing.

    Examples:
        >>> check_server_packages()
    """
    try:
        import fastapi
        import python_multipart
        import uvicorn

        _ = fastapi, python_multipart, uvicorn
    except ImportError as missing:
        name = {"python_multipart": "python-multipart"}.get(str(missing.name), missing.name)
        raise UserError(f"likewise serve needs {name}: pip install 'likewise[search]'") from missing


def serve(
    index: Index | str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    layout: Literal["pca", "tsne"] = "pca",
    upload: float = 20.0,
    behind_proxy: bool = False,
    show_files: bool = False,
    bound: socket.socket | None = None,
    on_start: Callable[[Service], object] | None = None,
) -> None:
    """Serve an index as a search page and a JSON API until the process is interrupted.

    Args:
        index: the index, its folder, or ``postgresql://…#name``.
        host: the address to listen on; only this machine reaches 127.0.0.1.
        port: the port; 0 for any free port.
        token: require this bearer token; ``""`` generates a random one, ``None`` takes that of ``LIKEWISE_TOKEN``, if any.
        layout: layout of the map: ``"pca"`` or ``"tsne"``.
        upload: maximum size of an uploaded image in megabytes.
        behind_proxy: allow addresses that other machines can reach: a proxy in front limits clients and slow requests.
        show_files: also show image files from a folder that is not next to the index.
        bound: a socket of `bind_socket`, if the port was reserved before.
        on_start: called before the first request is answered.

    Raises:
        UserError: an argument is invalid, or the port is in use.

    Examples:
        >>> serve("nowhere.index")
        Traceback (most recent call last):
        likewise.app.errors.UserError: the index: there is no index nowhere.index
    """
    check_server_packages()
    check_host(host, behind_proxy=behind_proxy)
    import uvicorn

    from likewise.search import Limits, is_loopback, make_app

    opened, loopback = index if isinstance(index, Index) else open_index(index), is_loopback(host)
    token = choose_token(token)
    with making("--upload"):
        limits = Limits(upload=int(upload * 1e6))
    with making("the index"):
        files = show_files or is_near(opened)
        app = make_app(opened, limits=limits, token=token, loopback=loopback, layout=layout, files=files)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=30,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=HEADERS,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, cores() - 1))  # one core answers requests while a matrix product uses the others
    door = bind_socket(host, port) if bound is None else bound
    try:
        if on_start is not None:
            number = door.getsockname()[1]
            on_start(Service(opened, url_of("127.0.0.1", number), number, token, loopback, files, server))
        with suppress(KeyboardInterrupt):  # Ctrl-C ends a server
            server.run(sockets=[door])
    finally:
        door.close()


def url_of(host: str, port: int) -> str:
    """The URL of a page.

    Examples:
        >>> url_of("::1", 8000)
        'http://[::1]:8000/'
    """
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"
