"""Published numbers as data: what papers print, as it is printed, with what is wrong in it flagged.

The tables are in ``data/``: one row for each number.  ``methods.csv`` says what each name
means here, ``remarks.csv`` where a text contradicts its own tables.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeGuard

from likewise.formula import one_of
from likewise.protocols.trial import Label

DATA_FOLDER = Path(__file__).parent / "data"

Row = dict[str, Label]

SOURCES: Mapping[str, str] = {
    "thesis": "B. Psomas, Metric Learning: A Deep Dive, 2020: tables 6 to 14 and 16 to 21",
    "reality-check": "K. Musgrave, S. Belongie, S.-N. Lim, A Metric Learning Reality Check, 2020: its result tables",
    "unified-view": "A Unified View of Deep Metric Learning via Gradient Analysis: tables 1 to 3",
    "rolinek-2020": "M. Rolínek et al., Optimizing Rank-Based Metrics with Blackbox Differentiation, 2020: tables 2 and 3",
}
"""Where the numbers come from: the names that `published` takes as ``source``."""

DATA: Mapping[str, str] = {
    "CUB200": "CUB200",
    "Cars196": "Cars196",
    "SOP": "StanfordOnlineProducts",
    "InShop": "InShop",
}
"""The data sets of the published tables, and their classes in `likewise.data`: ``data`` may be either."""


@dataclass(frozen=True)
class Number:
    """One number of a published table, as it is printed.

    Args:
        source: one of `SOURCES`.
        table: the table's number, or the data set's name where the tables bear none.
        data: the data set, one of `DATA`.
        trunk: the network, by its name here; empty where the source does not say.
        dim: the embedding size; None where the source does not say.
        method: its name, spelled as in the table of methods.
        spelling: its name as it is printed.
        origin: ``"measured"`` by the source itself or ``"quoted"`` from another paper.
        protocol: ``"classic"``, ``"10-fold"``, ``"fixed validation"``, ``"concatenated"`` or ``"separated"``.
        case: which fold or split it is, where a table has several.
        on: ``"test"``, ``"val"``, or empty for numbers about ranks.
        metric: ``"R@1"``, ``"RP"``, ``"MAP@R"``, ``"average rank"``, …
        printed: the digits.
        plus_minus: what stands after ±, or None.
        flag: ``"misprint"``, ``"cut off"``, ``"disputed"`` or empty.
        note: what else is to be known about it.

    Examples:
        >>> number = printed("thesis", table=11, method="Triplet")[1]
        >>> number.metric, number.printed, number.flag, number.note
        ('average rank', '8.85', 'misprint', '103 / 12 = 8.58')
    """

    source: str
    table: str
    data: str
    trunk: str
    dim: int | None
    method: str
    spelling: str
    origin: str
    protocol: str
    case: str
    on: str
    metric: str
    printed: str
    plus_minus: float | None
    flag: str
    note: str

    @property
    def value(self) -> float:
        """The digits as a number, in the unit that the table has: mostly per cent."""
        return float(self.printed)


@dataclass(frozen=True)
class Method:
    """What a name in a table means here.

    Args:
        method: the name, spelled in one way.
        source: the only source in which it means this loss, one of `SOURCES`; empty for all others.
        spellings: the other ways in which tables spell it.
        loss: the class in `likewise.losses`, or empty.
        miner: the class in `likewise.miners` that belongs to the method, or empty.
        year: of the paper that introduced it, or None where that is not certain.
        reference: that paper.
        note: what else is to be known about it.

    Examples:
        >>> method_of("MS+Miner").loss, method_of("MS+Miner").miner
        ('MultiSimilarityLoss', 'MultiSimilarityMiner')
    """

    method: str
    source: str
    spellings: tuple[str, ...]
    loss: str
    miner: str
    year: int | None
    reference: str
    note: str


@dataclass(frozen=True)
class Remark:
    """A place where a text contradicts its tables, or a table itself.

    Args:
        source: one of `SOURCES`.
        where: the table or section.
        printed: what is said there.
        found: what is the case.
        kind: ``"misprint"`` and ``"cut off"`` are in a table, ``"text"`` is a sentence about one, ``"disputed"`` a
            number that two sources print differently, ``"protocol"`` a choice that looked at the test set.

    Examples:
        >>> remarks("unified-view")[0].found
        '88.87 - 84.78 = 4.09'
    """

    source: str
    where: str
    printed: str
    found: str
    kind: str


def _read(name: str) -> list[dict[str, str]]:
    text = (DATA_FOLDER / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def methods() -> tuple[Method, ...]:
    """The table of methods: what the names in the published tables mean here.

    Examples:
        >>> [each.method for each in methods() if each.loss == "MarginLoss"]
        ['Margin', 'Margin/class']
    """
    return tuple(
        Method(
            method=row["method"],
            source=row["source"],
            spellings=tuple(each.strip() for each in row["spellings"].split(";") if each.strip()),
            loss=row["loss"],
            miner=row["miner"],
            year=int(row["year"]) if row["year"] else None,
            reference=row["reference"],
            note=row["note"],
        )
        for row in _read("methods")
    )


def _plain(name: str) -> str:
    """A name without case, spaces and punctuation; the plus of a combination stays."""
    return re.sub(r"[^a-z0-9+/]", "", name.lower())


@cache
def _known() -> dict[str, Method]:
    # a class stands for the method without a miner, which comes first in the table
    known: dict[str, Method] = {}
    for each in methods():
        if each.source:  # its class by itself is another method
            continue
        names = (each.method, *each.spellings, each.loss, each.loss.removesuffix("Loss"))
        for name in filter(None, names):
            known.setdefault(_plain(name), each)
    return known


def method_of(name: str, source: str | None = None) -> Method | None:
    """The method that a name means: as printed, as a class of `likewise.losses`, or as one types it; None if unknown.

    Args:
        name: the name.
        source: where it is printed, one of `SOURCES`: two sources may mean two losses by one name.

    Examples:
        >>> method_of("multi_similarity").year, method_of("N. Softmax").loss
        (2019, 'NormalizedSoftmaxLoss')
        >>> method_of("ProxyNCA").loss, method_of("ProxyNCA", "reality-check").loss
        ('ProxyNCALoss', 'ProxyNCAPPLoss')
        >>> method_of("mine") is None
        True
    """
    known = _known().get(_plain(name))
    of_source = [
        each for each in methods() if known and source and (each.method, each.source) == (known.method, source)
    ]
    return of_source[0] if of_source else known


def data_of(name: str) -> str:
    """The name that a data set has in the published tables.

    Examples:
        >>> data_of("StanfordOnlineProducts")
        'SOP'
    """
    short = {class_: short for short, class_ in DATA.items()}.get(name, name)
    return str(one_of("data", short, DATA))


@cache
def _numbers() -> tuple[Number, ...]:
    found = []
    for source in SOURCES:
        for row in _read(source):
            method = method_of(row["method"])
            if method is None:
                raise ValueError(f"the table of methods lacks {row['method']!r} of {source}")
            found.append(
                Number(
                    **{name: row[name] for name in ("source", "table", "data", "trunk", "origin", "protocol", "case")},
                    **{name: row[name] for name in ("on", "metric", "flag", "note")},
                    dim=int(row["dim"]) if row["dim"] else None,
                    method=method.method,
                    spelling=row["method"],
                    printed=row["value"],
                    plus_minus=float(row["plus_minus"]) if row["plus_minus"] else None,
                )
            )
    return tuple(found)


def printed(
    source: str | None = None,
    *,
    table: int | str | Sequence[int | str] | None = None,
    data: str | None = None,
    method: str | None = None,
    origin: Literal["measured", "quoted"] | None = None,
) -> list[Number]:
    """The published numbers as they are printed, one by one.

    Args:
        source: one of `SOURCES`; None for all.
        table: a table's number, or several.
        data: ``"CUB200"``, ``"Cars196"``, ``"SOP"`` or ``"InShop"``.
        method: a name that `method_of` knows.
        origin: what the source measured itself, or what it quotes from other papers.

    Examples:
        >>> [number.printed for number in printed("reality-check", data="SOP", method="Contrastive")][:3]
        ['73.12', '47.29', '44.39']
    """
    found: Sequence[Number] = _numbers()
    if source is not None:
        one_of("source", source, SOURCES)
        found = [each for each in found if each.source == source]
    if table is not None:
        tables = [str(each) for each in ([table] if isinstance(table, int | str) else table)]
        for each in tables:
            one_of("table", each, dict.fromkeys(number.table for number in found))
        found = [each for each in found if each.table in tables]
    if data is not None:
        short = data_of(data)
        found = [each for each in found if each.data == short]
    if method is not None:
        known = method_of(method)
        name = one_of("method", known.method if known else method, [each.method for each in methods()])
        found = [each for each in found if each.method == name]
    if origin is not None:
        one_of("origin", origin, ("measured", "quoted"))
        found = [each for each in found if each.origin == origin]
    return list(found)


def published(
    source: str | None = None,
    *,
    table: int | str | Sequence[int | str] | None = None,
    data: str | None = None,
    method: str | None = None,
    origin: Literal["measured", "quoted"] | None = None,
    flagged: bool = True,
) -> list[Row]:
    """Published results as rows of the table that our own results make: one for each training, metrics as fractions.

    A row says ``method, loss, year, data, trunk, dim, source, table, protocol, case, origin``, the metrics as
    ``"test R@1"`` or ``"val R@1"``, the half width of an interval as ``"test R@1 ±"``, whether anything was
    ``tuned_on_test``, and in ``flags`` which of its numbers are doubtful.  Numbers about ranks stay as they are.

    Args:
        source: one of `SOURCES`; None for all.
        table: a table's number, or several.
        data: ``"CUB200"``, ``"Cars196"``, ``"SOP"`` or ``"InShop"``.
        method: a name that `method_of` knows.
        origin: what the source measured itself, or what it quotes from other papers.
        flagged: keep numbers that are printed wrongly; False leaves them out.

    Examples:
        >>> row = published("thesis", table=10, method="ArcFace")[1]
        >>> row["dim"], row["test R@1"], row["test R@10"], row["flags"]
        (128, 0.7314, 0.6456, 'test R@10: misprint; test R@100: misprint; test R@1000: misprint')
        >>> "test R@10" in published("thesis", table=10, method="ArcFace", flagged=False)[1]
        False
    """
    rows: dict[tuple[Label, ...], Row] = {}
    for number in printed(source, table=table, data=data, method=method, origin=origin):
        if number.flag == "misprint" and not flagged:
            continue
        known = method_of(number.method, number.source)
        head: Row = {name: getattr(number, name) for name in ("method", "data", "trunk", "dim", "source", "table")}
        head |= {name: getattr(number, name) for name in ("protocol", "case", "origin")}
        key = tuple(head.values())
        if key not in rows:
            about: Row = {"loss": known.loss if known else "", "year": known.year if known else None}
            fold = re.fullmatch(r"fold (\d+)", number.case)
            about |= {"stage": "final", "status": "done", "fold": int(fold[1]) - 1 if fold else 0}
            rows[key] = head | about | {"tuned_on_test": number.protocol == "classic", "flags": ""}
        _add(rows[key], number)
    return list(rows.values())


def _add(row: Row, number: Number) -> None:
    """Put a number into its row, as a fraction where it is a share of something."""
    name = f"{number.on} {number.metric}" if number.on else number.metric
    # dividing the printed digits keeps them: 0.6456, not 0.6456000000000001
    row[name] = round(number.value / 100.0, 8) if number.on else number.value
    if number.plus_minus is not None:
        row[f"{name} ±"] = round(number.plus_minus / 100.0, 8)
    if number.flag:
        row["flags"] = "; ".join(filter(None, (str(row["flags"]), f"{name}: {number.flag}")))


def remarks(source: str | None = None) -> list[Remark]:
    """Where the sources contradict themselves or each other, as far as it was noticed.

    Examples:
        >>> [each.where for each in remarks("thesis") if each.kind == "misprint"]
        ['table 11', 'table 11', 'table 10', 'table 10']
    """
    if source is not None:
        one_of("source", source, SOURCES)
    found = [Remark(**row) for row in _read("remarks")]
    return [each for each in found if source in (None, each.source)]


def impossible(rows: Sequence[Mapping[str, Label]]) -> list[str]:
    """Sentences about numbers that cannot be: recall that falls with K, MAP@R above R-precision, shares outside 0 to 1.

    Args:
        rows: results, published or one's own.

    Examples:
        >>> impossible([{"method": "a", "test R@1": 0.7, "test R@2": 0.6}])
        ['a: test R@2 is 0.6, below test R@1, which is 0.7']
    """
    found = []
    for row in rows:
        said = [str(row[name]) for name in ("source", "table", "data", "trunk", "dim", "method") if row.get(name)]
        for on in ("test", "val"):
            shares = {name: float(value) for name, value in row.items() if name.startswith(f"{on} ") and _number(value)}
            found += [f"{', '.join(said)}: {sentence}" for sentence in _impossible(on, shares)]
    return found


def _impossible(on: str, shares: Mapping[str, float]) -> list[str]:
    found = [f"{name} is {value}, which is no share" for name, value in shares.items() if not 0.0 <= value <= 1.0]
    recalls = sorted(
        (name for name in shares if re.fullmatch(rf"{on} R@\d+", name)), key=lambda name: int(name[len(on) + 3 :])
    )
    for less, more in pairwise(recalls):
        if shares[more] < shares[less]:
            found.append(f"{more} is {shares[more]}, below {less}, which is {shares[less]}")
    mean, precision = f"{on} MAP@R", f"{on} RP"
    if mean in shares and precision in shares and shares[mean] > shares[precision]:
        found.append(f"{mean} is {shares[mean]}, above {precision}, which is {shares[precision]}")
    return found


def _number(value: Label) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
