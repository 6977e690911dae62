"""Wrappers: combinations of losses; the wrapped loss is ``.loss``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from likewise.distributed import current_group
from likewise.formula import (
    Cosine,
    Labels,
    PairBatch,
    RelationLike,
    check_classes,
    embeddings_of,
    equal_share,
    full_precision,
    labels_of,
    unit,
    whole_number,
)
from likewise.losses.base import check_loss, collect_groups, drop_missing, finite_number
from likewise.losses.memory import CrossBatchMemory
from likewise.losses.regularizers import mean_over_samples

Module = TypeVar("Module", bound=nn.Module)


def _plus_share(value: Tensor, scalar: Tensor) -> Tensor:
    """Add a number to a loss; if the loss has one value per anchor, the number is divided equally among them."""
    return value + (equal_share(scalar, value, current_group()) if value.ndim else scalar)


def check_any_dimension(loss: Module) -> Module:
    """Check that a loss works in any dimension."""
    fixed = [
        type(each).__name__
        for each in loss.modules()
        if isinstance(each, CrossBatchMemory) or hasattr(each, "embedding_dim")
    ]
    if fixed:
        raise TypeError(
            f"loss must work in any dimension, but a {fixed[0]} has a fixed one; combine one loss per prefix instead"
        )
    return loss


class LanguageGuidance(nn.Module):
    r"""Language guidance: matches similarities within a batch to those of the classes' names.

    $$\mathcal L+\omega\,\frac1B\sum_i\mathrm{KL}\bigl(\sigma(S^i_I)\,\Vert\,\sigma(S^i_L+\gamma)\bigr)$$

    $S_I$ are the cosines of the embeddings, $S_L$ those of their classes' language embeddings, σ a softmax over a row.
    Roth et al. 2022; Eq. 28 to 30 of the overview.  The shift γ does not change a softmax; in the authors' code it
    acts through the entries of one class, which both matrices set to $1+\gamma$: ``mask_same_class=True``.

    Args:
        loss: any loss of embeddings and labels; kept as ``.loss``.
        class_embeddings: one language embedding for each class, ``(num_classes, e)``; stored as a buffer.
        weight: the weight ω.
        gamma: the shift γ.
        mask_same_class: set the entries of pairs of one class to $1+\gamma$ in both matrices.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> loss = LanguageGuidance(ContrastiveLoss(), torch.eye(2), weight=0.5)
        >>> loss(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]))
        tensor(0.)
    """

    class_embeddings: Tensor

    def __init__(
        self,
        loss: nn.Module,
        class_embeddings: Tensor,
        weight: float = 1.0,
        gamma: float = 1.0,
        mask_same_class: bool = False,
    ) -> None:
        super().__init__()
        self.loss = check_loss(loss)
        self.weight = finite_number("weight", weight)
        self.gamma = finite_number("gamma", gamma)
        self.mask_same_class = mask_same_class
        self.register_buffer("class_embeddings", embeddings_of("class_embeddings", class_embeddings).detach().clone())

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the loss with the language term; only the wrapped loss uses references and the relation."""
        if labels is None:
            raise TypeError(
                "labels must be given, because the language term indexes class_embeddings by label, but they are None"
            )
        term = self.divergence(embeddings, labels)
        options = drop_missing(references=references, reference_labels=reference_labels, relation=relation)
        return _plus_share(self.loss(embeddings, labels, **options), self.weight * term)

    def divergence(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The language term, before its weight."""
        with full_precision(embeddings):
            return self._divergence(embeddings, labels)

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the loss."""
        return collect_groups([self.loss], lr)

    def _divergence(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        samples = embeddings_of("embeddings", embeddings)
        labels = labels_of("labels", labels, len(samples), samples.device, "embeddings")
        check_classes(labels, len(self.class_embeddings), "language embedding")
        group = current_group()
        rows = group.batch_rows(samples)
        gathered, all_labels = group.gather(samples, rows), group.gather(labels, rows)
        words = unit(self.class_embeddings.to(samples.dtype))
        relation = Labels(labels) if gathered is samples else Labels(labels, all_labels)
        batch = PairBatch(relation, Cosine(), anchors=samples, references=None if gathered is samples else gathered)
        of_images = batch.similarities()
        of_words = words[labels] @ words[all_labels].T
        if self.mask_same_class:
            same = labels[:, None] == all_labels[None, :]
            of_images = of_images.masked_fill(same, 1.0 + self.gamma)
            of_words = of_words.masked_fill(same, 1.0 + self.gamma)
        log_images = torch.log_softmax(of_images, dim=1)
        log_words = torch.log_softmax(of_words + self.gamma, dim=1)
        return mean_over_samples((log_images.exp() * (log_images - log_words)).sum(dim=1))

    def extra_repr(self) -> str:
        """The arguments."""
        return f"weight={self.weight}, gamma={self.gamma}, mask_same_class={self.mask_same_class}"


class Matryoshka(nn.Module):
    """The same loss on nested prefixes of the embedding, each usable as an embedding.  Kusupati et al. 2022.

    Args:
        loss: a loss of embeddings and labels without parameters of a fixed dimension; kept as ``.loss``.
        dims: the lengths of the prefixes; include the full dimension to train it as well.
        weights: a weight for each prefix; equal by default.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> loss = Matryoshka(ContrastiveLoss(), dims=[2, 4])
        >>> loss(torch.eye(4), torch.arange(4))
        tensor(0.)
    """

    def __init__(self, loss: nn.Module, dims: Iterable[int], weights: Iterable[float] | None = None) -> None:
        super().__init__()
        self.loss = check_any_dimension(check_loss(loss))
        if not isinstance(dims, Iterable):
            raise TypeError(f"dims must be several whole numbers, but it is a {type(dims).__name__}")
        self.dims = tuple(whole_number("each of dims", dim, 1) for dim in dims)
        self.weights = (
            (1.0,) * len(self.dims) if weights is None else tuple(finite_number("a weight", w) for w in weights)
        )
        if not self.dims:
            raise ValueError("dims must contain at least one whole number, but it is empty")
        if len(self.weights) != len(self.dims) or not sum(self.weights) > 0.0:
            raise ValueError(
                f"weights must be one for each of the {len(self.dims)} dims and not all zero, but they are {self.weights}"
            )

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the weighted mean of the loss over prefixes of embeddings and references."""
        widest = max(self.dims)
        embeddings_of("embeddings", embeddings)
        if widest > embeddings.shape[1]:
            raise ValueError(
                f"embeddings must have at least the {widest} dimensions of dims, but have {embeddings.shape[1]}"
            )
        options = drop_missing(reference_labels=reference_labels, relation=relation)
        total: Tensor | None = None
        for dim, weight in zip(self.dims, self.weights, strict=True):
            cut = {} if references is None else {"references": references[:, :dim]}
            value = weight / sum(self.weights) * self.loss(embeddings[:, :dim], labels, **cut, **options)
            total = value if total is None else total + value
        assert total is not None
        return total

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the loss."""
        return collect_groups([self.loss], lr)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dims={self.dims}, weights={self.weights}"


class WeightedSum(nn.Module):
    """The weighted sum of several losses on the same batch.

    Args:
        losses: the weight of each loss.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss, EmbeddingNorm
        >>> loss = WeightedSum({ContrastiveLoss(): 1.0, EmbeddingNorm(): 0.1})
        >>> loss(torch.eye(2), torch.tensor([0, 1]))
        tensor(0.1000)
    """

    def __init__(self, losses: Mapping[nn.Module, float]) -> None:
        super().__init__()
        if not isinstance(losses, Mapping) or not losses:
            raise ValueError(f"losses must be a mapping from at least one loss to its weight, but it is {losses!r}")
        self.losses = nn.ModuleList(check_loss(loss) for loss in losses)
        self.weights = tuple(finite_number("a weight", weight, None) for weight in losses.values())

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the weighted sum; a scalar is divided among the anchors if other losses have a value per anchor."""
        options = drop_missing(references=references, reference_labels=reference_labels, relation=relation)
        values = [w * loss(embeddings, labels, **options) for loss, w in zip(self.losses, self.weights, strict=True)]
        lengths = {len(value) for value in values if value.ndim}
        if len(lengths) > 1:
            raise ValueError(
                f"losses must have one value per anchor for the same anchors, but they have {sorted(lengths)} values"
            )
        rows = [value for value in values if value.ndim]
        total = sum(value for value in values if not value.ndim)
        if not rows:
            assert isinstance(total, Tensor)
            return total
        result: Tensor = sum(rows[1:], rows[0])
        return _plus_share(result, torch.as_tensor(total, dtype=result.dtype, device=result.device))

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the losses, each parameter once."""
        return collect_groups(self.losses, lr)

    def extra_repr(self) -> str:
        """The weights, in the order of the losses."""
        return f"weights={self.weights}"


class Fusion(WeightedSum):
    """The weighted sum of two losses on the same batch, in a form that a configuration can express.

    Nest it for more than two losses; in Python, `WeightedSum` takes any number of them.

    Args:
        loss: one loss of embeddings and labels.
        other: another one.
        weight: the weight of the first.
        other_weight: the weight of the other.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss, NTXentLoss
        >>> both = Fusion(ContrastiveLoss(), NTXentLoss(), other_weight=0.5)
        >>> embeddings, labels = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]), torch.tensor([0, 0, 1])
        >>> bool(both(embeddings, labels) == both.loss(embeddings, labels) + 0.5 * both.other(embeddings, labels))
        True
    """

    def __init__(self, loss: nn.Module, other: nn.Module, weight: float = 1.0, other_weight: float = 1.0) -> None:
        if loss is other:
            raise ValueError("other must be another loss than loss, but it is the same one")
        super().__init__({loss: weight, other: other_weight})

    @property
    def loss(self) -> nn.Module:
        """The first loss."""
        return self.losses[0]

    @property
    def other(self) -> nn.Module:
        """The other loss."""
        return self.losses[1]
