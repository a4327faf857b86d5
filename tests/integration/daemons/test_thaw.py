"""scored-thaw by itself: this process is the node daemon, beside it the real guard."""
import contextlib
import ctypes
import errno
import fcntl
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

import pytest
from cluster import BIN, wait_until
from figures import figure

LIBC = ctypes.CDLL(None, use_errno=True)
THAW = BIN / 'scored-thaw'
DAEMON_FD, LEASE_FD = 3, 4  # scored/privileged/thaw/guard.hpp


def mounts(kind, option=None):
    for line in pathlib.Path('/proc/self/mounts').read_text().splitlines():
        _, place, found, options, *_ = line.split()
        if found == kind and (option is None or option in options.split(',')):
            yield pathlib.Path(place)


def state(process):
    return pathlib.Path(f'/proc/{process.pid}/stat').read_text().rsplit(')', 1)[1].split()[0]


def is_frozen(cgroup):
    return 'frozen 1' in (cgroup / 'cgroup.events').read_text()


class Guard:
    """The guard of a node daemon whose jobs are in `root`, a cgroup, or in process groups: none."""

    def __init__(self, root='none'):
        self.daemon, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.lease = LIBC.timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC | os.O_NONBLOCK)
        assert self.lease >= 0
        # Above both places, so that neither overwrites the other.
        ends = [os.dup(theirs.fileno()), os.dup(self.lease)]
        ends = [fcntl_dup(fd, 20) for fd in ends]

        def place():
            os.dup2(ends[0], DAEMON_FD)
            os.dup2(ends[1], LEASE_FD)

        self.process = subprocess.Popen([THAW, '--guard', str(root)], preexec_fn=place, pass_fds=(DAEMON_FD, LEASE_FD),
                                        stderr=subprocess.PIPE, text=True)
        theirs.close()
        for fd in ends:
            os.close(fd)

    def renew(self, seconds):
        """0 ends the lease at once."""
        at = struct.pack('=qqqq', 0, 0, int(seconds), 1)
        assert LIBC.timerfd_settime(self.lease, 0, at, None) == 0

    def watch(self, group, is_watched=1):
        self.daemon.send(struct.pack('=iI', group, is_watched))

    def lose_daemon(self):
        self.daemon.close()

    def end(self):
        self.daemon.close()
        os.close(self.lease)
        self.process.wait(60)
        return self.process.stderr.read()


def fcntl_dup(fd, least):
    copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)
    os.close(fd)
    return copy


