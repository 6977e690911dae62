"""Defaults, files and flags become one configuration, and a mistake in any of them one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from likewise.app.build import make_lens
from likewise.app.configuration import check, parse_request
from likewise.app.errors import UserError
from likewise.app.layers import read_request
from likewise.cli import main
from likewise.losses import CircleLoss
from likewise.testing import loop_over

GLYPHS = ("--data", "Glyphs")


def configured(*words: str) -> dict[str, Any]:
    return parse_request(read_request(words))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--loss.alpha", "3", "--loss.miner", "SemiHardMiner", "--loss.miner.margin", "0.2"],
        [
            "--loss.miner",
            "BatchEasyHardMiner",
            "--loss.miner.negatives",
            "all",
            "--loss.miner.positive_range",
            "[0, 0.9]",
        ],
        ["--loss", "ProxyAnchorLoss", "--optimizer.lrs.proxies", "0.01", "--memory.size", "100"],
        ["--loss", "MarginLoss", "--loss.num_classes", "7", "--train.precision", "no", "--train.graph", "false"],
        ["--loss", "Matryoshka", "--loss.loss", "CircleLoss", "--loss.dims", "[8, 64]", "--train.clip", "1"],
        ["--model.trunk", "resnet18", "--model.weights", "null"],
        ["--lens.every", "50", "--lens.compare_with", "ContrastiveLoss", "--lens.compare_with.negative_margin", "0.3"],
        [
            "--loss",
            "SoftTripleLoss",
            "--sampler",
            "PairSampler",
            "--split.validation",
            "0.2",
            "--model.weights",
            "a.pt",
        ],
    ],
    ids=lambda words: words[1] if words else "defaults",
)
def test_a_printed_configuration_gives_itself(words: list[str], here: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["train", *GLYPHS, *words, "--print-config"]) == 0
    printed = capsys.readouterr().out
    (here / "printed.yaml").write_text(printed)
    assert configured("--config", "printed.yaml") == configured(*GLYPHS, *words)
    assert main(["train", "--config", "printed.yaml", "--print-config"]) == 0
    assert capsys.readouterr().out == printed


def test_what_was_written_down_gives_itself():
    config = configured(*GLYPHS, "--loss", "ProxyNCALoss", "--train.trackers", "[]")
    assert check(yaml.safe_load(yaml.safe_dump(config))) == config


def test_flags_win_over_files_and_later_files_over_earlier_ones(here: Path):
    (here / "a.yaml").write_text("data: Glyphs\nseed: 1\nmodel: {dim: 16, pool: gem}\nplan: {epochs: 7}")
    (here / "b.yaml").write_text("seed: 2\nmodel: {dim: 32}")
    config = configured("--seed", "3", "--config", "a.yaml", "--config=b.yaml", "--train.epochs=9")
    assert (config["seed"], config["train"]["epochs"]) == (3, 9)
    assert (config["model"]["dim"], config["model"]["pool"]) == (32, "gem")


LOSS = """
data: {class_path: Glyphs}
loss:
  class_path: MultiSimilarityLoss
  init_args: {alpha: 7.0, miner: {class_path: SemiHardMiner, init_args: {margin: 0.3}}}
