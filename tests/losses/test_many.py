"""Several processes with a share of the batch each find what one finds on all of it, and each does its share of the work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from likewise import distributed, losses
from likewise.distributed import SingleProcess, TorchProcessGroup, distributed_batch
from likewise.formula import products
from tests.losses import many

ROOT = Path(__file__).parents[2]


def start(folder: Path, size: int, seconds: float = 600.0) -> list[dict[str, Any]]:
    """What each process left; none is left behind, and none is waited for longer than that."""
    environment = {
        **os.environ,
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    processes = []
    for rank in range(size):
        command = [sys.executable, str(Path(many.__file__)), str(folder), str(rank), str(size)]
        with (folder / f"said-{rank}.txt").open("w") as said:
            processes.append(subprocess.Popen(command, env=environment, stdout=said, stderr=said, cwd=ROOT))
    try:
        codes = [process.wait(timeout=seconds) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    said = "\n".join((folder / f"said-{rank}.txt").read_text()[-4000:] for rank in range(size))
    assert codes == [0] * size, said
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(size)]


def differences(expected: dict[str, Any], shares: list[dict[str, Any]]) -> list[str]:
    """What the processes found together that is not what one process found."""

    def same(a: torch.Tensor, b: torch.Tensor) -> bool:
        return a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=1e-10, atol=1e-10)

    wrong = []
    value = expected["value"]
    found = [torch.cat([share["value"] for share in shares])] if value.ndim else [share["value"] for share in shares]
    if not all(same(each, value) for each in found):
        wrong.append(f"value {found} for {value}")
    gradient = torch.cat([share["embeddings"] for share in shares])
    if not same(gradient, expected["embeddings"]):
        wrong.append(f"gradient differs by {(gradient - expected['embeddings']).abs().max():.1e}")
    for name, (theirs, _) in expected["parameters"].items():
        given = [share["parameters"][name] for share in shares]
        grads = [torch.zeros_like(theirs) if grad is None else grad for grad, _ in given]
        # a share's gradient is exact; what all have is averaged, or added up where each has an objective of its own
        whole = torch.cat(grads) if given[0][1] else torch.stack(grads).sum(dim=0)
        if not given[0][1] and not value.ndim:
            whole = whole / len(shares)
        if given[0][1] and value.ndim:
            whole = whole * len(shares)
        if not same(whole, theirs):
            wrong.append(f"{name} differs by {(whole - theirs).abs().max():.1e}")
    for name, theirs in expected["buffers"].items():
        if not all(same(share["buffers"][name], theirs) for share in shares):
            wrong.append(f"{name} differs")
    return wrong


@pytest.mark.slow
def test_several_processes_are_one(tmp_path, monkeypatch):
    """Every loss, uneven shares: value and gradients to 1e-10, in float64; and nobody does more than his share."""
    [size] = many.SIZES
    left = start(tmp_path, size)
    wrong = {}
    for name, case in many.cases().items():
        found = differences(many.run(case, size, None), [each["found"][name] for each in left])
        if found:
            wrong[name] = found
    assert not wrong, "\n".join(f"{key}: {'; '.join(what)}" for key, what in wrong.items())

    trained = many.trained(size, None)
    for each in left:
        for name, theirs in trained.items():
            torch.testing.assert_close(each["trained"][name], theirs, rtol=1e-10, atol=1e-10)
    bends = torch.cat([each["curvature"] for each in left])
    torch.testing.assert_close(bends, many.curvature(size, None), rtol=1e-10, atol=1e-10)

    # the anchors of a rank are not all references, so that its gradient takes two products
    monkeypatch.setattr(products, "ROWS_PER_DIMENSION", 0)
    too_much = {}
    for name, make in many.counted().items():
        alone = many.multiply_adds(make, 1, 0)
        share = max(each["work"][name] for each in left)
        if share > 1.1 * alone / size:
            too_much[name] = f"{size * share / alone:.2f} / {size}"
    assert not too_much


def test_one_process_needs_no_group():
    """Without torch.distributed the block, the wrapper and the shares do nothing."""
    embeddings, labels, _ = many.batch(3, 0)
    loss = losses.ArcFaceLoss(many.CLASSES, many.DIM).double()
    plain = loss(embeddings, labels)
    with distributed_batch() as group:
        assert group.size == 1
        assert torch.equal(loss(embeddings, labels), plain)
    assert torch.equal(losses.Gathered(loss)(embeddings, labels), plain)
    assert torch.equal(losses.ShardedProxies(loss)(embeddings, labels), plain)
    assert losses.Gathered(loss).parameter_groups()[0]["params"] == [loss.proxies]


def test_shares_of_proxies_that_exist_in_name_only():
    """Ten million classes need not be made in one place first."""
    with torch.device("meta"):
        loss = losses.ArcFaceLoss(many.CLASSES, many.DIM)
    shares = losses.ShardedProxies(loss)
    assert shares.loss.proxies.shape == (many.CLASSES, many.DIM)
    assert shares.loss.proxies.isfinite().all()
    assert shares(torch.randn(4, many.DIM), torch.arange(4)).isfinite()


def test_losses_that_are_no_formula_cannot_have_shares():
    with pytest.raises(TypeError, match="a ProxyGMLLoss needs all proxies of a sample at once"):
        losses.ShardedProxies(losses.ProxyGMLLoss(many.CLASSES, many.DIM))
    with pytest.raises(TypeError, match="loss must be a loss with proxies, but it is a ContrastiveLoss"):
        losses.ShardedProxies(losses.ContrastiveLoss())


@pytest.fixture
def a_group_of_one(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("a_group_of_one")
def test_a_block_is_for_one_batch():
    """The sizes of shares are asked for once, so another batch needs another block; and one process needs none."""
    processes = TorchProcessGroup()
    assert processes.batch_rows(torch.zeros(3, 2)).sizes == (3,)
    with pytest.raises(
        ValueError, match="must be opened once per batch, but this rank has 2 samples now and had 3 before"
    ):
        processes.batch_rows(torch.zeros(2, 2))
    with pytest.raises(ValueError, match="sizes must be one for each of the 1 processes, but there are 2"):
        TorchProcessGroup(sizes=[3, 2])
    assert TorchProcessGroup(sizes=[5]).batch_rows(torch.zeros(5, 2)).sizes == (5,)
    with distributed_batch() as group:
        assert isinstance(group, SingleProcess)
    assert not TorchProcessGroup.several()


@pytest.mark.usefixtures("a_group_of_one")
def test_a_batch_is_gathered_once():
    """Several losses on one batch share what was gathered, with and without a graph; nothing is kept after the block."""
    processes, batch = TorchProcessGroup(), torch.randn(3, 2, requires_grad=True)
    rows = processes.batch_rows(batch)
    everyone = processes.gather(batch, rows)
    assert processes.gather(batch, rows) is everyone
    with torch.no_grad():
        assert not processes.gather(batch, rows).requires_grad
    assert processes.gather(batch, rows).requires_grad
    processes.forget()
    assert processes.gather(batch, rows) is not everyone


@pytest.mark.usefixtures("a_group_of_one")
def test_collectives_are_few(monkeypatch):
    """Sizes, embeddings, labels and sums forward; sums and embeddings backward; another loss adds its sums alone."""
    seen = []
    for name in ("gather", "scatter"):
        real = getattr(distributed._Wire, name)
        monkeypatch.setattr(
            distributed._Wire, name, lambda *given, real=real, name=name: seen.append(name) or real(*given)
        )
    reduce = dist.all_reduce
    monkeypatch.setattr(dist, "all_reduce", lambda *given, **more: seen.append("total") or reduce(*given, **more))
    pair, proxy = losses.MultiSimilarityLoss(), losses.ArcFaceLoss(many.CLASSES, many.DIM)
    expected = {
        pair: (["gather"] * 3 + ["total"], ["total", "scatter"]),
        losses.WeightedSum({pair: 1.0, losses.NTXentLoss(): 1.0}): (
            ["gather"] * 3 + ["total"] * 2,
            ["total"] * 2 + ["scatter"],
        ),
        proxy: (["total"], ["total"]),
        losses.ShardedProxies(losses.ArcFaceLoss(many.CLASSES, many.DIM)): (["gather"] * 4, ["scatter"] * 2),
    }
    for loss, (forward, backward) in expected.items():
        seen.clear()
        monkeypatch.setattr(distributed._current, "group", TorchProcessGroup())
        value = loss(torch.randn(6, many.DIM, requires_grad=True), torch.arange(6) // 2)
        assert seen == forward
        value.backward()
        assert seen == forward + backward


def test_a_queue_stays_where_it_is():
    """From its first batch on, loading included: a recorded graph writes where it wrote when it was recorded."""
    memory = losses.CrossBatchMemory(losses.ContrastiveLoss(), size=8)
    memory(torch.randn(4, 3), torch.arange(4) // 2)
    places = {name: each.data_ptr() for name, each in memory.named_buffers()}
    for _ in range(3):
        memory(torch.randn(4, 3, requires_grad=True), torch.arange(4) // 2).backward()
    memory.load_state_dict({name: each.clone() for name, each in memory.state_dict().items()})
    assert places == {name: each.data_ptr() for name, each in memory.named_buffers()}
