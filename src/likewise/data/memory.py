"""The amount of free memory, so that loading a data set that does not fit is rejected before it starts."""

from __future__ import annotations

import os
from pathlib import Path

import torch


def free_memory(device: torch.device) -> int | None:
    """Return the free bytes of a device, or of the host for the CPU; ``None`` if unknown.

    The memory limit of a container is respected.

    Examples:
        >>> import torch
        >>> free = free_memory(torch.device("cpu"))
        >>> free is None or free > 0
        True
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    known = [free for free in (_system_memory(), _container_memory()) if free is not None]
    return min(known, default=None)


def _system_memory() -> int | None:
    about = Path("/proc/meminfo")
    if about.exists():
        for line in about.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _container_memory(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the memory that a container may still use (cgroup v2); file pages that can be dropped count as free."""
    try:
        limit = int((folder / "memory.max").read_text())
        used = int((folder / "memory.current").read_text())
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # not in a container, or in one without a limit
        return None
    return max(0, limit - used + int(counts.get("inactive_file", 0)))
