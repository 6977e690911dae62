"""The similarities that a pair's weight depends on: table 1 of the thesis, derived.

The thesis distinguishes three, after Wang et al. 2019: *self* (S), the similarity of the pair itself; *negative relative*
(N), its comparison with the anchor's other negative pairs; *positive relative* (P), its comparison with the anchor's
positive pairs.  The table is derived by changing similarities and observing the weight:

* S: every similarity of the batch changes by the same amount.  All comparisons are unchanged, so a weight that changes
  depends on an absolute similarity, and one that does not is purely relative;
* N, P: other negative or positive pairs change and the pair itself does not: the pairs of the same anchor, of the other
  member of the pair, or all others.

A weight may change smoothly, or only where a threshold is crossed (``[…]₊``, a miner): small and large changes
distinguish the two.  Similarities are those of the loss (the negative of a distance for a loss on distances).  Losses are
sums over their units, because a mean over nonzero units couples all weights through its denominator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from likewise.analysis.catalog import catalog
from likewise.analysis.curves import with_value
from likewise.analysis.stage import Observation, Stage, Typical, show, typical_stage
from likewise.analysis.weights import Loss
from likewise.losses import Between, PairLoss, ProxyLoss

REGIMES = (
    (Typical(0.3, 0.15), Typical(0.25, 0.15)),  # before training
    (Typical(0.5, 0.12), Typical(0.1, 0.15)),
    (Typical(0.6, 0.08), Typical(0.0, 0.12)),  # late in training
)
"""The batches: cosines of positive and negative pairs."""

CLASSES, PER_CLASS = 4, 3
NEAR = 1e-4  # a small change, in units of similarity
FAR = (0.03, 0.09, 0.18)
RATE = 1e-3  # a weight that changes by less than a thousandth over a whole unit of similarity does not change


class Follows(IntEnum):
    """How a weight depends on a similarity.

    Examples:
        >>> Follows.SMOOTHLY.mark, max(Follows.NOT, Follows.IN_STEPS).mark
        ('●', '○')
    """

    NOT = 0
    IN_STEPS = 1
    SMOOTHLY = 2

    @property
    def mark(self) -> str:
        """The mark in tables."""
        return "–○●"[self]


@dataclass(frozen=True)
class Depends:
    """The dependencies of a pair's weight.

    Args:
        itself: the pair's similarity, with all others fixed.
        S: absolute similarity: the effect of an equal change of all similarities.
        N: other negative pairs.
        P: other positive pairs.
        along: the location of these pairs.

    Examples:
        >>> from likewise.losses import ContrastiveLoss
        >>> derive(ContrastiveLoss())["negative"].letters
        'S'
    """

    itself: Follows
    S: Follows
    N: Follows
    P: Follows
    along: tuple[str, ...]

    @property
    def letters(self) -> str:
        """The similarities it depends on, in the notation of the thesis."""
        return "".join(name for name in "SNP" if getattr(self, name))


def similarity_table(losses: Mapping[str, PairLoss | ProxyLoss] | None = None) -> dict[str, dict[str, Depends]]:
    """The dependencies of the weights of every loss.

    Args:
        losses: the losses by name; by default the whole `catalog`.

    Returns:
        For each loss the dependencies of the weights of a ``"negative"`` and a ``"positive"`` pair.

    Examples:
        >>> from likewise.losses import TripletLoss
        >>> similarity_table({"Triplet": TripletLoss()})["Triplet"]["negative"].letters
        'P'
    """
    if losses is None:
        losses = {name: entry.make(CLASSES, 8).double() for name, entry in catalog().items()}
    return {name: derive(loss) for name, loss in losses.items()}


def derive(loss: Loss) -> dict[str, Depends]:
    """Derive the dependencies of one loss's weights, for a ``"negative"`` and a ``"positive"`` pair.

    Args:
        loss: a loss of the library, a wrapper, or a function of a similarity matrix and labels.

    Examples:
        >>> from likewise.losses import GeneralizedLiftedStructureLoss
        >>> found = derive(GeneralizedLiftedStructureLoss())["negative"]
        >>> found.N.name, found.P.name, found.S.name
        ('SMOOTHLY', 'NOT', 'NOT')
    """
    if isinstance(loss, PairLoss | ProxyLoss):
        loss = with_value(loss, "reduction", "sum")
    stages = [typical_stage(loss, *regime, CLASSES, PER_CLASS) for regime in REGIMES]
    return {sign: _depends(loss, stages, sign) for sign in ("negative", "positive")}


def as_markdown(table: Mapping[str, Mapping[str, Depends]]) -> str:
    """The table as Markdown: ● smooth dependence, ○ in steps, – none.

    Examples:
        >>> from likewise.losses import TripletLoss
        >>> print(as_markdown(similarity_table({"Triplet": TripletLoss()})).splitlines()[-1])
        | Triplet | – | – | ○ | – | ○ | – | the anchor's pairs |
    """
    lines = [
        "| | of a negative pair: S | N | P | of a positive pair: S | N | P | the others are |",
        "| --- | :-: | :-: | :-: | :-: | :-: | :-: | --- |",
    ]
    for name, found in table.items():
        marks = [getattr(found[sign], kind).mark for sign in ("negative", "positive") for kind in "SNP"]
        along = list(dict.fromkeys(word for sign in ("negative", "positive") for word in found[sign].along))
        whose = "the whole batch" if "the whole batch" in along else ", ".join(along) or "–"
        lines.append(f"| {name} | {' | '.join(marks)} | {whose} |")
    return "\n".join(lines) + "\n"


PRINTED = {
    "Contrastive": "S",
    "Triplet": "P",
    "Generalized lifted structure": "N",
    "N-pairs": "N",
    "Multi-similarity + its miner": "SNP",
}
"""Table 1 of the thesis, which is about negative pairs; its lifted structure is Eq. 2.21, the generalized one."""


def differences(table: Mapping[str, Mapping[str, Depends]]) -> dict[str, tuple[str, str]]:
    """The differences between the thesis' table and the derived one: the printed and the derived letters.

    Examples:
        >>> from likewise.losses import TripletLoss
        >>> differences(similarity_table({"Triplet": TripletLoss()}))
        {}
    """
    both = {name: (letters, table[name]["negative"].letters) for name, letters in PRINTED.items() if name in table}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def _depends(loss: Loss, stages: list[Stage], sign: str) -> Depends:
    found: dict[str, Follows] = {}
    square = both_ways = False
    for stage in stages:
        start = show(loss, stage, lambda values: values, cosines=False)
        square = start.between == Between.SAMPLES_SAMPLES.value
        both_ways = square and not getattr(loss, "takes_references", True)
        for pair in _pairs(start, sign, square):
            for name, places in _neighborhoods(start, pair, square).items():
                if found.get(name) is not Follows.SMOOTHLY:
                    seen = _measure(loss, stage, start, pair, places, uniform=name == "together", both_ways=both_ways)
                    found[name] = max(found.get(name, Follows.NOT), seen)
    words = _WORDS[square]
    sides = {side: max(found.get(f"{place} {side}", Follows.NOT) for place in words) for side in ("N", "P")}
    along = [word for place, word in words.items() if any(found.get(f"{place} {side}") for side in "NP")]
    return Depends(found["itself"], found["together"], sides["N"], sides["P"], tuple(along))


_WORDS = {
    True: {"row": "the anchor's pairs", "column": "the other end's pairs", "elsewhere": "the whole batch"},
    False: {"row": "the sample's proxies", "column": "the proxy's samples", "elsewhere": "the whole batch"},
}


def _pairs(start: Observation, sign: str, square: bool) -> list[tuple[int, int]]:
    """The pairs to observe: the one with the largest weight, a median one, and the hardest one without weight."""
    mask = start.positive if sign == "positive" else start.negative
    if square:
        mask = mask.triu(1)
    places = mask.nonzero()
    weights = start.weights[mask].abs()
    order = weights.argsort(descending=True)
    heavy = order[weights[order] > 1e-6 * weights.max()]
    hardness = start.values[mask] * (-1.0 if sign == "positive" else 1.0)
    idle = hardness.masked_fill(weights > 1e-6 * weights.max(), -torch.inf)
    chosen = [int(heavy[0]), int(heavy[len(heavy) // 2])] if len(heavy) else []
    chosen += [int(idle.argmax())] if bool(idle.isfinite().any()) else []
    return [(int(places[place, 0]), int(places[place, 1])) for place in dict.fromkeys(chosen)]


def _neighborhoods(start: Observation, pair: tuple[int, int], square: bool) -> dict[str, Tensor]:
    """Sets of entries to change, by name; symmetric for a square matrix, because both entries are one similarity."""
    i, j = pair
    row, column, own = (torch.zeros_like(start.positive) for _ in range(3))
    row[i], column[:, j], own[i, j] = True, True, True
    everything = start.positive | start.negative
    sets = {"itself": own, "together": everything}
    for side, mask in (("N", start.negative), ("P", start.positive)):
        sets[f"row {side}"] = row & mask & ~own
        sets[f"column {side}"] = column & mask & ~own
    if square:
        sets = {name: places | places.T for name, places in sets.items()}
        row, column = row | row.T, column | column.T
    far = everything & ~row & ~column
    sets["elsewhere N"], sets["elsewhere P"] = far & start.negative, far & start.positive
    return {name: places for name, places in sets.items() if bool(places.any())}


def _measure(
    loss: Loss,
    stage: Stage,
    start: Observation,
    pair: tuple[int, int],
    places: Tensor,
    *,
    uniform: bool,
    both_ways: bool,
) -> Follows:
    """How the weight of a pair depends on some similarities."""
    i, j = pair
    # unequal steps, because comparisons among equally changed entries would not change
    sizes = torch.arange(places.numel(), dtype=start.values.dtype).reshape(places.shape)
    direction = places * (1.0 if uniform else 0.5 + (sizes * 0.6180339887) % 1.0 / 2.0)

    def weight(step: float) -> float:
        weights = show(loss, stage, lambda values: values + step * direction, cosines=False).weights
        return float(weights[i, j] + weights[j, i] if both_ways else weights[i, j])

    whole = float(start.weights.abs().max())
    now = weight(0.0)
    if abs(now) > 1e-6 * whole:
        derivatives = [(weight(step) - weight(-step)) / (2.0 * step) for step in (NEAR, NEAR / 2.0)]
        # a threshold within the step makes the differences inconsistent: there is no derivative
        agree = abs(derivatives[0] - derivatives[1]) < 0.1 * abs(derivatives[0])
        if agree and abs(derivatives[0]) > RATE * abs(now):
            return Follows.SMOOTHLY
    for step in _both_ways(FAR):
        then = weight(step)
        if abs(then - now) > RATE * max(abs(then), abs(now), RATE * whole):
            return Follows.IN_STEPS
    return Follows.NOT


def _both_ways(steps: tuple[float, ...]) -> Iterator[float]:
    for step in steps:
        yield from (step, -step)
