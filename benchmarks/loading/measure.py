"""From files to batches: images per second of a plain Pillow and DataLoader pipeline, of decoding once, and of what is stored.

    python -m benchmarks.loading.measure                  made-up photographs of 500 x 375 px; results/loading-cpu.json
    python -m benchmarks.loading.measure --cub FOLDER     CUB-200-2011 in the official layout, in whatever size it is there
    python -m benchmarks.loading.measure --device cuda    batches on the GPU, and what they take of a training step
    python -m benchmarks.loading.measure --quick          a smoke test; prints, and writes nothing

The plain pipeline is what a first version of a training script has: decode the file, random resized crop, flip, to a
tensor, normalize, one image at a time in as many worker processes as there are cores.  All pipelines make the same
batches of float32, take turns, and are timed over whole epochs.  Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from benchmarks.harness import cores, machine, make_parser, result_path, versions, write
from likewise.data import CUB200, ImageDataset, ImageFolder
from likewise.data.augment import Augment, Normalize
from likewise.data.cache import ImageCache, cached
from likewise.data.crops import RandomResizedCrop
from likewise.data.loader import BatchLoader
from likewise.data.transforms import TRANSFORMS, Transform

Row = dict[str, Any]


def main() -> None:
    """Measure everything, print it as it comes, write it down at the end."""
    options = parse()
    with tempfile.TemporaryDirectory() as scratch:
        dataset = photographs(options, Path(scratch))
        recipe = TRANSFORMS[options.recipe].using(Normalize())
        report: Row = {
            "machine": {**machine(options.device), **versions("torch", "pillow", "likewise")},
            "arguments": arguments(options, dataset),
        }
        print(", ".join(f"{key} {value}" for key, value in report["machine"].items()))
        print(f"{dataset}; recipe {options.recipe}, batches of {options.batch}")
        cache, report["decoding"] = decode_once(dataset, recipe, Path(scratch) / "cache")
        report["agreement"] = agreement(cache, recipe.train, options.device)
        report["pipelines"] = take_turns(pipelines(dataset, cache, recipe.train, options), options.seconds)
        if options.device != "cpu":
            from benchmarks.loading.step import measure_steps

            report["step"] = measure_steps(cache, recipe, options)
    write(report, options.out)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, device=True, quick="256 photographs, one second", out="loading")
    parser.add_argument("--cub", type=Path, help="a folder with CUB-200-2011; without one, photographs are made up")
    parser.add_argument("--images", type=int, default=2048, help="how many photographs to make up")
    parser.add_argument("--recipe", choices=sorted(TRANSFORMS), help="by default cub128 for --cub, else thesis")
    parser.add_argument("--batch", type=int, default=128, help="images in a batch")
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each pipeline, in three turns")
    parser.add_argument("--workers", type=int, default=cores(), help="processes or threads of each pipeline")
    options = parser.parse_args()
    options.recipe = options.recipe or ("cub128" if options.cub else "thesis")
    if not isinstance(TRANSFORMS[options.recipe].train.crop, RandomResizedCrop):
        parser.error(f"--recipe {options.recipe}: the plain pipeline knows random resized crops only")
    if options.quick:
        options.images, options.seconds = 256, 1.0
    options.out = result_path("loading", options)
    return options


# ------------------------------------------------------------------------------------------------ images


def photographs(options: argparse.Namespace, scratch: Path) -> ImageDataset:
    """The data set to load: CUB-200-2011, or made-up photographs as JPEG files of 500 x 375 and 375 x 500 px."""
    if options.cub is not None:
        return CUB200(options.cub, "all")
    chance = np.random.default_rng(0)
    for index in range(options.images):
        path = scratch / "photographs" / f"{index % 32:02d}" / f"{index:05d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        photograph(chance, index % 3 == 0).save(path, quality=90)
    return ImageFolder(scratch / "photographs")


def photograph(chance: np.random.Generator, upright: bool) -> Image.Image:
    """Noise at every scale, as photographs have it: about 70 kB as a JPEG of quality 90."""
    width, height = (375, 500) if upright else (500, 375)
    total = np.zeros((height, width, 3))
    for level in range(2, 9):
        side = 2**level
        noise = chance.integers(0, 256, (side * 3 // 4, side, 3), dtype=np.uint8)
        scaled = Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)
        total += (np.asarray(scaled) - 127.5) / side
    return Image.fromarray((127.5 + 4.0 * total).clip(0, 255).astype(np.uint8))


class Plain(Dataset[tuple[Tensor, int]]):
    """One image at a time, with Pillow: decode, random resized crop, flip, tensor, normalize."""

    def __init__(self, dataset: ImageDataset, augment: Augment) -> None:
        assert isinstance(augment.crop, RandomResizedCrop)
        self.dataset = dataset
        self.augment = augment
        self.crop = augment.crop
        self.mean = torch.tensor(augment.normalize.mean).view(3, 1, 1)
        self.std = torch.tensor(augment.normalize.std).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.dataset.image(index)
        if isinstance(self.augment.resize, int):
            short = min(image.size)
            image = image.resize(
                [side * self.augment.resize // short for side in image.size], Image.Resampling.BILINEAR
            )
        top, left, height, width = self.box(image.height, image.width)
        image = image.crop((left, top, left + width, top + height))
        image = image.resize(self.augment.shape[::-1], Image.Resampling.BILINEAR)
        if random.random() < self.augment.flip:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        tensor = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().to(torch.float32).div_(255.0)
        return tensor.sub_(self.mean).div_(self.std), int(self.dataset.labels[index])

    def box(self, height: int, width: int) -> tuple[int, int, int, int]:
        """The published algorithm."""
        crop = self.crop
        for _ in range(10):
            area = random.uniform(*crop.side) ** 2 if crop.side else height * width * random.uniform(*crop.scale)
            shape = math.exp(random.uniform(math.log(crop.ratio[0]), math.log(crop.ratio[1])))
            w, h = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < w <= width and 0 < h <= height:
                return random.randint(0, height - h), random.randint(0, width - w), h, w
        side = min(height, width)
        return (height - side) // 2, (width - side) // 2, side, side


# ------------------------------------------------------------------------------------------------ measuring


def decode_once(dataset: ImageDataset, recipe: Transform, folder: Path) -> tuple[ImageCache, Row]:
    """Store the data set, and open it once more."""
    begin = time.perf_counter()
    cached(dataset, folder, size=recipe.cache)
    took = time.perf_counter() - begin
    begin = time.perf_counter()
    cache = cached(dataset, folder, size=recipe.cache)
    opened = time.perf_counter() - begin
    row = {
        "images_per_s": round(len(dataset) / took),
        "seconds": round(took, 2),
        "opened_again_s": round(opened, 3),
        "mib": round(cache.nbytes / 2**20, 1),
    }
    print(f"decoding once: {row['images_per_s']:,} images/s, {row['mib']:,} MiB; opened again in {opened:.3f} s")
    return cache, row


def agreement(cache: ImageCache, augment: Augment, device: str) -> Row:
    """The largest difference to Pillow on the same crops, in gray levels of 256."""
    plain = replace(augment, normalize=Normalize((0.0,) * 3, (1.0,) * 3, white=255.0))
    indices = torch.arange(min(64, len(cache)))
    draw = plain.draw(cache.sizes[indices], torch.Generator().manual_seed(0))
    ours = {"host": plain.apply(cache.arrays(indices), draw)}
    if device != "cpu":
        ours["device"] = plain.apply(cache.subset(indices).to(device).packed(indices), draw).cpu()
    worst: Row = dict.fromkeys(ours, 0.0)
    for index, (box, flip) in enumerate(zip(draw.boxes.tolist(), draw.flips.tolist(), strict=True)):
        top, left, height, width = box
        inside = (math.floor(left), math.floor(top), math.ceil(left + width), math.ceil(top + height))
        within = (left - inside[0], top - inside[1], left - inside[0] + width, top - inside[1] + height)
        cut = cache.image(index).crop(inside)
        theirs = np.asarray(cut.resize(plain.shape[::-1], Image.Resampling.BILINEAR, box=within)).astype(np.float32)
        theirs = theirs[:, ::-1] if flip else theirs
        for name, batch in ours.items():
            worst[name] = max(worst[name], float(np.abs(batch[index].permute(1, 2, 0).numpy() - theirs).max()))
    print("largest difference to Pillow, in gray levels: ", {name: round(value, 2) for name, value in worst.items()})
    return worst


Epoch = Callable[[], Iterable[Tensor]]


def pipelines(
    dataset: ImageDataset, cache: ImageCache, augment: Augment, options: argparse.Namespace
) -> dict[str, Epoch]:
    """What an epoch is, for each pipeline."""
    device, workers, size = torch.device(options.device), options.workers, options.batch
    plain = DataLoader(
        Plain(dataset, augment),
        batch_size=size,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=True,
        pin_memory=device.type == "cuda",
    )
    # the others are so fast that an epoch of a small data set would be over before it is timed
    repeats = max(1, 8192 // len(dataset))

    def plain_epoch() -> Iterator[Tensor]:
        for images, _ in plain:
            yield images.to(device, non_blocking=True)

    def epoch_of(images: ImageCache) -> Epoch:
        threads = workers if device.type == "cpu" else None
        loader = BatchLoader(images, Shuffled(len(dataset), size, repeats), augment, device=device, workers=threads)

        def epoch() -> Iterator[Tensor]:
            for batch in loader:
                yield batch.images

        return epoch

    found = {"plain": plain_epoch, "on disk": epoch_of(cache), "in memory": epoch_of(cache.to("cpu"))}
    if device.type != "cpu":
        found["on the device"] = epoch_of(cache.to(device))
    return found


class Shuffled:
    """Batches of a data set in random order, several times over."""

    def __init__(self, images: int, size: int, repeats: int) -> None:
        self.images, self.size, self.repeats, self.epoch = images, size, repeats, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(self.epoch)
        for _ in range(self.repeats):
            order = torch.randperm(self.images, generator=generator)
            yield from order[: self.images // self.size * self.size].split(self.size)


def take_turns(epochs: dict[str, Epoch], seconds: float) -> dict[str, Row]:
    """Time whole epochs of each pipeline, three turns each, and compare them with the plain one."""
    speeds: dict[str, list[float]] = {name: [] for name in epochs}
    for epoch in epochs.values():
        timed(epoch)  # starts workers, fills buffers and the system's cache of files
    for _ in range(3):
        for name, epoch in epochs.items():
            images, took = 0, 0.0
            while took < seconds / 3:
                count, more = timed(epoch)
                images, took = images + count, took + more
            speeds[name].append(images / took)
    base = statistics.median(speeds["plain"])
    rows = {}
    for name, each in speeds.items():
        middle = statistics.median(each)
        rows[name] = {
            "images_per_s": round(middle),
            "turns": [round(speed) for speed in each],
            "times_plain": round(middle / base, 2),
        }
        print(f"{name:15}{middle:>12,.0f} images/s{middle / base:>8.1f}x   turns {rows[name]['turns']}", flush=True)
    return rows


def timed(epoch: Epoch) -> tuple[int, float]:
    """Images of an epoch, and the seconds that it took."""
    wait()
    begin, count, batch = time.perf_counter(), 0, None
    for batch in epoch():
        count += len(batch)
    wait()
    return count, time.perf_counter() - begin


def wait() -> None:
    """Until the GPU is done, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


# ------------------------------------------------------------------------------------------------ output


def arguments(options: argparse.Namespace, dataset: ImageDataset) -> Row:
    """What the run was asked for."""
    asked = {name: getattr(options, name) for name in ("recipe", "batch", "device", "seconds", "workers")}
    first = [dataset.image(index).size for index in range(0, len(dataset), max(1, len(dataset) // 100))]
    width, height = (round(statistics.mean(sides)) for sides in zip(*first, strict=True))
    files = {"width": width, "height": height, "kind": Path(dataset.source(0)).suffix.lstrip(".")}
    return {**asked, "dataset": dataset.name if options.cub else "made up", "images": len(dataset), "mean_file": files}


if __name__ == "__main__":
    main()
