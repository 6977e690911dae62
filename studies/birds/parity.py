"""Do our losses train a network as well as pytorch-metric-learning's?  On real birds, on the same batches and seeds.

    python -m studies.birds.parity plan FOLDER      CUB-200-2011 at 128 px in data/CUB_200_2011 (or --root)
    PYTHONPATH=. likewise study run FOLDER          here; or pack, execute elsewhere and merge
    python -m studies.birds.parity report FOLDER    writes results/parity.json, which plot_parity.py shows

The recipe is cub128: no validation, the last epoch, nothing tuned.  Every loss is trained three times by
either library, from the same weights, proxies and batches.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from benchmarks.harness import make_parser, write
from likewise.app.recipes import find_recipe
from likewise.app.study_file import StudyFile
from likewise.app.study_table import begin_study, open_study
from likewise.metrics import t_interval
from studies.birds.rows import ROWS

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results" / "parity.json"
SEEDS = (0, 1, 2)
OURS, THEIRS = "likewise", "pytorch-metric-learning"
METRICS = ("R@1", "R@8", "RP", "MAP@R")


def study(root: str, weights: str) -> StudyFile:
    """Both sides of every row."""
    base = yaml.safe_load(find_recipe("cub128").read_text())
    for left_to_the_study in ("loss", "split", "seed"):
        del base[left_to_the_study]
    base["data"]["init_args"] = {"root": root}
    base["model"]["weights"] = weights
    methods = {
        f"{row}, {library}": {
            "loss": {"class_path": "studies.birds.rows.Side", "init_args": {"row": row, "theirs": library == THEIRS}}
        }
        for row in ROWS
        for library in (OURS, THEIRS)
    }
    return StudyFile("birds-parity", methods=methods, base=base, seeds=list(SEEDS), protocol="classic")


def report(folder: Path) -> dict[str, Any]:
    """For each loss and metric: both means, and the difference of the same seed with its interval."""
    found: dict[tuple[str, str], dict[int, Any]] = {}
    for result in open_study(folder).results():
        if result.status == "done":
            row, library = result.trial.method.rsplit(", ", 1)
            found.setdefault((row, library), {})[result.trial.seed] = result
    rows = []
    for row in ROWS:
        ours, theirs = (found.get((row, library), {}) for library in (OURS, THEIRS))
        seeds = sorted(set(ours) & set(theirs))
        if not seeds:
            continue
        one: dict[str, Any] = {"loss": row, "note": getattr(ROWS[row], "note", ""), "seeds": len(seeds)}
        for metric in METRICS:
            pairs = [(ours[seed].test[metric], theirs[seed].test[metric]) for seed in seeds]
            one[metric] = {
                OURS: [a for a, _ in pairs],
                THEIRS: [b for _, b in pairs],
                "difference": asdict(t_interval([a - b for a, b in pairs])) if len(pairs) > 1 else None,
                "seed noise": statistics.stdev([b for _, b in pairs]) if len(pairs) > 1 else None,
            }
        one["seconds"] = {
            library: statistics.median(each.seconds for each in side.values())
            for library, side in ((OURS, ours), (THEIRS, theirs))
        }
        rows.append(one)
    machines = sorted({result.machine for side in found.values() for result in side.values()})
    return {"recipe": "cub128", "machines": machines, "rows": rows}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("plan", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--root", default="data/CUB_200_2011", help="where the birds are, on the machine that trains")
    parser.add_argument("--weights", default="imagenet", help="a published name, or a file")
    given = parser.parse_args()
    if given.what == "plan":
        with begin_study(given.folder, study(given.root, given.weights)) as table:
            print(table.counts())
    else:
        write(report(given.folder), RESULTS)


if __name__ == "__main__":
    main()
