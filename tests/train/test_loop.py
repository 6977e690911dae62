"""The loop does what a loop by hand does, bit for bit."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from likewise.losses import ContrastiveLoss, ProxyAnchorLoss
from likewise.train import Data, OptimizerConfig, Run, ScheduleConfig, TrainConfig, train
from likewise.train.checkpoint import load_checkpoint
from likewise.trunks import Embedder
from tests.train.small import Batch, linear, measured, pictures, same, small, square, vectors

SETTINGS = {
    "AdamW": OptimizerConfig("AdamW", lr=1e-2, weight_decay=0.1, betas=(0.8, 0.95)),
    "Adam": OptimizerConfig("Adam", lr=1e-2, weight_decay=0.1),
    "RMSprop": OptimizerConfig("RMSprop", lr=1e-3, alpha=0.9, momentum=0.5),
    "SGD": OptimizerConfig("SGD", lr=1e-2, momentum=0.9),
}


def make(settings: OptimizerConfig, rows: list[dict[str, object]], **flags: bool) -> torch.optim.Optimizer:
    """The optimizer as its settings describe it, written down by hand."""
    if settings.name == "SGD":
        return torch.optim.SGD(rows, momentum=settings.momentum, weight_decay=settings.weight_decay, **flags)
    if settings.name == "RMSprop":
        options = {"alpha": settings.alpha, "momentum": settings.momentum, "eps": settings.eps}
        return torch.optim.RMSprop(rows, weight_decay=settings.weight_decay, **options, **flags)
    kind = {"Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW}[settings.name]
    return kind(rows, betas=settings.betas, eps=settings.eps, weight_decay=settings.weight_decay, **flags)


def go(folder, model, loss, batches, val=None, *, optimizer, schedule=None, settings) -> Run:
    schedule = schedule or ScheduleConfig("constant")
    data = Data(batches, val)
    return train(
        model, loss, data, folder=folder, optimizer=optimizer, schedule=schedule, settings=settings, device="cpu"
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_a_loop_by_hand(tmp_path, name):
    """Trunk, head and proxies at their own rates, a step schedule, clipping."""
    settings = SETTINGS[name]
    rates = {"trunk": settings.lr / 2, "head": settings.lr, "proxies": 0.05}
    settings = OptimizerConfig(**{**vars(settings), "lrs": {"trunk": rates["trunk"], "proxies": rates["proxies"]}})
    batches, epochs, clip = pictures(4), 5, 0.5

    def begin() -> tuple[nn.Module, nn.Module]:
        model = small()
        return model, ProxyAnchorLoss(4, 4)

    def by_hand(**flags: bool) -> tuple[nn.Module, nn.Module, list[float]]:
        model, loss = begin()
        rows = [
            {"params": list(model.trunk.parameters()), "lr": rates["trunk"]},
            {"params": list(model.head.parameters()), "lr": rates["head"]},
            {"params": [loss.proxies], "lr": rates["proxies"]},
        ]
        optimizer = make(settings, rows, **flags)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        losses = []
        for _ in range(epochs):
            for images, labels in batches:
                optimizer.zero_grad()
                value = loss(model(images), labels)
                value.backward()
                nn.utils.clip_grad_value_([*model.parameters(), *loss.parameters()], 0.1)
                nn.utils.clip_grad_norm_([*model.parameters(), *loss.parameters()], clip)
                optimizer.step()
                losses.append(value.item())
            scheduler.step()
        return model, loss, losses

    model, loss = begin()
    run = go(
        tmp_path / "run",
        model,
        loss,
        batches,
        optimizer=settings,
        schedule=ScheduleConfig("step", step=2, gamma=0.5),
        settings=TrainConfig(epochs=epochs, clip=clip, clip_value=0.1, log_every=1),
    )
    same_flags = {"foreach": True} if name == "RMSprop" else {"fused": True}
    expected, expected_loss, losses = by_hand(**same_flags)
    assert same(model.state_dict(), expected.state_dict())
    assert torch.equal(loss.proxies, expected_loss.proxies)
    assert [line["loss"] for line in run.metrics("train")] == losses
    assert run.metrics("train")[-1]["lr"] == pytest.approx({name: lr * 0.25 for name, lr in rates.items()})
    assert same(load_file(run.folder / "model.safetensors"), expected.state_dict())
    plain, plain_loss, _ = by_hand()
    assert all(
        torch.allclose(plain.state_dict()[name], tensor, atol=1e-5) for name, tensor in model.state_dict().items()
    )
    assert torch.allclose(plain_loss.proxies, loss.proxies, atol=1e-5)


def test_cosine_and_warmup_by_hand(tmp_path):
    batches, epochs = vectors(4), 3
    model = linear()
    run = go(
        tmp_path / "run",
        model,
        square,
        batches,
        optimizer=OptimizerConfig("SGD", lr=0.1, weight_decay=0.0),
        schedule=ScheduleConfig("cosine", warmup=1.0, floor=0.1),
        settings=TrainConfig(epochs=epochs, log_every=1),
    )
    expected = linear()
    optimizer = torch.optim.SGD(expected.parameters(), fused=True)
    rates = [0.025, 0.05, 0.075, 0.1]
    rates += [0.1 * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * step / 8))) for step in range(8)]
    for step in range(12):
        optimizer.param_groups[0]["lr"] = rates[step]
        optimizer.zero_grad()
        square(expected(batches[step % 4][0]), batches[step % 4][1]).backward()
        optimizer.step()
    assert [line["lr"]["model"] for line in run.metrics("train")] == pytest.approx(rates)
    assert torch.allclose(model.weight, expected.weight, atol=1e-6)


def test_an_average_by_hand(tmp_path):
    """The average is validated and kept; the model goes its own way."""
    batches, decay, model = pictures(3), 0.8, small()
    expected = small()
    run = go(
        tmp_path / "run",
        model,
        square,
        batches,
        batches,
        optimizer=SETTINGS["SGD"],
        settings=TrainConfig(epochs=2, ema=decay),
    )
    optimizer = make(SETTINGS["SGD"], [{"params": list(expected.parameters()), "lr": 1e-2}], fused=True)
    average = {name: each.detach().clone() for name, each in expected.named_parameters()}
    for images, labels in batches * 2:
        optimizer.zero_grad()
        square(expected(images), labels).backward()
        optimizer.step()
        for name, each in expected.named_parameters():
            average[name] = decay * average[name] + (1 - decay) * each.detach()
    assert same(model.state_dict(), expected.state_dict())
    found = load_file(run.folder / "model.safetensors")
    assert all(torch.allclose(found[name], average[name], atol=1e-6) for name in average)
    assert not torch.allclose(found["head.weight"], model.head.weight, atol=1e-4)
    buffers = dict(expected.named_buffers())
    assert all(torch.equal(found[name], buffers[name]) for name in buffers)  # batch norms are the model's own


def test_accumulated_batches_are_one_large_one(tmp_path):
    parts = vectors(6, 8)
    large = [(torch.cat([a[0], b[0]]), torch.cat([a[1], b[1]])) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    first, second = linear(), linear()
    sgd = SETTINGS["SGD"]
    one = go(
        tmp_path / "a", first, square, parts, optimizer=sgd, settings=TrainConfig(epochs=2, accumulate=2, log_every=1)
    )
    other = go(tmp_path / "b", second, square, large, optimizer=sgd, settings=TrainConfig(epochs=2, log_every=1))
    assert torch.allclose(first.weight, second.weight, atol=1e-6)
    assert [line["step"] for line in one.metrics("train")] == [1, 2, 3, 4, 5, 6]
    losses = [[line["loss"] for line in run.metrics("train")] for run in (one, other)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_the_last_few_make_a_step_of_their_own(tmp_path):
    batches, model = vectors(5), linear()
    run = go(
        tmp_path / "a", model, square, batches, optimizer=SETTINGS["SGD"], settings=TrainConfig(epochs=2, accumulate=2)
    )
    expected = linear()
    optimizer = make(SETTINGS["SGD"], [{"params": list(expected.parameters()), "lr": 1e-2}], fused=True)
    for _ in range(2):
        for some in (batches[:2], batches[2:4], batches[4:]):
            optimizer.zero_grad()
            sum(square(expected(images), labels) for images, labels in some).div(len(some)).backward()
            optimizer.step()
    assert torch.allclose(model.weight, expected.weight, atol=1e-6)
    assert run.metrics("end")[0]["step"] == 6
    assert run.metrics("end")[0]["epoch"] == 2.0


class Spy(nn.Module):
    """A loss that looks at the model's trunk before every step."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.seen: list[tuple[Tensor, Tensor]] = []
        self.watched = [model]

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        model = self.watched[0]
        self.seen.append((model.trunk[0].weight.detach().clone(), model.head.weight.detach().clone()))
        return square(embeddings, labels)


