"""A training that was stopped ends with the numbers that it would have had."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from likewise.data import ImageDataset
from likewise.losses import ContrastiveLoss, CrossBatchMemory, MarginLoss, ProxyAnchorLoss, TripletLoss, WeightedSum
from likewise.miners import DistanceWeightedMiner, RandomMiner
from likewise.train import Data, OptimizerConfig, Run, ScheduleConfig, TrainConfig, train
from likewise.train.checkpoint import load_checkpoint
from likewise.trunks import Embedder
from tests.train.small import (
    Broken,
    Interrupted,
    assert_same_runs,
    fail,
    held_out,
    interrupt,
    linear,
    loader,
    measured,
    pictures,
    same,
    small,
    square,
    terminate,
    vectors,
)

EPOCHS, STEPS = 3, 5


def chancy(embeddings: Tensor, labels: Tensor) -> Tensor:
    """A loss that draws from everything there is to draw from."""
    scale = 1.0 + 0.1 * random.gauss(0, 1) + 0.1 * np.random.randn() + 0.1 * torch.randn(())
    return scale * square(embeddings, labels % 4)


class Modest(nn.Module):
    """A model that draws, too."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images)


def proxies() -> nn.Module:
    torch.manual_seed(1)
    return ProxyAnchorLoss(6, 4)


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], Callable[..., Tensor]], OptimizerConfig, TrainConfig]] = {
    "memory": (small, lambda: CrossBatchMemory(ContrastiveLoss(), size=20), OptimizerConfig(lr=1e-2), TrainConfig()),
    "proxies in a memory": (
        small,
        lambda: CrossBatchMemory(proxies(), size=20),
        OptimizerConfig(lr=1e-2),
        TrainConfig(),
    ),
    "average": (small, proxies, OptimizerConfig("SGD", lr=1e-2, momentum=0.9), TrainConfig(ema=0.7)),
    "random miner": (
        small,
        lambda: TripletLoss(miner=RandomMiner(10)),
        OptimizerConfig("Adam", lr=1e-2),
        TrainConfig(),
    ),
    "weighted miner": (
        small,
        lambda: MarginLoss(miner=DistanceWeightedMiner()),
        OptimizerConfig(lr=1e-2),
        TrainConfig(),
    ),
    "all chances": (Modest, lambda: chancy, OptimizerConfig("RMSprop", lr=1e-3, momentum=0.5), TrainConfig()),
    "accumulated": (Modest, lambda: chancy, OptimizerConfig(lr=1e-2), TrainConfig(accumulate=2, clip=1.0)),
    "warm-up": (small, proxies, OptimizerConfig(lr=1e-2, lrs={"trunk": 1e-3}), TrainConfig(trunk_warmup=2, ema=0.5)),
    "chunks": (Modest, lambda: chancy, OptimizerConfig(lr=1e-2), TrainConfig(chunk=3)),
    "chunks and norms": (
        small,
        proxies,
        OptimizerConfig(lr=1e-2),
        TrainConfig(chunk=3, accumulate=2, clip=1.0, ema=0.7),
    ),
    "half": (small, proxies, OptimizerConfig(lr=1e-2), TrainConfig(precision="bf16")),
}


def go(folder: Path, photos, case, at: int | None = None, do=None, **plan) -> Run:
    model, loss, optimizer, base = case
    plan = TrainConfig(**{**vars(base), "epochs": EPOCHS, "log_every": 2, **plan})
    schedule = ScheduleConfig("cosine", warmup=0.5)
    data = Data(loader(photos, STEPS), held_out(photos))
    return train(
        model(),
        Interrupted(loss(), at, do),
        data,
        folder=folder,
        optimizer=optimizer,
        schedule=schedule,
        settings=plan,
        device="cpu",
        resume=(folder / "run.yaml").exists(),
    )


@pytest.mark.parametrize("name", CASES)
def test_stopped_in_the_middle_of_an_epoch(tmp_path, photos, name):
    whole = go(tmp_path / "whole", photos, CASES[name])
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", photos, CASES[name], at=8, do=terminate)
    assert not Run(tmp_path / "cut").finished
    torch.manual_seed(99), random.seed(99), np.random.seed(99)
    run = go(tmp_path / "cut", photos, CASES[name])
    assert run.finished
    assert_same_runs(whole.folder, run.folder)
    assert len(run.metrics("val")) == EPOCHS + 1


