"""Weight curves: the weight of a pair against its similarity (figure 1 of the unified view).

The cosine of one pair of a batch is changed, all others are fixed, and the weight of that pair is computed.  This works
for any loss, because a `likewise.formula.similarity_hook` replaces its matrix.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.analysis.stage import NEGATIVES, POSITIVES, Stage, Typical, real_stage, show, typical_stage
from likewise.analysis.weights import Loss
from likewise.formula import Hyper, hyperparameters, whole_number
from likewise.losses import Between, PairLoss, ProxyLoss

GRID = (torch.arange(200, dtype=torch.float64) + 0.5) / 100.0 - 1.0
"""Cosines from −1 to 1, without round numbers, so that thresholds are between two of them."""


@dataclass(frozen=True, eq=False)
class Curve:
    """The weight of a pair as a function of its cosine.

    Args:
        similarities: the cosines of the pair, ``(g,)``.
        positive: the weight of a positive pair there, one row per anchor, ``(rows, g)``.
        negative: the weight of a negative pair, ``(rows, g)``.
        positives: the cosines of all positive pairs of the batch.
        negatives: the cosines of all negative pairs.
        between: what is compared, in words.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> curve = weight_curves(NTXentLoss())["NTXentLoss"]
        >>> curve.negative.shape
        torch.Size([1, 200])
    """

    similarities: Tensor
    positive: Tensor
    negative: Tensor
    positives: Tensor
    negatives: Tensor
    between: str


@dataclass(frozen=True, eq=False)
class Curves:
    """Curves by name: of several losses, or of one with several values of a hyper-parameter.

    Args:
        of: the curves.

    Examples:
        >>> from likewise.losses import CircleLoss, NTXentLoss
        >>> list(weight_curves([CircleLoss(), NTXentLoss()], similarities=torch.tensor([0.5])))
        ['CircleLoss', 'NTXentLoss']
    """

    of: Mapping[str, Curve]

    def __getitem__(self, name: str) -> Curve:
        return self.of[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.of)

    def __len__(self) -> int:
        return len(self.of)


def weight_curves(
    losses: Loss | Sequence[Loss] | Mapping[str, Loss],
    *,
    similarities: Tensor = GRID,
    embeddings: Tensor | None = None,
    labels: Tensor | None = None,
    positives: Typical = POSITIVES,
    negatives: Typical = NEGATIVES,
    classes: int = 8,
    per_class: int = 4,
    rows: int = 4,
) -> Curves:
    """Compute weight against cosine for a positive and a negative pair, of one loss or several.

    In the row of an anchor, the cosine of one pair varies and the other pairs are fixed.  The weight is
    ``(1 − 2 I) ∂L/∂cos``: that of `pair_weights` for a loss on cosines, and by the chain rule for a loss on distances,
    so that all losses are comparable.  For a loss that is defined on unordered pairs both entries of the pair change,
    and their weights are added.

    Args:
        losses: a loss of the library, a wrapper, or a function of a similarity matrix and labels; several in a list, or
            with names in a mapping.
        similarities: the cosines to try.
        embeddings: a real batch; by default a typical one is generated, as a matrix of cosines.
        labels: the labels of the real batch.
        positives: the cosines of positive pairs in a typical batch.
        negatives: the cosines of its negative pairs.
        classes: the number of classes of a typical batch.
        per_class: the number of samples of each of them.
        rows: the number of anchors of a real batch, evenly chosen; each with its pairs of median similarity.

    Returns:
        `Curves`: a `Curve` for each loss, by name.

    Examples:
        >>> from likewise.losses import ContrastiveLoss
        >>> curve = weight_curves(ContrastiveLoss(reduction="sum"), similarities=torch.tensor([0.4, 0.6]))[
        ...     "ContrastiveLoss"
        ... ]
        >>> curve.positive.tolist(), curve.negative.tolist()
        ([[1.0, 1.0]], [[0.0, 1.0]])
    """
    grid = torch.as_tensor(similarities).detach().double()
    if grid.ndim != 1 or not len(grid) or not bool((grid.abs() <= 1.0).all()):
        raise ValueError(f"similarities must be cosines from -1 to 1 in one dimension, but they are {similarities!r}")
    whole_number("rows", rows, 1)
    curves = {}
    for name, loss in _name_losses(losses).items():
        if embeddings is None:
            stage = typical_stage(loss, positives, negatives, classes, per_class)
        else:
            stage = real_stage(embeddings, labels)
        curves[name] = _curve(loss, stage, grid, 1 if embeddings is None else rows, name)
    return Curves(curves)


def sensitivity(
    loss: PairLoss | ProxyLoss,
    parameter: str,
    values: Sequence[float] | None = None,
    *,
    similarities: Tensor = GRID,
    embeddings: Tensor | None = None,
    labels: Tensor | None = None,
) -> Curves:
    """Compute the curves of a loss as a hyper-parameter varies: `weight_curves` of the losses that `vary` returns.

    Args:
        loss: a loss of the library.
        parameter: the hyper-parameter.
        values: its values; by default five over its search range.
        similarities: the cosines to try.
        embeddings: a real batch; by default a typical one is generated.
        labels: the labels of the real batch.

    Returns:
        A curve for each value, named ``"parameter=value"``.

    Examples:
        >>> from likewise.losses import CircleLoss
        >>> list(sensitivity(CircleLoss(), "gamma", [20.0, 80.0], similarities=torch.tensor([0.5])))
        ['gamma=20', 'gamma=80']
    """
    return weight_curves(vary(loss, parameter, values), similarities=similarities, embeddings=embeddings, labels=labels)


def sensitivities(
    loss: PairLoss | ProxyLoss,
    *,
    similarities: Tensor = GRID,
    embeddings: Tensor | None = None,
    labels: Tensor | None = None,
) -> dict[str, Curves]:
    """Compute `sensitivity` for each hyper-parameter of a loss over its search range; curves by name.

    Args:
        loss: a loss of the library.
        similarities: the cosines to try.
        embeddings: a real batch; by default a typical one is generated.
        labels: the labels of the real batch.

    Examples:
        >>> from likewise.losses import CircleLoss
        >>> list(sensitivities(CircleLoss(), similarities=torch.tensor([0.5])))
        ['margin', 'gamma']
    """
    return {
        name: sensitivity(loss, name, similarities=similarities, embeddings=embeddings, labels=labels)
        for name in hyperparameters(loss)
    }


def vary(loss: PairLoss | ProxyLoss, parameter: str, values: Sequence[float] | None = None) -> dict[str, Loss]:
    """Return copies of a loss with several values of a hyper-parameter, by name.

    Args:
        loss: a loss of the library; it is not changed.
        parameter: the hyper-parameter.
        values: its values; by default five over its search range.

    Examples:
        >>> from likewise.losses import CircleLoss
        >>> list(vary(CircleLoss(), "margin"))
        ['margin=0', 'margin=0.15', 'margin=0.3', 'margin=0.45', 'margin=0.6']
    """
    declared = hyperparameters(loss) if isinstance(loss, PairLoss | ProxyLoss) else {}
    if parameter not in declared:
        known = ", ".join(declared) or "it has none"
        raise ValueError(
            f"parameter must be a hyper-parameter of {type(loss).__name__} ({known}), but it is {parameter!r}"
        )
    default = next(field.default for field in _fields(loss) if field.name == parameter)
    tried = values_of(declared[parameter], isinstance(default, int)) if values is None else list(values)
    return {f"{parameter}={value:g}": with_value(loss, parameter, value) for value in tried}


def values_of(declared: Hyper, whole: bool, number: int = 5) -> list[float]:
    """Several values of a hyper-parameter, evenly over its search range.

    Examples:
        >>> values_of(Hyper("a scale", search=(1.0, 100.0), log=True), whole=False, number=3)
        [1.0, 10.0, 100.0]
    """
    assert declared.search is not None
    low, high = declared.search
    if declared.log:
        ends = torch.tensor([low, high], dtype=torch.float64).log()
        found = torch.linspace(float(ends[0]), float(ends[1]), number, dtype=torch.float64).exp()
    else:
        found = torch.linspace(low, high, number, dtype=torch.float64)
    rounded = [round(value) if whole else float(f"{value:.3g}") for value in found.tolist()]
    return [value for value in dict.fromkeys(rounded) if declared.allows(value)]


def with_value(loss: PairLoss | ProxyLoss, name: str, value: float | str) -> PairLoss | ProxyLoss:
    """A copy of a loss with another value of a hyper-parameter or an option, and with its proxies if their number is equal.

    Examples:
        >>> from likewise.losses import CircleLoss
        >>> with_value(CircleLoss(margin=0.3), "gamma", 20.0)
        CircleLoss(margin=0.3, gamma=20.0)
    """
    options = {
        field.name: _constructor_value(field.default, getattr(loss, field.name))
        for field in _fields(loss)
        if field.init
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = type(loss)(**{**options, name: value})
    before, after = loss.state_dict(), made.state_dict()
    varies = {name, f"log_{name}"}
    same = {key: old for key, old in before.items() if key not in varies and old.shape == after[key].shape}
    made.load_state_dict(same, strict=False)
    return made.to(next((each.dtype for each in before.values() if each.is_floating_point()), torch.float32))


def _constructor_value(default: Any, now: Any) -> Any:
    """The argument of the constructor that a value came from: a number, or a flag for a parameter."""
    if isinstance(default, bool):
        return now if isinstance(now, bool) else now is not None
    return now.mean().item() if isinstance(now, Tensor) else now


def _fields(loss: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(loss)


def _curve(loss: Loss, stage: Stage, grid: Tensor, rows: int, name: str) -> Curve:
    """Sweep the median pairs of some anchors."""
    start = show(loss, stage, lambda cosines: cosines)
    both = start.positive.any(dim=1) & start.negative.any(dim=1)
    anchors = both.nonzero().squeeze(1)
    if not len(anchors):
        raise ValueError(f"{name} has no anchor with a positive and a negative pair in this batch")
    chosen = anchors[torch.linspace(0, len(anchors) - 1, min(rows, len(anchors))).long()]
    both_ways = start.between == Between.SAMPLES_SAMPLES.value and not getattr(loss, "takes_references", True)
    swept = []
    for mask in (start.positive, start.negative):
        lines = []
        for anchor in chosen.tolist():
            pair = anchor, _median_of(start.values[anchor], mask[anchor])
            lines.append(torch.stack([_weight_at(loss, stage, pair, float(c), both_ways) for c in grid]))
        swept.append(torch.stack(lines))
    upper = torch.ones_like(start.positive).triu() if both_ways else torch.ones_like(start.positive)
    cosines = [start.values[mask & upper].cpu() for mask in (start.positive, start.negative)]
    return Curve(grid, swept[0], swept[1], cosines[0], cosines[1], start.between)


def _median_of(values: Tensor, mask: Tensor) -> int:
    found = mask.nonzero().squeeze(1)
    return int(found[values[found].argsort()[len(found) // 2]])


def _weight_at(loss: Loss, stage: Stage, pair: tuple[int, int], cosine: float, both_ways: bool) -> Tensor:
    places = [pair, pair[::-1]] if both_ways else [pair]

    def change(cosines: Tensor) -> Tensor:
        changed = cosines.clone()
        for place in places:
            changed[place] = cosine
        return changed

    weights = show(loss, stage, change).weights
    return torch.stack([weights[place] for place in places]).sum().double().cpu()


def _name_losses(losses: Any) -> dict[str, Loss]:
    if isinstance(losses, Mapping):
        return dict(losses)
    several = list(losses) if isinstance(losses, Sequence) else [losses]
    names = [getattr(loss, "__name__", type(loss).__name__) for loss in several]
    if len(set(names)) < len(names):
        raise ValueError(f"losses of the same kind must have names, {{name: loss}}, but they are {names}")
    return dict(zip(names, several, strict=True))
