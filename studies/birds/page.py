"""One page about the whole study on birds, which fetches nothing: docs/assets/reality-check.html.

    python -m studies.birds.page

from results/search.json, verdict.json, models.json and parity.json, as far as they are there, and
the figures that plot_parity.py, plot_verdict.py and plot_models.py have drawn.  It also fills the statement of fairness on
docs/reality-check.md.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import DOCS, MIB, fill, make_parser, read, table, versions
from likewise import __version__, losses
from likewise.app.conditions import read_conditions
from likewise.data import TRANSFORMS
from likewise.protocols import Leaderboard, rank
from likewise.protocols.fairness import Difference
from likewise.protocols.pairs import compare_all
from likewise.protocols.protocol import PROTOCOLS
from likewise.report.study import Study, StudyFigure, StudyTable, write_study
from studies.birds import plot_models, plot_parity, plot_verdict, recent
from studies.birds.record import part_of
from studies.birds.search import LEARNED_RATE, METHODS, RATE, searches, study
from studies.birds.verdict import DIMS, final

RESULTS = Path(__file__).parent / "results"
ASSETS = DOCS / "assets"
OUT = ASSETS / "reality-check.html"
PAGE = DOCS / "reality-check.md"
EQUAL, UNEQUAL = "What was equal for all methods", "What was not"
LARGEST = 6 * MIB
METRIC = "test MAP@R"
COMMANDS = """\
python -m studies.birds.search plan SEARCH --root BIRDS
likewise study run SEARCH --workers 4
python -m studies.birds.search report SEARCH --at-once 4
python -m studies.birds.verdict plan VERDICT --root BIRDS
likewise study run VERDICT --workers 4
python -m studies.birds.verdict join VERDICT
python -m studies.birds.verdict report VERDICT --at-once 4
python -m studies.birds.models VERDICT --train --before -o studies/birds/results/models.json
python -m studies.birds.plot_verdict
python -m studies.birds.plot_findings
python -m studies.birds.plot_models
python -m studies.birds.page"""

FIGURES = {
    "birds-verdict.svg": (
        "Every method on the test birds",
        "MAP@R in 512 and in 128 dimensions: the mean of five seeds and its 95% interval.",
        "python -m studies.birds.plot_verdict",
    ),
    "birds-claims.svg": (
        "Every comparison",
        "Differences in MAP@R with their 95% intervals, by what is compared; of newer losses against contrastive the color is that "
        "of the verdict after Holm's correction.",
        "python -m studies.birds.plot_findings",
    ),
    "birds-further.svg": (
        "How far one configuration goes",
        "MAP@R on test classes of what helped on validation classes, all together and in parts.",
        "python -m studies.birds.plot_findings",
    ),
    "birds-papers.svg": (
        "Papers versus reality",
        "By how much each method beats the contrastive and the triplet loss, as papers claim it and as it was measured.",
        "python -m studies.birds.plot_verdict",
    ),
    "birds-validation.svg": (
        "What validation tells",
        "MAP@R of each method in 512 dimensions on validation and on test classes, the mean of the four seeds that the search has "
        "not seen; by name the ten that are best on validation classes.",
        "python -m studies.birds.plot_verdict",
    ),
    "birds-map.svg": (
        "The same test birds in several models",
        "t-SNE of the embeddings of seed 0 in 512 dimensions. Places and distances across a map mean little; whether a class "
        "holds together, and whether the nearest image is of another class (a cross), means something.",
        "python -m studies.birds.plot_models",
    ),
    "birds-lens.svg": (
        "What the losses do to these models",
        "Shades: how similar the pairs of the test set are, each side relative to its most frequent similarity. Lines: how "
        "strongly the loss, with the numbers that the search found, pulls a positive pair together or pushes a negative pair "
        "apart at that similarity: the mean over batches of test birds, relative to its largest value, which stands in the "
        "corner, and the band of most weights.",
        "python -m studies.birds.plot_models",
    ),
    "birds-parity.svg": (
        "The same losses of two libraries",
        "MAP@R of three seeds, trained with our losses and with pytorch-metric-learning's.",
        "python -m studies.birds.plot_parity",
    ),
}
"""Each figure with its title, what is to be seen, and the command that draws it again."""

Report = Mapping[str, Any]


# ---- the training runs, as they were configured


def trials(verdict: Report, search: Report | None) -> dict[int, dict[str, list[dict[str, Any]]]]:
    """By size and method, the descriptions of the runs, rebuilt from the recorded settings as in verdict.py."""
    found = searches(study("data/CUB_200_2011", "imagenet"))
    spent = {
        row["method"]: {"rounds": row["rounds"], "searched": row["searched"]}
        for row in (search or {"rows": ()})["rows"]
    }
    made: dict[int, dict[str, list[dict[str, Any]]]] = {dim: {} for dim in DIMS}
    for row in part_of(verdict["rows"], "verdict"):
        if row["dim"] not in made or row["status"] != "done":
            continue
        name, seed = row["method"], row["seed"]
        config = final(found[name], verdict["points"][name], seed, "verdict", row["dim"]).config
        said = {"config": config, "seed": seed, "openings": row["openings"], "tuned_on_test": row["tuned_on_test"]}
        made[row["dim"]].setdefault(name, []).append(said | ({"search": spent[name]} if name in spent else {}))
    return made


def command_of(method: str, point: Mapping[str, Any], dim: int, seed: int) -> str:
    """The command that trains one method once."""
    asked = {**METHODS, **recent.METHODS}[method]
    given = [*options("loss", asked.config()), "--model.dim", str(dim), "--seed", str(seed)]
    for name, value in asked.model.items():
        given += [f"--model.{name}", as_word(value)]
    for path, value in point.items():
        given += [f"--{path}", as_word(value)]
    last = dict(zip(given[::2], given[1::2], strict=True))  # what was searched replaces what the method starts from
    words = ["likewise", "train", "--config", "cub128", "--data.root", "BIRDS", "--split.validation", "0.1"]
    return shlex.join([*words, *(word for pair in last.items() for word in pair)])


def as_word(value: Any) -> str:
    """A value as a word of a command."""
    return json.dumps(value) if isinstance(value, bool | list | tuple) else str(value)


def options(key: str, spec: Mapping[str, Any]) -> list[str]:
    """A class and its arguments as options of a command."""
    words = [f"--{key}", spec["class_path"]]
    for name, value in (spec.get("init_args") or {}).items():
        if isinstance(value, Mapping):
            words += options(f"{key}.{name}", value)
        else:
            words += [f"--{key}.{name}", as_word(value)]
    return words


def rows_of(verdict: Report) -> list[dict[str, Any]]:
    """The table of all final runs, without the folders of the machine that trained them."""
    kept = [
        {name: value for name, value in row.items() if name != "part"} for row in part_of(verdict["rows"], "verdict")
    ]
    return [
        row | {"command": command_of(row["method"], verdict["points"][row["method"]], row["dim"], row["seed"])}
        for row in kept
    ]


# ---- tables


def from_markdown(text: str) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table as pages have it."""
    head, _, *rows = [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in text.strip().splitlines()
    ]
    return head, rows


