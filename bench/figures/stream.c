/* stream HITS BYTES SIZE...: rank 0 sends about BYTES of each size to rank 1 and prints "SIZE
 * MB/s". With HITS 100 all messages use the same memory. With 0 each message uses memory that the
 * last 64 MB did not use, so that no cache of registrations contains it. If there is a single rank,
 * a second thread copies its bytes, from memory that the first thread passes on. */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  window = 16,
  pool_bytes = 64 << 20,
  most_messages = 20000,
  least_messages = 64,
  warm_up = 4
};

static char* pool;
static char target[4 << 20];
static atomic_int handed, copied; /* messages */
static int thread_size, thread_count, thread_step;

/* Returns the memory of a message: always the first, or the next in the pool. */
static char* place(int i, int size, int step) {
  if (step == 0) return pool;
  return pool + (size_t)(i % ((pool_bytes - size) / step)) * (size_t)step;
}

static void* copier(void* unused) {
  for (int i = 0; i < thread_count; ++i) {
    while (atomic_load_explicit(&handed, memory_order_acquire) <= i) sched_yield();
    memcpy(target, place(i, thread_size, thread_step), (size_t)thread_size);
    atomic_store_explicit(&copied, i + 1, memory_order_release);
  }
  return unused;
}

static double by_threads(int size, int count, int step) {
  pthread_t thread;
  thread_size = size, thread_count = count, thread_step = step;
  atomic_store(&handed, 0), atomic_store(&copied, 0);
  const double start = MPI_Wtime();
  if (pthread_create(&thread, NULL, copier, NULL) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < count; ++i) {
    while (i - atomic_load_explicit(&copied, memory_order_acquire) >= window) sched_yield();
    atomic_store_explicit(&handed, i + 1, memory_order_release);
  }
  pthread_join(thread, NULL);
  return MPI_Wtime() - start;
}

static double by_messages(int rank, int size, int count, int step) {
  MPI_Request running[window];
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < count; i += window) {
    const int n = count - i < window ? count - i : window;
    for (int k = 0; k < n; ++k) {
      char* const bytes = place(i + k, size, step);
      if (rank == 0) MPI_Isend(bytes, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &running[k]);
      if (rank == 1) MPI_Irecv(bytes, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &running[k]);
    }
    MPI_Waitall(n, running, MPI_STATUSES_IGNORE);
  }
  char answer = 0;
  if (rank == 0) MPI_Recv(&answer, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(&answer, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  pool = malloc(pool_bytes);
  if (argc < 4 || pool == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  memset(pool, 1, pool_bytes);
  const int is_hit = atoi(argv[1]) != 0;
  for (int i = 3; i < argc; ++i) {
    const int size = atoi(argv[i]);
    if (size < 1 || size > (int)sizeof target) MPI_Abort(MPI_COMM_WORLD, 2);
    int count = atoi(argv[2]) / size;
    count = count < least_messages ? least_messages : count > most_messages ? most_messages : count;
    const int step = is_hit ? 0 : (size + 4095) / 4096 * 4096; /* a message has its own pages */
    double seconds = 0;
    for (int turn = 0; turn < 2; ++turn) { /* the first is not timed, and shorter */
      const int n = turn == 0 ? count / warm_up + 1 : count;
      seconds = ranks == 1 ? by_threads(size, n, step) : by_messages(rank, size, n, step);
    }
    if (rank == 0) printf("%d %.4f\n", size, (double)size * count / seconds / 1e6);
  }
  free(pool);
  MPI_Finalize();
  return 0;
}
