"""What needs a GPU, the most important first: checks of the kernels, then benchmarks, each with a time limit.

    python -m benchmarks.gpu --minutes 25 --copy FOLDER    runs what fits, and copies results and logs after each task
    python -m benchmarks.gpu --tasks grid host             runs these only
    python -m benchmarks.gpu --list                        prints the tasks and their commands

Benchmarks continue where they were interrupted, so that several short rentals of a GPU make one table.  Afterwards the
``--page`` options of the benchmarks, and `benchmarks.engines.plot`, fill the documentation.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import RESULTS


class Task(NamedTuple):
    """One command.

    Args:
        minutes: after which it is stopped.
        command: the module and its arguments; a benchmark that continues where it stopped has ``{minutes}``, which stands
            for the limit, less one for the last row.
    """

    minutes: float
    command: str


TASKS = {
    "kernels": Task(3.0, "tests.engines.triton_gpu"),
    "graphs": Task(3.0, "tests.engines.graphs_gpu --behaviors"),
    "histograms": Task(4.0, "tests.engines.bins_gpu"),
    "parts": Task(1.0, "benchmarks.engines.parts --device cuda"),
    "host": Task(4.0, "benchmarks.engines.profile --device cuda --host --sizes 128 8192"),
    "grid": Task(8.0, "benchmarks.engines.grid --device cuda --minutes {minutes}"),
    "caching": Task(4.0, "benchmarks.caching --device cuda --any-code --minutes {minutes}"),
    "rate": Task(3.0, "benchmarks.engines.measure --device cuda --parts rate large --minutes {minutes}"),
    "classes": Task(4.0, "benchmarks.classes --device cuda --any-code --minutes {minutes}"),
    "retrieval": Task(2.0, "benchmarks.evaluation.device --device cuda"),
    "million": Task(2.0, "benchmarks.evaluation.million --device cuda"),
    "startup": Task(4.0, "benchmarks.startup --device cuda --runs 2"),
}


def main() -> int:
    """Run the tasks that fit the time; return how many failed or were stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="start no task that could not end, or continue another time"
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--copy", type=Path, help="a folder for copies of results and logs")
    parser.add_argument("--list", action="store_true", help="print the tasks and run none")
    options = parser.parse_args()
    if options.list:
        for name, task in TASKS.items():
            print(f"{name:12} {task.minutes:4.0f} min  python -m {_fill(task)}")
        return 0
    began, failed = time.time(), 0
    for name in options.tasks:
        left = options.minutes - (time.time() - began) / 60.0
        if left < (2.0 if "{minutes}" in TASKS[name].command else TASKS[name].minutes):
            print(f"{name}: left out, the time is up", flush=True)
            continue
        failed += not run(name, TASKS[name]._replace(minutes=min(left, TASKS[name].minutes)), began, options.copy)
    return failed


def run(name: str, task: Task, began: float, copy: Path | None) -> bool:
    """Run one task and copy what is new since ``began``; return whether it succeeded."""
    start, lines = time.monotonic(), []
    command = [sys.executable, "-m", *_fill(task).split()]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        # a task may have processes of its own
        timer = threading.Timer(60.0 * task.minutes, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        assert process.stdout is not None
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
            status = process.wait()
        except BaseException:  # Ctrl-C, which does not reach the task
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()
            if copy is not None:
                _copy("".join(lines), name, began, copy)
    verdict = {0: "done", -signal.SIGKILL: "stopped"}.get(status, f"failed with status {status}")
    print(f"{name}: {verdict} ({time.monotonic() - start:.0f} s)\n", flush=True)
    return status == 0


def _copy(log: str, name: str, began: float, folder: Path) -> None:
    """Copy the log of a task, and the results that are new since ``began``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.log").write_text(log)
    for path in RESULTS.glob("*-cuda*.json"):
        if path.stat().st_mtime > began:
            shutil.copy(path, folder)


def _fill(task: Task) -> str:
    return task.command.replace("{minutes}", f"{max(0.5, task.minutes - 1.0):g}")


if __name__ == "__main__":
    raise SystemExit(main())
