"""The recorder says what a loss does to a batch, and a training with it is the training without it."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from likewise.analysis import recorder as module
from likewise.analysis.catalog import catalog
from likewise.analysis.recorder import Recorder, weight_record
from likewise.analysis.weights import Weighed, Weighing
from likewise.data import BatchLoader, ImageCache
from likewise.formula import Cosine, Labels
from likewise.losses import (
    ContrastiveLoss,
    CrossBatchMemory,
    Gathered,
    Matryoshka,
    MultiSimilarityLoss,
    NTXentLoss,
    ProxyAnchorLoss,
    ProxyNCALoss,
    SupConLoss,
    TripletLoss,
    WeightedSum,
)
from likewise.miners import DistanceWeightedMiner, MultiSimilarityMiner, RandomMiner
from likewise.train import Data, OptimizerConfig, Run, TrainConfig, train
from likewise.train.lens import LensHook
from tests.train.small import (
    Interrupted,
    assert_same_runs,
    draw,
    held_out,
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


def batch(samples: int = 24, classes: int = 6, dim: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(seed)
    labels = torch.arange(samples) % classes
    centers = torch.randn(classes, dim, generator=chance)
    return centers[labels] + 0.8 * torch.randn(samples, dim, generator=chance), labels


def weighed(weights: list[float], positives: int) -> Weighing:
    """A row of pairs whose weights are known: the first ones are positive."""
    positive = torch.arange(len(weights))[None] < positives
    derivatives = torch.tensor([weights]) * torch.where(positive, -1.0, 1.0)
    matrix = Weighed("samples against samples", torch.zeros_like(derivatives), derivatives, positive, ~positive)
    return Weighing(torch.zeros(()), (matrix,), torch.zeros(1, 2), torch.zeros(1, 2))


# ------------------------------------------------------------------------------------------------ numbers


def test_weights_on_paper():
    """Weights 1 … 100, the last ten negative pairs turned round, and a hundred zeros."""
    weights = [float(n) for n in range(1, 91)] + [-float(n) for n in range(91, 101)] + [0.0] * 100
    found = weight_record(weighed(weights, positives=20))
    assert (found["positives"], found["negatives"]) == (20, 180)
    assert found["zero_positives"] == 0.0
    assert found["zero_negatives"] == pytest.approx(100 / 180)
    assert found["below_zero"] == pytest.approx(10 / 200)
    assert found["weight_positives"] == pytest.approx(210.0)  # 1 + … + 20
    assert found["weight_negatives"] == pytest.approx(4840.0)  # 5050 − 210
    assert found["heaviest_1"] == pytest.approx((100 + 99) / 5050)
    assert found["heaviest_10"] == pytest.approx(sum(range(81, 101)) / 5050)
    # 100 + 99 + … + 71 = 2565 ≥ 2525 > 2565 − 71
    assert found["half"] == 30
    assert found["half_share"] == pytest.approx(0.15)


def test_rounding_is_no_weight():
    found = weight_record(weighed([1.0, 1e-9, -1e-9, 0.5], positives=2))
    assert (found["zero_positives"], found["zero_negatives"], found["below_zero"]) == (0.5, 0.5, 0.0)


def test_no_weight_at_all():
    found = weight_record(weighed([0.0] * 4, positives=1))
    assert (found["zero_positives"], found["zero_negatives"]) == (1.0, 1.0)
    assert [found[name] for name in ("heaviest_1", "heaviest_10", "half", "half_share")] == [None] * 4


def test_a_few_pairs_have_a_heaviest_one():
    assert weight_record(weighed([3.0, 1.0], positives=1))["heaviest_1"] == pytest.approx(0.75)


def by_hand(loss: Any, embeddings: Tensor, labels: Tensor) -> tuple[list[float], list[float], Tensor]:
    """Weights of positives and negatives, and the gradient, from nothing but autograd and loops."""
    leaf = embeddings.double().requires_grad_()
    units = leaf / leaf.norm(dim=1, keepdim=True)
    matrix = units @ units.T
    derivatives, gradient = torch.autograd.grad(loss.from_similarity(matrix, labels), [matrix, leaf])
    pairs: tuple[list[float], list[float]] = [], []
    for i in range(len(labels)):
        for j in range(len(labels)):
            if i != j:
                alike = bool(labels[i] == labels[j])
                pairs[0 if alike else 1].append(float(-derivatives[i, j] if alike else derivatives[i, j]))
    return *pairs, gradient


def expected(positives: list[float], negatives: list[float]) -> dict[str, float]:
    sizes = sorted((abs(weight) for weight in positives + negatives), reverse=True)
    total, least = sum(sizes), 1e-6 * sizes[0]
    half = next(n for n in range(1, len(sizes) + 1) if sum(sizes[:n]) >= total / 2)
    return {
        "zero_positives": sum(abs(w) <= least for w in positives) / len(positives),
        "zero_negatives": sum(abs(w) <= least for w in negatives) / len(negatives),
        "below_zero": sum(w < -least for w in positives + negatives) / len(sizes),
        "weight_positives": sum(map(abs, positives)),
        "weight_negatives": sum(map(abs, negatives)),
        "heaviest_1": sum(sizes[: math.ceil(len(sizes) / 100)]) / total,
        "heaviest_10": sum(sizes[: math.ceil(len(sizes) / 10)]) / total,
        "half": half,
        "half_share": half / len(sizes),
    }


LOSSES: dict[str, Callable[[], Any]] = {
    "contrastive": ContrastiveLoss,
    "multi-similarity": MultiSimilarityLoss,
    "supcon": SupConLoss,
    "triplet": TripletLoss,
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_numbers_of_a_batch(name: str):
    embeddings, labels = batch()
    loss = LOSSES[name]()
    positives, negatives, gradient = by_hand(loss, embeddings, labels)
    seen = Recorder(loss)(embeddings.double(), labels)
    assert (seen["samples"], seen["anchors"]) == (24, 24)
    assert (seen["positives"], seen["negatives"]) == (len(positives), len(negatives))
    for key, value in expected(positives, negatives).items():
        assert seen[key] == pytest.approx(value, rel=1e-9, abs=1e-12), key
    norms = [float(gradient[labels == label].norm()) for label in range(6)]  # cosines turn, and do not stretch
    assert seen["gradient"] == pytest.approx(math.hypot(*norms))
    assert seen["classes"]["count"] == 6
    assert seen["classes"]["quantiles"] == pytest.approx(np.quantile(norms, [0, 0.25, 0.5, 0.75, 1]).tolist())
    order = sorted(range(6), key=lambda label: -norms[label])[:5]
    assert [label for label, _ in seen["classes"]["largest"]] == order
    assert [norm for _, norm in seen["classes"]["largest"]] == pytest.approx([norms[label] for label in order])


def test_what_a_miner_keeps_is_recorded():
    embeddings, labels = batch()
    generator = torch.Generator().manual_seed(3)
    for miner in (MultiSimilarityMiner(), RandomMiner(7, generator=generator)):
        before = generator.get_state()
        seen = Recorder(TripletLoss(miner=miner))(embeddings, labels)["mined"]
        assert torch.equal(generator.get_state(), before)
        assert seen == miner.count(embeddings, labels)._asdict()
    assert "mined" not in Recorder(TripletLoss())(embeddings, labels)


def test_a_negative_weight_is_seen():
    """SupCon pushes positives apart that are closer than the others; contrastive pushes none."""
    embeddings, labels = batch()
    tight = embeddings + 4.0 * nn.functional.one_hot(labels, 6).float()[:, :5]
    assert Recorder(SupConLoss())(tight, labels)["below_zero"] > 0.0
    assert Recorder(ContrastiveLoss())(tight, labels)["below_zero"] == 0.0


def test_only_what_turns_embeddings_counts():
    class Longer(nn.Module):
        def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
            return embeddings.norm(dim=1).sum()

    seen = Recorder(WeightedSum({ContrastiveLoss(): 1.0, Longer(): 100.0}))(*batch())
    assert seen["gradient"] == pytest.approx(Recorder(ContrastiveLoss())(*batch())["gradient"], rel=1e-4)


def test_a_loss_of_ones_own_has_a_gradient_and_no_pairs():
    class Own(nn.Module):
        def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
            return square(embeddings, labels % 5)

    seen = Recorder(Own(), compare_with=NTXentLoss())(*batch())
    assert "half" not in seen
    assert seen["gradient"] > 0.0
    assert -1.0 <= seen["agreement"] <= 1.0


def test_matrices_that_are_the_same_are_one():
    """Twice the same loss is the loss twice: the same pairs, twice the weight."""
    embeddings, labels = batch()
    twice = WeightedSum({NTXentLoss(): 1.0, NTXentLoss(): 1.0})
    one, two = (Recorder(loss)(embeddings, labels) for loss in (NTXentLoss(), twice))
    assert two["negatives"] == one["negatives"]
    assert two["weight_negatives"] == pytest.approx(2.0 * one["weight_negatives"], rel=1e-5)
    assert two["half"] == one["half"]


def test_matrices_that_differ_count_each():
    embeddings, labels = batch(dim=8)
    seen = Recorder(Matryoshka(NTXentLoss(), dims=(4, 8)))(embeddings, labels)
    assert seen["negatives"] == 2 * 24 * 20


def test_pairs_with_proxies():
    embeddings, labels = batch()
    seen = Recorder(ProxyNCALoss(6, 5))(embeddings, labels)
    assert (seen["positives"], seen["negatives"]) == (24, 24 * 5)
    assert Recorder(ProxyAnchorLoss(6, 5))(embeddings, labels)["negatives"] == 24 * 5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_any_precision(dtype: torch.dtype):
    embeddings, labels = batch()
    seen = Recorder(MultiSimilarityLoss(), compare_with=TripletLoss())(embeddings.to(dtype), labels.int())
    assert seen["agreement"] == pytest.approx(
        Recorder(MultiSimilarityLoss(), compare_with=TripletLoss())(embeddings, labels)["agreement"], abs=0.02
    )


def test_a_batch_without_pairs():
    seen = Recorder(ContrastiveLoss(), compare_with=ContrastiveLoss())(torch.ones(1, 3), torch.tensor([4]))
    assert (seen["positives"], seen["negatives"], seen["gradient"], seen["agreement"]) == (0, 0, 0.0, None)


# ------------------------------------------------------------------------------------------------ two losses


class Scaled(nn.Module):
    def __init__(self, loss: nn.Module, by: float) -> None:
        super().__init__()
        self.loss, self.by = loss, by

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        value: Tensor = self.by * self.loss(embeddings, labels)
        return value


@pytest.mark.parametrize(("by", "cosine"), [(1.0, 1.0), (2.5, 1.0), (-0.5, -1.0)])
def test_agreement_with_itself(by: float, cosine: float):
    seen = Recorder(MultiSimilarityLoss(), compare_with=Scaled(MultiSimilarityLoss(), by))(*batch())
    assert seen["agreement"] == pytest.approx(cosine, abs=1e-6)
    assert seen["ratio"] == pytest.approx(abs(by), rel=1e-5)
    assert seen["compare_with"] == "Scaled"


def test_agreement_of_two_losses():
    embeddings, labels = batch()
    one, other = (by_hand(loss, embeddings, labels)[2].flatten() for loss in (TripletLoss(), NTXentLoss()))
    seen = Recorder(TripletLoss(), compare_with=NTXentLoss())(embeddings, labels)
    assert seen["agreement"] == pytest.approx(float(torch.cosine_similarity(one, other, dim=0)), abs=1e-5)
    assert seen["ratio"] == pytest.approx(float(other.norm() / one.norm()), rel=1e-4)


# ------------------------------------------------------------------------------------------------ large batches


def test_some_anchors_stand_for_a_large_batch(monkeypatch: pytest.MonkeyPatch):
    """Of 24 anchors 8, every third: their rows of the matrix, no sample its own positive, and the whole gradient."""
    monkeypatch.setattr(module, "ENTRIES", 8 * 24)
    embeddings, labels = batch()
    seen = Recorder(MultiSimilarityLoss())(embeddings.double(), labels)
    assert (seen["samples"], seen["anchors"], seen["positives"], seen["negatives"]) == (24, 8, 8 * 3, 8 * 20)
    units = nn.functional.normalize(embeddings.double(), dim=1)
    matrix = (units[::3] @ units.T).requires_grad_()
    rows = torch.arange(0, 24, 3)
    value = MultiSimilarityLoss().from_similarity(matrix, Labels(labels[rows], labels, own=rows))
    (derivatives,) = torch.autograd.grad(value, matrix)
    alike = labels[rows][:, None] == labels[None]
    own = rows[:, None] == torch.arange(24)[None]
    wanted = expected((-derivatives[alike & ~own]).tolist(), derivatives[~alike].tolist())
    for key, value in wanted.items():
        assert seen[key] == pytest.approx(value), key
    gradient = by_hand(MultiSimilarityLoss(), embeddings, labels)[2]
    assert seen["gradient"] == pytest.approx(float(gradient.norm()))
    assert seen["classes"]["count"] == 6


SOME: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "proxies": (lambda: ProxyAnchorLoss(6, 5), 24),
    "memory": (lambda: CrossBatchMemory(ContrastiveLoss(), size=40), 24),
    "wrapped": (lambda: WeightedSum({ContrastiveLoss(): 1.0}), 24),
}


@pytest.mark.parametrize("name", SOME)
def test_what_takes_no_references_is_weighed_on_whole_classes(name: str, monkeypatch: pytest.MonkeyPatch):
    make, columns = SOME[name]
    monkeypatch.setattr(module, "ENTRIES", 8 * columns)
    embeddings, labels = batch()
    torch.manual_seed(0)
    loss = make()
    whole = Recorder(loss)(embeddings, labels)["gradient"] if name == "proxies" else None
    seen = Recorder(loss)(embeddings, labels)
    assert seen["anchors"] == 8
    assert seen["positives"] == (8 if name == "proxies" else 8 * 3), "two classes of four"
    if whole is not None:
        monkeypatch.setattr(module, "ENTRIES", 2**20)
        assert seen["gradient"] == pytest.approx(Recorder(loss)(embeddings, labels)["gradient"], rel=1e-5)


@pytest.mark.parametrize("name", catalog())
def test_every_loss_can_be_looked_at(name: str, monkeypatch: pytest.MonkeyPatch):
    """Whole, and a third of it; shares are shares, and all the gradient is found."""
    embeddings, labels = batch()
    torch.manual_seed(0)
    loss = catalog()[name].make(num_classes=6, embedding_dim=5)
    whole = Recorder(loss, compare_with=ContrastiveLoss())(embeddings, labels)
    monkeypatch.setattr(module, "ENTRIES", 8 * module._columns(loss, 24))
    some = Recorder(loss, compare_with=ContrastiveLoss())(embeddings, labels)
    assert (whole["anchors"], some["anchors"]) == (24, 8)
    for seen in (whole, some):
        for key in ("zero_positives", "zero_negatives", "below_zero", "heaviest_1", "heaviest_10", "half_share"):
            assert 0.0 <= seen[key] <= 1.0, key
        assert seen["gradient"] > 0.0
    if loss.__dict__.get("miner") is None or not hasattr(loss.miner, "generator"):
        assert some["gradient"] == pytest.approx(whole["gradient"], rel=1e-4)
        assert some["agreement"] == pytest.approx(whole["agreement"], abs=1e-4)


def test_a_full_memory_is_bounded_too(monkeypatch: pytest.MonkeyPatch):
    loss = CrossBatchMemory(ContrastiveLoss(), size=76)
    loss(*batch())
    monkeypatch.setattr(module, "ENTRIES", 1000)
    assert Recorder(loss)(*batch())["anchors"] == 10


# ------------------------------------------------------------------------------------------------ it touches nothing


def test_a_memory_is_not_told():
    loss = CrossBatchMemory(ContrastiveLoss(), size=40)
    loss(*batch())
    before, places = copy.deepcopy(loss.state_dict()), [each.data_ptr() for each in loss.buffers()]
    recorder = Recorder(loss, compare_with=loss)
    recorder.ready()
    recorder(*batch(seed=1))
    assert same(before, loss.state_dict())
    assert places == [each.data_ptr() for each in loss.buffers()]


def test_gradients_and_chance_are_left_alone():
    loss = ProxyAnchorLoss(6, 5)
    embeddings, labels = batch()
    embeddings.requires_grad_()
    loss(embeddings, labels).backward()
    grads = loss.proxies.grad.clone(), embeddings.grad.clone()
    generator = torch.Generator().manual_seed(7)
    mined = TripletLoss(miner=RandomMiner(10, generator=generator))
    chance, own = torch.get_rng_state(), generator.get_state()
    for each in (loss, mined, TripletLoss(miner=DistanceWeightedMiner())):
        Recorder(each, compare_with=TripletLoss(miner=RandomMiner(5)))(embeddings, labels)
    assert torch.equal(chance, torch.get_rng_state())
    assert torch.equal(own, generator.get_state())
    assert torch.equal(grads[0], loss.proxies.grad)
    assert torch.equal(grads[1], embeddings.grad)
    assert loss.backend == "auto"


def test_it_works_where_gradients_are_off():
    with torch.no_grad():
        assert Recorder(ContrastiveLoss())(*batch())["gradient"] > 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ((square,), TypeError, "loss must be a torch module, which can be copied, but it is a function"),
        ((ContrastiveLoss(), 0), ValueError, "every must be a whole number ≥ 1, but it is 0"),
        ((ContrastiveLoss(), 5, square), TypeError, "compare_with must be a torch module"),
        ((WeightedSum({Gathered(ContrastiveLoss()): 1.0}),), ValueError, "loss must be complete on one process, but it contains a Gathered"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(arguments: Any, error: type[Exception], sentence: str):
    with pytest.raises(error, match=sentence):
        Recorder(*arguments)


# ------------------------------------------------------------------------------------------------ in a training


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> ImageCache:
    return draw(tmp_path_factory.mktemp("photos"))


class Chancy(nn.Module):
    """A loss that draws from everything there is to draw from."""

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        scale = 1.0 + 0.1 * random.gauss(0, 1) + 0.1 * np.random.randn() + 0.1 * torch.randn(())
        return scale * square(embeddings, labels % 4)


def proxies() -> nn.Module:
    torch.manual_seed(1)
    return ProxyAnchorLoss(6, 4)


def sampled() -> nn.Module:
    torch.manual_seed(1)
    return ProxyNCALoss(6, 4, sampled=5)


CASES: dict[str, tuple[Callable[[], nn.Module], TrainConfig]] = {
    "memory": (lambda: CrossBatchMemory(ContrastiveLoss(), size=20), TrainConfig()),
    "proxies in a memory": (lambda: CrossBatchMemory(proxies(), size=20), TrainConfig(ema=0.7)),
    "sampled proxies": (sampled, TrainConfig(clip=1.0)),
    "own generator": (
        lambda: TripletLoss(miner=RandomMiner(10, generator=torch.Generator().manual_seed(3))),
        TrainConfig(),
    ),
    "all chances": (Chancy, TrainConfig(accumulate=2)),
    "half, in chunks": (MultiSimilarityLoss, TrainConfig(precision="bf16", chunk=3)),
}


def go(
    folder: Path,
    photos: ImageCache,
    case: tuple[Callable[[], nn.Module], TrainConfig],
    every: int = 0,
    at: int | None = None,
) -> Run:
    made, base = case
    loss = made()
    return train(
        small(),
        Interrupted(loss, at, terminate),
        Data(loader(photos, 5), held_out(photos)),
        folder=folder,
        optimizer=OptimizerConfig(lr=1e-2),
        settings=TrainConfig(**{**vars(base), "epochs": 3, "log_every": 2}),
        device="cpu",
        resume=(folder / "run.yaml").exists(),
        lens=Recorder(loss, every, TripletLoss(miner=RandomMiner(6))) if every else None,
    )


@pytest.mark.parametrize("name", CASES)
def test_a_training_with_it_is_the_training_without_it(tmp_path: Path, photos: ImageCache, name: str):
    """Models, optimizer, memory, generators: all that a checkpoint holds, bit for bit; and the same record besides."""
    plain, seen = (go(tmp_path / str(every), photos, CASES[name], every) for every in (0, 2))
    for file in ("model", "best", "last"):
        one, other = (load_file(run.folder / f"{file}.safetensors") for run in (plain, seen))
        assert same(one, other), file
    assert measured(plain.folder) == [line for line in measured(seen.folder) if line["kind"] != "lens"]
    steps = [line["step"] for line in seen.metrics("lens")]
    assert steps == [
        step for step in range(1, 16 if CASES[name][1].accumulate == 1 else 10) if step == 1 or step % 2 == 0
    ]
    assert plain.description["lens"] is None
    assert seen.description["lens"].startswith("Recorder(every=2, compare_with=TripletLoss(")


@pytest.mark.parametrize("name", ["proxies in a memory", "own generator", "all chances"])
def test_stopped_and_resumed_the_record_is_the_same(tmp_path: Path, photos: ImageCache, name: str):
    whole = go(tmp_path / "whole", photos, CASES[name], 2)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", photos, CASES[name], 2, at=8)
    with (tmp_path / "cut" / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "lens", "step": 99, "epoch": 9.0}\n{"kind": "le')
    torch.manual_seed(99), random.seed(99), np.random.seed(99)
    assert_same_runs(whole.folder, go(tmp_path / "cut", photos, CASES[name], 2).folder)


def test_it_sees_proxies_as_the_step_found_them(tmp_path: Path):
    """One step at a learning rate of 1: afterwards the proxies are elsewhere, and the record is about before."""
    torch.manual_seed(0)
    loss, model, batches = ProxyAnchorLoss(4, 4), linear(), vectors(1)
    before, embeddings = copy.deepcopy(loss), model(batches[0][0]).detach()
    run = train(
        model,
        loss,
        Data(batches),
        folder=tmp_path / "run",
        optimizer=OptimizerConfig("SGD", lr=1.0),
        settings=TrainConfig(epochs=1),
        device="cpu",
        lens=Recorder(loss),
    )
    [line] = run.metrics("lens")
    wanted, after = (Recorder(each)(embeddings, batches[0][1]) for each in (before, loss))
    assert {key: value for key, value in line.items() if key in wanted} == wanted
    assert after["gradient"] != pytest.approx(wanted["gradient"], rel=1e-3)


def test_it_sees_a_memory_as_the_step_found_it(tmp_path: Path):
    """The second batch is compared with the first, and not with itself in the memory."""
    loss, batches = CrossBatchMemory(NTXentLoss(), size=100), vectors(2)
    run = train(
        linear(),
        loss,
        Data(batches),
        folder=tmp_path / "run",
        settings=TrainConfig(epochs=1),
        device="cpu",
        lens=Recorder(loss, every=1),
    )
    assert [line["positives"] for line in run.metrics("lens")] == [8 * 1, 8 * 3]
    assert [line["negatives"] for line in run.metrics("lens")] == [8 * 6, 8 * 12]


def test_when_it_looks():
    looks = LensHook(Recorder(ContrastiveLoss(), every=4), main=True)
    assert [step for step in range(1, 13) if looks.before(step)] == [1, 4, 8, 12]
    assert not any(LensHook(None, main=True).before(step) for step in range(9))


def test_other_processes_say_nothing():
    looks = LensHook(Recorder(ContrastiveLoss(), every=1), main=False)
    assert looks.before(1)
    assert looks.after(*batch()) == {}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="a step is recorded on a GPU")
def test_a_replayed_step_is_left_alone(tmp_path: Path, photos: ImageCache):  # pragma: no cover
    """On a GPU, where the graph of a step is replayed: the same model, and embeddings of the step that was looked at."""

    def run(every: int) -> Run:
        from likewise.data.augment import Augment
        from likewise.data.crops import CenterCrop
        from likewise.data.samplers import PerClassSampler

        sampler = PerClassSampler(photos.labels, classes=4, per_class=2, steps=12, seed=3)
        batches = BatchLoader(photos, sampler, Augment(8, CenterCrop()), seed=4, workers=1, device=torch.device("cuda"))
        torch.manual_seed(1)
        loss = CrossBatchMemory(ProxyAnchorLoss(6, 4), size=20)
        plan = TrainConfig(epochs=2, graph=True)
        lens = Recorder(loss, every, TripletLoss(miner=RandomMiner(6))) if every else None
        return train(small(), loss, Data(batches), folder=tmp_path / str(every), settings=plan, lens=lens)

    plain, seen = run(0), run(3)
    assert same(*(load_file(each.folder / "last.safetensors") for each in (plain, seen)))
    assert [line["step"] for line in seen.metrics("lens")] == [1, 3, 6, 9, 12, 15, 18, 21, 24]
    assert all(line["gradient"] > 0.0 for line in seen.metrics("lens"))


def test_pictures_are_embeddings_too(tmp_path: Path):
    """A model whose output is not normalized, on plain batches: shapes and the record hold."""
    loss = MultiSimilarityLoss(similarity=Cosine())
    data = Data(pictures(2))
    run = train(
        small(), loss, data, folder=tmp_path / "run", settings=TrainConfig(epochs=1), device="cpu", lens=Recorder(loss)
    )
    assert run.metrics("lens")[0]["samples"] == 8