def shown(text: str, caption: str = "", command: str = "") -> StudyTable:
    return StudyTable(*from_markdown(text), caption=caption, command=command)


def tables_of(
    search: Report | None, verdict: Report | None, parity: Report | None, config: Report | None
) -> dict[str, StudyTable]:
    """Everything that the page has no section of its own for."""
    made: dict[str, StudyTable] = {}
    command = "python -m studies.birds.plot_verdict"
    if verdict is not None and verdict["claims"]:
        rows = [
            [one["question"], one["claimed by"], plot_verdict.sentence(one["sentence"])] for one in verdict["claims"]
        ]
        said = (
            "Differences are paired by seed (for sizes and tuning: by method), in points of MAP@R on the test classes."
        )
        made["What papers claim, tested"] = StudyTable(
            ["question", "asked by", "answer"], rows, said, command, words=True
        )
    if config is not None:
        made[EQUAL] = StudyTable(["setting", "for all"], equal(config, search), words=True)
        made[UNEQUAL] = StudyTable(["what", "how"], unequal(search), words=True)
    if verdict is not None:
        made["The five best in four sizes"] = shown(plot_verdict.sizes_table(verdict), "In percent.", command)
        if verdict["separated"]:
            said = "Four models of 128 dimensions, each trained on three quarters of the classes: the mean of their metrics, and the metrics of their concatenated embeddings."
            made["The reality check's own protocol"] = shown(plot_verdict.folds_table(verdict), said, command)
        if any(each["validation"] for each in verdict.get("further", ())):
            said = "Changes outside the loss, one at a time on validation classes (three seeds); all that helped (✓) on test classes."
            made["How far it goes"] = shown(plot_verdict.further_table(verdict), said, command)
        made["What it took"] = shown(
            plot_verdict.cost_table(verdict), f"On {' and '.join(verdict['cost']['machines'])}.", command
        )
        if verdict["cost"]["one training"] is not None:
            made["What it would take with larger images and ResNet-50 (an estimate)"] = StudyTable(
                plot_models.ESTIMATE_HEAD,
                plot_models.estimate(verdict["cost"]),
                plot_models.ASSUMED,
                "python -m studies.birds.plot_models",
            )
    if parity is not None:
        for metric in ("MAP@R", "R@1"):
            made[f"Parity: the same losses of two libraries, {metric}"] = shown(
                plot_parity.table_of(dict(parity), metric),
                plot_parity.words(dict(parity)),
                "python -m studies.birds.plot_parity",
            )
    return made


