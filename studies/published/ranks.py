"""A printed tournament beside the one that follows from the results (the thesis, table 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Literal

from likewise.formula import one_of
from likewise.protocols import Tournament
from studies.published.tables import Number


@dataclass(frozen=True)
class Disagreement:
    """A printed number about ranks that does not follow from the results.

    Args:
        method: whose it is.
        metric: ``"total rank"``, ``"average rank"`` or ``"deviation of rank"``.
        printed: the digits in the table.
        recomputed: the number that follows from the results.
        kind: ``"cut off"`` where the digits are right but not rounded, otherwise ``"wrong"``.

    Examples:
        >>> print(Disagreement("Triplet", "average rank", "8.85", 103 / 12, "wrong"))
        Triplet: average rank is printed 8.85, but it is 8.5833 (wrong)
    """

    method: str
    metric: str
    printed: str
    recomputed: float
    kind: Literal["cut off", "wrong"]

    def __str__(self) -> str:
        return f"{self.method}: {self.metric} is printed {self.printed}, but it is {self.recomputed:.4f} ({self.kind})"


def disagreements(found: Tournament, numbers: Sequence[Number]) -> list[Disagreement]:
    """Where a printed tournament differs from the one that follows from the results.

    Args:
        found: the tournament, computed.
        numbers: the printed one, such as ``printed("thesis", table=11)``.

    Examples:
        >>> from likewise.protocols import tournament
        >>> from studies.published.tables import printed, published
        >>> found = tournament(published("thesis", table=(6, 7, 8)))
        >>> for each in disagreements(found, printed("thesis", table=11)):
        ...     print(each)
        SoftTriple: average rank is printed 3.16, but it is 3.1667 (cut off)
        LiftedStructure: deviation of rank is printed 1.89, but it is 1.8829 (wrong)
        Triplet: average rank is printed 8.85, but it is 8.5833 (wrong)
    """
    known = {each.method: each for each in found.standings}
    differ = []
    for number in numbers:
        if number.method not in known:
            raise ValueError(f"numbers must be of methods that took part, but {number.method!r} did not")
        standing = known[number.method]
        values = {
            "total rank": standing.total,
            "average rank": standing.average,
            "deviation of rank": standing.deviation,
        }
        value = values[one_of("numbers[…].metric", number.metric, values)]
        if value is None:
            raise ValueError(f"{number.method} has one experiment, so that no deviation follows from the results")
        exact, unit = Decimal(repr(value)), Decimal(number.printed)
        if exact.quantize(unit, ROUND_HALF_UP) != unit:
            cut = exact.quantize(unit, ROUND_DOWN) == unit
            differ.append(
                Disagreement(number.method, number.metric, number.printed, value, "cut off" if cut else "wrong")
            )
    return differ
