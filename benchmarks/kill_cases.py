"""The commands that `benchmarks.kills` kills: what each needs, and what it must leave."""

from __future__ import annotations

import itertools
import json
import os
import re
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from PIL import Image
from safetensors.torch import load_file

from likewise.files import atomic_write
from likewise.protocols import Study
from likewise.search import Index, check_version, is_index, list_versions
from likewise.train import Run

TIMES = ("seconds", "images_per_s")
DATA = "../fixtures/data"
SMALL = f"""--data ImageFolder --data.root {DATA} --transform glyphs --model.trunk convnet --model.dim 16
    --sampler.classes 4 --sampler.per_class 2 --optimizer.lr 0.002 --train.checkpoint_minutes 0"""
TRAIN = f"""train {SMALL} --loss ProxyAnchorLoss --memory.size 256 --train.ema 0.9
    --sampler.steps 10 --train.epochs 2 --train.log_every 2 --out run"""
TUNE = f"""tune {SMALL} --loss CircleLoss --search loss.gamma --how random --rounds 2 --sampler.steps 6
    --train.epochs 1 --out study --workers 1"""
TOURNAMENT = "tournament study.yaml --out study --workers 1"
STUDY: dict[str, Any] = {
    "name": "kills",
    "base": {
        "data": {"class_path": "ImageFolder", "init_args": {"root": DATA}},
        "transform": "glyphs",
        "model": {"trunk": "convnet", "dim": 16},
        "sampler": {"class_path": "PerClassSampler", "init_args": {"classes": 4, "per_class": 2, "steps": 6}},
        "train": {"epochs": 1, "checkpoint_minutes": 0},
    },
    "methods": {"contrastive": {"loss": "ContrastiveLoss"}, "circle": {"loss": "CircleLoss"}},
}
WRITER, ROUNDS, ROWS = "writer", 12, 2_000
"""The name of the Python program below, its rounds, and the items of a round."""


@dataclass(frozen=True)
class Case:
    """A command that is killed.

    Args:
        name: what the table calls it.
        words: the command line; ``{port}`` is a free port.
        same: whether two folders, the second disturbed, hold the same result.
        needs: the fixtures that are copied into its folder.
        again: the command line of a restart, if there is a ``run.yaml``.
        victim: who is killed: the command and its workers, or one of both.
        served: whether a server shows the index meanwhile.
        is_server: whether it ends when it answers.
        holds: what must hold after each kill.
        before: a command that runs undisturbed first, after which the pictures change.
        weight: how often it is killed: commands that take long less often than others.
    """

    name: str
    words: str
    same: Callable[[Path, Path], bool]
    needs: tuple[str, ...] = ()
    again: str | None = None
    victim: Literal["all", "driver", "worker"] = "all"
    served: bool = False
    is_server: bool = False
    holds: Callable[[Path], bool] = lambda _: True
    before: str | None = None
    weight: int = 7

    @property
    def slug(self) -> str:
        """The name of a folder."""
        return re.sub(r"\W+", "-", self.name)

    def command(self, folder: Path, port: int) -> list[str]:
        """The words of a start or of a restart."""
        words = self.again if self.again and (folder / "run" / "run.yaml").exists() else self.words
        return words.format(port=port).split()


def same_runs(one: Path, other: Path) -> bool:
    """Whether two runs have the same record, but for times, the same models, and a report."""
    records = [
        [
            {key: value for key, value in json.loads(line).items() if key not in TIMES}
            for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()
        ]
        for folder in (one, other)
    ]
    models = ("run/best.safetensors", "run/model.safetensors")
    return records[0] == records[1] and same_models(*models)(one, other) and (other / "run/report.html").exists()


def same_models(*names: str) -> Callable[[Path, Path], bool]:
    """Compare the tensors of files."""

    def compare(one: Path, other: Path) -> bool:
        pairs = [(load_file(one / name), load_file(other / name)) for name in names]
        return all(
            first.keys() == second.keys() and all(bool((first[key] == second[key]).all()) for key in first)
            for first, second in pairs
        )

    return compare


