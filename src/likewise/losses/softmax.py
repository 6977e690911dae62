"""Softmax heads: a sample against the proxies of all classes, with or without a margin for its class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.distributed import current_group
from likewise.engines import TableChunks, plan_chunks
from likewise.formula import (
    Declaration,
    Formula,
    Labels,
    Number,
    PairBatch,
    PerAnchor,
    PerReference,
    Regularizer,
    check_classes,
    check_squared_norms,
    cos,
    full_precision,
    hyper,
    labels_of,
    option,
    s,
    sin,
    sqrt,
    unit,
    where,
)
from likewise.losses.centers import blend_centers
from likewise.losses.proxy_base import Between, ProxyLoss, cross_entropy


class SoftmaxLoss(ProxyLoss):
    r"""Softmax cross entropy on inner products with one weight vector for each class.

    $$-\log\frac{e^{w_y\cdot x+b_y}}{\sum_c e^{w_c\cdot x+b_c}}$$

    Eq. 2.25 and 2.26 of the thesis; a linear layer and `torch.nn.CrossEntropyLoss` in one.

    Args:
        bias: learn a bias for each class.

    Examples:
        >>> import torch
        >>> loss = SoftmaxLoss(num_classes=3, embedding_dim=4)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    bias: bool | Tensor | None = option(default=False, kw_only=False, help="learn a bias for each class")
    similarity: ClassVar[str] = "dot"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.bias = nn.Parameter(torch.zeros(self.num_classes)) if self.bias else None

    def initialize(self, proxies: Tensor) -> None:
        """As `torch.nn.Linear` does."""
        nn.init.kaiming_uniform_(proxies, a=math.sqrt(5.0))

    def _bias(self, batch: PairBatch) -> Tensor:
        assert isinstance(self.bias, Tensor)
        assert isinstance(batch.relation, Labels)
        # only the classes that are compared
        return self.bias.to(batch.dtype)[batch.relation.reference_labels]

    def declare(self) -> dict[Between, Declaration]:
        """Logits are inner products."""
        logit: Formula = s if self.bias is None else s + PerReference("bias", self._bias)
        return {Between.SAMPLES_PROXIES: cross_entropy(logit, logit)}

    def logits_of(self, samples: Tensor, classes: slice) -> Tensor:
        """Inner products plus the bias."""
        logits = super().logits_of(samples, classes)
        return logits if not isinstance(self.bias, Tensor) else logits + self.bias[classes].to(logits.dtype)


class NormalizedSoftmaxLoss(ProxyLoss):
    r"""Softmax cross entropy on cosines over a temperature.

    $$-\log\frac{e^{\cos(x,w_y)/\tau}}{\sum_c e^{\cos(x,w_c)/\tau}}$$

    Wang et al. 2017 (NormFace), Zhai & Wu 2019.  With ``normalize_embeddings=False`` only the proxies are of unit length,
    and $\lVert x\rVert\cos(x,w_c)$ takes the place of the cosines.

    Args:
        temperature: the temperature τ.
        learn_temperature: make τ a parameter, starting from ``temperature``.
        normalize_embeddings: divide embeddings by their length.

    Examples:
        >>> import torch
        >>> loss = NormalizedSoftmaxLoss(num_classes=3, embedding_dim=4)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    temperature: float = hyper(
        default=0.05, help="temperature", above=0.0, search=(0.01, 1.0), log=True, learn="learn_temperature"
    )
    learn_temperature: bool = option(default=False, kw_only=True, help="make the temperature a parameter")
    normalize_embeddings: bool = option(default=True, kw_only=True, help="divide embeddings by their length")

    def initialize(self, proxies: Tensor) -> None:
        """Uniform within ±1/√d, as Zhai & Wu's code does."""
        nn.init.uniform_(proxies, -1.0 / math.sqrt(self.embedding_dim), 1.0 / math.sqrt(self.embedding_dim))

    def declare(self) -> dict[Between, Declaration]:
        """Logits are cosines over the temperature, times the embedding's length where it is kept."""
        logit: Formula = s if self.normalize_embeddings else PerAnchor("‖x‖", embedding_norm) * s
        logit = logit / self.temperature
        return {Between.SAMPLES_PROXIES: cross_entropy(logit, logit)}


