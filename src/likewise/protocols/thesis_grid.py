"""The search spaces of the thesis (table 15, section 5.2), for `CoordinateGrid`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from likewise.formula import one_of
from likewise.protocols.space import Choice, Range
from likewise.protocols.trial import Label


@dataclass(frozen=True)
class GridRow:
    """A row of the printed table of searches.

    Args:
        loss: the class name of the loss.
        printed: the name of the hyper-parameter in the table.
        path: its path in the configuration.
        within: the printed range.
        step: the printed step.
        best: the printed best value.
        setting: the values of the grid, as they are configured here.
        note: a remark on the row.

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
    setting: Range | Choice
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
        note="printed is 1/γ; 58 is not on a grid of step 10 that starts at 0 or 10",
    ),
    GridRow("SoftTripleLoss", "tau", "loss.tau", *_MARGIN, 0.4, Range(0.0, 1.0, step=0.1, default=0.2)),
    GridRow("ProxyAnchorLoss", "margin λ", "loss.margin", *_MARGIN, 0.1, Range(0.0, 1.0, step=0.1, default=0.1)),
    GridRow("ProxyAnchorLoss", "scale α", "loss.alpha", *_SCALE, 32.0, Range(2.0, 100.0, step=2.0, default=32.0)),
)
"""Table 15 of the thesis (section 5.2): searches on a fixed validation set; defaults are those of its table 4."""


def thesis_space(loss: str) -> dict[str, Range | Choice]:
    """Return the search space of table 15 of the thesis for a loss, in the order of the table.

    Args:
        loss: the class name of the loss.

    Examples:
        >>> list(thesis_space("ProxyAnchorLoss"))
        ['loss.margin', 'loss.alpha']
        >>> sum(len(setting.grid()) for setting in thesis_space("MultiSimilarityLoss").values())
        122
    """
    one_of("loss", loss, dict.fromkeys(row.loss for row in TABLE_15))
    return {row.path: row.setting for row in TABLE_15 if row.loss == loss}


def thesis_best(loss: str) -> Mapping[str, Label]:
    """Return the best point of the thesis for a loss (table 15), as it is configured here.

    Examples:
        >>> thesis_best("ProxyAnchorLoss")
        {'loss.margin': 0.1, 'loss.alpha': 32.0}
    """
    thesis_space(loss)
    inverse = {"gamma"}
    rows = [row for row in TABLE_15 if row.loss == loss]
    return {row.path: 1.0 / row.best if row.printed in inverse else row.best for row in rows}
