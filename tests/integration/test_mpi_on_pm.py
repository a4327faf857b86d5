"""Programs that speak libfabric run over a job's PM network, by provider pm."""
import os
import shutil

import mpis
import pytest
from cluster import BIN

PROVIDER = BIN.parent / 'lib' / 'libfabric'
HELLO = r'''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  int rank, size, sum, i, large = 1 << 20;
  char *out = malloc(large), *in = malloc(large);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (i = 0; i < 20; ++i) {
    memset(out, rank + i, large);
    MPI_Sendrecv(out, large, MPI_CHAR, (rank + 1) % size, i, in, large, MPI_CHAR, (rank + size - 1) % size, i,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memset(out, (rank + size - 1) % size + i, large);
    if (memcmp(in, out, large) != 0) MPI_Abort(MPI_COMM_WORLD, 9);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks, sum %d\n", size, sum);
  MPI_Finalize();
  return 0;
}
'''
CHOICE = {'mpich5': ['MPIR_CVAR_CH4_NETMOD=ofi', 'MPIR_CVAR_NOLOCAL=1'],
          'openmpi4': ['OMPI_MCA_pml=cm', 'OMPI_MCA_mtl=ofi', 'OMPI_MCA_mtl_ofi_provider_include=pm'],
          'openmpi5': ['OMPI_MCA_pml=cm', 'OMPI_MCA_mtl=ofi', 'OMPI_MCA_mtl_ofi_provider_include=pm']}


def setting(*more):
    return ['env', f'FI_PROVIDER_PATH={PROVIDER}', 'FI_PROVIDER=pm', *more]


@pytest.mark.parametrize('nodes', [1, 2])
def test_fi_pingpong_inside_and_between_nodes(few, nodes):
    if shutil.which('fi_pingpong') is None:
        pytest.skip('needs libfabric-bin')
    port = 21000 + os.getpid() % 8000 + nodes
    # Rank 0 listens; rank 1 tries until it does. They tell each other their names by TCP.
    roles = (f'if [ "$PMI_RANK" = 0 ]; then exec fi_pingpong -p pm -e rdm -I 100 -v -B {port}; fi; '
             f'for i in $(seq 50); do fi_pingpong -p pm -e rdm -I 100 -v -P {port} 127.0.0.1 && exit; sleep 0.2; done; exit 1')
    out = few.run('scrun', '-N', nodes, '-n', 2, '--mpi=pmi1', *setting(), 'sh', '-c', roles).stdout
    assert '1m ' in out, out


@pytest.mark.parametrize('nodes', [1, 4])
@pytest.mark.parametrize('mpi', mpis.ON_OFI)
def test_mpi_runs_inside_and_between_nodes(few, tmp_path, mpi, nodes):
    program = mpis.build(mpi, HELLO, tmp_path)
    kind = '--mpi=pmi1' if mpi == 'mpich5' else '--mpi=pmix'
    out = few.run('scrun', '-N', nodes, '-n', 4 if nodes > 1 else 2, kind, *setting(*CHOICE[mpi]), program).stdout
    assert ('4 ranks, sum 6' if nodes > 1 else '2 ranks, sum 1') in out