class SphereFaceLoss(ProxyLoss):
    r"""SphereFace: a multiplicative angular margin.

    $$-\log\frac{e^{\sigma\lVert x\rVert\psi(\theta_y)}}{e^{\sigma\lVert x\rVert\psi(\theta_y)}+\sum_{c\ne y}e^{\sigma\lVert x\rVert\cos\theta_c}},
      \qquad\psi(\theta)=(-1)^k\cos(m\theta)-2k,\quad\theta\in\bigl[\tfrac{k\pi}{m},\tfrac{(k+1)\pi}{m}\bigr]$$

    with proxies of unit length.  Liu et al. 2017.  $\cos(m\theta)$ is a polynomial in the cosine, so that no arc
    cosine is differentiated.

    Args:
        margin: the multiple m, a whole number.
        scale: the scale σ.
        normalize: drop the embedding's length.

    Examples:
        >>> import torch
        >>> loss = SphereFaceLoss(num_classes=3, embedding_dim=4)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    margin: int = hyper(default=4, help="the multiple of the angle", at_least=1, at_most=8, search=(2, 5))
    scale: float = hyper(default=1.0, help="scale", above=0.0, search=(1.0, 64.0), log=True)
    normalize: bool = option(default=False, kw_only=True, help="drop the embedding's length")

    def declare(self) -> dict[Between, Declaration]:
        """The margin replaces the cosine of the class."""
        length: Formula | float = self.scale
        if not self.normalize:
            length = self.scale * PerAnchor("‖x‖", embedding_norm)
        return {Between.SAMPLES_PROXIES: cross_entropy(length * _psi(self.margin), length * s)}


class LargeMarginSoftmaxLoss(ProxyLoss):
    r"""Large-margin softmax: a multiplicative angular margin, with embeddings and proxies of any length.

    $$-\log\frac{e^{\sigma\lVert w_y\rVert\lVert x\rVert\psi(\theta_y)}}
      {e^{\sigma\lVert w_y\rVert\lVert x\rVert\psi(\theta_y)}+\sum_{c\ne y}e^{\sigma\,w_c\cdot x}},
      \qquad\psi(\theta)=(-1)^k\cos(m\theta)-2k,\quad\theta\in\bigl[\tfrac{k\pi}{m},\tfrac{(k+1)\pi}{m}\bigr]$$

    Liu et al. 2016.  `SphereFaceLoss` is the same with proxies of unit length.

    Args:
        margin: the multiple m, a whole number.
        scale: the scale σ.

    Examples:
        >>> import torch
        >>> loss = LargeMarginSoftmaxLoss(num_classes=3, embedding_dim=4)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    margin: int = hyper(default=4, help="the multiple of the angle", at_least=1, at_most=8, search=(2, 5))
    scale: float = hyper(default=1.0, help="scale", above=0.0, search=(1.0, 64.0), log=True)

    def declare(self) -> dict[Between, Declaration]:
        """Cosines times both lengths."""
        lengths = self.scale * PerAnchor("‖x‖", embedding_norm) * PerReference("‖w‖", _proxy_norm)
        return {Between.SAMPLES_PROXIES: cross_entropy(lengths * _psi(self.margin), lengths * s)}

    def logits_of(self, samples: Tensor, classes: slice) -> Tensor:
        """Inner products."""
        return samples @ self.proxies[classes].to(samples.dtype).T


def embedding_norm(batch: PairBatch) -> Tensor:
    """The length of each sample.

    Examples:
        >>> embedding_norm(PairBatch(Labels(torch.tensor([0])), anchors=torch.tensor([[3.0, 4.0]])))
        tensor([5.])
    """
    assert batch.anchors is not None
    check_squared_norms("embeddings", batch.anchors)
    norm: Tensor = torch.linalg.vector_norm(batch.anchors, dim=1)
    return norm


def _proxy_norm(batch: PairBatch) -> Tensor:
    assert batch.references is not None
    norm: Tensor = torch.linalg.vector_norm(batch.from_table(batch.references), dim=1)
    return norm


def _psi(m: int) -> Formula:
    """The multiplicative margin; comparisons of the cosine with cos(jπ/m) select its interval."""
    multiple = _chebyshev(m)
    psi: Formula = multiple
    for j in range(1, m):
        branch = (multiple if j % 2 == 0 else -multiple) - 2.0 * j
        psi = where(s < Number(math.cos(j * math.pi / m)), branch, psi)
    return psi


