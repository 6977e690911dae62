"""Export of trained models for other programs: ONNX, `torch.export`, or a folder for model hubs.

Every file is read again and compared with the model before it gets its final name, on random images and batches of
several sizes.  An existing file therefore agrees with torch; ``export.json`` records how closely.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from likewise.files import atomic_write, write_text
from likewise.formula import one_of
from likewise.progress import progress
from likewise.search.embedding import EvalTransform, eval_transform
from likewise.search.export_card import write_hub
from likewise.search.export_onnx import onnx_runner, write_onnx
from likewise.search.export_pixels import Pixels, WithPreprocessing
from likewise.search.export_script import write_script
from likewise.trunks import Card, Embedder, read_card

EXPORT_FORMATS = ("onnx", "torch", "hub")
"""The formats of an export."""

FILES = {"onnx": "model.onnx", "torch": "model.pt2"}
"""Formats that are one file, and the name of that file in a folder."""

TOLERANCE = 1e-4
"""The largest difference between exported and original embeddings, for embeddings of unit length."""

BATCHES = (1, 2, 5)
"""Batch sizes of the comparison."""

SIZES = ((75, 100), (100, 75), (97, 97), (40, 30))
"""Heights and widths of the compared images, in percent of the size at which the network's preprocessing starts."""


@dataclass(frozen=True)
class ExportedModel:
    """The files of an export, and their difference from the model.

    Args:
        format: one of `EXPORT_FORMATS`.
        files: names of the files in the folder.
        images: number of random images in the comparison with torch.
        difference: largest difference of any number of their embeddings.
        tolerance: largest allowed difference.
        levels: with preprocessing in the graph, the largest difference of pixels from the evaluation transform, in levels
            of a byte; ``None`` without.

    Examples:
        >>> print(ExportedModel("onnx", ("model.onnx",), 8, 2.4e-07, 1e-4))
        model.onnx: within 2.4e-07 of torch on 8 random images (at most 0.0001 is allowed)
    """

    format: str
    files: tuple[str, ...]
    images: int
    difference: float
    tolerance: float
    levels: float | None = None

    def __str__(self) -> str:
        text = f"{', '.join(self.files)}: within {self.difference:.2g} of torch on {self.images} random images"
        text += f" (at most {self.tolerance:g} is allowed)"
        if self.levels is not None:
            text += f"; its pixels are within {self.levels:.2g} of 255 levels of likewise's evaluation"
        return text


def export_model(
    model: str | Path,
    folder: str | Path,
    *,
    formats: Sequence[str] | None = None,
    preprocessing: bool = True,
    transform: str | None = None,
    facts: Mapping[str, str] | None = None,
    title: str | None = None,
) -> list[ExportedModel]:
    """Write a model for other programs, and compare the written files with the model.

    - ``"onnx"``: ``model.onnx``, for onnxruntime and other programs that read ONNX, and, with preprocessing,
      ``embed.py``, a script that embeds images with it and needs neither torch nor this library;
    - ``"torch"``: ``model.pt2``, for ``torch.export.load`` on a machine that has only torch;
    - ``"hub"``: ``model.safetensors``, ``config.json``, ``preprocessor_config.json`` and a model card, ``README.md``.

    Graphs take batches of any size.  With preprocessing they take ``images`` ``(B, H, W, 3)`` in uint8, RGB and upright, all
    of one size, and apply the evaluation transform: crop to an aspect ratio of at most 3 : 1, resize to the shorter side of
    the cache, resample the center with an antialiased triangle filter, order the channels, and scale.  Without it they take
    ``images`` ``(B, C, h, w)`` in float32, of the size of the evaluation transform, scaled as the card says.

    Args:
        model: a ``.safetensors`` file that an `Embedder` wrote.
        folder: the output folder, which is created if it does not exist.  A name that ends in ``.onnx`` or ``.pt2`` is a
            single file.
        formats: one or more of `EXPORT_FORMATS`; by default ONNX, or the format of the file's extension.
        preprocessing: include the preprocessing in the graphs.
        transform: name of a transform; by default the one that the model's card implies.
        facts: additional lines of the model card, such as the training data.
        title: title of the model card; by default the name of the folder.

    Raises:
        ArithmeticError: the written file disagrees with the model; it is deleted.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Embedder("convnet", 8).save(f"{folder}/glyphs.safetensors")
        ...     [done] = export_model(f"{folder}/glyphs.safetensors", f"{folder}/model.pt2", transform="glyphs")
        >>> done.files, done.difference <= done.tolerance
        (('model.pt2',), True)
    """
    file, folder = _split_target(Path(folder))
    if formats is None:
        formats = ["torch" if file is not None and file.suffix == ".pt2" else "onnx"]
    if isinstance(formats, str) or not formats:
        raise TypeError(f"formats must be one or more of {', '.join(EXPORT_FORMATS)} in a list, but it is {formats!r}")
    for each in formats:
        one_of("each of formats", each, EXPORT_FORMATS)
    if file is not None and [Path(FILES.get(each, "")).suffix for each in formats] != [file.suffix]:
        raise ValueError(
            f"formats must be the format of the file {file.name}, but it is {list(formats)}; pass a folder to write several"
        )
    embedder, card = Embedder.load(model), read_card(model)
    resolved = eval_transform(embedder, transform)
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*.part"):
        match = PART.fullmatch(left.name)
        if match is not None and not _is_running(int(match[2])):  # left by a killed export
            with suppress(PermissionError):
                left.unlink(missing_ok=True)
    graph = _Graph(embedder, resolved, preprocessing)
    done = []
    for each in _report(dict.fromkeys(formats)):
        if each == "hub":
            done.append(_copy(Path(model), folder, graph.plain()))
            name = title or folder.resolve().name
            write_hub(folder, card, resolved, name=transform, facts=facts or {}, title=name)
        else:
            done.append(_write_graph(graph, each, file or folder / FILES[each], card))
        if file is not None:
            return done
        if each == "onnx" and preprocessing:
            done[-1] = _add_script(graph, folder, done[-1])
        _record(folder, done[-1], resolved)
    return done


