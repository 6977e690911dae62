"""Downloads against a server on this machine that breaks off, forgets and lies, and archives that try to get out."""

from __future__ import annotations

import hashlib
import io
import re
import stat
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from likewise.data import CUB200, Archive, Cars196, StanfordOnlineProducts, cub, download, fetch, sop
from likewise.data.download import unpack
from tests.data import layouts


class Server:
    """Serves one file, and does what a test asks of it; remembers what it was asked for."""

    def __init__(self) -> None:
        self.content = b""
        self.etag: str | None = '"first"'
        self.ranges = True
        self.length = True
        self.stop_after: list[int | None] = []  # for each answer, after how many bytes to hang up
        self.status: list[int] = []  # for each answer, an error instead
        self.asked: list[tuple[str | None, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/files/{name}?download=1"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted, same = request.headers.get("Range"), request.headers.get("If-Range")
        self.asked.append((wanted, same))
        if self.status and (status := self.status.pop(0)):
            request.send_error(status)
            return
        start = 0
        if wanted and self.ranges and same in (None, self.etag):
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            if start >= len(self.content):
                request.send_response(416)
                request.send_header("Content-Range", f"bytes */{len(self.content)}")
                request.end_headers()
                return
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        else:
            request.send_response(200)
        body = self.content[start:]
        if self.length:
            request.send_header("Content-Length", str(len(body)))
        if self.etag:
            request.send_header("ETag", self.etag)
        request.end_headers()
        stop = self.stop_after.pop(0) if self.stop_after else None
        request.wfile.write(body if stop is None else body[:stop])


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return file.getvalue()


CONTENT = zipped(birds__list=b"robin", birds__wren=bytes(range(256)) * 1000)
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()


def birds(server: Server, checksum: str | None = MD5) -> Archive:
    server.content = server.content or CONTENT
    return Archive(server.url("birds.zip"), checksum, "birds/list")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"birds.zip.lock"}


def test_an_archive_is_fetched_once(server: Server, tmp_path: Path):
    root = tmp_path / "new" / "folder"
    assert fetch(birds(server), root) == root
    assert (root / "birds" / "list").read_bytes() == b"robin"
    assert names(root) == {"birds.zip", "birds"}
    fetch(birds(server), root)
    assert server.asked == [(None, None)]


def test_a_broken_download_goes_on_in_the_same_call(server: Server, tmp_path: Path):
    server.stop_after = [100_000, 50_000]
    fetch(birds(server), tmp_path, pause=0.0)
    assert server.asked == [(None, None), ("bytes=100000-", '"first"'), ("bytes=150000-", '"first"')]
    assert (tmp_path / "birds.zip").read_bytes() == CONTENT


def test_a_broken_download_goes_on_in_a_later_call(server: Server, tmp_path: Path):
    server.stop_after = [100_000, 0]
    with pytest.raises(ConnectionError, match=r"100,000 bytes are kept; run it again to continue from there"):
        fetch(birds(server), tmp_path, attempts=1)
    assert names(tmp_path) == {"birds.zip.part", "birds.zip.part.json"}
    with pytest.raises(ConnectionError, match=r"broke after 100,000 of 2\d\d,\d\d\d bytes"):
        fetch(birds(server), tmp_path, attempts=1)
    fetch(birds(server), tmp_path)
    assert server.asked[1:] == [("bytes=100000-", '"first"')] * 2
    assert names(tmp_path) == {"birds.zip", "birds"}


def test_attempts_without_a_new_byte_are_counted(server: Server, tmp_path: Path):
    server.stop_after = [10_000, 10_000, 0, 0, 0]
    with pytest.raises(ConnectionError):
        fetch(birds(server), tmp_path, attempts=3, pause=0.0)
    assert len(server.asked) == 4  # the second made progress: it and two without


def test_a_server_without_ranges_starts_anew(server: Server, tmp_path: Path):
    server.ranges = False
    server.stop_after = [100_000]
    fetch(birds(server), tmp_path, pause=0.0)
    assert server.asked == [(None, None), ("bytes=100000-", '"first"')]
    assert (tmp_path / "birds.zip").read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_starts_anew(server: Server, tmp_path: Path):
    server.content = b"x" * 200_000
    server.stop_after = [100_000]
    with pytest.raises(ConnectionError):
        fetch(birds(server), tmp_path, attempts=1)
    server.content, server.etag = CONTENT, '"second"'
    fetch(birds(server), tmp_path)
    assert (tmp_path / "birds.zip").read_bytes() == CONTENT


def test_a_weak_etag_is_no_proof(server: Server, tmp_path: Path):
    server.etag = 'W/"first"'
    server.stop_after = [100_000]
    fetch(birds(server), tmp_path, pause=0.0)
    assert server.asked[1] == ("bytes=100000-", None)


def test_bytes_of_unknown_origin_are_not_added_to(server: Server, tmp_path: Path):
    (tmp_path / "birds.zip.part").write_bytes(b"who knows")
    fetch(birds(server), tmp_path)
    assert server.asked == [(None, None)]


def test_a_part_that_is_whole_already(server: Server, tmp_path: Path):
    server.stop_after = [len(CONTENT) - 1]
    with pytest.raises(ConnectionError):
        fetch(birds(server), tmp_path, attempts=1)
    (tmp_path / "birds.zip.part").write_bytes(CONTENT)  # the process died before it moved the file
    fetch(birds(server), tmp_path)
    assert names(tmp_path) == {"birds.zip", "birds"}
    assert server.asked[1] == (f"bytes={len(CONTENT)}-", '"first"')


def test_a_server_that_says_no_length(server: Server, tmp_path: Path):
    server.length = False
    fetch(birds(server), tmp_path)
    assert (tmp_path / "birds" / "list").exists()


def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path):
    with pytest.raises(ValueError, match=r"birds\.zip.* must have the checksum sha256:00, but .* it was removed"):
        fetch(birds(server, "sha256:00"), tmp_path)
    assert names(tmp_path) == set()


