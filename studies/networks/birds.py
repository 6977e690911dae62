"""EfficientNet-Lite0 against ResNet-50 on birds: three losses, the same search for both, five seeds on sealed classes.

    python -m studies.networks.birds pack PACK                      here: what a machine without network lacks (45 MiB)
    python -m studies.birds.travel search PACK --birds ZIP --out O  there, for --minutes: searches, final training runs
    python -m studies.networks.birds report PACK --at-once N        here: writes results/birds.json, prints the table

The thesis (section 4.2.1, figure 31) finds ResNet-50 ahead of BN-Inception and GoogLeNet, by R@1 without intervals.  Here the
set-up is that of studies/birds: CUB-200-2011 at 128 px, crops of 112 px, 512 dimensions, ten settings for each loss, of
which the best on validation classes is trained with five seeds.  The training runs of EfficientNet-Lite0 are those of
studies/birds (results/search.json and results/verdict.json); only ResNet-50 is trained here, with the same ten settings.
O/study.db is all that comes back; as PACK/study.db it is where the next journey begins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from benchmarks.harness import fill, make_parser, write
from benchmarks.harness import table as markdown
from likewise.protocols.pairs import compare
from likewise.protocols.study import STUDY_DATABASE, Study
from likewise.trunks import TRUNKS, read_state
from studies.birds import search
from studies.birds.claims import METRIC, together
from studies.birds.recent import pack_searches
from studies.birds.record import PLACES, part_of, row_of
from studies.birds.verdict import DIMS, rows_of, settled, table

RESULTS = Path(__file__).parent / "results" / "birds.json"
PAGE = Path(__file__).parents[2] / "docs" / "trunks.md"
NAME = "birds-networks"
DIM = DIMS[0]
OLD, NEW = "efficientnet_lite0", "resnet50"
WEIGHTS = "imagenet-keras"
TITLES = {OLD: "EfficientNet-Lite0", NEW: "ResNet-50"}

LOSSES = ("Contrastive", "Multi-similarity", "Proxy-Anchor")
"""One of each kind: single pairs, pairs weighed by all others of their anchor, and proxies, which the loss learns."""

METHODS = {name: replace(search.METHODS[name], model={"trunk": NEW}) for name in LOSSES}

Report = Mapping[str, Any]


def searches() -> dict[str, search.Search]:
    """The searches of studies/birds for the three losses, with the other network: the same points, none drawn again."""
    tried = {row["method"]: row["points"] for row in json.loads(search.RESULTS.read_text())["rows"]}
    found = search.searches(search.study(PLACES["data.root"], WEIGHTS, METHODS, NAME), METHODS)
    return {name: replace(each, begin=[one["point"] for one in tried[name]]) for name, each in found.items()}


def pack(folder: Path) -> None:
    """The weights, every setting of every search, and the configurations that final training runs start from."""
    folder.mkdir(parents=True, exist_ok=True)
    pack_weights(folder / f"{NEW}.safetensors")
    pack_searches(folder, searches(), (DIM,))


def pack_weights(path: Path) -> None:
    """The trunk's weights without the classifier; kernels in half precision, but variances are too large for that."""
    state = read_state(TRUNKS[NEW].published[WEIGHTS].source.locate())
    trunk = {name: each for name, each in state.items() if not name.startswith("fc1000/")}
    save_file({name: each.half() if each.ndim == 4 else each for name, each in trunk.items()}, path)


def report(study: Study, of_birds: Mapping[str, Report], at_once: int) -> dict[str, Any]:
    """Both networks with each loss that is complete, and how far apart they are.

    Args:
        study: the training runs of ResNet-50.
        of_birds: what studies/birds has published as ``search`` and ``verdict``.
        at_once: how many training runs shared the GPU.
    """
    complete = [each for each in settled(study) if each.trial.stage == "final"]
    rows = [row_of(each, {}, at_once) | {"key": each.key} for each in complete]
    known = [name for name in LOSSES if name in {row["method"] for row in rows}]
    of_search = search.report(searches(), study, at_once)
    of_search["rows"] = [row for row in of_search["rows"] if row["method"] in known]
    old = [row for row in part_of(of_birds["verdict"]["rows"], "verdict") if row["dim"] == DIM]
    both = sides(old, known, OLD) + sides(part_of(rows, "verdict"), known, NEW)
    searched = {row["method"]: row["best"] for row in of_birds["search"]["rows"]}
    return {
        "recipe": "cub128",
        "weights": {OLD: "imagenet", NEW: WEIGHTS},
        "search": of_search,
        "chosen": {
            name: {OLD: searched[name], NEW: row["best"]}
            for name, row in ((row["method"], row) for row in of_search["rows"])
        },
        "table": {
            OLD: [line for line in of_birds["verdict"]["table"] if line["method"] in known and line["dim"] == DIM],
            NEW: table(rows_of(complete, part="verdict"), ("method", "dim")),
        },
        "against": against(both, known),
        "waiting": study.counts()["missing"],
        "rows": rows,
    }


