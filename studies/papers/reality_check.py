"""Make the tables of the reality check again: 14 losses, searched and repeated with 4 folds on each data set.

    python -m studies.papers.reality_check --root CUB200=birds Cars196=cars --dry-run
    python -m studies.papers.reality_check --scale tiny

For every loss of its tables (``reality-check/losses``) 50 settings are tried by Bayesian search, each the mean of
4 contiguous folds; then the best one is trained 10 times with 4 folds.  The table of a data set has every loss separated
and concatenated, with 95% intervals over the 10 repeats, and above them the network before training, its features reduced
by PCA to 512 and to 128.  A call that was stopped continues.  Where the contrastive and the triplet loss are among them, the
results are drawn next to what papers claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise import app
from likewise.app.search_space import LOSS_LEARNING_RATE, resolve_space
from likewise.app.study_io import make_study
from likewise.metrics import t_interval
from likewise.protocols import Result
from studies.papers.planning import (
    IMAGES,
    TINY_STEPS,
    describe,
    make_parser,
    markdown,
    out_of,
    overlay_root,
    read_roots,
    stand_in,
    tiny_base,
    training_seconds,
)
from studies.papers.pretrained import measure_pretrained
from studies.published import draw_improvements, draw_trend, papers_versus_reality

DATA = {"CUB200": "cub", "Cars196": "cars", "StanfordOnlineProducts": "sop"}
"""The data sets of its tables, and the recipes of their set-ups."""

METRICS = ("R@1", "RP", "MAP@R")
"""The columns of its tables; it writes P@1 for R@1."""

LOSSES = tuple(name.rpartition("/")[2] for name in app.list_recipes() if name.startswith("reality-check/losses/"))

LONGEST = 1_000 * 100 * 32
"""The most images that a training of its recipes sees."""


@dataclass(frozen=True)
class Scale:
    """How much is trained.

    Args:
        rounds: settings that are tried of each loss.
        seeds: repeats of the best setting.
        protocol: the folds.

    Examples:
        >>> SCALES["paper"].trainings(14)
        3360
    """

    rounds: int
    seeds: int
    protocol: str | Mapping[str, Any]

    @property
    def folds(self) -> int:
        """The number of folds."""
        return 4 if isinstance(self.protocol, str) else int(self.protocol["folds"])

    def trainings(self, losses: int) -> int:
        """The number of training runs for so many losses on one data set."""
        return losses * self.folds * (self.rounds + self.seeds)


SCALES = {
    "paper": Scale(50, 10, "reality-check"),
    "tiny": Scale(2, 2, {"folds": 2, "contiguous": True}),
}


def base_of(data: str, root: str | None, tiny: bool) -> dict[str, Any]:
    """What all training runs on a data set share, as the base of a study.

    Examples:
        >>> base_of("CUB200", "birds", False)["data"]
        {'init_args': {'root': 'birds'}}
    """
    return overlay_root(f"reality-check/{DATA[data]}", root, tiny_base(root, images=4) if tiny else None)


def configure(base: Mapping[str, Any], loss: str, scale: Scale, tiny: bool) -> dict[str, Any]:
    """The complete configuration of a loss before the search.

    Examples:
        >>> base = base_of("CUB200", None, True)
        >>> configure(base, "arcface", SCALES["tiny"], True)["loss"]["class_path"]
        'likewise.losses.ArcFaceLoss'
    """
    changes: dict[str, Any] = {"config": f"reality-check/losses/{loss}"}
    if tiny:
        changes["sampler"] = TINY_STEPS
    study = make_study({"schema": 2, "base": base, "methods": {loss: changes}, "protocol": scale.protocol})
    return study.configuration(loss)


def space_of(config: Mapping[str, Any]) -> list[str]:
    """What is searched: all that the loss and its miner declare, and the learning rates of what the loss learns.

    Examples:
        >>> base = base_of("CUB200", "birds", False)
        >>> space_of(configure(base, "arcface", SCALES["paper"], False))
        ['loss.margin', 'loss.scale', 'optimizer.lrs.proxies=0.0001:1.0:log']
    """
    declared = [path for path in resolve_space(dict(config)) if not path.startswith("optimizer.")]
    low, high = LOSS_LEARNING_RATE.low, LOSS_LEARNING_RATE.high
    return declared + [f"optimizer.lrs.{name}={low}:{high}:log" for name in config["optimizer"]["lrs"]]


def run(
    out: Path,
    roots: Mapping[str, str | None],
    losses: Sequence[str],
    scale: Scale,
    tiny: bool,
    execution: app.Execution,
) -> None:
    """Search and repeat every loss on every data set, and print the tables."""
    for data, root in roots.items():
        base, methods = base_of(data, root, tiny), {}
        for loss in losses:
            config = configure(base, loss, scale, tiny)
            space, folder = space_of(config), out / data / "search" / loss
            print(f"{data}, {loss}: search of {', '.join(space)}")
            found = app.tune(
                config,
                folder,
                rounds=scale.rounds,
                search=space,
                name=loss,
                protocol=scale.protocol,
                execution=execution,
            )
            if found.best is None:
                raise SystemExit(f"no setting of {loss} could be trained; {folder} has the reasons")
            methods[loss] = app.configure(files=[folder / "best.yaml"])
        study = {
            "name": f"reality-check-{data}",
            "what": f"The table of the reality check for {data}, made again.",
            "methods": {name: {**config, "seed": 0, "out": None} for name, config in methods.items()},
            "seeds": list(range(scale.seeds)),
            "protocol": scale.protocol,
        }
        report = app.run_study(study, out / data / "final", execution=execution)
        config = next(iter(methods.values()))
        dim = int(config["model"]["dim"])
        sizes = {"concatenated": scale.folds * dim, "separated": dim}
        pretrained = measure_pretrained(out / data / "pretrained", config, sizes)
        text = stand_in(tiny, root) + table_of(data, report.results, pretrained)
        (report.folder / "table.md").write_text(text, encoding="utf-8")
        draw(report.folder, data, report.rows)
        print(f"\n{text}\n{report.folder / 'table.md'}, {report.page}")


def draw(folder: Path, data: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw the results next to what papers claim, if the contrastive and the triplet loss are among them."""
    own = [row for row in rows if row.get("combination") != "concatenated" and row["stage"] == "final"]
    if {"contrastive", "triplet"} <= {row["method"] for row in own}:
        series = papers_versus_reality(own, data=data)
        (folder / "papers-versus-reality.svg").write_bytes(draw_improvements(series))
        (folder / "trend.svg").write_bytes(draw_trend(own, data=data))


