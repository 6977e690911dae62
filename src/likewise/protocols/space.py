"""Search spaces: settings by name, with their allowed values."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from likewise.formula import Hyper, hyperparameters, one_of
from likewise.protocols.trial import Label

TriedStatus = Literal["done", "failed", "pruned", "running"]

Point: TypeAlias = Mapping[str, Label]
"""A value for each setting of a space, by its path in the configuration, such as ``{"loss.alpha": 2.0}``."""


@dataclass(frozen=True)
class Range:
    """An interval of numbers, both ends included.

    Args:
        low: the smallest value.
        high: the largest value.
        log: use a logarithmic scale.
        step: the step of a grid.
        whole: whole numbers only.
        default: the initial value of a grid search, and the value of a setting that is not searched.
        on_grid: restrict all search methods to the values of the grid, which starts at ``low`` and needs a step.  Otherwise
            the grid contains the default.

    Examples:
        >>> Range(0.0, 0.5, step=0.1).grid()
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
        >>> Range(1e-5, 1e-2, log=True).grid(points=4)
        (1e-05, 0.0001, 0.001, 0.01)
        >>> Range(1, 4, whole=True).grid()
        (1, 2, 3, 4)
        >>> Range(2.0, 100.0, step=2.0, on_grid=True).rounded(31.2)
        32.0
        >>> Range(1.0, 9.0, step=3.0, default=5.0).grid(), Range(1.0, 9.0, step=3.0, default=5.0, on_grid=True).grid()
        ((2.0, 5.0, 8.0), (1.0, 4.0, 7.0))
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    whole: bool = False
    default: float | None = None
    on_grid: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"low must be a number < high, but they are {self.low!r} and {self.high!r}")
        if self.log and self.low <= 0:
            raise ValueError(f"low must be > 0 on a logarithmic scale, but it is {self.low!r}")
        if self.step is not None and not self.step > 0:
            raise ValueError(f"step must be a number > 0, but it is {self.step!r}")
        numbers = [number for number in (self.low, self.high, self.step, self.default) if number is not None]
        if self.whole and any(number != int(number) for number in numbers):
            raise ValueError(f"low, high, step and default must be whole numbers with whole=True, but it is {self!r}")

    def has(self, value: Label) -> bool:
        """Whether a value is in the range."""
        number = isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)
        return number and self.low <= value <= self.high  # type: ignore[operator]

    def at(self, share: float) -> float:
        """Return the value at a fraction in [0, 1] of the range, on its scale, rounded to four digits."""
        low, high = (self.low - 0.5, self.high + 0.5) if self.whole else (self.low, self.high)
        return self.rounded(self._between(low, high, share))

    def _between(self, low: float, high: float, share: float) -> float:
        if self.log:
            return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        return low + share * (high - low)

    def rounded(self, value: float) -> float:
        """Round a value to four digits, or to the grid with ``on_grid``, and clip it to the range."""
        if self.on_grid and self.step is not None:
            return min(self.grid(), key=lambda each: abs(each - value))
        short = round(value) if self.whole else _digits(value, 4)
        value = min(max(short, self.low), self.high)
        return int(value) if self.whole else float(value)

    def grid(self, points: int = 11) -> tuple[float, ...]:
        """Return the values of a grid: by its step, else all whole numbers if they are few, else evenly on its scale.

        Args:
            points: the number of values without a step.
        """
        if self.step is None and not (self.whole and self.high - self.low < 2 * points):
            shares = [index / (points - 1) for index in range(points)]
            values = [self.rounded(self._between(self.low, self.high, share)) for share in shares]
        else:
            step = 1.0 if self.step is None else self.step
            first = self.low + self._offset(step) * step
            count = math.floor((self.high - first) / step * (1 + 1e-9) + 1e-9)
            values = [_digits(first + index * step, 12) for index in range(count + 1)]
        return tuple(dict.fromkeys(int(value) if self.whole else float(value) for value in values))

    def _offset(self, step: float) -> float:
        """Return the start of the grid, in steps above the low end, such that the default is on the grid."""
        if self.default is None or self.on_grid or not self.low <= self.default <= self.high:
            return 0.0
        steps = (self.default - self.low) / step
        rest = steps - math.floor(steps + 1e-9)
        return rest if rest > 1e-9 else 0.0

    @property
    def start(self) -> float:
        """The default, or the midpoint on the scale of the range."""
        return self.at(0.5) if self.default is None else self.default


