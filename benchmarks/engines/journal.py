"""The head of the results of the engines, and which of their rows still hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from benchmarks.engines.jobs import Job
from benchmarks.engines.rows import PEER, Row
from benchmarks.harness import commit, fingerprint, machine, versions
from benchmarks.harness.pairings import PEER_MISSING, SAMPLES_PER_CLASS
from benchmarks.harness.results import name_of

COMPARED = ("torch", "triton", "dim", "seconds", "quick", "per_class")


def compared(report: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal for rows to be comparable; which processor drives a GPU need not be."""
    machine, arguments = report["machine"], report["arguments"]
    both = {**machine, **arguments}
    return {"chip": machine.get("device") or machine.get("cpu"), **{name: both.get(name) for name in COMPARED}}


def holds(row: Row, jobs: Mapping[str, Job], *, retry: bool, any_code: bool) -> bool:
    """Whether a row is of the present code, and not one that is to be tried again."""
    if retry and "why" in row:
        return False
    job = jobs.get(name_of(row["key"]))
    # a part that was not asked for this time stays as it is, under the same condition
    ours = job.ours if job else row["key"]["contender"] not in (PEER, "torch")
    return any_code or bool(row["code"] == code_of(ours))


def heading(device: str, dim: int, seconds: float, quick: bool) -> dict[str, Any]:
    """What the run is."""
    arguments = {"dim": dim, "seconds": seconds, "quick": quick, "per_class": SAMPLES_PER_CLASS}
    facts = {**machine(device), **versions("torch", "triton", "numpy", "likewise"), PEER: peer_version()}
    return {"machine": facts, "arguments": arguments, "commit": commit()}


def peer_version() -> str:
    """Their version; carried as a folder, the package has no metadata."""
    if PEER_MISSING:
        return "missing"
    import pytorch_metric_learning

    return str(pytorch_metric_learning.__version__)


def code_of(ours: bool) -> str:
    """What a row depends on: our code, or the version of theirs."""
    return fingerprint() if ours else f"{PEER} {peer_version()}, torch {torch.__version__}"
