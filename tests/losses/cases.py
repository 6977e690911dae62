"""One row for each loss: the class, and the oracle that it must equal."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from likewise import losses, miners
from likewise.formula import Poincare
from likewise.testing import LossCase
from tests.analysis.weighted_case import CASE as WEIGHTED
from tests.oracles import heads, modern, structures
from tests.oracles import losses as oracles
from tests.oracles import proxies as proxy_oracles
from tests.oracles import soft_rank as rank_oracles


def remember_last(compute: Callable[..., oracles.Terms]) -> Callable[..., oracles.Terms]:
    """Keep the last result: the reductions of a batch are of the same units."""
    last: list[Any] = [None, None]

    def result(*batch: Any) -> oracles.Terms:
        if batch != last[0]:
            last[:] = copy.deepcopy(batch), compute(*batch)
        return last[1]

    return result


def against(oracle: Callable[..., oracles.Terms], **options: Any) -> Callable[..., Any]:
    """An oracle of units, reduced."""
    terms = remember_last(lambda *batch: oracle(oracles.batch(*batch), **options))

    def value(embeddings, labels, references, reference_labels, reduction):
        return oracles.reduce(terms(embeddings, labels, references, reference_labels), reduction, len(embeddings))

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


def roadmap(embeddings, labels, references, reference_labels, reduction):
    batch = oracles.batch(embeddings, labels, references, reference_labels)
    return oracles.reduce(rank_oracles.roadmap(batch, reduction), reduction, len(embeddings))


def frozen_circle(embeddings, at, labels):
    batch, frozen = oracles.batch(embeddings, labels), oracles.batch(at, labels)
    return oracles.reduce(oracles.circle_frozen(batch, frozen), "mean", len(embeddings))


def margin_per_class(embeddings, labels, references, reference_labels, reduction):
    batch = oracles.batch(embeddings, labels, references, reference_labels)
    return oracles.reduce(oracles.margin(batch, beta=[1.25] * 10), reduction, len(embeddings))


def frozen_hardness(embeddings, at, labels):
    batch, frozen = oracles.batch(embeddings, labels), oracles.batch(at, labels)
    return oracles.reduce(modern.hardness_weighted_frozen(batch, frozen), "mean", len(embeddings))


def dynamic_soft_margin(**options: Any) -> losses.PairLoss:
    """In evaluation mode, so that calls leave the histogram as it is: empty."""
    return losses.DynamicSoftMarginLoss(**options).eval()


def frozen_dynamic_margin(embeddings, at, labels):
    return modern.dynamic_soft_margin_frozen(oracles.batch(embeddings, labels), oracles.batch(at, labels))


TREE_LABELS = [k % 9 for k in range(25)] + [9]
TREE_ROWS = [[math.cos(label + 0.1 * k), math.sin(label), 0.3 * (k % 3)] for k, label in enumerate(TREE_LABELS)]
"""A training set of which a tree of classes is built; the last class has one sample."""


def hierarchical_triplet(**options: Any) -> losses.PairLoss:
    loss = losses.HierarchicalTripletLoss(10, levels=8, **options)
    loss.update(torch.tensor(TREE_ROWS, dtype=torch.float64), torch.tensor(TREE_LABELS))
    return loss


def pddm(**options: Any) -> losses.PDDMLoss:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return losses.PDDMLoss(5, **options)


def against_layers(embeddings, labels, references, reference_labels, reduction):
    names = ("of_difference", "of_position", "joint", "score")
    layers = {name: (layer.weight.tolist(), layer.bias.tolist()) for name in names if (layer := getattr(pddm(), name))}
    terms = structures.pddm(oracles.batch(embeddings, labels), layers)
    return oracles.reduce(terms, reduction, len(embeddings))


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
    LossCase(losses.QuadrupletWiseLoss, against(oracles.quadruplet_wise)),
    LossCase(losses.SigmoidLoss, against(modern.sigmoid), tolerance=1e-6),
    LossCase(partial(losses.SigmoidLoss, learn=False), against(modern.sigmoid), name="SigmoidLoss-fixed"),
    LossCase(losses.ThresholdConsistentMarginLoss, against(modern.threshold_consistent_margin)),
    LossCase(losses.RankedListLoss, against(modern.ranked_list)),
    LossCase(
        partial(losses.RankedListLoss, margin=0.6, Tn=4.0, imbalance=0.3, alpha=1.2, Tp=3.0),
        against(modern.ranked_list, margin=0.6, Tn=4.0, imbalance=0.3, alpha=1.2, Tp=3.0),
        name="RankedListLoss-weighted",
    ),
    LossCase(
        losses.HardnessWeightedNTXentLoss,
        against(modern.hardness_weighted_nt_xent),
        stop_gradient_value=frozen_hardness,
    ),
    LossCase(losses.InstanceLoss, against(modern.instance)),
    LossCase(losses.KoLeoLoss, against(modern.ko_leo)),
    LossCase(losses.GlobalOrthogonalRegularizationLoss, against(modern.global_orthogonal_regularization)),
    LossCase(
        dynamic_soft_margin,
        against(lambda batch: modern.dynamic_soft_margin(batch)[0]),
        name="DynamicSoftMarginLoss",
        stop_gradient_value=frozen_dynamic_margin,
    ),
    LossCase(losses.MagnetLoss, against(structures.magnet)),
    LossCase(
        partial(losses.HierarchicalTripletLoss, 10),
        against(structures.hierarchical_triplet),
        name="HierarchicalTripletLoss",
    ),
    LossCase(
        hierarchical_triplet,
        against(structures.hierarchical_triplet, tree=structures.class_tree(TREE_ROWS, TREE_LABELS, levels=8)),
        name="HierarchicalTripletLoss-tree",
        tolerance=1e-6,
    ),
    LossCase(pddm, against_layers, name="PDDMLoss"),
    LossCase(losses.CentroidTripletLoss, against(modern.centroid_triplet)),
    LossCase(losses.SmoothAPLoss, against(rank_oracles.smooth_ap)),
    LossCase(
        partial(losses.SmoothAPLoss, include_self=True),
        against(rank_oracles.smooth_ap, include_self=True),
        name="SmoothAPLoss-self",
    ),
    LossCase(
        partial(losses.SupAPLoss, offset=None, include_self=True),
        against(rank_oracles.sup_ap, offset=None, include_self=True),
        name="SupAPLoss-self",
    ),
    LossCase(losses.SupAPLoss, against(rank_oracles.sup_ap)),
    LossCase(losses.ROADMAPLoss, roadmap),
    LossCase(partial(losses.RecallAtKLoss, (1, 4)), against(rank_oracles.recall_at_k, ks=(1, 4)), name="RecallAtKLoss"),
    LossCase(losses.PNPLoss, against(rank_oracles.pnp)),
    LossCase(
        partial(losses.PNPLoss, "Ib", include_self=True),
        against(rank_oracles.pnp, variant="Ib", include_self=True),
        name="PNPLoss-self",
    ),
    LossCase(losses.NDCGLoss, against(rank_oracles.ndcg)),
    LossCase(losses.HAPLoss, against(rank_oracles.hap)),
    WEIGHTED,
]


def proxy_case(
    kind: type[losses.ProxyLoss],
    oracle: Callable[..., oracles.Terms],
    penalty: Callable[..., float] | None = None,
    proxies_are_anchors: bool = False,
    name: str = "",
    depends_on_scale: bool = False,
    prepare: Callable[[Any], Any] = lambda loss: loss,
    stop_gradient_value: Callable[..., float] | None = None,
    **options: Any,
) -> LossCase:
    """A loss with ten classes whose proxies are the same every time, and the oracle that is given these proxies."""

    def make(**more: Any) -> losses.ProxyLoss:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return prepare(kind(10, 5, **options, **more))

    units = remember_last(lambda *batch: oracle(*batch, **options))

    def value(embeddings, labels, references, reference_labels, reduction):
        proxies = make().proxies.tolist()
        terms = units(embeddings, labels, proxies)
        anchors = len(proxies) if proxies_are_anchors else len(embeddings)
        extra = penalty(proxies) if penalty is not None else 0.0
        if kind is losses.ProxyGMLLoss:
            extra = oracles.reduce(terms[1:], "mean", len(proxies))
            terms = terms[:1]
        result = oracles.reduce(terms, reduction, anchors)
        if result is terms:
            return terms
        return [x + extra / anchors for x in result] if isinstance(result, list) else result + extra

    return LossCase(
        make,
        value,
        name=name or kind.__name__,
        tolerance=1e-7,
        depends_on_scale=depends_on_scale,
        stop_gradient_value=stop_gradient_value,
    )


def soft_triple_penalty(proxies: list[list[float]]) -> float:
    return proxy_oracles.soft_triple_regularizer(proxies, centers=4, tau=0.2)


STATISTICS = {"batch_mean": 3.0, "batch_std": 0.75}


def evaluate_with_statistics(loss: losses.AdaFaceLoss) -> losses.AdaFaceLoss:
    """In evaluation mode, so that calls leave the statistics as they are: those of typical lengths."""
    for name, value in STATISTICS.items():
        getattr(loss, name).fill_(value)
    return loss.eval()


def frozen_ada_face(embeddings, at, labels):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        proxies = losses.AdaFaceLoss(10, 5).proxies.tolist()
    terms = heads.ada_face(embeddings, labels, proxies, **STATISTICS, lengths_of=at)
    return oracles.reduce(terms, "mean", len(embeddings))


HIERARCHY = torch.stack([torch.arange(10), torch.arange(10) // 3, torch.arange(10) // 6], dim=1)
"""The levels of ten classes."""


def happier(embeddings, labels, proxies, weight=0.1):
    """Hierarchical average precision of one level, and the softmax."""
    [ranked] = rank_oracles.hap(oracles.batch(embeddings, labels))
    [classified] = proxy_oracles.normalized_softmax(embeddings, labels, proxies)
    return [[(i, (1.0 - weight) * value) for i, value in ranked], [(i, weight * value) for i, value in classified]]


def csl(embeddings, labels, proxies, hierarchy):
    rows = hierarchy.tolist()
    cosines = proxy_oracles.cosines(embeddings, proxies)
    return [rank_oracles.csl(cosines, [rows[label] for label in labels], rows)]


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
    proxy_case(losses.P2SGradLoss, heads.p2s_grad),
    proxy_case(losses.LargeMarginSoftmaxLoss, heads.large_margin_softmax, depends_on_scale=True),
    proxy_case(
        losses.AdaFaceLoss,
        partial(heads.ada_face, **STATISTICS),
        depends_on_scale=True,
        prepare=evaluate_with_statistics,
        stop_gradient_value=frozen_ada_face,
    ),
    proxy_case(losses.MagFaceLoss, heads.mag_face, depends_on_scale=True, l_a=1.0, u_a=5.0),
    proxy_case(
        losses.MagFaceLoss,
        heads.mag_face,
        name="MagFaceLoss-whole-range",
        depends_on_scale=True,
        l_a=1.0,
        u_a=5.0,
        u_margin=85.0,
        scale=16.0,
        easy_margin=False,
    ),
    proxy_case(losses.ElasticArcFaceLoss, heads.elastic_arc_face, std=0.0),
    proxy_case(losses.ElasticCosFaceLoss, heads.elastic_cos_face, std=0.0),
    proxy_case(losses.HAPPIERLoss, happier),
    proxy_case(losses.CSLLoss, csl, hierarchy=HIERARCHY),
]
