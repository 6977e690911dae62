"""What a script is written for: an entry of the catalog, a loss, a class of losses, or a function of similarities."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from likewise.analysis.catalog import Entry
from likewise.analysis.weights import Loss
from likewise.formula import SIMILARITIES, Hyper, SimilarityLike
from likewise.losses import PairLoss, ProxyLoss

Source = Entry | Loss | type[PairLoss] | type[ProxyLoss]


@dataclass(frozen=True)
class Adjustable:
    """A hyper-parameter of a loss, or of its miner.

    Args:
        hyper: what is known of it.
        value: what it is by default.

    Examples:
        >>> Adjustable(Hyper("a margin", search=(0.0, 1.0)), 2.0).range()
        (0.0, 2.0)
    """

    hyper: Hyper
    value: float

    @property
    def whole(self) -> bool:
        """Whether it is a whole number."""
        return isinstance(self.value, int)

    def range(self) -> tuple[float, float]:
        """Where a slider goes: the range of a search, else the limits, else around the value; the value is inside."""
        known = self.hyper
        value = float(self.value)
        around = sorted((value / 4.0, value * 4.0)) if value else (-1.0, 1.0)
        limits = tuple(
            next((limit for limit in side if limit is not None), default)
            for side, default in zip(((known.at_least, known.above), (known.at_most, known.below)), around, strict=True)
        )
        least, most = known.search or limits
        least, most = min(least, value), max(most, value)
        step = (most - least) / 1000.0
        least = least if known.allows(least) else least + step  # a limit that may not be reached
        most = most if known.allows(most) else most - step
        return (round(least), round(most)) if self.whole else (least, most)


@dataclass(frozen=True, eq=False)
class Subject:
    """A loss that can be made with any hyper-parameters, for any number of classes.

    Args:
        name: what it is called.
        documented: the class or function whose docstring describes it.
        has_proxies: whether it compares samples with proxies of its own.
        similarity: how it compares.
        miner: the class of its miner, if it has one.
        adjustable: its hyper-parameters; those of a miner that it was given are called ``miner.…``.
        build: makes it, in float64, from the numbers of classes and dimensions and from hyper-parameters.

    Examples:
        >>> subject_of(lambda s, labels: s.sum(), name="Mine").adjustable
        {}
    """

    name: str
    documented: Any
    has_proxies: bool
    similarity: SimilarityLike
    miner: str | None
    adjustable: Mapping[str, Adjustable]
    build: Callable[[int, int, Mapping[str, float]], Loss]

    def defaults(self) -> dict[str, float]:
        """Every hyper-parameter as it is by default."""
        return {name: each.value for name, each in self.adjustable.items()}


def subject_of(source: Source, *, name: str | None = None, similarity: SimilarityLike = "cosine") -> Subject:
    """Whatever can be looked at, as one thing.

    Args:
        source: an entry of the catalog; a loss of the library's kind, or its class; any module that takes embeddings
            and labels; or a function of a similarity matrix and labels.
        name: what to call it.
        similarity: how embeddings are compared, for a function; losses of the library know.

    Examples:
        >>> from likewise.losses import TripletLoss
        >>> list(subject_of(TripletLoss).adjustable)
        ['margin']
    """
    if isinstance(source, type) and issubclass(source, PairLoss | ProxyLoss):
        source = Entry(source.__name__, source)
    if isinstance(source, Entry):
        return _of_entry(source, name or source.name)
    called: str = name or getattr(source, "__name__", None) or type(source).__name__
    if isinstance(source, nn.Module):
        return _of_module(source, called)
    if not callable(source):
        raise TypeError(
            f"source must be a loss, an entry of the catalog or a function of similarities and labels, "
            f"but it is a {type(source).__name__}"
        )
    function: Any = source
    return Subject(called, function, False, similarity, None, {}, lambda classes, dimensions, values: function)


def _of_entry(entry: Entry, name: str) -> Subject:
    example = entry.make(num_classes=2, embedding_dim=2)
    kind: Any = entry.kind
    own = {field.name: field.default for field in dataclasses.fields(kind) if "hyper" in field.metadata}
    given = dict(entry.options)
    adjustable = _adjustable(example, own) | (_of_miner(example) if "miner" in given else {})

    def build(classes: int, dimensions: int, values: Mapping[str, float]) -> Loss:
        with _in_float64():  # a number that becomes a parameter keeps its digits
            loss = entry.make(classes, dimensions, **{key: value for key, value in values.items() if key in own})
        _set_miner(loss, values)
        return loss.double()

    return Subject(name, entry.kind, entry.has_proxies, example.similarity, _miner(example), adjustable, build)


def _of_module(loss: nn.Module, name: str) -> Subject:
    known = dataclasses.is_dataclass(loss) and isinstance(loss, PairLoss | ProxyLoss)
    own = {}
    if known:
        hypers = [field.name for field in dataclasses.fields(loss) if "hyper" in field.metadata]  # type: ignore[arg-type]
        own = {key: getattr(loss, key) for key in hypers if isinstance(getattr(loss, key), int | float)}
    adjustable = (_adjustable(loss, own) | _of_miner(loss)) if known else {}

    def build(classes: int, dimensions: int, values: Mapping[str, float]) -> Loss:
        made: Any = copy.deepcopy(loss)
        vars(made).pop("_declaration", None)
        if isinstance(made, ProxyLoss):  # as many proxies as there are classes; which ones, whoever asks will say
            made.num_classes, made.embedding_dim = classes, dimensions
            made.proxies = nn.Parameter(torch.empty(classes * made.proxies_per_class, dimensions))
            with torch.no_grad():
                made.initialize(made.proxies)
        for key in values.keys() & own.keys():
            setattr(made, key, values[key])
        _set_miner(made, values)
        result: Loss = made.double()
        return result

    has_proxies, similarity = isinstance(loss, ProxyLoss), getattr(loss, "similarity", "cosine")
    return Subject(name, type(loss), has_proxies, similarity, _miner(loss), adjustable, build)


@contextmanager
def _in_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _adjustable(of: Any, values: Mapping[str, Any], prefix: str = "") -> dict[str, Adjustable]:
    declared = {field.name: field.metadata["hyper"] for field in dataclasses.fields(of) if "hyper" in field.metadata}
    return {prefix + name: Adjustable(declared[name], value) for name, value in values.items()}


def _of_miner(loss: Any) -> dict[str, Adjustable]:
    miner = getattr(loss, "miner", None)
    if not dataclasses.is_dataclass(miner):
        return {}
    hypers = [field.name for field in dataclasses.fields(miner) if "hyper" in field.metadata]
    return _adjustable(miner, {key: getattr(miner, key) for key in hypers}, "miner.")


def _miner(loss: Any) -> str | None:
    miner = getattr(loss, "miner", None)
    return None if miner is None else type(miner).__name__


def _set_miner(loss: Any, values: Mapping[str, float]) -> None:
    changed = {name.removeprefix("miner."): value for name, value in values.items() if name.startswith("miner.")}
    if changed:
        loss.miner = dataclasses.replace(loss.miner, **changed)


def similarity_name(similarity: SimilarityLike) -> str:
    """The name of a similarity, where it has one.

    Examples:
        >>> from likewise.formula import Cosine, Dot
        >>> similarity_name(Cosine()), similarity_name(Dot(normalize=True))
        ('cosine', 'Dot(normalize=True)')
    """
    if isinstance(similarity, str):
        return similarity
    return next((name for name, known in SIMILARITIES.items() if known == similarity), repr(similarity))
