"""What an ordinary user's job can reach beyond itself: nothing."""
import contextlib
import hashlib
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

import pytest
from cluster import Cluster, is_alive, wait_until
from figures import figure
from login_users import other_user

TELL_TALE = r'''
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void tell(void) {
  char line[64];
  const char* path = getenv("TELL_TALE");
  int file = path ? open(path, O_WRONLY | O_APPEND) : -1;
  int size = snprintf(line, sizeof line, "%d %d\n", (int)geteuid(), (int)getuid());
  if (file >= 0 && write(file, line, (size_t)size) > 0) close(file);
}
'''


@pytest.fixture(scope='module')
def shared():
    if os.geteuid() != 0:
        pytest.skip('needs root')
    cluster = Cluster(2, '--slice', '20ms', '--cores', 1)
    with other_user(cluster) as user:
        yield user
    cluster.stop()


@pytest.fixture
def public(tmp_path):
    """A directory that every user may read."""
    for path in [tmp_path, *tmp_path.parents]:
        if path.owner() == 'root' and path != pathlib.Path('/') and path != pathlib.Path('/tmp'):
            path.chmod(0o755)
    return tmp_path


def test_the_environment_of_a_job_reaches_its_tasks_alone(shared, public):
    source, library, told = public / 'tell.c', public / 'tell.so', public / 'told'
    source.write_text(TELL_TALE)
    subprocess.run(['cc', '-shared', '-fPIC', '-o', library, source], check=True)
    told.touch()
    told.chmod(0o666)
    hostile = {'LD_PRELOAD': str(library), 'TELL_TALE': str(told), 'LD_LIBRARY_PATH': str(public), 'LD_AUDIT': str(library),
               'IFS': '/', 'BASH_ENV': '/no/such', 'ENV': '/no/such', 'MALLOC_PERTURB_': '7', 'GCONV_PATH': str(public),
               'PYTHONPATH': str(public), 'SCORE_RANK': '77', 'SCORED_SHEPHERD': '/no/such'}
    many = {f'HOSTILE_{number}': 'x' * 100 for number in range(5000)}
    rule = 'ALL,' + ','.join(f'{name}={value}' for name, value in hostile.items())
    out = shared.run('scrun', '-q', '-N', 2, '--export', rule, '/bin/sh', '-c', '/bin/echo $SCORE_RANK', **many).stdout
    assert sorted(out.split()) == ['0', '1'], 'what the job sets is not what it is'
    lines = told.read_text().splitlines()
    assert len(lines) >= 2, 'the library was loaded by the tasks'
    assert set(lines) == {f'{shared.uid} {shared.uid}'}, lines
    figure('S17', f'{len(lines)} processes loaded it, all of the user')


def test_output_files_are_opened_as_the_user(shared, public):
    mine = public / 'of_root'
    mine.write_text('of root\n')
    mine.chmod(0o600)
    os.chown(public, shared.uid, -1)
    (public / 'symlink').symlink_to(mine)
    os.link(mine, public / 'hardlink')
    digest = hashlib.sha256(mine.read_bytes()).digest()
    for name in ('symlink', 'hardlink', 'of_root'):
        result = shared.run('scrun', '-q', '-n', 1, '-o', public / name, 'echo', 'x', code=None)
        assert result.returncode != 0 and str(public / name) in result.stderr, result
    assert hashlib.sha256(mine.read_bytes()).digest() == digest and mine.stat().st_mode & 0o777 == 0o600
    assert shared.run('scrun', '-q', '-n', 1, '-o', '/dev/full', 'echo', 'x', code=None).returncode is not None
    assert shared.run('scrun', '-q', '-n', 1, 'echo', 'x').stdout == 'x\n'
    figure('S14', '3 files of root refused, unchanged')


JOBS, ROUNDS = 20, 100_000
SWAPS = r'''
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
one, two, least = sys.argv[1].encode(), sys.argv[2].encode(), int(sys.argv[3])
print("swaps", flush=True)
rounds = 0
while rounds < least or not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(1000):
        if libc.renameat2(-100, one, -100, two, 2) != 0:  # RENAME_EXCHANGE
            sys.exit(os.strerror(ctypes.get_errno()))
    rounds += 1000
print(rounds)
'''


def test_output_never_follows_a_directory_that_becomes_a_link(shared, public):
    """The directory of the output file and a link to one of root change places all the time."""
    root = public / 'root'
    root.mkdir(mode=0o755)
    (root / 'out').write_text('of root\n')
    (root / 'out').chmod(0o644)
    place = public / 'swapped'
    place.mkdir()
    (place / 'd').mkdir()
    (place / 'e').symlink_to(root)
    for path in (place, place / 'd'):
        os.chown(path, shared.uid, -1)
    words = ['setpriv', f'--reuid={shared.uid}', '--clear-groups', '/usr/bin/python3', '-c', SWAPS, place / 'd', place / 'e', str(ROUNDS)]
    refused = 0
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as swapper:
        assert swapper.stdout.readline() == 'swaps\n'
        for _ in range(JOBS):
            result = shared.run('scrun', '-q', '-n', 1, '-o', place / 'd' / 'out', 'echo', 'x', code=None)
            refused += result.returncode != 0
        rounds = int(swapper.communicate()[0])
    assert (root / 'out').read_text() == 'of root\n' and os.listdir(root) == ['out']
    assert (root / 'out').stat().st_uid == 0
    assert shared.run('scrun', '-q', '-n', 1, 'echo', 'x').stdout == 'x\n'
    figure('S14', f'{JOBS} jobs while a directory and a link changed places {rounds} times: {refused} refused, nothing of root changed')


