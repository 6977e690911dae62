"""Strings to objects: the table of classes that a configuration can name, and how they are built."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from likewise.app.errors import UserError, making, nearest
from likewise.app.trust import check_names


@dataclass(frozen=True)
class Kind:
    """A kind of class that a configuration can name.

    Args:
        what: the word for one.
        room: the package that exports them.
        base: the required base class, also of a user's class, by its import path.
        left_out: exports that are not of this kind, or cannot be written in a configuration.
        filled: arguments of their constructors that are always derived from other settings.
        needed: arguments that are derived if the constructor requires them.

    Examples:
        >>> names = KINDS["loss"].names()
        >>> "CircleLoss" in names, "PairLoss" in names
        (True, False)
    """

    what: str
    room: str
    base: str
    left_out: frozenset[str] = frozenset()
    filled: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()

    def names(self) -> list[str]:
        """Every name of the kind."""
        room = importlib.import_module(self.room)
        return [each for each in room.__all__ if each not in self.left_out and self.holds(getattr(room, each))]

    def holds(self, thing: object) -> bool:
        """Whether something is a class of the kind that objects can be made of."""
        base = import_class(self.base)
        return inspect.isclass(thing) and issubclass(thing, base) and not inspect.isabstract(thing)


KINDS: Mapping[str, Kind] = {
    "data": Kind(
        "data set",
        "likewise.data",
        "likewise.data.ImageDataset",
        # a cache wraps a data set, and plain files need tensors; the others read from disk
        left_out=frozenset({"ImageCache", "ImageFiles"}),
        filled=frozenset({"split", "transform"}),
    ),
    "loss": Kind(
        "loss",
        "likewise.losses",
        "torch.nn.Module",
        # bases; what takes objects that YAML cannot write; what no model could be trained with alone; what takes more than
        # embeddings and labels: scores, a second view, a hierarchy, a guide
        left_out=frozenset(
            # a training gathers by itself, and its checkpoints hold one process's proxies
            {
                "AnglELoss",
                "CSLLoss",
                "CoSENTLoss",
                "CrossBatchMemory",
                "EmbeddingNorm",
                "Gathered",
                "GuideMasked",
                "PairLoss",
                "ProxyLoss",
                "ShardedProxies",
                "VICRegLoss",
                "WeightedPairLoss",
                "WeightedSum",
                "ZeroMean",
            }
        ),
        needed=frozenset({"num_classes", "embedding_dim", "class_embeddings"}),
    ),
    "miner": Kind("miner", "likewise.miners", "likewise.miners.Miner"),
    "sampler": Kind(
        "sampler",
        "likewise.data",
        "torch.utils.data.Sampler",
        left_out=frozenset({"MultiLabelSampler"}),  # it needs a matrix of tags
        filled=frozenset({"labels", "categories", "seed", "rank", "world_size"}),
    ),
}
"""Everything that a configuration gives by name, by the last word of its key: ``loss``, ``loss.miner``, ``loss.loss``."""

PARTS = (
    Kind("similarity", "likewise.formula", "likewise.formula.Similarity"),
    Kind("reduction", "likewise.formula", "likewise.formula.ClassWeighted"),
    Kind("reduction", "likewise.formula", "likewise.formula.Thresholded"),
)
"""Other allowed types of a loss's arguments."""


def kind_of(path: tuple[str, ...]) -> Kind | None:
    """What a key gives by name: ``loss``, and ``miner``, ``loss`` or ``other`` inside it; ``lens.compare_with`` is a loss, too.

    Examples:
        >>> kind_of(("loss", "miner")).what, kind_of(("lens", "compare_with")).what, kind_of(("train", "epochs"))
        ('miner', 'loss', None)
    """
    if path[:2] == ("lens", "compare_with"):
        path = ("loss", *path[2:])
    inside = len(path) == 1 or (path[0] == "loss" and path[-1] in ("loss", "miner", "other"))
    name = "loss" if path[-1] == "other" and len(path) > 1 else path[-1]
    return KINDS.get(name) if inside and (len(path) > 1 or name != "miner") else None


