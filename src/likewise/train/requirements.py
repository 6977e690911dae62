"""Requirements of a training run, checked before its folder is created."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from torch import nn
from torch.utils.data import DataLoader

from likewise.data import BatchLoader
from likewise.formula import one_of
from likewise.train.description import Data, length
from likewise.train.embedding import RECALLS
from likewise.train.groups import Group
from likewise.train.settings import TrainConfig
from likewise.train.step import RecordedStep


def check_settings(settings: TrainConfig, groups: list[Group], data: Data) -> None:
    """Raise an error if settings, parameters and data do not fit each other."""
    if not length(data.train):
        raise ValueError("data.train must have at least one batch, but it has none")
    if isinstance(data.val, Iterator):
        raise TypeError(f"data.val must be iterable more than once, but it is a {type(data.val).__name__}")
    sampler = getattr(data.train, "batch_sampler", None) or getattr(data.train, "sampler", None)
    if hasattr(type(sampler), "targets") and isinstance(data.train, DataLoader):
        raise ValueError(
            f"data.train must take its labels from the targets of a {type(sampler).__name__}, as a BatchLoader does, "
            f"but it is a {type(data.train).__name__}"
        )
    if not groups:
        raise ValueError("model must have a trained parameter, but neither it nor the loss has one")
    names = [group.name for group in groups]
    if settings.trunk_warmup and "trunk" not in names:
        raise ValueError(f"trunk_warmup must be 0 for a model without a group 'trunk', but its groups are {names}")
    if settings.patience is not None and (data.val is None or not settings.validate_every):
        raise ValueError(f"patience must be None for a run without validation, but it is {settings.patience}")
    known = ("P@1", "RP", "MAP@R", "MRR", "mAP", *(f"R@{k}" for k in settings.ks or RECALLS))
    one_of("metric", settings.metric, known)
    available = [str(each) for each in get_available_trackers()]
    for tracker in settings.trackers:
        if not available:
            raise ValueError(f"trackers must be empty, because none is installed, but it is {tracker!r}")
        one_of("each of trackers", tracker, available, "(which are installed)")


def check_space(folder: Path, model: nn.Module, loss: object, groups: list[Group], settings: TrainConfig) -> None:
    """Raise an error if the disk has too little space for the models and two checkpoints, the old and the new one."""
    modules = [model, *([loss] if isinstance(loss, nn.Module) else []), *([model] if settings.ema is not None else [])]
    sizes = [sum(each.nbytes for each in module.state_dict().values()) for module in modules]
    checkpoint = sum(sizes) + 8 * sum(group.size for group in groups)  # two moments of each parameter in float32
    written = sum(file.stat().st_size for file in folder.glob("*.safetensors"))  # files of the run that is resumed
    needed = 2 * sizes[0] + 2 * checkpoint - min(written, 2 * sizes[0] + checkpoint)
    place = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        words = f"models and checkpoints need {needed / 1e6:,.0f} MB, but {free / 1e6:,.0f} MB are free"
        raise OSError(errno.ENOSPC, f"{words}: free some space, or choose a folder on another disk", str(folder))


def can_record(settings: TrainConfig, accelerator: Accelerator, data: Data) -> bool:
    """Whether steps are recorded as a CUDA graph; raise an error if the settings require that and it is not possible."""
    reason = RecordedStep.possible(
        accelerator.device,
        processes=accelerator.num_processes,
        accumulate=settings.accumulate,
        precision=settings.precision,
        compiled=settings.compile,
        chunk=settings.chunk,
    )
    if reason is None and not isinstance(data.train, BatchLoader):
        reason = "data.train is not a BatchLoader, which can load a failed batch again"
    if settings.graph and reason is not None:
        raise ValueError(f"graph must not be True, because {reason}")
    return settings.graph is not False and reason is None
