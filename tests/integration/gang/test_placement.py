"""The distributed queue tree in a real cluster: partitions, turns, and the head's restart."""
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
