"""Retrieval metrics on a GPU next to a product and a top-k: values, times and a profile, in about a minute.

    python -m benchmarks.evaluation.device --device cuda            values, times, profile; writes results/device-cuda.json
    python -m benchmarks.evaluation.device --device cuda --tune     times of counts and of products by tile
    python -m benchmarks.evaluation.device --page                   fills the table of docs/benchmarks-evaluation.md
    python -m benchmarks.evaluation.device --quick                  small sizes on the CPU; prints, and writes nothing

Values are compared with full sorts of float64 similarities, within rounding; on integers, whose many ties are exact, with
those of the CPU; and between two budgets.  Times are the shortest of several calls.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.evaluation.measure import bare_product, make
from benchmarks.harness import (
    DOCS,
    fill,
    machine,
    make_parser,
    number,
    read,
    result_path,
    table,
    versions,
    write,
)
from likewise.metrics import retrieval
from likewise.metrics.prepared_rows import load_part_product

FIRST = ("R@1", "RP", "MAP@R")
SIZES = ((5_924, 59, 512), (60_502, 5, 512), (250_000, 10, 128))
"""Samples, samples of each class, dimensions."""

PRODUCT_TILES = ((128, 32, 8, 4), (128, 32, 8, 3), (128, 64, 8, 2), (128, 32, 8, 4, 16), (64, 64, 4, 3), (64, 32, 4, 4))
"""Side, depth, warps, stages, and rows of tiles that are traversed together, of `triton_products.Tile`."""


def product_and_topk(embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
    """The product in chunks of rows, and the first thousand of each."""
    step = 8192 if len(embeddings) < 100_000 else 2048
    for start in range(0, len(embeddings), step):
        (embeddings[start : start + step] @ embeddings.T).topk(min(1000, len(embeddings)), dim=1)
    return {}


CONTENDERS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "product": bare_product,
    "product, top-1000": product_and_topk,
    "first neighbors": lambda x, y: retrieval(x, y, metrics=FIRST),
    "all metrics": lambda x, y: retrieval(x, y, ks=(1, 10, 100, 1000)),
}


def wait(device: str) -> None:
    """Wait for the device."""
    if device != "cpu":
        torch.cuda.synchronize()


def time_call(call: Callable[[], Any], rounds: int, device: str) -> float:
    """The milliseconds of the shortest of several calls."""
    taken = []
    for _ in range(rounds):
        wait(device)
        start = time.perf_counter()
        call()
        wait(device)
        taken.append(time.perf_counter() - start)
    return round(1000 * min(taken), 3)


def compute_reference(embeddings: Tensor, labels: Tensor) -> dict[str, float]:
    """R@1, RP, MAP@R and mAP in float64, from full sorts of chunks of rows; ties are not resolved."""
    x = torch.nn.functional.normalize(embeddings.double())
    sums = torch.zeros(4, dtype=torch.float64, device=x.device)
    places = torch.arange(1, len(x), device=x.device)
    for start in range(0, len(x), 1024):
        rows = x[start : start + 1024] @ x.T
        rows[torch.arange(len(rows)), start + torch.arange(len(rows))] = -torch.inf
        hits = labels[rows.argsort(dim=1, descending=True)[:, :-1]] == labels[start : start + len(rows), None]
        counts = hits.sum(dim=1, keepdim=True)
        precision = hits.cumsum(dim=1) / places * hits
        inside = places <= counts
        values = (
            hits[:, 0].double(),
            (hits & inside).sum(dim=1) / counts[:, 0],
            (precision * inside).sum(dim=1) / counts[:, 0],
            precision.sum(dim=1) / counts[:, 0],
        )
        sums += torch.stack([value.double().sum() for value in values])
    return dict(zip((*FIRST, "mAP"), (sums / len(x)).tolist(), strict=True))


def check(device: str, quick: bool) -> list[dict[str, Any]]:
    """Compare with float64: real numbers within rounding, and integers, whose many ties are exact, with the CPU."""
    rows = []
    for n, per_class, dim in ((1_200, 12, 64),) if quick else ((5_924, 59, 512), (12_000, 5, 128), (9_000, 300, 64)):
        x, y = make(n, per_class, dim, device)
        expected, found = compute_reference(x, y), retrieval(x, y)
        first = retrieval(x, y, metrics=FIRST)
        errors = {name: abs(found[name] - value) for name, value in expected.items()}
        errors |= {f"{name}, first": abs(first[name] - expected[name]) for name in FIRST}
        assert max(errors.values()) < 2e-5, (n, errors)
        small = retrieval(x, y, memory=2**24)
        budget = max(abs(small[name] - found[name]) for name in expected)
        assert budget < 1e-5, (n, budget)
        rows.append({"samples": n, "largest error": max(errors.values()), "other budget": budget})
    grid = torch.randint(-2, 3, (3_000, 6), generator=torch.Generator().manual_seed(0)).float()
    for labels in (torch.arange(3_000) // 7, torch.arange(3_000) % 40, torch.arange(3_000) // 1500):
        for ties in ("expected", "optimistic", "pessimistic"):
            on_cpu = retrieval(grid, labels, similarity="dot", ties=ties)
            for memory in (2**28, 2**23):
                found = retrieval(grid.to(device), labels.to(device), similarity="dot", ties=ties, memory=memory)
                assert all(abs(found[name] - value) < 1e-9 for name, value in on_cpu.items()), (ties, memory)
    return rows


def check_products(device: str) -> dict[str, Any] | None:
    """Errors and times of products in parts; ``None`` where products are not computed in parts.

    The same bits wherever a pair stands, in whatever order: with the triangle, without it, transposed, and in chunks.
    """
    x = torch.nn.functional.normalize(torch.randn(8192, 512, device=device))
    x[4000:5000] = x[:1000]
    multiply = load_part_product(x.device, x.dtype, x.shape[1])
    if multiply is None:
        return None
    whole, other = multiply(x, x), multiply(x, x.clone())
    assert torch.equal(whole, other)
    assert torch.equal(whole, whole.T)
    assert torch.equal(whole[:, 4000:5000], whole[:, :1000])
    assert torch.equal(multiply(x[192:960], x[:3072]), whole[192:960, :3072])
    exact = x.double() @ x.double().T
    errors = {
        name: {
            "rms": value.square().mean().sqrt().item(),
            "max": value.abs().max().item(),
            "diagonal": value.diagonal().abs().max().item(),
        }
        for name, value in (("parts", whole.double() - exact), ("float32", (x @ x.T).double() - exact))
    }
    assert errors["parts"]["max"] <= 1.5 * errors["float32"]["max"], errors
    clone = x.clone()
    calls = {
        "float32": lambda: torch.mm(x, x.T, out=whole),
        "parts": lambda: multiply(x, clone, whole),
        "parts, triangle": lambda: multiply(x, x, whole),
    }
    return {"errors": errors, "ms": {name: time_call(call, 5, device) for name, call in calls.items()}}


def profile_call(embeddings: Tensor, labels: Tensor, contender: str) -> dict[str, Any]:
    """Kernels, synchronizations and milliseconds of one call."""
    for _ in range(3):
        CONTENDERS[contender](embeddings, labels)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if embeddings.is_cuda else [])
    wait(embeddings.device.type)
    with profile(activities=activities) as recorded:
        CONTENDERS[contender](embeddings, labels)
        wait(embeddings.device.type)
    averages = recorded.key_averages()
    names = {each.key: each.count for each in averages}
    kernels = [each for each in averages if getattr(each, "self_device_time_total", 0) > 0]
    kernels.sort(key=lambda each: -each.self_device_time_total)
    return {
        "launches": sum(count for name, count in names.items() if "LaunchKernel" in name),
        "copies and fills": sum(
            count for name, count in names.items() if name.startswith(("cudaMemcpy", "cudaMemset"))
        ),
        "synchronizations": sum(count for name, count in names.items() if "Synchronize" in name),
        "operators": sum(count for name, count in names.items() if name.startswith("aten::")),
        "kernels_ms": {each.key[:60]: round(each.self_device_time_total / 1000, 4) for each in kernels[:12]},
    }


def tune(device: str) -> None:
    """Print the time of the counting kernel by tile, for nine thresholds of rows and columns, and for 58 of rows.

    After that, the time of products in parts by tile: of two matrices, and of one with itself.
    """
    from likewise.metrics import triton_counts, triton_products
    from likewise.metrics.threshold_counts import ThresholdCounts
    from likewise.metrics.triton_counts import Tile

    matrix = torch.randn(8192, 8192, device=device)
    sides = {k: ThresholdCounts.start(torch.randn(k, 8192, device=device)) for k in (9, 58)}
    row_shapes = ((8, 4), (4, 4), (2, 2), (1, 1))
    for (lines, warps), segment, most in itertools.product(row_shapes, (2048, 4096, 8192), (5, 10)):
        triton_counts.ROW_TILE = Tile(lines, 128, 32, segment, most, warps)
        calls = [partial(triton_counts.count_on_device, matrix, sides[k], None) for k in (9, 58)]
        for call in calls:
            call()
        print("rows", triton_counts.ROW_TILE, [time_call(call, 5, device) for call in calls], "ms", flush=True)
    for lines, width, warps, segment in itertools.product((256, 512), (4, 8, 16), (2, 4, 8), (64, 128, 256)):
        if lines not in (64 * warps, 128 * warps):
            continue
        triton_counts.COLUMN_TILE = Tile(lines, width, 1, segment, warps=warps)
        call = partial(triton_counts.count_on_device, matrix, None, sides[9])
        call()
        print("columns", triton_counts.COLUMN_TILE, time_call(call, 5, device), "ms", flush=True)
    x, y = torch.randn(2, 5952, 512, device=device)
    for tile in itertools.starmap(triton_products.Tile, PRODUCT_TILES):
        triton_products.TILE = tile
        calls = [partial(triton_products.multiply_in_parts, x, other, matrix[:5952, :5952]) for other in (y, x)]
        for call in calls:
            call()
        print("products", tile, [time_call(call, 5, device) for call in calls], "ms", flush=True)


def page(report: dict[str, Any]) -> str:
    """The table of times, and the machine below it."""
    rows = [
        [f"{row['samples']:,} × {row['dim']}", *(number(row["ms"][name]) for name in CONTENDERS)]
        for row in report["rows"]
    ]
    about = report["machine"]
    head = ["samples, ms", "product", "product, top-1,000", "R@1, RP, MAP@R", "all metrics"]
    classes = ", ".join(str(per_class) for _, per_class, _ in SIZES)
    words = f"{about['device']}, torch {about['torch']}, classes of {classes}, the default budget; the shortest of several calls."
    return f"{table(head, rows)}\n\n{words}"


def main() -> None:
    """Check, measure and profile."""
    parser = make_parser(__doc__, device=True, quick="small sizes", out="device")
    parser.add_argument("--tune", action="store_true", help="time counts and products by tile and nothing else")
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        choices=[n for n, *_ in SIZES],
        help="time these numbers of samples only, and keep other results",
    )
    parser.add_argument("--page", action="store_true", help="fill the page and measure nothing")
    options = parser.parse_args()
    if options.page:
        options.device = "cuda"
        path = result_path("device", options)
        saved = None if path is None else read(path)
        if saved is None:
            raise SystemExit("there are no results yet: run python -m benchmarks.evaluation.device --device cuda")
        fill(DOCS / "benchmarks-evaluation.md", {"device": page(saved)})
        return
    if options.tune:
        tune(options.device)
        return
    report: dict[str, Any] = {"machine": {**machine(options.device), **versions("torch", "triton")}, "rows": []}
    path = result_path("device", options)
    sizes = ((1_500, 10, 64),) if options.quick else SIZES
    if options.sizes:
        sizes = tuple(size for size in sizes if size[0] in options.sizes)
        report = (None if path is None else read(path)) or report
    else:
        report["values"] = check(options.device, options.quick)
        print("values agree", report["values"], flush=True)
        report["products"] = check_products(options.device)
        print("products", report["products"], flush=True)
    for n, per_class, dim in sizes:
        x, y = make(n, per_class, dim, options.device)
        row: dict[str, Any] = {"samples": n, "dim": dim, "ms": {}}
        for name, call in CONTENDERS.items():
            call(x, y)
            row["ms"][name] = time_call(partial(call, x, y), 10 if n < 10_000 else 2, options.device)
        if n < 10_000 or n > 100_000:
            row["profile"] = profile_call(x, y, "all metrics")
            row["profile of first neighbors"] = profile_call(x, y, "first neighbors")
        report["rows"] = sorted(
            [*(each for each in report["rows"] if each["samples"] != n), row], key=lambda each: each["samples"]
        )
        print(row, flush=True)
        write(report, path)


if __name__ == "__main__":
    main()
