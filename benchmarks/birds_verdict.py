"""The verdict on birds: the best setting of every method, five seeds, on test classes that no choice has looked at.

    python benchmarks/birds_verdict.py plan FOLDER      final trials of the searches in FOLDER that are over (birds_search.py)
    likewise work FOLDER                                here, or where FOLDER is taken to
    python benchmarks/birds_verdict.py join FOLDER      where the runs are: models of the reality check's folds together
    python benchmarks/birds_verdict.py report FOLDER    writes results/birds-verdict.json; plot_birds.py shows it

`plan` may be called again and again; it adds what is missing, most important first: 512 dimensions, 128, the five best of
the validation in 1024 and 64 and with their defaults, the reality check's four folds, how far the best goes
(birds_further.py), and, for one question alone and marked as what it is, every point of some searches on the test classes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import birds_further
from birds_claims import claims
from machine import write

from likewise.metrics import t_interval
from likewise.protocols.board import Board
from likewise.protocols.combine import FILE, concatenated
from likewise.protocols.file_board import FileBoard
from likewise.protocols.protocol import PROTOCOLS
from likewise.protocols.repeats import summarise
from likewise.protocols.space import at_point
from likewise.protocols.tournament import tournament
from likewise.protocols.trial import Result, Trial

if TYPE_CHECKING:
    from likewise.protocols.search import Search

RESULTS = Path(__file__).parent / "results" / "birds-verdict.json"
JOINED = "joined.jsonl"
SEEDS, FOLD_SEEDS = 5, 3
DIMS, MORE = (512, 128), (1024, 64)
BEST = 5
ALWAYS = ("Contrastive", "Triplet")
"""In the reality check's folds whatever their place."""

LOOKED_AT = (
    "Contrastive",
    "Triplet",
    "NT-Xent",
    "Multi-similarity",
    "ArcFace",
    "ProxyNCA++",
    "Proxy-Anchor",
    "SoftTriple",
)
"""Methods whose every point is also measured on test classes: by how much does choosing there flatter?"""

METRICS = ("MAP@R", "RP", "R@1")


def final(search: Search, point: Mapping[str, Any], seed: int, part: str, dim: int, fold: int | None = None) -> Trial:
    """A training that opens the test set once."""
    config = at_point(search.config, point)
    protocol = PROTOCOLS["fixed-validation" if fold is None else "reality-check"]
    config["split"] = {**(config.get("split") or {}), "validation": None, **protocol.folds[fold or 0]}
    config = {**config, "seed": seed, "model": {**config["model"], "dim": dim}}
    return Trial(search.method, config, seed, fold or 0, "final", {"part": part, "dim": dim})


def planned(found: Mapping[str, Search], board: Board) -> Iterator[Trial]:
    """Everything that follows from what is known, most important first."""
    from likewise.protocols.search import best, history, is_over

    over = {name: best(history(search, board)) for name, search in found.items() if is_over(search, board)}
    points = {name: chosen.point for name, chosen in over.items() if chosen is not None}
    for dim in DIMS:
        for seed in range(SEEDS):
            yield from (final(found[name], point, seed, "verdict", dim) for name, point in points.items())
    if len(over) < len(found):
        return  # who the best are is not known yet
    results = board.results()
    settled = {(each.trial.method, each.trial.seed) for each in results if birds_further.is_of(each, "verdict")}
    leaders = best_by_validation(results) if len(settled) == SEEDS * len(points) else []
    for name in leaders:
        for seed in range(SEEDS):
            yield from (final(found[name], points[name], seed, "verdict", dim) for dim in MORE)
            yield final(found[name], {}, seed, "untuned", DIMS[0])
    for name in dict.fromkeys((*leaders, *(name for name in ALWAYS if name in points))):
        for seed in range(FOLD_SEEDS):
            yield from (final(found[name], points[name], seed, "folds", 128, fold) for fold in range(4))
    if leaders:
        configs = {
            name: final(found[name], points[name], 0, "", DIMS[0]).config
            for name in birds_further.subjects(leaders)
            if name in points
        }
        yield from birds_further.planned(configs, results)
    for name in LOOKED_AT:
        for number, one in enumerate(history(found[name], board)):
            if one.status == "done":
                yield final(found[name], one.point, 0, f"point {number}", DIMS[0])


def best_by_validation(results: Sequence[Result]) -> list[str]:
    """The methods with the highest mean on validation classes, over the seeds of their final trials; test is not asked."""
    rows = [row for row in rows_of(results, part="verdict", dim=DIMS[0]) if row["status"] == "done"]
    if not rows:
        return []
    found = summarise(rows, "val MAP@R", by=("method",))
    complete = [each for each in found if len(each.scores) == SEEDS]
    return [each.name for each in sorted(complete, key=lambda each: -each.interval.mean)[:BEST]]


