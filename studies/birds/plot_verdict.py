"""The search and the verdict on docs/reality-check.md: tables, figures and sentences, from what the scripts on birds wrote.

python -m studies.birds.plot_verdict
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

from benchmarks.harness import COLORS, DOCS, GRAY, fill, finish, read, start, table
from benchmarks.harness import RESULTS as MEASURED
from likewise.protocols.pairs import Comparison, compare
from studies.birds.added import ADDED, Added
from studies.birds.claims import (
    FLATTERY,
    FOUND,
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
from studies.birds.further import PARTS
from studies.birds.plot_recent import lines, percent, section
from studies.birds.record import SEARCHED_SEED, part_of
from studies.birds.verdict import DIMS, METRICS
from studies.published import draw_improvements, papers_versus_reality

RESULTS = Path(__file__).parent / "results"
PAGE = DOCS / "reality-check.md"
ASSETS = DOCS / "assets"
BOTH = ("val MAP@R", "test MAP@R")
FIRST = 10
YEARS = {
    **{"Triplet, semi-hard": 2015, "Generalized lifted structure": 2017, "Margin + distance weighted": 2017},
    **{"Circle": 2020, "ProxyGML": 2020, "ProxyNCA++": 2020, "Multi-similarity, language": 2022},
    **{"Triplet, direction": 2020, "Multi-similarity, direction": 2020, "ProxyNCA, direction": 2020},
}
"""Of the papers, where the published tables have no such method."""

Row = Mapping[str, Any]


def main() -> None:
    """Fill the page and draw, as far as there are results."""
    search = read(RESULTS / "search.json")
    verdict = read(RESULTS / "verdict.json")
    recent = read(RESULTS / "recent.json")
    parity = json.loads((RESULTS / "parity.json").read_text())
    blocks: dict[str, str] = {}
    if search is not None:
        blocks |= {"search-words": search_words(search), "search-table": indent(search_table(search), 4 * " ")}
    if verdict is not None:
        blocks |= {
            "verdict-words": verdict_words(verdict, parity),
            "verdict-table": verdict_table(verdict, 512, recent),
            "verdict-table-small": indent(verdict_table(verdict, 128, recent), 4 * " "),
            "recent": "" if recent is None else section(recent, verdict),
            "verdict-validation": validation_words(verdict),
            "verdict-sizes": sizes_table(verdict),
            "verdict-folds": folds_table(verdict),
            "verdict-further": further_table(verdict),
            "verdict-tournament": tournament_table(verdict),
            "verdict-claims": claims(verdict),
            "verdict-cost": f"{cost_words(verdict, read(MEASURED / 'training-cuda.json'))}\n\n{cost_table(verdict)}",
        }
        draw(verdict, untuned(parity)["MAP@R"], ASSETS / "birds-verdict.svg")
        draw_validation(verdict, ASSETS / "birds-validation.svg")
        largest = [row for row in part_of(verdict["rows"], "verdict") if row["dim"] == DIMS[0]]
        series = papers_versus_reality([{**row, "year": YEARS.get(row["method"])} for row in largest], within=("dim",))
        here = {"here" if name == "yours" else name: found for name, found in series.items()}
        (ASSETS / "birds-papers.svg").write_bytes(draw_improvements(here))
    fill(PAGE, blocks)


def search_words(report: Row) -> str:
    """What was searched."""
    rounds = sorted({row["rounds"] for row in report["rows"]})
    counted = f"{rounds[0]}" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
    done = [row for row in report["rows"] if row["best"] is not None]
    before = untrained(report)
    never = [one for row in report["rows"] for one in row["points"] if one["val MAP@R"] == before]
    gains = [row["best"]["val MAP@R"] - first(row) for row in done if first(row) is not None]
    return (
        f"{report['trials']} training runs: {counted} settings for each of {len(report['rows'])} methods. {report['stopped early']} were "
        f"pruned because they were below the median of their method's other runs at the same epoch, and {report['collapsed']} stopped "
        f"because the embeddings collapsed. In {len(never)} the best epoch was the one before the first step: they never exceeded the "
        f"untrained network's {100 * before:.1f}. The best setting is {100 * statistics.median(gains):.1f} points of MAP@R above the first "
        f"one on validation classes (median over methods; at most {100 * max(gains):.1f}). Part of that gain is selection bias, because "
        "the best of ten is chosen on the same classes."
    )


def untrained(report: Row) -> float:
    """The score of the network before the first step, which the runs of many methods share."""
    values = Counter(
        one["val MAP@R"] for row in report["rows"] for one in row["points"] if one["val MAP@R"] is not None
    )
    return values.most_common(1)[0][0]


def first(row: Row) -> float | None:
    """What the configuration itself reached."""
    value = row["points"][0]["val MAP@R"]
    return None if value is None else float(value)


def search_table(report: Row) -> str:
    """Each method: its first and its best setting on validation classes."""
    made = []
    for row in report["rows"]:
        default, best = first(row), row["best"]
        cells = ["–" if each is None else f"{100 * each:.1f}" for each in (default, best and best["val MAP@R"])]
        made.append([row["method"], *cells])
    return table(["method", "first setting", "best of ten"], made)


def at(report: Row, dim: int) -> dict[str, Row]:
    return {row["method"]: row for row in report["table"] if row["dim"] == dim}


def named(report: Row, method: str) -> str:
    """A method with its other names."""
    others = [alias for alias, of in report["aliases"].items() if of == method]
    return f"{method} (= {', '.join(others)})" if others else method


def verdict_words(report: Row, parity: Row) -> str:
    """Who is chosen, who is above, and what losses reach as they come."""
    if not report["best by validation"]:
        return ""  # no method has all seeds yet
    best = report["best by validation"][0]
    rows, plain = at(report, DIMS[0]), untuned(parity)
    beside = {name: told(report, name, best) for name in rows if name != best}
    higher, lower = ([name for name in rows if beside.get(name) == verdict] for verdict in ("better", "worse"))
    named = " and ".join(f"*{name}*" for name in higher)
    above = f"{named} {'is' if len(higher) == 1 else 'are'}" if higher else "no method is"
    return (
        f"The best method on validation classes, {best}, reaches R@1 {percent(rows[best]['R@1'])} and MAP@R {percent(rows[best]['MAP@R'])} on "
        f"the test classes. Of the other {len(rows) - 1} methods, {above} better and {len(lower)} are worse (paired by seed, 95% each). For "
        f"comparison, the best of {plain['of']} losses at default settings, trained on all training classes and chosen by test MAP@R, is "
        f"{plain['loss']}: R@1 {100 * plain['R@1']:.2f} and MAP@R {100 * plain['MAP@R']:.2f} ([parity](#parity)).{reopened(report)}{unfinished(report)}"
    )


def told(report: Row, a: str, b: str) -> str:
    """Whether a is better or worse than b in 512 dimensions."""
    rows = [row for row in part_of(report["rows"], "verdict") if row["dim"] == DIMS[0]]
    return whole(compare(rows, a, b, BOTH[1])).verdict


def whole(found: Comparison) -> Comparison:
    """A comparison in which every training has its partner."""
    if any(found.unpaired):
        raise ValueError(
            f"{found.a} and {found.b} must have training runs of the same seeds, but some have no partner: {found}"
        )
    return found


def untuned(parity: Row) -> dict[str, Any]:
    """The best of the losses as they come, which is chosen by the test."""
    means = [{each: statistics.fmean(row[each]["likewise"]) for each in ("R@1", "MAP@R")} for row in parity["rows"]]
    best = max(range(len(means)), key=lambda at: means[at]["MAP@R"])
    return {"loss": parity["rows"][best]["loss"], "of": len(means), **means[best]}


def reopened(report: Row) -> str:
    """Which test sets were opened again."""
    again = [row for row in part_of(report["rows"], "verdict") if row.get("openings", 1) > 1]
    if not again:
        return ""
    which = "; ".join(f"{row['method']}, {row['dim']}-d, seed {row['seed']}" for row in again)
    return f" {len(again)} training runs were interrupted during the test evaluation and repeated it with the same model ({which})."


def both(report: Row) -> dict[str, tuple[float, float]]:
    """MAP@R of each method in 512 dimensions on validation and on test classes, the best of the validation first.

    Without the seed of the search: on validation classes that training is the best of ten.
    """
    done = [
        row
        for row in part_of(report["rows"], "verdict")
        if row["dim"] == DIMS[0] and row["status"] == "done" and row["seed"] != SEARCHED_SEED
    ]
    found = {
        name: tuple(statistics.fmean(row[metric] for row in done if row["method"] == name) for metric in BOTH)
        for name in at(report, DIMS[0])
    }
    return dict(sorted(found.items(), key=lambda each: -each[1][0]))


def validation_words(report: Row) -> str:
    """How far the order of the validation is that of the test."""
    found = list(both(report).values())
    if len(found) < FIRST:
        return ""
    words = (
        f"The rank correlation between validation and test MAP@R is {agreement(found)} over all {len(found)} methods, and {agreement(found[:FIRST])} "
        f"among the {FIRST} that are best on validation classes, which lie within "
        f"{100 * (found[0][0] - found[FIRST - 1][0]):.1f} points of each other there."
    )
    lost = [gap for one in report["claims"] for gap in one.get("methods", {}).values()]  # by choosing on validation
    if lost:
        words += (
            f" Among the fully trained settings of one method, validation chose the setting that is best on test classes "
            f"in {lost.count(0.0)} of {len(lost)} methods, and one that is at most {100 * max(lost):.2f} points below it "
            "in the others."
        )
    return words


def agreement(pairs: Sequence[tuple[float, float]]) -> str:
    """The correlation of ranks, and its 95% interval (Fisher's transformation, with Bonett and Wright's variance)."""
    found = rank_correlation(pairs)
    half = 1.96 * math.sqrt((1.0 + found**2 / 2.0) / (len(pairs) - 3))
    middle = math.atanh(max(-1.0 + 1e-9, min(1.0 - 1e-9, found)))
    low, high = math.tanh(middle - half), math.tanh(middle + half)
    return f"{found:.2f} ({low:.2f} to {high:.2f})"


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's; values that are equal share the mean of their ranks."""
    from scipy.stats import spearmanr

    return float(spearmanr(pairs).statistic)


