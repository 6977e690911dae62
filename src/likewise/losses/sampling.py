r"""Partial-FC sampling: the batch's classes plus randomly drawn ones (An et al. 2021, 2022).

With the classes $S$ of a call, $D=\sum_c e^{z_c}$ and $D_S=\sum_{c\in S}e^{z_c}$, a softmax loss misses
$\log D-\log D_S=-\log(1-P)$, where $P$ is the probability that the full softmax gives to the classes left out.  The
sampled loss is therefore never above the full one, and its gradient does not change those classes.

With the correction, each drawn class has the weight $(C-u)/(k-u)$, the number of classes that it represents, where $u$
of the $k$ classes are those of the batch; the expected denominator is then the full one. Because the loss is a
logarithm, the corrected loss is still too small on average, by about half the variance of $D_S/D$, but not for every
draw.
"""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor

from likewise._compat import is_inside_func
from likewise.formula import (
    Apply,
    Declaration,
    Folded,
    Formula,
    LogSumExp,
    PerReference,
    Side,
    Sum,
    Term,
    check_number_of_classes,
    exp,
    sort_declaration,
)


def number_of_classes(sampled: object, classes: int) -> int:
    """The number of classes that a batch is compared with, from a fraction up to 1 or a number above 1.

    Examples:
        >>> number_of_classes(0.1, 1000), number_of_classes(64, 1000), number_of_classes(64, 10)
        (100, 64, 10)
        >>> number_of_classes(-1, 1000)
        Traceback (most recent call last):
        ...
        ValueError: sampled must be a fraction of the classes, up to 1, or a whole number of them, above 1, but it is -1
    """
    number = isinstance(sampled, Real) and not isinstance(sampled, bool)
    if not number or not 0.0 < float(sampled) < math.inf or (sampled > 1 and sampled != int(sampled)):  # type: ignore[arg-type, operator, call-overload]
        raise ValueError(
            f"sampled must be a fraction of the classes, up to 1, or a whole number of them, above 1, but it is {sampled!r}"
        )
    fraction = float(sampled)  # type: ignore[arg-type]
    return min(classes, math.ceil(fraction * classes) if fraction <= 1.0 else int(fraction))


def draw(
    labels: Tensor, classes: int, number: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Choose the classes of the batch and others, uniformly, without replacement and without synchronizing.

    Args:
        labels: class indices of the batch, ``(m,)``.
        classes: the number of classes.
        number: the number of chosen classes.
        generator: the random number generator; by default the device's.

    Returns:
        The chosen classes in order, ``(number,)``; the position of each label among them, ``(m,)``, −1 if its class was
        left out; and the logarithm of the number of classes that each represents, ``(number,)``, zero for the batch's.

    Examples:
        >>> import torch
        >>> chosen, positions, log_weights = draw(torch.tensor([7, 3, 7]), 10, 6)
        >>> chosen[positions].tolist(), log_weights.exp().sum().round()
        ([7, 3, 7], tensor(10.))
    """
    check_number_of_classes(labels, number, classes)
    # float64, because equal keys would be common among ten million keys of 24 bits
    keys = torch.rand(classes, dtype=torch.float64, device=labels.device, generator=generator)
    # vmap cannot write labels that it maps over into keys that it does not map over
    keys = keys.index_fill(0, labels, 2.0) if is_inside_func() else keys.index_fill_(0, labels, 2.0)
    chosen = keys.topk(number, sorted=False).indices.sort().values
    positions = torch.searchsorted(chosen, labels.contiguous()).clamp_max(number - 1)
    positions = torch.where(chosen[positions] == labels, positions, -1)
    drawn = keys[chosen] < 1.5
    others = drawn.sum()
    stands_for = (classes - number + others) / others.clamp_min(1)
    return chosen, positions, torch.where(drawn, stands_for.log(), 0.0)


def reweigh_declaration(declaration: Declaration, log_weights: Tensor) -> Declaration:
    """Apply `reweigh` to all terms of a declaration.

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, logsumexp, per_anchor, s
        >>> reweigh_declaration(per_anchor(logsumexp(s, NEGATIVES), needs=()), torch.zeros(2))[0].total
        logsumexp[negatives](s + log(weight))
    """
    terms, regularizers, matrix_losses = sort_declaration(declaration)
    return (*(reweigh(term, log_weights) for term in terms), *regularizers, *matrix_losses)


def reweigh(term: Term, log_weights: Tensor) -> Term:
    """Weight each reference in a term's folds over negatives by the number of classes that it represents.

    Args:
        term: folds over negatives are log-sum-exps, sums or counts of them.
        log_weights: one number per reference.

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, logsumexp, per_anchor, s
        >>> reweigh(per_anchor(logsumexp(s, NEGATIVES), needs=()), torch.zeros(2)).total
        logsumexp[negatives](s + log(weight))
    """
    weights = PerReference("log(weight)", lambda batch: log_weights.to(batch.dtype))
    made: dict[Formula, Formula] = {}
    return term.map(lambda formula: _reweigh(formula, weights, made))


def _reweigh(node: Formula, log_weights: PerReference, made: dict[Formula, Formula]) -> Formula:
    if node in made:
        return made[node]
    new = node
    if isinstance(node, Apply):
        arguments = tuple(_reweigh(each, log_weights, made) for each in node.arguments)
        if any(left is not right for left, right in zip(arguments, node.arguments, strict=True)):
            new = Apply(node.operation, arguments)
    elif isinstance(node, Folded) and node.over is not Side.POSITIVES:
        if isinstance(node.fold, LogSumExp):
            new = Folded(node.fold, node.over, _reweigh(node.curve, log_weights, made) + log_weights)
        elif isinstance(node.fold, Sum):
            new = Folded(node.fold, node.over, _reweigh(node.curve, log_weights, made) * exp(log_weights))
        elif node.fold.name != "count":
            raise TypeError(f"corrected needs negatives in a log-sum-exp or a sum, but the loss has a {node.fold.name}")
    made[node] = new
    return new
