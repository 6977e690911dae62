"""Figures of the lens: weight curves and mined pairs.  Only this module of the package imports matplotlib.

The figures suit light and dark pages: the background is transparent, and every color contrasts with both.  The same
input gives the same bytes.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from likewise.analysis.curves import Curve, Curves
from likewise.analysis.weights import before_mining, pair_weights
from likewise.formula import as_similarity, batch_from_embeddings, one_of, whole_number
from likewise.losses import PairLoss

GRAY = "#858585"
PULL, PUSH = "#2a9d8f", "#e07a1f"
"""The colors of positive and negative pairs, which also differ by line style."""

CLASSES = ("#3b8edb", "#e08a1e", "#2aa876", "#c2559d", "#8a6fd1", "#d1495b", "#6b8e23", "#20a4a4")
Form = Literal["svg", "png"]


def draw_curves(curves: Curves, form: Form = "svg", *, columns: int = 4, width: float = 2.5) -> bytes:
    """Draw weight against similarity, a panel for each loss, with histograms of the batch's similarities.

    Solid: a positive pair.  Dashed: a negative pair.  Each line is drawn relative to its largest weight, which is printed
    at the axis, because a batch has many more negative pairs than positive ones.  With several anchors the median is
    drawn in full color, the others faint.

    Args:
        curves: the result of `weight_curves`.
        form: ``"svg"`` or ``"png"``.
        columns: the number of panels in a row.
        width: of a panel, in inches.

    Returns:
        The file's bytes, the same for the same input.

    Examples:
        >>> from likewise.analysis.curves import weight_curves
        >>> from likewise.losses import ContrastiveLoss
        >>> draw_curves(weight_curves(ContrastiveLoss()))[:5]
        b'<?xml'
    """
    one_of("form", form, ("svg", "png"))
    columns = min(whole_number("columns", columns, 1), len(curves))
    rows = math.ceil(len(curves) / columns)
    with use_style() as Figure:
        figure = Figure(figsize=(width * columns, 0.78 * width * rows + 0.3), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
        for place, axis in enumerate(axes.flat):
            if place >= len(curves):
                axis.set_axis_off()
                continue
            name = list(curves)[place]
            _curve(axis, curves[name], name)
            if place >= len(curves) - columns:  # the last of its column
                axis.tick_params(labelbottom=True)
                axis.set_xlabel("cosine")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
        return as_bytes(figure, form)


def _curve(axis: Any, curve: Curve, name: str) -> None:
    lowest = 0.0
    parts = (
        (curve.positive, curve.positives, PULL, "-", "a positive pair"),
        (curve.negative, curve.negatives, PUSH, (0, (4, 1.6)), "a negative pair"),
    )
    for place, (weights, cosines, color, dashes, label) in enumerate(parts):
        _histogram(axis, cosines, color)
        largest = float(weights.abs().max())
        relative = weights / largest if largest else weights
        lowest = min(lowest, float(relative.min()))
        for line in relative if len(relative) > 1 else ():
            axis.plot(*thin_line(curve.similarities, line), color=color, linewidth=0.7, alpha=0.35)
        middle = thin_line(curve.similarities, relative.median(dim=0).values)
        axis.plot(*middle, color=color, linestyle=dashes, linewidth=1.7, label=label)
        # the weight at the top of the panel
        axis.text(-1.04, 1.03 - 0.15 * place, f"{largest:.2g}", color=color, fontsize=6.5, ha="right", va="center")
    axis.set_title(name, loc="left", fontsize=9)
    axis.set_ylim(min(1.1 * lowest, -0.06), 1.08)
    axis.set_xlim(-1.0, 1.0)
    axis.set_xticks([-1, -0.5, 0, 0.5, 1], ["-1", "", "0", "", "1"])
    axis.set_yticks([0.0], ["0"])
    strip_axis(axis)


def thin_line(across: Tensor, up: Tensor, tolerance: float = 0.003) -> tuple[Any, Any]:
    """Drop the points of a line that are between others (Ramer 1972, Douglas & Peucker 1973).

    Args:
        across: the horizontal positions of the points, ``(g,)``.
        up: their vertical positions, ``(g,)``.
        tolerance: the largest vertical deviation of the line.

    Examples:
        >>> across, up = thin_line(torch.tensor([0.0, 1.0, 2.0, 3.0]), torch.tensor([0.0, 0.0, 0.0, 1.0]))
        >>> across.tolist()
        [0.0, 2.0, 3.0]
    """
    kept, open_ends = {0, len(across) - 1}, [(0, len(across) - 1)]
    while open_ends:
        first, last = open_ends.pop()
        if last - first < 2:
            continue
        share = (across[first : last + 1] - across[first]) / (across[last] - across[first])
        distance = (up[first : last + 1] - torch.lerp(up[first], up[last], share.to(up.dtype))).abs()
        worst = first + int(distance.argmax())
        if float(distance.max()) > tolerance:
            kept.add(worst)
            open_ends += [(first, worst), (worst, last)]
    order = sorted(kept)
    return across[order].numpy(), up[order].numpy()


def _histogram(axis: Any, cosines: Tensor, color: str) -> None:
    """Draw a histogram of the similarities as a shade over half of the panel's height."""
    if not len(cosines):
        return
    counts = torch.histc(cosines.double().clamp(-1.0, 1.0), bins=20, min=-1.0, max=1.0)
    there = counts.nonzero().squeeze(1)
    some = slice(int(there[0]), int(there[-1]) + 1)
    edges = torch.linspace(-1.0, 1.0, 21)[some.start : some.stop + 1]
    heights = 0.5 * counts[some] / counts.max()
    axis.stairs(heights.numpy(), edges.numpy(), fill=True, color=color, alpha=0.16, linewidth=0)


