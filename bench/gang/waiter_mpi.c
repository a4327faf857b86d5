/* The MPI version of scbench-waiter. scbench compiles it with the MPI's own compiler. All ranks
 * wait in MPI_Bcast while rank 0 reads a line "AT_NS WORK_NS" and sleeps until that time. */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)
#define THE_END (-1)

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * NS_PER_S + (int64_t)time.tv_nsec;
}

static void tell_time(void) {
  printf("%" PRId64 "\n", now_ns());
  fflush(stdout);
}

/* Returns the time to work; THE_END at the end of the input. */
static int64_t next_order(void) {
  int64_t at, length;
  struct timespec until;
  if (scanf("%" SCNd64 " %" SCNd64, &at, &length) != 2) return THE_END;
  until.tv_sec = at / NS_PER_S;
  until.tv_nsec = at % NS_PER_S;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) continue;
  tell_time();
  return length;
}

int main(int argc, char** argv) {
  int rank;
  int64_t length = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  while (length != THE_END) {
    int64_t end;
    if (rank == 0) length = next_order();
    MPI_Bcast(&length, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    end = now_ns() + length;
    while (now_ns() < end) continue;
    if (length == THE_END) break;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) tell_time();
  }
  MPI_Finalize();
  return 0;
}
