"""Losses as pure functions of tensors.

Each function computes a class of `likewise.losses` without state: proxies and learned numbers are arguments, and every
tensor argument gets a gradient.  The name is that of the class without ``Loss``, in snake case.  A loss that updates
buffers takes them after its other tensors and returns the value and the new buffers.

    >>> import torch
    >>> from likewise import functional
    >>> embeddings, proxies = torch.eye(4), torch.eye(4, requires_grad=True)
    >>> functional.arc_face(embeddings, torch.arange(4), proxies, margin=20.0).backward()
    >>> proxies.grad.shape
    torch.Size([4, 4])

Each docstring starts with a dense torch expression that equals the call, for the default similarity and reduction,
without a miner, on a batch in which every anchor has a positive and a negative.  ``S`` is the matrix of similarities,
anchors by references or samples by proxies; ``P`` and ``N`` are the masks of its positive and negative pairs; ``own``
is the mask of each sample's class, samples by classes.  Functions are those of torch and ``torch.nn.functional``.
"""

from likewise.functional._hierarchy import csl, hap, happier
from likewise.functional._neighborhood import (
    generalized_lifted_structure,
    hardness_weighted_nt_xent,
    instance,
    n_pairs,
    nca,
    nt_xent,
    sup_con,
    tuplet_margin,
)
from likewise.functional._pair import (
    binomial_deviance,
    circle,
    contrastive,
    intra_pair_variance,
    multi_similarity,
    raw,
    snr_contrastive,
    weighted_pair,
)
from likewise.functional._proxy import p2s_grad, proxy_anchor, proxy_gml, proxy_nca, proxy_nca_pp, proxy_repulsion
from likewise.functional._quality import ada_face, elastic_arc_face, elastic_cos_face, mag_face
from likewise.functional._ranking import fast_ap, histogram
from likewise.functional._regularizers import (
    anti_collapse,
    embedding_norm,
    global_orthogonal_regularization,
    ko_leo,
    zero_mean,
)
from likewise.functional._rows import angl_e, co_sent, vic_reg
from likewise.functional._soft_rank import ndcg, pnp, recall_at_k, roadmap, smooth_ap, sup_ap
from likewise.functional._softmax import (
    arc_face,
    cos_face,
    large_margin_softmax,
    normalized_softmax,
    soft_triple,
    softmax,
    sphere_face,
    sub_center_arc_face,
)
from likewise.functional._structures import hierarchical_triplet, magnet, pddm
from likewise.functional._thresholds import ranked_list, sigmoid, threshold_consistent_margin
from likewise.functional._triplet import (
    angular,
    centroid_triplet,
    dynamic_soft_margin,
    lifted_structure,
    margin,
    quadruplet,
    quadruplet_wise,
    triplet,
)

__all__ = [
    "ada_face",
    "angl_e",
    "angular",
    "anti_collapse",
    "arc_face",
    "binomial_deviance",
    "centroid_triplet",
    "circle",
    "co_sent",
    "contrastive",
    "cos_face",
    "csl",
    "dynamic_soft_margin",
    "elastic_arc_face",
    "elastic_cos_face",
    "embedding_norm",
    "fast_ap",
    "generalized_lifted_structure",
    "global_orthogonal_regularization",
    "hap",
    "happier",
    "hardness_weighted_nt_xent",
    "hierarchical_triplet",
    "histogram",
    "instance",
    "intra_pair_variance",
    "ko_leo",
    "large_margin_softmax",
    "lifted_structure",
    "mag_face",
    "magnet",
    "margin",
    "multi_similarity",
    "n_pairs",
    "nca",
    "ndcg",
    "normalized_softmax",
    "nt_xent",
    "p2s_grad",
    "pddm",
    "pnp",
    "proxy_anchor",
    "proxy_gml",
    "proxy_nca",
    "proxy_nca_pp",
    "proxy_repulsion",
    "quadruplet",
    "quadruplet_wise",
    "ranked_list",
    "raw",
    "recall_at_k",
    "roadmap",
    "sigmoid",
    "smooth_ap",
    "snr_contrastive",
    "soft_triple",
    "softmax",
    "sphere_face",
    "sub_center_arc_face",
    "sup_ap",
    "sup_con",
    "threshold_consistent_margin",
    "triplet",
    "tuplet_margin",
    "vic_reg",
    "weighted_pair",
    "zero_mean",
]