def draw_sensitivity(of: Mapping[str, Curves], form: Form = "svg", *, width: float = 2.6) -> bytes:
    """Draw the curves of a loss as its hyper-parameters vary: a column for each, positive pairs above negative ones.

    Args:
        of: the curves of each hyper-parameter, the result of `sensitivities`.
        form: ``"svg"`` or ``"png"``.
        width: of a panel, in inches.

    Examples:
        >>> from likewise.analysis.curves import sensitivities
        >>> from likewise.losses import NTXentLoss
        >>> draw_sensitivity(sensitivities(NTXentLoss(), similarities=torch.linspace(-1, 1, 9)))[:5]
        b'<?xml'
    """
    one_of("form", form, ("svg", "png"))
    if not of:
        raise ValueError("of must hold the curves of at least one hyper-parameter, but it is empty")
    with use_style() as Figure:
        figure = Figure(figsize=(width * len(of), 1.9 * width), layout="constrained")
        axes = figure.subplots(2, len(of), sharex=True, squeeze=False)
        for column, curves in enumerate(of.values()):
            for row, (side, color) in enumerate((("positive", PULL), ("negative", PUSH))):
                _family(axes[row, column], curves, side, color)
            axes[1, column].set_xlabel("cosine")
        axes[0, 0].set_ylabel("positive pair")
        axes[1, 0].set_ylabel("negative pair")
        return as_bytes(figure, form)


def _family(axis: Any, curves: Curves, side: str, color: str) -> None:
    """Draw the curves of one side for several values, from light to dark."""
    for place, (name, curve) in enumerate(curves.of.items()):
        line = getattr(curve, side).median(dim=0).values
        share = (place + 1.0) / len(curves)
        axis.plot(
            *thin_line(curve.similarities, line, 0.003 * float(line.abs().max())),
            color=color,
            alpha=0.25 + 0.75 * share,
            linewidth=0.8 + share,
            label=name,
        )
    if side == "positive":
        axis.legend(frameon=False, fontsize=7, handlelength=1.2, labelspacing=0.25, borderpad=0.1)
    axis.set_xlim(-1.0, 1.0)
    axis.set_xticks([-1, 0, 1])
    axis.locator_params(axis="y", nbins=4)
    strip_axis(axis)


def draw_mining(
    loss: PairLoss, embeddings: Tensor, labels: Tensor, anchors: tuple[int, ...] = (0,), form: Form = "svg"
) -> bytes:
    """Draw the pairs of an anchor that a miner keeps, and their weights (figure 2 of the unified view).

    Every pair of the anchor is drawn at its similarity, filled if it was kept; the height of the stem is its weight,
    relative to the largest on its side.  The two lines are the anchor's hardest positive and negative, each with the
    miner's margin.

    Args:
        loss: a loss with a pair miner that compares with the hardest pairs: `ValidTripletMiner`, `MultiSimilarityMiner`.
        embeddings: a batch.
        labels: its labels.
        anchors: the anchors to draw, a panel for each.
        form: ``"svg"`` or ``"png"``.

    Examples:
        >>> from likewise.losses import RAWLoss
        >>> from likewise.miners import ValidTripletMiner
        >>> x = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
        >>> draw_mining(RAWLoss(miner=ValidTripletMiner()), x, torch.arange(8) // 4)[:5]
        b'<?xml'
    """
    one_of("form", form, ("svg", "png"))
    margin = getattr(loss.miner, "margin", getattr(loss.miner, "epsilon", None))
    if margin is None:
        raise ValueError(f"loss must have a miner with a margin for the hardest pairs, but its miner is {loss.miner!r}")
    weights = pair_weights(loss, embeddings, labels).detach()
    batch = batch_from_embeddings(embeddings, labels, None, None, None, as_similarity(loss.similarity))
    S = batch.similarities().detach()
    positive, negative = before_mining(batch.relation).masks()
    with use_style() as Figure:
        figure = Figure(figsize=(4.4 * len(anchors), 2.6), layout="constrained")
        for axis, anchor in zip(figure.subplots(1, len(anchors), squeeze=False)[0], anchors, strict=True):
            sides = [(S[anchor][mask[anchor]], weights[anchor][mask[anchor]]) for mask in (positive, negative)]
            _draw_anchor(axis, sides[0], sides[1], float(margin))
        marks = [axis.scatter([], [], s=24, color=GRAY), axis.scatter([], [], s=18, facecolors="none", edgecolors=GRAY)]
        words = ("informative, as high as its weight", "left out")
        figure.legend(marks, words, loc="outside upper center", ncols=2, frameon=False)
        return as_bytes(figure, form)


