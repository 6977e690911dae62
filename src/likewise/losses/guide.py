"""A wrapper that excludes the false negatives found by a guide model from a loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from likewise.distributed import current_group
from likewise.formula import (
    Masks,
    RelationLike,
    embeddings_as_given,
    embeddings_of,
    full_precision,
    label_views,
    labels_of,
    same_device,
    unit,
)
from likewise.losses.base import PairLoss, collect_groups, finite_number


class GuideMasked(nn.Module):
    r"""A pair loss without the negatives that a guide model considers positives (GISTEmbed).

    A negative k of anchor i is excluded if

    $$g_{ik}>\max_{j\in P_i}g_{ij}-m$$

    where $g$ are the cosines of the guide's embeddings: with $m=0$, if the guide considers it more similar to the
    anchor than every positive.  Solatorio 2024, where an anchor has one positive.  An anchor without positives keeps
    its negatives.

    Args:
        loss: a pair loss; kept as ``.loss``.
        margin: the margin m; a larger one excludes more negatives.

    Examples:
        >>> import torch
        >>> from likewise.losses import NTXentLoss
        >>> embeddings, labels = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]), torch.tensor([0, 0, 1])
        >>> loss = GuideMasked(NTXentLoss(1.0))
        >>> loss(embeddings, labels, guide=torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        tensor(0.)
    """

    def __init__(self, loss: PairLoss, margin: float = 0.0) -> None:
        super().__init__()
        if not isinstance(loss, PairLoss):
            raise TypeError(f"loss must be a pair loss, but it is a {type(loss).__name__}")
        self.loss = loss
        self.margin = finite_number("margin", margin, None)

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        guide: Tensor,
        reference_guide: Tensor | None = None,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the loss of a batch without the false negatives.

        Args:
            embeddings: the batch, ``(m, d)``.
            labels: its labels, ``(m,)``.
            references: what the batch is compared with, ``(n, d)``; by default itself.
            reference_labels: the references' labels, ``(n,)``.
            guide: the guide's embeddings of the same samples, ``(m, any)``, without gradient.
            reference_guide: the guide's embeddings of the references, ``(n, any)``.
            relation: ``None``, ``"views"`` or ``"paired"``, as for a pair loss.
        """
        guide, reference_guide = _check_guide(embeddings, references, guide, reference_guide)
        if relation is not None and not isinstance(relation, str):
            raise TypeError("relation must be None, 'views' or 'paired', because the guide decides on pairs of labels")
        if isinstance(relation, str):
            if relation == "views" and reference_guide is not None:
                guide, reference_guide = torch.cat([guide, reference_guide]), None
            views = label_views(relation, embeddings, labels, references, reference_labels, current_group())
            embeddings, labels, references, reference_labels = views
        if labels is None or (references is not None and reference_labels is None):
            raise TypeError("labels must be given, and reference_labels where references are, but they are None")
        masks = self._masks(guide, labels, reference_guide, reference_labels)
        value: Tensor = self.loss(embeddings, labels, references, reference_labels, relation=masks)
        return value

    @torch.no_grad()
    def _masks(
        self, guide: Tensor, labels: Tensor, reference_guide: Tensor | None, reference_labels: Tensor | None
    ) -> Masks:
        """Return the positive and the remaining negative pairs of this rank's anchors with all references."""
        labels = labels_of("labels", labels, len(guide), guide.device, "embeddings")
        group, offset = current_group(), None
        if reference_guide is None:
            rows = group.rows(guide)
            reference_guide, reference_labels, offset = guide, labels, rows.offset
        else:
            assert reference_labels is not None
            name, number = "reference_labels", len(reference_guide)
            reference_labels = labels_of(name, reference_labels, number, guide.device, "references")
            rows = group.rows(reference_guide)
        reference_labels = group.gather(reference_labels, rows)
        cosines = unit(guide) @ unit(group.gather(reference_guide, rows)).T
        same = labels[:, None] == reference_labels
        positive = same
        if offset is not None:
            own = torch.arange(len(labels), device=labels.device)[:, None] + offset
            positive = same & (own != torch.arange(len(reference_labels), device=labels.device))
        nearest = cosines.masked_fill(~positive, -torch.inf).amax(dim=1, keepdim=True)
        false = (cosines > nearest - self.margin) & positive.any(dim=1, keepdim=True)
        return Masks(positive, ~same & ~false)

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the loss."""
        return collect_groups([self.loss], lr)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"margin={self.margin}"


def _check_guide(
    embeddings: Tensor, references: Tensor | None, guide: Tensor, reference_guide: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Check the guide's embeddings against the batch's; half precision is widened."""
    if (references is None) != (reference_guide is None):
        raise TypeError("reference_guide must be given where references are, and only there")
    guide = _check_rows("guide", guide, "embeddings", embeddings)
    if references is None:
        return guide, None
    return guide, _check_rows("reference_guide", reference_guide, "references", references)


def _check_rows(name: str, guide: Tensor | None, of: str, rows: Tensor) -> Tensor:
    embeddings_as_given(of, rows)
    with full_precision(rows):
        wide = embeddings_of(name, guide).detach()
    if len(wide) != len(rows):
        raise ValueError(f"{name} must have a row for each of the {len(rows)} {of}, but it has {len(wide)}")
    same_device(name, wide, rows.device, of)
    return wide
