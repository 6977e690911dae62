"""Run folders and parts to report on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import yaml
from PIL import Image

from likewise.report import Part


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_run(folder: Path, *, loss: str = "RAWLoss(alpha=2.0)", scale: float = 1.0, finished: bool = True) -> Path:
    """A run folder as training leaves it: four epochs, validated after each."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = [{"kind": "val", "step": 0, "epoch": 0.0, "R@1": 0.1, "RP": 0.08, "MAP@R": 0.05}]
    for epoch in range(1, 5):
        rates = {"trunk": 1e-4 * (5 - epoch), "head": 1e-4 * (5 - epoch), "proxies": 1e-2 * (5 - epoch)}
        common = {"step": 30 * epoch, "epoch": float(epoch)}
        rows.append({"kind": "train", **common, "loss": scale / epoch, "lr": rates, "spread": 0.9})
        value = 0.1 + 0.15 * epoch
        rows.append({"kind": "val", **common, "R@1": value, "RP": 0.7 * value, "MAP@R": 0.6 * value, "best": True})
    if finished:
        rows.append({"kind": "end", "step": 120, "epoch": 4.0, "reason": "finished", "message": "", "seconds": 75.0})
    lines(folder / "metrics.jsonl", rows)
    description = {
        "likewise": "0.1.0",
        "created": "2026-03-01T14:05:09+01:00",
        "command": "likewise train --config recipe.yaml --out 'runs/a b'",
        "seed": 3,
        "commit": None,
        "config": {"model": {"trunk": "convnet", "dim": 64}, "loss": {"class_path": loss.split("(")[0]}},
        "data": {"train": {"name": "Glyphs"}, "val": None, "test": {"description": "Glyphs, test"}},
        "loss": loss,
        "versions": {"python": "3.11.2", "torch": "2.13.0"},
        "hardware": {"cpu": "a cpu", "cores": 2},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(description, sort_keys=False))
    return folder


def open_test(folder: Path, *, finished: bool = True) -> None:
    with (folder / "openings.jsonl").open("a") as file:
        row = {"opened": "2026-03-01T15:00:00+01:00", "why": "the final number", "command": "likewise evaluate --test"}
        file.write(json.dumps({**row, "step": 120, "finished": finished, "model": "best", "sha256": None}) + "\n")


def make_part(
    name: str = "test",
    *,
    classes: int = 12,
    per_class: int = 6,
    noise: float = 0.6,
    seed: int = 0,
    names: list[str] | None = None,
    size: tuple[int, int] = (40, 40),
    roles: bool = False,
) -> Part:
    """Noisy clusters, whose images are patches of one color for each class."""
    chance = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(per_class)
    centers = torch.randn(classes, 16, generator=chance)
    points = centers[labels] + noise * torch.randn(len(labels), 16, generator=chance)

    def image(row: int) -> Image.Image:
        label = int(labels[row])
        return Image.new("RGB", size, (37 * label % 256, 101 * label % 256, 200))

    is_query = torch.arange(len(labels)) % per_class < 2 if roles else None
    return Part(name, points, labels, names or [f"class {label}" for label in range(classes)], image, is_query)