def import_class(path: str) -> Any:
    """Import the object of an import path; a module that is not installed is looked up in the current folder.

    This runs the module.  Paths of a configuration are checked first, by `likewise.app.trust.check_names`.

    Examples:
        >>> import_class("likewise.losses.CircleLoss").__name__
        'CircleLoss'
    """
    module, _, name = path.rpartition(".")
    _find_here(module.partition(".")[0])
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        raise UserError(f"{module} has no {name}{nearest(name, vars(sys.modules[module]))}") from None


def _find_here(package: str) -> None:
    """Append the current folder to ``sys.path`` if the package is not found elsewhere."""
    here = os.getcwd()
    if package not in sys.modules and here not in sys.path and importlib.util.find_spec(package) is None:
        sys.path.append(here)  # last, so that its files do not shadow installed modules


def resolve(kind: Kind, name: str, allow: Collection[str] = ()) -> str:
    """The import path of a name: a listed class, or the allowed import path of another one.

    Args:
        kind: the required kind.
        name: a listed name, or an import path.
        allow: packages, modules and classes that may be imported in addition to the listed ones.

    Examples:
        >>> resolve(KINDS["loss"], "CircleLoss")
        'likewise.losses.CircleLoss'
        >>> resolve(KINDS["loss"], "MultiSimilartyLoss")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no loss MultiSimilartyLoss; did you mean MultiSimilarityLoss?
    """
    if "." not in name:
        names = kind.names()
        if name in names:
            return f"{kind.room}.{name}"
        if name in kind.left_out:
            raise UserError(f"{kind.room}.{name} cannot be used in a configuration, only in Python")
        hint = nearest(name, names) or f" (give your own class by its import path, my_package.{name})"
        raise UserError(f"there is no {kind.what} {name}{hint}")
    if name.startswith(f"{kind.room}.") and name.rpartition(".")[2] in kind.left_out:
        raise UserError(f"{name} cannot be used in a configuration, only in Python")
    check_names({kind.what: {"class_path": name}}, allow)
    with making(f"the {kind.what} {name}"):
        thing = import_class(name)
    if not kind.holds(thing):
        raise UserError(f"{name} must be a class derived from {kind.base}, but it is {_described(thing)}")
    return name


def _described(thing: object) -> str:
    if inspect.isabstract(thing):
        return "an abstract class"
    return f"the class {thing.__qualname__}" if inspect.isclass(thing) else f"a {type(thing).__name__}"


def make(kind: Kind, spec: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    """Build an object from its class path and arguments, including nested objects.

    Args:
        kind: its kind, which defines the arguments that are filled in.
        spec: ``class_path`` and ``init_args``, as a configuration has them.
        values: what is filled in.

    Examples:
        >>> spec = {"class_path": "likewise.losses.ProxyAnchorLoss", "init_args": {"margin": 0.2}}
        >>> make(KINDS["loss"], spec, {"num_classes": 3, "embedding_dim": 4})
        ProxyAnchorLoss(num_classes=3, embedding_dim=4, margin=0.2, alpha=32.0)
    """
    made = import_class(spec["class_path"])
    if not any(each.holds(made) for each in (kind, *KINDS.values(), *PARTS)):
        bases = ", ".join(dict.fromkeys(each.base for each in (kind, *KINDS.values(), *PARTS)))
        raise TypeError(
            f"{spec['class_path']} must be a class derived from one of {bases}, but it is {_described(made)}"
        )
    arguments = {
        key: make(kind, value, values) if isinstance(value, Mapping) and "class_path" in value else value
        for key, value in (spec.get("init_args") or {}).items()
    }
    taken = inspect.signature(made).parameters
    filled = [*needed(kind, made), *(name for name in kind.filled if name in taken)]
    missing = [name for name in filled if name not in values and taken[name].default is inspect.Parameter.empty]
    if missing:
        raise ValueError(f"{made.__name__} needs {missing[0]}, which this data set does not provide")
    return made(**{name: values[name] for name in filled if name in values}, **arguments)


def needed(kind: Kind, thing: Any) -> list[str]:
    """The arguments that are filled in because a class requires them.

    Examples:
        >>> from likewise.losses import MarginLoss, ProxyNCALoss
        >>> needed(KINDS["loss"], ProxyNCALoss), needed(KINDS["loss"], MarginLoss)
        (['num_classes', 'embedding_dim'], [])
    """
    taken = inspect.signature(thing).parameters.values()
    return [each.name for each in taken if each.name in kind.needed and each.default is inspect.Parameter.empty]
