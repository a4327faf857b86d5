"""The installed cluster: jobs through the service manager's units."""


def test_a_job_runs_on_both_nodes(cluster):
    assert cluster.states() == {'up'}
    done = cluster.head.run('scrun', '-N', '2', 'sh', '-c', 'echo $(hostname) $(id -un)', user='alice')
    assert sorted(done.stdout.splitlines()) == ['node00 alice', 'node01 alice']
