"""The tables and figures of the thesis, from rows of results: measured, or printed ones."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Sequence

from likewise.protocols import tournament
from studies.papers.figures import draw_bars
from studies.papers.planning import Row, markdown

NUMBERS = {
    ("CUB200", "resnet50"): 6,
    ("CUB200", "bninception"): 7,
    ("CUB200", "googlenet"): 8,
    ("Cars196", "bninception"): 9,
    ("StanfordOnlineProducts", "bninception"): 10,
    ("Cars196", "resnet50"): 20,
    ("Cars196", "googlenet"): 21,
}
"""The tables of the grids."""

RECALLS = {"StanfordOnlineProducts": (1, 10, 100, 1000)}
"""The K of the columns where they are not 1, 2, 4 and 8."""

FIGURES = {"resnet50": 28, "bninception": 29, "googlenet": 30}
"""The figures of the sizes, by trunk."""


def tables_of(rows: Sequence[Row]) -> str:
    """Tables 6 to 14, 20 and 21, as far as there are rows for them.

    Args:
        rows: with the columns ``method``, ``data``, ``trunk``, ``dim``, metrics such as ``test R@1``, ``part`` (grid, folds,
            splits, or summary for table 12 as printed), ``fold`` and, for the splits, ``case`` and ``draw``.

    Examples:
        >>> row = {
        ...     "method": "Triplet",
        ...     "data": "CUB200",
        ...     "trunk": "resnet50",
        ...     "dim": 64,
        ...     "part": "grid",
        ...     "test R@1": 0.5,
        ... }
        >>> print(tables_of([row]).splitlines()[0])
        ## Table 6: CUB200, resnet50
    """
    grids = _of(rows, "grid")
    found = [grid_table(some) for some in _groups(grids, "data", "trunk")]
    birds = [row for row in grids if row["data"] == "CUB200"]
    if len({row["method"] for row in birds}) > 1:
        found.append(tournament_table(birds))
    makers: dict[str, Callable[[Sequence[Row]], str]] = {"summary": _printed_summary, "folds": fold_tables}
    makers["splits"] = split_table
    for part, make in makers.items():
        if some := _of(rows, part):
            found.append(make(some))
    return "\n".join(found)


def grid_table(rows: Sequence[Row]) -> str:
    """The losses of one data set and trunk: recall at each K, a table for each size of the embeddings.

    Examples:
        >>> row = {"method": "Triplet", "data": "Cars196", "trunk": "resnet50", "dim": 64, "test R@1": 0.5}
        >>> print(grid_table([row]).splitlines()[-1])
        | Triplet | 50.00 | – | – | – |
    """
    data, trunk = str(rows[0]["data"]), str(rows[0]["trunk"])
    number = NUMBERS.get((data, trunk))
    lines = [f"## {f'Table {number}: ' if number else ''}{data}, {trunk}\n"]
    ks = RECALLS.get(data, (1, 2, 4, 8))
    for letter, some in zip("abcdefgh", _groups(rows, "dim"), strict=False):
        lines.append(f"({letter}) embedding size = {some[0]['dim']}\n")
        table = [["", *(f"R@{k}" for k in ks)]]
        table += [
            [str(each[0]["method"]), *(cell(each, f"test R@{k}") for k in ks)] for each in _groups(some, "method")
        ]
        lines.append(markdown(table))
    return "\n".join(lines)


def tournament_table(rows: Sequence[Row]) -> str:
    """Table 11: the ranks of the losses by R@1 over all trunks and sizes.

    Examples:
        >>> rows = [{"method": m, "trunk": "a", "dim": 8, "test R@1": s} for m, s in (("x", 0.4), ("y", 0.5))]
        >>> print(tournament_table(rows).splitlines()[4])
        | y | 1 | 1.00 | – |
    """
    ranks = tournament(rows, "test R@1", ("trunk", "dim"))
    lines = [["Loss function", "Total rankings", "Average ranking", "Standard deviation"]]
    for each in ranks.standings:
        deviation = "–" if each.deviation is None else f"{each.deviation:.2f}"
        lines.append([each.method, f"{each.total:g}", f"{each.average:.2f}", deviation])
    return f"## Table 11: the tournament of loss functions\n\n{markdown(lines)}"


def fold_tables(rows: Sequence[Row]) -> str:
    """Tables 12 and 13: R@1 over folds with the sample standard deviation, and each fold of MultiSimilarity.

    Examples:
        >>> values = {0: 0.6, 1: 0.64}
        >>> rows = [{"method": "MultiSimilarity", "fold": f, "val R@1": 0.9, "test R@1": v} for f, v in values.items()]
        >>> print(fold_tables(rows).splitlines()[4])
        | MultiSimilarity | 62.00 ± 2.83 |
    """
    separate = [row for row in rows if row.get("combination") != "concatenated"]
    lines = [["Loss function", "R@1"]]
    lines += [[str(each[0]["method"]), cell(each, "test R@1")] for each in _groups(separate, "method")]
    text = f"## Table 12: cross validation\n\n{markdown(lines)}"
    folds = [row for row in separate if row["method"] == "MultiSimilarity"]
    if folds:
        table = [["Fold", "Best R@1 on validation set", "R@1 on test set"]]
        table += [
            [str(int(each[0]["fold"] or 0) + 1), cell(each, "val R@1"), cell(each, "test R@1")]
            for each in _groups(folds, "fold")
        ]
        text += f"\n## Table 13: MultiSimilarity on each fold\n\n{markdown(table)}"
    return text


def split_table(rows: Sequence[Row]) -> str:
    """Table 14: R@1 by the share of the classes that is held out, with the standard deviation over draws of them.

    Examples:
        >>> rows = [{"case": "90/10", "draw": d, "val R@1": 0.9, "test R@1": v} for d, v in ((0, 0.6), (1, 0.64))]
        >>> print(split_table(rows).splitlines()[4])
        | 90/10 | 90.00 ± 0.00 | 62.00 ± 2.83 |
    """
    lines = [["Split ratio (training / validation classes)", "Best R@1 on validation set", "R@1 on test set"]]
    lines += [[str(each[0]["case"]), cell(each, "val R@1"), cell(each, "test R@1")] for each in _groups(rows, "case")]
    return f"## Table 14: fixed validation splits\n\n{markdown(lines)}"


def _printed_summary(rows: Sequence[Row]) -> str:
    """Table 12 as it is printed, with its own standard deviations."""
    lines = [["Loss function", "R@1"]]
    for row in rows:
        deviation = row.get("test R@1 ±")
        lines.append([str(row["method"]), f"{_percent(row['test R@1'])} ± {_percent(deviation)}"])
    return f"## Table 12: cross validation, as printed\n\n{markdown(lines)}"


def cell(rows: Sequence[Row], metric: str) -> str:
    """The mean in per cent, and the sample standard deviation where there are several rows.

    Examples:
        >>> cell([{"test R@1": 0.5}], "test R@1"), cell([{"test R@1": 0.5}, {"test R@1": 0.52}], "test R@1")
        ('50.00', '51.00 ± 1.41')
    """
    values = _values(rows, metric)
    if not values:
        return "–"
    spread = f" ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * statistics.fmean(values):.2f}{spread}"


def _percent(value: object) -> str:
    return "–" if value is None else f"{100 * float(str(value)):.2f}"


# ---- figures


def figures_of(rows: Sequence[Row], form: str = "svg") -> dict[str, bytes]:
    """Figures 27 to 31, as far as there are rows for them, by name.

    Figure 27 has recall at each K of the losses with ResNet50 and the second size of the embeddings, figures 28 to 30 R@1 by
    size for each trunk, figure 31 R@1 by trunk with the size that the thesis finds best, 512, or the largest one.

    Examples:
        >>> row = {
        ...     "method": "Triplet",
        ...     "data": "CUB200",
        ...     "trunk": "resnet50",
        ...     "dim": 64,
        ...     "part": "grid",
        ...     "test R@1": 0.5,
        ... }
        >>> sorted(figures_of([row]))
        ['figure-27', 'figure-28', 'figure-31']
    """
    birds = [row for row in _of(rows, "grid") if row["data"] == "CUB200"]
    sizes = sorted({int(row["dim"] or 0) for row in birds})
    found: dict[str, bytes] = {}
    deep = [row for row in birds if row["trunk"] == "resnet50" and row["dim"] == (sizes[1] if sizes[1:] else sizes[0])]
    if deep:
        ks = sorted({int(name[7:]) for row in deep for name in row if re.fullmatch(r"test R@[1248]", name)})
        bars = {f"R@{k}": _means(deep, f"test R@{k}") for k in ks}
        title = f"CUB200, resnet50, {deep[0]['dim']} dimensions"
        found["figure-27"] = draw_bars(bars, title, "recall in %", main="R@1", form=form)
    for trunk, number in FIGURES.items():
        some = [row for row in birds if row["trunk"] == trunk]
        if some:
            bars = {f"{size} dimensions": _means([row for row in some if row["dim"] == size]) for size in sizes}
            found[f"figure-{number}"] = draw_bars(bars, f"CUB200, {trunk}", "R@1 in %", form=form)
    best = [row for row in birds if row["dim"] == (512 if 512 in sizes else max(sizes))]
    if best:
        bars = {trunk: _means([row for row in best if row["trunk"] == trunk]) for trunk in FIGURES}
        bars = {trunk: values for trunk, values in bars.items() if values}
        found["figure-31"] = draw_bars(bars, f"CUB200, {best[0]['dim']} dimensions", "R@1 in %", form=form)
    return found


def _means(rows: Sequence[Row], metric: str = "test R@1") -> dict[str, float]:
    """The mean of each method, as a fraction."""
    groups = {str(some[0]["method"]): _values(some, metric) for some in _groups(rows, "method")}
    return {name: statistics.fmean(values) for name, values in groups.items() if values}


def _values(rows: Iterable[Row], metric: str) -> list[float]:
    return [float(value) for row in rows if (value := row.get(metric)) is not None]


def _of(rows: Iterable[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def _groups(rows: Iterable[Row], *columns: str) -> list[list[Row]]:
    """Rows that agree in some columns, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in columns), []).append(row)
    return list(groups.values())
