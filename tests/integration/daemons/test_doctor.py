"""score doctor: a healthy cluster, and the faults that it must name with their remedy."""
import json
import os
import pathlib
import signal
import subprocess

import pytest
from cluster import BIN, Cluster, wait_until
from trouble import need_nftables, without

CHECKS = ['head', 'versions', 'nodes', 'answers', 'files', 'clocks', 'cgroups', 'priority', 'control', 'memlock',
          'shm', 'parts', 'programs', 'mpi', 'pairs']


@pytest.fixture(scope='module')
def four():
    cluster = Cluster(4, '--slice', '20ms', '--cores', '2')
    yield cluster
    cluster.stop()


def examine(cluster, *options, code=0):
    """What `score doctor --json` says; levels of checks, and findings by check."""
    done = cluster.run('score', 'doctor', '--json', *options, code=code)
    report = json.loads(done.stdout)
    assert code is None or report['faults'] == (code == 1), report
    return report


def findings(report, check):
    return [one for one in report['findings'] if one['check'] == check]


def faults(report):
    return [(one['check'], one['nodes']) for one in report['findings'] if one['level'] == 'fault']


def test_a_healthy_cluster_has_no_fault(four):
    report = examine(four)
    assert list(dict.fromkeys(one['check'] for one in report['findings'])) == CHECKS
    assert faults(report) == []
    priorities = {node['priority_method'] for node in four.json('scnodes')['nodes']}
    level = 'ok' if priorities == {'real-time'} else 'warning'
    assert [one['level'] for one in findings(report, 'priority')] == [level], (priorities, report)
    assert [one['level'] for one in findings(report, 'control')] == ['ok'], report
    assert findings(report, 'pairs')[0]['level'] in ('ok', 'warning'), report
    assert len(report['pairs']) == 6, 'all pairs of 4 nodes'
    for pair in report['pairs']:
        assert pair['round_trip_ns'] > 0
    lines = four.run('score', 'doctor', '--quick').stdout.splitlines()
    assert all(line.split()[0] in ('ok', 'skipped', 'warning') for line in lines), lines
    assert [line for line in lines if line.split()[0] == 'skipped' and 'not measured: --quick' in line], lines


def test_it_shares_the_nodes_with_jobs(four):
    job = four.submit('-N', 4, '--ppn', 2, 'sh', '-c', 'while :; do :; done')
    four.wait_job(job, 'running')
    report = examine(four)
    assert faults(report) == [] and len(report['pairs']) == 6
    four.cancel(job)


def test_files_that_others_can_use(four):
    key = four.directory / 'node02' / 'key'
    config = four.directory / 'node01' / 'scored.toml'
    socket = four.directory / 'head' / 'head.sock'
    key.chmod(0o644)
    config.chmod(0o666)
    socket.chmod(0o600)
    try:
        report = examine(four, '--quick', code=1)
    finally:
        key.chmod(0o600)
        config.chmod(0o600)
        socket.chmod(0o666)
    found = findings(report, 'files')
    assert {tuple(one['nodes']): one['remedy'] for one in found} == {
        ('node02',): f'chmod 600 {key}', ('node01',): f'chmod 644 {config}', (): f'chmod 666 {socket}'}
    assert faults(examine(four, '--quick')) == []


def report_of(cluster):
    return examine(cluster, '--quick', code=None)


def test_a_stopped_daemon_and_a_missing_launcher(fresh):
    cluster = fresh(3, '--cores', 1)
    node = cluster.daemon('node01')['pid']
    os.kill(node, signal.SIGSTOP)
    try:
        report = examine(cluster, '--quick', code=1)
        assert ('answers', ['node01']) in faults(report), report
        wait_until(lambda: [one['nodes'] for one in findings(report_of(cluster), 'nodes')] == [['node01']])
    finally:
        os.kill(node, signal.SIGCONT)
    cluster.wait_up()
    cluster.kill('node02')
    wait_until(lambda: [one['nodes'] for one in findings(report_of(cluster), 'nodes')] == [['node02']])
    assert 'log in the directory of the cluster' in findings(report_of(cluster), 'nodes')[0]['remedy']