"""


def test_another_class_keeps_nothing_of_the_one_before(here: Path):
    """Both losses have an alpha; 7 was meant for the first."""
    (here / "a.yaml").write_text(LOSS)
    (here / "b.yaml").write_text("loss: {class_path: ProxyAnchorLoss}")
    fresh = configured(*GLYPHS, "--loss", "ProxyAnchorLoss")["loss"]
    assert fresh["init_args"]["alpha"] == 32.0
    assert configured("--config", "a.yaml", "--loss", "ProxyAnchorLoss")["loss"] == fresh
    assert configured("--config", "a.yaml", "--config", "b.yaml")["loss"] == fresh
    late = configured("--config", "a.yaml", "--loss.margin", "0.7", "--loss", "ProxyAnchorLoss")["loss"]["init_args"]
    assert (late["margin"], late["alpha"]) == (0.7, 32.0)  # an option of the loss that is given after it
    twice = configured(*GLYPHS, "--loss", "MultiSimilarityLoss", "--loss.alpha", "7", "--loss", "ProxyAnchorLoss")
    assert twice["loss"] == fresh


def test_another_loss_keeps_no_rates_of_the_one_before(here: Path):
    """Proxies of a loss that has none would be refused; rates of the network are not the loss's."""
    rates = "optimizer: {lr: 0.5, lrs: {trunk: 0.1, proxies: 0.2}}"
    (here / "a.yaml").write_text(f"data: Glyphs\nloss: ProxyAnchorLoss\n{rates}")
    (here / "b.yaml").write_text("loss: MarginLoss\noptimizer: {lrs: {beta: 0.3}}")
    assert configured("--config", "a.yaml")["optimizer"]["lrs"] == {"trunk": 0.1, "proxies": 0.2}
    assert configured("--config", "a.yaml", "--loss", "CircleLoss")["optimizer"]["lrs"] == {"trunk": 0.1}
    both = ("--config", "a.yaml", "--config", "b.yaml")
    assert configured(*both)["optimizer"]["lrs"] == {"trunk": 0.1, "beta": 0.3}
    assert configured(*both, "--loss", "MarginLoss")["optimizer"]["lrs"] == {"trunk": 0.1, "beta": 0.3}
    more = configured(*both, "--loss", "ProxyNCALoss", "--optimizer.lrs.proxies", "0.4")["optimizer"]
    assert (more["lrs"], more["lr"]) == ({"trunk": 0.1, "proxies": 0.4}, 0.5)


def test_the_same_class_keeps_its_arguments(here: Path):
    (here / "a.yaml").write_text(LOSS)
    for more in ([], ["--loss", "MultiSimilarityLoss"], ["--loss.beta", "40"]):
        assert configured("--config", "a.yaml", *more)["loss"]["init_args"]["alpha"] == 7.0
    inner = configured("--config", "a.yaml", "--loss.miner", "EasyPositiveMiner")["loss"]["init_args"]
    assert inner["alpha"] == 7.0
    assert inner["miner"]["class_path"].endswith("EasyPositiveMiner")
    assert "margin" not in inner["miner"].get("init_args", {})
    assert configured("--config", "a.yaml", "--loss.miner", "null")["loss"]["init_args"]["miner"] is None


@loop_over(
    "words, expected",
    [
        (["--data", "ImageFolder", "--data.root", "x"], ("cub128", "efficientnet_lite0", "imagenet", 512, True, 1e-4)),
        (["--data", "Glyphs"], ("glyphs", "convnet", None, 64, False, 1e-3)),
        (["--data", "Glyphs", "--model.trunk", "resnet18"], ("glyphs", "resnet18", "imagenet", 64, True, 1e-3)),
        (["--data", "Glyphs", "--model.weights", "a.pt"], ("glyphs", "convnet", "a.pt", 64, True, 1e-3)),
        (
            ["--data", "ImageFolder", "--data.root", "x", "--model.weights", "null"],
            ("cub128", "efficientnet_lite0", None, 512, False, 1e-4),
        ),
        (
            ["--data", "ImageFolder", "--data.root", "x", "--model.trunk", "timm:vit"],
            ("cub128", "timm:vit", "pretrained", 512, True, 1e-4),
        ),
    ],
)
def test_defaults_depend_on_what_was_chosen(words: list[str], expected: tuple[object, ...]):
    config = configured(*words)
    model = config["model"]
    found = (config["transform"], model["trunk"], model["weights"], model["dim"], model["freeze_bn"])
    assert (*found, config["optimizer"]["lr"]) == expected


