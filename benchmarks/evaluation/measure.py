"""Exact retrieval metrics, side by side with what a user would pick instead: R@1, 10, 100, 1000 and MAP@R together.

    python -m benchmarks.evaluation.measure                  about fifteen minutes on two cores; writes results/evaluation-cpu.json
    python -m benchmarks.evaluation.measure --device cuda    a minute on a GPU; writes results/evaluation-cuda.json
    python -m benchmarks.evaluation.measure --quick          small sizes; prints, and writes nothing
    python -m benchmarks.evaluation.plot                     the figure and the tables of docs/benchmarks.md

Every contender runs in a process of its own, in turns.  Run it on a machine that does nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness import (
    GIB,
    MIB,
    high_water,
    limit_memory,
    machine,
    make_parser,
    out_of_memory,
    result_path,
    run_in_child,
    versions,
    write,
)
from likewise.metrics import retrieval

KS = (1, 10, 100, 1000)
SIZES = {"CUB's test set": (5924, 59), "SOP's test set": (60502, 5)}
"""Samples and samples of each class, in 512 dimensions."""

MANY = (1000, 1_000_000, 100)
"""Queries, references and references of each class for the large gallery."""

Scores = dict[str, float]


def make(n: int, per_class: int, dim: int, device: str) -> tuple[Tensor, Tensor]:
    """Unit vectors around class centers, close enough for half of the queries or so to find a friend first."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) // per_class
    centers = torch.randn(int(labels[-1]) + 1, dim, generator=generator)
    points = torch.randn(n, dim, generator=generator) + 0.3 * centers[labels]
    shuffled = torch.randperm(n, generator=generator)
    return torch.nn.functional.normalize(points[shuffled]).to(device), labels[shuffled].to(device)


# ------------------------------------------------------------------------------------------------ contenders


def ours(embeddings: Tensor, labels: Tensor) -> Scores:
    """Count ranks."""
    return retrieval(embeddings, labels, ks=KS)


def ours_uncompiled(embeddings: Tensor, labels: Tensor) -> Scores:
    """Count ranks on a GPU without the Triton kernel."""
    from likewise.metrics import threshold_counts

    threshold_counts._load_triton_counter = lambda: None
    return retrieval(embeddings, labels, ks=KS)


def bare_product(embeddings: Tensor, labels: Tensor) -> Scores:
    """The full product in chunks of rows, and nothing else."""
    step = 1024 if embeddings.device.type == "cpu" else 8192
    out = embeddings.new_empty(step, len(embeddings))
    for start in range(0, len(embeddings), step):
        rows = embeddings[start : start + step]
        torch.mm(rows, embeddings.T, out=out[: len(rows)])
    return {}


def torch_topk(embeddings: Tensor, labels: Tensor) -> Scores:
    """The product in chunks of rows, and the first thousand of each."""
    step = 1024 if embeddings.device.type == "cpu" else 4096
    found = []
    for start in range(0, len(embeddings), step):
        rows = embeddings[start : start + step] @ embeddings.T
        here = torch.arange(len(rows), device=rows.device)
        rows[here, start + here] = -torch.inf
        found.append(rows.topk(max(KS), dim=1).indices)
    return from_neighbors(torch.cat(found), labels)


def faiss_flat(embeddings: Tensor, labels: Tensor) -> Scores:
    """An exact index, searched for a thousand neighbors and the query itself."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    index = faiss.IndexFlatIP(embeddings.shape[1])
    index.add(embeddings.numpy())
    _, found = index.search(embeddings.numpy(), max(KS) + 1)
    neighbors = torch.from_numpy(found)
    itself = neighbors == torch.arange(len(labels))[:, None]
    itself[:, -1] |= ~itself.any(dim=1)
    return from_neighbors(neighbors[~itself].view(len(labels), -1), labels)


def from_neighbors(neighbors: Tensor, labels: Tensor) -> Scores:
    """R@k and MAP@R from the nearest neighbors of every query."""
    hits = labels[neighbors] == labels[:, None]
    reached = torch.where(hits.any(dim=1), hits.float().argmax(dim=1), len(labels))
    counts = (torch.bincount(labels)[labels] - 1)[:, None]
    places = torch.arange(1, hits.shape[1] + 1, device=hits.device)
    precision = hits.cumsum(dim=1) / places * (hits & (places <= counts))
    found = {f"R@{k}": (reached < k).double().mean().item() for k in KS}
    return {**found, "MAP@R": (precision.sum(dim=1) / counts.squeeze(1)).double().mean().item()}


def pml(embeddings: Tensor, labels: Tensor, k: Any) -> Scores:
    """pytorch-metric-learning's calculator; it has no recall beyond the first neighbor."""
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

    names = ("precision_at_1", "mean_average_precision_at_r")
    found = AccuracyCalculator(include=names, k=k).get_accuracy(embeddings, labels)
    return {"R@1": found[names[0]], "MAP@R": found[names[1]]}


def pml_default(embeddings: Tensor, labels: Tensor) -> Scores:
    """Its default: all neighbors of every query."""
    return pml(embeddings, labels, None)


