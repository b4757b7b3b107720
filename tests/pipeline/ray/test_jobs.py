"""Jobs whose workers are lost, busy, wrong or not there."""

from dataclasses import dataclass

import pytest

from pyserini_repbert.errors import BusyError, ClusterError, InputError, MismatchError
from pyserini_repbert.worker_pool import Job

VERSIONS = {'torch': '2'}


@dataclass(frozen=True)
class Double:
    name: str = ''

    def open(self, threads):
        return lambda number: number * 2


@dataclass(frozen=True)
class Failing:
    error: type[Exception]

    def open(self, threads):
        def fail(number):
            raise self.error('the third line')

        return fail


def jobs(count, work=None):
    return [Job(f'job {number}', work or Double(), number) for number in range(count)]


@pytest.mark.parametrize('loses', [(), (0,), (1, 2, 3, 4), (4, 5, 6)])
def test_what_a_lost_worker_had_is_done_again(local_pool, loses):
    workers = local_pool(2, loses, versions=VERSIONS)
    assert workers.run(jobs(6)) == [0, 2, 4, 6, 8, 10]
    assert len(workers.asked) == 6 + len(loses)


def test_a_job_that_loses_every_worker_ends_it(local_pool):
    with pytest.raises(
        ClusterError,
        match='tried 5 times, .*w4 died',
    ):
        local_pool(1, range(9), versions=VERSIONS).run(jobs(1))


def test_what_is_held_by_another_is_tried_again_later(local_pool, monkeypatch):
    held = iter([True, True, False])

    class Held(Double):
        def open(self, threads):
            def answer(number):
                if next(held):
                    raise BusyError('held')
                return number

            return answer

    now = [0.0]
    monkeypatch.setattr('time.monotonic', lambda: now.__setitem__(0, now[0] + 0.5) or now[0])
    workers = local_pool(1, (), versions=VERSIONS)
    assert workers.run([Job('job', Held(), 7)]) == [7]
    assert len(workers.asked) == 3 and now[0] > 1 + 2  # 2 ** 0 and 2 ** 1 seconds


def test_errors_of_a_worker_end_it_with_the_place(local_pool):
    with pytest.raises(InputError, match=r'^the third line \(on machine of w0\)$'):
        local_pool(1, (), versions=VERSIONS).run(jobs(1, Failing(InputError)))
    with pytest.raises(ClusterError, match=r'^RuntimeError: the third line \(on machine of w0\)$'):
        local_pool(1, (), versions=VERSIONS).run(jobs(1, Failing(RuntimeError)))


@pytest.mark.parametrize(('found', 'said'), [({'torch': '1'}, 'torch 1'), ({}, 'torch not at all')])
def test_machines_with_other_versions_are_refused(local_pool, found, said):
    workers = local_pool(1, (), versions=VERSIONS)
    workers.found = found
    with pytest.raises(
        MismatchError, match=f'machine of w0 has {said}, this machine 2: install the same'
    ):
        workers.run(jobs(1))
    assert workers.asked == []


def test_a_cluster_without_room(local_pool):
    with pytest.raises(
        ClusterError, match='no machine of the cluster has had room .* one needs 1 CPU'
    ):
        local_pool(0, (), versions=VERSIONS, patience=0).run(jobs(1))
    assert local_pool(0, (), versions=VERSIONS).run([]) == []


def test_jobs_are_taken_a_few_ahead(local_pool):
    taken = []

    def source():
        for job in jobs(20):
            taken.append(job.argument)
            yield job

    stream = local_pool(2, (), versions=VERSIONS).stream(source())
    assert next(stream) == (0, 0) and len(taken) == 4
    assert sorted(stream) == [(number, number * 2) for number in range(1, 20)]


def test_what_comes_late_from_a_run_that_failed_is_not_taken_for_another(local_pool):
    pool = local_pool(2, (), versions=VERSIONS)
    with pytest.raises(InputError):
        pool.run(
            [Job('bad', Failing(InputError), 1), *jobs(3)]
        )  # job 0 is under way on the other worker
    assert pool.run([Job('new', Double(), number) for number in (50, 60)]) == [100, 120]
    assert sorted(pool.idle) == ['w0', 'w1'] and not pool.busy