def draw_validation(report: Row, path: Path) -> None:
    """Each method by both; the first of the validation by name, in the order of the test."""
    found = [(name, 100 * val, 100 * test) for name, (val, test) in both(report).items()]
    first, others = found[:FIRST], found[FIRST:]
    figure, axes = start(4.2)
    axes.plot(*zip(*(each[1:] for each in others), strict=True), "o", ms=4, color=GRAY, mew=0, alpha=0.6)
    low, high = min(each[2] for each in found), max(each[2] for each in found)
    edge = max(each[1] for each in found) + 0.6
    for number, (name, val, test) in enumerate(sorted(first, key=lambda each: -each[2])):
        height = high - number * (high - low) / (2 * FIRST)
        axes.plot([val, edge - 0.1], [test, height], lw=0.5, color=GRAY, alpha=0.5)
        axes.plot([val], [test], "o", ms=5, color=COLORS[0], mew=0)
        axes.text(edge, height, name, va="center", fontsize=8, color=GRAY)
    axes.set_xlabel(f"MAP@R on validation classes in per cent; by name: the {FIRST} that are best there")
    axes.set_ylabel("MAP@R on test classes")
    finish(figure, axes, path)


def unfinished(report: Row) -> str:
    """What is to come, if anything is."""
    left = report["waiting"]
    return f" {left} training runs are not finished; results that need them are not in the tables yet." if left else ""


