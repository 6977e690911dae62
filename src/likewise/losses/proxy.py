"""Proxy losses: ProxyNCA, ProxyNCA++, Proxy-Anchor, proxy repulsion and ProxyGML."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.distributed import current_group
from likewise.engines import map_rows
from likewise.formula import (
    BOTH,
    NEGATIVES,
    POSITIVES,
    Cosine,
    Declaration,
    Dot,
    Labels,
    LogSumExp,
    MatrixLoss,
    PairBatch,
    Pooling,
    Regularizer,
    RowChunk,
    Similarity,
    SummedCenters,
    Term,
    TermValues,
    add_up,
    count,
    exactly,
    hyper,
    logsumexp,
    option,
    per_anchor,
    s,
    softplus,
    square,
    unit,
)
from likewise.losses.proxy_base import ProxyLoss, cross_entropy
from likewise.losses.proxy_batches import Between


class ProxyNCALoss(ProxyLoss):
    r"""ProxyNCA: the distance to the proxy of the class against the distances to the other proxies.

    $$-\log\frac{e^{-\sigma\lVert x-p_y\rVert^2}}{\sum_{c\ne y}e^{-\sigma\lVert x-p_c\rVert^2}}$$

    on unit vectors; the denominator excludes the positive, so the value can be negative.  Movshovitz-Attias et al.
    2017; Eq. 16 of the overview.  Eq. 2.27 of the thesis has inner products, which is σ = ½.

    Args:
        scale: the scale σ.

    Examples:
        >>> import torch
        >>> loss = ProxyNCALoss(num_classes=3, embedding_dim=4)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(0.6931)
    """

    scale: float = hyper(default=1.0, help="scale", above=0.0, search=(1.0, 64.0), log=True)
    similarity: ClassVar[str] = "squared_euclidean"
    suggested_lr: ClassVar[float | None] = 1e-5

    def initialize(self, proxies: Tensor) -> None:
        """Normal with deviation 1/8."""
        nn.init.normal_(proxies, std=1.0 / 8.0)

    def declare(self) -> dict[Between, Declaration]:
        """A log-sum-exp over the other proxies, minus the logit of the class."""
        logit = self.scale * s
        return {Between.SAMPLES_PROXIES: per_anchor(logsumexp(logit, NEGATIVES) - logsumexp(logit, POSITIVES))}


class ProxyNCAPPLoss(ProxyLoss):
    r"""ProxyNCA++: a softmax over all proxies, with a temperature.

    $$-\log\frac{e^{-\lVert x-p_y\rVert^2/T}}{\sum_c e^{-\lVert x-p_c\rVert^2/T}}$$

    on unit vectors.  Teh et al. 2020; Eq. 17 of the overview (where $T$ is misprinted and would cancel).

    Args:
        temperature: the temperature T.

    Examples:
        >>> import torch
        >>> loss = ProxyNCAPPLoss(num_classes=3, embedding_dim=4)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    temperature: float = hyper(default=0.111, help="temperature", above=0.0, search=(0.01, 1.0), log=True)
    similarity: ClassVar[str] = "squared_euclidean"

    def initialize(self, proxies: Tensor) -> None:
        """Normal with deviation 1/8."""
        nn.init.normal_(proxies, std=1.0 / 8.0)

    def declare(self) -> dict[Between, Declaration]:
        """A softmax over negative squared distances."""
        logit = s / self.temperature
        return {Between.SAMPLES_PROXIES: cross_entropy(logit, logit)}


class P2SGradLoss(ProxyLoss):
    r"""P2SGrad: pulls the cosine to one for the proxy of a sample's class and to zero for the others.

    $$\frac1C\sum_c\bigl(\cos(x,w_c)-[c=y]\bigr)^2$$

    per sample.  Zhang et al. 2019, whose gradient (Eq. 11) is that of this squared error up to a constant.

    Examples:
        >>> import torch
        >>> loss = P2SGradLoss(num_classes=4, embedding_dim=3)
        >>> loss(torch.zeros(2, 3), torch.tensor([0, 2])).detach()
        tensor(0.2500)
    """

    compares_all: ClassVar[str | None] = "its value is a mean over all classes"

    def declare(self) -> dict[Between, Declaration]:
        """A squared error over all classes."""
        errors = add_up(square(s - 1.0), POSITIVES) + add_up(square(s), NEGATIVES)
        return {Between.SAMPLES_PROXIES: per_anchor(errors / count(BOTH), needs=(POSITIVES,))}


