"""What a start costs: commands, imports, a training up to its first step, and a report, each in fresh processes.

    python -m benchmarks.startup                  writes results/startup-cpu.json
    python -m benchmarks.startup --device cuda    the same on a GPU, with a cold and with a warm cache of kernels
    python -m benchmarks.startup --device cuda --cub FOLDER    adds a training on CUB-200-2011 to what was measured
    python -m benchmarks.startup --quick          a smoke test; prints, and writes nothing
    python -m benchmarks.startup --page           fills docs/benchmarks-training.md from what was measured

Every number is the median over fresh processes, after one that is not counted and that compiles Python's files and
decodes the images.  Two clocks: `seconds` of the wall, and `cpu`, what the process and its children computed, which other
programs on the machine change less.  On a shared machine run it on one core (`taskset -c 1`): threads that wait for each
other on a busy core spin, and that counts as computing.  "To the first step" is what a training takes before and in its first step, beyond
`import torch`: imports, configuration, data, model, the validation before training, and the step.  A cold cache is an empty
folder for the kernels of Triton and of the driver.  The report is that of 5,924 embeddings of 512 dimensions and 200
classes, the size of the test set of CUB-200-2011, with made-up photographs; its imports are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    DOCS,
    RESULTS,
    cores,
    fill,
    machine,
    make_parser,
    number,
    read,
    result_path,
    table,
    versions,
    write,
)

PAGE = DOCS / "benchmarks-training.md"
IMPORT = "import time; clock = time.perf_counter, time.process_time; import torch; begin = [each() for each in clock]; "
AFTER = f"{IMPORT}import likewise.losses; print(*(each() - start for each, start in zip(clock, begin)))"
CLI = ("-m", "likewise.cli")
COMMANDS: dict[str, Sequence[str]] = {
    "python": ("-c", "pass"),
    "likewise --version": (*CLI, "--version"),
    "likewise --help": (*CLI, "--help"),
    "likewise train --help": (*CLI, "train", "--help"),
    "import torch": ("-c", "import torch"),
    "import likewise.losses, beyond torch": ("-c", AFTER),
}
BARS = {
    "likewise --version": 0.3,
    "likewise --help": 0.3,
    "import likewise.losses, beyond torch": 0.3,
    "report": 3.0,
    "to the first step": 5.0,
    "to the first step, cold kernels": 10.0,
}
"""The most seconds that each may take."""

STEPS = 10
PHASES = {
    "imports": "imports, beyond torch",
    "configuration": "configuration and device",
    "data and model": "data and model",
    "setup": "optimizer, run folder",
    "validation": "validation before training",
    "first step": "first step",
    "next steps": f"the next {STEPS - 1} steps",
    "report": "report",
}
PARTS = {"model": "data and model", "embedding": "validation", "first batch": "validation", "last batch": "validation"}
"""Measured inside a phase: a part, and its phase."""

Row = dict[str, Any]
Times = dict[str, float]


def main() -> None:
    """Measure, print, write; or fill the page."""
    parser = make_parser(__doc__, device=True, quick="two processes each, fewer images", out="startup")
    parser.add_argument("--runs", type=int, default=5, help="processes for each number")
    parser.add_argument(
        "--cub", metavar="FOLDER", help="measure a training on CUB-200-2011 in this folder, and nothing else"
    )
    parser.add_argument("--page", action="store_true", help="fill the page from what was measured before")
    parser.add_argument("--child", nargs=2, metavar=("TASK", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        task, folder = options.child
        print(json.dumps(TASKS[task](Path(folder), options)))
        return
    if options.page:
        fill(PAGE, {f"startup-{device}": block(device) for device in ("cpu", "cuda")})
        return
    options.runs = 2 if options.quick else options.runs
    packages = versions("torch", "accelerate", "triton", "likewise")
    about = {**machine(options.device), **packages, "load": round(os.getloadavg()[0], 1)}
    report: dict[str, Any] = {"machine": about, "runs": options.runs, "steps": STEPS, "rows": []}
    path = result_path("startup", options)
    unfinished = None if path is None else path.with_suffix(".unfinished.json")
    if options.cub and path is not None:
        report = read(path) or report
        report["rows"] = [row for row in report["rows"] if not row["what"].endswith(TRAININGS["birds"])]
    with tempfile.TemporaryDirectory() as scratch:
        for row in measure(Path(scratch), options):
            report["rows"].append(row)
            write(report, unfinished)
    write(report, path)
    if unfinished is not None:
        unfinished.unlink()


def measure(scratch: Path, options: argparse.Namespace) -> Iterator[Row]:
    """All rows, the commands first; with CUB-200-2011 only those of a training on it."""
    if options.cub:
        yield from measure_trainings(scratch, options, ["birds"])
        return
    yield from measure_commands(options.runs)
    yield measure_report(scratch, options)
    yield from measure_trainings(scratch, options, ["glyphs"] if options.device == "cpu" else ["glyphs", "photographs"])


# ---- commands and imports


def measure_commands(runs: int) -> list[Row]:
    """Commands and imports, in turns."""
    found: dict[str, list[Times]] = {name: [] for name in COMMANDS}
    for turn in range(runs + 1):
        for name, words in COMMANDS.items():
            times, output = run_python(words)
            if name.endswith("beyond torch"):
                times = dict(zip(("seconds", "cpu"), map(float, output.split()), strict=True))
            found[name] += [times] * (turn > 0)
    return [tell({"what": name, **median(times)}) for name, times in found.items()]


def run_python(words: Sequence[str], extra: Mapping[str, str] | None = None) -> tuple[Times, str]:
    """Run Python in a fresh process: what it took, and its output."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"BENCHMARK_BEGIN": repr(time.monotonic()), **(extra or {})}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu": cpu}, done.stdout


