"""A server under load: 100,000 items of 512 numbers, 16 clients at once that ask with vectors.

python -m benchmarks.serve                                      ten minutes; writes benchmarks/results/serve-cpu.json
python -m benchmarks.serve --seconds 60                         one minute, written as well
python -m benchmarks.serve --page                               writes the table of docs/serve.md again
python -m benchmarks.serve --items 10000 --seconds 5 --print    prints, and writes nothing

``likewise serve`` runs in a process of its own, as a user starts it; the clients are another process, on the
same cores.  Each client has its own connection.  Two loads are measured.  In the first, 50 queries arrive each second,
evenly, and a time counts from the moment a query was due, so that waiting behind another one counts too.  In the second,
each client asks again as soon as it is answered, which shows the most that the server can do.  Vectors are random:
nothing about them is easy.  The first seconds are left out of the times, and not out of the errors.  A loop that only
reads the clock shows how long the machine itself stands still, which no server can answer sooner than.
"""

from __future__ import annotations

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
RATE = 50.0
"""Queries a second of the first load."""
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
        stalls = measure_stalls()
        process, port = started(index)
        try:
            loads = {
                name: summary(
                    asyncio.run(load(port, process.pid, options.clients, options.seconds, rate)), options.seconds
                )
                for name, rate in (("steady", RATE), ("saturated", None))
            }
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)
    report = {"items": options.items, "dim": DIM, "clients": options.clients, "rate": RATE, **stalls, **loads}
    print(json.dumps(report, indent=1))
    if not options.print:
        write({"machine": {**machine("cpu"), **versions("torch", "numpy", "fastapi", "uvicorn")}, **report}, RESULT)
        fill(PAGE, {"serve": table(report)})


def measure_stalls(seconds: float = 10.0) -> dict[str, float]:
    """Gaps between two readings of the clock: the longest, and the share of the time in gaps over a millisecond."""
    last = begun = time.perf_counter()
    gaps = []
    while last < begun + seconds:
        now = time.perf_counter()
        if now - last > 1e-3:
            gaps.append(now - last)
        last = now
    return {"longest_stall_ms": round(1e3 * max(gaps, default=0.0), 1), "stalled_share": round(sum(gaps) / seconds, 4)}


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


async def load(port: int, server: int, clients: int, seconds: float, rate: float | None) -> Seen:
    """Ask until the time is over, `rate` times a second or as often as there are answers."""
    queries = np.random.default_rng(1).normal(size=(BODIES, DIM))
    bodies = [json.dumps({"vector": query.round(6).tolist(), "k": K}).encode() for query in queries]
    head = (
        "POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    )
    requests = [head.format(len(body)).encode() + body for body in bodies]
    seen, begun = Seen(), time.perf_counter()
    end = begun + WARM + seconds
    watched = asyncio.create_task(watch(server, begun, end, seen))
    pauses = [None if rate is None else (begun + number / rate, clients / rate) for number in range(clients)]
    each = [
        client(port, requests[number * 31 % BODIES :] + requests, begun, end, seen, pause)
        for number, pause in enumerate(pauses)
    ]
    await asyncio.gather(*each)
    await watched
    return seen


async def client(
    port: int, requests: list[bytes], begun: float, end: float, seen: Seen, pause: tuple[float, float] | None
) -> None:
    """One after the other, over one connection; plain sockets, so that little of the cores' time is the clients'.

    `pause` is when the first query is due and how long after it the next one.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = 0
    while (asked := time.perf_counter() if pause is None else pause[0] + number * pause[1]) < end:
        await asyncio.sleep(max(0.0, asked - time.perf_counter()))
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


def summary(seen: Seen, seconds: float) -> dict[str, Any]:
    """The numbers that matter."""
    times = 1e3 * np.array(seen.times)
    settled = [size for moment, size in seen.memory if moment > WARM]
    tenth = max(1, len(settled) // 10)
    return {
        "seconds": seconds,
        "queries": len(times),
        "queries_per_second": round(len(times) / seconds, 1),
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
    names = (
        "load",
        "queries/s",
        "median latency",
        "99th percentile",
        "errors",
        "memory, first and last tenth",
    )
    lines = ["| " + " | ".join(names) + " |", "| --- | --: | --: | --: | --- | --- |"]
    for load, name in (
        ("steady", f"{report['rate']:.0f} queries arrive per second"),
        ("saturated", f"{report['clients']} clients without a pause"),
    ):
        row = report[load]
        cells = (
            name,
            f"{row['queries_per_second']:.0f}",
            f"{row['p50_ms']:.0f} ms",
            f"{row['p99_ms']:.0f} ms",
            f"{row['errors']} in {row['queries']:,} queries, {row['seconds']:.0f} s",
            f"{row['memory_mib_first']:.0f}, {row['memory_mib_last']:.0f} MiB",
        )
        lines.append("| " + " | ".join(cells) + " |")
    note = (
        f"Without any load, this machine stalled for up to {report['longest_stall_ms']:.0f} ms at a time "
        f"({100 * report['stalled_share']:.0f}% of the time)."
    )
    return "\n".join([*lines, "", note])


if __name__ == "__main__":
    main()
