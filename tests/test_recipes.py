"""Every recipe is read by the command line's own parser, built, and held against the numbers that the papers print."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from PIL import Image
from torch import Tensor, nn

from likewise.app.build import Machine, make_loss, make_model, make_sampler
from likewise.app.configuration import parse_request as configure_request
from likewise.app.layers import read_request
from likewise.app.recipes import find_recipe, list_recipes
from likewise.cli import main
from likewise.data import TRANSFORMS, ImageDataset
from likewise.losses import CrossBatchMemory, MultiSimilarityLoss, ProxyLoss
from likewise.miners import MultiSimilarityMiner
from likewise.testing import loop_over
from likewise.train import OptimizerConfig, ScheduleConfig, TrainConfig, parameter_groups
from likewise.trunks import TRUNKS

ROOT = Path(__file__).parents[1]
NAMES = list(list_recipes())
FILES = [find_recipe(name) for name in NAMES]
LOSSES = [name for name in NAMES if "/losses/" in name]
SETUPS = [name for name in NAMES if name not in LOSSES]
PAGE = (ROOT / "docs" / "recipes.md").read_text()

# Table 3 of the thesis: learning rate, step size, gamma.
TABLE_3 = {
    "cub-resnet50": (0.0001, 5, 0.1),
    "cub-bninception": (0.0001, 10, 0.1),
    "cub-googlenet": (0.0001, 10, 0.1),
    "cars-resnet50": (0.0001, 10, 0.1),
    "cars-bninception": (0.0001, 20, 0.1),
    "cars-googlenet": (0.0001, 20, 0.1),
    "sop-resnet50": (0.0006, 10, 0.25),
    "sop-bninception": (0.0006, 20, 0.25),
    "sop-googlenet": (0.0006, 20, 0.25),
}
DATA = {"cub": "CUB200", "cars": "Cars196", "sop": "StanfordOnlineProducts", "in-shop": "InShop"}

# Table 4 of the thesis by our names, table 5's miner, and the learning rate of what the loss learns.
TABLES_4_AND_5: dict[str, tuple[str, dict[str, float], str | None, dict[str, float]]] = {
    "contrastive": ("ContrastiveLoss", {"negative_margin": 0.5}, None, {}),
    "triplet": ("TripletLoss", {"margin": 0.1}, "SemiHardMiner", {}),
    "lifted-structure": ("GeneralizedLiftedStructureLoss", {"margin": 0.5}, "MultiSimilarityMiner", {}),
    "npair": ("NPairsLoss", {"l2": 0.02}, None, {}),
    "margin": ("MarginLoss", {"margin": 0.5, "beta": 1.2}, "DistanceWeightedMiner", {"beta": 0.00005}),
    "multi-similarity": (
        "MultiSimilarityLoss",
        {"base": 0.5, "alpha": 2.0, "beta": 50.0},
        "MultiSimilarityMiner",
        {},
    ),
    "proxy-nca": ("ProxyNCALoss", {}, None, {"proxies": 0.00001}),
    "arcface": ("ArcFaceLoss", {"margin": 28.6, "scale": 64.0}, None, {"proxies": 0.0001}),
    "soft-triple": (
        "SoftTripleLoss",
        {"margin": 0.1, "la": 20.0, "gamma": 1 / 10, "tau": 0.2},
        None,
        {"proxies": 0.0001},
    ),
    "proxy-anchor": ("ProxyAnchorLoss", {"margin": 0.1, "alpha": 32.0}, None, {"proxies": 0.01}),
}
BALANCED = {"contrastive", "triplet", "lifted-structure", "npair", "margin", "multi-similarity"}
PER_IMAGE = {"proxy-nca", "normalized-softmax", "cosface", "arcface", "soft-triple"}


class Drawn(ImageDataset):
    """Training images with labels, of which nobody asks to see one."""

    def __init__(self, classes: int, per_class: int):
        names = [f"class {number}" for number in range(classes)]
        super().__init__("drawn", torch.arange(classes).repeat_interleave(per_class), names, split="train")

    def image(self, index: int) -> Image.Image:
        return Image.new("RGB", (8, 8))

    def source(self, index: int) -> str:
        return f"image {index}"


TRAIN = Drawn(classes=64, per_class=6)
CPU = Machine(torch.device("cpu"))


def configure(words: list[str]) -> dict[str, Any]:
    """What ``likewise train`` makes of a command line before it reads any data."""
    return configure_request(read_request(words))


@cache
def configured(*names: str) -> dict[str, Any]:
    words = [word for name in names for word in ("--config", name)]
    needs_root = not names[0].startswith("glyphs")
    return configure([*words, *(["--data.root", "somewhere"] if needs_root else [])])


@cache
def model_of(said: tuple[tuple[str, Any], ...]) -> nn.Module:
    """The network without its numbers: what is published need not be there, and nothing is drawn at random."""
    with torch.device("meta"):
        return make_model({**dict(said), "weights": None})


def built(config: dict[str, Any]) -> tuple[nn.Module, nn.Module, Any]:
    model = model_of(tuple(config["model"].items()))
    loss = make_loss(config, TRAIN, model)
    return model, loss, make_sampler(config, TRAIN, CPU)


def rates(config: dict[str, Any]) -> dict[str, float]:
    """The learning rate of every group, as the training would make them."""
    model, loss, _ = built(config)
    return {group.name: group.lr for group in parameter_groups(model, loss, OptimizerConfig(**config["optimizer"]))}


def losses_of(setup: str) -> list[str]:
    """The losses that a set-up is meant for: those of its paper, and of two batches the one of its network."""
    paper, _, rest = setup.rpartition("/")
    mine = "20x5" if rest.endswith("resnet50") else "36x5"
    other = {"20x5": ("36x5", "multi-similarity-table15"), "36x5": ("20x5",)}[mine]
    return [name for name in LOSSES if paper and name.startswith(f"{paper}/") and not name.endswith(other)]


# One set-up for each batch of each paper; the others differ in data, schedule and rates alone, as a test below shows.
MEETING = ("thesis/cub-resnet50", "thesis/cub-googlenet", "reality-check/cub", "unified-view/cub")
PAIRS = [(setup, loss) for setup in MEETING for loss in losses_of(setup)]


@loop_over("name", NAMES)
def test_it_begins_with_where_it_is_from(name: str):
    first, *rest = find_recipe(name).read_text().splitlines()
    source = {
        "thesis": "# The thesis: ",
        "reality-check": "# The reality check: ",
        "unified-view": "# The unified view",
    }
    paper = name.split("/")[0]
    assert first.startswith(source.get(paper, "# "))
    assert all(len(line) <= 120 for line in rest)
    if name in SETUPS and paper in source:
        assert "Where the text is silent" in "\n".join(rest)


@loop_over("name", SETUPS)
def test_a_setup_is_complete_and_builds(name: str):
    config = configured(name)
    said = yaml.safe_load(find_recipe(name).read_text())
    assert set(said) >= {
        "data",
        "split",
        "transform",
        "model",
        "loss",
        "sampler",
        "optimizer",
        "schedule",
        "train",
        "seed",
    }
    model, loss, sampler = built(config)
    assert config["model"]["weights"] in (None, *TRUNKS[config["model"]["trunk"]].published)
    assert len(next(iter(sampler))) == sampler.batch_size
    assert model.dim == config["model"]["dim"] == getattr(loss, "embedding_dim", model.dim)
    size = {"thesis": 224, "cub128": 112, "cub176": 176, "glyphs": 32}.get(config["transform"], 227)
    assert (TRANSFORMS[config["transform"]].train.size, TRANSFORMS[config["transform"]].test.size) == (size, size)
    TrainConfig(**config["train"])
    ScheduleConfig(**config["schedule"])
    assert set(rates(config)) >= {"trunk", "head"}


@pytest.mark.parametrize(("setup", "loss"), PAIRS, ids=lambda name: name.replace("/losses/", "/"))
def test_a_loss_goes_with_its_setups(setup: str, loss: str):
    """The file decides all of the loss, its batch is the set-up's, and it has a finite value and a gradient."""
    config = configured(setup, loss)
    _, made, sampler = built(config)
    said = yaml.safe_load(find_recipe(loss).read_text())
    assert config["loss"]["class_path"] == f"likewise.losses.{said['loss']['class_path']}"
    assert agrees(config["loss"]["init_args"], said["loss"]["init_args"])
    assert sampler.batch_size == built(configured(setup))[2].batch_size

    batch = next(iter(sampler))
    embeddings = torch.randn(len(batch), config["model"]["dim"], generator=torch.Generator().manual_seed(0))
    embeddings = nn.functional.normalize(embeddings + TRAIN.labels[batch].cos()[:, None]).requires_grad_()
    value = made(embeddings, TRAIN.labels[batch])
    value.backward()
    assert torch.isfinite(value)
    assert embeddings.grad is not None
    assert torch.isfinite(embeddings.grad).all()
    assert embeddings.grad.abs().sum() > 0.0


