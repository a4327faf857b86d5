"""Clusters whose host refuses system calls, one after the other, as the filters of containers do: jobs, PM, MPI, the end of
a cancelled job and volumes work in another way. The administrator guide lists the calls."""
import contextlib
import os
import pathlib
import re
import subprocess

import cluster as virtual
import pytest
import volumes

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('SCORE_BUILD', virtual.BIN.parent))
WITHOUT_CALLS = pathlib.Path(os.environ.get('SCORE_WITHOUT_CALLS', BUILD / 'test/without_calls'))
# glibc makes no thread where clone3 fails with EPERM, so this error is left out there.
ALONE = ['clone3', 'close_range', 'pidfd', 'io_uring', 'process_vm']
RARE = ['preadv2', 'madvise', 'rseq', 'sched_setattr', 'mlockall', 'bpf', 'namespaces', 'mount']
DOCKER = 'chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap'
CASES = {
    **{call: [call] for call in ALONE},
    'rare': RARE,
    'all': [*ALONE, *RARE],
    'all-eperm': ['clone3', '--error', 'EPERM', *ALONE[1:], *RARE],
    'docker': ['docker'],
}


@pytest.fixture
def words(request):
    """The words before each command: without_calls, and for Docker its capabilities too."""
    if not WITHOUT_CALLS.exists():
        pytest.skip(f'{WITHOUT_CALLS} is not built')
    words = [WITHOUT_CALLS, *CASES[request.param], '--']
    if request.param != 'docker':
        return words
    if os.geteuid() != 0:
        pytest.skip('needs root')
    return [*words, 'setpriv', '--inh-caps=-all', f'--bounding-set=-all,+{DOCKER}']


@contextlib.contextmanager
def cluster(words):
    made = virtual.Cluster(2, '--slice', '20ms', '--cores', 2, before=words)
    try:
        yield made
    finally:
        made.stop()


def check_jobs(made):
    done = made.run('scrun', '-q', '-N', 2, 'sh', '-c', 'echo on $SCORE_NODENAME; ls /proc/self/fd | wc -l')
    assert sorted(done.stdout.split()) == ['6', '6', 'node00', 'node01', 'on', 'on'], done  # with those of PMI, and the directory
    for program in ('ring', 'openmpi/ring'):
        if (virtual.EXAMPLES / program).exists():
            assert 'correct' in made.run('scrun', '-q', '-N', 2, virtual.EXAMPLES / program).stdout
    assert made.run('scrun', '-q', '-n', 2, 'sh', '-c', 'test $SCORE_RANK = 0 && exit 3; sleep 100', code=3)
    assert made.run('scrun', '-q', '-n', 4, '--net=pm', virtual.EXAMPLES / 'pm_talk', 1).returncode == 0


def check_cancel(made, tmp_path):
    """Also of processes that left their task's group, and of a task that ignores signals."""
    script = f'trap "" TERM; setsid sleep 987 & echo $! >> {tmp_path}/pids; echo $$ >> {tmp_path}/pids; wait; sleep 987'
    job = made.submit('-N', 2, 'sh', '-c', script)
    pids = tmp_path / 'pids'
    virtual.wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 4)
    made.cancel(job)
    virtual.wait_until(lambda: not any(map(virtual.is_alive, map(int, pids.read_text().split()))))


def check_volume(words, root):
    servers = volumes.Servers(root, 2, before=words)
    try:
        data = os.urandom(3_000_000)
        (root / 'data').write_bytes(data)
        for transport in ('tcp', 'pm'):
            environment = dict(os.environ, PARIO_VOLUME=str(servers.file), PARIO_TRANSPORT=transport)
            for copy in (['cp', root / 'data', ':/file'], ['cp', ':/file', root / transport]):
                subprocess.run([*words, virtual.BIN / 'scio', *copy], env=environment, check=True, timeout=virtual.LIMIT)
            assert (root / transport).read_bytes() == data
    finally:
        assert servers.stop() == [0, 0], servers.log(0)
    return servers.log(0)


@pytest.mark.parametrize('words', CASES, indirect=True)
def test_refused_calls_are_replaced(words, tmp_path, request):
    with cluster(words) as made:
        check_jobs(made)
        check_cancel(made, tmp_path)
        has_ring = 'io_uring' not in made.run('score', 'doctor', '--quick', code=None).stdout
    log = check_volume(words, tmp_path)
    assert has_ring == ('because io_uring is refused' not in log), log


# Without a pidfd a sleeper wakes up after 20 ms to look for dead peers.
@pytest.mark.parametrize('error', ['ENOSYS', 'EPERM'])
@pytest.mark.parametrize('program,names', [('base_test', 'Spawn.*:Reap.*'), ('pm_test', 'NearEnds.*:NearCopies.*:Shmem.DeadPeer*-*Sleeper*'), ('job_tasks_test', '*')])
def test_units_work_without_calls(program, names, error):
    path = BUILD / 'test' / program
    if not path.exists() or not WITHOUT_CALLS.exists():
        pytest.skip(f'{path} or {WITHOUT_CALLS} is not built')
    calls = [call for call in ALONE if error == 'ENOSYS' or call != 'clone3']
    done = subprocess.run([WITHOUT_CALLS, '--error', error, *calls, '--', path, f'--gtest_filter={names}'], capture_output=True,
                          text=True, timeout=virtual.LIMIT, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


def test_guide_lists_the_calls():
    listed = set(re.findall(r'SYS_([a-z]\w*)', (ROOT / 'tests/support/without_calls.c').read_text())) - {'socket', 'clone'}
    guide = (ROOT / 'docs/guide/admin.md').read_text().split('| system call |')[1].split('\n\n')[0]
    first = ' '.join(line.split('|')[1] for line in guide.splitlines()[2:])
    assert set(re.findall(r'`([a-z]\w*)', first)) == listed
