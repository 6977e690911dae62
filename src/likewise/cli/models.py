"""The model that a command is given: a file, or a run's folder, and how its run showed images to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.cli.measured import model_file
from likewise.cli.mistakes import Mistake
from likewise.cli.train import open_run


@dataclass(frozen=True)
class Chosen:
    """A model's file and what is known of it from the run that it lies in.

    Args:
        file: the model.
        images: the recipe by which its run showed images; ``None`` outside of a run.
        facts: the run's data, loss and weights, in words.

    Examples:
        >>> Chosen(Path("birds.safetensors")).images is None
        True
    """

    file: Path
    images: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


def chosen_model(model: Path, images: str | None = None) -> Chosen:
    """The model that is meant.

    Args:
        model: a file, or a run's folder: its best.
        images: the recipe that was asked for, in place of the run's.

    Examples:
        >>> chosen_model(Path("nowhere"))
        Traceback (most recent call last):
        likewise.cli.mistakes.Mistake: there is no model nowhere: give a file that ends in .safetensors, or ...
    """
    if model.is_dir():
        file = model_file(open_run(model), None)
    elif model.is_file():
        file = model
    else:
        raise Mistake(f"there is no model {model}: give a file that ends in .safetensors, or the folder of a run")
    if not (file.parent / "run.yaml").exists():
        return Chosen(file, images)
    config = open_run(file.parent).description.get("config")
    said: Mapping[str, Any] = config if isinstance(config, Mapping) else {}
    weights = said["model"].get("weights") if isinstance(said.get("model"), Mapping) else None
    facts = {"data": _named(said.get("data")), "loss": _named(said.get("loss")), "began with weights": _named(weights)}
    return Chosen(file, images or said.get("images"), {name: value for name, value in facts.items() if value})


def _named(part: object) -> str | None:
    """What a part of a configuration is called."""
    if isinstance(part, Mapping):
        part = part.get("class_path")
    return part if isinstance(part, str) else None
