"""What `engines.py` measures: one job for each row, the most important first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.engines.precision import cases, measure_precision
from benchmarks.engines.rows import (
    FEW,
    HEAD_NAMES,
    PEER,
    ROUNDED,
    Bench,
    Row,
    measure_auto,
    measure_compiled,
    measure_loss,
    measure_rate,
    measure_small,
)
from benchmarks.harness.pairings import HEADS, PAIRINGS
from likewise.engines import BACKENDS

PARTS = ("large", "proxies", "triplets", "rate", "small", "auto", "precision")

PAIR_LOSSES = (
    "Multi-similarity",
    "Multi-similarity + miner",
    "NT-Xent",
    "Circle",
    "Contrastive",
    "Generalized lifted",
    "Binomial deviance",
)
COMPILED = ("Contrastive", "Multi-similarity", "Multi-similarity + miner", "NT-Xent", "Circle", "Triplet, all")
COMPILED_HEADS = ("Normalized softmax", "ArcFace", "Proxy-Anchor")
WITH_PEER = {pairing.name for pairing in PAIRINGS if pairing.theirs} | {head.name for head in HEADS if head.theirs}
HALF, SINGLE = ("bfloat16", "highest"), ("float32", "highest")
PRECISIONS = (HALF, SINGLE, ("float32", "medium"), ("float32", "high"))
SMALL_CLASSES = 1000


@dataclass(frozen=True)
class Sizes:
    """How large things are; small ones for a smoke test."""

    large: tuple[int, ...] = (32768, 8192, 2048)
    huge: tuple[int, ...] = (131072,)
    small: tuple[int, ...] = (128, 512, 2048)
    classes: int = 100_000
    many_classes: int = 1_000_000
    head_batch: int = 8192
    rate: tuple[int, ...] = (32768, 8192)
    grid: tuple[int, ...] = (32, 128, 512, 2048, 8192, 16384)
    fine: tuple[int, ...] = (64, 256, 1024, 4096)


QUICK = Sizes((128, 64), (256,), (32, 16), 200, 400, 64, (128,), (32, 128), (64,))


@dataclass(frozen=True)
class Job:
    """One row to measure.

    Args:
        key: what names the row; no two rows have the same.
        measure: makes the row from it.
        rank: how important it is; 0 comes first.
    """

    key: Row
    measure: Callable[[Bench, Row], Row]
    rank: int

    @property
    def ours(self) -> bool:
        """Whether the row depends on our code."""
        return self.key["contender"] not in (PEER, "torch")

    @property
    def compiles(self) -> bool:
        """Whether the first call compiles kernels that another process could compile ahead."""
        return self.key["contender"] in ("triton", "auto")


def jobs_of(parts: list[str], sizes: Sizes, backends: list[str]) -> list[Job]:
    """The jobs of some parts, by importance; within one rank in the order in which the parts were given."""
    found = [job for part in parts for job in MAKERS[part](sizes)]
    wanted = [job for job in found if not job.ours or job.key["contender"] in backends]
    return sorted(wanted, key=lambda job: job.rank)


def sample(jobs: list[Job], of_each: int = 10) -> list[Job]:
    """A few jobs of each part, from all over it, for a smoke test; the compiler is not tried."""
    few: list[Job] = []
    for part in dict.fromkeys(job.key["part"] for job in jobs):
        found = [job for job in jobs if job.key["part"] == part and job.measure is not measure_compiled]
        few += found[:: -(-len(found) // of_each)]
    return few


def engines(device: str) -> list[str]:
    """The engines that a device can run."""
    return [*(name for name in BACKENDS if name != "triton"), FEW] if device == "cpu" else list(BACKENDS)


# ------------------------------------------------------------------------------------------------ large batches


def _row(part: str, loss: str, contender: str, size: int, precision: tuple[str, str], **more: Any) -> Row:
    given, setting = precision
    return {
        "part": part,
        "loss": loss,
        "contender": contender,
        "size": size,
        "input": given,
        "products": setting,
        **more,
    }


def large(sizes: Sizes) -> Iterator[Job]:
    """Pair losses on large batches: the bars at the largest size first, then the peer, then the rest."""
    top = sizes.large[0]
    for size in sizes.large:
        later = 0 if size == top else 2
        for loss in PAIR_LOSSES:
            chief = loss.startswith("Multi")
            for precision in PRECISIONS:
                rank = later + (0 if precision == HALF or chief else 1)
                yield Job(_row("large", loss, "triton", size, precision), measure_loss, rank)
            for precision in (SINGLE, ("float32", "high")):
                for engine in ("chunked", "dense"):
                    rank = 3 if precision == SINGLE and (size != top or chief) else 4
                    yield Job(_row("large", loss, engine, size, precision), measure_loss, rank)
            if loss in WITH_PEER:
                for precision in PRECISIONS:
                    rank = 1 if precision == SINGLE and size == top else 2 if chief or precision == SINGLE else 4
                    yield Job(_row("large", loss, PEER, size, precision), measure_loss, rank)
    for size in sizes.huge:
        for loss in ("Multi-similarity", "NT-Xent"):
            for precision, rank in ((HALF, 0), (("float32", "medium"), 3), (SINGLE, 4)):
                yield Job(_row("large", loss, "triton", size, precision), measure_loss, rank)
            yield Job(_row("large", loss, "chunked", size, ("float32", "high")), measure_loss, 5)


def proxies(sizes: Sizes) -> Iterator[Job]:
    """Class heads over very many classes, and Proxy-Anchor with a quarter as many as samples."""
    at_bar = [(loss, sizes.head_batch, sizes.classes) for loss in ("ArcFace", "Normalized softmax")]
    anchors = [("Proxy-Anchor", size, max(size // 4, 1)) for size in sizes.large]
    for loss, size, classes in at_bar + anchors:
        for precision in PRECISIONS:
            rank = 0 if precision == HALF else 1
            for of_proxies in ("bfloat16", "float32") if precision == HALF else ("float32",):
                more = {"classes": classes, "proxies": of_proxies}
                yield Job(_row("proxies", loss, "triton", size, precision, **more), measure_loss, rank)
        more = {"classes": classes, "proxies": "float32"}
        for precision in (SINGLE, ("float32", "high")):
            yield Job(_row("proxies", loss, PEER, size, precision, **more), measure_loss, 1)
            for engine in ("chunked", "dense"):
                yield Job(_row("proxies", loss, engine, size, precision, **more), measure_loss, 3)
        yield Job(_row("proxies", loss, PEER, size, HALF, **more), measure_loss, 4)
    for loss in ("ArcFace", "Normalized softmax"):
        for precision, rank in ((HALF, 1), (("float32", "medium"), 2), (SINGLE, 3)):
            for of_proxies in ("bfloat16", "float32") if precision == HALF else ("float32",):
                more = {"classes": sizes.many_classes, "proxies": of_proxies}
                yield Job(_row("proxies", loss, "triton", sizes.head_batch, precision, **more), measure_loss, rank)
        more = {"classes": sizes.many_classes, "proxies": "float32"}
        yield Job(_row("proxies", loss, "chunked", sizes.head_batch, ("float32", "high"), **more), measure_loss, 4)
        yield Job(_row("proxies", loss, PEER, sizes.head_batch, ("float32", "high"), **more), measure_loss, 5)


def triplets(sizes: Sizes) -> Iterator[Job]:
    """Triplet losses on large batches; the bar is at the middle size."""
    for place, size in enumerate(sizes.large):
        for loss in ("Triplet, all", "Triplet, semi-hard"):
            for engine in ("auto", "triton", "chunked", "dense"):
                for precision in (SINGLE, HALF, ("float32", "high")):
                    if engine in ("chunked", "dense") and precision == HALF:
                        continue
                    rank = (0 if place < 2 else 1) if engine == "auto" and precision != HALF else 3
                    yield Job(_row("triplets", loss, engine, size, precision), measure_loss, rank)
            # the cube of the largest batch is known not to fit, and takes long to find out
            yield Job(_row("triplets", loss, PEER, size, SINGLE), measure_loss, 5 if place == 0 else 1)


# ------------------------------------------------------------------------------------------------ small batches


def small(sizes: Sizes) -> Iterator[Job]:
    """Every loss on small batches, on every engine."""
    names = [pairing.name for pairing in PAIRINGS] + list(HEAD_NAMES)
    for place, size in enumerate(sizes.small):
        for loss in names:
            more = {"classes": SMALL_CLASSES} if loss in HEAD_NAMES else {}
            for engine in ("auto", "triton", "dense", "chunked"):
                rank = (0 if place == 0 else 2) if engine == "auto" else 2 + place
                yield Job(_row("small", loss, engine, size, SINGLE, **more), measure_small, rank)
            if loss in WITH_PEER:
                yield Job(_row("small", loss, PEER, size, SINGLE, **more), measure_small, 1 + place)
    for loss in COMPILED + COMPILED_HEADS:
        more = {"classes": SMALL_CLASSES} if loss in HEAD_NAMES else {}
        key = _row("small", loss, "auto", sizes.small[0], SINGLE, **more, compiled=True)
        yield Job(key, measure_compiled, 3)


# ------------------------------------------------------------------------------------------------ rates and grids


def rate(sizes: Sizes) -> Iterator[Job]:
    """The card's own products, and what the Triton engine makes of them."""
    for place, size in enumerate(sizes.rate):
        for precision in (HALF, ("float32", "high"), SINGLE):
            yield Job(_row("rate", "-", "torch", size, precision, what="product"), measure_rate, place)
        for loss in ("Multi-similarity", "NT-Xent", "Circle"):
            for precision in PRECISIONS:
                for what in ("forward", "forward + backward", *([ROUNDED] if precision == HALF else [])):
                    rank = (0 if precision == HALF and loss == "Multi-similarity" else 1) + 2 * place
                    yield Job(_row("rate", loss, "triton", size, precision, what=what), measure_rate, rank)


