"""Two views without labels: SimCLR's loss in both directions, paired references, and pytorch-metric-learning's wrapper."""

from __future__ import annotations

import pytest
import torch
from pytorch_metric_learning import losses as theirs
from pytorch_metric_learning.distances import CosineSimilarity

from likewise import functional, losses
from likewise.engines.dispatch import choose, make_engine
from likewise.engines.indexed import IndexedMatrix
from likewise.formula import Cosine, Labels, PairBatch, PositiveIndex, Thresholded
from tests.oracles import losses as oracles

DRAW = torch.Generator().manual_seed(0)
FIRST = torch.randn(7, 5, generator=DRAW, dtype=torch.float64)
SECOND = FIRST + 0.7 * torch.randn(7, 5, generator=DRAW, dtype=torch.float64)


def test_nt_xent_is_sim_clr() -> None:
    """Both directions, 2n anchors, each against the 2n − 1 other rows; value, and gradient by finite differences."""
    loss = losses.NTXentLoss(temperature=0.5)
    found = loss(FIRST, references=SECOND, relation="views")
    assert found.item() == pytest.approx(oracles.sim_clr(FIRST.tolist(), SECOND.tolist(), 0.5), rel=1e-12)
    leaves = FIRST.clone().requires_grad_(), SECOND.clone().requires_grad_()
    torch.autograd.gradcheck(lambda a, b: loss(a, references=b, relation="views"), leaves)
    torch.testing.assert_close(loss(torch.cat([FIRST, SECOND]), relation="views"), found)
    torch.testing.assert_close(functional.nt_xent(FIRST, references=SECOND, relation="views", temperature=0.5), found)
    assert losses.NTXentLoss(reduction="none")(FIRST, references=SECOND, relation="views").shape == (14,)


COSINE = CosineSimilarity()
PEERS = {
    "contrastive": (losses.ContrastiveLoss, lambda: theirs.ContrastiveLoss(1.0, 0.5, distance=COSINE)),
    "triplet": (losses.TripletLoss, lambda: theirs.TripletMarginLoss(0.1, distance=COSINE)),
    "nt-xent": (losses.NTXentLoss, theirs.NTXentLoss),
    "sup-con": (losses.SupConLoss, theirs.SupConLoss),
    "multi-similarity": (losses.MultiSimilarityLoss, theirs.MultiSimilarityLoss),
    "nca": (losses.NCALoss, theirs.NCALoss),
    "tuplet-margin": (losses.TupletMarginLoss, theirs.TupletMarginLoss),
    "intra-pair-variance": (losses.IntraPairVarianceLoss, theirs.IntraPairVarianceLoss),
    "snr-contrastive": (losses.SNRContrastiveLoss, theirs.SignalToNoiseRatioContrastiveLoss),
    "lifted-structure": (losses.LiftedStructureLoss, theirs.LiftedStructureLoss),
}


@pytest.mark.parametrize("name", PEERS)
def test_equals_the_wrapper_of_the_peer(name: str) -> None:
    """``"views"`` is its symmetric form, ``"paired"`` the other one; a loss of one set has the first only."""
    ours, peer = (make() for make in PEERS[name])
    for relation in ("views", "paired") if ours.takes_references else ("views",):
        wrapped = theirs.SelfSupervisedLoss(peer, symmetric=relation == "views")
        outcomes = []
        for call in (lambda a, b, how=relation: ours(a, references=b, relation=how), wrapped):
            leaves = FIRST.clone().requires_grad_(), SECOND.clone().requires_grad_()
            value = call(*leaves)
            outcomes.append([value.detach(), *torch.autograd.grad(value, leaves)])
        torch.testing.assert_close(*outcomes, rtol=1e-10, atol=1e-10)


def test_paired_rows_are_an_index_of_positives() -> None:
    labels = torch.arange(7)
    batch = PairBatch(Labels(labels, labels), Cosine(), anchors=FIRST, references=SECOND).index_pairs()
    engine = make_engine(batch, choose(batch))
    assert isinstance(engine, IndexedMatrix)
    assert engine.positives.columns.tolist() == [[each] for each in range(7)]
    padded = PositiveIndex(torch.tensor([[0, 0], [1, 2]]), torch.tensor([[True, False], [True, True]]))
    some = Labels(torch.tensor([0, 1]), torch.tensor([0, 1, 1, 2]))
    values = [
        losses.MultiSimilarityLoss(5.0, 5.0, 0.0)(FIRST[:2], references=SECOND[:4], relation=relation)
        for relation in (some, Labels(some.labels, some.reference_labels, positives=padded))
    ]
    torch.testing.assert_close(*values)
    labels = torch.tensor([0, 0, 1, 1])  # a batch against itself, whose positives are known
    known = Labels(labels, positives=PositiveIndex(torch.tensor([[1], [0], [3], [2]])))
    torch.testing.assert_close(losses.NTXentLoss()(FIRST[:4], relation=known), losses.NTXentLoss()(FIRST[:4], labels))
    broken = SECOND.clone()
    broken[3] = torch.nan
    with pytest.raises(ValueError, match="references must be finite, but row 3 contains NaN or infinity"):
        losses.NTXentLoss()(FIRST, references=broken, relation="paired")


def test_around_other_losses() -> None:
    """Wrappers and reductions see an ordinary batch."""
    rows = torch.arange(7)
    pair = losses.NTXentLoss(reduction=Thresholded(low=0.1))
    both = losses.WeightedSum({pair: 1.0, losses.Matryoshka(losses.TripletLoss(), [3, 5]): 0.5})
    expected = both(torch.cat([FIRST, SECOND]), rows.repeat(2))
    torch.testing.assert_close(both(FIRST, references=SECOND, relation="views"), expected)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"relation": "view"}, "relation must be a Relation, index tensors, 'views' or 'paired', but it is 'view'"),
        ({"relation": "views"}, "embeddings must be two views of each sample, but there are 7 rows"),
        ({"relation": "paired"}, "references must be given where relation is 'paired', but they are None"),
        (
            {"relation": "views", "references": SECOND[:5]},
            r"references must be another view of the embeddings, of shape \(7, 5\), but the shape is \(5, 5\)",
        ),
        (
            {"relation": "views", "references": SECOND, "labels": torch.arange(7)},
            "labels and reference_labels must be None where relation is 'views'",
        ),
    ],
)
def test_refusals(options: dict, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        losses.NTXentLoss()(FIRST, **options)
