"""A batch that goes through the network in chunks gives the gradients of the whole batch."""

from __future__ import annotations

import copy
import random
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file
from torch import Tensor, nn

from likewise.losses import ContrastiveLoss, CrossBatchMemory, MultiSimilarityLoss, ProxyAnchorLoss
from likewise.testing import loop_over
from likewise.train import Data, NotFinite, OptimizerConfig, Run, ScheduleConfig, TrainConfig, train
from likewise.train.processes import make_accelerator
from likewise.train.step import Meter, RecordedStep, Step
from tests.train.small import Small, linear, measured, pictures, same, small, square, vectors

BATCH = 10
Grads = dict[str, Tensor]


def images(seed: int = 0) -> Tensor:
    return torch.randn(BATCH, 3, 8, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


LABELS = torch.arange(BATCH) // 3


def plain_net() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.GroupNorm(2, 6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 4))


def frozen_norm() -> nn.Module:
    net = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 4))
    net[1].running_mean.normal_()
    return _frozen(net)


def _frozen(net: nn.Module) -> nn.Module:
    net[1].eval().requires_grad_(False)
    return net


def dropout() -> nn.Module:
    parts = (nn.Flatten(), nn.Dropout(0.2), nn.Linear(192, 12), nn.ReLU(), nn.Dropout(0.5), nn.Linear(12, 4))
    return nn.Sequential(*parts)


def norm() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 4))


def spectral() -> nn.Module:
    bound = nn.utils.parametrizations.spectral_norm(nn.Linear(192, 8))
    return nn.Sequential(nn.Flatten(), bound, nn.ReLU(), nn.Linear(8, 4))


