"""Heads in mixed precision and in float32, forward and backward, beside pytorch-metric-learning.

    python -m benchmarks.heads --device cuda      writes results/heads-cuda.json
    python -m benchmarks.heads --quick            a smoke test on the CPU; prints, and writes nothing

Mixed precision is what autocast gives: bfloat16 embeddings and float32 proxies.  Both sides run in one process, on 512
dimensions, as eager calls; a row is the median of five blocks of calls.  The distance of our gradients from float64 on the
rounded operands is measured in tests/engines/triton_gpu.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from pytorch_metric_learning import losses as theirs
from torch import nn

from benchmarks.harness import commit, machine, make_parser, out_of_memory, result_path, versions, write
from likewise import losses

HEADS: dict[str, tuple[Callable[..., nn.Module], Callable[..., nn.Module]]] = {
    "Normalized softmax": (losses.NormalizedSoftmaxLoss, theirs.NormalizedSoftmaxLoss),
    "ArcFace": (losses.ArcFaceLoss, theirs.ArcFaceLoss),
    "CosFace": (losses.CosFaceLoss, theirs.CosFaceLoss),
    "SphereFace": (losses.SphereFaceLoss, theirs.SphereFaceLoss),
    "Proxy-Anchor": (losses.ProxyAnchorLoss, theirs.ProxyAnchorLoss),
    "ProxyNCA": (losses.ProxyNCALoss, theirs.ProxyNCALoss),
    "SoftTriple": (losses.SoftTripleLoss, theirs.SoftTripleLoss),
}
SIZES = ((128, 1000), (2048, 512), (2048, 20_000), (8192, 2048), (8192, 20_000), (32_768, 8192), (32_768, 20_000))
POOLED = 2**24
"""The number of samples times classes up to which SoftTriple, with ten centers per class, is measured."""


def time_step(step: Callable[[], None], device: str, calls: int) -> float:
    """The median milliseconds of a call, over five blocks."""
    for _ in range(8):
        step()
    if device == "cpu":
        return 0.0
    blocks = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            step()
        end.record()
        torch.cuda.synchronize()
        blocks.append(begin.elapsed_time(end) / calls)
    return sorted(blocks)[2]


def measure(make: Callable[..., nn.Module], size: int, classes: int, mixed: bool, device: str, dim: int) -> float | str:
    """Milliseconds of one side, or why there is no number."""
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(size, dim, generator=generator).to(device, torch.bfloat16 if mixed else torch.float32)
    labels = torch.randint(classes, (size,), generator=generator).to(device)
    try:
        loss, leaf = make(classes, dim).to(device), embeddings.requires_grad_()

        def step() -> None:
            for each in (leaf, *loss.parameters()):
                each.grad = None
            with torch.autocast(device, torch.bfloat16, enabled=mixed):
                value = loss(leaf, labels)
            value.backward()

        return round(time_step(step, device, 10 if size > 8192 else 20), 3)
    except Exception as error:
        if not out_of_memory(error):
            raise
        return "out of memory"


def main() -> None:
    """Measure every head."""
    parser = make_parser(__doc__, device=True, quick="small sizes", out="heads")
    options = parser.parse_args()
    sizes, dim = (((16, 8),), 8) if options.quick else (SIZES, 512)
    report: dict[str, Any] = {
        "machine": machine(options.device) | versions("torch", "triton", "pytorch-metric-learning"),
        "commit": commit(),
        "rows": [],
    }
    path = result_path("heads", options)
    for size, classes in sizes:
        for mixed in (True, False):
            for name, both in HEADS.items():
                if name == "SoftTriple" and size * classes > POOLED:
                    continue
                ours, peer = (measure(make, size, classes, mixed, options.device, dim) for make in both)
                row = {"head": name, "size": size, "classes": classes, "mixed": mixed, "ours_ms": ours, "peer_ms": peer}
                report["rows"].append(row)
                print(row, flush=True)
        write(report, path)


if __name__ == "__main__":
    main()