def equal(config: Report, search: Report | None) -> list[list[str]]:
    """What all training runs share, as their configurations have it."""
    model, sampler, training, optimizer = (
        config["model"],
        config["sampler"]["init_args"],
        config["train"],
        config["optimizer"],
    )
    rows = [
        [
            "network",
            f"{model['trunk']}, pretrained on ImageNet, {model['pool']} pooling, {model['head']} head, batch norm frozen",
        ],
        ["embedding sizes", ", ".join(map(str, DIMS))],
        [
            "images and augmentation",
            f"the transform {config['transform']}: crops of {TRANSFORMS[config['transform']].train.size} px",
        ],
        [
            "batches",
            f"{sampler['classes']} classes × {sampler['per_class']} images, {sampler['steps']} batches per epoch, {training['epochs']} epochs",
        ],
        [
            "optimizer",
            f"{optimizer['name']}, weight decay {optimizer['weight_decay']:g}, {config['schedule']['name']} decay of the learning rate",
        ],
        [
            "validation classes",
            f"{100 * config['split']['validation']:g}% of the training classes, the same for all; the epoch is chosen on them by {training['metric']}",
        ],
        ["precision", str(training["precision"])],
    ]
    if search is not None:
        rounds = sorted({row["rounds"] for row in search["rows"]})
        rows.append(["settings per search", " to ".join(map(str, dict.fromkeys((rounds[0], rounds[-1]))))])
    return rows


def unequal(search: Report | None) -> list[list[str]]:
    """What differs, and is not the method itself."""
    learners = [name for name, method in METHODS.items() if method.learns]
    own = {name: method.model for name, method in {**METHODS, **recent.METHODS}.items() if method.model}
    models = "; ".join(
        f"{name} {', '.join(f'{key}: {str(value).lower()}' for key, value in each.items())}"
        for name, each in own.items()
    )
    lengths = first_lengths().items()
    (short, least), (long, most) = (pick(lengths, key=lambda each: each[1]) for pick in (min, max))
    rows = [
        [
            "learning rate",
            f"searched for every method from {RATE.low:g} to {RATE.high:g}; the range was widened downward to {RATE.low:g} for every method after the first five settings of most methods",
        ],
        [
            "learning rate of the loss",
            f"searched from {LEARNED_RATE.low:g} to {LEARNED_RATE.high:g} for the {len(learners)} methods with learned parameters",
        ],
        [
            "initial length of proxies",
            f"{least:.1f} ({short}) to {most:.1f} ({long}), the default of each loss; only directions matter, but a longer proxy turns "
            "more slowly at the same rate",
        ],
        [
            "first setting of a search",
            "the defaults of each loss; CosFace and ArcFace use scale 32 instead of 64, as in the section on parity",
        ],
        [
            "embedding size",
            f"all searches use {DIMS[0]} dimensions; other sizes and folds reuse their settings",
        ],
        [
            "model",
            f"as above, except for losses that require another setting: {models}",
        ],
        [
            "draws",
            "methods with the same number of searched parameters use the same draws, scaled to their own ranges",
        ],
    ]
    if search is not None:
        counts = sorted(len(row["searched"]) for row in search["rows"])
        rows.append(
            [
                "searched parameters",
                f"{counts[0]} to {counts[-1]} per method; with more parameters, ten settings cover less of the space",
            ]
        )
        ended = sorted(sum(one["val MAP@R"] is not None for one in row["points"]) for row in search["rows"])
        rows.append(["fully trained settings", f"{ended[0]} to {ended[-1]} per method; the others were pruned"])
    return rows


def first_lengths() -> dict[str, float]:
    """The mean length of the proxies of each method that has them, before the first step."""
    torch.manual_seed(0)
    found = {}
    for name, method in METHODS.items():
        if method.learns and "learn_beta" not in method.fixed:
            made = getattr(losses, method.loss)(100, DIMS[0], **method.options, **method.fixed)
            found[name] = made.proxies.norm(dim=-1).mean().item()
    return found


def statement(told: StudyTable) -> str:
    """The same table as pages have it."""
    return table(told.head, told.rows, words=range(len(told.head)))


# ---- the page