@pytest.mark.parametrize("name", ["memory", "all chances", "chunks"])
def test_broken_in_the_middle_of_an_epoch(tmp_path, photos, name):
    """An exception leaves no checkpoint of its own: it goes on from the last one, of the epoch or of the step."""
    whole = go(tmp_path / "whole", photos, CASES[name])
    for minutes in (5.0, 0.0):
        folder = tmp_path / str(minutes)
        with pytest.raises(Broken):
            go(folder, photos, CASES[name], at=9, do=fail, checkpoint_minutes=minutes)
        with pytest.raises(Broken):
            go(folder, photos, CASES[name], at=3, do=fail, checkpoint_minutes=minutes)
        run = go(folder, photos, CASES[name], checkpoint_minutes=minutes)
        assert_same_runs(whole.folder, run.folder)


@pytest.mark.parametrize("case", ["all chances", "accumulated"])
@pytest.mark.parametrize("do", [terminate, fail], ids=["stopped", "broken"])
def test_at_every_step(tmp_path, photos, case, do):
    whole = go(tmp_path / "whole", photos, CASES[case], epochs=2)
    for at in range(1, 2 * STEPS + 1):
        folder = tmp_path / str(at)
        try:
            go(folder, photos, CASES[case], at=at, do=do, epochs=2, checkpoint_minutes=0.0 if at % 2 else 5.0)
        except (KeyboardInterrupt, Broken):
            go(folder, photos, CASES[case], epochs=2)
        assert_same_runs(whole.folder, folder)


def test_stopped_before_anything_was_kept(tmp_path, photos):
    whole = go(tmp_path / "whole", photos, CASES["memory"])
    with pytest.raises(Broken):
        go(tmp_path / "cut", photos, CASES["memory"], at=2, do=fail)
    assert not (tmp_path / "cut" / "last.safetensors").exists()
    assert_same_runs(whole.folder, go(tmp_path / "cut", photos, CASES["memory"]).folder)


def test_interrupted_from_the_keyboard(tmp_path, photos):
    whole = go(tmp_path / "whole", photos, CASES["memory"])
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", photos, CASES["memory"], at=4, do=interrupt)
    assert_same_runs(whole.folder, go(tmp_path / "cut", photos, CASES["memory"]).folder)


