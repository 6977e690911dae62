"""Make tables 1 to 3 of the unified view again: seven combinations of weights and mining on four data sets.

    python -m studies.papers.unified_view --root CUB200=birds Cars196=cars --dry-run
    python -m studies.papers.unified_view --scale tiny

Table 1 is the ablation by R@1, tables 2 and 3 are the paper's own method, RAW + VTHM, at every K, under the numbers that
the paper quotes from others.  A call that was stopped continues.  The paper describes no validation classes; here a tenth of
the training classes chooses the model, and ``--protocol classic`` trains on all of them and keeps the last epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from likewise import app
from studies.papers.figures import draw_bars
from studies.papers.planning import (
    TINY_STEPS,
    Experiment,
    Row,
    Tree,
    describe_experiments,
    make_parser,
    markdown,
    out_of,
    overlay_root,
    read_roots,
    stand_in,
    tiny_base,
)
from studies.papers.thesis_tables import cell
from studies.published import data_of, published

DATA = {"CUB200": "cub", "Cars196": "cars", "StanfordOnlineProducts": "sop", "InShop": "in-shop"}
"""The data sets, and the recipes of their set-ups."""

RECALLS = {
    "CUB200": (1, 2, 4, 8, 16, 32),
    "Cars196": (1, 2, 4, 8, 16, 32),
    "StanfordOnlineProducts": (1, 10, 100, 1000),
    "InShop": (1, 10, 20, 30, 40, 50),
}
"""The K of tables 2 and 3."""

METHODS = {
    "Binomial": "binomial",
    "RAW": "raw",
    "VTHM": "vthm",
    "Binomial+VTHM": "binomial-vthm",
    "RAW+DW": "raw-distance-weighted",
    "RAW+SemiHard": "raw-semi-hard",
    "RAW+VTHM": "raw-vthm",
}
"""The rows of table 1, and their recipes."""

OWN = "RAW+VTHM"
COMPARISONS = {2: ("CUB200", "Cars196"), 3: ("StanfordOnlineProducts", "InShop")}
"""The data sets of tables 2 and 3."""


def plan(
    roots: Mapping[str, str | None],
    methods: Sequence[str] = tuple(METHODS),
    *,
    seeds: int = 1,
    protocol: str = "fixed-validation",
    tiny: bool = False,
) -> list[Experiment]:
    """A study for each data set.

    Examples:
        >>> sum(each.trainings for each in plan(dict.fromkeys(DATA, "data")))
        28
    """
    found = []
    for place, (data, root) in enumerate(roots.items()):
        parts: Tree = {name: {"config": f"unified-view/losses/{METHODS[name]}"} for name in methods}
        changes = None
        if tiny:
            changes = tiny_base(root, seed=place)
            changes["train"]["ks"] = list(RECALLS[data])
            parts = {name: {**part, "sampler": TINY_STEPS} for name, part in parts.items()}
        study: Tree = {
            "name": f"unified-view-{data}",
            "base": overlay_root(f"unified-view/{DATA[data]}", root, changes),
            "methods": parts,
            "seeds": list(range(seeds)),
            "protocol": protocol,
            "metric": "R@1",
        }
        found.append(Experiment(data, study, data, "bninception"))
    return found


def tables_of(rows: Sequence[Row]) -> str:
    """Tables 1 to 3, as far as there are rows for them.

    Args:
        rows: with the columns ``method``, ``data`` and metrics such as ``test R@1``.

    Examples:
        >>> row = {"method": "RAW+VTHM", "data": "CUB200", "test R@1": 0.6685}
        >>> print(tables_of([row]).splitlines()[4])
        | RAW+VTHM | 66.85 |
    """
    there = [name for name in DATA if any(row["data"] == name for row in rows)]
    names = [name for name in METHODS if any(row["method"] == name for row in rows)]
    lines = [["R@1", *map(data_of, there)]]
    for name in names:
        cells = [[row for row in rows if (row["method"], row["data"]) == (name, data)] for data in there]
        lines.append([name, *(cell(some, "test R@1") for some in cells)])
    found = [f"## Table 1: the ablation\n\n{markdown(lines)}"]
    for number, sets in COMPARISONS.items():
        chosen = [name for name in sets if name in there]
        if chosen and OWN in names:
            found.append(f"## Table {number}: recall at K\n\n{comparison_table(rows, number, chosen)}")
    return "\n".join(found)


def comparison_table(rows: Sequence[Row], number: int, sets: Sequence[str]) -> str:
    """Table 2 or 3: what the paper quotes from others, marked so, and its own method, measured here.

    Examples:
        >>> row = {"method": "RAW+VTHM", "data": "CUB200", "test R@1": 0.6685}
        >>> comparison_table([row], 2, ["CUB200"]).splitlines()[2]
        '| HDC (quoted) | 53.60 | 65.70 | 77.00 | 85.60 | 91.50 | 95.50 |'
    """
    columns = [(data, k) for data in sets for k in RECALLS[data]]
    lines = [["Recall@K", *(f"{data_of(data)}, {k}" for data, k in columns)]]
    quoted = published("unified-view", table=number, origin="quoted")
    for name in dict.fromkeys(str(row["method"]) for row in quoted):
        some = [row for row in quoted if row["method"] == name]
        cells = [cell([row for row in some if row["data"] == data_of(data)], f"test R@{k}") for data, k in columns]
        lines.append([f"{name} (quoted)", *cells])
    own = [row for row in rows if row["method"] == OWN]
    lines.append([OWN, *(cell([row for row in own if row["data"] == data], f"test R@{k}") for data, k in columns)])
    return markdown(lines)


def draw_ablation(rows: Sequence[Row], form: str = "svg") -> bytes:
    """Table 1 as bars: a group for each method, a bar for each data set.

    Examples:
        >>> draw_ablation([{"method": "RAW", "data": "CUB200", "test R@1": 0.65}])[:5]
        b'<?xml'
    """
    bars: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["test R@1"] is not None:  # a training that failed is no recall of zero
            values = bars.setdefault(data_of(str(row["data"])), {}).setdefault(str(row["method"]), [])
            values.append(float(row["test R@1"]))
    means = {data: {name: sum(some) / len(some) for name, some in each.items()} for data, each in bars.items()}
    return draw_bars(means, "the ablation", "R@1 in %", form=form)


def write(out: Path, rows: Sequence[Row], note: str) -> str:
    """Write the tables and the figure, and return the text of the tables."""
    out.mkdir(parents=True, exist_ok=True)
    text = note + tables_of(rows)
    (out / "tables.md").write_text(text, encoding="utf-8")
    (out / "ablation.svg").write_bytes(draw_ablation(rows))
    return text


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line, and plan or run the study."""
    parser = make_parser("unified_view", str(__doc__).split("\n")[0], DATA)
    parser.add_argument(
        "--methods", metavar="NAME", nargs="+", default=list(METHODS), choices=METHODS, help="only these"
    )
    parser.add_argument(
        "--seeds", metavar="N", type=int, default=1, choices=range(1, 100), help="training runs of each cell"
    )
    parser.add_argument("--protocol", choices=("fixed-validation", "classic"), default="fixed-validation")
    options = parser.parse_args(words)
    tiny, out = options.scale == "tiny", out_of(options, "unified-view")
    roots = read_roots(parser, options, list(DATA), list(DATA))
    experiments = plan(roots, options.methods, seeds=options.seeds, protocol=options.protocol, tiny=tiny)
    if options.dry_run:
        print(describe_experiments(experiments, out, options.minutes_each, tiny=tiny))
        return 0
    execution = app.Execution(workers=options.workers)
    rows = [row for each in experiments for row in each.run(out, execution)]
    print(f"{write(out, rows, stand_in(tiny, options.folder))}\n{out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
