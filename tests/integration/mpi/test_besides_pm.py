"""MPI programs that communicate by other means than PM, or work between their tests: PM never lets them sleep, and none is a deadlock."""
import re

import mpis
import pytest
from tiers import others_long

PROGRAM = r'''
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
static int rank, size;
static double end;
static int goes_on(void) { return MPI_Wtime() < end; }
/* Ranks 0 and 1 by turns: over MPICH's shared memory if they share a node. */
static void ping_pong(void) {
  int go = 1, other = 1 - rank;
  while (go) {
    if (rank == 0) go = goes_on();
    if (rank == 0) MPI_Send(&go, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    MPI_Recv(&go, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&go, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
  }
}
/* Each with itself, by a window of its own. */
static void own_window(void) {
  long* memory, one = 1;
  MPI_Win window;
  MPI_Win_allocate(sizeof one, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window);
  while (goes_on()) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_flush(0, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Win_free(&window);
}
/* Ranks 0 and 1 by turns, by memory that they share; they also look for messages. */
static void shared_window(void) {
  volatile long* turn;
  long* memory;
  MPI_Aint bytes;
  int unit, found;
  MPI_Win window;
  MPI_Win_allocate_shared(rank == 0 ? sizeof(long) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_shared_query(window, 0, &bytes, &unit, &memory);
  turn = memory;
  MPI_Win_lock_all(0, window);
  while (*turn >= 0) {
    MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    MPI_Win_sync(window);
    if (*turn % 2 == rank) *turn = rank == 0 && !goes_on() ? -1 : *turn + 1;
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}
/* Tests for a message that comes at the end, and computes for a microsecond between two tests. */
static void work_between_tests(void) {
  int x = 0, done = 0, other = 1 - rank;
  double next;
  MPI_Request request;
  MPI_Irecv(&x, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &request);
  while (goes_on()) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    for (next = MPI_Wtime() + 1.2e-6; MPI_Wtime() < next;);
    if (done) break;
  }
  MPI_Send(&x, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
  if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
}
int main(int argc, char** argv) {
  struct rusage before, after;
  long sleeps, most;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  end = MPI_Wtime() + atof(argv[2]);
  getrusage(RUSAGE_THREAD, &before);
  if (!strcmp(argv[1], "ping-pong")) ping_pong();
  if (!strcmp(argv[1], "own window")) own_window();
  if (!strcmp(argv[1], "shared window")) shared_window();
  if (!strcmp(argv[1], "tests")) work_between_tests();
  getrusage(RUSAGE_THREAD, &after);
  sleeps = after.ru_nvcsw - before.ru_nvcsw;
  MPI_Reduce(&sleeps, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%ld sleeps\n", most);
  MPI_Finalize();
  return 0;
}
'''
MOST_SLEEPS = 25  # of a rank in 2 s: PM let it sleep for 20 ms at a time, again and again


@pytest.fixture(scope='module', params=others_long(mpis.ON_OFI))
def program(request, tmp_path_factory):
    return mpis.build(request.param, PROGRAM, tmp_path_factory.mktemp(request.param))


def sleeps(cluster, program, how, *options, seconds=2):
    out = cluster.run('scrun', *options, '--net=pm', '--kill-deadlock', program, how, seconds).stdout
    return int(re.search(r'(\d+) sleeps', out)[1])


def test_ranks_that_talk_over_shared_memory_of_mpich_never_sleep(few, tmp_path):
    program = mpis.build('mpich5', PROGRAM, tmp_path)
    assert sleeps(few, program, 'ping-pong', '-N', 1, '-n', 2) < MOST_SLEEPS


def test_ranks_that_share_a_window_never_sleep(few, program):
    assert sleeps(few, program, 'shared window', '-N', 1, '-n', 2) < MOST_SLEEPS


def test_a_rank_that_works_between_its_tests_never_sleeps(pair, program):
    assert sleeps(pair, program, 'tests', '-N', 2) < MOST_SLEEPS


def test_ranks_that_work_on_windows_of_their_own_are_no_deadlock(pair, program):
    assert sleeps(pair, program, 'own window', '-N', 2, seconds=8) < 4 * MOST_SLEEPS


def test_ranks_that_talk_over_shared_memory_are_no_deadlock(few, program):
    sleeps(few, program, 'ping-pong', '-N', 1, '-n', 2, seconds=8)
