"""Every command on every hostile artifact that it reads: one sentence, and nothing of it is executed."""

from __future__ import annotations

import hashlib
import json
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import save_file

from likewise.checksums import checksums
from likewise.cli import COMMANDS
from likewise.protocols import Study, Trial
from likewise.search import Encoder, Index
from likewise.train import Run
from likewise.trunks import Embedder
from likewise.trunks.adapters import TimmTrunk, TransformersTrunk
from tests.security.conftest import Answers
from tests.security.test_files import Payload
from tests.security.test_names import recipe

NAMES: dict[str, list[str]] = {
    "doctor": ["run", "pickled", "cut.index", "bad.safetensors", "pickle.safetensors", "deep.index"],
    "init": ["photos --data evil.Data"],
    "train": ["--config recipe.yaml", "--resume run", "--resume pickled", "photos --config recipe.yaml"],
    "evaluate": ["run", "run --test", "bad.safetensors --table table.csv"],
    "embed": [
        f"{model} photos -o a.npz" for model in ("run", "pickled", "bad.safetensors", "pickle.safetensors", "hub")
    ],
    "index": [
        f"{model} photos -o b.index" for model in ("run", "pickled", "bad.safetensors", "pickle.safetensors", "hub")
    ],
    "search": ["cut.index photos/0.png", "model.index photos/0.png", "deep.index --item 0", "objects.index --item 0"],
    "classify": ["model.index photos/0.png", "run photos", "bad.safetensors photos --examples photos"],
    "serve": ["cut.index", "model.index", "deep.index", "bad.safetensors"],
    "verify": ["bad.safetensors photos/0.png photos/1.png", "run photos/0.png photos/1.png"],
    "calibrate": ["bad.safetensors photos", "run"],
    "export": ["bad.safetensors -o out", "pickle.safetensors -o out", "run -o out", "hub -o out"],
    "report": ["run", "pickled"],
    "compare": ["study a b", "run pickled a b", "broken a b"],
    "tune": ["--config recipe.yaml"],
    "repeat": ["--config recipe.yaml"],
    "tournament": ["study.yaml"],
    "leaderboard": ["study", "run", "broken"],
    "study": ["run study --workers 1", "pack study out", "merge study broken", "export broken", "run broken"],
}
"""By command, what it opens."""

WITHOUT = {"demo", "lens", "losses", "trunks", "datasets", "recipes"}
"""Commands that open nothing of another person's."""


def write_model(file: str, **changes: Any) -> None:
    """A model whose card says something else, with checksums that are right."""
    model = Embedder("convnet", 4)
    text = json.dumps({**json.loads(model.card().to_json()), **changes})
    tensors = {name: each.contiguous() for name, each in model.state_dict().items()}
    save_file(tensors, file, metadata={"likewise": text, **checksums(tensors, text)})


def change_index(folder: Path, name: str, content: bytes, **card: Any) -> None:
    """Replace a file of an index, with a card that says that this is right."""
    version = sorted(folder.glob("version-*"))[-1]
    (version / name).unlink(missing_ok=True)  # versions share files
    (version / name).write_bytes(content)
    tree = json.loads((version / "card.json").read_text())
    tree["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (version / "card.json").write_text(json.dumps(tree | card))


def make_index(name: str) -> Path:
    made = Index.create(name, dim=4, model=Encoder(Embedder("convnet", 4), transform="glyphs"))
    made.add(np.eye(4), ["0.png", "1.png", "2.png", "3.png"], labels=["a", "a", "b", "b"])
    return Path(name)


@pytest.fixture
def hostile(here: Path) -> Path:
    """A folder with an artifact of every kind: a recipe, runs, models, indexes, studies and an exported model."""
    (here / "photos").mkdir()
    for number in range(2):
        Image.new("RGB", (8, 8)).save(here / "photos" / f"{number}.png")
    (here / "table.csv").write_text("path,label\nphotos/0.png,a\nphotos/1.png,a\n")
    (here / "recipe.yaml").write_text(yaml.safe_dump(recipe("nested")))
    (here / "study.yaml").write_text(yaml.safe_dump({"name": "a", "methods": {"a": recipe("nested")}}))
    write_model("bad.safetensors", trunk={"name": "evil.Loss", "in_channels": 1})
    torch.save({"a": Payload()}, "pickle.safetensors")
    for name, model in (("run", "bad"), ("pickled", "pickle"), ("hub", "bad")):
        Run.create(name, {"config": recipe("nested") | recipe("data"), "allowed": ["evil", "subprocess", "torch"]})
        (here / name / "best.safetensors").write_bytes((here / f"{model}.safetensors").read_bytes())
    (here / "pickled" / "last.safetensors").write_bytes(pickle.dumps(Payload()))
    (here / "hub" / "run.yaml").rename(here / "hub" / "config.json")
    (here / "hub" / "modeling.py").write_text("import evil")
    for name in ("model", "cut", "deep", "objects"):
        make_index(f"{name}.index")
    change_index(here / "model.index", "model.safetensors", (here / "bad.safetensors").read_bytes())
    change_index(here / "objects.index", "vectors.npy", pickle.dumps(Payload()))
    change_index(here / "cut.index", "items.arrow", b"ARROW1\0\0" + bytes(100))
    (sorted((here / "deep.index").glob("version-*"))[-1] / "card.json").write_text("[" * 100_000)
    Study(here / "study" / "study.db").add([Trial("a", recipe("nested"))])
    Study(here / "broken" / "study.db").add([Trial("a", {})])
    with sqlite3.connect(here / "broken" / "study.db") as db:
        db.execute("UPDATE trials SET trial = ?", ("[" * 100_000,))
    return here


@pytest.mark.parametrize("command", NAMES)
def test_a_command_executes_nothing_that_it_opens(
    command: str, hostile: Path, answer: Answers, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)  # it would wait for requests
    for words in NAMES[command]:
        code, err = answer(command, *words.split())
        assert code in (0, 1, 2), words
        assert "Traceback" not in err


def test_no_command_is_left_out():
    assert NAMES.keys() | WITHOUT == set(COMMANDS)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"dim": 10**12}, "dim of the card must fit"),
        ({"trunk": {"name": "convnet", "in_channels": 10**9}}, "in_channels must be 1 or 3"),
        ({"trunk": {"name": "mlp", "in_channels": 1, "in_features": 10**9}}, "in_features of the card"),
        ({"format": None}, "the card must have a format"),
        ({"classes": 5}, "its card cannot be read"),
        ({"preprocessing": {"mean": [0.5], "std": [0.5], "order": "L", "size": 10**6}}, "size must be a whole number"),
    ],
    ids=["dim", "channels", "features", "format", "classes", "size of images"],
)
def test_a_card_asks_for_no_memory(changes: dict[str, Any], problem: str, here: Path):
    write_model("a.safetensors", **changes)
    with pytest.raises(ValueError, match=problem):
        Embedder.load("a.safetensors")


