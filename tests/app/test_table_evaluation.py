"""Queries and a gallery with cameras in a table, measured with any model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image

from likewise import app
from likewise.cli import main
from likewise.data import ImageTable, cached
from likewise.metrics import reidentification
from likewise.report import measure_part
from likewise.train import Run
from likewise.trunks import Embedder, build


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Four identities seen by three cameras, twice each."""
    torch.manual_seed(0)
    Embedder(build("convnet", in_channels=3), 16).save(tmp_path / "model.safetensors")
    lines = ["path,pid,camid,role,split"]
    generator = torch.Generator().manual_seed(1)
    for person in range(4):
        for camera in range(3):
            for shot in range(2):
                noise = torch.randint(0, 90, (3,), generator=generator).tolist()
                color = tuple(40 * person + 10 * camera + each for each in noise)
                Image.new("RGB", (32, 32), color).save(tmp_path / f"{person}-{camera}-{shot}.png")
                role = "query" if shot == 0 else "gallery"
                lines.append(f"{person}-{camera}-{shot}.png,{person},c{camera},{role},test")
    (tmp_path / "people.csv").write_text("\n".join(lines))
    return tmp_path


def test_a_table_is_measured_as_re_identification(people: Path, capsys: pytest.CaptureFixture[str]):
    model, table = people / "model.safetensors", people / "people.csv"
    columns = {"label": "pid", "camera": "camid"}
    found = app.evaluate_table(model, table, split="test", columns=columns, ks=(1, 5))
    part = found.part
    assert part.is_query is not None
    assert part.cameras is not None
    sides = [(part.embeddings[rows], part.labels[rows], part.cameras[rows]) for rows in (part.is_query, ~part.is_query)]
    expected = reidentification(*sides[0], *sides[1], ks=(1, 5))
    assert found.scores["mAP"].mean == pytest.approx(expected["mAP"])
    assert [found.scores[f"R@{k}"].mean for k in (1, 5)] == pytest.approx([expected[f"Rank-{k}"] for k in (1, 5)])
    words = ["evaluate", str(model), "--table", str(table), "--label-column", "pid", "--camera-column", "camid"]
    assert main([*words, "--ks", "1", "5"]) == 0
    said = capsys.readouterr().out
    assert "24 images of 4 classes, 12 queries in a gallery of 12" in said
    assert "R@k is the rank-k accuracy of re-identification" in said
    assert main([*words, "--test"]) == 2
    assert "--table cannot be combined with --test" in capsys.readouterr().err
    assert main(["evaluate", str(model), "--split", "test"]) == 2
    assert "--split requires --table" in capsys.readouterr().err


def test_a_table_is_no_way_around_the_seal(people: Path):
    data = {"class_path": "likewise.data.ImageTable", "init_args": {"path": str(people / "people.csv")}}
    run = Run.create(people / "run", {"config": {"data": data}})
    shutil.copy(people / "model.safetensors", run.folder / "best.safetensors")
    with pytest.raises(app.UserError, match=r"people.csv holds the sealed test part of .*run --test` opens it"):
        app.evaluate_table(run.folder, people / "people.csv", columns={"label": "pid"})


def test_cameras_stay_with_their_images(people: Path):
    images = ImageTable(people / "people.csv", columns={"label": "pid", "camera": "camid"})
    assert images.cameras is not None
    assert images.cameras[:6].tolist() == [0, 0, 1, 1, 2, 2]
    store = cached(images, people / "cache", size=16, workers=0)
    some = cached(images, people / "cache", size=16, workers=0).of_classes([1])
    assert store.cameras is not None
    assert some.cameras is not None
    assert some.cameras.tolist() == [0, 0, 1, 1, 2, 2]
    (people / "bad.csv").write_text("path,label,camera\n0-0-0.png,a,1\n0-0-1.png,a,")
    with pytest.raises(ValueError, match="column 'camera': it must be a text or a whole number"):
        ImageTable(people / "bad.csv")


def test_one_camera_alone_finds_nothing():
    from likewise.report import Part

    labels = torch.tensor([0, 0, 1, 1])
    part = Part("test", torch.eye(4), labels, ["a", "b"], lambda index: None, cameras=torch.zeros(4, dtype=torch.int64))
    assert measure_part(part, seed=0) is None
