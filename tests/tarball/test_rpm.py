"""packaging/rpm/scored.spec makes packages of the programs of this build, which rpm installs into an empty root."""
import os
import pathlib
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ['SCORE_BIN']).resolve().parent


@pytest.fixture(scope='module')
def packages(tmp_path_factory):
    if not shutil.which('rpmbuild'):
        pytest.skip('rpmbuild is not installed: apt-get install rpm')
    top = tmp_path_factory.mktemp('rpm')
    defines = {'_topdir': top, 'scored_build': BUILD, '_lib': 'lib', '_libdir': '/usr/lib', '_binary_payload': 'w1.gzdio'}
    words = [word for name, value in defines.items() for word in ('--define', f'{name} {value}')]
    built = subprocess.run(['rpmbuild', '-bb', '--nodeps', *words, SOURCE / 'packaging/rpm/scored.spec'],
                           capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return sorted(top.rglob('*.rpm'))


def test_installed_packages_run_a_job(packages, tmp_path):
    if os.geteuid() != 0:
        pytest.skip('needs root')
    subprocess.run(['rpm', '--root', tmp_path, '--nodeps', '--noscripts', '-i', *packages], check=True)
    for path in ('usr/bin/scrun', 'usr/sbin/scored', 'usr/libexec/scored/scored-launcher', 'usr/lib/libpm.so.1',
                 'usr/lib/libfabric/libpm-fi.so', 'usr/lib/systemd/system/scored-node.service', 'etc/scored/scored.toml',
                 'usr/include/pm.h'):
        assert os.path.lexists(tmp_path / path), path
    command = [tmp_path / 'usr/bin/score', 'virtual', '--nodes', '2', '--', 'scrun', '-N', '2', 'echo', 'ran']
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ['ran', 'ran']


def test_package_needs_no_mpi(packages):
    needed = subprocess.run(['rpm', '-qp', '--requires', *packages], capture_output=True, text=True, check=True).stdout
    assert 'libsystemd.so.0' in needed
    assert 'libmpi' not in needed