def same_files(*patterns: str) -> Callable[[Path, Path], bool]:
    """Compare the bytes of files, none of which may be half written."""

    def compare(one: Path, other: Path) -> bool:
        trees = [
            {str(file.relative_to(folder)): file.read_bytes() for each in patterns for file in folder.glob(each)}
            for folder in (one, other)
        ]
        return bool(trees[0]) and trees[0] == trees[1]

    return compare


def same_reports(one: Path, other: Path) -> bool:
    """Whether two reports are equal, but for the times at which they were written."""
    texts = [re.sub("<time.*?</time>", "", (folder / "run/report.html").read_text()) for folder in (one, other)]
    return texts[0] == texts[1]


def same_evaluations(one: Path, other: Path) -> bool:
    """Whether the test set is opened once, with the same numbers, and is in the report."""
    runs = [Run(folder / "run") for folder in (one, other)]
    tests = [[line["metrics"] for line in run.evaluations() if line["part"] == "test"][-1] for run in runs]
    return len(runs[1].openings()) == 1 and tests[0] == tests[1] and same_reports(one, other)


def same_exports(one: Path, other: Path) -> bool:
    """Whether two exports have the same files, none of them half written, and the same weights."""
    names = [sorted(str(file.relative_to(folder)) for file in (folder / "out").rglob("*")) for folder in (one, other)]
    weights = [name for name in names[0] if name.endswith((".safetensors", ".onnx", ".data"))]
    return names[0] == names[1] and bool(weights) and same_files(*weights)(one, other)


def same_embeddings(one: Path, other: Path) -> bool:
    """Whether two files of embeddings are equal."""
    with np.load(one / "a.npz") as first, np.load(other / "a.npz") as second:
        return all(np.array_equal(first[key], second[key]) for key in ("embeddings", "paths"))


def is_whole(folder: Path) -> bool:
    """Whether every version of an index has the files and checksums of its card."""
    place = folder / "photos.index"
    return not is_index(place) or not any(check_version(version) for version in list_versions(place))


def same_indexes(one: Path, other: Path) -> bool:
    """Whether two indexes have the same items, stored in the same way, and no file of the second is damaged."""
    contents = []
    for index in (Index.open(folder / "photos.index") for folder in (one, other)):
        items = [index.item(each) for each in index.ids]
        order = np.argsort([item.path for item in items])
        paths = [(items[place].path, items[place].label) for place in order]
        contents.append((paths, index.storage, index.vectors(np.asarray(index.ids)[order]).tobytes()))
    return is_whole(other) and contents[0] == contents[1]


def same_answers(one: Path, other: Path) -> bool:
    """Whether servers give the same answer, and their indexes are equal."""
    return same_files("answer.json")(one, other) and same_indexes(one, other)


def same_studies(one: Path, other: Path) -> bool:
    """Whether two tables have the same results, but for times, and each test set was opened as often."""
    return _results(one) == _results(other)


def _results(folder: Path) -> list[Any]:
    results = Study(folder / "study" / "study.db").results()
    rows = [(each.trial.key, each.status, dict(each.val), dict(each.test), each.openings) for each in results]
    return sorted(rows, key=lambda row: row[0])


def write_rounds() -> None:
    """Replace all items of an index, again and again, and acknowledge each round after its call has returned."""
    vectors, paths = np.random.default_rng(0).normal(size=(ROWS, 32)), [str(row) for row in range(ROWS)]
    index = Index.open("photos.index") if is_index(Path("photos.index")) else Index.create("photos.index", dim=32)
    last: Any = index.item(index.ids[0]).metadata["round"] if len(index) else -1
    for number in itertools.count(last + 1):
        index.add(vectors, paths, metadata={"round": [number] * ROWS}, thumbnails=[b"%d" % number] * ROWS)
        with atomic_write(Path("acknowledged")) as part:
            part.write_text(str(number))
        if number % 3 == 0:
            index.rebuild(storage=("int8", "float16")[number % 2])
        if number >= ROUNDS:
            return


