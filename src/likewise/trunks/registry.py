"""The table of trunks by name, and functions that create them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from torch import nn

from likewise.trunks.adapters import ADAPTERS
from likewise.trunks.bninception import PUBLISHED as BNINCEPTION
from likewise.trunks.bninception import bninception
from likewise.trunks.classic import alexnet, lenet
from likewise.trunks.convnet import convnet
from likewise.trunks.efficientnet_lite import PUBLISHED as LITE
from likewise.trunks.efficientnet_lite import efficientnet_lite0, efficientnet_lite1, efficientnet_lite2
from likewise.trunks.googlenet import PUBLISHED as GOOGLENET
from likewise.trunks.googlenet import googlenet
from likewise.trunks.resnet import PUBLISHED as RESNET
from likewise.trunks.resnet import resnet18, resnet50, resnet101
from likewise.trunks.text import TEXT_TRUNKS, TextTrunk
from likewise.trunks.trunk import Trunk
from likewise.trunks.vectors import linear, mlp
from likewise.trunks.vit import vit_base, vit_small, vit_tiny
from likewise.trunks.weights import Weights, WeightsLike, choose, read_state


class Builder(Protocol):
    """The function that creates a network of the table."""

    def __call__(self, *, weights: WeightsLike = ..., in_channels: int = ...) -> Trunk:
        """Create the network with these weights."""
        ...


@dataclass(frozen=True)
class Entry:
    """A row of the table of trunks.

    Args:
        make: the function that creates the network.
        published: published weights, by name.
        paper: the source of the network.

    Examples:
        >>> TRUNKS["resnet50"].paper
        'He et al. 2016'
    """

    make: Builder
    published: Mapping[str, Weights]
    paper: str


TRUNKS: Mapping[str, Entry] = {
    "convnet": Entry(convnet, {}, "four plain convolutions, of this library"),
    "resnet18": Entry(resnet18, RESNET["resnet18"], "He et al. 2016"),
    "resnet50": Entry(resnet50, RESNET["resnet50"], "He et al. 2016"),
    "resnet101": Entry(resnet101, {}, "He et al. 2016"),
    "googlenet": Entry(googlenet, GOOGLENET, "Szegedy et al. 2015"),
    "bninception": Entry(bninception, BNINCEPTION, "Ioffe & Szegedy 2015"),
    "efficientnet_lite0": Entry(efficientnet_lite0, LITE[0], "Tan & Le 2019"),
    "efficientnet_lite1": Entry(efficientnet_lite1, LITE[1], "Tan & Le 2019"),
    "efficientnet_lite2": Entry(efficientnet_lite2, LITE[2], "Tan & Le 2019"),
    "vit_tiny": Entry(vit_tiny, {}, "Touvron et al. 2021"),
    "vit_small": Entry(vit_small, {}, "Touvron et al. 2021"),
    "vit_base": Entry(vit_base, {}, "Dosovitskiy et al. 2021"),
    "alexnet": Entry(alexnet, {}, "Krizhevsky 2014"),
    "lenet": Entry(lenet, {}, "LeCun et al. 1998"),
    "mlp": Entry(mlp, {}, "two layers of 512, for vectors"),
    "linear": Entry(linear, {}, "one linear map, for vectors"),
}
"""All trunks by name.  Names that start with ``timm:`` or ``transformers:`` are models of those packages."""


def build(name: str, *, weights: WeightsLike = None, in_channels: int | None = None) -> Trunk:
    """Create a trunk by name.

    Args:
        name: a name of `TRUNKS`, or ``"timm:…"`` or ``"transformers:…"`` with the name of a model of that package.
        weights: a published name (``"imagenet"``; ``"pretrained"`` for models of other packages), a file, or `Weights`;
            ``None``: random weights.
        in_channels: 3, or 1 for gray images; ``None``: the default of the trunk.

    Examples:
        >>> build("resnet18").out_features
        512
        >>> build("resnet19")
        Traceback (most recent call last):
        ValueError: name must be one of 'convnet', ..., or start with 'timm:' or 'transformers:', but it is 'resnet19'
    """
    package, colon, model = name.partition(":")
    if colon and package in ADAPTERS and model:
        if weights not in (None, "pretrained"):
            raise ValueError(f"weights of {name} must be 'pretrained' or None, but it is {weights!r}")
        return ADAPTERS[package](model, pretrained=weights == "pretrained", in_channels=in_channels or 3, config=None)
    entry = _entry(name)
    if in_channels is None:
        return entry.make(weights=weights)
    return entry.make(weights=weights, in_channels=in_channels)


def _entry(name: str) -> Entry:
    if name not in TRUNKS:
        names = ", ".join(map(repr, TRUNKS))
        others = " or ".join(f"'{package}:'" for package in ADAPTERS)
        raise ValueError(f"name must be one of {names}, or start with {others}, but it is {name!r}")
    return TRUNKS[name]


def rebuild(recipe: Mapping[str, Any]) -> Trunk | TextTrunk:
    """Rebuild a trunk from its ``recipe()``, with random weights.

    Examples:
        >>> rebuild(build("convnet", in_channels=3).recipe()).in_channels
        3
    """
    if recipe["name"] in TEXT_TRUNKS:
        return TEXT_TRUNKS[recipe["name"]][1](**{key: value for key, value in recipe.items() if key != "name"})
    name, in_channels = recipe["name"], recipe["in_channels"]
    package, _, model = name.partition(":")
    if package in ADAPTERS and model:
        return ADAPTERS[package](model, pretrained=False, in_channels=in_channels, config=recipe.get("config"))
    if "in_features" in recipe:
        return TRUNKS[name].make(in_features=recipe["in_features"])  # type: ignore[call-arg]
    trunk = build(name, in_channels=in_channels)
    if "variant" in recipe:
        trunk.use_variant(recipe["variant"])
    return trunk


def classifier(name: str, weights: str | Weights = "imagenet") -> nn.Linear:
    """Load the classifier that was published with a trunk, which maps its averaged features to ImageNet's logits.

    Args:
        name: a name of `TRUNKS`.
        weights: a published name, a file, or `Weights`.

    Examples:
        >>> import tempfile, torch
        >>> from likewise.trunks import convnet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = f"{folder}/convnet.pt"
        ...     last = {"fc.weight": torch.zeros(10, 256), "fc.bias": torch.zeros(10)}
        ...     torch.save(convnet().state_dict() | last, file)
        ...     print(classifier("convnet", file))
        Linear(in_features=256, out_features=10, bias=True)
    """
    entry = _entry(name)
    trunk = entry.make()
    state = trunk.convert(read_state(choose(trunk, weights, entry.published).source.locate()))
    found = {}
    for key in ("weight", "bias"):
        if f"{trunk.classifier}.{key}" not in state:
            raise ValueError(f"weights must contain a classifier, but '{trunk.classifier}.{key}' is missing")
        found[key] = state[f"{trunk.classifier}.{key}"]
    if found["weight"].ndim != 2 or found["weight"].shape[1] != trunk.out_features:
        shape = tuple(found["weight"].shape)
        raise ValueError(
            f"'{trunk.classifier}.weight' must have {trunk.out_features} columns, but its shape is {shape}"
        )
    linear = nn.Linear(trunk.out_features, len(found["weight"]))
    linear.load_state_dict(found)
    return linear
