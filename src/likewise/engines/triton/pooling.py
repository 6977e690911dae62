"""Poolings in Triton's language: a tile of similarities to classes, from one product for each of their centers."""

from __future__ import annotations

from dataclasses import dataclass

from likewise.formula import BlendedCenters, Formula, NearestCenter, Number, Pooled

CENTER_SCALE = "tl.load(column_scale + center * code_stride + columns, mask=there, other=0.0)[None, :]"


@dataclass(frozen=True, eq=False)
class PoolTemplate:
    """The template of one pooling: text for kernels.

    The similarities to the centers with the number ``center`` are ``t``, a tile; the pooled ones are ``s``.

    Args:
        name: the name of the pooling, for the cache of kernels.
        centers: the number of centers of each class.
        numbers: the numbers that the text refers to, as ``{0}`` and so on.
        start: lines before the first center.
        step: lines for each center.
        finish: lines after the last center.
        remember: lines for each center in the gradient kernel, before ``step``.
        before_gradient: lines before the gradients by the centers; ``g`` is the gradient by ``s``.
        share: the gradient by ``t``.
        repeats: whether ``share`` reads ``t``, so that the gradient kernel multiplies twice.
    """

    name: str
    centers: int
    numbers: tuple[Formula, ...]
    start: tuple[str, ...]
    step: tuple[str, ...]
    finish: tuple[str, ...]
    remember: tuple[str, ...]
    before_gradient: tuple[str, ...]
    share: str
    repeats: bool


def find_pool_template(similarity: Pooled) -> PoolTemplate:
    """Return the template of a pooling that has one (`likewise.engines.dispatch`).

    Examples:
        >>> from likewise.formula import Cosine, NearestCenter, Pooled
        >>> find_pool_template(Pooled(Cosine(), 3, NearestCenter())).name
        'nearest'
    """
    pool, centers = similarity.pool, similarity.centers
    if isinstance(pool, NearestCenter):
        return _nearest(centers)
    assert isinstance(pool, BlendedCenters)
    return _blended(centers, pool.temperature)


def _nearest(centers: int) -> PoolTemplate:
    """The largest similarity; the bits of an integer tell which centers reach it, because ties share the gradient."""
    return PoolTemplate(
        name="nearest",
        centers=centers,
        numbers=(),
        start=('s = tl.full([BM, BN], float("-inf"), tl.float32)', "reached = tl.zeros([BM, BN], tl.int32)"),
        step=("s = tl.maximum(s, t, propagate_nan=tl.PropagateNan.ALL)",),
        finish=(),
        remember=("reached = tl.where(t > s, 0, reached) | tl.where(t >= s, 1 << center, 0)",),
        before_gradient=(
            "ties = tl.zeros([BM, BN], tl.int32)",
            f"for center in range({centers}):",
            "    ties += (reached >> center) & 1",
            "g = g / ties.to(tl.float32)",
        ),
        share="tl.where(((reached >> center) & 1) != 0, g, 0.0)",
        repeats=False,
    )


def _blended(centers: int, temperature: float) -> PoolTemplate:
    r"""$\sum_k w_k t_k$ with $w=\mathrm{softmax}(t/T)$; the derivative by $t_k$ is $w_k(1+(t_k-s)/T)$."""
    return PoolTemplate(
        name="blended",
        centers=centers,
        numbers=(Number(1.0 / temperature),),
        start=(
            'peak = tl.full([BM, BN], float("-inf"), tl.float32)',
            "total = tl.zeros([BM, BN], tl.float32)",
            "s = tl.zeros([BM, BN], tl.float32)",
        ),
        step=(
            "highest = tl.maximum(peak, t)",
            "old, new = tl.exp((peak - highest) * {0}), tl.exp((t - highest) * {0})",
            "total = total * old + new",
            "s = s * old + new * t",
            "peak = highest",
        ),
        finish=("s = s / total",),
        remember=(),
        before_gradient=(),
        share="g * (tl.exp((t - peak) * {0}) / total) * (1.0 + (t - s) * {0})",
        repeats=True,
    )
