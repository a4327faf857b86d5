"""A head whose disk is slow, and jobs whose working directory does not answer."""
import statistics
import time

import pytest
from cluster import LIMIT, is_alive, wait_until
from crowd import Other
from figures import figure
from frames import Schema, read_frame
from slow_disk import slow_directory, slow_head
from test_clients import client, submission
from workers import Workers

SCHEMA = Schema()
DELAY_MS = 3000
CLIENTS, SECONDS = 4, 10
OTHER = 65532


def suspects(cluster):
    logs = '\n'.join(path.read_text(errors='replace') for path in (cluster.directory / 'log').glob('head*'))
    return [line for line in logs.splitlines() if 'suspect' in line.lower() or 'node is down' in line.lower()]


class Submitters(Workers):
    """Clients that submit one job after the other; how long each acknowledgement took."""

    def __init__(self, cluster):
        super().__init__(CLIENTS)
        self.cluster, self.took, self.jobs = cluster, [], []

    def run(self, number):
        with client(self.cluster) as (peer, _):
            peer.settimeout(300)
            for tag in range(10_000):
                if self.is_over.is_set():
                    return
                began = time.monotonic()
                peer.sendall(submission(b'%8d%8d' % (number, tag), tag))
                kind, payload = read_frame(peer)
                assert kind == SCHEMA.frames['Submitted'][0], payload
                self.took.append(time.monotonic() - began)


@pytest.fixture
def pair_of_nodes(fresh, as_root):
    cluster = fresh(2)
    job = cluster.submit('-N', 2, 'sleep', '3600')
    cluster.wait_job(job, 'running')
    yield cluster
    assert cluster.job(job)['state'] == 'running'
    cluster.cancel(job)


def test_a_slow_disk_of_the_head_delays_only_what_is_stored(pair_of_nodes, tmp_path):
    cluster = pair_of_nodes
    with slow_head(cluster, tmp_path / 'control') as disk:
        alone = Other(cluster, OTHER, 'probe', 3).end()
        disk.set(str(DELAY_MS))
        with Submitters(cluster) as submitters:
            beside = Other(cluster, OTHER, 'probe', SECONDS).end()
        disk.set('0')
        assert cluster.nodes_up() == 2 and suspects(cluster) == []
    assert len(submitters.took) >= CLIENTS
    assert min(submitters.took) >= DELAY_MS / 1000, 'acknowledged before it was durable'
    assert beside['median_ms'] < DELAY_MS / 4
    for row in ('F12', 'slow-disk'):
        figure(row, f"fsync takes {DELAY_MS} ms: reads {beside['p99_ms']:.1f} ms p99 ({alone['p99_ms']:.1f} ms before), "
                    f'{len(submitters.took)} submissions acknowledged after {statistics.median(submitters.took):.1f} s, '
                    f'none before {min(submitters.took):.1f} s, no node suspect')


def test_nothing_is_acknowledged_while_the_disk_does_not_answer(pair_of_nodes, tmp_path):
    cluster = pair_of_nodes
    with slow_head(cluster, tmp_path / 'control') as disk:
        disk.set('hold')
        commands = ('scrun --detach -J held true', 'scadm drain node01', 'scadm set quantum 20ms')
        waiting = {command: cluster.start(*command.split()) for command in commands}
        beside = Other(cluster, OTHER, 'probe', 5).end()
        assert beside['count'] > 10
        early = [name for name, process in waiting.items() if process.poll() is not None]
        assert early == [], 'acknowledged before it was durable'
        disk.set('0')
        for name, process in waiting.items():
            _, err = process.communicate(timeout=300)
            assert process.returncode == 0, (name, err)
        assert suspects(cluster) == []
    assert [row for row in cluster.json('scq', '-a')['jobs'] if row['name'] == 'held'], 'it was acknowledged'
    figure('slow-disk', f'no fsync is answered for 5 s: 0 of {len(waiting)} changes acknowledged, all afterwards; '
                        f"{beside['count']} reads answered meanwhile")


@pytest.fixture
def hung(tmp_path):
    """A directory for jobs, on a file system that a test can stop."""
    for path in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        path.chmod(0o755)
    behind = tmp_path / 'behind'
    behind.mkdir()
    with slow_directory(behind, tmp_path / 'hung', tmp_path / 'control') as disk:
        yield disk


def start_hanging_job(cluster, disk):
    """A job on node00 that starts in the directory, while others are served."""
    job = cluster.start('scrun', '-w', 'node00', '-D', disk.place, 'true', cwd='/')
    beside = cluster.run('scrun', '-q', '-N', 2, 'echo', 'x', cwd='/')
    assert beside.stdout == 'x\n' * 2, 'others are served'
    return job


def check_alive(cluster):
    assert all(is_alive(cluster.daemon(name)['pid']) for name in ('head', 'node00', 'launcher-node00'))
    assert suspects(cluster) == []


def test_a_directory_that_hangs_ends_its_job_alone(pair_of_nodes, hung):
    """Who waits can be killed, as with NFS."""
    cluster = pair_of_nodes
    hung.stop()
    try:
        began = time.monotonic()
        job = start_hanging_job(cluster, hung)
        _, err = job.communicate(timeout=LIMIT)
        seconds, message = time.monotonic() - began, err.splitlines()[-1]
        assert job.returncode == 125 and 'launch-failed' in message and 'node00' in message, err
        assert all(' waits: ' in line for line in err.splitlines()[:-1]), err  # it was repeated before
        check_alive(cluster)
        assert cluster.run('scrun', '-q', '-w', 'node00', 'echo', 'x', cwd='/').stdout == 'x\n'
    finally:
        hung.go_on()
    for row in ('S16', 'F25'):
        figure(row, f'ended after {seconds:.1f} s: {message}')


def test_a_dead_disk_disables_only_its_node(pair_of_nodes, hung):
    """Who waits cannot be killed: the node gets no jobs until it can. The job waits for it, and the other node goes on."""
    cluster = pair_of_nodes
    hung.set('hang')
    try:
        began = time.monotonic()
        job = start_hanging_job(cluster, hung)
        message = job.stderr.readline().rstrip()
        seconds = time.monotonic() - began
        assert ' waits: ' in message and 'node00' in message, message
        assert cluster.run('scrun', '-q', '-w', 'node01', 'echo', 'x', cwd='/').stdout == 'x\n'
        assert all(is_alive(cluster.daemon(name)['pid']) for name in ('head', 'node00', 'launcher-node00'))
    finally:
        hung.go_on()
    wait_until(lambda: cluster.run('scrun', '-q', '-w', 'node00', 'echo', 'x', code=None, cwd='/').stdout == 'x\n')
    _, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, err
    figure('S16', f'unkillable: after {seconds:.1f} s: {message}; the node takes jobs again when the disk answers')
