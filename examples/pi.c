/* Computes pi by the midpoint rule over 4 / (1 + x^2); the intervals are distributed over the
 * ranks. The program mostly computes, so the work of a rank in a second shows its share of the
 * processor. The result is compared with the constant. */
#include "kind.h"

#include <math.h>

static double sum_of_rank(int rank, int size, long intervals) {
  const double width = 1.0 / (double)intervals;
  double sum = 0;
  for (long i = rank; i < intervals; i += size) {
    const double x = ((double)i + 0.5) * width;
    sum += 4.0 / (1.0 + x * x);
  }
  return sum * width;
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const struct options options =
      read_options(argc, argv, (struct options){.iterations = 5, .size = 2000000}, "intervals");

  long rounds = 0;
  double result[2] = {0, 0}; /* pi; nonzero if rank 0 wants to end */
  double worst = 0;
  const double start = MPI_Wtime();
  while (result[1] == 0) {
    double mine[2] = {sum_of_rank(rank, size, options.size), 0};
    mine[1] = rank == 0 && is_over(&options, start, ++rounds);
    MPI_Request request;
    MPI_Iallreduce(mine, result, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    kind_wait(&request);
    worst = fmax(worst, fabs(result[0] - M_PI));
  }
  const double seconds = MPI_Wtime() - start;
  /* The error of the rule is 1 / (12 n^2) times the second derivative's bound 8, plus rounding. */
  const double allowed = 1.0 / ((double)options.size * (double)options.size) + 1e-9;
  const int good = worst <= allowed;
  if (rank == 0) {
    printf("pi: %d ranks, %ld rounds of %ld intervals in %.3f s, pi = %.12f: %s\n", size, rounds,
           options.size, seconds, result[0], good ? "correct" : "WRONG");
    fflush(stdout);
  }
  return finish(good);
}
