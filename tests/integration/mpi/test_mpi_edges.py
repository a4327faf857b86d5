"""Settings of an MPI library's own, on PM."""
import mpis
import pytest
from tiers import others_long

SIZES = r'''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  static char out[1 << 17], in[1 << 17];
  int rank, size, count, i, n, expected;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (n = 0; n <= 1 << 16; n = n < 4 ? n + 1 : n * 3 / 2) {
    for (expected = 0; expected < 2; ++expected) {  /* received later, and awaited */
      MPI_Request request;
      memset(out, n + rank, n);
      memset(in, 0, n);
      if (expected) MPI_Irecv(in, 1 << 17, MPI_CHAR, 1 - rank, n, MPI_COMM_WORLD, &request);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Request sent;
      MPI_Isend(out, n, MPI_CHAR, 1 - rank, n, MPI_COMM_WORLD, &sent);
      if (!expected) MPI_Recv(in, n, MPI_CHAR, 1 - rank, n, MPI_COMM_WORLD, &status);
      if (expected) MPI_Wait(&request, &status);
      MPI_Wait(&sent, MPI_STATUS_IGNORE);
      MPI_Get_count(&status, MPI_CHAR, &count);
      for (i = 0; i < n; ++i) if (in[i] != (char)(n + 1 - rank)) break;
      if (count != n || i != n) printf("%d bytes are wrong\n", n), MPI_Abort(MPI_COMM_WORLD, 9);
    }
  }
  if (rank == 0) printf("all sizes\n");
  MPI_Finalize();
  return 0;
}
'''


@pytest.mark.parametrize('threshold', others_long([1024, 64, 16384]))
def test_mpich_announces_messages_above_its_own_threshold(few, tmp_path, threshold):
    program = mpis.build('mpich5', SIZES, tmp_path)
    env = {'MPIR_CVAR_NOLOCAL': '1', 'MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD': str(threshold)}
    assert few.run('scrun', '-q', '-N', 2, '--net=pm', program, extra_env=env).stdout == 'all sizes\n'
