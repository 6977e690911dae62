"""Which similarities a pair's weight depends on: the thesis' table 1, derived.

The thesis names three, after Wang et al. 2019: *self* (S), how similar the pair is by itself; *negative relative* (N), how
it compares with the anchor's other negative pairs; *positive relative* (P), how it compares with the anchor's positive
pairs.  Here similarities are moved and the weight is watched:

* S: every similarity of the batch is moved by the same amount.  All comparisons stay as they were, so that a weight which
  changes depends on an absolute similarity, and one which does not is relative through and through;
* N, P: other negative or positive pairs are moved, the pair itself stays: those of the same anchor, those of the other
  end of the pair, all the rest.

A weight may follow smoothly, or only switch when a threshold is crossed (``[…]₊``, a miner): the two are told apart by
moving a hair's breadth and by moving far.  Similarities are the loss's own (minus a distance, where it looks at
distances).  Losses are taken as sums over their units, because a mean over those that are not zero couples all weights
through its denominator, whatever the loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from likewise.analysis.catalog import catalog
from likewise.analysis.curves import with_value
from likewise.analysis.stage import Shown, Stage, Typical, show, typical
from likewise.analysis.weights import Loss
from likewise.losses import PairLoss, ProxyLoss

REGIMES = (
    (Typical(0.3, 0.15), Typical(0.25, 0.15)),  # nothing learned yet
    (Typical(0.5, 0.12), Typical(0.1, 0.15)),
    (Typical(0.6, 0.08), Typical(0.0, 0.12)),  # nearly done
)
"""The batches: how similar positive and negative pairs are."""

CLASSES, PER_CLASS = 4, 3
NEAR = 1e-4  # a hair's breadth, in units of similarity
FAR = (0.03, 0.09, 0.18)
RATE = 1e-3  # a weight that changes by less than a thousandth over a whole unit of similarity does not change


class Follows(IntEnum):
    """How a weight follows a similarity.

    Examples:
        >>> Follows.SMOOTHLY.mark, max(Follows.NOT, Follows.IN_STEPS).mark
        ('●', '○')
    """

    NOT = 0
    IN_STEPS = 1
    SMOOTHLY = 2

    @property
    def mark(self) -> str:
        """For tables."""
        return "–○●"[self]


@dataclass(frozen=True)
class Depends:
    """What the weight of a pair depends on.

    Args:
        itself: the pair's own similarity, its neighbors held fixed.
        S: similarity as such: what changes when all similarities move alike.
        N: other negative pairs.
        P: other positive pairs.
        along: where these are.

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
        """The similarities it depends on, as the thesis would mark them."""
        return "".join(name for name in "SNP" if getattr(self, name))


def similarity_table(losses: Mapping[str, PairLoss | ProxyLoss] | None = None) -> dict[str, dict[str, Depends]]:
    """What the weights of every loss depend on.

    Args:
        losses: the losses by name; by default the whole `catalog`.

    Returns:
        For each loss what the weight of a ``"negative"`` and of a ``"positive"`` pair depends on.

    Examples:
        >>> from likewise.losses import TripletLoss
        >>> similarity_table({"Triplet": TripletLoss()})["Triplet"]["negative"].letters
        'P'
    """
    if losses is None:
        losses = {name: entry.make(CLASSES, 8).double() for name, entry in catalog().items()}
    return {name: derive(loss) for name, loss in losses.items()}


def derive(loss: Loss) -> dict[str, Depends]:
    """What the weights of one loss depend on, for a ``"negative"`` and a ``"positive"`` pair.

    Args:
        loss: a loss of the library or around one, or a function of a similarity matrix and labels.

    Examples:
        >>> from likewise.losses import GeneralizedLiftedStructureLoss
        >>> found = derive(GeneralizedLiftedStructureLoss())["negative"]
        >>> found.N.name, found.P.name, found.S.name
        ('SMOOTHLY', 'NOT', 'NOT')
    """
    if isinstance(loss, PairLoss | ProxyLoss):
        loss = with_value(loss, "reduction", "sum")
    stages = [typical(loss, *regime, CLASSES, PER_CLASS) for regime in REGIMES]
    return {sign: _depends(loss, stages, sign) for sign in ("negative", "positive")}


def as_markdown(table: Mapping[str, Mapping[str, Depends]]) -> str:
    """The table as Markdown: ● follows smoothly, ○ in steps, – not at all.

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
    """Where the derived table and the thesis' differ: what is printed, and what was found.

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
        square = start.between == "samples against samples"
        both_ways = square and not getattr(loss, "takes_references", True)
        for pair in _pairs(start, sign, square):
            for name, places in _neighborhoods(start, pair, square).items():
                if found.get(name) is not Follows.SMOOTHLY:
                    seen = _followed(loss, stage, start, pair, places, uniform=name == "together", both_ways=both_ways)
                    found[name] = max(found.get(name, Follows.NOT), seen)
    words = _WORDS[square]
    sides = {side: max(found.get(f"{place} {side}", Follows.NOT) for place in words) for side in ("N", "P")}
    along = [word for place, word in words.items() if any(found.get(f"{place} {side}") for side in "NP")]
    return Depends(found["itself"], found["together"], sides["N"], sides["P"], tuple(along))


_WORDS = {
    True: {"row": "the anchor's pairs", "column": "the other end's pairs", "elsewhere": "the whole batch"},
    False: {"row": "the sample's proxies", "column": "the proxy's samples", "elsewhere": "the whole batch"},
}


def _pairs(start: Shown, sign: str, square: bool) -> list[tuple[int, int]]:
    """Pairs worth watching: the one with the largest weight, a middling one, and the hardest that has none."""
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


def _neighborhoods(start: Shown, pair: tuple[int, int], square: bool) -> dict[str, Tensor]:
    """Sets of entries to move, by name; of a square matrix with their mirror images, for a similarity is one number."""
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


def _followed(
    loss: Loss, stage: Stage, start: Shown, pair: tuple[int, int], places: Tensor, *, uniform: bool, both_ways: bool
) -> Follows:
    """How the weight of a pair follows when some similarities move."""
    i, j = pair
    # uneven, lest what is moved be compared with itself alone
    sizes = torch.arange(places.numel(), dtype=start.values.dtype).reshape(places.shape)
    direction = places * (1.0 if uniform else 0.5 + (sizes * 0.6180339887) % 1.0 / 2.0)

    def weight(step: float) -> float:
        weights = show(loss, stage, lambda values: values + step * direction, cosines=False).weights
        return float(weights[i, j] + weights[j, i] if both_ways else weights[i, j])

    whole = float(start.weights.abs().max())
    now = weight(0.0)
    if abs(now) > 1e-6 * whole:
        slopes = [(weight(step) - weight(-step)) / (2.0 * step) for step in (NEAR, NEAR / 2.0)]
        # a threshold within reach doubles the second or silences it: there is no slope
        agree = abs(slopes[0] - slopes[1]) < 0.1 * abs(slopes[0])
        if agree and abs(slopes[0]) > RATE * abs(now):
            return Follows.SMOOTHLY
    for step in _both_ways(FAR):
        then = weight(step)
        if abs(then - now) > RATE * max(abs(then), abs(now), RATE * whole):
            return Follows.IN_STEPS
    return Follows.NOT


def _both_ways(steps: tuple[float, ...]) -> Iterator[float]:
    for step in steps:
        yield from (step, -step)
