"""MPI_Abort of a part of a job that keeps going: the other ranks finish."""
import mpis
import pytest

PROGRAM = r'''
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, size, sum = 0;
  MPI_Comm part;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int aborts = rank >= size / 2;
  MPI_Comm_split(MPI_COMM_WORLD, aborts, rank, &part);
  MPI_Barrier(MPI_COMM_WORLD);
  if (aborts) MPI_Abort(part, 7);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part);
  MPI_Finalize();
  printf("rank %d of %d is done with %d\n", rank, size, sum);
  return 0;
}
'''


def lines(ranks, size):
    return sorted(f'rank {rank} of {size} is done with {sum(ranks)}' for rank in ranks)


@pytest.mark.parametrize('network', ['pm', 'native'])
@pytest.mark.parametrize('places, size', [(['-n', 4], 4), (['-N', 2], 2), (['-N', 4], 4)])
def test_the_other_ranks_finish(few, tmp_path, network, places, size):
    program = mpis.build('mpich5', PROGRAM, tmp_path)
    done = few.run('scrun', '-q', '--keep-going', *places, f'--net={network}', program, code=7)
    assert sorted(line for line in done.stdout.splitlines() if 'done' in line) == lines(range(size // 2), size), done.stderr