def _chebyshev(m: int) -> Formula:
    """``cos(mθ)`` as a polynomial in ``s = cos θ``."""
    before, now = Number(1.0), s
    result: list[Formula] = [before, now]
    while len(result) <= m:
        result.append(2.0 * s * result[-1] - result[-2])
    return result[m]


class CosFaceLoss(ProxyLoss):
    r"""CosFace: an additive margin on the cosine.

    $$-\log\frac{e^{\sigma(\cos\theta_y-m)}}{e^{\sigma(\cos\theta_y-m)}+\sum_{c\ne y}e^{\sigma\cos\theta_c}}$$

    Wang et al. 2018.

    Args:
        margin: the margin m.
        scale: the scale σ.

    Examples:
        >>> import torch
        >>> loss = CosFaceLoss(num_classes=3, embedding_dim=4, margin=0.0)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    margin: float = hyper(default=0.35, help="margin", at_least=0.0, search=(0.0, 1.0), step=0.1)
    scale: float = hyper(default=64.0, help="scale", above=0.0, search=(1.0, 128.0), log=True)

    def declare(self) -> dict[Between, Declaration]:
        """The margin is subtracted from the logit of the class."""
        return {Between.SAMPLES_PROXIES: cross_entropy(self.scale * (s - self.margin), self.scale * s)}


def arc_logit(margin: float, scale: float) -> Formula:
    """``scale · cos(θ + margin)`` as a formula of the cosine; past ``θ + margin = π`` it continues as a straight line.

    ``cos(θ + m) = s cos m − √(1 − s²) sin m`` needs no arc cosine, and its derivative at ``s = ±1`` is finite.

    Examples:
        >>> arc_logit(0.0, 1.0).rank.name
        'PAIR'
    """
    m = margin * (math.pi / 180.0)
    shifted = cos(m) * s - sin(m) * sqrt((1.0 - s) * (1.0 + s))
    return scale * where(s < -cos(m), s - m * sin(m), shifted)


class ArcFaceLoss(ProxyLoss):
    r"""ArcFace: an additive margin on the angle.

    $$-\log\frac{e^{\sigma\cos(\theta_y+m)}}{e^{\sigma\cos(\theta_y+m)}+\sum_{c\ne y}e^{\sigma\cos\theta_c}}$$

    Deng et al. 2019, Eq. 3; Eq. 2.29 of the thesis.  Past $\theta_y+m=\pi$, where the cosine would rise again,
    $\cos\theta_y-m\sin m$ replaces it.

    Args:
        margin: the margin m in degrees.
        scale: the scale σ.

    Examples:
        >>> import torch
        >>> loss = ArcFaceLoss(num_classes=3, embedding_dim=4, margin=0.0)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    margin: float = hyper(default=28.6, help="margin in degrees", at_least=0.0, below=90.0, search=(0.0, 60.0))
    scale: float = hyper(default=64.0, help="scale", above=0.0, search=(1.0, 256.0), log=True)
    suggested_lr: ClassVar[float | None] = 1e-4

    def initialize(self, proxies: Tensor) -> None:
        """Normal with deviation 0.01, as the authors' code does."""
        nn.init.normal_(proxies, std=0.01)

    def declare(self) -> dict[Between, Declaration]:
        """The margin is added to the angle of the class."""
        return {Between.SAMPLES_PROXIES: cross_entropy(arc_logit(self.margin, self.scale), self.scale * s)}


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
        """The center of each class that is the most similar one for most of its samples, the first of several.

        Args:
            embeddings: samples, of the whole training set usually, ``(m, embedding_dim)``.
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
        """The samples far from the dominant center of their class, which probably have a wrong label.  Deng et al. 2020.

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
    tables give its inverse, and its Eq. 2.30 leaves the centers out.

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

    def pool(self, similarities: Tensor) -> Tensor:
        """Centers weighted by their softmax."""
        return blend_centers(similarities, self.gamma)

    def declare(self) -> dict[Between, Declaration]:
        """A margin softmax over classes, and the regularizer on centers."""
        main = cross_entropy(self.la * (s - self.margin), self.la * s)
        if self.tau == 0.0:  # without the term the gradient is absent instead of zeros for every center
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
        return by_class @ by_class.transpose(1, 2)

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
