"""The model that a command is told to use: a file, a run's folder, or the name of a published network."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from likewise.cli.mistakes import Mistake, making, nearest
from likewise.cli.models import chosen_model
from likewise.search.encoder import Encoder
from likewise.trunks import TRUNKS


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
        likewise.cli.mistakes.Mistake: there is no model efficientnet_light0: give a file that ends in .safetensors, the folder of a run, or the name of a published network; did you mean efficientnet_lite0?
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
    raise Mistake(f"there is no model {model}: {kinds}{nearest(name, published)}")
