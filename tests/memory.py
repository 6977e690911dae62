"""How much memory a program takes: what tests put before programs that they run in processes of their own."""

from __future__ import annotations

from pathlib import Path

GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536"}
"""The environment of a C library that gives back at once what is freed, so that a peak is of what is in use."""

HIGH_WATER = f"""
import sys
sys.path.append({str(Path(__file__).parents[1])!r})
from benchmarks.harness import high_water
"""
