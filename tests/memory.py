"""How much memory a program takes: the beginning of programs that tests run in processes of their own."""

from __future__ import annotations

GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536"}
"""The environment of a C library that gives back at once what is freed, so that a peak is of what is in use."""

HIGH_WATER = '''
import os, resource, sys


def high_water(forget=False):
    """Bytes that this process has had at most; with `forget`, at most from now on."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if forget and os.access("/proc/self/clear_refs", os.W_OK):
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    # getrusage counts whoever started this process, too, and that one may be larger
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
'''
