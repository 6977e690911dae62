"""Find the differences between runs that make a comparison unfair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from likewise.protocols.conditions import (
    NETWORK,
    NOT_RECORDED,
    OUTSIDE,
    RULES,
    Conditions,
    ImageSet,
    Rule,
    Severity,
)
from likewise.report import in_words


@dataclass(frozen=True)
class Difference:
    """A condition in which runs differ.

    Args:
        what: the condition.
        values: its value, by name of the run or the method.
        why: why it matters, in one sentence, with its source.
        severity: ``"unfair"``, or ``"note"`` for a difference that does not forbid the comparison.

    Examples:
        >>> print(Difference("embedding size", {"margin": 128, "triplet": 64, "n-pair": 64}, "More is better."))
        embedding size: 128 (margin), 64 (triplet, n-pair)
    """

    what: str
    values: Mapping[str, Any]
    why: str
    severity: Severity = "unfair"

    def __str__(self) -> str:
        names: dict[str, list[str]] = {}
        for name, value in self.values.items():
            names.setdefault(in_words(value), []).append(name)
        return f"{self.what}: " + ", ".join(f"{value} ({', '.join(each)})" for value, each in names.items())


def unfair_differences(conditions: Mapping[str, Conditions | Sequence[Conditions]]) -> list[Difference]:
    """List all conditions in which runs differ.

    All conditions must be equal, also between runs of the same name, which differ only in seed and fold.  A condition that
    some runs record and others do not counts as different; one that no run records is noted.

    Args:
        conditions: the conditions of a run, or of several runs (the seeds and folds of a method), by name.

    Returns:
        The differences, unfair ones first.

    Examples:
        >>> margin = Conditions(trunk="resnet50", pretraining="imagenet", embedding_size=128, pooling="avg")
        >>> triplet = replace(margin, trunk="googlenet", embedding_size=64)
        >>> for each in unfair_differences({"margin": margin, "triplet": triplet})[:2]:
        ...     print(each, "|", each.why)
        trunk: resnet50 (margin), googlenet (triplet) | Accuracy differs between networks ... (the thesis, 3.5.1).
        embedding size: 128 (margin), 64 (triplet) | More dimensions probably raise accuracy (the thesis, 3.5.1).
    """
    runs = {name: _list(name, each) for name, each in conditions.items()}
    if not runs:
        raise ValueError("conditions must contain at least one run, but it is empty")
    differences: list[Difference] = []
    absent: list[str] = []
    for name, rule in RULES.items():
        values = _values(name, rule, runs)
        if all(each is NOT_RECORDED for several in values.values() for each in several):
            absent += [rule.what] if rule.severity == "unfair" and not rule.is_derived else []
        elif _differ(rule, values):
            differences.append(Difference(rule.what, _summarize(values), rule.why, rule.severity))
    differences = _drop_consequences(differences, runs)
    differences = [_excuse_searched(each, runs) for each in differences] + _seeds(runs)
    if absent:
        why = "Settings that are not recorded cannot be compared (our own rule)."
        differences.append(Difference(NOT_RECORDED, dict.fromkeys(runs, ", ".join(absent)), why, "note"))
    return sorted(differences, key=lambda each: each.severity == "note")


def _list(name: str, conditions: Conditions | Sequence[Conditions]) -> list[Conditions]:
    several = [conditions] if isinstance(conditions, Conditions) else conditions
    if not isinstance(several, Sequence) or not several or not all(isinstance(each, Conditions) for each in several):
        raise TypeError(f"conditions[{name!r}] must be a Conditions or a list of them, but it is {conditions!r}")
    return list(several)


def _values(name: str, rule: Rule, runs: Mapping[str, list[Conditions]]) -> dict[str, list[Any]]:
    """Return the values of a condition for all runs, from the field that most of them record."""
    choices = [
        {method: [getattr(each, source) for each in several] for method, several in runs.items()}
        for source in (name, rule.fallback)
        if source is not None
    ]
    return min(choices, key=lambda one: sum(each is NOT_RECORDED for several in one.values() for each in several))


def _differ(rule: Rule, values: Mapping[str, list[Any]]) -> bool:
    distinct = {name: {_hashable(each) for each in several} for name, several in values.items()}
    if rule.scope == "method":
        return len({frozenset(each) for each in distinct.values()}) > 1
    if rule.scope == "name":
        return any(len(each) > 1 for each in distinct.values())
    return len(set().union(*distinct.values())) > 1


def _hashable(value: Any) -> Any:
    """Convert a value to an equal one that can be hashed: a list to a tuple, a mapping to its items."""
    if isinstance(value, Mapping):
        return frozenset((str(key), _hashable(each)) for key, each in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def _summarize(values: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return the value, or a list of values, of each name; for mappings only the keys that differ."""
    every = [each for several in values.values() for each in several]
    if all(isinstance(each, Mapping) for each in every):
        keys = list(dict.fromkeys(key for each in every for key in each))
        unequal = [key for key in keys if len({_hashable(each.get(key, NOT_RECORDED)) for each in every}) > 1]
        values = {
            name: [{key: each[key] for key in unequal if key in each} for each in several]
            for name, several in values.items()
        }
    shown: dict[str, Any] = {}
    for name, several in values.items():
        distinct = list({_hashable(each): _to_plain(each) for each in several}.values())
        shown[name] = distinct[0] if len(distinct) == 1 else distinct
    return shown


