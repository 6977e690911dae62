"""The data of a training run, and the description that is written to ``run.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from likewise import __version__
from likewise.data import ImageDataset
from likewise.schema import SCHEMA
from likewise.train.embedding import count
from likewise.train.groups import Group
from likewise.train.run import command_line, describe_environment, now, plain
from likewise.train.sealed import Sealed
from likewise.train.settings import OptimizerConfig, ScheduleConfig, TrainConfig

Batches = Iterable[Sequence[Any]]


@dataclass(frozen=True)
class Data:
    """The data of a training run.

    Args:
        train: batches of images and labels, such as a `likewise.data.BatchLoader`; further entries of a batch are ignored.
            A loader with ``state_dict`` and ``load_state_dict`` can resume within an epoch; ``set_epoch`` is called if it
            exists.
        val: batches of held-out classes; ``None``: no validation.
        test: the sealed test set.
        classes: names of the training classes, stored in the card of the model.
        in_order: all training images once, in the order of the sampler's labels and with the evaluation transform.  They
            are embedded for a sampler or a loss that mines, such as a `likewise.data.MiningSampler`.

    Examples:
        >>> import torch
        >>> Data([(torch.zeros(4, 1, 8, 8), torch.tensor([0, 0, 1, 1]))]).val is None
        True
    """

    train: Batches
    val: Batches | None = None
    test: Sealed[Any] | None = None
    classes: Sequence[str] | None = None
    in_order: Batches | None = None


def length(batches: Batches) -> int:
    """Return the number of batches of an epoch.

    Examples:
        >>> length([])
        0
    """
    number = count(batches)
    if number is None:
        raise TypeError(
            f"data.train must have a length, the number of batches of an epoch, but it is a {type(batches).__name__} without one"
        )
    return number


COMPARED = (
    "seed",
    "config",
    "data",
    "model",
    "loss",
    "groups",
    "optimizer",
    "schedule",
    "train",
    "lens",
)
"""The parts of a description that must not change when a run is resumed."""

FREE = (
    "config.schema",
    "config.out",
    "config.cache",
    "config.cache_on",
    "config.data.init_args.path",
    "config.data.init_args.root",
    "config.model.weights",
    "config.train.checkpoint_minutes",
    "config.train.ks",
    "config.train.trackers",
    "train.checkpoint_minutes",
    "train.ks",
    "train.trackers",
)
"""Settings that may change: paths, because data are identified by a checksum, and settings that do not affect results."""

NOTED = ("likewise", "commit", "versions", "hardware.threads", "hardware.device")
"""Parts of a description that may change results slightly; a difference causes a warning."""


def differences(before: Mapping[str, Any], now: Mapping[str, Any], keys: Sequence[str] = COMPARED) -> list[str]:
    """List the differences between a description and an earlier one, one sentence each.

    Args:
        before: an earlier description; parts that it does not have are not compared.
        now: the current result of `describe`.
        keys: the parts to compare, with dots between levels.

    Examples:
        >>> differences({"seed": 0, "loss": "CircleLoss()"}, {"seed": 1, "loss": "CircleLoss()"})
        ['seed was 0 and is 1']
    """
    rows: list[str] = []
    for key in keys:
        old, new = _at(before, key), _at(now, key)
        if old is not _MISSING and new is not _MISSING:
            _compare(old, plain(new), key, rows)
    return rows


_MISSING = object()


def _at(tree: Any, key: str) -> Any:
    for word in key.split("."):
        tree = tree.get(word, _MISSING) if isinstance(tree, Mapping) else _MISSING
    return tree


def _compare(old: Any, new: Any, path: str, rows: list[str]) -> None:
    if path in FREE or old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            _compare(old.get(key), new.get(key), f"{path}.{key}", rows)
    else:
        rows.append(f"{path} was {_shorten(old)} and is {_shorten(new)}")


def _shorten(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 200 else f"{text[:200]}…"


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], allow_changes: bool = False) -> list[str]:
    """Check that a resumed run has the description with which it started.

    Args:
        before: the description in the checkpoint or in ``run.yaml``.
        now: the current result of `describe`.
        allow_changes: return the differences instead of raising an error.

    Returns:
        Sentences for warnings: allowed differences, and changes of versions, device or number of threads.

    Examples:
        >>> check_same({"seed": 0}, {"seed": 1})
        Traceback (most recent call last):
        ValueError: the settings must be those of the run, but seed was 0 and is 1; allow_changes=True (--allow-changes) continues with the new ones
    """
    found = differences(before, now)
    if found and not allow_changes:
        listed = "; ".join(found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
        raise ValueError(
            f"the settings must be those of the run, but {listed}; "
            "allow_changes=True (--allow-changes) continues with the new ones"
        )
    return found + differences(before, now, NOTED)


def describe(
    model: nn.Module,
    loss: object,
    data: Data,
    groups: list[Group],
    optimizer: OptimizerConfig,
    schedule: ScheduleConfig,
    settings: TrainConfig,
    seed: int,
    config: Mapping[str, Any] | None,
    device: torch.device | None = None,
    lens: object = None,
    allowed: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the complete description of a training run, for ``run.yaml``.

    Examples:
        >>> from likewise.train.groups import parameter_groups
        >>> model, settings = nn.Linear(2, 1), OptimizerConfig()
        >>> groups = parameter_groups(model, None, settings)
        >>> description = describe(model, None, Data([]), groups, settings, ScheduleConfig(), TrainConfig(), 0, None)
        >>> description["model"]["parameters"], description["groups"]
        (3, {'model': {'lr': 0.0001, 'parameters': 3}})
    """
    environment = describe_environment(device)
    parameters = list(model.parameters())
    return {
        "schema": SCHEMA,
        "likewise": __version__,
        "created": now(),
        "command": command_line(),
        "seed": seed,
        "commit": environment["commit"],
        "config": config,
        "allowed": list(allowed),
        "data": {
            "train": _describe_batches(data.train),
            "val": None if data.val is None else _describe_batches(data.val),
            "test": None if data.test is None else {"description": data.test.description},
        },
        "model": {
            "class": type(model).__name__,
            "parameters": sum(each.numel() for each in parameters),
            "learned": sum(each.numel() for each in parameters if each.requires_grad),
        },
        "loss": _name_loss(loss),
        "groups": {group.name: {"lr": group.lr, "parameters": group.size} for group in groups},
        "optimizer": asdict(optimizer),
        "schedule": asdict(schedule),
        "train": asdict(settings),
        "lens": None if lens is None else repr(lens),
        "versions": environment["versions"],
        "hardware": environment["hardware"],
    }


def _name_loss(loss: object) -> str:
    """Return the representation of a loss without memory addresses, which differ between processes."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(loss))


def _describe_batches(batches: Batches) -> dict[str, Any]:
    images = getattr(batches, "images", getattr(batches, "dataset", None))
    if not isinstance(images, ImageDataset):
        return {"batches": count(batches)}
    return {
        "name": images.name,
        "split": images.split,
        "images": len(images),
        "classes": len(images.class_names),
        "fingerprint": images.fingerprint,
    }
