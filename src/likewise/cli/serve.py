"""``likewise serve``: an index, or a plain folder of pictures, as a search page in the browser."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from likewise.app import UserError, making
from likewise.cli.arguments import Arguments
from likewise.cli.screen import bold, note
from likewise.data import cores
from likewise.search import Index, is_index, is_url

if TYPE_CHECKING:
    import uvicorn

MODEL = "efficientnet_lite0"
"""What looks at pictures where nobody has trained anything."""

TOKEN = "LIKEWISE_TOKEN"
"""The environment variable for a token that no list of processes shows."""


def run(words: Sequence[str]) -> int:
    """Serve until Ctrl-C.

    Examples:
        >>> run(["nowhere.index"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no index and no folder of pictures nowhere.index
    """
    given = _options().parse_args(words)
    _check_packages()
    folder, token = _folder(given.index), _token(given.token)
    door = _door(given.host, given.port)  # before anything takes time
    try:
        if folder is not None and not is_index(folder):
            folder, code = _indexed(folder)
            if code != 0:
                return code
        with making("the index"):
            index = Index.open(given.index if folder is None else folder)
        return _serve(index, door, token, given)
    finally:
        door.close()


def _options() -> Arguments:
    options = Arguments("serve", "Show an index as a search page, and answer programs as JSON. Ctrl-C ends it.")
    options.add_argument(
        "index",
        metavar="INDEX",
        help="what likewise index made: a folder, or postgresql://…#name; or a folder of pictures, which is indexed"
        f" first, with {MODEL}",
    )
    options.add_argument(
        "--host", default="127.0.0.1", help="who may ask: this machine alone (127.0.0.1), or all with 0.0.0.0"
    )
    options.add_argument("--port", metavar="N", type=int, default=8000, help="where (8000); 0 for any that is free")
    options.add_argument(
        "--token",
        nargs="?",
        const="",
        help=f"let in only those who have this word; without one it is made up, and {TOKEN} may hold it, too",
    )
    options.add_argument("--open", action="store_true", help="open the page in a browser")
    options.add_argument(
        "--map",
        choices=("pca", "tsne"),
        default="pca",
        help="how the map is laid out: pca (at once) or tsne (a minute)",
    )
    options.add_argument("--upload", metavar="MB", type=float, default=20.0, help="how large an image may be (20)")
    return options


def _folder(place: str) -> Path | None:
    """The folder that was given; nothing for a database, whose URL may hold a password and is never repeated."""
    if is_url(place):
        return None
    if "://" in place:
        raise UserError("INDEX must be a folder or begin with postgresql://, but it begins otherwise")
    if not Path(place).is_dir():
        # a URL that was mistyped may hold a password
        secret = place.startswith("postgres") or "@" in place or "password" in place
        raise UserError(f"there is no index and no folder of pictures {'of that name' if secret else place}")
    return Path(place)


def _check_packages() -> None:
    try:
        import fastapi
        import python_multipart
        import uvicorn

        _ = fastapi, python_multipart, uvicorn
    except ImportError as missing:
        name = {"python_multipart": "python-multipart"}.get(str(missing.name), missing.name)
        raise UserError(f"likewise serve needs {name}: pip install 'likewise[search]'") from missing


def _token(asked: str | None) -> str | None:
    """The word that was given, one that is made up, or none."""
    if asked is None:
        asked = os.environ.get(TOKEN) or None
    elif asked == "":
        asked = secrets.token_urlsafe(12)
    if asked is not None and (not asked.isascii() or not asked.isprintable() or " " in asked):
        raise UserError("--token must be letters, digits and signs of ASCII without spaces")
    return asked


def _door(host: str, port: int) -> socket.socket:
    """A socket that is bound, or one sentence on why not."""
    if not 0 <= port <= 65535:
        raise UserError(f"--port must be from 0 to 65535, but it is {port}")
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UserError(f"--host must be an address of this machine, but there is none called {host}") from None
    door = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        door.listen(256)
    except OSError as error:
        door.close()
        hint = "; --port chooses another, --port 0 any that is free" if error.errno is not None else ""
        raise UserError(f"{host}:{port} cannot be served: {error.strerror}{hint}") from None
    return door


def _indexed(folder: Path) -> tuple[Path, int]:
    """The index beside a folder of pictures, made or brought up to date."""
    from likewise.cli import index as command

    place = folder.resolve()
    beside = place.with_name(place.name + ".index")
    if is_index(beside):
        note(f"{folder} has an index beside it, which is brought up to date: {beside.name}")
        return beside, command.run(["--update", "--prune", str(folder), "-o", str(beside)])
    note(f"{folder} is a folder of pictures: its index is made beside it, {beside.name}, with {MODEL}")
    return beside, command.run([MODEL, str(folder), "-o", str(beside)])


def _serve(index: Index, door: socket.socket, token: str | None, given: Any) -> int:
    import uvicorn

    from likewise.search import Limits, is_loopback, make_app

    loopback = is_loopback(given.host)
    with making("--upload"):
        limits = Limits(upload=int(given.upload * 1e6))
    with making("the index"):
        app = make_app(index, limits=limits, token=token, loopback=loopback, layout=given.map)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    if "OMP_NUM_THREADS" not in os.environ:
        # products that want every core stand still whenever somebody is being answered
        torch.set_num_threads(max(1, cores() - 1))
    _announce(index, given.host, door.getsockname()[1], token, loopback)
    if given.open:
        threading.Thread(target=_open, args=(server, _address("127.0.0.1", door.getsockname()[1])), daemon=True).start()
    with suppress(KeyboardInterrupt):  # which is how a server ends
        server.run(sockets=[door])
    print("stopped", file=sys.stderr)
    return 0


def _announce(index: Index, host: str, port: int, token: str | None, loopback: bool) -> None:
    shown = host if host not in ("0.0.0.0", "::") else socket.gethostname()
    print(f"{index.name}: {len(index):,} images at {bold(_address(shown, port))}   (Ctrl-C ends it)")
    if token is not None:
        print(f"token: {token}")
    elif not loopback:
        note("whoever reaches this machine can look at these images: --token lets in only those who have a word")
    sys.stdout.flush()


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _open(server: uvicorn.Server, address: str) -> None:
    """Show the page once it is there."""
    while not server.started:
        time.sleep(0.05)
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        note(f"no browser could be opened: go to {address}")
