"""The environment of a run: the machine in words, versions, memory, how busy a GPU is."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

MIB = 2**20
GIB = 2**30


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def machine(device: str) -> dict[str, Any]:
    """The machine in words."""
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        cpu = models[0] if models else cpu
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    described = {"cpu": cpu, "cores": cores(), "memory_gib": round(memory, 1), "threads": cores()}
    if device != "cpu":
        described["device"] = torch.cuda.get_device_name(device)
    return described


def versions(*packages: str) -> dict[str, str]:
    """Python's version and those of packages, where they are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def high_water(device: str = "cpu", *, forget: bool = False) -> int:
    """The most bytes that were in use; with `forget`, those in use now, and the mark is reset."""
    if device != "cpu":
        if forget:
            torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "darwin":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if forget and os.access("/proc/self/clear_refs", os.W_OK):
        Path("/proc/self/clear_refs").write_text("5")
    # getrusage counts whoever started this process, too, and that one may be larger
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


class Busy:
    """How busy a GPU is while a block runs, by its driver: the share of the time in which any kernel ran.

    Args:
        device: a CUDA device; for ``"cpu"``, or where there is no ``nvidia-smi``, nothing is watched.
    """

    COMMAND = "nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits -lms 100 --id={}"
    BEHIND = 1.0
    """Seconds: what the driver says at a moment is a mean over up to so much of the past."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.seen: list[tuple[float, float]] = []
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Busy:
        words = self.COMMAND.format(self.device.index or 0).split()
        if self.device.type == "cuda" and shutil.which(words[0]) is not None:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            self.reader = threading.Thread(target=self._read, args=(self.process,))
            self.reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.terminate()
            self.reader.join()
            self.process.wait()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as told:
            for line in told:
                if line.strip().isdigit():  # else it says why it does not know
                    self.seen.append((time.perf_counter(), float(line) / 100))

    def share(self, begin: float, end: float) -> float | None:
        """The mean between two readings of `time.perf_counter`, where anything is known of it."""
        between = [share for at, share in self.seen if begin + self.BEHIND <= at <= end]
        return statistics.fmean(between) if between else None


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; on the CPU torch raises a plain RuntimeError."""
    message = str(error)
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "alloc" in message or "memory" in message