def run_child(task: str, folder: Path, options: argparse.Namespace, extra: Mapping[str, str] | None = None) -> Times:
    """Run a task of this file in a fresh process."""
    words = ["-m", "benchmarks.startup", "--child", task, str(folder), "--device", options.device]
    words += ["--cub", options.cub] if options.cub else []
    _, output = run_python([*words, *["--quick"] * options.quick], extra)
    found: Times = json.loads(output.splitlines()[-1])
    return found


def median(several: Sequence[Times]) -> Times:
    """The median of each number."""
    return {name: round(statistics.median(each[name] for each in several), 3) for name in several[0]}


def tell(row: Row) -> Row:
    """Print a row, and return it."""
    name = "report" if row["what"].startswith("report") else row["what"]
    bar = row.get("bar", BARS.get(name))
    clock = "cpu" if os.getloadavg()[0] > cores() else "seconds"  # other programs delay the clock of a wall
    limit = "" if bar is None else f"; at most {bar:g} s, by {clock}: {'kept' if row[clock] <= bar else 'MISSED'}"
    print(f"{row['what']}: {row['seconds']:.2f} s, cpu {row['cpu']:.2f} s{limit}", flush=True)
    for phase in (name for name in (*PHASES, *PARTS) if name in row):
        print(f"    {PHASES.get(phase) or f'of which {phase}'}: {row[phase]:.2f} s", flush=True)
    return row if bar is None else {**row, "bar": bar}


# ---- a training


TRAININGS = {
    "glyphs": "Glyphs, convnet, 32 px",
    "photographs": "photographs, efficientnet_lite0, 112 px, bfloat16",
    "birds": "CUB-200-2011, efficientnet_lite0, 112 px, bfloat16",
}
"""What is trained, by task."""


def measure_trainings(scratch: Path, options: argparse.Namespace, tasks: Sequence[str]) -> Iterator[Row]:
    """The phases of a training up to its first step, with cold and with warm kernels."""
    if "photographs" in tasks:
        make_photographs(scratch / "photographs", options.quick)
    for task in tasks:
        kernels = scratch / f"kernels-{task}"
        run_child(task, scratch, options, keep_kernels(kernels))
        for kind in ("warm",) if options.device == "cpu" else ("cold", "warm"):
            places = [kernels if kind == "warm" else scratch / f"{kernels.name}-{n}" for n in range(options.runs)]
            found = [run_child(task, scratch, options, keep_kernels(place)) for place in places]
            what = "to the first step" + (", cold kernels" if kind == "cold" else "")
            yield tell({"what": f"{what}: {TRAININGS[task]}", "bar": BARS[what], **median(found)})


