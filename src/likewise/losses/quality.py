"""Margin heads with a margin per sample: from the embedding's length (AdaFace, MagFace), or random (ElasticFace)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise._compat import is_inside_func
from likewise.distributed import SINGLE_PROCESS, current_group
from likewise.formula import (
    Declaration,
    Formula,
    Labels,
    PairBatch,
    PerAnchor,
    RelationLike,
    cos,
    full_precision,
    hyper,
    option,
    per_anchor,
    s,
    sin,
    sqrt,
    unit,
    where,
)
from likewise.losses.proxies import Queue
from likewise.losses.proxy_base import ProxyLoss, cross_entropy
from likewise.losses.proxy_batches import Between
from likewise.losses.softmax import embedding_norm

LARGEST_COSINE, SMALLEST_ANGLE = 1.0 - 0.001, 0.001
"""AdaFace keeps cosines and angles away from the ends of their ranges."""


class AdaFaceLoss(ProxyLoss):
    r"""AdaFace: a margin on the angle for samples of low quality, and on the cosine for those of high quality.

    $$-\log\frac{e^{\sigma(\cos(\theta_y-m\hat z)-m-m\hat z)}}
      {e^{\sigma(\cos(\theta_y-m\hat z)-m-m\hat z)}+\sum_{c\ne y}e^{\sigma\cos\theta_c}},\qquad
      \hat z=\Bigl[\frac{h\,(\lVert x\rVert-\mu)}{\nu+0.001}\Bigr]_{-1}^{1}$$

    The length of an embedding, clipped to 0.001 … 100 and without gradient, is its quality; μ and ν are running means of the
    mean and the (unbiased) standard deviation of a batch's lengths.  Kim et al. 2022. In training mode, a call updates
    them first; in evaluation mode they do not change. A batch of one sample has no deviation and does not change ν.
    Cosines are clipped to ±0.999, angles to 0.001 … π − 0.001.

    Args:
        margin: the margin m, both in radians and as a cosine.
        h: the concentration h; lengths $1/h$ standard deviations from the mean get the full margin.
        scale: the scale σ.
        t_alpha: the weight of a batch in the running statistics.

    Attributes:
        batch_mean: the running mean μ, a buffer.
        batch_std: the running standard deviation ν, a buffer.

    Examples:
        >>> import torch
        >>> loss = AdaFaceLoss(num_classes=3, embedding_dim=4, margin=0.0)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach(), loss.batch_mean
        (tensor(1.0986), tensor(19.8000))
    """

    margin: float = hyper(default=0.4, help="margin", at_least=0.0, below=1.5, search=(0.0, 0.6))
    h: float = hyper(default=0.333, help="inverse deviations up to the full margin", at_least=0.0, search=(0.1, 1.0))
    scale: float = hyper(default=64.0, help="scale", above=0.0, search=(1.0, 128.0), log=True)
    t_alpha: float = hyper(
        default=0.01,
        help="weight of a batch in the statistics",
        at_least=0.0,
        at_most=1.0,
        search=(0.001, 1.0),
        log=True,
    )
    is_stateful: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.register_buffer("batch_mean", torch.tensor(20.0))
        self.register_buffer("batch_std", torch.tensor(100.0))

    def declare(self) -> dict[Between, Declaration]:
        """``cos(θ − m z)`` is expanded, and clipping an angle is a condition on cosines."""
        turn = self.margin * PerAnchor("z", self._quality)
        cosine = where(s > LARGEST_COSINE, LARGEST_COSINE, where(s < -LARGEST_COSINE, -LARGEST_COSINE, s))
        shifted = cos(turn) * cosine + sin(turn) * sqrt((1.0 - cosine) * (1.0 + cosine))
        is_small = (turn > -SMALLEST_ANGLE) & (cosine > cos(turn + SMALLEST_ANGLE))
        is_large = (turn < SMALLEST_ANGLE) & (cosine < -cos(turn - SMALLEST_ANGLE))
        end = math.cos(SMALLEST_ANGLE)
        target = where(is_small, end, where(is_large, -end, shifted)) - self.margin - turn
        return {Between.SAMPLES_PROXIES: cross_entropy(self.scale * target, self.scale * cosine)}

    def value(
        self,
        samples: Tensor,
        labels: Tensor,
        queue: Queue | None = None,
        half: torch.dtype | None = None,
        declarations: Mapping[Between, Declaration] | None = None,
    ) -> Tensor:
        """Compute the loss of checked samples; in training mode the statistics are updated first."""
        if self.training:
            self._update(samples)
        return super().value(samples, labels, queue, half, declarations)

    def _quality(self, batch: PairBatch) -> Tensor:
        mean, std = self.get_buffer("batch_mean"), self.get_buffer("batch_std")
        deviation = (_length(embedding_norm(batch)) - mean) / (std + 0.001)
        return (self.h * deviation).clamp(-1.0, 1.0).to(batch.dtype)

    @staticmethod
    def update_statistics(samples: Tensor, mean: Tensor, std: Tensor, t_alpha: float) -> tuple[Tensor, Tensor]:
        """Move running statistics toward those of the samples of all ranks, and return them.

        Args:
            samples: the embeddings, ``(n, d)``.
            mean: the running mean.
            std: the running standard deviation.
            t_alpha: the weight of the batch.
        """
        with torch.no_grad():
            group, lengths = current_group(), _length(torch.linalg.vector_norm(samples, dim=1))
            total, number = group.totals([lengths.sum(), torch.ones_like(lengths).sum()])
            squares = group.total((lengths - total / number).square().sum())
            deviation = torch.where(number > 1.0, (squares / (number - 1.0).clamp_min(1.0)).sqrt(), std)
            return t_alpha * total / number + (1.0 - t_alpha) * mean, t_alpha * deviation + (1.0 - t_alpha) * std

    def _update(self, samples: Tensor) -> None:
        if is_inside_func():
            raise RuntimeError(
                "AdaFaceLoss cannot change its statistics inside a transform of torch.func; call eval() before"
            )
        stored = self.get_buffer("batch_mean"), self.get_buffer("batch_std")
        with torch.no_grad():
            for buffer, value in zip(stored, self.update_statistics(samples, *stored, self.t_alpha), strict=True):
                buffer.copy_(value)


def _length(norms: Tensor) -> Tensor:
    return norms.detach().clamp(0.001, 100.0)


class MagFaceLoss(ProxyLoss):
    r"""MagFace: a margin that grows with the length of an embedding, and a regularizer that rewards length.

    $$-\log\frac{e^{\sigma\cos(\theta_y+m(a))}}{e^{\sigma\cos(\theta_y+m(a))}+\sum_{c\ne y}e^{\sigma\cos\theta_c}}
      +\lambda_g\Bigl(\frac{a}{u_a^2}+\frac1a\Bigr),\qquad m(a)=l_m+(u_m-l_m)\frac{a-l_a}{u_a-l_a}$$

    with $a$ the length clipped to $l_a$ … $u_a$; the gradient flows through it.  Meng et al. 2021.  The margin applies where
    $\cos\theta_y>0$; with ``easy_margin=False`` where $\theta_y+m<\pi$, and beyond that $\cos\theta_y-m\sin m$ replaces it.

    Args:
        l_a: the lower limit of the length.
        u_a: the upper limit of the length.
        l_margin: the margin at the lower limit, in degrees.
        u_margin: the margin at the upper limit, in degrees.
        scale: the scale σ.
        lambda_g: the weight of the regularizer.
        easy_margin: use the margin for positive cosines only.

    Examples:
        >>> import torch
        >>> loss = MagFaceLoss(num_classes=3, embedding_dim=4, lambda_g=0.0)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    l_a: float = hyper(default=10.0, help="lower limit of the length", above=0.0, search=(1.0, 50.0), log=True)
    u_a: float = hyper(default=110.0, help="upper limit of the length", above=0.0, search=(60.0, 200.0), log=True)
    l_margin: float = hyper(
        default=25.8, help="margin at the lower limit, in degrees", at_least=0.0, below=90.0, search=(0.0, 40.0)
    )
    u_margin: float = hyper(
        default=45.8, help="margin at the upper limit, in degrees", at_least=0.0, below=90.0, search=(20.0, 60.0)
    )
    scale: float = hyper(default=64.0, help="scale", above=0.0, search=(1.0, 128.0), log=True)
    lambda_g: float = hyper(default=35.0, help="weight of the regularizer", at_least=0.0, search=(0.0, 100.0))
    easy_margin: bool = option(default=True, kw_only=False, help="use the margin for positive cosines only")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.l_a < self.u_a:
            raise ValueError(f"MagFaceLoss: l_a must be below u_a, {self.u_a:g}, but it is {self.l_a:g}")

    def declare(self) -> dict[Between, Declaration]:
        """The margin is a number per sample, and the regularizer one unit per sample."""
        length = PerAnchor("a", self._clipped_norm)
        share = (length - self.l_a) / (self.u_a - self.l_a)
        margin = (math.pi / 180.0) * (self.l_margin + (self.u_margin - self.l_margin) * share)
        shifted = _turn(margin)
        if self.easy_margin:
            target = where(s > 0.0, shifted, s)
        else:
            target = where(s > -cos(margin), shifted, s - margin * sin(margin))
        penalty = per_anchor(self.lambda_g * (length / self.u_a**2 + 1.0 / length), needs=())
        return {Between.SAMPLES_PROXIES: (cross_entropy(self.scale * target, self.scale * s), penalty)}

    def _clipped_norm(self, batch: PairBatch) -> Tensor:
        return embedding_norm(batch).clamp(self.l_a, self.u_a)


