"""The installed cluster in use: jobs, users, limits, and what happens to machines and units meanwhile."""
import pytest
from bed import wait_until
from booted_cluster import EXAMPLES

BUSY = 'end=$(($(date +%s) + {})); while [ $(date +%s) -lt $end ]; do :; done; echo done'


def test_a_job_runs_on_both_nodes(cluster):
    assert set(cluster.states().values()) == {'up'}
    done = cluster.head.run('scrun', '-N', '2', 'sh', '-c', 'echo $(hostname) $(id -un)', user='alice')
    assert sorted(done.stdout.splitlines()) == ['node00 alice', 'node01 alice']


def test_users_work_from_the_login_node(cluster):
    done = cluster.login.run('scrun', '-N', '2', 'id', '-un', user='alice')
    assert done.stdout == 'alice\nalice\n'


def test_jobs_of_two_users_share_the_nodes_in_time(cluster):
    jobs = [cluster.submit(user, '-N', '2', '--ntasks-per-node', '2', 'sh', '-c', BUSY.format(600))
            for user in ('alice', 'bob')]
    for job in jobs:
        cluster.wait_for(job, 'running')
    wait_until(lambda: all(cluster.job(job)['slices'] > 10 for job in jobs), 'both jobs have had slices')
    assert [cluster.job(job)['share'] for job in jobs] == [0.5, 0.5]
    refused = cluster.head.run('sccancel', str(jobs[1]), user='alice', code=None)
    assert refused.returncode != 0 and cluster.job(jobs[1])['state'] == 'running'
    cluster.head.run('sccancel', '--grace', '0', *map(str, jobs), user='bob')  # an operator may
    for job in jobs:
        cluster.wait_for_end(job, 'cancelled')


@pytest.mark.parametrize('options', [[], ['--net=pm']], ids=['tcp', 'pm'])
def test_a_program_of_open_mpi_runs(cluster, options):
    program = EXAMPLES / 'openmpi/ring'
    if not program.exists():
        pytest.skip(f'{program} was not built')
    for machine in (cluster.head, *cluster.nodes):
        machine.copy(program, '/usr/local/bin/ring')
    done = cluster.head.run('scrun', '-N', '2', '-n', '4', *options, '/usr/local/bin/ring', user='alice')
    assert 'ring: 4 ranks' in done.stdout and done.stdout.endswith('correct\n')


def test_only_operators_set_the_quantum(cluster):
    assert cluster.head.run('scadm', 'set', 'quantum', '50ms', user='alice', code=None).returncode != 0
    cluster.head.run('scadm', 'set', 'quantum', '50ms', user='bob')
    assert cluster.head.json('scadm', 'get')['quantum'] == '50ms'
    cluster.head.run('systemctl', 'restart', 'scored-head')
    cluster.wait_for_nodes()
    assert cluster.head.json('scadm', 'get')['quantum'] == '50ms'
    cluster.head.run('scadm', 'set', 'quantum', '100ms', user='bob')


@pytest.mark.parametrize('unit', ['head', 'node', 'launcher'])
def test_a_job_outlives_the_restart_of_a_unit(cluster, unit):
    job = cluster.submit('alice', '-N', '2', 'sh', '-c', BUSY.format(6))
    cluster.wait_for(job, 'running')
    machine = cluster.head if unit == 'head' else cluster.nodes[0]
    machine.run('systemctl', 'restart', f'scored-{unit}')
    cluster.wait_for_end(job, 'completed')
    cluster.wait_for_nodes()


def test_a_node_whose_cable_was_cut_comes_back(cluster):
    cut = cluster.nodes[1]
    cut.cut()
    wait_until(lambda: cluster.states()['node01'] != 'up', 'the head misses node01')
    assert cluster.head.run('scrun', '-w', 'node00', 'hostname', user='bob').stdout == 'node00\n'
    cut.heal()
    cluster.wait_for_nodes()
    cluster.head.run('scrun', '-N', '2', 'true', user='alice')


def test_a_rebooted_node_comes_back_and_its_jobs_end(cluster):
    job = cluster.submit('alice', '-N', '2', 'sleep', '600')
    cluster.wait_for(job, 'running')
    cluster.nodes[1].reboot()
    cluster.wait_for_end(job, 'node-failed')
    cluster.wait_for_nodes()
    cluster.head.run('scrun', '-N', '2', 'true', user='alice')


def test_the_journal_has_the_life_of_a_job(cluster):
    job = cluster.submit('alice', '-N', '2', 'true')
    cluster.wait_for_end(job, 'completed')
    entries = ['journalctl', '-q', '-u', 'scored-head', f'JOB_ID={job}', '-o', 'cat']
    wait_until(lambda: len(cluster.head.run(*entries).stdout.splitlines()) >= 2, 'its start and its end are there')
    explained = cluster.head.run('journalctl', '-q', '-x', '-u', 'scored-head', f'JOB_ID={job}').stdout
    assert f'Subject: Job {job} of alice' in explained


def test_a_job_cannot_use_more_memory_than_it_asked_for(cluster):
    controllers = cluster.nodes[0].read('/sys/fs/cgroup/cgroup.controllers').split()
    if 'memory' not in controllers:
        pytest.skip('the controller memory is in a version 1 hierarchy of this host, so --mem is not enforced here')
    eat = 'b = bytearray(400 << 20); print(len(b))'
    done = cluster.head.run('scrun', '-N', '1', '--mem', '100M', 'python3', '-c', eat, user='alice', code=None)
    assert done.returncode != 0
    assert cluster.head.run('scrun', '-N', '1', '--mem', '600M', 'python3', '-c', eat, user='alice').stdout


def test_prometheus_metrics_are_served(cluster):
    address = cluster.head.json('score', 'info')['dashboard_url'].split('?')[0].rstrip('/')
    address = '/'.join(address.split('/')[:3])
    metrics = cluster.head.run('curl', '--silent', '--show-error', '--fail', f'{address}/metrics').stdout
    assert 'score_' in metrics, metrics[:500]


def test_no_unit_has_failed(cluster):
    for machine in cluster.machines:
        failed = machine.run('systemctl', '--failed', '--plain', '--no-legend').stdout
        assert failed == '', machine.journal()