def verdict_table(report: Row, dim: int, recent: Row | None = None) -> str:
    """All methods in a size, the best first; those that joined later in italics."""
    made = []
    rows = [(named(report, name), row) for name, row in at(report, dim).items()]
    rows += [] if recent is None else lines(recent, dim)
    for shown, row in sorted(rows, key=lambda each: -each[1]["MAP@R"]["mean"]):
        failed = row.get("failed", 0)
        name = shown + (f" ({failed} training runs failed)" if failed else "")
        made.append([name, *(percent(row[metric]) for metric in METRICS)])
    return table([f"{dim} dimensions", *METRICS], made)


def sizes_table(report: Row) -> str:
    """The five best in four sizes."""
    found = {dim: at(report, dim) for dim in (64, 128, 512, 1024)}
    made = [
        [name, metric, *(percent(rows[name][metric]) if name in rows else "–" for rows in found.values())]
        for name in report["best by validation"]
        for metric in METRICS
    ]
    return table(["method", "", *(f"{dim}-d" for dim in found)], made, words=(0, 1))


def folds_table(report: Row) -> str:
    """The reality check's own protocol: four models of 128 dimensions, separated and concatenated."""
    joined = {row["method"]: row for row in report["concatenated"]}
    made = []
    for row in sorted(report["separated"], key=lambda row: -row["MAP@R"]["mean"]):
        for kind, found in (("separated", row), ("concatenated", joined.get(row["method"]))):
            cells = ["–" if found is None else percent(found[metric]) for metric in METRICS]
            made.append([row["method"], kind, *cells])
    return table(["method", "models", *METRICS], made, words=(0, 1))


