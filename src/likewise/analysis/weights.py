"""Every loss is a weighting of pairs: read the weights of any of them.

The unified view's Theorem 3.1: a loss that sees embeddings through their similarities alone has the gradient of

    Σ_i ( Σ_{k ∈ N_i} w_ik s_ik − Σ_{j ∈ P_i} w_ij s_ij ),    w_ij = (1 − 2 I_ij) ∂L/∂s_ij,

with the weights held fixed; ``I`` is 1 for a positive pair.  The paper has a factor ½ there, because it takes ``s_ij``
and ``s_ji`` for one number; here the matrix has m · n free entries, which is what losses compute with, and no factor.
Where a loss treats both alike, the pair's weight is the sum of the two.  Weights are signed: that they are never negative
is a property that some losses have and some have not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from likewise.formula import (
    Mined,
    PairBatch,
    Relation,
    SimilarityLike,
    as_similarity,
    batch_from_embeddings,
    full_precision,
    similarity_hook,
)

Loss = nn.Module | Callable[[Tensor, Tensor], Tensor]
"""A loss of the library, or anybody's function of a similarity matrix and labels."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """One similarity matrix that a loss looked at, and how hard it pulls at each entry.

    Args:
        between: what is compared with what, in words: ``"samples against samples"``, ``"samples against proxies"``.
        similarities: the matrix, ``(m, n)``.
        slopes: ``∂L/∂s``, ``(m, n)``.
        positive: which pairs are positive, before any mining.
        negative: which pairs are negative.

    Examples:
        >>> import torch
        >>> yes = torch.tensor([[True, False]])
        >>> Weighed("anything", torch.zeros(1, 2), torch.tensor([[-1.0, 0.5]]), yes, ~yes).weights
        tensor([[1.0000, 0.5000]])
    """

    between: str
    similarities: Tensor
    slopes: Tensor
    positive: Tensor
    negative: Tensor

    @property
    def weights(self) -> Tensor:
        """``w_ij = (1 − 2 I_ij) ∂L/∂s_ij``: how strongly a positive pair is pulled together, a negative one apart."""
        return torch.where(self.positive, -self.slopes, self.slopes)


@dataclass(frozen=True, eq=False)
class Weighing:
    """What a loss does to a batch: its value, the matrices that it looks at, and the gradient.

    Args:
        value: the loss.
        matrices: every similarity matrix that the loss made, in order.
        gradient: ``∂L/∂x`` of the embeddings, ``(m, d)``.
        explained: the part of it that goes through the matrices.

    Examples:
        >>> import torch
        >>> from likewise.losses import NTXentLoss
        >>> weighing = weigh(NTXentLoss(), torch.eye(3), torch.tensor([0, 0, 1]))
        >>> [matrix.between for matrix in weighing.matrices]
        ['samples against samples']
    """

    value: Tensor
    matrices: tuple[Weighed, ...]
    gradient: Tensor
    explained: Tensor

    @property
    def unexplained(self) -> float:
        """The share of the gradient that no pair's weight explains: zero for a function of similarities alone."""
        whole = float(self.gradient.norm())
        return float((self.gradient - self.explained).norm()) / whole if whole else 0.0


def weigh(
    loss: Loss,
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: Relation | None = None,
    similarity: SimilarityLike = "cosine",
) -> Weighing:
    """Run a loss on a batch and watch the similarity matrices that it makes.

    Args:
        loss: a loss of the library or a wrapper around one, whatever it mines; or a function of a similarity matrix and
            labels.
        embeddings: the anchors, ``(m, d)``.
        labels: their labels.
        references: what they are compared with, where that is not themselves.
        reference_labels: the references' labels.
        relation: who is positive to whom, in place of labels; for losses of the library.
        similarity: how embeddings are compared, for a function; losses of the library know.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> weighing = weigh(ContrastiveLoss(), torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([0, 1]))
        >>> weighing.matrices[0].weights
        tensor([[0.0000, 0.5000],
                [0.5000, 0.0000]])
    """
    leaf = as_leaf(embeddings)
    others = {"references": references, "reference_labels": reference_labels, "relation": relation}
    with untouched(loss, leaf):
        value, seen = seen_by(loss, leaf, labels, **others, similarity=similarity)  # type: ignore[arg-type]
    matrices = [matrix for _, matrix in seen]
    gradient, *slopes = gradients(value, [leaf, *matrices])
    (explained,) = gradients(matrices, [leaf], slopes)
    weighed = []
    for (batch, matrix), slope in zip(seen, slopes, strict=True):
        positive, negative = before_mining(batch.relation).masks()
        weighed.append(Weighed(batch.between, matrix.detach(), slope, positive, negative))
    return Weighing(value.detach(), tuple(weighed), gradient, explained)


