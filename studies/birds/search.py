"""A fair search on birds: every loss gets the same rounds, the same budget and the same freedom, on validation classes.

    python -m studies.birds.search plan FOLDER      the next round of trials of every loss
    likewise study run FOLDER                       here; or pack, execute elsewhere and merge
    python -m studies.birds.search report FOLDER    writes results/search.json: what was tried, and the best

CUB-200-2011 at 128 px, the recipe of cub128, but a tenth of the training classes is held out (the thesis'
fixed validation set) and the epoch is chosen on it.  What is searched of each loss is what it declares; of each training
the learning rate, and that of what the loss learns.  The first point is the configuration itself.  Test classes are not
looked at.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from benchmarks.harness import make_parser, write
from likewise import losses, miners
from likewise.app.recipes import find_recipe
from likewise.app.search_space import default_points
from likewise.app.study_file import StudyFile
from likewise.app.study_io import read_study, write_study
from likewise.app.study_table import open_study
from likewise.protocols.bayes import Random
from likewise.protocols.protocol import PROTOCOLS
from likewise.protocols.search import Search, best, history, is_over, plan
from likewise.protocols.space import Range, Setting, space_of
from likewise.protocols.study import Study

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results" / "search.json"
ROUNDS = 10
RATE = Range(1e-5, 1e-3, log=True)
LEARNED_RATE = Range(1e-3, 1e-1, log=True)
NAME = "birds-search"

Tree = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A loss in the contest.

    Args:
        loss: the class of the loss whose hyper-parameters are searched.
        options: its arguments, where they are not the defaults.
        miner: the class of its miner, which is searched with it.
        fixed: arguments that make the method what it is, and are not searched.
        around: the class of a wrapper, with arguments, and what of the wrapper is searched.
        learns: whether the loss has parameters of its own, which learn at a rate of their own.
        model: settings of the model without which the loss is another one.
    """

    loss: str
    options: Mapping[str, Any] = field(default_factory=dict)
    miner: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    around: tuple[str, Mapping[str, Any], Mapping[str, Range]] | None = None
    learns: bool = False
    model: Mapping[str, Any] = field(default_factory=dict)

    def config(self) -> Tree:
        """The loss as a configuration has it."""
        arguments: Tree = {**self.options, **self.fixed}
        if self.miner is not None:
            arguments["miner"] = {"class_path": self.miner}
        loss: Tree = {"class_path": self.loss, "init_args": arguments}
        if self.around is None:
            return loss
        wrapper, given, _ = self.around
        return {"class_path": wrapper, "init_args": {"loss": loss, **given}}

    def space(self) -> dict[str, Setting]:
        """What is searched."""
        miner = None if self.miner is None else getattr(miners, self.miner)
        declared = space_of(getattr(losses, self.loss), miner)
        space = {path: setting for path, setting in declared.items() if path.removeprefix("loss.") not in self.fixed}
        if self.around is not None:
            space = {path.replace("loss.", "loss.loss.", 1): setting for path, setting in space.items()}
            space |= {f"loss.{name}": setting for name, setting in self.around[2].items()}
        space["optimizer.lr"] = RATE
        if self.learns:
            space["optimizer.lrs.loss"] = LEARNED_RATE
        return space


DIRECTION = ("DirectionRegularized", {"gamma": 0.3}, {"gamma": Range(0.01, 1.0, log=True)})
LANGUAGE = ("LanguageGuidance", {"weight": 1.0}, {"weight": Range(0.01, 10.0, log=True)})

METHODS: dict[str, Method] = {
    # the losses of the reality check's tables
    "Contrastive": Method("ContrastiveLoss"),
    "Triplet": Method("TripletLoss"),
    "NT-Xent": Method("NTXentLoss"),
    "ProxyNCA": Method("ProxyNCALoss", learns=True),
    "Margin": Method("MarginLoss", fixed={"learn_beta": True, "nu": 0.0}, learns=True),
    "Margin / class": Method("MarginLoss", fixed={"learn_beta": True, "nu": 0.0, "num_classes": 100}, learns=True),
    "Normalized softmax": Method("NormalizedSoftmaxLoss", learns=True),
    "CosFace": Method("CosFaceLoss", {"scale": 32.0}, learns=True),
    "ArcFace": Method("ArcFaceLoss", {"scale": 32.0}, learns=True),
    "FastAP": Method("FastAPLoss"),
    "SNR contrastive": Method("SNRContrastiveLoss", fixed={"regularizer": 0.0}),
    "Multi-similarity": Method("MultiSimilarityLoss"),
    "Multi-similarity + miner": Method("MultiSimilarityLoss", miner="MultiSimilarityMiner"),
    "SoftTriple": Method("SoftTripleLoss", fixed={"centers": 10}, learns=True),
    # more proxies
    "Proxy-Anchor": Method("ProxyAnchorLoss", learns=True),
    "ProxyNCA++": Method("ProxyNCAPPLoss", learns=True),
    "ProxyGML": Method("ProxyGMLLoss", learns=True),
    "Proxy repulsion": Method("ProxyRepulsionLoss", learns=True),
    # the unified view's table 1
    "Binomial": Method("BinomialDevianceLoss"),
    "Binomial + VTHM": Method("BinomialDevianceLoss", miner="ValidTripletMiner"),
    "VTHM, equal weights": Method(
        "ContrastiveLoss",
        miner="ValidTripletMiner",
        fixed={"positive_margin": 1.0, "negative_margin": -1.0, "reduction": "sum"},
    ),
    "RAW + semi-hard": Method("RAWLoss", miner="SemiHardMiner"),
    "RAW + distance weighted": Method("RAWLoss", miner="DistanceWeightedMiner"),
    # older ones, and what else the thesis compares
    "Triplet, semi-hard": Method("TripletLoss", miner="SemiHardMiner"),
    "Margin + distance weighted": Method(
        "MarginLoss", miner="DistanceWeightedMiner", fixed={"learn_beta": True, "nu": 0.0}, learns=True
    ),
    "Lifted structure": Method("LiftedStructureLoss"),
    "Generalized lifted structure": Method("GeneralizedLiftedStructureLoss"),
    "N-pairs": Method("NPairsLoss", fixed={"l2": 0.0}),
    "Circle": Method("CircleLoss"),
    # regularizers of the overview
    "Triplet, direction": Method("TripletLoss", around=DIRECTION),
    "Multi-similarity, direction": Method("MultiSimilarityLoss", around=DIRECTION),
    "ProxyNCA, direction": Method("ProxyNCALoss", around=DIRECTION, learns=True),
    "Multi-similarity, language": Method("MultiSimilarityLoss", around=LANGUAGE),
}


