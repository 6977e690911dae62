"""``likewise lens``: write an interactive page that shows what a loss does to a batch."""

from __future__ import annotations

import os
import re
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path

from likewise.app import KINDS, UserError, import_class, make, making, nearest, resolve
from likewise.cli.arguments import Arguments
from likewise.cli.screen import suggest
from likewise.report import add_losses, loss_names, write_lens


def run(words: Sequence[str]) -> int:
    """Write the page and open it.

    Examples:
        >>> run(["Multi-similarty"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no loss Multi-similarty; did you mean Multi-similarity?
    """
    options = Arguments(
        "lens", "See what a loss does: drag points on a circle, change hyper-parameters, watch weights and forces."
    )
    options.add_argument(
        "losses",
        metavar="LOSS",
        nargs="*",
        help="the loss to show, and optionally a second one to compare; your own by its import path",
    )
    options.add_argument("--out", type=Path, default=Path("lens.html"), help="where the page is written (lens.html)")
    options.add_argument("--no-open", action="store_true", help="do not open the page in a browser")
    asked = options.parse_args(words)
    known = loss_names()
    own = {each: _print_own(each, known) for each in asked.losses if "." in each}
    losses = [own[each][0] if each in own else loss_called(each, known) for each in asked.losses]
    with making("the page"):
        scripts = add_losses(*(entry for _, entry in own.values())) if own else None
        page = write_lens(asked.out, losses, scripts).resolve()
    if not asked.no_open and _open_browser(page):
        print(f"opened {page}")
    else:
        print(f"wrote {page}; open it in a browser")
    suggest("losses", known[losses[0]] if losses and losses[0] in known else "MultiSimilarityLoss")
    return 0


def loss_called(name: str, known: Mapping[str, str]) -> str:
    """The page's name of a loss, from that name or the class name, ignoring case and punctuation.

    Args:
        name: what was typed.
        known: names of losses and of their classes.

    Examples:
        >>> known = {"NT-Xent": "NTXentLoss", "Triplet": "TripletLoss", "Triplet, semi-hard": "TripletLoss"}
        >>> loss_called("ntxent", known), loss_called("TripletLoss", known)
        ('NT-Xent', 'Triplet')
    """
    # of several with one class, the alphabetically first is the one without a miner
    spelled = {_bare(kind): each for each, kind in sorted(known.items(), reverse=True)}
    spelled |= {_bare(kind.removesuffix("Loss")): each for each, kind in sorted(known.items(), reverse=True)}
    spelled |= {_bare(each): each for each in known}
    if _bare(name) not in spelled:
        hint = nearest(name, [*known, *known.values()]) or f"; there are {', '.join(known)}"
        raise UserError(f"there is no loss {name}{hint}")
    return spelled[_bare(name)]


def _print_own(path: str, known: Mapping[str, str]) -> tuple[str, str]:
    """A user's loss for the page: its name and its JavaScript."""
    from likewise.analysis import script_of
    from likewise.losses import PairLoss, ProxyLoss

    path = resolve(KINDS["loss"], path, [path])
    kind = import_class(path)
    with making(f"the loss {path}"):
        # a loss of the library's base class keeps its sliders; any other module is shown with fixed options
        is_declared = issubclass(kind, PairLoss | ProxyLoss)
        sizes = {"num_classes": 8, "embedding_dim": 2}
        source = kind if is_declared else make(KINDS["loss"], {"class_path": path}, sizes)
        script = script_of(source, name=path if kind.__name__ in known else kind.__name__)
    return script.name, script.entry


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", name.lower())


def _open_browser(page: Path) -> bool:
    """Open the page; whether a browser could show it."""
    if sys.platform.startswith("linux") and not {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & set(os.environ):
        return False  # only a text browser is available, which cannot draw
    try:
        return webbrowser.open(page.as_uri())
    except webbrowser.Error:
        return False
