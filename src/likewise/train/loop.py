"""The training loop, from top to bottom."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from accelerate.utils import broadcast_object_list, gather_object
from torch import Tensor, nn

from likewise.data import BatchLoader
from likewise.formula import check_values, one_of
from likewise.progress import Advance
from likewise.progress import progress as show_progress
from likewise.train.checkpoint import (
    join_tensors,
    load_checkpoint,
    load_module,
    load_optimizer,
    load_rng_state,
    optimizer_tensors,
    rng_tensors,
    save_checkpoint,
    save_model,
    split_tensors,
)
from likewise.train.description import COMPARED, NOTED, Data, check_same, describe, length
from likewise.train.embedding import embed, evaluate
from likewise.train.groups import Group, make_optimizer, parameter_groups, set_rate
from likewise.train.guards import Collapsed, NotFinite, keep, on, spread_of
from likewise.train.lens import Lens, Looks
from likewise.train.mining import Mining, step_batches
from likewise.train.processes import from_all, make_accelerator, on_every_process, seed_everything, stop_requests
from likewise.train.run import Run, plain
from likewise.train.settings import OptimizerConfig, ScheduleConfig, TrainConfig
from likewise.train.step import Average, Loss, Meter, RecordedStep, Step, Unrecordable

ALIKE = 1e-4
"""Embeddings are alike when the squared length of their mean, of unit vectors, is as close as this to one."""

NOTED_PARTS = tuple(dict.fromkeys(key.partition(".")[0] for key in NOTED))

ALIKE_CHECKS = 3
"""How often in a row that must be seen."""


@dataclass
class Progress:
    """Where a training is: what a checkpoint keeps besides tensors.

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
    """Train a model, and leave a run behind: models, measurements and a complete description.

    It may be killed at any moment: ``resume=True`` and the same arguments continue it from the last checkpoint, on a CPU
    to the same numbers.  On SIGINT and SIGTERM it takes a checkpoint and raises ``KeyboardInterrupt``.

    Args:
        model: from images to embeddings.
        loss: of embeddings and labels; what it learns is trained along if it is a module.
        data: batches for training and validation.
        folder: of the run; it must not hold one yet, unless that is to be resumed.
        optimizer: by default AdamW at 1e-4.
        schedule: by default half a cosine.
        settings: by default 20 epochs.
        seed: of everything that the model and the loss draw; batches have the seed of their sampler and loader.
        resume: go on with the run in the folder; one that has ended is returned as it is.
        allow_changes: go on although data, loss or settings are not those of the run.
        allowed: what the configuration was allowed to import, for ``run.yaml``.
        device: ``"cpu"`` to stay there, by default what Accelerate chooses.
        config: the description from which a program made all this, for ``run.yaml``.
        should_continue: receives the metrics of each validation; the training stops where it returns False (pruning).
        lens: looks at a step now and then and touches nothing, such as a `likewise.analysis.Recorder` of the loss.
        keep_start: whether the model before training can be the best one, if no epoch beats it on validation classes.

    Raises:
        NotFinite: the loss was not a number; the batch is saved in the folder.
        Collapsed: all embeddings have become alike.

    Examples:
        >>> import tempfile
        >>> from likewise.losses import ContrastiveLoss
        >>> images, labels = torch.randn(32, 1, 4, 4), torch.arange(32) // 4
        >>> data = Data([(images, labels)] * 5, val=[(images, labels)])
        >>> model, folder = nn.Sequential(nn.Flatten(), nn.Linear(16, 8)), tempfile.mkdtemp() + "/run"
        >>> adam, settings = OptimizerConfig(lr=1e-2), TrainConfig(epochs=4)
        >>> run = train(model, ContrastiveLoss(), data, optimizer=adam, settings=settings, folder=folder, device="cpu")
        >>> run.metrics("val")[0]["MAP@R"] < run.metrics("val")[-1]["MAP@R"], run.finished
        (True, True)
    """
    optimizer, schedule = optimizer or OptimizerConfig(), schedule or ScheduleConfig()
    settings = settings or TrainConfig()
    groups = parameter_groups(model, loss, optimizer)
    _check(settings, groups, data)
    accelerator = make_accelerator(settings, Path(folder), device)
    _may_record(settings, accelerator, data)  # whatever is refused is refused before there is a folder
    Mining(data, settings, accelerator)
    about = (model, loss, data, groups, optimizer, schedule, settings, seed, config)
    description = describe(*about, accelerator.device, lens, allowed)
    if (run := _open_run(Path(folder), description, resume, accelerator)).finished:
        return run
    with run.lock() if accelerator.is_main_process else nullcontext(), stop_requests() as stop_requested:
        made = (model, loss, data, groups, optimizer, schedule, settings, accelerator, run, should_continue, lens)
        training = _Training(*made)
        training.keep_start = keep_start
        seed_everything(seed + accelerator.process_index)
        training.restore(description, resume, allow_changes)
        training.run_to_end(stop_requested)
    accelerator.wait_for_everyone()  # the first one writes
    return run


