"""Softmax heads with several centers for each class, whose similarities are pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.distributed import current_group
from likewise.engines import BlendedMatrix, TableChunks, plan_chunks
from likewise.formula import (
    Declaration,
    Pooling,
    Regularizer,
    check_classes,
    exactly,
    full_precision,
    hyper,
    labels_of,
    s,
    unit,
)
from likewise.losses.proxy_base import ProxyLoss, cross_entropy
from likewise.losses.proxy_batches import Between
from likewise.losses.softmax import arc_logit


class SubCenterArcFaceLoss(ProxyLoss):
    r"""Sub-center ArcFace: `ArcFaceLoss` on the most similar of several centers of each class.  Deng et al. 2020.

    $$\cos\theta_c=\max_k\cos(x,w_{ck})$$

    Args:
        centers: the number of centers of each class.
        margin: the margin m in degrees.
        scale: the scale σ.

    Examples:
        >>> import torch
        >>> loss = SubCenterArcFaceLoss(num_classes=3, embedding_dim=4, margin=0.0)
        >>> loss.proxies.shape, loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        (torch.Size([9, 4]), tensor(1.0986))
    """

    centers: int = hyper(default=3, help="centers of each class", at_least=1, search=(1, 10))
    margin: float = hyper(default=28.6, help="margin in degrees", at_least=0.0, below=90.0, search=(0.0, 60.0))
    scale: float = hyper(default=64.0, help="scale", above=0.0, search=(1.0, 256.0), log=True)

    def initialize(self, proxies: Tensor) -> None:
        """Normal with deviation 0.01, as for ArcFace."""
        nn.init.normal_(proxies, std=0.01)

    def declare(self) -> dict[Between, Declaration]:
        """ArcFace on classes whose centers are pooled."""
        return {Between.SAMPLES_CLASSES: cross_entropy(arc_logit(self.margin, self.scale), self.scale * s)}

    def dominant_centers(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return, for each class, the center that is most similar for most of its samples; the first one in a tie.

        Args:
            embeddings: the samples, usually the whole training set, ``(m, embedding_dim)``.
            labels: their classes, ``(m,)``.

        Returns:
            Numbers of centers in ``0 … centers − 1``, ``(num_classes,)``; −1 for a class without samples.
        """
        cosines, labels = self._own_centers(embeddings, labels)
        votes = torch.bincount(labels * self.centers + cosines.argmax(dim=1), minlength=len(self.proxies))
        votes = votes.view(self.num_classes, self.centers)
        order = torch.arange(self.centers, device=votes.device)
        chosen = (votes * self.centers - order).argmax(dim=1)
        return torch.where(votes.any(dim=1), chosen, -1)

    def find_outliers(self, embeddings: Tensor, labels: Tensor, threshold: float = 75.0) -> Tensor:
        """Return samples far from the dominant center of their class, probably mislabeled.  Deng et al. 2020.

        Args:
            embeddings: samples, of the whole training set usually, ``(m, embedding_dim)``.
            labels: their classes, ``(m,)``.
            threshold: an angle in degrees; a sample is an outlier if its angle to the dominant center is larger.

        Returns:
            Their indices, ascending.

        Examples:
            >>> import torch
            >>> loss = SubCenterArcFaceLoss(num_classes=1, embedding_dim=2, centers=2)
            >>> with torch.no_grad():
            ...     _ = loss.proxies.copy_(torch.eye(2))
            >>> loss.find_outliers(torch.tensor([[1.0, 0.1], [0.1, 1.0], [1.0, 0.0]]), torch.tensor([0, 0, 0]))
            tensor([1])
        """
        cosines, classes = self._own_centers(embeddings, labels)
        to_dominant = cosines.gather(1, self.dominant_centers(embeddings, labels)[classes, None])[:, 0]
        return (to_dominant < math.cos(math.radians(threshold))).nonzero()[:, 0]

    @torch.no_grad()
    def _own_centers(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The cosines of samples and the centers of their class, ``(m, centers)``, and the checked classes."""
        if self.shard is not None:
            raise TypeError("outliers need all proxies, but these are sharded over processes")
        with full_precision(embeddings):
            samples = unit(self.samples(embeddings))
            labels = labels_of("labels", labels, len(samples), samples.device, "embeddings")
            check_classes(labels, self.num_classes, "proxy")
            by_class = unit(self.proxies.to(samples.dtype)).view(self.num_classes, self.centers, -1)
            chunks = plan_chunks(len(samples), self.centers * self.embedding_dim, samples)
            cosines = [(by_class[labels[rows]] @ samples[rows, :, None])[:, :, 0] for rows in chunks]
        return torch.cat(cosines), labels


class SoftTripleLoss(ProxyLoss):
    r"""SoftTriple: several centers for each class, weighted by a softmax, and a regularizer that merges redundant ones.

    $$S_c=\sum_k\frac{e^{x\cdot w_{ck}/\gamma}}{\sum_l e^{x\cdot w_{cl}/\gamma}}\,x\cdot w_{ck},\qquad
      -\log\frac{e^{\lambda(S_y-\delta)}}{e^{\lambda(S_y-\delta)}+\sum_{c\ne y}e^{\lambda S_c}}
      +\frac{\tau\sum_c\sum_{k<l}\sqrt{2+10^{-5}-2\,w_{ck}\cdot w_{cl}}}{C\,K(K-1)}$$

    on unit vectors.  Qian et al. 2019.  ``gamma`` is the temperature of the softmax over centers; the thesis'
    tables give its inverse, and its Eq. 2.30 omits the centers.

    Args:
        centers: the number of centers of each class.
        la: the scale λ.
        gamma: the temperature γ over centers.
        margin: the margin δ.
        tau: weight τ of the term that merges centers.

    Examples:
        >>> import torch
        >>> loss = SoftTripleLoss(num_classes=3, embedding_dim=4, margin=0.0, tau=0.0)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    centers: int = hyper(default=10, help="centers of each class", at_least=1, search=(1, 20))
    la: float = hyper(default=20.0, help="scale", above=0.0, search=(1.0, 100.0), log=True, step=2.0)
    gamma: float = hyper(default=0.1, help="temperature over centers", above=0.0, search=(0.01, 1.0), log=True)
    margin: float = hyper(default=0.01, help="margin", at_least=0.0, search=(0.0, 1.0), step=0.1)
    tau: float = hyper(default=0.2, help="weight of merging", at_least=0.0, search=(0.0, 1.0), step=0.1)
    suggested_lr: ClassVar[float | None] = 1e-4

    def initialize(self, proxies: Tensor) -> None:
        """Kaiming uniform, as the authors' code does."""
        nn.init.kaiming_uniform_(proxies, a=math.sqrt(5.0))

    @property
    def pooling(self) -> Pooling:
        """Centers weighted by their softmax."""
        return BlendedMatrix(self.gamma)

    def declare(self) -> dict[Between, Declaration]:
        """A margin softmax over classes, and the regularizer on centers."""
        main = cross_entropy(self.la * (s - self.margin), self.la * s)
        if self.tau == 0.0:  # without the term, centers have no gradient instead of a gradient of zeros
            return {Between.SAMPLES_CLASSES: main}
        return {Between.SAMPLES_CLASSES: (main, Regularizer(lambda: self.tau * self.merging()))}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sparse and self.tau > 0.0:
            raise ValueError(
                f"SoftTripleLoss: sparse must be False unless tau is 0, because merging moves all centers, "
                f"but tau is {self.tau:g}"
            )

    def merging(self) -> Tensor:
        """The term that merges centers, before its weight: the mean distance within a class, halved."""
        if self.centers == 1:
            return self.proxies.new_zeros(())
        upper = torch.ones(self.centers, self.centers, dtype=torch.bool, device=self.proxies.device).triu(1)

        def of_chunk(some: Tensor, _rows: slice, _inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
            distances = (2.0 + 1e-5 - 2.0 * self._gram(some)).clamp_min(1e-12).sqrt()
            return (torch.where(upper, distances, 0.0).sum(),)

        proxies = self.local_proxies()
        with full_precision(proxies):
            sums, _ = TableChunks(proxies, self._cut(proxies), of_chunk).run()
        total = current_group().total(torch.stack([each for (each,) in sums]).sum())
        return total / (self.num_classes * self.centers * (self.centers - 1))

    def _cut(self, proxies: Tensor) -> list[slice]:
        """Chunks of classes; the size of a class is that of its centers and their cosines."""
        return plan_chunks(len(proxies), self.embedding_dim + self.centers, proxies, self.centers)

    def _gram(self, centers: Tensor) -> Tensor:
        """The cosines among each class's centers, ``(classes · K, d) -> (classes, K, K)``, in float32 at least."""
        wide = centers if centers.dtype == torch.float64 else centers.float()
        by_class = unit(wide).reshape(-1, self.centers, self.embedding_dim)
        return exactly(by_class @ by_class.transpose(1, 2))

    def centers_left(self, threshold: float = 0.01) -> Tensor:
        """The number of distinct centers of each class, ``(C,)``.

        Args:
            threshold: centers nearer to an earlier one than this Euclidean distance have merged with it.
        """
        left = []
        with torch.no_grad():
            for rows in self._cut(self.proxies):
                merged = (2.0 - 2.0 * self._gram(self.proxies[rows])).clamp_min(0.0).sqrt() < threshold
                left.append(self.centers - merged.tril(-1).any(dim=2).sum(dim=1))
        return torch.cat(left)