def test_only_the_head_learns_at_first(tmp_path):
    model = small()
    spy, start = Spy(model), copy.deepcopy(model)
    plan = TrainConfig(epochs=4, trunk_warmup=2)
    go(tmp_path / "run", model, spy, pictures(3), optimizer=SETTINGS["AdamW"], settings=plan)
    trunks, heads = zip(*spy.seen, strict=True)
    assert all(torch.equal(trunk, start.trunk[0].weight) for trunk in trunks[:7])  # six steps, seen before each
    assert all(not torch.equal(a, b) for a, b in pairwise(trunks[6:]))
    assert all(not torch.equal(a, b) for a, b in pairwise(heads))
    assert all(each.requires_grad for each in model.parameters())


def test_gradients_are_wanted_again_after_an_error(tmp_path):
    model = small()

    def broken(embeddings: Tensor, labels: Tensor) -> Tensor:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go(
            tmp_path / "run",
            model,
            broken,
            pictures(),
            optimizer=OptimizerConfig(),
            settings=TrainConfig(epochs=3, trunk_warmup=2),
        )
    assert all(each.requires_grad for each in model.parameters())


def test_a_warmup_needs_a_trunk(tmp_path):
    with pytest.raises(ValueError, match=r"^trunk_warmup must be 0 for a model without a group 'trunk', but .*model"):
        go(
            tmp_path / "run",
            linear(),
            square,
            vectors(),
            optimizer=OptimizerConfig(),
            settings=TrainConfig(trunk_warmup=1),
        )
    assert not (tmp_path / "run").exists()