def table_of(data: str, results: Sequence[Result], pretrained: Mapping[str, Mapping[str, float]] | None = None) -> str:
    """The table of a data set as the paper prints it: P@1, RP and MAP@R in per cent, with 95% intervals over repeats.

    Args:
        data: the data set.
        results: of final trials, and of their folds together.
        pretrained: metrics of the network before training, ``"concatenated"`` and ``"separated"``: at the sizes of these.

    Examples:
        >>> from likewise.protocols import Trial
        >>> metrics = {"R@1": 0.5, "RP": 0.3, "MAP@R": 0.2}
        >>> print(table_of("CUB200", [Result(Trial("triplet", {}), test=metrics)]).splitlines()[-1])
        | triplet | – | – | – | 50.00 | 30.00 | 20.00 |
    """
    repeats: dict[tuple[str, bool, str], dict[int, list[float]]] = {}
    for result in results:
        trial = result.trial
        if result.status == "done" and trial.stage == "final":
            joined = trial.labels.get("combination") == "concatenated"
            for metric in METRICS:
                seeds = repeats.setdefault((trial.method, joined, metric), {})
                seeds.setdefault(trial.seed, []).append(result.test[metric])
    names = ["P@1", "RP", "MAP@R"]
    head = [data, *(f"{name}, concatenated" for name in names), *(f"{name}, separated" for name in names)]
    lines = [head]
    if pretrained:
        columns = [pretrained[name][metric] for name in ("concatenated", "separated") for metric in METRICS]
        lines.append(["pretrained", *(f"{100 * value:.2f}" for value in columns)])
    for method in dict.fromkeys(name for name, _, _ in repeats):
        cells = [repeats.get((method, joined, metric), {}) for joined in (True, False) for metric in METRICS]
        lines.append([method, *map(_cell, cells)])
    return markdown(lines)


def _cell(seeds: Mapping[int, Sequence[float]]) -> str:
    """The mean over repeats, each the mean of its folds, and the half width of its interval."""
    if not seeds:
        return "–"
    found = t_interval([sum(folds) / len(folds) for folds in seeds.values()])
    half = f" ± {100 * (found.high - found.mean):.2f}" if len(seeds) > 1 else ""
    return f"{100 * found.mean:.2f}{half}"


def count(
    out: Path, roots: Mapping[str, str | None], losses: Sequence[str], scale: Scale, minutes: float | None
) -> str:
    """How many training runs there are, how many are done, and how many GPU hours the rest would take.

    Without ``minutes`` or a finished run the estimate is a bound: runs end when validation no longer improves, at
    the latest after 1,000 epochs of 100 batches of 32.

    Examples:
        >>> print(count(Path("nowhere"), {"CUB200": "birds"}, LOSSES, SCALES["paper"], 30))
        CUB200: 14 losses x 4 folds x (50 settings + 10 repeats) = 3,360 training runs
        3,360 training runs, 0 done; about 1,680 GPU hours for the rest, at 30.0 minutes each as given
    """
    each = scale.trainings(len(losses))
    lines = [
        f"{data}: {len(losses)} losses x {scale.folds} folds x ({scale.rounds} settings + {scale.seeds} repeats) = "
        f"{each:,} training runs"
        for data in roots
    ]
    longest = None
    if scale is SCALES["paper"] and minutes is None:
        lines.append("training runs end early; the estimate is for 1,000 epochs, the most")
        longest = sum(each * training_seconds(data, "bninception", LONGEST / IMAGES[data]) for data in roots)
    return describe(lines, out, each * len(roots), minutes, longest)


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line, and plan or run the study."""
    parser = make_parser("reality_check", str(__doc__).split("\n")[0], DATA)
    parser.add_argument("--losses", metavar="NAME", nargs="+", default=list(LOSSES), choices=LOSSES, help="only these")
    options = parser.parse_args(words)
    tiny, out = options.scale == "tiny", out_of(options, "reality-check")
    roots = read_roots(parser, options, list(DATA), ["CUB200"])
    if options.dry_run:
        print(count(out, roots, options.losses, SCALES[options.scale], options.minutes_each))
        return 0
    run(out, roots, options.losses, SCALES[options.scale], tiny, app.Execution(workers=options.workers))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
