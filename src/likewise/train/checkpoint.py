"""Checkpoints: the complete state of a training run in one file, which is replaced atomically."""

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
"""The version of the file format; it increases when older checkpoints cannot be read any more."""

KEY = "likewise checkpoint"


def save_checkpoint(path: Path, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
    """Write a checkpoint to a temporary file, sync it to disk, and rename it.

    Args:
        path: the file; an existing one is replaced when the new one is complete.
        tensors: tensors by part (``"model"``, ``"loss"``, …) and name.
        state: all other state, stored as JSON.

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
    """Read a checkpoint: its tensors by part and name, and all other state.

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
                raise ValueError(f"{path} must be the checkpoint of a training run, but it is another file")
            flat = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as damaged:
        raise ValueError(f"{path} must be the checkpoint of a training run, but it is damaged: {damaged}") from None
    check_checksums(path, flat, metadata[KEY], metadata)
    for key, tensor in flat.items():
        part, _, name = key.partition("/")
        tensors.setdefault(part, {})[name] = tensor
    state = json.loads(metadata[KEY])
    if state["format"] != FORMAT:
        raise ValueError(f"{path} must be a checkpoint of format {FORMAT}, but it is of format {state['format']}")
    return tensors, state


def split_tensors(tree: Any, path: str = "") -> tuple[Any, dict[str, Tensor]]:
    """Split a tree of mappings into the tree without tensors, and the tensors by path.

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
    """Put tensors back into the tree from which `split_tensors` removed them.

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
    """Read the step of a checkpoint without its tensors; ``None`` if there is no readable checkpoint.

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
    """Load the tensors of a checkpoint into a module.

    Args:
        name: the name of the module in error messages.
        module: the module.
        tensors: the tensors of the module in the checkpoint.
        file: the checkpoint, named in error messages.

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
    """Return the state of an optimizer, by the index of the parameter and the name of the state.

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
    """Restore the state of an optimizer, but not its groups, which follow from the settings.

    Examples:
        >>> weight = nn.Parameter(torch.ones(2))
        >>> load_optimizer(torch.optim.SGD([weight], momentum=0.9), {"0/momentum_buffer": torch.zeros(2)})
    """
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition("/")
        parameter = parameters[int(number)]
        if tensor.shape == parameter.shape:  # fused optimizers need the strides of the parameter, such as channels last
            tensor = torch.empty_like(parameter, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
        state.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def rng_tensors() -> dict[str, Tensor]:
    """Return the states of all random number generators that a loss or a model may use.

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
    """Save a model for later use: with its ``save`` method, which an `Embedder` has, or as plain tensors.

    Args:
        model: the network.
        path: a file that ends in ``.safetensors``.
        classes: names of the training classes.
        metrics: validation metrics of the model.

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
    """Check the file of a model against its checksums.

    Raises:
        ValueError: if the file is damaged.
    """
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as damaged:
        raise ValueError(f"{path} must be a safetensors file, but it is damaged: {damaged}") from None
    card = "".join(text for key, text in metadata.items() if key not in ("format", TENSORS, TEXT))
    check_checksums(path, tensors, card, metadata)
