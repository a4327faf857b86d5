/* random_program SEED WAIT: steps of all kinds, in the same random order at all ranks. With an odd
 * seed it ends in a deadlock, with an even one it prints "done". A rank that sleeps for long sleeps
 * WAIT seconds. */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Open MPI 5 (osc/rdma) asks for a lock again and again, by messages. Nobody can see from outside
 * that the answer will never change. */
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
enum { KINDS_OF_DEADLOCK = 3 };
#else
enum { KINDS_OF_DEADLOCK = 4 };
#endif

enum { STEPS = 8, KINDS = 10, LONGEST = 200000, NEVER = 99 };

static int rank, size, near_rank, near_size;
static uint64_t state;
static double longest;
static char buffer[LONGEST];
static long *memory, *own_memory, *near_memory;
static MPI_Win window, own_window, near_window;
static MPI_Comm near;

/* The same at all ranks, which call it equally often. */
static int draw(int below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (unsigned)below);
}

static void work_for(double seconds) {
  double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) {
  }
}

static void* sleep_in_thread(void* seconds) {
  usleep((useconds_t)(*(double*)seconds * 1e6));
  return NULL;
}

static void count_in(MPI_Win of, int target, int type, int times) {
  long one = 1, before;
  for (int i = 0; i < times; ++i) {
    MPI_Win_lock(type, target, 0, of);
    MPI_Get_accumulate(&one, 1, MPI_LONG, &before, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM,
                       of);
    MPI_Win_unlock(target, of);
  }
}

static void receive(int how, int from, int bytes) {
  MPI_Request request;
  int done = 0;
  if (how == 0) MPI_Recv(buffer, bytes, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (how == 1) MPI_Probe(from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), receive(0, from, bytes);
  if (how < 2) return;
  MPI_Irecv(buffer, bytes, MPI_CHAR, from, 1, MPI_COMM_WORLD, &request);
  if (how == 2) MPI_Wait(&request, MPI_STATUS_IGNORE);
  while (how == 3 && !done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

/* The ranks of a node write to their memory by turns. */
static void take_turns(int turns) {
  volatile long* turn = near_memory;
  int found;
  MPI_Win_lock_all(0, near_window);
  MPI_Barrier(near); /* MPI_Iprobe of MPICH need not grant the locks of others */
  for (int i = 0; i < turns; ++i) {
    while (*turn % near_size != near_rank) {
      MPI_Iprobe(MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
      MPI_Win_sync(near_window);
      sched_yield();
    }
    ++*turn;
    MPI_Win_sync(near_window);
  }
  MPI_Win_unlock_all(near_window);
}

static void step(void) {
  static const int kBytes[] = {8, 4096, LONGEST};
  int kind = draw(KINDS), a = draw(size), b = (a + 1 + draw(size)) % size, how = draw(4),
      bytes = kBytes[draw(3)], times = 1 + draw(200);
  double seconds = how == 3 ? longest : 0.1 * (1 + how);
  int x = rank, sum;
  pthread_t thread;
  MPI_Request request;
  switch (kind) {
    case 0:
      if (a == b) return;
      if (rank == a) MPI_Send(buffer, bytes, MPI_CHAR, b, 1, MPI_COMM_WORLD);
      if (rank == b) receive(how, a, bytes);
      return;
    case 1:
      MPI_Sendrecv_replace(buffer, bytes, MPI_CHAR, (rank + 1) % size, 2, (rank + size - 1) % size,
                           2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      return;
    case 2:
      if (how == 0) MPI_Barrier(MPI_COMM_WORLD);
      if (how == 1) MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      if (how > 1) MPI_Bcast(buffer, bytes, MPI_CHAR, a, MPI_COMM_WORLD);
      return;
    case 3:
      if (rank == a) count_in(own_window, 0, MPI_LOCK_SHARED, 20 * times);
      return;
    case 4:
      if (rank == a) count_in(window, b, MPI_LOCK_EXCLUSIVE, times / 4);
      return;
    case 5:
      take_turns(5);
      return;
    case 6:
      if (rank == a) usleep((useconds_t)(seconds * 1e6));
      return;
    case 7:
      if (rank != a) return;
      pthread_create(&thread, NULL, sleep_in_thread, &seconds);
      pthread_join(thread, NULL);
      return;
    case 8:
      if (rank == a) work_for(seconds / 2);
      return;
    default:
      MPI_Irecv(&sum, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &request);
      MPI_Send(&x, 1, MPI_INT, rank, 3, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

/* Waits for what never comes. */
static void deadlock(void) {
  int kind = draw(size == 1 ? 1 : KINDS_OF_DEADLOCK), x = 0;
  if (kind == 0)
    MPI_Recv(&x, 1, MPI_INT, (rank + 1) % size, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (kind == 1) MPI_Ssend(&x, 1, MPI_INT, (rank + 1) % size, NEVER, MPI_COMM_WORLD);
  if (kind == 2 && rank == 0)
    MPI_Recv(&x, 1, MPI_INT, size - 1, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (kind == 3 && rank == 0) { /* keeps a lock that rank 1 wants */
    count_in(window, size - 1, MPI_LOCK_SHARED, 1);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, window);
    MPI_Put(&x, 1, MPI_INT, size - 1, 0, 1, MPI_INT, window);
    MPI_Win_flush(size - 1, window);
    MPI_Send(&x, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
    MPI_Recv(&x, 1, MPI_INT, 1, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (kind == 3 && rank == 1) {
    MPI_Recv(&x, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    count_in(window, size - 1, MPI_LOCK_EXCLUSIVE, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int seed = atoi(argv[1]), provided, unit;
  MPI_Aint bytes;
  longest = atof(argv[2]);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  MPI_Comm_rank(near, &near_rank);
  MPI_Comm_size(near, &near_size);
  MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_allocate(sizeof *own_memory, 1, MPI_INFO_NULL, MPI_COMM_SELF, &own_memory, &own_window);
  MPI_Win_allocate_shared(near_rank == 0 ? sizeof *near_memory : 0, 1, MPI_INFO_NULL, near,
                          &near_memory, &near_window);
  MPI_Win_shared_query(near_window, 0, &bytes, &unit, &near_memory);
  *memory = *own_memory = 0;
  if (near_rank == 0) *near_memory = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  state = (uint64_t)seed * 0x9E3779B97F4A7C15u + 1;
  for (int i = 0; i < STEPS; ++i) step();
  if (seed % 2 == 1) deadlock();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("done\n");
  MPI_Win_free(&near_window);
  MPI_Win_free(&own_window);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
