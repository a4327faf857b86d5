"""Jobs get PM networks: by shared memory inside a node and by a packet network between nodes."""
import os
import shutil

import pytest

from cluster import EXAMPLES, wait_until

QUEENS = EXAMPLES / 'pm_queens'
PINGPONG = EXAMPLES / 'pm_pingpong'


def open_descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


def test_pm_program_runs_inside_and_between_nodes(few):
    assert '92 solutions' in few.run('scrun', '-N', 4, '--ntasks-per-node', 2, QUEENS, 8).stdout
    assert '92 solutions' in few.run('scrun', '-N', 1, '-n', 2, QUEENS, 8).stdout
    assert 'round trip' in few.run('scrun', '-N', 2, '-n', 2, PINGPONG, 2000).stdout


def test_two_pm_jobs_share_their_nodes(few):
    jobs = [few.start('scrun', '-q', '-N', 4, '--ntasks-per-node', 2, QUEENS, 10) for _ in range(2)]
    for job in jobs:
        out, err = job.communicate(timeout=60)
        assert job.returncode == 0 and '724 solutions' in out, (out, err)


def test_jobs_without_pm_open_nothing(few):
    daemon = few.daemon('node00')['pid']
    before = open_descriptors(daemon)
    job = few.submit('-w', 'node00', 'sleep', 60)
    few.wait_job(job, 'running')
    wait_until(lambda: open_descriptors(daemon) > before)  # its shepherd's connection
    without = open_descriptors(daemon) - before
    few.cancel(job)
    pm = few.submit('-w', 'node00', '-n', 1, 'sh', '-c', f'{QUEENS} 4; sleep 60')
    few.wait_job(pm, 'running')
    # One context and no socket: the job is alone on its node.
    wait_until(lambda: open_descriptors(daemon) - before == without + 1)
    few.cancel(pm)
    wait_until(lambda: open_descriptors(daemon) == before)


def test_network_goes_on_after_restarts(few):
    job = few.start('scrun', '-q', '-N', 2, '-n', 2, 'sh', '-c',
                    f'{QUEENS} 4 && sleep 2 && {PINGPONG} 500')
    wait_until(lambda: any(j['state'] == 'running' for j in few.json('scq', '--active')['jobs']))
    few.restart('node00')
    few.restart('head')
    few.wait_up()
    out, err = job.communicate(timeout=60)
    assert job.returncode == 0 and 'round trip' in out, (out, err, few.logs())


def test_without_a_device_pm_says_why(fresh):
    cluster = fresh(1)
    config = cluster.directory / 'node00' / 'scored.toml'
    configs = [p for p in cluster.directory.rglob('*.toml')]
    for path in configs:
        path.write_text(path.read_text().replace('devices = ["shmem", "udp"]', 'devices = []'))
    assert configs, config
    cluster.restart('node00')
    cluster.wait_up()
    result = cluster.run('scrun', '-n', 1, QUEENS, 4, code=None)
    assert result.returncode != 0
    assert 'no PM network' in result.stderr and 'node00' in result.stderr


@pytest.mark.parametrize('device', ['udp', 'ethernet'])
def test_between_network_namespaces(fresh, as_root, device):
    if shutil.which('ip') is None:
        pytest.skip('needs iproute2')
    cluster = fresh(2, '--netns', '--cores', 2, '--device', device)
    assert '92 solutions' in cluster.run('scrun', '-N', 2, '--ntasks-per-node', 2, QUEENS, 8).stdout
    assert 'round trip' in cluster.run('scrun', '-N', 2, '-n', 2, PINGPONG, 500).stdout
