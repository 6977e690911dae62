"""Speed and memory of every loss, side by side with pytorch-metric-learning, forward and backward.

    python -m benchmarks.losses.measure                about twenty minutes on two cores; writes results/losses-cpu.json
    python -m benchmarks.losses.measure --minutes 9    stops after nine; the same command measures the rest
    python -m benchmarks.losses.measure --quick        a smoke test of half a minute; prints, and writes nothing
    python -m benchmarks.losses.plot                   the figure and the tables of docs/benchmarks.md, from that file

Each row is written when it is measured.  A run continues the file that it writes if code, machine and arguments are the
same.  Run it on a machine that does nothing else; on a shared machine, measure CPU time on one core:

    taskset -c 1 python -m benchmarks.losses.measure --clock cpu --no-memory --losses NCA SupCon --out FILE
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks.harness import CLOCKS, GIB, MIB, fingerprint, machine, make_parser, result_path, versions, write
from benchmarks.harness.pairings import HEAD_CLASSES, HEADS, PAIRINGS, SAMPLES_PER_CLASS, Pairing
from benchmarks.harness.results import resume
from benchmarks.losses.cells import Settings, in_child, peak_memory, time_cell, time_floor

PROBE = 256
LARGE = ("Triplet, all", 4096, 2 * GIB)
"""One loss at a large size, and the memory that it may take there."""

PROBES = {2: (512, 1024), 3: (256, 512)}
"""Batches from which the memory of a peer is predicted where it does not fit, by how it grows."""

SHARE = 0.05
"""How much of a peer's quadratic memory a large batch may take."""

Row = dict[str, Any]


def main() -> None:
    """Measure everything, print and write each row as it comes."""
    options = parse()
    limits = int(options.memory_limit * GIB), float(options.time_limit)
    settings = Settings(options.device, options.dim, options.seconds, *limits, options.clock)
    options.deadline = time.monotonic() + 60.0 * options.minutes
    report = open_report(options)
    print(", ".join(f"{key} {value}" for key, value in report["machine"].items()))
    if not report["floor"]:
        report["floor"] = [{"size": n, **in_child(time_floor, n, settings=settings)} for n in options.sizes]
    print_floor(report["floor"])
    print_header()
    for row in measure_rows(options, settings, report["rows"]):
        report["rows"].append({**row, "code": report["code"]})
        write(report, options.out)
    if options.memory and "large" not in report and time.monotonic() < options.deadline:
        report["large"] = measure_large(settings)
        write(report, options.out)
    if options.memory and options.memory_size:
        settings = replace(settings, memory_limit=16 * GIB, time_limit=120.0)
        for row in measure_memory(options, settings, report["memory"]):
            report["memory"].append(row)
            write(report, options.out)
    if time.monotonic() >= options.deadline:
        print(f"stopped after {options.minutes:g} minutes; the same command continues")


def open_report(options: argparse.Namespace) -> dict[str, Any]:
    """The report so far, if code, machine and arguments are the same; otherwise an empty one."""
    head = {"machine": describe(options.device), "arguments": arguments(options), "code": fingerprint()}
    known = resume(options.out, head, but=("code",) if options.any_code else ())
    if known is not None:
        return known
    memory = {"memory_size": options.memory_size, "memory": []} if options.memory else {}
    return {**head, "floor": [], "rows": [], **memory}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, device=True, quick="size 64, 0.1 seconds, no memory", out="losses")
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 512, 1024], help="batch sizes")
    parser.add_argument("--dim", type=int, default=128, help="dimension of the embeddings")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for one side of one cell")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="what is measured")
    parser.add_argument("--memory-limit", type=float, default=8.0, help="GiB that one call may take")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds that one call may take")
    parser.add_argument("--minutes", type=float, default=600.0, help="time for all")
    parser.add_argument("--any-code", action="store_true", help="keep rows of other code, too; each says which")
    parser.add_argument("--losses", nargs="+", metavar="NAME", help="only these rows")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="leave memory out")
    parser.add_argument("--memory-size", type=int, default=8192, help="batch whose memory is compared; 0: none")
    options = parser.parse_args()
    names = [row.name for row in (*PAIRINGS, *HEADS)]
    options.losses = options.losses or names
    if unknown := set(options.losses) - set(names):
        parser.error(f"--losses: no row is called {'; '.join(sorted(unknown))} (there are: {'; '.join(names)})")
    if options.quick:
        options.sizes, options.seconds, options.memory = [64], 0.1, False
    options.out = result_path("losses", options)
    options.sizes.sort()
    return options


def describe(device: str) -> dict[str, Any]:
    """The machine and the versions."""
    return {**machine(device), **versions("torch", "pytorch-metric-learning", "likewise")}