def auto(sizes: Sizes) -> Iterator[Job]:
    """Every engine over a grid of anchors and references, so that the thresholds of ``"auto"`` can be read off."""
    cells = [(m, n) for m in sizes.grid for n in sizes.grid] + [(m, m) for m in sizes.fine]
    for m, n in cells:
        for loss in ("Multi-similarity", "Normalized softmax"):
            # who looks few positives up does so in a batch against itself
            for engine in ("dense", "chunked", "triton", *([FEW] if m == n and loss == "Multi-similarity" else [])):
                for precision in (SINGLE, HALF) if engine == "triton" else (SINGLE,):
                    # squares first; a batch against itself is the usual case
                    rank = 1 if m == n and precision == SINGLE else 3
                    yield Job(_row("auto", loss, engine, m, precision, references=n), measure_auto, rank)


def precision(sizes: Sizes) -> Iterator[Job]:
    """Every loss on every engine and dtype against float64 on the CPU."""
    for case in cases():
        for engine in ("triton", "chunked", "auto"):
            key = {"part": "precision", "loss": case, "contender": engine}
            yield Job(key, measure_precision, 0 if engine == "triton" else 1)


MAKERS: dict[str, Callable[[Sizes], Iterator[Job]]] = {
    "large": large,
    "proxies": proxies,
    "triplets": triplets,
    "rate": rate,
    "small": small,
    "auto": auto,
    "precision": precision,
}


def for_cpu(sizes: Sizes) -> Sizes:
    """A processor has no use for the largest of them."""
    return replace(
        sizes, large=(4096, 1024), huge=(), classes=10_000, many_classes=20_000, head_batch=512, rate=(2048,),
        grid=tuple(size for size in sizes.grid if size <= 8192),
    )  # fmt: skip
