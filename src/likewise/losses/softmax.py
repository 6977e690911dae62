"""Softmax heads: a sample against the proxies of all classes, with or without a margin for its class."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.formula import (
    Declaration,
    Formula,
    Labels,
    Number,
    PairBatch,
    PerAnchor,
    PerReference,
    check_squared_norms,
    cos,
    exactly,
    hyper,
    option,
    s,
    sin,
    sqrt,
    where,
)
from likewise.losses.proxy_base import ProxyLoss, cross_entropy
from likewise.losses.proxy_batches import Between


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
        """Logits are cosines over the temperature, times the embedding's length unless embeddings are normalized."""
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
        return exactly(samples @ self.proxies[classes].to(samples.dtype).T)


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
