"""Find a model: a file, a run's folder, or the name of a published network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from likewise.app.errors import UserError, making, nearest
from likewise.app.evaluation import model_file
from likewise.app.runs import open_run
from likewise.search import Encoder
from likewise.trunks import TRUNKS, Card, read_card


@dataclass(frozen=True)
class ModelSource:
    """A model that is not loaded yet.

    Args:
        place: its file, or the name of a published network.
        transform: the name of its transform: the requested one, or that of its run; ``None``: as the card says.
        facts: data, loss and weights of its run, as text.

    Examples:
        >>> resolve_model("efficientnet_lite0").place
        'efficientnet_lite0'
    """

    place: Path | str
    transform: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path | None:
        """The file; ``None`` for a published network."""
        return self.place if isinstance(self.place, Path) else None

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the file, or the name of a published network."""
        if self.file is None:
            return f"{self.place} as published"
        with self.file.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @property
    def address(self) -> str:
        """The place as processes in other folders reach it."""
        return str(self.place if self.file is None else self.file.absolute())

    def load(self, device: str | None = None) -> Encoder:
        """Load the model, ready to embed."""
        with making(f"the model {self.place}"):
            return Encoder.load(self.place, self.transform, device)

    def read_card(self) -> Card:
        """Read the model's card."""
        if self.file is None:
            return self.load("cpu").card
        with making(f"the model {self.place}"):
            return read_card(self.file)

    @contextmanager
    def as_file(self) -> Iterator[Path]:
        """A file of the model; a published network is written to a temporary one."""
        if self.file is not None:
            yield self.file
            return
        with TemporaryDirectory() as folder:
            file = Path(folder) / "model.safetensors"
            self.load("cpu").model.save(file)
            yield file


def resolve_model(model: str | Path, transform: str | None = None) -> ModelSource:
    """Find the model that a user names.

    Args:
        model: a ``.safetensors`` file, the folder of a run (its best model), or the name of a published network.
        transform: the name of a transform; by default that of the run, or what the model's card implies.

    Examples:
        >>> resolve_model("efficientnet_light0")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model efficientnet_light0: give a file that ends in .safetensors, the folder of a run, or the name of a published network; did you mean efficientnet_lite0?
    """
    place = Path(model)
    if place.exists():
        return _read_source(model_file(open_run(place), None) if place.is_dir() else place, transform)
    name = str(model)
    published = [each for each, entry in TRUNKS.items() if entry.published]
    published += [f"{each}:{weights}" for each in published for weights in TRUNKS[each].published]
    if name in published or name.startswith(("timm:", "transformers:")):
        return ModelSource(name, transform)
    kinds = "give a file that ends in .safetensors, the folder of a run, or the name of a published network"
    raise UserError(f"there is no model {model}: {kinds}{nearest(name, published)}")


def _read_source(file: Path, transform: str | None) -> ModelSource:
    """A model's file, with facts from its run."""
    if not (file.parent / "run.yaml").exists():
        return ModelSource(file, transform)
    content = open_run(file.parent).description.get("config")
    config: Mapping[str, Any] = content if isinstance(content, Mapping) else {}
    weights = config["model"].get("weights") if isinstance(config.get("model"), Mapping) else None
    facts = {"data": config.get("data"), "loss": config.get("loss"), "began with weights": weights}
    names = {fact: name for fact, part in facts.items() if (name := _name_of(part)) is not None}
    return ModelSource(file, transform or config.get("transform"), names)


def _name_of(part: object) -> str | None:
    """The name of a part of a configuration."""
    if isinstance(part, Mapping):
        part = part.get("class_path")
    return part if isinstance(part, str) and part else None
