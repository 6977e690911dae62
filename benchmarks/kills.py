"""Kill every command that writes, again and again, and compare what it leaves with what it leaves undisturbed.

    python -m benchmarks.kills                     100 SIGKILLs over all commands; writes results/kills.json as it goes
    python -m benchmarks.kills --quick             one kill of each command; writes no file
    python -m benchmarks.kills --only merge embed  the commands whose names contain these words; writes no file
    python -m benchmarks.kills --page              fills the table of docs/reliability.md

A command starts in a folder of its own, is killed (SIGKILL) at a seeded random moment, and is started again; after some kills
it may finish. Half of the kills wait from then on for a file that is half written. `driver`, `worker`
and `both` say which processes of a study are killed. A result that differs from that of the undisturbed command, bit for
bit, an index with a damaged file or a server that does not answer is counted as lost; a restart that ends with an error as
refused, unless the killed command had written everything. Recovery is the time from a restart until it writes or ends.
Commands run in processes that are forked from one that has imported their modules, which is why recovery does not include
the start of Python; the workers of a study start as usual. The same command continues a run that was stopped.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import DOCS, RESULTS, fill, machine, make_parser, read, table, versions, write
from benchmarks.harness.results import ROOT
from benchmarks.kill_cases import (
    CASES,
    TOURNAMENT,
    TRAIN,
    WRITER,
    Case,
    ask,
    change_photos,
    draw_photos,
    pid_is_worker,
    write_rounds,
    write_study,
)

RESULT, PAGE = RESULTS / "kills.json", DOCS / "reliability.md"
KILLS = 100
PRELOAD = ["benchmarks.kill_cases", "likewise.app", "likewise.cli.app", "likewise.search.serve.app", "accelerate"]
PRELOAD += [f"likewise.cli.{name}" for name in ("train", "evaluate", "embed", "index", "serve", "calibrate", "export")]
PRELOAD += [f"likewise.cli.{name}" for name in ("tuning", "tournament", "study_commands")]
PRELOAD += ["pyarrow.parquet", "sklearn.manifold", "uvicorn", "torch.onnx", "onnx", "onnxruntime", "onnxscript"]
PATIENCE = 600.0
"""Seconds after which a command that does not end counts as refused."""

CONTEXT: Any = multiprocessing.get_context("forkserver")


@dataclass
class Round:
    """A command that was killed some times, and then came to its end.

    Args:
        case: its name.
        kills: how often it was killed.
        lost: how often something was lost.
        refused: how often a restart ended with an error.
        recovery: the longest time from a restart until it wrote or ended, in seconds.
    """

    case: str
    kills: int = 0
    lost: int = 0
    refused: int = 0
    recovery: float = 0.0


def run_words(words: Sequence[str], folder: str) -> None:
    """In a child: run a command in a folder; what it prints is in ``log.txt``."""
    os.setsid()
    os.chdir(folder)
    log = os.open("log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if words[0] == WRITER:
        write_rounds()
        return
    from likewise.cli.app import main as likewise

    sys.exit(likewise(words))


class Process:
    """A command that runs."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder, self.port = case, folder, free_port()
        self.child = CONTEXT.Process(target=run_words, args=(case.command(folder, self.port), str(folder)))
        (self.before, self.left), self.begin = scan(folder), time.monotonic()
        self.child.start()

    def seconds(self) -> float:
        return time.monotonic() - self.begin

    def is_over(self) -> bool:
        """Whether it has ended; a server is over when it answers."""
        if self.child.exitcode is not None:
            return True
        if self.case.is_server:
            with suppress(OSError, ValueError):
                (self.folder / "answer.json").write_text(json.dumps(ask(self.port)))
                return True
        return False

    def finish(self) -> bool:
        """Wait for the end; whether it ended well."""
        while not self.is_over() and self.seconds() < PATIENCE:
            time.sleep(0.1)
        well = self.child.exitcode == 0 or (self.case.is_server and self.child.exitcode is None)
        self.kill("all")
        return well and self.seconds() < PATIENCE

    def kill(self, victim: str) -> bool:
        """Kill the command, its workers, or both; whether there was one to kill."""
        workers = worker_pids(self.folder) if victim in ("all", "worker") else []
        if victim != "worker":
            if self.child.exitcode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self.child.pid, signal.SIGKILL)
                self.child.kill()
            self.child.join()
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return victim != "worker" or bool(workers)


