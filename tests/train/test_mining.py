"""A sampler that mines gets the embeddings of the model as it is, resumed or not."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from likewise.data import BatchLoader, HardBatchSampler, MagnetSampler, SemiSupervisedSampler, SmartMiningSampler
from likewise.data.augment import Augment
from likewise.data.crops import CenterCrop, RandomResizedCrop
from likewise.losses import ContrastiveLoss, HierarchicalTripletLoss, MagnetLoss
from likewise.testing import loop_over
from likewise.train import Data, OptimizerConfig, Run, TrainConfig, embed, train
from likewise.train.description import check_same
from tests.train.small import Broken, Interrupted, assert_same_runs, fail, loader, small, terminate

STEPS = 5


class Told(HardBatchSampler):
    """Remembers what it was told, and where."""

    def update(self, embeddings: Tensor, *, epoch: int | None = None, position: int | None = None) -> None:
        super().update(embeddings, epoch=epoch, position=position)
        self.told = [*getattr(self, "told", []), (epoch, position, embeddings)]


def in_order(photos) -> BatchLoader:
    return BatchLoader(photos, [range(20), range(20, 36)], Augment(8, CenterCrop()), workers=1)


def mined(photos, kind=HardBatchSampler) -> Data:
    if kind is SmartMiningSampler:
        sampler = kind(photos.labels, batch_size=9, anchors=3, neighbors=4, steps=STEPS, seed=3)
    elif kind is MagnetSampler:
        sampler = kind(photos.labels, per_class=2, clusters=4, per_cluster=2, steps=STEPS, seed=3)
    elif kind is HierarchicalTripletLoss:
        return Data(loader(photos), in_order=in_order(photos))
    elif kind is SemiSupervisedSampler:
        sampler = kind(photos.labels, labeled=0.3, clusters=5, classes=6, per_class=2, steps=STEPS, seed=3)
    else:
        sampler = kind(photos.labels, classes=4, per_class=2, anchors=2, steps=STEPS, seed=3)
    batches = BatchLoader(photos, sampler, Augment(8, RandomResizedCrop(), flip=0.5), seed=4, workers=1)
    return Data(batches, in_order=in_order(photos))


def loss_for(data: Data) -> nn.Module:
    """The loss that goes with a sampler: a tree of classes where the sampler does not mine."""
    sampler = getattr(data.train, "batches", None) or data.train.batch_sampler
    if isinstance(sampler, MagnetSampler):
        return MagnetLoss()
    return ContrastiveLoss() if hasattr(sampler, "mines") else HierarchicalTripletLoss(6)


def go(folder: Path, data: Data, at: int | None = None, do=None, model: nn.Module | None = None, **plan) -> Run:
    return train(
        small() if model is None else model,
        Interrupted(loss_for(data), at, do),
        data,
        folder=folder,
        optimizer=OptimizerConfig(lr=3e-2),
        settings=TrainConfig(**{"epochs": 2, "log_every": 2, **plan}),
        device="cpu",
        resume=(folder / "run.yaml").exists(),
    )


@loop_over(
    "kind, plan",
    [
        (HardBatchSampler, {"mine_steps": 2}),
        (SmartMiningSampler, {"mine_steps": 2, "accumulate": 2}),
        (HardBatchSampler, {}),
        (SemiSupervisedSampler, {"mine_steps": 3}),
        (MagnetSampler, {"mine_steps": 3}),
        (HierarchicalTripletLoss, {"mine_steps": 3}),
    ],
)
def test_a_resumed_training_mines_what_it_would_have_mined(tmp_path_factory, photos, kind, plan):
    tmp_path = tmp_path_factory.mktemp("mined")
    whole = go(tmp_path / "whole", mined(photos, kind), **plan)
    for at, do in ((2, terminate), (5, fail), (8, fail)):
        folder = tmp_path / str(at)
        with pytest.raises((KeyboardInterrupt, Broken)):
            go(folder, mined(photos, kind), at=at, do=do, checkpoint_minutes=0.0, **plan)
        go(folder, mined(photos, kind), **plan)
        assert_same_runs(whole.folder, folder, "model")


def test_when_it_mines_and_what_that_costs(tmp_path, photos, capsys):
    """Before the first step, and then every two steps or epochs, of the model that learns."""
    for plan, places in (({"mine_steps": 2}, [(0, 0), (0, 2), (0, 4), (1, 1), (1, 3)]), ({"mine_every": 2}, [(0, 0)])):
        data, model = mined(photos, Told), small()
        run = go(tmp_path / str(plan), data, model=model, **plan)
        told = data.train.batches.told
        assert [(epoch, position) for epoch, position, _ in told] == places
        assert torch.equal(told[0][2], embed(small(), in_order(photos)).embeddings)
        assert all(not torch.equal(before[2], after[2]) for before, after in pairwise(told))
        assert [line["step"] for line in run.metrics("mining")] == [epoch * STEPS + step for epoch, step in places]
        assert all(line["seconds"] > 0 for line in run.metrics("mining"))
        assert ", mining " in capsys.readouterr().err


def test_what_it_refuses(tmp_path, photos):
    learned = loss_for(Data(loader(photos), in_order=in_order(photos)))
    with pytest.raises(
        ValueError, match="must be all training images for a HierarchicalTripletLoss, which mines, but it is None"
    ):
        train(small(), learned, Data(loader(photos)), folder=tmp_path / "a", device="cpu")
    with pytest.raises(
        ValueError, match="mine_steps must be None if neither the sampler nor the loss mines, but it is 3"
    ):
        train(
            small(), ContrastiveLoss(), Data(loader(photos)), folder=tmp_path / "a", settings=TrainConfig(mine_steps=3)
        )
    with pytest.raises(
        ValueError, match="in_order must be all training images for a HardBatchSampler, which mines, but it is None"
    ):
        go(tmp_path / "b", Data(mined(photos).train))
    plain, images = TensorDataset(torch.rand(36, 3, 8, 8), photos.labels), in_order(photos)
    hard = DataLoader(plain, batch_sampler=HardBatchSampler(photos.labels, classes=4, per_class=2, anchors=2))
    with pytest.raises(ValueError, match="mine_every must be None for a loader without state_dict"):
        go(tmp_path / "c", Data(hard, in_order=images), mine_every=2)
    hidden = SemiSupervisedSampler(photos.labels, labeled=0.0, classes=4, per_class=2)
    with pytest.raises(ValueError, match="must take its labels from the targets of a SemiSupervisedSampler"):
        go(tmp_path / "d", Data(DataLoader(plain, batch_sampler=hidden)))
    with pytest.raises(ValueError, match="mine_steps must be None if mine_every is given"):
        TrainConfig(mine_steps=3, mine_every=2)
    assert not list(tmp_path.iterdir())


def test_runs_from_before_recall_at_any_k_are_resumed():
    check_same({"train": {"epochs": 20}}, {"train": {"epochs": 20, "ks": [1, 2, 4, 8]}})