def further_table(report: Row) -> str:
    """What moves the best configuration: each change on validation classes, all that helped on test classes."""
    made = []
    for each in report["further"]:
        done = {change: [x for x in of if x is not None] for change, of in each["validation"].items()}
        plain = statistics.fmean(done[""]) if done.get("") else None
        for change, scores in done.items():
            if not scores:
                made.append([each["method"], change or "setting from the search", "collapsed", "", ""])
                continue
            mean = 100 * statistics.fmean(scores)
            gained = "" if plain is None or not change else f" ({mean - 100 * plain:+.1f})"
            kept = " ✓" if change in (each["helped"] or []) else ""
            test = None if change else each["test"].get("verdict")
            measured = ["", ""] if test is None else [percent(test["MAP@R"]), percent(test["R@1"])]
            made.append([each["method"], change or "setting from the search", f"{mean:.1f}{gained}{kept}", *measured])
        for part, words in PARTS.items():
            if part in each["test"]:
                found = each["test"][part]
                made.append([each["method"], words, "", percent(found["MAP@R"]), percent(found["R@1"])])
    return table(["method", "change", "validation MAP@R", "test MAP@R", "test R@1"], made, words=(0, 1))


def tournament_table(report: Row) -> str:
    """Places by mean rank over both sizes."""
    made = [
        [
            str(row["place"]),
            named(report, row["method"]),
            f"{row['average']:.1f}",
            str(row["gold"] + row["silver"] + row["bronze"]),
        ]
        for row in report["tournament"]["standings"][:10]
    ]
    return table(["place", "method", "mean rank", "medals"], made, words=(1,))


def claims(report: Row) -> str:
    """Questions and answers; the same question about many methods is a table."""
    answers = {one["question"]: one for one in report["claims"]}
    rivals = [(name, answers[RIVAL.format(name)]) for name in RECENT if RIVAL.format(name) in answers]
    added = [(one, answers[one.question]) for one in ADDED if one.question in answers]
    pairs = [((one.method, one.base), FOUND.format(one.method, one.base)) for one in ADDED]
    pairs += [(names, FOUND.format(*names)) for names in MINED]
    found = [(names, answers[question]) for names, question in pairs if question in answers]
    sections = [
        rivalry(rivals),
        additions(added),
        searched(found),
        sizes_and_tuning(answers),
        same_function(answers),
        flattery(answers),
    ]
    return "\n\n".join(each for each in sections if each)


def gap_of(one: Row, digits: int = 2) -> str:
    """A difference in points, with its interval."""
    return f"{{mean:+.{digits}f}} ({{low:+.{digits}f}} to {{high:+.{digits}f}})".format(**points(one))


