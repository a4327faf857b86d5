"""MPI programs whose ranks communicate past PM: with rests they do as much as with PM_POLL_US=-1, and none is a deadlock."""
import re

import mpis
import pytest

PROGRAM = r'''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int rank, size;
static double end;
/* Rounds of ping-pong between ranks 0 and 1. */
static double ping_pong(void) {
  int go = 1, other = 1 - rank;
  double rounds = 0;
  while (go) {
    if (rank == 0) go = MPI_Wtime() < end;
    if (rank == 0) MPI_Send(&go, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    MPI_Recv(&go, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&go, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    ++rounds;
  }
  return rounds;
}
/* Operations of a rank on its own window. */
static double own_window(void) {
  long *memory, one = 1, before;
  double done = 0;
  MPI_Win window;
  MPI_Win_allocate(sizeof one, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window);
  while (rank == 0 && MPI_Wtime() < end) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get_accumulate(&one, 1, MPI_LONG, &before, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_unlock(0, window);
    ++done;
  }
  MPI_Win_free(&window);
  MPI_Barrier(MPI_COMM_WORLD);
  return done;
}
/* Locks per second of rank 0's window by rank 1, while the others wait in a barrier. */
static double locks(int count) {
  long *memory, one = 1, before;
  double start;
  int i;
  MPI_Win window;
  MPI_Win_allocate(sizeof one, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Barrier(MPI_COMM_WORLD);
  start = MPI_Wtime();
  for (i = 0; rank == 1 && i < count; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Get_accumulate(&one, 1, MPI_LONG, &before, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  start = count / (MPI_Wtime() - start);
  MPI_Win_free(&window);
  return start;
}
static int compare(const void* a, const void* b) {
  double difference = *(const double*)a - *(const double*)b;
  return difference < 0 ? -1 : difference > 0;
}
/* Answers per second of rank 1, which has waited for 50 ms each time: by the lower quartile, and 10 ms for a machine that is busy. */
static double answers(int count) {
  double took[1000] = {0}, start;
  int x = 0, i;
  for (i = 0; i < count && rank == 0; ++i) {
    usleep(50000);
    start = MPI_Wtime();
    MPI_Send(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(&x, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    took[i] = MPI_Wtime() - start;
  }
  for (i = 0; i < count && rank == 1; ++i) {
    MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&x, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
  }
  qsort(took, count, sizeof took[0], compare);
  return 1 / (took[count / 4] + 0.01);
}
/* Rank 0 works on its own window for as long as a deadlock takes; the others wait for it. */
static double others_wait(void) {
  if (rank == 0) return own_window();
  own_window();
  return 0;
}
int main(int argc, char** argv) {
  double figure = 0, start;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  start = MPI_Wtime();
  end = start + atof(argv[2]);
  if (!strcmp(argv[1], "ping-pong")) figure = ping_pong();
  if (!strcmp(argv[1], "own window")) figure = own_window();
  if (!strcmp(argv[1], "locks")) figure = locks(atoi(argv[2]));
  if (!strcmp(argv[1], "answers")) figure = answers(atoi(argv[2]));
  if (!strcmp(argv[1], "others wait")) figure = others_wait();
  if (rank == 0) printf("figure %.6g in %.3f s\n", figure, MPI_Wtime() - start);
  MPI_Finalize();
  return 0;
}
'''
LEAST_SHARE = 0.25  # generous: one run each, on a machine that does other things meanwhile


@pytest.fixture(scope='module')
def program(tmp_path_factory):
    return mpis.build('mpich5', PROGRAM, tmp_path_factory.mktemp('mpich5'))


def figure(cluster, program, how, amount, *options):
    out = cluster.run('scrun', '--net=pm', '--kill-deadlock', *options, program, how, amount).stdout
    print(how, options, out)
    return float(re.search(r'figure (\S+)', out)[1])


@pytest.mark.parametrize('how,amount,ranks', [('ping-pong', 2, 2), ('own window', 3, 1), ('locks', 200, 8), ('answers', 20, 2)])
def test_rests_cost_no_progress(few, program, how, amount, ranks):
    place = ('-N', 1, '-n', ranks, '--overcommit')
    polling = figure(few, program, how, amount, '--export=ALL,PM_POLL_US=-1', *place)
    assert figure(few, program, how, amount, *place) > LEAST_SHARE * polling


@pytest.mark.parametrize('place', [('-N', 1, '-n', 2), ('-N', 2, '-n', 2)])
def test_a_rank_that_works_on_its_own_window_is_no_deadlock(few, program, place):
    assert figure(few, program, 'others wait', 9, *place) > 0
