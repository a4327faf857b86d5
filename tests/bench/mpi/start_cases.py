"""scbench mpi --start N: MPI_Init to MPI_Finalize of N ranks, each on a virtual node of its own, started by scrun, beside the
MPI's own launcher with N processes on this machine. Debian's MPICH and Open MPI; in turns, the median counts."""
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
MPIS = {'mpich': ('mpicc.mpich', ['mpiexec.hydra']),
        'openmpi': ('mpicc.openmpi', ['mpirun.openmpi', '--oversubscribe', '--bind-to', 'none', '--allow-run-as-root'])}


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


def measure_start(ranks, rounds):
    """Figures: seconds and ratio for each MPI that is there."""
    figures = {}
    with tempfile.TemporaryDirectory(prefix='scbench-start-') as directory, virtual_nodes(ranks) as nodes:
        source = pathlib.Path(directory) / 'start.c'
        source.write_text(PROGRAM)
        for name, (compiler, launcher) in MPIS.items():
            if not shutil.which(compiler) or not shutil.which(launcher[0]):
                continue
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
