"""Detection of losses and parameters that are not finite, with the batch that caused them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from accelerate import Accelerator
from torch import Tensor, nn

from likewise.data import BatchLoader
from likewise.train.description import Batches, length
from likewise.train.groups import Group
from likewise.train.guards import NotFinite, name_processes, save_failed_batches
from likewise.train.processes import gather_numbers
from likewise.train.snapshot import Progress
from likewise.train.step import Meter


class FiniteCheck:
    """Checks that all losses since the last reset of a meter, and all parameters, are finite.

    A loss is checked some steps after it was computed, because reading it in every step would make the host wait for
    the GPU.  The batch that caused the error is loaded again and saved.

    Args:
        meter: the losses.
        groups: the trained parameters.
        batches: the training data; a `likewise.data.BatchLoader` can load an earlier batch again.
        accumulate: number of batches in a step.
        folder: where a batch is saved.
        accelerator: the processes, which all raise the same error.
    """

    def __init__(
        self,
        meter: Meter,
        groups: list[Group],
        batches: Batches,
        accumulate: int,
        folder: Path,
        accelerator: Accelerator,
    ) -> None:
        self.meter, self.groups, self.batches, self.accumulate = meter, groups, batches, accumulate
        self.folder, self.accelerator = folder, accelerator
        self.steps_per_epoch = -(-length(batches) // accumulate)

    def __call__(self, progress: Progress) -> None:
        """Raise `NotFinite` on all processes if a loss or a parameter of any process is not finite."""
        bad, learned = self.meter.first_bad(), [each.detach() for group in self.groups for each in group.parameters]
        back = 0 if bad is None else self.meter.count - bad  # number of losses ago
        finite = bool(nn.utils.get_total_norm(learned).isfinite())
        backs, finites = zip(*gather_numbers([back, finite], self.accelerator), strict=True)
        if any(backs):
            back = int(max(backs))
            ranks = [rank for rank, each in enumerate(backs) if each == back]
            error = NotFinite("the loss was not finite" + name_processes(ranks, self.accelerator), ranks)
            batches = self._load_again(back, progress) if self.accelerator.process_index in ranks else []
            raise self.save_batches(error, progress.step - (back - 1) // self.accumulate, progress.epoch, batches)
        if not all(finites):
            ranks = [rank for rank, each in enumerate(finites) if not each]
            raise NotFinite(
                f"the parameters were not finite after step {progress.step}{name_processes(ranks, self.accelerator)}, "
                "although the losses were: a gradient was not; last.safetensors is from before",
                ranks,
            )

    def save_batches(self, error: NotFinite, step: int, epoch: int, batches: Sequence[Sequence[Tensor]]) -> NotFinite:
        """Save the batches of a step, and return the error with the name of their file."""
        when = f"step {step}, in epoch {epoch + 1}"
        message = save_failed_batches(error, when, batches, self.folder, self.accelerator)
        return NotFinite(message, error.processes)

    def _load_again(self, back: int, progress: Progress) -> list[Sequence[Tensor]]:
        """Load an earlier batch of this epoch again, ``back`` batches before the next one."""
        loader = self.batches
        assert isinstance(loader, BatchLoader)
        steps = progress.step - progress.epoch * self.steps_per_epoch
        loader.set_epoch(progress.epoch)
        loader.step = min(steps * self.accumulate, length(loader)) - back
        return list(islice(iter(loader), 1))