def gray(count: int = 2) -> list[Batch]:
    chance = torch.Generator().manual_seed(0)
    return [(torch.rand(8, 1, 8, 8, generator=chance), torch.arange(8) // 2) for _ in range(count)]


@pytest.mark.parametrize("frozen", [True, False])
def test_batch_norm(tmp_path, frozen):
    torch.manual_seed(0)
    model = Embedder("convnet", 4, freeze_bn=frozen)
    before = copy.deepcopy(model.state_dict())
    go(
        tmp_path / "run",
        model,
        ContrastiveLoss(),
        gray(),
        gray(),
        optimizer=SETTINGS["AdamW"],
        settings=TrainConfig(epochs=2),
    )
    norms = {name for name in before if ".norms." in name}
    assert norms
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) == frozen for name in norms)
    assert all(not torch.equal(before[name], after[name]) for name in before.keys() - norms)


def test_channels_last(tmp_path):
    """Another layout in memory, the same numbers but for rounding, for models with and without a save of their own."""
    plain, laid_out = small(), small()
    go(tmp_path / "a", plain, square, pictures(), optimizer=SETTINGS["SGD"], settings=TrainConfig(epochs=2))
    plan = TrainConfig(epochs=2, channels_last=True)
    go(tmp_path / "b", laid_out, square, pictures(), optimizer=SETTINGS["SGD"], settings=plan)
    assert laid_out.trunk[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(plain.head.weight, laid_out.head.weight, atol=1e-5)


def test_channels_last_in_an_embedder(tmp_path):
    model = Embedder("convnet", 4)
    plan = TrainConfig(epochs=1, channels_last=True)
    run = go(tmp_path / "run", model, ContrastiveLoss(), gray(), gray(), optimizer=SETTINGS["SGD"], settings=plan)
    assert same(Embedder.load(run.folder / "model.safetensors").state_dict(), model.state_dict())


def test_half_precision_learns(tmp_path):
    seen = []

    def loss(embeddings: Tensor, labels: Tensor) -> Tensor:
        seen.append(embeddings.dtype)
        return square(embeddings, labels)

    model = small()
    batches = pictures(4)
    adam = OptimizerConfig("Adam", lr=1e-2)
    run = go(
        tmp_path / "run",
        model,
        loss,
        batches,
        batches,
        optimizer=adam,
        settings=TrainConfig(epochs=8, precision="bf16"),
    )
    assert set(seen) == {torch.float32}
    losses = [line["loss"] for line in run.metrics("train")]
    assert losses[-1] < 0.5 * losses[0]
    assert model.head.weight.dtype == torch.float32
    exact = small()
    go(tmp_path / "exact", exact, square, batches, optimizer=adam, settings=TrainConfig(epochs=8))
    assert not torch.equal(exact.head.weight, model.head.weight)


def test_half_precision_that_needs_a_gpu(tmp_path):
    with pytest.raises(ValueError, match=r"^precision must be 'bf16' or 'no' on a CPU"):
        go(
            tmp_path / "run",
            small(),
            square,
            pictures(),
            optimizer=OptimizerConfig(),
            settings=TrainConfig(precision="fp16"),
        )
    assert not (tmp_path / "run").exists()


def test_double_precision_stays_double(tmp_path):
    seen = []

    def loss(embeddings: Tensor, labels: Tensor) -> Tensor:
        seen.append(embeddings.dtype)
        return square(embeddings, labels)

    batches = [(images.double(), labels) for images, labels in vectors()]
    go(tmp_path / "run", linear().double(), loss, batches, optimizer=SETTINGS["SGD"], settings=TrainConfig(epochs=1))
    assert set(seen) == {torch.float64}


def test_compiled(tmp_path, monkeypatch):
    compiled, real = [], torch.compile

    def cheap(module: nn.Module) -> nn.Module:
        compiled.append(module)
        return real(module, backend="eager")

    monkeypatch.setattr(torch, "compile", cheap)
    one, other = small(), small()
    plan = TrainConfig(epochs=2, compile=True)
    run = go(tmp_path / "a", one, square, pictures(), pictures(), optimizer=SETTINGS["SGD"], settings=plan)
    assert compiled == [one]
    go(tmp_path / "b", other, square, pictures(), optimizer=SETTINGS["SGD"], settings=TrainConfig(epochs=2))
    assert same(one.state_dict(), other.state_dict())
    assert same(load_file(run.folder / "model.safetensors"), other.state_dict())


def test_the_same_seed_is_the_same_training(tmp_path):
    def noisy(embeddings: Tensor, labels: Tensor) -> Tensor:
        return square(embeddings + torch.randn_like(embeddings), labels)

    def run(name: str, seed: int) -> list[dict[str, object]]:
        model = nn.Sequential(linear(), nn.Dropout(0.5))
        data, plan = Data(vectors()), TrainConfig(epochs=2, log_every=1)
        train(model, noisy, data, settings=plan, folder=tmp_path / name, device="cpu", seed=seed)
        return measured(tmp_path / name)

    torch.manual_seed(5)
    first = run("a", 1)
    assert run("b", 1) == first
    assert run("c", 2) != first


def test_a_checkpoint_has_everything(tmp_path):
    model, loss = small(), ProxyAnchorLoss(4, 4)
    run = go(
        tmp_path / "run", model, loss, pictures(), optimizer=OptimizerConfig(), settings=TrainConfig(epochs=1, ema=0.9)
    )
    tensors, state = load_checkpoint(run.folder / "last.safetensors")
    assert set(tensors) == {"model", "loss", "average", "optimizer", "rng_state 0"}
    assert same(tensors["model"], model.state_dict())
    assert same(tensors["loss"], loss.state_dict())
    assert (state["step"], state["epoch"]) == (3, 1)