def test_handlers_are_put_back(tmp_path, photos):
    import signal

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "run", photos, CASES["memory"], at=4, do=terminate)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_half_lines_after_the_checkpoint_are_forgotten(tmp_path, photos):
    whole = go(tmp_path / "whole", photos, CASES["memory"])
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", photos, CASES["memory"], at=8, do=terminate)
    with (tmp_path / "cut" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"kind": "train", "step": 9, "epoch": 1.8}\n{"kind": "tr')
    assert_same_runs(whole.folder, go(tmp_path / "cut", photos, CASES["memory"]).folder)


def test_channels_last_goes_on(tmp_path, photos):
    def embedder() -> nn.Module:
        torch.manual_seed(0)
        from likewise.trunks import build

        return Embedder(build("convnet", in_channels=3), 4)

    case = (embedder, lambda: ContrastiveLoss(), OptimizerConfig("AdamW", lr=1e-2), TrainConfig(channels_last=True))
    whole = go(tmp_path / "whole", photos, case, epochs=2)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", photos, case, at=4, do=terminate, epochs=2)
    assert_same_runs(whole.folder, go(tmp_path / "cut", photos, case, epochs=2).folder)


def test_a_miner_with_a_generator_of_its_own(tmp_path, photos):
    def loss() -> nn.Module:
        return TripletLoss(miner=RandomMiner(10, generator=torch.Generator().manual_seed(3)))

    case = (small, loss, OptimizerConfig(lr=1e-2), TrainConfig())
    whole = go(tmp_path / "whole", photos, case)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", photos, case, at=8, do=terminate)
    assert_same_runs(whole.folder, go(tmp_path / "cut", photos, case).folder)


def looked_at(photos) -> Data:
    batches = loader(photos, STEPS)
    next(iter(batches))  # somebody looked at a batch
    return Data(batches)


def test_a_loader_that_was_looked_at(tmp_path, photos):
    """A new training begins with the first batch of the first epoch, wherever its loader was left."""
    seen: list[list[int]] = []

    def loss(embeddings: Tensor, labels: Tensor) -> Tensor:
        seen.append(labels.tolist())
        return square(embeddings, labels % 4)

    plan = TrainConfig(epochs=1)
    train(small(), loss, Data(loader(photos, STEPS)), settings=plan, folder=tmp_path / "a", device="cpu")
    train(small(), loss, looked_at(photos), settings=plan, folder=tmp_path / "b", device="cpu")
    assert seen[STEPS:] == seen[:STEPS]


def test_one_loader_for_two_trainings(tmp_path, photos):
    data = Data(loader(photos, STEPS))
    for name in "ab":
        train(
            small(),
            lambda e, y: square(e, y % 4),
            data,
            settings=TrainConfig(epochs=1),
            folder=tmp_path / name,
            device="cpu",
        )
    assert measured(tmp_path / "a") == measured(tmp_path / "b")


def test_validation_that_is_drawn_at_random(tmp_path, photos):
    """A loader for validation is sent to its beginning each time: the same images, whatever happened before."""

    def start(name: str, at: int | None = None) -> Run:
        return train(
            small(),
            Interrupted(lambda e, y: square(e, y % 4), at, terminate),
            Data(loader(photos, 3), loader(photos, 2)),
            settings=TrainConfig(epochs=3),
            folder=tmp_path / name,
            device="cpu",
            resume=(tmp_path / name / "run.yaml").exists(),
        )

    whole = start("whole")
    with pytest.raises(KeyboardInterrupt):
        start("cut", at=5)
    assert_same_runs(whole.folder, start("cut").folder)


def plain_loader(kind: str) -> DataLoader:
    from likewise.data import PerClassSampler

    images, labels = (torch.cat(parts) for parts in zip(*vectors(4), strict=True))
    data = TensorDataset(images, labels)
    if kind == "shuffled":
        return DataLoader(data, batch_size=8, shuffle=True)
    if kind == "own generator":
        return DataLoader(data, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(5))
    return DataLoader(data, batch_sampler=PerClassSampler(labels, classes=4, per_class=2, steps=4))


@pytest.mark.parametrize("do", [terminate, fail], ids=["stopped", "broken"])
@pytest.mark.parametrize("kind", ["shuffled", "own generator", "sampler"])
def test_batches_that_cannot_resume_should_continue_from_the_end_of_an_epoch(tmp_path, kind, do):
    def start(name: str, at: int | None = None) -> Run:
        folder = tmp_path / name
        return train(
            nn.Sequential(linear(), nn.Dropout(0.2)),
            Interrupted(square, at, do),
            Data(plain_loader(kind), vectors(2)),
            optimizer=OptimizerConfig(lr=1e-2),
            settings=TrainConfig(epochs=4, log_every=1, checkpoint_minutes=0.0),
            folder=folder,
            device="cpu",
            resume=(folder / "run.yaml").exists(),
        )

    whole = start("whole")
    with pytest.raises((KeyboardInterrupt, Broken)):
        start("cut", at=11)
    assert load_epoch(tmp_path / "cut") == 2
    assert_same_runs(whole.folder, start("cut").folder)


def load_epoch(folder: Path) -> int:
    from likewise.train.checkpoint import load_checkpoint

    return load_checkpoint(folder / "last.safetensors")[1]["epoch"]


def simple(folder: Path, **options) -> Run:
    data = Data(vectors(), vectors())
    return train(linear(), square, data, settings=TrainConfig(epochs=2), folder=folder, device="cpu", **options)


def test_a_finished_run_is_returned(tmp_path):
    run = simple(tmp_path / "run")
    files = {file.name: file.read_bytes() for file in run.folder.iterdir()}
    model = linear(5)
    again = train(
        model, square, Data(vectors()), settings=TrainConfig(epochs=2), folder=run.folder, device="cpu", resume=True
    )
    assert again.finished
    assert {file.name: file.read_bytes() for file in run.folder.iterdir()} == files
    assert torch.equal(model.weight, linear(5).weight)


def test_a_used_folder_is_refused(tmp_path):
    run = simple(tmp_path / "run")
    files = {file.name: file.read_bytes() for file in run.folder.iterdir()}
    with pytest.raises(FileExistsError, match=r"^folder must not contain a run, but .* does: resume it, or choose"):
        simple(tmp_path / "run")
    assert {file.name: file.read_bytes() for file in run.folder.iterdir()} == files


def test_nothing_to_resume(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^folder must contain a run, but .* has no run.yaml$"):
        simple(tmp_path / "nowhere", resume=True)


def test_a_new_run_does_not_begin_from_what_lies_around(tmp_path):
    """A folder that lost its run.yaml: nothing of it is used, and nothing of it is destroyed."""
    old = simple(tmp_path / "run")
    (old.folder / "run.yaml").unlink()
    lines = (old.folder / "metrics.jsonl").read_bytes()
    try:
        new = simple(tmp_path / "run")
    except FileExistsError:
        assert (old.folder / "metrics.jsonl").read_bytes() == lines
    else:
        assert measured(new.folder) == measured(simple(tmp_path / "fresh").folder)


def test_a_folder_that_another_process_trains_in(tmp_path):
    with pytest.raises(Broken):
        train(linear(), Interrupted(square, 5, fail), Data(vectors()), folder=tmp_path / "run", device="cpu")
    run = Run(tmp_path / "run")
    before = (run.folder / "metrics.jsonl").read_bytes()
    with (
        run.lock(),
        pytest.raises(RuntimeError, match=r"must be used by one training process, but another one is running$"),
    ):
        simple(run.folder, resume=True)
    assert (run.folder / "metrics.jsonl").read_bytes() == before


def stopped(folder: Path) -> Run:
    with pytest.raises(Broken):
        train(
            linear(),
            Interrupted(square, 5, fail),
            Data(vectors()),
            settings=TrainConfig(epochs=2),
            folder=folder,
            device="cpu",
        )
    return Run(folder)


def resumed(folder: Path, **options) -> Run:
    """The same training, which goes to its end."""
    loss = Interrupted(square, 10**6, fail)
    settings = TrainConfig(epochs=2)
    return train(
        linear(), loss, Data(vectors()), settings=settings, folder=folder, device="cpu", resume=True, **options
    )


def test_a_damaged_checkpoint(tmp_path):
    run = stopped(tmp_path / "run")
    file = run.folder / "last.safetensors"
    file.write_bytes(file.read_bytes()[:-10])
    lines = (run.folder / "metrics.jsonl").read_bytes()
    with pytest.raises(ValueError, match=r"last.safetensors must be the checkpoint of a training run, but"):
        simple(run.folder, resume=True)
    assert (run.folder / "metrics.jsonl").read_bytes() == lines


def test_a_checkpoint_of_another_kind(tmp_path):
    run = stopped(tmp_path / "run")
    save_file({"a": torch.zeros(1)}, run.folder / "last.safetensors")
    with pytest.raises(
        ValueError, match=r"last.safetensors must be the checkpoint of a training run, but it is another file$"
    ):
        simple(run.folder, resume=True)


def test_a_checkpoint_of_another_model(tmp_path):
    run = stopped(tmp_path / "run")
    with pytest.raises(ValueError, match=r"must be those of the run, but model.class was Linear") as refused:
        train(
            small(),
            square,
            Data(pictures()),
            settings=TrainConfig(epochs=2),
            folder=run.folder,
            device="cpu",
            resume=True,
        )
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "changed",
    [{"seed": 1}, {"optimizer": OptimizerConfig(lr=0.5)}, {"schedule": ScheduleConfig("constant")}],
    ids=lambda x: next(iter(x)),
)
def test_resuming_something_else_is_refused(tmp_path, changed):
    """run.yaml describes the whole training; one half of it must not be another one."""
    run = stopped(tmp_path / "run")
    with pytest.raises(
        ValueError, match=rf"^the settings must be those of the run, but .*{next(iter(changed))}\b.* was "
    ):
        simple(run.folder, resume=True, **changed)


def test_a_change_is_allowed_by_name_and_written_down(tmp_path, monkeypatch):
    run = stopped(tmp_path / "run")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 77)  # part of the numbers, but no other training
    with pytest.warns(UserWarning, match="continued, but"):
        resumed(run.folder, seed=1, allow_changes=True)
    notes = [line["message"] for line in run.metrics("note")]
    assert "continued, but seed was 0 and is 1" in notes
    assert any(note.startswith("continued, but hardware.threads was ") for note in notes)
    assert run.finished


