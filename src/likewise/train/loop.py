"""The training loop, from top to bottom."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn

from likewise.data import BatchLoader, PairTable
from likewise.formula import check_values
from likewise.progress import Advance
from likewise.progress import progress as show_progress
from likewise.train.checkpoint import save_model
from likewise.train.description import COMPARED, NOTED, Data, check_same, describe, length
from likewise.train.embedding import RECALLS, embed, evaluate, evaluate_both_ways
from likewise.train.groups import Group, make_optimizer, parameter_groups, set_rate
from likewise.train.guards import Collapsed, NotFinite, keep, on, spread_of
from likewise.train.lens import Lens, Looks
from likewise.train.mining import Mining, step_batches
from likewise.train.processes import from_all, make_accelerator, on_every_process, seed_everything, stop_requests
from likewise.train.requirements import can_record, check_settings, check_space
from likewise.train.run import Run, plain
from likewise.train.settings import OptimizerConfig, ScheduleConfig, TrainConfig
from likewise.train.snapshot import Progress, Snapshot
from likewise.train.step import Average, Loss, Meter, RecordedStep, Step, Unrecordable

ALIKE = 1e-4
"""Embeddings are alike when the squared length of their mean, of unit vectors, is as close as this to one."""

NOTED_PARTS = tuple(dict.fromkeys(key.partition(".")[0] for key in NOTED))

ALIKE_CHECKS = 3
"""Number of consecutive observations."""


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
    """Train a model, and write a run: models, measurements and a complete description.

    It can be killed at any moment: ``resume=True`` and the same arguments continue it from the last checkpoint, on a CPU
    to the same numbers.  On SIGINT and SIGTERM it takes a checkpoint and raises ``KeyboardInterrupt``.

    Args:
        model: from images to embeddings.
        loss: a function of embeddings and labels; its parameters are trained too if it is a module.
        data: batches for training and validation.
        folder: of the run; it must not contain one, unless it is resumed.
        optimizer: by default AdamW at 1e-4.
        schedule: by default half a cosine.
        settings: by default 20 epochs.
        seed: of everything that the model and the loss draw; batches have the seed of their sampler and loader.
        resume: continue the run in the folder; a finished one is returned unchanged.
        allow_changes: continue although data, loss or settings differ from those of the run.
        allowed: packages that the configuration was allowed to import, for ``run.yaml``.
        device: ``"cpu"``, or by default the device that Accelerate chooses.
        config: the description from which a program made all this, for ``run.yaml``.
        should_continue: receives the metrics of each validation; the training stops if it returns False (pruning).
        lens: observes some steps without changing them, such as a `likewise.analysis.Recorder` of the loss.
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
    with run.lock() if accelerator.is_main_process else nullcontext(), stop_requests() as stop_requested:
        training = _Training(*parts, accelerator, run, should_continue, lens, keep_start, begin)
        seed_everything(seed + accelerator.process_index)
        training.restore(description, resume, allow_changes)
        training.run_to_end(stop_requested)
    accelerator.wait_for_everyone()  # the main process writes
    return run


