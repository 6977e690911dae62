"""Images to vectors: folders and tables, whole and broken, in one go or after a kill."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.app import embedding
from likewise.app.errors import UserError
from likewise.cli import embed, main
from likewise.search.embedding import Embedding
from likewise.trunks import Embedder
from tests.cli.conftest import draw


def content(file: str = "e.npz") -> dict[str, Any]:
    with np.load(file, allow_pickle=False) as found:
        return {name: found[name] for name in found}


def expected(model: Path, files: list[Path]) -> np.ndarray:
    """Embeddings by hand: the recipe glyphs shows the whole image at 32 px, gray, from −1 to 1."""
    embedder = Embedder.load(model / "best.safetensors")
    made = []
    for file in files:
        image = Image.open(file).convert("RGB").resize((32, 32), Image.Resampling.BILINEAR).convert("L")
        pixels = torch.from_numpy(np.asarray(image).copy())[None, None]
        assert embedder.preprocessing is not None
        with torch.inference_mode():
            made.append(embedder(embedder.preprocessing(pixels)).numpy()[0])
    return np.stack(made)


def test_a_folder_of_classes(run: Path):
    assert main(["embed", "run", "photos", "-o", "e.npz"]) == 0
    found = content()
    files = sorted(Path("photos").rglob("*.png"))
    assert found["paths"].tolist() == [str(file.relative_to("photos")) for file in files]
    assert found["embeddings"].dtype == np.float32
    assert found["class_names"].tolist() == [f"c{number:02d}" for number in range(12)]
    assert found["labels"].tolist() == [int(file.parent.name[1:]) for file in files]
    assert str(found["model_sha256"]) == hashlib.sha256((run / "best.safetensors").read_bytes()).hexdigest()
    assert json.loads(str(found["card"]))["dim"] == 8
    by_hand = expected(run, files)
    assert (found["embeddings"] * by_hand).sum(axis=1).min() > 0.999  # rounding to bytes once more or less
    assert sorted(each.name for each in Path().iterdir()) == ["e.npz", "photos", "quick.yaml", "run"]


def test_a_flat_folder_and_a_mixed_one(run: Path, here: Path):
    flat = here / "flat"
    flat.mkdir()
    for number in range(3):
        shutil.copy(f"photos/c00/{number}.png", flat / f"{number}.PNG")
    assert main(["embed", "run", "flat", "-o", "e.npz"]) == 0
    assert content()["paths"].tolist() == ["0.PNG", "1.PNG", "2.PNG"]
    assert "labels" not in content()
    shutil.copytree("photos/c01", flat / "c01")
    assert main(["embed", "run", "flat", "-o", "e.npz", "--overwrite"]) == 0
    assert content()["labels"].tolist() == [-1, -1, -1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_a_table_with_and_without_classes(kind: str, run: Path, here: Path):
    rows = [(f"photos/c{number:02d}/0.png", f"kind {number % 2}") for number in range(4)]
    if kind == "parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"path": [x for x, _ in rows], "label": [y for _, y in rows]}), "t.parquet")
    else:
        mark = "," if kind == "csv" else "\t"
        (here / f"t.{kind}").write_text("\n".join(mark.join(row) for row in [("path", "label"), *rows]))
    assert main(["embed", "run", f"t.{kind}", "-o", "e.npz"]) == 0
    assert content()["labels"].tolist() == [0, 1, 0, 1]
    assert content()["class_names"].tolist() == ["kind 0", "kind 1"]
    more = ["--label-column", "nothing", "--half", "--overwrite"]
    assert main(["embed", "run", f"t.{kind}", "-o", "e.npz", *more]) == 0
    assert "labels" not in content()
    assert content()["embeddings"].dtype == np.float16


def test_broken_images_are_left_out_and_named(run: Path, here: Path, capsys: pytest.CaptureFixture[str]):
    shutil.copytree("photos/c00", here / "some")
    (here / "some" / "bad.png").write_bytes(b"")
    (here / "t.csv").write_text("path\nsome/0.png\nsome/gone.png\n")
    assert main(["embed", "run", "some", "-o", "e.npz"]) == 0
    captured = capsys.readouterr()
    told = ["left out: some/bad.png: the file is empty", "next: likewise index --vectors e.npz run -o e.index"]
    assert captured.err.splitlines() == told
    assert captured.out.endswith("e.npz: 6 embeddings; 1 of 7 images cannot be read\n")
    assert content()["broken_paths"].tolist() == ["bad.png"]
    assert content()["broken_reasons"].tolist() == ["the file is empty"]
    assert main(["embed", "run", "t.csv", "-o", "t.npz"]) == 0
    assert content("t.npz")["broken_reasons"].tolist() == ["there is no such file"]


def test_nothing_but_broken_images_is_a_failure(run: Path, here: Path):
    (here / "some").mkdir()
    (here / "some" / "bad.png").write_bytes(b"x")
    assert main(["embed", "run", "some", "-o", "e.npz"]) == 1
    assert content()["embeddings"].shape == (0, 8)


def test_stopped_anywhere_it_goes_on_and_embeds_nothing_twice(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(embedding, "CHUNK", 10)
    assert main(["embed", "run", "photos", "-o", "whole.npz", "--batch", "10"]) == 0
    real, seen = Embedding._embed, []

    def fails(self: Any, images: list[Any]) -> Any:
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(len(images))
        return real(self, images)

    monkeypatch.setattr(Embedding, "_embed", fails)
    assert main(["embed", "run", "photos", "-o", "e.npz", "--batch", "10"]) == 130
    assert capsys.readouterr().err.endswith("stopped; run the same command again to continue\n")
    assert not Path("e.npz").exists()
    assert len(list(Path("e.npz.chunks").glob("*.npz"))) == 3
    monkeypatch.setattr(Embedding, "_embed", lambda self, images: seen.append(len(images)) or real(self, images))
    assert main(["embed", "run", "photos", "-o", "e.npz", "--batch", "10"]) == 0
    assert "note: continuing after 3 chunks of 10 images" in capsys.readouterr().err
    assert sum(seen) == 72
    assert not Path("e.npz.chunks").exists()
    assert all(np.array_equal(content()[name], each) for name, each in content("whole.npz").items())


def test_parts_of_something_else_are_not_mixed_in(run: Path, here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(embedding, "CHUNK", 10)
    monkeypatch.setattr(Embedding, "_embed", lambda self, images: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["embed", "run", "photos", "-o", "e.npz"]) == 130
    draw(here / "others", classes=2)
    monkeypatch.undo()
    monkeypatch.chdir(here)
    for words in (["run", "others"], ["run/model.safetensors", "photos", "--transform", "thesis"]):
        with pytest.raises(UserError, match=r"e\.npz\.chunks contains chunks of another model or other images"):
            embed.run([*words, "-o", "e.npz"])


def test_batches_become_smaller_when_memory_runs_out(run: Path, monkeypatch: pytest.MonkeyPatch):
    real, sizes = Embedding._embed, []

    def small(self: Any, images: list[Any]) -> Any:
        sizes.append(len(images))
        if len(images) > 7:
            raise torch.OutOfMemoryError("no memory")
        return real(self, images)

    monkeypatch.setattr(Embedding, "_embed", small)
    assert main(["embed", "run", "photos", "-o", "e.npz", "--batch", "32"]) == 0
    assert len(content()["embeddings"]) == 72
    assert sizes[:4] == [32, 16, 8, 4]


def test_a_model_on_its_own_is_shown_what_its_card_says(run: Path, here: Path, capsys: pytest.CaptureFixture[str]):
    shutil.copy(run / "best.safetensors", here / "alone.safetensors")
    assert main(["embed", "alone.safetensors", "photos", "-o", "e.npz"]) == 0
    assert "shorter side 37 px, center crop of 32 px, from the model's card" in capsys.readouterr().out
    assert main(["embed", "alone.safetensors", "photos", "-o", "g.npz", "--transform", "glyphs"]) == 0
    assert main(["embed", "run", "photos", "-o", "r.npz"]) == 0
    assert np.array_equal(content("g.npz")["embeddings"], content("r.npz")["embeddings"])
    assert not np.array_equal(content("e.npz")["embeddings"], content("r.npz")["embeddings"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere", "photos", "-o", "e.npz"], "there is no model nowhere: give a file that ends in .safetensors"),
        (["run", "nowhere", "-o", "e.npz"], "there is no folder or table nowhere"),
        (["run", "photos", "-o", "e.txt"], "--out must be a file that ends in .npz, but it is e.txt"),
        (["run", "photos"], "the following arguments are required: -o/--out"),
        (["run", "run", "-o", "e.npz"], "run must contain images (.avif "),
        (["run", "quick.yaml", "-o", "e.npz"], "quick.yaml must be a folder, or a table (.csv, .tsv, .parquet)"),
        (
            ["run", "bad.csv", "-o", "e.npz"],
            "bad.csv must have a column path, but it has paht; set --path-column",
        ),
        (["quick.yaml", "photos", "-o", "e.npz"], "the model quick.yaml: quick.yaml must be a safetensors file"),
    ],
)
def test_mistakes(run: Path, here: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]):
    (here / "bad.csv").write_text("paht\na.png\n")
    assert main(["embed", *words]) == 2
    assert capsys.readouterr().err.startswith(f"likewise: {sentence}")


def test_a_file_that_is_there_is_not_overwritten(run: Path, here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "e.npz").write_bytes(b"precious")
    assert main(["embed", "run", "photos", "-o", "e.npz"]) == 2
    assert capsys.readouterr().err == "likewise: e.npz already exists; --overwrite replaces it\n"
    assert (here / "e.npz").read_bytes() == b"precious"


@pytest.mark.slow
def test_killed_for_good_it_goes_on(run: Path, here: Path):
    """SIGKILL while parts are being written: what is there is whole, and the rest is made."""
    program = (
        "import sys, time\n"
        "from likewise.app import embedding\n"
        "from likewise.cli import embed\n"
        "from likewise.search.embedding import Embedding\n"
        "embedding.CHUNK = 4\n"
        "real = Embedding._embed\n"
        "Embedding._embed = lambda self, images: (time.sleep(0.05), real(self, images))[1]\n"
        "sys.exit(embed.run(['run', 'photos', '-o', 'e.npz', '--batch', '4']))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(here.glob("e.npz.chunks/*.npz"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (here / "e.npz").exists()
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
    assert main(["embed", "run", "photos", "-o", "whole.npz", "--batch", "4"]) == 0
    assert np.array_equal(content()["embeddings"], content("whole.npz")["embeddings"])
    assert not list(here.glob("*.chunks"))


def test_parts_are_embedded_in_other_processes_and_resumed(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The same file as in one process; a part that is there already is not embedded again."""
    monkeypatch.setattr("likewise.app.embedding.CHUNK", 16)
    assert main(["embed", "run", "photos", "-o", "one.npz"]) == 0
    assert main(["embed", "run", "photos", "-o", "several.npz", "--workers", "2"]) == 0
    one, several = content("one.npz"), content("several.npz")
    assert one.keys() == several.keys()
    for name, value in one.items():
        if name == "embeddings":
            np.testing.assert_allclose(several[name], value, atol=1e-5)
        else:
            assert np.array_equal(several[name], value), name
    assert not Path("several.npz.chunks").exists()
    capsys.readouterr()
    assert main(["embed", "run", "photos", "-o", "e.npz", "--on", "local"]) == 2
    assert "--on: address must be auto or host:port, but it is 'local'" in capsys.readouterr().err
    assert main(["embed", "run", "photos", "-o", "e.npz", "--workers", "0"]) == 2
    assert "--workers must be a whole number ≥ 1, but it is 0" in capsys.readouterr().err
