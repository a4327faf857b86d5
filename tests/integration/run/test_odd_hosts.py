"""score virtual where little is allowed: user namespaces, containers' file systems, odd users and environments."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from cluster import BIN, EXAMPLES, LIMIT, as_user

SCORE = str(BIN / 'score')
JOB = ['--', 'scrun', '-q', '-N', '3', 'echo', 'ran']
USER = 65534
NO_ENTRY = 2_000_000_123
NAMESPACE = ['unshare', '--user']
AS_ROOT = [*NAMESPACE, '--map-root-user']
PLACES = {  # shell commands, as root in a mount namespace; $1 is a directory
    'read-only root': 'mount -t tmpfs -o mode=1777 none "$1"; mount -o remount,ro,bind /',
    'no cgroups': 'umount -R /sys/fs/cgroup',
    'read-only cgroups': 'findmnt -rRno TARGET /sys/fs/cgroup | while read -r at; do mount -o remount,ro,bind "$at"; done',
    'read-only settings': 'mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys; mount -o remount,ro,bind /sys',
    'small shared memory': 'mount -t tmpfs -o size=64m,mode=1777 none /dev/shm',
    'no shared memory': 'mount -t tmpfs -o ro none /dev/shm',
    'programs not executable': 'mount -t tmpfs -o noexec,mode=1777 none "$1"',
}


@pytest.fixture
def place(as_root):
    """A directory for all users, in which others have taken the usual names."""
    if shutil.which('setpriv') is None or subprocess.run(as_user(USER) + ['test', '-x', SCORE]).returncode != 0:
        pytest.skip('a plain user cannot reach the programs')
    with tempfile.TemporaryDirectory(prefix='s', dir='/tmp') as name:
        path = pathlib.Path(name)
        path.chmod(0o1777)
        for user in (0, USER):
            (path / f'scored-virtual-{user}').mkdir(mode=0o700)
        yield path


def score(before, *words, **variables):
    env = {'PATH': '/usr/bin:/bin:/usr/sbin:/sbin'} | {name: str(value) for name, value in variables.items()}
    return subprocess.run([*before, SCORE, 'virtual', *words], env=env, cwd='/', capture_output=True, text=True, timeout=LIMIT)


def check_ran(result):
    assert (result.returncode, result.stdout) == (0, 'ran\n' * 3), result


def need(words):
    done = subprocess.run([*words, 'true'], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f'{" ".join(words)}: {done.stderr.strip()}')


@pytest.mark.parametrize('namespace', [AS_ROOT, NAMESPACE, [*AS_ROOT, '--mount', '--pid', '--fork', '--mount-proc']])
def test_user_namespace(place, namespace):
    user = as_user(USER)
    need([*user, *namespace])
    check_ran(score([*user, *namespace], '--nodes', '3', *JOB, TMPDIR=place))


def test_kept_cluster_is_found_from_another_user_namespace(place):
    inside = [*as_user(USER), *AS_ROOT]
    need(inside)
    kept = score(inside, '--nodes', '1', '--keep', TMPDIR=place)
    directory = kept.stderr.split()[-1]
    assert kept.returncode == 0 and directory.startswith(f'{place}/scored-virtual-0.'), kept
    assert directory in score(inside, '--list', TMPDIR=place).stdout.split()
    assert score(inside, '--stop', directory, TMPDIR=place).returncode == 0
    assert directory not in score(inside, '--list', TMPDIR=place).stdout.split()


@pytest.mark.parametrize('user', [5, NO_ENTRY])
def test_user_without_entry_or_home(place, user):
    check_ran(score(as_user(user), '--nodes', '3', *JOB, TMPDIR=place))


def test_root_without_capabilities(place):
    check_ran(score(['setpriv', '--bounding-set=-all', '--inh-caps=-all'], '--nodes', '3', *JOB, TMPDIR=place))


@pytest.mark.parametrize('name', PLACES)
def test_file_systems_of_containers(place, name):
    enter = ['unshare', '--mount', '--propagation', 'private', 'sh', '-euc', f'{PLACES[name]}; shift; exec "$@"', 'sh', place]
    need(enter)
    check_ran(score([*enter, *as_user(USER)], '--nodes', '3', *JOB, TMPDIR=place))


def test_batch_script_on_a_read_only_root(place):
    enter = ['unshare', '--mount', '--propagation', 'private', 'sh', '-euc', f'{PLACES["read-only root"]}; shift; exec "$@"', 'sh', place]
    need(enter)
    script = 'echo "#!/bin/sh\necho ran" | scbatch -q -N 1 --wait -o "$TMPDIR/out" && cat "$TMPDIR/out"'
    result = score([*enter, *as_user(USER)], '--nodes', '1', '--', 'sh', '-c', script, TMPDIR=place)
    assert (result.returncode, result.stdout) == (0, '1\nran\n'), result


def test_cluster_is_listed_when_variables_differ(place):
    kept = score(as_user(USER), '--nodes', '1', '--keep')
    directory = kept.stderr.split()[-1]
    assert kept.returncode == 0 and directory.startswith('/tmp/scored-virtual-'), kept
    try:
        assert directory in score(as_user(USER), '--list', TMPDIR=place).stdout.split()
    finally:
        assert score(as_user(USER), '--stop', directory, TMPDIR=place).returncode == 0


@pytest.mark.parametrize('variable', ['TMPDIR', 'XDG_RUNTIME_DIR'])
@pytest.mark.parametrize('name, owner', [('x' * 100, USER), ('missing', None), ('others', 0)])
def test_unusable_directory_is_not_used(place, variable, name, owner):
    directory = place / name
    if owner is not None:
        directory.mkdir(mode=0o700)
        os.chown(directory, owner, owner)
    check_ran(score(as_user(USER), '--nodes', '3', *JOB, **{'TMPDIR': place, variable: directory}))


@pytest.mark.parametrize('length', [20, 24, 30, 40])
def test_names_of_sockets_fit_with_long_user_ids(place, length):
    directory = place / ('x' * (length - len(str(place)) - 1))
    directory.mkdir()
    directory.chmod(0o1777)
    (directory / f'scored-virtual-{NO_ENTRY}').mkdir(mode=0o755)
    check_ran(score(as_user(NO_ENTRY), '--nodes', '3', *JOB, TMPDIR=directory))


def test_no_writable_directory_is_one_clear_line(place):
    enter = ['unshare', '--mount', '--propagation', 'private', 'sh', '-euc', 'mount -t tmpfs -o ro none /tmp; exec "$@"', 'sh']
    if str(BIN).startswith('/tmp/'):
        pytest.skip('the programs are in /tmp')
    result = score([*enter, *as_user(USER)], '--nodes', '3', *JOB)
    assert (result.returncode, result.stderr) == (125, (
        'score virtual: /tmp is not writable: set TMPDIR to a writable directory with a short path\n'))


def test_open_mpi_runs_where_loopback_is_the_only_interface(place):
    if not (EXAMPLES / 'openmpi/pi').exists():
        pytest.skip('built without Open MPI')
    enter = ['unshare', '--net', 'sh', '-euc', 'ip link set lo up; exec "$@"', 'sh', *as_user(USER)]
    need(enter)
    result = score(enter, '--nodes', '2', '--', 'scrun', '-n', '2', EXAMPLES / 'openmpi/pi', '--seconds', '0', TMPDIR=place)
    assert result.returncode == 0 and 'correct' in result.stdout, result


def test_limit_on_processes_is_named(place):
    result = score([*as_user(NO_ENTRY), 'prlimit', '--nproc=3'], '--nodes', '3', *JOB, TMPDIR=place)
    assert result.returncode == 125 and result.stderr.count('\n') == 1, result
    assert 'raise the limit on processes (ulimit -u, --pids-limit of a container)' in result.stderr, result


def test_loopback_interface_that_is_down(place):
    result = score(['unshare', '--net'], '--nodes', '3', *JOB, TMPDIR=place)
    assert (result.returncode, result.stderr) == (
        125, 'score virtual: the loopback interface is down; start it: ip link set lo up\n')
