"""Placement in a real cluster: the partitions of the distributed queue tree, and the slots that short jobs always find."""
import pytest
from cluster import EXAMPLES, LIMIT, Cluster, wait_until


@pytest.fixture(scope='module')
def tree():
    cluster = Cluster(4, '--slice', '50ms', '--placement', 'dqt')
    yield cluster
    cluster.stop()


def running(cluster):
    return [job for job in cluster.json('scq', '--active')['jobs'] if job['state'] == 'running']


def test_dqt_gives_jobs_nested_partitions_and_all_of_them_turns(tree):
    """A on all nodes, B and C on halves of them, D on one node: the least loaded partitions, in three rows."""
    jobs = []
    for nodes in (4, 2, 2, 1):
        jobs.append(tree.start('scrun', '-q', '-N', nodes, EXAMPLES / 'ring', '--seconds', 3))
        wait_until(lambda: len(running(tree)) == len(jobs))
    by_size = sorted(running(tree), key=lambda job: job['job'])
    assert [job['nodes'] for job in by_size[1:3]] == [['node00', 'node01'], ['node02', 'node03']]
    assert by_size[3]['nodes'] == ['node00']
    assert all(job['share'] > 0 for job in by_size)
    for job in jobs:
        out, err = job.communicate(timeout=LIMIT)
        assert job.returncode == 0 and 'correct' in out, (out, err)


def has_half_while_young(cluster):
    """Starts one more job, and returns True if it was seen with half of the time before it was old."""
    job = cluster.submit('-n', 1, EXAMPLES / 'pi', '--seconds', 600)
    wait_until(lambda: cluster.job(job)['state'] == 'running')
    seen = cluster.job(job)
    while seen['scheduled_s'] < 2 and seen['share'] < 0.49:
        seen = cluster.job(job)
    cluster.run('sccancel', job)
    return seen['share'] >= 0.49


@pytest.mark.parametrize('limit', [(), ('-t', '10m')])
def test_each_job_starts_beside_nine_long_ones(pair, limit):
    """All ten run at once, and the last is the only young one."""
    pair.run('scadm', 'set', 'slots', 64)
    pair.run('scadm', 'set', 'young', '2s')
    jobs = [pair.submit(*limit, '-N', 2, EXAMPLES / 'pi', '--seconds', 600) for _ in range(9)]
    wait_until(lambda: len(running(pair)) == 9)
    wait_until(lambda: all(pair.job(job)['scheduled_s'] > 2 for job in jobs))
    wait_until(lambda: has_half_while_young(pair))


def test_short_job_starts_beside_nine_long_ones(pair):
    """Jobs of 10 minutes on both nodes would hold all 8 slots for as long."""
    pair.run('scadm', 'set', 'slots', 8)
    jobs = [pair.submit('-t', '10m', '-N', 2, 'sleep', 600) for _ in range(9)]
    wait_until(lambda: len(running(pair)) == 6)
    pair.run('scrun', '-q', '-n', 1, '-t', '1m', 'true')
    pair.run('scrun', '-q', '-n', 1, 'true')
    assert 'jobs with a time limit over 5m hold 6 of 8 slots' in pair.run('scq', '--why', jobs[-1]).stdout


def test_short_job_starts_beside_nine_without_limit(pair):
    pair.run('scadm', 'set', 'slots', 8)
    jobs = [pair.submit('-N', 2, 'sleep', 600) for _ in range(9)]
    wait_until(lambda: len(running(pair)) == 7)
    pair.run('scrun', '-q', '-n', 1, '-t', '1m', 'true')
    assert '--time of at most 5m' in pair.run('scq', '--why', jobs[-1]).stdout