def keep_kernels(folder: Path) -> dict[str, str]:
    """Where Triton and the driver keep compiled kernels."""
    return {"TRITON_CACHE_DIR": str(folder / "triton"), "CUDA_CACHE_PATH": str(folder / "driver")}


def make_photographs(folder: Path, quick: bool) -> None:
    """Made-up photographs in one folder for each class."""
    images = photographs(64)
    for label in range(40 if quick else 200):
        (folder / f"{label:03}").mkdir(parents=True)
        for at in range(8 if quick else 30):
            images[(label + 7 * at) % len(images)].save(folder / f"{label:03}" / f"{at:02}.jpg")


def photographs(count: int) -> list[Any]:
    """Made-up photographs of 160 x 128 pixels."""
    import numpy as np
    from PIL import Image

    chance = np.random.default_rng(0)
    small = chance.integers(0, 256, (count, 16, 20, 3), dtype=np.uint8)
    return [Image.fromarray(each).resize((160, 128)) for each in small]


def train_glyphs(folder: Path, options: argparse.Namespace) -> Times:
    """The defaults of `likewise train --data Glyphs`."""
    return train_once(["--data", "Glyphs", *["--data.images_per_class", "4"] * options.quick], folder, options.device)


def train_photographs(folder: Path, options: argparse.Namespace) -> Times:
    """What the recipe cub128 trains, on made-up photographs and from random weights."""
    words = ["--data", "ImageFolder", "--data.root", str(folder / "photographs"), "--split.validation", "0.25"]
    words += ["--transform", "cub128", "--model.trunk", "efficientnet_lite0", "--model.weights", "null"]
    words += ["--model.dim", "512", "--train.precision", "bf16"]
    return train_once(words, folder, options.device)


def train_birds(folder: Path, options: argparse.Namespace) -> Times:
    """The recipe cub128 from random weights, with a tenth of the classes held out for validation."""
    words = ["--config", "cub128", "--data.root", options.cub, "--split.validation", "0.1", "--model.weights", "null"]
    return train_once(words, folder, options.device)


def train_once(words: Sequence[str], folder: Path, device: str) -> Times:
    """The seconds of each phase of one training, in this process."""
    found: Times = {}
    clock = Clock(found)
    import torch

    assert torch.__version__
    clock.lap("torch")
    from likewise import app
    from likewise.app import build, evaluation, training
    from likewise.train import loop, validation

    assert evaluation
    clock.lap("imports")
    words = [*words, "--sampler", "PerClassSampler", "--sampler.steps", str(STEPS), "--train.epochs", "1"]
    words += ["--cache", str(folder / "cache"), "--train.log_every", "1"]
    config = app.parse_request(app.read_request(words))
    where = app.this_machine("cpu" if device == "cpu" else "gpu")
    clock.lap("configuration")
    build.make_model = clock.timed("model", build.make_model)
    vars(validation)["embed"] = clock.timed("embedding", clock.batches(vars(validation)["embed"]))
    loop.TrainingLoop.log = clock.at_first_step(loop.TrainingLoop.log)  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        run = training.train(
            config, f"{place}/run", machine=where, on_start=lambda pieces, folder: clock.lap("data and model")
        )
        clock.lap("train")
        rows = run.metrics()
    begun = next(row["seconds"] for row in rows if row["kind"] == "start")
    seconds = [row["seconds"] for row in rows if row["kind"] == "train"]
    [end] = [row["seconds"] for row in rows if row["kind"] == "end"]
    validations = [row["seconds"] for row in rows if row["kind"] == "val"]
    found |= {"setup": begun["setup"], "validation": validations[0], "first step": begun["first_step"]}
    found |= {"next steps": seconds[-1] - seconds[0], "report": found.pop("train") - begun["setup"] - end}
    first = sum(found[name] for name in [*PHASES][: [*PHASES].index("next steps")])
    return {"seconds": first, "cpu": clock.cpu, **found}


