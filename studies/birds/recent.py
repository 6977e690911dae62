"""Losses that joined after the verdict: the same search, seeds and folds as the other methods on birds.

    python -m studies.birds.recent pack PACK                        here: what a machine without network lacks (10 MB)
    python -m studies.birds.travel search PACK --birds ZIP --out O  there, for --minutes: searches, final training runs
    python -m studies.birds.recent report PACK --at-once N          here: writes results/recent.json, for plot_verdict.py

O/study.db is all that comes back; as PACK/study.db it is where the next journey begins.  Methods that results/recent.json
has are neither packed nor trained again: a report adds to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness import make_parser, read, write
from likewise.protocols.packing import PACK_FILE
from likewise.protocols.pairs import compare
from likewise.protocols.space import Range
from likewise.protocols.study import STUDY_DATABASE, Study
from studies.birds import search
from studies.birds.claims import METRIC, together
from studies.birds.record import PLACES, part_of, row_of
from studies.birds.search import Method
from studies.birds.travel import SEARCHES, pack_weights
from studies.birds.verdict import DIMS, settled, table

RESULTS = Path(__file__).parent / "results" / "recent.json"
NAME = "birds-recent"
BASELINE = "Contrastive"


CONSISTENT = (
    "studies.birds.losses.ThresholdConsistent",
    {"positive_margin": 0.9, "negative_margin": 0.5, "weight": 1.0},
    {
        "positive_margin": Range(0.5, 1.0),
        "negative_margin": Range(0.0, 0.7),
        "weight": Range(0.01, 10.0, log=True),
    },
)
SYNTHESIS = (
    "ProxySynthesis",
    {"alpha": 0.4, "mu": 1.0},
    {"alpha": Range(0.1, 2.0, log=True), "mu": Range(0.1, 1.0)},
)

RANKING: dict[str, Method] = {
    "Smooth-AP": Method("SmoothAPLoss"),
    "ROADMAP": Method("ROADMAPLoss"),
    "Recall@k": Method("RecallAtKLoss"),
    "SupAP": Method("SupAPLoss"),
    "PNP, Dq": Method("PNPLoss", fixed={"variant": "Dq", "b": 2.0}),
    "PNP, O": Method("PNPLoss", fixed={"variant": "O", "alpha": 1.0, "b": 2.0}),
    "NDCG": Method("NDCGLoss"),
}
"""Losses that are a smooth version of the metric."""

METHODS: dict[str, Method] = {
    **{name: RANKING[name] for name in ("Smooth-AP", "ROADMAP", "Recall@k", "SupAP", "PNP, Dq")},
    "Sigmoid": Method("SigmoidLoss", learns=True),
    # its margin follows the norms of embeddings; scale as ArcFace's and CosFace's
    "AdaFace": Method("AdaFaceLoss", {"scale": 32.0}, learns=True, model={"normalize": False}),
    "Smooth-AP + TCM": Method("SmoothAPLoss", around=CONSISTENT),
    "Ranked list": Method("RankedListLoss", {"alpha": 1.2}),
    **{name: RANKING[name] for name in ("PNP, O", "NDCG")},
    "Elastic ArcFace": Method("ElasticArcFaceLoss", {"scale": 32.0}, learns=True),
    "Normalized softmax + synthesis": Method("NormalizedSoftmaxLoss", around=SYNTHESIS, learns=True),
    "NT-Xent, hardness": Method("HardnessWeightedNTXentLoss"),
    "Centroid triplet": Method("CentroidTripletLoss"),
    "P2SGrad": Method("P2SGradLoss", learns=True),
    "Large-margin softmax": Method("LargeMarginSoftmaxLoss", learns=True),
    "Dynamic soft margin": Method("DynamicSoftMarginLoss"),
}
"""Most important first: a journey ends when its time is over."""


def searches() -> dict[str, search.Search]:
    """A search for each method, as search.py has them for the others."""
    return search.searches(search.study(*PLACES.values(), METHODS, NAME, allow=("studies",)), METHODS)


def pack(folder: Path) -> None:
    """The weights, every setting of every search, and the configurations that final training runs start from."""
    pack_weights(folder)
    done = {row["method"] for row in (read(RESULTS) or {"rows": []})["rows"]}
    pack_searches(folder, {name: each for name, each in searches().items() if name not in done})


def pack_searches(folder: Path, chosen: Mapping[str, search.Search], dims: Sequence[int] = DIMS) -> None:
    """Write what travel.py runs: the trials of every search, and what final training runs start from.

    Args:
        folder: of the pack, with its weights.
        chosen: the searches.
        dims: the dimensions of final training runs.
    """
    planned = {}
    for name, each in chosen.items():
        trials = search.plan(each, Study(folder / STUDY_DATABASE))
        planned[name] = {"config": each.config, "dims": list(dims), "trials": [trial.to_dict() for trial in trials]}
    (folder / STUDY_DATABASE).unlink()  # travel.py adds one method after another
    (folder / SEARCHES).write_text(json.dumps(planned))
    (folder / PACK_FILE).write_text(json.dumps({"metric": "MAP@R"}))
    count = sum(len(each["trials"]) for each in planned.values())
    size = sum(each.stat().st_size for each in folder.iterdir()) / 2**20
    print(f"{count} trials of {len(planned)} searches; {size:.1f} MiB in {folder}")


def report(study: Study, verdict: Mapping[str, Any], known: Mapping[str, Any], at_once: int) -> dict[str, Any]:
    """Searches and final training runs of the methods that are complete, each compared with the contrastive loss.

    Args:
        study: the table that came back.
        verdict: the results of the other methods.
        known: what this report said before; its methods stay.
        at_once: how many training runs of the table shared the GPU.
    """
    complete = [each for each in settled(study) if each.trial.stage == "final"]
    new = [row_of(each, {}, at_once) for each in complete]
    trained = {row["method"] for row in new}
    rows = [row for row in known["rows"] if row["method"] not in trained] + new
    methods = {row["method"] for row in rows}
    return {
        "search": add_searches(known["search"], search.report(searches(), study, at_once), trained),
        "table": table(part_of(rows, "verdict"), ("method", "dim")),
        "ranking": [name for name in METHODS if name in RANKING and name in methods],
        "against": against(rows, verdict, methods),
        "waiting": len(METHODS) - len(methods),
        "rows": rows,
    }


def add_searches(known: Mapping[str, Any], new: Mapping[str, Any], trained: set[str]) -> dict[str, Any]:
    """Two reports of searches as one: the rows of both, and what both took."""
    rows = [row for row in known["rows"] if row["method"] not in trained]
    rows += [row for row in new["rows"] if row["method"] in trained]
    counts = ("seconds", "trials", "stopped early", "collapsed")
    return {**known, **{name: known[name] + new[name] for name in counts}, "rows": rows}


def against(rows: Sequence[Mapping[str, Any]], verdict: Mapping[str, Any], methods: set[str]) -> list[dict[str, Any]]:
    """Each method against the contrastive loss, paired by seed, in 512 dimensions; corrected for their number."""
    both = [row for row in part_of([*verdict["rows"], *rows], "verdict") if row["dim"] == DIMS[0]]
    made = []
    for name in METHODS:
        if name in methods:
            found = compare(both, name, BASELINE, METRIC)
            made.append(
                {"method": name, "sentence": str(found), "verdict": found.verdict}
                | {"difference": asdict(found.difference), "p": found.p}
            )
    return together(made)


def main() -> None:
    parser = make_parser(__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    packing = what.add_parser("pack", help="what a machine without network lacks, in one folder")
    packing.add_argument("folder", type=Path)
    reporting = what.add_parser("report", help="write results/recent.json")
    reporting.add_argument("folder", type=Path)
    reporting.add_argument("--at-once", type=int, required=True, help="how many training runs shared the GPU")
    reporting.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.what == "pack":
        pack(given.folder)
    else:
        verdict, known = (json.loads(path.read_text()) for path in (RESULTS.with_name("verdict.json"), RESULTS))
        write(report(Study(given.folder / STUDY_DATABASE), verdict, known, given.at_once), given.out)


if __name__ == "__main__":
    main()
