"""Regularizers against their oracles, and what they are at a weight of zero."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest
import torch

from likewise import losses, miners
from likewise.formula import Labels, Masks
from likewise.testing import make_batch
from tests.oracles import losses as oracles
from tests.oracles import proxies as proxy_oracles
from tests.oracles import structures


def proxy_nca() -> losses.ProxyNCALoss:
    torch.manual_seed(0)
    return losses.ProxyNCALoss(10, 5, scale=3.0)


@pytest.mark.parametrize("mask", [False, True])
def test_language_guidance_equals_the_oracle(mask: bool):
    embeddings, labels = make_batch("ragged")
    words = torch.randn(10, 7, dtype=torch.float64)
    loss = losses.LanguageGuidance(losses.ContrastiveLoss(), words, weight=0.5, gamma=1.0, mask_same_class=mask)
    expected = proxy_oracles.language_guidance(
        embeddings.tolist(), labels.tolist(), words.tolist(), gamma=1.0, mask_same_class=mask
    )
    divergence = loss.divergence(embeddings, labels)
    assert divergence.item() == pytest.approx(expected, abs=1e-10)
    plain = losses.ContrastiveLoss()(embeddings, labels)
    torch.testing.assert_close(loss(embeddings, labels), plain + 0.5 * divergence)
    assert torch.autograd.gradcheck(lambda x: loss.divergence(x, labels), (embeddings.requires_grad_(),))


def test_language_guidance_is_zero_where_images_follow_words():
    words = torch.randn(3, 6)
    loss = losses.LanguageGuidance(losses.ContrastiveLoss(), words)
    assert loss.divergence(words, torch.arange(3)).item() == pytest.approx(0.0, abs=1e-6)
    assert "class_embeddings" in loss.state_dict()


def test_norm_and_zero_mean():
    embeddings, labels = make_batch("ragged")
    assert losses.EmbeddingNorm()(embeddings, labels).item() == pytest.approx(
        proxy_oracles.embedding_norm(embeddings.tolist())
    )
    assert losses.ZeroMean()(embeddings, labels).item() == pytest.approx(proxy_oracles.zero_mean(embeddings.tolist()))
    zeros = torch.zeros(2, 3, requires_grad=True)
    (losses.EmbeddingNorm()(zeros) + losses.ZeroMean()(zeros)).backward()
    assert torch.isfinite(zeros.grad).all()


def test_matryoshka_is_the_mean_over_prefixes():
    embeddings, labels = make_batch("balanced")
    inner = losses.NTXentLoss()
    value = losses.Matryoshka(inner, dims=[2, 5], weights=[1.0, 3.0])(embeddings, labels)
    expected = (inner(embeddings[:, :2], labels) + 3.0 * inner(embeddings, labels)) / 4.0
    torch.testing.assert_close(value, expected)


def test_a_cascade_gives_the_hardest_pairs_to_the_next_slice():
    embeddings, labels = make_batch("ragged", dim=9)
    inner = losses.ContrastiveLoss(positive_margin=0.9, negative_margin=0.2, reduction="mean")
    cascade = losses.Cascade(inner, dims=[3, 2, 4], shares=[0.4, 0.5])
    expected = structures.cascade(
        embeddings.tolist(),
        labels.tolist(),
        [3, 2, 4],
        [0.4, 0.5],
        lambda s, positive: max(0.0, 0.9 - s) if positive else max(0.0, s - 0.2),
    )
    assert cascade(embeddings, labels).item() == pytest.approx(expected, abs=1e-10)
    assert torch.autograd.gradcheck(lambda x: cascade(x, labels), (embeddings.requires_grad_(),))
    whole = losses.Cascade(inner, dims=[3, 2, 4], shares=[1.0, 1.0])(embeddings, labels)
    slices = embeddings.split([3, 2, 4], dim=1)
    torch.testing.assert_close(whole, sum(inner(each, labels) for each in slices))
    torch.testing.assert_close(
        cascade(embeddings, labels, embeddings.detach(), labels + 100).isfinite(), torch.tensor(True)
    )
    for bad, sentence in (
        ({"dims": [3], "shares": [0.5]}, "shares must have one for each of the 1 dims except the first"),
        ({"dims": [3, 2], "shares": [1.5]}, "shares must be numbers > 0 and ≤ 1"),
        ({"dims": [9, 9], "shares": [0.5]}, "embeddings must have at least the 18 dimensions of dims, but have 9"),
    ):
        with pytest.raises(ValueError, match=sentence):
            losses.Cascade(inner, **bad)(embeddings, labels)
    with pytest.raises(TypeError, match="loss must work in any dimension, but a PDDMLoss has a fixed one"):
        losses.Cascade(losses.PDDMLoss(3), dims=[3])
    broken = embeddings.clone()
    broken[2, -1] = torch.nan  # a column that no slice reads
    for relation in ("paired", "views"):
        with pytest.raises(ValueError, match="references must be finite, but row 2"):
            losses.Cascade(inner, dims=[3], shares=[])(embeddings, references=broken, relation=relation)
    for bad in ({"dims": 3}, {"dims": [3, 2], "shares": 0.5}):
        with pytest.raises(TypeError, match=r"must be several numbers, but it is a (int|float)"):
            losses.Cascade(inner, **bad)


def test_a_header_of_pddm_without_negatives_does_not_count():
    """The partner of the hardest positive pair has no negative in these masks: only the pair's first header is left."""
    embeddings, _ = make_batch("balanced", dim=4)
    positive, negative = torch.zeros(2, 12, 12, dtype=torch.bool)
    positive[3, 5] = negative[3, 7] = True
    loss = losses.PDDMLoss(4).double()
    i, j, k = torch.nn.functional.normalize(embeddings, dim=1)[[3, 5, 7], None]
    scores, apart = loss.score_pairs(i, k) - loss.score_pairs(i, j), (i - j).norm() - (i - k).norm()
    expected = torch.relu(0.5 + scores) + 0.5 * torch.relu(1.0 + apart)
    found = loss(embeddings, relation=Masks(positive, negative))
    torch.testing.assert_close(found, expected[0])


