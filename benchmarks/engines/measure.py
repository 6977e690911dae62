"""Speed, memory and exactness of the engines, on large batches and small ones, beside pytorch-metric-learning.

    python -m benchmarks.engines.measure --device cuda                       everything, the most important rows first
    python -m benchmarks.engines.measure --device cuda --parts large rate    some parts
    python -m benchmarks.engines.measure --device cpu --parts auto           the thresholds of backend="auto" on a processor
    python -m benchmarks.engines.measure --quick                             a smoke test on the CPU; prints, and writes nothing
    python -m benchmarks.engines.plot                                        the figures and tables of docs/benchmarks-engines.md

Every row is on disk as soon as it is known, in benchmarks/results/engines-<device>.json, and is not measured again for
the same code, machine and arguments: a run that was stopped, or that had only so many ``--minutes``, goes on where it
was.  A row that fails says why.  Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.engines.bars import print_bars
from benchmarks.engines.jobs import PARTS, QUICK, Job, Sizes, engines, for_cpu, jobs_of, sample
from benchmarks.engines.journal import code_of, compared, heading, holds
from benchmarks.engines.rows import Bench, Row, reason, warm_up
from benchmarks.harness import cores, make_parser, result_path
from benchmarks.harness.results import Journal, fingerprint, name_of

LOST = 3
"""Exit code of a worker whose device answers no more."""


def main() -> None:
    """Start workers, replace those that die, and sum up."""
    options = parse()
    if options.worker is not None:
        sys.exit(work(options))
    begin = time.time()
    options.deadline = begin + 60.0 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        options.out = options.out or Path(folder) / "engines.json"
        supervise(options)
        if options.list:
            return
        report = json.loads(options.out.read_text())
    failed = [row for row in report["rows"] if "why" in row]
    print(
        f"\n{len(report['rows'])} rows, {len(failed)} of them without a number, {(time.time() - begin) / 60:.1f} minutes"
    )
    print_bars(report)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, device=True, quick="small sizes, hardly any time", out="engines")
    add = parser.add_argument
    add("--parts", nargs="+", default=list(PARTS), choices=PARTS, help="what to measure, the most important first")
    add("--dim", type=int, help="dimension of the embeddings; by default 512 on a GPU, 128 on the CPU")
    add("--seconds", type=float, default=0.3, help="time for one row")
    add("--minutes", type=float, default=60.0, help="time for all; what is not reached is not there")
    add("--patience", type=float, default=120.0, help="seconds after which a row is given up")
    add("--processes", type=int, default=min(12, cores()), help="processes that compile kernels ahead, and check")
    add("--backends", nargs="+", metavar="NAME", help="the engines; by default those that the device can run")
    add("--only", help="a regular expression: only rows whose name it matches")
    add("--max-rank", type=int, default=9, help="leave out what is less important than that; 0 is what has a bar")
    add("--retry", action="store_true", help="try rows again that said why they failed")
    add("--any-code", action="store_true", help="keep rows of other code, too; each says which")
    add("--list", action="store_true", help="say what would be measured, and measure nothing")
    add("--resume-from", type=Path, help="a file whose rows are taken over; by default the one to write")
    add("--worker", help=argparse.SUPPRESS)
    add("--deadline", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.backends = options.backends or engines(options.device)
    options.dim = options.dim or (32 if options.quick else 128 if options.device == "cpu" else 512)
    if options.quick:
        options.seconds, options.processes = 0.01, 1
    options.out = result_path("engines", options)
    return options


def chosen(options: argparse.Namespace) -> list[Job]:
    """The jobs that were asked for, by importance."""
    sizes = QUICK if options.quick else for_cpu(Sizes()) if options.device == "cpu" else Sizes()
    found = jobs_of(options.parts, sizes, options.backends)
    found = sample(found) if options.quick else [job for job in found if job.rank <= options.max_rank]
    return [job for job in found if not options.only or re.search(options.only, name_of(job.key))]


# ------------------------------------------------------------------------------------------------ the supervisor


def supervise(options: argparse.Namespace) -> None:
    """Compile ahead in many processes, measure in one, check in many."""
    jobs = chosen(options)
    journal = open_journal(options, jobs)
    left = [job for job in jobs if name_of(job.key) not in journal.rows]
    print(f"{len(jobs)} rows asked for, {len(jobs) - len(left)} known; {options.minutes:g} minutes", flush=True)
    if options.list:
        for job in left:
            print(job.rank, name_of(job.key))
        return
    set_aside(options, journal)
    journal.write()
    options.retry, options.resume_from = False, None  # what was known is in the file now
    timed, checked = ([job for job in left if checks(job) is kind] for kind in (False, True))
    if options.device != "cpu" and options.processes > 1 and any(job.compiles for job in timed):
        run_workers(options, "warm", options.processes)
        print(f"kernels compiled ahead, {(options.deadline - time.time()) / 60:.1f} minutes left", flush=True)
    if timed:
        run_workers(options, "time", 1)
    if checked:
        run_workers(options, "check", options.processes)


def set_aside(options: argparse.Namespace, journal: Journal) -> None:
    """Keep a file beside the new one if some of its rows no longer hold."""
    if options.out.exists() and len(json.loads(options.out.read_text())["rows"]) > len(journal.rows):
        shutil.copy(options.out, options.out.with_name(options.out.name + ".before"))


def checks(job: Job) -> bool:
    """Whether a job checks and does not time: many of them may run at once."""
    return bool(job.key["part"] == "precision")


def open_journal(options: argparse.Namespace, jobs: list[Job]) -> Journal:
    """The rows that are known, those of shares that a stopped run left included."""
    journal = Journal(options.out, heading(options.device, options.dim, options.seconds, options.quick), compared)
    by_name = {name_of(job.key): job for job in jobs}
    source = options.resume_from or options.out
    for path in (source, *sorted(options.out.parent.glob(f"{options.out.name}.local_rows-*[0-9]"))):
        journal.take(path, partial(holds, jobs=by_name, retry=options.retry, any_code=options.any_code))
    return journal


def run_workers(options: argparse.Namespace, phase: str, count: int) -> None:
    """Run a phase in so many processes; one that dies or hangs costs its row, and another takes its place."""
    running = {place: start(options, phase, place, count) for place in range(count)}
    while running:
        time.sleep(0.1)
        for place, worker in list(running.items()):
            doing, code = doing_path(options, phase, place), worker.poll()
            stuck = code is None and doing.exists() and time.time() - doing.stat().st_mtime > options.patience
            late = time.time() > options.deadline + 20.0
            if code is None and not stuck and not late:
                continue
            worker.kill()
            worker.wait()
            if code not in (0, LOST):
                blame(options, phase, place, "not done in time" if code is None else f"the process ended with {code}")
            doing.unlink(missing_ok=True)
            del running[place]
            if code != 0 and not late and time.time() < options.deadline:
                running[place] = start(options, phase, place, count)
    shares = [share_path(options, phase, place) for place in range(count)]
    if phase == "check":
        journal = open_journal(options, chosen(options))
        journal.write()
        for share in shares:
            share.unlink(missing_ok=True)


def start(options: argparse.Namespace, phase: str, place: int, count: int) -> subprocess.Popen[bytes]:
    """Start a worker."""
    more = ["--worker", f"{phase}:{place}:{count}", "--deadline", str(options.deadline), "--out", str(options.out)]
    more += ["--backends", *options.backends]
    environment = {**os.environ, "LIKEWISE_BENCHMARK_CODE": fingerprint(), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([sys.executable, "-m", "benchmarks.engines.measure", *sys.argv[1:], *more], env=environment)


def share_path(options: argparse.Namespace, phase: str, place: int) -> Path:
    """Where a worker writes: the file itself where it is alone."""
    return options.out.with_name(f"{options.out.name}.local_rows-{place}") if phase == "check" else Path(options.out)


def doing_path(options: argparse.Namespace, phase: str, place: int) -> Path:
    """Where a worker says what it is doing."""
    return Path(options.out).with_name(f"{options.out.name}.{phase}-{place}-doing")


def blame(options: argparse.Namespace, phase: str, place: int, why: str) -> None:
    """Write down the row at which a worker died."""
    doing = doing_path(options, phase, place)
    if not doing.exists():
        return
    name = doing.read_text()
    job = next(job for job in chosen(options) if name_of(job.key) == name)
    print(f"{name}: {why}", flush=True)
    if phase == "warm":
        return
    journal = share_journal(options, phase, place, [job])
    journal.add(job.key, code_of(job.ours), {"why": why})


# ------------------------------------------------------------------------------------------------ a worker


def work(options: argparse.Namespace) -> int:
    """Do one's share of a phase, row by row, until it is done or the time is over."""
    warnings.simplefilter("ignore")  # theirs warns of its own use of torch, once per call
    phase, place, count = options.worker.split(":")
    options.retry, options.resume_from = False, None
    jobs = chosen(options)
    known = open_journal(options, jobs)
    journal = share_journal(options, phase, int(place), jobs)
    jobs = [job for job in jobs if name_of(job.key) not in known.rows and checks(job) is (phase == "check")]
    jobs = [job for job in jobs if phase != "warm" or job.compiles][int(place) :: int(count)]
    torch.set_num_threads(max(1, cores() // int(count)))
    bench = Bench(options.device, options.dim, options.seconds)
    doing = doing_path(options, phase, int(place))
    for job in jobs:
        if time.time() > options.deadline:
            break
        doing.write_text(name_of(job.key))
        row = measured(bench, job, phase)
        if phase != "warm":
            journal.add(job.key, code_of(job.ours), row)
            print(line(job, row), flush=True)
        doing.unlink()
        if ("why" in row or "why" in row.get("graph", {})) and not alive(bench):
            return LOST
    return 0


def share_journal(options: argparse.Namespace, phase: str, place: int, jobs: list[Job]) -> Journal:
    """The journal that a worker writes."""
    if phase != "check":
        return open_journal(options, jobs)
    share = argparse.Namespace(**{**vars(options), "out": share_path(options, phase, place), "resume_from": None})
    return open_journal(share, jobs)


def measured(bench: Bench, job: Job, phase: str) -> Row:
    """A row, or why there is none."""
    begin = time.perf_counter()
    try:
        row = warm_up(bench, job.key) if phase == "warm" else job.measure(bench, job.key)
    except Exception as error:
        row = {"why": reason(error)}
    if bench.cuda:
        gc.collect()  # an error's traceback may still hold the tensors that did not fit
        try:
            torch.cuda.empty_cache()
        except RuntimeError as error:
            row = {"why": reason(error)}
    return row | {"took_s": round(time.perf_counter() - begin, 2)}


def alive(bench: Bench) -> bool:
    """Whether the device still answers, and draws; after some errors it never does again in this process."""
    try:
        torch.manual_seed(0)
        return bool(torch.rand(8, device=bench.device).sum().item() >= 0.0)
    except RuntimeError:
        return False


def line(job: Job, row: Row) -> str:
    """A row on a line."""
    key = job.key
    name = " ".join(str(value) for field, value in key.items() if value not in ("-", None, 0))
    shown: list[str] = []
    forms: dict[str, Any] = {
        "median_ms": "{:.3f} ms",
        "extra_mib": "{:.0f} MiB",
        "beyond_proxies_mib": "({:.0f} beyond proxies)",
        "tflops": "{:.1f} TFLOP/s",
        "value_error": "value {:.0e}",
        "anchors_error": "anchors {:.0e}",
        "gradient_error": "gradient {:.0e}",
        "first_s": "first {:.1f} s",
        "why": "{}",
    }
    shown += [form.format(row[field]) for field, form in forms.items() if field in row]
    if "graph" in row:
        shown.append("graph " + row["graph"].get("why", f"{row['graph'].get('median_ms', 0.0):.3f} ms"))
    shown += [word for word in ("waits", "within") if row.get(word)]
    shown += ["NOT WITHIN"] if row.get("within") is False else []
    return f"{name}: {', '.join(shown)}"


if __name__ == "__main__":
    main()
