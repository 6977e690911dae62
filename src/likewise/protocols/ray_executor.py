"""Run trials as tasks of a Ray cluster that is already running."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

from likewise.formula import whole_number
from likewise.protocols.executor import Ended, ExecutorBroken, Report, Runner, run_one
from likewise.protocols.trial import Result, Trial

POLL = 0.1
"""Seconds between two polls of reports and results."""

STOP_SECONDS = 60.0
"""Seconds that trials have to save checkpoints after a request to stop."""


class RayExecutor:
    """Runs trials as tasks of a Ray cluster.

    The cluster must be running, and this process must be on one of its nodes.  All nodes need likewise and access to the
    folder of the study.  A task uses one CPU and one thread, or ``1 / per_gpu`` of a GPU if the cluster has GPUs.  Tasks end
    with their driver.  Anyone who can connect to the ports of a Ray cluster can run code on it.

    Args:
        run: the function that runs a trial; it is pickled.
        report: called in this process for every intermediate value of a trial.
        address: ``"auto"`` for the cluster of this machine, or ``"host:port"``.
        workers: the maximum number of concurrent trials; ``None``: as many as fit the cluster.
        per_gpu: the number of trials that share a GPU.

    Examples:
        >>> RayExecutor(print, lambda key, step, value: True, address="local")
        Traceback (most recent call last):
        ValueError: address must be auto or host:port, but it is 'local'
    """

    def __init__(
        self,
        run: Runner,
        report: Report,
        *,
        address: str,
        workers: int | None = None,
        per_gpu: int = 1,
    ) -> None:
        if address != "auto" and not address.rpartition(":")[2].isdigit():  # "local" would start a cluster
            raise ValueError(f"address must be auto or host:port, but it is {address!r}")
        whole_number("per_gpu", per_gpu, 1)
        self._limit = None if workers is None else whole_number("workers", workers, 1)
        self._ray = _connect(address)
        self._run, self._report, self._per_gpu = pickle.dumps(run), report, per_gpu
        self._gpus = self._ray.cluster_resources().get("GPU", 0.0)
        resources = {"num_cpus": 0 if self._gpus else 1, "num_gpus": 1 / per_gpu if self._gpus else 0}
        # no retries by Ray: the driver submits failed trials again, for all executors
        self._task = self._ray.remote(**resources, max_retries=0)(_execute)
        self._mailbox = self._ray.remote(num_cpus=0)(_Mailbox).options(max_concurrency=10_000).remote()
        self._trials: dict[Any, Trial] = {}
        self._canceled: set[str] = set()
        self._stopping = False

    def room(self) -> int:
        """Number of additional trials that can run now; nodes can join the cluster."""
        resources = self._ray.cluster_resources()
        fit = int(resources.get("GPU", 0.0) * self._per_gpu + 1e-6) if self._gpus else int(resources.get("CPU", 0.0))
        most = fit if self._limit is None else min(fit, self._limit)
        return max(0, most - len(self._trials))

    def submit(self, trial: Trial) -> None:
        """Submit a trial as a task."""
        here = {"path": list(sys.path), "folder": os.getcwd(), "gpu": bool(self._gpus)}
        here["environment"] = {name: value for name, value in os.environ.items() if name.startswith("LIKEWISE_")}
        self._trials[self._task.remote(here, self._run, trial.to_dict(), self._mailbox)] = trial

    def results(self, timeout: float = 0.5) -> list[Ended]:
        """Return the trials that have ended; wait up to ``timeout`` seconds for one, and answer reports meanwhile."""
        until = time.monotonic() + timeout
        ends: list[Ended] = []
        while self._trials and not ends:
            for key, step, value in self._ray.get(self._mailbox.take.remote()):
                answer = None if key in self._canceled else self._report(key, step, value)
                self._mailbox.answer.remote(key, answer)
            left = max(0.0, until - time.monotonic())
            done, _ = self._ray.wait(list(self._trials), num_returns=len(self._trials), timeout=min(POLL, left))
            ends += [self._end_trial(task) for task in done]
            if not left:
                break
        return ends

    def cancel(self, key: str) -> None:
        """Stop a trial at its next report; a queued trial is not started."""
        self._canceled.add(key)
        for task, trial in self._trials.items():
            if trial.key == key and not self._ray.get(self._mailbox.has_begun.remote(key)):
                self._ray.cancel(task)

    def running(self) -> Mapping[str, str]:
        """Return the trials that have not ended."""
        return {trial.key: "ray" for trial in self._trials.values()}

    def stop(self) -> list[Ended]:
        """Ask trials to save a checkpoint and end, wait for them up to a minute, and disconnect from the cluster."""
        self._stopping = True
        ends: list[Ended] = []
        if self._ray.is_initialized():
            for task in self._trials:
                self._ray.cancel(task)  # raises KeyboardInterrupt in the task, which then saves a checkpoint
            until = time.monotonic() + STOP_SECONDS
            while self._trials and time.monotonic() < until:
                ends += self.results(POLL)
            self._ray.shutdown()
        ends += [Ended(trial) for trial in self._trials.values()]
        self._trials.clear()
        return ends

    def _end_trial(self, task: Any) -> Ended:
        trial = self._trials.pop(task)
        was_canceled = trial.key in self._canceled
        self._canceled.discard(trial.key)
        errors = self._ray.exceptions
        try:
            result, error = self._ray.get(task)
        except errors.TaskCancelledError:
            return Ended(trial)
        except errors.RayTaskError as fault:  # an error outside of the trial, such as a missing package
            raise ExecutorBroken(f"the cluster cannot run trials: {' '.join(str(fault.cause).split())}") from fault
        except errors.RayError as fault:
            reason = None if self._stopping or was_canceled else f"the task ended before the trial: {_line(fault)}"
            return Ended(trial, error=reason)
        return Ended(trial, None if result is None else Result.from_dict(result), error)


class _Mailbox:
    """The actor that transfers reports of trials and answers of the driver; it ends with the driver."""

    def __init__(self) -> None:
        self._reports: list[tuple[str, int, float]] = []
        self._answers: dict[str, Any] = {}
        self._begun: set[str] = set()

    async def begin(self, key: str) -> None:
        self._begun.add(key)

    async def has_begun(self, key: str) -> bool:
        return key in self._begun

    async def report(self, key: str, step: int, value: float) -> bool | None:
        """Store a value, and wait for the answer of the driver."""
        import asyncio

        self._answers[key] = asyncio.get_running_loop().create_future()
        self._reports.append((key, step, value))
        answer: bool | None = await self._answers[key]
        return answer

    async def take(self) -> list[tuple[str, int, float]]:
        """Return and remove the stored values."""
        taken, self._reports = self._reports, []
        return taken

    async def answer(self, key: str, should_continue: bool | None) -> None:
        """Answer the trial that is waiting."""
        if not self._answers[key].done():
            self._answers[key].set_result(should_continue)


def _execute(
    here: Mapping[str, Any], run: bytes, trial_dict: Mapping[str, Any], mailbox: Any
) -> tuple[Any, str | None]:
    """Run one trial in a Ray worker, with the module paths and the current folder of the driver, if they exist here."""
    import ray
    import torch

    os.environ.update(here["environment"])
    sys.path += [place for place in here["path"] if place not in sys.path]
    if os.path.isdir(here["folder"]):
        os.chdir(here["folder"])
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # the cluster was started in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # Ray cancels a task with SIGINT
    if not here["gpu"]:
        torch.set_num_threads(1)  # results do not depend on the node
    trial, runner = Trial.from_dict(trial_dict), pickle.loads(run)
    ray.get(mailbox.begin.remote(trial.key))
    ended = run_one(runner, trial, lambda *report: ray.get(mailbox.report.remote(*report)))
    return None if ended.result is None else ended.result.to_dict(), ended.error


def _connect(address: str) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as missing:
        raise ImportError("a Ray cluster needs the extra likewise[ray]; install it") from missing
    try:
        if address != "auto":  # Ray would wait for minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=10.0).close()
        ray.init(address=address, log_to_driver=False, logging_level="WARNING")
    except (OSError, ValueError, RuntimeError) as error:
        raise ConnectionError(
            f"address must be that of a running cluster, but {address} is not: {_line(error)}"
        ) from error
    return ray


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