def test_magnet_loss_of_clusters():
    """Labels of two columns: clusters of the own class are no impostors, and one class has two of them."""
    embeddings, _ = make_batch("balanced")
    clusters = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
    classes = torch.tensor([0, 0, 1, 2])[clusters]
    batch = oracles.batch(embeddings.tolist(), classes.tolist(), None, None)
    expected = oracles.reduce(structures.magnet(batch, alpha=0.5, clusters=clusters.tolist()), "none", 12)
    found = losses.MagnetLoss(alpha=0.5, reduction="none")(embeddings, torch.stack([clusters, classes], dim=1))
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))
    with pytest.raises(ValueError, match="labels must have a column of clusters and one of classes, but have 3"):
        losses.MagnetLoss()(embeddings, torch.stack([clusters, classes, classes], dim=1))


def test_weighted_sum():
    embeddings, labels = make_batch("balanced")
    parts = {losses.NTXentLoss(): 1.0, losses.ProxyAnchorLoss(4, 5): 0.5, losses.EmbeddingNorm(): 0.01}
    total = losses.WeightedSum(parts)
    torch.testing.assert_close(
        total(embeddings, labels), sum(weight * loss(embeddings, labels) for loss, weight in parts.items())
    )
    assert [name for name, _ in total.named_parameters()] == ["losses.1.proxies"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: losses.DirectionRegularized(losses.TripletLoss()),
        lambda: losses.LanguageGuidance(losses.NTXentLoss(), torch.eye(10)),
        lambda: losses.Matryoshka(losses.NTXentLoss(), [2, 4]),
        lambda: losses.Cascade(losses.NTXentLoss(), [2, 2], [0.5]),
        lambda: losses.WeightedSum({losses.NTXentLoss(): 1.0}),
        lambda: losses.CrossBatchMemory(losses.NTXentLoss(), 20),
    ],
)
def test_wrappers_survive_copies_and_keep_what_they_wrap(make):
    embeddings, labels = make_batch("balanced")
    wrapper = make().eval()
    assert hasattr(wrapper, "loss") or hasattr(wrapper, "losses")
    for twin in (copy.deepcopy(wrapper), pickle.loads(pickle.dumps(wrapper))):
        assert torch.equal(twin(embeddings, labels), wrapper(embeddings, labels))
        assert repr(twin) == repr(wrapper)