READS = '''
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for pid in sys.argv[1:]:
    for name in ('environ', 'mem', 'maps', 'auxv', 'stack'):
        try:
            if os.read(os.open(f'/proc/{pid}/{name}', os.O_RDONLY), 100): print('read', pid, name)
        except OSError: pass
    try: print('listed', pid, os.listdir(f'/proc/{pid}/fd'))
    except OSError: pass
    if libc.ptrace(16, int(pid), 0, 0) == 0: print('traced', pid)
    fd = os.pidfd_open(int(pid))
    for number in range(40):
        if libc.syscall(438, fd, number, 0) >= 0: print('took', pid, number)
    try: os.kill(int(pid), 0); print('signalled', pid)
    except OSError: pass
'''


def daemons(cluster):
    description = cluster.describe()
    return [daemon['pid'] for daemon in [description['head'], *description['nodes'], *description['launchers']]]


def test_a_job_cannot_read_the_daemons(shared):
    pids = daemons(shared.cluster)
    out = shared.run('scrun', '-q', '-n', 1, 'python3', '-c', READS, *pids).stdout
    assert out == '', out
    assert all(is_alive(pid) for pid in pids)
    figure('S19', f'{len(pids)} daemons, nothing read')


def cgroup_of(cluster, job):
    found = list(pathlib.Path(cluster.description['cgroup'] or '/none').glob(f'*/job_{job << 8 | 1}/tasks'))
    if not found:
        pytest.skip('needs cgroups')
    return found[0]


def used_us(tasks):
    return int(next(line.split()[1] for line in (tasks / 'cpu.stat').read_text().splitlines() if line.startswith('usage_usec')))


def test_sigcont_does_not_thaw(shared):
    cluster = shared.cluster
    job = shared.submit('-n', 1, 'sh', '-c', 'while :; do :; done')
    cluster.wait_job(job, 'running')
    tasks = cgroup_of(cluster, job)
    cluster.run('score', 'suspend', job)
    wait_until(lambda: 'frozen 1' in (tasks / 'cgroup.events').read_text())
    script = f'end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do kill -CONT {" ".join(tasks.joinpath("cgroup.procs").read_text().split())}; done'
    before, began = used_us(tasks), time.monotonic()
    subprocess.run(['setpriv', f'--reuid={shared.uid}', '--clear-groups', 'sh', '-c', script], check=True)
    share = (used_us(tasks) - before) / 1e6 / (time.monotonic() - began)
    cluster.cancel(job)
    assert share <= 0.01
    figure('S24', f'{share:.2%} of a processor')


def fork_as(wanted, limit=2000):
    """A child that sleeps, with that pid; None if others took it. Writes ns_last_pid."""
    last = pathlib.Path('/proc/sys/kernel/ns_last_pid')
    for _ in range(limit):
        try:
            last.write_text(str(wanted - 1))
        except OSError:
            pytest.skip('cannot write ns_last_pid')
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                if os.getpid() == wanted:
                    os.setsid()
                    time.sleep(600)
            os._exit(0)
        if child == wanted:
            return child
        os.waitpid(child, 0)
    return None


def test_a_process_with_the_pid_of_a_dead_rank_is_left_alone(shared, public):
    cluster, place = shared.cluster, public / 'pids'
    place.mkdir()
    place.chmod(0o777)
    script = f'echo $$ > {place}/new-$SCORE_RANK; mv {place}/new-$SCORE_RANK {place}/$SCORE_RANK; [ $SCORE_RANK = 0 ] && exit; trap "" USR1; exec sleep 600'
    job = shared.submit('-n', 2, '--keep-going', 'sh', '-c', script)
    wait_until(lambda: len(list(place.glob('[01]'))) == 2)
    pid = int((place / '0').read_text())
    wait_until(lambda: not pathlib.Path(f'/proc/{pid}').exists())
    stranger = fork_as(pid)
    if stranger is None:
        pytest.skip('another process took the pid')
    try:
        cluster.run('sccancel', '-s', 'USR1', job)
        cluster.run('score', 'suspend', job)
        time.sleep(0.3)
        assert pathlib.Path(f'/proc/{stranger}/stat').read_text().rsplit(')', 1)[1].split()[0] == 'S', 'it was stopped'
        cluster.run('score', 'resume', job)
        cluster.cancel(job)
        assert is_alive(stranger)
        figure('S25', 'the stranger lives')
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)


