"""The cluster that the tests of this folder share. Without it they skip and say why."""
import pathlib
import shutil
import tempfile

import base_system
import bed
import pytest
from booted_cluster import BootedCluster, installed_files, way


def pytest_report_header():
    return f'boot: systemd-nspawn with a cgroup2 mount of its own; programs from {way()}'


@pytest.fixture(scope='session')
def base():
    if problem := bed.why_impossible():
        pytest.skip(problem)
    try:
        return base_system.base_system()
    except base_system.CannotMake as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope='session')
def empty_bed(base):
    """A bed of machines without our programs; skips where none can be made or boots."""
    try:
        made = bed.Bed([base])
    except OSError as problem:
        pytest.skip(f'this host gives no namespaces with a cgroup2 mount: {problem}')
    yield made
    made.close()


@pytest.fixture(scope='session')
def installed():
    """The layer with what machines get the programs from."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix='scored-boot-'))
    try:
        installed_files(directory)
        yield directory
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope='session')
def cluster(empty_bed, base, installed):
    made = BootedCluster(base, installed)
    try:
        made.boot()
        made.set_up()
        yield made
    finally:
        made.close()
