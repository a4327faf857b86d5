"""The images of deploy/Containerfile, built and run by podman: a virtual cluster of an ordinary user."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
from booted_cluster import EXAMPLES, PACKAGES, packages

SOURCE = pathlib.Path(__file__).parents[2]
PAGE = SOURCE / 'docs/guide/container.md'
IMAGE = 'debian:12-slim'  # the name for which the Containerfile asks
# Nothing of the host's podman is used. This process may not raise limits, and the host may have other hierarchies of cgroups.
CONFIGURATION = '''[containers]
cgroups = "disabled"
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
tmp_dir = "{place}/tmp"
volume_path = "{place}/volumes"
'''
ENTER = ['unshare', '--mount', '--propagation', 'private', 'sh', '-euc',
         'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"', 'sh']


class Podman:
    def __init__(self, place):
        configuration = place / 'containers.conf'
        configuration.write_text(CONFIGURATION.format(place=place))
        self.command = [*ENTER, 'podman', '--root', place / 'root', '--runroot', place / 'run']
        self.env = os.environ | {'CONTAINERS_CONF': str(configuration), 'BUILDAH_ISOLATION': 'chroot', 'TMPDIR': str(place)}

    def __call__(self, *words, **options):
        done = self.run(*words, **options)
        assert done.returncode == 0, (words, done.stdout[-4000:], done.stderr[-4000:])
        return done.stdout

    def run(self, *words, **options):
        return subprocess.run([*self.command, *map(str, words)], env=self.env, cwd=SOURCE, text=True, timeout=600,
                              capture_output=True, **options)


@pytest.fixture(scope='module')
def podman(base):
    if shutil.which('podman') is None:
        pytest.skip('podman is not installed: apt-get install podman')
    if not packages():
        pytest.skip('no packages: ./try package builds them')
    place = pathlib.Path(tempfile.mkdtemp(prefix='scored-container-', dir='/var/tmp'))
    made = Podman(place)
    try:
        with subprocess.Popen(['tar', '-C', base, '-c', '.'], stdout=subprocess.PIPE) as tar:
            made('import', '-', IMAGE, stdin=tar.stdout)
        tried = made.run('run', '--rm', '--network=none', IMAGE, 'true')
        if tried.returncode != 0:
            pytest.skip(f'podman runs no container here: {tried.stderr.strip()}')
        yield made
    finally:
        shutil.rmtree(place)


@pytest.fixture(scope='module')
def image(podman):
    """Built by the command that the page shows."""
    shown = re.search(r'^podman (build .*)$', PAGE.read_text(encoding='utf-8'), re.M).group(1)
    podman(*shown.replace('build/packages', str(PACKAGES)).split(), '--pull=never')
    return podman


def run(podman, *options, nodes=8, then='scrun -N 8 sh -c \'echo "$(id -u) ran"\''):
    return podman('run', '--rm', '--network=none', *options, 'scored', 'score', 'virtual', '--nodes', nodes, '--', 'sh', '-c', then)


@pytest.mark.parametrize('options, user', [
    ([], 1000),
    (['--user=0'], 0),
    (['--user=0', '--cap-drop=all'], 0),
    (['--user=2000000123:0', '--passwd=false', '--cap-drop=all', '--security-opt=no-new-privileges', '--read-only'], 2000000123),
    (['--read-only', '--read-only-tmpfs=false', '--env=TMPDIR=/dev/shm'], 1000),
])
def test_job_runs_with_the_default_filter_of_system_calls(image, options, user):
    assert 'Seccomp:\t2' in image('run', '--rm', '--network=none', *options, 'scored', 'cat', '/proc/self/status')
    assert run(image, *options) == f'{user} ran\n' * 8


def test_image_starts_a_shell_of_a_cluster(image):
    printed = image('run', '--rm', '-i', '--network=none', 'scored', input='scrun -q -N 8 echo ran\n')
    assert 'ran\n' * 8 in printed, printed


@pytest.mark.parametrize('program', ['pi', 'openmpi/pi'])
def test_mpi_programs_run(image, program):
    if not (EXAMPLES / program).exists():
        pytest.skip(f'built without the MPI of {program}')
    assert 'correct' in run(image, f'--volume={EXAMPLES}:/examples:ro', then=f'scrun -q -n 8 /examples/{program} --seconds 0')


def test_doctor_finds_no_fault(image):
    lines = run(image, then='score doctor').splitlines()
    assert not [line for line in lines if line.startswith('fault')], lines
    assert not [line for line in lines if 'systemctl' in line or '.service' in line], lines
    assert [line for line in lines if '/dev/shm has' in line and '--shm-size' in line], lines


@pytest.mark.parametrize('target, program', [('head', '/usr/sbin/scored'), ('node', '/usr/libexec/scored/scored-launcher')])
def test_daemons_of_other_images_start(image, target, program):
    image('build', '--pull=never', '--target', target, '-t', target, '-f', 'deploy/Containerfile', PACKAGES)
    assert image('run', '--rm', '--network=none', target, program, '--version').startswith('scored ')
