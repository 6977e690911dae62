"""Gradient equivalence of two losses, and the weighted pair loss that is gradient equivalent to a loss.

Definition 3.1 of the unified view: two losses are gradient equivalent at an iteration if their gradients by a network's
parameters are the same there.  By the chain rule, equal gradients by the embeddings are sufficient for any network; they
are compared if no network is given.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from likewise.analysis.batches import Batch, random_batches, sizes_for
from likewise.analysis.weights import (
    Loss,
    Weighed,
    as_leaf,
    gradients,
    merge_matrices,
    name_of,
    preserve_state,
    record_matrices,
    weigh,
)
from likewise.formula import RelationLike, SimilarityLike, whole_number


@dataclass(frozen=True)
class PairDifference:
    """The pair to which two losses give the most different weights.

    Examples:
        >>> print(PairDifference(0, 2, "negative", 0.5, (0.25, 0.0)))
        the negative pair (0, 2) of similarity 0.5 weighs 0.25 and 0
    """

    anchor: int
    reference: int
    kind: str
    similarity: float
    weights: tuple[float, float]

    def __str__(self) -> str:
        a, b = self.weights
        where = f"({self.anchor}, {self.reference})"
        return f"the {self.kind} pair {where} of similarity {self.similarity:.3g} weighs {a:.3g} and {b:.3g}"


@dataclass(frozen=True)
class Verdict:
    """The result of a comparison; true if the losses are gradient equivalent.

    Args:
        names: the names of the losses.
        equivalent: whether their gradients are the same on every batch.
        factor: the ratio of the second gradient to the first, if they are equal up to one positive factor.
        difference: the largest difference of an entry, relative to the largest entry, on the worst batch.
        tolerance: the largest difference of equal gradients.
        batches: the number of compared batches, and the number of those with a gradient that is not zero.
        by: what the gradients are taken by, in words.
        worst: the number of the batch with the largest difference.
        cosine: the cosine between the gradients there.
        norms: their norms there.
        pair: the pair whose weights differ most there, if both losses read the same pairs.

    Examples:
        >>> from likewise.losses import MultiSimilarityLoss, RAWLoss
        >>> from likewise.miners import MultiSimilarityMiner
        >>> verdict = gradient_equivalent(RAWLoss(), MultiSimilarityLoss(miner=MultiSimilarityMiner(0.1)))
        >>> bool(verdict), verdict.batches
        (True, (20, 16))
    """

    names: tuple[str, str]
    equivalent: bool
    factor: float | None
    difference: float
    tolerance: float
    batches: tuple[int, int]
    by: str
    worst: int
    cosine: float
    norms: tuple[float, float]
    pair: PairDifference | None

    def __bool__(self) -> bool:
        return self.equivalent

    def __str__(self) -> str:
        a, b = self.names
        number, lively = self.batches
        on = f"on {number} batch{'es' if number > 1 else ''}"
        if self.equivalent:
            if not lively:
                return f"{a} and {b} have no gradient by {self.by} {on}, so that they cannot be compared."
            return (
                f"{a} and {b} are gradient equivalent {on}: their gradients by {self.by} differ by at most "
                f"{self.difference:.1e} of the largest entry."
            )
        if self.factor is not None:
            return (
                f"{a} and {b} are gradient equivalent {on} up to a factor: the gradient of {b} by {self.by} is "
                f"{self.factor:.6g} times that of {a}."
            )
        text = (
            f"{a} and {b} are not gradient equivalent: on batch {self.worst} of {number} the cosine between their "
            f"gradients by {self.by} is {self.cosine:.3f}, and their norms are {self.norms[0]:.3g} and {self.norms[1]:.3g}"
        )
        return f"{text}; {self.pair}." if self.pair is not None else f"{text}."


def gradient_equivalent(
    loss_a: Loss,
    loss_b: Loss,
    embeddings: Tensor | None = None,
    labels: Tensor | None = None,
    *,
    batches: int = 20,
    network: nn.Module | None = None,
    tolerance: float = 1e-8,
    seed: int = 0,
) -> Verdict:
    """Compare the gradients of two losses (Definition 3.1 of the unified view) on a batch, or on random batches.

    Everything is computed on copies, in float64.  The gradients of parameters with the same name and the same values in
    both losses, such as copied proxies, are compared as well.

    Args:
        loss_a: a loss of the library, a wrapper around one, or a function of a matrix of cosines and labels.
        loss_b: another.
        embeddings: a batch, ``(m, d)``; by default random batches are drawn.  With a network, the input of the network.
        labels: the labels of the batch.
        batches: the number of random batches.
        network: compare gradients by its parameters; by default by the embeddings themselves.
        tolerance: the largest difference of equal gradients, relative to the gradient's largest entry.
        seed: the seed of the random batches.

    Returns:
        A `Verdict`: it is true if the losses are gradient equivalent, and its text describes the comparison.

    Examples:
        >>> from likewise.losses import BinomialDevianceLoss, NTXentLoss
        >>> binomial = BinomialDevianceLoss()
        >>> print(gradient_equivalent(binomial, lambda s, y: 2.0 * binomial.from_similarity(s, y)))
        BinomialDevianceLoss and <lambda> are gradient equivalent on 20 batches up to a factor: the gradient of <lambda> by the embeddings is 2 times that of BinomialDevianceLoss.
        >>> print(gradient_equivalent(binomial, NTXentLoss(), batches=2))
        BinomialDevianceLoss and NTXentLoss are not gradient equivalent: on batch 2 of 2 ...
    """
    compared = [_copy(loss) for loss in (loss_a, loss_b)]
    network = _copy(network) if network is not None else None
    shared = _shared_parameters(*compared)
    found = [
        (batch, *_both_gradients(compared, batch, network, shared))
        for batch in _batches(embeddings, labels, compared, batches, network, seed)
    ]
    by = "the embeddings" if network is None else "the network's parameters"
    by += f" and by {' and '.join(shared)}" if shared else ""
    differences = [_difference(a, b) for _, a, b in found]
    worst = max(range(len(found)), key=lambda index: differences[index])
    lively = [(a, b) for _, a, b in found if bool(a.any()) or bool(b.any())]
    equivalent = differences[worst] <= tolerance
    batch, a, b = found[worst]
    norms = float(a.norm()), float(b.norm())
    return Verdict(
        names=(name_of(loss_a), name_of(loss_b)),
        equivalent=equivalent,
        factor=1.0 if equivalent else _factor(lively, tolerance),
        difference=differences[worst],
        tolerance=tolerance,
        batches=(len(found), len(lively)),
        by=by,
        worst=worst + 1,
        cosine=float(a @ b) / (norms[0] * norms[1]) if all(norms) else 0.0,
        norms=norms,
        pair=None if equivalent else _pair_difference(compared, batch, network),
    )


def _copy(module: Any) -> Any:
    return copy.deepcopy(module).double() if isinstance(module, nn.Module) else module


def _batches(
    embeddings: Tensor | None, labels: Tensor | None, losses: list[Any], number: int, network: Any, seed: int
) -> Iterable[Batch]:
    if embeddings is not None:
        if labels is None:
            raise TypeError("labels must be given together with embeddings, but they are None")
        exact = isinstance(embeddings, Tensor) and embeddings.is_floating_point()
        return [Batch(embeddings.double() if exact else embeddings, labels)]
    if network is not None:
        raise TypeError("embeddings must be given together with network, as its input, but they are None")
    classes, dim = sizes_for(*losses)
    return random_batches(whole_number("batches", number, 1), classes=classes, dim=dim, seed=seed)


def _shared_parameters(loss_a: Any, loss_b: Any) -> list[str]:
    """The names of parameters that both losses have, with the same values."""
    if not isinstance(loss_a, nn.Module) or not isinstance(loss_b, nn.Module):
        return []
    of_b = dict(loss_b.named_parameters())
    return [name for name, value in loss_a.named_parameters() if name in of_b and torch.equal(value, of_b[name])]


@torch.enable_grad()
def _both_gradients(losses: list[Any], batch: Batch, network: Any, shared: list[str]) -> tuple[Tensor, Tensor]:
    """The gradients of both losses, each as one vector."""
    if network is None:
        samples = as_leaf(batch.embeddings)
        by = [samples]
    else:
        samples = network(batch.embeddings)  # once for both, because it may draw random numbers
        by = [parameter for parameter in network.parameters() if parameter.requires_grad]
    result = []
    for loss in losses:
        own = dict(loss.named_parameters()) if shared else {}
        with preserve_state(loss, samples):
            value, _ = record_matrices(loss, samples, batch.labels)
        found = gradients(value, [*by, *(own[name] for name in shared)])
        result.append(torch.cat([each.flatten() for each in found]))
    return result[0], result[1]


def _difference(a: Tensor, b: Tensor) -> float:
    largest = max(float(a.abs().max()), float(b.abs().max()))
    return float((a - b).abs().max()) / largest if largest else 0.0


def _factor(lively: list[tuple[Tensor, Tensor]], tolerance: float) -> float | None:
    """The positive ratio of all gradients of the second loss to those of the first, if there is one."""
    a, b = lively[0]
    factor = float(a @ b) / float(a @ a) if bool(a.any()) else 0.0
    same = factor > 0.0 and all(_difference(factor * a, b) <= tolerance for a, b in lively)
    return factor if same else None


def _pair_difference(losses: list[Any], batch: Batch, network: Any) -> PairDifference | None:
    with torch.no_grad():
        samples = batch.embeddings if network is None else network(batch.embeddings)
    try:
        a, b = (merge_matrices(weigh(loss, samples, batch.labels), name_of(loss)) for loss in losses)
    except ValueError:  # several matrices, or none
        return None
    if a.similarities.shape != b.similarities.shape or not torch.allclose(a.similarities, b.similarities):
        return None
    return _largest(a, b)


def _largest(a: Weighed, b: Weighed) -> PairDifference:
    apart = (a.weights - b.weights).abs()
    anchor, reference = divmod(int(apart.argmax()), apart.shape[1])
    at = anchor, reference
    kind = "positive" if a.positive[at] else "negative" if a.negative[at] else "unrelated"
    weights = float(a.weights[at]), float(b.weights[at])
    return PairDifference(anchor, reference, kind, float(a.similarities[at]), weights)


class WeightedEquivalent(nn.Module):
    r"""The weighted pair loss that is gradient equivalent to another: $\sum_{ij}\frac{\partial L}{\partial s_{ij}}s_{ij}$.

    Eq. 4 of the unified view with signed weights: over negative pairs it is $w\,s$, over positive ones $-w\,s$.  Construct
    it with `equivalent_weighted_loss`.

    Attributes:
        loss: the loss, which computes the similarities (and has the proxies).
        fixed: the derivatives of one batch, one tensor for each matrix; ``None``: they are computed for every batch.

    Examples:
        >>> import torch
        >>> from likewise.losses import NTXentLoss
        >>> x, y = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]), torch.tensor([0, 0, 1])
        >>> equivalent_weighted_loss(NTXentLoss(), x, y)
        WeightedEquivalent(
          weights of one batch
          (loss): NTXentLoss(temperature=0.07)
        )
    """

    def __init__(
        self, loss: Loss, fixed: tuple[Weighed, ...] | None = None, *, similarity: SimilarityLike = "cosine"
    ) -> None:
        super().__init__()
        self.loss = loss
        self.similarity = similarity
        self.fixed = fixed

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """``Σ_N w s − Σ_P w s`` over every matrix that the loss computes for the batch."""
        value, seen = record_matrices(
            self.loss, embeddings, labels, references, reference_labels, relation=relation, similarity=self.similarity
        )
        matrices = [matrix for _, matrix in seen]
        if self.fixed is None:
            derivatives = _derivatives_of(self.loss, value, embeddings, matrices)
        else:
            derivatives = [weighed.derivatives.to(matrices[0]) for weighed in self.fixed]
            have, want = ([tuple(each.shape) for each in all_] for all_ in (matrices, derivatives))
            if have != want:
                raise ValueError(
                    f"embeddings must have similarities of the shapes {want} of the fixed weights, but they have {have}"
                )
        terms = [(each * matrix).sum() for each, matrix in zip(derivatives, matrices, strict=True)]
        return torch.stack(terms).sum()

    def extra_repr(self) -> str:
        """Whether the weights are fixed."""
        return "weights computed for every batch" if self.fixed is None else "weights of one batch"


def equivalent_weighted_loss(
    loss: Loss,
    embeddings: Tensor | None = None,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    similarity: SimilarityLike = "cosine",
) -> WeightedEquivalent:
    """Return the weighted pair loss of Theorem 3.1 of the unified view, for any function of similarities.

    With a batch, the weights are fixed to those of this batch: at this batch, the loss and its equivalent have the same
    gradient by the embeddings, hence by the parameters of any network that computed them, and by proxies.  Without one,
    the weights are computed for every batch, and the equivalent can replace the loss in training.

    Other parameters of a loss (a boundary, a temperature, a bias) are not part of pair weights and do not get a
    gradient; `learned_elsewhere` lists them.

    Args:
        loss: a loss of the library, a wrapper around one, or a function of a similarity matrix and labels.  It must depend
            on embeddings only through similarities.
        embeddings: the batch whose weights are used, ``(m, d)``.
        labels: its labels.
        references: what it is compared with; by default the embeddings themselves.
        reference_labels: the references' labels.
        relation: the positive and negative pairs, instead of labels.
        similarity: how embeddings are compared, for a function.

    Examples:
        >>> import torch
        >>> from likewise.losses import CircleLoss
        >>> x, y = torch.randn(6, 4, dtype=torch.float64), torch.arange(6) % 3
        >>> double = equivalent_weighted_loss(CircleLoss(), x, y)
        >>> bool(gradient_equivalent(CircleLoss(), double, x, y, tolerance=1e-12))
        True
        >>> bool(gradient_equivalent(CircleLoss(), equivalent_weighted_loss(CircleLoss())))
        True
    """
    if embeddings is None:
        return WeightedEquivalent(loss, similarity=similarity)
    weighing = weigh(loss, embeddings, labels, references, reference_labels, relation=relation, similarity=similarity)
    _refuse(loss, weighing.unexplained, embeddings.dtype)
    return WeightedEquivalent(loss, weighing.matrices, similarity=similarity)


def _derivatives_of(loss: Loss, value: Tensor, embeddings: Tensor, matrices: list[Tensor]) -> list[Tensor]:
    """The derivatives by similarities; an error if the gradient does not pass only through them."""
    if not embeddings.requires_grad:
        return gradients(value, matrices)
    gradient, *derivatives = gradients(value, [embeddings, *matrices])
    (explained,) = gradients(matrices, [embeddings], derivatives)
    whole = float(gradient.norm())
    _refuse(loss, float((gradient - explained).norm()) / whole if whole else 0.0, embeddings.dtype)
    return derivatives


def _refuse(loss: Loss, unexplained: float, dtype: torch.dtype) -> None:
    if unexplained > torch.finfo(dtype).eps ** 0.5:
        raise ValueError(
            f"loss must be a function of similarities only, but {unexplained:.0%} of the gradient of {name_of(loss)} "
            "does not pass through them, so that no weighting of pairs is equivalent to it"
        )


def learned_elsewhere(
    loss: nn.Module, embeddings: Tensor, labels: Tensor | None = None, *, relation: RelationLike | None = None
) -> dict[str, float]:
    """Return the nonzero fractions of each parameter's gradient that do not pass through pair weights.

    Examples:
        >>> import torch
        >>> from likewise.losses import MarginLoss, ProxyAnchorLoss
        >>> x, y = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]), torch.tensor([0, 0, 1])
        >>> learned_elsewhere(MarginLoss(), x, y)
        {'beta': 1.0}
        >>> learned_elsewhere(ProxyAnchorLoss(2, 2), x, y)
        {}
    """
    leaf = as_leaf(embeddings)
    with preserve_state(loss, leaf):
        value, seen = record_matrices(loss, leaf, labels, relation=relation)
    matrices, named = [matrix for _, matrix in seen], dict(loss.named_parameters())
    found = gradients(value, [*matrices, *named.values()])
    explained = gradients(matrices, list(named.values()), found[: len(matrices)])
    result = {}
    for name, whole, part in zip(named, found[len(matrices) :], explained, strict=True):
        share = float((whole - part).norm()) / float(whole.norm()) if bool(whole.any()) else 0.0
        if share > torch.finfo(whole.dtype).eps ** 0.5:
            result[name] = share
    return result
