"""Every loss and miner on a GPU: equal to the CPU in float64, and whether it ever waits for the device.

    python -m benchmarks.devices    a few seconds on a CUDA machine; writes benchmarks/results/devices-cuda.json

Needs torch and the core rooms alone.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness import RESULTS, write
from likewise import losses, miners
from likewise.losses import PairLoss, ProxyLoss

RESULT = RESULTS / "devices-cuda.json"
CLASSES, PER_CLASS, DIM = 32, 4, 64


def cases() -> dict[str, Callable[[], nn.Module]]:
    """Every loss with its defaults, four losses with every miner that draws nothing at random, and four wrappers."""
    found: dict[str, Callable[[], nn.Module]] = {}
    for name in losses.__all__:
        kind = getattr(losses, name)
        if not inspect.isclass(kind) or kind in (PairLoss, ProxyLoss, losses.WeightedPairLoss):
            continue
        if issubclass(kind, PairLoss):
            found[name] = kind
        elif issubclass(kind, ProxyLoss):
            found[name] = lambda kind=kind: with_proxies(kind)
    found["TripletLoss(soft=True)"] = lambda: losses.TripletLoss(soft=True)
    choices = [
        miners.MultiSimilarityMiner(),
        miners.PairMarginMiner(),
        miners.SemiHardMiner(),
        miners.SemiHardMiner(0.2),
        miners.BatchHardMiner(),
        miners.EasyPositiveMiner(),
    ]
    for miner in choices:
        for kind in (losses.TripletLoss, losses.MarginLoss, losses.MultiSimilarityLoss, losses.NTXentLoss):
            found[f"{kind.__name__} + {miner!r}"] = lambda kind=kind, miner=miner: kind(miner=miner)
    found["CrossBatchMemory"] = lambda: losses.CrossBatchMemory(losses.ContrastiveLoss(), 200).eval()
    found["DirectionRegularized(MultiSimilarityLoss)"] = lambda: losses.DirectionRegularized(
        losses.MultiSimilarityLoss()
    )
    found["DirectionRegularized(ProxyNCALoss)"] = lambda: losses.DirectionRegularized(with_proxies(losses.ProxyNCALoss))
    found["LanguageGuidance"] = lambda: losses.LanguageGuidance(losses.NTXentLoss(), torch.eye(CLASSES))
    return found


def with_proxies(kind: type[ProxyLoss]) -> ProxyLoss:
    torch.manual_seed(0)
    return kind(CLASSES, DIM)


def value_and_gradient(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> tuple[float, Tensor]:
    leaf = embeddings.clone().requires_grad_()
    value = loss(leaf, labels)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.item(), gradient.cpu().double()


def waits(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> bool:
    """Whether a call makes the host wait for the device."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss(embeddings, labels)
    except RuntimeError as refusal:
        if "synchroniz" not in str(refusal):
            raise
        return True
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return False


def check(make: Callable[[], nn.Module], embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
    """One row: errors of float32 on the device against float64 on the CPU."""
    truth, slope = value_and_gradient(make().double(), embeddings.double(), labels)
    loss = make().cuda()
    device = embeddings.cuda(), labels.cuda()
    value, gradient = value_and_gradient(loss, *device)
    return {
        "value_error": abs(value - truth) / max(abs(truth), 1e-12),
        "gradient_error": float((gradient - slope).norm() / slope.norm().clamp_min(1e-12)),
        "waits": waits(loss, *device),
    }


def main() -> None:
    """Check everything, print it, write it down."""
    warnings.simplefilter("ignore", UserWarning)  # the debug mode for synchronization says that it is a prototype
    torch.manual_seed(0)
    labels = torch.arange(CLASSES).repeat_interleave(PER_CLASS)
    embeddings = torch.randn(CLASSES, DIM)[labels] + 2.0 * torch.randn(len(labels), DIM)
    rows = {}
    for name, make in cases().items():
        rows[name] = check(make, embeddings, labels)
        row = rows[name]
        print(f"{name:60} {row['value_error']:.1e} {row['gradient_error']:.1e} {'waits' if row['waits'] else ''}")
    machine = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    worst = {key: max(row[key] for row in rows.values()) for key in ("value_error", "gradient_error")}
    report = {"machine": machine, "batch": [len(labels), DIM], "worst": worst, "rows": rows}
    print(f"worst: {worst}")
    write(report, RESULT)


if __name__ == "__main__":
    main()
