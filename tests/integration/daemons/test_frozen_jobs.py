"""Whatever fails between the freezing of a job and its thaw: it goes on within 5 s."""
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import time

import pytest

from cluster import BIN, wait_until
from figures import figure
from progress import start_progress

LIMIT = 5.0  # seconds; the promise
LOOK = 8.0   # how long is looked after the fault

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


def longest_pause(counters, seconds):
    """Of any job: the longest time in which its counter has not changed."""
    longest, now = 0.0, time.monotonic()
    end = now + seconds
    seen = [(c.counter(0), now) for c in counters]
    while now < end:
        time.sleep(0.02)
        now = time.monotonic()
        for index, one in enumerate(counters):
            count = one.counter(0)
            longest = max(longest, now - seen[index][1])
            if count != seen[index][0]:
                seen[index] = (count, now)
    return longest


@pytest.fixture(params=[(), pytest.param(('--no-cgroup',), marks=pytest.mark.long)], ids=['freezer', 'signals'])
def switched(request, fresh, tmp_path):
    """A node with two jobs, of which one is stopped at any time."""
    cluster = fresh(1, '--slice', '100ms', '--cores', 1, *request.param)
    counters = [start_progress(cluster, tmp_path, name, 1)[1] for name in ('a', 'b')]
    trace = lambda: cluster.json('scadm', 'trace', '--seconds', 1)['nodes'][0]['switches']
    wait_until(lambda: len(trace()) > 3)
    cluster.counters = counters
    return cluster


def check(cluster, promise, what):
    pause = longest_pause(cluster.counters, LOOK)
    figure(promise, f'{what}: {pause:.1f} s')
    assert pause <= LIMIT, (what, pause, cluster.logs())


def guards(cluster):
    """Of the node's daemon: its child scored-thaw."""
    daemon = cluster.daemon('node00')['pid']
    children = pathlib.Path(f'/proc/{daemon}/task/{daemon}/children').read_text().split()
    return [int(pid) for pid in children if pathlib.Path(f'/proc/{pid}/comm').read_text() == 'scored-thaw\n']


def switcher_of(pid):
    return next(int(task.name) for task in pathlib.Path(f'/proc/{pid}/task').iterdir()
                if (task / 'comm').read_text() == 'switcher\n')


@contextlib.contextmanager
def stopped_thread(thread):
    """The other threads of its process go on."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
        if libc.ptrace(request, thread, 0, 0) != 0:
            pytest.skip('may not trace')
    __wall = 0x40000000
    os.waitpid(thread, __wall)
    yield
    libc.ptrace(PTRACE_DETACH, thread, 0, 0)


def test_the_switcher_hangs(switched):
    with stopped_thread(switcher_of(switched.daemon('node00')['pid'])):
        check(switched, 'hole-7a', "The switcher's thread hangs")
    # It takes up its work again.
    before = int(switched.json('scnodes')['nodes'][0]['switches'])
    wait_until(lambda: int(switched.json('scnodes')['nodes'][0]['switches']) > before + 10)


def test_the_launcher_hangs_and_the_node_daemon_dies(switched):
    launcher = switched.daemon('launcher-node00')['pid']
    os.kill(launcher, signal.SIGSTOP)
    try:
        switched.kill('node00')
        check(switched, 'hole-7b', 'the launcher hangs and the node daemon dies')
    finally:
        os.kill(launcher, signal.SIGCONT)


def test_launcher_and_node_daemon_die(switched):
    switched.kill('launcher-node00')
    switched.kill('node00')
    check(switched, 'hole-7c', 'launcher and node daemon die')


def test_the_node_daemon_hangs(switched):
    daemon = switched.daemon('node00')['pid']
    os.kill(daemon, signal.SIGSTOP)
    try:
        check(switched, 'F17', 'the node daemon hangs')
    finally:
        os.kill(daemon, signal.SIGCONT)


def test_the_guard_dies_before_the_node_daemon(switched):
    wait_until(lambda: len(guards(switched)) == 1)
    first, = guards(switched)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: guards(switched) not in ([], [first]))
    switched.kill('node00')
    check(switched, 'F17', 'the guard dies, then the node daemon')


def test_everything_of_the_node_dies_and_its_unit_thaws(fresh, tmp_path):
    """What ExecStopPost= of the unit does."""
    cluster = fresh(1, '--slice', '100ms', '--cores', 1)
    if not cluster.description['cgroup']:
        pytest.skip('no cgroups')
    cluster.counters = [start_progress(cluster, tmp_path, name, 1)[1] for name in ('a', 'b')]
    os.kill(guards(cluster)[0], signal.SIGKILL)
    for name in ('launcher-node00', 'node00'):
        cluster.kill(name)
    root = pathlib.Path(cluster.description['cgroup']) / 'node00'
    for file in root.glob('job_*/tasks/cgroup.freeze'):
        file.write_text('1')
    subprocess.run([BIN / 'scored-thaw', '--cgroup-root', root], check=True)
    check(cluster, 'F17', 'all daemons and the guard die, the unit thaws')


def test_a_displaced_job_goes_on_without_the_head(fresh, tmp_path):
    """A job of queue high has its core, and ends while the head is silent."""
    cluster = fresh(1, '--slice', '100ms', '--cores', 1)
    displaced, counters = start_progress(cluster, tmp_path, 'displaced', 1)
    ends = tmp_path / 'ends'
    high = cluster.submit('--queue', 'high', 'sh', '-c', f'until [ -e {ends} ]; do :; done; touch {tmp_path}/ended')
    wait_until(lambda: 'queue high' in str(cluster.job(displaced)['reasons']), what=lambda: cluster.job(displaced))
    wait_until(lambda: longest_pause([counters], 1) > 0.9)
    head = cluster.daemon('head')['pid']
    os.kill(head, signal.SIGSTOP)
    try:
        ends.touch()
        wait_until((tmp_path / 'ended').exists)
        before, began = counters.counter(0), time.monotonic()
        wait_until(lambda: counters.counter(0) > before, what=cluster.logs)
        figure('displaced', f'a displaced job goes on {time.monotonic() - began:.1f} s after the job of queue high, without the head')
    finally:
        os.kill(head, signal.SIGCONT)
    cluster.wait_job(high, 'completed')
    cluster.cancel(displaced)
