"""A training that has gone wrong stops, says so, and keeps what led there."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from likewise.losses import ContrastiveLoss
from likewise.train import Collapsed, Data, NotFinite, OptimizerConfig, Run, ScheduleConfig, TrainConfig, train
from tests.train.small import linear, loader, pictures, small, square, vectors


def go(folder, model, loss, batches, val=None, **plan) -> Run:
    plan = TrainConfig(**{"epochs": 3, **plan})
    optimizer, schedule, data = OptimizerConfig("SGD", lr=1e-2), ScheduleConfig("constant"), Data(batches, val)
    return train(model, loss, data, optimizer=optimizer, schedule=schedule, settings=plan, folder=folder, device="cpu")


def after(calls: int, value: float):
    """A loss that is something else from one call on."""
    count = 0

    def loss(embeddings: Tensor, labels: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return square(embeddings, labels % 4) * (1.0 if count <= calls else value)

    return loss


def ended(folder) -> dict[str, object]:
    [line] = Run(folder).metrics("end")
    return line


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_loss_that_is_no_number(tmp_path, photos, value):
    batches, folder = loader(photos, 5), tmp_path / "run"
    with pytest.raises(NotFinite, match=rf"^the loss was {value} at step 8, in epoch 2: the batch is in .*not-finite"):
        go(folder, small(), after(7, value), batches, loader(photos, 1), log_every=1)
    again = list(epoch(loader(photos, 5), 1))[2]  # the eighth
    kept = load_file(folder / "not-finite.safetensors")
    assert set(kept) == {"images", "labels", "indices"}
    assert torch.equal(kept["images"], again.images)
    assert torch.equal(kept["labels"], again.labels)
    assert torch.equal(kept["indices"], again.indices)
    assert ended(folder)["reason"] == "not finite"
    assert ended(folder)["step"] == 7
    assert "not-finite.safetensors" in ended(folder)["message"]
    assert not (folder / "model.safetensors").exists()
    kept = load_file(folder / "last.safetensors")
    assert all(bool(tensor.isfinite().all()) for tensor in kept.values())
    assert [line["step"] for line in Run(folder).metrics("train")] == [1, 2, 3, 4, 5, 6, 7]


def epoch(batches, number: int):
    batches.set_epoch(number)
    return batches


def test_the_checkpoint_is_from_before(tmp_path, photos):
    healthy = go(tmp_path / "healthy", small(), after(99, 1.0), loader(photos, 5), epochs=1)
    with pytest.raises(NotFinite):
        go(tmp_path / "run", small(), after(7, float("nan")), loader(photos, 5))
    one, other = (load_file(folder / "last.safetensors") for folder in (healthy.folder, tmp_path / "run"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_all_batches_of_a_step_are_kept(tmp_path):
    batches = vectors(4)
    with pytest.raises(NotFinite):
        go(tmp_path / "run", linear(), after(3, float("nan")), batches, accumulate=2)
    kept = load_file(tmp_path / "run" / "not-finite.safetensors")
    assert set(kept) == {"images", "labels"}
    assert torch.equal(kept["images"], torch.cat([batches[2][0], batches[3][0]]))


def test_an_image_that_is_no_number(tmp_path):
    """Losses of this library refuse embeddings that are not finite; that is the same accident."""
    batches = vectors(4)
    images = batches[2][0].clone()
    images[1, 2] = float("nan")
    batches[2] = (images, batches[2][1])
    with pytest.raises(NotFinite):
        go(tmp_path / "run", linear(), ContrastiveLoss(), batches)
    assert ended(tmp_path / "run")["reason"] == "not finite"
    kept = load_file(tmp_path / "run" / "not-finite.safetensors")
    assert torch.equal(kept["images"].isnan(), images.isnan())


def test_a_model_that_exploded(tmp_path):
    """The same with a learning rate that is too high, and the loss of somebody who does not look."""
    optimizer = OptimizerConfig("SGD", lr=1e30)
    with pytest.raises(NotFinite, match=r"the loss was"):
        train(linear(), square, Data(vectors(4)), optimizer=optimizer, folder=tmp_path / "run", device="cpu")
    assert not (tmp_path / "run" / "model.safetensors").exists()


def rooted(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Zero, and a gradient that is none: the root of zero."""
    return (0.0 * embeddings).square().sum().sqrt()