def _draw_anchor(axis: Any, positives: tuple[Tensor, Tensor], negatives: tuple[Tensor, Tensor], margin: float) -> None:
    """Draw one anchor: its positive pairs above the axis, its negative pairs below."""
    base = 0.1
    for (places, weights), color, up in ((positives, PULL, 1.0), (negatives, PUSH, -1.0)):
        kept = weights != 0.0
        height = up * (base + 0.82 * weights / weights.abs().max().clamp_min(1e-30))
        axis.vlines(places[kept], up * base, height[kept], color=color, linewidth=1.3)
        axis.scatter(places[kept], height[kept], s=24, color=color, zorder=3, linewidths=0)
        idle = places[~kept]
        axis.scatter(idle, up * base * torch.ones(len(idle)), s=18, facecolors="none", edgecolors=color, linewidths=0.9)
    lowest, highest = float(positives[0].min()), float(negatives[0].max())
    for place, color, up, text, side in (
        (lowest - margin, PUSH, -1.0, f"negatives above {lowest:.2f} − {margin:g}", "left"),
        (highest + margin, PULL, 1.0, f"positives below {highest:.2f} + {margin:g}", "right"),
    ):
        axis.vlines(place, 0.0, up * 1.1, color=color, linewidth=1.0, linestyle=(0, (3, 2)))
        axis.text(place, up * 1.22, text, color=color, fontsize=7.5, ha=side, va="center")
    axis.set_ylim(-1.35, 1.35)
    axis.set_xlim(-1.0, 1.0)
    axis.set_xticks([-1, -0.5, 0, 0.5, 1], ["-1", "-0.5", "0", "0.5", "1"])
    axis.set_yticks([0.55, -0.55], ["positive\npairs", "negative\npairs"])
    axis.set_xlabel("cosine with the anchor")
    strip_axis(axis)
    axis.tick_params(axis="y", length=0)


def strip_axis(axis: Any) -> None:
    """Remove the box of an axis and draw a line at zero.

    Examples:
        >>> with use_style() as Figure:
        ...     axis = Figure().subplots()
        ...     strip_axis(axis)
        >>> axis.spines["top"].get_visible()
        False
    """
    axis.tick_params(length=2.0, pad=2.0)
    for side, spine in axis.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_alpha(0.5)
    axis.axhline(0.0, color=GRAY, linewidth=0.7, alpha=0.6)


@contextmanager
def use_style(paper: str = "none") -> Iterator[Any]:
    """Yield matplotlib's `Figure` under a fixed style, independent of the user's settings.

    Args:
        paper: the color of the background.

    Examples:
        >>> with use_style() as Figure:
        ...     print(Figure.__name__)
        Figure
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError("the lens draws with matplotlib: pip install 'likewise[train]'") from missing
    style = {
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GRAY),
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), paper),
        "font.family": "DejaVu Sans",  # it comes with matplotlib
        "font.size": 8,
        "axes.linewidth": 0.8,
        "svg.hashsalt": "likewise",
        "svg.fonttype": "path",
    }
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(style)
        yield Figure


def as_bytes(figure: Any, form: str) -> bytes:
    """Encode a figure as a file, without a date and with few digits.

    Args:
        figure: a matplotlib figure.
        form: ``"svg"`` or ``"png"``.

    Examples:
        >>> with use_style() as Figure:
        ...     as_bytes(Figure(), "png")[1:4]
        b'PNG'
    """
    buffer = io.BytesIO()
    if form == "png":
        figure.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    drawn = re.sub(rb"\n +", b"\n", buffer.getvalue()).replace(b"DejaVuSans-", b"g")
    # coordinates have two digits or more before the point; scales of glyphs are smaller and keep their digits
    return re.sub(rb"(\d\d\.\d)\d+", rb"\1", drawn)


def movie_writer(ending: str, rate: int) -> Any:
    """Matplotlib's writer of animations, by the suffix of the file.

    Examples:
        >>> type(movie_writer(".gif", 10)).__name__
        'PillowWriter'
    """
    from matplotlib import animation

    if ending == ".mp4":
        return animation.FFMpegWriter(fps=rate)
    return animation.PillowWriter(fps=rate)
