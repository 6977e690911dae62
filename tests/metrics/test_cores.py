"""Work on threads: order, errors, and the settings of torch."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from likewise.metrics.cores import call_on_cores, map_over_cores, use_cores


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_are_in_order(threads: int):
    with use_cores() as cores:
        assert cores.count == threads
        assert cores.map(lambda i: i * i, range(50)) == [i * i for i in range(50)]
        assert cores.map(str, []) == []
    assert torch.get_num_threads() == threads


def test_a_thread_computes_on_one_core_without_gradients(threads: int):
    with use_cores() as cores:
        found = set(cores.map(lambda _: (torch.get_num_threads(), torch.is_grad_enabled()), range(8)))
    assert found == ({(1, False)} if threads == 2 else {(1, True)})
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("threads", [2], indirect=True)
def test_all_threads_are_used(threads: int):
    """Each call waits for the other one."""
    meet = threading.Barrier(threads, timeout=60)
    assert sorted(call_on_cores(lambda _: meet.wait(), [0, 1])) == [0, 1]


def test_threads_of_others_keep_their_cores(threads: int):
    """A thread that calls torch for the first time meanwhile gets as many as before."""
    with use_cores(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == threads


def test_an_error_ends_the_work(threads: int):
    with pytest.raises(ZeroDivisionError), use_cores() as cores:
        cores.map(lambda i: 1 / i, [1, 0, 2])
    assert torch.get_num_threads() == threads


def test_parts_share_the_memory(threads: int):
    values = torch.tensor([[3.0, 1.0], [2.0, 0.0], [5.0, 4.0]])
    map_over_cores(lambda part: part.sort(axis=1), values)
    assert values.tolist() == [[1.0, 3.0], [0.0, 2.0], [4.0, 5.0]]


def test_an_error_keeps_nothing_alive(threads: int):
    """Without a cycle, what the calls used is freed before the next way to compute needs the memory."""

    class Large:
        def compute(self, i: int) -> float:
            return 1 / i

    large = Large()
    found, collects = weakref.ref(large), gc.isenabled()
    gc.disable()
    try:
        with use_cores() as cores:
            try:
                cores.map(large.compute, [1, 0, 2])
            except ZeroDivisionError:
                del large
            assert found() is None
    finally:
        if collects:
            gc.enable()


@pytest.mark.parametrize("threads", [2], indirect=True)
def test_after_an_error_no_call_is_running(threads: int):
    running, ended = threading.Event(), []

    def compute(i: int) -> None:
        if i == 0:
            running.wait(timeout=60)
            raise ValueError("the first")
        running.set()
        time.sleep(0.01)
        ended.append(i)

    with pytest.raises(ValueError, match="the first"), use_cores() as cores:
        cores.map(compute, range(50))
    count = len(ended)
    time.sleep(0.05)
    assert count == len(ended)


def test_few_threads_are_kept():
    """Whatever the sizes of calls, and however many call at once."""
    total = torch.get_num_threads()
    torch.set_num_threads(8)
    try:
        for limit in (2, 3, 4, 5, 6, 7, 8, 7, 6):
            with use_cores(limit) as cores:
                assert cores.map(abs, range(-3, 0)) == [3, 2, 1]
        deadline = time.monotonic() + 60
        while (kept := sum(each.name.startswith("likewise") for each in threading.enumerate())) > 2 * 8:
            assert time.monotonic() < deadline, f"{kept} threads"
            time.sleep(0.01)
    finally:
        torch.set_num_threads(total)


def test_callers_at_once_have_their_own_threads():
    total = torch.get_num_threads()
    torch.set_num_threads(4)
    meet = threading.Barrier(4, timeout=60)  # each of two callers computes on two cores
    try:
        with use_cores(2) as cores:
            found = cores.map(lambda _: call_on_cores(lambda _: meet.wait(), [0, 1]), [0, 1])
        assert sorted([*found[0], *found[1]]) == [0, 1, 2, 3]
    finally:
        torch.set_num_threads(total)


NO_THREAD = """
import threading, torch
from likewise.metrics.cores import call_on_cores
torch.set_num_threads(2)
start = threading.Thread.start
def fail(thread):
    if thread.name == "likewise_1":
        raise RuntimeError("can't start new thread")
    start(thread)
threading.Thread.start = fail
try:
    call_on_cores(len, ["a", "bc"])
except RuntimeError as error:
    print(error)
threading.Thread.start = start
other = threading.Thread(target=lambda: print(torch.get_num_threads()))
other.start()
other.join()
print(call_on_cores(len, ["a", "bc"]))
"""


def test_a_thread_that_cannot_start_leaves_no_other_waiting():
    done = subprocess.run([sys.executable, "-c", NO_THREAD], capture_output=True, text=True, timeout=120)
    assert done.stdout == "can't start new thread\n2\n[1, 2]\n", done.stderr


FORK = """
import multiprocessing, torch
from likewise.metrics.cores import call_on_cores
torch.set_num_threads(2)
lengths = lambda queue=None: call_on_cores(len, ["a", "bc"]) if queue is None else queue.put(lengths())
before = lengths()
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
child = context.Process(target=lengths, args=(queue,))
child.start()
child.join(60)
print(before, child.exitcode, queue.get() if child.exitcode == 0 else None)
child.kill()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork")
def test_a_forked_process_starts_its_own_threads():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[1, 2] 0 [1, 2]\n", done.stderr
