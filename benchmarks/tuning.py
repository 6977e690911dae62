"""Does a search help?  Twenty rounds for each of three losses on glyphs, then five seeds of the best against the defaults.

The defaults are the first of the twenty settings.

    python -m benchmarks.tuning plan FOLDER      the next round, or, when the search is over, the final trials
    likewise study run FOLDER                    here; or pack, execute elsewhere and merge
    python -m benchmarks.tuning report FOLDER    writes results/tuning.json when all is done

Planning and running are apart: the folder travels.  The search sees validation characters alone; the final trials open the
test set once each.  `plan` says how many trials it has added; when there are none left to add, `report`.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from benchmarks.harness import DOCS, RESULTS, fill, make_parser, write
from likewise import losses
from likewise.app.configuration import parse_request
from likewise.app.layers import read_request
from likewise.app.search_space import default_points
from likewise.app.study_file import StudyFile
from likewise.app.study_io import write_study
from likewise.app.study_table import open_study
from likewise.protocols.bayes import Bayesian
from likewise.protocols.pairs import compare
from likewise.protocols.search import Search, best, history, is_over, plan
from likewise.protocols.space import Range, at_point, space_of
from likewise.protocols.study import Study
from likewise.protocols.trial import Trial

RESULT = RESULTS / "tuning.json"
PAGE = DOCS / "protocols.md"
FLAGS = [
    "--data",
    "Glyphs",
    "--data.images_per_class",
    "12",
    "--transform",
    "glyphs",
    "--model.trunk",
    "convnet",
    "--model.dim",
    "64",
    "--optimizer.lr",
    "0.002",
    "--sampler.classes",
    "32",
    "--sampler.steps",
    "100",
    "--train.epochs",
    "3",
]
LOSSES = ("ContrastiveLoss", "MultiSimilarityLoss", "CircleLoss")
ROUNDS, AT_ONCE, SEEDS = 20, 10, 5


def study() -> StudyFile:
    return StudyFile("tuning", methods={name: {"loss": name} for name in LOSSES}, protocol="own-validation")


def searches(with_defaults: bool) -> dict[str, Search]:
    """A search for each loss: what it declares, and the learning rate."""
    made = {}
    for name in LOSSES:
        config = parse_request(read_request([*FLAGS, "--loss", name]))
        space = space_of(getattr(losses, name), extra={"optimizer.lr": Range(1e-4, 1e-2, log=True)})
        fold = ({"validation": None},)
        begin = default_points(config, space) if with_defaults else ()
        made[name] = Search(name, config, space, Bayesian(), fold, rounds=ROUNDS, at_once=AT_ONCE, begin=begin)
    return made


def finals(search: Search, table: Study) -> list[Trial]:
    """The best setting and the default one, with the same seeds."""
    found = best(history(search, table))
    assert found is not None
    made = []
    for seed in range(SEEDS):
        for which, config in (("default", dict(search.config)), ("tuned", at_point(search.config, found.point))):
            settled = {**config, "seed": seed}
            made.append(Trial(f"{search.method}, {which}", settled, seed, 0, "final", {"loss": search.method}))
    return made


def planned(table: Study, with_defaults: bool) -> int:
    """Add what comes next."""
    count = 0
    for search in searches(with_defaults).values():
        new = plan(search, table)
        if not new and is_over(search, table):
            new = table.add(finals(search, table))
        count += len(new)
    return count


def report(table: Study, with_defaults: bool) -> dict[str, Any]:
    """The improvement of MAP@R on the sealed characters, with its interval."""
    rows = [result.row() for result in table.results() if result.trial.stage == "final" and result.status == "done"]
    rows.sort(key=lambda row: row["seed"])  # scores of one seed are pairs
    found = []
    for name, search in searches(with_defaults).items():
        tried = history(search, table)
        chosen = best(tried)
        assert chosen is not None
        difference = compare(rows, f"{name}, tuned", f"{name}, default", "test MAP@R")
        scores = {
            which: [row["test MAP@R"] for row in rows if row["method"] == f"{name}, {which}"]
            for which in ("default", "tuned")
        }
        print(f"{name}: {difference}")
        found.append(
            {
                "loss": name,
                "rounds": len(tried),
                "point": dict(chosen.point),
                "validation MAP@R": chosen.value,
                "validation MAP@R of each round": [one.value for one in tried],
                "test MAP@R": scores,
                "sentence": str(difference),
            }
        )
    machines = sorted({result.machine for result in table.results()})
    return {"flags": " ".join(FLAGS), "rounds": ROUNDS, "seeds": SEEDS, "machines": machines, "losses": found}


def main() -> None:
    """Plan or report."""
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("plan", "report"))
    parser.add_argument("folder", type=Path, help="of the study")
    parser.add_argument("--without-defaults", action="store_true", help="let the search find its own beginning")
    options = parser.parse_args()
    write_study(options.folder, study())
    table = open_study(options.folder)
    with_defaults = not options.without_defaults
    if options.what == "plan":
        print(f"{planned(table, with_defaults)} new trials; {table.counts()}")
        return
    found = report(table, with_defaults)
    write(found, RESULT if with_defaults else RESULT.with_name("tuning-without-defaults.json"))
    fill(PAGE, {"tuning" if with_defaults else "tuning-without-defaults": shown(found)})


def shown(found: dict[str, Any]) -> str:
    """The table of the page, and the verdict on each loss."""
    lines = ["| loss | test MAP@R, defaults | tuned |", "| :-- | --: | --: |"]
    verdicts = [""]
    for row in found["losses"]:
        default, tuned = (100 * statistics.mean(row["test MAP@R"][which]) for which in ("default", "tuned"))
        lines.append(f"| {row['loss']} | {default:.1f} | {tuned:.1f} |")
        rows = [
            {"method": which, "seed": seed, "test MAP@R": score}
            for which, scores in row["test MAP@R"].items()
            for seed, score in enumerate(scores)
        ]
        verdicts.append(f"- {row['loss']}: {compare(rows, 'tuned', 'default', 'test MAP@R')}.")
    return "\n".join(lines + verdicts)


if __name__ == "__main__":
    main()
