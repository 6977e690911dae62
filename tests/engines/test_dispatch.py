"""``backend="auto"``: one function decides, from size, dtype, device and what a loss is."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

from likewise import engines, losses
from likewise.distributed import SINGLE_PROCESS
from likewise.engines import BACKENDS, ChunkedEngine, DenseEngine
from likewise.formula import NEGATIVES, SNR, Cosine, Dot, Euclidean, Labels, PairBatch, SquaredEuclidean, per_pair, s

CHOOSE = sys.modules["likewise.engines.dispatch"]


class Own(Cosine):
    """A similarity of somebody's own."""


@dataclass(frozen=True)
class Fake:
    """As much of a batch as a decision looks at; it may be on a device that is not here."""

    extent: tuple[int, int]
    device: str
    dtype: torch.dtype = torch.float32
    similarity: object = Cosine()
    is_matrix: bool = False
    shards: object = SINGLE_PROCESS

    @property
    def relation(self) -> SimpleNamespace:
        return SimpleNamespace(device=torch.device(self.device))


CPU, GPU, KERNELS = CHOOSE.STREAM_FROM["cpu"], CHOOSE.STREAM_FROM["cuda"], CHOOSE.FUSE_FROM
DOUBLE = torch.float64


def pairs(number: int) -> tuple[int, int]:
    """So many pairs."""
    return (1, number)


TABLE = [
    # on the CPU the matrix, until it no longer fits a cache
    (Fake((2, 2), "cpu"), True, "dense"),
    (Fake(pairs(CPU - 1), "cpu"), True, "dense"),
    (Fake(pairs(CPU), "cpu"), True, "chunked"),
    (Fake((CPU, 1), "cpu"), True, "chunked"),
    (Fake(pairs(GPU), "cpu"), False, "chunked"),
    (Fake(pairs(CPU), "cpu", DOUBLE), True, "chunked"),
    # on a GPU generated kernels, for what they take
    (Fake((2, 2), "cuda"), True, "dense"),
    (Fake(pairs(KERNELS - 1), "cuda"), True, "dense"),
    (Fake(pairs(KERNELS), "cuda"), True, "triton"),
    (Fake(pairs(100 * GPU), "cuda:1"), True, "triton"),
    *[
        (Fake(pairs(GPU), "cuda", similarity=kind()), True, "triton")
        for kind in (Dot, Euclidean, SNR, SquaredEuclidean)
    ],
    # and elsewhere the matrix, while there is room for it
    (Fake(pairs(GPU - 1), "cuda"), False, "dense"),
    (Fake(pairs(GPU), "cuda"), False, "chunked"),
    (Fake(pairs(GPU - 1), "cuda", DOUBLE), True, "dense"),
    (Fake(pairs(GPU), "cuda", DOUBLE), True, "chunked"),
    (Fake(pairs(GPU), "cuda", similarity=Own()), True, "chunked"),
    (Fake(pairs(GPU), "cuda", shards=object()), True, "chunked"),
    (Fake(pairs(GPU - 1), "mps"), True, "dense"),
    (Fake(pairs(GPU), "mps"), True, "chunked"),
    (Fake(pairs(GPU), "meta"), True, "chunked"),
    # who has the matrix already needs no engine that avoids it
    (Fake(pairs(GPU), "cuda", similarity=None, is_matrix=True), True, "dense"),
    (Fake(pairs(GPU), "cuda", is_matrix=True), True, "dense"),
    (Fake(pairs(CPU), "cpu", is_matrix=True), True, "dense"),
]


@pytest.mark.parametrize(("batch", "formulas", "expected"), TABLE)
def test_auto(batch: Fake, formulas: bool, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CHOOSE, "_triton_is_there", lambda: True)
    assert engines.choose(batch, formulas=formulas) == expected


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "auto"])
def test_what_is_asked_for_is_done(backend: str) -> None:
    for batch, _, _ in TABLE:
        assert engines.choose(batch, backend) == backend


def test_a_real_problem_decides_by_its_share() -> None:
    """Where anchors are spread over processes, all decide by the largest share."""
    batch = PairBatch(Labels(torch.zeros(3, dtype=torch.long)), Cosine(), anchors=torch.ones(3, 2))
    assert engines.choose(batch) == "dense"
    batch.group = SimpleNamespace(largest=lambda own: CPU)
    assert engines.choose(batch) == "chunked"


def test_half_precision_is_decided_as_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(CHOOSE, "_fuses", lambda batch: seen.append(batch.dtype) or False)
    monkeypatch.setattr(CHOOSE, "FUSE_FROM", 1)
    losses.ContrastiveLoss()(torch.ones(2, 2, dtype=torch.bfloat16), torch.tensor([0, 1]))
    assert set(seen) == {torch.float32}


def test_refusals_are_one_sentence() -> None:
    batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
    with pytest.raises(ValueError, match="backend must be one of 'auto', 'dense', 'chunked', 'triton'") as caught:
        engines.choose(batch, "quick")
    assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="the fused engine takes formulas, and this loss is none") as caught:
        engines.choose(batch, "triton", formulas=False)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="backend must be"):
        losses.ContrastiveLoss(backend="quick")


def test_engines_by_name() -> None:
    batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
    assert type(CHOOSE.engine_for(batch)) is DenseEngine
    assert type(CHOOSE.engine_for(batch, "chunked")) is ChunkedEngine
    parts = [per_pair(NEGATIVES, s)]
    for name in ("auto", "dense", "chunked"):
        assert engines.run(parts, batch, "sum", name)[0].total.tolist() == [0.0, 0.0]


def test_a_compiler_gets_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for batch, _, _ in TABLE:
        assert engines.choose(batch) == "dense"


def test_nobody_imports_triton_before_it_is_needed() -> None:
    """Where Triton is missing, everything else works; where it is not, importing it takes a second."""
    program = (
        "import sys, torch, likewise.losses as losses\n"
        "sys.modules['triton'] = None\n"
        "import likewise.engines, likewise.miners\n"
        "losses.MultiSimilarityLoss()(torch.randn(4, 3), torch.arange(4) // 2)\n"
        "assert not any(name.startswith('likewise.engines.triton') for name in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_a_missing_triton_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    CHOOSE._triton_is_there.cache_clear()
    monkeypatch.setattr(CHOOSE.importlib.util, "find_spec", lambda name: None)
    try:
        with pytest.warns(UserWarning, match="Triton is not installed, so batches on the GPU are not fused"):
            assert engines.choose(Fake(pairs(KERNELS), "cuda")) == "dense"
        assert engines.choose(Fake(pairs(GPU), "cuda")) == "chunked"  # and no second warning, which would be an error
    finally:
        CHOOSE._triton_is_there.cache_clear()
