/* The MPI version of scbench-phases. scbench compiles it with the MPI's own compiler; see phases.h.
 */
#include "phases.h"

#include <mpi.h>

static void piece(struct phases* phases, int rank) {
  if (phases->kind == PHASES_SERIAL && rank == 0) {
    phases_block(phases);
    phases_work(phases);
  }
  if (phases->kind == PHASES_SERIAL) {
    int number = rank;
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  phases_work(phases);
  if (phases->kind != PHASES_SERIAL) phases_block(phases);
  if (phases->kind != PHASES_ALONE) MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  struct phases phases = phases_options(argc, argv);
  int64_t i;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  phases_await_start(&phases, rank);
  for (i = 0; i < phases.pieces; ++i) piece(&phases, rank);
  phases_tell_end();
  MPI_Finalize();
  return 0;
}
