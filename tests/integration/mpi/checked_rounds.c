/* Rounds of messages around a ring and of sums, whose every word is checked. It prints the same
   result for the same number of rounds and ranks, whatever happens in between. Arguments: rounds,
   and a file to which rank 0 appends its round now and then. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t mixed(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ x >> 33;
}

static uint64_t word(int rank, int round, int i) {
  return mixed((uint64_t)rank << 48 ^ (uint64_t)round << 24 ^ (uint64_t)i);
}

static void note(const char* path, int round) {
  FILE* file = fopen(path, "a");
  if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 4);
  fprintf(file, "%d\n", round);
  fclose(file);
}

int main(int argc, char** argv) {
  static const int kWords[] = {1, 150, 3, 9000, 40, 120000};
  int rank, size, round, i, rounds = argc > 2 ? atoi(argv[1]) : 0;
  uint64_t state = 1, all = 0;
  uint64_t *out = malloc(120000 * sizeof *out), *in = malloc(120000 * sizeof *in);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (round = 0; round < rounds; ++round) {
    const int words = kWords[round % 6], left = (rank + size - 1) % size;
    for (i = 0; i < words; ++i) out[i] = word(rank, round, i);
    MPI_Sendrecv(out, words, MPI_UINT64_T, (rank + 1) % size, round % 100, in, words, MPI_UINT64_T,
                 left, round % 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (i = 0; i < words; ++i) {
      if (in[i] != word(left, round, i)) MPI_Abort(MPI_COMM_WORLD, 3);
      state = mixed(state ^ in[i]);
    }
    if (round % 4 == 0) {
      MPI_Allreduce(&state, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
      state = mixed(state + all);
    }
    if (rank == 0 && round % 20 == 0) note(argv[2], round);
  }
  MPI_Reduce(&state, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d rounds, result %016llx\n", rounds, (unsigned long long)all);
  MPI_Finalize();
  return 0;
}