def _report(formats: Collection[str]) -> Iterator[str]:
    """Yield the formats, and report each, because a graph takes long to trace and to compare."""
    with progress("exporting", len(formats), "format", delay=0.0) as advance:
        for each in formats:
            advance.print_line(f"writing format {each} and comparing it with torch")
            yield each
            advance(1)


def _split_target(target: Path) -> tuple[Path | None, Path]:
    """Return the requested single file, or ``None``, and the folder."""
    if target.suffix not in (".onnx", ".pt2"):
        return None, target
    if target.is_dir():
        raise IsADirectoryError(
            f"folder must be a folder or the name of a new file, but {target} is a folder with the extension of a file"
        )
    return target, target.parent


def _add_script(graph: _Graph, folder: Path, done: ExportedModel) -> ExportedModel:
    images = graph.examples()[0]
    script = write_script(folder, images[0].numpy(), graph(images)[0], done.tolerance)
    return replace(done, files=(*done.files, script))


def _is_running(process: int) -> bool:
    """Return whether this machine has a process with this number."""
    if os.name != "posix":
        return False  # on this system a file that is being written cannot be removed
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_HUB = ("model.safetensors", "config.json", "preprocessor_config.json", "README.md")
PART = re.compile(
    rf"(model\.onnx|model\.pt2|embed\.py|export\.json|{'|'.join(map(re.escape, _HUB))})\.(\d+)-[0-9a-f]{{8}}\.part"
)
"""The name of an unfinished file, see `likewise.files.atomic_write`, with the number of the process that writes it."""


