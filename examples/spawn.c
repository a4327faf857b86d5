/* Starts `--iterations` (default 4) more ranks of this program, for which MPI finds room, and sums
 * the rank numbers over old and new ranks together. `scrun --spawn N` provides the room. */
#include "kind.h"

int main(int argc, char** argv) {
  MPI_Comm parent, other, all;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  const int is_parent = parent == MPI_COMM_NULL;
  if (is_parent) {
    const struct options options =
        read_options(argc, argv, (struct options){.iterations = 4}, NULL);
    if (MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, (int)options.iterations, MPI_INFO_NULL, 0,
                       MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE) != MPI_SUCCESS) {
      return finish(0);
    }
  } else {
    other = parent;
  }
  MPI_Intercomm_merge(other, !is_parent, &all); /* the parents have the lower ranks */

  int rank, size, sum = 0;
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  MPI_Request request;
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all, &request);
  kind_wait(&request);
  const int good = sum == size * (size - 1) / 2;
  if (rank == 0) {
    int parents;
    MPI_Comm_size(MPI_COMM_WORLD, &parents);
    printf("spawn: %d ranks, %d of them spawned: %s\n", size, size - parents,
           good ? "correct" : "WRONG");
    fflush(stdout);
  }
  MPI_Comm_disconnect(&other);
  return finish(good);
}
