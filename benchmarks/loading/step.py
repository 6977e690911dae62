"""What loading takes of a training step on a GPU: EfficientNet-Lite0, batches of 32 classes x 4 at 112 px, bfloat16."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from likewise.data.cache import ImageCache
from likewise.data.loader import Batch, BatchLoader
from likewise.data.samplers import PerClassSampler
from likewise.data.transforms import CUB128, Transform
from likewise.losses import MultiSimilarityLoss
from likewise.trunks import Embedder, efficientnet_lite0

Row = dict[str, Any]
Step = Callable[[Tensor, Tensor], object]
PER_CLASS = 4
STEPS, BLOCKS = 20, 24


def measure_steps(cache: ImageCache, recipe: Transform, options: argparse.Namespace) -> Row:
    """Steps with and without loading, run eagerly and replayed as a CUDA graph."""
    del recipe  # always the same, whatever the pipelines above were asked for
    device = torch.device(options.device)
    trunk = efficientnet_lite0()
    augment = CUB128.using(trunk.preprocessing, dtype=torch.bfloat16, channels_last=True).train
    places = {"on the device": cache.to(device), "in memory": cache.to("cpu"), "on disk": cache}

    def sampler() -> PerClassSampler:
        return PerClassSampler(cache.labels, classes=options.batch // PER_CLASS, per_class=PER_CLASS)

    loaders = {name: endless(BatchLoader(images, sampler(), augment, device=device)) for name, images in places.items()}
    model = Embedder(trunk, 512, freeze_bn=True).to(device, memory_format=torch.channels_last).train()
    first = next(loaders["on the device"])
    report: Row = {"batch": options.batch, "size": augment.size, "dtype": "bfloat16"}
    report["loading_alone"] = {name: alone(loader) for name, loader in loaders.items()}
    for name, timing in report["loading_alone"].items():
        print(f"loading alone, {name:15}{timing['ms']:8.3f} ms a batch, {timing['gpu_ms']:.3f} ms of it on the GPU")
    for kind, make in (("eager", eager_step), ("graph", graph_step)):
        step = make(model, first)
        report[kind] = {name: compare(step, loader, first) for name, loader in loaders.items()}
        for name, row in report[kind].items():
            print(
                f"step, {kind}, {name:15}{row['step_ms']:8.3f} ms with loading, {row['bare_ms']:.3f} ms without:"
                f" {row['share']:.1%} of the step ({row['images_per_s']:,} images/s)"
            )
    return report


def endless(loader: BatchLoader) -> Iterator[Batch]:
    """Epoch after epoch."""
    while True:
        yield from loader


def eager_step(model: Embedder, first: Batch) -> Step:
    """A step as a training loop writes it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4, fused=True)
    loss = MultiSimilarityLoss()

    def step(images: Tensor, labels: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            embeddings = model(images)
        loss(embeddings.float(), labels).backward()
        optimizer.step()

    return step


def graph_step(model: Embedder, first: Batch) -> Step:
    """The same, recorded once and replayed: nothing is left of Python, and loading has little to hide behind."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4, fused=True, capturable=True)
    loss = MultiSimilarityLoss()
    images, labels = first.images.clone(memory_format=torch.preserve_format), first.labels.clone()

    def once() -> None:
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=False):
            embeddings = model(images)
        loss(embeddings.float(), labels).backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(4):
            once()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        once()

    def step(new_images: Tensor, new_labels: Tensor) -> None:
        images.copy_(new_images)
        labels.copy_(new_labels)
        graph.replay()

    return step


def compare(step: Step, loader: Iterator[Batch], first: Batch) -> Row:
    """Blocks of steps with loading and on one batch that is there already, in turns."""

    def loaded() -> None:
        batch = next(loader)
        step(batch.images, batch.labels)

    def bare() -> None:
        step(first.images, first.labels)

    for _ in range(50):
        loaded()
        bare()
    times: dict[str, list[float]] = {"loaded": [], "bare": []}
    for _ in range(BLOCKS):
        times["loaded"].append(block(loaded))
        times["bare"].append(block(bare))
    with_loading, without = (statistics.median(each) for each in times.values())
    quartiles = [[round(1e3 * each, 4) for each in statistics.quantiles(some, n=4)] for some in times.values()]
    return {
        "step_ms": round(1e3 * with_loading, 4),
        "step_quartiles_ms": quartiles[0],
        "bare_ms": round(1e3 * without, 4),
        "bare_quartiles_ms": quartiles[1],
        "share": round(1.0 - without / with_loading, 4),
        "images_per_s": round(len(first.labels) / with_loading),
    }


def block(once: Callable[[], None]) -> float:
    """Seconds of one step, from many."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        once()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / STEPS


def alone(loader: Iterator[Batch]) -> Row:
    """Loading without training: milliseconds for a batch, and how long the GPU is busy with one."""
    for _ in range(20):
        next(loader)
    wall = statistics.median(block(lambda: next(loader)) for _ in range(BLOCKS))
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    busy = []
    for _ in range(50):
        # work ahead of it on the GPU, so that the GPU never waits for the host between its kernels
        torch.cuda._sleep(10_000_000)
        begin.record()
        next(loader)
        end.record()
        torch.cuda.synchronize()
        busy.append(begin.elapsed_time(end))
    return {"ms": round(1e3 * wall, 4), "gpu_ms": round(statistics.median(busy), 4)}
