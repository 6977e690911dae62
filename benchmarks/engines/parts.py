"""float32 products in bfloat16 parts beside torch's float32 and TF32 products: times, and errors against float64.

    python -m benchmarks.engines.parts --device cuda     writes results/parts-cuda.json
    python -m benchmarks.engines.parts --page            fills the table of docs/benchmarks-engines.md
    python -m benchmarks.engines.parts --quick           small sizes on the CPU; prints, and writes nothing

The factors are unit vectors.  A product in parts includes the splitting of both factors.  The second kind of product is that
of a gradient: a matrix of weights times the embeddings, whose inner side is long.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.engines.rows import products
from benchmarks.harness import DOCS, fill, machine, make_parser, number, read, result_path, table, versions, write
from likewise.formula.parts import multiply_parts, split_into_parts

SHAPES = ((8192, 512, 8192), (32768, 512, 8192), (8192, 128, 8192), (8192, 8192, 512), (32768, 8192, 512))
"""Rows, the inner side, columns."""

JUDGED = 512
"""Rows that are compared with float64."""


def in_parts(left: Tensor, right: Tensor) -> Tensor:
    """The product of the sums of three bfloat16 parts."""
    return multiply_parts(split_into_parts(left, 3), split_into_parts(right, 3))


METHODS: dict[str, tuple[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "float32": ("highest", lambda left, right: left @ right.T),
    "parts": ("highest", in_parts),
    "TF32": ("high", lambda left, right: left @ right.T),
}


def main() -> None:
    """Measure, or fill the page."""
    parser = make_parser(__doc__, device=True, quick="small sizes on the CPU", out="parts")
    parser.add_argument("--page", action="store_true", help="fill the page and measure nothing")
    options = parser.parse_args()
    if options.page:
        options.device = "cuda"
        path = result_path("parts", options)
        report = read(path) if path is not None else None
        if report is None:
            raise SystemExit("there are no results yet: run python -m benchmarks.engines.parts --device cuda")
        fill(DOCS / "benchmarks-engines.md", {"engines-parts": page(report["rows"])})
        return
    rows = []
    for shape in [(64, 16, 48)] if options.quick else SHAPES:
        rows.append(measure(shape, options.device))
        print(rows[-1], flush=True)
    report = {"machine": {**machine(options.device), **versions("torch")}, "rows": rows}
    write(report, result_path("parts", options))


def measure(shape: tuple[int, int, int], device: str) -> dict[str, Any]:
    """Milliseconds and errors of each method for one shape."""
    m, inner, n = shape
    left, right = (torch.nn.functional.normalize(torch.randn(rows, inner, device=device)) for rows in (m, n))
    exact = left[:JUDGED].double() @ right.double().T
    row: dict[str, Any] = {"shape": shape}
    for name, (precision, multiply) in METHODS.items():
        with products(precision):
            error = multiply(left, right)[:JUDGED].double() - exact
            row[name] = {
                "ms": round(time_call(lambda multiply=multiply: multiply(left, right), device), 4),  # type: ignore[misc]
                "rms": float(error.square().mean().sqrt()),
                "largest": float(error.abs().max()),
            }
    return row


def time_call(call: Callable[[], Tensor], device: str) -> float:
    """The median of several calls, in milliseconds."""
    taken = []
    for _ in range(12):
        if device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        if device != "cpu":
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return 1e3 * statistics.median(taken[2:])


def page(rows: list[dict[str, Any]]) -> str:
    """The table."""
    head = ["rows × inner side × columns"]
    head += [f"{name}, ms" for name in METHODS] + [f"{name}, error" for name in METHODS]
    lines = [
        [" × ".join(f"{side:,}" for side in row["shape"])]
        + [number(row[name]["ms"]) for name in METHODS]
        + [f"{row[name]['rms']:.1e}" for name in METHODS]
        for row in rows
    ]
    return table(head, lines)


if __name__ == "__main__":
    main()