class Sized(ImageDataset):
    """Images of one color, which the contents tell."""

    def __init__(self, color: int) -> None:
        super().__init__("sized", torch.arange(8) // 2, list("abcd"))
        self.color = color

    def image(self, index: int) -> Image.Image:
        return Image.new("L", (4, 4), self.color)

    def source(self, index: int) -> str:
        return f"{index} of color {self.color}"


class Colors(Iterable):
    def __init__(self, color: int) -> None:
        self.images = Sized(color)

    def __len__(self) -> int:
        return 3

    def __iter__(self):
        return iter([(torch.full((8, 6), float(self.images.color)), self.images.labels)] * 3)


def test_other_data_and_another_loss_are_refused(tmp_path):
    def begin(color: int, loss: nn.Module, **options) -> Run:
        return train(linear(), loss, Data(Colors(color)), folder=tmp_path / "run", device="cpu", **options)

    with pytest.raises(Broken):
        begin(3, Interrupted(ContrastiveLoss(), 2, fail))
    with pytest.raises(ValueError, match=r"data.train.fingerprint was \w{64} and is \w{64}"):
        begin(4, ContrastiveLoss(), resume=True)
    with pytest.raises(ValueError, match=r"loss was .*ContrastiveLoss\(.*\) and is TripletLoss"):
        begin(3, TripletLoss(), resume=True)


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_metrics_that_are_not_those_of_the_checkpoint(tmp_path, damage):
    run = stopped(tmp_path / "run")
    file = run.folder / "metrics.jsonl"
    content = file.read_bytes()
    _, state = load_checkpoint(run.folder / "last.safetensors")
    assert 0 < state["metrics_size"] <= len(content)
    half = state["metrics_size"] // 2
    flipped = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
    file.write_bytes(content[:half] if damage == "cut" else flipped)
    with pytest.raises(
        ValueError, match=r"metrics.jsonl must not change between checkpoint and resumption, but [^\n]*$"
    ):
        resumed(run.folder)
    with pytest.warns(UserWarning, match="continued, but .*metrics.jsonl"):
        resumed(run.folder, allow_changes=True)
    assert run.finished


@pytest.mark.parametrize("name", ["best", "last"])
def test_a_flipped_bit_in_a_checkpoint_is_noticed(tmp_path, name):
    """In the best model, too, before any step: no later epoch may replace it."""
    run = stopped(tmp_path / "run")
    Embedder("convnet", 4).save(run.folder / "best.safetensors")
    file = run.folder / f"{name}.safetensors"
    content = bytearray(file.read_bytes())
    content[-100] ^= 4
    file.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}.safetensors .* is damaged: its tensors have another checksum"):
        resumed(run.folder)
    if name == "best":
        with pytest.warns(UserWarning, match="continued, but best.safetensors is damaged"):
            resumed(run.folder, allow_changes=True)
        assert run.finished


def test_memories_of_several_losses(tmp_path, photos):
    def loss() -> nn.Module:
        return WeightedSum(
            {CrossBatchMemory(ContrastiveLoss(), size=12): 1.0, proxies(): 0.5, MarginLoss(num_classes=6): 0.5}
        )

    case = (small, loss, OptimizerConfig(lr=1e-2, lrs={"proxies": 0.1}), TrainConfig(ema=0.9))
    whole = go(tmp_path / "whole", photos, case)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", photos, case, at=7, do=terminate)
    run = go(tmp_path / "cut", photos, case)
    assert_same_runs(whole.folder, run.folder)
    last = [load_file(folder / "last.safetensors") for folder in (whole.folder, run.folder)]
    assert same(*last)
