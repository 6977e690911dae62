"""The one table of names, walked whole: everything that can be asked for by name can be made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from tools.write_catalog import collect

from likewise.app import build
from likewise.app.configuration import parse_request
from likewise.app.errors import UserError
from likewise.app.layers import allowed_by, read_request
from likewise.app.objects import KINDS, import_class, make, resolve
from likewise.cli.catalog import FILE, entries
from likewise.data import MiningSampler
from likewise.testing import loop_over
from likewise.trunks import TRUNKS, Embedder

MORE = {
    "DirectionRegularized": ["--loss.loss", "ProxyNCALoss"],
    "Cascade": ["--loss.loss", "ContrastiveLoss", "--loss.dims", "[4, 4]", "--loss.shares", "[0.5]"],
    "Fusion": ["--loss.loss", "ContrastiveLoss", "--loss.other", "ProxyAnchorLoss", "--loss.other.margin", "0.2"],
    "LanguageGuidance": ["--loss.loss", "ContrastiveLoss"],
    "Matryoshka": ["--loss.loss", "ContrastiveLoss", "--loss.dims", "[4, 8]"],
    "ProxySynthesis": ["--loss.loss", "NormalizedSoftmaxLoss"],
}
ROOTED = {"ImageTable": ["--data.path", "table.csv"], "PairTable": ["--data.path", "nowhere.csv"], "Glyphs": []}


class _Data:
    """What a loss is told of the data."""

    class_names = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def model() -> Embedder:
    """The default network, which takes longer to make than a loss."""
    return build.make_model({**parse_request(read_request(["--data", "Glyphs"]))["model"], "dim": 8})


@pytest.mark.parametrize("name", KINDS["loss"].names())
def test_every_loss_can_be_made_and_trained(name: str, model: Embedder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build, "class_embeddings", lambda names, *_, **options: torch.eye(len(names)))
    config = parse_request(read_request(["--data", "Glyphs", "--loss", name, *MORE.get(name, [])]))
    loss = build.make_loss(config, _Data(), model)
    assert type(loss).__name__ == name
    torch.manual_seed(0)
    embeddings = torch.randn(12, 8, requires_grad=True)
    value = loss(embeddings, torch.arange(12) // 3)
    value.backward()
    assert torch.isfinite(value)
    assert embeddings.grad is not None
    assert torch.isfinite(embeddings.grad).all()


@loop_over("name", KINDS["miner"].names())
def test_every_miner_can_be_made(name: str):
    config = parse_request(read_request(["--data", "Glyphs", "--loss.miner", name]))
    loss = make(KINDS["loss"], config["loss"], {})
    assert type(loss.miner).__name__ == name
    assert torch.isfinite(loss(torch.randn(8, 4), torch.arange(8) // 2))


@loop_over("name", KINDS["sampler"].names())
def test_every_sampler_can_be_made(name: str):
    sizes = {
        "RandomBatchSampler": ["--sampler.batch_size", "4"],
        "HardPairSampler": ["--sampler.batch_size", "8", "--sampler.pairs", "2"],
        "SmartMiningSampler": ["--sampler.batch_size", "6", "--sampler.anchors", "2"],
        "MagnetSampler": ["--sampler.clusters", "4"],
        "SemiSupervisedSampler": ["--sampler.classes", "4", "--sampler.clusters", "5"],
    }.get(name, ["--sampler.classes", "4"])
    config = parse_request(read_request(["--data", "Glyphs", "--sampler", name, *sizes]))
    labels = torch.arange(24) // 3
    values = {"labels": labels, "categories": labels // 4, "seed": 3, "rank": 0, "world_size": 1}
    sampler = make(KINDS["sampler"], config["sampler"], values)
    assert sampler.seed == 3
    if isinstance(sampler, MiningSampler):
        sampler.update(torch.randn(24, 4))
    assert len(next(iter(sampler))) >= 4


@loop_over("name", KINDS["data"].names())
def test_every_data_set_can_be_asked_for(name: str):
    flags = ROOTED.get(name, ["--data.root", "nowhere"])
    config = parse_request(read_request(["--data", name, *flags]))
    assert config["data"]["class_path"] == f"likewise.data.{name}"
    if name != "Glyphs":
        with pytest.raises(UserError, match="the data set: "):
            build.read_parts(config["data"], config["split"])


def test_the_catalog_is_up_to_date():
    """Listings read a table that `make catalog` writes; it has what the library has."""
    assert FILE.read_text(encoding="utf-8") == collect(), "run `make catalog`"
    assert set(entries("trunk")) == set(TRUNKS)


def test_left_out_names_exist():
    """A name that was mistyped or has gone would leave nothing out."""
    for kind in KINDS.values():
        for name in kind.left_out:
            assert import_class(f"{kind.room}.{name}")
            with pytest.raises(UserError, match="only in Python"):
                resolve(kind, name)
            with pytest.raises(UserError, match="only in Python"):
                resolve(kind, f"{kind.room}.{name}")


def test_a_class_of_ones_own_in_the_current_folder(here: Path):
    (here / "mine_own.py").write_text(
        "from torch import nn\n"
        "class Pull(nn.Module):\n"
        "    def __init__(self, num_classes: int, strength: float = 1.0):\n"
        "        super().__init__()\n"
        "        self.classes, self.strength = num_classes, strength\n"
        "    def forward(self, embeddings, labels):\n"
        "        return self.strength * embeddings.square().mean()\n"
        "def pull(embeddings, labels): ...\n"
    )
    words = ["--data", "Glyphs", "--loss", "mine_own.Pull", "--loss.strength", "3"]
    config = parse_request(read_request(words), allowed_by(words))
    assert config["loss"] == {"class_path": "mine_own.Pull", "init_args": {"strength": 3.0}}
    loss = make(KINDS["loss"], config["loss"], {"num_classes": 5, "embedding_dim": 8})
    assert (loss.classes, loss.strength) == (5, 3.0)
    for wrong, sentence in {
        "mine_own.Pul": "mine_own has no Pul; did you mean Pull?",
        "mine_own.pull": "mine_own.pull must be a class derived from torch.nn.Module, but it is a function",
        "not_mine.Pull": "the loss not_mine.Pull: No module named 'not_mine'",
        "likewise.data.Glyphs": "likewise.data.Glyphs must be a class derived from torch.nn.Module, "
        "but it is the class Glyphs",
    }.items():
        with pytest.raises(UserError) as mistake:
            parse_request(read_request(["--data", "Glyphs", "--loss", wrong]), [wrong])
        assert str(mistake.value) == sentence
    sys.modules.pop("mine_own")


def test_a_class_whose_options_cannot_be_known_is_left_to_the_parser(here: Path):
    """Arguments without hints take what YAML reads; what only jsonargparse refuses is one sentence, too."""
    (here / "mine_loose.py").write_text(
        "from torch import nn\n"
        "class Loose(nn.Module):\n"
        "    def __init__(self, weights=None, when: 'Tomorrow' = None, **more):\n"
        "        super().__init__()\n"
    )
    asked = ["--data", "Glyphs", "--loss", "mine_loose.Loose"]
    config = parse_request(read_request([*asked, "--loss.weights", "[1, 2]", "--loss.when", "3"]), ["mine_loose"])
    assert config["loss"]["init_args"] == {"weights": [1, 2], "when": 3}
    with pytest.raises(UserError, match=r"^the configuration is not valid: [^\n]*zebra[^\n]*$"):
        parse_request(read_request([*asked, "--loss.zebra", "3"]), ["mine_loose"])
    sys.modules.pop("mine_loose")
