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
        raise SystemExit("results/verdict.json must hold all training runs, but some are missing")
    parity = json.loads((RESULTS / "parity.json").read_text())
    recent = json.loads((RESULTS / "recent.json").read_text())
    fill(PAGE, {"findings": findings(verdict, parity, recent), "further-words": moved(verdict, parity)})
    draw_claims(verdict, ASSETS / "birds-claims.svg")
    draw_further(verdict, untuned(parity), ASSETS / "birds-further.svg")


# ---- in words


def findings(report: Row, parity: Row, recent: Row) -> str:
    """The study in ten sentences, each with its numbers and a link to the section that has them."""
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
        f"**The best losses are close together.** {len(scores)} methods, each tuned with the same budget, reach MAP@R "
        f"{100 * scores[-1]:.1f} to {100 * scores[0]:.1f}; the {TOP} best are within {100 * (scores[0] - scores[TOP - 1]):.1f} points "
        "([results](#verdict)).",
        f"**The search itself moves results by more than that.** One function, written in two ways and searched with the same budget, "
        f"ended {written:.1f} points apart ([claims](#claims)).",
        newer([answers[RIVAL.format(name)] for name in RECENT]),
        later(recent["against"]),
        additions(answers),
        f"**Larger images matter most.** Enlarging the same photographs changes {best['method']} by {larger} points "
        "([beyond the loss](#further)).",
        f"**Changes outside the loss add up.** All changes that helped on validation classes together give {best['method']} {total} points; "
        f"contrastive goes from {mean(other, 'verdict')} to {mean(other, 'together')} with those that helped it ([beyond the loss](#further)).",
        f"**Tuning on test classes inflates results** by {100 * statistics.median(flattered):.2f} points (median of {len(flattered)} methods), "
        f"at most by {100 * max(flattered):.2f} ([claims](#claims)).",
        f"**Embedding size matters up to 512.** 512 dimensions are {all_of:.1f} points above 128 over all methods and {five:.1f} over the five "
        f"best on validation classes; for these five, 1,024 dimensions are {wide:.1f} above 512 ([sizes](#sizes)).",
        f"**Our losses match the reference.** With identical conditions and three seeds, {len(parity['rows']) - len(told_apart(parity))} of "
        f"{len(parity['rows'])} losses are not distinguishable from those of pytorch-metric-learning ([parity](#parity)).",
    ]
    return "\n".join(f"{number}. {each}" for number, each in enumerate(said, 1))


def newer(rivals: Sequence[Row]) -> str:
    """Newer losses against the oldest one."""
    gains = [points(one)["mean"] for one in rivals if one["verdict"] == "better"]
    return (
        f"**Newer is not always better.** Of {len(rivals)} losses published in 2018 or later, {len(gains)} are better than the contrastive "
        f"loss of 2006, by {min(gains):.1f} to {max(gains):.1f} points, {count(rivals, 'worse')} are worse and "
        f"{count(rivals, 'not distinguishable')} are not distinguishable from it ([claims](#claims))."
    )


def later(against: Sequence[Row]) -> str:
    """The losses that were added later, against the same one."""
    better = [
        one["method"]
        for one in sorted(against, key=lambda one: -one["difference"]["mean"])
        if one["verdict"] == "better"
    ]
    return (
        f"**The same holds for {len(against)} losses that were added later.** {len(better)} are better than contrastive "
        f"({', '.join(better)}), {count(against, 'worse')} are worse and {count(against, 'not distinguishable')} are not distinguishable "
        "([ranking losses](#metric))."
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
        f"**Most additions to a loss show no significant effect.** Of {len(alone)} additions (mining, direction, language) with nothing "
        f"else changed, {count(alone, 'better')} helps ({'; '.join(named)}), {count(alone, 'worse')} hurt and {len(unsure)} show no "
        f"significant effect; for {sum(one['edge'] for one in unsure)} of these the chosen strength is at the edge of the tried values. "
        f"With a separate search for each, {count(own, 'better')} are better and {count(own, 'worse')} is worse ([claims](#claims))."
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
    only = (
        f"; {' and '.join(own)} helped only {name} and {'is' if len(own) == 1 else 'are'} included for it"
        if own
        else ""
    )
    test = {
        part: f"MAP@R {percent(found['MAP@R'])}, R@1 {percent(found['R@1'])}" for part, found in best["test"].items()
    }
    return (
        f"All changes that helped bring {name} to {test['together']}: {total} points of MAP@R above the setting from the search. "
        f"**Larger images contribute {larger} when applied without the others; all other changes without larger images contribute {rest}.** "
        f"Without larger images {name} has {test['the rest']}; the best of {plain['of']} losses at default settings, {plain['loss']}, has "
        f"MAP@R {100 * plain['MAP@R']:.2f}, R@1 {100 * plain['R@1']:.2f}.\n\n"
        f"Training on the validation classes too, up to the last epoch, changes MAP@R by {everyone}. {name} is {before} above {rival} "
        f"before these changes and {after} after them, in R@1 {first}{only}. Larger images change both methods by several times the "
        f"difference between the two. The cost: a run with all changes takes {seconds(report, 'together'):.1f} GPU seconds (mean of "
        f"both methods) instead of {report['cost']['one training']['mean']:.1f}."
    )


def change(report: Row, name: str, part: str, than: str = "verdict") -> Comparison:
    """A part of what goes further against another, or the setting that the search found, seed by seed."""
    return compare_sides(of(report, name, part), of(report, name, than), part, than, METRIC, but=("part",))


def beside(report: Row, part: str, a: str, b: str, metric: str) -> Comparison:
    """Two methods in one part."""
    return compare([row for row in part_of(report["rows"], part) if row["dim"] == DIM], a, b, metric)


def of(report: Row, name: str, part: str) -> list[Row]:
    """The training runs of a method in a part."""
    return [row for row in part_of(report["rows"], part) if (row["method"], row["dim"]) == (name, DIM)]


def seconds(report: Row, part: str) -> float:
    """GPU seconds of a run: its wall time divided by the number of runs that shared the GPU."""
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
        ("each with its own search", those((AGAINST(*pair), FOUND.format(*pair)) for pair in (*added, *MINED))),
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
    for verdict, ink in (*INK.items(), ("same function", OTHER)):
        axes.plot([], [], "o-", color=ink, label=verdict, mew=0)
    axes.legend(frameon=False, loc="lower left", labelcolor=GRAY, fontsize=8)
    axes.set_xlabel("difference in points of MAP@R on the test birds, 95% intervals", fontsize=8)
    finish(figure, axes, path)


def draw_further(report: Row, plain: Row, path: Path) -> None:
    """MAP@R on test classes of each part of what was taken further, both methods."""
    parts = [("verdict", "setting from the search"), *PARTS.items()]
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
        "MAP@R on the test birds in percent, 95% intervals of five seeds\n"
        f"dotted: the best loss at default settings, {plain['loss']}, all training classes",
        fontsize=8,
    )
    finish(figure, axes, path)


if __name__ == "__main__":
    main()
