"""``backend="auto"``: one function decides, from size, dtype, device and what a loss is."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from likewise import engines, losses, miners
from likewise.distributed import SINGLE_PROCESS
from likewise.engines import BACKENDS, ChunkedEngine, DenseEngine, map_rows
from likewise.engines.dispatch import EngineKind, choose_in_graph
from likewise.formula import (
    NEGATIVES,
    SNR,
    Cosine,
    Dot,
    Euclidean,
    Labels,
    PairBatch,
    SquaredEuclidean,
    as_similarity,
    per_pair,
    s,
)
from likewise.testing import loop_over

DISPATCH = sys.modules["likewise.engines.dispatch"]
CHOOSE = DISPATCH.choose


class Own(Cosine):
    """A similarity of somebody's own."""


@dataclass(frozen=True)
class Fake:
    """As much of a batch as a decision looks at; it may be on a device that is not here."""

    shape: tuple[int, int]
    device: str
    dtype: torch.dtype = torch.float32
    similarity: object = Cosine()
    matrix: object = None
    half: object = None
    shards: object = SINGLE_PROCESS
    group: object = SINGLE_PROCESS

    @property
    def relation(self) -> SimpleNamespace:
        return SimpleNamespace(device=torch.device(self.device))


CPU, GPU, KERNELS = DISPATCH.CHUNK_FROM["cpu"], DISPATCH.CHUNK_FROM["cuda"], DISPATCH.TRITON_FROM
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
    (Fake(pairs(GPU), "cuda", similarity=None, matrix=object()), True, "dense"),
    (Fake(pairs(GPU), "cuda", matrix=object()), True, "dense"),
    (Fake(pairs(CPU), "cpu", matrix=object()), True, "dense"),
]


@loop_over("batch, formulas, expected", TABLE)
def test_auto(batch: Fake, formulas: bool, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DISPATCH, "has_triton", lambda: True)
    plan = engines.choose(batch)
    assert (plan.formulas if formulas else plan.rows) is EngineKind(expected)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "auto"])
def test_what_is_asked_for_is_done(backend: str) -> None:
    for batch, _, _ in TABLE:
        kind = EngineKind(backend)
        assert engines.choose(batch, backend) == (backend, kind, kind)


def test_a_distributed_batch_decides_by_its_largest_share() -> None:
    """Where anchors are distributed over processes, all ranks decide alike."""
    batch = PairBatch(Labels(torch.zeros(3, dtype=torch.long)), Cosine(), anchors=torch.ones(3, 2))
    assert engines.choose(batch).formulas is EngineKind.DENSE
    distributed = batch.replace(group=SimpleNamespace(largest=lambda own: CPU))
    assert engines.choose(distributed).formulas is EngineKind.CHUNKED


def test_half_precision_is_decided_as_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(DISPATCH, "_runs_in_kernels", lambda batch: seen.append(batch.dtype) or False)
    monkeypatch.setattr(DISPATCH, "TRITON_FROM", 1)
    losses.ContrastiveLoss()(torch.ones(2, 2, dtype=torch.bfloat16), torch.tensor([0, 1]))
    assert set(seen) == {torch.float32}


def test_refusals_are_one_sentence() -> None:
    batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
    with pytest.raises(ValueError, match="backend must be one of 'auto', 'dense', 'chunked', 'triton'") as caught:
        engines.choose(batch, "quick")
    assert "\n" not in str(caught.value)
    with pytest.raises(
        TypeError, match=r"must be 'auto', 'chunked' or 'dense' for a loss that is not a formula"
    ) as caught:
        map_rows(batch, "triton")
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="backend must be"):
        losses.ContrastiveLoss(backend="quick")


def test_triton_on_a_device_without_it_is_one_sentence() -> None:
    batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
    with pytest.raises(
        ValueError, match=r"must be 'dense' or 'chunked' on this device, cpu, but it is 'triton'"
    ) as caught:
        DISPATCH.make_engine(batch, engines.choose(batch, "triton"))
    assert "\n" not in str(caught.value)


def test_engines_by_name() -> None:
    batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
    assert type(DISPATCH.make_engine(batch, engines.choose(batch))) is DenseEngine
    assert type(DISPATCH.make_engine(batch, engines.choose(batch, "chunked"))) is ChunkedEngine
    terms = [per_pair(NEGATIVES, s)]
    for name in ("auto", "dense", "chunked"):
        assert engines.run(terms, batch, "sum", name)[0].total.tolist() == [0.0, 0.0]


def test_a_compiler_gets_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for batch, _, _ in TABLE:
        assert engines.choose(batch).formulas is EngineKind.DENSE


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
    DISPATCH.has_triton.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    try:
        with pytest.warns(UserWarning, match="Triton is not installed, so large batches on the GPU run in chunks"):
            assert engines.choose(Fake(pairs(KERNELS), "cuda")).formulas is EngineKind.DENSE
        assert (
            engines.choose(Fake(pairs(GPU), "cuda")).formulas is EngineKind.CHUNKED
        )  # and no second warning, which would be an error
    finally:
        DISPATCH.has_triton.cache_clear()


# ------------------------------------------------------------------------------------------------ nobody else decides

PACKAGE = Path(engines.__file__).parents[1]


def decisions(path: Path) -> Iterator[str]:
    """Where a module names an engine or looks at the kind of a device or the size of a batch, by function."""
    tree = ast.parse(path.read_text())
    for scope, node in scoped(tree, "module"):
        if isinstance(node, ast.Constant) and node.value in set(BACKENDS) - {"auto"}:
            yield f"{scope}: {node.value!r}"
        if isinstance(node, ast.Attribute):
            written = ast.unparse(node)
            if written == "torch.cuda" or node.attr in ("is_cuda", "is_cpu", "large"):
                yield f"{scope}: {written}"
            if node.attr == "type" and isinstance(node.value, ast.Attribute) and node.value.attr == "device":
                yield f"{scope}: .device.type"