class _Training:
    """Everything that a training holds, and what it does, in the order in which it does it."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        data: Data,
        groups: list[Group],
        optimizer: OptimizerConfig,
        schedule: ScheduleConfig,
        settings: TrainConfig,
        accelerator: Accelerator,
        run: Run,
        should_continue: Callable[[Mapping[str, Any]], bool] | None,
        lens: Lens | None,
    ) -> None:
        self.model, self.loss, self.data, self.groups = model, loss, data, groups
        self.schedule, self.settings, self.accelerator, self.run = schedule, settings, accelerator, run
        if settings.trackers:
            accelerator.init_trackers("likewise")  # they write at once, so not before the folder is this training's own
        device = accelerator.device
        both = [module for module in (model, loss) if isinstance(module, nn.Module)]
        self.modes = {part: part.training for module in both for part in module.modules()}
        for module in both:
            module.to(device)
            module.train()
        if device.type == "cuda" if settings.channels_last is None else settings.channels_last:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.steps_per_epoch = -(-length(data.train) // settings.accumulate)
        self.can_resume = hasattr(data.train, "state_dict") and hasattr(data.train, "load_state_dict")
        self.record = _may_record(settings, accelerator, data)
        # On a GPU the host must not wait for a loss in every step; a batch of a BatchLoader can be made again later.
        self.watch = device.type == "cpu" or not isinstance(data.train, BatchLoader)
        self.optimizer = make_optimizer(groups, optimizer, capturable=self.record)
        self.prepared = accelerator.prepare_optimizer(self.optimizer)
        self.average = None if settings.ema is None else Average(model, settings.ema)
        self.judged = model if self.average is None else self.average.model
        self.meter = Meter(device)
        self.progress, self.advance = Progress(), Advance()
        self.last_loss: float | None = None
        self.description: dict[str, Any] = {}
        self.values_checked = False
        self.should_continue, self.unwanted, self.keep_start = should_continue, False, True
        self.looks = Looks(lens, main=accelerator.is_main_process)
        self.mining = Mining(data, settings, accelerator)
        self.begun = self.logged = self.saved = time.monotonic()
        # seconds that a checkpoint takes, at first a guess: the parameters and two memories of each at 200 MB/s
        self.took = 12.0 * sum(group.size for group in groups) / 200e6

    def run_to_end(self, stop_requested: Callable[[], bool]) -> None:
        """Run all epochs; write why the training ended, and leave the model as it was found."""
        try:
            self.run_epochs(stop_requested)
        except (NotFinite, Collapsed) as error:
            self.end("collapsed" if isinstance(error, Collapsed) else "not finite", str(error))
            raise
        finally:
            self.release()

    def run_epochs(self, stop_requested: Callable[[], bool]) -> None:
        """From where it is to the end."""
        settings, progress = self.settings, self.progress
        validating = self.data.val is not None and settings.validate_every > 0
        total, show = settings.epochs * self.steps_per_epoch, self.accelerator.is_main_process
        with show_progress("training", total, "step", done=progress.step, show=show) as self.advance:
            if validating and progress.step == 0:
                self.validate()
            step = self.new_step()
            while progress.epoch < settings.epochs and not self.out_of_patience() and not self.unwanted:
                if progress.epoch == settings.trunk_warmup > 0:
                    step = self.new_step()  # from here on everything learns
                step = self.run_epoch(step, stop_requested)
                progress.epoch += 1
                if validating and progress.epoch % settings.validate_every == 0:
                    self.validate()
                    self.ask()
                self.advance.print_line(f"epoch {progress.epoch} of {settings.epochs}: {self.describe_progress()}")
                ended = progress.epoch == settings.epochs or self.out_of_patience() or self.unwanted
                due, stop = self.together(self.affordable(), stop_requested(), now=True)
                if ended or due or stop:
                    self.checkpoint()
                if stop and not ended:
                    raise KeyboardInterrupt
        self.insist_on_numbers()
        if self.accelerator.is_main_process:
            save_model(self.judged, self.run.folder / "model.safetensors", self.data.classes)
        reason = "finished"  # also if the last answer was no: there was nothing left to stop
        if progress.epoch < settings.epochs:
            reason = "stopped" if self.unwanted else "early stopping"
        self.end(reason, f"{progress.epoch} of {settings.epochs} epochs")

    def new_step(self) -> Step | RecordedStep:
        """A step in which those groups learn whose time has come."""
        settings = self.settings
        warming = self.progress.epoch < settings.trunk_warmup
        for group in self.groups:
            for parameter in group.parameters:
                parameter.requires_grad_(not (warming and group.name == "trunk"))
        model: Any = torch.compile(self.model) if settings.compile else self.model
        step = Step(
            self.accelerator,
            on_every_process(model, self.accelerator),
            on_every_process(self.loss, self.accelerator),
            self.prepared,
            self.meter,
            average=self.average,
            clip=settings.clip,
            clip_value=settings.clip_value,
            watch=self.watch,
            chunk=settings.chunk,
        )
        return RecordedStep(step) if self.record else step

    def run_epoch(self, step: Step | RecordedStep, stop_requested: Callable[[], bool]) -> Step | RecordedStep:
        """The batches of an epoch that were not seen yet."""
        settings, progress, device = self.settings, self.progress, self.accelerator.device
        embeddings = None
        for batches in self.batches_of_epoch():
            factor = self.schedule.factor(progress.step, self.steps_per_epoch, settings.epochs)
            for group, row in zip(self.groups, self.optimizer.param_groups, strict=True):
                set_rate(row, group.lr * factor)
            # a batch that is larger than a chunk need not be on the device at once
            pairs = [(batch[0] if settings.chunk else batch[0].to(device), batch[1].to(device)) for batch in batches]
            looked_at = self.looks.before(progress.step + 1)
            try:
                with nullcontext() if self.values_checked else check_values():
                    embeddings = step(pairs)
            except Unrecordable as error:
                step = self.one_by_one(step, str(error))
                embeddings = step(pairs)
            except NotFinite as error:
                raise self.not_finite(error, progress.step + 1, batches) from None
            self.values_checked = True
            progress.step += 1
            self.advance(1)
            if looked_at:
                self.note("lens", **self.looks.after(embeddings, pairs[-1][1]))
            if progress.step % settings.log_every == 0:
                self.look(embeddings)
            if progress.step % self.steps_per_epoch == 0:
                continue  # an epoch's end has its own checkpoint
            due = time.monotonic() - self.saved >= 60.0 * settings.checkpoint_minutes
            due, stop = self.together(due, stop_requested())
            if self.can_resume and (due or stop):
                self.checkpoint()
            if stop:
                raise KeyboardInterrupt
        if embeddings is not None and progress.step % settings.log_every:
            self.look(embeddings)
        return step

    def batches_of_epoch(self) -> Iterator[list[Sequence[Any]]]:
        """The batches of an epoch that were not seen yet, a step's at a time; mined again whenever that is due."""
        progress = self.progress
        while True:
            if self.mining.is_due(progress.step):
                self.mine()
            for several in step_batches(self.data.train, progress.epoch, self.settings.accumulate):
                yield several
                if progress.step % self.steps_per_epoch and self.mining.is_due(progress.step):
                    break  # what the loader has made ahead is of the batches of before
            else:
                return

    def mine(self) -> None:
        """Let the sampler choose by the embeddings of now, and write what that costs."""
        progress = self.progress
        self.insist_on_numbers()
        seconds = self.mining.mine(self.model, progress.epoch, progress.step - progress.epoch * self.steps_per_epoch)
        progress.mining_seconds += seconds
        self.logged += seconds  # images/s are those of training
        self.note("mining", seconds=round(seconds, 3))

    def affordable(self) -> bool:
        """Whether a checkpoint at an epoch's end takes less than a hundredth of the time since the last one."""
        since = time.monotonic() - self.saved
        return since >= min(60.0 * self.settings.checkpoint_minutes, 100.0 * self.took)

    def together(self, *wishes: bool, now: bool = False) -> list[bool]:
        """What any process wishes, so that all do the same; among several they are asked when a line is due."""
        if self.accelerator.num_processes == 1:
            return list(wishes)
        if not now and self.progress.step % self.settings.log_every:
            return [False] * len(wishes)
        return [any(each) for each in zip(*from_all(wishes, self.accelerator), strict=True)]

    def one_by_one(self, step: Step | RecordedStep, why: str) -> Step | RecordedStep:
        """What to do with a step that cannot be recorded: refuse if that was asked for, else make it and say so."""
        if self.settings.graph:
            raise ValueError(f"graph must not be True, because {why}")
        self.note("note", message=f"steps are made one by one, because {why}")
        self.record = False
        return step.step if isinstance(step, RecordedStep) else step

    def look(self, embeddings: Tensor) -> None:
        """Write a line, and stop if the numbers are none or the embeddings all alike."""
        progress = self.progress
        self.insist_on_numbers()
        spread = spread_of(embeddings, self.accelerator)
        images = self.meter.count * len(embeddings) * self.accelerator.num_processes
        loss, seconds = self.meter.mean(), time.monotonic() - self.logged
        rates = {
            group.name: float(row["lr"]) for group, row in zip(self.groups, self.optimizer.param_groups, strict=True)
        }
        speed = {"images_per_s": round(images / max(seconds, 1e-9), 1), "seconds": self.seconds()}
        self.note("train", loss=loss, lr=rates, spread=spread, **speed)
        self.logged = time.monotonic()
        self.last_loss = loss
        self.advance.describe(self.describe_progress())
        if len(embeddings) * self.accelerator.num_processes > 1:
            progress.alike = progress.alike + 1 if spread <= ALIKE else 0
        if progress.alike == ALIKE_CHECKS:
            self.collapsed(spread)

    def describe_progress(self) -> str:
        """The loss and the best metric, for the bar and for the line of an epoch."""
        best, name = self.progress.best, self.settings.metric
        words = [] if self.last_loss is None else [f"loss {self.last_loss:.4f}"]
        words += [] if best is None else [f"best {name} {best:.4f}"]
        words += [f"mining {self.progress.mining_seconds:.1f} s"] if self.mining.every else []
        return ", ".join([*words, f"{self.seconds():.0f} s"])

    def collapsed(self, spread: float) -> None:
        """All embeddings of a batch were alike, several times in a row."""
        message = (
            f"all embeddings have become alike (spread {spread:.1e}) at step {self.progress.step}: "
            "a lower learning rate, another margin or another miner may help"
        )
        if self.settings.on_collapse == "stop":
            raise Collapsed(message)
        warnings.warn(message, stacklevel=2)

    def insist_on_numbers(self) -> None:
        """Stop all processes if a loss of any since the last look was not finite; nothing is kept of what followed."""
        bad, learned = self.meter.first_bad(), [each.detach() for group in self.groups for each in group.parameters]
        back = 0 if bad is None else self.meter.count - bad  # how many losses ago
        finite = bool(nn.utils.get_total_norm(learned).isfinite())
        backs, finites = zip(*from_all([back, finite], self.accelerator), strict=True)
        if any(backs):
            back = int(max(backs))
            whose = [rank for rank, each in enumerate(backs) if each == back]
            error = NotFinite("the loss was not finite" + on(whose, self.accelerator), whose)
            batches = self.again(back) if self.accelerator.process_index in whose else []
            raise self.not_finite(error, self.progress.step - (back - 1) // self.settings.accumulate, batches)
        if not all(finites):
            whose = [rank for rank, each in enumerate(finites) if not each]
            raise NotFinite(
                f"the parameters were not finite after step {self.progress.step}{on(whose, self.accelerator)}, "
                "although the losses were: a gradient was not; last.safetensors is from before",
                whose,
            )

    def not_finite(self, error: NotFinite, step: int, batches: Sequence[Sequence[Tensor]]) -> NotFinite:
        """Save the batch from which it came."""
        when = f"step {step}, in epoch {self.progress.epoch + 1}"
        return NotFinite(keep(error, when, batches, self.run.folder, self.accelerator), error.processes)

    def again(self, back: int) -> list[Sequence[Tensor]]:
        """A batch of this epoch, so many before the next one, made once more."""
        loader, progress = self.data.train, self.progress
        assert isinstance(loader, BatchLoader)
        steps = progress.step - progress.epoch * self.steps_per_epoch
        loader.set_epoch(progress.epoch)
        loader.step = min(steps * self.settings.accumulate, length(loader)) - back
        return list(islice(iter(loader), 1))

    def validate(self) -> None:
        """Measure held-out classes, and keep the best model."""
        progress, begin = self.progress, time.monotonic()
        better = False
        self.insist_on_numbers()
        if self.accelerator.is_main_process:
            assert self.data.val is not None
            if hasattr(self.data.val, "set_epoch"):
                self.data.val.set_epoch(0)  # the same images each time
            scores = evaluate(embed(self.judged, self.data.val, precision=self.settings.precision))
            better = progress.best is None or scores[self.settings.metric] > progress.best
            better &= self.keep_start or progress.step > 0
            if better:
                progress.best = scores[self.settings.metric]
                save_model(self.judged, self.run.folder / "best.safetensors", self.data.classes, scores)
            self.note("val", **scores, best=better, seconds=round(time.monotonic() - begin, 3))
        self.logged += time.monotonic() - begin  # images/s are those of training
        if self.accelerator.num_processes > 1:
            better, progress.best = broadcast_object_list([better, progress.best])
        progress.without_better = 0 if better else progress.without_better + 1

    def ask(self) -> None:
        """Ask the pruning callback whether to continue; the first process asks for all."""
        refused = False
        if self.should_continue is not None and self.accelerator.is_main_process:
            refused = not self.should_continue(self.run.metrics("val")[-1])
        [self.unwanted] = self.together(refused, now=True)

    def out_of_patience(self) -> bool:
        """Whether validation has not improved for too long."""
        return self.settings.patience is not None and self.progress.without_better >= self.settings.patience

    def checkpoint(self) -> None:
        """Write down everything that is needed to go on from here."""
        progress, begin = self.progress, time.monotonic()
        self.insist_on_numbers()
        progress.losses, progress.seconds = self.meter.state(), self.seconds()
        if self.accelerator.is_main_process:
            progress.metrics_size, progress.metrics_sha256 = self.run.seal_metrics()
        loader = self.data.train.state_dict() if self.can_resume else None  # type: ignore[attr-defined]
        progress.loader, loader_tensors = split_tensors(loader)
        rng_states = gather_object([rng_tensors()])
        if self.accelerator.is_main_process:
            tensors = {name: module.state_dict() for name, module in self.modules().items()}
            tensors["optimizer"] = optimizer_tensors(self.optimizer)
            tensors["loader"] = loader_tensors
            tensors["generators"] = {str(place): each.get_state() for place, each in enumerate(self.generators())}
            tensors |= {f"rng_state {rank}": each for rank, each in enumerate(rng_states)}
            scaler = self.accelerator.scaler
            state = {**asdict(progress), "scaler": None if scaler is None else scaler.state_dict()}
            state["description"] = self.description
            save_checkpoint(self.run.folder / "last.safetensors", tensors, state)
        self.saved = time.monotonic()
        self.took = self.saved - begin
        self.logged += self.took

    def restore(self, description: Mapping[str, Any], resume: bool, allow_changes: bool) -> None:
        """Go to the last checkpoint, if there is one, and forget what was measured after it."""
        self.description = {key: plain(description[key]) for key in (*COMPARED, *NOTED_PARTS)}
        file = self.run.folder / "last.safetensors"
        tensors, state = load_checkpoint(file) if file.exists() else ({}, {})
        before = state.pop("description", None) or (self.run.description if resume else {})
        notes = check_same(before, self.description, allow_changes)
        if state:
            notes += self.run.check_metrics(state["metrics_size"], state.get("metrics_sha256"), allow_changes)
            for name, module in self.modules().items():
                load_module(name, module, tensors.get(name, {}), file)
            for place, generator in enumerate(self.generators()):
                generator.set_state(tensors["generators"][str(place)])
            load_optimizer(self.optimizer, tensors.get("optimizer", {}))
            rank = self.accelerator.process_index
            rng_state = tensors.get(f"rng_state {rank}", tensors.get(f"chance {rank}"))  # in older checkpoints
            if rng_state is not None:
                load_rng_state(rng_state)
            scaler = state.pop("scaler")
            if scaler is not None and self.accelerator.scaler is not None:
                self.accelerator.scaler.load_state_dict(scaler)
            del state["format"]
            self.progress = Progress(**state)
            self.meter.load(self.progress.losses)
            self.begun -= self.progress.seconds
            if self.progress.loader is not None:
                loader = join_tensors(self.progress.loader, tensors.get("loader", {}))
                self.data.train.load_state_dict(loader)  # type: ignore[attr-defined]
        elif hasattr(self.data.train, "set_epoch"):
            self.data.train.set_epoch(0)  # wherever an earlier caller left it
        if self.accelerator.is_main_process:
            self.run.forget_after(self.progress.metrics_size)
            for each in notes:
                warnings.warn(f"{self.run.folder} is continued, but {each}", stacklevel=2)
                self.note("note", message=f"continued, but {each}")

    def generators(self) -> list[torch.Generator]:
        """Random number generators of the loss's miners and of torch's loaders, besides those of the whole process."""
        parts = list(self.loss.modules()) if isinstance(self.loss, nn.Module) else []
        holders = [*(getattr(part, "miner", None) for part in parts), *parts, self.data.train]
        found = [getattr(each, "generator", None) for each in holders]
        return list({id(each): each for each in found if isinstance(each, torch.Generator)}.values())

    def modules(self) -> dict[str, nn.Module]:
        """What has numbers to keep."""
        named = {"model": self.model, "loss": self.loss, "average": self.average and self.average.model}
        return {name: each for name, each in named.items() if isinstance(each, nn.Module)}

    def note(self, kind: str, **values: Any) -> None:
        """Write a line, and tell the trackers."""
        if self.accelerator.is_main_process:
            step = self.progress.step
            self.run.log(kind, step=step, epoch=round(step / self.steps_per_epoch, 4), **values)
        if self.settings.trackers:
            flat = {f"{kind}/{name}": x for name, x in values.items() if not isinstance(x, Mapping)}
            flat |= {f"{kind}/lr/{name}": x for name, x in values.get("lr", {}).items()}
            numbers = {name: x for name, x in flat.items() if isinstance(x, int | float)}
            self.accelerator.log(numbers, step=self.progress.step)

    def end(self, reason: str, message: str) -> None:
        """Write the last line."""
        self.note("end", reason=reason, message=message, seconds=self.seconds())

    def seconds(self) -> float:
        """Since the training began, without the time in which it was not running."""
        return round(time.monotonic() - self.begun, 3)

    def release(self) -> None:
        """Leave the model as it was found."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.requires_grad_(True)
        for part, training in self.modes.items():
            part.training = training
        if self.settings.trackers:
            self.accelerator.end_training()


def _open_run(folder: Path, description: Mapping[str, Any], resume: bool, accelerator: Accelerator) -> Run:
    """The run of a training: a new one, or the one that it goes on with."""
    if accelerator.is_main_process and not resume:
        Run.create(folder, description)
    accelerator.wait_for_everyone()
    return Run(folder)


def _check(settings: TrainConfig, groups: list[Group], data: Data) -> None:
    if not length(data.train):
        raise ValueError("data.train must have at least one batch, but it has none")
    if isinstance(data.val, Iterator):
        raise TypeError(f"data.val must be read more than once, but it is a {type(data.val).__name__}")
    if not groups:
        raise ValueError("model must have a parameter that learns, but neither it nor the loss has one")
    names = [group.name for group in groups]
    if settings.trunk_warmup and "trunk" not in names:
        raise ValueError(f"trunk_warmup must be 0 for a model without a group 'trunk', but its groups are {names}")
    if settings.patience is not None and (data.val is None or not settings.validate_every):
        raise ValueError("patience must be None for a training without validation, but it is " + str(settings.patience))
    known = ("P@1", "RP", "MAP@R", "MRR", "mAP", "R@1", "R@2", "R@4", "R@8")
    one_of("metric", settings.metric, known)
    available = [str(each) for each in get_available_trackers()]
    for tracker in settings.trackers:
        if not available:
            raise ValueError(f"trackers must be empty where none is installed, but it is {tracker!r}")
        one_of("each of trackers", tracker, available, "(which are installed)")


def _may_record(settings: TrainConfig, accelerator: Accelerator, data: Data) -> bool:
    reason = RecordedStep.possible(
        accelerator.device,
        processes=accelerator.num_processes,
        accumulate=settings.accumulate,
        precision=settings.precision,
        compiled=settings.compile,
        chunk=settings.chunk,
    )
    if reason is None and not isinstance(data.train, BatchLoader):
        reason = "a batch that was not finite could not be made again: data.train is not a BatchLoader"
    if settings.graph and reason is not None:
        raise ValueError(f"graph must not be True, because {reason}")
    return settings.graph is not False and reason is None