def detectable(one: Row) -> str:
    """The difference that would be detected with 50% power, where none was found."""
    found = re.search(r"a difference of about ([0-9.]+)", one["sentence"])
    return found[1] if found else "–"


def rivalry(asked: Sequence[tuple[str, Row]]) -> str:
    """Newer losses against contrastive, best first."""
    if not asked:
        return ""
    counts = Counter(one["verdict"] for _, one in asked)
    words = (
        f"**Is contrastive as good as newer losses under equal conditions?** ({asked[0][1]['claimed by']}) Of {len(asked)} losses "
        f"published in 2018 or later, {counts['better']} are better, {counts['worse']} are worse and {counts['not distinguishable']} are "
        f"not distinguishable, after Holm's correction for {len(asked)} comparisons. Intervals are uncorrected."
    )
    ordered = sorted(asked, key=lambda pair: -pair[1]["difference"]["mean"])
    rows = [[name, gap_of(one), f"{one['p, corrected']:.3f}", one["verdict"]] for name, one in ordered]
    return f"{words}\n\n{table(['loss', 'minus contrastive', 'p, corrected', 'verdict'], rows, words=(0, 3))}"


def additions(asked: Sequence[tuple[Added, Row]]) -> str:
    """What is added to a loss, with nothing else changed."""
    if not asked:
        return ""
    words = (
        "**Does an addition help, with nothing else changed?** (the unified view: mining; the overview: direction and language) The base "
        'loss keeps the setting of its own search; only the strength of the addition is chosen on validation classes. "Detectable" is '
        "the difference that five pairs would detect with 50% power."
    )
    rows = []
    for one, found in asked:
        strength = re.search(r"; (\w+ [0-9.]+),(?: at the edge)? of ([^;]+), and nothing else", found["sentence"])
        chosen = f"{strength[1]} of {strength[2]}" if strength else "–"
        rows.append([one.method, gap_of(found), detectable(found), chosen, found["verdict"]])
    head = ["with the addition", "minus base", "detectable", "chosen strength", "verdict"]
    return f"{words}\n\n{table(head, rows, words=(0, 3, 4))}"


def searched(asked: Sequence[tuple[tuple[str, str], Row]]) -> str:
    """Two methods, each with the best setting of its own search."""
    if not asked:
        return ""
    words = (
        "**And when each has its own search?** Both sides use the best setting of their own search, so they differ in every "
        "searched setting."
    )
    rows = [[*names, gap_of(one), detectable(one), one["verdict"]] for names, one in asked]
    return f"{words}\n\n{table(['method', 'against', 'difference', 'detectable', 'verdict'], rows, words=(0, 1, 4))}"


def sizes_and_tuning(answers: Mapping[str, Row]) -> str:
    """Comparisons in which a pair is a method."""
    asked = [(f"{large} against {small} dimensions", SIZE.format(large, small)) for large, small in SIZES]
    asked += [
        ("512 against 128, five best on validation", SIZE_OF_FIVE),
        ("tuned against first setting, five best", TUNING),
    ]
    rows = [
        [label, gap_of(answers[question]), str(answers[question]["difference"]["count"]), answers[question]["verdict"]]
        for label, question in asked
        if question in answers
    ]
    if not rows:
        return ""
    words = "**Do larger embeddings (the thesis) and tuning help?** A pair is a method: the mean over its seeds."
    text = f"{words}\n\n{table(['comparison', 'difference', 'pairs', 'verdict'], rows, words=(0, 3))}"
    each = re.search(r"one by one: (.*?); methods", answers[TUNING]["sentence"]) if TUNING in answers else None
    if each:
        listed = each[1].replace(
            " nothing, because its first setting was the best", " 0 (the first setting was the best)"
        )
        text += (
            f"\n\nTuning, method by method: {listed}. Five pairs would detect a difference of {detectable(answers[TUNING])} with 50% "
            "power. Methods whose first setting fails are not included."
        )
    return text