@dataclass(frozen=True)
class Choice:
    """One of several values; a single value fixes the setting.

    Args:
        values: the allowed values.
        default: the initial value of a grid search; ``None``: the first value.

    Examples:
        >>> Choice(("avg", "max")).start
        'avg'
    """

    values: tuple[Label, ...]
    default: Label = None

    def __post_init__(self) -> None:
        if not isinstance(self.values, tuple) or not self.values:
            raise ValueError(f"values must be a tuple with at least one value, but it is {self.values!r}")

    def has(self, value: Label) -> bool:
        """Whether a value is one of the choices."""
        return any(value == one and type(value) is type(one) for one in self.values)

    def at(self, share: float) -> Label:
        """Return the value at a fraction in [0, 1] of the list."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def grid(self, points: int = 11) -> tuple[Label, ...]:
        """Return all values."""
        return self.values

    @property
    def start(self) -> Label:
        """The default, or the first one."""
        return self.values[0] if self.default is None else self.default


Setting: TypeAlias = Range | Choice
Space: TypeAlias = Mapping[str, Setting]


@dataclass(frozen=True)
class Tried:
    """A point that was tried, or that is running.

    Args:
        point: the values of the settings.
        value: the objective, higher is better; ``None`` if it is unknown.
        reports: intermediate values, by step.
        status: ``"done"``, ``"failed"``, ``"pruned"`` or ``"running"``.

    Examples:
        >>> Tried({"loss.margin": 0.1}, 0.5).status, Tried({"loss.margin": 0.2}, status="failed").value is None
        ('done', True)
    """

    point: Point
    value: float | None = None
    reports: Mapping[int, float] = field(default_factory=dict)
    status: TriedStatus = "done"

    def __post_init__(self) -> None:
        one_of("status", self.status, ("done", "failed", "pruned", "running"))
        known = self.value is not None and math.isfinite(self.value)
        if known if self.status != "done" else not known:
            raise ValueError(f"value must be a finite number if done, else None, but it is {self.value!r}")


def space_of(
    loss: type, miner: type | None = None, extra: Mapping[str, Setting | Label] | None = None
) -> dict[str, Setting]:
    """Return the search space that a loss declares with its hyper-parameters.

    Args:
        loss: the class of the loss.
        miner: the class of its miner, whose hyper-parameters are added.
        extra: additional settings by their path in the configuration, or replacements of declared ones: a `Range`, a
            `Choice`, or a fixed value.

    Examples:
        >>> from likewise.losses import ProxyAnchorLoss
        >>> space = space_of(ProxyAnchorLoss, extra={"loss.margin": 0.1, "optimizer.lr": Range(1e-6, 1e-3, log=True)})
        >>> sorted(space)
        ['loss.alpha', 'loss.margin', 'optimizer.lr']
        >>> space["loss.alpha"].low, space["loss.alpha"].high, space["loss.margin"]
        (1.0, 100.0, Choice(values=(0.1,), default=None))
    """
    space: dict[str, Setting] = {}
    declared: dict[str, Hyper] = {}
    for prefix, owner in (("loss", loss), ("loss.miner", miner)):
        if owner is not None:
            defaults: dict[str, Any] = {one.name: one.default for one in dataclasses.fields(owner)}
            for name, known in hyperparameters(owner).items():
                declared[f"{prefix}.{name}"] = known
                space[f"{prefix}.{name}"] = _range(known, defaults[name])
    for path, value in (extra or {}).items():
        setting = value if isinstance(value, Range | Choice) else Choice((value,))
        if path in declared:
            setting = _within(path, setting, declared[path], space[path])
        elif path.startswith("loss."):
            known_paths = ", ".join(sorted(declared)) or "none"
            raise ValueError(f"extra must name declared hyper-parameters ({known_paths}), but it names {path!r}")
        space[path] = setting
    return space


def _range(known: Hyper, default: float) -> Range:
    if known.search is None:
        raise ValueError(f"a hyper-parameter must declare a search range, but {known.help!r} does not")
    low, high = known.search
    return Range(low, high, known.log, known.step, isinstance(default, int), default)


def _within(path: str, setting: Setting, known: Hyper, usual: Setting) -> Setting:
    """Check a setting that replaces a declared hyper-parameter: within its limits, and whole if that is whole."""
    values = (setting.low, setting.high) if isinstance(setting, Range) else setting.values
    whole = isinstance(usual, Range) and usual.whole
    for value in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not known.allows(value) or (whole and value != int(value)):  # type: ignore[arg-type]
            kind = "a whole number" if whole else "a number"
            raise ValueError(f"{path} must be {kind} {known.limits()}".rstrip() + f", but {value!r} is not")
    if not isinstance(setting, Range):
        return setting
    default = usual.start if setting.default is None and setting.has(usual.start) else setting.default
    return dataclasses.replace(setting, whole=whole, default=default)  # type: ignore[arg-type]


def at_point(config: Mapping[str, Any], point: Point) -> dict[str, Any]:
    """Return a configuration with the values of a point.

    Args:
        config: the configuration, as ``likewise train`` resolves it; it is not changed.
        point: values by path; the arguments of a class are named without ``init_args``, as on the command line.

    Examples:
        >>> config = {"loss": {"class_path": "likewise.losses.TripletLoss", "init_args": {"margin": 0.1}}}
        >>> at_point(config, {"loss.margin": 0.2})
        {'loss': {'class_path': 'likewise.losses.TripletLoss', 'init_args': {'margin': 0.2}}}
    """
    changed: dict[str, Any] = copy.deepcopy(dict(config))
    for path, value in point.items():
        *words, last = path.split(".")
        place: Any = changed
        for word in words:
            place = place.get(word)
            if isinstance(place, dict) and "class_path" in place:
                place = place.setdefault("init_args", {})
            if not isinstance(place, dict):
                raise ValueError(f"{path} must name a setting of the configuration, but it has no section {word!r}")
        place[last] = value
    return changed


def check_space(space: Space) -> Space:
    """Check that a space is not empty, and that every setting is a `Range` or a `Choice`.

    Examples:
        >>> list(check_space({"loss.margin": Range(0.0, 1.0)}))
        ['loss.margin']
    """
    if not space:
        raise ValueError("space must have at least one setting, but it is empty")
    for path, setting in space.items():
        if not isinstance(setting, Range | Choice):
            raise TypeError(f"space[{path!r}] must be a Range or a Choice, but it is {setting!r}")
    return space


def _digits(value: float, count: int) -> float:
    return float(f"{value:.{count}g}")