class _Graph:
    """A model in the form of its export: its input, and random images to test it."""

    def __init__(self, embedder: Embedder, transform: EvalTransform, inside: bool) -> None:
        self.embedder, self.transform, self.inside = embedder, transform, inside
        self.pixels = Pixels(transform.augment, transform.cache) if inside else None
        self.module: nn.Module = embedder if self.pixels is None else WithPreprocessing(embedder, self.pixels).eval()

    def plain(self) -> _Graph:
        return _Graph(self.embedder, self.transform, False)

    @property
    def open_sides(self) -> tuple[str, ...]:
        return ("batch", "height", "width") if self.inside else ("batch",)

    def program(self) -> ExportedProgram:
        """The graph, with open sizes."""
        example = self.examples()[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of torch about its internals
            return torch.export.export(
                self.module,
                (example,),
                dynamic_shapes=({axis: Dim(name) for axis, name in enumerate(self.open_sides)},),
            )

    def examples(self) -> list[Tensor]:
        """Return random images, a batch of each size."""
        chooser = torch.Generator().manual_seed(0)
        height, width = self.transform.augment.shape
        if self.inside:
            sizes = [
                (max(2, self.transform.cache * 2 * h // 100), max(2, self.transform.cache * 2 * w // 100))
                for h, w in SIZES
            ]
            batches = [(count, *size, 3) for count, size in zip((*BATCHES, 1), sizes, strict=True)]
            return [torch.randint(256, shape, dtype=torch.uint8, generator=chooser) for shape in batches]
        scale = self.transform.augment.normalize
        shape = (len(scale.order), height, width)
        mean, std = (torch.tensor(each).view(-1, 1, 1) for each in (scale.mean, scale.std))
        drawn = [torch.rand(count, *shape, generator=chooser) for count in BATCHES]
        return [(each * scale.white - mean) / std for each in drawn]

    def __call__(self, images: Tensor) -> NDArray[np.float32]:
        with torch.no_grad():
            embeddings: NDArray[np.float32] = self.module(images).float().numpy()
        return embeddings


def _write_graph(graph: _Graph, format: str, file: Path, card: Card) -> ExportedModel:
    """Write to a temporary file, read it, compare it, and rename it."""
    program = graph.program()
    with atomic_write(file) as part:
        if format == "onnx":
            about = {"likewise": card.to_json(), "images": describe(graph.transform, inside=graph.inside)}
            write_onnx(program, part, about, open_sides=graph.open_sides)
            runner = onnx_runner(part)
        else:
            _save_program(program, part, {"likewise": card.to_json()})
            runner = _torch_runner(part)
        return _compare(lambda images: runner(images.numpy()), graph, format, (file.name,))


def _copy(model: Path, folder: Path, graph: _Graph) -> ExportedModel:
    with atomic_write(folder / _HUB[0]) as part:
        shutil.copyfile(model, part)
        return _compare(_Graph(Embedder.load(part), graph.transform, False), graph, "hub", _HUB)


def describe(transform: EvalTransform, *, inside: bool) -> str:
    """Return a sentence about the input of an exported graph.

    Examples:
        >>> print(describe(eval_transform(Embedder("convnet", 8), "glyphs"), inside=False))
        images (B, 1, 32, 32) in float32: (x * 1 - mean) / std, x from 0 to 1, channels L, mean [0.5], std [0.5]
    """
    scale, (height, width) = transform.augment.normalize, transform.augment.shape
    if inside:
        return f"images (B, H, W, 3) in uint8, RGB, upright, any one size; inside: {transform.name}"
    return (
        f"images (B, {len(scale.order)}, {height}, {width}) in float32: (x * {scale.white:g} - mean) / std, x from 0 to 1,"
        f" channels {scale.order}, mean {list(scale.mean)}, std {list(scale.std)}"
    )


def _save_program(program: ExportedProgram, path: Path, texts: Mapping[str, str]) -> None:
    with warnings.catch_warnings(), path.open("wb") as file:
        warnings.simplefilter("ignore")
        torch.export.save(program, file, extra_files=dict(texts))


def _torch_runner(path: Path) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
    with warnings.catch_warnings(), path.open("rb") as file:
        warnings.simplefilter("ignore")
        module = torch.export.load(file).module()

    def run(images: NDArray[Any]) -> NDArray[np.float32]:
        with torch.no_grad():
            embeddings: NDArray[np.float32] = module(torch.from_numpy(images)).float().numpy()
        return embeddings

    return run


def _compare(
    written: Callable[[Tensor], NDArray[np.float32]], graph: _Graph, format: str, files: tuple[str, ...]
) -> ExportedModel:
    """Return the difference between a written model and torch; raise an error if it is too large."""
    worst, largest, count = 0.0, 1.0, 0
    for images in graph.examples():
        truth, output = graph(images), written(images)
        if output.shape != truth.shape or not np.isfinite(output).all():
            raise ArithmeticError(
                f"{files[0]} does not return finite embeddings of shape {truth.shape}; the file was removed"
            )
        worst, largest = max(worst, float(np.abs(output - truth).max())), max(largest, float(np.abs(truth).max()))
        count += len(images)
    allowed = TOLERANCE * largest
    if worst > allowed:
        raise ArithmeticError(f"{files[0]} differs from torch by {worst:.2g}, over {allowed:.2g}; the file was removed")
    return ExportedModel(format, files, count, worst, allowed, _levels(graph))


def _levels(graph: _Graph) -> float | None:
    """Return the difference between the pixels in a graph and those of the evaluation transform, in levels of a byte."""
    if graph.pixels is None:
        return None
    scale, worst = graph.transform.augment.normalize, 0.0
    level = scale.white / 255.0 / torch.tensor(scale.std).view(-1, 1, 1)
    for images in graph.examples():
        stored = [graph.transform.shape.of(Image.fromarray(image.numpy())) for image in images]
        transform = graph.transform.augment(stored, torch.Generator())
        worst = max(worst, float(((graph.pixels(images) - transform).abs() / level).max()))
    if worst > 2.01:  # one level for each of the two resamplings
        raise ArithmeticError(
            f"the graph's pixels differ from those of the evaluation by {worst:.2g} levels; the file was removed"
        )
    return worst


def _record(folder: Path, done: ExportedModel, transform: EvalTransform) -> None:
    """Add a measurement to those of other formats in ``export.json``."""
    place = folder / "export.json"
    try:
        known = json.loads(place.read_text())
    except (OSError, ValueError):
        known = {}
    entry = asdict(done) | {
        "takes": describe(transform, inside=done.levels is not None),
        "torch": str(torch.__version__),
    }
    write_text(place, json.dumps({**known, done.format: entry}, indent=2) + "\n")