def rows_of(results: Sequence[Result], **labels: Any) -> list[dict[str, Any]]:
    """Rows of the final trials with some labels."""
    rows = [result.row() for result in results if result.trial.stage == "final"]
    return [row for row in rows if all(row.get(name) == value for name, value in labels.items())]


def join(folder: Path) -> None:
    """The four models of each method and seed together; kept in the folder, because their embeddings are too many to travel.

    May be called wherever some of the runs are: what was joined elsewhere stays.
    """
    done = [
        result
        for result in FileBoard(folder / "board").results()
        if result.status == "done" and result.trial.labels.get("part") == "folds"
    ]
    here = [result for result in done if (folder / result.run / FILE).exists()]
    found = {(each.trial.method, each.trial.seed): each for each in joined(folder)}
    found |= {(each.trial.method, each.trial.seed): each for each in concatenated(here, folder, 4)}
    aside = folder / f"{JOINED}.new"
    aside.write_text("".join(json.dumps(each.to_dict()) + "\n" for each in found.values()))
    aside.replace(folder / JOINED)
    print(f"{len(found)} of {len(done) // 4} joined")


def joined(folder: Path) -> list[Result]:
    """What was joined before."""
    path = folder / JOINED
    return [Result.from_dict(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def report(
    folder: Path, found: Mapping[str, Search], aliases: Mapping[str, str], board: Board, at_once: int = 1
) -> dict[str, Any]:
    """Tables, claims, cost."""
    from likewise.protocols.search import best, history

    results = board.results()
    verdict = rows_of(results, part="verdict")
    chosen = {name: best(history(search, board)) for name, search in found.items()}
    ranked = tournament([row for row in verdict if row["dim"] in DIMS], "test MAP@R", experiment=("dim",))
    return {
        "recipe": "recipes/cub128.yaml",
        "aliases": dict(aliases),
        "best by validation": best_by_validation(results),
        "points": {name: None if one is None else dict(one.point) for name, one in chosen.items()},
        "table": table(verdict, ("method", "dim")),
        "untuned": table(rows_of(results, part="untuned"), ("method",)),
        "separated": table(rows_of(results, part="folds"), ("method",)),
        "concatenated": table([each.row() for each in joined(folder)], ("method",)),
        "further": birds_further.report(best_by_validation(results), results),
        "tournament": ranked.to_dict(),
        "claims": claims(results, found, board),
        "cost": cost(results, at_once),
        # where it ran, and with which paths, is of no use elsewhere
        "rows": [{name: value for name, value in row.items() if name not in ("run", "command")} for row in verdict],
    }


def table(rows: Sequence[Mapping[str, Any]], by: tuple[str, ...]) -> list[dict[str, Any]]:
    """Means and intervals over seeds, for each setting."""
    made: dict[tuple[Any, ...], dict[str, Any]] = {}
    for metric in METRICS if any(row["status"] == "done" for row in rows) else ():
        for each in summarise(rows, f"test {metric}", by=by):
            line = made.setdefault(tuple(each.group.values()), {**each.group, "failed": each.failed})
            line[metric] = {**asdict(each.interval), "scores": list(each.scores.values())}
    return list(made.values())


def cost(results: Sequence[Result], at_once: int) -> dict[str, Any]:
    """What it took, on what: a training's seconds of the GPU are its own over how many shared it."""
    seconds = {
        stage: [each.seconds / at_once for each in results if each.trial.stage == stage and each.status == "done"]
        for stage in ("search", "final")
    }
    return {
        "at once": at_once,
        "machines": sorted({each.machine for each in results if each.machine}),
        "trainings": {stage: len(each) for stage, each in seconds.items()},
        "seconds": {stage: round(sum(each), 1) for stage, each in seconds.items()},
        "failed": sum(each.status == "failed" for each in results),
        "one training": asdict(t_interval(seconds["search"])) if seconds["search"] else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("plan", "join", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--at-once", type=int, default=1, help="how many workers shared a GPU; report counts by that")
    given = parser.parse_args()
    if given.what == "join":
        join(given.folder)
        return
    from birds_search import ALIASES, searches

    from likewise.cli.study import board_of, read_study

    chosen = read_study(given.folder / "study.yaml")
    board, found = board_of(given.folder, chosen), searches(chosen)
    if given.what == "plan":
        print(f"{len(board.add(list(planned(found, board))))} trials added; {board.counts()}")
    else:
        write(report(given.folder, found, ALIASES, board, given.at_once), RESULTS)


if __name__ == "__main__":
    main()
