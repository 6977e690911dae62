"""Trained models on docs/reality-check.md: the map, the lens and what larger images would cost.

    python -m studies.birds.plot_models

draws docs/assets/birds-map.svg and birds-lens.svg from results/models.json (models.py), and fills the page, as
far as there are results.
"""

from __future__ import annotations

import colorsys
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import DOCS, fill, make_parser, number, read, table, times
from likewise.analysis.figures import GRAY, PULL, PUSH, as_bytes, strip_axis, use_style
from likewise.data import TRANSFORMS
from likewise.files import atomic_write
from likewise.trunks import build, readable

RESULTS = Path(__file__).parent / "results"
PAGE = DOCS / "reality-check.md"
ASSETS = DOCS / "assets"
COLUMNS = 3
SIDES = (("positive", PULL, "-"), ("negative", PUSH, (0, (4, 1.6))))

TRUNK, SIZE = "efficientnet_lite0", TRANSFORMS["cub128"].train.size
"""What was trained, and on crops of how many pixels."""

LARGER = (("efficientnet_lite0", 224), ("resnet50", 112), ("resnet50", 224))
NAMES = {"efficientnet_lite0": "EfficientNet-Lite0", "resnet50": "ResNet-50"}

Model = Mapping[str, Any]


# ---- the map


def color_of(place: int, classes: int) -> tuple[float, float, float]:
    """Neighbors in number are far apart on the circle, and neighbors on the circle differ in lightness."""
    step = next(each for each in (7, 11, 13, 17, 1) if math.gcd(each, classes) == 1)
    at = step * place % classes
    return colorsys.hls_to_rgb(at / classes, (0.44, 0.62)[at % 2], 0.62)


def columns_of(models: Sequence[Model]) -> int:
    """Panels side by side: four make a square."""
    return 2 if len(models) == 4 else min(COLUMNS, len(models))


def draw_map(report: Model) -> bytes:
    """A panel for each model: the same images, a color for each class, a cross where the nearest image is of another."""
    models, classes = report["models"], report["on the map"]
    columns = columns_of(models)
    rows, under = math.ceil(len(models) / columns), math.ceil((len(classes) + 1) / 4)
    labels = torch.tensor(report["labels"])
    colors = [color_of(place, len(classes)) for place in range(len(classes))]
    with use_style() as Figure:
        size = (3.0 * columns, 3.2 * rows + 0.17 * under + 0.35)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for axis, model in zip(axes.flat, models, strict=False):
            scatter(axis, model, labels, colors)
        for axis in axes.flat[len(models) :]:
            axis.set_axis_off()
        marks = [axes[0, 0].scatter([], [], s=22, color=color, linewidths=0) for color in colors]
        texts = [spoken(each["name"]) for each in classes]
        marks.append(axes[0, 0].scatter([], [], s=16, marker="x", color=GRAY, linewidths=0.9))
        texts.append("nearest image of another class")
        options = {"frameon": False, "fontsize": 7.5, "columnspacing": 1.2, "handletextpad": 0.2, "labelspacing": 0.3}
        figure.legend(marks, texts, loc="outside lower center", ncols=4, **options)
        return packed(as_bytes(figure, "svg"))


def packed(svg: bytes) -> bytes:
    """Strokes in as few bytes as they take; a point is a stroke of no length with a round end."""
    svg = re.sub(rb"M (\S+) (\S+) \nL \1 \2 ?\n", rb"M\1 \2h0", svg)
    return re.sub(rb"M (\S+) (\S+) \nL (\S+) (\S+) ?\n(?=[M\"])", rb"M\1 \2L\3 \4", svg)


def scatter(axis: Any, model: Model, labels: torch.Tensor, colors: Sequence[Any]) -> None:
    places = torch.tensor(model["map"]["places"], dtype=torch.float64)
    found = torch.tensor(model["map"]["found"]).bool()
    for place, color in enumerate(colors):
        here = labels == place
        strokes(axis, places[here & found], ((0.0, 0.0, 0.0, 0.0),), color=color, linewidth=3.1, capstyle="round")
        cross = ((-7.0, -7.0, 7.0, 7.0), (-7.0, 7.0, 7.0, -7.0))
        strokes(axis, places[here & ~found], cross, color=color, linewidth=0.9)
    entitle(axis, model)
    share = float(found.double().mean())
    axis.set_xlabel(f"R@1 {100 * model['test']['R@1']:.1f}; of the images shown {100 * share:.1f}", fontsize=7.5)
    axis.set(xticks=[], yticks=[], xlim=(-30, 1030), ylim=(-30, 1030), aspect="equal")
    for spine in axis.spines.values():
        spine.set_alpha(0.35)