@pytest.mark.parametrize('minor, level', [(1, 'warning'), (5, 'fault')])
def test_a_node_of_a_different_release_is_reported(fresh, tmp_path, minor, level):
    """The daemon of this build, with another number in its file."""
    cluster = fresh(2, '--cores', 1)
    release = cluster.json('score', 'info')['version']
    parts = release.split('.')
    parts[1] = str((int(parts[1]) + minor) % 10).rjust(len(parts[1]), '0')
    other = '.'.join(parts)
    program = tmp_path / 'scored'
    program.write_bytes((BIN / 'scored').read_bytes().replace(release.encode() + b'\0', other.encode() + b'\0'))
    program.chmod(0o755)
    daemon = pathlib.Path('/proc') / str(cluster.daemon('node01')['pid'])
    words = (daemon / 'cmdline').read_text().split('\0')[:-1]
    environment = dict(one.split('=', 1) for one in (daemon / 'environ').read_text().split('\0')[:-1])
    cluster.kill('node01')
    process = subprocess.Popen([str(program), *words[1:]], env=environment)
    try:
        cluster.wait_up()
        report = examine(cluster, '--quick', code=1 if level == 'fault' else 0)
        found = findings(report, 'versions')
        assert [(one['level'], one['nodes']) for one in found] == [(level, ['node01'])]
        assert found[0]['text'] == f'release {other}, and the head has {release}'
    finally:
        process.terminate()
        process.wait()


def test_a_node_without_the_controller_cpuset(fresh, as_root):
    """Its daemon is started again where no cgroup hierarchy has the controller; the other node keeps it."""
    cluster = fresh(2, '--cores', 1)
    if not all('cpuset keeps jobs on their cores' in (cluster.directory / 'log' / f'node0{i}').read_text() for i in range(2)):
        pytest.skip('the nodes cannot keep jobs on their cores here')

    def named():
        found = findings(report_of(cluster), 'cgroups')
        return [one['nodes'] for one in found if 'the controller cpuset is not delegated' in one['text']]

    assert named() == []
    daemon = pathlib.Path('/proc') / str(cluster.daemon('node01')['pid'])
    words = (daemon / 'cmdline').read_text().split('\0')[:-1]
    environment = dict(one.split('=', 1) for one in (daemon / 'environ').read_text().split('\0')[:-1])
    cluster.kill('node01')
    hide = 'umount /sys/fs/cgroup/cpuset 2>/dev/null || exit 77; exec "$@"'
    process = subprocess.Popen(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', hide, 'sh',
                                str(BIN / 'scored'), *words[1:]], env=environment)
    try:
        wait_until(lambda: process.poll() is not None or cluster.nodes_up() == 2)
        if process.poll() == 77:
            pytest.skip('cpuset is no version 1 hierarchy of this host')
        report = examine(cluster, '--quick', code=0)
        assert named() == [['node01']], report
        assert 'good enough for trials' in [one['remedy'] for one in findings(report, 'cgroups') if 'cpuset' in one['text']][0]
    finally:
        process.terminate()
        process.wait()


def test_a_node_with_udp_cut(fresh, as_root):
    need_nftables()
    cluster = fresh(4, '--netns', '--cores', 1)
    with without(cluster.daemon('node02'), 'udp'):
        report = examine(cluster, code=1)
    assert faults(report) == [('pairs', ['node02'])], report
    assert 'firewall' in findings(report, 'pairs')[0]['remedy']
    assert faults(examine(cluster)) == []


def test_no_head(tmp_path):
    done = subprocess.run([str(BIN / 'score'), 'doctor', '--server', str(tmp_path / 'none.sock')],
                          capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == ''
    assert done.stdout.startswith('fault    head'), done.stdout
    assert 'start that cluster again' in done.stdout