def test_an_archive_downloaded_by_hand_is_used(server: Server, tmp_path: Path):
    (tmp_path / "birds.zip").write_bytes(CONTENT)
    fetch(birds(server), tmp_path)
    assert server.asked == []
    assert (tmp_path / "birds" / "list").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "birds.zip").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"must have the checksum md5:.*, but it has another one; move it away"):
        fetch(birds(server), other)
    assert (other / "birds.zip").read_bytes() == b"something else"


def test_errors_of_the_server(server: Server, tmp_path: Path):
    server.status = [404]
    with pytest.raises(ConnectionError, match=r"cannot download .*: the server answered 404 Not Found"):
        fetch(birds(server), tmp_path)
    assert len(server.asked) == 1
    server.status = [503, 0]
    fetch(birds(server), tmp_path, pause=0.0)
    assert len(server.asked) == 3


def test_addresses_that_make_no_sense(tmp_path: Path):
    with pytest.raises(ValueError, match="url must begin with http, https, ftp or file"):
        fetch(Archive("gopher://x/birds.zip", None, None), tmp_path)
    with pytest.raises(ValueError, match="url must end with the name of a file"):
        fetch(Archive("https://example.org/", None, None), tmp_path)


def test_a_folder_in_the_way(server: Server, tmp_path: Path):
    (tmp_path / "birds").mkdir()
    with pytest.raises(FileExistsError, match="birds must contain birds/list, but it does not; move it away"):
        fetch(birds(server), tmp_path)
    assert server.asked == []


