"""Published weights: where they are, how they are checked, and how they get into a network.

Files are read with safetensors or with ``torch.load(weights_only=True)``: nothing in them can run.  A key that is
missing, unexpected or of another shape is an error that names it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import pickle
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from likewise.files import atomic_write
from likewise.progress import is_quiet
from likewise.trunks.preprocessing import Preprocessing
from likewise.trunks.trunk import Trunk

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")


@dataclass(frozen=True)
class FromFile:
    """Weights in a file of this machine.

    Args:
        path: a ``.safetensors`` file, or one that ``torch.save`` wrote from a state dict.

    Examples:
        >>> FromFile("nowhere.pth").locate()
        Traceback (most recent call last):
        FileNotFoundError: there is no file of weights at nowhere.pth
    """

    path: str | Path

    def locate(self) -> Path:
        """The file."""
        path = Path(self.path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file of weights at {path}")
        return path


@dataclass(frozen=True)
class FromUrl:
    """Weights to download, once, and only as the bytes with this checksum.

    Args:
        url: an ``http`` or ``https`` address.
        sha256: the checksum of the whole file, 64 hexadecimal digits.
        folder: where downloads are kept; by default the user's cache folder.

    Examples:
        >>> FromUrl("https://download.pytorch.org/models/resnet18-f37072fd.pth", "f37072fd")
        Traceback (most recent call last):
        ValueError: sha256 must be 64 hexadecimal digits, but it is 'f37072fd'
    """

    url: str
    sha256: str
    folder: str | Path | None = None

    def __post_init__(self) -> None:
        if not re.match(r"https?://\S+/[^/\s?]+$", self.url):
            raise ValueError(f"url must be the http or https address of a file, but it is {self.url!r}")
        _check_digits(self.sha256)

    def locate(self) -> Path:
        """The downloaded file; it appears under its name only after its checksum was found right."""
        try:
            import pooch
        except ImportError as missing:
            raise ImportError("downloading weights needs pooch: pip install 'likewise[train]'") from missing
        folder = Path(pooch.os_cache("likewise")) / "weights" if self.folder is None else Path(self.folder)
        path = folder / self.url.rsplit("/", 1)[1]
        if path.is_file() and _sha256(path) == self.sha256.lower():
            return path
        folder.mkdir(parents=True, exist_ok=True)
        bar = not is_quiet() and sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None
        with atomic_write(path) as part:
            try:
                pooch.HTTPDownloader(progressbar=bar)(self.url, str(part), None)
            except OSError as failure:  # of which those of requests are some
                raise OSError(f"{self.url} could not be downloaded: {str(failure).splitlines()[0]}") from failure
            digest = _sha256(part)
            if digest != self.sha256.lower():
                raise ValueError(f"{self.url} must have the sha256 {self.sha256}, but what was downloaded has {digest}")
        return path


@dataclass(frozen=True)
class FromPackage:
    """Weights inside an installed Python package; none of the package's code is run.

    Args:
        package: its name on PyPI.
        file: the file's path inside the package.
        sha256: the checksum of the file, 64 hexadecimal digits.

    Examples:
        >>> FromPackage("no-such-weights", "a.pth", "0" * 64).locate()
        Traceback (most recent call last):
        ImportError: these weights are in the package no-such-weights; install it with pip
    """

    package: str
    file: str
    sha256: str

    def __post_init__(self) -> None:
        _check_digits(self.sha256)

    def locate(self) -> Path:
        """The file, its checksum found right."""
        found = importlib.util.find_spec(self.package.replace("-", "_"))
        if found is None or not found.submodule_search_locations:
            raise ImportError(f"these weights are in the package {self.package}; install it with pip")
        path = Path(next(iter(found.submodule_search_locations))) / self.file
        if not path.is_file():
            raise FileNotFoundError(f"the installed {self.package} has no file {self.file}")
        digest = _sha256(path)
        if digest != self.sha256.lower():
            raise ValueError(f"{path} must have the sha256 {self.sha256}, but it has {digest}")
        return path


def _sha256(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _check_digits(sha256: str) -> None:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, but it is {sha256!r}")


@dataclass(frozen=True)
class Weights:
    """A set of weights: where it is, and what images it expects.

    Args:
        source: a `FromFile`, `FromUrl` or `FromPackage`.
        preprocessing: what the weights expect of an image.

    Examples:
        >>> from likewise.trunks import TRUNKS
        >>> TRUNKS["googlenet"].published["imagenet"].source.url
        'https://download.pytorch.org/models/googlenet-1378be20.pth'
    """

    source: FromFile | FromUrl | FromPackage
    preprocessing: Preprocessing


WeightsLike: TypeAlias = str | Path | Weights | None
"""A published name, a file, or `Weights`; ``None`` for random ones."""

AnyTrunk = TypeVar("AnyTrunk", bound=Trunk)


def with_weights(trunk: AnyTrunk, weights: WeightsLike, published: Mapping[str, Weights]) -> AnyTrunk:
    """Fill a trunk with weights and record what they expect of images.

    A file that comes without its preprocessing is taken to expect what the published weights of that trunk do.

    Args:
        trunk: the network, which is changed.
        weights: a name among ``published``, a file, or `Weights`; ``None`` leaves the network as it is.
        published: the names of its published weights.

    Examples:
        >>> from likewise.trunks import convnet
        >>> with_weights(convnet(), "imagenet", {})
        Traceback (most recent call last):
        ValueError: weights must be a published name (convnet has none), a file that ends in .safetensors, .pth, .pt or .bin, or Weights, but it is 'imagenet'
    """
    if weights is None:
        return trunk
    chosen = choose(trunk, weights, published)
    state = trunk.convert(read_state(chosen.source.locate()))
    load_state(trunk, state, skip=(f"{trunk.classifier}.", *trunk.ignored))
    trunk.preprocessing = chosen.preprocessing
    return trunk


def choose(trunk: Trunk, weights: str | Path | Weights, published: Mapping[str, Weights]) -> Weights:
    """The weights that a name or file stands for.

    Examples:
        >>> from likewise.trunks import convnet
        >>> choose(convnet(), "mine.pt", {}).source
        FromFile(path='mine.pt')
    """
    if isinstance(weights, Weights):
        return weights
    if isinstance(weights, str) and weights in published:
        return published[weights]
    if isinstance(weights, (str, Path)) and Path(weights).suffix in SUFFIXES:
        return Weights(FromFile(weights), trunk.preprocessing)
    names = ", ".join(map(repr, published)) or "none"
    endings = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    raise ValueError(
        f"weights must be a published name ({trunk.name} has {names}), a file that ends in {endings}, or Weights,"
        f" but it is {weights!r}"
    )


def read_state(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a file by name, on the CPU; nothing in the file can run.

    Args:
        path: a ``.safetensors`` file, or one that ``torch.save`` wrote from a state dict.

    Examples:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     torch.save({"a": torch.ones(2)}, f"{folder}/state.pt")
        ...     print(read_state(f"{folder}/state.pt"))
        {'a': tensor([1., 1.])}
    """
    path = Path(path)
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return dict(load_file(path))
        except SafetensorError as refusal:
            raise ValueError(f"{path} must be a safetensors file, but it is damaged or something else") from refusal
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as refusal:
        raise ValueError(
            f"{path} must be a state dict of tensors, but it is damaged or holds other things, and reading those could"
            " run code"
        ) from refusal
    if not isinstance(found, Mapping):
        raise ValueError(f"{path} must be a state dict of tensors, but it is a {type(found).__name__}")
    for key, value in found.items():
        if not isinstance(key, str) or not isinstance(value, Tensor):
            raise ValueError(f"{path} must be a state dict of tensors, but its {key!r} is a {type(value).__name__}")
    return dict(found)


