"""Time and memory of the ranking losses on large batches, forward and backward.

    python -m benchmarks.ranking                      two cores: B = 4,096, 128-d
    python -m benchmarks.ranking --device cuda        a GPU: B = 16,384, 512-d
    python -m benchmarks.ranking --sizes 512          a smaller batch
    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.ranking --threads 2
                                                      where other programs use the cores: threads that wait do not spin

Labels are four per class; the hierarchical losses have three levels, 4, 32 and 256 samples per group.  Each row runs in a
new process, so that its peak of memory is that row's: the most memory in use beyond that in use before the first
call, which includes the inputs and libraries that a small batch loaded.  Rows are stored in
benchmarks/results/ranking-<device>.json as soon as they are known; a row that is there is not measured again, unless with
``--again``.

The floor is stated with each row: the time of the products that any engine needs, three of B x B x d (similarities, and
one for each side's gradient), measured in the same process, and the memory of the embeddings and their gradient.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import torch

from benchmarks.harness import MIB, RESULTS, high_water, machine
from likewise import losses

LOSSES = {
    "SmoothAPLoss": losses.SmoothAPLoss,
    "SupAPLoss": losses.SupAPLoss,
    "ROADMAPLoss": losses.ROADMAPLoss,
    "RecallAtKLoss": losses.RecallAtKLoss,
    "PNPLoss": losses.PNPLoss,
    "NDCGLoss": losses.NDCGLoss,
    "HAPLoss": losses.HAPLoss,
}
GRADED = {"HAPLoss"}
"""Losses that are measured on three levels."""


def make_inputs(name: str, size: int, dim: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings around the centers of their classes, and labels."""
    generator = torch.Generator().manual_seed(0)
    index = torch.arange(size)
    labels = torch.stack([index // 4, index // 32, index // 256], dim=1) if name in GRADED else index // 4
    centers = torch.randn(size // 4 + 1, dim, generator=generator)
    embeddings = centers[index // 4] + torch.randn(size, dim, generator=generator)
    return embeddings.to(device).requires_grad_(), labels.to(device)


def wait(device: str) -> None:
    """Wait for the device."""
    if device != "cpu":
        torch.cuda.synchronize()


def measure_floor(embeddings: torch.Tensor, device: str) -> float:
    """Seconds of three products, in chunks of rows."""
    rows = embeddings.detach()
    chunk = rows[: max(2**24 // len(rows), 16)]
    for _ in range(2):
        wait(device)
        begin = time.perf_counter()
        for _chunk in range(0, len(rows), len(chunk)):
            product = chunk @ rows.T
            product @ rows, product.T @ chunk
        wait(device)
    return time.perf_counter() - begin


def measure(name: str, size: int, dim: int, device: str) -> dict[str, Any]:
    """One row."""
    loss = LOSSES[name]()
    loss(*make_inputs(name, 512, dim, device)).backward()  # kernels are compiled, and libraries loaded
    embeddings, labels = make_inputs(name, size, dim, device)
    seconds: list[tuple[float, float]] = []
    before = high_water(device, forget=True)
    for _ in range(1 if name in GRADED else 3):
        embeddings.grad = None
        wait(device)
        begin, worked = time.perf_counter(), time.process_time()
        value = loss(embeddings, labels)
        value.backward()
        wait(device)
        seconds.append((time.perf_counter() - begin, time.process_time() - worked))
    peak = high_water(device)
    assert embeddings.grad is not None
    return {
        "loss": name,
        "size": size,
        "dim": dim,
        "levels": 3 if name in GRADED else 1,
        "seconds": min(seconds)[0],
        "cpu_seconds": min(seconds)[1],
        "threads": torch.get_num_threads(),
        "mib": (peak - before) / MIB,
        "floor_seconds": measure_floor(embeddings, device),
        "floor_mib": 2 * embeddings.numel() * 4 / MIB,
        "value": float(value.detach()),
    }


def main() -> None:
    """Measure each row in its own process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", default="cpu", help="cpu or cuda")
    add("--sizes", type=int, nargs="+", help="batch sizes; by default 4,096 on a CPU and 16,384 on a GPU")
    add("--dim", type=int, help="dimension; by default 128 on a CPU and 512 on a GPU")
    add("--only", nargs="+", default=list(LOSSES), choices=list(LOSSES), help="some of the losses")
    add("--threads", type=int, help="threads on a CPU; by default torch's")
    add("--patience", type=float, default=600.0, help="seconds after which a row is given up")
    add("--again", action="store_true", help="measure rows that are there")
    add("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = options.sizes or [4096 if options.device == "cpu" else 16384]
    dim = options.dim or (128 if options.device == "cpu" else 512)
    if options.worker:
        if options.threads:
            torch.set_num_threads(options.threads)
        print(json.dumps(measure(options.worker, sizes[0], dim, options.device)))
        return
    path = RESULTS / f"ranking-{options.device.split(':')[0]}.json"
    report = json.loads(path.read_text()) if path.exists() else {"machine": machine(options.device), "rows": []}
    for size in sizes:
        for name in options.only:
            same = [row for row in report["rows"] if (row["loss"], row["size"], row["dim"]) == (name, size, dim)]
            if same and not options.again:
                continue
            command = [
                sys.executable,
                "-m",
                "benchmarks.ranking",
                "--worker",
                name,
                "--sizes",
                str(size),
                "--dim",
                str(dim),
            ]
            row: dict[str, Any] = {"loss": name, "size": size, "dim": dim}
            try:
                command += [
                    "--device",
                    options.device,
                    *(["--threads", str(options.threads)] if options.threads else []),
                ]
                done = subprocess.run(command, capture_output=True, text=True, timeout=options.patience, check=True)
                row = json.loads(done.stdout.splitlines()[-1])
            except subprocess.TimeoutExpired:
                row["why"] = f"more than {options.patience:g} s"
            except subprocess.CalledProcessError as error:
                row["why"] = error.stderr.strip().splitlines()[-1]
            report["rows"] = [each for each in report["rows"] if each not in same] + [row]
            path.write_text(json.dumps(report, indent=1) + "\n")
            print(
                row.get("why")
                or "{loss:15} {size:6} {seconds:8.3f} s ({cpu_seconds:.3f} s of CPU) {mib:7.0f} MiB".format(**row),
                flush=True,
            )


if __name__ == "__main__":
    main()
