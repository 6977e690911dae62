"""Coordinate-wise grid search, as in the thesis: one hyper-parameter after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from likewise.formula import whole_number
from likewise.protocols.space import Point, Space, Tried
from likewise.protocols.trial import Label


@dataclass(frozen=True)
class CoordinateGrid:
    """Try all values of one setting, keep the best, and continue with the next setting.

    The settings are searched in the order of the space.  Of equally good values the first one is chosen; the previous value
    of a setting is considered too if it was tried.  Values that failed or were pruned are not chosen.

    Args:
        start: the initial values; settings that it does not name start at their default.
        points: the number of values of a setting without a step.
        sweeps: the number of passes over all settings.

    Examples:
        >>> from likewise.protocols import Range
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
        """Return at most ``n`` new points; none while values of the current setting are missing, and none at the end."""
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
