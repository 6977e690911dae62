"""Training steps of ArcFace on millions of classes: loss, all gradients and the update; run by `benchmarks.classes`.

A row is a fresh process.  Its memory is the peak of allocated memory in a step, less what a training of any kind holds:
parameters, the state of the optimizer, and the gradients that exist after the backward pass.  With the update in the
backward pass (`likewise.losses.OptimizerInBackward`) the proxies have no such gradient.  The losses of some samples are
compared with those that plain torch computes in float64 from the same proxies, over all classes.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness import GIB, commit, machine, table, versions
from benchmarks.harness.resumable import measure_missing
from likewise.losses import ArcFaceLoss, OptimizerInBackward
from likewise.trunks import Embedder

Row = dict[str, Any]
MILLION = 1_000_000
DIM = 512


def list_rows(options: argparse.Namespace) -> list[Row]:
    """The keys of the rows, the most important first."""
    if options.quick:
        return [
            {"classes": 500, "proxies": "bfloat16", "update": update, "trunk": trunk, "pixels": pixels, "batch": 8}
            for update, trunk, pixels in (("step", None, None), ("backward", None, None), ("backward", "convnet", 32))
        ]
    head: Row = {"trunk": None, "pixels": None, "batch": options.batch}
    heads = [
        (10 * MILLION, "bfloat16", "backward"),
        (10 * MILLION, "bfloat16", "step"),
        (MILLION, "bfloat16", "backward"),
        (MILLION, "bfloat16", "step"),
        (29 * MILLION, "bfloat16", "backward"),
        (10 * MILLION, "float32", "backward"),
    ]
    rows = [{"classes": classes, "proxies": dtype, "update": update, **head} for classes, dtype, update in heads]
    for classes, pixels in ((10, 112), (29, 112), (10, 224), (1, 112), (1, 224)):
        row = {"classes": classes * MILLION, "proxies": "bfloat16", "update": "backward", "trunk": "resnet50"}
        rows.append({**row, "pixels": pixels, "batch": options.batch})
    return rows


class Training:
    """One training: a head, its optimizer, and a network or fixed embeddings.

    Args:
        key: the row.
        dim: of the embeddings.
        device: where it runs.
    """

    def __init__(self, key: Row, dim: int, device: str) -> None:
        torch.manual_seed(0)
        self.device, self.size = torch.device(device), key["batch"]
        torch.set_default_dtype(getattr(torch, key["proxies"]))  # the proxies are made in their dtype, not converted
        with self.device:
            self.loss = ArcFaceLoss(key["classes"], dim, backend="chunked" if device == "cpu" else "auto")
        torch.set_default_dtype(torch.float32)
        make = functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9)
        if key["update"] == "backward":
            self.optimizers = [OptimizerInBackward(self.loss, make).optimizer]
            self.stepped: list[torch.optim.Optimizer] = []
        else:
            self.optimizers = self.stepped = [make([self.loss.proxies])]
        self.labels = torch.randint(key["classes"], (self.size,), device=self.device)
        self.embeddings = torch.randn(self.size, dim, device=self.device).bfloat16().requires_grad_()
        self.model: nn.Module | None = None
        if key["trunk"] is not None:
            self.model = Embedder(key["trunk"], dim).to(self.device, memory_format=torch.channels_last).train()
            of_model = make(self.model.parameters())
            self.optimizers, self.stepped = [*self.optimizers, of_model], [*self.stepped, of_model]
            shape = (self.size, 1 if key["trunk"] == "convnet" else 3, key["pixels"], key["pixels"])
            self.images = torch.randint(256, shape, dtype=torch.uint8, device=self.device)

    def step(self) -> None:
        """Compute the loss and all gradients, and update everything."""
        for optimizer in self.stepped:
            optimizer.zero_grad(set_to_none=True)
        self.embeddings.grad = None
        with self.autocast():
            embeddings = self.embeddings if self.model is None else self._embed()
            value = self.loss(embeddings, self.labels)
        value.backward()
        for optimizer in self.stepped:
            optimizer.step()

    def autocast(self) -> torch.autocast:
        """Mixed precision on a GPU; not every CPU multiplies in bfloat16."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def _embed(self) -> Tensor:
        assert self.model is not None
        images = self.images.to(torch.float32, memory_format=torch.channels_last).sub_(127.5).div_(64.0)
        embeddings: Tensor = self.model(images)
        return embeddings.bfloat16()  # embeddings of unit length are float32, and the head multiplies in bfloat16

    def held(self) -> dict[str, int]:
        """Bytes of parameters, gradients and the state of optimizers after a step."""
        parameters = [*self.loss.parameters(), *(() if self.model is None else self.model.parameters())]
        states = [
            each for optimizer in self.optimizers for state in optimizer.state.values() for each in state.values()
        ]
        kinds = {
            "parameters": parameters,
            "gradients": [each.grad for each in parameters if each.grad is not None],
            "optimizer": [each for each in states if isinstance(each, Tensor)],
        }
        return {kind: sum(each.numel() * each.element_size() for each in tensors) for kind, tensors in kinds.items()}

    @torch.no_grad()
    def value_error(self, samples: int = 8, chunk: int = 100_000) -> float:
        """The largest relative error of the losses of some samples, against float64 over all classes."""
        self.loss.reduction = "none"
        with self.autocast():
            found = self.loss(self.embeddings, self.labels)[:samples].double()
        self.loss.reduction = "mean"
        anchors, labels = nn.functional.normalize(self.embeddings[:samples].double()), self.labels[:samples]
        own, totals = torch.zeros_like(found), torch.full_like(found, -torch.inf)
        scale, margin = self.loss.scale, math.radians(self.loss.margin)
        for first in range(0, len(self.loss.proxies), chunk):
            proxies = self.loss.proxies[first : first + chunk].bfloat16().double()  # as they enter the product
            cosines = anchors @ nn.functional.normalize(proxies).T
            rows = ((labels >= first) & (labels < first + chunk)).nonzero()[:, 0]
            columns = labels[rows] - first
            cosines[rows, columns] = torch.cos(torch.acos(cosines[rows, columns].clamp(-1.0, 1.0)) + margin)
            own[rows] = scale * cosines[rows, columns]
            totals = torch.logaddexp(totals, torch.logsumexp(scale * cosines, dim=1))
        truth = totals - own
        return float(((found - truth).abs() / truth).max())


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(key: Row, dim: int, device: str, seconds: float) -> Row:
    """One row, in a process of its own."""
    training = Training(key, dim, device)
    row: Row = {}
    if key["trunk"] is None:
        row["value_error"] = float(f"{training.value_error():.2g}")
    for _ in range(3):
        training.step()
    wait(training.device)
    cuda = training.device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats(training.device)
    times: list[float] = []
    while sum(times) < seconds or len(times) < 5:
        begin = time.perf_counter()
        training.step()
        wait(training.device)
        times.append(time.perf_counter() - begin)
    held = training.held()
    row |= {"steps": len(times), "seconds": round(statistics.median(times), 5)}
    row["samples_per_s"] = round(key["batch"] / statistics.median(times), 1)
    row["gib"] = {kind: round(size / GIB, 3) for kind, size in held.items()}
    if cuda:
        peak = torch.cuda.max_memory_allocated(training.device)
        row["gib"] |= {"peak": round(peak / GIB, 3), "beyond": round((peak - sum(held.values())) / GIB, 3)}
    return row


