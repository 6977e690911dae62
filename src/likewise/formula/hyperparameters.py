"""Declarations of hyper-parameters: default, meaning, limits and search range in one place.

Validation, documentation, ``--help`` and hyper-parameter search read the same declaration.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any


@dataclass(frozen=True)
class Hyper:
    """The declaration of one hyper-parameter.

    Examples:
        >>> Hyper("a margin", at_least=0.0, at_most=2.0).limits()
        '≥ 0 and ≤ 2'
    """

    help: str
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    search: tuple[float, float] | None = None
    log: bool = False
    step: float | None = None
    learn: bool | str = False

    @property
    def is_learned_as_logarithm(self) -> bool:
        """Whether the parameter is the logarithm, so that an optimizer step cannot make the number negative."""
        return self.learn is not False and self.above == 0.0

    def limits(self) -> str:
        """The limits in words."""
        bounds = (("> {:g}", self.above), ("≥ {:g}", self.at_least), ("< {:g}", self.below), ("≤ {:g}", self.at_most))
        return " and ".join(text.format(bound) for text, bound in bounds if bound is not None)

    def allows(self, value: float) -> bool:
        """Return whether a value is finite and within the limits."""
        return (
            math.isfinite(value)
            and (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )

    def range(self, value: float) -> tuple[float, float]:
        """Return the range of a slider: the search range, the limits, or a range around a value; it contains the value.

        Examples:
            >>> Hyper("a margin", search=(0.0, 1.0)).range(2.0), Hyper("a scale", above=0.0, at_most=1.0).range(0.5)
            ((0.0, 2.0), (0.001, 1.0))
        """
        around = sorted((value / 4.0, value * 4.0)) if value else (-1.0, 1.0)
        limits = tuple(
            next((limit for limit in side if limit is not None), default)
            for side, default in zip(((self.at_least, self.above), (self.at_most, self.below)), around, strict=True)
        )
        least, most = self.search or limits
        least, most = min(least, value), max(most, value)
        step = (most - least) / 1000.0
        least = least if self.allows(least) else least + step  # an exclusive limit
        most = most if self.allows(most) else most - step
        return (round(least), round(most)) if isinstance(value, int) else (least, most)


def hyper(
    *,
    default: float | None,
    help: str,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    search: tuple[float, float] | None = None,
    log: bool = False,
    step: float | None = None,
    learn: bool | str = False,
) -> Any:
    """Declare a hyper-parameter of a loss or a miner as a class attribute.

    A loss learns a hyper-parameter that is declared with ``learn``: the constructor takes the initial value, and the
    attribute is a tensor with a gradient, which formulas take like a number.  With ``above=0.0`` the parameter is its
    logarithm, ``log_<name>``; without limits it is ``<name>``.

    Args:
        default: the default; an ``int`` makes the hyper-parameter a whole number; ``None``: the class decides.
        help: its meaning, a phrase.
        above: it must be larger than this.
        at_least: it must not be smaller than this.
        below: it must be smaller than this.
        at_most: it must not be larger than this.
        search: the default search range.
        log: whether a search samples on a logarithmic scale.
        step: the step of a grid search, if a paper states one.
        learn: whether a loss learns it, or the name of the option, ``True`` or ``False``, that decides.

    Examples:
        >>> from likewise.losses import MultiSimilarityLoss
        >>> hyperparameters(MultiSimilarityLoss)["beta"].search
        (1.0, 100.0)
    """
    if not isinstance(learn, bool | str):
        raise TypeError(f"learn must be True, False or the name of an option, but it is {learn!r}")
    declared = Hyper(help, above, at_least, below, at_most, search, log, step, learn)
    if learn is not False and declared.limits() not in ("", "> 0"):
        raise TypeError(
            f"a hyper-parameter that is learned must have no limits, or above=0.0, but its limits are {declared.limits()}"
        )
    return dataclasses.field(default=default, metadata={"hyper": declared})


def option(*, default: Any, help: str, kw_only: bool = True) -> Any:
    """Declare an option that is not a hyper-parameter.

    Args:
        default: the default.
        help: its meaning, a phrase.
        kw_only: whether it may be given by keyword only; type checkers read it at the call.

    Examples:
        >>> option(default=None, kw_only=True, help="a miner").kw_only
        True
    """
    return dataclasses.field(default=default, kw_only=kw_only, metadata={"help": help})


def hyperparameters(of: Any) -> dict[str, Hyper]:
    """Return the hyper-parameters that a class (or an object of it) declares, by name.

    Examples:
        >>> from likewise.losses import TripletLoss
        >>> hyperparameters(TripletLoss)["margin"].limits()
        '≥ -4 and ≤ 4'
    """
    return {f.name: f.metadata["hyper"] for f in dataclasses.fields(of) if "hyper" in f.metadata}


def check_hyperparameters(of: Any) -> None:
    """Check every hyper-parameter of an object against its declaration; all errors have the same form.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> NTXentLoss(temperature=0.0)
        Traceback (most recent call last):
        ...
        ValueError: NTXentLoss: temperature must be a number > 0, but it is 0.0
    """
    for field in dataclasses.fields(of):
        declared: Hyper | None = field.metadata.get("hyper")
        value = getattr(of, field.name)
        if declared is None:
            if isinstance(field.default, bool) and not isinstance(value, bool):
                raise TypeError(f"{type(of).__name__}: {field.name} must be True or False, but it is {value!r}")
            continue
        whole = isinstance(field.default, int)
        number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
        if not number or not declared.allows(float(value)):
            kind = " ".join(filter(None, ["a whole number" if whole else "a number", declared.limits()]))
            raise ValueError(f"{type(of).__name__}: {field.name} must be {kind}, but it is {value!r}")
