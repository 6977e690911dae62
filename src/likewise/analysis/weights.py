"""Pair weights of any loss.

Theorem 3.1 of the unified view: a loss that depends on embeddings only through their similarities has the gradient of

    Σ_i ( Σ_{k ∈ N_i} w_ik s_ik − Σ_{j ∈ P_i} w_ij s_ij ),    w_ij = (1 − 2 I_ij) ∂L/∂s_ij,

with the weights held fixed; ``I`` is 1 for a positive pair.  The paper has a factor ½, because it treats
``s_ij`` and ``s_ji`` as one number; here the matrix has m · n free entries, as in the computation of losses, and there is
no factor.  If a loss treats both entries equally, the pair's weight is the sum of the two.  Weights are signed: only some
losses have no negative weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from likewise.formula import (
    Mined,
    PairBatch,
    Relation,
    RelationLike,
    SimilarityLike,
    as_similarity,
    batch_from_embeddings,
    full_precision,
    similarity_hook,
)
from likewise.losses import Between

Loss = nn.Module | Callable[[Tensor, Tensor], Tensor]
"""A loss of the library, or a function of a similarity matrix and labels."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """One similarity matrix of a loss, and the derivatives by its entries.

    Args:
        between: what is compared, in words: ``"samples against samples"``, ``"samples against proxies"``.
        similarities: the matrix, ``(m, n)``.
        derivatives: ``∂L/∂s``, ``(m, n)``.
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
    derivatives: Tensor
    positive: Tensor
    negative: Tensor

    @property
    def weights(self) -> Tensor:
        """``w_ij = (1 − 2 I_ij) ∂L/∂s_ij``: how strongly a positive pair is pulled together, a negative one apart."""
        return torch.where(self.positive, -self.derivatives, self.derivatives)


@dataclass(frozen=True, eq=False)
class Weighing:
    """The value of a loss on a batch, its similarity matrices, and its gradient.

    Args:
        value: the loss.
        matrices: every similarity matrix that the loss computed, in order.
        gradient: ``∂L/∂x`` of the embeddings, ``(m, d)``.
        explained: the component of it that passes through the matrices.

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
        """The fraction of the gradient that pair weights do not explain: zero for a function of similarities."""
        whole = float(self.gradient.norm())
        return float((self.gradient - self.explained).norm()) / whole if whole else 0.0


def weigh(
    loss: Loss,
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    similarity: SimilarityLike = "cosine",
) -> Weighing:
    """Run a loss on a batch and record its similarity matrices and their derivatives.

    Args:
        loss: a loss of the library or a wrapper around one, with any miner; or a function of a similarity matrix and
            labels.
        embeddings: the anchors, ``(m, d)``.
        labels: their labels.
        references: what they are compared with; by default the embeddings themselves.
        reference_labels: the references' labels.
        relation: the positive and negative pairs, instead of labels; for losses of the library.
        similarity: how embeddings are compared, for a function.

    Returns:
        A `Weighing` with the value, the similarity matrices and their derivatives, and the gradient.

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
    with preserve_state(loss, leaf):
        value, seen = record_matrices(loss, leaf, labels, **others, similarity=similarity)  # type: ignore[arg-type]
    matrices = [matrix for _, matrix in seen]
    gradient, *derivatives = gradients(value, [leaf, *matrices])
    (explained,) = gradients(matrices, [leaf], derivatives)
    weighed = []
    for (batch, matrix), derivative in zip(seen, derivatives, strict=True):
        positive, negative = before_mining(batch.relation).masks()
        weighed.append(Weighed(batch.between, matrix.detach(), derivative, positive, negative))
    return Weighing(value.detach(), tuple(weighed), gradient, explained)


def as_leaf(embeddings: Tensor) -> Tensor:
    """Return embeddings as a leaf that requires a gradient; other objects are returned for the loss to reject.

    Examples:
        >>> import torch
        >>> as_leaf(torch.zeros(1, 2)).requires_grad
        True
    """
    if not isinstance(embeddings, Tensor) or not embeddings.is_floating_point():
        return embeddings
    return embeddings.detach().clone().requires_grad_()


def record_matrices(
    loss: Loss,
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    similarity: SimilarityLike = "cosine",
) -> tuple[Tensor, list[tuple[PairBatch, Tensor]]]:
    """The value of a loss and every similarity matrix that it computed, each with its batch, on one graph.

    Examples:
        >>> import torch
        >>> from likewise.losses import NTXentLoss
        >>> value, [(batch, matrix)] = record_matrices(NTXentLoss(), torch.eye(3), torch.tensor([0, 0, 1]))
        >>> matrix.shape, batch.between
        (torch.Size([3, 3]), 'samples against samples')
    """
    if not isinstance(loss, nn.Module) and not callable(loss):
        raise TypeError(
            f"loss must be a loss, or a function of similarities and labels, but it is a {type(loss).__name__}"
        )
    seen: list[tuple[PairBatch, Tensor]] = []

    def see(batch: PairBatch, matrix: Tensor) -> Tensor:
        # matrices of constants have weights as well
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
    """The relation before a miner selected pairs.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> before_mining(Labels(torch.tensor([0, 0]))).masks()[0].tolist()
        [[False, True], [True, False]]
    """
    return before_mining(relation.base) if isinstance(relation, Mined) else relation


