"""Make tables 6 to 14, 20 and 21 and figures 27 to 31 of the thesis again, from one command and folders of data.

    python -m studies.papers.thesis --root CUB200=birds Cars196=cars StanfordOnlineProducts=products --dry-run
    python -m studies.papers.thesis --scale tiny
    python -m studies.papers.thesis --printed --out thesis-as-printed

Ten losses are trained with three trunks and four embedding sizes on each data set (tables 6 to 10, 20, 21; two more, of SOP,
which the thesis does not print).  On CUB200, with BN-Inception and 512 dimensions, follow 10 folds of the three best
losses (tables 12 and 13) and MultiSimilarity with 30, 20, 10 and 5% of the training classes for validation (table 14); table
11 ranks the losses.  A call that was stopped continues.

The thesis keeps the model that is best on the test set.  Here a tenth of the training classes chooses it, as it proposes in
section 5.2; ``--protocol classic`` trains on all classes and keeps the last epoch.  Its table 14 has one draw of the classes for
each ratio; here there are ``--draws`` of them, with the standard deviation.  ``--printed`` makes the tables and figures from
the numbers that the thesis prints, without training.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise import app
from studies.papers.planning import (
    TINY_STEPS,
    Experiment,
    Row,
    Tree,
    describe_experiments,
    make_parser,
    out_of,
    overlay_root,
    read_roots,
    stand_in,
    tiny_base,
)
from studies.papers.thesis_tables import figures_of, tables_of
from studies.published import DATA as SHORT_NAMES
from studies.published import published

DATA = {"CUB200": "cub", "Cars196": "cars", "StanfordOnlineProducts": "sop"}
"""The data sets, and the recipes of their set-ups."""

TRUNKS = {"resnet50": "mlp", "bninception": "lenet", "googlenet": "linear"}
"""The trunks, and what stands in for them at ``--scale tiny``."""

LOSSES = {
    "Contrastive": "contrastive",
    "Triplet": "triplet",
    "LiftedStructure": "lifted-structure",
    "NPair": "npair",
    "ProxyNCA": "proxy-nca",
    "Margin": "margin",
    "ArcFace": "arcface",
    "MultiSimilarity": "multi-similarity",
    "SoftTriple": "soft-triple",
    "ProxyAnchor": "proxy-anchor",
}
"""The losses in the order of the tables, by year, and their recipes."""

BEST_THREE = ("MultiSimilarity", "SoftTriple", "ProxyAnchor")
SHARES = {"70/30": 0.3, "80/20": 0.2, "90/10": 0.1, "95/5": 0.05}
"""The ratios of table 14, and the share of the classes for validation."""


@dataclass(frozen=True)
class Scale:
    """How much is trained.

    Args:
        sizes: of the embeddings, in all tables but 12 to 14.
        size: of the embeddings in tables 12 to 14.
        folds: of tables 12 and 13.
        draws: of the validation classes, for each ratio of table 14.

    Examples:
        >>> SCALES["paper"].sizes
        (64, 128, 512, 1024)
    """

    sizes: tuple[int, ...]
    size: int
    folds: str | Mapping[str, Any]
    draws: int


SCALES = {
    "paper": Scale((64, 128, 512, 1024), 512, "thesis-folds", 10),
    "tiny": Scale((8, 16), 16, {"folds": 2}, 2),
}


@dataclass(frozen=True)
class Choices:
    """What is chosen of the study.

    Args:
        losses: their names.
        trunks: their names.
        seeds: number of training runs of each cell of the grids.
        protocol: of the grids: ``"fixed-validation"`` or ``"classic"``.

    Examples:
        >>> Choices().seeds
        1
    """

    losses: Sequence[str] = tuple(LOSSES)
    trunks: Sequence[str] = tuple(TRUNKS)
    seeds: int = 1
    protocol: str = "fixed-validation"


def recipe_of(loss: str, trunk: str) -> str:
    """The recipe of a loss: one that draws several images of each class has a file for each size of the batch.

    Examples:
        >>> recipe_of("Margin", "resnet50"), recipe_of("ProxyAnchor", "resnet50")
        ('thesis/losses/margin-20x5', 'thesis/losses/proxy-anchor')
    """
    balanced = f"thesis/losses/{LOSSES[loss]}-{'20x5' if trunk == 'resnet50' else '36x5'}"
    return balanced if balanced in app.list_recipes() else f"thesis/losses/{LOSSES[loss]}"


def plan(roots: Mapping[str, str | None], choices: Choices, scale: Scale, *, tiny: bool) -> list[Experiment]:
    """All studies of the tables: grids of every data set and trunk, and on CUB200 folds and splits.

    Examples:
        >>> whole = plan(dict.fromkeys(DATA, "data"), Choices(), SCALES["paper"], tiny=False)
        >>> sum(each.trainings for each in whole if each.folder.endswith("grid")), sum(each.trainings for each in whole)
        (360, 430)
    """

    def make(folder: str, data: str, trunk: str, losses: Sequence[str], **study: Any) -> Experiment:
        changes = tiny_base(roots[data], trunk=TRUNKS[trunk], dim=scale.size) if tiny else None
        methods: Tree = {name: {"config": recipe_of(name, trunk)} for name in losses}
        if tiny:
            methods = {name: {**part, "sampler": TINY_STEPS} for name, part in methods.items()}
        name = folder.replace("/", "-")
        base = overlay_root(f"thesis/{DATA[data]}-{trunk}", roots[data], changes)
        content: Tree = {"name": f"thesis-{name}", "base": base, "methods": methods, "metric": "R@1", **study}
        return Experiment(folder, content, data, trunk)

    seeds = list(range(choices.seeds))
    found = []
    for data in roots:
        for trunk in choices.trunks:
            options: Tree = {"vary": {"model.dim": list(scale.sizes)}, "seeds": seeds, "protocol": choices.protocol}
            found.append(make(f"{data}/{trunk}/grid", data, trunk, choices.losses, **options))
    three = [name for name in BEST_THREE if name in choices.losses]
    if "CUB200" in roots and "bninception" in choices.trunks:
        if three:
            found.append(make("CUB200/bninception/folds", "CUB200", "bninception", three, protocol=scale.folds))
        if "MultiSimilarity" in choices.losses:
            found += [
                make(
                    f"CUB200/bninception/splits/{ratio.replace('/', '-')}/{draw}",
                    "CUB200",
                    "bninception",
                    ["MultiSimilarity"],
                    protocol={"validation": share, "seed": draw},
                )
                for ratio, share in SHARES.items()
                for draw in range(scale.draws)
            ]
    return found


def part_of(experiment: Experiment) -> Row:
    """What its rows are for: the grids, the folds, or a ratio of the splits.

    Examples:
        >>> part_of(Experiment("CUB200/bninception/splits/90-10/3", {}, "CUB200", "bninception"))
        {'part': 'splits', 'case': '90/10', 'draw': 3}
    """
    _, _, part, *rest = experiment.folder.split("/")
    return {"part": part, **({"case": rest[0].replace("-", "/"), "draw": int(rest[1])} if rest else {})}


def printed_rows() -> list[Row]:
    """The numbers of the thesis in the form of the rows of the study, with the parts that its tables belong to.

    Examples:
        >>> len([row for row in printed_rows() if row["part"] == "grid"])
        280
    """
    parts = {"12": "summary", "13": "folds", "14": "splits"}
    tables = (6, 7, 8, 9, 10, 12, 13, 14, 20, 21)
    names = {short: name for name, short in zip(SHORT_NAMES.values(), SHORT_NAMES, strict=True)}
    return [
        {**row, "data": names[str(row["data"])], "part": parts.get(str(row["table"]), "grid"), "draw": 0}
        for row in published("thesis", table=tables)
    ]


def write(out: Path, rows: Sequence[Row], note: str) -> str:
    """Write the tables and the figures, and return the text of the tables."""
    out.mkdir(parents=True, exist_ok=True)
    text = note + tables_of(rows)
    (out / "tables.md").write_text(text, encoding="utf-8")
    for name, picture in figures_of(rows).items():
        (out / f"{name}.svg").write_bytes(picture)
    return text


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line, and plan or run the study."""
    parser = make_parser("thesis", str(__doc__).split("\n")[0], DATA)
    parser.add_argument("--losses", metavar="NAME", nargs="+", default=list(LOSSES), choices=LOSSES, help="only these")
    parser.add_argument("--trunks", metavar="NAME", nargs="+", default=list(TRUNKS), choices=TRUNKS, help="only these")
    parser.add_argument("--seeds", metavar="N", type=int, default=1, help="training runs of each cell (the thesis: 1)")
    parser.add_argument("--draws", metavar="N", type=int, help="draws for each ratio of table 14 (10; the thesis: 1)")
    parser.add_argument("--protocol", choices=("fixed-validation", "classic"), default="fixed-validation")
    parser.add_argument(
        "--printed", action="store_true", help="tables and figures of the numbers that the thesis prints"
    )
    options = parser.parse_args(words)
    out = out_of(options, "thesis")
    if options.printed:
        print(f"{write(out, printed_rows(), '')}\n{out}")
        return 0
    roots = read_roots(parser, options, list(DATA), ["CUB200"])
    tiny, scale = options.scale == "tiny", SCALES[options.scale]
    if options.draws is not None:
        scale = Scale(scale.sizes, scale.size, scale.folds, _positive(parser, "--draws", options.draws))
    seeds = _positive(parser, "--seeds", options.seeds)
    experiments = plan(roots, Choices(options.losses, options.trunks, seeds, options.protocol), scale, tiny=tiny)
    if options.dry_run:
        print(describe_experiments(experiments, out, options.minutes_each, tiny=tiny))
        return 0
    execution = app.Execution(workers=options.workers)
    rows = [{**row, **part_of(each)} for each in experiments for row in each.run(out, execution)]
    print(f"{write(out, rows, stand_in(tiny, options.folder))}\n{out}")
    return 0


def _positive(parser: argparse.ArgumentParser, name: str, value: int) -> int:
    if value < 1:
        parser.error(f"{name} must be a whole number ≥ 1, but it is {value}")
    return value


if __name__ == "__main__":
    raise SystemExit(main())