def agrees(got: Any, said: Any) -> bool:
    """Whether a configuration has what a file says, at any depth; names there are import paths here."""
    if isinstance(said, dict):
        return all(key in got and agrees(got[key], value) for key, value in said.items())
    return got == said or (isinstance(said, str) and str(got).endswith(f".{said}"))


@loop_over("paper", ["thesis", "reality-check", "unified-view"])
def test_setups_of_a_paper_differ_in_nothing_else(paper: str):
    """Data sets change the schedule and the rate, networks the trunk and the batch; all else is one set-up."""
    may_differ = {
        "thesis": {
            "data": None,
            "model": {"trunk"},
            "optimizer": {"lr"},
            "schedule": {"step", "gamma"},
            "sampler": None,
        },
        "reality-check": {"data": None, "train": {"validate_every", "patience"}},
        "unified-view": {"data": None, "sampler": None},
    }[paper]

    def rest(name: str) -> dict[str, Any]:
        said = yaml.safe_load(find_recipe(name).read_text())
        for key, inside in may_differ.items():
            said[key] = None if inside is None else {k: v for k, v in said[key].items() if k not in inside}
        return said

    first, *others = [rest(name) for name in SETUPS if name.startswith(f"{paper}/")]
    assert all(other == first for other in others)


@loop_over("name", TABLE_3)
def test_the_thesis_table_3(name: str):
    data, trunk = name.split("-")
    config = configured(f"thesis/{name}")
    optimizer, schedule = config["optimizer"], config["schedule"]
    assert config["data"]["class_path"] == f"likewise.data.{DATA[data]}"
    assert (optimizer["name"], schedule["name"], config["model"]["trunk"]) == ("AdamW", "step", trunk)
    assert (optimizer["lr"], schedule["step"], schedule["gamma"]) == TABLE_3[name]
    assert config["train"]["epochs"] == 100
    assert config["sampler"]["init_args"]["batch_size"] == (100 if trunk == "resnet50" else 180)
    # after two steps, twice the factor
    lr, step, gamma = TABLE_3[name]
    factor = ScheduleConfig(**schedule).factor(2 * step * 50, 50, epochs=100)
    assert lr * factor == pytest.approx(lr * gamma * gamma)


