"""One row for each loss: the class, and the oracle that it must equal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from likewise import losses, miners
from likewise.formula import Poincare
from likewise.testing import LossCase
from tests.analysis.weighted_case import CASE as WEIGHTED
from tests.oracles import losses as oracles
from tests.oracles import proxies as proxy_oracles


def against(oracle: Callable[..., oracles.Terms], **options: Any) -> Callable[..., Any]:
    """An oracle of units, reduced."""

    def value(embeddings, labels, references, reference_labels, reduction):
        batch = oracles.batch(embeddings, labels, references, reference_labels)
        return oracles.reduce(oracle(batch, **options), reduction, len(embeddings))

    return value


def lifted_structure(embeddings, labels, references, reference_labels, reduction):
    batch = oracles.batch(embeddings, labels, references, reference_labels)
    if reduction == "none":
        return oracles.lifted_structure_per_anchor(batch)
    return oracles.reduce(oracles.lifted_structure(batch), reduction, len(embeddings))


def histogram(embeddings, labels, references, reference_labels, reduction, bins=100):
    """The oracle's one unit; per anchor, the mean over its negative pairs of the interpolated cumulative histogram."""
    batch = oracles.batch(embeddings, labels, references, reference_labels)
    value = oracles.reduce(oracles.histogram(batch, bins=bins), "sum", len(embeddings))
    if reduction != "none":
        return value
    if not value:
        return [0.0] * len(embeddings)
    S = oracles.similarities(batch, "cosine")
    n = len(embeddings)
    below = [0.0] * (bins + 1)
    positives = [S[i][j] for i in range(n) for j in range(n) if batch.positive[i][j]]
    for r in range(bins + 1):
        node = -1.0 + 2.0 * r / bins
        below[r] = (below[r - 1] if r else 0.0) + sum(
            max(0.0, 1.0 - abs(x - node) * bins / 2.0) for x in positives
        ) / len(positives)
    negatives = sum(map(sum, batch.negative))
    result = []
    for i in range(n):
        total = 0.0
        for j in range(n):
            if batch.negative[i][j]:
                for r in range(bins + 1):
                    node = -1.0 + 2.0 * r / bins
                    total += max(0.0, 1.0 - abs(S[i][j] - node) * bins / 2.0) * below[r]
        result.append(total / negatives)
    return result


def frozen_circle(embeddings, at, labels):
    batch, frozen = oracles.batch(embeddings, labels), oracles.batch(at, labels)
    return oracles.reduce(oracles.circle_frozen(batch, frozen), "mean", len(embeddings))


def margin_per_class(embeddings, labels, references, reference_labels, reduction):
    batch = oracles.batch(embeddings, labels, references, reference_labels)
    return oracles.reduce(oracles.margin(batch, beta=[1.25] * 10), reduction, len(embeddings))


CASES = [
    LossCase(losses.ContrastiveLoss, against(oracles.contrastive)),
    LossCase(
        partial(losses.ContrastiveLoss, similarity="euclidean"),
        against(oracles.contrastive, positive_margin=0.0, negative_margin=-1.0, kind="euclidean"),
        name="ContrastiveLoss-euclidean",
    ),
    LossCase(
        partial(losses.ContrastiveLoss, similarity="poincare"),
        against(oracles.contrastive, positive_margin=0.0, negative_margin=-1.0, kind="poincare"),
        name="ContrastiveLoss-poincare",
    ),
    LossCase(losses.TripletLoss, against(oracles.triplet)),
    LossCase(partial(losses.TripletLoss, soft=True), against(oracles.triplet, soft=True), name="TripletLoss-soft"),
    LossCase(losses.AngularLoss, against(oracles.angular)),
    LossCase(partial(losses.AngularLoss, alpha=66.0), against(oracles.angular, alpha=66.0), name="AngularLoss-66"),
    LossCase(losses.MarginLoss, against(oracles.margin), tolerance=1e-6),
    LossCase(partial(losses.MarginLoss, beta=1.25, num_classes=10), margin_per_class, name="MarginLoss-per-class"),
    LossCase(losses.LiftedStructureLoss, lifted_structure),
    LossCase(losses.GeneralizedLiftedStructureLoss, against(oracles.generalized_lifted_structure)),
    LossCase(
        partial(losses.GeneralizedLiftedStructureLoss, scale=16.0),
        against(oracles.generalized_lifted_structure, scale=16.0),
        name="GeneralizedLiftedStructureLoss-scaled",
    ),
    LossCase(losses.NPairsLoss, against(oracles.n_pairs)),
    LossCase(partial(losses.NPairsLoss, l2=0.02), against(oracles.n_pairs, l2=0.02), name="NPairsLoss-l2"),
    LossCase(losses.TupletMarginLoss, against(oracles.tuplet_margin)),
    LossCase(losses.IntraPairVarianceLoss, against(oracles.intra_pair_variance)),
    LossCase(losses.CircleLoss, against(oracles.circle), stop_gradient_value=frozen_circle),
    LossCase(losses.NTXentLoss, against(oracles.nt_xent)),
    LossCase(
        partial(losses.NTXentLoss, 0.2, similarity=Poincare()),
        against(oracles.nt_xent, temperature=0.2, kind="poincare"),
        name="NTXentLoss-hyperbolic",
    ),
    LossCase(
        partial(losses.NTXentLoss, learn_temperature=True),
        against(oracles.nt_xent),
        name="NTXentLoss-learned",
        tolerance=1e-6,
    ),
    LossCase(losses.SupConLoss, against(oracles.sup_con)),
    LossCase(losses.NCALoss, against(oracles.nca)),
    LossCase(losses.SNRContrastiveLoss, against(oracles.snr_contrastive)),
    LossCase(
        partial(losses.SNRContrastiveLoss, regularizer=0.1),
        against(oracles.snr_contrastive, regularizer=0.1),
        name="SNRContrastiveLoss-regularized",
    ),
    LossCase(losses.BinomialDevianceLoss, against(oracles.binomial_deviance)),
    LossCase(losses.MultiSimilarityLoss, against(oracles.multi_similarity)),
    LossCase(
        partial(losses.MultiSimilarityLoss, beta=1000.0),
        against(oracles.multi_similarity, beta=1000.0),
        name="MultiSimilarityLoss-steep",
    ),
    LossCase(
        partial(losses.MultiSimilarityLoss, miner=miners.MultiSimilarityMiner(0.1)),
        against(oracles.raw),
        name="MultiSimilarityLoss-mined",
    ),
    LossCase(losses.RAWLoss, against(oracles.raw)),
    LossCase(losses.FastAPLoss, against(oracles.fast_ap)),
    LossCase(losses.HistogramLoss, histogram),
    LossCase(losses.QuadrupletLoss, against(oracles.quadruplet)),
    WEIGHTED,
]