def _turn(margin: Formula) -> Formula:
    """``cos(θ + margin)``, in radians, without an arc cosine."""
    return cos(margin) * s - sin(margin) * sqrt((1.0 - s) * (1.0 + s))


# shared by the two ElasticFace losses


def _initialize_proxies(_loss: ProxyLoss, proxies: Tensor) -> None:
    """Normal with deviation 0.01, as the authors' code does."""
    nn.init.normal_(proxies, std=0.01)


def _sample_margins(loss: ElasticArcFaceLoss | ElasticCosFaceLoss, n: int) -> Tensor:
    """Draw a margin for each of n samples, in the unit of ``loss.margin``, ``(n,)``."""
    margins = torch.full((n,), loss.margin, dtype=torch.float64, device=loss.proxies.device)
    # nothing is drawn if the deviation is zero, so that a transform of torch.func needs no randomness
    return margins if loss.std == 0.0 else margins + loss.std * torch.randn_like(margins)


def _forward(
    loss: ElasticArcFaceLoss | ElasticCosFaceLoss,
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margins: Tensor | None = None,
) -> Tensor:
    """Compute the loss of a batch; labels are class indices from 0.

    Args:
        loss: the loss.
        embeddings: the batch, ``(n, embedding_dim)``.
        labels: its classes, ``(n,)``.
        references: must be ``None``, as must ``reference_labels`` and ``relation``.
        reference_labels: see ``references``.
        relation: see ``references``.
        margins: the margins in the unit of ``loss.margin``, ``(n,)``, in place of drawn ones.
    """
    loss.check_references(references, reference_labels, relation)
    half = loss.half_of_products(embeddings)
    with full_precision(embeddings):
        samples, labels = loss.check_batch(embeddings, labels)
        if margins is None:
            return loss.value(samples, labels, half=half)
        if not isinstance(margins, Tensor) or margins.shape != labels.shape or not margins.is_floating_point():
            is_tensor = isinstance(margins, Tensor)
            what = f"of dtype {margins.dtype} and shape {tuple(margins.shape)}" if is_tensor else type(margins).__name__
            raise ValueError(f"margins must be a float tensor of shape ({len(samples)},), but it is {what}")
        if loss.shard is not None:
            margins = current_group().gather(margins, current_group().batch_rows(margins))
        per_sample = PerAnchor("m", partial(_distribute, margins, in_order=loss.plus))
        return loss.value(samples, labels, half=half, declarations=loss.declare_margins(per_sample))