def _pull(alpha: float, margin: float) -> Term:
    """Proxy-Anchor's positive term: over the proxies whose class is in the batch."""
    return per_anchor(softplus(logsumexp(-alpha * (s - margin), POSITIVES)), needs=(POSITIVES,))


def _push(alpha: float, margin: float) -> Term:
    """Proxy-Anchor's negative term: over all proxies; one without negatives is ``log 1 = 0`` and counts."""
    return per_anchor(softplus(logsumexp(alpha * (s + margin), NEGATIVES)), needs=())


class ProxyAnchorLoss(ProxyLoss):
    r"""Proxy-Anchor: proxies are the anchors, and the samples of the batch are their positives and negatives.

    $$\frac{1}{|P^+|}\sum_{p\in P^+}\log\Bigl(1+\sum_{x\in X_p^+}e^{-\alpha(s(x,p)-\delta)}\Bigr)
      +\frac{1}{|P|}\sum_{p\in P}\log\Bigl(1+\sum_{x\in X_p^-}e^{\alpha(s(x,p)+\delta)}\Bigr)$$

    the first over proxies whose class is in the batch, the second over all.  Kim et al. 2020, Eq. 4; Eq. 2.31 of the
    thesis (Eq. 18 of the overview has another set in the second sum).

    Args:
        margin: the margin δ.
        alpha: the scale α.

    Examples:
        >>> import torch
        >>> loss = ProxyAnchorLoss(num_classes=2, embedding_dim=4, margin=0.0)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 1])).detach()
        tensor(1.3863)
    """

    margin: float = hyper(default=0.1, help="margin", at_least=0.0, search=(0.0, 1.0), step=0.1)
    alpha: float = hyper(default=32.0, help="scale", above=0.0, search=(1.0, 100.0), log=True, step=2.0)
    compares_all: ClassVar[str | None] = "its second term is a mean over all proxies"

    def initialize(self, proxies: Tensor) -> None:
        """Kaiming normal, as the authors' code does."""
        nn.init.kaiming_normal_(proxies, mode="fan_out")

    def declare(self) -> dict[Between, Declaration]:
        """Two terms with different counts."""
        return {Between.PROXIES_SAMPLES: (_pull(self.alpha, self.margin), _push(self.alpha, self.margin))}


class ProxyRepulsionLoss(ProxyLoss):
    r"""Proxy repulsion: samples are pulled to their proxies, and the proxies repel each other.

    $$\frac{1}{|W^+|}\sum_{w\in W^+}\log\Bigl(1+\sum_{x\in X_w^+}e^{-\alpha(w\cdot x-\lambda)}\Bigr)
      +\frac{1}{|W|}\sum_{w\in W}\log\Bigl(1+\sum_{w'\ne w}e^{\alpha(w\cdot w'+\lambda)}\Bigr)$$

    Eq. 6.1 of the thesis and, with ``through_samples``, its Eq. 6.2, where $w\cdot w'$ becomes
    $\sum_{x}(w\cdot x)(x\cdot w')$ over the batch: proxies that the batch does not distinguish repel each other more strongly.

    Args:
        margin: the margin λ.
        alpha: the scale α.
        through_samples: compare proxies through the batch.

    Examples:
        >>> import torch
        >>> loss = ProxyRepulsionLoss(num_classes=2, embedding_dim=4, margin=0.0, through_samples=True)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 1])).detach()
        tensor(1.3863)
    """

    margin: float = hyper(default=0.1, help="margin", at_least=0.0, search=(0.0, 1.0), step=0.1)
    alpha: float = hyper(default=32.0, help="scale", above=0.0, search=(1.0, 100.0), log=True, step=2.0)
    through_samples: bool = option(default=False, kw_only=False, help="compare proxies through the batch")
    compares_all: ClassVar[str | None] = "its proxies repel each other"

    def initialize(self, proxies: Tensor) -> None:
        """Kaiming normal, as for Proxy-Anchor."""
        nn.init.kaiming_normal_(proxies, mode="fan_out")

    def between_proxies(self, samples: Tensor, proxies: Tensor) -> tuple[Similarity, Tensor]:
        """Compare proxies by their cosines, or through the batch: ``(W Xᵀ)(X Wᵀ)``."""
        if not self.through_samples:
            return super().between_proxies(samples, proxies)
        group, seen = current_group(), exactly(unit(samples) @ unit(proxies).T)  # (samples, proxies)
        return Dot(), group.gather(seen, group.rows(seen)).T

    def declare(self) -> dict[Between, Declaration]:
        """Proxy-Anchor's positive term, and its negative term among proxies."""
        return {
            Between.PROXIES_SAMPLES: _pull(self.alpha, self.margin),
            Between.PROXIES_PROXIES: _push(self.alpha, self.margin),
        }


