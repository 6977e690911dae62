"""What a training measures and keeps on its way, and what it takes as model, loss and batches."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from likewise.losses import ContrastiveLoss, MultiSimilarityLoss
from likewise.metrics import retrieval
from likewise.train import Data, OptimizerConfig, Run, ScheduleConfig, TrainConfig, train
from likewise.trunks import Embedder, read_card
from tests.train.small import linear, pictures, same, small, square, vectors

FAST = OptimizerConfig("Adam", lr=3e-2)
KEYS = {"R@1", "R@2", "R@4", "R@8", "P@1", "RP", "MAP@R", "MRR", "mAP", "queries", "queries_without_positive"}


def go(folder, model, loss, train_on, val=None, **options) -> Run:
    options = {"optimizer": FAST, "settings": TrainConfig(epochs=2), **options}
    return train(model, loss, Data(train_on, val), folder=folder, device="cpu", **options)


class Scripted(nn.Module):
    """Embeddings that are worth what a list says, one entry for each validation; training sees something harmless."""

    def __init__(self, good: list[float]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))
        self.good, self.validations = good, 0
        self.register_buffer("validation", torch.tensor(-1))

    def forward(self, images: Tensor) -> Tensor:
        if self.training:
            return images[:, :4] @ self.weight
        share = self.good[self.validations]
        self.validations += 1
        labels = torch.arange(len(images)) % 4
        labels[int(share * len(labels)) :] = 0  # the rest looks like class 0
        return nn.functional.one_hot(labels, 4).float() + 0.001 * torch.arange(len(images))[:, None].float().sin()


def test_validation_by_hand(tmp_path):
    """Every line is what the metrics room says of the model at that moment, and the best one is kept."""
    model, batches, val = small(), pictures(3), pictures(2, 12, seed=9)
    run = go(tmp_path / "run", model, square, batches, val, settings=TrainConfig(epochs=4, metric="R@1"))
    lines = run.metrics("val")
    assert [line["epoch"] for line in lines] == [0, 1, 2, 3, 4]
    assert [line["step"] for line in lines] == [0, 3, 6, 9, 12]
    assert all(set(line) >= KEYS | {"kind", "step", "epoch", "best", "seconds"} for line in lines)
    fresh, scores = small().eval(), []
    for state in (small().state_dict(), load_file(run.folder / "model.safetensors")):
        fresh.load_state_dict(state)
        with torch.no_grad():
            embeddings = torch.cat([fresh(images) for images, _ in val])
        scores.append(retrieval(embeddings, torch.cat([labels for _, labels in val])))
    for line, expected in zip((lines[0], lines[-1]), scores, strict=True):
        assert {name: line[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    best = -1.0
    for line in lines:
        assert line["best"] == (line["R@1"] > best)
        best = max(best, line["R@1"])


@pytest.mark.parametrize(("metric", "validations"), [("MAP@R", [0.5, 0.75, 1.0, 0.25]), ("R@1", [1.0, 0.5, 0.5, 0.5])])
def test_the_best_model_is_kept(tmp_path, metric, validations):
    model = Scripted(validations)
    run = go(
        tmp_path / "run",
        model,
        lambda e, _: e.square().mean(),
        vectors(2),
        vectors(1, 16),
        settings=TrainConfig(epochs=3, metric=metric),
    )
    lines = run.metrics("val")
    winner = max(range(4), key=lambda place: validations[place])
    assert lines[winner][metric] == max(line[metric] for line in lines)
    assert [place for place, line in enumerate(lines) if line["best"]][-1] == winner
    with safe_open(run.folder / "best.safetensors", "pt") as file:
        assert json.loads(file.metadata()["metrics"])[metric] == lines[winner][metric]
    last = load_file(run.folder / "model.safetensors")["weight"]
    assert torch.equal(load_file(run.folder / "best.safetensors")["weight"], last) == (winner == 3)


def test_the_best_embedder_can_be_loaded(tmp_path):
    torch.manual_seed(0)
    model = Embedder("convnet", 4)
    chance = torch.Generator().manual_seed(0)
    batch = (torch.rand(8, 1, 8, 8, generator=chance), torch.arange(8) // 2)
    data = Data([batch], [batch], classes=["ä", "b", "c", "d"])
    run = train(model, ContrastiveLoss(), data, settings=TrainConfig(epochs=1), folder=tmp_path / "run", device="cpu")
    card = read_card(run.folder / "best.safetensors")
    best = [line for line in run.metrics("val") if line["best"]][-1]
    assert card.classes == ("ä", "b", "c", "d")
    assert card.metrics["MAP@R"] == best["MAP@R"]
    loaded = Embedder.load(run.folder / "model.safetensors")
    assert same(loaded.state_dict(), model.state_dict())
    assert Embedder.load(run.folder / "best.safetensors").dim == 4


def test_early_stopping(tmp_path):
    model = Scripted([0.5, 0.75, 0.5, 0.75, 0.25, 1.0, 1.0])
    plan = TrainConfig(epochs=6, patience=2)
    run = go(tmp_path / "run", model, lambda e, _: e.square().mean(), vectors(2), vectors(1, 16), settings=plan)
    assert [line["best"] for line in run.metrics("val")] == [True, True, False, False]
    [end] = run.metrics("end")
    assert (end["reason"], end["epoch"], end["step"]) == ("early stopping", 3.0, 6)
    assert run.finished


def test_patience_needs_validation(tmp_path):
    for data, plan in (
        (Data(vectors()), TrainConfig(patience=3)),
        (Data(vectors(), vectors()), TrainConfig(patience=3, validate_every=0)),
    ):
        with pytest.raises(ValueError, match=r"^patience must be None for a run without validation, but it is 3$"):
            train(linear(), square, data, settings=plan, folder=tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("every", "expected"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4]), (9, [0]), (0, [])])
def test_validate_every(tmp_path, every, expected):
    run = go(
        tmp_path / "run", linear(), square, vectors(), vectors(), settings=TrainConfig(epochs=5, validate_every=every)
    )
    assert [line["epoch"] for line in run.metrics("val")] == expected
    assert (run.folder / "best.safetensors").exists() == bool(expected)


def test_without_validation(tmp_path):
    run = go(tmp_path / "run", linear(), square, vectors())
    assert run.metrics("val") == []
    assert not (run.folder / "best.safetensors").exists()
    assert (run.folder / "model.safetensors").exists()
    assert run.description["data"]["val"] is None
    assert run.metrics("end")[0]["reason"] == "finished"


def test_lines_of_training(tmp_path):
    batches = vectors(5)
    run = go(tmp_path / "run", linear(), square, batches, settings=TrainConfig(epochs=2, log_every=3))
    lines = run.metrics("train")
    assert [line["step"] for line in lines] == [3, 5, 6, 9, 10]  # every third, and at the end of an epoch
    assert [line["epoch"] for line in lines] == [0.6, 1.0, 1.2, 1.8, 2.0]
    assert all(0.0 <= line["spread"] <= 1.0 and line["images_per_s"] > 0 for line in lines)


def test_spread_by_hand(tmp_path):
    angles = torch.tensor([0.0, 0.5, 1.0, 2.0])
    images = 3.0 * torch.stack([angles.cos(), angles.sin()], dim=1)  # lengths do not count
    model = nn.Linear(2, 2, bias=False)
    nn.init.eye_(model.weight)
    optimizer = OptimizerConfig("SGD", lr=1e-12)
    batch = (images, torch.tensor([0, 0, 1, 1]))
    run = go(tmp_path / "run", model, square, [batch], settings=TrainConfig(epochs=1), optimizer=optimizer)
    x, y = angles.cos().mean().item(), angles.sin().mean().item()
    assert run.metrics("train")[0]["spread"] == pytest.approx(1 - x * x - y * y, abs=1e-6)


def test_a_plain_torch_loader(tmp_path):
    images, labels = (torch.cat(parts) for parts in zip(*vectors(4), strict=True))
    batches = DataLoader(TensorDataset(images, labels), batch_size=8, shuffle=True)
    run = go(tmp_path / "run", linear(), MultiSimilarityLoss(), batches, DataLoader(batches.dataset, batch_size=16))
    assert len(run.metrics("val")) == 3
    assert run.description["data"]["train"] == {"batches": 4}


class Stream(IterableDataset):
    def __iter__(self):
        for images, labels in vectors():
            yield from zip(images, labels, strict=True)


def test_validation_on_a_stream(tmp_path):
    run = go(tmp_path / "run", linear(), square, vectors(), DataLoader(Stream(), batch_size=8))
    assert len(run.metrics("val")) == 3


def test_training_on_a_stream_is_refused(tmp_path):
    for batches in (iter(vectors()), DataLoader(Stream(), batch_size=8)):
        with pytest.raises(TypeError, match=r"^data.train must have a length, the number of batches of an epoch, but"):
            go(tmp_path / "run", linear(), square, batches)


def test_validation_that_can_be_read_once_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"^data.val must"):
        go(tmp_path / "run", linear(), square, vectors(), iter(vectors()))


def test_no_batches(tmp_path):
    with pytest.raises(ValueError, match=r"^data.train must have at least one batch, but it has none$"):
        go(tmp_path / "run", linear(), square, [])
    assert not (tmp_path / "run").exists()


class Centers(nn.Module):
    """A loss of somebody's own that learns."""

    def __init__(self) -> None:
        super().__init__()
        self.centers = nn.Parameter(torch.zeros(4, 4))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        return (embeddings - self.centers[labels]).square().sum(dim=1).mean() + (self.centers.norm() - 2).square()


