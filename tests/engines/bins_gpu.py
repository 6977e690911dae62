"""Checks that need a GPU: losses on histograms, positive pairs and quadruplets, in kernels, against float64.

``python -m tests.engines.bins_gpu`` runs all checks and prints times; names of checks and of losses as arguments run these only.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from likewise import losses, miners
from tests.engines.triton_gpu import DTYPES, ROUNDING, batch, run

KINDS: dict[str, Callable[..., nn.Module]] = {
    "FastAP": losses.FastAPLoss,
    "FastAP, 50 bins": partial(losses.FastAPLoss, 50),
    "histogram": losses.HistogramLoss,
    "lifted structure": losses.LiftedStructureLoss,
    "quadruplet": losses.QuadrupletLoss,
    "quadruplet-wise": losses.QuadrupletWiseLoss,
}
SIZES = (2048, 8192, 32768)


NEAR = 5e-7
"""The error of a similarity: rounding decides on the derivative of a pair that is so close to a node.

With 100 bins, a third of the rows of 8,192 samples has such a pair.
"""


def rows_off_nodes(loss: nn.Module, embeddings: Tensor) -> Tensor:
    """The rows none of whose pairs is within rounding of a node, where derivatives of a soft histogram jump."""
    if not isinstance(loss, losses.FastAPLoss | losses.HistogramLoss):
        return torch.ones(len(embeddings), dtype=torch.bool, device=embeddings.device)
    unit = nn.functional.normalize(embeddings.double())
    per_cosine = 0.5 * loss.bins  # both losses divide cosines from −1 to 1 evenly
    position = per_cosine * (1.0 - unit @ unit.T)
    away = (position - position.round()).abs().fill_diagonal_(1.0) > per_cosine * NEAR
    return away.all(dim=1)


def compare(make: Callable[..., nn.Module], embeddings: Tensor, labels: Tensor, what: str, backend: str) -> None:
    """Assert that errors against float64 are at most three times those of the dense engine, plus rounding.

    The gradient is compared in rows without a pair at a node; in float32 many rows must be such rows.
    """
    kept = rows_off_nodes(make(), embeddings)
    assert embeddings.dtype != torch.float32 or kept.float().mean() > 0.3, f"{what}: {int(kept.sum())} rows"
    if embeddings.dtype != torch.float32:
        kept = torch.ones_like(kept)  # rounding of the gradient exceeds a few jumps
    true = run(make(backend="dense").double(), embeddings.double(), labels)
    found, dense = (run(make(backend=each), embeddings, labels) for each in (backend, "dense"))
    for place, (x, y, t) in enumerate(zip(found, dense, true, strict=True)):
        if place:
            x, y, t = x[kept], y[kept], t[kept]
        own, theirs = (float((z.double() - t).norm() / t.norm().clamp_min(1e-30)) for z in (x, y))
        limit = 3.0 * theirs + ROUNDING[x.dtype] + 1e-6
        assert own <= limit, f"{what}: {'gradient' if place else 'value'}: {own:.2e}, dense {theirs:.2e}"


def values_on_odd_sizes() -> None:
    """Tiles that cross the edge, few and many positives, with and without an order by labels."""
    for name, make in KINDS.items():
        for m, d, classes in ((67, 24, 30), (301, 100, 100), (1537, 100, 500), (2049, 100, 700)):
            for dtype in DTYPES:
                embeddings, labels = batch(m, d, classes)
                compare(make, embeddings.to(dtype), labels, f"{name}, {m}, {dtype}", "triton")


def values_at_8192() -> None:
    for name, make in KINDS.items():
        for dtype in (torch.float32, torch.bfloat16):
            embeddings, labels = batch(8192, 128)
            compare(make, embeddings.to(dtype), labels, f"{name}, 8,192, {dtype}", "auto")


def values_after_mining() -> None:
    for name in sorted({"FastAP", "histogram", "lifted structure"} & set(KINDS)):
        make = partial(KINDS[name], miner=miners.PairMarginMiner(0.9, 0.1))
        for m in (301, 1537):
            embeddings, labels = batch(m)
            backend = "auto" if name == "lifted structure" else "triton"
            compare(make, embeddings, labels, f"{name}, mined, {m}", backend)


def the_same_bits_twice() -> None:
    """Small batches too, which sum on the matrix."""
    for name, make in KINDS.items():
        for m in (300, 2048, 6000):
            for dtype in (torch.float32, torch.bfloat16):
                embeddings, labels = batch(m)
                first, second = (run(make(), embeddings.to(dtype), labels) for _ in range(2))
                for a, b in zip(first, second, strict=True):
                    assert torch.equal(a, b), f"{name}, {m}, {dtype}: {float((a - b).abs().max()):.2e}"


def a_nan_is_seen() -> None:
    for name in sorted({"FastAP", "histogram"} & set(KINDS)):
        for m in (300, 4096):
            embeddings, labels = batch(m)
            embeddings[7, 3] = torch.nan
            for backend in ("dense", "triton"):
                value = KINDS[name](backend=backend)(embeddings, labels)
                assert value.isnan(), f"{name}, {m}, {backend}: {float(value)}"


def times() -> None:
    """Print the median time of forward and backward, and the time of the first call, which compiles."""
    for name, make in KINDS.items():
        for m in SIZES:
            for dtype in (torch.bfloat16, torch.float32):
                try:
                    first, median = measure(make(), m, dtype)
                except torch.OutOfMemoryError:
                    print(f"  {name}, {m}, {dtype}: out of memory", flush=True)
                    continue
                print(f"  {name}, {m}, {dtype}: {median:.2f} ms, first call {first:.1f} s", flush=True)


def measure(loss: nn.Module, m: int, dtype: torch.dtype) -> tuple[float, float]:
    """Return the seconds of the first call and the median milliseconds of the next ones."""
    embeddings = torch.randn(m, 512, device="cuda").to(dtype).requires_grad_()
    labels = torch.arange(m, device="cuda") // 4
    seconds = []
    for _ in range(8):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        torch.autograd.grad(loss(embeddings, labels), embeddings)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return seconds[0], 1e3 * statistics.median(seconds[2:])


CHECKS = (values_on_odd_sizes, values_at_8192, values_after_mining, the_same_bits_twice, a_nan_is_seen, times)


def main(names: list[str]) -> int:
    """Run the named checks, or all, print a line for each with its seconds, and return how many failed."""
    known = {task.__name__: task for task in CHECKS}
    for kind in set(KINDS) - set(names) if set(KINDS) & set(names) else ():
        del KINDS[kind]
    failed = 0
    for name in [name for name in names if name in known] or known:
        begin = time.perf_counter()
        try:
            known[name]()
            verdict = "right"
        except Exception as error:
            failed += 1
            verdict = f"{type(error).__name__}: {error}"
        print(f"{name}: {verdict} ({time.perf_counter() - begin:.1f} s)", flush=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