@loop_over("batch", ["20x5", "36x5"])
@loop_over("name", TABLES_4_AND_5)
def test_the_thesis_tables_4_and_5(name: str, batch: str):
    setup = "thesis/sop-resnet50" if batch == "20x5" else "thesis/sop-bninception"
    config = configured(setup, f"thesis/losses/{name}-{batch}" if name in BALANCED else f"thesis/losses/{name}")
    loss, values, miner, learned = TABLES_4_AND_5[name]
    said = config["loss"]["init_args"]
    assert config["loss"]["class_path"] == f"likewise.losses.{loss}"
    assert {key: said[key] for key in values} == pytest.approx(values)
    mined = said.get("miner")
    assert (mined and mined["class_path"]) == (miner and f"likewise.miners.{miner}")
    assert rates(config) == pytest.approx({"trunk": 0.0006, "head": 0.0006, **learned})
    sampler = config["sampler"]
    if name in BALANCED:
        classes = {"20x5": 20, "36x5": 36}[batch]
        assert sampler["class_path"] == "likewise.data.PerClassSampler"
        assert sampler["init_args"] == {"classes": classes, "per_class": 5, "steps": None}
    else:
        assert sampler["class_path"] == "likewise.data.RandomBatchSampler"
        assert sampler["init_args"]["batch_size"] == {"20x5": 100, "36x5": 180}[batch]


@loop_over("name", sorted(BALANCED))
def test_two_batches_are_the_only_difference(name: str):
    small, large = (
        yaml.safe_load(find_recipe(f"thesis/losses/{name}-{batch}").read_text()) for batch in ("20x5", "36x5")
    )
    assert small.pop("sampler") != large.pop("sampler")
    assert small == large


def test_the_thesis_table_15():
    found = configured("thesis/cub-bninception", "thesis/losses/multi-similarity-table15")["loss"]["init_args"]
    assert (found["base"], found["alpha"], found["beta"]) == (0.8, 18.0, 76.0)
    assert found["miner"]["init_args"]["epsilon"] == 0.4
    config = configured("thesis/cub-bninception", "thesis/losses/soft-triple-table15")
    found = config["loss"]["init_args"]
    assert (found["margin"], found["la"], found["tau"]) == (0.4, 78.0, 0.4)
    assert 1.0 / found["gamma"] == pytest.approx(58.0)
    assert rates(config)["proxies"] == 0.00005


