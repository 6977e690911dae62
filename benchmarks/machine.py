"""What benchmarks share: what they ran on, in words, and how results are written."""

from __future__ import annotations

import json
import os
import platform
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
