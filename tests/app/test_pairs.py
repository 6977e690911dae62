"""Two encoders from one command: train, evaluate, index one side and search it with the other."""

from __future__ import annotations

import warnings

import pytest
import torch

from likewise import app
from likewise.cli import main
from tests.two_sides import write_squares

CPU = app.Machine(torch.device("cpu"))

SETTINGS = {
    "data": "PairTable",
    "model.trunk": "convnet",
    "model.in_channels": 3,
    "model.text": "ngrams",
    "model.dim": 16,
    "transform": "glyphs",
    "sampler.classes": 8,
    "sampler.steps": 6,
    "train.epochs": 2,
    "optimizer.lr": 3e-3,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    config = app.configure({**SETTINGS, "data.path": str(write_squares(folder)), "cache": str(folder / "cache")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", app.Note)
        return app.train(config, folder / "run", machine=CPU)


def test_the_run_is_evaluated_both_ways(run):
    found = app.evaluate(run, test="a test", machine=CPU)
    directions = ("image to text", "text to image")
    assert [part.name for part in found.parts] == [
        f"{part}, {way}" for part in ("validation", "test") for way in directions
    ]
    recorded = run.evaluations()[-1]["metrics"]
    both = [found.scores[f"test, {way}"]["R@1"].mean for way in directions]
    assert recorded["R@1"] == pytest.approx(sum(both) / 2)
    assert [recorded[f"R@1 {way}"] for way in directions] == both
    texts = found.parts[-1]
    assert len(texts.queries) == 4, "a fifth of 18 classes, one text each"
    assert len(texts.references) == 8
    assert "test, text to image" in found.report.read_text()


def test_an_index_of_images_is_searched_with_words(run, tmp_path, capsys):
    squares, index = run.folder.parent, tmp_path / "squares.index"
    assert main(["index", str(run.folder), str(squares), "-o", str(index)]) == 0
    assert (
        main(["search", str(index), "--text", "a bright yellow square", "-k", "6", "--sheet", str(tmp_path / "a.png")])
        == 0
    )
    printed = capsys.readouterr().out
    assert "yellow" in printed
    [words] = app.search(index, texts=["a bright yellow square"], k=36).answers
    model = app.open_index(index).text_encoder()
    [direct] = app.open_index(index).search(model.embed(["a bright yellow square"]), 36).scores.tolist()
    assert [match.score for match in words.matches] == pytest.approx(direct)
    with pytest.raises(app.UserError, match="--text must be a text"):
        app.search(index, texts=[" "])
    with pytest.raises(app.UserError, match="one of QUERY pictures, --text TEXT and --item ID"):
        app.search(index, texts=["a"], item=0)


def test_an_index_of_texts_is_searched_with_images(run, tmp_path):
    table, index = tmp_path / "texts.csv", tmp_path / "texts.index"
    table.write_text(
        "text,label,year\na dark blue square,blue,2001\na bright red square,red,2002\na dark blue square,b,3"
    )
    assert main(["index", "--texts", str(run.folder), str(table), "-o", str(index)]) == 0
    opened = app.open_index(index)
    assert opened.column("path") == ["a dark blue square", "a bright red square"]
    assert opened.column("label") == ["b", "red"]
    assert opened.column("year") == [3, 2002]
    [answer] = app.search(index, run.folder.parent / "dark-blue-0.png", k=2).answers
    assert {match.item.path for match in answer.matches} == {"a dark blue square", "a bright red square"}


def test_what_cannot_be_is_one_sentence(run, tmp_path):
    path = {"data.path": str(run.folder.parent / "squares.csv")}
    for more, message in (
        ({"loss": "ProxyAnchorLoss"}, "loss must take references, .* but ProxyAnchorLoss takes none"),
        ({"memory.size": 64}, "--memory cannot be used with pairs"),
        ({"lens.every": 5}, "--lens.every cannot be used with pairs"),
        (
            {"sampler": "HardBatchSampler", "sampler.classes": 4},
            "--sampler must be a sampler without mining for a table of pairs",
        ),
        ({"model.text": "bert"}, "--model.text: name must be one of 'minilm', 'ngrams', but it is 'bert'"),
    ):
        chosen = {key: value for key, value in SETTINGS.items() if key.partition(".")[0] != next(iter(more))}
        config = app.configure({**chosen, **path, "cache": str(run.folder.parent / "cache"), **more})
        with pytest.raises(app.UserError, match=message):
            app.train(config, tmp_path / "run", machine=CPU)
    with pytest.raises(app.UserError, match=r"--model\.text must be given together with --data PairTable"):
        app.train(app.configure({"data": "Glyphs", "model.text": "ngrams"}), tmp_path / "run", machine=CPU)
    with pytest.raises(app.UserError, match="it has pairs: image and text"):
        app.classify(run.folder, run.folder.parent / "dark-blue-0.png")
    with pytest.raises(app.UserError, match="because its data are pairs"):
        app.calibrate(run.folder)
    with pytest.warns(app.Note, match="two encoders: only the image encoder is exported"):
        app.export(run.folder, tmp_path / "hub", formats=["hub"])


def test_texts_and_texts_with_frozen_trunks(tmp_path):
    rows = [
        f"a {color} {thing},the {thing} is {color}" for color in ("red", "blue", "white") for thing in ("bird", "car")
    ]
    (tmp_path / "qa.csv").write_text("\n".join(["text,text", *rows]))
    chosen = {**SETTINGS, "data.path": str(tmp_path / "qa.csv"), "model.freeze": "trunk", "split.test": 0.0}
    run = app.train(app.configure({**chosen, "sampler.classes": 4}), tmp_path / "run", machine=CPU)
    assert run.finished
    (tmp_path / "answers.csv").write_text("text\nthe bird is red\nthe car is blue")
    result = app.index_texts(run.folder, tmp_path / "answers.csv", tmp_path / "answers.index")
    assert result.added == 2
    assert len(app.search(result.index, texts=["a blue car"], k=2).answers[0].matches) == 2
    with pytest.raises(app.UserError, match="both of its sides embed texts"):
        app.index_folder(run.folder, write_squares(tmp_path, images=1).parent, tmp_path / "b.index")
