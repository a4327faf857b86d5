"""MPI jobs that were frozen go on, whatever they communicate by.

Short by default; SCORE_FREEZE_SECONDS=30 SCORE_FREEZE_ALL=1 freezes each MPI on each transport for half a minute."""
import os
import signal
import time

import mpis
import pytest
from cluster import LIMIT, wait_until

SECONDS = float(os.environ.get('SCORE_FREEZE_SECONDS', 5))
ALL = [('mpich4', 'native'), ('mpich5', 'native'), ('mpich5', 'pm'), ('openmpi4', 'native'), ('openmpi4', 'pm'),
       ('openmpi5', 'native'), ('openmpi5', 'pm'), *[(mpi, 'ethernet') for mpi in mpis.ON_OFI]]
SHORT = [('mpich4', 'native'), ('openmpi4', 'pm')]  # PM over udp
# Sums and rings, small and large, until there is a file "stop"; rank 0 appends a byte to "rounds" each time.
LOOP = r'''
#include <mpi.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { kLarge = 200000 };
int main(int argc, char** argv) {
  int rank, size, stop = 0, sum, round;
  char *out = malloc(kLarge), *in = malloc(kLarge);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (round = 0; !stop; ++round) {
    const int left = (rank + size - 1) % size;
    memset(out, rank + round, kLarge);
    MPI_Sendrecv(out, kLarge, MPI_CHAR, (rank + 1) % size, 0, in, kLarge, MPI_CHAR, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    memset(out, left + round, kLarge);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size * (size - 1) / 2 || memcmp(in, out, kLarge) != 0) MPI_Abort(MPI_COMM_WORLD, 9);
    if (rank == 0) {
      const int file = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
      if (write(file, ".", 1) != 1) MPI_Abort(MPI_COMM_WORLD, 8);
      close(file);
      stop = access(argv[2], F_OK) == 0;
    }
    MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
'''


# All ranks but 0 wait until there is a file; rank 0 then sends to each.
WAIT = r'''
#include <mpi.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, size, x = 0;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  while (rank == 0 && access(argv[1], F_OK) != 0) usleep(100000);
  if (rank == 0) {
    for (x = 1; x < size; ++x) MPI_Send(&x, 1, MPI_INT, x, 7, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(&x, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (x != rank) MPI_Abort(MPI_COMM_WORLD, 9);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
'''


@pytest.mark.parametrize('mpi', mpis.ON_OFI)
def test_ranks_that_rest_are_frozen_and_get_their_messages_afterwards(few, tmp_path, mpi):
    go = tmp_path / 'go'
    waits = few.start('scrun', '-v', '-N', 2, '--ntasks-per-node', 2, '--net=pm', mpis.build(mpi, WAIT, tmp_path), go,
                      extra_env={'MPIR_CVAR_NOLOCAL': '1'})  # MPICH rests only where PM carries all its messages
    wait_until(lambda: [j['activity'] for j in few.json('scq', '--active')['jobs']] == ['idle'])  # they rest
    [number] = [j['job'] for j in few.json('scq', '--active')['jobs']]
    waits.send_signal(signal.SIGTSTP)
    few.wait_job(number, 'suspended')
    time.sleep(1)  # longer than a rest
    go.touch()
    assert waits.poll() is None
    waits.send_signal(signal.SIGCONT)
    out, err = waits.communicate(timeout=LIMIT)
    assert waits.returncode == 0, (out, err)


@pytest.mark.parametrize('mpi,net', ALL if os.environ.get('SCORE_FREEZE_ALL') else SHORT)
def test_a_frozen_job_goes_on(request, tmp_path, mpi, net):
    if net == 'ethernet':
        request.getfixturevalue('as_root')
        cluster = request.getfixturevalue('fresh')(2, '--netns', '--cores', 2, '--slice', '20ms', '--device', net)
        return freeze(cluster, mpis.build(mpi, LOOP, tmp_path), 'pm', tmp_path)
    freeze(request.getfixturevalue('few'), mpis.build(mpi, LOOP, tmp_path), net, tmp_path)


def freeze(few, program, net, tmp_path):
    """Freezes the running program for SECONDS, then checks that it continues and ends well."""
    rounds, stop = tmp_path / 'rounds', tmp_path / 'stop'

    def done():
        return rounds.stat().st_size if rounds.exists() else 0

    job = few.start('scrun', '-v', '-N', 2, '--ntasks-per-node', 2, f'--net={net}', program, rounds, stop)
    wait_until(lambda: done() > 10, what=lambda: job.poll())
    [number] = [j['job'] for j in few.json('scq', '--active')['jobs']]
    job.send_signal(signal.SIGTSTP)
    few.wait_job(number, 'suspended')
    seen = [done()]

    def stands_still():  # the round that was under way is over
        time.sleep(0.5)
        seen.append(done())
        return seen[-1] == seen[-2]
    wait_until(stands_still)
    before = done()
    time.sleep(SECONDS)
    assert done() == before  # it was frozen indeed
    job.send_signal(signal.SIGCONT)
    wait_until(lambda: done() > before + 10, what=lambda: job.poll())
    stop.touch()
    out, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, (out, err)
