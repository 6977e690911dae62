"""The model that a command is given: a file, a run's folder, or a published network, and how images are shown to it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.app.errors import UserError, making, nearest
from likewise.app.evaluation import model_file
from likewise.app.runs import open_run
from likewise.search import Encoder
from likewise.trunks import TRUNKS


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
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, or ...
    """
    if model.is_dir():
        file = model_file(open_run(model), None)
    elif model.is_file():
        file = model
    else:
        raise UserError(f"there is no model {model}: give a file that ends in .safetensors, or the folder of a run")
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


@dataclass(frozen=True)
class Asked:
    """A model, found but not read.

    Args:
        place: its file, or the name of a published network.
        images: the recipe by which images are shown to it, if one is named or its run has one.
        fingerprint: what tells it from others.

    Examples:
        >>> asked_model("efficientnet_lite0").place
        'efficientnet_lite0'
    """

    place: Path | str
    images: str | None
    fingerprint: str

    def load(self, device: str | None = None) -> Encoder:
        """The model, ready to embed."""
        with making(f"the model {self.place}"):
            return Encoder.load(self.place, self.images, device)


def asked_model(model: str | Path, images: str | None = None) -> Asked:
    """Find what a user means by a model.

    Args:
        model: a ``.safetensors`` file, the folder of a run, or the name of a published trunk.
        images: the recipe by which images are shown; by default as in the model's run, or as its card says.

    Examples:
        >>> asked_model("efficientnet_light0")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model efficientnet_light0: give a file that ends in .safetensors, the folder of a run, or the name of a published network; did you mean efficientnet_lite0?
    """
    if Path(model).exists():
        chosen = chosen_model(Path(model), images)
        with chosen.file.open("rb") as opened:
            return Asked(chosen.file, chosen.images, hashlib.file_digest(opened, "sha256").hexdigest())
    name = str(model)
    published = [each for each, entry in TRUNKS.items() if entry.published]
    if name in published or name.startswith(("timm:", "transformers:")):
        return Asked(name, images, f"{name} as published")
    kinds = "give a file that ends in .safetensors, the folder of a run, or the name of a published network"
    raise UserError(f"there is no model {model}: {kinds}{nearest(name, published)}")
