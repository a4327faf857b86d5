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


def test_why_and_equal_shares(pair):
    """Two long jobs of one user that ask for it have equal shares, although one is ahead."""
    pair.run('scadm', 'set', 'slots', 64)
    pair.run('scadm', 'set', 'young', '0s')
    spin = ('-N', 2, EXAMPLES / 'pi', '--seconds', 600)
    alone = pair.submit('-t', '2h', *spin)
    wait_until(lambda: 'share 100%' in pair.run('scq', '--why', alone).stdout)
    waits = pair.submit('-t', '2h', *spin)
    second = pair.submit('-t', '10m', *spin)
    wait_until(lambda: f'job {alone} is ahead' in pair.run('scq', '--why', second).stdout)
    wait_until(lambda: 'counts 48 times' in pair.run('scq', '--why', alone).stdout)
    assert 'run one after the other' in pair.run('scq', '--why', waits).stdout
    pair.run('sccancel', alone, waits, second)
    jobs = [pair.submit('-t', '2h', '--share', 'equal', *spin)]
    waits = pair.submit('-t', '2h', *spin)
    jobs.append(pair.submit('-t', '10m', '--share', 'equal', '--weight', 50, *spin))
    wait_until(lambda: [round(pair.job(job)['share'], 1) for job in jobs] == [0.5, 0.5])
    assert f'divided equally with job {jobs[1]}' in pair.run('scq', '--why', jobs[0]).stdout
    assert pair.job(jobs[0])['equal_share']
    assert 'share 50%' in pair.run('score', 'job', jobs[0]).stdout


def test_unknown_share_is_refused(pair):
    out = pair.run('scrun', '--share', 'all', 'true', code=None)
    assert out.returncode != 0 and '--share' in out.stderr
