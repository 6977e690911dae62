"""Vision models of timm and transformers as trunks, if those packages are installed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from likewise.trunks.preprocessing import Preprocessing, plain
from likewise.trunks.trunk import Trunk


class Adapter(Protocol):
    """A function that creates a trunk from a model of another package."""

    def __call__(self, model: str, *, pretrained: bool, in_channels: int, config: Mapping[str, Any] | None) -> Trunk:
        """Create the trunk of a named model; ``config`` is the configuration in its recipe, if there is one."""
        ...


def _package(name: str) -> Any:
    """Import a package, or raise an ImportError for any failure: its dependencies can be missing or incompatible."""
    try:
        return importlib.import_module(name)
    except Exception as failure:
        reason = (str(failure) or type(failure).__name__).splitlines()[0]
        raise ImportError(f"'{name}:' trunks need the package {name}, which cannot be imported: {reason}") from failure


def _output_shape(network: nn.Module, in_channels: int, sides: tuple[int, ...]) -> tuple[int, ...]:
    """Return the output shape of a network for one black image."""
    with torch.no_grad():
        return tuple(network.eval()(torch.zeros(1, in_channels, *sides)).shape)


class TimmTrunk(Trunk):
    """A model of timm: its last feature map if that is ``(B, C, H, W)``, else the vectors that timm pools.

    Args:
        model: its name in timm, including the tag.
        pretrained: load the weights that timm downloads.
        in_channels: 3, or 1 for gray images.
    """

    def __init__(self, model: str, *, pretrained: bool, in_channels: int) -> None:
        if model.startswith("local-dir:"):  # a folder can contain pickles, whose code timm before 1.0.21 executes
            raise ValueError(f"model must be the name of a model of timm, but it is {model!r}, a folder")
        timm = _package("timm")
        network = timm.create_model(model, pretrained=pretrained, in_chans=in_channels, num_classes=0, global_pool="")
        expected = timm.data.resolve_model_data_config(network)
        sides = expected["input_size"][1:]
        shape = _output_shape(network, in_channels, sides)
        if len(shape) != 4 or shape[1] != getattr(network, "head_hidden_size", network.num_features):
            # tokens, or channels last: use the pooling of timm
            network = timm.create_model(model, pretrained=pretrained, in_chans=in_channels, num_classes=0)
            shape = _output_shape(network, in_channels, sides)
        super().__init__(
            f"timm:{model}",
            in_channels=in_channels,
            out_features=shape[1],
            preprocessing=Preprocessing(mean=expected["mean"], std=expected["std"], size=sides[-1])
            if in_channels == 3
            else plain(in_channels, sides[-1]),
        )
        self.model: nn.Module = network.train()

    def forward(self, images: Tensor) -> Tensor:
        """Return the feature map or the vectors of the model."""
        result: Tensor = self.model(self.checked(images))
        return result


class TransformersTrunk(Trunk):
    """A vision model of transformers: its last feature map, its pooled vector, or its class token.

    The class token is used if the weights do not include the pooling layer, because a random pooling layer would degrade
    the features.

    Args:
        model: a name on the Hugging Face hub, or a folder.
        pretrained: load its weights, which transformers downloads unless they are in the folder or in its cache.
        in_channels: number of input channels, 3 or 1.
        config: the configuration of the model; ``None``: read it from the hub or the folder.
    """

    def __init__(
        self, model: str, *, pretrained: bool, in_channels: int, config: Mapping[str, Any] | None = None
    ) -> None:
        transformers = _package("transformers")
        self_pooled = True
        if config is None:
            known = transformers.AutoConfig.from_pretrained(model, trust_remote_code=False)
        else:
            known = transformers.AutoConfig.for_model(**remove_code(config))
            self_pooled = bool(config[POOLED])
        known = getattr(known, "vision_config", known)
        known._attn_implementation = (
            None  # use torch: a configuration could name a kernel on the hub, whose code would run
        )
        if getattr(known, "num_channels", 3) != in_channels:
            raise ValueError(f"in_channels of {model} must be {known.num_channels}, but it is {in_channels}")
        if pretrained:
            network, report = transformers.AutoModel.from_pretrained(
                model,
                config=known,
                output_loading_info=True,
                use_safetensors=True,
                trust_remote_code=False,
            )
            missing = sorted(report["missing_keys"])
            self_pooled = not missing
            lost = [key for key in missing if not key.startswith("pooler.")]
            if lost:
                raise ValueError(
                    f"the weights of {model} must contain all keys, but {len(lost)} are missing, such as {lost[0]!r}"
                )
        else:
            network = transformers.AutoModel.from_config(known, trust_remote_code=False)
        if not self_pooled:
            network.pooler = None  # otherwise its parameters would not receive gradients
        size = _side(known)
        super().__init__(
            f"transformers:{model}",
            in_channels=in_channels,
            out_features=_width(known),
            preprocessing=_transformers_preprocessing(model, size) if pretrained else plain(in_channels, size),
        )
        self.config = known.to_dict() | {POOLED: self_pooled}
        self.self_pooled = self_pooled
        self.model: nn.Module = network.train()

    def recipe(self) -> dict[str, Any]:
        """Return the recipe with the configuration, so that the network can be rebuilt without the hub."""
        return super().recipe() | {"config": self.config}

    def forward(self, images: Tensor) -> Tensor:
        """Return the feature map or the vectors of the model."""
        output = self.model(pixel_values=self.checked(images))
        last: Tensor = output.last_hidden_state
        if last.ndim == 4:
            return last
        pooled: Tensor | None = getattr(output, "pooler_output", None)
        if self.self_pooled and pooled is not None:
            return pooled.flatten(1)
        return last[:, 0]


POOLED = "likewise_self_pooled"
"""The entry of the configuration in a recipe that says whether the pooling of the model is used."""

_CODE = ("auto_map", "attn_implementation", "experts_implementation", "quantization_config", POOLED)


def remove_code(config: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the entries of a transformers configuration that name code, or kernels on the hub.

    Examples:
        >>> remove_code({"model_type": "vit", "_attn_implementation": "their/kernel", "auto_map": {"AutoModel": "a.B"}})
        {'model_type': 'vit'}
    """
    return {
        key: remove_code(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if key.lstrip("_").removesuffix("_internal") not in _CODE
    }


def _width(config: Any) -> int:
    """Return the number of channels of the last layer of a model."""
    sizes = getattr(config, "hidden_sizes", None)  # convolutional models have one width per stage
    return int(sizes[-1] if sizes else config.hidden_size)


def _side(config: Any) -> int:
    """Return the side of the images in the configuration of a model; convolutional models accept any size."""
    size = getattr(config, "image_size", 224)
    return int(size if isinstance(size, int) else size[-1])


def _transformers_preprocessing(model: str, size: int) -> Preprocessing:
    """Read the preprocessing of a model from its ``preprocessor_config.json``."""
    hub = _package("transformers.utils.hub")
    found = hub.cached_file(model, "preprocessor_config.json", _raise_exceptions_for_missing_entries=False)
    if found is None:
        raise ValueError(
            f"{model} must have a preprocessor_config.json with the preprocessing of its weights, but it has none"
        )
    fields = json.loads(Path(found).read_text())
    white = 255.0 * fields.get("rescale_factor", 1 / 255) if fields.get("do_rescale", True) else 255.0
    if not fields.get("do_normalize", True):
        return Preprocessing(mean=(0.0,) * 3, std=(1.0,) * 3, white=white, size=size)
    return Preprocessing(mean=fields["image_mean"], std=fields["image_std"], white=white, size=size)


def _timm(model: str, *, pretrained: bool, in_channels: int, config: Mapping[str, Any] | None) -> Trunk:
    return TimmTrunk(model, pretrained=pretrained, in_channels=in_channels)


ADAPTERS: Mapping[str, Adapter] = {"timm": _timm, "transformers": TransformersTrunk}
"""Adapters of packages whose vision models can be trunks, by the prefix before the colon."""