def strokes(axis: Any, places: torch.Tensor, each: Sequence[tuple[float, ...]], **style: Any) -> None:
    """The same strokes at many places as one path: a fraction of the bytes that as many marks would take."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Line

    if not len(places):
        return
    ends = places[:, None, None] + torch.tensor(each, dtype=places.dtype).reshape(1, len(each), 2, 2)
    codes = [Line.MOVETO, Line.LINETO] * (len(each) * len(places))
    axis.add_patch(PathPatch(Line(ends.reshape(-1, 2).numpy(), codes), fill=False, snap=False, **style))


def entitle(axis: Any, model: Model, pad: float = 5.0) -> None:
    """A model's name, and at the right why it is there."""
    axis.set_title(model["method"], loc="left", fontsize=9, pad=pad)
    axis.set_title(", ".join(model["roles"]), loc="right", fontsize=6.5, pad=pad)


def spoken(name: str) -> str:
    """A class as one says it: ``105.Whip_poor_Will`` is a whip poor will."""
    return readable(name) or name


# ---- the lens


def draw_lens(report: Model) -> bytes:
    """A panel for each model: how similar the pairs of the test set are, and how strongly its loss moves such a pair."""
    models = report["models"]
    columns = columns_of(models)
    rows = math.ceil(len(models) / columns)
    with use_style() as Figure:
        figure = Figure(figsize=(3.0 * columns, 2.45 * rows + 0.4), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for axis, model in zip(axes.flat, models, strict=False):
            panel(axis, model, report["bins"])
        for axis in axes.flat[len(models) :]:
            axis.set_axis_off()
        last = axes[0, 0]
        lines = [last.plot([], [], color=color, linestyle=dash, linewidth=1.7)[0] for _, color, dash in SIDES]
        shades = [last.fill_between([], [], color=color, alpha=0.22, linewidth=0) for _, color, _ in SIDES]
        words = ("pull of a positive pair", "push of a negative pair", "positive pairs", "negative pairs")
        figure.legend([*lines, *shades], words, loc="outside upper center", ncols=4, frameon=False, columnspacing=1.2)
        return as_bytes(figure, "svg")


def panel(axis: Any, model: Model, bins: int) -> None:
    edges = torch.linspace(-1.0, 1.0, bins // 2 + 1)
    for side, color, _ in SIDES:
        counts = torch.tensor(model["histogram"][side], dtype=torch.float64).reshape(-1, 2).sum(dim=1)
        axis.stairs((0.62 * counts / counts.max()).numpy(), edges.numpy(), fill=True, color=color, alpha=0.22, lw=0)
    told = model["lens"]
    if "why" in told:
        axis.text(0.0, 0.86, wrapped(told["why"]), color=GRAY, fontsize=7, ha="center", va="center")
    lowest = 0.0
    for place, (side, color, dash) in enumerate(SIDES if "why" not in told else ()):
        lowest = min(lowest, weights(axis, told[side], color, dash, place))
    entitle(axis, model, pad=15)
    axis.text(-1.0, 1.115, under(told), color=GRAY, fontsize=6.5, ha="left", va="bottom")
    axis.set(xlim=(-1.0, 1.0), ylim=(1.1 * lowest - 0.03, 1.08), yticks=[], xlabel="cosine")
    axis.set_xticks([-1, -0.5, 0, 0.5, 1], ["-1", "-0.5", "0", "0.5", "1"])
    strip_axis(axis)


def weights(axis: Any, line: Model, color: str, dash: Any, place: int) -> float:
    """One side of a loss, relative to its largest mean weight, with the band of its weights; returns its lowest point."""
    largest = max((abs(each) for each in line["mean"]), default=0.0)
    if not largest:
        return 0.0
    across = line["cosine"]
    low, high, mean = ([min(max(each / largest, -1.0), 1.3) for each in line[name]] for name in ("low", "high", "mean"))
    axis.fill_between(across, low, high, color=color, alpha=0.16, linewidth=0)
    axis.plot(across, mean, color=color, linestyle=dash, linewidth=1.7)
    axis.text(-0.98, 1.0 - 0.1 * place, f"{largest:.2g}", color=color, fontsize=6.5, ha="left", va="center")
    return min(mean)


def under(told: Model) -> str:
    """A loss with the numbers that the search found."""
    if "why" in told:
        return ""
    numbers = ", ".join(f"{name} {value:.3g}" for name, value in told["options"].items())
    return "; ".join(part for part in (numbers, *told["notes"]) if part)


def wrapped(text: str, most: int = 40) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, most))


