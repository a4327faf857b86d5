/* All ranks sum a vector repeatedly. The program prints the time per sum and verifies every element
 * of every sum. */
#include "kind.h"

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const struct options options =
      read_options(argc, argv, (struct options){.iterations = 20, .size = 1024}, "elements");
  const long count = options.size;
  double* mine = malloc((size_t)(count + 1) * sizeof *mine);
  double* sum = malloc((size_t)(count + 1) * sizeof *sum);
  if (count > 100000000 || mine == NULL || sum == NULL) {
    fprintf(stderr, "allreduce: cannot allocate %ld elements\n", count);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  const double ranks = size;
  long rounds = 0, wrong = 0;
  const double start = MPI_Wtime();
  for (sum[count] = 0; sum[count] == 0;) {
    /* Element i is rank + i + round; the last element is set if rank 0 wants to end. */
    for (long i = 0; i < count; ++i) mine[i] = (double)(rank + i + rounds);
    mine[count] = rank == 0 && is_over(&options, start, rounds + 1);
    MPI_Request request;
    MPI_Iallreduce(mine, sum, (int)count + 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    kind_wait(&request);
    for (long i = 0; i < count; ++i) {
      wrong += sum[i] != ranks * (ranks - 1) / 2 + ranks * (double)(i + rounds);
    }
    ++rounds;
  }
  const double seconds = MPI_Wtime() - start;
  if (rank == 0) {
    printf("allreduce: %d ranks, %ld sums of %ld doubles in %.3f s, %.1f us each: %s\n", size,
           rounds, count, seconds, seconds * 1e6 / (double)rounds,
           wrong == 0 ? "correct" : "WRONG");
    fflush(stdout);
  }
  free(mine);
  free(sum);
  return finish(wrong == 0);
}
