"""The verdict on birds: the best setting of every method, five seeds, on test classes that no choice has looked at.

    python -m studies.birds.verdict plan FOLDER --root BIRDS    final trials of what results/search.json found
    likewise study run FOLDER                                   here; or pack, execute elsewhere and merge
    python -m studies.birds.verdict join FOLDER                 where the runs are: the reality check's folds together
    python -m studies.birds.verdict report FOLDER               writes results/verdict.json; plot_verdict.py shows it

`plan` may be called again and again; it adds what is missing, most important first: 512 dimensions, 128, the five best of
the validation in 1024 and 64 and with their defaults, the reality check's four folds, what is added to a loss and nothing
else (added.py), how far the best goes (further.py), and, for one question alone and marked as what it is, every
point of some searches on the test classes.
What results/verdict.json has already is not trained again: another machine goes on where one stopped, and whoever
begins with an empty file trains everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.harness import make_parser, read, write
from likewise.metrics import t_interval
from likewise.protocols.combine import TEST_SET_FILE, concatenated
from likewise.protocols.protocol import PROTOCOLS
from likewise.protocols.repeats import summarize
from likewise.protocols.space import at_point
from likewise.protocols.study import STUDY_DATABASE, Study
from likewise.protocols.tournament import tournament
from likewise.protocols.trial import Result, Stage, Trial
from studies.birds import added, further
from studies.birds.claims import claims, tried
from studies.birds.record import (
    SEARCHED_SEED,
    Configured,
    joined,
    keep_joined,
    key_of,
    not_planned,
    recorded,
    restore,
    restore_joined,
    row_of,
)

RESULTS = Path(__file__).parent / "results" / "verdict.json"
SEARCHED = RESULTS.with_name("search.json")
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

ALIASES = {"RAW": "Multi-similarity", "RAW + VTHM": "Multi-similarity + miner"}
"""Methods that are others by another name: the unified view's weights are those of multi-similarity, its mining is that
one's miner (`likewise.analysis.gradient_equivalent` says so).  They are trained once."""

METRICS = ("MAP@R", "RP", "R@1")

Report = Mapping[str, Any]


def final(of: Configured, point: Mapping[str, Any], seed: int, part: str, dim: int, fold: int | None = None) -> Trial:
    """A training that opens the test set once."""
    config = at_point(of.config, point)
    protocol = PROTOCOLS["fixed-validation" if fold is None else "reality-check"]
    config["split"] = {**(config.get("split") or {}), "validation": None, **protocol.folds[fold or 0]}
    config = {**config, "seed": seed, "model": {**config["model"], "dim": dim}}
    return Trial(of.method, config, seed, fold or 0, "final", {"part": part, "dim": dim})


def chosen_points(search: Report) -> dict[str, Mapping[str, Any]]:
    """What the search chose for each method; all searches must be over, else who the best are is not known."""
    open_ones = [row["method"] for row in search["rows"] if not row["over"]]
    if open_ones:
        raise SystemExit(f"all searches of {SEARCHED.name} must be over, but that of {open_ones[0]} is not")
    return {row["method"]: row["best"]["point"] for row in search["rows"] if row["best"] is not None}


def planned(found: Mapping[str, Configured], search: Report, results: Sequence[Result]) -> Iterator[Trial]:
    """Everything that follows from what is known, most important first.

    Args:
        found: the methods with their configurations.
        search: what was published of their searches.
        results: of everything so far.
    """
    points = chosen_points(search)
    for dim in DIMS:
        for seed in range(SEEDS):
            yield from (final(found[name], point, seed, "verdict", dim) for name, point in points.items())
    settled = {(each.trial.method, each.trial.seed) for each in results if further.is_of(each, "verdict")}
    leaders = best_by_validation(results) if len(settled) == SEEDS * len(points) else []
    for name in leaders:
        for seed in range(SEEDS):
            yield from (final(found[name], points[name], seed, "verdict", dim) for dim in MORE)
            yield final(found[name], {}, seed, "untuned", DIMS[0])
    for name in dict.fromkeys((*leaders, *(name for name in ALWAYS if name in points))):
        for seed in range(FOLD_SEEDS):
            yield from (final(found[name], points[name], seed, "folds", 128, fold) for fold in range(4))

    def make(name: str, method: str, point: Mapping[str, Any], seed: int, stage: Stage) -> Trial:
        return replace(final(found[method], point, seed, added.PART, DIMS[0]), method=name, stage=stage)

    yield from added.planned(found, points, results, make, SEEDS)
    if leaders:
        configs = {
            name: final(found[name], points[name], 0, "", DIMS[0]).config
            for name in further.subjects(leaders)
            if name in points
        }
        yield from further.planned(configs, results)
    for name in LOOKED_AT:
        for part, point in tried(search, name).items():
            if point != points[name]:  # that one is the verdict's
                yield final(found[name], point, SEARCHED_SEED, part, DIMS[0])