# ---- in words


def models_words(report: Model) -> str:
    """What is on the pictures."""
    shown, band = report["lens"], report["lens"]["band"]
    gaps = ", ".join(f"{each['method']} {gap(each):.2f}" for each in report["models"])
    return (
        f"The map shows {len(report['labels']):,} images: all images of {len(report['on the map'])} of the {report['classes']} test classes "
        f"(every {report['classes'] // len(report['on the map'])}th class), the same for every model. Similarities are over all pairs of the "
        f"{report['images']:,} test images. The mean cosine of positive pairs exceeds that of negative pairs by: {gaps}. Weights are measured "
        f"in {shown['batches']} batches of {shown['classes']} classes × {shown['per class']} test images; the band covers the "
        f"{100 * band[0]:.0f}th to the {100 * band[1]:.0f}th percentile of the weights at that cosine."
    )


def gap(model: Model) -> float:
    return float(model["histogram"]["positive mean"] - model["histogram"]["negative mean"])


# ---- what larger images would cost


def multiply_adds(trunk: str, size: int) -> float:
    """Multiplications with additions of one image through a network, counted as it runs on numbers that are not there."""
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device("meta"):
        network = build(trunk).eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(torch.zeros(1, 3, size, size, device="meta"))
    return counter.get_total_flops() / 2.0  # it counts both


ASSUMED = (
    'The rows marked "about" are estimates, not measurements: they assume that training time is proportional to the multiply-adds of '
    "the network, with the same epochs and images. This overestimates ResNet-50, whose dense convolutions use a GPU better than the "
    "depthwise ones of EfficientNet-Lite0, and underestimates full-size images, because loading them is not counted. GPU seconds are wall "
    "time divided by the number of runs that shared the GPU: a run that does not share the GPU takes less than its shared wall "
    "time and more than these."
)


def estimate(cost: Model) -> list[list[str]]:
    """Rows of a table: network, pixels, millions of multiply-adds, seconds of a run, hours of the study."""
    measured = cost["one training"]["mean"]
    hours = sum(cost["seconds"].values()) / 3600.0
    base = multiply_adds(TRUNK, SIZE)
    made = [
        [
            NAMES[TRUNK],
            str(SIZE),
            number(base / 1e6),
            times(1.0),
            f"{number(measured)}, measured",
            f"{number(hours)}, measured",
        ]
    ]
    for trunk, size in LARGER:
        ratio = multiply_adds(trunk, size) / base
        cells = [f"about {number(each * ratio)}" for each in (measured, hours)]
        made.append([NAMES[trunk], str(size), number(ratio * base / 1e6), times(ratio), *cells])
    return made


ESTIMATE_HEAD = [
    "network",
    "pixels",
    "M multiply-adds",
    "ratio",
    "GPU seconds per training",
    "hours for the study",
]


def estimate_table(cost: Model) -> str:
    return f"{table(ESTIMATE_HEAD, estimate(cost))}\n\n{ASSUMED}"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("-o", "--out", type=Path, default=ASSETS, help="where figures go")
    given = parser.parse_args()
    blocks: dict[str, str] = {}
    models, verdict = (read(given.results / f"{name}.json") for name in ("models", "verdict"))
    if models is not None:
        blocks["models-words"] = models_words(models)
        for name, draw in (("birds-map.svg", draw_map), ("birds-lens.svg", draw_lens)):
            given.out.mkdir(parents=True, exist_ok=True)
            with atomic_write(given.out / name) as part:
                part.write_bytes(draw(models))
            print(f"wrote {name}")
    if verdict is not None and verdict["cost"]["one training"] is not None:
        blocks["cost-estimate"] = estimate_table(verdict["cost"])
    fill(given.page, blocks)


if __name__ == "__main__":
    main()
