"""Nodes that reboot, programs of another version, configurations that are wrong."""
import contextlib
import os
import pathlib
import signal
import subprocess
import time

import pytest
from cluster import BIN, is_alive, wait_until
from figures import figure
from frames import Schema
from test_clients import client

SCHEMA = Schema()


def test_jobs_of_a_node_that_rebooted_end_at_once(fresh, as_root):
    """All its processes are gone and nothing of /run is left; the timeout of silent nodes is an hour."""
    cluster = fresh(2, '--node-timeout', '1h')
    tree = pathlib.Path(cluster.description['cgroup'] or '/none') / 'node01'
    if not tree.exists():
        pytest.skip('needs cgroups')
    job = cluster.submit('-N', 2, '--no-requeue', 'sleep', 1000)
    other = cluster.submit('-N', 1, '-w', 'node00', 'sleep', 1000)
    for each in (job, other):
        cluster.wait_job(each, 'running')
    began = time.monotonic()
    cluster.kill('node01')
    cluster.kill('launcher-node01')
    for file in tree.glob('job_*/*/cgroup.procs'):
        for pid in file.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    for name in (cluster.directory / 'node01/shepherds').iterdir():
        name.unlink()
    cluster.restart('launcher-node01')
    cluster.restart('node01')
    end = cluster.wait_job(job, 'node-failed', 'failed', limit=60)
    took = time.monotonic() - began
    assert any('node01' in reason for reason in end['reasons']), end
    cluster.wait_up()
    assert cluster.job(other)['state'] == 'running'
    assert cluster.run('scrun', '-q', '-N', 2, 'echo', 'x').stdout == 'x\n' * 2
    cluster.cancel_all()
    figure('F24', f'ended {took:.1f} s after the crash; timeout 1 h')


def test_another_version_is_refused_with_both(few):
    with client(few, 90, 91) as (peer, answer):
        kind, payload = answer
        assert kind == SCHEMA.frames['Failed'][0]
        assert b'90..91' in payload and b'1..1' in payload, payload
        assert peer.recv(1) == b''
    assert few.nodes_up() == few.nodes
    figure('F28', 'refused with both versions')


def test_a_node_with_a_bad_configuration_stays_out(fresh):
    cluster = fresh(2)
    path = cluster.directory / 'node01/scored.toml'
    good = path.read_text()
    cluster.kill('node01')
    for text, says in ((good + 'bogus = 1\n', 'bogus'), (good.replace('cores = 1', 'cores = "many"'), 'cores'), ('[node', '')):
        path.write_text(text)
        result = subprocess.run([BIN / 'scored', '--role=node', '--config', path], capture_output=True, text=True, timeout=60,
                                check=False)
        assert result.returncode != 0 and len(result.stderr.strip().splitlines()) == 1, result
        assert str(path) in result.stderr and says in result.stderr, result
        assert cluster.run('scrun', '-q', '-w', 'node00', 'echo', 'x').stdout == 'x\n'
    path.write_text(good)
    cluster.restart('node01')
    cluster.wait_up()
    figure('F28', '3 bad configurations refused with file and key')


def test_a_broken_configuration_is_not_taken(fresh):
    cluster = fresh(2)
    job = cluster.submit('-N', 2, 'sleep', 600)
    cluster.wait_job(job, 'running')
    daemons = [cluster.daemon(name)['pid'] for name in ('head', 'node00', 'launcher-node00')]
    path = cluster.directory / 'head/scored.toml'
    good = path.read_text()
    for text in ('[head', good + '[head]\n', good.replace('slots = 64', 'slots = "none"'), good + 'bogus = 1\n', ''):
        path.write_text(text)
        os.kill(daemons[0], signal.SIGHUP)
        assert cluster.run('scadm', 'reload', code=None).returncode != 0
        assert cluster.run('scrun', '-q', '-N', 2, 'echo', 'x').stdout == 'x\n' * 2
    path.write_text(good)
    cluster.run('scadm', 'reload')
    for pid in daemons:
        os.kill(pid, signal.SIGPIPE)
    assert cluster.run('scrun', '-q', '-N', 2, 'echo', 'x').stdout == 'x\n' * 2
    assert all(is_alive(pid) for pid in daemons) and cluster.job(job)['state'] == 'running'
    cluster.cancel(job)
    figure('S37', '5 broken files refused, the old one in force')
