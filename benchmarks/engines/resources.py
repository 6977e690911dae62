"""Registers, stack and shared memory of generated kernels on a Hopper GPU, from the compiler; needs no GPU.

    python -m benchmarks.engines.resources           compiles, prints, writes results/resources-sm90.json
    python -m benchmarks.engines.resources --page    fills the table of docs/benchmarks-engines.md
    python -m benchmarks.engines.resources --quick   one loss; writes nothing

Each loss runs forward and backward on a batch on the CPU.  Its kernels are compiled for compute capability 9.0 and not launched, so that
losses and gradients are arbitrary.  A stack means that registers spill into memory.  A multiprocessor has 65,536 registers and 227 KiB of shared
memory, which the programs that share it divide.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import triton
from triton.backends.compiler import GPUTarget

from benchmarks.engines.rows import configure
from benchmarks.harness import DOCS, fill, make_parser, read, result_path, table, versions, write
from benchmarks.harness.pairings import find, make_batch
from likewise.engines import dispatch
from likewise.engines.triton import engine, factor, kernels

Row = dict[str, Any]
LOSSES = ("Contrastive", "Multi-similarity", "NT-Xent", "Circle", "Generalized lifted", "Triplet, all")
PRECISIONS = {
    "bf16": (torch.bfloat16, "highest"),
    "float32, TF32": (torch.float32, "high"),
    "float32": (torch.float32, "highest"),
}
SIZE, DIM = 1024, 512
MULTIPROCESSORS = 132
"""Multiprocessors of an H200."""


class Hopper:
    """A driver that compiles for Hopper and has no device."""

    def get_current_target(self) -> GPUTarget:
        """What to compile for."""
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        """The number of the device that kernels are compiled for."""
        return 0

    def get_current_stream(self, _device: int | None = None) -> int:
        """The stream that nothing is launched on."""
        return 0


def main() -> None:
    """Compile and print, or fill in."""
    parser = make_parser(__doc__, quick="one loss", out="resources")
    parser.add_argument("--page", action="store_true", help="fill the page and compile nothing")
    options = parser.parse_args()
    options.device = "sm90"
    path = result_path("resources", options)
    if options.page:
        report = None if path is None else read(path)
        if report is None:
            raise SystemExit("there are no results yet: run python -m benchmarks.engines.resources")
        fill(DOCS / "benchmarks-engines.md", {"engines-resources": page(report)})
        return
    triton.runtime.driver.set_active(Hopper())
    rows: list[Row] = []
    for precision in PRECISIONS:
        for loss in LOSSES[:1] if options.quick else LOSSES:
            with compiled(rows, {"loss": loss, "precision": precision}):
                run(loss, precision)
    write({**versions("torch", "triton"), "rows": rows}, path)


def run(loss: str, precision: str) -> None:
    """Run a loss forward and backward, which compiles its kernels."""
    dtype, products = PRECISIONS[precision]
    torch.set_float32_matmul_precision(products)
    embeddings, labels = make_batch(SIZE, DIM)
    call = configure(find(loss, DIM, SIZE // 4).ours(), backend="triton")
    call(embeddings.to(dtype).requires_grad_(), labels).backward()


@contextmanager
def compiled(rows: list[Row], key: Row) -> Iterator[None]:
    """Compile kernels for large tiles instead of launching them, and append what each needs."""

    def compile_kernel(
        kernel: Any, programs: int, arguments: Sequence[Any], _device: object, *, warps: int = 4, stages: int = 2,
        registers: int | None = None,
    ) -> None:  # fmt: skip
        limit = {} if registers is None else {"maxnreg": registers}
        compiled = kernel.warmup(
            *arguments, grid=(programs,), num_warps=warps, num_stages=stages, enable_fp_fusion=True, **limit
        )
        if kernel.__name__.startswith(("likewise_fold", "likewise_gradient")):
            used = read_resources(compiled.asm["cubin"])
            row = {
                **key,
                "kernel": kernel.__name__.removeprefix("likewise_"),
                "limit": registers,
                "warps": warps,
                **used,
            }
            row["shared"] = compiled.metadata.shared
            if row not in rows:
                rows.append(row)
                print(row, flush=True)

    def choose_tiles(self: kernels.Operands, _m: int, _n: int, large: kernels.Shapes) -> kernels.TileShape:
        shape = large[self.precision if self.dtype == torch.float32 else "half"]
        return replace(shape, depth=min(shape.depth, DIM))

    with (
        mock.patch.object(kernels, "launch", compile_kernel),
        mock.patch.object(factor, "launch", compile_kernel),
        mock.patch.object(kernels, "count_programs", lambda _device, each=1: each * MULTIPROCESSORS),
        mock.patch.object(kernels.Operands, "choose_tiles", choose_tiles),
        mock.patch.object(dispatch, "_check_triton", return_value=None),
        mock.patch.object(engine, "TRIANGLE_STATE_BYTES", 2**40),
    ):
        yield


def read_resources(binary: bytes) -> dict[str, int]:
    """Return the registers of a thread and the bytes of its stack, as Triton's own disassembler prints them."""
    program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        printed = subprocess.run([program, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", printed)
    assert found is not None, printed
    return {"registers": int(found[1]), "stack": int(found[2])}


def page(report: dict[str, Any]) -> str:
    """The table of kernels for tiles of negatives, which are nearly all tiles of a large batch."""
    rows = [row for row in report["rows"] if not row["kernel"].endswith("_mixed")]
    head = ["loss", "precision", "kernel", "registers", "stack, bytes", "shared memory, KiB", "programs"]
    lines = []
    for row in rows:
        programs = "1" if row["limit"] is None else str(kernels.REGISTERS // (32 * row["warps"] * row["limit"]))
        cells = (row["registers"], row["stack"], round(row["shared"] / 1024), programs)
        lines.append([row["loss"], row["precision"], row["kernel"], *map(str, cells)])
    return f"{table(head, lines, (0, 1, 2))}\n\nTriton {report['triton']}, for compute capability 9.0."


if __name__ == "__main__":
    main()
