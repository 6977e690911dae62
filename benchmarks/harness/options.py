"""Command-line options that benchmarks share."""

from __future__ import annotations

import argparse
from pathlib import Path


def make_parser(
    description: str | None, *, device: bool = False, quick: str | None = None, out: str | None = None
) -> argparse.ArgumentParser:
    """Make a parser whose help is a script's docstring.

    Args:
        description: the docstring.
        device: add ``--device``.
        quick: add ``--quick``; what the smoke test is.
        out: add ``--out``; the name of the results, as in ``results/<out>-<device>.json``.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if device:
        parser.add_argument("--device", default="cpu", help="cpu, or a CUDA device")
    if quick is not None:
        parser.add_argument("--quick", action="store_true", help=f"a smoke test: {quick}; writes no file")
    if out is not None:
        parser.add_argument("--out", type=Path, help=f"the file to write; by default results/{out}-<device>.json")
    return parser
