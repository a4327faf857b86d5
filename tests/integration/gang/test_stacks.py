"""score stacks: a job at one instant, and the ranks that are elsewhere than the others."""
import json
import re
import subprocess
import time

import mpis
import pytest
from cluster import LIMIT, as_user, wait_until

# Ranks FIRST ... FIRST + COUNT - 1 are elsewhere than the others, which wait for them in MPI_Barrier.
HANG = r'''
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static MPI_Comm other;
static int rank, size, word;

void odd_compute(void) { for (volatile long n = 0;; ++n) continue; }
void odd_sleep(void) { for (;;) sleep(1000); }
void odd_read(void) { int ends[2]; if (pipe(ends) == 0 && read(ends[0], &word, 1) < 0) abort(); }
void odd_lock(void) { pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); pthread_mutex_lock(&m); }
void odd_recv(void) { MPI_Recv(&word, 1, MPI_INT, (rank + 1) % size, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
void odd_ssend(void) { MPI_Ssend(&word, 1, MPI_INT, (rank + 1) % size, 98, MPI_COMM_WORLD); }
void odd_probe(void) { MPI_Probe(MPI_ANY_SOURCE, 97, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
void odd_allreduce(void) { int sum; MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, other); }
void odd_alltoall(void) { int *all = calloc(size, sizeof *all), *got = calloc(size, sizeof *all); MPI_Alltoall(all, 1, MPI_INT, got, 1, MPI_INT, other); }
void odd_wait(void) { MPI_Request r; MPI_Irecv(&word, 1, MPI_INT, (rank + 1) % size, 96, MPI_COMM_WORLD, &r); MPI_Wait(&r, MPI_STATUS_IGNORE); }

int main(int argc, char** argv) {
  void (*const odd[])(void) = {odd_compute, odd_sleep, odd_read, odd_lock, odd_recv,
                               odd_ssend, odd_probe, odd_allreduce, odd_alltoall, odd_wait};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  const int first = atoi(argv[2]), count = atoi(argv[3]);
  if (rank >= first && rank < first + count) odd[atoi(argv[1])]();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
'''
KINDS = ['compute', 'sleep', 'read', 'lock', 'recv', 'ssend', 'probe', 'allreduce', 'alltoall', 'wait']
RANKS = 8  # they poll, so more take long to start on few processors
COUNTER = 'import sys, time\nn = 0\nwhile True:\n    n += 1\n    open(sys.argv[1], "w").write(str(n))\n    time.sleep(0.01)\n'


@pytest.fixture(scope='module')
def hang(tmp_path_factory):
    return mpis.build('mpich4', HANG, tmp_path_factory.mktemp('hang'))


def answered(cluster, job, *words):
    """The output of score stacks with the answers of all nodes. On a loaded machine one may answer too late; then they
    are asked again, after the job has run for as long as it was stopped."""
    found = []

    def is_answered():
        asked = time.monotonic()
        found[:] = [cluster.run('score', 'stacks', *words, job, code=None)]
        if found[0].returncode == 0 and not re.search('in time|too long|was ended', found[0].stdout):
            return True
        time.sleep(time.monotonic() - asked)
        return False
    wait_until(is_answered, what=lambda: found[0])
    return found[0].stdout


def stacks(cluster, job, *words):
    return json.loads(answered(cluster, job, '--json', *words))


def list_of(first, count):
    return str(first) if count == 1 else f'{first}-{first + count - 1}'


def check_hang(cluster, program, seed):
    kind, first, count = seed % len(KINDS), (seed * 37 + 5) % (RANKS - 4), 1 + seed % 3
    job = cluster.submit('-n', RANKS, '-N', 2, program, kind, first, count)
    cluster.wait_job(job, 'running')
    found = {}

    def is_named():
        asked = time.monotonic()
        found.update(stacks(cluster, job))
        groups = found['groups']
        if len(groups) == 2 and groups[0]['ranks'] == list_of(first, count) and groups[1]['count'] == RANKS - count \
                and re.match('P?MPI_Barrier ', groups[1]['place']):
            return True
        time.sleep(time.monotonic() - asked)  # a stopped job does not start
        return False
    wait_until(is_named, what=lambda: json.dumps(found.get('groups')))
    assert f'odd_{KINDS[kind]}' in json.dumps(found['frames'])
    text = answered(cluster, job)
    rare = text.split('rarest place first:\n')[1].splitlines()[0]
    assert f': {list_of(first, count)}  ' in rare, text
    cluster.cancel(job)
    print(f'seed {seed} odd_{KINDS[kind]} stop_s {found["stop_s"]:.3f} total_s {found["total_s"]:.3f}')


def test_the_odd_ranks_of_a_hang_are_named(pair, hang):
    check_hang(pair, hang, 4)


@pytest.mark.long
@pytest.mark.parametrize('seed', range(20))
def test_the_odd_ranks_of_each_of_20_hangs_are_named(pair, hang, seed):
    check_hang(pair, hang, seed)


