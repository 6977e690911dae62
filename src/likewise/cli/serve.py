"""``likewise serve``: an index, or a plain folder of pictures, as a search page in the browser."""

from __future__ import annotations

import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from likewise.app import (
    SERVER_TOKEN,
    SERVING_MODEL,
    Service,
    UnreadableImagesError,
    bind_socket,
    check_host,
    check_server_packages,
    choose_token,
    find_served,
    index_next_to,
    index_place,
    open_index,
    serve,
    url_of,
)
from likewise.cli.arguments import Arguments
from likewise.cli.image_options import print_start
from likewise.cli.index_screen import print_update
from likewise.cli.screen import bold, note, print_broken
from likewise.search import is_index


def run(words: Sequence[str]) -> int:
    """Serve until Ctrl-C.

    Examples:
        >>> run(["nowhere.index"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no index and no folder of pictures nowhere.index
    """
    options = _parser().parse_args(words)
    check_server_packages()
    folder, token = find_served(options.index), choose_token(options.token)
    check_host(options.host, behind_proxy=options.behind_proxy)
    bound = bind_socket(options.host, options.port)  # before anything takes time
    try:
        if folder is not None and not is_index(folder):
            place = _index_pictures(folder)
            if place is None:
                return 1
        else:
            place = options.index
        index = open_index(place)

        def announce(service: Service) -> None:
            _announce(service, options.host, generated=options.token == "")
            if options.open:
                threading.Thread(target=_open_page, args=(service,), daemon=True).start()

        serve(
            index,
            host=options.host,
            token=token,
            layout=options.map,
            upload=options.upload,
            behind_proxy=options.behind_proxy,
            show_files=options.show_files,
            bound=bound,
            on_start=announce,
        )
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    finally:
        bound.close()
    print("stopped", file=sys.stderr)
    return 0


def _parser() -> Arguments:
    parser = Arguments("serve", "Show an index as a search page, and answer programs as JSON. Ctrl-C ends it.")
    parser.add_argument(
        "index",
        metavar="INDEX",
        help="an index: a folder, or postgresql://…#name; or a folder of pictures, which is indexed first, with "
        f"{SERVING_MODEL}",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen on (127.0.0.1: this machine); others need --behind-proxy",
    )
    parser.add_argument(
        "--behind-proxy",
        action="store_true",
        help="allow other addresses than this machine's own: a proxy in front limits clients and slow requests",
    )
    parser.add_argument("--port", metavar="N", type=int, default=8000, help="where (8000); 0 for any that is free")
    parser.add_argument(
        "--token",
        nargs="?",
        const="",
        help=f"require this bearer token; without a value a random one is generated; {SERVER_TOKEN} may hold it, too",
    )
    parser.add_argument(
        "--show-files",
        action="store_true",
        help="show image files also where the index names a folder that is not next to it; check that it is yours",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--map",
        choices=("pca", "tsne"),
        default="pca",
        help="how the map is laid out: pca (at once) or tsne (a minute)",
    )
    parser.add_argument("--upload", metavar="MB", type=float, default=20.0, help="how large an image may be (20)")
    return parser


def _index_pictures(folder: Path) -> Path | None:
    """Make or update the index next to a folder of pictures, and print what was done; ``None`` if nothing is readable."""
    place = index_place(folder)
    if is_index(place):
        note(f"{folder} has an index next to it, which is brought up to date: {place.name}")
    else:
        note(f"{folder} is a folder of pictures: its index is made next to it, {place.name}, with {SERVING_MODEL}")
    try:
        result = index_next_to(folder, on_start=lambda start: print_start(start, str(folder)))
    except UnreadableImagesError as nothing:
        print_broken(nothing.broken)
        print(nothing, file=sys.stderr)
        return None
    print_update(result, place, is_served=True)
    return place


def _announce(service: Service, host: str, *, generated: bool) -> None:
    shown = host if host not in ("0.0.0.0", "::") else socket.gethostname()
    page, index = bold(url_of(shown, service.port)), service.index
    print(f"{index.name}: {len(index):,} images at {page}   (Ctrl-C ends it)")
    if generated:  # nothing else repeats a token
        print(f"token: {service.token}")
    elif service.token is None and not service.loopback:
        note("every machine that reaches this one can look at these images: --token requires a token")
    if not service.files and index.root is not None:
        note(f"the index names images in {index.root}, which is not next to it: --show-files shows them")
    sys.stdout.flush()


def _open_page(service: Service) -> None:
    """Show the page once the server answers."""
    while not service.server.started:
        time.sleep(0.05)
    try:
        is_open = webbrowser.open(service.address)
    except webbrowser.Error:
        is_open = False
    if not is_open:
        note(f"no browser could be opened: go to {service.address}")
