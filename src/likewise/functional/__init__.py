"""Losses as pure functions of tensors.

Each function computes a class of `likewise.losses` without state: proxies and learned numbers are arguments, and every
tensor argument gets a gradient.  The name is that of the class without ``Loss``, in snake case.

    >>> import torch
    >>> from likewise import functional
    >>> embeddings, proxies = torch.eye(4), torch.eye(4, requires_grad=True)
    >>> functional.arc_face(embeddings, torch.arange(4), proxies, margin=20.0).backward()
    >>> proxies.grad.shape
    torch.Size([4, 4])

A docstring opens with the dense torch expression that the call equals, with the default similarity and reduction and
without a miner, on a batch in which every anchor has a positive and a negative.  ``S`` is the matrix of similarities,
anchors by references or samples by proxies; ``P`` and ``N`` are the masks of its positive and negative pairs; ``own`` is
the mask of each sample's class, samples by classes.  Functions are those of torch and ``torch.nn.functional``.
"""

from likewise.functional._neighborhood import (
    generalized_lifted_structure,
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
from likewise.functional._proxy import proxy_anchor, proxy_gml, proxy_nca, proxy_nca_pp, proxy_repulsion
from likewise.functional._ranking import fast_ap, histogram
from likewise.functional._regularizers import embedding_norm, zero_mean
from likewise.functional._softmax import (
    arc_face,
    cos_face,
    normalized_softmax,
    soft_triple,
    softmax,
    sphere_face,
    sub_center_arc_face,
)
from likewise.functional._triplet import angular, lifted_structure, margin, quadruplet, triplet

__all__ = [
    "angular",
    "arc_face",
    "binomial_deviance",
    "circle",
    "contrastive",
    "cos_face",
    "embedding_norm",
    "fast_ap",
    "generalized_lifted_structure",
    "histogram",
    "intra_pair_variance",
    "lifted_structure",
    "margin",
    "multi_similarity",
    "n_pairs",
    "nca",
    "normalized_softmax",
    "nt_xent",
    "proxy_anchor",
    "proxy_gml",
    "proxy_nca",
    "proxy_nca_pp",
    "proxy_repulsion",
    "quadruplet",
    "raw",
    "snr_contrastive",
    "soft_triple",
    "softmax",
    "sphere_face",
    "sub_center_arc_face",
    "sup_con",
    "triplet",
    "tuplet_margin",
    "weighted_pair",
    "zero_mean",
]
