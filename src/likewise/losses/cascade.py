"""A cascade of embeddings: each is trained on the pairs that are hard for the previous one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from likewise.distributed import ProcessGroup, current_group
from likewise.formula import Masks, RelationLike, embeddings_of, label_views, whole_number
from likewise.losses.base import PairLoss, collect_groups, finite_number
from likewise.losses.wrappers import check_any_dimension


class Cascade(nn.Module):
    r"""A pair loss on successive slices of the embedding, each on the hardest pairs of the previous one (HDC).

    $$\sum_k\mathcal L(e^{(k)};P_k,N_k)$$

    The first slice $e^{(1)}$ uses all positive pairs $P_1$ and all negative pairs $N_1$ of the batch. $P_{k+1}$ is the
    share of $P_k$ with the lowest similarities in slice k, and $N_{k+1}$ the share of $N_k$ with the highest ones.
    Yuan et al. 2017 rank pairs by their contrastive loss, which gives the same order.  They cascade networks of
    increasing depth; here the slices share one trunk. Pairs that tie with the last kept pair are also kept. At
    evaluation, the concatenated slices are the embedding.

    Args:
        loss: a pair loss without parameters of a fixed dimension; kept as ``.loss``.
        dims: the lengths of the slices; their sum is at most the dimension of the embeddings.
        shares: for each slice after the first, the fraction of the previous slice's pairs that it uses.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> loss = Cascade(ContrastiveLoss(), dims=[2, 2], shares=[0.5])
        >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
        tensor(2.)
    """

    def __init__(self, loss: PairLoss, dims: Iterable[int], shares: Iterable[float] = (0.5, 0.2)) -> None:
        super().__init__()
        if not isinstance(loss, PairLoss):
            raise TypeError(f"loss must be a pair loss, but it is a {type(loss).__name__}")
        self.loss = check_any_dimension(loss)
        for name, values in (("dims", dims), ("shares", shares)):
            if not isinstance(values, Iterable):
                raise TypeError(f"{name} must be several numbers, but it is a {type(values).__name__}")
        self.dims = tuple(whole_number("each of dims", dim, 1) for dim in dims)
        self.shares = tuple(finite_number("each of shares", share) for share in shares)
        if not self.dims or len(self.shares) != len(self.dims) - 1:
            raise ValueError(
                f"shares must have one for each of the {len(self.dims)} dims except the first, but they are {self.shares}"
            )
        if not all(0.0 < share <= 1.0 for share in self.shares):
            raise ValueError(f"shares must be numbers > 0 and ≤ 1, but they are {self.shares}")

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the sum of the loss over slices.

        Args:
            embeddings: the batch, ``(m, d)``.
            labels: its labels, ``(m,)``.
            references: what the batch is compared with, ``(n, d)``; by default itself.
            reference_labels: the references' labels, ``(n,)``.
            relation: ``None``, ``"views"`` or ``"paired"``, as for a pair loss.
        """
        embeddings_of("embeddings", embeddings)
        if references is not None:
            embeddings_of("references", references)
        if sum(self.dims) > embeddings.shape[1]:
            raise ValueError(
                f"embeddings must have at least the {sum(self.dims)} dimensions of dims, but have {embeddings.shape[1]}"
            )
        if relation is not None and not isinstance(relation, str):
            raise TypeError(
                "relation must be None, 'views' or 'paired', because the cascade decides on pairs of labels"
            )
        if isinstance(relation, str):
            views = label_views(relation, embeddings, labels, references, reference_labels, current_group())
            embeddings, labels, references, reference_labels = views
        masks: Masks | None = None
        total: Tensor | None = None
        start = 0
        for dim, share in zip(self.dims, (*self.shares, None), strict=True):
            slices = (
                embeddings[:, start : start + dim],
                None if references is None else references[:, start : start + dim],
            )
            value = self.loss(slices[0], labels, slices[1], reference_labels, relation=masks)
            total = value if total is None else total + value
            start += dim
            if share is not None:
                masks = self._select(slices, (labels, reference_labels), masks, share)
        assert total is not None
        return total

    @torch.no_grad()
    def _select(
        self,
        slices: tuple[Tensor, Tensor | None],
        labels: tuple[Tensor | None, Tensor | None],
        masks: Masks | None,
        share: float,
    ) -> Masks:
        """Return the hardest pairs of a slice, among the pairs passed to it."""
        batch = self.loss.make_batch(slices[0].detach(), labels[0], slices[1], labels[1], None)
        positive, negative = batch.relation.masks() if masks is None else (masks.positive, masks.negative)
        S, group = batch.similarities(), current_group()
        return Masks(_hardest(-S, positive, share, group), _hardest(S, negative, share, group))

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the loss."""
        return collect_groups([self.loss], lr)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dims={self.dims}, shares={self.shares}"


def _hardest(hardness: Tensor, mask: Tensor, share: float, group: ProcessGroup) -> Tensor:
    """Return the fraction of a mask's pairs with the highest values over all ranks; at least one pair."""
    flat = hardness.masked_fill(~mask, -torch.inf).reshape(-1)
    values = group.gather(flat, group.rows(flat))
    number = (share * (values > -torch.inf).sum().double()).round().long().clamp_min(1)
    last = values.sort(descending=True).values.index_select(0, (number - 1).reshape(1))
    return mask & (hardness >= last)
