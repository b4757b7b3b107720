"""Lanes: together what waits together, refusals beyond the queue, errors of one job alone, nothing lost at the end."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from pyserini_repbert.serve.lanes import Lane
from pyserini_repbert.serve.refusals import OverloadedError


def _within(lane: Lane, work):
    async def run():
        lane.start()
        try:
            return await work()
        finally:
            async with asyncio.timeout(30):  # a lane that waits for ever is a failure, not a test that never ends
                await lane.stop()

    return asyncio.run(run())


def test_what_waits_is_done_together_and_answers_are_ones_own():
    sizes: list[int] = []
    lane = Lane('test', 100, window=0.5, together=8, on_batch=sizes.append)

    def squares(given: list[int]) -> list[int]:
        time.sleep(0.02)
        return [number**2 for number in given]

    async def work():
        return await asyncio.gather(*(lane.together_with_others('squares', squares, n) for n in range(20)))

    assert _within(lane, work) == [n**2 for n in range(20)]
    assert max(sizes) == 8 and sum(sizes) == 20


def test_other_kinds_are_not_mixed():
    lane = Lane('test', 100, together=8)

    async def work():
        jobs = [lane.together_with_others(kind, lambda given, kind=kind: [kind] * len(given), 0) for kind in 'abab']
        return await asyncio.gather(*jobs, lane.call(lambda: 'alone'))

    assert _within(lane, work) == ['a', 'b', 'a', 'b', 'alone']


def test_a_job_that_comes_alone_does_not_wait():
    lane = Lane('test', 100, window=5.0, together=8)

    async def work():
        start = time.monotonic()
        for number in range(3):
            assert await lane.together_with_others('k', lambda given: given, number) == number
        return time.monotonic() - start

    assert _within(lane, work) < 2


def test_beyond_the_queue_jobs_are_refused_and_the_others_answered():
    lane, free = Lane('test', 2), threading.Event()

    async def work():
        first = asyncio.create_task(lane.call(free.wait))
        await asyncio.sleep(0.05)  # it is being done, and no longer waits
        others = [asyncio.create_task(lane.call(lambda: 'done')) for _ in range(4)]
        await asyncio.sleep(0.05)
        free.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    first, *others = _within(lane, work)
    assert first is True and others[:2] == ['done', 'done']
    assert all(isinstance(own, OverloadedError) for own in others[2:])


def test_an_error_is_its_own_jobs():
    lane = Lane('test', 100, window=0.5, together=8)

    def reciprocals(given: list[float]) -> list[float]:
        return [1 / number for number in given]

    async def work():
        jobs = [lane.together_with_others('r', reciprocals, number) for number in (1.0, 0.0, 4.0)]
        return await asyncio.gather(*jobs, return_exceptions=True)

    first, second, third = _within(lane, work)
    assert (first, third) == (1.0, 0.25) and isinstance(second, ZeroDivisionError)


def test_a_job_nobody_waits_for_is_passed_over():
    lane, free, done = Lane('test', 10), threading.Event(), []

    async def work():
        first = asyncio.create_task(lane.call(free.wait))
        await asyncio.sleep(0.05)
        gone = asyncio.create_task(lane.call(done.append, 'gone'))
        stays = asyncio.create_task(lane.call(done.append, 'stays'))
        await asyncio.sleep(0.05)
        gone.cancel()
        free.set()
        await asyncio.gather(first, stays)
        with pytest.raises(asyncio.CancelledError):
            await gone

    _within(lane, work)
    assert done == ['stays']


def test_a_lane_that_stops_finishes_what_it_took():
    lane, done = Lane('test', 10), []

    async def run():
        lane.start()
        jobs = [asyncio.create_task(lane.call(lambda n=n: (time.sleep(0.02), done.append(n)))) for n in range(5)]
        await asyncio.sleep(0)
        await lane.stop()
        await asyncio.gather(*jobs)

    asyncio.run(run())
    assert done == [0, 1, 2, 3, 4]


def test_a_job_nobody_waits_for_leaves_its_place_to_another():
    lane, free = Lane('test', 2), threading.Event()

    async def work():
        first = asyncio.create_task(lane.call(free.wait))
        await asyncio.sleep(0.05)
        gone = [asyncio.create_task(lane.call(lambda: 'gone')) for _ in range(2)]
        await asyncio.sleep(0.05)
        for task in gone:
            task.cancel()
        await asyncio.wait(gone)
        assert lane.length == 0
        other = asyncio.create_task(lane.call(lambda: 'other'))
        await asyncio.sleep(0.05)
        free.set()
        return await asyncio.gather(first, other)

    assert _within(lane, work) == [True, 'other']


def test_no_fault_of_a_job_ends_the_lane():
    """Futures refuse StopIteration, and a result too few leaves a caller without one: neither may be waited for."""
    lane = Lane('test', 100, window=0.5, together=8)

    async def work():
        stopped = lane.call(lambda: next(iter(())))
        jobs = [lane.together_with_others('few', lambda given: given[1:], number) for number in range(3)]
        failed = await asyncio.wait_for(asyncio.gather(stopped, *jobs, return_exceptions=True), 5)
        assert [type(error) for error in failed] == [RuntimeError] * 4
        return await lane.call(lambda: 'still there')

    assert _within(lane, work) == 'still there'