class ProxyGMLLoss(ProxyLoss):
    r"""ProxyGML: several proxies for each class; a sample is compared with its nearest proxies only.

    $$-\log\frac{e^{S_y}}{\sum_{c\in M}e^{S_c}}+\lambda\,\mathrm{mean}_{p}\Bigl(-\log\frac{e^{S^p_{y(p)}}}{\sum_c e^{S^p_c}}\Bigr)$$

    $S_c$ sums the cosines of a class's proxies that are among the ``neighbors`` most similar to the sample, its own
    class's always included; $M$ are the classes with any.  $S^p_c$ sums a proxy's cosines with all proxies of a class,
    itself included.  Zhu et al. 2020; Eq. 21 to 27 of the overview, with the sums per class of the authors' code.

    Args:
        centers: the number of proxies of each class.
        neighbors: the number of proxies that a sample is compared with.
        weight: the weight λ of the second term.

    Examples:
        >>> import torch
        >>> loss = ProxyGMLLoss(num_classes=3, embedding_dim=4, neighbors=9, weight=0.0)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    centers: int = hyper(default=3, help="proxies of each class", at_least=1, search=(1, 12))
    neighbors: int = hyper(
        default=8, help="proxies that a sample is compared with", at_least=1, search=(5, 200), log=True
    )
    weight: float = hyper(default=0.3, help="weight of the term on proxies", at_least=0.0, search=(0.0, 1.0))
    compares_all: ClassVar[str | None] = "its nearest proxies are the nearest of all"

    def initialize(self, proxies: Tensor) -> None:
        """Kaiming uniform, as for SoftTriple."""
        nn.init.kaiming_uniform_(proxies, a=math.sqrt(5.0))

    def declare(self) -> dict[Between, Declaration]:
        """The nearest proxies of a row are not a fold, so this is a function of the matrix, row by row."""
        among = Regularizer(lambda: self.weight * self.among_proxies())
        return {Between.SAMPLES_PROXIES: (MatrixLoss.by_rows(self._of_rows), among)}

    @property
    def pooling(self) -> Pooling:
        """The sum over a class's proxies."""
        return SummedCenters()

    def _by_class(self, of_proxies: Tensor) -> Tensor:
        """Columns of proxies as classes and centers: ``(m, classes · centers) -> (m, classes, centers)``."""
        return of_proxies.reshape(len(of_proxies), -1, self.centers)

    def _of_rows(self, S: Tensor, own: Tensor, _others: Tensor) -> list[TermValues]:
        # a bonus larger than any cosine ranks the proxies of a sample's class first
        order = S.detach() + 4.0 * own
        nearest = order.topk(min(self.neighbors, S.shape[1]), dim=1).indices
        compared = own.scatter(1, nearest, True)
        sums = self._by_class(torch.where(compared, S, 0.0)).sum(dim=2)
        seen, own_class = (self._by_class(mask).any(dim=2) for mask in (compared, own))
        fold = LogSumExp()
        value = fold.finish(fold.start(sums, seen)) - torch.where(own_class, sums, 0.0).sum(dim=1)
        return [TermValues(value, torch.ones_like(value), value != 0.0)]

    def among_proxies(self) -> Tensor:
        """The second term, before its weight: each proxy against the proxies of its class and of the others."""
        proxies, group = self.unit_proxies(), current_group()
        own = group.split(len(proxies)).local
        owners = torch.arange(len(proxies), device=proxies.device) // self.centers
        batch = PairBatch(
            Labels(owners[own], owners),
            Cosine(normalize=False),
            anchors=proxies[own],
            references=proxies,
            between=Between.PROXIES_PROXIES.value,
        )

        def of_rows(chunk: RowChunk) -> tuple[Tensor, ...]:
            assert chunk.batch.labels is not None
            sums = self._by_class(chunk.similarities).sum(dim=2)
            return (nn.functional.cross_entropy(sums, chunk.batch.labels, reduction="none"),)

        [values] = map_rows(batch, self.backend).map(of_rows)
        return group.total(values.sum()) / len(proxies)