@pytest.fixture
def group():
    """A process group of one, stopped."""
    process = subprocess.Popen(['sleep', '600'], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def stop(process):
    os.killpg(process.pid, signal.SIGSTOP)
    wait_until(lambda: state(process) == 'T')


@contextlib.contextmanager
def a_cgroup(parent, name):
    place = parent / name
    try:
        place.mkdir()
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            pytest.skip(f'{parent} may not be written')
        raise
    yield place
    for directory in [*sorted(place.glob('**/'), reverse=True)]:
        wait_until(lambda: removed(directory))


def removed(directory):
    with contextlib.suppress(OSError):
        if directory.exists():
            directory.rmdir()
    return not directory.exists()


@pytest.fixture
def frozen_job(as_root):
    """The jobs' cgroup of a node with one frozen job: (root, tasks, a process of it)."""
    place = next(mounts('cgroup2'), None)
    if place is None:
        pytest.skip('needs a cgroup2 mount')
    with a_cgroup(place, f'scored-thaw-{os.getpid()}') as root:
        tasks = root / 'job_1793' / 'tasks'
        tasks.mkdir(parents=True)
        process = subprocess.Popen(['sleep', '600'])
        (tasks / 'cgroup.procs').write_text(str(process.pid))
        freeze(tasks)
        yield root, tasks, process
        (tasks / 'cgroup.freeze').write_text('0')
        process.kill()
        process.wait()


def freeze(tasks):
    (tasks / 'cgroup.freeze').write_text('1')
    wait_until(lambda: is_frozen(tasks))


def measured(act, holds):
    began = time.monotonic()
    act()
    wait_until(holds, 60)
    return time.monotonic() - began


def test_thaws_when_the_daemon_is_gone(frozen_job):
    root, tasks, _ = frozen_job
    guard = Guard(root)
    guard.renew(60)
    took = measured(guard.lose_daemon, lambda: not is_frozen(tasks))
    assert 'the node daemon is gone cgroups=1' in guard.end()
    assert took < 5
    figure('hole-7', f'daemon gone: thawed after {took * 1000:.0f} ms')


def test_thaws_each_time_the_lease_ends(frozen_job):
    root, tasks, _ = frozen_job
    guard = Guard(root)
    for _ in range(2):
        freeze(tasks)
        guard.renew(60)
        took = measured(lambda: guard.renew(0), lambda: not is_frozen(tasks))
        assert took < 5
    assert guard.process.poll() is None, 'it guards on'
    guard.end()
    figure('hole-7', f'lease ended: thawed after {took * 1000:.0f} ms')


def test_thaws_once_by_hand(frozen_job):
    root, tasks, _ = frozen_job
    assert subprocess.run([THAW, '--cgroup-root', root], check=False).returncode == 0
    assert not is_frozen(tasks)


def test_leaves_cgroups_of_others_alone(frozen_job):
    root, tasks, _ = frozen_job
    with a_cgroup(root, 'other') as other:
        freeze(other)
        assert subprocess.run([THAW, '--cgroup-root', root], check=False).returncode == 0
        assert is_frozen(other) and not is_frozen(tasks)
        (other / 'cgroup.freeze').write_text('0')


def test_gives_tasks_of_version_1_their_priority_back(frozen_job):
    root, tasks, process = frozen_job
    cpu = next(mounts('cgroup', 'cpu'), None)
    if cpu is None or not (cpu / 'cgroup.procs').exists():
        pytest.skip('needs the cpu controller of cgroup version 1')
    own = next(line.split(':', 2)[2] for line in pathlib.Path('/proc/self/cgroup').read_text().splitlines()
               if 'cpu' in line.split(':')[1].split(','))
    parent = cpu / own.lstrip('/') / 'scored/jobs'
    parent.mkdir(parents=True, exist_ok=True)
    with a_cgroup(parent, f'scored_{root.stat().st_ino}_job_1793') as job, a_cgroup(parent, f'scored_{root.stat().st_ino + 1}_job_1') as other:
        if not (job / 'cpu.idle').exists():
            pytest.skip('this kernel has no cpu.idle')
        for place in (job, other):
            (place / 'cpu.idle').write_text('1')
        assert subprocess.run([THAW, '--cgroup-root', root], check=False).returncode == 0
        assert (job / 'cpu.idle').read_text() == '0\n'
        assert (other / 'cpu.idle').read_text() == '1\n', 'a job of another node'


def test_groups_continue_when_lease_or_daemon_ends(group):
    guard = Guard()
    guard.watch(group.pid)
    guard.renew(60)
    stop(group)
    assert measured(lambda: guard.renew(0), lambda: state(group) != 'T') < 5
    stop(group)
    guard.renew(60)
    assert measured(guard.lose_daemon, lambda: state(group) != 'T') < 5
    assert 'groups=1' in guard.end()


def test_forgets_groups(group):
    guard = Guard()
    guard.watch(group.pid)
    guard.watch(group.pid, 0)
    stop(group)
    guard.renew(60)
    guard.end()
    assert state(group) == 'T'


def ignored_signals(process):
    status = pathlib.Path(f'/proc/{process.pid}/status').read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith('SigIgn')), 16)


def test_the_guard_survives_signals_and_malformed_packets(group):
    guard = Guard()
    # Its main function has begun.
    wait_until(lambda: ignored_signals(guard.process) & 1 << (signal.SIGTERM - 1))
    guard.watch(group.pid)
    guard.daemon.send(b'abc')
    guard.daemon.send(bytes(200))
    stop(group)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        guard.process.send_signal(number)
    guard.renew(60)
    assert measured(guard.lose_daemon, lambda: state(group) != 'T') < 5
    guard.end()


def test_a_path_that_is_no_cgroup_is_refused(tmp_path):
    for words in (['--cgroup-root', tmp_path], ['--cgroup-root', tmp_path / 'none'], ['--guard'], ['x']):
        result = subprocess.run([THAW, *words], capture_output=True, text=True, check=False)
        assert result.returncode != 0 and len(result.stderr.splitlines()) == 1, result