def test_length_costs_something_in_the_thesis_npair():
    """On the unit sphere table 4's l2 would have no gradient, so this loss's embeddings keep their length."""
    config = configured("thesis/cub-resnet50", "thesis/losses/npair-20x5")
    assert config["model"]["normalize"] is False
    _, loss, _ = built(config)
    labels = torch.arange(4) // 2
    longer = torch.eye(4, 8).requires_grad_()
    plain = type(loss)(l2=0.0)
    assert (loss(longer, labels) - plain(longer, labels)).item() == pytest.approx(0.02 * 1.0)


@loop_over("data", ["cub", "cars", "sop"])
def test_the_reality_check(data: str):
    config = configured(f"reality-check/{data}")
    assert config["data"]["class_path"] == f"likewise.data.{DATA[data]}"
    assert (config["model"]["trunk"], config["model"]["dim"]) == ("bninception", 128)
    assert config["model"]["freeze_bn"] is config["model"]["normalize"] is True
    assert (config["optimizer"]["name"], config["schedule"]["name"]) == ("RMSprop", "constant")
    assert rates(config) == {"trunk": 1e-6, "head": 1e-6}
    assert config["transform"] == "reality-check"


@loop_over("name", [name for name in LOSSES if name.startswith("reality-check/")])
def test_batches_of_32_in_the_reality_check(name: str):
    """8 classes x 4 images for embedding losses, 32 x 1 for classification losses; what a loss learns has its own rate."""
    config = configured("reality-check/sop", name)
    kind = (32, 1) if name.rpartition("/")[2] in PER_IMAGE else (8, 4)
    sampler = config["sampler"]["init_args"]
    assert (sampler["classes"], sampler["per_class"]) == kind
    _, loss, _ = built(config)
    assert isinstance(loss, ProxyLoss) == (kind == (32, 1))
    learned = {group: rate for group, rate in rates(config).items() if group not in ("trunk", "head")}
    assert set(learned) == {each.rpartition(".")[2] for each, _ in loss.named_parameters()}
    assert all(rate > 1e-6 for rate in learned.values())


def test_every_row_of_the_reality_check_is_there():
    rows = {"contrastive", "triplet", "nt-xent", "proxy-nca", "margin", "margin-per-class", "normalized-softmax"}
    rows |= {"cosface", "arcface", "fast-ap", "snr-contrastive", "multi-similarity", "multi-similarity-miner"}
    rows |= {"soft-triple"}
    assert {name.rpartition("/")[2] for name in LOSSES if name.startswith("reality-check/")} == rows


def test_contrastive_and_triplet_of_the_reality_check_are_on_distances():
    """``[d_p − m_pos]₊ + [m_neg − d_n]₊`` and ``[d_ap − d_an + m]₊``, worked out on three points of the unit circle."""
    points = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
    labels = torch.tensor([0, 0, 1])
    d01, d02, d12 = 0.4**0.5, 0.8**0.5, 0.08**0.5  # |a − b|² = 2 − 2 a·b with a·b = 0.8, 0.6, 0.96
    _, contrastive, _ = built(configured("reality-check/cub", "reality-check/losses/contrastive"))
    assert contrastive(points, labels).item() == pytest.approx(d01 + ((1 - d02) + (1 - d12)) / 2, abs=1e-5)
    _, triplet, _ = built(configured("reality-check/cub", "reality-check/losses/triplet"))
    assert triplet(points, labels).item() == pytest.approx(d01 - d12 + 0.1, abs=1e-5)  # the other triplet costs nothing


@loop_over("data, per_class", [("cub", 5), ("cars", 5), ("sop", 4), ("in-shop", 4)])
def test_the_unified_view(data: str, per_class: int):
    config = configured(f"unified-view/{data}")
    assert config["data"]["class_path"] == f"likewise.data.{DATA[data]}"
    assert (config["model"]["trunk"], config["model"]["dim"]) == ("bninception", 512)
    assert (config["optimizer"]["name"], config["schedule"]["name"]) == ("Adam", "constant")
    assert rates(config) == {"trunk": 1e-5, "head": 1e-5}
    assert config["sampler"]["init_args"]["per_class"] == per_class
    said = config["loss"]["init_args"]
    assert (said["alpha"], said["beta"], said["base"], said["margin"]) == (2.0, 50.0, 0.5, 0.1)


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(24) // 4
    return nn.functional.normalize(torch.randn(24, 8, generator=generator) + labels.cos()[:, None], dim=1), labels