HIDES = '''
for group in $0 /sys/fs/cgroup /sys/fs/cgroup/unified; do echo $$ > $group/cgroup.procs; done 2>/dev/null
trap "" TERM HUP INT
(setsid sh -c 'trap "" TERM; exec -a "$0" sleep 600' "$1" &) &
unshare --user --map-root-user --pid --mount --cgroup --fork sh -c 'echo 1 > "$0/cgroup.procs"; exec -a "$1" sleep 600' "$0" "$1" 2>/dev/null &
unshare --user --map-root-user --mount --cgroup sh -c '
  for controller in cpu memory pids devices freezer; do
    mkdir -p "$0/$controller"
    mount -t cgroup -o "$controller" none "$0/$controller" || continue
    echo "$0/escaped" > "$0/$controller/release_agent" && touch "$0/wrote"
  done; touch "$0/tried"' "$2" 2>/dev/null
for agent in /sys/fs/cgroup/*/release_agent; do echo "$2/escaped" > "$agent" && touch "$2/wrote"; done 2>/dev/null
renice -n -20 $$ >/dev/null 2>&1
touch "$2/ready"
while :; do sleep 0.1; done
'''


def test_a_job_that_hides_is_ended(shared, public):
    """It ignores signals, changes namespaces and sessions, and tries to leave its cgroup."""
    cluster, place, marker = shared.cluster, public / 'hides', f'hidden-{os.getpid()}'
    place.mkdir()
    place.chmod(0o777)
    pids = daemons(cluster)
    job = shared.submit('-n', 1, 'bash', '-c', HIDES, cluster.description['cgroup'] or '/none',
                        marker, place)
    wait_until((place / 'ready').exists)
    tasks = cgroup_of(cluster, job)
    time.sleep(0.5)
    began = time.monotonic()
    cluster.run('sccancel', '--grace', '1', job)
    cluster.wait_job(job, 'cancelled')
    wait_until(lambda: not tasks.exists())
    took = time.monotonic() - began
    assert (place / 'tried').exists() and not (place / 'wrote').exists(), 'the release agent was changed'
    left = [pid for pid in os.listdir('/proc') if pid.isdigit() and marker.encode() in arguments(pid)]
    assert not left, left
    assert all(is_alive(pid) for pid in pids)
    assert took < 10
    figure('S23', f'ended {took:.1f} s after the cancel with a grace of 1 s; no process left, no release agent changed')


def arguments(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
    return b''


def test_a_user_at_the_process_limit(shared):
    """The kernel then refuses the program of a process that has changed its user."""
    launchers = [daemon['pid'] for daemon in shared.cluster.describe()['launchers']]
    before = [resource.prlimit(pid, resource.RLIMIT_NPROC) for pid in launchers]
    crowd = [subprocess.Popen(['setpriv', f'--reuid={shared.uid}', '--clear-groups', 'sleep', '600']) for _ in range(3)]
    try:
        for pid, (_, hard) in zip(launchers, before):
            resource.prlimit(pid, resource.RLIMIT_NPROC, (1, hard))
        results = [shared.run('scrun', '-q', '-N', 2, 'id', '-u', code=None) for _ in range(3)]
    finally:
        for pid, limits in zip(launchers, before):
            resource.prlimit(pid, resource.RLIMIT_NPROC, limits)
        for process in crowd:
            process.kill()
            process.wait()
    assert all(result.returncode != 0 for result in results), results
    assert not any('0' in result.stdout.split() for result in results), results
    assert all(is_alive(pid) for pid in launchers)
    assert shared.run('scrun', '-q', '-N', 2, 'id', '-u').stdout == f'{shared.uid}\n' * 2
    figure('S18', f'{len(results)} jobs failed, nothing ran as root')


FALSE_HEAD = '''
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print('up', flush=True)
while True:
    peer = listener.accept()[0]
    print(len(peer.recv(4096)), flush=True)
    peer.close()
'''


def test_a_socket_of_another_user_is_refused(shared, public):
    os.chown(public, shared.uid, -1)
    path = public / 'head.sock'
    words = [shutil.which('setpriv'), f'--reuid={shared.uid}', '--clear-groups', 'python3', '-c', FALSE_HEAD, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as squatter:
        try:
            assert squatter.stdout.readline() == 'up\n'
            for command in (['scq'], ['scrun', 'true'], ['scadm', 'reload'], ['sccancel', '1']):
                result = shared.cluster.run(*command, code=None, extra_env={'SCORED_SERVER': str(path), 'SECRET': 'x'})
                assert result.returncode == 125 and f'the server runs as uid {shared.uid}' in result.stderr, result
                assert squatter.stdout.readline() == '0\n', 'something was sent to it'
        finally:
            squatter.kill()
    figure('S22', '4 commands refused it, 0 bytes sent')