class _Training:
    """The state of a training, and its methods in the order in which they run."""

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
            accelerator.init_trackers("likewise")  # they write at once, so the folder must exist
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
        self.record = can_record(settings, accelerator, data)
        # On a GPU the host must not wait for a loss in every step; a batch of a BatchLoader can be loaded again.
        self.watch = device.type == "cpu" or not isinstance(data.train, BatchLoader)
        self.optimizer = make_optimizer(groups, optimizer, capturable=self.record)
        self.prepared = accelerator.prepare_optimizer(self.optimizer)
        self.average = None if settings.ema is None else Average(model, settings.ema)
        self.evaluated = model if self.average is None else self.average.model
        average = None if self.average is None else self.average.model
        self.snapshot = Snapshot(
            run.folder / "last.safetensors", model, loss, average, data.train, self.optimizer, accelerator
        )
        self.meter = Meter(device)
        self.progress, self.advance = Progress(), Advance()
        self.last_loss: float | None = None
        self.description: dict[str, Any] = {}
        self.values_checked = False
        self.should_continue, self.is_pruned, self.keep_start = should_continue, False, keep_start
        self.looks = Looks(lens, main=accelerator.is_main_process)
        self.mining = Mining(data, settings, accelerator, loss)
        self.start_time = self.log_time = self.checkpoint_time = time.monotonic()
        self.setup_seconds = self.start_time - begin
        # at first an estimate: the parameters and two moments of each at 200 MB/s
        self.checkpoint_seconds = 12.0 * sum(group.size for group in groups) / 200e6

    def run_to_end(self, stop_requested: Callable[[], bool]) -> None:
        """Run all epochs; log why the training ended, and restore the modes of the modules."""
        try:
            self.run_epochs(stop_requested)
        except (NotFinite, Collapsed) as error:
            self.end("collapsed" if isinstance(error, Collapsed) else "not finite", str(error))
            raise
        finally:
            self.release()

    def run_epochs(self, stop_requested: Callable[[], bool]) -> None:
        """Run the remaining epochs."""
        settings, progress = self.settings, self.progress
        validating = self.data.val is not None and settings.validate_every > 0
        total, show = settings.epochs * self.steps_per_epoch, self.accelerator.is_main_process
        with show_progress("training", total, "step", done=progress.step, show=show) as self.advance:
            if validating and progress.step == 0:
                self.validate()
            self.steps_time = time.monotonic()
            step = self.new_step()
            while progress.epoch < settings.epochs and not self.out_of_patience() and not self.is_pruned:
                if progress.epoch == settings.trunk_warmup > 0:
                    step = self.new_step()  # from here on all groups learn
                step = self.run_epoch(step, stop_requested)
                progress.epoch += 1
                if validating and progress.epoch % settings.validate_every == 0:
                    self.validate()
                    self.ask_pruning()
                self.advance.print_line(f"epoch {progress.epoch} of {settings.epochs}: {self.describe_progress()}")
                ended = progress.epoch == settings.epochs or self.out_of_patience() or self.is_pruned
                due, stop = self.any_process(self.can_afford_checkpoint(), stop_requested(), now=True)
                if ended or due or stop:
                    self.checkpoint()
                if stop and not ended:
                    raise KeyboardInterrupt
        self.check_finite()
        if self.accelerator.is_main_process:
            save_model(self.evaluated, self.run.folder / "model.safetensors", self.data.classes)
        reason = "finished"  # also if the pruning callback stopped it after the last epoch
        if progress.epoch < settings.epochs:
            reason = "stopped" if self.is_pruned else "early stopping"
        self.end(reason, f"{progress.epoch} of {settings.epochs} epochs")

    def new_step(self) -> Step | RecordedStep:
        """A step that trains all groups, without the trunk during its warmup."""
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
        """Train on the remaining batches of an epoch."""
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
                step = self.stop_recording(step, str(error))
                embeddings = step(pairs)
            except NotFinite as error:
                raise self.not_finite(error, progress.step + 1, batches) from None
            self.values_checked = True
            progress.step += 1
            if progress.step == 1:
                seconds = {"setup": self.setup_seconds, "first_step": time.monotonic() - self.steps_time}
                self.note("start", seconds={name: round(each, 3) for name, each in seconds.items()})
            self.advance(1)
            if looked_at:
                self.note("lens", **self.looks.after(embeddings, pairs[-1][1]))
            if progress.step % settings.log_every == 0:
                self.log_step(embeddings)
            if progress.step % self.steps_per_epoch == 0:
                continue  # the end of an epoch writes a checkpoint anyway
            due = time.monotonic() - self.checkpoint_time >= 60.0 * settings.checkpoint_minutes
            due, stop = self.any_process(due, stop_requested())
            if self.can_resume and (due or stop):
                self.checkpoint()
            if stop:
                raise KeyboardInterrupt
        if embeddings is not None and progress.step % settings.log_every:
            self.log_step(embeddings)
        return step

    def batches_of_epoch(self) -> Iterator[list[Sequence[Any]]]:
        """The remaining batches of an epoch, a step's at a time; mined again whenever that is due."""
        progress = self.progress
        while True:
            if self.mining.is_due(progress.step):
                self.mine()
            for several in step_batches(self.data.train, progress.epoch, self.settings.accumulate):
                yield several
                if progress.step % self.steps_per_epoch and self.mining.is_due(progress.step):
                    break  # prefetched batches belong to the old mining
            else:
                return

    def mine(self) -> None:
        """Give the sampler and the loss the current embeddings, and log the cost."""
        progress = self.progress
        self.check_finite()
        seconds = self.mining.mine(self.model, progress.epoch, progress.step - progress.epoch * self.steps_per_epoch)
        progress.mining_seconds += seconds
        self.log_time += seconds  # images/s are those of training
        self.note("mining", seconds=round(seconds, 3))

    def can_afford_checkpoint(self) -> bool:
        """Whether a checkpoint at an epoch's end takes less than a hundredth of the time since the last one."""
        since = time.monotonic() - self.checkpoint_time
        return since >= min(60.0 * self.settings.checkpoint_minutes, 100.0 * self.checkpoint_seconds)

    def any_process(self, *wishes: bool, now: bool = False) -> list[bool]:
        """Whether any process requests each of several things, so that all do the same; several communicate once per log line."""
        if self.accelerator.num_processes == 1:
            return list(wishes)
        if not now and self.progress.step % self.settings.log_every:
            return [False] * len(wishes)
        return [any(each) for each in zip(*from_all(wishes, self.accelerator), strict=True)]

    def stop_recording(self, step: Step | RecordedStep, why: str) -> Step | RecordedStep:
        """Continue without recording, and log the reason; an error if the settings require recording."""
        if self.settings.graph:
            raise ValueError(f"graph must not be True, because {why}")
        self.note("note", message=f"steps are not recorded as a CUDA graph, because {why}")
        self.record = False
        return step.step if isinstance(step, RecordedStep) else step

    def log_step(self, embeddings: Tensor) -> None:
        """Log a step; stop if the loss is not finite or all embeddings are alike."""
        progress = self.progress
        self.check_finite()
        spread = spread_of(embeddings, self.accelerator)
        images = self.meter.count * len(embeddings) * self.accelerator.num_processes
        loss, seconds = self.meter.mean(), time.monotonic() - self.log_time
        rates = {
            group.name: float(row["lr"]) for group, row in zip(self.groups, self.optimizer.param_groups, strict=True)
        }
        speed = {"images_per_s": round(images / max(seconds, 1e-9), 1), "seconds": self.seconds()}
        self.note("train", loss=loss, lr=rates, spread=spread, **speed)
        self.log_time = time.monotonic()
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
        """Raise an error, or warn, that all embeddings of a batch were alike several times in a row."""
        message = (
            f"all embeddings have become alike (spread {spread:.1e}) at step {self.progress.step}: "
            "a lower learning rate, another margin or another miner may help"
        )
        if self.settings.on_collapse == "stop":
            raise Collapsed(message)
        warnings.warn(message, stacklevel=2)

    def check_finite(self) -> None:
        """Stop all processes if any loss since the last log line was not finite; nothing after it is saved."""
        bad, learned = self.meter.first_bad(), [each.detach() for group in self.groups for each in group.parameters]
        back = 0 if bad is None else self.meter.count - bad  # number of losses ago
        finite = bool(nn.utils.get_total_norm(learned).isfinite())
        backs, finites = zip(*from_all([back, finite], self.accelerator), strict=True)
        if any(backs):
            back = int(max(backs))
            whose = [rank for rank, each in enumerate(backs) if each == back]
            error = NotFinite("the loss was not finite" + on(whose, self.accelerator), whose)
            batches = self.load_again(back) if self.accelerator.process_index in whose else []
            raise self.not_finite(error, self.progress.step - (back - 1) // self.settings.accumulate, batches)
        if not all(finites):
            whose = [rank for rank, each in enumerate(finites) if not each]
            raise NotFinite(
                f"the parameters were not finite after step {self.progress.step}{on(whose, self.accelerator)}, "
                "although the losses were: a gradient was not; last.safetensors is from before",
                whose,
            )

    def not_finite(self, error: NotFinite, step: int, batches: Sequence[Sequence[Tensor]]) -> NotFinite:
        """Save the batch, and return the error that names its file."""
        when = f"step {step}, in epoch {self.progress.epoch + 1}"
        return NotFinite(keep(error, when, batches, self.run.folder, self.accelerator), error.processes)

    def load_again(self, back: int) -> list[Sequence[Tensor]]:
        """Load an earlier batch of this epoch again, ``back`` batches before the next one."""
        loader, progress = self.data.train, self.progress
        assert isinstance(loader, BatchLoader)
        steps = progress.step - progress.epoch * self.steps_per_epoch
        loader.set_epoch(progress.epoch)
        loader.step = min(steps * self.settings.accumulate, length(loader)) - back
        return list(islice(iter(loader), 1))

    def validate(self) -> None:
        """Evaluate on held-out classes, and save the best model."""
        progress, begin = self.progress, time.monotonic()
        better = False
        self.check_finite()
        if self.accelerator.is_main_process:
            assert self.data.val is not None
            if hasattr(self.data.val, "set_epoch"):
                self.data.val.set_epoch(0)  # the same images each time
            embedded = embed(self.evaluated, self.data.val, precision=self.settings.precision)
            images, ks = getattr(self.data.val, "images", None), self.settings.ks or RECALLS
            if isinstance(images, PairTable) and images.is_query is not None:
                scores = evaluate_both_ways(embedded, images.is_query, images.sides, ks=ks)
            else:
                scores = evaluate(embedded, ks=ks, cameras=getattr(images, "cameras", None))
            better = progress.best is None or scores[self.settings.metric] > progress.best
            better &= self.keep_start or progress.step > 0
            if better:
                progress.best = scores[self.settings.metric]
                save_model(self.evaluated, self.run.folder / "best.safetensors", self.data.classes, scores)
            self.note("val", **scores, best=better, seconds=round(time.monotonic() - begin, 3))
        self.log_time += time.monotonic() - begin  # images/s are those of training
        if self.accelerator.num_processes > 1:
            better, progress.best = broadcast_object_list([better, progress.best])
        progress.without_better = 0 if better else progress.without_better + 1

    def ask_pruning(self) -> None:
        """Ask the pruning callback whether to continue; the first process decides for all."""
        refused = False
        if self.should_continue is not None and self.accelerator.is_main_process:
            refused = not self.should_continue(self.run.metrics("val")[-1])
        [self.is_pruned] = self.any_process(refused, now=True)

    def out_of_patience(self) -> bool:
        """Whether validation has not improved for too long."""
        return self.settings.patience is not None and self.progress.without_better >= self.settings.patience

    def checkpoint(self) -> None:
        """Save everything that is needed to continue from here."""
        progress, start = self.progress, time.monotonic()
        self.check_finite()
        progress.losses, progress.seconds = self.meter.state(), self.seconds()
        if self.accelerator.is_main_process:
            progress.metrics_size, progress.metrics_sha256 = self.run.seal_metrics()
        progress.loader = self.data.train.state_dict() if self.can_resume else None  # type: ignore[attr-defined]
        self.snapshot.save(progress, self.description)
        self.checkpoint_time = time.monotonic()
        self.checkpoint_seconds = self.checkpoint_time - start
        self.log_time += self.checkpoint_seconds

    def restore(self, description: Mapping[str, Any], resume: bool, allow_changes: bool) -> None:
        """Return to the last checkpoint, if there is one, and drop later measurements."""
        self.description = {key: plain(description[key]) for key in (*COMPARED, *NOTED_PARTS)}
        tensors, state = self.snapshot.read()
        before = state.pop("description", None) or (self.run.description if resume else {})
        notes = check_same(before, self.description, allow_changes)
        if state:
            notes += self.run.check_metrics(state["metrics_size"], state.get("metrics_sha256"), allow_changes)
            notes += self.run.check_best(allow_changes)
            self.progress = self.snapshot.load(tensors, state)
            self.meter.load(self.progress.losses)
            self.start_time -= self.progress.seconds
            if self.progress.loader is not None:
                self.data.train.load_state_dict(self.progress.loader)  # type: ignore[attr-defined]
        elif hasattr(self.data.train, "set_epoch"):
            self.data.train.set_epoch(0)  # an earlier caller may have advanced it
        if self.accelerator.is_main_process:
            self.run.forget_after(self.progress.metrics_size)
            for each in notes:
                warnings.warn(f"{self.run.folder} is continued, but {each}", stacklevel=2)
                self.note("note", message=f"continued, but {each}")

    def note(self, kind: str, **values: Any) -> None:
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
        self.note("end", reason=reason, message=message, seconds=self.seconds())

    def seconds(self) -> float:
        """Seconds of training, without the time in which it was not running."""
        return round(time.monotonic() - self.start_time, 3)

    def release(self) -> None:
        """Restore the modes of the modules, and end the trackers."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.requires_grad_(True)
        for part, training in self.modes.items():
            part.training = training
        if self.settings.trackers:
            self.accelerator.end_training()


def _open_run(folder: Path, description: Mapping[str, Any], resume: bool, accelerator: Accelerator) -> Run:
    """Create a run, or open the one that is resumed."""
    if accelerator.is_main_process and not resume:
        Run.create(folder, description)
    accelerator.wait_for_everyone()
    return Run(folder)
