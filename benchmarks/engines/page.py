"""The tables of docs/benchmarks-engines.md, as Markdown, from the rows that `engines.py` wrote."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from benchmarks.engines.bars import find, groups
from benchmarks.harness import number, page, times

Report = dict[str, Any]
Row = dict[str, Any]
PEER = "pytorch-metric-learning"
NOTHING = "Not measured yet."

PRECISIONS = {
    "bf16": {"input": "bfloat16"},
    "float32": {"input": "float32", "products": "highest"},
    "float32, TF32 allowed (`high`)": {"input": "float32", "products": "high"},
    "float32, bf16 allowed (`medium`)": {"input": "float32", "products": "medium"},
}


def blocks(report: Report, cpu: Report | None) -> dict[str, str]:
    """Every block of the page by the name of its markers."""
    return {
        "engines-machine": machine_block(report),
        "engines-bars": bars_block(report),
        "engines-large": large_block(report),
        "engines-proxies": proxies_block(report),
        "engines-triplets": triplets_block(report),
        "engines-rate": rate_block(report),
        "engines-small": small_block(report),
        "engines-compiled": compiled_block(report),
        "engines-auto": auto_block(report),
        "engines-auto-cpu": auto_block(cpu) if cpu else NOTHING,
        "engines-errors": errors_block(report),
        "engines-precision": precision_block(report),
        "engines-failed": failed_block(report),
    }


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table, its first column to the left; a sentence where it has no rows."""
    listed = list(rows)
    return page.table(head, listed) if listed else NOTHING


def cell(rows: Iterable[Row], memory: str = "extra_mib") -> str:
    """Time and memory of the only row, or a dash."""
    row = next(iter(rows), None)
    if row is None:
        return "–"
    return number(row["median_ms"]) + (f" / {number(max(row[memory], 0.0))}" if memory in row else "")


def names(report: Report, part: str, field: str = "loss") -> list[Any]:
    """The values of a field in a part, in the order of the rows."""
    return list(dict.fromkeys(row["key"].get(field) for row in report["rows"] if row["key"]["part"] == part))


def machine_block(report: Report) -> str:
    """Where and with what it ran."""
    facts, arguments = report["machine"], report["arguments"]
    packages = ", ".join(f"{name} {facts[name]}" for name in ("torch", "triton", PEER) if name in facts)
    where = facts.get("device", f"{facts['cpu']}, {facts['cores']} cores")
    return (
        f"{where}; Python {facts['python']}, {packages}; {arguments['dim']}-d, {arguments['per_class']} samples per "
        f"class, {arguments['seconds']:g} s for each row."
    )


def bars_block(report: Report) -> str:
    """Targets: for each subject why it matters, the target, what was measured, met or not."""
    texts = []
    for title, reason, found in groups(report):
        rows = []
        for bar in found:
            limit = (
                "runs" if math.isinf(bar.limit) else f"{'≥' if bar.at_least else '≤'} {bar.limit:,g} {bar.unit}".strip()
            )
            measured = "–" if math.isnan(bar.found) else f"{amount(bar.found)} {bar.unit}".strip()
            rows.append([bar.what, limit, measured, f"**{bar.verdict}**" if bar.verdict == "not met" else bar.verdict])
        texts.append(f"**{title}.** {reason}\n\n{table(['', 'target', 'measured', ''], rows)}")
    return "\n\n".join(texts)


def amount(value: float) -> str:
    """A count without decimals, a measurement with three digits."""
    return f"{value:,.0f}" if value == int(value) else number(value)


SHORT = {
    "bf16": "bf16",
    "float32, bf16 allowed (`medium`)": "`medium`",
    "float32, TF32 allowed (`high`)": "`high`",
    "float32": "float32",
}


def large_block(report: Report) -> str:
    """Times and memory of pair losses: a row for each loss and size, a column for each engine and precision."""
    columns = [(engine, words) for engine in ("triton", "chunked", "dense", PEER) for words in SHORT]
    rows = []
    for loss in names(report, "large"):
        for size in sorted(names(report, "large", "size")):
            wanted = {"part": "large", "loss": loss, "size": size}
            rows.append([
                f"{loss}, {size:,}",
                *(cell(find(report, contender=engine, **PRECISIONS[words], **wanted)) for engine, words in columns),
            ])  # fmt: skip
    return compact(["loss, B", *columns], rows)


