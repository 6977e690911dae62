"""Proxy Synthesis against a batch that is written out, and guide masks against relations that are written out."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from likewise import losses, miners
from likewise.formula import Masks
from likewise.testing import make_batch
from tests.oracles import losses as oracles
from tests.oracles import proxies as proxy_oracles
from tests.oracles.modern import unit

EMBEDDINGS, LABELS = make_batch("ragged")


def mix(rows: list[list[float]], ratio: float) -> list[list[float]]:
    return [
        unit([ratio * x + (1.0 - ratio) * y for x, y in zip(rows[i], rows[i - 1], strict=True)])
        for i in range(len(rows))
    ]


@pytest.mark.parametrize("mu", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("kind", [losses.NormalizedSoftmaxLoss, losses.ProxyAnchorLoss])
def test_synthesis_equals_the_loss_of_a_longer_batch(kind: type, mu: float):
    """Synthetic rows and proxies are mixtures of neighbors, the first row's neighbor is the last one."""
    loss = losses.ProxySynthesis(kind(10, 5).double(), mu=mu)
    loss.sample_ratio = lambda: 0.3
    rows = [unit(x) for x in EMBEDDINGS.tolist()]
    proxies = [unit(p) for p in loss.loss.proxies.tolist()]
    number = int(mu * len(rows))
    samples = rows + mix(rows, 0.3)[:number]
    table = proxies + mix([proxies[y] for y in LABELS.tolist()], 0.3)[:number]
    classes = LABELS.tolist() + [10 + i for i in range(number)]
    oracle = {
        losses.NormalizedSoftmaxLoss: proxy_oracles.normalized_softmax,
        losses.ProxyAnchorLoss: proxy_oracles.proxy_anchor,
    }[kind]
    expected = oracles.reduce(oracle(samples, classes, table), "mean", len(samples))
    leaf = EMBEDDINGS.clone().requires_grad_()
    value = loss(leaf, LABELS)
    assert value.item() == pytest.approx(expected, rel=1e-10)
    assert torch.autograd.gradcheck(lambda x: loss(x, LABELS), (leaf,))
    value.backward()
    direction = torch.randn(10, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ends = []
    for step in (1e-6, -1e-6):
        with torch.no_grad():
            loss.loss.proxies.add_(step * direction)
            ends.append(loss(EMBEDDINGS, LABELS).item())
            loss.loss.proxies.sub_(step * direction)
    slope = (ends[0] - ends[1]) / 2e-6
    assert (loss.loss.proxies.grad * direction).sum().item() == pytest.approx(slope, rel=1e-5)


def test_synthesis_draws_one_ratio_for_a_call():
    loss = losses.ProxySynthesis(losses.ArcFaceLoss(10, 5), alpha=0.4)
    torch.manual_seed(0)
    ratios = torch.stack([loss.sample_ratio() for _ in range(2000)])
    assert 0.0 <= float(ratios.min()) < float(ratios.max()) <= 1.0
    assert float(ratios.mean()) == pytest.approx(0.5, abs=0.03)
    assert float(ratios.var()) == pytest.approx(0.25 / 1.8, abs=0.01)  # 1 / (4 (2 α + 1))
    assert torch.isfinite(loss(EMBEDDINGS.half(), LABELS))
    assert loss.loss.num_classes == 10
    assert loss.loss.proxies.shape == (10, 5)
    assert loss.parameter_groups(0.1)[0]["params"] == [loss.loss.proxies]


HIERARCHY = torch.tensor([[0, 0], [1, 0]])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: losses.ProxySynthesis(losses.NTXentLoss()), TypeError, "loss must be a loss with one proxy for each"),
        (lambda: losses.ProxySynthesis(losses.SoftTripleLoss(3, 2)), TypeError, "for each class, but it has several"),
        (lambda: losses.ProxySynthesis(losses.SoftmaxLoss(3, 2, bias=True)), ValueError, "but it has bias"),
        (lambda: losses.ProxySynthesis(losses.CSLLoss(2, 2, HIERARCHY, (0.1, 0.2))), ValueError, "but it has hierarchy"),
        (lambda: losses.ProxySynthesis(losses.HAPPIERLoss(3, 2)), TypeError, "loss must be a loss on classes"),
        (lambda: losses.ProxySynthesis(losses.ArcFaceLoss(3, 2, sampled=2)), ValueError, "but it has sampled"),
        (lambda: losses.ProxySynthesis(losses.ArcFaceLoss(3, 2), alpha=0.0), ValueError, "alpha must be a number > 0"),
        (lambda: losses.ProxySynthesis(losses.ArcFaceLoss(3, 2), mu=1.5), ValueError, "mu must be a number ≤ 1"),
        (lambda: losses.GuideMasked(losses.ArcFaceLoss(3, 2)), TypeError, "loss must be a pair loss, but it is a"),
        (lambda: losses.GuideMasked(losses.NTXentLoss(), "much"), ValueError, "margin must be a number, but it is"),
        (lambda: guided(guide=EMBEDDINGS[:3]), ValueError, "guide must have a row for each of the 15 embeddings"),
        (lambda: guided(guide=None), TypeError, "guide must be a tensor, but it is a NoneType"),
        (lambda: guided(guide=EMBEDDINGS, reference_guide=EMBEDDINGS), TypeError, "reference_guide must be given wh"),
        (lambda: guided(guide=EMBEDDINGS, relation=Masks(torch.eye(15) > 0, torch.eye(15) < 1)), TypeError, "relation"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(make, error: type[Exception], message: str):
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def guided(margin: float = 0.0, **options):
    return losses.GuideMasked(losses.NTXentLoss(0.5), margin)(EMBEDDINGS, LABELS, **options)


def kept_pairs(guide, labels, references, reference_labels, margin: float, same: bool):
    """The masks by loops: a negative is dropped if it is above the most similar positive less the margin."""
    a, b = normalize(guide).tolist(), normalize(references).tolist()
    positive = torch.zeros(len(a), len(b), dtype=torch.bool)
    negative = torch.zeros(len(a), len(b), dtype=torch.bool)
    for i in range(len(a)):
        cosines = [oracles.dot(a[i], b[j]) for j in range(len(b))]
        alike = [j for j in range(len(b)) if reference_labels[j] == labels[i]]
        positives = [j for j in alike if not (same and i == j)]
        for j in positives:
            positive[i, j] = True
        for j in range(len(b)):
            if j not in alike:
                negative[i, j] = not positives or cosines[j] <= max(cosines[k] for k in positives) - margin
    return Masks(positive, negative)


@pytest.mark.parametrize("margin", [0.0, 0.2, -0.3])
def test_guide_drops_false_negatives(margin: float):
    guide = make_batch("ragged", seed=4).embeddings
    masks = kept_pairs(guide, LABELS, guide, LABELS, margin, same=True)
    dropped = int((LABELS[:, None] != LABELS).sum() - masks.negative.sum())
    assert dropped > 0
    for loss in (losses.NTXentLoss(0.5), losses.MultiSimilarityLoss(), losses.TripletLoss(backend="chunked")):
        leaves = [EMBEDDINGS.clone().requires_grad_() for _ in range(2)]
        values = losses.GuideMasked(loss, margin)(leaves[0], LABELS, guide=guide), loss(leaves[1], relation=masks)
        torch.testing.assert_close(*values)
        torch.testing.assert_close(*(torch.autograd.grad(v, leaf)[0] for v, leaf in zip(values, leaves, strict=True)))


def test_guide_of_pairs_and_views():
    """With references, as pairs of rows, and as two views; one positive per anchor is the rule of the paper."""
    second, guide = make_batch("ragged", seed=2).embeddings, make_batch("ragged", seed=4).embeddings
    second_guide = guide + 0.5 * make_batch("ragged", seed=5).embeddings
    rows = torch.arange(len(LABELS))
    masks = kept_pairs(guide, rows, second_guide, rows, 0.1, same=False)
    loss = losses.GuideMasked(losses.NTXentLoss(0.5), 0.1)
    found = loss(EMBEDDINGS, references=second, guide=guide, reference_guide=second_guide, relation="paired")
    torch.testing.assert_close(found, losses.NTXentLoss(0.5)(EMBEDDINGS, references=second, relation=masks))
    both = torch.cat([guide, second_guide])
    masks = kept_pairs(both, rows.repeat(2), both, rows.repeat(2), 0.1, same=True)
    found = loss(EMBEDDINGS, references=second, guide=guide, reference_guide=second_guide, relation="views")
    torch.testing.assert_close(found, losses.NTXentLoss(0.5)(torch.cat([EMBEDDINGS, second]), relation=masks))


def test_guide_of_half_precision_and_with_a_miner():
    loss = losses.GuideMasked(losses.ContrastiveLoss(miner=miners.MultiSimilarityMiner()))
    value = loss(EMBEDDINGS.half(), LABELS, guide=EMBEDDINGS.bfloat16().requires_grad_())
    assert value.dtype == torch.float32
    assert torch.isfinite(value)
