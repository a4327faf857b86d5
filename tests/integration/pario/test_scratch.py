"""scrun --scratch: a job's own striped volume, from its start to its end."""
import contextlib
import errno
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess

import pytest
from cluster import BIN, Cluster, wait_until
from login_users import other_user
from test_hostile_clients import Raw
from test_transport import OPEN_CHANNEL

pytestmark = [pytest.mark.skipif(not (BIN / 'scored-pario').exists() or not (BIN / 'scored-pario-mount').exists(),
                                 reason='scored-pario or scored-pario-mount is not built'),
              pytest.mark.skipif(not os.access('/dev/fuse', os.R_OK | os.W_OK) or not shutil.which('fusermount3'),
                                 reason='no access to /dev/fuse, or no fusermount3 (package fuse3)')]

NODES = 3


def volumes(cluster):
    """Directories of jobs' volumes that are there now."""
    return sorted(str(path.relative_to(cluster.directory)) for path in cluster.directory.glob('scratch/*/*.*'))


def mounts(cluster):
    lines = pathlib.Path('/proc/self/mountinfo').read_text().splitlines()
    return [line.split()[4] for line in lines if line.split()[4].startswith(f'{cluster.directory}/')]


def processes(cluster, *words):
    """Pids of processes of the cluster whose command line has all the words."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        with contextlib.suppress(OSError, ValueError):
            line = (entry / 'cmdline').read_bytes().replace(b'\0', b' ').decode(errors='replace')
            known = line + (entry / 'environ').read_bytes().decode(errors='replace')
            if str(cluster.directory) in known and all(word in line for word in words):
                found.append(int(entry.name))
    return found


def left_of_volumes(cluster):
    return volumes(cluster) + mounts(cluster) + processes(cluster, 'scored-pario')


def expect_nothing_left(cluster):
    wait_until(lambda: not left_of_volumes(cluster), what=lambda: f'{left_of_volumes(cluster)}\n{cluster.logs()}')


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope='module')
def shared():
    probe = subprocess.run([BIN / 'scored-pario', '--version'], capture_output=True)
    if probe.returncode:
        pytest.skip('scored-pario does not run here')
    cluster = Cluster(NODES, '--slice', '50ms', '--scratch', '256M')
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(shared):
    yield shared
    shared.cancel_all()
    expect_nothing_left(shared)


def parent_of(pid):
    return int(pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[1])


def shepherds(cluster, *words):
    """Of jobs with volumes: they have the process that starts servers."""
    return [parent_of(parent_of(pid)) for pid in processes(cluster, 'scored-pario --volume', *words)]


ALL_READ = '''
cd $(dirname $PARIO_VOLUME)/mount || exit 3
[ $(stat -f -c %t $SCORE_SCRATCH) = 65735546 ] || exit 4  # FUSE
if [ $SCORE_RANK = 0 ]; then head -c 5000000 /dev/urandom > new && mv new data; fi
until [ -e data ]; do sleep 0.05; done
cmp data $SCORE_SCRATCH/data
echo "$(sha256sum < data | cut -c1-16) $SCORE_SCRATCH $PARIO_VOLUME $(test -r $PARIO_VOLUME && stat -c %a $PARIO_VOLUME)"
'''


def test_a_job_chooses_the_transport_of_its_volume(cluster):
    """The shepherds write it into the description, which mounts and tasks follow."""
    command = 'grep -c "^transport pm$" $PARIO_VOLUME; echo x > $SCORE_SCRATCH/file$SCORE_RANK'
    for transport, count in (('pm', '1'), ('', '0')):
        done = cluster.run('scrun', '-q', '-N', NODES, '--scratch', '96M', 'sh', '-c', command, extra_env={'PARIO_TRANSPORT': transport})
        assert done.stdout.split() == [count] * NODES


def test_all_ranks_read_the_writes_of_one(cluster):
    out = cluster.run('scrun', '-q', '-N', NODES, '--scratch', '96M', 'sh', '-c', ALL_READ).stdout
    lines = [line.split() for line in out.splitlines()]
    assert len(lines) == NODES and len({digest for digest, *_ in lines}) == 1, out
    assert len({path for _, path, *_ in lines}) == 1, 'a file has the same name everywhere'
    assert len({volume for _, _, volume, _ in lines}) == NODES, 'each node has its own mount'
    assert {mode for *_, mode in lines} == {'600'}
    expect_nothing_left(cluster)


WRITES = '''
import os, sys
path = os.environ['SCORE_SCRATCH'] + '/rank' + os.environ['SCORE_RANK']
block = lambda number: number.to_bytes(8, 'little') * 8192
with open(path, 'wb', buffering=0) as file:
    for number in range(400):
        file.write(block(number))
        if number % 40 == 0: print('wrote', number, flush=True)
    os.fsync(file.fileno())
with open(path, 'rb') as file:
    wrong = [number for number in range(400) if file.read(65536) != block(number)]
print('right' if not wrong and os.path.getsize(path) == 400 * 65536 else f'wrong {wrong}', flush=True)
'''


LOCAL = f"""
{BIN}/scio mkdir --layout local :/ckpt
scrun -q -N {NODES} sh -c 'echo rank $SCORE_RANK > $SCORE_SCRATCH/ckpt/$SCORE_RANK'
scrun -q -N {NODES} sh -c 'cat $SCORE_SCRATCH/ckpt/*' | sort | uniq -c
for rank in 0 1 2; do {BIN}/scio stat :/ckpt/$rank | grep -E "layout|server "; done
"""


def test_files_of_ranks_stay_on_their_nodes(cluster, tmp_path):
    """All virtual nodes have one address, so any server of the three is one of the node."""
    script = tmp_path / 'job.sh'
    script.write_text('#!/bin/sh\n' + LOCAL)
    cluster.run('scbatch', '-N', NODES, '--scratch', '96M', '--wait', '-o', tmp_path / 'out', script)
    out = (tmp_path / 'out').read_text().splitlines()
    assert [line.split() for line in out[:NODES]] == [['3', 'rank', str(rank)] for rank in range(NODES)]
    assert out[NODES::2] == ['layout local'] * NODES and len(out) == 3 * NODES


def test_a_server_that_is_killed_is_started_again_and_loses_nothing(cluster):
    job = cluster.start('scrun', '-q', '-N', NODES, '--scratch', '192M', 'python3', '-c', WRITES)
    killed, right = [], 0
    for line in job.stdout:
        right += line == 'right\n'
        servers = processes(cluster, 'scored-pario --volume', f'--index {len(killed) % NODES}')
        if line.startswith('wrote') and len(killed) < 6 and servers and servers[0] not in killed:
            kill(servers[0])
            killed.append(servers[0])
    out, err = job.communicate()
    assert job.returncode == 0 and right == NODES, (right, err, cluster.logs())
    assert len(killed) >= 3, 'servers were killed while it wrote'


def start_and_wait(cluster, *options, size='90M', script='echo here; exec sleep 1000'):
    """A job that has its volume; gives its id."""
    job = cluster.submit('-N', NODES, '--scratch', size, *options, 'sh', '-c', script)
    cluster.wait_job(job, 'running', 'idle')
    wait_until(lambda: len(mounts(cluster)) == NODES)
    return job


def test_cancelling_removes_everything(cluster):
    job = start_and_wait(cluster, script='dd if=/dev/zero of=$SCORE_SCRATCH/file bs=1M count=20 2> /dev/null; exec sleep 1000')
    assert len(volumes(cluster)) == NODES
    cluster.cancel(job)
    expect_nothing_left(cluster)


def test_a_job_that_hangs_in_its_volume_can_be_killed(cluster):
    job = start_and_wait(cluster, script='while :; do dd if=/dev/zero of=$SCORE_SCRATCH/$SCORE_RANK bs=64k count=99; done 2> /dev/null')
    for pid in processes(cluster, 'scored-pario --volume'):
        os.kill(pid, signal.SIGSTOP)
    cluster.cancel(job)
    expect_nothing_left(cluster)


def test_the_volume_outlives_the_node_daemon(cluster, tmp_path):
    go = tmp_path / 'go'
    script = f'until [ -e {go} ]; do date > $SCORE_SCRATCH/$SCORE_RANK; sleep 0.1; done; cat $SCORE_SCRATCH/[0-9] | wc -l'
    job = start_and_wait(cluster, '-o', str(tmp_path / 'out'), script=script)
    servers = sorted(processes(cluster, 'scored-pario --volume'))
    cluster.kill('node01')
    cluster.restart('node01')
    cluster.wait_up()
    assert sorted(processes(cluster, 'scored-pario --volume')) == servers
    go.touch()
    assert cluster.wait_job(job, 'completed', 'failed', 'node-failed')['state'] == 'completed'
    expect_nothing_left(cluster)


def test_a_killed_shepherd_leaves_nothing(cluster):
    job = start_and_wait(cluster)
    kill(shepherds(cluster)[0])
    wait_until(lambda: cluster.job(job)['final'])
    expect_nothing_left(cluster)


def test_leftovers_are_removed_when_the_node_daemon_starts(cluster):
    job = start_and_wait(cluster)
    cluster.kill('node01')
    path = '.1/'  # of the job's node 1
    kill(*shepherds(cluster, path))
    wait_until(lambda: not processes(cluster, 'scored-pario', path))
    assert any(volume.endswith('.1') for volume in volumes(cluster)), 'no process is there that removes it'
    cluster.restart('node01')
    cluster.wait_up()
    wait_until(lambda: cluster.job(job)['final'])
    expect_nothing_left(cluster)


def test_a_restarted_head_keeps_volumes(cluster):
    job = start_and_wait(cluster)
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    assert len(mounts(cluster)) == NODES
    nodes = cluster.json('scnodes')['nodes']
    assert {node['scratch_reserved_bytes'] for node in nodes} == {30 << 20}
    cluster.cancel(job)
    assert {node['scratch_reserved_bytes'] for node in cluster.json('scnodes')['nodes']} == {0}


def test_a_full_volume_harms_no_other_job(cluster, tmp_path):
    go = tmp_path / 'go'
    other = start_and_wait(cluster, script=f'until [ -e {go} ]; do sleep 0.1; done; '
                                           'dd if=/dev/zero of=$SCORE_SCRATCH/fits bs=1M count=20 2> /dev/null')
    full = cluster.run('scrun', '-q', '-n', 1, '--scratch', '16M', 'sh', '-c',
                       'dd if=/dev/zero of=$SCORE_SCRATCH/x bs=1M count=64; rm $SCORE_SCRATCH/x; '
                       'dd if=/dev/zero of=$SCORE_SCRATCH/y bs=1M count=8 && echo fits')
    assert 'No space left on device' in full.stderr and full.stdout == 'fits\n', full
    go.touch()
    assert cluster.wait_job(other, 'completed', 'failed')['state'] == 'completed'


def fill(path):
    with open(path, 'wb', buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_a_full_disk_is_an_error_in_a_line(tmp_path_factory):
    """The disk holds less than [pario] capacity says."""
    if os.geteuid() != 0:
        pytest.skip('needs root')
    place = tmp_path_factory.mktemp('disk')
    mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=48M,mode=755', 'scratch', place], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f'no tmpfs: {mounted.stderr.strip()}')
    try:
        cluster = Cluster(1, '--scratch', '1G', '--scratch-dir', place)
        try:
            full = cluster.run('scrun', '-q', '-n', 1, '--scratch', '512M', 'sh', '-c',
                               'dd if=/dev/zero of=$SCORE_SCRATCH/x bs=1M count=256; rm $SCORE_SCRATCH/x; '
                               'dd if=/dev/zero of=$SCORE_SCRATCH/y bs=1M count=8 && echo fits')
            assert 'No space left on device' in full.stderr and full.stdout == 'fits\n', full
            wait_until(lambda: not any(files for _, _, files in os.walk(place)))  # of the volume
            fill(place / 'other')
            refused = cluster.run('scrun', '-q', '-n', 1, '--scratch', '16M', 'true', code=None)
            assert refused.returncode == 125 and 'No space left on device' in refused.stderr, (refused, cluster.logs())
            assert len(refused.stderr.strip().splitlines()) == 1, refused.stderr
            (place / 'other').unlink()
            cluster.run('scrun', '-q', '-n', 1, '--scratch', '16M', 'sh', '-c', 'echo > $SCORE_SCRATCH/x')
        finally:
            cluster.stop()
    finally:
        subprocess.run(['umount', '--lazy', place], check=True)


def test_a_job_waits_until_another_gives_its_space_back(cluster):
    first = start_and_wait(cluster, size='600M')
    second = cluster.submit('-N', NODES, '--scratch', '300M', 'sh', '-c', 'exec sleep 1000')
    cluster.wait_job(second, 'pending')
    why = ' '.join(cluster.job(second)['reasons'])
    assert 'scratch: 100M per node is not free on node[00-02]' in why, why
    assert 'scratch: 100M per node is not free' in cluster.run('scq', '--why', second).stdout
    shown = cluster.run('scnodes', '-o', 'node,scratch').stdout
    assert shown.count('56M/256M') == NODES, shown
    cluster.cancel(first)
    cluster.wait_job(second, 'running', 'idle')


REFUSED = [(['--scratch', 'much'], "--scratch 'much'"), (['--scratch', '0'], 'less than 1M'), (['--scratch', '12'], 'less than 1M'),
           (['--scratch', '-1G'], '--scratch'), (['--scratch', '99999999999999G'], '--scratch'), (['--scratch', ''], '--scratch'),
           (['--scratch', '1G2'], '--scratch'), (['--scratch', '\x1b[31m1G'], '--scratch'), (['--scratch', '9' * 10_000], '--scratch'),
           (['--scratch', '15.9E'], 'of scratch; the 3 nodes that can be used offer 768M in all'),
           (['-N', '1', '--scratch', '300M'], '300M of scratch on 1 node; the largest node offers 256M (node00): -N 2 may fit'),
           (['-N', str(NODES), '--scratch', '1T'], 'of scratch')]


@pytest.mark.parametrize('words, says', REFUSED)
def test_sizes_that_cannot_be_given_are_refused_in_a_line(cluster, words, says):
    result = cluster.run('scrun', *words, 'true', code=None)
    assert result.returncode not in (0, 1) and says in result.stderr, result
    assert len(result.stderr.strip().splitlines()) == 1 and '\x1b' not in result.stderr and len(result.stderr) < 500, result.stderr


BATCH = '''#!/bin/sh
#SCORE -N 3 --scratch 60M
echo of the script > $SCORE_SCRATCH/file
scrun -q -N 3 sh -c 'cat $SCORE_SCRATCH/file; echo $SCORE_RANK > $SCORE_SCRATCH/step.$SCORE_RANK'
cat $SCORE_SCRATCH/step.* | tr -d '\\n'; echo
scrun -q -N 1 --scratch 2M true
'''


def test_steps_use_the_volume_of_their_job(cluster, tmp_path):
    script, out = tmp_path / 'script', tmp_path / 'out'
    script.write_text(BATCH)
    job = int(cluster.run('scbatch', '-o', out, '-e', out, script).stdout.split()[-1])
    cluster.wait_job(job, 'completed', 'failed', 'launch-failed')
    lines = out.read_text().splitlines()
    assert lines[:4] == ['of the script'] * 3 + ['012'], lines
    assert 'leave out --scratch' in lines[4], lines
    expect_nothing_left(cluster)


def report_fallback(volume):
    """As a client does whose datagrams do not pass, to the first server."""
    words = [line.split() for line in (volume / 'volume').read_text().splitlines()]
    name, key = (next(rest[0] for what, *rest in words if what == wanted) for wanted in ('name', 'key'))
    host, port = next(rest[0] for what, *rest in words if what == 'server').rsplit(':', 1)
    raw = Raw(int(port), bytes.fromhex(key), name.encode(), host)
    raw.request(OPEN_CHANNEL, id=0, body=struct.pack('<IQ', 3, errno.ETIMEDOUT))
    assert raw.reply()[0] == 0


def fallbacks(cluster):
    top = cluster.start('score', 'top', '--json')
    snapshot = json.loads(top.stdout.readline())
    top.kill()
    top.communicate()
    return sum(volume['fallbacks'] for node in snapshot['nodes'] for volume in node['scratch']['volumes'] or [])


def test_the_monitor_shows_what_servers_do(cluster, tmp_path):
    go = tmp_path / 'go'
    job = start_and_wait(cluster, script=f'until [ -e {go} ]; do dd if=/dev/zero of=$SCORE_SCRATCH/$SCORE_RANK bs=64k count=99; done 2> /dev/null')
    top = cluster.start('score', 'top', '--json')
    seen = {}
    for line in top.stdout:
        for node in json.loads(line)['nodes']:
            for volume in node['scratch']['volumes'] or []:
                # A volume is empty for a moment after dd has truncated its file.
                if volume['written_bytes_per_s'] > 0 and volume['used_bytes'] > 0:
                    seen[node['name']] = volume
        if len(seen) == NODES:
            break
    top.kill()
    top.communicate()
    assert all(volume['job'] == job and volume['capacity_bytes'] == 30 << 20 and not volume['down'] for volume in seen.values()), seen
    assert all(volume['fallbacks'] == 0 for volume in seen.values()), seen
    report_fallback(cluster.directory / volumes(cluster)[0])
    wait_until(lambda: fallbacks(cluster) == 1)
    go.touch()
    cluster.wait_job(job, 'completed')


LOOKS = '''
import os, sys
for path in sys.argv[1:]:
    for name in [path, os.path.dirname(path), path + '/mount', path + '/mount/secret', path + '/volume', path + '/data/data']:
        try: print('opened', name, os.listdir(name) if os.path.isdir(name) else open(name).read())
        except OSError: pass
'''


def test_another_users_job_cannot_read_it(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip('needs root')
    place = tmp_path_factory.mktemp('scratch')
    for path in [place, *place.parents]:
        if path not in (pathlib.Path('/'), pathlib.Path('/tmp')):
            path.chmod(0o755)
    cluster = Cluster(NODES, '--slice', '50ms', '--scratch', '256M', '--scratch-dir', place)
    try:
        with other_user(cluster) as user:
            job = cluster.submit('-N', NODES, '--scratch', '30M', 'sh', '-c', 'echo secret > $SCORE_SCRATCH/secret; exec sleep 1000')
            found = lambda: list(place.glob('*/0/*.*'))
            wait_until(lambda: len(found()) == NODES and (found()[0] / 'mount/secret').exists())
            out = user.run('scrun', '-q', '-n', 1, 'python3', '-c', LOOKS, *map(str, found())).stdout
            assert out == '', out
            # The other user's own volume: made below a directory of root's.
            if os.stat('/dev/fuse').st_mode & 0o006 == 0o006:
                assert user.run('scrun', '-q', '-N', 2, '--scratch', '20M', 'sh', '-c', 'echo x > $SCORE_SCRATCH/$SCORE_RANK').stdout == ''
            else:
                result = user.run('scrun', '-q', '-N', 2, '--scratch', '20M', 'true', code=None)
                assert 'no access to /dev/fuse on this node' in result.stderr, result
            cluster.cancel(job)
        wait_until(lambda: not list(place.glob('*/*/*')))
    finally:
        cluster.stop()
    assert not list(place.iterdir()), 'the cluster removed its directory there'