def same_function(answers: Mapping[str, Row]) -> str:
    """How far apart the search left one function that is written in two ways."""
    if TWICE not in answers:
        return ""
    found = points(answers[TWICE])
    low, high = sorted(abs(found[end]) for end in ("low", "high"))
    return (
        f"**How much does a search of ten settings decide?** {TWINS[0]} with temperature 2T is the same function as {TWINS[1]} with "
        f"temperature T. With the same draws of the temperature and the learning rates they end {abs(found['mean']):.1f} points of MAP@R "
        f"apart (95% interval over seeds {low:.1f} to {high:.1f}, {answers[TWICE]['difference']['count']} pairs). The difference comes from "
        "where the ten settings lie and from the initial length of the proxies."
    )


def flattery(answers: Mapping[str, Row]) -> str:
    """What choosing on test classes adds."""
    if FLATTERY not in answers:
        return ""
    each = answers[FLATTERY]["methods"]
    listed = ", ".join(f"{name} {100 * gap:.2f}" for name, gap in sorted(each.items(), key=lambda pair: -pair[1]))
    return (
        f"**How much does tuning on test classes inflate results?** (the reality check) Choosing among the fully trained settings of the "
        f"search by test classes instead of validation classes, one seed, raises the reported MAP@R by "
        f"{100 * statistics.median(each.values()):.2f} points (median of {len(each)} methods: {listed})."
    )


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def cost_words(report: Row, alone: Row | None) -> str:
    """On what, and what is counted; how fast one training is that does not share the GPU, where that was measured."""
    cost = report["cost"]
    shared = " or ".join(map(str, cost["at once"]))
    return (
        f"One {' or '.join(cost['machines'])}, shared by {shared} training runs at a time. GPU seconds are the wall time of a run divided "
        f"by the number of runs that shared the GPU; worker start, planning and interrupted work are not included."
        f"{unshared(alone)}{unfinished(report)}"
    )


def unshared(alone: Row | None) -> str:
    """How fast one training is by itself."""
    found = next((row["likewise"] for row in (alone or {"rows": ()})["rows"] if "busy" in row["likewise"]), None)
    if found is None:
        return ""
    return (
        f" A run that does not share the GPU processes {found['images_per_s']:,.0f} images/s, data loading included, and keeps the GPU busy "
        f"{100 * found['busy']:.0f}% of the time ([training](benchmarks-training.md))."
    )


def cost_table(report: Row) -> str:
    """What it took."""
    cost, one = report["cost"], report["cost"]["one training"]
    made = [
        [name, f"{cost['trainings'][stage]:,}", f"{cost['seconds'][stage] / 60:,.0f} min"]
        for stage, name in (("search", "search"), ("final", "everything after the search"))
    ]
    said = [["one training in 512 dimensions", "1", f"{one['mean']:.1f} s"]] if one else []
    return table(["", "training runs", "GPU time"], [*made, *said])


def draw(report: Row, plain: float, path: Path) -> None:
    """MAP@R of every method with its interval, both sizes."""
    order = sorted(at(report, 512).values(), key=lambda row: row["MAP@R"]["mean"])
    figure, axes = start(0.27 * len(order) + 1.1)
    for dim, color, shift in zip(DIMS, COLORS, (0.14, -0.14), strict=False):
        rows = at(report, dim)
        for number, row in enumerate(order):
            if row["method"] not in rows:
                continue
            found = rows[row["method"]]["MAP@R"]
            y = number + shift
            axes.plot([100 * found["low"], 100 * found["high"]], [y, y], color=color, lw=2, alpha=0.5)
            axes.plot([100 * found["mean"]], [y], "o", ms=4, color=color, mew=0)
        axes.plot([], [], "o", color=color, label=f"{dim} dimensions", mew=0)
    axes.axvline(100 * plain, color=GRAY, lw=1, ls=":")
    axes.set_yticks(range(len(order)), [row["method"] for row in order])
    axes.set_xlabel(
        "MAP@R on the test birds in percent, 95% intervals of five seeds\ndotted: the best loss at default settings, all training classes"
    )
    axes.legend(frameon=False, loc="upper left", labelcolor=GRAY)
    finish(figure, axes, path)


if __name__ == "__main__":
    main()
