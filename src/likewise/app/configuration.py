"""The options of ``likewise train``: what they are called, what they mean, and how they are read."""

from __future__ import annotations

import json
from argparse import SUPPRESS, ArgumentError
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from jsonargparse import ArgumentParser, Namespace

from likewise.app.defaults import Tree
from likewise.app.errors import Mistake
from likewise.app.layers import Request, kind_of, read_request, with_paths
from likewise.app.objects import imported, needed
from likewise.app.refusals import refusal
from likewise.data import RECIPES
from likewise.schema import SCHEMA, upgrade
from likewise.train import Optimizer, Plan, Schedule

Hold = Literal["device", "memory", "disk"]


@dataclass(frozen=True)
class Split:
    """Which classes are held out.

    Args:
        validation: share of the training classes that is held out for validation; by default the data set's own "val"
            part where it has one, else 0.1 (two classes at least); 0 for none.
        test: share of the classes that is sealed for the test where the data set has no test part of its own; 0 for none.
        seed: of the choice of classes.
        folds: cut the training classes into so many folds, one of which is for validation, in place of a share.
        fold: which of them, counted from 0.
        contiguous: cut them in their order, as the reality check does, and not at random.

    Examples:
        >>> Split().test
        0.2
    """

    validation: float | None = None
    test: float = 0.2
    seed: int = 0
    folds: int | None = None
    fold: int = 0
    contiguous: bool = False


@dataclass(frozen=True)
class Model:
    """The network.

    Args:
        trunk: a name that `likewise trunks` lists, timm:NAME or transformers:NAME.
        weights: what the trunk starts from: a published name, a file, or null for random numbers.
        dim: the size of the embeddings.
        pool: avg, max, avg+max or gem.
        head: linear, mlp or none.
        normalize: scale embeddings to unit length.
        freeze_bn: keep the trunk's batch norms as they are.
        layer_norm: normalize the pooled features before the head.
        in_channels: 3, or 1 for gray; by default what the trunk is made for.

    Examples:
        >>> Model().dim
        512
    """

    trunk: str = "efficientnet_lite0"
    weights: str | None = "imagenet"
    dim: int | None = 512
    pool: str = "avg"
    head: str = "linear"
    normalize: bool = True
    freeze_bn: bool = True
    layer_norm: bool = False
    in_channels: int | None = None


@dataclass(frozen=True)
class Memory:
    """A memory of earlier batches around the loss (XBM).

    Args:
        size: how many embeddings it holds.
        warmup: how many batches are only remembered at first.

    Examples:
        >>> Memory(1024).warmup
        0
    """

    size: int
    warmup: int = 0


USAGE = "likewise train [--config FILE ...] [--OPTION VALUE ...]\n       likewise train --resume RUN"
DESCRIPTION = """Train an embedding on a data set's training classes, choose it on validation classes, write a report.

Options can be given as flags, or under the same names in YAML files (--config); flags win over files, later files over
earlier ones. --print_config shows the whole configuration, in the form that --config takes. A class of your own is
given by its import path (--loss my_package.MyLoss), its options as flags (--loss.alpha 2)."""


class Parser(ArgumentParser):
    """jsonargparse's parser, with a mistake behind every error.

    Examples:
        >>> Parser(prog="likewise train").error("unrecognized arguments: --sed 3")
        Traceback (most recent call last):
        argparse.ArgumentError: there is no option --sed
    """

    def error(self, message: str, ex: Exception | None = None) -> Any:
        """Raise what parsers raise, with a mistake behind it that says what is wrong in one sentence."""
        found = refusal(message, ex, self._actions)
        raise ArgumentError(None, str(found)) from found