def _declare(loss: ElasticArcFaceLoss | ElasticCosFaceLoss) -> dict[Between, Declaration]:
    """The head with a drawn number per sample as its margin."""

    def draw(batch: PairBatch) -> Tensor:
        return _distribute(loss.sample_margins(batch.shape[0]), batch, in_order=loss.plus)

    return loss.declare_margins(PerAnchor("m", draw))


def _distribute(margins: Tensor, batch: PairBatch, *, in_order: bool) -> Tensor:
    """Return one margin per sample; if ordered, the smallest margin for the largest target cosine."""
    assert batch.anchors is not None
    margins = margins.to(device=batch.anchors.device, dtype=batch.dtype)
    if batch.shards is not SINGLE_PROCESS:  # every rank has all samples, and they use the margins of the first rank
        margins = batch.shards.gather(margins, batch.shards.rows(margins))[: len(margins)]
    if not in_order:
        return margins
    order = _target_cosines(batch).argsort(descending=True)
    return torch.zeros_like(margins).scatter(0, order, margins.sort().values)


@torch.no_grad()
def _target_cosines(batch: PairBatch) -> Tensor:
    relation = batch.relation
    assert isinstance(relation, Labels)
    assert relation.positives is not None
    assert batch.anchors is not None
    assert batch.references is not None
    index = relation.positives.index[:, 0]  # −1 where the proxy of a class is not here
    own = batch.from_table(batch.references[index.clamp_min(0)])
    cosines = (unit(batch.anchors) * unit(own)).sum(dim=1)
    return batch.shards.total(torch.where(index >= 0, cosines, 0.0))


