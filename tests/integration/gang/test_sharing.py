"""Jobs of more tasks than cores: accepted, gangs as all others, and right."""
import collections
import json

import mpis
import pytest
from cluster import EXAMPLES, LIMIT, Cluster, wait_until

CHECKS = r'''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, size, near_rank, near_size;
  MPI_Comm near;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  MPI_Comm_rank(near, &near_rank);
  MPI_Comm_size(near, &near_size);
  long mine = 1L + rank, sum = 0, got = -1;
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  long *all = calloc(size, sizeof *all);
  for (int r = 0; r < size; ++r) all[r] = 1000L * rank + r;
  MPI_Alltoall(MPI_IN_PLACE, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD);
  int wrong = sum != (long)size * (size + 1) / 2;
  for (int r = 0; r < size; ++r) wrong += all[r] != 1000L * r + rank;
  MPI_Sendrecv(&mine, 1, MPI_LONG, (rank + 1) % size, 5, &got, 1, MPI_LONG, (rank + size - 1) % size, 5,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  wrong += got != 1L + (rank + size - 1) % size;
  printf("%d of %d, %d of %d on %s as %s: %d wrong\n", rank, size, near_rank, near_size, getenv("SCORE_NODENAME"),
         getenv("SCORE_LOCALID"), wrong);
  MPI_Finalize();
  return wrong != 0;
}
'''


@pytest.fixture(scope='module')
def two():
    cluster = Cluster(2, '--slice', '50ms', '--cores', 2)
    yield cluster
    cluster.stop()


@pytest.mark.parametrize('mpi', ['mpich4', 'openmpi4'])
def test_64_ranks_run_on_two_nodes_of_two_cores_beside_another_job(two, tmp_path, mpi):
    program = mpis.build(mpi, CHECKS, tmp_path)
    beside = two.start('scrun', '-q', '-N', 2, EXAMPLES / 'ring', '--seconds', 3)
    wait_until(lambda: [j['state'] for j in two.json('scq', '--active')['jobs']] == ['running'])
    result = two.run('scrun', '-n', 64, '--json', program)
    lines = [line for line in result.stderr.splitlines() if not line.startswith('{')]
    assert lines == ['scrun: 16 tasks share each core']
    ranks = sorted(result.stdout.splitlines(), key=lambda line: int(line.split()[0]))
    assert ranks == [f'{r} of 64, {r % 32} of 32 on node0{r // 32} as {r % 32}: 0 wrong' for r in range(64)]
    out, err = beside.communicate(timeout=LIMIT)
    assert beside.returncode == 0 and 'correct' in out, (out, err)
    job = two.json('scq')['jobs'][-1]
    assert (job['tasks'], job['tasks_on_node'], job['tasks_per_core']) == (64, [32, 32], 16)


# It has a slot of its own and stops as a whole where the other job runs.
def test_a_job_that_shares_cores_has_its_slices_as_any_other(two):
    jobs = [two.submit('-q', '-n', tasks, '--mpi', 'none', 'sh', '-c', 'while :; do :; done') for tasks in (4, 16)]
    for job in jobs:
        two.wait_job(job, 'running')
    wait_until(lambda: all(two.job(job)['share'] == 0.5 for job in jobs))
    assert len({two.job(job)['slot'] for job in jobs}) == 2
    wait_until(lambda: all(two.job(job)['scheduled_s'] > 1 for job in jobs))
    page = two.run('score', 'job', jobs[1]).stdout
    assert 'tasks  16 on 2 nodes; 4 tasks share each core\n' in page
    assert two.run('scq', '--no-header', '-o', 'job,percore', '--active').stdout.split() == [
        str(jobs[0]), '1', str(jobs[1]), '4']
    two.cancel(*jobs)


def test_binding_splits_the_tasks_evenly(two):
    script = 'echo $SCORE_NODENAME $(grep Cpus_allowed_list /proc/self/status)'
    result = two.run('scrun', '-O', '-n', 12, '--cpu-bind', 'core', '--mpi', 'none', 'sh', '-c', script)
    assert result.stderr == '', '-O knows'
    on_core = collections.Counter(result.stdout.splitlines())
    assert sorted(on_core.values()) in ([3, 3, 3, 3], [6, 6]), on_core  # a machine of one processor has one


def test_impossible_sharing_is_refused_in_one_line(two):
    own = two.run('scrun', '--no-overcommit', '-N', 2, '--ppn', 3, 'true', code=125)
    assert own.stderr == ('scrun: requested 3 cores per node (3 tasks x 1); the largest node has 2 (node00)\n')
    assert 'the largest node holds 256' in two.run('scrun', '-N', 1, '-n', 257, 'true', code=125).stderr
    assert 'at most 128 share a core' in two.run('scrun', '-n', 513, 'true', code=125).stderr
    assert '4 cores per node' in two.run('scrun', '-c', 4, 'true', code=125).stderr
    assert '--overcommit excludes --no-overcommit' in two.run('scrun', '-O', '--no-overcommit', 'true', code=125).stderr
    plan = json.loads(two.run('scrun', '--dry-run', '--json', '-n', 7, 'true').stdout)
    assert (plan['tasks_on_node'], plan['tasks_per_core']) == ([4, 3], 2)
    quiet = two.run('scrun', '-n', 8, '-q', '--mpi', 'none', 'true')
    assert quiet.stderr == ''