def arguments(options: argparse.Namespace) -> dict[str, Any]:
    """What the run was asked for."""
    names = ("sizes", "dim", "device", "seconds", "memory_limit", "time_limit")
    names += ("clock",) if options.clock != "wall" else ()
    fixed = {"per_class": SAMPLES_PER_CLASS, "head_classes": HEAD_CLASSES, "dtype": "float32", "backend": "auto"}
    return {**{name: getattr(options, name) for name in names}, **fixed}


# ------------------------------------------------------------------------------------------------ rows


def measure_rows(options: argparse.Namespace, settings: Settings, known: list[Row]) -> Iterator[Row]:
    """One row for each loss and size that is not known yet."""
    done = {(row["loss"], row["size"]) for row in known}
    heads = [head.pairing(HEAD_CLASSES, settings.dim) for head in HEADS]
    for pairing in (*PAIRINGS, *heads):
        if pairing.name not in options.losses:
            continue
        probe: Row | None = None
        for size in options.sizes:
            if (pairing.name, size) in done:
                continue
            if time.monotonic() >= options.deadline:
                return
            if pairing.theirs is not None and size > PROBE and probe is None:
                probe = in_child(peak_memory, pairing.name, "theirs", PROBE, settings=settings)
            row = measure_row(pairing, size, out_of_reach(pairing, size, probe, settings), settings)
            if options.memory:
                add_memory(row, settings)
            print_row(row)
            yield row


def out_of_reach(pairing: Pairing, size: int, probe: Row | None, settings: Settings) -> Row | None:
    """Why a peer should not even be tried at this size, judged by what it took at a smaller one."""
    if probe is None or size <= PROBE:
        return None
    if "skipped" in probe:
        return {**probe, "why": f"at B = {PROBE} already: {probe['why']}"}
    factor = (size / PROBE) ** pairing.growth
    predicted = {"predicted_gib": round(probe["bytes"] * factor / GIB, 2)}
    predicted["predicted_s"] = round(probe["seconds"] * factor, 2)
    if predicted["predicted_gib"] * GIB > settings.memory_limit:
        why = f"predicted to need {predicted['predicted_gib']:.1f} GiB, the limit is {settings.memory_limit / GIB:g}"
        return {"skipped": "memory", "why": why, **predicted}
    if predicted["predicted_s"] > settings.time_limit:
        why = f"predicted to need {predicted['predicted_s']:.0f} s, the limit is {settings.time_limit:g}"
        return {"skipped": "time", "why": why, **predicted}
    return None


def measure_row(pairing: Pairing, size: int, unreachable: Row | None, settings: Settings) -> Row:
    """Time and correctness of one loss at one size."""
    row: Row = {"loss": pairing.name, "size": size, "same_problem": pairing.same_problem, "note": pairing.note}
    with_peer = pairing.theirs is not None and unreachable is None
    cell = in_child(time_cell, pairing.name, size, with_peer, settings=settings)
    if "skipped" in cell and with_peer:
        unreachable = cell  # the peer took the whole process down
        cell = in_child(time_cell, pairing.name, size, False, settings=settings)
    if "skipped" in cell:
        cell = {"ours": cell}
    row.update({"theirs": unreachable, "ratio": None, "agreement": None, **cell})
    if timed(row["ours"]) and timed(row["theirs"]):
        row["ratio"] = round(row["theirs"]["median_ms"] / row["ours"]["median_ms"], 3)
    return row


def timed(side: Row | None) -> bool:
    """Whether a side of a row has a time."""
    return side is not None and "median_ms" in side


def add_memory(row: Row, settings: Settings) -> None:
    """Peak memory of the sides that ran."""
    for side in ("ours", "theirs"):
        if timed(row[side]):
            peak = in_child(peak_memory, row["loss"], side, row["size"], settings=settings)
            row[side]["memory_mib"] = round(peak["bytes"] / MIB, 2) if "bytes" in peak else None


def measure_large(settings: Settings) -> Row:
    """Time and memory of all triplets of a large batch."""
    name, size, limit = LARGE
    cell = in_child(time_cell, name, size, False, settings=settings)
    peak = in_child(peak_memory, name, "ours", size, settings=settings)
    extra = peak.get("bytes")
    within = extra is not None and extra < limit
    row = {"loss": name, "size": size, **cell, "limit_mib": limit / MIB, "within_limit": within}
    if timed(cell.get("ours")) and extra is not None:
        row["ours"]["memory_mib"] = round(extra / MIB, 2)
        print(f"{name}, B = {size}: {row['ours']['median_ms']:.0f} ms, {row['ours']['memory_mib']:.0f} MiB", end="")
        print(" (within the limit)" if within else f" (the limit is {limit / MIB:.0f} MiB)")
    return row