def test_processes_that_start_together_fetch_once(server: Server, tmp_path: Path):
    threads = [threading.Thread(target=fetch, args=(birds(server), tmp_path)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.asked) == 1
    assert (tmp_path / "birds" / "list").exists()


def packed(folder: Path, kind: str) -> bytes:
    """A folder as an archive, with a file beside it, as CUB's has."""
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            for path in sorted(folder.rglob("*")):
                archive.write(path, path.relative_to(folder.parent))
    else:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            archive.add(folder, f"./{folder.name}")
            extra = tarfile.TarInfo("attributes.txt")
            archive.addfile(extra, io.BytesIO())
    return file.getvalue()


@pytest.mark.filterwarnings("ignore:.*but the official one has")
def test_cub_is_downloaded(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    server.content = packed(layouts.cub(tmp_path / "original"), "tgz")
    md5 = "md5:" + hashlib.md5(server.content).hexdigest()
    root = tmp_path / "root"
    with pytest.raises(ValueError, match="must have the checksum md5:97eceeb196236b17998738112f37df78"):
        CUB200(root, download=True, mirror=server.url("CUB_200_2011.tgz"))
    monkeypatch.setattr(cub, "_ARCHIVE", Archive(server.url("CUB_200_2011.tgz"), md5, cub._ARCHIVE.marker))
    assert len(CUB200(root, download=True)) == 3
    asked = len(server.asked)
    assert len(CUB200(root, "all", download=True)) == 6
    assert len(CUB200(root / "CUB_200_2011", "all", download=True)) == 6
    assert len(server.asked) == asked
    assert (root / "attributes.txt").exists()


@pytest.mark.filterwarnings("ignore:.*but the official one has")
def test_online_products_are_downloaded(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    server.content = packed(layouts.sop(tmp_path / "original"), "zip")
    digest = "sha256:" + hashlib.sha256(server.content).hexdigest()
    monkeypatch.setattr(
        sop, "_ARCHIVE", Archive("http://127.0.0.1:9/Stanford_Online_Products.zip", digest, sop._ARCHIVE.marker)
    )
    mirror = server.url("Stanford_Online_Products.zip")
    assert len(StanfordOnlineProducts(tmp_path / "root", download=True, mirror=mirror)) == 3


@pytest.mark.filterwarnings("ignore:.*but the official one has")
def test_cars_come_from_a_mirror(server: Server, tmp_path: Path):
    server.content = packed(layouts.cars_halves(tmp_path / "stanford_cars", inside=False), "zip")
    assert len(Cars196(tmp_path / "root", download=True, mirror=server.url("cars.zip"))) == 3


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (member("../out.txt"), "must stay inside its folder"),
        (member("a/../../out.txt"), "must stay inside its folder"),
        (member("/tmp/out.txt"), "must stay inside its folder"),
        (member("C:\\out.txt"), "must stay inside its folder"),
        (member("C:out.txt"), "must stay inside its folder"),
        (member("a\\..\\..\\out.txt"), "must stay inside its folder"),
        (member("link", tarfile.SYMTYPE, "/etc"), "'link' is a link or a device"),
        (member("link", tarfile.LNKTYPE, "good.txt"), "'link' is a link or a device"),
        (member("pipe", tarfile.FIFOTYPE), "'pipe' is a link or a device"),
        (member("null", tarfile.CHRTYPE), "'null' is a link or a device"),
    ],
)
def test_members_that_would_leave_a_tar(tmp_path: Path, info: tarfile.TarInfo, text: str):
    root = tmp_path / "root"
    root.mkdir()
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.addfile(member("good.txt"), io.BytesIO())
        archive.addfile(info, io.BytesIO())
    with pytest.raises(ValueError, match=text):
        unpack(tmp_path / "a.tar", root)
    assert list(root.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"root", "a.tar"}


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out.txt", "a/../../out.txt"])
def test_members_that_would_leave_a_zip(tmp_path: Path, name: str):
    (tmp_path / "a.zip").write_bytes(zipped(good=b"", **{name: b"x"}))
    with pytest.raises(ValueError, match="must stay inside its folder"):
        unpack(tmp_path / "a.zip", tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


def test_links_in_a_zip(tmp_path: Path):
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc")
    with pytest.raises(ValueError, match="'link' is a link or a device"):
        unpack(tmp_path / "a.zip", tmp_path / "root")


@pytest.mark.parametrize("kind", ["zip", "tgz"])
def test_a_bomb_is_not_unpacked(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(download, "_EXPANSION_FREE", 1000)
    zeros = io.BytesIO(bytes(5_000_000))
    if kind == "zip":
        with zipfile.ZipFile(tmp_path / "a", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zeros", zeros.read())
    else:
        info = tarfile.TarInfo("zeros")
        info.size = 5_000_000
        with tarfile.open(tmp_path / "a", "w:gz") as archive:
            archive.addfile(info, zeros)
    with pytest.raises(ValueError, match=r"must unpack to at most [\d,]+ bytes and 5,000,000 files, but it has more"):
        unpack(tmp_path / "a", tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.parametrize("kind", ["zip", "tgz", "cut tgz", "nonsense"])
def test_damaged_archives_leave_nothing(tmp_path: Path, kind: str):
    data = packed(layouts.cub(tmp_path / "original"), kind.split()[-1]) if kind != "nonsense" else b"nonsense"
    middle = len(data) // 2
    damaged = data[:middle] if kind.startswith("cut") else data[:middle] + b"!!!!!!!!" + data[middle + 8 :]
    (tmp_path / "a").write_bytes(damaged)
    with pytest.raises(ValueError, match="must be a whole zip or tar archive"):
        unpack(tmp_path / "a", tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


def test_an_archive_of_something_else(tmp_path: Path):
    (tmp_path / "a.zip").write_bytes(zipped(cats__list=b""))
    with pytest.raises(ValueError, match="must contain the folder 'birds'"):
        unpack(tmp_path / "a.zip", tmp_path / "root", last="birds")


def test_what_a_killed_process_left_is_cleared(tmp_path: Path):
    (tmp_path / "birds.zip").write_bytes(CONTENT)
    left = tmp_path / ".birds.zip.unpacking" / "birds" / "half"
    left.mkdir(parents=True)
    unpack(tmp_path / "birds.zip", tmp_path, last="birds")
    assert {path.name for path in (tmp_path / "birds").iterdir()} == {"list", "wren"}
    assert names(tmp_path) == {"birds", "birds.zip"}
