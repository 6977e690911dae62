"""One of two processes that evaluate together: python two.py FOLDER RANK.

It adds its samples to each metric and saves the results.  The test computes the same on all samples.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from likewise.metrics import Clustering, Retrieval, Verification
from likewise.metrics import samples as samples_module


@dataclass(frozen=True)
class Case:
    """A metric, and how many samples of which kind each rank has."""

    kind: type
    sizes: tuple[int, int] = (23, 37)
    options: dict[str, Any] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    dtype: torch.dtype = torch.float32


NAMES = ("R@1", "P@5", "mAP@7", "nDCG@9", "MAP@R")
CASES = {
    "retrieval": Case(Retrieval, options={"metrics": NAMES}),
    "even": Case(Retrieval, sizes=(30, 30)),
    "one rank has nothing": Case(Retrieval, sizes=(0, 60), extra=("ids", "is_query")),
    "queries, gallery and ids": Case(Retrieval, extra=("ids", "is_query"), options={"reduce": "none"}),
    "per class": Case(Retrieval, options={"reduce": "class", "without_positives": "zero"}),
    "bfloat16": Case(Retrieval, dtype=torch.bfloat16, options={"on_cpu": True}),
    "verification": Case(Verification, extra=("ids",)),
    "clustering": Case(Clustering, dtype=torch.float64),
}


def samples(case: Case) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """All samples of a case."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.randint(0, 9, (60,), generator=generator)
    embeddings = torch.randn(60, 6, generator=generator) + torch.randn(9, 6, generator=generator)[labels]
    extra = {"ids": torch.arange(60) // 2, "is_query": torch.rand(60, generator=generator) < 0.4}
    return embeddings.to(case.dtype), labels, {name: extra[name] for name in case.extra}


def evaluate(case: Case, rows: slice) -> dict[str, Any]:
    """The metric of some samples, in batches of ten, and of the samples of the other rank if there is one."""
    embeddings, labels, extra = samples(case)
    metric = case.kind(**case.options)
    for start in range(rows.start, rows.stop, 10):
        batch = slice(start, min(start + 10, rows.stop))
        metric.update(embeddings[batch], labels[batch], **{name: value[batch] for name, value in extra.items()})
    return metric.compute()


def disagree(rank: int) -> str:
    """What both ranks are told if their embeddings differ in width."""
    metric = Retrieval()
    metric.update(torch.eye(3 + rank), torch.arange(3 + rank) // 2)
    try:
        metric.compute()
    except ValueError as error:
        return str(error)
    return ""


def main(folder: Path, rank: int) -> None:
    """Evaluate every case, and save what this rank found."""
    torch.set_num_threads(1)
    samples_module.GATHER_BYTES = 100  # several chunks
    store = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2, timeout=timedelta(seconds=60))
    found = {}
    for name, case in CASES.items():
        rows = slice(0, case.sizes[0]) if rank == 0 else slice(case.sizes[0], sum(case.sizes))
        found[name] = evaluate(case, rows)
    try:
        Retrieval().compute()
    except ValueError as error:
        found["nothing"] = str(error)
    torch.save({**found, "disagree": disagree(rank)}, folder / f"{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
