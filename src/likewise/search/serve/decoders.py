"""Decoding of untrusted images in separate processes with limits on memory and time; a process that exceeds them is replaced."""

from __future__ import annotations

import ctypes
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import Image

import likewise.data
from likewise.data import BrokenImage, TooLarge
from likewise.formula import whole_number

WORKER = Path(likewise.data.__file__).with_name("decode_worker.py")
LARGE = 4_000_000
"""The number of pixels of an image above which its memory is returned to the system immediately."""


class Decoders:
    """A pool of processes that decode images.

    Args:
        count: number of images that are decoded at once.
        seconds: time limit for one image, after which its process is killed.
        memory: memory limit of a process in bytes.

    Examples:
        >>> decoders = Decoders(1)
        >>> decoders.decode(b"no image", "a.png", ["PNG"], pixels=100)
        Traceback (most recent call last):
        likewise.data.decode.BrokenImage: cannot read the image a.png: it is not an image of a known format
        >>> decoders.close()
    """

    def __init__(self, count: int, *, seconds: float = 20.0, memory: int = 1_500_000_000) -> None:
        self.seconds, self.memory = seconds, memory
        self._slots: queue.LifoQueue[_Process | None] = queue.LifoQueue()
        for _ in range(whole_number("count", count, 1)):
            self._slots.put(None)

    def decode(self, data: bytes, name: str, formats: Sequence[str], *, pixels: int) -> Image.Image:
        """Decode an image, upright and in RGB.

        Args:
            data: the bytes of a file.
            name: name of the image in errors.
            formats: Pillow's names of the allowed formats.
            pixels: largest number of pixels.

        Raises:
            BrokenImage: the image cannot be read.
            TooLarge: it has too many pixels, or needs too much memory or time.
        """
        request = {"size": len(data), "name": name, "formats": list(formats), "pixels": pixels}
        process = self._slots.get()
        keep: _Process | None = None
        try:
            process = process if process is not None and process.is_alive() else _Process(self.memory)
            answer, content = process.ask(request, data, self.seconds)
            keep = None if answer["last"] else process
        except _ProcessEnded as died:
            if died.late:
                raise TooLarge(name, f"it takes longer than {self.seconds:g} seconds to decode") from None
            raise BrokenImage(name, "its decoder failed") from None
        finally:
            if process is not None and keep is None:
                process.end()
            self._slots.put(keep)
        if "error" in answer:
            raise (TooLarge if answer["large"] else BrokenImage)(name, answer["error"])
        return Image.frombytes("RGB", (answer["width"], answer["height"]), content)

    def close(self) -> None:
        """End the idle processes."""
        for _ in range(self._slots.qsize()):
            process = self._slots.get()
            if process is not None:
                process.end()
            self._slots.put(None)


def return_memory() -> None:
    """Return free memory to the system, if the C library supports it (glibc).

    Pillow stores an image in chunks of 16 MB, and glibc keeps freed chunks of up to 32 MB in the heap of their thread:
    eight PNGs of 7,000 x 7,000 pixels leave 750 MB there.

    Examples:
        >>> return_memory()
    """
    with suppress(AttributeError, OSError, TypeError):  # another C library or system
        ctypes.CDLL(None).malloc_trim(0)


class _ProcessEnded(Exception):  # noqa: N818 - named after the cause
    """A process ended before it answered."""

    def __init__(self, *, late: bool) -> None:
        super().__init__()
        self.late = late


class _Process:
    """A decoding process and its two pipes."""

    def __init__(self, memory: int) -> None:
        few = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER), str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **few},
            start_new_session=True,  # Ctrl-C reaches only the server, which ends its processes
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: dict[str, Any], data: bytes, seconds: float) -> tuple[dict[str, Any], bytearray]:
        """Return the answer to a request: a mapping, and the bytes that follow it."""
        late = threading.Event()

        def kill() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, kill)
        timer.daemon = True
        timer.start()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n" + data)
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
            content = bytearray(answer.get("size", 0))
            view, place = memoryview(content), 0
            while place < len(content):
                count = self._process.stdout.readinto(view[place:])  # type: ignore[attr-defined]
                if not count:
                    raise _ProcessEnded(late=late.is_set())
                place += count
        except (OSError, ValueError):  # a closed pipe, or an invalid answer
            raise _ProcessEnded(late=late.is_set()) from None
        finally:
            timer.cancel()
        return answer, content

    def end(self) -> None:
        """Kill the process, and close its pipes."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process.wait()
