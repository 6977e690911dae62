"""The training loop, from top to bottom."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from likewise.data import BatchLoader
from likewise.formula import check_values
from likewise.progress import Advance
from likewise.progress import progress as show_progress
from likewise.train.checkpoint import save_model
from likewise.train.checkpoints import Checkpoints
from likewise.train.description import Data, length
from likewise.train.finite import FiniteCheck
from likewise.train.groups import Group, make_optimizer, set_rate
from likewise.train.guards import Collapsed, NotFinite, measure_spread
from likewise.train.lens import Lens, LensHook
from likewise.train.mining import Mining, step_batches
from likewise.train.processes import gather_numbers, wrap_for_processes
from likewise.train.requirements import can_record
from likewise.train.run import Run
from likewise.train.settings import OptimizerConfig, ScheduleConfig, TrainConfig
from likewise.train.snapshot import Progress, Snapshot
from likewise.train.step import Average, Loss, Meter, RecordedStep, Step, Unrecordable
from likewise.train.validation import Validation

COLLAPSED_SPREAD = 1e-4
"""Embeddings have collapsed when their spread (see `measure_spread`) is not above this value..."""

COLLAPSED_CHECKS = 3
"""...in this number of consecutive lines of the log."""


class TrainingLoop:
    """The state of a training run, and its methods in the order in which they are called."""

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
        keep_start: bool,
        begin: float,
    ) -> None:
        self.model, self.loss, self.data, self.groups = model, loss, data, groups
        self.schedule, self.settings, self.accelerator, self.run = schedule, settings, accelerator, run
        if settings.trackers:
            accelerator.init_trackers("likewise")  # trackers write at once, so the folder must exist
        device = accelerator.device
        both = [module for module in (model, loss) if isinstance(module, nn.Module)]
        self.modes = {part: part.training for module in both for part in module.modules()}
        for module in both:
            module.to(device)
            module.train()
        if device.type == "cuda" if settings.channels_last is None else settings.channels_last:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.steps_per_epoch = -(-length(data.train) // settings.accumulate)
        self.record = can_record(settings, accelerator, data)
        # On a GPU the host must not wait for a loss in every step; a batch of a BatchLoader can be loaded again.
        self.watch = device.type == "cpu" or not isinstance(data.train, BatchLoader)
        self.optimizer = make_optimizer(groups, optimizer, capturable=self.record)
        self.prepared = accelerator.prepare_optimizer(self.optimizer)
        self.average = None if settings.ema is None else Average(model, settings.ema)
        average = None if self.average is None else self.average.model
        self.evaluated = model if average is None else average
        self.meter = Meter(device)
        snapshot = Snapshot(
            run.folder / "last.safetensors", model, loss, average, data.train, self.optimizer, accelerator
        )
        self.checkpoints = Checkpoints(snapshot, run, data.train, self.meter, groups, settings.checkpoint_minutes)
        self.validation = Validation(self.evaluated, data, settings, run, accelerator, should_continue, keep_start)
        self.finite = FiniteCheck(self.meter, groups, data.train, settings.accumulate, run.folder, accelerator)
        self.mining = Mining(data, settings, accelerator, loss)
        self.lens = LensHook(lens, main=accelerator.is_main_process)
        self.progress, self.advance = Progress(), Advance()
        self.last_loss: float | None = None
        self.values_checked = self.is_pruned = False
        self.start_time = self.log_time = time.monotonic()
        self.setup_seconds = self.start_time - begin

    def restore(self, description: Mapping[str, Any], resume: bool, allow_changes: bool) -> None:
        """Continue from the last checkpoint, if there is one, and log what differs from the run that was saved."""
        self.progress, notes = self.checkpoints.restore(description, resume, allow_changes)
        self.start_time -= self.progress.seconds
        if self.accelerator.is_main_process:
            for each in notes:
                warnings.warn(f"{self.run.folder} is continued, but {each}", stacklevel=2)
                self.log("note", message=f"continued, but {each}")

    def run_to_end(self, stop_requested: Callable[[], bool]) -> None:
        """Run all epochs; log why the run ended, and restore the modes of the modules."""
        try:
            self.run_epochs(stop_requested)
        except (NotFinite, Collapsed) as error:
            self.end("collapsed" if isinstance(error, Collapsed) else "not finite", str(error))
            raise
        finally:
            self.release()

    def run_epochs(self, stop_requested: Callable[[], bool]) -> None:
        """Run the remaining epochs."""
        settings, progress, validation = self.settings, self.progress, self.validation
        total, show = settings.epochs * self.steps_per_epoch, self.accelerator.is_main_process
        with show_progress("training", total, "step", done=progress.step, show=show) as self.advance:
            if progress.step == 0 and validation.is_due(0):
                self.validate()
            self.steps_time = time.monotonic()
            step = self.new_step()
            while not self.is_over():
                if progress.epoch == settings.trunk_warmup > 0:
                    step = self.new_step()  # from here on all groups are trained
                step = self.run_epoch(step, stop_requested)
                progress.epoch += 1
                if validation.is_due(progress.epoch):
                    self.validate()
                    [self.is_pruned] = self.any_process(validation.wants_pruning(), now=True)
                self.advance.print_line(f"epoch {progress.epoch} of {settings.epochs}: {self.describe_progress()}")
                due, stop = self.any_process(self.checkpoints.is_due_at_epoch_end(), stop_requested(), now=True)
                if self.is_over() or due or stop:
                    self.checkpoint()
                if stop and not self.is_over():
                    raise KeyboardInterrupt
        self.finite(progress)
        if self.accelerator.is_main_process:
            save_model(self.evaluated, self.run.folder / "model.safetensors", self.data.classes)
        reason = "finished"  # also if the pruning callback stopped it after the last epoch
        if progress.epoch < settings.epochs:
            reason = "stopped" if self.is_pruned else "early stopping"
        self.end(reason, f"{progress.epoch} of {settings.epochs} epochs")

    def is_over(self) -> bool:
        """Whether all epochs are done, or the run is stopped early or pruned."""
        done = self.progress.epoch >= self.settings.epochs
        return done or self.is_pruned or self.validation.is_out_of_patience(self.progress)

    def new_step(self) -> Step | RecordedStep:
        """Make a step that trains all groups, except the trunk during its warmup."""
        settings = self.settings
        warming = self.progress.epoch < settings.trunk_warmup
        for group in self.groups:
            for parameter in group.parameters:
                parameter.requires_grad_(not (warming and group.name == "trunk"))
        model: Any = torch.compile(self.model) if settings.compile else self.model
        step = Step(
            self.accelerator,
            wrap_for_processes(model, self.accelerator),
            wrap_for_processes(self.loss, self.accelerator),
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
        """Train on the remaining batches of an epoch."""
        settings, progress, device = self.settings, self.progress, self.accelerator.device
        embeddings = None
        for batches in self.batches_of_epoch():
            factor = self.schedule.factor(progress.step, self.steps_per_epoch, settings.epochs)
            for group, row in zip(self.groups, self.optimizer.param_groups, strict=True):
                set_rate(row, group.lr * factor)
            # a batch that is larger than a chunk need not be on the device at once
            pairs = [(batch[0] if settings.chunk else batch[0].to(device), batch[1].to(device)) for batch in batches]
            is_observed = self.lens.before(progress.step + 1)
            try:
                with nullcontext() if self.values_checked else check_values():
                    embeddings = step(pairs)
            except Unrecordable as error:
                step = self.stop_recording(step, str(error))
                embeddings = step(pairs)
            except NotFinite as error:
                raise self.finite.save_batches(error, progress.step + 1, progress.epoch, batches) from None
            self.values_checked = True
            progress.step += 1
            if progress.step == 1:
                seconds = {"setup": self.setup_seconds, "first_step": time.monotonic() - self.steps_time}
                self.log("start", seconds={name: round(each, 3) for name, each in seconds.items()})
            self.advance(1)
            if is_observed:
                self.log("lens", **self.lens.after(embeddings, pairs[-1][1]))
            if progress.step % settings.log_every == 0:
                self.log_step(embeddings)
            if progress.step % self.steps_per_epoch == 0:
                continue  # checkpoints at the end of an epoch are decided after its validation
            due, stop = self.any_process(self.checkpoints.is_due(), stop_requested())
            if self.checkpoints.can_save_within_epoch and (due or stop):
                self.checkpoint()
            if stop:
                raise KeyboardInterrupt
        if embeddings is not None and progress.step % settings.log_every:
            self.log_step(embeddings)
        return step

    def batches_of_epoch(self) -> Iterator[list[Sequence[Any]]]:
        """Iterate over the remaining batches of an epoch, in lists of one step; mine whenever that is due."""
        progress = self.progress
        while True:
            if self.mining.is_due(progress.step):
                self.mine()
            for batches in step_batches(self.data.train, progress.epoch, self.settings.accumulate):
                yield batches
                if progress.step % self.steps_per_epoch and self.mining.is_due(progress.step):
                    break  # prefetched batches belong to the old mining
            else:
                return

    def mine(self) -> None:
        """Give the sampler and the loss the current embeddings, and log the time that it takes."""
        progress = self.progress
        self.finite(progress)
        seconds = self.mining.mine(self.model, progress.epoch, progress.step - progress.epoch * self.steps_per_epoch)
        progress.mining_seconds += seconds
        self.log_time += seconds  # images/s are those of training
        self.log("mining", seconds=round(seconds, 3))

    def any_process(self, *requests: bool, now: bool = False) -> list[bool]:
        """Combine requests of all processes, so that all act alike; several processes communicate once per log line."""
        if self.accelerator.num_processes == 1:
            return list(requests)
        if not now and self.progress.step % self.settings.log_every:
            return [False] * len(requests)
        return [any(each) for each in zip(*gather_numbers(requests, self.accelerator), strict=True)]

    def stop_recording(self, step: Step | RecordedStep, why: str) -> Step | RecordedStep:
        """Continue without a CUDA graph, and log the reason; raise an error if the settings require a graph."""
        if self.settings.graph:
            raise ValueError(f"graph must not be True, because {why}")
        self.log("note", message=f"steps are not recorded as a CUDA graph, because {why}")
        self.record = False
        return step.step if isinstance(step, RecordedStep) else step

    def log_step(self, embeddings: Tensor) -> None:
        """Log a step; stop if the loss is not finite or the embeddings have collapsed."""
        progress = self.progress
        self.finite(progress)
        spread = measure_spread(embeddings, self.accelerator)
        images = self.meter.count * len(embeddings) * self.accelerator.num_processes
        loss, seconds = self.meter.mean(), time.monotonic() - self.log_time
        rates = {
            group.name: float(row["lr"]) for group, row in zip(self.groups, self.optimizer.param_groups, strict=True)
        }
        speed = {"images_per_s": round(images / max(seconds, 1e-9), 1), "seconds": self.seconds()}
        self.log("train", loss=loss, lr=rates, spread=spread, **speed)
        self.log_time = time.monotonic()
        self.last_loss = loss
        self.advance.describe(self.describe_progress())
        if len(embeddings) * self.accelerator.num_processes > 1:
            progress.alike = progress.alike + 1 if spread <= COLLAPSED_SPREAD else 0
        if progress.alike == COLLAPSED_CHECKS:
            self.report_collapse(spread)

    def describe_progress(self) -> str:
        """Format the loss and the best metric, for the progress bar and the line of an epoch."""
        best, name = self.progress.best, self.settings.metric
        words = [] if self.last_loss is None else [f"loss {self.last_loss:.4f}"]
        words += [] if best is None else [f"best {name} {best:.4f}"]
        words += [f"mining {self.progress.mining_seconds:.1f} s"] if self.mining.every else []
        return ", ".join([*words, f"{self.seconds():.0f} s"])

    def report_collapse(self, spread: float) -> None:
        """Raise an error, or warn, that the embeddings have collapsed to one point."""
        message = (
            f"all embeddings have become alike (spread {spread:.1e}) at step {self.progress.step}: "
            "a lower learning rate, another margin or another miner may help"
        )
        if self.settings.on_collapse == "stop":
            raise Collapsed(message)
        warnings.warn(message, stacklevel=2)

    def validate(self) -> None:
        """Evaluate on held-out classes, and log the metrics."""
        begin = time.monotonic()
        self.finite(self.progress)
        scores = self.validation.evaluate(self.progress)
        if scores:
            self.log("val", **scores, seconds=round(time.monotonic() - begin, 3))
        self.log_time += time.monotonic() - begin  # images/s are those of training

    def checkpoint(self) -> None:
        """Save everything that is needed to continue from here."""
        self.finite(self.progress)
        self.progress.seconds = self.seconds()
        self.log_time += self.checkpoints.save(self.progress)

    def log(self, kind: str, **values: Any) -> None:
        """Write a line to the run and to the trackers."""
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
        self.log("end", reason=reason, message=message, seconds=self.seconds())

    def seconds(self) -> float:
        """The duration of the run in seconds, without interruptions."""
        return round(time.monotonic() - self.start_time, 3)

    def release(self) -> None:
        """Restore the modes of the modules, and close the trackers."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.requires_grad_(True)
        for part, training in self.modes.items():
            part.training = training
        if self.settings.trackers:
            self.accelerator.end_training()
