"""Downloads of archives: resumed after an interruption, verified by checksum, and unpacked atomically."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import shutil
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlparse
from urllib.request import Request, urlopen

from likewise.progress import progress

_BLOCK = 1 << 20
_TIMEOUT = 60.0  # seconds without a byte
_FILES_AT_MOST = 5_000_000
_BYTES_AT_MOST = 1 << 40
_EXPANSION_AT_MOST = 200  # pictures hardly compress, text compresses tenfold, a zip bomb a thousandfold
_EXPANSION_FREE = 100 << 20
_UNREADABLE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)


@dataclass(frozen=True)
class Archive:
    """An archive that can be downloaded: its URL, its checksum, and a file that shows that it was unpacked.

    Args:
        url: an ``http``, ``https``, ``ftp`` or ``file`` URL.
        checksum: algorithm and digest, ``"md5:97ec…"``; ``None`` if none is published.
        marker: a file inside the archive, ``"birds/list.txt"``; if it exists, the archive has been unpacked.  ``None`` if
            unknown.

    Examples:
        >>> Archive("https://example.org/birds.tgz?download=1", None, "birds/list.txt").file_name
        'birds.tgz'
    """

    url: str
    checksum: str | None
    marker: str | None

    @property
    def file_name(self) -> str:
        """The file name of the archive on disk."""
        name = PurePosixPath(unquote(urlparse(self.url).path)).name
        if not name or name != PureWindowsPath(name).name:
            raise ValueError(f"url must end with the name of a file, but it is {self.url!r}")
        return name


def fetch(archive: Archive, root: str | os.PathLike[str], *, attempts: int = 4, pause: float = 1.0) -> Path:
    """Download an archive into a folder and unpack it there; the archive is kept.

    An interrupted download continues where it stopped, in the same call or in a later one.  An archive that is in the
    folder already, for example downloaded by hand, is verified and used.  Nothing is done if the marker file exists.

    Args:
        archive: the archive.
        root: the folder; it is created if it does not exist.
        attempts: number of attempts without a new byte before giving up.
        pause: seconds before the second attempt, doubled for each further one.

    Returns:
        The folder with the unpacked files.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with zipfile.ZipFile(folder / "birds.zip", "w") as file:
        ...     file.writestr("birds/list.txt", "robin")
        >>> there = fetch(Archive((folder / "birds.zip").as_uri(), None, "birds/list.txt"), folder / "data")
        >>> (there / "birds" / "list.txt").read_text()
        'robin'
    """
    from filelock import FileLock  # a dependency of torch

    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    target = root / archive.file_name
    # The processes of a training run start together: one downloads, the others wait and find the result.
    with FileLock(f"{target}.lock"):
        last = None
        if archive.marker is not None:
            last = PurePosixPath(archive.marker).parts[0]
            if (root / archive.marker).exists():
                return root
            if (root / last).exists():
                raise FileExistsError(
                    f"{root / last} must contain {archive.marker}, but it does not; move it away and try again"
                )
        if target.exists():
            if not _matches(target, archive.checksum):
                raise ValueError(
                    f"{target} must have the checksum {archive.checksum}, but it has another one; move it away and try again"
                )
        else:
            _Download(archive.url, target).run(archive.checksum, attempts, pause)
        unpack(target, root, last=last)
    return root


class _Download:
    """A download in progress: a partial file next to the target, and a record of its source."""

    def __init__(self, url: str, target: Path):
        if urlparse(url).scheme not in ("http", "https", "ftp", "file"):
            raise ValueError(f"url must begin with http, https, ftp or file, but it is {url!r}")
        self.url = url
        self.target = target
        self.part = target.with_name(target.name + ".part")
        self.note = target.with_name(target.name + ".part.json")

    def run(self, checksum: str | None, attempts: int, pause: float) -> None:
        """Transfer, retry while there is progress, verify the checksum, and move the file to its final name."""
        failures = 0
        while failures < attempts:
            before = self._size()
            try:
                self._transfer()
                break
            except HTTPError as error:
                error.close()  # the error owns the connection
                if error.code < 500 and error.code not in (408, 429):  # another attempt would fail, too
                    raise ConnectionError(f"cannot download {self.url}: {_describe_error(error)}") from error
                broken: Exception = error
            except (OSError, HTTPException) as error:
                broken = error
            failures = 1 if self._size() > before else failures + 1
            if failures < attempts:
                time.sleep(pause * 2 ** (failures - 1))
        else:
            raise ConnectionError(
                f"cannot download {self.url}: {_describe_error(broken)}; {self._size():,} bytes are kept; "
                "run it again to continue from there"
            ) from broken
        right = _matches(self.part, checksum)
        if right:
            os.replace(self.part, self.target)
        self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)
        if not right:
            raise ValueError(
                f"{self.url} must have the checksum {checksum}, but the downloaded file has another one; it was removed"
            )

    def _transfer(self) -> None:
        have, validator = self._find_part()
        headers = {"User-Agent": "likewise", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            headers |= {"If-Range": validator} if validator else {}
        try:
            response = urlopen(Request(self.url, headers=headers), timeout=_TIMEOUT)
        except HTTPError as error:
            if error.code != 416:
                raise
            error.close()
            if error.headers.get("Content-Range") == f"bytes */{have}":  # the file is complete
                return
            self.part.unlink()
            raise ConnectionError("the server has another file now") from None
        with response:
            resumed = getattr(response, "status", None) == 206
            start = _range_start(response.headers.get("Content-Range")) if resumed else 0
            if start != (have if resumed else 0):
                raise ConnectionError(f"the server must continue at byte {have}, but it continued at {start}")
            # A note is written before the first byte, so that bytes of unknown origin are never continued.
            self._write_note(response.headers.get("ETag") or response.headers.get("Last-Modified"))
            self._copy(response, start)

    def _copy(self, response: Any, start: int) -> None:
        length = response.headers.get("Content-Length")
        total = None if length is None else start + int(length)
        here = start
        with (
            open(self.part, "ab" if start else "wb") as file,
            progress(self.target.name, total, "B", done=start) as advance,
        ):
            while block := response.read(_BLOCK):
                file.write(block)
                here += len(block)
                advance(len(block))
        if total is not None and here != total:
            raise ConnectionError(f"the connection broke after {here:,} of {total:,} bytes")

    def _find_part(self) -> tuple[int, str | None]:
        """Return how many bytes of this file have arrived, and the validator with which the server recognizes the file."""
        try:
            note = json.loads(self.note.read_text())
            if note["url"] == self.url and self.part.is_file():
                validator = note["validator"]
                weak = validator is None or validator.startswith("W/")  # not good for ranges, RFC 9110, 13.1.5
                return self.part.stat().st_size, None if weak else validator
        except (OSError, ValueError, KeyError):
            pass
        return 0, None

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _write_note(self, validator: str | None) -> None:
        aside = self.note.with_name(self.note.name + ".new")
        aside.write_text(json.dumps({"url": self.url, "validator": validator}))
        os.replace(aside, self.note)


def unpack(archive: str | os.PathLike[str], root: str | os.PathLike[str], *, last: str | None = None) -> None:
    """Unpack a zip or tar archive into a temporary folder, then move its entries, so that the result is complete.

    Args:
        archive: the file; its type is detected from its content.
        root: the folder.
        last: the entry that is moved last: if it exists, everything is unpacked.

    Raises:
        ValueError: a member would leave the folder, is a link or a device, or the content is too large.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with zipfile.ZipFile(folder / "a.zip", "w") as file:
        ...     file.writestr("../outside.txt", "")
        >>> unpack(folder / "a.zip", folder)
        Traceback (most recent call last):
        ValueError: .../a.zip must stay inside its folder, but it contains '../outside.txt'
    """
    archive, root = Path(archive), Path(root)
    aside = root / f".{archive.name}.unpacking"
    shutil.rmtree(aside, ignore_errors=True)  # left by a killed process
    aside.mkdir(parents=True)
    try:
        _extract(archive, aside)
        entries = sorted(aside.iterdir(), key=lambda entry: (entry.name == last, entry.name))
        if last is not None and (not entries or entries[-1].name != last):
            raise ValueError(f"{archive} must contain the folder {last!r}, but it does not")
        for entry in entries:
            if not (root / entry.name).exists():  # existing entries are not changed
                os.replace(entry, root / entry.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _extract(archive: Path, folder: Path) -> None:
    limit = min(_BYTES_AT_MOST, _EXPANSION_FREE + _EXPANSION_AT_MOST * archive.stat().st_size)
    written = files = 0
    try:
        with progress(f"unpacking {archive.name}", None, "B") as advance:
            for name, is_folder, size, opened in _members(archive):
                files, written = files + 1, written + size
                if written > limit or files > _FILES_AT_MOST:
                    most = f"{limit:,} bytes and {_FILES_AT_MOST:,} files"
                    raise ValueError(f"{archive} must unpack to at most {most}, but it has more")
                target = folder.joinpath(*_inside(archive, name))
                (target if is_folder else target.parent).mkdir(parents=True, exist_ok=True)
                if not is_folder:
                    with opened() as content, open(target, "wb") as file:
                        shutil.copyfileobj(content, file, _BLOCK)
                advance(size)
    except _UNREADABLE as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the disk, not of the archive
            raise
        raise ValueError(f"{archive} must be a whole zip or tar archive, but it cannot be read: {error}") from error


def _members(archive: Path) -> Iterator[tuple[str, bool, int, Callable[[], IO[bytes]]]]:
    """Yield name, whether it is a folder, size and an opener of every member; links and devices are rejected."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            for info in file.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)  # zero where the zip was not made on Unix
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise _link_error(archive, info.filename)
                yield info.filename, info.is_dir(), info.file_size, partial(file.open, info)
        return
    with _open_decompressed(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tape:
        for member in tape:
            if not (member.isfile() or member.isdir()):
                raise _link_error(archive, member.name)
            yield member.name, member.isdir(), member.size, partial(_content, tape, member)
        while stream.read(_BLOCK):
            pass  # read to the end, where the checksum of the compressed data is; tarfile does not read it


def _open_decompressed(archive: Path) -> IO[bytes]:
    """Open a compressed file for reading its content, by its first bytes; any other file is opened unchanged."""
    with archive.open("rb") as file:
        begins = file.read(6)
    openers: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
    opener = next((each for magic, each in openers.items() if begins.startswith(magic)), open)
    opened: IO[bytes] = opener(archive, "rb")
    return opened


def _content(tape: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tape.extractfile(member)
    assert content is not None  # None is returned only for members that are not files
    return content


def _inside(archive: Path, name: str) -> tuple[str, ...]:
    """Return the parts of a member's path; names that leave a folder on Windows are rejected on every system."""
    path = PurePosixPath(name)
    bad = path.is_absolute() or ".." in path.parts or "\\" in name or PureWindowsPath(name).drive or "\0" in name
    if bad:
        raise ValueError(f"{archive} must stay inside its folder, but it contains {name!r}")
    return path.parts


def _matches(file: Path, checksum: str | None) -> bool:
    """Return whether a file has the checksum; always true if no checksum is published."""
    if checksum is None:
        return True
    algorithm, digest = checksum.split(":")
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, algorithm).hexdigest() == digest.lower()


def _link_error(archive: Path, name: str) -> ValueError:
    return ValueError(f"{archive} must contain files and folders only, but {name!r} is a link or a device")


def _range_start(header: str | None) -> int:
    """Return where ``bytes 100-199/200`` begins; −1 if the header does not say."""
    first = (header or "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else -1


def _describe_error(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"the server answered {error.code} {error.reason}"
    return str(error.reason if isinstance(error, URLError) else error) or type(error).__name__