def load_state(module: nn.Module, state: Mapping[str, Tensor], *, skip: tuple[str, ...] = ()) -> None:
    """Copy a state dict into a module; a missing, unexpected or mis-shaped key is an error that names it.

    The counters ``num_batches_tracked`` may be missing: older files have none, and no output depends on them.

    Args:
        module: the module to fill.
        state: tensors by name.
        skip: prefixes of names that are left out by rule, like those of a classifier that a trunk has not.

    Examples:
        >>> import torch
        >>> load_state(torch.nn.Linear(2, 1), {"weight": torch.zeros(1, 3), "scale": torch.zeros(1)})
        Traceback (most recent call last):
        ValueError: these weights are not Linear's: 'bias' is missing; 'scale' is unexpected; 'weight' has the shape (1, 3) and must have (1, 2)
    """
    wanted = module.state_dict()
    given = {key: value for key, value in state.items() if not key.startswith(skip)}
    faults = [
        _join_keys((key for key in wanted if key not in given and not key.endswith("num_batches_tracked")), "missing"),
        _join_keys((key for key in given if key not in wanted), "unexpected"),
    ]
    for key, value in given.items():
        if key in wanted and value.shape != wanted[key].shape:
            shapes = f"the shape {tuple(value.shape)} and must have {tuple(wanted[key].shape)}"
            faults.append(f"{key!r} has {shapes}")
            break
    faults = [fault for fault in faults if fault]
    if faults:
        name = module.name if isinstance(module, Trunk) else type(module).__name__
        raise ValueError(f"these weights are not {name}'s: {'; '.join(faults)}")
    module.load_state_dict(given, strict=False)


def _join_keys(keys: Iterable[str], fault: str) -> str:
    """The first of several keys, and how many more there are."""
    names = list(keys)
    if not names:
        return ""
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"{names[0]!r}{more} is {fault}"