def compact(head: list[Any], rows: list[list[str]]) -> str:
    """A table without the columns and rows that are empty."""
    rows = [row for row in rows if any(text != "–" for text in row[1:])]
    kept = [0, *(at for at in range(1, len(head)) if any(row[at] != "–" for row in rows))]
    shown = [head[0], *(f"{'PML' if engine == PEER else engine} {SHORT[words]}" for engine, words in head[1:])]
    return table([shown[at] for at in kept], [[row[at] for at in kept] for row in rows])


def proxies_block(report: Report) -> str:
    """Class heads: time, and memory beyond the proxies and their gradient."""
    columns = [(engine, words) for engine in ("triton", PEER) for words in SHORT]
    found = list(find(report, part="proxies"))
    cases = sorted({(row["key"]["loss"], row["key"]["classes"], row["key"]["size"]) for row in found})
    rows = []
    for loss, classes, size in cases:
        wanted = {"part": "proxies", "loss": loss, "classes": classes, "size": size}
        cells = []
        for engine, words in columns:
            same = [
                row
                for row in find(report, contender=engine, **PRECISIONS[words], **wanted)
                if row["key"]["input"] == row["key"]["proxies"]
            ]
            cells.append(cell(same, "beyond_proxies_mib" if same and "beyond_proxies_mib" in same[0] else "extra_mib"))
        rows.append([f"{loss}, {classes:,}, {size:,}", *cells])
    return compact(["loss, classes, B", *columns], rows)


def triplets_block(report: Report) -> str:
    """Triplet losses."""
    sizes = sorted(names(report, "triplets", "size"))
    rows = []
    for loss in names(report, "triplets"):
        for words, wanted in PRECISIONS.items():
            for contender in ("auto", "triton", "chunked", "dense", PEER):
                chosen = {"part": "triplets", "loss": loss, "contender": contender, **wanted}
                cells = [cell(find(report, size=size, **chosen)) for size in sizes]
                if any(text != "–" for text in cells):
                    rows.append([f"{loss}, {words}, {contender}", *cells])
    return table(["ms / MiB beyond the inputs", *(f"B = {size:,}" for size in sizes)], rows)


def rate_block(report: Report) -> str:
    """Operations per second of torch.matmul and of one loss; the results have those of the others."""
    rows = []
    for row in find(report, part="rate"):
        key = row["key"]
        if key["contender"] != "torch" and key["loss"] != "Multi-similarity":
            continue
        who = "torch.matmul" if key["contender"] == "torch" else f"{key['loss']}, {key['what']}"
        given = "bf16" if key["input"] == "bfloat16" else f"float32, {key['products']}"
        error = f"{row['gradient_error']:.1e}" if "gradient_error" in row else ""
        rows.append([who, f"{key['size']:,}", given, number(row["median_ms"]), number(row["tflops"]), error])
    return table(["", "B", "products", "ms", "TFLOP/s", "gradient error"], rows)


def small_block(report: Report) -> str:
    """Every loss at the smallest size: a call, the same without graphs, device time, PML; then ours and PML by size."""
    sizes = sorted(names(report, "small", "size"))
    first, others = [], []
    for loss in names(report, "small"):
        cells = []
        for size in sizes:
            wanted = {"part": "small", "loss": loss, "size": size, "compiled": None}
            ours = next(find(report, contender="auto", **wanted), None)
            theirs = next(find(report, contender=PEER, **wanted), None)
            shown = [
                None if ours is None else ours["median_ms"],
                *((ours or {}).get(how, {}).get("median_ms") for how in ("plain", "graph")),
                None if theirs is None else theirs["median_ms"],
            ]
            cells.append(["–" if value is None else number(value) for value in shown])
        first.append([loss, *cells[0]])
        others.append([loss, *(f"{each[0]} / {each[3]}" for each in cells)])
    head = [f"B = {sizes[0]:,}, ms", "likewise", "without graphs", "device time", "PML"] if sizes else []
    by_size = ["likewise / PML, ms", *(f"B = {size:,}" for size in sizes)]
    return f"{table(head, first)}\n\n{table(by_size, others)}"


def compiled_block(report: Report) -> str:
    """What torch's compiler makes of some losses."""
    rows = []
    for row in find(report, part="small", compiled=True):
        wanted = {**row["key"], "compiled": None}
        eager = next(find(report, **wanted), None)
        gain = "–" if eager is None else times(eager["median_ms"] / row["median_ms"])
        rows.append([row["key"]["loss"], number(row["median_ms"]), gain, f"{row['first_s']:.0f} s"])
    return table(["B = 128, `torch.compile(fullgraph=True)`", "ms", "eager ÷ compiled", "to compile"], rows)


