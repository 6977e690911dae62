"""``likewise doctor``: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from likewise import __version__
from likewise.cli.arguments import Arguments
from likewise.cli.packages import PACKAGES, TASKS, missing_packages
from likewise.cli.screen import bold, columns

OLDEST = (3, 11)

REQUIRED = ("torch", "numpy")
"""Required distributions."""


@dataclass(frozen=True)
class Finding:
    """One checked item.

    Examples:
        >>> Finding("python", "3.13.1").good
        True
    """

    what: str
    text: str
    good: bool = True


def run(words: Sequence[str]) -> int:
    """Check everything; the exit code is 1 if a required part is missing.

    Examples:
        >>> run(["--all"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no option --all
    """
    options = Arguments(
        "doctor",
        "Check what is installed and how to install what is missing; or check stored files against their checksums.",
    )
    options.add_argument(
        "places", metavar="RUN | INDEX | MODEL", nargs="*", type=Path, help="compare the files with their checksums"
    )
    given = options.parse_args(words)
    if given.places:
        return max(_check_artifact(place) for place in given.places)
    needed = [*python_and_packages(), *devices(), *places()]
    print(bold("needed"))
    print(columns([_row(each) for each in needed]))
    print("\n" + bold("what works"))
    tasks = list(check_tasks())
    print(columns([_row(each, "missing") for each in tasks]))
    print("\n" + bold("optional packages"))
    print(columns([_row(each, "not installed") for each in optional()]))
    bad = [each.what for each in needed if not each.good]
    ready = sum(each.good for each in tasks)
    summary = f"{ready} of {len(tasks)} tasks are ready"
    print("\n" + (f"missing or broken: {', '.join(bad)}" if bad else summary))
    return 1 if bad else 0


def _check_artifact(place: Path) -> int:
    """Compare stored files with their checksums; the exit code is 1 if one is damaged."""
    from likewise.app import check_artifact

    checks = check_artifact(place)
    for each in checks:
        if each.problem is not None:
            print(f"DAMAGED: {each.file}: {each.problem}")
    damaged = sum(each.problem is not None for each in checks)
    print(
        f"{place}: {len(checks)} files, {damaged} damaged" if damaged else f"{place}: {len(checks)} files, all intact"
    )
    return 1 if damaged else 0


def _row(finding: Finding, bad: str = "MISSING") -> tuple[str, str]:
    return finding.what, finding.text if finding.good else f"{bad}: {finding.text}"


def python_and_packages() -> Iterator[Finding]:
    """Check Python, this library and its required packages.

    Examples:
        >>> next(python_and_packages()).what
        'likewise'
    """
    yield Finding("likewise", __version__)
    oldest = ".".join(map(str, OLDEST))
    new = sys.version_info >= OLDEST
    yield Finding("python", platform.python_version() if new else f"{oldest} or newer is needed", new)
    for package in REQUIRED:
        found = _version(package)
        yield Finding(package, found or f"pip install {package}", found is not None)


def devices() -> Iterator[Finding]:
    """Check the CPU and GPUs.

    Examples:
        >>> next(devices()).what
        'cpu'
    """
    if find_spec("torch") is None:
        return
    import torch

    threads = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"
    yield Finding("cpu", threads)
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(index)
            yield Finding(f"cuda:{index}", f"{about.name}, {about.total_memory / 2**30:.0f} GiB")
    elif torch.backends.mps.is_available():
        yield Finding("mps", "Apple's GPU")
    else:
        built = "torch is built for CUDA" if torch.version.cuda else "this torch is built for the CPU only"
        yield Finding("gpu", f"not found ({built})")


def places() -> Iterator[Finding]:
    """Check the fonts for glyphs, and the space for decoded images.

    Examples:
        >>> [each.what for each in places()]
        ['fonts', 'cache']
    """
    from likewise.app import cache_folder

    if find_spec("torch") is not None and not missing_packages("train"):
        from likewise.data import font_folder

        try:
            yield Finding("fonts", f"for glyphs: {font_folder()}")
        except (OSError, ImportError) as missing:
            yield Finding("fonts", str(missing), False)
    yield _cache(cache_folder(None))


def _cache(folder: Path) -> Finding:
    """Whether the cache of decoded images is writable, and its free space."""
    there = folder
    while not there.exists():
        there = there.parent
    free = f"{shutil.disk_usage(there).free / 2**30:.0f} GiB free"
    if not os.access(there, os.W_OK):
        return Finding("cache", f"{folder} cannot be written; set LIKEWISE_CACHE to another folder", False)
    return Finding("cache", f"{folder}, {free}")


def check_tasks() -> Iterator[Finding]:
    """Whether the packages of each task are installed, and the command that installs missing ones.

    Examples:
        >>> next(check_tasks()).text
        'ready: accelerate ...'
    """
    for task, extra in TASKS.items():
        lacking = missing_packages(extra)
        if lacking:
            yield Finding(task, f"{', '.join(each.name for each in lacking)}; {lacking[0].get}", False)
        else:
            there = [f"{each.name} {_version(each.name)}" for each in PACKAGES if each.extra == extra]
            yield Finding(task, f"ready: {', '.join(there)}")


def optional() -> Iterator[Finding]:
    """Optional packages: installed versions, or how to install them.

    Examples:
        >>> [each.what for each in optional()]
        ['umap-learn', 'timm', 'transformers', 'tensorboard', 'wandb']
    """
    for each in (package for package in PACKAGES if package.extra not in TASKS.values()):
        found = _version(each.name) if each.is_there else None
        yield Finding(each.name, f"{found or each.get}, for {each.what}", bool(found))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