def _to_plain(value: Any) -> Any:
    """Convert a value to types of JSON."""
    if isinstance(value, ImageSet):
        return str(value)
    return ", ".join(value) or "none" if isinstance(value, tuple) else value


def _drop_consequences(differences: list[Difference], runs: Mapping[str, list[Conditions]]) -> list[Difference]:
    """Remove differences that follow from others or are equivalent to them."""
    names = {each.what for each in differences}
    every = [each for several in runs.values() for each in several]
    have_checksums = all(
        isinstance(part, ImageSet) for each in every for part in (each.training_images, each.validation_images)
    )
    drop: set[str] = set()
    if names & NETWORK:
        drop.add(RULES["network"].what)
    if RULES["augmentation"].what in names and not _data_differ_beyond_pixels(runs):
        drop.add(RULES["validation_images"].what)
        differences = [_excuse_checksum(each) for each in differences]
    if have_checksums and not names & {RULES["training_images"].what, RULES["validation_images"].what}:
        drop.add(RULES["split"].what)  # other descriptions of the same images
    return [each for each in differences if each.what not in drop]


def _excuse_checksum(difference: Difference) -> Difference:
    """Turn a difference of checksums into a note: stored pixels have the size that the augmentation needs."""
    if difference.what != RULES["training_images"].what:
        return difference
    why = "Checksums of images that are stored in different sizes cannot be compared; all else is equal (our own rule)."
    return replace(difference, why=why, severity="note")


def _data_differ_beyond_pixels(runs: Mapping[str, list[Conditions]]) -> bool:
    def without_checksums(each: Conditions) -> Any:
        parts = [
            replace(part, fingerprint="") if isinstance(part, ImageSet) else part
            for part in (each.training_images, each.validation_images)
        ]
        return _hashable([*parts, each.data_set, each.split])

    return len({frozenset(map(without_checksums, several)) for several in runs.values()}) > 1


def _excuse_searched(difference: Difference, runs: Mapping[str, list[Conditions]]) -> Difference:
    """Turn the difference of a condition into a note if it was searched for all methods with the same number of rounds."""
    every = [each for several in runs.values() for each in several]
    is_searched = all(isinstance(each.searched, frozenset) and difference.what in each.searched for each in every)
    if not is_searched or len({each.search_budget for each in every}) > 1:
        return difference
    why = f"It was searched for every method, in {every[0].search_budget} rounds each (our own rule)."
    return replace(difference, why=why, severity="note")


def _seeds(runs: Mapping[str, list[Conditions]]) -> list[Difference]:
    seeds = {name: sorted({str(each.seed) for each in several}) for name, several in runs.items()}
    counts = {name: len(each) for name, each in seeds.items()}
    if len(set(counts.values())) > 1:
        return [seed_difference(counts)]
    if len({tuple(each) for each in seeds.values()}) > 1:
        why = "Only runs with the same seeds can be compared pair by pair (our own rule)."
        return [Difference("seeds", seeds, why, "note")]
    return []


def seed_difference(counts: Mapping[str, int]) -> Difference:
    """Return the difference between methods with different numbers of seeds.

    Examples:
        >>> print(seed_difference({"margin": 10, "triplet": 1}))
        number of seeds: 10 (margin), 1 (triplet)
    """
    return Difference("number of seeds", dict(counts), OUTSIDE["number of seeds"])