def auto_block(report: Report) -> str:
    """Which engine is fastest where: anchors down, references across."""
    texts = []
    for loss in names(report, "auto"):
        found = list(find(report, part="auto", loss=loss, input="float32"))
        across = sorted({row["key"]["references"] for row in found})
        down = sorted({row["key"]["size"] for row in found})
        rows = []
        if all(row["key"]["size"] == row["key"]["references"] for row in found):
            texts.append(f"{loss}:\n\n" + squares(found, down))
            continue
        for m in down:
            cells = []
            for n in across:
                timed = {r["key"]["contender"]: r["median_ms"] for r in found if at(r, m, n)}
                best = min(timed, key=lambda name: timed[name]) if timed else None
                cells.append("–" if best is None else f"{best} {number(timed[best])}")
            rows.append([f"{m:,}", *cells])
        if rows:
            texts.append(f"{loss}:\n\n" + table(["anchors \\ references", *(f"{n:,}" for n in across)], rows))
    return "\n\n".join(texts) or NOTHING


def squares(found: list[Row], sizes: list[int]) -> str:
    """Every engine's time where there are as many references as anchors; the fastest is bold."""
    engines = list(dict.fromkeys(row["key"]["contender"] for row in found))
    rows = []
    for m in sizes:
        timed = {row["key"]["contender"]: row["median_ms"] for row in found if at(row, m, m)}
        cells = [number(timed[name]) if name in timed else "–" for name in engines]
        best = engines.index(min(timed, key=lambda name: timed[name]))
        cells[best] = f"**{cells[best]}**"
        rows.append([f"{m:,}²", *cells])
    return table(["anchors × references, ms", *engines], rows)


def at(row: Row, m: int, n: int) -> bool:
    """Whether a row is of so many anchors and references."""
    return bool(row["key"]["size"] == m and row["key"]["references"] == n)


def precision_block(report: Report) -> str:
    """The worst of each engine and dtype, and how many cases there were."""
    rows, seen = [], names(report, "precision", "contender")
    for engine in seen:
        cases = list(find(report, part="precision", contender=engine))
        for given in dict.fromkeys(name for row in cases for name in row["by"]):
            parts = [(row["key"]["loss"], row["by"][given]) for row in cases if "value_error" in row["by"][given]]
            beyond = [name for name, part in parts if not part["within"]]
            worst = [max(part[field] for _, part in parts) for field in ERRORS] if parts else []
            rows.append([
                f"{engine}, {given}",
                f"{len(parts)}",
                *(f"{value:.0e}" for value in worst),
                "; ".join(beyond) or "none",
            ])  # fmt: skip
    head = ["engine, dtype", "cases", "value", "dense value", "gradient", "dense gradient", "over twice the dense"]
    return table(head, rows)


ERRORS = ("value_error", "dense_value_error", "gradient_error", "dense_gradient_error")


def errors_block(report: Report) -> str:
    """The largest error of a timed call, by engine and precision."""
    rows = []
    for contender in ("triton", "chunked", "dense", "auto", PEER):
        for words, wanted in PRECISIONS.items():
            found = list(find(report, part=("large", "proxies", "triplets"), contender=contender, **wanted))
            cells = [worst(found, field) for field in ("value_error", "anchors_error", "gradient_error")]
            if found:
                rows.append([f"{contender}, {words}", f"{len(found)}", *cells])
    return table(["", "rows", "value", "single anchors", "gradient"], rows)


def worst(rows: list[Row], field: str) -> str:
    """The largest error, and where it is."""
    row = max((row for row in rows if field in row), key=lambda row: row[field], default=None)
    return "–" if row is None else f"{row[field]:.0e} ({row['key']['loss']}, B = {row['key']['size']:,})"


def failed_block(report: Report) -> str:
    """Rows without a number, by their reason."""
    reasons: dict[str, list[str]] = {}
    for row in report["rows"]:
        if "why" in row:
            key = row["key"]
            size = f", B = {key['size']:,}" if key.get("size") else ""
            given = f", {key['input']} {key['products']}" if "input" in key else ""
            reasons.setdefault(row["why"][:120], []).append(f"{key['contender']}: {key['loss']}{size}{given}")
    lines = [f"- {why}: {'; '.join(rows[:6])}{more(rows)}" for why, rows in reasons.items()]
    return "\n".join(lines) or "None."


def more(rows: list[str]) -> str:
    """How many there are beyond six."""
    return f"; and {len(rows) - 6} more" if len(rows) > 6 else ""