def scoped(node: ast.AST, scope: str) -> Iterator[tuple[str, ast.AST]]:
    """Every node but docstrings and help texts, with the name of the innermost function around it."""
    for child in ast.iter_child_nodes(node):
        text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if text or (isinstance(child, ast.keyword) and child.arg == "help"):
            continue
        name = child.name if isinstance(child, ast.FunctionDef) else scope
        yield name, child
        yield from scoped(child, name)


@pytest.mark.parametrize("package", ["losses", "miners", "formula"])
def test_a_declaration_does_not_know_who_executes_it(package: str) -> None:
    """No engine is named in losses, miners and formulas, and none of them asks for the device."""
    found = {
        f"{path.relative_to(PACKAGE)}:{each}" for path in (PACKAGE / package).rglob("*.py") for each in decisions(path)
    }
    # values are checked, rows taken and multiplied, masks summed and autocast read by device; their meaning does not
    # depend on it
    if package == "formula":
        names = ("checks", "indexing", "masking", "matmul", "parts", "precision")
        found = {each for each in found if not each.startswith(tuple(f"formula/{name}.py" for name in names))}
    assert not found


def test_decisions_are_found(tmp_path: Path) -> None:
    (tmp_path / "loss.py").write_text(
        "def f(x, backend):\n"
        '    """dense"""\n'
        "    if backend == 'chunked' or x.device.type == 'cpu':\n"
        "        return torch.cuda.is_available()\n"
        "    return g(x, option(help='triton'), backend='dense', wait=x.is_cuda)\n"
    )
    assert set(decisions(tmp_path / "loss.py")) == {
        "f: 'chunked'",
        "f: .device.type",
        "f: torch.cuda",
        "f: 'dense'",
        "f: x.is_cuda",
    }


MANY = DISPATCH.KERNELS_IN_GRAPH[0]


@pytest.mark.parametrize(
    ("loss", "dtype", "pairs", "plan"),
    [
        (losses.MultiSimilarityLoss(), torch.float32, MANY - 1, "dense"),
        (losses.MultiSimilarityLoss(), torch.float32, MANY, "triton"),
        (losses.MultiSimilarityLoss(), torch.bfloat16, MANY, "triton"),
        (losses.MultiSimilarityLoss(), DOUBLE, MANY, "dense"),
        (losses.MultiSimilarityLoss(), torch.float32, DISPATCH.KERNELS_IN_GRAPH[1], "dense"),
        (losses.MultiSimilarityLoss(similarity=Own()), torch.float32, MANY, "dense"),
        (losses.MultiSimilarityLoss(miner=miners.MultiSimilarityMiner()), torch.float32, MANY, "triton"),
        (losses.MultiSimilarityLoss(miner=miners.BatchHardMiner()), torch.float32, MANY, "dense"),
        (losses.TripletLoss(), torch.float32, MANY, "dense"),  # kernels would need the number of positives
        (losses.FastAPLoss(), torch.float32, MANY, "dense"),
    ],
)
def test_graphs_run_kernels_where_they_need_not_ask(
    loss: losses.PairLoss, dtype: torch.dtype, pairs: int, plan: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(DISPATCH, "has_triton", lambda: True)
    similarity = as_similarity(loss.similarity)
    assert choose_in_graph(loss.declarations(), similarity, loss.miner, dtype, pairs).value == plan


@pytest.mark.parametrize(
    ("loss", "plan"),
    [
        (losses.TripletLoss(), "triton"),
        (losses.TripletLoss(miner=miners.SemiHardMiner()), "triton"),
        (losses.TripletLoss(miner=miners.DistanceWeightedMiner()), "dense"),  # draws
        (losses.TripletLoss(miner=miners.PairMarginMiner()), "dense"),  # positives depend on similarities
        (losses.FastAPLoss(miner=miners.PairMarginMiner()), "triton"),
        (losses.ContrastiveLoss(miner=miners.SemiHardMiner()), "dense"),  # enumerates triplets
        (losses.FastAPLoss(), "triton"),
        (losses.LiftedStructureLoss(), "triton"),
        (losses.AngularLoss(), "chunked"),
        (losses.AngularLoss(miner=miners.PairMarginMiner()), "dense"),  # positives depend on similarities
        (losses.CentroidTripletLoss(), "dense"),
    ],
    ids=str,
)
def test_graphs_of_large_batches_have_positives(loss: losses.PairLoss, plan: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(DISPATCH, "has_triton", lambda: True)
    arguments = loss.declarations(), as_similarity(loss.similarity), loss.miner, torch.float32, MANY
    assert choose_in_graph(*arguments, whole=False).value == plan


def test_chunks_in_graphs_are_for_sums_within_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A declaration without anything that reads the matrix, such as a regularizer alone, has none."""
    monkeypatch.setattr(DISPATCH, "has_triton", lambda: True)
    assert choose_in_graph([], as_similarity("cosine"), None, torch.float32, MANY, whole=False).value == "triton"


def test_one_plan_serves_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mining, terms and functions of rows run by the plan that was chosen first."""
    seen = []
    monkeypatch.setattr(sys.modules["likewise.engines.evaluation"], "choose", lambda *a: seen.append(a) or CHOOSE(*a))
    embeddings, labels = torch.randn(6, 4), torch.arange(6) // 2
    losses.QuadrupletLoss()(embeddings, labels)
    losses.TripletLoss(soft=True, miner=miners.SemiHardMiner())(embeddings, labels)
    assert len(seen) == 2
