"""Two sides: a loss in both directions, the same gradients in chunks, and a training that is resumed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likewise.data import PairLoader, PairTable, PerClassSampler, RowLoader, SampleLoader, Sides
from likewise.losses import (
    FastAPLoss,
    HistogramLoss,
    Matryoshka,
    MultiSimilarityLoss,
    NTXentLoss,
    ProxyNCALoss,
    SigmoidLoss,
    TripletLoss,
)
from likewise.train import Data, Run, TrainConfig, TwoSided, train
from likewise.trunks import Embedder, TwoTowers, build_text
from tests.train.small import Interrupted, terminate


def test_the_loss_of_clip_by_hand():
    """One row of each class: the mean of two cross entropies of the matrix, by rows and by columns, in float64."""
    torch.manual_seed(0)
    embeddings, labels = torch.randn(10, 6, dtype=torch.float64), torch.tensor([3, 1, 4, 5, 9]).repeat_interleave(2)
    images, texts = (nn.functional.normalize(embeddings[side::2], dim=1) for side in (0, 1))
    logits, diagonal = images @ texts.T / 0.07, torch.arange(5)
    expected = (nn.functional.cross_entropy(logits, diagonal) + nn.functional.cross_entropy(logits.T, diagonal)) / 2
    assert torch.allclose(TwoSided(NTXentLoss())(embeddings, labels), expected, atol=1e-12)
    for loss in (SigmoidLoss(), MultiSimilarityLoss(), TripletLoss(), FastAPLoss()):
        value = TwoSided(loss)(embeddings.requires_grad_(), labels)
        assert value.ndim == 0
        assert value.isfinite()


def test_losses_without_references_are_refused():
    for loss, name in ((ProxyNCALoss(3, 4), "ProxyNCALoss"), (Matryoshka(HistogramLoss(), [2, 4]), "HistogramLoss")):
        with pytest.raises(ValueError, match=f"loss must take references, .* but {name} takes none"):
            TwoSided(loss)
    with pytest.raises(ValueError, match="must have an even number of rows, but it has 3"):
        TwoSided(NTXentLoss())(torch.eye(3), torch.arange(3))


@pytest.fixture
def table(tmp_path):
    colors, things = ("red", "green", "blue", "white"), ("bird", "house", "car")
    rows = [f"a {color} {thing},the {thing} is {color}" for color in colors for thing in things]
    (tmp_path / "pairs.csv").write_text("\n".join(["text,text", *rows]))
    return PairTable(tmp_path / "pairs.csv")


def go(folder, table, at=None, **settings) -> Run:
    torch.manual_seed(0)
    model = TwoTowers(Embedder(build_text("ngrams"), 8), Embedder(build_text("ngrams"), 8))
    tokens = [tower.trunk.tokenize(table.cells(side)) for side, tower in enumerate(model.towers)]
    labels = [table.labels[table.is_query], table.labels[~table.is_query]]
    sampler = PerClassSampler(table.row_labels, classes=6, per_class=1, steps=4, seed=1)
    batches = PairLoader(table, sampler, *(RowLoader(t, y, []) for t, y in zip(tokens, labels, strict=True)))
    every = [list(range(12))]
    val = SampleLoader(table, *(RowLoader(t, y, every) for t, y in zip(tokens, labels, strict=True)))
    loss = Interrupted(TwoSided(NTXentLoss()), at, terminate)
    plan = TrainConfig(epochs=2, log_every=1, **settings)
    resume = (folder / "run.yaml").exists()
    return train(model, loss, Data(batches, val), folder=folder, settings=plan, device="cpu", resume=resume)


def losses(run: Run) -> list[float]:
    return [line["loss"] for line in run.metrics("train")]


def test_a_training_is_resumed_and_measured_both_ways(tmp_path, table):
    whole = go(tmp_path / "whole", table)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", table, at=6)
    run = go(tmp_path / "cut", table)
    assert run.finished
    assert losses(run) == losses(whole)
    scores = run.metrics("val")[-1]
    both = [scores[f"R@1 {way}"] for way in ("text to text_2", "text_2 to text")]
    assert scores["R@1"] == pytest.approx(sum(both) / 2)
    assert scores["queries"] == 24
    assert run.description["data"]["train"]["images"] == 24


def test_chunks_are_the_whole_batch(tmp_path, table):
    assert losses(go(tmp_path / "chunks", table, chunk=5)) == pytest.approx(losses(go(tmp_path / "whole", table)))
    sides = Sides(torch.zeros(3, 2), torch.zeros(3, 2))
    assert [len(part) for part in sides.tensor_split(-(-len(sides) // 5))] == [4, 2]
