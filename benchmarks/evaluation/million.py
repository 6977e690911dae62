"""A gallery against itself on a GPU: exact R@1, RP and MAP@R, and every metric, next to the product without them.

    python -m benchmarks.evaluation.million --device cuda    250,000 and 1,000,000 samples; writes results/million-cuda.json
    python -m benchmarks.evaluation.million --page           fills the table of docs/benchmarks-evaluation.md
    python -m benchmarks.evaluation.million --quick          small sizes on the CPU; prints, and writes nothing

Every query is compared with all other samples, in float32 and 128 dimensions; classes have ten samples.  The first call of each
contender, which compiles kernels, is at a small size and not counted; each time is that of one call.  A time is on disk as soon as
it is known; run again to continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.evaluation.measure import bare_product, make
from benchmarks.harness import (
    DOCS,
    fill,
    fingerprint,
    machine,
    make_parser,
    number,
    read,
    result_path,
    resume,
    table,
    versions,
    write,
)
from likewise.metrics import retrieval

SIZES, DIM, PER_CLASS = (250_000, 1_000_000), 128, 10
MEMORY = 2**32
"""A budget that holds all prepared samples and counts: then each product serves its rows and its columns."""

FIRST, KS = ("R@1", "RP", "MAP@R"), (1, 10, 100, 1000, 10_000, 100_000)
CONTENDERS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "product": bare_product,
    "first": lambda embeddings, labels: retrieval(embeddings, labels, metrics=FIRST, memory=MEMORY),
    "all": lambda embeddings, labels: retrieval(embeddings, labels, ks=KS, memory=MEMORY),
}


def main() -> None:
    """Measure, or fill in."""
    parser = make_parser(__doc__, device=True, quick="two thousand samples", out="million")
    parser.add_argument("--page", action="store_true", help="fill the page and measure nothing")
    options = parser.parse_args()
    if options.page:
        options.device = "cuda"
        path = result_path("million", options)
        report = None if path is None else read(path)
        if report is None:
            raise SystemExit("there are no results yet: run python -m benchmarks.evaluation.million --device cuda")
        fill(DOCS / "benchmarks-evaluation.md", {"million": page(report)})
        return
    path = result_path("million", options)
    facts = {**machine(options.device), **versions("torch", "triton"), "memory": MEMORY, "ks": list(KS)}
    head = {"machine": facts, "code": fingerprint()}
    report = resume(path, head) or {**head, "rows": []}
    rows = {row["samples"]: row for row in report["rows"]}
    # kernels are compiled, for chunks of the shape of the large ones
    for contender in CONTENDERS.values():
        contender(*make(2_000 if options.quick else 20_000, PER_CLASS, DIM, options.device))
    for size in (2_000,) if options.quick else SIZES:
        row = rows.setdefault(size, {"samples": size})
        report["rows"] = list(rows.values())
        missing = [name for name in CONTENDERS if f"{name}_s" not in row]
        if not missing:
            continue
        embeddings, labels = make(size, PER_CLASS, DIM, options.device)
        for name in missing:
            row[f"{name}_s"], scores = measure(CONTENDERS[name], embeddings, labels)
            row |= {key: scores[key] for key in ("MAP@R", "R@1") if key in scores}
            print({**row, "now": name}, flush=True)
            write(report, path)


def measure(contender: Callable[[Tensor, Tensor], Any], embeddings: Tensor, labels: Tensor) -> tuple[float, Any]:
    """The seconds of one call, and its result."""
    if embeddings.is_cuda:
        torch.cuda.synchronize()
    begin = time.perf_counter()
    result = contender(embeddings, labels)
    if embeddings.is_cuda:
        torch.cuda.synchronize()
    return round(time.perf_counter() - begin, 4), result


def page(report: dict[str, Any]) -> str:
    """The table, and the machine below it."""
    head = ["samples against themselves", "product, s", "R@1, RP, MAP@R, s", "all metrics, s"]
    rows = [
        [
            f"{row['samples']:,} × {DIM}",
            *(number(row[key]) if (key := f"{name}_s") in row else "" for name in CONTENDERS),
        ]
        for row in report["rows"]
    ]
    about = report["machine"]
    title = "A gallery against itself, next to the bare product in float32:"
    return f"{title}\n\n{table(head, rows)}\n\n{about['device']}, torch {about['torch']}, classes of {PER_CLASS}, a budget of {MEMORY >> 30} GiB."


if __name__ == "__main__":
    main()