def worker_pids(folder: Path) -> list[int]:
    """The processes that run trials for a folder; they are in sessions of their own."""
    pids = [int(place.name) for place in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if pid_is_worker(pid, folder)]


def free_port() -> int:
    """A port where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def scan(folder: Path | str) -> tuple[int, set[str]]:
    """When something in a folder changed last, and what is half written; inputs and the log do not count."""
    newest, parts = 0, set()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in ("log.txt", "photos"):
                continue
            with suppress(OSError):
                newest = max(newest, entry.stat().st_mtime_ns)
                if entry.name.endswith((".part", ".next", ".db-journal", ".db-wal", ".chunks")):
                    parts.add(entry.path)
                if entry.is_dir():
                    below = scan(entry.path)
                    newest, parts = max(newest, below[0]), parts | below[1]
    return newest, parts


def disturb(process: Process, chance: random.Random, expected: float, outcome: Round, *, restarted: bool) -> bool:
    """Kill a process at a random moment; false if it ended before."""
    moment, wait = chance.uniform(0.0, 0.8 * expected), chance.random() < 0.5
    recovered = not restarted
    while not process.is_over():
        newest, parts = scan(process.folder)
        seconds = process.seconds()
        if not recovered and newest > process.before:
            outcome.recovery, recovered = max(outcome.recovery, seconds), True
        if seconds > PATIENCE:
            return False
        now = parts - process.left or not wait or seconds > 0.9 * expected
        if seconds >= moment and now and process.kill(process.case.victim):
            outcome.kills += 1
            return True
        time.sleep(0.01)
    if not recovered:
        outcome.recovery = max(outcome.recovery, process.seconds())
    return False


def run_round(case: Case, place: Path, name: str, kills: int, chance: random.Random, expected: float) -> Round:
    """Start a command, kill it and start it again, until it ends; compare."""
    folder, outcome, restarted = prepare(case, place, name), Round(case.name), False
    with server(case, folder) as port:
        process = Process(case, folder)
        while outcome.kills < kills and disturb(process, chance, expected, outcome, restarted=restarted):
            outcome.lost += not (case.holds(folder) and (port is None or answers(port)))
            if case.victim != "worker":
                process, restarted = Process(case, folder), True
        if outcome.kills == kills:
            disturb(process, random.Random(0), PATIENCE, outcome, restarted=restarted)  # to its end, and watched
        well = process.finish()
        try:
            same = case.same(place / f"alone-{case.slug}", folder)
        except (OSError, ValueError, KeyError) as error:
            print(f"{case.name}: {error!r}", flush=True)
            same = False
        if not same:
            print(f"{case.name}: {(folder / 'log.txt').read_text()[-2000:]}", flush=True)
        outcome.refused += not well and not same
        outcome.lost += well and not same
    for pid in worker_pids(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if same:
        shutil.rmtree(folder)
    return outcome


def answers(port: int) -> bool:
    """Whether a server that was not killed still answers."""
    try:
        return bool(ask(port)["items"])
    except (OSError, ValueError):
        return False


@contextmanager
def server(case: Case, folder: Path) -> Iterator[int | None]:
    """A server of the folder's index, if a case wants one."""
    if not case.served:
        yield None
        return
    beside = Case("serve", "serve photos.index --port {port}", case.same, is_server=True)
    process = Process(beside, folder)
    while not process.is_over():
        time.sleep(0.02)
    try:
        yield process.port
    finally:
        process.kill("all")


def prepare(case: Case, place: Path, name: str) -> Path:
    """A folder with what a case needs."""
    folder = place / name
    folder.mkdir(parents=True)
    for need in case.needs:
        source, target = place / "fixtures" / need, folder / ("study" if need == "planned" else need)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    if case.before is not None:
        run_undisturbed(case.before, folder)
        change_photos(folder / "photos")
    return folder