def test_wrappers_pass_references_on_and_share_scalars_among_anchors():
    embeddings, labels = make_batch("balanced")
    others, their_labels = make_batch("ragged", seed=1)
    inner = losses.ContrastiveLoss()
    expected = inner(embeddings, labels, others, their_labels % 4)
    total = losses.WeightedSum({inner: 2.0, losses.EmbeddingNorm(): 0.0})
    torch.testing.assert_close(total(embeddings, labels, others, their_labels % 4), 2.0 * expected)
    nested = losses.Matryoshka(inner, [2, 5])
    halves = [inner(embeddings[:, :d], labels, others[:, :d], their_labels % 4) for d in (2, 5)]
    torch.testing.assert_close(nested(embeddings, labels, others, their_labels % 4), sum(halves) / 2)
    torch.testing.assert_close(nested(embeddings, relation=Labels(labels)), nested(embeddings, labels))
    rows = losses.WeightedSum({losses.ContrastiveLoss(reduction="none"): 1.0, losses.EmbeddingNorm(): 3.0})
    summed = losses.ContrastiveLoss(reduction="sum")(embeddings, labels) + 3.0 * losses.EmbeddingNorm()(embeddings)
    torch.testing.assert_close(rows(embeddings, labels).sum(), summed)
    guided = losses.LanguageGuidance(losses.NTXentLoss(reduction="none"), torch.eye(4, dtype=torch.float64))
    extra = (guided(embeddings, labels) - guided.loss(embeddings, labels)).sum()
    torch.testing.assert_close(extra, guided.divergence(embeddings, labels))


def test_wrappers_give_the_parameter_groups_of_what_they_wrap():
    shared = losses.ArcFaceLoss(4, 5)
    total = losses.WeightedSum(
        {shared: 1.0, losses.LanguageGuidance(shared, torch.eye(4)): 1.0, losses.ZeroMean(): 0.1}
    )
    (group,) = total.parameter_groups()
    assert group["lr"] == 1e-4
    assert group["params"] == [shared.proxies]
    assert losses.CrossBatchMemory(losses.MarginLoss(), 5).parameter_groups()[0]["lr"] == 5e-5
    assert losses.Matryoshka(losses.NTXentLoss(), [2]).parameter_groups() == []


WRAPPERS = {
    "direction-triplet": lambda: losses.DirectionRegularized(losses.TripletLoss(soft=True, similarity="euclidean")),
    "direction-multi-similarity": lambda: losses.DirectionRegularized(losses.MultiSimilarityLoss()),
    "direction-mined": lambda: losses.DirectionRegularized(
        losses.MultiSimilarityLoss(miner=miners.MultiSimilarityMiner())
    ),
    "direction-proxy-nca": lambda: losses.DirectionRegularized(proxy_nca()),
    "direction-proxy-anchor": lambda: losses.DirectionRegularized(losses.ProxyAnchorLoss(10, 5)),
    "language": lambda: losses.LanguageGuidance(losses.NTXentLoss(), torch.eye(10)),
    "cascade": lambda: losses.Cascade(losses.NTXentLoss(), [2, 3], [0.5]),
    "matryoshka": lambda: losses.Matryoshka(losses.NTXentLoss(), [2, 5]),
    "sum": lambda: losses.WeightedSum({losses.NTXentLoss(): 1.0, losses.EmbeddingNorm(): 0.1, losses.ZeroMean(): 0.1}),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_are_good_citizens_of_torch(name: str):
    """Compiled whole, unmoved by autocast, and without a question to the device."""
    torch.compiler.reset()
    embeddings, labels = make_batch("ragged")
    wrapper = WRAPPERS[name]()
    single = embeddings.float()
    expected = wrapper(single, labels).detach()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(wrapper(single, labels).detach(), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the tracer's own
        compiled = torch.compile(wrapper, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(single, labels).detach(), expected)
    assert WRAPPERS[name]().to("meta")(single.to("meta"), labels.to("meta")).shape == ()
