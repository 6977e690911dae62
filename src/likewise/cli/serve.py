"""``likewise serve``: serve a search page for an index or a folder of pictures."""

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
    bound = bind_socket(options.host, options.port)  # before the slow steps
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
        print("stopped; run the same command again to continue", file=sys.stderr)
        return 130
    finally:
        bound.close()
    print("stopped", file=sys.stderr)
    return 0


def _parser() -> Arguments:
    parser = Arguments("serve", "Serve a search page and a JSON API for an index. Stop with Ctrl-C.")
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
        help="allow non-loopback addresses: a proxy in front limits clients and slow requests",
    )
    parser.add_argument("--port", metavar="N", type=int, default=8000, help="the port (8000); 0 for any free port")
    parser.add_argument(
        "--token",
        nargs="?",
        const="",
        help=f"require this bearer token; without a value a random one is generated; it can also be set in {SERVER_TOKEN}",
    )
    parser.add_argument(
        "--show-files",
        action="store_true",
        help="also show image files from a folder that is not next to the index; make sure that you trust the index",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--map",
        choices=("pca", "tsne"),
        default="pca",
        help="layout of the map: pca (immediate) or tsne (seconds)",
    )
    parser.add_argument(
        "--upload", metavar="MB", type=float, default=20.0, help="maximum size of an uploaded image in MB (20)"
    )
    return parser


def _index_pictures(folder: Path) -> Path | None:
    """Build or update the index next to a folder of pictures, and print the changes; ``None`` if no picture is readable."""
    place = index_place(folder)
    if is_index(place):
        note(f"{folder} has an index next to it, which is updated: {place.name}")
    else:
        note(f"{folder} is a folder of pictures: building its index next to it, {place.name}, with {SERVING_MODEL}")
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
    print(f"{index.name}: {len(index):,} images at {page}   (stop with Ctrl-C)")
    if generated:  # the token is printed only here
        print(f"token: {service.token}")
    elif service.token is None and not service.loopback:
        note("any machine that can reach this one can view these images; use --token to require a token")
    if not service.files and index.root is not None:
        note(f"the images are in {index.root}, which is not next to the index; use --show-files to show them")
    sys.stdout.flush()


def _open_page(service: Service) -> None:
    """Open the page once the server answers."""
    while not service.server.started:
        time.sleep(0.05)
    try:
        is_open = webbrowser.open(service.address)
    except webbrowser.Error:
        is_open = False
    if not is_open:
        note(f"no browser could be opened; go to {service.address}")
