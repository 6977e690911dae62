"""What makes a comparison of trainings unfair: every setting in which they differ and that is no part of the method."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likewise.protocols.conditions import (
    ASPECTS,
    MODEL,
    UNKNOWN,
    WHY,
    Aspect,
    Description,
    Severity,
    at,
    configured_data,
    split_of,
)
from likewise.report import in_words
from likewise.train import Run


@dataclass(frozen=True)
class Difference:
    """Something in which trainings differ and that is no part of the method.

    Args:
        what: the setting.
        values: what it is, by name of the training or of the method.
        why: why it matters, in one sentence, with its source.
        severity: ``"unfair"``, or ``"note"`` for what is good to know and no reason not to compare.

    Examples:
        >>> print(Difference("embedding size", {"margin": 128, "triplet": 64, "n-pair": 64}, "More is better."))
        embedding size: 128 (margin), 64 (triplet, n-pair)
    """

    what: str
    values: Mapping[str, Any]
    why: str
    severity: Severity = "unfair"

    def __str__(self) -> str:
        shown: dict[str, list[str]] = {}
        for name, value in self.values.items():
            shown.setdefault(in_words(value), []).append(name)
        return f"{self.what}: " + ", ".join(f"{value} ({', '.join(names)})" for value, names in shown.items())


def described(
    run: Run | str | os.PathLike[str],
    *,
    rounds: int | None = None,
    searched: Sequence[str] = (),
    tuned_on_test: bool = False,
) -> dict[str, Any]:
    """All that a comparison must know of a run: its ``run.yaml``, and what happened to it.

    Args:
        run: a run, or its folder.
        rounds: how many settings were tried to find its hyper-parameters; ``None`` where that is not known.
        searched: which options were searched, such as ``"loss.alpha"`` and ``"optimizer.lr"``.
        tuned_on_test: whether anything was chosen by looking at test classes.

    Examples:
        >>> import tempfile
        >>> run = Run.create(tempfile.mkdtemp() + "/run", {"seed": 3})
        >>> described(run, rounds=50, searched=["loss.margin"])
        {'seed': 3, 'openings': [], 'ended': False, 'tuned_on_test': False,
         'search': {'rounds': 50, 'searched': ['loss.margin']}}
    """
    begun = run if isinstance(run, Run) else Run(run)
    said: dict[str, Any] = {**begun.description, "openings": begun.openings(), "ended": begun.finished}
    said["tuned_on_test"] = tuned_on_test
    if rounds is not None:
        said["search"] = {"rounds": rounds, "searched": list(searched)}
    return said


def unfair_differences(
    descriptions: Mapping[str, Description | Sequence[Description]],
) -> list[Difference]:
    """Every setting in which trainings differ and that is no part of the method.

    The loss, its miner, their hyper-parameters, the learning rates of the loss's own parameters and a memory of earlier
    batches are the method.  Everything else must be the same, also among the runs of one name; only seed and fold vary
    there.  What some descriptions say and others do not counts as different; what none says is noted.

    Args:
        descriptions: by name, a ``run.yaml`` as a dict or what `described` returns, or several of them: the seeds and
            folds of a method.

    Returns:
        The differences, unfair ones first.

    Examples:
        >>> model = {"trunk": "resnet50", "weights": "imagenet", "dim": 128, "pool": "avg"}
        >>> theirs = {"config": {"model": {**model, "trunk": "googlenet", "dim": 64}}}
        >>> for each in unfair_differences({"margin": {"config": {"model": model}}, "triplet": theirs})[:2]:
        ...     print(each, "|", each.why)
        trunk: resnet50 (margin), googlenet (triplet) | Accuracy differs between networks ... (the thesis, 3.5.1).
        embedding size: 128 (margin), 64 (triplet) | More dimensions probably raise accuracy (the thesis, 3.5.1).
    """
    runs = {name: _several(name, said) for name, said in descriptions.items()}
    if not runs:
        raise ValueError("descriptions must contain at least one training, but it is empty")
    found: list[Difference] = []
    silent: list[str] = []
    for aspect in ASPECTS:
        values = _values(aspect, runs)
        if all(each == UNKNOWN for several in values.values() for each in several):
            silent += [aspect.what] if aspect.severity == "unfair" and not aspect.derived else []
        elif _differ(aspect, values):
            found.append(Difference(aspect.what, _shown(aspect, values), aspect.why, aspect.severity))
    found = _explained(found, runs)
    found = [_searched(each, runs) for each in found] + _seeds(runs)
    if silent:
        said = dict.fromkeys(runs, ", ".join(silent))
        found.append(Difference(UNKNOWN, said, "What is not written down cannot be compared (our own rule).", "note"))
    return sorted(found, key=lambda each: each.severity == "note")


def _several(name: str, said: Description | Sequence[Description]) -> list[Description]:
    listed = [said] if isinstance(said, Mapping) else said
    if not isinstance(listed, Sequence) or not listed or not all(isinstance(each, Mapping) for each in listed):
        raise TypeError(f"descriptions[{name!r}] must be a run.yaml as a dict, or several, but it is {said!r}")
    return list(listed)


def _values(aspect: Aspect, runs: Mapping[str, list[Description]]) -> dict[str, list[Any]]:
    """What each run says, read in the way that the most of them allow."""
    ways = [{name: [read(run) for run in several] for name, several in runs.items()} for read in aspect.read]
    return min(ways, key=lambda way: sum(each == UNKNOWN for several in way.values() for each in several))


def _differ(aspect: Aspect, values: Mapping[str, list[Any]]) -> bool:
    frozen = {name: {_frozen(each) for each in several} for name, several in values.items()}
    if aspect.folds:
        return len({frozenset(each) for each in frozen.values()}) > 1
    if aspect.within:
        return any(len(each) > 1 for each in frozen.values())
    return len(set().union(*frozen.values())) > 1


def _frozen(value: Any) -> Any:
    """The same as something that can be put into a set: 1 is 1.0, a list is a tuple, a mapping is its items."""
    if isinstance(value, Mapping):
        return frozenset((str(key), _frozen(each)) for key, each in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _shown(aspect: Aspect, values: Mapping[str, list[Any]]) -> dict[str, Any]:
    """For each name its value, or a list of its values; of mappings only the keys that differ."""
    every = [each for several in values.values() for each in several]
    if all(isinstance(each, Mapping) for each in every):
        keys = list(dict.fromkeys(key for each in every for key in each))
        unequal = [key for key in keys if len({_frozen(each.get(key, UNKNOWN)) for each in every}) > 1]
        values = {
            name: [{key: each[key] for key in unequal if key in each} for each in several]
            for name, several in values.items()
        }
    shown: dict[str, Any] = {}
    for name, several in values.items():
        distinct = list({_frozen(each): each for each in several}.values())
        shown[name] = distinct[0] if len(distinct) == 1 else distinct
    return shown


def _explained(found: list[Difference], runs: Mapping[str, list[Description]]) -> list[Difference]:
    """Leave out what follows from another difference, or comes to the same."""
    names = {each.what for each in found}
    every = [run for several in runs.values() for run in several]
    marked = all(at(run, f"data.{part}.fingerprint") != UNKNOWN for run in every for part in ("train", "val"))
    drop: set[str] = set()
    if names & MODEL:
        drop.add("network as built")
    if "augmentation" in names and not _data_differs_beyond_pixels(runs):
        drop.add("validation images")
        found = [_of_other_size(each) for each in found]
    if marked and not names & {"training images", "validation images"}:
        drop.add("split")  # said in other words, and the same images
    return [each for each in found if each.what not in drop]


def _of_other_size(found: Difference) -> Difference:
    """A checksum is of pixels as they are stored, in the size that the augmentation wants."""
    if found.what != "training images":
        return found
    why = (
        "Checksums cannot be compared where images are stored in different sizes; all else is the same (our own rule)."
    )
    return Difference(found.what, found.values, why, "note")


def _data_differs_beyond_pixels(runs: Mapping[str, list[Description]]) -> bool:
    def counted(run: Description) -> Any:
        parts = [at(run, f"data.{part}") for part in ("train", "val")]
        kept = [
            {key: value for key, value in part.items() if key != "fingerprint"} if isinstance(part, Mapping) else part
            for part in parts
        ]
        return _frozen([*kept, configured_data(run), split_of(run)])

    return len({frozenset(counted(run) for run in several) for several in runs.values()}) > 1


_SEARCHABLE = {
    "learning rate": {"optimizer.lr", "optimizer.lrs.trunk", "optimizer.lrs.model"},
    "learning-rate multipliers": {"optimizer.lrs.trunk", "optimizer.lrs.head"},
}
"""The options that move a difference, as a search calls them."""


def _searched(found: Difference, runs: Mapping[str, list[Description]]) -> Difference:
    """A learning rate that was searched for every method, with the same effort, is no unfair difference."""
    every = [at(run, "search") for several in runs.values() for run in several]
    if found.what not in _SEARCHABLE or not all(isinstance(each, Mapping) for each in every):
        return found
    both = all(_SEARCHABLE[found.what] & set(each.get("searched", ())) for each in every)
    if not both or len({each.get("rounds") for each in every}) > 1:
        return found
    why = f"It was searched for every method, in {every[0].get('rounds')} rounds each (our own rule)."
    return Difference(found.what, found.values, why, "note")


def _seeds(runs: Mapping[str, list[Description]]) -> list[Difference]:
    seeds = {
        name: sorted({str(run.get("seed", at(run, "config.seed"))) for run in several})
        for name, several in runs.items()
    }
    counts = {name: len(each) for name, each in seeds.items()}
    if len(set(counts.values())) > 1:
        return [seed_difference(counts)]
    if len({tuple(each) for each in seeds.values()}) > 1:
        why = "Only runs with the same seeds can be compared pair by pair (our own rule)."
        return [Difference("seeds", seeds, why, "note")]
    return []


def seed_difference(counts: Mapping[str, int]) -> Difference:
    """The difference of methods that were repeated unequally often.

    Examples:
        >>> print(seed_difference({"margin": 10, "triplet": 1}))
        number of seeds: 10 (margin), 1 (triplet)
    """
    return Difference("number of seeds", dict(counts), WHY["number of seeds"])