def make_fixtures(place: Path) -> None:
    """A finished run, pictures, a planned study and one whose trials have run elsewhere."""
    place.mkdir(parents=True)
    draw_photos(place / "data", 96, 24)
    draw_photos(place / "photos", 60, 6)
    write_study(place)
    for words in (TRAIN, "tournament study.yaml --out planned --workers 0", TOURNAMENT):
        run_undisturbed(words, place)
    shutil.copytree(place / "study", place / "finished")


def run_undisturbed(words: str, folder: Path) -> None:
    """Run a command to its end."""
    if not Process(Case(words, words, CASES[0].same), folder).finish():
        raise SystemExit((folder / "log.txt").read_text())


def run_rounds(
    place: Path, cases: Sequence[Case], rounds: list[dict[str, Any]], kills: int, seed: int
) -> Iterator[None]:
    """Disturb one case after the other until there are as many kills as wanted; a step for each round."""
    expected: dict[str, float] = {}
    per_round = 1 if kills <= len(cases) else KILLS
    while (total := sum(row["kills"] for row in rounds)) < kills:
        counts = {case.name: sum(row["kills"] for row in rounds if row["case"] == case.name) for case in cases}
        case = min(cases, key=lambda each: counts[each.name] / each.weight)
        if case.name not in expected:
            process = Process(case, prepare(case, place, f"alone-{case.slug}"))
            if not process.finish():
                raise SystemExit(f"{case.name}: {(process.folder / 'log.txt').read_text()}")
            expected[case.name] = process.seconds()
        chance = random.Random(f"{seed} {len(rounds)}")
        wanted = min(per_round, case.weight, kills - total)
        outcome = run_round(case, place, f"disturbed-{len(rounds)}", wanted, chance, expected[case.name])
        rounds.append(asdict(outcome))
        print(f"{total + outcome.kills} kills, {expected[case.name]:.1f} s undisturbed: {rounds[-1]}", flush=True)
        yield


def code() -> str:
    """The sources as one number: results of other sources are not continued."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / "src" / "likewise").rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def rows_of(rounds: Sequence[dict[str, Any]]) -> list[list[str]]:
    """The table: a row for each command, and one for all."""
    named = {case.name: [row for row in rounds if row["case"] == case.name] for case in CASES}
    lines = []
    for name, some in [*named.items(), ("all", list(rounds))]:
        counts = [sum(row[key] for row in some) for key in ("kills", "lost", "refused")]
        slowest = f"{max(row['recovery'] for row in some):.1f} s" if counts[0] else "–"
        lines.append([name if name == "all" else f"`{name}`", *map(str, counts), slowest])
    return lines


def write_page() -> None:
    """Fill the table of the page."""
    report = json.loads(RESULT.read_text())
    head = ["command", "tried", "lost", "refused", "slowest recovery"]
    fill(PAGE, {"kills": table(head, rows_of(report["rounds"]))})


def main() -> None:
    """Run each command undisturbed, disturb all of them, and compare."""
    parser = make_parser(__doc__, quick="one kill of each command")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many")
    parser.add_argument("--only", nargs="+", default=[], help="words in the names of commands")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--page", action="store_true", help="fill the page from the results, and kill nothing")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    cases = [case for case in CASES if not options.only or any(word in case.name for word in options.only)]
    path = None if options.quick or options.only else RESULT
    kills = len(cases) if options.quick else options.kills
    head = {"machine": {**machine("cpu"), **versions("torch", "likewise")}, "code": code(), "seed": options.seed}
    known = None if path is None else read(path)
    rounds = known["rounds"] if known is not None and known.get("code") == head["code"] else []
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch).resolve()
        os.environ |= {"OMP_NUM_THREADS": "1", "LIKEWISE_CACHE": str(place / "cache")}
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        CONTEXT.set_forkserver_preload([name for name in PRELOAD if importlib.util.find_spec(name.split(".")[0])])
        make_fixtures(place / "fixtures")
        for _ in run_rounds(place, cases, rounds, kills, options.seed):
            write({**head, "rounds": rounds}, path)
    for row in rows_of(rounds):
        print(" | ".join(row))
    if any(row["lost"] for row in rounds):
        raise SystemExit("something was lost")


if __name__ == "__main__":
    main()
