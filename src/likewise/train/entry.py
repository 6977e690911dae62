"""The function `train`: check the arguments, open the run, and execute the training loop."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from torch import nn

from likewise.train.description import Data, describe
from likewise.train.groups import parameter_groups
from likewise.train.lens import Lens
from likewise.train.loop import TrainingLoop
from likewise.train.mining import Mining
from likewise.train.processes import catch_stop_signals, make_accelerator, seed_everything
from likewise.train.requirements import can_record, check_settings, check_space
from likewise.train.run import Run
from likewise.train.settings import OptimizerConfig, ScheduleConfig, TrainConfig
from likewise.train.step import Loss


def train(
    model: nn.Module,
    loss: Loss,
    data: Data,
    *,
    folder: str | os.PathLike[str],
    optimizer: OptimizerConfig | None = None,
    schedule: ScheduleConfig | None = None,
    settings: TrainConfig | None = None,
    seed: int = 0,
    resume: bool = False,
    allow_changes: bool = False,
    allowed: Sequence[str] = (),
    device: str | None = None,
    config: Mapping[str, Any] | None = None,
    should_continue: Callable[[Mapping[str, Any]], bool] | None = None,
    lens: Lens | None = None,
    keep_start: bool = True,
) -> Run:
    """Train a model, and write a run: a folder with the models, the metrics and a complete description.

    A run can be killed at any moment.  ``resume=True`` with the same arguments continues it from the last checkpoint; on a
    CPU the numbers are those of an uninterrupted run.  SIGINT and SIGTERM save a checkpoint and raise ``KeyboardInterrupt``.

    Args:
        model: the network that maps images to embeddings.
        loss: a function of embeddings and labels; if it is a module, its parameters are trained too.
        data: batches for training and validation.
        folder: the folder of the run; it must not contain one, unless ``resume=True``.
        optimizer: optimizer settings; ``None``: AdamW with a learning rate of 1e-4.
        schedule: schedule of the learning rate; ``None``: a cosine.
        settings: all other settings; ``None``: 20 epochs.
        seed: seed of the model and the loss; the sampler and the loader have their own.
        resume: continue the run in the folder; a finished run is returned unchanged.
        allow_changes: continue although data, loss or settings differ from those of the run.
        allowed: packages that the configuration was allowed to import; recorded in ``run.yaml``.
        device: ``"cpu"``, or ``None``: the device that Accelerate chooses.
        config: the configuration from which a program built the other arguments; recorded in ``run.yaml``.
        should_continue: pruning callback: it receives the metrics of each validation, and ``False`` stops the run.
        lens: observer of some steps, which it does not change, such as a `likewise.analysis.Recorder` of the loss.
        keep_start: whether the model before training is saved as the best one if no epoch beats it on validation classes.

    Raises:
        NotFinite: if the loss is not finite; the batch is saved in the folder.
        Collapsed: if all embeddings have become alike.

    Examples:
        >>> import tempfile, torch
        >>> from likewise.losses import ContrastiveLoss
        >>> images, labels = torch.randn(32, 1, 4, 4), torch.arange(32) // 4
        >>> data = Data([(images, labels)] * 5, val=[(images, labels)])
        >>> model, folder = nn.Sequential(nn.Flatten(), nn.Linear(16, 8)), tempfile.mkdtemp() + "/run"
        >>> adam, settings = OptimizerConfig(lr=1e-2), TrainConfig(epochs=4)
        >>> run = train(model, ContrastiveLoss(), data, optimizer=adam, settings=settings, folder=folder, device="cpu")
        >>> run.metrics("val")[0]["MAP@R"] < run.metrics("val")[-1]["MAP@R"], run.finished
        (True, True)
    """
    begin = time.monotonic()
    optimizer, schedule = optimizer or OptimizerConfig(), schedule or ScheduleConfig()
    settings = settings or TrainConfig()
    groups = parameter_groups(model, loss, optimizer)
    check_settings(settings, groups, data)
    accelerator = make_accelerator(settings, Path(folder), device)
    can_record(settings, accelerator, data)  # errors are raised before a folder is created
    Mining(data, settings, accelerator, loss)
    parts = (model, loss, data, groups, optimizer, schedule, settings)
    description = describe(*parts, seed, config, accelerator.device, lens, allowed)
    if resume and (run := Run(folder)).finished:
        return run
    check_space(Path(folder), model, loss, groups, settings)
    run = _open_run(Path(folder), description, resume, accelerator)
    with run.lock() if accelerator.is_main_process else nullcontext(), catch_stop_signals() as stop_requested:
        loop = TrainingLoop(*parts, accelerator, run, should_continue, lens, keep_start, begin)
        seed_everything(seed + accelerator.process_index)
        loop.restore(description, resume, allow_changes)
        loop.run_to_end(stop_requested)
    accelerator.wait_for_everyone()  # the main process writes
    return run


def _open_run(folder: Path, description: Mapping[str, Any], resume: bool, accelerator: Accelerator) -> Run:
    """Create a run, or open the one that is resumed."""
    if accelerator.is_main_process and not resume:
        Run.create(folder, description)
    accelerator.wait_for_everyone()
    return Run(folder)
