"""Train and evaluate two encoders on a table of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from likewise.app.build import Machine, Pieces, Store, in_order, make_loss, make_model, make_settings, make_transform
from likewise.app.defaults import Config
from likewise.app.errors import UserError, making
from likewise.app.objects import KINDS, make
from likewise.app.parts import Parts
from likewise.data import (
    Batch,
    BatchLoader,
    MiningSampler,
    PairLoader,
    PairTable,
    ResumableLoader,
    RowLoader,
    SampleLoader,
)
from likewise.report import Part
from likewise.train import Data, Sealed, TwoSided, directions, embed
from likewise.trunks import Embedder, TextTrunk, TwoTowers, build_text

AT_ONCE = 256
"""Batch size for text features."""


def make_pair_pieces(config: Config, machine: Machine, parts: Parts) -> Pieces:
    """Make everything that a configuration of a table of pairs describes.

    Args:
        config: complete.
        machine: where it is to be trained.
        parts: its data.
    """
    settings = make_settings(config)
    for name, value in (("--memory", config["memory"]), ("--lens.every", (config.get("lens") or {}).get("every"))):
        if value:
            raise UserError(f"{name} cannot be used with pairs: it needs batches of images")
    seen = _as_pairs(parts.seen)
    torch.manual_seed(config["seed"])  # the first weights of the model
    model = make_towers(config["model"], seen.kinds)
    store = PairStore(Store(config, make_transform(config, model), machine), model)
    train, val = store.split(parts)
    with making("the loss"):
        loss = TwoSided(make_loss(config, train, model))
    values = {"labels": train.row_labels, "seed": config["seed"], "rank": machine.rank, "world_size": machine.processes}
    with making(f"the sampler, for {len(train.rows):,} pairs of {len(train.class_names):,} training classes"):
        sampler = make(KINDS["sampler"], config["sampler"], values)
    if isinstance(sampler, MiningSampler) and sampler.mines:
        raise UserError(
            f"--sampler must be a sampler without mining for a table of pairs, but it is {type(sampler).__name__}"
        )
    held_out = None if val is None else store.in_order(val)
    data = Data(store.batches(train, sampler), held_out, store.sealed(parts), train.class_names)
    return Pieces(model, loss, data, train.name, *settings)


def make_towers(settings: Config, kinds: tuple[str, str]) -> TwoTowers:
    """The two towers of a configuration.

    Args:
        settings: those of the model.
        kinds: what each takes, ``"image"`` or ``"text"``.

    Examples:
        >>> settings = {"trunk": "convnet", "weights": None, "dim": 8, "in_channels": None, "text": "ngrams"}
        >>> make_towers(settings, ("image", "text")).dim
        8
    """
    name = settings.get("text")
    if "text" in kinds and name is None:
        raise UserError("--model.text must be given for a table with texts: minilm or ngrams")
    made = []
    for kind in kinds:
        if kind == "image":
            made.append(make_model({**settings, "text": None}))
            continue
        options = {key: settings[key] for key in ("head", "normalize", "layer_norm", "freeze") if key in settings}
        with making("--model.text"):
            made.append(Embedder(build_text(str(name)), settings["dim"], **options))
    with making("the model"):
        return TwoTowers(*made)


@dataclass(frozen=True)
class PairStore:
    """The samples of a table of pairs, as two towers take them.

    Args:
        store: where decoded images are.
        model: the two towers.

    Examples:
        >>> list(PairStore.__dataclass_fields__)
        ['store', 'model']
    """

    store: Store
    model: TwoTowers

    def split(self, parts: Parts) -> tuple[PairTable, PairTable | None]:
        """The pairs for training and for validation."""
        seen = self.read(_as_pairs(parts.seen))
        if parts.classes is None:
            return seen, None if parts.val is None else self.read(_as_pairs(parts.val))
        train, val = (_as_pairs(seen.of_classes(some)) for some in (parts.classes.train, parts.classes.val))
        val.split = "val"
        return train, val

    def sealed(self, parts: Parts) -> Sealed[PairTable] | None:
        """The test part, which is not read before it is opened."""
        test = parts.test
        return None if test is None else Sealed(lambda: self.read(_as_pairs(test())), parts.sealed)

    def read(self, pairs: PairTable) -> PairTable:
        """The pairs whose images can be read; others are left out and named."""
        readable = torch.ones(len(pairs), dtype=torch.bool)
        assert pairs.is_query is not None
        for side, kind in enumerate(pairs.kinds):
            if kind == "image":
                images = self.store.decode(pairs.images(side))
                there = {images.source(index) for index in range(len(images))}
                mine = (pairs.is_query if side == 0 else ~pairs.is_query).nonzero()[:, 0].tolist()
                readable[[index for index in mine if pairs.source(index) not in there]] = False
        return pairs if bool(readable.all()) else pairs.subset(readable)

    def batches(self, pairs: PairTable, sampler: Iterable[Any]) -> PairLoader:
        """Batches for a training."""
        sides = [self._load(pairs, side, (), training=True) for side in (0, 1)]
        return PairLoader(pairs, sampler, sides[0], sides[1], device=self.store.machine.device)

    def in_order(self, pairs: PairTable) -> SampleLoader:
        """All samples once, as in a test."""
        sides = [self._load(pairs, side, in_order(len(pairs.cells(side))), training=False) for side in (0, 1)]
        return SampleLoader(pairs, sides[0], sides[1])

    def _load(self, pairs: PairTable, side: int, batches: Iterable[Any], *, training: bool) -> ResumableLoader[Batch]:
        tower, store = self.model.towers[side], self.store
        device = store.machine.device
        if pairs.kinds[side] == "text":
            assert isinstance(tower.trunk, TextTrunk)
            assert pairs.is_query is not None
            with making("the texts"):
                rows = tower.trunk.tokenize(pairs.cells(side))
            if tower.freeze:
                rows = _features(tower, rows)
            return RowLoader(rows, pairs.labels[pairs.is_query == (side == 0)], batches, device=device)
        images = store.place(store.decode(pairs.images(side)))
        if tower.freeze:
            return store.features(tower, images, batches)
        transform, config = store.transform, store.config
        augment = transform.train if training else transform.test
        return BatchLoader(images, batches, augment, device=device, seed=config["seed"], rank=store.machine.rank)

    def embed(self, name: str, pairs: PairTable) -> list[Part]:
        """A part of the data, embedded: one that searches each way."""
        found = embed(self.model, self.in_order(pairs), precision=self.store.config["train"]["precision"])
        there, back = directions(pairs.sides)
        part = Part(
            f"{name}, {there}", found.embeddings, found.labels, pairs.class_names, pairs.image, is_query=pairs.is_query
        )
        assert pairs.is_query is not None
        return [part, replace(part, name=f"{name}, {back}", is_query=~pairs.is_query)]


def _features(tower: Embedder, tokens: Tensor) -> Tensor:
    """The features of texts, as a frozen trunk makes them, on the CPU."""
    device = next(tower.parameters()).device
    tower.eval()
    with torch.inference_mode():
        found = [tower.features(some.to(device)).float().cpu() for some in torch.split(tokens, AT_ONCE)]
    return torch.cat(found).clone()  # a plain tensor: inference tensors cannot be used in training


def _as_pairs(data: object) -> PairTable:
    assert isinstance(data, PairTable)
    return data


def mean_of_directions(parts: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The metrics of the two directions of a part as one record: their mean, and the recalls of each.

    Args:
        parts: metrics by the name of the part, such as ``"test, text to image"``; a single one is returned as it is.

    Examples:
        >>> mean_of_directions({"test, image to text": {"R@1": 0.5}, "test, text to image": {"R@1": 1.0}})
        {'R@1': 0.75, 'R@1 image to text': 0.5, 'R@1 text to image': 1.0}
    """
    if len(parts) == 1:
        return dict(next(iter(parts.values())))
    names = next(iter(parts.values()))
    found = {name: sum(scores[name] for scores in parts.values()) / len(parts) for name in names}
    for part, scores in parts.items():
        direction = part.partition(", ")[2]
        found |= {f"{name} {direction}": value for name, value in scores.items() if name.startswith("R@")}
    return found
