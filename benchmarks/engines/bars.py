"""Targets of the engines on an H200 and what was measured, read from the rows only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Report = dict[str, Any]
Row = dict[str, Any]

FOLD_FORM = (
    "Contrastive",
    "Multi-similarity",
    "Multi-similarity + miner",
    "NT-Xent",
    "SupCon",
    "Circle",
    "Generalized lifted",
    "Tuplet margin",
    "NCA",
    "N-pairs",
    "SNR contrastive",
    "Binomial deviance",
    "RAW",
    "Intra-pair variance",
    "Softmax",
    "Normalized softmax",
    "ProxyNCA",
    "ProxyNCA++",
    "SphereFace",
    "CosFace",
    "ArcFace",
    "Proxy-Anchor",
)
"""Losses that are formulas; they have the tighter targets on small batches."""

NEAR = ("Circle", "NT-Xent", "Contrastive", "Generalized lifted", "Binomial deviance")


class Bar(NamedTuple):
    """One target: in words, the limit, what was measured (nan: nothing), the unit."""

    what: str
    limit: float
    found: float
    unit: str
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """In a word."""
        if math.isnan(self.found):
            return "not measured"
        reached = self.found >= self.limit if self.at_least else self.found <= self.limit
        return "met" if reached else "not met"


def find(report: Report, **wanted: Any) -> Iterator[Row]:
    """Rows with a number whose keys are so; a tuple: any of these."""
    for row in report["rows"]:
        key = row["key"]
        matches = (key.get(k) in v if isinstance(v, tuple) else key.get(k) == v for k, v in wanted.items())
        if "why" not in row and all(matches):
            yield row


def least(report: Report, field: str, **wanted: Any) -> float:
    """The smallest of a field over such rows; nan where there is none."""
    return min((row[field] for row in find(report, **wanted) if field in row), default=math.nan)


def fastest(report: Report, **wanted: Any) -> Row | None:
    """The fastest of such rows."""
    return min(find(report, **wanted), key=lambda row: row["median_ms"], default=None)


def field_of(row: Row | None, name: str) -> float:
    """A number of a row, or nan."""
    return float(row[name]) if row is not None and name in row else math.nan


def products_of(row: Row | None) -> str:
    """In which products a row's fastest time was reached."""
    if row is None:
        return ""
    key = row["key"]
    return ", bf16 input" if key["input"] == "bfloat16" else f", float32 input, `{key['products']}`"


def bars(report: Report) -> list[Bar]:
    """All targets."""
    return [bar for _, _, found in groups(report) for bar in found]


def groups(report: Report) -> list[tuple[str, str, list[Bar]]]:
    """Targets by subject: the title, why a user cares, and the targets."""
    return [
        (
            "Large batches",
            "Large batches contain more hard negatives, but the similarity matrix of a dense loss does not fit next to a network. A "
            "step of a loss should take milliseconds and less than 1 GiB, so that the network decides the batch size.",
            list(_large(report)),
        ),
        (
            "Many classes",
            "Face and product data sets have 100,000 to millions of classes. The logits should not be the largest tensor of a training.",
            list(_heads(report)),
        ),
        (
            "Triplets",
            "All triplets of a batch are cubic in its size. A triplet loss should cost about as much as a pair loss.",
            list(_triplets(report)),
        ),
        (
            "Small batches",
            "At typical batch sizes the arithmetic takes microseconds, so launch overhead and synchronization decide whether the loss "
            "slows down the step, and whether the step can be captured in a CUDA graph.",
            list(_small(report)),
        ),
        (
            "Use of the hardware",
            "The share of the rate of `torch.matmul` shows how much faster any implementation could be.",
            list(_rates(report)),
        ),
        (
            "Exactness",
            "A faster engine must not change the result: its error may be at most twice that of the dense engine at the same dtype.",
            list(_exact(report)),
        ),
    ]


def _large(report: Report) -> Iterator[Bar]:
    kernels = {"part": "large", "contender": "triton", "size": 32768}
    half, single = {"input": "bfloat16"}, {"input": "float32", "products": "highest"}
    plain, mined = {"loss": "Multi-similarity"}, {"loss": "Multi-similarity + miner"}
    queued = {"part": "rate", "contender": "triton", "size": 32768, "what": "forward + backward"}
    yield Bar("MultiSimilarity, B = 32,768, bf16", 10.0, least(report, "median_ms", **queued, **half, **plain), "ms")
    yield Bar("… its memory", 512.0, least(report, "extra_mib", **kernels, **half, **plain), "MiB")
    yield Bar("… with its miner", 28.0, least(report, "median_ms", **kernels, **half, **mined), "ms")
    yield Bar("… exact in float32", 80.0, least(report, "median_ms", **kernels, **single, **plain), "ms")
    own = least(report, "median_ms", **kernels, **half, **plain)
    for loss in NEAR:
        found = least(report, "median_ms", **kernels, **half, loss=loss)
        yield Bar(f"{loss} over MultiSimilarity, bf16", 1.3, found / own, "×")
    for loss in ("Multi-similarity", "NT-Xent"):
        row = fastest(report, part="large", contender="triton", size=131072, loss=loss)
        yield Bar(f"{loss}, B = 131,072 runs{products_of(row)}", math.inf, field_of(row, "median_ms"), "ms")
        yield Bar("… its memory", 2048.0, field_of(row, "extra_mib"), "MiB")