def test_a_loss_of_ones_own(tmp_path):
    model, loss = linear(), Centers()
    run = go(
        tmp_path / "run",
        model,
        loss,
        vectors(),
        settings=TrainConfig(epochs=5),
        optimizer=OptimizerConfig(lr=1e-2, lrs={"centers": 0.1}),
    )
    assert run.description["groups"]["centers"] == {"lr": 0.1, "parameters": 16}
    assert loss.centers.abs().max() > 0.1
    losses = [line["loss"] for line in run.metrics("train")]
    assert losses[-1] < losses[0]


def test_a_loss_that_is_no_number(tmp_path):
    with pytest.raises((ValueError, TypeError), match=r"^loss must return one number, but"):
        go(tmp_path / "run", linear(), lambda e, _: e.square().sum(dim=1), vectors())


class Saves(nn.Linear):
    """A model whose save is not that of an Embedder, such as a ScriptModule's."""

    def save(self, path: str) -> None:
        torch.save(self.state_dict(), path)


def test_a_model_with_another_save(tmp_path):
    run = go(tmp_path / "run", Saves(6, 4), square, vectors())
    assert load_file(run.folder / "model.safetensors").keys() == {"weight", "bias"}


def test_the_description(tmp_path):
    plan, schedule = TrainConfig(epochs=2, patience=3, trackers=()), ScheduleConfig("step", step=3)
    run = train(
        small(),
        ContrastiveLoss(),
        Data(pictures(), pictures()),
        settings=plan,
        schedule=schedule,
        optimizer=OptimizerConfig("RMSprop", lrs={"head": 0.01}),
        folder=tmp_path / "run",
        device="cpu",
        seed=7,
        config={"loss": {"class_path": "ContrastiveLoss"}},
    )
    said = run.description
    for key in ("likewise", "created", "command", "commit", "versions", "hardware"):
        assert key in said
    assert said["seed"] == 7
    assert said["config"] == {"loss": {"class_path": "ContrastiveLoss"}}
    assert said["model"] == {"class": "Small", "parameters": 329, "learned": 329}
    assert said["groups"] == {"trunk": {"lr": 1e-4, "parameters": 145}, "head": {"lr": 0.01, "parameters": 184}}
    assert said["optimizer"]["name"] == "RMSprop"
    assert said["optimizer"]["betas"] == [0.9, 0.999]
    assert said["schedule"]["step"] == 3
    assert said["train"]["patience"] == 3
    assert said["loss"].startswith("ContrastiveLoss(")
    assert said["data"] == {"train": {"batches": 3}, "val": {"batches": 3}, "test": None}


