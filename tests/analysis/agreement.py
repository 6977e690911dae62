"""Random batches for losses in JavaScript and in Python, and how far apart the two are; the benchmark uses it too."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from likewise.analysis.catalog import Entry
from likewise.analysis.weights import weigh
from likewise.formula import as_similarity
from likewise.miners import TripletMiner

NODE = shutil.which("node")
TIES_ARE_FREE = {"ProxyGML"}
"""Losses that take so many of the nearest: of several at the same distance torch may take any."""

NEAREST = 1e-3
"""Distances below this are half rounding: a distance d is known to 1e-16 / d², whoever computes it."""

DRIVER = """
const apart = (found, expected) => {
  const list = typeof found === "number" ? [found] : Array.from(found);
  if (list.length !== expected.length) return Infinity;
  let largest = 0, worst = 0;
  for (let i = 0; i < list.length; i++) {
    largest = Math.max(largest, Math.abs(expected[i]));
    const gap = Math.abs(list[i] - expected[i]);
    worst = gap <= worst ? worst : gap;  // NaN stays
  }
  return worst / (largest + FLOOR);
};
const compared = (loss, batch) => {
  const proxies = batch.proxies && Float64Array.from(batch.proxies);
  const said = loss.run(Float64Array.from(batch.samples), Int32Array.from(batch.labels), batch.labels.length,
    batch.samples.length / batch.labels.length, proxies, batch.classes, batch.values);
  const {value, matrices, gradient, proxyGradient} = batch.expected;
  const result = [apart(said.value, [value]), apart(said.gradient, gradient)];
  if (said.matrices.length !== matrices.length) return [Infinity];
  matrices.forEach((matrix, k) => {
    const other = said.matrices[k];
    const alike = other.between === matrix.between && other.rows === matrix.rows && other.columns === matrix.columns;
    result.push(alike ? 0 : Infinity, apart(other.s, matrix.s), apart(other.derivatives, matrix.derivatives));
  });
  result.push(proxyGradient === null ? (said.proxyGradient === null ? 0 : Infinity) : apart(said.proxyGradient, proxyGradient));
  return result.map((each) => (Number.isFinite(each) ? each : String(each)));
};
const answers = (losses, cases) => cases.map(([name, batch]) => compared(losses[name], batch));
"""
FLOOR = 1e-3
"""What counts as large for numbers that are all next to nothing."""


def batches(entry: Any, number: int, seed: int, *, ties: bool = True) -> list[dict[str, Any]]:
    """Random batches with hyper-parameters from the whole of their sliders.

    Args:
        entry: what the JavaScript says of the loss: its parameters, and how many proxies a class has.
        number: how many.
        seed: of the draws.
        ties: whether points may coincide.
    """
    chance = random.Random(seed)
    draw = torch.Generator().manual_seed(seed)
    found = []
    for k in range(number):
        kind = ("plain", "clusters", "coinciding" if ties else "plain", "plain", "alone", "together")[k % 6]
        values = {parameter["name"]: _drawn(parameter, chance) for parameter in entry["parameters"]}
        centers = int(values.get("centers", entry["centers"]))
        samples, labels, proxies, classes = _points(kind, centers, chance, draw)
        while kind != "coinciding" and _nearest(samples) < NEAREST:
            samples, labels, proxies, classes = _points(kind, centers, chance, draw)
        found.append(
            {
                "samples": samples,
                "labels": labels,
                "proxies": proxies if centers else None,
                "classes": classes,
                "values": list(values.values()),
                "ties": kind == "coinciding",
            }
        )
    return found


def _points(
    kind: str, centers: int, chance: random.Random, draw: torch.Generator
) -> tuple[Tensor, Tensor, Tensor, int]:
    """Samples, labels and proxies, and the number of classes."""
    classes, n = chance.randint(1, 5), chance.randint(2, 12)
    # where points coincide every product must be exact, or rounding would decide who is nearer
    d = chance.choice((2, 4)) if kind == "coinciding" else chance.randint(2, 4)
    labels = torch.randint(0, classes, (n,), generator=draw)
    if kind == "alone":  # nobody has a positive
        classes, n = 5, chance.randint(2, 5)
        labels = torch.randperm(5, generator=draw)[:n]
    if kind == "together":  # nobody has a negative
        labels = torch.full((n,), chance.randrange(classes))
    samples, middles, proxies = (
        torch.randn(rows, d, generator=draw, dtype=torch.float64) for rows in (n, classes, classes * centers)
    )
    if kind == "clusters":
        samples = middles[labels] + 0.02 * samples
    if kind == "coinciding":
        samples, proxies = _on_axes(samples, draw), _on_axes(proxies, draw)
    return samples, labels, proxies, classes


def _nearest(samples: Tensor) -> float:
    """The smallest distance between two samples at unit length."""
    units = samples / samples.norm(dim=1, keepdim=True)
    apart = (units[:, None] - units[None, :]).norm(dim=2)
    return float((apart + 9.0 * torch.eye(len(samples))).min())


def _on_axes(like: Tensor, draw: torch.Generator) -> Tensor:
    """Points on the axes, at lengths that are powers of two."""
    n, d = like.shape
    axis, turn = torch.randint(0, d, (n,), generator=draw), torch.randint(0, 2, (n,), generator=draw) * 2 - 1
    length = 2.0 ** torch.randint(-2, 3, (n,), generator=draw).double()
    return nn.functional.one_hot(axis, d).double() * (turn * length)[:, None]


def _drawn(parameter: Mapping[str, Any], chance: random.Random) -> float:
    if parameter["choices"]:
        return float(chance.choice(parameter["choices"]))
    if chance.random() < 0.3:
        return float(chance.choice((parameter["value"], parameter["least"], parameter["most"])))
    if parameter["whole"]:
        return float(chance.randint(parameter["least"], parameter["most"]))
    if parameter["log"]:
        return math.exp(chance.uniform(math.log(parameter["least"]), math.log(parameter["most"])))
    return chance.uniform(parameter["least"], parameter["most"])


def in_python(entry: Entry, parameters: list[Mapping[str, Any]], batch: Mapping[str, Any]) -> dict[str, Any]:
    """What the loss itself says of a batch, in float64."""
    given = {
        parameter["name"]: int(value) if parameter["whole"] else value
        for parameter, value in zip(parameters, batch["values"], strict=True)
    }
    of_miner = {name.removeprefix("miner."): value for name, value in given.items() if name.startswith("miner.")}
    own = {name: value for name, value in given.items() if not name.startswith("miner.")}
    torch.set_default_dtype(torch.float64)
    try:
        loss: Any = entry.make(batch["classes"], batch["samples"].shape[1], **own)
    finally:
        torch.set_default_dtype(torch.float32)
    if of_miner:
        loss.miner = dataclasses.replace(loss.miner, **of_miner)
    if batch["proxies"] is not None:
        with torch.no_grad():
            loss.proxies.copy_(batch["proxies"])
    if batch["ties"] and isinstance(getattr(loss, "miner", None), TripletMiner):
        # of several pairs at the chosen similarity a rule gives each its share, as on the page; a small batch names the first
        declared = loss.declare().chosen_by(loss.miner.choice(as_similarity(loss.similarity)))
        loss.miner, loss.declare = None, lambda: declared
    return said_by(loss, batch)


def said_by(loss: Any, batch: Mapping[str, Any]) -> dict[str, Any]:
    """Value, matrices, derivatives and gradients of a loss."""
    weighing = weigh(loss, batch["samples"], batch["labels"])
    by_proxies = None
    if batch["proxies"] is not None:
        value = loss(batch["samples"], batch["labels"])
        (by_proxies,) = torch.autograd.grad(value, [loss.proxies], allow_unused=True, materialize_grads=True)
    # a matrix that the loss made several times is one matrix with the sum of the derivatives
    matrices: dict[str, dict[str, Any]] = {}
    for matrix in weighing.matrices:
        derivatives = matrix.derivatives + (
            matrices[matrix.between]["derivatives"] if matrix.between in matrices else 0.0
        )
        matrices[matrix.between] = {"s": matrix.similarities, "derivatives": derivatives}
    return {
        "value": weighing.value.item(),
        "matrices": [
            {
                "between": between,
                "rows": each["s"].shape[0],
                "columns": each["s"].shape[1],
                **{name: values.flatten().tolist() for name, values in each.items()},
            }
            for between, each in matrices.items()
        ],
        "gradient": weighing.gradient.flatten().tolist(),
        "proxyGradient": None if by_proxies is None else by_proxies.flatten().tolist(),
    }


def facts(text: str, folder: Path) -> dict[str, Any]:
    """What a file of scripts says of its losses."""
    asked = "JSON.stringify(LENS)"
    return dict(json.loads(evaluated(text, asked, folder)))


def gaps(text: str, cases: list[tuple[str, dict[str, Any]]], folder: Path) -> list[list[float]]:
    """For each case how far JavaScript is from what is expected: value, gradient, each matrix, proxies' gradient.

    A gap is relative to the largest entry; NaN and missing ones are infinite.
    """
    plain = [[name, _plain(batch)] for name, batch in cases]
    text = f"{text}\nconst FLOOR = {FLOOR};\n{DRIVER}\nconst CASES = {json.dumps(plain)};\n"
    found = json.loads(evaluated(text, "JSON.stringify(answers(LENS, CASES))", folder))
    return [[each if isinstance(each, int | float) else math.inf for each in gap] for gap in found]


def _plain(batch: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each.flatten().tolist() if isinstance(each, Tensor) else each for name, each in batch.items()}


def evaluated(text: str, expression: str, folder: Path) -> str:
    """An expression after a script, in node or, where there is none, in Chromium."""
    if NODE is None:
        return _in_chromium(text, expression, folder)
    program = folder / "program.cjs"
    program.write_text(f"{text}\nprocess.stdout.write({expression});", encoding="utf-8")
    result = subprocess.run([NODE, program], capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


def _in_chromium(text: str, expression: str, folder: Path) -> str:
    from tests.report.browser import Browser

    page = folder / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><script>{text}</script>", encoding="utf-8")
    with Browser(folder / "profile") as browser:
        browser.call("Page.navigate", url=page.as_uri())
        while True:
            asked = "typeof LENS === 'undefined' || document.readyState !== 'complete' ? null : " + expression
            found = browser.call("Runtime.evaluate", expression=asked, returnByValue=True)["result"].get("value")
            if found is not None:
                return str(found)