def figures_of(assets: Path) -> dict[str, StudyFigure]:
    """The figures that have been drawn."""
    return {
        title: StudyFigure((assets / name).read_bytes(), caption, command)
        for name, (title, caption, command) in FIGURES.items()
        if (assets / name).exists()
    }


def pairs_of(rows: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """Each two methods in the first size, with Holm's correction."""
    found = compare_all([row for row in rows if row["dim"] == DIMS[0]], METRIC, correct="holm")
    told = dict(zip(found.cells, found.sentences(), strict=True))
    made = []
    for (a, b), each in found.cells.items():
        row = {"a": a, "b": b, "sentence": told[a, b], "pairs": each.pairs, "verdict": found.verdict(a, b)}
        made.append(row | {"mean": each.difference.mean, "low": each.difference.low, "high": each.difference.high})
    asked = (
        "The questions of the table above were asked before, and are corrected for their own number alone, if at all."
    )
    return made, f"In {DIMS[0]} dimensions: {found.note} {asked}"


def difference(each: Difference) -> dict[str, Any]:
    return {"what": each.what, "values": dict(each.values), "why": each.why, "severity": each.severity}


def tried(search: Report) -> dict[str, list[dict[str, Any]]]:
    """The histories of the searches."""
    return {
        row["method"]: [
            {
                "point": one["point"],
                "value": one["val MAP@R"],
                "status": "pruned" if one["val MAP@R"] is None else "done",  # or collapsed: its record does not tell
            }
            for one in row["points"]
        ]
        for row in search["rows"]
    }


def made_with(models: Report | None) -> dict[str, str]:
    """Versions on the machine that trained; else on this one."""
    return {"likewise": __version__, **(versions("torch") if models is None else models["versions"])}


def study_of(results: Path, assets: Path) -> Study:
    """Everything that is known by now, as the page takes it."""
    search, verdict, parity, models = (
        read(results / f"{name}.json") for name in ("search", "verdict", "parity", "models")
    )
    protocol = PROTOCOLS["fixed-validation"]
    boards: dict[str, Leaderboard] = {}
    rows: list[dict[str, Any]] = []
    config: Report | None = None
    comparisons: tuple[list[dict[str, Any]], str] = ([], "")
    if verdict is not None:
        rows, described = rows_of(verdict), trials(verdict, search)
        for dim, said in described.items():
            conditions = {(name, one["seed"]): read_conditions(one) for name, each in said.items() for one in each}
            some = [row for row in rows if row["dim"] == dim]
            boards[f"dim {dim}"] = rank(
                some,
                METRIC,
                conditions=[conditions.get((row["method"], row["seed"])) for row in some],
                allow_unfair=True,
            )
        comparisons = pairs_of(rows)
        config = next(iter(described[DIMS[0]].values()))[0]["config"]
    noted = {str(each): each for board in boards.values() for each in board.differences}
    machines = sorted(
        {*(search or {}).get("machines", ()), *(verdict or {"cost": {"machines": ()}})["cost"]["machines"]}
    )
    return Study(
        "A reality check on real birds",
        what=f"{len(METHODS)} losses on CUB-200-2011 at 128 px, searched on validation classes and judged on test classes that no "
        "choice has looked at.",
        metric=METRIC,
        rows=rows,
        protocol={
            "name": protocol.name,
            "sentence": str(protocol),
            "source": protocol.source,
            "tuned_on_test": protocol.tuned_on_test,
        },
        tournament=None if verdict is None else verdict["tournament"],
        leaderboard={name: board.rows() for name, board in boards.items()} or None,
        comparisons=comparisons[0],
        comparison_note=comparisons[1],
        fairness=[difference(each) for each in noted.values()] if boards else None,
        search=None if search is None else tried(search),
        tables=tables_of(search, verdict, parity, config),
        figures=figures_of(assets),
        command=COMMANDS,
        versions=", ".join(f"{name} {each}" for name, each in made_with(models).items()),
        hardware=", ".join(machines),
    )


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--assets", type=Path, default=ASSETS, help="where the figures are")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page whose statement of fairness is filled")
    parser.add_argument("-o", "--out", type=Path, default=OUT)
    given = parser.parse_args()
    made = study_of(given.results, given.assets)
    if EQUAL in made.tables:
        fill(given.page, {"fair-equal": statement(made.tables[EQUAL]), "fair-not": statement(made.tables[UNEQUAL])})
    page = write_study(given.out, made)
    size = page.stat().st_size
    print(f"wrote {page.name}, {size / MIB:.1f} MiB")
    if size > LARGEST:
        raise SystemExit(f"{page} must be below {LARGEST / MIB:.0f} MiB, but it is {size / MIB:.1f}")


if __name__ == "__main__":
    main()