@pytest.mark.parametrize("validated", [True, False])
def test_a_gradient_that_is_no_number(tmp_path, validated):
    """The loss is finite and the weights are not: nothing is kept of them."""
    with pytest.raises(NotFinite):
        go(tmp_path / "run", linear(), rooted, vectors(1), vectors(1) if validated else None, epochs=1)
    assert ended(tmp_path / "run")["reason"] == "not finite"
    for file in (tmp_path / "run").glob("*.safetensors"):
        assert file.name == "not-finite.safetensors" or all(each.isfinite().all() for each in load_file(file).values())


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_batch_that_is_made_again(tmp_path, photos, monkeypatch, accumulate):
    """On a GPU nobody waits for a loss: the batch is found afterwards, from its number."""
    import likewise.train.loop as loop

    class Later(loop.Step):
        def __init__(self, *args: object, watch: bool = True, **options: object) -> None:
            super().__init__(*args, watch=False, **options)

    monkeypatch.setattr(loop, "Step", Later)
    folder = tmp_path / "run"
    count = 0

    def once(embeddings: Tensor, labels: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return (embeddings.detach().sum() * 0.0 + 1.0) * square_once(embeddings, labels, count == 6)

    with pytest.raises(NotFinite):
        go(folder, small(), once, loader(photos, 8), log_every=4, accumulate=accumulate)
    expected = list(epoch(loader(photos, 8), 0))[5]
    kept = load_file(folder / "not-finite.safetensors")
    assert torch.equal(kept["images"][-8:] if accumulate == 2 else kept["images"], expected.images)


def square_once(embeddings: Tensor, labels: Tensor, bad: bool) -> Tensor:
    value = square(embeddings, labels % 4)
    return value + float("nan") if bad else value


class Constant(nn.Module):
    """The same embedding for every image."""

    def __init__(self, value: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), value))

    def forward(self, images: Tensor) -> Tensor:
        return self.weight.expand(len(images), 4) + 0.0 * images.flatten(1)[:, :4]


def harmless(embeddings: Tensor, labels: Tensor) -> Tensor:
    return embeddings.sum() * 0.0


def test_a_collapse_stops(tmp_path):
    with pytest.raises(Collapsed, match=r"^all embeddings have become alike \(spread .*\) at step 3: a lower learning"):
        go(tmp_path / "run", Constant(), harmless, vectors(4), log_every=1)
    run = Run(tmp_path / "run")
    assert ended(run.folder)["reason"] == "collapsed"
    assert ended(run.folder)["step"] == 3
    assert [line["spread"] <= 1e-4 for line in run.metrics("train")] == [True] * 3
    assert not (run.folder / "model.safetensors").exists()


def test_a_collapse_warns_once(tmp_path):
    with pytest.warns(UserWarning, match=r"^all embeddings have become alike") as warned:
        run = go(tmp_path / "run", Constant(), harmless, vectors(4), log_every=1, on_collapse="warn")
    assert len(warned) == 1
    assert run.metrics("end")[0]["reason"] == "finished"


def test_a_collapse_to_nothing(tmp_path):
    """A dead network: all embeddings are zero, which is alike, too."""
    with pytest.raises(Collapsed):
        go(tmp_path / "run", Constant(0.0), harmless, vectors(4), log_every=1)


def test_batches_of_one_do_not_collapse(tmp_path):
    batches = [(images[:1], labels[:1]) for images, labels in vectors(6)]
    assert go(tmp_path / "run", linear(), square, batches, log_every=1).finished


def test_healthy_embeddings_do_not_collapse(tmp_path):
    run = go(tmp_path / "run", small(), square, pictures(4), log_every=1)
    assert min(line["spread"] for line in run.metrics("train")) > 1e-2
