"""The complete state of a training in one file, so that one rename puts all of it in place."""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from likewise.checksums import TENSORS, TEXT, check_checksums, checksums
from likewise.files import atomic_write

FORMAT = 1
"""Raised whenever an older checkpoint cannot be read any more."""

KEY = "likewise checkpoint"


def save_checkpoint(path: Path, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
    """Write a checkpoint to a temporary file, sync it to disk, and rename it.

    Args:
        path: the file; an older one stays until the new one is whole.
        tensors: by part (``"model"``, ``"loss"``, …) and name.
        state: everything else, as JSON.

    Examples:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "last.safetensors"
        >>> save_checkpoint(file, {"model": {"weight": torch.ones(2)}, "loss": {}}, {"step": 7})
        >>> tensors, state = load_checkpoint(file)
        >>> tensors["model"]["weight"], tensors.get("loss"), state["step"]
        (tensor([1., 1.]), None, 7)
    """
    flat = {
        f"{part}/{name}": tensor.detach().cpu().contiguous()
        for part, named in tensors.items()
        for name, tensor in named.items()
    }
    # safetensors refuses tensors that share memory: tied weights are stored once per name
    flat = {name: tensor.clone() if tensor.numel() else tensor for name, tensor in flat.items()}
    text = json.dumps({"format": FORMAT, **state})
    with atomic_write(path) as part:
        save_file(flat, part, metadata={KEY: text, **checksums(flat, text)})


def load_checkpoint(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """The content of a checkpoint: tensors by part and name, and the rest.

    Examples:
        >>> load_checkpoint(Path("nowhere.safetensors"))
        Traceback (most recent call last):
        FileNotFoundError: ...
    """
    tensors: dict[str, dict[str, Tensor]] = {}
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            if KEY not in metadata:
                raise ValueError(f"{path} must be the checkpoint of a training, but it is another file")
            flat = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as damaged:
        raise ValueError(f"{path} must be the checkpoint of a training, but it is damaged: {damaged}") from None
    check_checksums(path, flat, metadata[KEY], metadata)
    for key, tensor in flat.items():
        part, _, name = key.partition("/")
        tensors.setdefault(part, {})[name] = tensor
    state = json.loads(metadata[KEY])
    if state["format"] != FORMAT:
        raise ValueError(f"{path} must be a checkpoint of format {FORMAT}, but it is of format {state['format']}")
    return tensors, state


def split_tensors(tree: Any, path: str = "") -> tuple[Any, dict[str, Tensor]]:
    """A tree of mappings without its tensors, and these by their path.

    Examples:
        >>> split_tensors({"epoch": 1, "batches": {"table": torch.ones(1)}})
        ({'epoch': 1, 'batches': {}}, {'batches/table': tensor([1.])})
    """
    if not isinstance(tree, Mapping):
        return tree, {}
    rest: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    for key, value in tree.items():
        if isinstance(value, Tensor):
            tensors[f"{path}{key}"] = value
        else:
            rest[key], inner = split_tensors(value, f"{path}{key}/")
            tensors |= inner
    return rest, tensors


def join_tensors(tree: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The tree that `split_tensors` took apart.

    Examples:
        >>> join_tensors({"epoch": 1, "batches": {}}, {"batches/table": torch.ones(1)})
        {'epoch': 1, 'batches': {'table': tensor([1.])}}
    """
    whole = {**tree}
    for path, tensor in tensors.items():
        key, _, inner = path.partition("/")
        whole[key] = join_tensors(whole[key], {inner: tensor}) if inner else tensor
    return whole


def read_step(path: Path) -> int | None:
    """The step of a checkpoint, without its tensors; ``None`` if there is none that can be read.

    Examples:
        >>> print(read_step(Path("nowhere.safetensors")))
        None
    """
    try:
        with safe_open(path, "pt") as file:
            return int(json.loads((file.metadata() or {})[KEY])["step"])
    except (OSError, SafetensorError, KeyError, ValueError):
        return None


def load_module(name: str, module: nn.Module, tensors: Mapping[str, Tensor], file: Path) -> None:
    """Fill a module from a checkpoint.

    Args:
        name: its name in error messages.
        module: the module.
        tensors: its part of the checkpoint.
        file: the checkpoint, for a refusal.

    Examples:
        >>> load_module("model", nn.Linear(1, 1), {}, Path("last.safetensors"))
        Traceback (most recent call last):
        ValueError: model must be the one of last.safetensors, but its numbers do not fit: Error(s) in loading ...
    """
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        why = " ".join(str(error).split())
        raise ValueError(f"{name} must be the one of {file}, but its numbers do not fit: {why}") from None


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer, by the index of the parameter and the name of the state.

    Examples:
        >>> weight = nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.AdamW([weight])
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> sorted(optimizer_tensors(optimizer))
        ['0/exp_avg', '0/exp_avg_sq', '0/step']
    """
    found = {}
    for number, memory in optimizer.state_dict()["state"].items():
        for name, value in memory.items():
            if value is not None:
                found[f"{number}/{name}"] = torch.as_tensor(value)
    return found


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Restore the state of an optimizer; its groups are unchanged, because they are derived from the settings.

    Examples:
        >>> weight = nn.Parameter(torch.ones(2))
        >>> load_optimizer(torch.optim.SGD([weight], momentum=0.9), {"0/momentum_buffer": torch.zeros(2)})
    """
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition("/")
        parameter = parameters[int(number)]
        if tensor.shape == parameter.shape:  # fused steps go through both by address: the same strides (channels last)
            tensor = torch.empty_like(parameter, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
        state.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def rng_tensors() -> dict[str, Tensor]:
    """The states of all random number generators that a loss or a model may draw from.

    Examples:
        >>> before = rng_tensors()
        >>> first = torch.rand(1)
        >>> load_rng_state(before)
        >>> bool(torch.rand(1) == first)
        True
    """
    version, words, gauss = random.getstate()
    numbers = np.random.get_state(legacy=False)
    assert isinstance(numbers, dict)
    found = {
        "torch": torch.get_rng_state(),
        "python": torch.tensor([version, *words]),
        "python_gauss": torch.tensor([] if gauss is None else [gauss], dtype=torch.float64),
        "numpy": torch.from_numpy(numbers["state"]["key"].astype(np.int64)),
        "numpy_place": torch.tensor([numbers["state"]["pos"], numbers["has_gauss"]]),
        "numpy_gauss": torch.tensor([numbers["gauss"]], dtype=torch.float64),
    }
    if torch.cuda.is_available():
        found["cuda"] = torch.cuda.get_rng_state()
    return found


def load_rng_state(tensors: Mapping[str, Tensor]) -> None:
    """Set the random number generators to the state that `rng_tensors` returned.

    Examples:
        >>> load_rng_state(rng_tensors())
    """
    torch.set_rng_state(tensors["torch"])
    version, *words = tensors["python"].tolist()
    gauss = tensors["python_gauss"].tolist()
    random.setstate((version, tuple(words), gauss[0] if gauss else None))
    place, has_gauss = tensors["numpy_place"].tolist()
    key = {"key": tensors["numpy"].numpy().astype(np.uint32), "pos": place}
    state = {"bit_generator": "MT19937", "state": key, "has_gauss": has_gauss, "gauss": tensors["numpy_gauss"].item()}
    np.random.set_state(state)
    if "cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["cuda"])


def save_model(model: nn.Module, path: Path, classes: Any = None, metrics: Mapping[str, float] | None = None) -> None:
    """Write a model for users: with its ``save`` method, such as an `Embedder`'s, or only its tensors.

    Args:
        model: the network.
        path: the file, which ends in ``.safetensors``.
        classes: names of the classes it was trained on.
        metrics: the metrics.

    Examples:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> save_model(nn.Linear(2, 1), file)
        >>> file.exists()
        True
    """
    own = getattr(model, "save", None)
    if own is not None and {"classes", "metrics"} <= set(inspect.signature(own).parameters):
        own(path, classes=classes, metrics=metrics)
        return
    layout = torch.contiguous_format
    tensors = {name: each.detach().cpu().clone(memory_format=layout) for name, each in model.state_dict().items()}
    with atomic_write(path) as part:
        save_file(tensors, part, metadata={"metrics": json.dumps(dict(metrics or {}))})


def check_model(path: str | Path) -> None:
    """Compare the file of a model with its checksums.

    Raises:
        ValueError: it is damaged.
    """
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as damaged:
        raise ValueError(f"{path} must be a safetensors file, but it is damaged: {damaged}") from None
    card = "".join(text for key, text in metadata.items() if key not in ("format", TENSORS, TEXT))
    check_checksums(path, tensors, card, metadata)
