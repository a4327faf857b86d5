"""Partitions: sets of nodes with limits and users, which may overlap."""
import json

import pytest
from cluster import wait_until
from head_config import config_of, configure, write
from login_users import other_user
from web import Web, value

PARTITIONS = '''
[accounts.physics]
[partitions.left]
nodes = "node[00-03]"
[partitions.right]
nodes = "node[02-07]"
default = true
max_time = "1h"
order = 5
[partitions.closed]
nodes = "node07"
users = ["daemon"]
accounts = ["physics"]
max_running_jobs = 1
fill = false
'''


@pytest.fixture
def parted(few):
    configure(few, PARTITIONS)
    yield few
    few.cancel_all()
    configure(few, '')


def until(tmp_path, name='go'):
    return 'sh', '-c', f'while [ ! -e {tmp_path}/{name} ]; do sleep 0.05; done'


def why(cluster, job):
    return cluster.run('scq', '--why', job).stdout


def numbers(nodes):
    return [int(node[-2:]) for node in nodes]


def test_lists_show_partitions_only_where_there_are_any(few):
    assert 'PARTITION' not in few.run('scnodes').stdout + few.run('scq').stdout
    assert 'partitions' not in few.json('score', 'info') and 'license' not in few.run('score', 'info').stdout
    assert few.run('score', 'partitions', '--no-header').stdout == ''
    assert few.run('scrun', '-p', 'left', 'true', code=125).stderr == 'scrun: no partition left: this cluster has no partitions\n'
    assert 'no partition left' in few.run('scnodes', '-p', 'left', code=None).stderr


def test_jobs_run_on_the_nodes_of_their_partition(parted):
    """Overlapping partitions share nodes in time; steps run where their job does."""
    left = parted.submit('-p', 'left', '-N', 4, '--ppn', 2, 'sleep', '1000')
    right = parted.submit('-N', 6, '--ppn', 2, 'sleep', '1000')
    jobs = {job: parted.wait_job(job, 'running') for job in (left, right)}
    assert numbers(jobs[left]['nodes']) == [0, 1, 2, 3] and jobs[left]['partition'] == 'left'
    assert numbers(jobs[right]['nodes']) == [2, 3, 4, 5, 6, 7] and jobs[right]['partition'] == 'right'
    assert jobs[left]['slot'] != jobs[right]['slot']
    shown = parted.run('scq', '-p', 'left').stdout
    assert 'PARTITION' in shown and f' {left} ' in f' {shown} ' and ' right ' not in shown, shown
    assert [job['job'] for job in parted.json('scq', '--partition', 'left,closed', '--active')['jobs']] == [left]
    assert f' {"partition"}  left\n' in parted.run('score', 'job', left).stdout
    (parted.directory / 'job.sh').write_text('#!/bin/sh\n#SBATCH -p left -N 2\nscrun true\n')
    script = int(parted.run('scbatch', 'job.sh', cwd=parted.directory).stdout)
    assert set(numbers(parted.wait_job(script, 'completed')['nodes'])) <= {0, 1, 2, 3}
    parted.run('sccancel', '-p', 'left', '--user', 'root')
    parted.wait_job(left, 'cancelled')
    row, = parted.json('scacct', '-p', 'left', left)['jobs']
    assert row['partition'] == 'left'
    assert parted.run('scacct', '-p', 'right', left).stdout.count('\n') <= 1
    assert parted.run('scacct', left, '-o', 'job,partition', '--no-header').stdout.split() == [str(left), 'left']


def test_lists_show_partitions(parted):
    shown = parted.run('scnodes', '-p', 'closed').stdout
    assert 'PARTITIONS' in shown and 'closed,right' in shown and shown.count('\n') == 2, shown
    assert [node['node'] for node in parted.json('scnodes', '-p', 'left')['nodes']] == [f'node0{n}' for n in range(4)]
    names = [row['partition'] for row in parted.json('score', 'partitions')['partitions']]
    assert names == ['closed', 'left', 'right'], names
    page = parted.run('score', 'partitions').stdout
    assert 'right*' in page and '6/6' in page and '1h' in page and 'running_jobs 1, no fill' in page, page
    assert max(len(line) for line in page.splitlines()) <= 80, page
    assert parted.run('score', 'partitions', '-o', 'users', '--no-header').stdout.split('\n')[0] == 'daemon,account physics'
    info = parted.json('score', 'info')
    right = info['partitions'][2]
    assert (right['default'], right['nodelist'], right['nodes_up'], right['max_time_s']) == (True, 'node[02-07]', 6, 3600)
    assert 'right (default): 6 nodes, 6 up' in parted.run('score', 'info').stdout
    assert json.loads(parted.run('scrun', '--dry-run', '--json', '-p', 'left', '-N', 4, 'true').stdout)