class Clock:
    """The seconds of phases that follow each other, from the start of the process."""

    def __init__(self, found: Times) -> None:
        self.found = found
        self.last = float(os.environ["BENCHMARK_BEGIN"])
        self.cpu = 0.0

    def lap(self, name: str) -> None:
        """End a phase."""
        now = time.monotonic()
        self.found[name], self.last = now - self.last, now
        self.cpu = time.process_time() if name == "torch" else self.cpu

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose first call is measured."""

        def call(*arguments: Any, **options: Any) -> Any:
            begin = time.monotonic()
            result = function(*arguments, **options)
            self.found.setdefault(name, time.monotonic() - begin)
            return result

        return call

    def at_first_step(self, log: Callable[..., None]) -> Callable[..., None]:
        """The log of a training, which stops the clock of the CPU at the first step."""

        def call(training: Any, kind: str, **values: Any) -> None:
            self.cpu = time.process_time() - self.cpu if kind == "start" else self.cpu
            log(training, kind, **values)

        return call

    def batches(self, embed: Callable[..., Any]) -> Callable[..., Any]:
        """The embedding of a data set, whose first and last batches are measured once."""

        def call(model: Any, batches: Any, **options: Any) -> Any:
            ends: list[float] = []
            before = model.register_forward_pre_hook(lambda *_: ends.append(_now()))
            after = model.register_forward_hook(lambda *_: ends.append(_now()))
            try:
                return embed(model, batches, **options)
            finally:
                before.remove()
                after.remove()
                self.found.setdefault("first batch", ends[1] - ends[0])
                self.found.setdefault("last batch", ends[-1] - ends[-2])

        return call


def _now() -> float:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.monotonic()


# ---- a report


def measure_report(scratch: Path, options: argparse.Namespace) -> Row:
    """The report of a run of the size of CUB-200-2011."""
    found = [run_child("report", scratch, options) for _ in range(options.runs)]
    return tell({"what": "report on 5,924 embeddings of 512 dimensions, 200 classes", **median(found)})


def write_one_report(folder: Path, options: argparse.Namespace) -> Times:
    """A report on made-up embeddings, imports not counted."""
    import torch

    from likewise.report import Part, write_report

    generator = torch.Generator().manual_seed(0)
    count, classes = (592, 20) if options.quick else (5924, 200)
    labels = torch.arange(count) * classes // count
    centers = torch.randn(classes, 512, generator=generator)
    embeddings = 0.5 * centers[labels] + 0.9 * torch.randn(count, 512, generator=generator)
    images = photographs(64)
    names = [f"class {label}" for label in range(classes)]
    part = Part("test", embeddings, labels, names, lambda row: images[row % len(images)].copy())
    with tempfile.TemporaryDirectory(dir=folder) as place:
        begin, cpu = time.perf_counter(), time.process_time()
        write_report(place, [part])
        return {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu}


TASKS: dict[str, Callable[[Path, argparse.Namespace], Times]] = {
    "glyphs": train_glyphs,
    "photographs": train_photographs,
    "birds": train_birds,
    "report": write_one_report,
}


# ---- the page


def block(device: str) -> str:
    """The tables of a device."""
    report = read(RESULTS / f"startup-{device}.json")
    if report is None:
        return "Not measured."
    about = report["machine"]
    where = f"{about.get('device', about['cpu'])}, {about['cores']} cores; python {about['python']}, torch {about['torch']}."
    if about.get("load", 0.0) > about["cores"]:
        where += f" Other programs were running (load {about['load']:g}): compare the seconds of computing."
    rows = [
        [row["what"], number(row["seconds"]), number(row["cpu"]), f"{row['bar']:g}" if "bar" in row else ""]
        for row in report["rows"]
    ]
    trainings = [row for row in report["rows"] if "first step" in row]
    names = [row["what"].removeprefix("to the first step").lstrip(",: ") for row in trainings]
    phases = [[text, *(number(row[phase]) for row in trainings)] for phase, text in PHASES.items()]
    for at, (part, phase) in enumerate(PARTS.items()):
        place = [*PHASES].index(phase) + 1 + at
        phases.insert(place, [f"– of which {part}", *(number(row[part]) for row in trainings)])
    costs = table(["", "seconds", "of computing", "at most"], rows)
    return "\n\n".join([where, costs, "Seconds of each phase of these runs:", table(["phase", *names], phases)])


if __name__ == "__main__":
    main()
