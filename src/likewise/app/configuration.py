"""The options of ``likewise train``: names, meanings and parsing."""

from __future__ import annotations

import json
from argparse import SUPPRESS, ArgumentError
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml
from jsonargparse import ArgumentParser
from torch import nn

from likewise.app.defaults import PHOTOGRAPHS, Tree, defaults_for, merged
from likewise.app.errors import UserError, sentence
from likewise.app.layers import stack, with_paths
from likewise.app.objects import import_class, kind_of, needed
from likewise.app.options import check_options, flag
from likewise.app.trust import check_names
from likewise.data import TRANSFORMS
from likewise.sanitize import hide_passwords
from likewise.schema import SCHEMA, upgrade
from likewise.train import OptimizerConfig, ScheduleConfig, TrainConfig


@dataclass(frozen=True)
class Split:
    """Which classes are held out.

    Args:
        validation: share of the training classes held out for validation (default: the data set's "val" part if it has
            one, else 0.1, at least two classes); 0 for none.
        test: share of the classes sealed for the test if the data set has no test part; 0 for none.
        seed: random seed of the choice of classes.
        folds: split the training classes into this number of folds, one of which is for validation, instead of a share.
        fold: the fold for validation, counted from 0.
        contiguous: split the classes in their order, as the reality check does, instead of at random.

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
        trunk: a name listed by `likewise trunks`, timm:NAME or transformers:NAME.
        weights: initial weights of the trunk: a published name, a file, or null for random initialization.
        dim: the size of the embeddings.
        pool: avg, max, avg+max or gem.
        head: linear, mlp or none.
        normalize: scale embeddings to unit length.
        freeze_bn: keep the trunk's batch norm layers fixed.
        layer_norm: normalize the pooled features before the head.
        freeze: "trunk" trains only the head, on features that are computed once, without augmentation.
        in_channels: 3, or 1 for grayscale (default: as the trunk expects).
        text: the text trunk, for PairTable: minilm (all-MiniLM-L6-v2) or ngrams (random vectors).

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
    freeze: Literal["trunk"] | None = None
    in_channels: int | None = None
    text: str | None = None


@dataclass(frozen=True)
class Memory:
    """A memory of earlier batches around the loss (XBM).

    Args:
        size: number of stored embeddings.
        warmup: number of first batches that are only stored.

    Examples:
        >>> Memory(1024).warmup
        0
    """

    size: int
    warmup: int = 0


@dataclass(frozen=True)
class Language:
    """How class names are embedded, for the loss LanguageGuidance.

    Args:
        encoder: a sentence-transformers model, by its name or folder; (default: all-MiniLM-L6-v2 from its package).
        templates: sentences with {} in place of the name; the embedding is the mean over them.

    Examples:
        >>> Language().templates
        ('a photo of a {}',)
    """

    encoder: str | None = None
    templates: tuple[str, ...] = ("a photo of a {}",)


@dataclass(frozen=True)
class Setting:
    """A setting of a configuration, or a group of them.

    Args:
        hint: its type; a dataclass is a group of settings.
        help: its description; a group uses its docstring.
        default: the default value.

    Examples:
        >>> SETTINGS["seed"].default
        0
    """

    hint: Any
    help: str = ""
    default: Any = None


SETTINGS: Mapping[str, Setting] = {
    "data": Setting(Any, "a name listed by `likewise datasets`; --data.help NAME shows its options"),
    "split": Setting(Split),
    "transform": Setting(
        Literal[tuple(TRANSFORMS)],
        f"crops, augmentation and scaling of images: {', '.join(TRANSFORMS)} (cub128; glyphs for Glyphs)",
    ),
    "scales": Setting(
        list[float] | None,
        "scale each training image by a random one of these factors, such as '[1.0, 1.25, 1.5]'",
    ),
    "model": Setting(Model),
    "loss": Setting(
        Any, "a name listed by `likewise losses`; --loss.help NAME shows its options (MultiSimilarityLoss)"
    ),
    "memory": Setting(Memory | None, "also compare with earlier batches (--memory.size 1024)"),
    "language": Setting(
        Language | None,
        "how class names are embedded (--language.encoder NAME --language.templates '[a picture of {}]')",
    ),
    "sampler": Setting(
        Any,
        "how batches are composed; --sampler.help NAME shows its options "
        "(PerClassSampler: 32 classes x 4 images, or all classes if there are fewer)",
    ),
    "optimizer": Setting(OptimizerConfig),
    "schedule": Setting(ScheduleConfig),
    "train": Setting(TrainConfig),
    "lens.every": Setting(
        int, "steps between two recordings of the loss's pair weights, such as 50; 0 for none", default=0
    ),
    "lens.compare_with": Setting(nn.Module | None, "a second loss whose gradient is compared with the loss's"),
    "seed": Setting(int, "random seed of the whole run", default=0),
    "out": Setting(str | None, "the run's folder (default: runs/DATA-TRUNK-LOSS-NUMBER)"),
    "cache": Setting(str | None, "folder of decoded images (default: LIKEWISE_CACHE, or ~/.cache/likewise)"),
    "cache_on": Setting(
        Literal["gpu", "ram", "disk"] | None,
        "where decoded images are held during training: gpu, ram or disk (default: the first that has room)",
    ),
}
"""All settings by name, in the order in which they are printed."""

HINTS: Mapping[str, Any] = {
    **{name: each.hint for name, each in SETTINGS.items() if "." not in name},
    "lens": {name.partition(".")[2]: each.hint for name, each in SETTINGS.items() if name.startswith("lens.")},
}
"""The types of all settings, nested like a configuration."""

CLASSES = {key: PHOTOGRAPHS[key] for key in ("loss", "sampler")}
"""The classes whose options can be given without naming the class."""


def add_settings(parser: ArgumentParser, tree: Tree) -> None:
    """Add every setting to a parser.

    Args:
        parser: jsonargparse's parser.
        tree: a configuration: arguments of its classes that are derived from other settings are not options.

    Examples:
        >>> parser = ArgumentParser()
        >>> add_settings(parser, {})
        >>> parser.get_defaults().train.epochs
        20
    """
    _add_settings(parser, _skipped(tree))


def _add_settings(parser: ArgumentParser, skipped: Iterable[tuple[str, frozenset[str]]]) -> None:
    left_out = dict(skipped)
    for name, setting in SETTINGS.items():
        path = tuple(name.split("."))
        kind = kind_of(path)
        if kind is not None:
            parser.add_subclass_arguments(
                import_class(kind.base),
                name,
                skip=set(left_out[name]),
                metavar="NAME",
                help=setting.help,
                fail_untyped=False,
                as_group=len(path) == 1,
            )
        elif is_dataclass(setting.hint):
            add_group(parser, name, setting.hint)
        else:
            parser.add_argument(flag(path), type=setting.hint, default=setting.default, help=setting.help)


def add_group(parser: ArgumentParser, key: str, thing: Any, left_out: Collection[str] = ()) -> None:
    """Add the arguments of a class to a parser, as options below a key.

    Examples:
        >>> parser = ArgumentParser()
        >>> add_group(parser, "split", Split, left_out={"seed"})
        >>> parser.get_defaults().split.test
        0.2
    """
    parser.add_class_arguments(thing, key, skip=set(left_out), fail_untyped=False)
    for action in parser._actions:
        if action.dest == key:
            action.help = SUPPRESS  # its options are listed one by one


Skipped = tuple[tuple[str, frozenset[str]], ...]


def _skipped(tree: Tree) -> Skipped:
    """Arguments of the classes in a configuration that are not options, by the name of the setting."""
    found = []
    for name in SETTINGS:
        path = tuple(name.split("."))
        kind, chosen = kind_of(path), tree
        if kind is None:
            continue
        for word in path:
            chosen = chosen.get(word, {}) if isinstance(chosen, dict) else {}
        skip = set(kind.filled)
        for place, each in _classes(chosen):
            skip |= {place + argument for argument in needed(kind, import_class(each))}
        found.append((name, frozenset(skip)))
    return tuple(found)


@lru_cache(maxsize=8)
def _parser(skipped: Skipped) -> ArgumentParser:
    """A parser of configurations; creating one takes longer than parsing."""
    parser = ArgumentParser(exit_on_error=False)
    _add_settings(parser, skipped)
    return parser


def _classes(tree: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """The classes of a loss and of the losses inside it, keyed by the prefix of their arguments."""
    if isinstance(tree, dict) and isinstance(tree.get("class_path"), str):
        yield place, tree["class_path"]
        inner = tree.get("init_args") or {}
        for name in ("loss", "other"):
            yield from _classes(inner.get(name), f"{place}{name}.init_args.")


def configure(
    settings: Mapping[str, Any] | None = None, *, files: Sequence[str | Path] = (), allow: Collection[str] = ()
) -> Tree:
    """A complete configuration from settings, which are named like those of a configuration file.

    Args:
        settings: values by name, with dots for nesting; a class is given by its name or import path.
        files: YAML files, later ones override earlier ones; settings override files.
        allow: packages, modules and classes that may be imported in addition to the listed ones: ``("my_package",)``.

    Examples:
        >>> config = configure({"data": "Glyphs", "loss": "CircleLoss", "loss.gamma": 64})
        >>> config["loss"]["class_path"], config["loss"]["init_args"]["gamma"]
        ('likewise.losses.CircleLoss', 64.0)
    """
    pairs = [(tuple(name.split(".")), value) for name, value in (settings or {}).items()]
    return parse_request(stack(files, pairs, allow), allow)


def parse_request(given: Tree, allow: Collection[str] = ()) -> Tree:
    """The complete configuration for the given files and flags, as plain values.

    Examples:
        >>> from likewise.app.layers import read_request
        >>> parse_request(read_request(["--data", "Glyphs", "--loss.alpha", "3"]))["loss"]["init_args"]["alpha"]
        3.0
    """
    return _require(complete(given, allow))


def complete(given: Tree, allow: Collection[str] = ()) -> Tree:
    """Check the settings of files and flags and merge them over the defaults; data may be missing.

    Examples:
        >>> complete({})["model"]["trunk"]
        'efficientnet_lite0'
    """
    check_names(given, allow)
    checked = check_options(merged(CLASSES, given), HINTS)
    return _parse(merged(defaults_for(checked), checked), allow)


def dump_configuration(given: Tree, allow: Collection[str] = ()) -> str:
    """The configuration of files and flags as YAML, as ``--config`` reads it.

    Examples:
        >>> from likewise.app.layers import read_request
        >>> print(dump_configuration(read_request(["--data", "Glyphs"])))
        schema: 2
        data:
          class_path: likewise.data.Glyphs
        ...
    """
    return str(yaml.safe_dump(complete(given, allow), sort_keys=False, allow_unicode=True))


def check(tree: Tree, allow: Collection[str] = ()) -> Tree:
    """Check and complete a stored configuration of any schema.

    Examples:
        >>> check({"data": {"class_path": "Glyphs"}, "loss": "CircleLoss"})["seed"]
        0
    """
    try:
        present = upgrade(tree)
    except ValueError as error:
        raise UserError(str(error)) from error
    del present["schema"]
    return _require(_parse(check_options(with_paths(present, allow=allow), HINTS), allow))


def _parse(tree: Tree, allow: Collection[str]) -> Tree:
    """A configuration with every default in it, as plain values."""
    check_names(tree, allow)  # jsonargparse imports every class in the configuration
    _refuse_passwords(tree, ())
    skipped = _skipped(tree)
    text = None if allow else _as_json(tree)  # a user's class may change under the same name
    try:
        dumped = _dump(tree, skipped) if text is None else _dump_known(text, skipped)
    except (ArgumentError, TypeError, ValueError) as error:
        raise UserError(f"the configuration is not valid: {sentence(error)}") from error
    parsed: Tree = yaml.load(dumped, Loader=_LOADER)
    return {"schema": SCHEMA, **parsed}


def _as_json(tree: Tree) -> str | None:
    """A tree as JSON, or None if JSON cannot represent it exactly."""
    try:
        text = json.dumps(tree)
    except (TypeError, ValueError):
        return None
    return text if json.loads(text) == tree else None


@lru_cache(maxsize=64)
def _dump_known(text: str, skipped: Skipped) -> str:
    """Parse a configuration once: a study uses the same ones many times."""
    return _dump(json.loads(text), skipped)


def _dump(tree: Tree, skipped: Skipped) -> str:
    """A configuration with every default in it, as YAML."""
    parser = _parser(skipped)
    return str(parser.dump(parser.parse_object(tree), skip_unset=False))


def _refuse_passwords(tree: Any, path: tuple[str, ...]) -> None:
    """Refuse a URL with a password: configurations are written to files."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            _refuse_passwords(value, path if key == "init_args" else (*path, str(key)))
    elif isinstance(tree, str) and hide_passwords(tree) != tree:
        raise UserError(f"{flag(path)} must not be a URL with a password: it would be written to run.yaml")


def _require(tree: Tree) -> Tree:
    """Check that a configuration has data and a loss."""
    for key, example in (("data", "--data ImageFolder --data.root photos"), ("loss", "--loss CircleLoss")):
        if tree[key] is None:
            raise UserError(f"--{key} must be given, such as {example}; `likewise {_LISTED[key]}` lists them")
    return tree


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader if PyYAML has it
_LISTED = {"data": "datasets", "loss": "losses"}
