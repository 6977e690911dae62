"""Work of many together: nobody waits for company, nobody is lost, and there is an end to waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from likewise.search.serve.limits import RequestError
from likewise.search.serve.queue import Batches


class Slow:
    """Does nothing until it is told to, and remembers what it was given."""

    def __init__(self) -> None:
        self.go, self.batches = threading.Semaphore(0), list[list[int]]()

    def __call__(self, jobs: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(jobs))
        assert self.go.acquire(timeout=10)
        return [ValueError(f"not {job}") if job < 0 else 10 * job for job in jobs]


async def until(slow: Slow, count: int) -> None:
    while len(slow.batches) < count:
        await asyncio.sleep(0.001)


def test_what_arrives_while_a_batch_runs_is_the_next_batch():
    async def main() -> tuple[list[list[int]], list[int]]:
        slow = Slow()
        batches = Batches(slow, "test", most=3)
        first = asyncio.create_task(batches.do(1))
        await until(slow, 1)  # alone, at once
        others = [asyncio.create_task(batches.do(job)) for job in (2, 3, 4, 5)]
        await asyncio.sleep(0.01)
        slow.go.release(3)
        results = await asyncio.gather(first, *others)
        batches.close()
        return slow.batches, results

    assert asyncio.run(main()) == ([[1], [2, 3, 4], [5]], [10, 20, 30, 40, 50])


def test_one_too_many_is_told_to_come_back_and_the_others_are_answered():
    async def main() -> list[int | BaseException]:
        slow = Slow()
        batches = Batches(slow, "test", waiting=2)
        tasks = [asyncio.create_task(batches.do(1))]
        await until(slow, 1)
        tasks += [asyncio.create_task(batches.do(job)) for job in (2, 3, 4)]
        await asyncio.sleep(0.01)
        slow.go.release(2)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert await _again(batches, slow) == 50  # there is room again
        batches.close()
        return results

    *answered, refused = asyncio.run(main())
    assert answered == [10, 20, 30]
    assert isinstance(refused, RequestError)
    assert (refused.status, refused.retry) == (429, 1)


async def _again(batches: Batches[int, int], slow: Slow) -> int:
    slow.go.release()
    return await batches.do(5)


def test_whoever_gave_up_makes_room_and_is_not_worked_for():
    async def main() -> list[list[int]]:
        slow = Slow()
        batches = Batches(slow, "test", waiting=1)
        first = asyncio.create_task(batches.do(1))
        await until(slow, 1)
        second = asyncio.create_task(batches.do(2))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        third = asyncio.create_task(batches.do(3))
        await asyncio.sleep(0.01)
        slow.go.release(2)
        assert await asyncio.gather(first, third) == [10, 30]
        batches.close()
        return slow.batches

    assert asyncio.run(main()) == [[1], [3]]


def test_a_fault_is_its_owners():
    async def main() -> list[int | BaseException]:
        slow = Slow()
        slow.go.release(9)
        batches = Batches(slow, "test")
        results = await asyncio.gather(*(batches.do(job) for job in (1, -2, 3)), return_exceptions=True)
        batches.close()
        return results

    one, fault, three = asyncio.run(main())
    assert (one, three) == (10, 30)
    assert isinstance(fault, ValueError)
    assert str(fault) == "not -2"


def test_work_that_fails_whole_or_forgets_somebody_fails_for_all_and_goes_on():
    async def main() -> list[int | BaseException]:
        calls: list[int] = []

        def work(jobs: Sequence[int]) -> list[int]:
            calls.append(len(jobs))
            if len(calls) == 1:
                raise OSError("the disk is gone")
            return [] if len(calls) == 2 else [7]

        batches = Batches(work, "test")
        results = [*await asyncio.gather(batches.do(1), return_exceptions=True)]
        results += await asyncio.gather(batches.do(2), return_exceptions=True)
        results += [await batches.do(3)]
        batches.close()
        return results

    first, second, third = asyncio.run(main())
    assert isinstance(first, OSError)
    assert isinstance(second, RuntimeError)
    assert third == 7


def test_an_end_is_told_to_those_who_wait():
    async def main() -> int:
        slow = Slow()
        batches = Batches(slow, "test")
        first = asyncio.create_task(batches.do(1))
        await until(slow, 1)
        second = asyncio.create_task(batches.do(2))
        await asyncio.sleep(0)
        batches.close()
        slow.go.release(2)
        await asyncio.gather(first, return_exceptions=True)
        with pytest.raises(RequestError) as refused:
            await second
        return refused.value.status

    assert asyncio.run(main()) == 503