def test_limits_of_a_partition_are_named(parted):
    with other_user(parted) as nobody:
        refused = nobody.run('scrun', '-t', '2h', 'true', code=125).stderr
        assert refused == 'scrun: requested a time limit of 2h; partitions.right.max_time of the head is 1h\n', refused
        refused = nobody.run('scrun', '-p', 'closed', '-A', 'physics', '-N', 2, 'true', code=125).stderr
        assert refused == 'scrun: requested 2 nodes; partition closed has 1\n', refused
        first = int(nobody.run('scrun', '--detach', '-p', 'closed', '-A', 'physics', 'sleep', '1000').stdout)
        parted.wait_job(first, 'running')
        assert parted.job(first)['scheduled_limit_s'] == 0 and parted.job(first)['no_fill']
        second = int(nobody.run('scrun', '--detach', '-p', 'closed', '-A', 'physics', 'true').stdout)
        assert 'partitions.closed.max_running_jobs is 1: its user has 1 running\n' in why(parted, second)
        third = int(nobody.run('scrun', '--detach', '-A', 'physics', 'true').stdout)
        assert parted.wait_job(third, 'completed')['scheduled_limit_s'] == 3600
        configure(parted, PARTITIONS.replace('accounts = ["physics"]', ''))
        refused = nobody.run('scrun', '-p', 'closed', '-A', 'physics', 'true', code=125).stderr
        assert refused == 'scrun: user nobody may not use partition closed; yours: left, right\n', refused
        nobody.run('sccancel', first)
        parted.wait_job(second, 'completed')


def test_a_reload_and_a_restart_keep_waiting_jobs(parted):
    few = parted
    running = few.submit('-p', 'left', '-N', 4, '--queue', 'exclusive', 'sleep', '1000')
    few.wait_job(running, 'running')
    waiting = few.submit('-p', 'left', '-N', 2, 'true')
    assert 'partition left: node[00-03]' in why(few, waiting)
    write(few, '[partitions.other]\nnodes = "node07"\n')
    few.run('scadm', 'reload')
    assert why(few, waiting).startswith('partition left was removed from the configuration\n')
    few.kill('head')
    few.restart('head')
    few.wait_up()
    assert few.job(running)['state'] == 'running' and few.job(waiting)['state'] == 'pending'
    assert why(few, waiting).startswith('partition left was removed from the configuration\n')
    configure(few, '[partitions.left]\nnodes = "node[05-06]"\n')
    assert numbers(few.wait_job(waiting, 'completed')['nodes']) == [5, 6]


def test_metrics_count_jobs_of_partitions(parted, tmp_path):
    job = parted.submit('-p', 'left', *until(tmp_path))
    parted.wait_job(job, 'running')
    web = Web(parted.json('score', 'info')['dashboard_url'])

    def is_shown(figure, labels, wanted):
        answer = web.ask('/metrics')
        return answer.status == 200 and value(answer.body.decode(), figure, labels) == wanted
    wait_until(lambda: is_shown('scored_partition_jobs', '{partition="left",state="placed"}', 1))
    wait_until(lambda: is_shown('scored_partition_nodes_up', '{partition="right"}', 6))
    (tmp_path / 'go').touch()


def test_a_bad_table_is_one_line_and_changes_nothing(few):
    for bad, word in [('[partitions.a]\n', 'needs at least one node'), ('[partitions.a]\nnodes = "node99"\n', 'node99 is not one of the nodes'),
                      ('[partitions.a]\nnodes = "node00"\ndefault = true\n[partitions.b]\nnodes = "node00"\ndefault = true\n', 'the default already'),
                      ('[partitions.a]\nnodes = "node00"\nmax_time = 3\n', 'max_time'),
                      ('[partitions.a]\nnodes = "node00"\naccounts = ["x"]\n', 'accounts.x')]:
        write(few, bad)
        for command in (('scadm', 'reload'), ('scored', '--role=head', '--config', config_of(few), '--check-config')):
            result = few.run(*command, code=None)
            assert result.returncode != 0 and word in result.stderr and 'scored.toml:' in result.stderr, result
            assert result.stderr.count('\n') == 1, result.stderr
    configure(few, '')
    assert few.run('scrun', 'echo', 'works').stdout == 'works\n'


def test_tasks_and_steps_know_their_partition(parted):
    show = ('sh', '-c', 'echo $SCORE_PARTITION $SLURM_JOB_PARTITION')
    assert parted.run('scrun', '-n', 1, '--slurm-env', '-p', 'left', *show).stdout == 'left left\n'
    inside = parted.run('scalloc', '-n', 1, '-p', 'left', 'sh', '-c', 'echo $SCORE_PARTITION; scrun sh -c "echo \\$SCORE_PARTITION"')
    assert inside.stdout.split() == ['left', 'left']