def gradients(of: Tensor | list[Tensor], by: list[Tensor], along: list[Tensor] | None = None) -> list[Tensor]:
    """Gradients by several tensors, zero if nothing depends on one; the graph is kept.

    Args:
        of: a number, or one number per anchor, which are summed; or several tensors.
        by: the tensors.
        along: the weights of the entries of each of several tensors.

    Examples:
        >>> import torch
        >>> x, y = torch.tensor(3.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
        >>> gradients(x * x, [x, y])
        [tensor(6.), tensor(0.)]
    """
    if isinstance(of, Tensor):
        with torch.enable_grad():  # the caller may have disabled gradients
            of = of.sum()
    if not by or not (of if isinstance(of, list) else of.requires_grad):
        return [torch.zeros_like(each) for each in by]
    found = torch.autograd.grad(of, by, along, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(each) if grad is None else grad.detach() for each, grad in zip(by, found, strict=True)]


@contextmanager
def preserve_state(loss: Any, embeddings: Tensor) -> Iterator[None]:
    """Restore the state of a loss, so that an analysis neither fills a memory nor advances random number generators.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss, CrossBatchMemory
        >>> memory, x = CrossBatchMemory(ContrastiveLoss(), size=4), torch.eye(2)
        >>> with preserve_state(memory, x):
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
            if buffer._version != version:  # an unchanged buffer may be part of a graph that is still needed
                buffer.copy_(before)  # in place, because a captured graph reads from the same address
            setattr(module, name, buffer)


@contextmanager
def on_dense_engine(loss: Any) -> Iterator[None]:
    """Run a loss, and the losses inside it, on the dense engine.

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
    relation: RelationLike | None = None,
    similarity: SimilarityLike = "cosine",
) -> Tensor:
    """Compute the weight of every pair, ``w_ij = (1 − 2 I_ij) ∂L/∂s_ij``.

    For a proxy loss these are the weights between samples and proxies, samples in rows; `weigh` also returns the matrices
    between proxies.

    Args:
        loss: a loss of the library or a wrapper around one; or a function of a similarity matrix and labels.
        embeddings: the anchors, ``(m, d)``.
        labels: their labels.
        references: what they are compared with; by default the embeddings themselves.
        reference_labels: the references' labels.
        relation: the positive and negative pairs, instead of labels.
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
    return merge_matrices(weighing, name_of(loss)).weights


def name_of(loss: Loss) -> str:
    """The name of a loss in messages.

    Examples:
        >>> from likewise.losses import CircleLoss
        >>> name_of(CircleLoss()), name_of(sum)
        ('CircleLoss', 'sum')
    """
    return type(loss).__name__ if isinstance(loss, nn.Module) else str(getattr(loss, "__name__", type(loss).__name__))


def merge_matrices(weighing: Weighing, name: str) -> Weighed:
    """The matrix of samples of a loss; if it computed the same matrix several times, the derivatives are summed.

    Examples:
        >>> import torch
        >>> from likewise.losses import NTXentLoss, WeightedSum
        >>> both = WeightedSum({NTXentLoss(): 1.0, NTXentLoss(temperature=0.5): 2.0})
        >>> merge_matrices(weigh(both, torch.eye(3), torch.tensor([0, 0, 1])), "both").derivatives.shape
        torch.Size([3, 3])
    """
    about = [_samples_first(matrix) for matrix in weighing.matrices if matrix.between != Between.PROXIES_PROXIES.value]
    check_matrices(about, name)
    first = about[0]
    for other in about[1:]:
        if not are_same(first.similarities, other.similarities):
            kinds = ", ".join(matrix.between for matrix in about)
            raise ValueError(f"{name} reads {len(about)} different matrices ({kinds}); weigh() returns all of them")
    derivatives = torch.stack([matrix.derivatives for matrix in about]).sum(dim=0)
    return Weighed(first.between, first.similarities, derivatives, first.positive, first.negative)


def are_same(one: Tensor, other: Tensor) -> bool:
    """Whether two matrices are one that was computed twice, up to rounding.

    Examples:
        >>> import torch
        >>> are_same(torch.eye(2), torch.eye(2) + 1e-7), are_same(torch.eye(2), torch.eye(3))
        (True, False)
    """
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-5, atol=1e-6)


def check_matrices(matrices: Sequence[object], name: str) -> None:
    """Check that a loss computed a similarity matrix of samples.

    Examples:
        >>> check_matrices([], "MyLoss")
        Traceback (most recent call last):
        ...
        ValueError: MyLoss computed no similarity matrix of samples that a hook can observe, ...
    """
    if not matrices:
        raise ValueError(
            f"{name} computed no similarity matrix of samples that a hook can observe, so that there is no pair to weigh; "
            "give a loss of the library, or a function of a similarity matrix and labels"
        )


def _samples_first(matrix: Weighed) -> Weighed:
    if matrix.between != Between.PROXIES_SAMPLES.value:
        return matrix
    turned = (each.T for each in (matrix.similarities, matrix.derivatives, matrix.positive, matrix.negative))
    return Weighed(Between.SAMPLES_PROXIES.value, *turned)