class Noise(nn.Module):
    """Chance from everywhere: torch, numpy, Python and a generator of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.own = torch.Generator().manual_seed(5)

    def forward(self, x: Tensor) -> Tensor:
        x = x + torch.randn(x.shape, generator=self.own, dtype=x.dtype)
        return x * (1.0 + 0.3 * random.gauss(0, 1) + 0.3 * np.random.randn())


def noisy() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 8), Noise(), nn.Tanh(), nn.Linear(8, 4))


WHOLE = {"no norm": plain_net, "frozen norm": frozen_norm}
"""For these a chunk is nothing but some of the images."""

BY_CHUNK = {"dropout": dropout, "norm": norm, "spectral norm": spectral, "noise": noisy}
"""These draw for every chunk, or look at all of its images."""


def proxies() -> nn.Module:
    torch.manual_seed(1)
    return ProxyAnchorLoss(4, 4)


class Drawn(nn.Module):
    """A loss that draws, after the embeddings have drawn."""

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        return square(embeddings, labels) * (1.0 + torch.rand(()) + np.random.rand() + random.random())


LOSSES: dict[str, Callable[[], nn.Module]] = {"pairs": MultiSimilarityLoss, "proxies": proxies, "drawn": Drawn}


def make(net: Callable[[], nn.Module], loss: Callable[[], nn.Module], dtype: torch.dtype) -> tuple[nn.Module, ...]:
    torch.manual_seed(0)
    return net().to(dtype), loss().to(dtype)


def seed() -> None:
    torch.manual_seed(7), np.random.seed(7), random.seed(7)


def gradients(*modules: nn.Module) -> Grads:
    return {
        f"{place} {name}": each.grad.clone()
        for place, module in enumerate(modules)
        for name, each in module.named_parameters()
        if each.grad is not None
    }


def by_hand(model: nn.Module, loss: nn.Module, x: Tensor, sizes: list[int]) -> Grads:
    """All chunks with their graphs, at once, by autograd alone."""
    seed()
    loss(torch.cat([model(part) for part in x.split(sizes)]), LABELS).backward()
    return gradients(model, loss)


def stepped(model: nn.Module, loss: nn.Module, x: Tensor, chunk: int | None, **options) -> tuple[Grads, Step]:
    accelerator = make_accelerator(TrainConfig(), None, "cpu")
    learned = [each for module in (model, loss) for each in module.parameters() if each.requires_grad]
    optimizer = accelerator.prepare_optimizer(torch.optim.SGD(learned, lr=0.0))
    step = Step(accelerator, model, loss, optimizer, Meter(torch.device("cpu")), chunk=chunk, **options)
    seed()
    step([(x, LABELS)])
    return gradients(model, loss), step


def assert_close(found: Grads, expected: Grads, tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, grad in expected.items():
        assert float(grad.norm()) > 0.0, f"{name} has a gradient"
        assert float((found[name] - grad).norm()) <= tolerance * float(grad.norm()), name


DTYPES = [(torch.float64, 1e-10), (torch.float32, 2e-5)]


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("net", WHOLE.values(), ids=WHOLE.keys())
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES, ids=["float64", "float32"])
@loop_over("chunk", [1, 3, 5, 9])
def test_gradients_are_those_of_the_whole_batch(net, loss, dtype, tolerance, chunk):
    x = images().to(dtype)
    expected = by_hand(*make(net, loss, dtype), x, [BATCH])
    found, _ = stepped(*make(net, loss, dtype), x, chunk)
    assert_close(found, expected, tolerance)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("net", BY_CHUNK.values(), ids=BY_CHUNK.keys())
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES, ids=["float64", "float32"])
def test_layers_that_draw_or_look_around(net, loss, dtype, tolerance):
    """The same random numbers the second time; statistics are those of a chunk, and are counted once."""
    x, (model, hand) = images().to(dtype), (make(net, loss, dtype) for _ in range(2))
    expected = by_hand(*hand, x, [4, 3, 3])
    next_expected = torch.rand(1), np.random.rand(), random.random()
    found, _ = stepped(*model, x, 4)
    assert_close(found, expected, tolerance)
    assert (torch.rand(1), np.random.rand(), random.random()) == next_expected, "chance goes on after the loss"
    for (name, mine), other in zip(model[0].named_buffers(), hand[0].buffers(), strict=True):
        assert torch.allclose(mine, other, rtol=1e-6), name


def test_statistics_are_counted_once_for_each_chunk():
    """Two chunks through a batch norm alone, worked out on paper: 0.9² of what was, 0.09 of the first, 0.1 of the second."""
    model = nn.Sequential(nn.BatchNorm1d(1, momentum=0.1), nn.Linear(1, 1))
    step = stepped_on(model, torch.tensor([[1.0], [3.0], [10.0], [30.0]]), 2)
    assert step.model[0].num_batches_tracked.item() == 2
    assert step.model[0].running_mean.item() == pytest.approx(0.09 * 2.0 + 0.1 * 20.0)
    assert step.model[0].running_var.item() == pytest.approx(0.81 + 0.09 * 2.0 + 0.1 * 200.0)


def stepped_on(model: nn.Module, x: Tensor, chunk: int, loss=lambda e, _: e.square().mean(), **options) -> Step:
    accelerator = make_accelerator(TrainConfig(), None, "cpu")
    optimizer = accelerator.prepare_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    step = Step(accelerator, model, loss, optimizer, Meter(torch.device("cpu")), chunk=chunk, **options)
    step([(x, torch.zeros(len(x)))])
    return step


class Counted(nn.Module):
    """A layer that writes down how many images it saw, and whether for a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.calls: list[tuple[int, bool]] = []

    def forward(self, x: Tensor) -> Tensor:
        self.calls.append((len(x), torch.is_grad_enabled()))
        return self.layer(x)


@pytest.mark.parametrize(
    ("size", "chunk", "sizes"),
    [(9, 8, [5, 4]), (8, 4, [4, 4]), (7, 3, [3, 2, 2]), (3, 1, [1, 1, 1])],
    ids=lambda x: str(x).replace(" ", ""),
)
def test_what_it_costs(size, chunk, sizes):
    """One more forward, of chunks that are as equal as possible: a remainder of one would have no batch statistics."""
    model = Counted()
    stepped_on(model, torch.randn(size, 2), chunk)
    assert model.calls == [(each, False) for each in sizes] + [(each, True) for each in sizes]


@pytest.mark.parametrize("chunk", [4, 5])
def test_a_batch_that_fits_is_not_embedded_twice(chunk):
    model = Counted()
    stepped_on(model, torch.randn(4, 2), chunk)
    assert model.calls == [(4, True)]


class Activations:
    """The most bytes that graphs have kept at one time, parameters and labels not counted."""

    def __init__(self, *modules: nn.Module) -> None:
        self.given = {each.data_ptr() for module in modules for each in module.parameters()}
        self.now = self.peak = 0
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.keep, lambda kept: kept.tensor)

    def keep(self, tensor: Tensor):
        class Kept:
            def __init__(self, tensor: Tensor) -> None:
                self.tensor = tensor

        kept = Kept(tensor)
        if tensor.data_ptr() not in self.given:
            size = tensor.numel() * tensor.element_size()
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(kept, self.free, size)
        return kept

    def free(self, size: int) -> None:
        self.now -= size


