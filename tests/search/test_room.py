"""The room's face: every name is there, and nothing heavy is imported before it is used."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("faiss", "fastapi", "onnx", "psycopg", "pyarrow", "uvicorn")


def test_every_name_is_there_and_needs_nothing_heavy():
    program = (
        "import sys, likewise.search as room\n"
        "assert 'torch' not in sys.modules\n"
        "for name in room.__all__: getattr(room, name)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