def test_the_device_that_is_described_is_the_one_that_trains(tmp_path, monkeypatch):
    import likewise.train.description as description

    asked, real = [], description.describe_environment
    monkeypatch.setattr(description, "describe_environment", lambda device=None: asked.append(device) or real(device))
    go(tmp_path / "run", linear(), square, vectors())
    assert asked == [torch.device("cpu")]


def test_the_data_in_words(tmp_path, photos):
    from tests.train.small import loader

    run = go(tmp_path / "run", small(), square_of_six, loader(photos, steps=2), loader(photos, steps=1))
    said = run.description["data"]["train"]
    assert (said["images"], said["classes"]) == (36, 6)
    assert said["fingerprint"] == photos.fingerprint


def square_of_six(embeddings: Tensor, labels: Tensor) -> Tensor:
    return square(embeddings, labels % 4)


REFUSED = {
    "metric": TrainConfig(metric="recall"),
    "tracker": TrainConfig(trackers=("carrier pigeon",)),
    "graph": TrainConfig(graph=True),
}


@pytest.mark.parametrize("config", REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_leaves_nothing_behind(tmp_path, config):
    """What is refused can be said again, better, with the same folder."""
    with pytest.raises(ValueError, match=r"must"):
        go(tmp_path / "run", linear(), square, vectors(), vectors(), settings=config)
    assert not (tmp_path / "run" / "run.yaml").exists()


def test_nothing_to_learn_leaves_nothing_behind(tmp_path):
    with pytest.raises(ValueError, match=r"^model must have a trained parameter"):
        go(tmp_path / "run", nn.Flatten(), square, vectors())
    assert not (tmp_path / "run" / "run.yaml").exists()


@pytest.mark.parametrize("device", ["gpu", "CPU", "cuda:17", "tpu"])
def test_a_device_that_is_not_there(tmp_path, device):
    with pytest.raises((ValueError, RuntimeError), match=r"device must"):
        train(linear(), square, Data(vectors()), settings=TrainConfig(epochs=1), folder=tmp_path / "run", device=device)


def test_the_model_is_left_as_it_was_found(tmp_path):
    model = small().eval()
    model.trunk[1].weight.requires_grad_(False)
    go(tmp_path / "run", model, square, pictures(), settings=TrainConfig(epochs=2, trunk_warmup=1))
    assert not model.trunk[1].weight.requires_grad
    assert model.head.weight.requires_grad
    assert not model.training
