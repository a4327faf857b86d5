"""Switches: jobs get nodes near each other, and may wait for that."""
import pytest
from head_config import config_of, configure, write

SWITCHES = '''
[topology.leaf0]
nodes = "node[00-01]"
[topology.leaf1]
nodes = "node[02-03]"
[topology.top]
switches = "leaf[0-1]"
'''


@pytest.fixture
def near(fresh):
    cluster = fresh(4, '--cores', 1)
    configure(cluster, SWITCHES)
    cluster.run('scadm', 'set', 'slots', 1)
    yield cluster
    cluster.cancel_all()


def why(cluster, job):
    return cluster.run('scq', '--why', job).stdout


def running(cluster, *words):
    job = cluster.submit(*words, 'sleep', 1000)
    return job, cluster.wait_job(job, 'running')['nodes']


def test_jobs_get_nodes_of_one_switch(near):
    leaves = {row['node']: row['leaf_switch'] for row in near.json('scnodes')['nodes']}
    assert leaves == {'node00': 'leaf0', 'node01': 'leaf0', 'node02': 'leaf1', 'node03': 'leaf1'}
    assert near.run('scnodes', '--no-header', '-o', 'node,leaf').stdout.split()[:2] == ['node00', 'leaf0']
    _, first = running(near, '-N', 1)
    assert first == ['node00']
    assert running(near, '-N', 2)[1] == ['node02', 'node03']
    assert running(near, '-N', 1)[1] == ['node01']


def test_a_job_waits_for_a_near_place_as_long_as_it_says(near):
    one, _ = running(near, '-w', 'node00')
    other, _ = running(near, '-w', 'node02')
    short = near.submit('-N', 2, '--switches', '1@3s', 'sleep', 1000)
    assert 'waits for nodes within 1 switch, for 3s at most (--switches)' in why(near, short)
    assert near.wait_job(short, 'running')['nodes'] == ['node01', 'node03']
    near.run('sccancel', '--grace', 0, short)
    waiting = near.submit('-N', 2, '--switches', '1@1h', 'sleep', 1000)
    near.run('sccancel', '--grace', 0, other)
    assert near.wait_job(waiting, 'running')['nodes'] == ['node02', 'node03']
    assert near.job(one)['state'] == 'running'


def test_a_bound_that_can_never_hold_is_refused(near):
    refused = lambda *words: near.run('scrun', *words, 'true', code=125).stderr
    assert 'requested nodes within 1 switch (--switches); it needs 2' in refused('-N', 3, '--switches', 1)
    assert "--switches '0': must be a number" in refused('-N', 2, '--switches', 0)
    assert "--switches 'one': must be a number" in refused('-N', 2, '--switches', 'one')
    assert "--switches '1@soon'" in refused('-N', 2, '--switches', '1@soon')
    assert near.run('scrun', '-N', 4, '--switches', 2, 'echo', 'x').stdout == 'x\n' * 4
    configure(near, '')  # without switches every node is near
    assert near.run('scrun', '-N', 3, '--switches', 1, 'echo', 'x').stdout == 'x\n' * 3


@pytest.mark.parametrize('text, message', [
    ('[topology.a]\nnodes = "node09"\n', 'node09 is not one of the nodes'),
    ('[topology.a]\nswitches = "b"\n[topology.b]\nswitches = "a"\n', 'switch a is below itself'),
    ('[topology.a]\nnodes = "node00"\n[topology.b]\nnodes = "node00"\n', 'switch b: another switch has node00 already'),
    ('[topology.a]\n', 'switch a: give either nodes or switches')])
def test_a_broken_tree_is_named(few, text, message):
    before = config_of(few).read_text()
    write(few, text)
    for command in (('scadm', 'reload'), ('scored', '--role=head', '--config', config_of(few), '--check-config')):
        assert message in few.run(*command, code=None).stderr
    config_of(few).write_text(before)
    few.run('scadm', 'reload')