def study(
    root: str,
    weights: str,
    methods: Mapping[str, Method] | None = None,
    name: str = NAME,
    allow: tuple[str, ...] = (),
) -> StudyFile:
    """Every loss with its defaults; the search changes them."""
    base = yaml.safe_load(find_recipe("cub128").read_text())
    for left_to_the_study in ("loss", "split", "seed"):
        del base[left_to_the_study]
    base["data"]["init_args"] = {"root": root}
    base["model"]["weights"] = weights
    changes: dict[str, Tree] = {
        each: {"loss": method.config(), **({"model": dict(method.model)} if method.model else {})}
        for each, method in (METHODS if methods is None else methods).items()
    }
    return StudyFile(name, methods=changes, base=base, protocol="fixed-validation", allow=allow)


@cache
def configurations(described: str) -> dict[str, Tree]:
    """The complete configuration of each method of a study, which is described in JSON."""
    return {trial.method: dict(trial.config) for trial in StudyFile(**json.loads(described)).trials()}


def searches(chosen: StudyFile, methods: Mapping[str, Method] | None = None) -> dict[str, Search]:
    """A search for each method, all alike."""
    made, known = {}, METHODS if methods is None else methods
    for method, found in configurations(json.dumps(asdict(chosen))).items():
        config, space = copy.deepcopy(found), known[method].space()
        made[method] = Search(
            method,
            config,
            space,
            Random(),
            PROTOCOLS["fixed-validation"].folds,
            rounds=ROUNDS,
            at_once=ROUNDS,
            begin=default_points(config, space),
        )
    return made


def report(found: Mapping[str, Search], table: Study, at_once: int = 1) -> Tree:
    """The settings that were tried for each loss, and the best of them; ``at_once`` runs shared a GPU."""
    rows = []
    for name, search in found.items():
        tried = history(search, table)
        chosen = best(tried)
        rows.append(
            {
                "method": name,
                "rounds": len(tried),
                "over": is_over(search, table),
                "searched": sorted(search.space),
                "points": [{"point": dict(one.point), "val MAP@R": one.value} for one in tried],
                "best": None if chosen is None else {"point": dict(chosen.point), "val MAP@R": chosen.value},
            }
        )
    results = [each for each in table.results() if each.trial.stage == "search" and each.trial.method in found]
    return {
        "recipe": "cub128",
        "protocol": "fixed-validation",
        "machines": sorted({result.machine for result in results}),
        "seconds": sum(result.seconds for result in results),
        "at once": at_once,
        "trials": len(results),
        "stopped early": sum(result.status == "pruned" for result in results),
        "collapsed": sum(result.status == "failed" for result in results),
        "rows": rows,
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("plan", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--root", default="data/CUB_200_2011", help="where the birds are, on the machine that trains")
    parser.add_argument("--weights", default="imagenet", help="a published name, or a file")
    parser.add_argument("--at-once", type=int, default=1, help="how many workers shared a GPU, for report")
    given = parser.parse_args()
    file = given.folder / "study.yaml"
    if not file.exists():
        write_study(given.folder, study(given.root, given.weights))
    chosen = read_study(file)
    table = open_study(given.folder)
    found = searches(chosen)
    if given.what == "plan":
        added = sum(len(plan(search, table)) for search in found.values())
        print(f"{added} trials added; {sum(is_over(search, table) for search in found.values())} searches are over")
        print(table.counts())
    else:
        write(report(found, table, given.at_once), RESULTS)


if __name__ == "__main__":
    main()
