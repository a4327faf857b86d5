/* pingpong COUNT SIZE...: two ranks exchange messages. For each size rank 0 prints half the time of
 * a round trip in microseconds, the mean over COUNT exchanges (fewer for sizes above 64 KB). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { large_bytes = 65536, large_share = 20 };

static double exchange(int rank, char* buffer, int size, int count) {
  const int other = 1 - rank;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) {
    if (rank == 0) MPI_Send(buffer, size, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, size, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(buffer, size, MPI_BYTE, other, 1, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) / count / 2 * 1e6;
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int count = argc > 1 ? atoi(argv[1]) : 1;
  for (int i = 2; i < argc; ++i) {
    const int size = atoi(argv[i]);
    char* buffer = calloc(1, (size_t)size + 1);
    const int n = size > large_bytes ? count / large_share + 1 : count;
    exchange(rank, buffer, size, n / 10 + 1);
    const double us = exchange(rank, buffer, size, n);
    if (rank == 0) printf("%d %.3f\n", size, us);
    free(buffer);
  }
  MPI_Finalize();
  return 0;
}
