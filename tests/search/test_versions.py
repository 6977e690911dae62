"""Killed at any step of an update, an index is the old one or the new one; `benchmarks.kills` kills real writers."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from likewise.search import Index, adopt, check_version, drafts, list_versions
from tests.search.conftest import units

ROWS = 50


def whole(folder: Path) -> int:
    """Which round the index is of; all of its files must be of that one."""
    index = Index.open(folder)
    assert len(index) == ROWS
    assert check_version(list_versions(folder)[-1]) == []
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


class Died(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("before", [True, False])
def test_every_step_of_an_update_may_be_the_last(before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The process ends at the n-th time that anything reaches the disk, for every n: before it, or after it."""
    monkeypatch.setattr(drafts, "VERSIONS_TO_KEEP", 1)
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
            patch.setattr(os, "link", dying(os.link))
            patch.setattr(Path, "rename", dying(Path.rename))
            patch.setattr(shutil, "rmtree", dying(shutil.rmtree))
            try:
                _second_round(index)
            except Died:
                rounds.append(whole(index.folder))
                index.refresh()
                index.set_calibration({})  # the next writer is not in the way of what was left
                assert {each.name for each in index.folder.iterdir()} == {
                    ".lock",
                    list_versions(index.folder)[0].folder.name,
                }
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


def test_files_are_synced_before_the_rename_and_the_folder_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a power failure needs: every byte of a version is on the disk before its name, and its name before the answer."""
    index, steps = start(tmp_path / "a.index"), []
    fsync, rename = os.fsync, Path.rename

    def synced(handle: int) -> None:
        fsync(handle)
        steps.append(os.readlink(f"/proc/self/fd/{handle}"))

    def renamed(path: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    index.add(units(1, 4), ["new"], thumbnails=[b"x"])
    at = steps.index("rename")
    new = {name for name in index.card.files if name != "thumbnails.bin"} | {"card.json"}
    assert {Path(each).name for each in steps[:at]} == new | {".next"}
    assert steps[at - 1].endswith("/.next")
    assert steps[at + 1] == str(index.folder)


def test_a_writer_that_waits_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    index, failed = start(tmp_path / "a.index"), []
    monkeypatch.setattr(drafts, "WAIT", 0.05)

    def write() -> None:
        try:
            Index.open(index.folder).add(units(1, 4), ["new"])
        except TimeoutError as error:
            failed.append(str(error))

    with drafts.lock_index(index.folder):
        thread = threading.Thread(target=write)  # the same process may not write twice at once either
        thread.start()
        thread.join()
    assert failed == [f"another process is writing {index.folder}"]
    assert index.remove([0]) == 1


def test_leftovers_are_removed_by_the_next_writer_and_by_no_reader(tmp_path: Path):
    index = start(tmp_path / "a.index")
    for name in (".next", ".old"):
        (index.folder / name).mkdir()
        (index.folder / name / "vectors.npy").write_bytes(b"half")
    (index.folder / "notes.txt").write_text("a user's own")
    assert len(Index.open(index.folder)) == ROWS
    assert (index.folder / ".next" / "vectors.npy").exists()
    index.add(units(1, 4, 3), ["new"])
    assert {each.name for each in index.folder.iterdir() if not each.name.startswith("version")} == {
        ".lock",
        "notes.txt",
    }


def test_a_handle_does_not_write_into_an_index_that_took_its_place(tmp_path: Path):
    """``likewise index --overwrite`` puts another index in the same folder; a program that has the old one open is told."""
    old = Index.create(tmp_path / "birds.index", dim=4)
    old.add(np.eye(4, dtype=np.float32), ["a", "b", "c", "d"])
    other = Index.create(tmp_path / "other.index", dim=4)
    other.add(np.eye(4, dtype=np.float32)[:2], ["x", "y"])
    adopt(tmp_path / "other.index", tmp_path / "birds.index")
    for change in (lambda: old.remove([0]), lambda: old.add(np.eye(4, dtype=np.float32)[:1], ["e"])):
        with pytest.raises(ValueError, match=r"was replaced by another index after it was opened: open it again"):
            change()
    assert Index.open(tmp_path / "birds.index").column("path") == ["x", "y"]
