"""Killed at any moment of an update, an index is the old one or the new one, and never a mixture."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from likewise.search import Index, manifest, writing
from tests.search.conftest import units

ROWS = 50

PROGRAM = """
import itertools, os, sys
import numpy as np
import likewise.search.approximate
import pyarrow.compute
from likewise.search import Index

def work(folder):
    index = Index.open(folder)
    first = index.items(index.ids[:1])[0].metadata["round"]
    for number in itertools.count(first + 1):
        rows = 50
        # every item is replaced by one that says which round it is of; odd rounds rebuild, too
        index.add(
            np.full((rows, 4), number) + np.eye(4)[np.arange(rows) % 4],
            [str(row) for row in range(rows)],
            metadata={"round": [number] * rows},
            thumbnails=[b"%d %d" % (number, row) for row in range(rows)],
        )
        if number % 2:
            index.rebuild(storage=("int8", "float16", "float32")[number // 2 % 3])

for _ in sys.stdin:  # a child for each line, to be killed: starting Python anew takes a second
    child = os.fork()
    if not child:
        work(sys.argv[1])
    print(child, flush=True)
    os.waitpid(child, 0)
    print("dead", flush=True)
"""


def whole(folder: Path) -> int:
    """Which round the index is of; all of its parts must be of that one."""
    index = Index.open(folder)
    assert len(index) == ROWS
    items = index.items(index.ids)
    rounds = {item.metadata["round"] for item in items}
    assert len(rounds) == 1
    number = int(rounds.pop())  # type: ignore[call-overload]
    assert [item.path for item in items] == [str(row) for row in range(ROWS)]
    assert [index.thumbnail(each) for each in index.ids] == [b"%d %d" % (number, row) for row in range(ROWS)]
    expected = np.full((ROWS, 4), number) + np.eye(4)[np.arange(ROWS) % 4]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(index.vectors() - expected).max() < 0.01
    assert index.search(expected[:1], 1, where=f"round == {number}").ids[0, 0] in index.ids
    return number


def start(folder: Path) -> Index:
    index = Index.create(folder, dim=4)
    index.add(
        np.zeros((ROWS, 4)) + np.eye(4)[np.arange(ROWS) % 4],
        [str(row) for row in range(ROWS)],
        metadata={"round": [0] * ROWS},
        thumbnails=[b"0 %d" % row for row in range(ROWS)],
    )
    return index


def test_killed_at_many_moments(tmp_path: Path):
    """SIGKILL after random waits, again and again, over the same folder."""
    folder, chance = tmp_path / "a.index", np.random.default_rng(0)
    start(folder)
    seen = []
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(25):
            process.stdin.write("go\n")
            process.stdin.flush()
            child = int(process.stdout.readline())
            time.sleep(chance.uniform(0.0, 0.1))
            os.kill(child, signal.SIGKILL)
            assert process.stdout.readline() == "dead\n"
            seen.append(whole(folder))
        process.stdin.close()
    assert seen == sorted(seen)
    assert len(set(seen)) > 5  # it was killed in the middle of something, and not always before it began
    index = Index.open(folder)
    index.remove(index.ids[:1])
    assert {each.name for each in folder.iterdir()} == index.manifest.files() | {"manifest.json", ".lock"}


class Died(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("before", [True, False])
def test_every_step_of_an_update_may_be_the_last(before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The process ends at the n-th time that anything reaches the disk, for every n: before it, or after it."""
    rounds = []
    for last in range(1, 100):
        index = start(tmp_path / f"{last}.index")
        count = 0

        def dying(real, last=last):
            def call(*arguments, **options):
                nonlocal count
                count += 1
                if count == last and before:
                    raise Died
                found = real(*arguments, **options)
                if count == last:
                    raise Died
                return found

            return call

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", dying(os.fsync))
            patch.setattr(Path, "replace", dying(Path.replace))
            patch.setattr(Path, "unlink", dying(Path.unlink))
            try:
                _second_round(index)
            except Died:
                rounds.append(whole(index.folder))
            else:
                break
    assert len(rounds) > 20  # steps, none of which left a mixture
    assert rounds == sorted(rounds)
    assert set(rounds) == {0, 1}


def _second_round(index: Index) -> None:
    index.add(
        np.ones((ROWS, 4)) + np.eye(4)[np.arange(ROWS) % 4],
        [str(row) for row in range(ROWS)],
        metadata={"round": [1] * ROWS},
        thumbnails=[b"1 %d" % row for row in range(ROWS)],
    )
    index.rebuild(storage="int8")


def test_writers_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    index = start(tmp_path / "a.index")
    monkeypatch.setattr(writing, "WAIT", 0.05)
    with (
        writing.alone(index.folder),
        pytest.raises(TimeoutError, match=r"another process is writing .*a\.index"),
    ):
        writing_again(index.folder)
    assert index.remove([0]) == 1


def writing_again(folder: Path) -> None:
    """In another thread's lock: the same process may not write twice at once either."""
    import threading

    failed: list[BaseException] = []

    def work() -> None:
        try:
            Index.open(folder).add(units(1, 4), ["new"])
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def test_two_writers_lose_nothing(tmp_path: Path):
    """Both opened the index before either wrote."""
    start(tmp_path / "a.index")
    one, other = Index.open(tmp_path / "a.index"), Index.open(tmp_path / "a.index")
    one.add(units(1, 4), ["one"])
    other.add(units(1, 4, 1), ["other"])
    assert len(Index.open(tmp_path / "a.index")) == ROWS + 2
    assert len(other) == ROWS + 2
    assert manifest.read_manifest(tmp_path / "a.index").next_id == ROWS + 2