def measure_memory(options: argparse.Namespace, settings: Settings, known: list[Row]) -> Iterator[Row]:
    """Peak memory of a batch so large that a matrix of it hurts; theirs where it fits, else predicted, and it says so."""
    size, done = options.memory_size, {row["loss"] for row in known}
    for pairing in PAIRINGS:
        if pairing.theirs is None or pairing.name not in options.losses or pairing.name in done:
            continue
        if time.monotonic() >= options.deadline:
            return
        ours = in_child(peak_memory, pairing.name, "ours", size, settings=settings)
        theirs = memory_of_peer(pairing, size, settings)
        row: Row = {"loss": pairing.name, "size": size, "ours": ours, "theirs": theirs, "share": None}
        if "bytes" in ours and "bytes" in theirs:
            row["share"] = round(ours["bytes"] / max(theirs["bytes"], 1), 4)
        row["within"] = row["share"] is not None and row["share"] < SHARE
        print_memory(row)
        yield row


def memory_of_peer(pairing: Pairing, size: int, settings: Settings) -> Row:
    """Measured, where it fits into the limits; else predicted from smaller batches.

    What grows with the cube is not tried where smaller batches say that it will not fit.  What grows with the square is:
    there the C library may keep more of a small batch than of a large one.
    """
    sizes = PROBES[pairing.growth]
    small, middle = (in_child(peak_memory, pairing.name, "theirs", probe, settings=settings) for probe in sizes)
    for probe, found in zip(sizes, (small, middle), strict=True):
        if "skipped" in found:
            return {**found, "why": f"not even B = {probe:,}: {found['why']}"}
    guess: Row = {"predicted": True, "from": list(sizes)}
    for field in ("bytes", "seconds"):
        # as it grew between the two, but no faster than the algorithm says
        grew = math.log(max(middle[field], 1e-9) / max(small[field], 1e-9), sizes[1] / sizes[0])
        power = min(float(pairing.growth), grew)
        guess |= {field: middle[field] * (size / sizes[1]) ** power, f"{field}_power": round(power, 2)}
    fits = guess["bytes"] < settings.memory_limit and guess["seconds"] < settings.time_limit
    if fits or pairing.growth == 2:
        measured = in_child(peak_memory, pairing.name, "theirs", size, settings=settings)
        if "bytes" in measured:
            return {**measured, "predicted": False}
        guess["why"] = measured["why"]
    return guess


# ------------------------------------------------------------------------------------------------ output


def print_memory(row: Row) -> None:
    """One line on the memory of a large batch."""
    sides = [f"{row[side]['bytes'] / MIB:,.0f} MiB" if "bytes" in row[side] else "-" for side in ("ours", "theirs")]
    predicted = " (predicted)" if row["theirs"].get("predicted") else ""
    share = "-" if row["share"] is None else f"{row['share']:.1%}"
    print(f"{row['loss']:27}{row['size']:>6}  {sides[0]} / {sides[1]}{predicted}  {share}", flush=True)


def print_floor(rows: list[Row]) -> None:
    """The floor of each size."""
    print("floor, the bare similarities: ", end="")
    print(", ".join(f"{row['median_ms']:.3f} ms at B = {row['size']}" for row in rows), flush=True)


def print_header() -> None:
    """The heads of the columns."""
    print(f"\n{'loss':27}{'B':>5}{'ours ms':>11}{'theirs ms':>11}{'ratio':>9}{'ours MiB':>10}{'theirs':>10}", end="")
    print(f"{'float32 error':>15}  agrees")


def print_row(row: Row) -> None:
    """One line of the table."""

    def cell(value: float | None, form: str, width: int) -> str:
        return ("-" if value is None else format(value, form)).rjust(width)

    ours, theirs = row["ours"] or {}, row["theirs"] or {}
    cells = [f"{row['loss']:27}{row['size']:>5}"]
    cells += [cell(side.get("median_ms"), ".3f", 11) for side in (ours, theirs)]
    cells.append(cell(row["ratio"], ".2f", 9))
    cells += [cell(side.get("memory_mib"), ".1f", 10) for side in (ours, theirs)]
    cells.append(cell(row.get("precision", {}).get("value"), ".1e", 15))
    agreement = row["agreement"] or {}
    remarks = [{True: "yes", False: "NO", None: "-"}[agreement.get("agrees")]]
    if agreement.get("agrees") is False:
        remarks.append(f"by {agreement['difference']:.1e}")
    remarks += [side["why"] for side in (ours, theirs, agreement) if "why" in side]
    print("".join(cells) + "  " + "; ".join(remarks), flush=True)


if __name__ == "__main__":
    main()