class ElasticArcFaceLoss(ProxyLoss):
    r"""ElasticFace on the angle: ArcFace with a margin that is drawn for each sample.

    $$-\log\frac{e^{\sigma\cos(\theta_y+m_i)}}{e^{\sigma\cos(\theta_y+m_i)}+\sum_{c\ne y}e^{\sigma\cos\theta_c}},
      \qquad m_i\sim\mathcal N(m,\mathrm{std})$$

    Boutros et al. 2022. Unlike `ArcFaceLoss` it does not change form past $\theta_y+m_i=\pi$.  In a distributed batch
    each rank draws and distributes the margins of its samples.

    Args:
        margin: the mean margin m in degrees.
        std: the standard deviation in degrees.
        scale: the scale σ.
        plus: distribute the drawn margins in order: the sample with the largest target cosine gets the smallest margin.

    Examples:
        >>> import torch
        >>> loss = ElasticArcFaceLoss(num_classes=3, embedding_dim=4, margin=0.0, std=0.0)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    margin: float = hyper(default=28.65, help="mean margin in degrees", at_least=0.0, below=90.0, search=(0.0, 60.0))
    std: float = hyper(default=2.865, help="deviation in degrees", at_least=0.0, search=(0.1, 10.0), log=True)
    scale: float = hyper(default=64.0, help="scale", above=0.0, search=(1.0, 128.0), log=True)
    plus: bool = option(default=False, kw_only=False, help="the smallest margins for the largest target cosines")
    is_stateful: ClassVar[bool] = True

    initialize = _initialize_proxies
    sample_margins = _sample_margins
    forward = _forward
    declare = _declare

    def declare_margins(self, margins: Formula) -> dict[Between, Declaration]:
        """The same with given margins, one number per sample."""
        margin = (math.pi / 180.0) * margins
        return {Between.SAMPLES_PROXIES: cross_entropy(self.scale * _turn(margin), self.scale * s)}


class ElasticCosFaceLoss(ProxyLoss):
    r"""ElasticFace on the cosine: CosFace with a margin that is drawn for each sample.

    $$-\log\frac{e^{\sigma(\cos\theta_y-m_i)}}{e^{\sigma(\cos\theta_y-m_i)}+\sum_{c\ne y}e^{\sigma\cos\theta_c}},
      \qquad m_i\sim\mathcal N(m,\mathrm{std})$$

    Boutros et al. 2022.  In a distributed batch each rank draws and distributes the margins of its samples.

    Args:
        margin: the mean margin m, a cosine.
        std: the standard deviation, a cosine.
        scale: the scale σ.
        plus: distribute the drawn margins in order: the sample with the largest target cosine gets the smallest margin.

    Examples:
        >>> import torch
        >>> loss = ElasticCosFaceLoss(num_classes=3, embedding_dim=4, margin=0.0, std=0.0)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    margin: float = hyper(default=0.35, help="mean margin", at_least=0.0, search=(0.0, 1.0), step=0.1)
    std: float = hyper(default=0.05, help="deviation of the margins", at_least=0.0, search=(0.001, 0.2), log=True)
    scale: float = hyper(default=64.0, help="scale", above=0.0, search=(1.0, 128.0), log=True)
    plus: bool = option(default=False, kw_only=False, help="the smallest margins for the largest target cosines")
    is_stateful: ClassVar[bool] = True

    initialize = _initialize_proxies
    sample_margins = _sample_margins
    forward = _forward
    declare = _declare

    def declare_margins(self, margins: Formula) -> dict[Between, Declaration]:
        """The same with given margins, one number per sample."""
        return {Between.SAMPLES_PROXIES: cross_entropy(self.scale * (s - margins), self.scale * s)}
