/* A token goes round all ranks, and each rank adds one. The program prints the latency per hop and
 * verifies the token's value. */
#include "kind.h"

enum { kTag = 1 };

struct token {
  long value;
  long stop;
};

static void receive(struct token* token, int from) {
  MPI_Request request;
  MPI_Irecv(token, 2, MPI_LONG, from, kTag, MPI_COMM_WORLD, &request);
  kind_wait(&request);
}

static void send(struct token* token, int to) {
  MPI_Request request;
  MPI_Isend(token, 2, MPI_LONG, to, kTag, MPI_COMM_WORLD, &request);
  kind_wait(&request);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const struct options options = read_options(argc, argv, (struct options){.iterations = 10}, NULL);
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;

  struct token token = {0, 0};
  long laps = 0;
  const double start = MPI_Wtime();
  while (!token.stop) {
    if (rank != 0) {
      receive(&token, previous);
      if (!token.stop) ++token.value;
      send(&token, next);
    } else {
      token.stop = is_over(&options, start, laps);
      if (!token.stop) ++laps, ++token.value;
      if (size == 1) continue;
      send(&token, next);
      receive(&token, previous);
    }
  }
  const double seconds = MPI_Wtime() - start;
  const int good = rank != 0 || token.value == laps * size;
  if (rank == 0) {
    printf("ring: %d ranks, %ld laps in %.3f s, %.1f us per hop: %s\n", size, laps, seconds,
           laps > 0 ? seconds * 1e6 / ((double)laps * size) : 0.0, good ? "correct" : "WRONG");
    fflush(stdout);
  }
  return finish(good);
}
