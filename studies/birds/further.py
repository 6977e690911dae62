"""How far one configuration goes on birds: what moves it is tried one by one on validation classes, then all that helped.

Not a part of the contest between losses: the same changes for the best method of the validation and for the contrastive
loss.  `verdict.py plan` plans it after everything else, and its report has it under "further".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from likewise.metrics import t_interval
from likewise.protocols.space import at_point
from likewise.protocols.trial import Result, Trial

Tree = dict[str, Any]
HEAD = "optimizer.lrs.head"
LARGER = "images enlarged to 176 px"
CHANGES: dict[str, Mapping[str, Any]] = {
    LARGER: {"transform": "cub176"},
    "head at ten times the rate": {HEAD: 10.0},
    "average + largest of the map": {"model.pool": "avg+max"},
    "layer norm": {"model.layer_norm": True},
    "average of the weights": {"train.ema": 0.99},
    "twice as many epochs": {"train.epochs": 24},
    "batches of 256": {"sampler.classes": 64},
}
"""Each change alone; the head's rate is a multiple of the rate that the search found."""

OTHER = "Contrastive"
TRIED, SEEDS, DIM = (1, 2, 3), 5, 512
"""The seeds of a change are not the search's: of that one the best of ten was chosen."""

METRIC = "MAP@R"


def changed(config: Mapping[str, Any], names: Sequence[str]) -> Tree:
    """A configuration with some changes."""
    point = {path: value for name in names for path, value in CHANGES[name].items()}
    if HEAD in point:
        point[HEAD] *= config["optimizer"]["lr"]
    return at_point(config, point)


def subjects(leaders: Sequence[str]) -> list[str]:
    """The methods that are taken further."""
    return list(dict.fromkeys((leaders[0], OTHER)))


def planned(configs: Mapping[str, Mapping[str, Any]], results: Sequence[Result]) -> Iterator[Trial]:
    """The trials that follow from what is known.

    Args:
        configs: for each method that is taken further its best configuration, in 512 dimensions, validation held out.
        results: of everything so far.
    """
    for name, best in configs.items():
        for change in CHANGES:
            for seed in TRIED:
                config = {**changed(best, [change]), "seed": seed}
                yield Trial(f"{name}, {change}", config, seed, 0, "search", {"part": "further", "change": change})
        helped = helpful(name, results)
        if helped is None:
            continue
        for part, names in parts(helped).items():
            left = {"split.validation": 0.0} if part == "all classes" else {}
            config = at_point(changed(best, names), left)
            for seed in range(SEEDS):
                yield Trial(name, {**config, "seed": seed}, seed, 0, "final", {"part": part, "dim": DIM})


PARTS = {
    "the rest": "all that helped except larger images",
    "larger images": "only larger images",
    "together": "all that helped",
    "all classes": "all that helped, all training classes",
}
"""What goes to test classes, in words; the first two only tell where the gain of all comes from."""


def parts(helped: Sequence[str]) -> dict[str, list[str]]:
    """The changes of each part; of none that would be the same as another, or as what the verdict has."""
    found = {"together": list(helped)} if helped else {}
    found["all classes"] = list(helped)
    if LARGER in helped and len(helped) > 1:
        found |= {"larger images": [LARGER], "the rest": [name for name in helped if name != LARGER]}
    return found


def is_of(result: Result, part: str) -> bool:
    """Whether a result, good or bad, is one of a part in 512 dimensions."""
    return (result.trial.labels.get("part"), result.trial.labels.get("dim")) == (part, DIM)


def on_validation(name: str, results: Sequence[Result]) -> dict[str, list[float | None]]:
    """What a method and each change of it reached on validation classes, once all seeds are known; "" is no change.

    A training that failed reached ``None``.
    """
    found: dict[str, dict[int, float | None]] = {}
    for result in results:
        trial, labels = result.trial, result.trial.labels
        plain = trial.method == name and is_of(result, "verdict")
        tried = labels.get("part") == "further" and trial.method == f"{name}, {labels.get('change')}"
        if (plain or tried) and trial.seed in TRIED:
            found.setdefault("" if plain else labels["change"], {})[trial.seed] = result.val.get(METRIC)
    return {change: list(of.values()) for change, of in found.items() if len(of) == len(TRIED)}


def helpful(name: str, results: Sequence[Result]) -> list[str] | None:
    """The changes that raised the mean on validation classes, once all are known; one that failed did not."""
    found = on_validation(name, results)
    if any(change not in found for change in ("", *CHANGES)):
        return None
    plain = mean(found[""])
    return [change for change in CHANGES if None not in found[change] and mean(found[change]) > plain]


def mean(scores: Sequence[float | None]) -> float:
    """Of the runs that did not fail."""
    done = [score for score in scores if score is not None]
    return sum(done) / len(done) if done else float("-inf")


def report(leaders: Sequence[str], results: Sequence[Result]) -> list[Tree]:
    """For each method: every change on validation classes, and what all that helped reach on test classes."""
    made = []
    for name in subjects(leaders) if leaders else ():
        tried = on_validation(name, results)
        final: Tree = {}
        for part in ("verdict", *PARTS):
            of = [
                result.test
                for result in results
                if result.status == "done" and result.trial.method == name and is_of(result, part)
            ]
            if of:
                final[part] = {metric: asdict(t_interval([each[metric] for each in of])) for metric in (METRIC, "R@1")}
        made.append({"method": name, "validation": tried, "helped": helpful(name, results), "test": final})
    return made
