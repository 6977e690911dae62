"""Run trials in processes on this machine: one thread per process on a CPU, one or several processes per GPU."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from likewise.data import cores
from likewise.formula import whole_number
from likewise.protocols.executor import Ended, ExecutorBroken, Report, Runner
from likewise.protocols.trial import Trial

FALSE_STARTS = 3
"""The number of consecutive processes that fail to start after which the executor gives up."""

STOP_SECONDS = (20.0, 40.0)
"""Seconds that trials have to save checkpoints after the first and the second request to stop."""


def fitting_workers(per_gpu: int = 1) -> int:
    """Return the number of trials that fit on this machine: ``per_gpu`` per GPU, or one per core, at most eight.

    Examples:
        >>> fitting_workers() >= 1
        True
    """
    return torch.cuda.device_count() * per_gpu if torch.cuda.is_available() else max(1, min(8, cores()))


class LocalExecutor:
    """Runs trials in processes on this machine.

    A process runs one trial after the other.  On a CPU it uses one thread, so that results do not depend on the number of
    processes.  If the driver ends, its processes save a checkpoint and end.

    Args:
        run: the function that runs a trial; it is pickled.
        report: called in this process for every intermediate value of a trial.
        workers: the maximum number of processes; ``None``: as many as fit.
        per_gpu: the number of trials that share a GPU.
        logs: the folder of ``worker-1.log`` and so on; ``None``: the processes write to the standard error of this one.

    Examples:
        >>> executor = LocalExecutor(print, lambda key, step, value: True, workers=2)
        >>> executor.room(), dict(executor.running()), executor.stop()
        (2, {}, [])
    """

    def __init__(
        self,
        run: Runner,
        report: Report,
        *,
        workers: int | None = None,
        per_gpu: int = 1,
        logs: Path | None = None,
    ) -> None:
        whole_number("per_gpu", per_gpu, 1)
        self.workers = fitting_workers(per_gpu) if workers is None else whole_number("workers", workers, 1)
        self._run, self._report, self._logs = pickle.dumps(run), report, logs
        self._events: queue.SimpleQueue[tuple[_Worker, tuple[Any, ...]]] = queue.SimpleQueue()
        self._workers: dict[int, _Worker] = {}
        self._queue: list[Trial] = []
        self._canceled: set[str] = set()
        self._false_starts = 0
        self._stopping = False

    def room(self) -> int:
        """Number of additional trials that can run now."""
        return max(0, self.workers - len(self.running()))

    def submit(self, trial: Trial) -> None:
        """Start a trial in an idle process or in a new one."""
        self._queue.append(trial)
        self._start()

    def results(self, timeout: float = 0.5) -> list[Ended]:
        """Return the trials that have ended; wait up to ``timeout`` seconds for one, and answer reports meanwhile."""
        ends: list[Ended] = []
        until = time.monotonic() + timeout
        while not ends and (left := until - time.monotonic()) > 0:
            try:
                ends += self._handle(*self._events.get(timeout=left))
                while not self._events.empty():
                    ends += self._handle(*self._events.get())
            except queue.Empty:
                break
        self._start()
        return ends

    def cancel(self, key: str) -> None:
        """Stop a trial at its next report; a queued trial is not started."""
        self._queue = [trial for trial in self._queue if trial.key != key]
        if key in self.running():
            self._canceled.add(key)

    def running(self) -> Mapping[str, str]:
        """Return the trials that have not ended, and the worker of each."""
        busy = {worker.trial.key: worker.name for worker in self._workers.values() if worker.trial is not None}
        return busy | {trial.key: "" for trial in self._queue}

    def stop(self) -> list[Ended]:
        """Ask processes twice to save a checkpoint and end; kill those that are still running after a minute."""
        ends = [Ended(trial) for trial in self._queue]
        self._queue.clear()
        self._stopping = True
        for seconds in STOP_SECONDS:
            for worker in self._workers.values():
                worker.process.send_signal(signal.SIGTERM)
            until = time.monotonic() + seconds
            while self._workers and time.monotonic() < until:
                ends += self.results(0.1)
        for worker in self._workers.values():
            worker.process.kill()
        while self._workers:
            ends += self.results(0.1)
        self._stopping = False
        return ends

    def _start(self) -> None:
        """Assign queued trials to idle processes; start processes while slots are free."""
        while self._queue and self._false_starts < FALSE_STARTS:
            idle = [worker for worker in self._workers.values() if worker.trial is None]
            if idle:
                worker = idle[0]
            elif len(self._workers) < self.workers:
                number = next(each for each in range(self.workers) if each not in self._workers)
                worker = self._workers[number] = _Worker(number, self._run, self._logs, self._events)
            else:
                return
            worker.start_trial(self._queue.pop(0))

    def _handle(self, worker: _Worker, message: tuple[Any, ...]) -> list[Ended]:
        what, *values = message
        trial = worker.trial
        if what == "ready":
            worker.ready, self._false_starts = True, 0
        elif what == "report" and trial is not None:
            step, value = values
            worker.send(None if trial.key in self._canceled else self._report(trial.key, step, value))
        elif what == "ended":
            return self._end_trial(worker, values[0])
        elif what == "stopped" and trial is not None:
            return self._end_trial(worker, Ended(trial))
        elif what == "gone":
            return self._remove_worker(worker)
        return []

    def _end_trial(self, worker: _Worker, ended: Ended) -> list[Ended]:
        worker.trial = None
        self._canceled.discard(ended.trial.key)
        return [ended]

    def _remove_worker(self, worker: _Worker) -> list[Ended]:
        worker.close()
        del self._workers[worker.number]
        if worker.trial is None:
            return []
        if self._stopping:
            return self._end_trial(worker, Ended(worker.trial))
        if worker.ready:
            error = f"the process of {worker.name} ended before the trial"
            return self._end_trial(worker, Ended(worker.trial, error=error))
        self._queue.insert(0, worker.trial)  # the process failed to start, which is not an error of the trial
        self._false_starts += 1
        if self._false_starts == FALSE_STARTS:
            begin = f"{FALSE_STARTS} processes ended before they could run a trial"
            raise ExecutorBroken(f"{begin}: see {worker.log}")
        return []


class _Worker:
    """A worker process and the thread that reads its messages.

    Args:
        number: the number of the worker, from 0.
        run: the pickled function that runs trials.
        logs: the folder of its log.
        events: the queue of received messages.
    """

    def __init__(self, number: int, run: bytes, logs: Path | None, events: queue.SimpleQueue[Any]) -> None:
        self.number, self.name = number, f"worker {number + 1}"
        self.trial: Trial | None = None
        self.ready = False
        self.log = "its output" if logs is None else str(logs / f"worker-{number + 1}.log")
        self.process = _start_process(number, None if logs is None else Path(self.log))
        self.send(list(sys.path))
        self._write(run)
        threading.Thread(target=self._read, args=(events,), daemon=True).start()

    def close(self) -> None:
        """Wait until the process ends, and close the pipes."""
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def start_trial(self, trial: Trial) -> None:
        """Start a trial in this process."""
        self.trial = trial
        self.send(trial)

    def send(self, message: Any) -> None:
        """Send a message; it is not an error if the process has ended."""
        self._write(pickle.dumps(message))

    def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def _read(self, events: queue.SimpleQueue[Any]) -> None:
        assert self.process.stdout is not None
        try:
            while True:
                events.put((self, pickle.load(self.process.stdout)))
        except Exception:  # the end of the pipe, or an incomplete message of a killed process
            events.put((self, ("gone",)))


def _start_process(number: int, log: Path | None) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    if torch.cuda.is_available():
        environment["CUDA_VISIBLE_DEVICES"] = device_of(number)
        environment.setdefault("OMP_NUM_THREADS", "1")  # waiting threads of several workers would compete for the cores
    else:
        environment["OMP_NUM_THREADS"] = "1"
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    # -P: files in the current folder, which can be untrusted, must not replace modules
    command = [sys.executable, "-P", "-m", "likewise.protocols.worker_process"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
    # a separate session: Ctrl-C interrupts only the driver, which then asks for checkpoints
    if log is None:
        return subprocess.Popen(command, start_new_session=True, **pipes)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        return subprocess.Popen(command, stderr=file, start_new_session=True, **pipes)


def device_of(number: int) -> str:
    """Return the GPU of a worker, among those that are visible to this process.

    Examples:
        >>> import os
        >>> before = os.environ.get("CUDA_VISIBLE_DEVICES")
        >>> os.environ["CUDA_VISIBLE_DEVICES"] = "2,5"
        >>> [device_of(number) for number in range(3)]
        ['2', '5', '2']
        >>> _ = (
        ...     os.environ.pop("CUDA_VISIBLE_DEVICES")
        ...     if before is None
        ...     else os.environ.update(CUDA_VISIBLE_DEVICES=before)
        ... )
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = [name for name in visible.split(",") if name] or [str(each) for each in range(torch.cuda.device_count())]
    return names[number % len(names)]
