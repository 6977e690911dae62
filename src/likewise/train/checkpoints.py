"""When a training run saves checkpoints, and how it continues from the last one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from likewise.train.description import COMPARED, NOTED, Batches, check_same
from likewise.train.groups import Group
from likewise.train.run import Run, plain
from likewise.train.snapshot import Progress, Snapshot
from likewise.train.step import Meter

NOTED_PARTS = tuple(dict.fromkeys(key.partition(".")[0] for key in NOTED))


class Checkpoints:
    """Saves the state of a training run at intervals, and restores it.

    Args:
        snapshot: the modules, optimizer and generators, and their file.
        run: the run; its metrics are truncated to the state of a restored checkpoint.
        batches: the training data; a loader with ``state_dict`` and ``load_state_dict`` continues within an epoch.
        meter: the losses since the last line of the log.
        groups: the trained parameters, for an estimate of the duration of the first checkpoint.
        minutes: the maximum time between two checkpoints.
    """

    def __init__(
        self, snapshot: Snapshot, run: Run, batches: Batches, meter: Meter, groups: list[Group], minutes: float
    ) -> None:
        self.snapshot, self.run, self.batches, self.meter = snapshot, run, batches, meter
        self.interval = 60.0 * minutes
        self.can_save_within_epoch = hasattr(batches, "state_dict") and hasattr(batches, "load_state_dict")
        self.description: dict[str, Any] = {}
        self._last = time.monotonic()
        # at first an estimate: the parameters and two moments of each at 200 MB/s
        self._seconds = 12.0 * sum(group.size for group in groups) / 200e6

    def is_due(self) -> bool:
        """Whether the time since the last checkpoint has reached the maximum."""
        return time.monotonic() - self._last >= self.interval

    def is_due_at_epoch_end(self) -> bool:
        """Whether it is due, or takes less than a hundredth of the time since the last one."""
        return time.monotonic() - self._last >= min(self.interval, 100.0 * self._seconds)

    def save(self, progress: Progress) -> float:
        """Save everything that is needed to continue, and return how many seconds that took."""
        start = time.monotonic()
        progress.losses = self.meter.state()
        if self.snapshot.accelerator.is_main_process:
            progress.metrics_size, progress.metrics_sha256 = self.run.sync_metrics()
        progress.loader = self.batches.state_dict() if self.can_save_within_epoch else None  # type: ignore[attr-defined]
        self.snapshot.save(progress, self.description)
        self._last = time.monotonic()
        self._seconds = self._last - start
        return self._seconds

    def restore(self, description: Mapping[str, Any], resume: bool, allow_changes: bool) -> tuple[Progress, list[str]]:
        """Return to the last checkpoint, if there is one.

        Args:
            description: the current result of `describe`.
            resume: whether an existing run is continued.
            allow_changes: return differences from the run instead of raising an error.

        Returns:
            The progress, and the differences from the run that was saved, one sentence each.
        """
        self.description = {key: plain(description[key]) for key in (*COMPARED, *NOTED_PARTS)}
        tensors, state = self.snapshot.read()
        before = state.pop("description", None) or (self.run.description if resume else {})
        notes = check_same(before, self.description, allow_changes)
        progress = Progress()
        if state:
            notes += self.run.check_metrics(state["metrics_size"], state.get("metrics_sha256"), allow_changes)
            notes += self.run.check_best(allow_changes)
            progress = self.snapshot.load(tensors, state)
            self.meter.load(progress.losses)
            if progress.loader is not None:
                self.batches.load_state_dict(progress.loader)  # type: ignore[attr-defined]
        elif hasattr(self.batches, "set_epoch"):
            self.batches.set_epoch(0)  # an earlier caller may have advanced it
        if self.snapshot.accelerator.is_main_process:
            self.run.truncate_metrics(progress.metrics_size)
        return progress, notes