def best_by_validation(results: Sequence[Result]) -> list[str]:
    """The methods with the highest mean on validation classes, over the seeds of their final trials; test is not asked.

    But for the seed of the search: that training is the best of ten on these very classes.
    """
    rows = [
        row
        for row in rows_of(results, part="verdict", dim=DIMS[0])
        if row["status"] == "done" and row["seed"] != SEARCHED_SEED
    ]
    if not rows:
        return []
    found = summarize(rows, "val MAP@R", by=("method",))
    complete = [each for each in found if len(each.scores) == SEEDS - 1]
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
        for result in Study(folder / STUDY_DATABASE).results()
        if result.status == "done" and result.trial.labels.get("part") == "folds"
    ]
    here = [result for result in done if (folder / result.run / TEST_SET_FILE).exists()]
    found = keep_joined(folder, concatenated(here, folder, 4))
    print(f"{len(found)} of {len(done) // 4} joined")


def opened(folder: Path, root: str, weights: str) -> tuple[dict[str, Configured], Study]:
    """The methods and the table of a folder, which is made if it is not there."""
    from likewise.app.study_io import read_study, write_study
    from likewise.app.study_table import open_study
    from studies.birds.search import searches, study

    if not (folder / "study.yaml").exists():
        write_study(folder, study(root, weights))
    chosen = read_study(folder / "study.yaml")
    found = {name: Configured(name, search.config) for name, search in searches(chosen).items()}
    return found, open_study(folder)


def searched() -> Report:
    """What was published of the search."""
    search = read(SEARCHED)
    if search is None:
        raise SystemExit(f"results/{SEARCHED.name} must be there, but it is not; search.py writes it")
    return search


def plan(folder: Path, found: Mapping[str, Configured], study_table: Study, search: Report, known: Report) -> None:
    """Add what is missing, and what is on record beside it; that may tell what comes next."""
    together = {(row["method"], row["seed"]) for row in recorded(known, "joined")}
    rows = [  # folds that nobody has joined are of no use: their embeddings are gone
        row for row in recorded(known, "rows") if row["part"] != "folds" or (row["method"], row["seed"]) in together
    ]

    def add() -> int:
        there = {key_of(trial) for trial in study_table.trials()}  # wherever they say that the birds are
        return len(
            study_table.add(
                [each for each in planned(found, search, study_table.results()) if key_of(each) not in there]
            )
        )

    added = add()
    while restore(study_table, rows):
        added += add()
    restore_joined(folder, study_table.trials(), recorded(known, "joined"))
    if added:
        print(f"{added} trials added; {study_table.counts()}", flush=True)