def pml_max_bin_count(embeddings: Tensor, labels: Tensor) -> Scores:
    """As many neighbors as the largest class has members: enough for MAP@R, too few for recall at 1000."""
    return pml(embeddings, labels, "max_bin_count")


CONTENDERS: dict[str, Callable[[Tensor, Tensor], Scores]] = {
    "likewise": ours,
    "likewise, not compiled": ours_uncompiled,
    "bare product": bare_product,
    "torch top-k(1000)": torch_topk,
    "faiss IndexFlatIP(1000)": faiss_flat,
    "pytorch-metric-learning, max_bin_count": pml_max_bin_count,
    "pytorch-metric-learning, default": pml_default,
}
ON_CUDA = ("likewise", "likewise, not compiled", "bare product", "torch top-k(1000)")
ON_CPU = tuple(name for name in CONTENDERS if name != "likewise, not compiled")


# ------------------------------------------------------------------------------------------------ measuring


def measure(name: str, n: int, per_class: int, device: str, rounds: int, limit: float) -> dict[str, Any]:
    """Seconds, peak memory on top of the inputs and the scores of one contender, in a fresh process."""
    answer: dict[str, Any] = run_in_child(time_contender, name, n, per_class, device, rounds, limit)
    return answer


def time_contender(name: str, n: int, per_class: int, device: str, rounds: int, limit: float) -> dict[str, Any]:
    """The same, in this process."""
    contender = CONTENDERS[name]
    embeddings, labels = make(n, per_class, 512, device)
    # what is loaded once, threads and kernels: a small call, made as the large one is
    contender(*make(2 * max(KS), per_class, 512, device))
    if device == "cpu":
        limit_memory(int(limit * GIB), device)
    before, seconds, scores = high_water(device, forget=True), [], {}
    try:
        for _ in range(rounds):
            _wait(device)
            start = time.perf_counter()
            scores = contender(embeddings, labels)
            _wait(device)
            seconds.append(time.perf_counter() - start)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        return {"skipped": f"out of memory at {limit:g} GiB", "why": str(error)[:200]}
    return {"seconds": seconds, "extra_mib": (high_water(device) - before) / MIB, "scores": scores}


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


def large_gallery(device: str) -> dict[str, Any]:
    """A thousand queries against a million references, twice: the default budget and a quarter of it."""
    queries, references, per_class = MANY
    generator = torch.Generator().manual_seed(0)
    gallery = torch.randn(references, 512, generator=generator).to(device)
    labels = (torch.arange(references) // per_class).to(device)
    wanted = torch.randperm(references, generator=generator)[:queries].to(device)
    found = gallery[wanted] + 3.0 * torch.randn(queries, 512, generator=generator).to(device)
    answer: dict[str, Any] = {"queries": queries, "references": references, "per_class": per_class, "runs": []}
    for memory in (2**28, 2**26):
        before, start = high_water(device, forget=True), time.perf_counter()
        scores = retrieval(found, labels[wanted], gallery, labels, ks=KS, memory=memory)
        _wait(device)
        answer["runs"].append(
            {
                "memory_mib": memory / MIB,
                "seconds": time.perf_counter() - start,
                "extra_mib": (high_water(device) - before) / MIB,
                "R@1": scores["R@1"],
            }
        )
    return answer


def main() -> None:
    """Measure everything, print it as it comes, write it down at the end."""
    parser = make_parser(__doc__, device=True, quick="a tenth of the sizes", out="evaluation")
    parser.add_argument("--rounds", type=int, help="calls of each contender; ten at CUB's size, two at SOP's")
    parser.add_argument("--limit", type=float, default=16.0, help="GiB that a contender may take on the CPU")
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), help="these contenders alone")
    options = parser.parse_args()
    names = options.only or (ON_CPU if options.device == "cpu" else ON_CUDA)
    report: dict[str, Any] = {
        "machine": {
            **machine(options.device),
            **versions("torch", "triton", "faiss-cpu", "pytorch-metric-learning", "numpy", "likewise"),
        },
        "ks": KS,
        "rows": [],
    }
    path = None if options.only else result_path("evaluation", options)
    print(report["machine"])
    for size, (n, per_class) in SIZES.items():
        n = n // 10 + 1500 if options.quick else n
        rounds = options.rounds or (20 if options.device != "cpu" else 10 if n < 10_000 else 2)
        for name in names:
            answer = measure(name, n, per_class, options.device, rounds, options.limit)
            row = {"size": size, "n": n, "per_class": per_class, "contender": name, **answer}
            report["rows"].append(row)
            print_row(row)
            write(report, path)
    if path is not None:
        report["large_gallery"] = large_gallery(options.device)
        print(report["large_gallery"])
        write(report, path)


def print_row(row: dict[str, Any]) -> None:
    """One line on the terminal."""
    if "skipped" in row:
        print(f"{row['size']:16s} {row['contender']:40s} {row['skipped']}", flush=True)
        return
    scores = " ".join(f"{name} {value:.5f}" for name, value in row["scores"].items() if "@" in name)
    seconds = min(row["seconds"])
    line = f"{row['size']:16s} {row['contender']:40s} {seconds:9.4f} s {row['extra_mib']:8.0f} MiB  {scores}"
    print(line, flush=True)


if __name__ == "__main__":
    main()
