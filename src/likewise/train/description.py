"""What a training is given, and all of it in words, for its record."""

from __future__ import annotations

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
from likewise.train.run import command_line, now, plain, surroundings
from likewise.train.sealed import Sealed
from likewise.train.settings import Optimizer, Plan, Schedule

Batches = Iterable[Sequence[Any]]


@dataclass(frozen=True)
class Data:
    """What a training sees, and what it does not.

    Args:
        train: batches of images and labels (and whatever else, which is passed over), such as a
            `likewise.data.BatchLoader`: with ``state_dict`` and ``load_state_dict`` it is resumed in the middle of an
            epoch, with ``set_epoch`` it is told the epoch.
        val: batches of held-out classes; ``None`` for a training without validation.
        test: the test set, sealed.
        classes: names of the training classes, which the model's card keeps.

    Examples:
        >>> import torch
        >>> Data([(torch.zeros(4, 1, 8, 8), torch.tensor([0, 0, 1, 1]))]).val is None
        True
    """

    train: Batches
    val: Batches | None = None
    test: Sealed[Any] | None = None
    classes: Sequence[str] | None = None


def length(batches: Batches) -> int:
    """How many batches an epoch has.

    Examples:
        >>> length([])
        0
    """
    there = count(batches)
    if there is None:
        raise TypeError(
            f"data.train must have a length, the batches of an epoch, but the {type(batches).__name__} has none"
        )
    return there


def check_same(before: Mapping[str, Any], said: Mapping[str, Any]) -> None:
    """Check that a training that is resumed is the one that its record describes.

    Args:
        before: what ``run.yaml`` says.
        said: what `describe` says now.

    Examples:
        >>> now = {"seed": 1, "optimizer": {}, "schedule": {}, "groups": {}}
        >>> check_same({**now, "seed": 0}, now)
        Traceback (most recent call last):
        ValueError: seed must be that of the run, 0, but it is 1
    """
    for name in ("seed", "optimizer", "schedule", "groups"):
        if plain(said[name]) != before.get(name):
            raise ValueError(f"{name} must be that of the run, {before.get(name)}, but it is {plain(said[name])}")


def describe(
    model: nn.Module,
    loss: object,
    data: Data,
    groups: list[Group],
    optimizer: Optimizer,
    schedule: Schedule,
    plan: Plan,
    seed: int,
    config: Mapping[str, Any] | None,
    device: torch.device | None = None,
    lens: object = None,
) -> dict[str, Any]:
    """The complete description of a training, for ``run.yaml``.

    Examples:
        >>> from likewise.train.groups import parameter_groups
        >>> model, settings = nn.Linear(2, 1), Optimizer()
        >>> groups = parameter_groups(model, None, settings)
        >>> said = describe(model, None, Data([]), groups, settings, Schedule(), Plan(), 0, None)
        >>> said["model"]["parameters"], said["groups"]
        (3, {'model': {'lr': 0.0001, 'parameters': 3}})
    """
    around = surroundings(device)
    parameters = list(model.parameters())
    return {
        "schema": SCHEMA,
        "likewise": __version__,
        "created": now(),
        "command": command_line(),
        "seed": seed,
        "commit": around["commit"],
        "config": config,
        "data": {
            "train": _words(data.train),
            "val": None if data.val is None else _words(data.val),
            "test": None if data.test is None else {"description": data.test.description},
        },
        "model": {
            "class": type(model).__name__,
            "parameters": sum(each.numel() for each in parameters),
            "learned": sum(each.numel() for each in parameters if each.requires_grad),
        },
        "loss": repr(loss),
        "groups": {group.name: {"lr": group.lr, "parameters": group.size} for group in groups},
        "optimizer": asdict(optimizer),
        "schedule": asdict(schedule),
        "plan": asdict(plan),
        "lens": None if lens is None else repr(lens),
        "versions": around["versions"],
        "hardware": around["hardware"],
    }


def _words(batches: Batches) -> dict[str, Any]:
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
