"""A coordinate grid, the thesis' way of choosing hyper-parameters: one at a time, each at its best value before the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from likewise.formula import one_of, whole_number
from likewise.protocols.space import Choice, Point, Range, Setting, Space, Tried
from likewise.protocols.trial import Label


@dataclass(frozen=True)
class CoordinateGrid:
    """Try all values of one setting, keep the best, and go on to the next setting.

    The settings are taken in the order of the space.  Among values that are equally good the first one is chosen; the
    previous value of a setting competes with the grid's if it was tried.  Values that failed or were pruned are not chosen.

    Args:
        start: where to begin; by default where each setting's default is.
        points: how many values a setting without a step has.
        sweeps: how often to go through all settings.

    Examples:
        >>> space = {"a": Range(0.0, 1.0, step=0.5), "b": Range(0.0, 1.0, step=1.0)}
        >>> CoordinateGrid(start={"a": 0.0, "b": 0.0}).ask(space, [], 9, seed=0)
        [{'a': 0.0, 'b': 0.0}, {'a': 0.5, 'b': 0.0}, {'a': 1.0, 'b': 0.0}]
    """

    start: Point = field(default_factory=dict)
    points: int = 11
    sweeps: int = 1

    def __post_init__(self) -> None:
        whole_number("points", self.points, 2)
        whole_number("sweeps", self.sweeps, 1)

    def ask(self, space: Space, history: Sequence[Tried], n: int, seed: int) -> list[Point]:
        """The next points, at most ``n``: none while the values of one setting are not all known, or at the end."""
        for path in self.start:
            if path not in space:
                raise ValueError(f"start must name settings of the space, but it names {path!r}")
        tried = {_name(space, one.point): one for one in history}
        current = {path: self.start.get(path, setting.start) for path, setting in space.items()}
        for path, setting in list(space.items()) * self.sweeps:
            line = [{**current, path: value} for value in setting.grid(self.points)]
            new = [point for point in line if _name(space, point) not in tried]
            if new:
                return list(new[:n])
            known = [tried[_name(space, point)] for point in [*line, current] if _name(space, point) in tried]
            if any(one.status == "running" for one in known):
                return []
            values = [one for one in known if one.value is not None]
            if values:
                current = dict(max(values, key=lambda one: one.value or 0.0).point)
        return []


def _name(space: Space, point: Point) -> tuple[Label, ...]:
    return tuple(point.get(path) for path in space)


@dataclass(frozen=True)
class GridRow:
    """A row of a printed table of searches.

    Args:
        loss: the loss by the name of its class.
        printed: the hyper-parameter as the table calls it.
        path: what it is here.
        within: the range as printed.
        step: the step as printed.
        best: the best value, as printed.
        setting: the values of the grid, in the terms used here.
        note: what is to be known of the row.

    Examples:
        >>> TABLE_15[0].setting.grid()[:3]
        (0.0, 0.1, 0.2)
    """

    loss: str
    printed: str
    path: str
    within: str
    step: float
    best: float
    setting: Setting
    note: str = ""


_MARGIN = ("[0,1]", 0.1)
_SCALE = ("(0,100]", 2.0)

TABLE_15: tuple[GridRow, ...] = (
    GridRow("MultiSimilarityLoss", "margin λ", "loss.base", *_MARGIN, 0.8, Range(0.0, 1.0, step=0.1, default=0.5)),
    GridRow("MultiSimilarityLoss", "scale α", "loss.alpha", *_SCALE, 18.0, Range(2.0, 100.0, step=2.0, default=2.0)),
    GridRow("MultiSimilarityLoss", "scale β", "loss.beta", *_SCALE, 76.0, Range(2.0, 100.0, step=2.0, default=50.0)),
    GridRow(
        "MultiSimilarityLoss",
        "epsilon",
        "loss.miner.epsilon",
        *_MARGIN,
        0.4,
        Range(0.0, 1.0, step=0.1, default=0.1),
    ),
    GridRow("SoftTripleLoss", "margin λ", "loss.margin", *_MARGIN, 0.4, Range(0.0, 1.0, step=0.1, default=0.1)),
    GridRow("SoftTripleLoss", "scale α", "loss.la", *_SCALE, 78.0, Range(2.0, 100.0, step=2.0, default=20.0)),
    GridRow(
        "SoftTripleLoss",
        "weights lr",
        "optimizer.lrs.proxies",
        "[0.00001, 0.0001]",
        0.00001,
        0.00005,
        Range(1e-5, 1e-4, step=1e-5, default=1e-4),
    ),
    GridRow(
        "SoftTripleLoss",
        "gamma",
        "loss.gamma",
        "(0,100]",
        10.0,
        58.0,
        Choice(tuple(1.0 / inverse for inverse in range(10, 101, 10)), default=1.0 / 10.0),
        note="printed is 1/γ; 58 is on no grid of step 10 from 0 or 10",
    ),
    GridRow("SoftTripleLoss", "tau", "loss.tau", *_MARGIN, 0.4, Range(0.0, 1.0, step=0.1, default=0.2)),
    GridRow("ProxyAnchorLoss", "margin λ", "loss.margin", *_MARGIN, 0.1, Range(0.0, 1.0, step=0.1, default=0.1)),
    GridRow("ProxyAnchorLoss", "scale α", "loss.alpha", *_SCALE, 32.0, Range(2.0, 100.0, step=2.0, default=32.0)),
)
"""Table 15 of the thesis (section 5.2): searches on a fixed validation set; defaults are those of its table 4."""


def thesis_space(loss: str) -> dict[str, Setting]:
    """The space of table 15 of the thesis for a loss, in the order of the table, to be searched by `CoordinateGrid`.

    Args:
        loss: the name of its class.

    Examples:
        >>> list(thesis_space("ProxyAnchorLoss"))
        ['loss.margin', 'loss.alpha']
        >>> sum(len(setting.grid()) for setting in thesis_space("MultiSimilarityLoss").values())
        122
    """
    one_of("loss", loss, dict.fromkeys(row.loss for row in TABLE_15))
    return {row.path: row.setting for row in TABLE_15 if row.loss == loss}


def thesis_best(loss: str) -> Mapping[str, Label]:
    """The point that the thesis found for a loss (table 15), in the terms used here.

    Examples:
        >>> thesis_best("ProxyAnchorLoss")
        {'loss.margin': 0.1, 'loss.alpha': 32.0}
    """
    thesis_space(loss)
    inverse = {"gamma"}
    rows = [row for row in TABLE_15 if row.loss == loss]
    return {row.path: 1.0 / row.best if row.printed in inverse else row.best for row in rows}