def report(folder: Path, search: Report, study_table: Study, known: Report, at_once: int = 1) -> dict[str, Any]:
    """Tables and claims of what is complete, cost; and every row, also those of the record that are not in the study."""
    results, together = study_table.results(), joined(folder)
    complete = settled(study_table)
    shared = {
        row["key"]: row["at once"]
        for what in ("rows", "joined")
        for row in recorded(known, what)
        if row["status"] == "done"  # what failed is trained again, here
    }
    rows, joined_rows = ([row_of(each, shared, at_once) for each in some] for some in (results, together))
    verdict = rows_of(complete, part="verdict")
    of_all = [row for row in verdict if row["dim"] in DIMS and row["status"] == "done"]
    return {
        "recipe": "cub128",
        "aliases": dict(ALIASES),
        "best by validation": best_by_validation(results),
        "points": chosen_points(search),
        "table": table(verdict, ("method", "dim")),
        "untuned": table(rows_of(complete, part="untuned"), ("method",)),
        "separated": table(rows_of(complete, part="folds"), ("method",)),
        "concatenated": table([each.row() for each in together], ("method",)),
        "further": further.report(best_by_validation(results), complete),
        "tournament": ranking(of_all),
        "claims": claims(complete, search),
        "cost": cost(rows, search),
        "waiting": study_table.counts()["missing"],
        "rows": rows,
        "joined": joined_rows,
        "rows, not planned": not_planned(recorded(known, "rows"), rows),
        "joined, not planned": not_planned(recorded(known, "joined"), joined_rows),
    }


def ranking(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Ranks of the methods that are there in both sizes."""
    sizes: dict[str, set[int]] = {}
    for row in rows:
        sizes.setdefault(row["method"], set()).add(row["dim"])
    whole = [row for row in rows if sizes[row["method"]] == set(DIMS)]
    return tournament(whole, "test MAP@R", experiment=("dim",)).to_dict() if whole else {"standings": []}


def settled(study_table: Study) -> list[Result]:
    """Results of settings of which nothing is missing: of some seeds alone there is nothing to say."""

    def setting(trial: Trial) -> tuple[Any, ...]:
        return trial.method, trial.labels.get("part"), trial.labels.get("dim")

    missing = {setting(trial) for trial in study_table.missing()}
    return [result for result in study_table.results() if setting(result.trial) not in missing]


def table(rows: Sequence[Mapping[str, Any]], by: tuple[str, ...]) -> list[dict[str, Any]]:
    """Means and intervals over seeds, for each setting."""
    made: dict[tuple[Any, ...], dict[str, Any]] = {}
    for metric in METRICS if any(row["status"] == "done" for row in rows) else ():
        for each in summarize(rows, f"test {metric}", by=by):
            line = made.setdefault(tuple(each.group.values()), {**each.group, "failed": each.failed})
            line[metric] = {**asdict(each.interval), "scores": list(each.scores.values())}
    return list(made.values())


def cost(rows: Sequence[Mapping[str, Any]], search: Report) -> dict[str, Any]:
    """What it took, on what: a training's seconds of the GPU are its own over how many shared it."""
    done = [(row, row["seconds"] / row["at once"]) for row in rows if row["status"] == "done"]
    one = [seconds for row, seconds in done if (row["part"], row.get("dim")) == ("verdict", DIMS[0])]
    seconds = {"search": search["seconds"] / search["at once"], "final": sum(each for _, each in done)}
    return {
        "at once": sorted({search["at once"], *(row["at once"] for row in rows)}),
        "machines": sorted({*search["machines"], *(row["machine"] for row in rows if row["machine"])}),
        "trainings": {"search": search["trials"], "final": len(done)},
        "seconds": {stage: round(each, 1) for stage, each in seconds.items()},
        "failed": sum(row["status"] == "failed" for row in rows),
        "one training": asdict(t_interval(one)) if len(one) > 1 else None,
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("plan", "join", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--root", default="data/CUB_200_2011", help="where the birds are, on the machine that trains")
    parser.add_argument("--weights", default="imagenet", help="a published name, or a file")
    parser.add_argument("--at-once", type=int, default=1, help="how many workers shared a GPU, for report")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the report goes")
    given = parser.parse_args()
    if given.what == "join":
        join(given.folder)
        return
    found, study_table = opened(given.folder, given.root, given.weights)
    if given.what == "plan":
        plan(given.folder, found, study_table, searched(), read(RESULTS) or {})
        print(study_table.counts())
    else:
        write(report(given.folder, searched(), study_table, read(RESULTS) or {}, given.at_once), given.out)


if __name__ == "__main__":
    main()
