"""The state of a training run, which is saved in a checkpoint and restored from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import Tensor, nn

from likewise.train.checkpoint import (
    join_tensors,
    load_checkpoint,
    load_module,
    load_optimizer,
    load_rng_state,
    optimizer_tensors,
    rng_tensors,
    save_checkpoint,
    split_tensors,
)
from likewise.train.description import Batches
from likewise.train.step import Loss


@dataclass
class Progress:
    """The progress of a training run: the content of a checkpoint except tensors.

    Examples:
        >>> Progress().step
        0
    """

    step: int = 0
    epoch: int = 0
    best: float | None = None
    without_better: int = 0
    alike: int = 0
    seconds: float = 0.0
    mining_seconds: float = 0.0
    losses: list[float] = field(default_factory=lambda: [0.0, 0.0])
    metrics_size: int = 0
    metrics_sha256: str | None = None
    loader: dict[str, Any] | None = None


class Snapshot:
    """The tensors and random number generators of a training run, and the file in which they are saved.

    Args:
        file: the checkpoint.
        model: the model.
        loss: the loss; its parameters, buffers and generators are saved too.
        average: the moving average of the model, or ``None``.
        batches: the training data; the generator of a torch loader is saved too.
        optimizer: the optimizer.
        accelerator: the processes.
    """

    def __init__(
        self,
        file: Path,
        model: nn.Module,
        loss: Loss,
        average: nn.Module | None,
        batches: Batches,
        optimizer: torch.optim.Optimizer,
        accelerator: Accelerator,
    ) -> None:
        self.file, self.optimizer, self.accelerator = file, optimizer, accelerator
        named = {"model": model, "loss": loss, "average": average}
        self.modules = {name: each for name, each in named.items() if isinstance(each, nn.Module)}
        self._loss, self._batches = loss, batches

    def generators(self) -> list[torch.Generator]:
        """List the random number generators of the loss, its miners and a torch loader."""
        parts = list(self._loss.modules()) if isinstance(self._loss, nn.Module) else []
        holders = [*(getattr(part, "miner", None) for part in parts), *parts, self._batches]
        found = [getattr(each, "generator", None) for each in holders]
        return list({id(each): each for each in found if isinstance(each, torch.Generator)}.values())

    def save(self, progress: Progress, description: Mapping[str, Any]) -> None:
        """Write the file, on the main process."""
        rng_states = gather_object([rng_tensors()])
        if not self.accelerator.is_main_process:
            return
        tensors = {name: module.state_dict() for name, module in self.modules.items()}
        tensors["optimizer"] = optimizer_tensors(self.optimizer)
        loader, tensors["loader"] = split_tensors(progress.loader)
        tensors["generators"] = {str(place): each.get_state() for place, each in enumerate(self.generators())}
        tensors |= {f"rng_state {rank}": each for rank, each in enumerate(rng_states)}
        scaler = self.accelerator.scaler
        state = {**asdict(replace(progress, loader=loader)), "scaler": None if scaler is None else scaler.state_dict()}
        state["description"] = description
        save_checkpoint(self.file, tensors, state)

    def read(self) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
        """Read the tensors and the other state of the file; both are empty if there is no file."""
        return load_checkpoint(self.file) if self.file.exists() else ({}, {})

    def load(self, tensors: Mapping[str, Mapping[str, Tensor]], state: dict[str, Any]) -> Progress:
        """Restore modules, optimizer and generators from the result of `read`."""
        for name, module in self.modules.items():
            load_module(name, module, tensors.get(name, {}), self.file)
        for place, generator in enumerate(self.generators()):
            generator.set_state(tensors["generators"][str(place)])
        load_optimizer(self.optimizer, tensors.get("optimizer", {}))
        rank = self.accelerator.process_index
        rng_state = tensors.get(
            f"rng_state {rank}", tensors.get(f"chance {rank}")
        )  # older checkpoints use the second name
        if rng_state is not None:
            load_rng_state(rng_state)
        scaler = state.pop("scaler")
        if scaler is not None and self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(scaler)
        del state["format"]
        if state["loader"] is not None:
            state["loader"] = join_tensors(state["loader"], tensors.get("loader", {}))
        return Progress(**state)