def row_of_table_1(name: str) -> nn.Module:
    return built(configured("unified-view/cub", f"unified-view/losses/{name}"))[1]


def test_raw_with_and_without_its_mining():
    embeddings, labels = batch()
    mined = MultiSimilarityLoss(2.0, 50.0, 0.5, miner=MultiSimilarityMiner(0.1))(embeddings, labels)
    assert torch.equal(row_of_table_1("raw-vthm")(embeddings, labels), mined)
    assert torch.equal(
        row_of_table_1("raw")(embeddings, labels), MultiSimilarityLoss(2.0, 50.0, 0.5)(embeddings, labels)
    )
    assert not torch.equal(row_of_table_1("raw")(embeddings, labels), mined)


def test_valid_triplet_mining_alone_weighs_all_its_pairs_alike():
    """Every pair that the rule of Section 5.1 keeps, found by loops, has the weight one; no other pair has any."""
    embeddings, labels = batch()
    similarities = (embeddings @ embeddings.T).requires_grad_()
    row_of_table_1("vthm").from_similarity(similarities, labels).backward()
    assert similarities.grad is not None
    kept = 0
    for i in range(24):
        positives = [j for j in range(24) if labels[j] == labels[i] and j != i]
        negatives = [j for j in range(24) if labels[j] != labels[i]]
        hardest_positive = min(similarities[i, j].item() for j in positives)
        hardest_negative = max(similarities[i, j].item() for j in negatives)
        for j in range(24):
            s, weight = similarities[i, j].item(), 0.0
            if j in positives and s < hardest_negative + 0.1:
                weight = -1.0
            if j in negatives and s > hardest_positive - 0.1:
                weight = 1.0
            kept += weight != 0.0
            assert similarities.grad[i, j].item() == weight
    assert 0 < kept < 24 * 23


def test_a_loss_by_its_name_keeps_nothing_of_the_one_before():
    words = ["--config", "reality-check/cub", "--data.root", "somewhere", "--loss", "TripletLoss"]
    said = configure(words)["loss"]["init_args"]
    assert (said["margin"], said["similarity"], said["miner"]) == (0.1, "cosine", None)
    words = ["--config", "thesis/cub-resnet50", "--data.root", "somewhere", "--loss", "ArcFaceLoss"]
    config = configure(words)
    assert (config["loss"]["init_args"]["margin"], config["loss"]["init_args"]["scale"]) == (28.6, 64.0)
    assert rates(config)["proxies"] == 0.0001  # the loss's own suggestion, which is table 4's


def test_cub128_has_one_rate_for_whatever_a_loss_learns():
    words = ["--config", "cub128", "--data.root", "somewhere", "--loss"]
    assert rates(configure([*words, "ArcFaceLoss"]))["proxies"] == 0.01
    assert rates(configure([*words, "ContrastiveLoss"])) == {"trunk": 0.0001, "head": 0.0001}


def test_a_memory_can_be_put_around_a_recipe():
    words = ["--config", "unified-view/cub", "--data.root", "somewhere", "--memory.size", "256"]
    assert isinstance(built(configure(words))[1], CrossBatchMemory)


def commands() -> list[str]:
    texts = [PAGE, *(path.read_text() for path in FILES)]
    return sorted(
        {found for text in texts for found in re.findall(r"^(?:\$|# {2,})\s*(likewise train .*)$", text, re.M)}
    )


@loop_over("command", commands())
def test_commands_that_are_shown_are_understood(command: str):
    _, _, *words = shlex.split(command)
    named = words[words.index("--config") + 1]
    assert configure(words)["transform"] == yaml.safe_load(find_recipe(named).read_text())["transform"]


@loop_over("name", NAMES)
def test_the_page_names_every_recipe(name: str):
    assert re.search(rf"[`/]{re.escape(name.rpartition('/')[2])}`", PAGE)
    if name in SETUPS:
        assert f"`{name}`" in PAGE


def test_the_command_lists_them_and_prints_one(capsys: pytest.CaptureFixture[str]):
    assert main(["recipes"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in NAMES)
    assert main(["recipes", "glyphs"]) == 0
    assert capsys.readouterr().out == find_recipe("glyphs").read_text()
    assert main(["train", "--config", "thesis/cub-resnet"]) == 2
    assert "there is no file or recipe thesis/cub-resnet; did you mean thesis/cub-resnet50?" in capsys.readouterr().err
