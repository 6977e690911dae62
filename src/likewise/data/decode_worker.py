"""A process that decodes images for another process: ``python -P decode_worker.py BYTES``, with a limit on its memory.

It imports only Pillow and ``decode.py``, so that it starts in a fraction of a second.  A request is a line of JSON
(``size``, ``name``, ``formats``, ``pixels``) and the bytes of a file; an answer is a line of JSON and RGB bytes, or an error.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

RETIRES = 4_000_000
"""The number of decoded pixels after which the process ends, to return its memory to the system."""


def main() -> None:
    """Answer requests until the input ends."""
    decoder = _load_decoder()
    if len(sys.argv) > 1:
        _limit_memory(int(sys.argv[1]))
    warnings.simplefilter("ignore")
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := requests.readline():
        request = json.loads(line)
        if _answer(decoder, request, requests.read(request["size"]), answers) > RETIRES:
            return


def _answer(decoder: ModuleType, request: dict[str, Any], data: bytes, answers: BinaryIO) -> int:
    """Answer one request, and return its number of pixels."""
    answer: dict[str, Any]
    pixels, content = 0, b""
    try:
        image = decoder.decode(data, name=request["name"], formats=request["formats"], pixels=request["pixels"])
        content, pixels = image.tobytes(), image.width * image.height
        answer = {"width": image.width, "height": image.height, "size": len(content)}
    except decoder.BrokenImage as broken:
        answer = {"error": broken.reason, "large": isinstance(broken, decoder.TooLarge)}
    except MemoryError:
        answer, pixels = {"error": "it needs more memory than the limit for one image", "large": True}, RETIRES + 1
    answers.write(json.dumps({"last": pixels > RETIRES, **answer}).encode() + b"\n")
    answers.write(content)
    answers.flush()
    return pixels


def _load_decoder() -> ModuleType:
    """Import ``decode.py`` without its package, which would import torch."""
    spec = importlib.util.spec_from_file_location("likewise_decode", Path(__file__).with_name("decode.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _limit_memory(limit: int) -> None:
    try:
        import resource
    except ImportError:  # not available on this system; the time limit still applies
        return
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main()
