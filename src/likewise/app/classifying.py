"""Classify images by their nearest labeled neighbors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.app.build import Store, make_transform, this_machine
from likewise.app.calibration import embed_images
from likewise.app.embedding_options import ImageOptions
from likewise.app.errors import UserError, making
from likewise.app.images import ImageList, find_images, is_image_source
from likewise.app.index_places import open_index
from likewise.app.models import resolve_model
from likewise.app.parts import read_parts
from likewise.app.runs import open_run
from likewise.data import Broken
from likewise.metrics import knn_votes
from likewise.search import Encoder, is_index
from likewise.train import embed
from likewise.trunks import Embedder


@dataclass(frozen=True)
class Prediction:
    """The class of an image.

    Args:
        query: the file.
        label: the class that most of its neighbors vote for.
        share: its share of the votes.
        nearest: the name of the nearest neighbor: its path, or its class where the examples are those of a run.
        score: the similarity of the nearest neighbor.
        truth: the true class, from the file's folder or table; ``None`` if unknown.

    Examples:
        >>> Prediction("a.jpg", "wren", 0.8, "wren/1.jpg", 0.9).label
        'wren'
    """

    query: str
    label: str
    share: float
    nearest: str
    score: float
    truth: str | None = None


@dataclass(frozen=True)
class Classification:
    """The classes of several images.

    Args:
        predictions: one for each image that could be read.
        examples: number of labeled images.
        classes: number of their classes.
        broken: the images that could not be read.

    Examples:
        >>> right, wrong = Prediction("a", "x", 1.0, "", 1.0, "x"), Prediction("b", "x", 1.0, "", 1.0, "y")
        >>> Classification((right, wrong), 10, 2).accuracy
        0.5
    """

    predictions: tuple[Prediction, ...]
    examples: int
    classes: int
    broken: tuple[Broken, ...] = ()

    @property
    def accuracy(self) -> float | None:
        """The share of images with a known class that are classified right; ``None`` if no class is known."""
        known = [each.label == each.truth for each in self.predictions if each.truth is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, eq=False)
class _Examples:
    """Labeled vectors and the encoder of queries."""

    encoder: Encoder
    vectors: NDArray[np.float32]
    labels: Sequence[str]
    names: Sequence[str]


def classify(
    source: str | Path,
    queries: str | Path | Sequence[str | Path],
    *,
    examples: str | Path | None = None,
    k: int = 5,
    weighted: bool = False,
    temperature: float = 0.07,
    transform: str | None = None,
    options: ImageOptions | None = None,
    allow: Collection[str] = (),
) -> Classification:
    """Classify images by the labels of their nearest neighbors; nothing is trained.

    Args:
        source: an index with labels, the folder of a run, or a model with ``examples``.
        queries: an image or several, or one folder or table of images.
        examples: labeled images that vote, a folder of folders or a table with labels; by default the items of the index,
            or the training images of the run.
        k: number of neighbors that vote.
        weighted: weight votes by ``exp(similarity / temperature)``.
        temperature: temperature of the weights.
        transform: the name of a transform; by default that of the model's run, or what its card implies.
        options: columns of a table of queries or examples.
        allow: a user's package that contains the run's data set.

    Raises:
        UserError: an argument is invalid, or no image can be read.

    Examples:
        >>> classify("nowhere", "a.jpg")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    options = options or ImageOptions()
    images = _list_queries(queries, options)
    known = _read_examples(source, examples, transform, options, allow)
    names = sorted(set(known.labels))
    code = {name: number for number, name in enumerate(names)}
    rows, vectors, broken = embed_images(known.encoder, images, np.arange(len(images)))
    with making("the classification"):
        votes = knn_votes(
            vectors,
            known.vectors,
            np.array([code[label] for label in known.labels]),
            k=k,
            weights="similarity" if weighted else "uniform",
            temperature=temperature,
        )
    predictions = []
    for place, row in enumerate(rows.tolist()):
        truth = -1 if images.labels is None else images.labels[row]
        predictions.append(
            Prediction(
                str(images.root / images.paths[row]),
                names[int(votes.labels[place])],
                float(votes.share[place]),
                known.names[int(votes.neighbors[place, 0])],
                float(votes.similarities[place, 0]),
                images.class_names[truth] if truth >= 0 else None,
            )
        )
    return Classification(tuple(predictions), len(known.labels), len(names), broken)


def _list_queries(queries: str | Path | Sequence[str | Path], options: ImageOptions) -> ImageList:
    places = [Path(queries)] if isinstance(queries, str | Path) else [Path(each) for each in queries]
    sources = [each for each in places if is_image_source(each)]
    if sources and len(places) > 1:
        raise UserError(
            f"{sources[0]} cannot be combined with other queries: give pictures, or one folder or table of them"
        )
    if not places:
        raise UserError("a classification needs IMAGE pictures, or one folder or table of them")
    return find_images(sources[0], options) if sources else ImageList(Path(), tuple(map(str, places)))


def _read_examples(
    source: str | Path,
    examples: str | Path | None,
    transform: str | None,
    options: ImageOptions,
    allow: Collection[str],
) -> _Examples:
    if transform is not None and examples is None:
        raise UserError("--transform requires --examples: the images of a run or an index already have a transform")
    if str(source).startswith("postgresql:") or (Path(source).is_dir() and is_index(Path(source))):
        if examples is not None:
            raise UserError("--examples cannot be combined with an index, whose items are the examples")
        found = _read_index(source)
    elif examples is None:
        found = _read_run(source, allow)
    else:
        encoder, images = resolve_model(source, transform).load(), find_images(examples, options)
        labels = np.array(images.labels if images.labels is not None else [], np.int64)
        if not (labels >= 0).any():
            raise _without_labels(examples)
        rows, vectors, _ = embed_images(encoder, images, np.flatnonzero(labels >= 0))
        classes = [images.class_names[label] for label in labels[rows]]
        found = _Examples(encoder, vectors, classes, [images.paths[row] for row in rows])
    if not found.labels:
        raise _without_labels(source)
    return found


def _without_labels(place: str | Path) -> UserError:
    return UserError(f"{place} must have labels: one folder per class, or a label column")


def _read_index(source: str | Path) -> _Examples:
    index = open_index(source)
    with index.still() as now:
        labels = now.column("label")
        rows = [row for row, label in enumerate(labels) if label]
        vectors, paths = now.vectors()[rows], now.column("path")
        with making("the index"):
            encoder = now.encoder()
    return _Examples(encoder, vectors, [labels[row] for row in rows], [paths[row] for row in rows])


def _read_run(source: str | Path, allow: Collection[str]) -> _Examples:
    """The training images of a run."""
    from likewise.app.training import evaluation_config_of  # imports a parser, which trials do not need

    found = resolve_model(source, None)
    if not Path(source).is_dir():
        raise UserError(f"--examples must be given with {source}: a folder or table of labeled images")
    assert found.file is not None
    machine, config = this_machine(), evaluation_config_of(open_run(Path(source)), allow)
    model = Embedder.load(found.file).to(machine.device)
    store = Store(config, make_transform(config, model), machine)
    train, _ = store.split(read_parts(config["data"], config["split"]))
    embedded = embed(model, store.in_order(store.place(train)), precision=config["train"]["precision"])
    vectors = torch.nn.functional.normalize(embedded.embeddings.float()).numpy()
    labels = [train.class_names[label] for label in embedded.labels.tolist()]
    return _Examples(found.load(), vectors, labels, labels)
