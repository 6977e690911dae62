"""Figures of forces, and animations of gradient descent."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from likewise.analysis.figures import CLASSES, GRAY, PULL, PUSH, Form, as_bytes, movie_writer, use_style
from likewise.analysis.forces import Forces, Trajectory
from likewise.files import atomic_write
from likewise.formula import one_of, whole_number


def draw_forces(
    panels: Mapping[str, Forces],
    labels: Tensor,
    names: tuple[str, ...] = (),
    form: Form = "svg",
    *,
    view: Tensor | None = None,
    width: float = 3.1,
) -> bytes:
    """Draw forces on points of a plane, a circle or a sphere: of positive pairs, of negative pairs, and their sum.

    Args:
        panels: forces by title, on two- or three-dimensional embeddings.
        labels: the points' labels, by which they are colored.
        names: labels of the points, one for each, or none.
        form: ``"svg"`` or ``"png"``.
        view: the direction of the viewer, for three dimensions; by default above the mean of the points.
        width: of a panel, in inches.

    Examples:
        >>> from likewise.analysis.forces import forces
        >>> from likewise.losses import TripletLoss
        >>> x, y = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, 0.6]]), torch.tensor([0, 0, 1])
        >>> draw_forces({"triplet": forces(TripletLoss(), x, y)}, y)[:5]
        b'<?xml'
    """
    one_of("form", form, ("svg", "png"))
    if names and any(len(names) != len(each.embeddings) for each in panels.values()):
        raise ValueError(f"names must be one for each embedding or none, but there are {len(names)}")
    with use_style() as Figure:
        figure = Figure(figsize=(width * len(panels), 0.8 * width + 0.5), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, (title, found) in zip(axes, panels.items(), strict=True):
            _arrows(axis, found, labels, names, view)
            axis.set_title(title, fontsize=9)
        handles = [axes[0].plot([], [], color=color, linewidth=2.0)[0] for color in (PULL, PUSH, GRAY)]
        words = ("from positive pairs", "from negative pairs", "together")
        figure.legend(handles, words, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
        return as_bytes(figure, form)


def _arrows(axis: Any, found: Forces, labels: Tensor, names: tuple[str, ...], view: Tensor | None) -> None:
    points = found.embeddings.detach().double()
    eye = _eye(points, view)
    flat = points @ eye
    center, reach = (flat.amin(dim=0) + flat.amax(dim=0)) / 2.0, float((flat.amax(dim=0) - flat.amin(dim=0)).max())
    parts = [(part.double() @ eye, color) for part, color in ((found.attraction, PULL), (found.repulsion, PUSH))]
    whole = found.whole.double() @ eye
    longest = max(float(part.norm(dim=1).max()) for part in (whole, *(part for part, _ in parts)))
    scale = 0.45 * reach / longest if longest else 0.0
    for arrows, color, size in ((whole, GRAY, 3.4), *((part, color, 1.5) for part, color in parts)):
        for start, arrow in zip(flat.tolist(), (scale * arrows).tolist(), strict=True):
            if math.hypot(*arrow) > 0.015 * reach:
                tip = [a + b for a, b in zip(start, arrow, strict=True)]
                arrow = {"arrowstyle": "-|>", "color": color, "linewidth": size, "shrinkA": 0, "shrinkB": 0}
                axis.annotate("", tip, start, arrowprops={**arrow, "alpha": 0.45 if color == GRAY else 1.0})
    axis.scatter(*flat.T, color=[CLASSES[int(label) % len(CLASSES)] for label in labels], s=34, zorder=4)
    # on the side away from the force
    away = -torch.nn.functional.normalize(whole, dim=1) * torch.tensor([26.0, 12.0], dtype=whole.dtype)
    for name, place, shift in zip(names, flat.tolist(), away.tolist(), strict=False):
        shift = shift if any(shift) else [0.0, -12.0]
        axis.annotate(name, place, shift, textcoords="offset points", fontsize=8, ha="center", va="center", color=GRAY)
    if points.shape[1] == 2 and torch.allclose(points.norm(dim=1), torch.ones(len(points), dtype=points.dtype)):
        _circle(axis)
        center, reach = torch.zeros(2), 1.6
    axis.set_xlim(float(center[0]) - 0.85 * reach, float(center[0]) + 0.85 * reach)
    axis.set_ylim(float(center[1]) - 0.85 * reach, float(center[1]) + 0.85 * reach)
    axis.set_aspect("equal")
    axis.set_axis_off()


def _eye(points: Tensor, view: Tensor | None) -> Tensor:
    """The two axes of the figure, ``(d, 2)``: those of the plane, or perpendicular to the view."""
    dimension = points.shape[1]
    if dimension not in (2, 3):
        raise ValueError(f"embeddings must have two or three dimensions to be drawn, but have {dimension}")
    if dimension == 2:
        return torch.eye(2, dtype=points.dtype)
    sight = points.mean(dim=0) if view is None else view.to(points.dtype)
    sight = sight / sight.norm()
    # the first axis is as horizontal as possible
    right = torch.linalg.cross(torch.tensor([0.0, 1.0, 0.0], dtype=points.dtype), sight)
    if float(right.norm()) < 1e-6:
        right = torch.tensor([1.0, 0.0, 0.0], dtype=points.dtype)
    right = right / right.norm()
    return torch.stack([right, torch.linalg.cross(sight, right)], dim=1)


def animate(
    rolled: Trajectory | Mapping[str, Trajectory], path: str | os.PathLike[str], *, frames: int = 60, rate: int = 15
) -> Path:
    """Write an animation of gradient descent on a loss; several losses are shown in one row.

    Proxies are drawn as crosses.  Points on the back of a sphere are faint.

    Args:
        rolled: the result of `roll`, in two or three dimensions; several by name.
        path: the file, ``.gif``, or ``.mp4`` if ffmpeg is installed.
        frames: the number of steps to show, the first and the last included.
        rate: frames a second.

    Returns:
        The path; the file is replaced atomically.

    Examples:
        >>> import tempfile
        >>> from likewise.analysis.forces import roll
        >>> from likewise.losses import ContrastiveLoss
        >>> rolled = roll(ContrastiveLoss(), torch.eye(2), torch.tensor([0, 0]), steps=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     animate(rolled, f"{folder}/roll.gif", frames=2).stat().st_size > 500
        True
    """
    target = Path(path)
    one_of("the ending of path", target.suffix, (".gif", ".mp4"))
    if target.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise ValueError(f"path must end in .gif where ffmpeg is not installed, but it is {target.name!r}")
    several = {"": rolled} if isinstance(rolled, Trajectory) else dict(rolled)
    most = max(len(each.positions) for each in several.values())
    shown = torch.linspace(0, most - 1, min(whole_number("frames", frames, 1), most)).round().long().tolist()
    with (
        atomic_write(target) as part,
        TemporaryDirectory() as folder,
        use_style(paper="white") as Figure,
    ):
        drawn = Path(folder, target.name)  # its ending tells the writer the format
        figure = Figure(figsize=(2.3 * len(several), 2.7), dpi=90)
        axes = figure.subplots(1, len(several), squeeze=False)[0]
        figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.86, wspace=0.04)
        writer = movie_writer(target.suffix, rate)
        with writer.saving(figure, str(drawn), 90):
            for step in shown:
                for axis, (name, each) in zip(axes, several.items(), strict=True):
                    _frame(axis, each, min(step, len(each.positions) - 1), name)
                writer.grab_frame()
        shutil.copyfile(drawn, part)
    return target


def _frame(axis: Any, rolled: Trajectory, step: int, name: str) -> None:
    axis.clear()
    axis.set_axis_off()
    _circle(axis)
    points = rolled.positions[step].double()
    # from a corner, so that all three axes are visible
    view = torch.tensor([1.0, 0.8, 1.2], dtype=points.dtype)
    eye = _eye(points, view)
    colors = [CLASSES[int(label) % len(CLASSES)] for label in rolled.labels]
    depth = points @ view if points.shape[1] == 3 else torch.ones(len(points))
    axis.scatter(*(points @ eye).T, color=colors, s=22, alpha=[1.0 if each >= 0.0 else 0.25 for each in depth.tolist()])
    if rolled.proxies is not None:
        proxies = rolled.proxies[step].double()
        owners = torch.arange(len(proxies)) if rolled.proxy_labels is None else rolled.proxy_labels
        colors = [CLASSES[int(label) % len(CLASSES)] for label in owners]
        axis.scatter(*(proxies @ eye).T, c=colors, marker="x", s=50, linewidths=1.8)
    axis.set_title(f"{name}\nstep {step}, loss {float(rolled.values[step]):.3f}".strip(), fontsize=8)
    axis.set_xlim(-1.15, 1.15)
    axis.set_ylim(-1.15, 1.15)
    axis.set_aspect("equal")


def _circle(axis: Any) -> None:
    around = torch.linspace(0.0, 2.0 * math.pi, 121)
    axis.plot(around.cos().numpy(), around.sin().numpy(), color=GRAY, linewidth=0.8, alpha=0.6)