def make_parser(request: Request, kind: type[Parser] = Parser) -> Parser:
    """The parser of ``likewise train``, for what a command line asks for.

    Args:
        request: says which classes were chosen; their arguments that follow from other settings are no options.
        kind: the class of the parser; the command line brings its own help.

    Examples:
        >>> from likewise.app.layers import read_request
        >>> make_parser(read_request([])).prog
        'likewise train'
    """
    parser = kind(prog="likewise train", usage=USAGE, description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--config", action="config", metavar="FILE", help="a YAML file; may be given several times")
    _add_named(parser, "data", request, "a name that `likewise datasets` lists; --data.help NAME shows its options")
    _add_group(parser, Split, "split")
    parser.add_argument(
        "--images",
        type=Literal[tuple(RECIPES)],
        help=f"how images are cropped and shown: {', '.join(RECIPES)} (cub128; glyphs for Glyphs)",
    )
    _add_group(parser, Model, "model")
    _add_named(
        parser,
        "loss",
        request,
        "a name that `likewise losses` lists; --loss.help NAME shows its options (MultiSimilarityLoss)",
    )
    parser.add_argument("--memory", type=Memory | None, help="compare with earlier batches, too (--memory.size 1024)")
    _add_named(
        parser,
        "sampler",
        request,
        "which images make a batch; --sampler.help NAME shows its options (PerClassSampler: 32 classes x 4)",
    )
    _add_group(parser, Optimizer, "optimizer")
    _add_group(parser, Schedule, "schedule")
    _add_group(parser, Plan, "plan")
    parser.add_argument(
        "--lens.every",
        type=int,
        default=0,
        help="steps between two looks at where the loss puts its weight, such as 50; 0 for none",
    )
    _add_named(parser, "lens.beside", request, "a second loss, whose gradient is compared with that of the loss")
    parser.add_argument("--seed", type=int, default=0, help="of everything that is left to chance")
    parser.add_argument("--out", type=str | None, help="the run's folder (default: runs/DATA-TRUNK-LOSS-NUMBER)")
    parser.add_argument(
        "--cache", type=str | None, help="where decoded images are kept (default: LIKEWISE_CACHE, or ~/.cache/likewise)"
    )
    parser.add_argument(
        "--hold", type=Hold | None, help="where pixels are during training (default: the first that they fit into)"
    )
    return parser


def _add_group(parser: Parser, settings: type, key: str) -> None:
    parser.add_class_arguments(settings, key)
    for action in parser._actions:
        if action.dest == key:
            action.help = SUPPRESS  # a file for one group is possible, and one for all is enough


def _add_named(parser: Parser, key: str, request: Request, help: str) -> None:
    words = tuple(key.split("."))
    kind, chosen = kind_of(words), request.chosen
    assert kind is not None
    for word in words:
        chosen = chosen.get(word, {}) if isinstance(chosen, dict) else {}
    skip = set(kind.filled)
    for depth, path in _classes(chosen):
        skip |= {"loss.init_args." * depth + name for name in needed(kind, imported(path))}
    parser.add_subclass_arguments(
        imported(kind.base), key, skip=skip, metavar="NAME", help=help, fail_untyped=False, as_group=len(words) == 1
    )


def _classes(tree: Any, depth: int = 0) -> Iterator[tuple[int, str]]:
    """The classes of a loss and of the losses inside it."""
    if isinstance(tree, dict) and isinstance(tree.get("class_path"), str):
        yield depth, tree["class_path"]
        inner = tree.get("init_args")
        yield from _classes(inner.get("loss") if isinstance(inner, dict) else None, depth + 1)


def configure(settings: Mapping[str, Any] | None = None, *, files: Sequence[str | Path] = ()) -> Tree:
    """A complete configuration from settings, which are named like the options of ``likewise train``.

    Args:
        settings: values by name, with dots for nesting; a class is given by its name or import path.
        files: YAML files, later ones over earlier ones; settings win over files.

    Examples:
        >>> config = configure({"data": "Glyphs", "loss": "CircleLoss", "loss.gamma": 64})
        >>> config["loss"]["class_path"], config["loss"]["init_args"]["gamma"]
        ('likewise.losses.CircleLoss', 64.0)
    """
    words = [word for file in files for word in ("--config", str(file))]
    words += [f"--{name}={_spell(value)}" for name, value in (settings or {}).items()]
    return parse_request(read_request(words))


def _spell(value: Any) -> str:
    """A value as a word of a command line."""
    return value if isinstance(value, str) else json.dumps(value)


def parse_request(request: Request, kind: type[Parser] = Parser) -> Tree:
    """The complete configuration that a command line asks for, in plain values.

    Examples:
        >>> from likewise.app.layers import read_request
        >>> parse_request(read_request(["--data", "Glyphs", "--loss.alpha", "3"]))["loss"]["init_args"]["alpha"]
        3.0
    """
    return _complete(_parsed(*_parse(request, kind)))


def dump_configuration(request: Request) -> str:
    """The configuration that a command line asks for as YAML, in the form that ``--config`` takes.

    Examples:
        >>> from likewise.app.layers import read_request
        >>> print(dump_configuration(read_request(["--data", "Glyphs"])))
        schema: 2
        data:
          class_path: likewise.data.Glyphs
        ...
    """
    return str(yaml.safe_dump(_parsed(*_parse(request, Parser)), sort_keys=False, allow_unicode=True))


def _parse(request: Request, kind: type[Parser]) -> tuple[Parser, Callable[[], Namespace]]:
    parser = make_parser(request, kind)
    below = ["--config", yaml.safe_dump(request.below)]
    return parser, lambda: parser.parse_args([*below, *request.flags])


def check(tree: Tree) -> Tree:
    """A configuration that was written down before, in any schema, checked and completed.

    Examples:
        >>> check({"data": {"class_path": "Glyphs"}, "loss": "CircleLoss"})["seed"]
        0
    """
    try:
        present = upgrade(tree)
    except ValueError as error:
        raise Mistake(str(error)) from error
    del present["schema"]
    resolved = with_paths(present)
    parser = make_parser(Request(resolved, (), resolved, resolved))
    return _complete(_parsed(parser, lambda: parser.parse_object(resolved)))


def _parsed(parser: Parser, parse: Callable[[], Namespace]) -> Tree:
    """A configuration as plain values."""
    try:
        tree: Tree = yaml.safe_load(parser.dump(parse(), skip_unset=False))
    except ArgumentError as error:
        raise error.__cause__ if isinstance(error.__cause__, Mistake) else Mistake(str(error)) from None
    tree.pop("config", None)
    return {"schema": SCHEMA, **tree}


def _complete(tree: Tree) -> Tree:
    """A configuration that says at least what is to be learned from what."""
    for key, example in (("data", "--data ImageFolder --data.root photos"), ("loss", "--loss CircleLoss")):
        if tree[key] is None:
            raise Mistake(f"--{key} must be given, such as {example}; `likewise {_LISTED[key]}` lists what there is")
    return tree


_LISTED = {"data": "datasets", "loss": "losses"}