def peak(chunk: int | None) -> int:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten())
    model = nn.Sequential(model, nn.Linear(256, 4))
    activations = Activations(model)
    with activations.hooks:
        stepped_on(model, torch.randn(64, 3, 8, 8), chunk)
    assert activations.now == 0
    return activations.peak


def test_memory_falls_with_the_chunk():
    whole = peak(None)
    # 64 images through two convolutions (input, output of each, and again as what ReLU keeps) and a linear layer
    assert whole > 64 * 4 * (3 * 64 + 16 * 36 + 16 * 16)
    for chunk in (32, 16, 8, 4):
        assert peak(chunk) <= 1.1 * whole * chunk / 64, chunk


@pytest.mark.parametrize("net", [plain_net, dropout], ids=["no norm", "dropout"])
def test_half_precision(net):
    """Embeddings are of half precision, and so is the gradient that is sent to them, as in a plain step."""
    x = images().float()
    accelerator = make_accelerator(TrainConfig(precision="bf16"), None, "cpu")

    def grads(chunk: int | None, sizes: list[int]) -> Grads:
        model, loss = make(net, MultiSimilarityLoss, torch.float32)
        seed()
        if chunk is None:
            with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
                embeddings = torch.cat([model(part) for part in x.split(sizes)])
            assert embeddings.dtype == torch.bfloat16
            loss(embeddings.float(), LABELS).backward()
        else:
            optimizer = accelerator.prepare_optimizer(torch.optim.SGD(model.parameters(), lr=0.0))
            Step(accelerator, model, loss, optimizer, Meter(torch.device("cpu")), chunk=chunk)([(x, LABELS)])
        return gradients(model)

    assert_close(grads(4, []), grads(None, [4, 3, 3]), 1e-6)


def test_scaled_gradients():
    """What a scaler multiplies the loss by is in every gradient, of the model and of the loss."""
    x, scale = images(), 2.0**10
    expected = by_hand(*make(plain_net, proxies, torch.float64), x, [BATCH])
    model, loss = make(plain_net, proxies, torch.float64)
    accelerator = make_accelerator(TrainConfig(), None, "cpu")
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    optimizer = torch.optim.SGD([*model.parameters(), *loss.parameters()], lr=0.0)
    Step(accelerator, model, loss, optimizer, Meter(torch.device("cpu")), chunk=3)([(x, LABELS)])
    assert_close({name: grad / scale for name, grad in gradients(model, loss).items()}, expected, 1e-10)


def test_a_memory_sees_the_batch_once():
    loss = CrossBatchMemory(ContrastiveLoss(), size=64)
    stepped(make(plain_net, MultiSimilarityLoss, torch.float32)[0], loss, images().float(), 3)
    assert int(loss.filled) == BATCH