def test_headers_that_nest_without_end(here: Path):
    deep = b"[" * 100_000
    (here / "a.safetensors").write_bytes(len(deep).to_bytes(8, "little") + deep)
    write_model("b.safetensors")
    state = Embedder("convnet", 4).state_dict()
    save_file({name: each.contiguous() for name, each in state.items()}, "b.safetensors", {"likewise": deep.decode()})
    for name in ("a", "b"):
        with pytest.raises(ValueError, match="must be a"):
            Embedder.load(f"{name}.safetensors")


def test_a_model_of_another_package_brings_no_code(monkeypatch: pytest.MonkeyPatch):
    """A configuration names neither a module, nor a kernel on the hub, nor a folder of pickles."""
    with pytest.raises(ValueError, match="a folder"):
        TimmTrunk("local-dir:photos", pretrained=True, in_channels=3)
    transformers = pytest.importorskip("transformers")
    asked: list[Any] = []

    def record(config: Any, **options: Any) -> None:
        asked.append((config, options))
        raise ValueError("recorded")

    monkeypatch.setattr(transformers.AutoModel, "from_config", record)
    card = {"model_type": "vit", "auto_map": {"AutoModel": "evil.Loss"}, "_attn_implementation": "evil/kernel"}
    with pytest.raises(ValueError, match="recorded"):
        TransformersTrunk("x", pretrained=False, in_channels=3, config=card | {"likewise_self_pooled": True})
    [(config, options)] = asked
    assert options["trust_remote_code"] is False
    assert config._attn_implementation is None
    assert not hasattr(config, "auto_map")


def test_the_items_of_an_index_lead_out_of_no_file(here: Path):
    """Offsets of texts are followed without a check: beyond the file they would end the process."""
    index = make_index("a.index")
    version = sorted(index.glob("version-*"))[-1]
    content = (version / "items.arrow").read_bytes()
    offsets = np.arange(5, dtype=np.int32) * 5  # four paths of five characters
    place = content.index(offsets.tobytes())
    offsets[2:4] = 2_000_000_000, 2_100_000_000
    change_index(index, "items.arrow", content[:place] + offsets.tobytes() + content[place + offsets.nbytes :])
    with pytest.raises(ValueError, match=r"items\.arrow is damaged"):
        Index.open(index)


def test_the_card_of_an_index_is_checked(here: Path, answer: Answers, capsys: pytest.CaptureFixture[str]):
    index = make_index("a.index")
    for changes in ({"files": 1}, {"model": "x"}, {"created": float("inf")}, {"rows": "4"}, {"dim": -1}):
        file = sorted(index.glob("version-*"))[-1] / "card.json"
        whole = file.read_text()
        file.write_text(json.dumps(json.loads(whole) | changes))
        with pytest.raises(ValueError, match=r"card.json cannot be read"):
            Index.open(index)
        assert answer("doctor", "a.index")[0] == 1
        file.write_text(whole)
    assert answer("doctor", "a.index")[0] == 0