MISTAKES = {
    "--los CircleLoss": "there is no option --los; did you mean --loss?",
    "--loss MultiSimilartyLoss": "there is no loss MultiSimilartyLoss; did you mean MultiSimilarityLoss?",
    "--loss ProxyAnchor": "there is no loss ProxyAnchor; did you mean ProxyAnchorLoss?",
    "--loss Zebra": "there is no loss Zebra (give your own class by its import path, my_package.Zebra)",
    "--loss.alfa 3": "there is no option --loss.alfa; did you mean --loss.alpha?",
    "--loss.alpha abc": "--loss.alpha must be a number, but it is 'abc'",
    "--optimizer.lr 1:30": "--optimizer.lr must be a number, but it is '1:30'",
    "--model.dim=": "--model.dim must be a whole number or null, but it is ''",
    "--loss.miner SemiHrdMiner": "there is no miner SemiHrdMiner; did you mean SemiHardMiner?",
    "--loss.miner SemiHardMiner --loss.miner.magrin 1": "there is no option --loss.miner.magrin; did you mean --loss.miner.margin?",
    "--loss Matryoshka --loss.loss CircleLoss --loss.loss.gama 3": "there is no option --loss.loss.gama; did you mean --loss.loss.gamma?",
    "--loss ProxyNCALoss --loss.num_classes 3": "there is no option --loss.num_classes: "
    "its value is derived from other settings",
    "--loss DirectionRegularized --loss.loss Matryoshka": "--loss.loss must be a PairLoss or a ProxyLoss, "
    "but it is likewise.losses.Matryoshka",
    "--loss DirectionRegularized --loss.loss ProxyNCALoss --loss.loss.scal 3": "there is no option --loss.loss.scal; "
    "did you mean --loss.loss.scale?",
    "--data Glyps": "there is no data set Glyps; did you mean Glyphs?",
    "--data ImageFolder": "--data.root must be given: the folder that contains one folder per class",
    "--sampler.clases 8": "there is no option --sampler.clases; did you mean --sampler.classes?",
    "--sampler MultiLabelSampler": "likewise.data.MultiLabelSampler cannot be used in a configuration, only in Python",
    "--model.trnk x": "there is no option --model.trnk; did you mean --model.trunk?",
    "--model.dim x": "--model.dim must be a whole number or null, but it is 'x'",
    "--model.normalize maybe": "--model.normalize must be true or false, but it is 'maybe'",
    "--transform cub": "--transform must be one of 'cub128', 'cub176', 'glyphs', 'reality-check', 'reality-check-code', 'thesis', "
    "'unified-view', but it is 'cub'; did you mean cub176?",
    "--optimizer.name adamw": "--optimizer.name must be one of 'AdamW', 'Adam', 'RMSprop', 'SGD', but it is 'adamw'; "
    "did you mean AdamW?",
    "--optimizer.betas 3": "--optimizer.betas must be a list of 2 numbers such as [0.5, 0.9], but it is '3'",
    "--memory.warmup 3": "--memory.size must be given: number of stored embeddings",
    "--memory.sise 3": "there is no option --memory.sise; did you mean --memory.size?",
    "--memory 3": "--memory must be null, or set by its options: --memory.size, --memory.warmup",
    "--lens.every often": "--lens.every must be a whole number, but it is 'often'",
    "--lens.every -1": "--lens: every must be a whole number ≥ 0, but it is -1",
    "--lens.compare_with CircleLoss": "--lens: every must be > 0 with compare_with, such as 50, but it is 0",
    "--lens.every 5 --lens.compare_with CircelLoss": "there is no loss CircelLoss; did you mean CircleLoss?",
    "--lens.every 5 --lens.compare_with CircleLoss --lens.compare_with.gama 3": "there is no option --lens.compare_with.gama; "
    "did you mean --lens.compare_with.gamma?",
    "--lens.every 5 --lens.compare_with ProxyAnchorLoss": "--lens: compare_with must be a loss without parameters, because "
    "it is not trained, but it is ProxyAnchorLoss",
    "--lens.every 5 --lens.compare_with MarginLoss": "--lens: compare_with must be a loss without parameters, because "
    "it is not trained, but it is MarginLoss",
    "--loss.margin 1": "there is no option --loss.margin; MultiSimilarityLoss has alpha, beta, base, similarity, miner, "
    "reduction, backend",
    "--loss.similarity.x 1": "--loss.similarity must be a text or a Similarity, but it is {'x': '1'}",
    "--loss.miner.margin 1": "--loss.miner must be the name of a miner: --loss.miner.margin is one of its options",
    "--loss.loss.gamma 1": "there is no option --loss.loss; MultiSimilarityLoss has alpha, beta, base, similarity, miner, "
    "reduction, backend",
    "--loss Matryoshka --loss.loss CircleLoss --loss.dims [8,x]": "--loss.dims must be a list of whole numbers such as "
    "[1, 2], but it is '[8,x]'",
    "--split x": "--split must be set by its options: --split.validation, --split.test, --split.seed, --split.folds, "
    "--split.fold, --split.contiguous",
    "--zebra 3": "there is no option --zebra; likewise train --help lists the options",
    "--cache_on ram": "there is no option --cache_on; did you mean --cache-on?",
    "--cache-on memory": "--cache-on must be one of 'gpu', 'ram', 'disk' or null, but it is 'memory'",
    "--print_config": "there is no option --print_config; did you mean --print-config?",
    "--seed.x 1": "there is no option --seed.x; --seed takes a single value",
    "--seed 1.5": "--seed must be a whole number, but it is '1.5'",
    "--optimizer.lrs.proxies x": "--optimizer.lrs.proxies must be a number, but it is 'x'",
    "--train.trackers tensorboard": "--train.trackers must be a list of texts such as [a, b], but it is 'tensorboard'",
    "--data.split test": "there is no option --data.split: its value is derived from other settings",
    "--model.help x": "there is no option --model.help; data, loss, loss.miner, sampler and lens.compare_with have one",
    "--seed": "--seed must be followed by a value",
    "nowhere": "there is no folder or table nowhere",
    "--loss null": "--loss must be given, such as --loss CircleLoss; `likewise losses` lists them",
    "--config nowhere.yaml": "--config: there is no file or recipe nowhere.yaml",
    "--config": "--config must be followed by the name of a file",
    "--resume": "--resume must be followed by the folder of a run",
    "--resume a --seed 3": "--resume accepts no other options than --allow and --allow-changes: the configuration is read from the run's run.yaml",
    "--resume nowhere": "nowhere must be the folder of a run, but it has no run.yaml",
    "--optimizer.lr -1": "--optimizer: lr must be a number > 0, but it is -1.0",
    "--loss.help": "--loss.help must be followed by the name of a loss",
    "--loss.help CircelLoss": "there is no loss CircelLoss; did you mean CircleLoss?",
}