def number_in(path):
    return int(path.read_text() or 0) if path.exists() else 0


def grows(path):
    before = number_in(path)
    return lambda: number_in(path) > before + 3


def test_the_job_goes_on_and_so_do_others(pair, tmp_path):
    jobs = [pair.submit('-N', 2, 'python3', '-c', COUNTER, tmp_path / f'{name}-%r'.replace('%r', 'x')) for name in 'ab']
    for job in jobs:
        pair.wait_job(job, 'running')
    for _ in range(5):
        answer = stacks(pair, jobs[0])
        assert sum(group['count'] for group in answer['groups']) == 2, answer
        assert answer['problems'] == []
    assert pair.job(jobs[0])['state'] == 'running'
    for name in 'ab':
        wait_until(grows(tmp_path / f'{name}-x'))


def test_a_suspended_job_is_read_and_stays_suspended(pair, tmp_path):
    job = pair.submit('-N', 1, 'python3', '-c', COUNTER, tmp_path / 'count')
    wait_until(lambda: number_in(tmp_path / 'count') > 0)
    result = pair.run('score', 'suspend', job)
    assert 'score stacks' in result.stderr
    assert stacks(pair, job)['groups'][0]['count'] == 1
    assert pair.job(job)['state'] == 'suspended'
    before = number_in(tmp_path / 'count')
    time.sleep(0.5)
    assert number_in(tmp_path / 'count') == before
    pair.run('score', 'resume', job)
    wait_until(grows(tmp_path / 'count'))


def test_a_shell_stands_for_its_program_and_threads_are_shown(pair):
    program = 'import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\ntime.sleep(600)\n'
    job = pair.submit('-n', 2, 'sh', '-c', f"python3 -c '{program}'; true")
    pair.wait_job(job, 'running')

    def threads():
        return sum(frame['threads'] for frame in stacks(pair, job, '--threads')['frames'])
    wait_until(lambda: threads() == 4)
    only = stacks(pair, job, '--ranks', '1')
    assert [frame['ranks'] for frame in only['frames'] if frame['ranks']] == ['1']
    assert sum(frame['threads'] for frame in only['frames']) == 1


def test_a_job_that_starts_is_read_whole(pair, hang):
    for _ in range(4):
        job = pair.submit('-n', RANKS, '-N', 2, hang, 0, 0, 0)
        result = pair.run('score', 'stacks', '--json', job, code=None)
        while result.returncode != 0:
            assert re.search('starting its tasks|not running', result.stderr) and result.stderr.count('\n') == 1, result
            result = pair.run('score', 'stacks', '--json', job, code=None)
        answer = json.loads(result.stdout)
        assert 'does not run here' not in result.stdout, answer
        if not answer['problems']:
            assert sum(group['count'] for group in answer['groups']) == RANKS, answer
        pair.cancel(job)


def test_steps_stand_for_their_allocation(pair):
    batch = int(pair.run('scbatch', '-N', '2', '-o', '/dev/null', input='#!/bin/sh\nscrun -n 2 sleep 600\n').stdout.split()[-1])
    wait_until(lambda: any(step['state'] == 'running' for step in pair.job(batch)['steps']))
    assert sum(group['count'] for group in stacks(pair, batch)['groups']) == 2
    pair.cancel(batch)


def test_bad_requests_are_refused_in_one_line(pair):
    job = pair.submit('-N', 1, 'sleep', '600')
    pair.wait_job(job, 'running')
    for words, text in [([999999], 'no job'), (['--ranks', '0-x', job], '0-x'), (['--ranks', '7', job], 'rank 7')]:
        result = pair.run('score', 'stacks', *words, code=125)
        assert text in result.stderr and result.stderr.count('\n') == 1, result
    pair.cancel(job)
    assert 'has ended' in pair.run('score', 'stacks', job, code=125).stderr


def test_other_users_may_not_look(pair, as_root):
    job = pair.submit('-N', 1, 'sleep', '600')
    pair.wait_job(job, 'running')
    result = subprocess.run([*as_user(65534), 'score', 'stacks', str(job)], env=pair.env, cwd='/', capture_output=True,
                            text=True, timeout=LIMIT)
    assert result.returncode != 0 and result.stdout == ''
    assert pair.job(job)['state'] == 'running'


def test_the_job_goes_on_when_daemons_are_killed_in_the_middle(fresh, tmp_path):
    cluster = fresh(2, '--slice', '50ms', '--cores', '1')
    job = cluster.submit('-N', 1, 'python3', '-c', COUNTER, tmp_path / 'count')
    wait_until(lambda: number_in(tmp_path / 'count') > 0)
    node = cluster.job(job)['nodes'][0]
    for victim in (node, 'head'):
        asking = cluster.start('score', 'stacks', job)
        time.sleep(0.03)
        cluster.kill(victim)
        cluster.restart(victim)
        cluster.wait_up()
        asking.communicate(timeout=LIMIT)
        wait_until(grows(tmp_path / 'count'))
        assert cluster.job(job)['state'] == 'running'