def sides(rows: Sequence[Mapping[str, Any]], losses: Sequence[str], trunk: str) -> list[dict[str, Any]]:
    """The rows of some losses as training runs of one network."""
    return [{**row, "trunk": trunk} for row in rows if row["method"] in losses]


def against(both: Sequence[Mapping[str, Any]], losses: Sequence[str]) -> dict[str, Any]:
    """ResNet-50 less EfficientNet-Lite0, paired by seed: with each loss (Holm's correction), and with all."""

    def ask(some: Sequence[Mapping[str, Any]], metric: str) -> dict[str, Any]:
        found = compare(some, NEW, OLD, metric, by="trunk")
        return {"sentence": str(found), "verdict": found.verdict, "p": found.p} | {
            "pairs": found.pairs,
            "difference": asdict(found.difference),
        }

    made = {}
    for metric in (METRIC, "test R@1"):
        each = [{"loss": name, **ask([row for row in both if row["method"] == name], metric)} for name in losses]
        made[metric] = {"losses": together(each)} | ({"all": ask(both, metric)} if losses else {})
    return made


def section(found: Report) -> str:
    """What the page says: the question, the table, the answer."""
    of = {trunk: {line["method"]: line for line in found["table"][trunk]} for trunk in (OLD, NEW)}
    rows = []
    for one in found["against"][METRIC]["losses"]:
        cells = [percent(of[trunk][one["loss"]][metric]) for metric in ("MAP@R", "R@1") for trunk in (OLD, NEW)]
        rows.append([one["loss"], *cells, difference(one), one["verdict"]])
    head = ["loss", *(f"{metric}, {TITLES[trunk]}" for metric in ("MAP@R", "R@1") for trunk in (OLD, NEW))]
    lines = markdown([*head, "difference of MAP@R", f"{TITLES[NEW]} is"], rows, words=(0, 6))
    answers = [titled(found["against"][metric]["all"]["sentence"]) for metric in (METRIC, "test R@1")]
    collapsed, trials = found["search"]["collapsed"], found["search"]["trials"]
    return (
        f"{INTRODUCTION}\n\n{lines}\n\nOver these losses together, {'; '.join(answers)}. In the search, {collapsed} of "
        f"{TITLES[NEW]}'s {trials} training runs collapsed: every embedding became the same."
    )


INTRODUCTION = f"""## Which network?

The thesis (section 4.2.1, figure 31) reports that ResNet-50 beats BN-Inception and GoogLeNet with every loss, by R@1 and without
intervals. This comparison gives two networks equal terms: CUB-200-2011 at 128 px, crops of 112 px, 512 dimensions, frozen batch
norms, and the same ten settings per loss. The setting that is best on validation classes is trained with five seeds and measured
on sealed test classes.

- {TITLES[OLD]} has 3.4 million parameters; its training runs are those of the [reality check](reality-check.md).
- {TITLES[NEW]} has 23.5 million parameters and starts from `{WEIGHTS}`. The two networks start from different ImageNet weights, so
  the answer is about a network together with its weights.
- Numbers are percentages with 95% intervals over seeds. Differences are {TITLES[NEW]} minus {TITLES[OLD]}, paired by seed; the
  verdicts are corrected for {len(LOSSES)} losses (Holm).

To repeat it: `python -m studies.networks.birds`; results: `studies/networks/results/birds.json`."""


def titled(sentence: str) -> str:
    """A sentence with the names of networks as people write them."""
    for trunk, title in TITLES.items():
        sentence = sentence.replace(trunk, title)
    return sentence


def percent(interval: Mapping[str, float]) -> str:
    """A mean in per cent with half its interval."""
    return f"{100 * interval['mean']:.1f} ± {50 * (interval['high'] - interval['low']):.1f}"


def difference(one: Mapping[str, Any]) -> str:
    """A difference in points with its interval."""
    low, mean, high = (100 * one["difference"][name] for name in ("low", "mean", "high"))
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"


def main() -> None:
    parser = make_parser(__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    packing = what.add_parser("pack", help="what a machine without network lacks, in one folder")
    packing.add_argument("folder", type=Path)
    reporting = what.add_parser("report", help="write results/birds.json and the table of docs/trunks.md")
    reporting.add_argument("folder", type=Path)
    reporting.add_argument("--at-once", type=int, required=True, help="how many training runs shared the GPU")
    reporting.add_argument("--out", type=Path, default=RESULTS)
    reporting.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    if given.what == "pack":
        pack(given.folder)
        return
    of_birds = {
        name: json.loads(search.RESULTS.with_name(f"{name}.json").read_text()) for name in ("search", "verdict")
    }
    found = report(Study(given.folder / STUDY_DATABASE), of_birds, given.at_once)
    write(found, given.out)
    if not found["rows"]:
        print(f"no loss is complete; {found['waiting']} training runs wait")
        return
    print(section(found))
    fill(given.page, {"networks": section(found)})


if __name__ == "__main__":
    main()