def _heads(report: Report) -> Iterator[Bar]:
    for loss in ("ArcFace", "Normalized softmax"):
        rows = {"part": "proxies", "contender": "triton", "loss": loss, "size": 8192}
        row = fastest(report, **rows, classes=100_000)
        yield Bar(f"{loss}, 100k classes, B = 8,192{products_of(row)}", 20.0, field_of(row, "median_ms"), "ms")
        beyond = field_of(row, "beyond_proxies_mib")
        yield Bar("… memory beyond proxies and gradient", 1024.0, beyond, "MiB")
        row = fastest(report, **rows, classes=1_000_000)
        yield Bar(f"{loss}, a million classes runs{products_of(row)}", math.inf, field_of(row, "median_ms"), "ms")


def _triplets(report: Report) -> Iterator[Bar]:
    for loss in ("Triplet, all", "Triplet, semi-hard"):
        rows = {"part": "triplets", "contender": "auto", "loss": loss, "input": "float32"}
        for size, limit in ((8192, 20.0), (32768, math.inf)):
            row = fastest(report, **rows, size=size)
            runs = " runs" if math.isinf(limit) else ""
            yield Bar(f"{loss}, B = {size:,}{runs}{products_of(row)}", limit, field_of(row, "median_ms"), "ms")


def _small(report: Report) -> Iterator[Bar]:
    for name, folded, size, limit in (
        ("the formulas", True, 128, 0.35),
        ("the formulas", True, 512, 0.35),
        ("the formulas", True, 2048, 0.8),
        ("the other losses", False, 128, 1.2),
    ):
        rows = [row for row in find(report, part="small", contender="auto", size=size) if "compiled" not in row["key"]]
        chosen = [row for row in rows if (row["key"]["loss"] in FOLD_FORM) is folded]
        slowest = max(chosen, key=lambda row: row["median_ms"], default=None)
        label = f" ({slowest['key']['loss']})" if slowest else ""
        yield Bar(f"B = {size:,}, slowest of {name}{label}", limit, field_of(slowest, "median_ms"), "ms")
    rows = [row for row in find(report, part="small", contender="auto", size=128) if "compiled" not in row["key"]]
    fixed = [row for row in rows if "held_mib" in row and "distance weighted" not in row["key"]["loss"]]
    yield Bar(
        "losses not replayed as a graph, except one that samples",
        0.0,
        _count(fixed, lambda row: not row["held_mib"]),
        "",
    )
    missing = [row for row in report["rows"] if "why" in row and row["key"]["part"] == "small"]
    missing = [row for row in missing if row["key"]["contender"] == "auto" and row["key"]["size"] == 128]
    yield Bar("B = 128, losses that failed", 0.0, float(len(missing)) if rows else math.nan, "")
    waiting = float(sum(row["waits"] for row in rows if "waits" in row)) if rows else math.nan
    yield Bar("losses that synchronize", 0.0, waiting, "")
    yield Bar("losses that cannot be captured", 0.0, _count(rows, lambda row: "why" in row.get("graph", {})), "")


def _count(rows: list[Row], holds: Callable[[Row], bool]) -> float:
    return float(sum(map(holds, rows))) if rows else math.nan


def _rates(report: Report) -> Iterator[Bar]:
    for what, limit in (("forward", 75.0), ("forward + backward", 40.0)):
        yield Bar(f"share of the `torch.matmul` rate, {what}, bf16", limit, share(report, what, 32768), "%", True)


def share(report: Report, what: str, size: int, given: str = "bfloat16", products: str = "highest") -> float:
    """The share of the rate of torch.matmul that MultiSimilarity reaches, in percent."""
    rows = {"part": "rate", "size": size, "input": given}
    # "medium" multiplies in bf16 where an engine can; the card's own rate for that is bf16's
    product = {"input": "bfloat16"} if products == "medium" else {"products": products}
    card = max((row["tflops"] for row in find(report, **{**rows, **product}, what="product")), default=math.nan)
    ours = find(report, **rows, what=what, products=products, loss="Multi-similarity", contender="triton")
    return 100.0 * max((row["tflops"] for row in ours), default=math.nan) / card


def _exact(report: Report) -> Iterator[Bar]:
    for engine in ("chunked", "triton", "auto"):
        rows = list(find(report, part="precision", contender=engine))
        beyond = _count(rows, lambda row: not row["within"])
        yield Bar(f"{engine}: cases over twice the dense error, of {len(rows)}", 0.0, beyond, "")


def print_bars(report: Report) -> None:
    """The targets of the parts that were measured."""
    for bar in bars(report):
        if not math.isnan(bar.found):
            sign = "≥" if bar.at_least else "≤"
            limit = "" if math.isinf(bar.limit) else f"{sign} {bar.limit:g}"
            print(f"{bar.verdict:>8}  {bar.what}: {bar.found:.4g} {bar.unit} {limit}")
