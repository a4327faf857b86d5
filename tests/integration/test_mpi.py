"""MPI libraries under scrun: how their ranks find each other, and what happens when one goes."""
import shutil
import subprocess
import time

import pytest
from cluster import EXAMPLES, wait_until

OPEN_MPI = EXAMPLES / 'openmpi'
needs_open_mpi = pytest.mark.skipif(not (OPEN_MPI / 'ring').exists(),
                                    reason='examples were not built with Open MPI')


@needs_open_mpi
@pytest.mark.parametrize('program', ['ring', 'allreduce', 'pi'])
def test_open_mpi_program_runs_on_several_nodes(few, program):
    result = few.run('scrun', '-q', '-N', 4, '--ntasks-per-node', 2, OPEN_MPI / program)
    assert '8' in result.stdout


@needs_open_mpi
def test_open_mpi_and_mpich_share_the_nodes(few):
    jobs = [few.start('scrun', '-q', '-N', 8, '-c', 2, folder / 'ring', '--seconds', 2)
            for folder in (OPEN_MPI, EXAMPLES)]
    wait_until(lambda: sum(j['state'] == 'running' for j in few.json('scq', '--active')['jobs']) == 2)
    assert len({job['slot'] for job in few.json('scq', '--active')['jobs']}) == 2
    for job in jobs:
        out, err = job.communicate(timeout=120)
        assert job.returncode == 0, (out, err)


@pytest.fixture(scope='module')
def badly(tmp_path_factory):
    """A program whose rank 1 goes in a way of the caller's choice while the others wait."""
    if not shutil.which('mpicc.openmpi'):
        pytest.skip('needs mpicc.openmpi')
    directory = tmp_path_factory.mktemp('badly')
    directory.chmod(0o755)
    source = directory / 'badly.c'
    source.write_text('''
        #include <mpi.h>
        #include <signal.h>
        #include <string.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
          int rank;
          MPI_Init(&argc, &argv);
          MPI_Comm_rank(MPI_COMM_WORLD, &rank);
          if (rank == 1 && !strcmp(argv[1], "abort")) MPI_Abort(MPI_COMM_WORLD, 5);
          if (rank == 1 && !strcmp(argv[1], "exit")) _exit(0);
          if (rank == 1 && !strcmp(argv[1], "kill")) raise(SIGKILL);
          MPI_Barrier(MPI_COMM_WORLD);
          MPI_Finalize();
          return 0;
        }''')
    subprocess.run(['mpicc.openmpi', source, '-o', directory / 'badly'], check=True)
    return directory / 'badly'


@pytest.mark.parametrize('how', ['abort', 'exit', 'kill'])
def test_one_rank_that_goes_ends_the_job_everywhere(few, badly, how):
    begin = time.monotonic()
    result = few.run('scrun', '-N', 3, badly, how, code=None)
    assert time.monotonic() - begin < 30
    assert result.returncode == {'abort': 5, 'exit': 1, 'kill': 137}[how], result
    if how != 'kill':
        assert 'rank 1' in result.stderr and 'node' in result.stderr, result.stderr


def test_pmix_can_be_forced_for_a_script(few, badly, tmp_path):
    script = badly.parent / 'script.sh'
    script.write_text(f'#!/bin/sh\nexec {badly} well\n')
    script.chmod(0o755)
    few.run('scrun', '-q', '-N', 2, '--mpi=pmix', script)
