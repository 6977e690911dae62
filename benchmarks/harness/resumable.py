"""Rows of a benchmark in fresh processes, written one by one, within a time limit, and continued by the same command."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness.children import run_in_child
from benchmarks.harness.results import Journal, Row, fingerprint, name_of


def measure_missing(
    path: Path | None,
    head: Row,
    keys: Iterable[Row],
    measure: Callable[[Row], Row],
    options: argparse.Namespace,
    *,
    least: float,
) -> None:
    """Measure the rows that are missing, until the time is up.

    Args:
        path: the file of results; nothing is written without one.
        head: what the file says about all rows, with ``machine`` and ``arguments``.
        keys: the keys of the rows, the most important first.
        measure: measures a row, in a fresh process.
        options: with ``device``, ``minutes``, ``quick`` and ``any_code``: whether rows of other code are kept.
        least: the seconds that a row needs at least.
    """
    journal = Journal(path, head, lambda report: [report["machine"], report["arguments"]])
    if path is not None:
        journal.take(path, lambda row: (options.any_code or row["code"] == fingerprint()) and "skipped" not in row)
    device, end = options.device, time.monotonic() + 60.0 * options.minutes
    limit: Any = None if device == "cpu" else torch.cuda.get_device_properties(device).total_memory
    for key in keys:
        if name_of(key) in journal.rows:
            continue
        left = end - time.monotonic()
        if left < least and not options.quick:
            print("the time is up; run the same command again for the other rows", flush=True)
            break
        row = run_in_child(measure, key, patience=left, memory_limit=limit, device=device)
        journal.add(key, fingerprint(), row)
        print({**key, **row}, flush=True)
        if options.quick and "skipped" in row:
            raise SystemExit(row["why"])
