"""What benchmarks share: what they ran on, in words, how much memory they took, and how results are written."""

from __future__ import annotations

import json
import os
import platform
import sys
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
    """The most bytes that were in use; with `forget`, those in use now, and the mark begins anew."""
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


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; on the CPU torch raises a plain RuntimeError."""
    message = str(error)
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "alloc" in message or "memory" in message


def write(report: dict[str, Any], path: Path) -> None:
    """Write aside and rename, so that there is never half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".part")
    aside.write_text(json.dumps(report, indent=1) + "\n")
    os.replace(aside, path)
    print(f"wrote {path.name}")