def test_a_second_loss_is_given_like_the_first(here: Path):
    """By its name, in files and flags; another class keeps nothing of the one before."""
    (here / "lens.yaml").write_text(
        "lens: {every: 50, compare_with: {class_path: ContrastiveLoss, init_args: {negative_margin: 0.3}}}"
    )
    given = [*GLYPHS, "--config", "lens.yaml"]
    beside = configured(*given)["lens"]["compare_with"]
    assert beside["class_path"] == "likewise.losses.ContrastiveLoss"
    assert beside["init_args"]["negative_margin"] == 0.3
    lens = configured(*given, "--lens.compare_with", "TripletLoss", "--lens.compare_with.miner", "RandomMiner")["lens"]
    assert lens["every"] == 50
    assert lens["compare_with"]["class_path"] == "likewise.losses.TripletLoss"
    assert lens["compare_with"]["init_args"]["miner"]["class_path"] == "likewise.miners.RandomMiner"
    assert "negative_margin" not in lens["compare_with"]["init_args"]
    recorder = make_lens({"lens": lens}, CircleLoss())
    assert recorder is not None
    assert recorder.every == 50
    assert make_lens({"lens": configured(*GLYPHS)["lens"]}, CircleLoss()) is None


@loop_over("words", MISTAKES)
def test_a_mistake_is_one_sentence(words: str, capsys: pytest.CaptureFixture[str]):
    given = words.split()
    first = [] if given[0] in ("--resume", "nowhere") or "--data" in given else list(GLYPHS)
    assert main(["train", *first, *given]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"likewise: {MISTAKES[words]}\n"
    assert captured.out == ""


IN_FILES = {
    "data: Glyphs\nmodle: {trunk: convnet}": "there is no option --modle.trunk; did you mean --model.trunk?",
    "data: Glyphs\nmodel: {trnk: convnet}": "there is no option --model.trnk; did you mean --model.trunk?",
    "data: {class_path: Glyphs, init_args: {sise: 8}}": "there is no option --data.sise; did you mean --data.size?",
    "data: {class_path: Glyphs, size: 8}": "data must have only the keys class_path and init_args, but it has size: "
    "write it under init_args",
    "data: {clas_path: Glyphs}": "data must have only the keys class_path and init_args, but it has clas_path; "
    "did you mean class_path?",
    "data: Glyphs\nloss: {class_path: CircelLoss}": "there is no loss CircelLoss; did you mean CircleLoss?",
    "data: Glyphs\nplan: {precision: no}": "--train.precision must be one of 'no', 'bf16', 'fp16', but it is False "
    "(YAML reads an unquoted no as false: write 'no')",
    "data: Glyphs\noptimizer: {lr: fast}": "--optimizer.lr must be a number, but it is 'fast'",
    "data: Glyphs\nseed: true": "--seed must be a whole number, but it is True",
    "data: Glyphs\nmodel:": "--model must be set by its options: --model.trunk, --model.weights, --model.dim, "
    "--model.pool, --model.head, --model.normalize, --model.freeze_bn, --model.layer_norm, --model.freeze, --model.in_channels, --model.text",
    "data: Glyphs\ncache-on: ram": "cache-on must be written cache_on in files and in Python",
    "- data": "bad.yaml must be a mapping with keys such as data, model and loss, but it is a list",
    "seed: 1": "--data must be given, such as --data ImageFolder --data.root photos; `likewise datasets` lists them",
}


@pytest.mark.parametrize("text", IN_FILES)
def test_a_mistake_in_a_file_is_one_sentence(text: str, here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "bad.yaml").write_text(text)
    assert main(["train", "--config", "bad.yaml"]) == 2
    assert capsys.readouterr().err == f"likewise: {IN_FILES[text]}\n"


def test_a_file_that_is_no_yaml(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "bad.yaml").write_text("data: [Glyphs")
    assert main(["train", "--config", "bad.yaml"]) == 2
    assert capsys.readouterr().err.startswith("likewise: bad.yaml must be YAML, but it is not: ")


def test_arguments_of_a_loss_that_can_do_without_them_stay_options():
    assert (
        configured(*GLYPHS, "--loss", "MarginLoss", "--loss.num_classes", "9")["loss"]["init_args"]["num_classes"] == 9
    )
    with pytest.raises(UserError, match=r"there is no option --loss\.loss\.num_classes"):
        configured(
            *GLYPHS, "--loss", "DirectionRegularized", "--loss.loss", "ProxyNCALoss", "--loss.loss.num_classes", "9"
        )


def test_help_of_a_command_is_readable(capsys: pytest.CaptureFixture[str]):
    assert main(["train", "--help"]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) < 200
    assert max(map(len, text.splitlines())) <= 80
    for option in (
        "--data",
        "--loss",
        "--model.trunk",
        "--optimizer.lr",
        "--train.epochs",
        "--split.test",
        "--cache-on",
    ):
        assert f"  {option} " in text
    assert "known subclasses" not in text


def test_help_of_a_class_shows_its_options(capsys: pytest.CaptureFixture[str]):
    assert main(["train", "--loss.help", "MultiSimilarityLoss"]) == 0
    text = capsys.readouterr().out
    assert "--loss.alpha" in text
    assert "steepness on positives (2)" in text
    assert main(["train", "--loss.help", "ProxyAnchorLoss"]) == 0
    assert "num_classes" not in capsys.readouterr().out


def test_numbers_are_decimal():
    """YAML 1.1 reads 010 as 8; an empty text is not null."""
    config = configured("--data", "Glyphs", "--seed", "010", "--optimizer.lr", "1e-3", "--model.weights=")
    assert (config["seed"], config["optimizer"]["lr"], config["model"]["weights"]) == (10, 1e-3, "")