def as_leaf(embeddings: Tensor) -> Tensor:
    """Embeddings to differentiate by; what is no such thing passes, for the loss to refuse it.

    Examples:
        >>> import torch
        >>> as_leaf(torch.zeros(1, 2)).requires_grad
        True
    """
    if not isinstance(embeddings, Tensor) or not embeddings.is_floating_point():
        return embeddings
    return embeddings.detach().clone().requires_grad_()


def seen_by(
    loss: Loss,
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: Relation | None = None,
    similarity: SimilarityLike = "cosine",
) -> tuple[Tensor, list[tuple[PairBatch, Tensor]]]:
    """The value of a loss and every similarity matrix that it made, each with the batch it was made for, all on one graph.

    Examples:
        >>> import torch
        >>> from likewise.losses import NTXentLoss
        >>> value, [(batch, matrix)] = seen_by(NTXentLoss(), torch.eye(3), torch.tensor([0, 0, 1]))
        >>> matrix.shape, batch.between
        (torch.Size([3, 3]), 'samples against samples')
    """
    if not isinstance(loss, nn.Module) and not callable(loss):
        raise TypeError(
            f"loss must be a loss, or a function of similarities and labels, but it is a {type(loss).__name__}"
        )
    seen: list[tuple[PairBatch, Tensor]] = []

    def see(batch: PairBatch, matrix: Tensor) -> Tensor:
        # what compares constants has weights as well
        matrix = matrix if matrix.requires_grad else matrix.detach().requires_grad_()
        seen.append((batch, matrix))
        return matrix

    others = {"references": references, "reference_labels": reference_labels, "relation": relation}
    with torch.enable_grad(), similarity_hook(see), on_dense_engine(loss):
        if isinstance(loss, nn.Module):
            value: Tensor = loss(
                embeddings, labels, **{name: each for name, each in others.items() if each is not None}
            )
        else:
            value = _of_function(loss, embeddings, labels, others, similarity)
    if not isinstance(value, Tensor):
        raise TypeError(f"loss must return a tensor, but {name_of(loss)} returned a {type(value).__name__}")
    return value, seen


def _of_function(
    function: Callable[[Tensor, Tensor], Tensor],
    embeddings: Tensor,
    labels: Tensor | None,
    others: dict[str, Any],
    similarity: SimilarityLike,
) -> Tensor:
    if others["relation"] is not None:
        raise ValueError("relation must be None for a function of similarities and labels, but it was given")
    with full_precision(embeddings):
        batch = batch_from_embeddings(embeddings, labels, **others, similarity=as_similarity(similarity))
        assert labels is not None
        value = function(batch.similarities(), labels)
    if not isinstance(value, Tensor) or value.ndim != 0 or not value.requires_grad:
        what = f"a {type(value).__name__}"
        if isinstance(value, Tensor):
            what = "a constant" if value.ndim == 0 else f"a tensor of shape {tuple(value.shape)}"
        raise TypeError(f"loss must return a number that depends on the similarities, but it returned {what}")
    return value


def before_mining(relation: Relation) -> Relation:
    """Who is positive to whom, whatever a miner chose of it.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> before_mining(Labels(torch.tensor([0, 0]))).masks()[0].tolist()
        [[False, True], [True, False]]
    """
    return before_mining(relation.base) if isinstance(relation, Mined) else relation


def gradients(of: Tensor | list[Tensor], by: list[Tensor], along: list[Tensor] | None = None) -> list[Tensor]:
    """Gradients by several tensors, zero where nothing depends on one; the graph is kept.

    Args:
        of: a number, or one for each anchor, of which the sum counts; or several tensors.
        by: the tensors.
        along: for each of several tensors what its entries count.

    Examples:
        >>> import torch
        >>> x, y = torch.tensor(3.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
        >>> gradients(x * x, [x, y])
        [tensor(6.), tensor(0.)]
    """
    if isinstance(of, Tensor):
        with torch.enable_grad():  # somebody may look on where no graph is made
            of = of.sum()
    if not by or not (of if isinstance(of, list) else of.requires_grad):
        return [torch.zeros_like(each) for each in by]
    found = torch.autograd.grad(of, by, along, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(each) if grad is None else grad.detach() for each, grad in zip(by, found, strict=True)]