def run(options: argparse.Namespace, path: Path | None) -> None:
    """Measure the rows that are missing, until the time is up."""
    dim, seconds = (16, 0.0) if options.quick else (DIM, 5.0)
    head = {
        "machine": {**machine(options.device), **versions("torch", "triton")},
        "commit": commit(),
        "arguments": {"dim": dim, "loss": "ArcFaceLoss", "optimizer": "SGD, momentum 0.9", "seconds": seconds},
    }
    task = functools.partial(measure, dim=dim, device=options.device, seconds=seconds)
    measure_missing(path, head, list_rows(options), task, options, least=20.0)


def _cells(row: Row) -> list[str]:
    key, memory = row["key"], row["gib"]
    trunk = "–" if key["trunk"] is None else f"ResNet-50, {key['pixels']} px"
    update = "in the backward pass" if key["update"] == "backward" else "after it"
    held = memory["parameters"] + memory["gradients"] + memory["optimizer"]
    return [
        f"{key['classes'] // MILLION} M",
        trunk,
        key["proxies"],
        update,
        f"{1000.0 * row['seconds']:,.0f}",
        f"{row['samples_per_s']:,.0f}",
        f"{held:.1f}",
        f"{memory['beyond']:.2f}",
    ]


def _order(row: Row) -> tuple[str, int, int]:
    key = row["key"]
    return key["trunk"] or "", key["pixels"] or 0, key["classes"]


def describe(report: dict[str, Any]) -> str:
    """The section of the page: a sentence and a table."""
    described, rows = report["machine"], [row for row in report["rows"] if "skipped" not in row]
    skipped = [row for row in report["rows"] if "skipped" in row]
    errors = [row["value_error"] for row in rows if "value_error" in row]
    batch = rows[0]["key"]["batch"]
    head = ["classes", "network", "proxies", "update", "ms", "samples/s", "held GiB", "beyond GiB"]
    words = (
        f"{described['device']}, torch {described['torch']}, Triton {described['triton']}; ArcFace, {batch:,} samples of "
        f"{report['arguments']['dim']} dimensions in bfloat16, {report['arguments']['optimizer']}. A step is the loss, all "
        "gradients and the update. Held are parameters, gradients and the state of the optimizer; beyond is the rest of the "
        f"peak, the network's activations included. Values differ from float64 by at most {max(errors):.1g} of the loss."
    )
    missing = "".join(
        f" Not measured: {row['key']['classes'] // MILLION} M classes at {row['key']['pixels']} px ({row['why']})."
        for row in skipped
    )
    return f"{words}{missing}\n\n{table(head, map(_cells, sorted(rows, key=_order)), words=(0, 1, 2, 3))}"
