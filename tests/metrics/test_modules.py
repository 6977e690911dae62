"""Metrics that collect batches give the numbers of the functions, on one process and on two."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.metrics import two
from torch import Tensor, nn

from likewise.metrics import Clustering, Retrieval, Verification, clustering, retrieval, verification

ROOT = Path(__file__).parents[2]


def same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Equal to the last bit."""
    return list(found) == list(expected) and all(
        torch.equal(value, expected[name]) if isinstance(value, Tensor) else value == expected[name]
        for name, value in found.items()
    )


def one_shot(case: two.Case) -> dict[str, Any]:
    """The function of a case's metric, on all samples at once."""
    x, y, extra = two.samples(case)
    ids, queries = extra.get("ids"), extra.get("is_query")
    options = {name: value for name, value in case.options.items() if name != "on_cpu"}
    if case.kind is Clustering:
        return clustering(x, y, **options)
    function = retrieval if case.kind is Retrieval else verification
    if queries is None:
        return function(x, y, ids=ids, **options)
    halves = x[queries], y[queries], x[~queries], y[~queries]
    return function(*halves, ids=ids[queries], reference_ids=ids[~queries], **options)


@pytest.mark.parametrize("name", two.CASES)
def test_equal_to_the_function(name: str):
    case = two.CASES[name]
    assert same(two.evaluate(case, slice(0, 60)), one_shot(case))


def test_options_from_iterators():
    """An iterator is read once: the constructor keeps what it read."""
    x, y, _ = two.samples(two.CASES["retrieval"])
    cases: list[tuple[Any, dict[str, Any]]] = [
        (Retrieval(ks=(k for k in (1, 5))), retrieval(x, y, ks=(1, 5))),
        (Retrieval(metrics=iter(two.NAMES)), retrieval(x, y, metrics=two.NAMES)),
        (Verification(far=(rate for rate in (0.1, 0.2))), verification(x, y, far=(rate for rate in (0.1, 0.2)))),
    ]
    for metric, expected in cases:
        metric.update(x, y)
        assert metric.compute() == metric.compute() == expected
    assert "TAR@0.2" in expected


@pytest.mark.slow
def test_two_ranks_are_one(tmp_path: Path):
    """Uneven numbers of samples, and none: both ranks have the result of all samples, in the order of ranks."""
    environment = {
        **os.environ,
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    processes = []
    for rank in range(2):
        command = [sys.executable, str(Path(two.__file__)), str(tmp_path), str(rank)]
        with (tmp_path / f"output-{rank}.txt").open("w") as output:
            processes.append(subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=ROOT))
    try:
        codes = [process.wait(timeout=120.0) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert codes == [0, 0], "\n".join((tmp_path / f"output-{rank}.txt").read_text()[-4000:] for rank in range(2))
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=False)
        for name, case in two.CASES.items():
            assert same(found[name], one_shot(case)), (rank, name)
        assert found["nothing"] == "update must be called before compute, but no sample was added"
        assert found["disagree"].startswith("all ranks must have embeddings of one width and dtype")


def test_state():
    """Samples survive pickling and copying, are copies, are not part of a checkpoint, and end with reset."""
    x, y, _ = two.samples(two.CASES["retrieval"])
    metric = Retrieval(metrics=two.NAMES)
    model = nn.ModuleDict({"trunk": nn.Linear(2, 2), "metric": metric})
    for rows in (slice(0, 7), slice(7, 60)):
        batch = x[rows].clone().requires_grad_()
        assert metric(batch, y[rows].numpy()) is None
        batch.detach().zero_()
    expected = retrieval(x, y, metrics=two.NAMES)
    assert metric.compute() == metric.compute() == expected
    assert pickle.loads(pickle.dumps(metric)).compute() == copy.deepcopy(metric).compute() == expected
    assert list(model.state_dict()) == ["trunk.weight", "trunk.bias"]
    model.load_state_dict(model.state_dict())
    metric.update(x, y)
    assert metric.compute()["queries"] == 120
    metric.reset()
    with pytest.raises(ValueError, match="update must be called before compute, but no sample was added"):
        metric.compute()
    metric.update(x[:, :3], y, is_query=True)
    metric.update(x[:, :3], y, is_query=False)
    assert metric.compute() == retrieval(x[:, :3], y, x[:, :3], y, metrics=two.NAMES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Retrieval(metrics=["recall"]), "each of metrics must be .* but it is 'recall'"),
        (lambda: Retrieval(ks=(0,)), "each of ks must be a whole number ≥ 1, but it is 0"),
        (lambda: Retrieval(ties="lucky"), "ties must be one of"),
        (lambda: Retrieval(similarity="manhattan"), "similarity must be"),
        (lambda: Retrieval(memory=0), "memory must be a whole number ≥ 1, but it is 0"),
        (lambda: Clustering(iterations=-1), "iterations must be a whole number ≥ 1, but it is -1"),
        (lambda: Clustering(seed=0.5), "seed must be a whole number ≥ 0, but it is 0.5"),
        (lambda: Verification(far=(2.0,)), "each of far must be above 0 and at most 1, but it is 2.0"),
        (lambda: Clustering()(torch.eye(3), [1, 2]), "labels must have one entry for each of the 3 embeddings"),
        (lambda: Retrieval()(torch.eye(3)[0], [1]), r"embeddings must have shape \(n, d\)"),
        (lambda: Retrieval()(torch.eye(3), [1, 2, 3], is_query=[1, 0, 1]), "is_query must be a boolean or 3 booleans"),
        (lambda: Retrieval()(torch.eye(3), [1, 2, 3], ids=[1]), "ids must have one entry for each of the 3 embeddings"),
    ],
)
def test_bad_input_is_named_early(call: Any, message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_batches_of_two_kinds_are_refused():
    metric = Retrieval()
    metric.update(torch.eye(3), [1, 2, 3])
    with pytest.raises(ValueError, match="has 3 dimensions, float32, ids and the first one had 3 dimensions, float32"):
        metric.update(torch.eye(3), [1, 2, 3], ids=[1, 2, 3])
    metric.reset()
    metric.update(torch.eye(3), [1, 2, 3], is_query=True)
    with pytest.raises(ValueError, match="is_query must leave at least one sample of the gallery"):
        metric.compute()