@contextmanager
def untouched(loss: Any, embeddings: Tensor) -> Iterator[None]:
    """Leave a loss as it was: looking must not fill a memory, nor use up random numbers that a training will draw.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss, CrossBatchMemory
        >>> memory, x = CrossBatchMemory(ContrastiveLoss(), size=4), torch.eye(2)
        >>> with untouched(memory, x):
        ...     _ = memory(x, torch.tensor([0, 1]))
        >>> int(memory.filled)
        0
    """
    modules = list(loss.modules()) if isinstance(loss, nn.Module) else []
    buffers = [
        (module, name, each, each._version, each.clone())
        for module in modules
        for name, each in module.named_buffers(recurse=False)
    ]
    generators = [each for module in modules for each in vars(module).values() if isinstance(each, torch.Generator)]
    states = [each.get_state() for each in generators]
    devices = [embeddings.device] if isinstance(embeddings, Tensor) and embeddings.is_cuda else []
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
        for module, name, buffer, version, before in buffers:
            if buffer._version != version:  # what nobody wrote to may be part of a graph that is still needed
                buffer.copy_(before)  # in place: a recorded graph reads where it read when it was recorded
            setattr(module, name, buffer)


@contextmanager
def on_dense_engine(loss: Any) -> Iterator[None]:
    """Run a loss, and those inside it, on the engine that has the matrix.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> loss = NTXentLoss()
        >>> with on_dense_engine(loss):
        ...     print(loss.backend)
        dense
        >>> loss.backend
        'auto'
    """
    modules = loss.modules() if isinstance(loss, nn.Module) else ()
    before = [(module, module.backend) for module in modules if isinstance(getattr(module, "backend", None), str)]
    try:
        for module, _ in before:
            module.backend = "dense"  # type: ignore[assignment]
        yield
    finally:
        for module, backend in before:
            module.backend = backend


def pair_weights(
    loss: Loss,
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: Relation | None = None,
    similarity: SimilarityLike = "cosine",
) -> Tensor:
    """The weight of every pair, ``w_ij = (1 − 2 I_ij) ∂L/∂s_ij``.

    For a proxy loss these are the weights between samples and proxies, samples in rows; what it does between proxies is
    among the matrices of `weigh`.

    Args:
        loss: a loss of the library or a wrapper around one; or a function of a similarity matrix and labels.
        embeddings: the anchors, ``(m, d)``.
        labels: their labels.
        references: what they are compared with, where that is not themselves.
        reference_labels: the references' labels.
        relation: who is positive to whom, in place of labels.
        similarity: how embeddings are compared, for a function.

    Returns:
        The weights, ``(m, n)``, signed; entries that the loss ignores are zero.

    Examples:
        >>> import torch
        >>> x, y = torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([0, 0])
        >>> pair_weights(lambda s, labels: (s * s).sum(), x, y)
        tensor([[ 2.0000, -1.2000],
                [-1.2000,  2.0000]])
    """
    others = {"references": references, "reference_labels": reference_labels, "relation": relation}
    weighing = weigh(loss, embeddings, labels, **others, similarity=similarity)  # type: ignore[arg-type]
    return merged(weighing, name_of(loss)).weights


def name_of(loss: Loss) -> str:
    """What a loss is called in a sentence.

    Examples:
        >>> from likewise.losses import CircleLoss
        >>> name_of(CircleLoss()), name_of(sum)
        ('CircleLoss', 'sum')
    """
    return type(loss).__name__ if isinstance(loss, nn.Module) else str(getattr(loss, "__name__", type(loss).__name__))


def merged(weighing: Weighing, name: str) -> Weighed:
    """The one matrix of samples that a loss looked at; where it made the same several times, the slopes are summed.

    Examples:
        >>> import torch
        >>> from likewise.losses import NTXentLoss, WeightedSum
        >>> both = WeightedSum({NTXentLoss(): 1.0, NTXentLoss(temperature=0.5): 2.0})
        >>> merged(weigh(both, torch.eye(3), torch.tensor([0, 0, 1])), "both").slopes.shape
        torch.Size([3, 3])
    """
    about = [_samples_first(matrix) for matrix in weighing.matrices if matrix.between != "proxies against proxies"]
    if not about:
        raise ValueError(
            f"{name} made no similarity matrix of samples that could be watched, so that there is no pair to weigh; "
            "give a loss of the library, or a function of a similarity matrix and labels"
        )
    first = about[0]
    for other in about[1:]:
        same = first.similarities.shape == other.similarities.shape
        if not same or not torch.allclose(first.similarities, other.similarities, rtol=1e-5, atol=1e-6):
            kinds = ", ".join(matrix.between for matrix in about)
            raise ValueError(f"{name} looks at {len(about)} different matrices ({kinds}); read them with weigh()")
    slopes = torch.stack([matrix.slopes for matrix in about]).sum(dim=0)
    return Weighed(first.between, first.similarities, slopes, first.positive, first.negative)


def _samples_first(matrix: Weighed) -> Weighed:
    if matrix.between != "proxies against samples":
        return matrix
    turned = (each.T for each in (matrix.similarities, matrix.slopes, matrix.positive, matrix.negative))
    return Weighed("samples against proxies", *turned)