def proxy_case(
    kind: type[losses.ProxyLoss],
    oracle: Callable[..., oracles.Terms],
    penalty: Callable[..., float] | None = None,
    proxies_are_anchors: bool = False,
    name: str = "",
    depends_on_scale: bool = False,
    **options: Any,
) -> LossCase:
    """A loss with ten classes whose proxies are the same every time, and the oracle that is given these proxies."""

    def make(**more: Any) -> losses.ProxyLoss:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return kind(10, 5, **options, **more)

    def value(embeddings, labels, references, reference_labels, reduction):
        proxies = make().proxies.tolist()
        terms = oracle(embeddings, labels, proxies, **options)
        anchors = len(proxies) if proxies_are_anchors else len(embeddings)
        extra = penalty(proxies) if penalty is not None else 0.0
        if kind is losses.ProxyGMLLoss:
            extra = oracles.reduce(terms[1:], "mean", len(proxies))
            terms = terms[:1]
        result = oracles.reduce(terms, reduction, anchors)
        if result is terms:
            return terms
        return [x + extra / anchors for x in result] if isinstance(result, list) else result + extra

    return LossCase(make, value, name=name or kind.__name__, tolerance=1e-7, depends_on_scale=depends_on_scale)


def soft_triple_penalty(proxies: list[list[float]]) -> float:
    return proxy_oracles.soft_triple_regularizer(proxies, centers=4, tau=0.2)


PROXY_CASES = [
    proxy_case(losses.SoftmaxLoss, proxy_oracles.softmax),
    proxy_case(losses.NormalizedSoftmaxLoss, proxy_oracles.normalized_softmax),
    proxy_case(
        losses.NormalizedSoftmaxLoss,
        proxy_oracles.normalized_softmax,
        name="NormalizedSoftmaxLoss-raw",
        depends_on_scale=True,
        temperature=0.5,
        normalize_embeddings=False,
    ),
    proxy_case(losses.ProxyNCALoss, proxy_oracles.proxy_nca),
    proxy_case(losses.ProxyNCAPPLoss, proxy_oracles.proxy_nca_pp),
    proxy_case(losses.SphereFaceLoss, proxy_oracles.sphere_face, depends_on_scale=True),
    proxy_case(
        losses.SphereFaceLoss,
        proxy_oracles.sphere_face,
        name="SphereFaceLoss-normalized",
        normalize=True,
        margin=3,
        scale=8.0,
    ),
    proxy_case(losses.CosFaceLoss, proxy_oracles.cos_face),
    proxy_case(losses.ArcFaceLoss, proxy_oracles.arc_face),
    proxy_case(losses.ArcFaceLoss, proxy_oracles.arc_face, name="ArcFaceLoss-wide", margin=80.0, scale=16.0),
    proxy_case(losses.SubCenterArcFaceLoss, proxy_oracles.sub_center_arc_face),
    proxy_case(losses.SoftTripleLoss, proxy_oracles.soft_triple, penalty=soft_triple_penalty, centers=4),
    proxy_case(losses.SoftTripleLoss, proxy_oracles.soft_triple, name="SoftTripleLoss-one-center", centers=1),
    proxy_case(losses.ProxyAnchorLoss, proxy_oracles.proxy_anchor, proxies_are_anchors=True),
    proxy_case(losses.ProxyRepulsionLoss, proxy_oracles.proxy_repulsion, proxies_are_anchors=True),
    proxy_case(
        losses.ProxyRepulsionLoss,
        proxy_oracles.proxy_repulsion,
        proxies_are_anchors=True,
        name="ProxyRepulsionLoss-through-samples",
        through_samples=True,
    ),
    proxy_case(losses.ProxyGMLLoss, proxy_oracles.proxy_gml),
]
