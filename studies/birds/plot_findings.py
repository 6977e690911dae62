"""What the study of birds found, on docs/reality-check.md: the summary, what moved the best, and all comparisons in one figure.

    python -m studies.birds.plot_findings

draws docs/assets/birds-claims.svg and birds-further.svg from results/verdict.json, and fills the page.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import COLORS, GRAY, fill, finish, read, start
from likewise.protocols.pairs import Comparison, compare, compare_sides
from studies.birds.added import ADDED, Added
from studies.birds.claims import (
    FLATTERY,
    FOUND,
    METRIC,
    MINED,
    RECENT,
    RIVAL,
    SIZE,
    SIZE_OF_FIVE,
    SIZES,
    TUNING,
    TWICE,
    TWINS,
    points,
)
from studies.birds.further import DIM, PARTS
from studies.birds.plot_parity import told_apart
from studies.birds.plot_verdict import ASSETS, PAGE, RESULTS, at, percent, untuned, whole
from studies.birds.record import part_of

Row = Mapping[str, Any]
INK = {"better": COLORS[2], "worse": COLORS[1], "not distinguishable": GRAY}
OTHER = COLORS[0]
TOP = 10
AGAINST = "{} against {}".format


def main() -> None:
    """Fill the page and draw."""
    verdict = read(RESULTS / "verdict.json")
    if verdict is None or verdict["waiting"]:
        raise SystemExit("results/verdict.json must hold all trainings, but some are still to come")
    parity = json.loads((RESULTS / "parity.json").read_text())
    fill(PAGE, {"findings": findings(verdict, parity), "further-words": moved(verdict, parity)})
    draw_claims(verdict, ASSETS / "birds-claims.svg")
    draw_further(verdict, untuned(parity), ASSETS / "birds-further.svg")


# ---- in words


def findings(report: Row, parity: Row) -> str:
    """The study in a few sentences, each with its number and where it is told."""
    answers = {one["question"]: one for one in report["claims"]}
    best, other = report["further"]
    flattered = answers[FLATTERY]["methods"].values()
    scores = sorted((row["MAP@R"]["mean"] for row in at(report, DIM).values()), reverse=True)
    written = abs(points(answers[TWICE])["mean"])
    total, larger = (said_of(change(report, best["method"], part)) for part in ("together", "larger images"))
    all_of, five, wide = (
        points(answers[each])["mean"] for each in (SIZE.format(512, 128), SIZE_OF_FIVE, SIZE.format(1024, 512))
    )
    said = [
        f"**The best losses lie close together.** {len(scores)} methods, tuned alike, reach MAP@R {100 * scores[-1]:.1f} to "
        f"{100 * scores[0]:.1f}; the {TOP} best are within {100 * (scores[0] - scores[TOP - 1]):.1f} points, where one function that is "
        f"written in two ways ended {written:.1f} apart after the same search ([verdict](#verdict), [claims](#claims)).",
        newer([answers[RIVAL.format(name)] for name in RECENT]),
        additions(answers),
        f"**Larger images count most.** Enlarging the same photographs moves {best['method']} by {larger} points, all changes outside of "
        f"the loss that looked good on validation classes by {total}; contrastive goes from {mean(other, 'verdict')} to "
        f"{mean(other, 'together')} with those that looked good for it ([how far it goes](#further)).",
        f"**Who chooses on test classes** reports {100 * statistics.median(flattered):.2f} points more in the middle of "
        f"{len(flattered)} methods, up to {100 * max(flattered):.2f} ([claims](#claims)).",
        f"**512 dimensions** are {all_of:.1f} points above 128 over all methods, {five:.1f} over the five that are best on validation "
        f"classes; for these 1,024 are {wide:.1f} above 512 ([sizes](#sizes)).",
        f"**The losses are the losses.** With everything equal and three seeds, {len(parity['rows']) - len(told_apart(parity))} of "
        f"{len(parity['rows'])} cannot be told from pytorch-metric-learning's ([parity](#parity)).",
    ]
    return "\n".join(f"- {each}" for each in said)


def newer(rivals: Sequence[Row]) -> str:
    """Newer losses beside the oldest one."""
    gains = [points(one)["mean"] for one in rivals if one["verdict"] == "better"]
    return (
        f"**Newer is not always better.** Of {len(rivals)} losses of 2018 and later {len(gains)} are above the contrastive loss of 2006, "
        f"by {min(gains):.1f} to {max(gains):.1f} points, {count(rivals, 'worse')} are below it and "
        f"{count(rivals, 'not distinguishable')} not distinguishable ([claims](#claims))."
    )


def additions(answers: Mapping[str, Row]) -> str:
    """What is added to losses, asked in two ways."""
    alone, own = ([answers[question] for question in each] for each in zip(*map(asked, ADDED), strict=True))
    unsure = [one for one in alone if one["verdict"] == "not distinguishable"]
    named = [
        f"{one.method}, {points(found)['mean']:+.1f}"
        for one, found in zip(ADDED, alone, strict=True)
        if found["verdict"] == "better"
    ]
    return (
        f"**Of what is added to a loss, little is sure to help.** Of {len(alone)} additions (mining, direction, language), with nothing "
        f"else changed, {count(alone, 'better')} helps ({'; '.join(named)}), {count(alone, 'worse') or 'none'} harms and "
        f"{len(unsure)} cannot be told from nothing; of {sum(one['edge'] for one in unsure)} of these the strength that was chosen is at the edge of those tried. With a search of its own for each, {count(own, 'better')} are better and "
        f"{count(own, 'worse')} worse ([claims](#claims))."
    )


def asked(one: Added) -> tuple[str, str]:
    """The two questions about an addition."""
    return one.question, FOUND.format(one.method, one.base)


def moved(report: Row, parity: Row) -> str:
    """Where the gain of the best configuration comes from, and what it costs."""
    best, other = report["further"]
    name, rival, plain = best["method"], other["method"].lower(), untuned(parity)
    total, larger, rest = (said_of(change(report, name, part)) for part in ("together", "larger images", "the rest"))
    everyone = said_of(change(report, name, "all classes", "together"), 2)
    before, after = (said_of(beside(report, part, name, other["method"], METRIC)) for part in ("verdict", "together"))
    first = said_of(beside(report, "together", name, other["method"], "test R@1"))
    own = [each for each in best["helped"] if each not in other["helped"]]
    only = f"; {' and '.join(own)} helped {name} alone, and {'is' if len(own) == 1 else 'are'} in it" if own else ""
    test = {
        part: f"MAP@R {percent(found['MAP@R'])}, R@1 {percent(found['R@1'])}" for part, found in best["test"].items()
    }
    return (
        f"All that helped brings {name} to {test['together']}: {total} points of MAP@R above the setting that the search found. **The "
        f"larger images alone are {larger} of it, everything else alone {rest}**: without larger images {name} has {test['the rest']}, where the "
        f"best of {plain['of']} losses as they come, {plain['loss']}, has MAP@R {100 * plain['MAP@R']:.2f}, R@1 {100 * plain['R@1']:.2f}. From "
        f"all that helped, to learn from the validation classes too, up to the last epoch, changes MAP@R by {everyone}. {name} is "
        f"{before} above {rival} before these changes and {after} after them, in R@1 {first}{only}. "
        "Larger images move both by several times as much as the choice between the two. They cost: a "
        f"training with all that helped takes {seconds(report, 'together'):.1f} s of the GPU in the mean of both methods, instead of "
        f"{report['cost']['one training']['mean']:.1f}."
    )


def change(report: Row, name: str, part: str, than: str = "verdict") -> Comparison:
    """A part of what goes further against another, or the setting that the search found, seed by seed."""
    return compare_sides(of(report, name, part), of(report, name, than), part, than, METRIC, but=("part",))


def beside(report: Row, part: str, a: str, b: str, metric: str) -> Comparison:
    """Two methods in one part."""
    return compare([row for row in part_of(report["rows"], part) if row["dim"] == DIM], a, b, metric)


def of(report: Row, name: str, part: str) -> list[Row]:
    """The trainings of a method in a part."""
    return [row for row in part_of(report["rows"], part) if (row["method"], row["dim"]) == (name, DIM)]


def seconds(report: Row, part: str) -> float:
    """Of the GPU, a training: its own over how many shared it."""
    return statistics.fmean(row["seconds"] / row["at once"] for row in report["rows"] if row["part"] == part)


def said_of(found: Comparison, digits: int = 1) -> str:
    """A difference in points with its interval; every training must have its partner."""
    ends = (whole(found).difference.mean, found.difference.low, found.difference.high)
    middle, low, high = (f"{round(100 * each, digits) + 0.0:+.{digits}f}" for each in ends)  # no -0.0
    return f"{middle} ({low} to {high})"


def mean(further: Row, part: str) -> str:
    return f"{100 * further['test'][part]['MAP@R']['mean']:.1f}"


def count(answers: Iterable[Row], verdict: str) -> int:
    return sum(one["verdict"] == verdict for one in answers)


# ---- in figures


def groups(report: Row) -> list[tuple[str, list[tuple[str, Row]]]]:
    """The comparisons with their labels, kind by kind."""
    answers = {one["question"]: one for one in report["claims"]}

    def those(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, Row]]:
        return [(label, answers[question]) for label, question in pairs if question in answers]

    newer = those((name, RIVAL.format(name)) for name in RECENT)
    added = [(one.method, one.base) for one in ADDED]
    return [
        ("newer losses against contrastive", sorted(newer, key=lambda pair: -pair[1]["difference"]["mean"])),
        ("added to a loss, nothing else changed", those((one.method, one.question) for one in ADDED)),
        ("each as its own search found it", those((AGAINST(*pair), FOUND.format(*pair)) for pair in (*added, *MINED))),
        ("one function, written in two ways", those([(AGAINST(*TWINS), TWICE)])),
        (
            "sizes and tuning",
            those(
                [
                    *((f"{AGAINST(*dims)} dimensions", SIZE.format(*dims)) for dims in SIZES),
                    ("512 against 128, five best", SIZE_OF_FIVE),
                    ("tuned against untuned, five best", TUNING),
                ]
            ),
        ),
    ]


def draw_claims(report: Row, path: Path) -> None:
    """A row for each comparison: the difference, its interval, and in color whether it is one."""
    rows: list[tuple[str, Row | None]] = []
    for kind, found in groups(report):
        rows += [(kind, None), *found]
    figure, axes = start(0.215 * len(rows) + 0.8)
    for number, (_, one) in enumerate(rows):
        if one is None:
            continue
        span, ink = points(one), INK.get(one["verdict"], OTHER)
        axes.plot([span["low"], span["high"]], [number, number], color=ink, lw=2, alpha=0.5)
        axes.plot([span["mean"]], [number], "o", ms=4.5, color=ink, mew=0)
    axes.axvline(0.0, color=GRAY, lw=1)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=8)
    for label, (_, one) in zip(axes.get_yticklabels(), rows, strict=True):
        if one is None:
            label.set_fontweight("bold")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    for verdict, ink in (*INK.items(), ("no question of better", OTHER)):
        axes.plot([], [], "o-", color=ink, label=verdict, mew=0)
    axes.legend(frameon=False, loc="lower left", labelcolor=GRAY, fontsize=8)
    axes.set_xlabel("difference in points of MAP@R on the test birds, 95% intervals", fontsize=8)
    finish(figure, axes, path)


def draw_further(report: Row, plain: Row, path: Path) -> None:
    """MAP@R on test classes of each part of what was taken further, both methods."""
    parts = [("verdict", "as the search found it"), *PARTS.items()]
    figure, axes = start(2.6)
    for shift, color, one in zip((-0.13, 0.13), COLORS, report["further"], strict=False):
        for number, (part, _) in enumerate(parts):
            if part in one["test"]:
                found = one["test"][part]["MAP@R"]
                ends = [100 * found["low"], 100 * found["high"]]
                axes.plot(ends, [number + shift] * 2, color=color, lw=2, alpha=0.5)
                axes.plot([100 * found["mean"]], [number + shift], "o", ms=4.5, color=color, mew=0)
        axes.plot([], [], "o-", color=color, label=one["method"], mew=0)
    axes.axvline(100 * plain["MAP@R"], color=GRAY, lw=1, ls=":")
    axes.set_yticks(range(len(parts)), [words for _, words in parts], fontsize=8)
    axes.set_ylim(len(parts) - 0.5, -0.5)
    axes.legend(frameon=False, loc="upper right", labelcolor=GRAY, fontsize=8)
    axes.set_xlabel(
        "MAP@R on the test birds in per cent, 95% intervals of five seeds\n"
        f"dotted: the best of the losses as they come, {plain['loss']}, all training classes",
        fontsize=8,
    )
    finish(figure, axes, path)


if __name__ == "__main__":
    main()
