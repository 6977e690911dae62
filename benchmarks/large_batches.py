"""Batches of up to 65,536 images through a network in chunks, next to plain steps; run by `benchmarks.caching` on a GPU.

A row is a fresh process.  A step is that of the training loop: embeddings of all images, the loss of the whole batch, all
gradients and the update.  Images are random bytes on the device, so that loading them is not measured, and the network,
whose weights are random, scales them.  Memory is the peak of allocated memory in a step, the images included.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from benchmarks.harness import GIB, commit, machine, table, versions
from benchmarks.harness.resumable import measure_missing
from likewise.losses import MultiSimilarityLoss, ProxyAnchorLoss
from likewise.train.step import Meter, Step
from likewise.trunks import Embedder

Row = dict[str, Any]
PER_CLASS = 4
NAMES = {"efficientnet_lite0": "EfficientNet-Lite0", "resnet50": "ResNet-50", "convnet": "ConvNet"}


class Scaled(nn.Module):
    """A network of images that are bytes."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Scale the images and embed them."""
        scaled = images.to(torch.float32, memory_format=torch.channels_last).sub_(127.5).div_(64.0)
        embeddings: Tensor = self.network(scaled)
        return embeddings


def list_rows(options: argparse.Namespace) -> list[Row]:
    """The keys of the rows, the most important first; a chunk of ``None`` is a plain step."""
    if options.quick:
        return [
            {"trunk": "convnet", "loss": loss, "batch": 32, "chunk": chunk}
            for loss in ("MultiSimilarityLoss", "ProxyAnchorLoss")
            for chunk in (None, 8)
        ]
    sizes: list[tuple[int, int | None]] = [(512, None), (65_536, 512), (65_536, 2048), (4096, None), (4096, 512)]
    rows = [
        {"trunk": trunk, "loss": "MultiSimilarityLoss", "batch": batch, "chunk": chunk}
        for batch, chunk in sizes
        for trunk in ("efficientnet_lite0", "resnet50")
    ]
    others = [{**row, "loss": "ProxyAnchorLoss"} for row in rows[:4]]
    return [*rows[:4], *others, *rows[4:]]


def make(key: Row, size: int, dim: int, device: str) -> tuple[Step, Tensor, Tensor]:
    """The step, the images and the labels."""
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=device == "cpu", mixed_precision="no" if device == "cpu" else "bf16")
    place, classes = accelerator.device, key["batch"] // PER_CLASS
    loss = MultiSimilarityLoss() if key["loss"] == "MultiSimilarityLoss" else ProxyAnchorLoss(classes, dim)
    network = Embedder(key["trunk"], dim, freeze_bn=True).to(place, memory_format=torch.channels_last)
    model, loss = Scaled(network).train(), loss.to(place)
    parameters = [each for each in (*model.parameters(), *loss.parameters()) if each.requires_grad]
    optimizer = accelerator.prepare_optimizer(torch.optim.SGD(parameters, lr=1e-4, fused=True))
    channels = 1 if key["trunk"] == "convnet" else 3
    images = torch.randint(256, (key["batch"], channels, size, size), dtype=torch.uint8, device=place)
    labels = torch.arange(key["batch"], device=place) // PER_CLASS
    return Step(accelerator, model, loss, optimizer, Meter(place), chunk=key["chunk"]), images, labels


def measure(key: Row, size: int, dim: int, device: str, seconds: float) -> Row:
    """One row, in a process of its own."""
    step, images, labels = make(key, size, dim, device)
    cuda = images.is_cuda
    few = slice(0, 2 * (key["chunk"] or key["batch"]))
    for _ in range(3):  # libraries choose algorithms
        step([(images[few], labels[few])])
    step([(images, labels)])
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 2:
        begin = time.perf_counter()
        step([(images, labels)])
        if cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    if step.meter.first_bad() is not None:
        raise RuntimeError("the loss is not finite")
    middle = statistics.median(times)
    row: Row = {"steps": len(times), "seconds": round(middle, 4), "images_per_s": round(key["batch"] / middle, 1)}
    if cuda:
        row["peak_gib"] = round(torch.cuda.max_memory_allocated() / GIB, 2)
        row["images_gib"] = round(images.numel() / GIB, 2)
    return row


def run(options: argparse.Namespace, path: Path | None) -> None:
    """Measure the rows that are missing, until the time is up."""
    size, dim, seconds = (32, 16, 0.0) if options.quick else (112, 512, 8.0)
    head = {
        "machine": {**machine(options.device), **versions("torch", "triton", "accelerate")},
        "commit": commit(),
        "arguments": {"size": size, "dim": dim, "per_class": PER_CLASS, "optimizer": "SGD", "frozen batch norm": True},
        "precision": "float32" if options.device == "cpu" else "bf16",
    }
    task = functools.partial(measure, size=size, dim=dim, device=options.device, seconds=seconds)
    measure_missing(path, head, list_rows(options), task, options, least=30.0)


def describe(report: dict[str, Any]) -> str:
    """The block of the page: a sentence and a table."""
    described, rows = report["machine"], [row for row in report["rows"] if "skipped" not in row]
    plain = {
        (row["key"]["trunk"], row["key"]["loss"]): row["images_per_s"]
        for row in rows
        if row["key"]["batch"] == 512 and row["key"]["chunk"] is None
    }
    lines = []
    for row in sorted(rows, key=lambda row: (row["key"]["trunk"], row["key"]["loss"], row["key"]["batch"])):
        key = row["key"]
        ratio = row["images_per_s"] / plain.get((key["trunk"], key["loss"]), float("nan"))
        chunk = "–" if key["chunk"] is None else f"{key['chunk']:,}"
        cells = [NAMES[key["trunk"]], key["loss"], f"{key['batch']:,}", chunk, f"{row['seconds']:.3g}"]
        lines.append([*cells, f"{row['images_per_s']:,.0f}", f"{ratio:.2f}", f"{row['peak_gib']:.1f}"])
    head = ["network", "loss", "batch", "chunk", "seconds", "images/s", "of the plain step of 512", "peak GiB"]
    arguments = report["arguments"]
    words = (
        f"{described['device']}, torch {described['torch']}, {report['precision']}; images of {arguments['size']} px on the "
        f"device, {arguments['dim']} dimensions, {arguments['per_class']} images per class, frozen batch norm, "
        f"{arguments['optimizer']} (`python -m benchmarks.caching --device cuda`, `benchmarks/results/caching-cuda.json`). "
        "Rows without a chunk are plain steps. The peak includes the images and everything else on the device."
    )
    return f"{words}\n\n{table(head, lines, words=(0, 1))}"