def holds_rounds(folder: Path) -> bool:
    """Whether the items are of one round, the one that was acknowledged last or the next."""
    acknowledged = int((folder / "acknowledged").read_text()) if (folder / "acknowledged").exists() else -1
    if not is_index(folder / "photos.index"):
        return acknowledged == -1
    index = Index.open(folder / "photos.index")
    rounds = {*index.column("round")} if len(index) else {-1}
    return is_whole(folder) and rounds <= {acknowledged, acknowledged + 1} and len(rounds) == 1


def same_rounds(_: Path, other: Path) -> bool:
    """Whether the last round is there, whole."""
    return holds_rounds(other) and {*Index.open(other / "photos.index").column("round")} == {ROUNDS}


def ask(port: int) -> dict[str, Any]:
    """What a server says of its index."""
    answers = {}
    for path in ("about", "items?limit=100"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/{path}", timeout=10) as answer:
            answers[path] = json.load(answer)
    paths = sorted(item["path"] for item in answers["items?limit=100"]["items"])
    return {"items": answers["about"]["items"], "paths": paths}


def draw_photos(folder: Path, count: int, classes: int) -> None:
    """Draw pictures."""
    rng = np.random.default_rng(0)
    for number in range(count):
        place = folder / f"c{number % classes}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (28, 28, 3), np.uint8)).save(place / f"{number}.png")


def change_photos(folder: Path) -> None:
    """Remove some pictures, change some, and add some."""
    for place in sorted(folder.glob("*/*.png"))[:6]:
        place.unlink()
    rng = np.random.default_rng(1)
    for name in ("c0/18.png", "c1/new.png", "c2/new.png"):
        Image.fromarray(rng.integers(0, 255, (28, 28, 3), np.uint8)).save(folder / name)


def write_study(folder: Path) -> None:
    """Write the file of a study."""
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))


INDEX = "index run photos -o photos.index"
UPDATE = "index --update photos -o photos.index --prune"
CASES = (
    Case("train, train --resume", TRAIN, same_runs, again="train --resume run"),
    Case("evaluate --test", "evaluate run --test --why kills", same_evaluations, ("run",)),
    Case("report", "report run", same_reports, ("run",)),
    Case("calibrate", "calibrate run photos -o a.safetensors", same_models("a.safetensors"), ("run", "photos")),
    Case("export --format hub", "export run -o out --format hub", same_exports, ("run",)),
    Case("embed", "embed run photos -o a.npz", same_embeddings, ("run", "photos")),
    Case("index", INDEX, same_indexes, ("run", "photos"), holds=is_whole),
    Case("index --update --prune", UPDATE, same_indexes, ("run", "photos"), before=INDEX, holds=is_whole),
    Case(
        "index --update, served",
        f"{UPDATE} --storage int8",
        same_indexes,
        ("run", "photos"),
        before=INDEX,
        served=True,
        holds=is_whole,
    ),
    Case(
        "serve FOLDER",
        "serve photos --port {port}",
        same_answers,
        ("run", "photos"),
        before=INDEX,
        is_server=True,
        holds=is_whole,
    ),
    Case("Index.add, rebuild", WRITER, same_rounds, holds=holds_rounds),
    Case("study pack", "study pack study pack", same_files("pack/pack.json"), ("planned",)),
    Case("study merge", "study merge study finished", same_studies, ("planned", "finished")),
    Case("study export", "study export study", same_files("study/results.csv"), ("study",)),
    Case("export --format onnx", "export run -o out --format onnx", same_exports, ("run",), weight=1),
    Case("tune: driver", TUNE, same_studies, victim="driver", weight=1),
    Case("tune: worker", TUNE, same_studies, victim="worker", weight=1),
    Case("tournament: driver", TOURNAMENT, same_studies, ("study.yaml",), victim="driver", weight=1),
    Case("tournament: both", TOURNAMENT, same_studies, ("study.yaml",), weight=1),
)
"""Everything that writes; `repeat` and `study run` are the program of `tournament`."""


def pid_is_worker(pid: int, folder: Path) -> bool:
    """Whether a process runs trials of the study in a folder."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        here = os.readlink(f"/proc/{pid}/cwd") == str(folder.resolve())
    except OSError:  # it has ended
        return False
    return here and words[1:3] == ["-m", "likewise.protocols.worker_process"]
