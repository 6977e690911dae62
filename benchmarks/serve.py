"""A server under load: 100,000 items of 512 numbers, 16 clients at once that ask with vectors.

python -m benchmarks.serve                                      ten minutes; writes benchmarks/results/serve-cpu.json
python -m benchmarks.serve --seconds 60                         one minute, written as well
python -m benchmarks.serve --page                               writes the table of docs/serve.md again
python -m benchmarks.serve --items 10000 --seconds 5 --print    prints, and writes nothing

``likewise serve`` runs in a process of its own, as a user starts it; the clients are another process, on the
same cores.  Each client has its own connection and asks again as soon as it is answered.  Vectors are
random: nothing about them is easy.  The first seconds are left out of the times, and not out of the errors.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.harness import DOCS, MIB, RESULTS, fill, machine, make_parser, versions, write
from likewise.search import Index

RESULT = RESULTS / "serve-cpu.json"
PAGE = DOCS / "serve.md"
DIM, CLIENTS, K, WARM = 512, 16, 10, 3.0
BODIES = 512
"""Different queries; each client goes through them from a place of its own."""


@dataclass
class Seen:
    """What the clients saw."""

    times: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)


def main() -> None:
    """Build, serve, ask, write."""
    parser = make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--print", action="store_true", help="write nothing")
    parser.add_argument("--page", action="store_true", help="fill the page from what was measured before")
    options = parser.parse_args()
    if options.page:
        fill(PAGE, {"serve": table(json.loads(RESULT.read_text()))})
        return
    with tempfile.TemporaryDirectory() as folder:
        index = build(Path(folder) / "load.index", options.items)
        process, port = started(index)
        try:
            seen = asyncio.run(load(port, process.pid, options.clients, options.seconds))
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)
    report = summary(seen, options)
    print(json.dumps(report, indent=1))
    if not options.print:
        write({"machine": {**machine("cpu"), **versions("torch", "numpy", "fastapi", "uvicorn")}, **report}, RESULT)
        fill(PAGE, {"serve": table(report)})


def build(place: Path, items: int) -> Path:
    """An index of random vectors, with classes and a year, as a collection would have."""
    chance = np.random.default_rng(0)
    index = Index.create(place, dim=DIM)
    index.add(
        chance.normal(size=(items, DIM)).astype(np.float32),
        [f"{row // 100:04d}/{row:06d}.jpg" for row in range(items)],
        labels=[f"class {row // 100}" for row in range(items)],
        metadata={"year": [2000 + row % 20 for row in range(items)]},
    )
    return place


def started(index: Path) -> tuple[subprocess.Popen[str], int]:
    """The server, and where it listens."""
    command = [sys.executable, "-m", "likewise.cli", "serve", str(index), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r":(\d+)/", process.stdout.readline())
    assert found is not None
    return process, int(found[1])


async def load(port: int, server: int, clients: int, seconds: float) -> Seen:
    """Ask until the time is over."""
    queries = np.random.default_rng(1).normal(size=(BODIES, DIM))
    bodies = [json.dumps({"vector": query.round(6).tolist(), "k": K}).encode() for query in queries]
    head = (
        "POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    )
    requests = [head.format(len(body)).encode() + body for body in bodies]
    seen, begun = Seen(), time.perf_counter()
    end = begun + WARM + seconds
    watched = asyncio.create_task(watch(server, begun, end, seen))
    each = [client(port, requests[number * 31 % BODIES :] + requests, begun, end, seen) for number in range(clients)]
    await asyncio.gather(*each)
    await watched
    return seen


async def client(port: int, requests: list[bytes], begun: float, end: float, seen: Seen) -> None:
    """One after the other, over one connection; plain sockets, so that little of the cores' time is the clients'."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = 0
    while (asked := time.perf_counter()) < end:
        writer.write(requests[number % len(requests)])
        number += 1
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            length = re.search(rb"content-length: (\d+)", head.lower())
            body = await reader.readexactly(int(length[1]) if length else 0)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            seen.errors.append(type(error).__name__)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            continue
        answered = time.perf_counter()
        if not head.startswith(b"HTTP/1.1 200") or body.count(b'"score"') != K:
            seen.errors.append(head.split(b"\r\n", 1)[0].decode())
        elif asked >= begun + WARM:
            seen.times.append(answered - asked)
            seen.ends.append(answered - begun - WARM)
    writer.close()


async def watch(server: int, begun: float, end: float, seen: Seen) -> None:
    """How much memory of its own the server holds: what is mapped from files is the system's."""
    process = psutil.Process(server)
    while (now := time.perf_counter()) < end:
        seen.memory.append((now - begun, process.memory_full_info().uss / MIB))
        await asyncio.sleep(1.0)


def summary(seen: Seen, options: argparse.Namespace) -> dict[str, Any]:
    """The numbers that matter."""
    times = 1e3 * np.array(seen.times)
    settled = [size for moment, size in seen.memory if moment > WARM]
    tenth = max(1, len(settled) // 10)
    return {
        "items": options.items,
        "dim": DIM,
        "clients": options.clients,
        "seconds": options.seconds,
        "queries": len(times),
        "queries_per_second": round(len(times) / options.seconds, 1),
        "p50_ms": round(float(np.percentile(times, 50)), 2),
        "p99_ms": round(float(np.percentile(times, 99)), 2),
        "longest_ms": round(float(times.max()), 2),
        "errors": len(seen.errors),
        "kinds_of_errors": sorted(set(seen.errors)),
        "memory_mib_first": round(float(np.mean(settled[:tenth])), 1),
        "memory_mib_last": round(float(np.mean(settled[-tenth:])), 1),
    }


def table(report: dict[str, Any]) -> str:
    """The lines of the page."""
    names = ("queries a second", "half are answered in", "99 of 100 in", "errors", "memory, first and last tenth")
    cells = (
        f"{report['queries_per_second']:.0f}",
        f"{report['p50_ms']:.0f} ms",
        f"{report['p99_ms']:.0f} ms",
        f"{report['errors']} in {report['queries']:,} queries, {report['seconds']:.0f} s",
        f"{report['memory_mib_first']:.0f}, {report['memory_mib_last']:.0f} MiB",
    )
    return "\n".join(("| " + " | ".join(names) + " |", "| --- " * 5 + "|", "| " + " | ".join(cells) + " |"))


if __name__ == "__main__":
    main()