class Ageing(nn.Module):
    """A model that is another one at every call, for a reason of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.age = nn.Linear(2, 1), 0

    def forward(self, x: Tensor) -> Tensor:
        self.age += 1
        return self.layer(x) * (1.0 + 0.1 * self.age)


def test_a_model_that_cannot_be_repeated():
    with pytest.raises(
        ValueError, match=r"^chunk must be None for a model that does not return the same .* 27% of their"
    ):
        stepped_on(Ageing(), torch.randn(6, 2), 2)  # the first chunk: 1.1 and then 1.4


def test_one_embedding_for_each_image():
    with pytest.raises(
        ValueError, match=r"^model must return one embedding for each of 2 images, but it returns shape \(4,"
    ):
        stepped_on(nn.Sequential(nn.Linear(2, 2), nn.Flatten(0), nn.Unflatten(0, (4, 1))), torch.randn(6, 2), 2)


def test_only_the_loss_learns():
    model, loss = make(plain_net, proxies, torch.float64)
    expected = by_hand(copy.deepcopy(model), copy.deepcopy(loss), images(), [BATCH])
    found, _ = stepped(model.requires_grad_(False), loss, images(), 3)
    assert_close(found, {name: grad for name, grad in expected.items() if name.startswith("1")}, 1e-10)


def go(folder, model, loss, batches, val=None, **plan) -> Run:
    plan = TrainConfig(**{"epochs": 3, "log_every": 1, **plan})
    settings, schedule = OptimizerConfig("SGD", lr=1e-2, momentum=0.9), ScheduleConfig("constant")
    data = Data(batches, val)
    return train(model, loss, data, optimizer=settings, schedule=schedule, settings=plan, folder=folder, device="cpu")


class Frozen(Small):
    """Batch norms that stay as they are."""

    def train(self, mode: bool = True) -> Frozen:
        super().train(mode)
        self.trunk[1].eval()
        return self


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"accumulate": 2},
        {"clip": 0.1},
        {"ema": 0.7},
        {"trunk_warmup": 1},
        {"accumulate": 3, "clip": 0.1, "ema": 0.5},
    ],
    ids=lambda x: " ".join(x) or "plain",
)
def test_a_training_is_the_same(tmp_path, settings):
    ends, records = [], []
    for chunk in (None, 3):
        torch.manual_seed(0)
        run = go(tmp_path / str(chunk), Frozen(), proxies(), pictures(4), pictures(2), chunk=chunk, **settings)
        ends.append(load_file(run.folder / "model.safetensors"))
        records.append([line["loss"] for line in run.metrics("train")])
    assert all(torch.allclose(ends[0][name], ends[1][name], rtol=1e-4, atol=1e-6) for name in ends[0])
    assert records[0] == pytest.approx(records[1], rel=1e-4)
    torch.manual_seed(0)
    assert not torch.allclose(Frozen().head.weight, ends[0]["head.weight"], atol=1e-3)  # it went somewhere


def test_compiled(tmp_path, monkeypatch):
    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda module: real(module, backend="eager"))
    models = []
    for compiled in (True, False):
        torch.manual_seed(0)
        models.append(dropout())
        go(tmp_path / str(compiled), models[-1], square, pictures(), chunk=3, compile=compiled)
    assert same(models[0].state_dict(), models[1].state_dict())


def test_the_same_seed_is_the_same_training(tmp_path):
    for name in "ab":
        torch.manual_seed(0)
        go(tmp_path / name, dropout(), square, pictures(), pictures(), chunk=3)
    assert measured(tmp_path / "a") == measured(tmp_path / "b")


def test_the_number_is_in_the_record(tmp_path):
    assert go(tmp_path / "run", small(), square, pictures(), chunk=3).description["train"]["chunk"] == 3


@pytest.mark.parametrize("where", ["loss", "images"])
def test_a_batch_that_is_no_number_is_kept_whole(tmp_path, where):
    batches = vectors(4)
    if where == "images":
        batches[2][0][7, 3] = float("nan")

    def loss(embeddings: Tensor, labels: Tensor) -> Tensor:
        bad = where == "loss" and torch.equal(labels, batches[2][1]) and len(seen) == 2
        seen.append(len(embeddings))
        return square(embeddings, labels) * (float("nan") if bad else 1.0)

    seen: list[int] = []
    with pytest.raises(NotFinite, match=r"at step 3, in epoch 1: the batch is in .*not-finite.safetensors"):
        go(tmp_path / "run", linear(), loss, batches, chunk=3)
    kept = load_file(tmp_path / "run" / "not-finite.safetensors")
    assert torch.equal(kept["images"].nan_to_num(9.0), batches[2][0].nan_to_num(9.0))
    assert set(seen) == {8}


def test_it_is_not_recorded(tmp_path):
    given = {"processes": 1, "accumulate": 1, "precision": "no", "compiled": False}
    assert RecordedStep.possible(torch.device("cuda"), **given, chunk=None) is None
    assert "in chunks" in str(RecordedStep.possible(torch.device("cuda"), **given, chunk=8))


def test_chunks_come_to_the_device_one_by_one():
    """A batch that is elsewhere is not moved as a whole."""

    class Far:
        """Only what is asked of a batch that is not on the device."""

        def __init__(self, parts: list[int]) -> None:
            self.parts = parts

        def __len__(self) -> int:
            return sum(self.parts)

        def tensor_split(self, count: int) -> list[FarPart]:
            assert count == len(self.parts)
            return [FarPart(each) for each in self.parts]

    class FarPart:
        def __init__(self, size: int) -> None:
            self.size = size

        def __len__(self) -> int:
            return self.size

        def to(self, device: torch.device) -> Tensor:
            return torch.ones(self.size, 2, device=device)

    model = Counted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    step = Step(Accelerator(cpu=True), model, lambda e, _: e.sum(), optimizer, Meter(torch.device("cpu")), chunk=2)
    step([(Far([2, 2, 1]), torch.zeros(5))])
    assert model.layer.weight.grad.tolist() == [[5.0, 5.0]]
