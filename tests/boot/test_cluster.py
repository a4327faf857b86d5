"""The installed cluster in use: jobs, users, limits, and what happens to machines and units meanwhile."""
import re

import pytest
from bed import LIMIT, wait_until
from booted_cluster import BIN, EXAMPLES, install

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


def test_node_keys_are_rotated_and_revoked_while_a_job_runs(cluster):
    node = cluster.nodes[0]
    job = cluster.submit('alice', '-N', '2', 'sleep', '1000')
    cluster.wait_for(job, 'running')
    keys = [node.read('/etc/scored/node.key')]
    for command in ('rotate', 'revoke'):
        printed = cluster.head.run('scadm', 'key', command, node.name).stdout
        line = re.search(rf'^{node.name}: (scored-setup node --token \S+)$', printed, re.M)
        assert line, printed
        if command == 'revoke':
            wait_until(lambda: cluster.states()[node.name] != 'up', 'the revoked key is refused')
        node.run('sh', '-c', line[1])
        cluster.wait_for_nodes()
        keys.append(node.read('/etc/scored/node.key'))
        assert node.run('stat', '-c', '%U %a', '/etc/scored/node.key').stdout == 'scored-node 600\n'
    assert len(set(keys)) == 3
    assert cluster.job(job)['state'] == 'running' and cluster.job(job)['restarts'] == 0
    cluster.head.run('sccancel', str(job), user='alice')
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


def test_a_guard_runs_beside_each_node_daemon(cluster):
    """In the unit's sandbox too: it thaws the jobs when the daemon is gone."""
    cluster.head.run('scrun', '-N', '2', 'true', user='alice')
    for machine in cluster.nodes:
        assert 'scored-thaw --guard' in machine.run('ps', '-eo', 'args').stdout, machine.journal('-u', 'scored-node')


def test_a_program_of_mpich_communicates(cluster):
    """Not its end: in MPI_Finalize MPICH 4.0 over UCX may wait for ever between hosts (docs/guide/mpi.md)."""
    program = EXAMPLES / 'ring'
    if not program.exists():
        pytest.skip(f'{program} was not built')
    for machine in (cluster.head, *cluster.nodes):
        machine.copy(program, '/usr/local/bin/ring-mpich')
    done = cluster.head.run('scrun', '-N', '1', '-n', '4', '/usr/local/bin/ring-mpich', user='alice')
    assert 'ring: 4 ranks' in done.stdout and done.stdout.endswith('correct\n')
    on_two = cluster.head.start('scrun', '-N', '2', '-n', '4', '/usr/local/bin/ring-mpich', user='alice')
    assert on_two.stdout.readline().endswith('correct\n')
    for job in cluster.head.json('scq', '--all', '--active')['jobs']:
        cluster.head.run('sccancel', '--grace', '0', job['job'], code=None)
    on_two.communicate(timeout=LIMIT)


def test_a_newer_mpich_runs_over_pm(cluster):
    library = BIN.parent / 'mpi/mpich/lib'
    if not (library / 'libmpi.so.12').exists() or not (EXAMPLES / 'ring').exists():
        pytest.skip(f'{library} is missing (tests/mpi_wheels.sh makes it), or {EXAMPLES}/ring')
    for machine in (cluster.head, *cluster.nodes):
        machine.copy(library / 'libmpi.so.12', '/opt/mpich/libmpich.so.12')
        for file in library.glob('mpich/lib*.so*'):
            machine.copy(file, f'/opt/mpich/mpich/{file.name}')
        machine.copy(EXAMPLES / 'ring', '/usr/local/bin/ring-mpich')
    done = cluster.head.run('env', 'LD_LIBRARY_PATH=/opt/mpich', 'scrun', '-N', '2', '-n', '4', '--net=pm',
                            '/usr/local/bin/ring-mpich', user='alice')
    assert 'ring: 4 ranks' in done.stdout and done.stdout.endswith('correct\n')


SCRATCH = """cd $SCORE_SCRATCH && echo $(hostname) $(id -un) > $SCORE_RANK && until [ -e 0 ] && [ -e 1 ]; do sleep 0.1; done
cat 0 1"""


def test_scratch_is_one_file_system_on_both_nodes(cluster):
    """Through the units' sandboxes: the launcher has a directory made, the job's user mounts in it."""
    for node in cluster.nodes:
        install(node, ['scored-pario'])
        if node.run('sh', '-c', '[ -e /dev/fuse ] || mknod /dev/fuse c 10 229; chmod 666 /dev/fuse && exec 3<>/dev/fuse', code=None).returncode:
            pytest.skip('machines cannot open /dev/fuse here')
        node.run('sed', '-i', r's/^# path = /path = /; s/^# capacity = .*/capacity = "64M"/', '/etc/scored/scored.toml')
        node.run('systemctl', 'restart', 'scored-node')
    wait_until(lambda: [node['scratch_bytes'] for node in cluster.head.json('scnodes')['nodes']].count(64 << 20) == 2,
               'both nodes offer scratch')
    done = cluster.head.run('scrun', '-q', '-N', '2', '--scratch', '20M', 'sh', '-c', SCRATCH, user='alice')
    assert sorted(done.stdout.splitlines()) == ['node00 alice', 'node00 alice', 'node01 alice', 'node01 alice']
    for node in cluster.nodes:
        place = '/var/lib/scored-scratch'
        assert node.run('stat', '-c', '%U %a', place, f'{place}/2001').stdout == 'root 755\nalice 700\n'
        wait_until(lambda: node.run('ls', f'{place}/2001').stdout == '', 'the volume is gone')


@pytest.fixture
def other_release(cluster):
    """Puts the daemon of another release on node01, and at last its own one back."""
    node = cluster.nodes[1]

    def put(name):
        program = BIN.parent / 'test' / name
        if not program.exists():
            pytest.skip(f'{program} is not built')
        node.copy(program, '/usr/sbin/scored')
        node.run('systemctl', 'restart', 'scored-node', code=None)
        return node

    node.run('cp', '-a', '/usr/sbin/scored', '/root/scored.kept')
    yield put
    node.run('mv', '/root/scored.kept', '/usr/sbin/scored')
    node.run('systemctl', 'restart', 'scored-node')
    cluster.wait_for_nodes()


def test_a_node_one_version_newer_works_with_the_others(cluster, other_release):
    job = cluster.submit('alice', '-N', '2', 'sleep', '600')
    cluster.wait_for(job, 'running')
    other_release('scored-next')
    cluster.wait_for_nodes()
    assert cluster.head.run('scrun', '-N', '2', 'echo', 'ran', user='alice').stdout == 'ran\nran\n'
    assert cluster.job(job)['state'] == 'running'
    cluster.head.run('sccancel', '--grace', '0', job, user='alice')


def test_a_node_without_a_common_version_is_named_with_both(cluster, other_release):
    node = other_release('scored-later')
    line = r'node01 \(release \S+\) speaks versions 3\.\.3, this program 1\.\.1; install release \S+ on node01'
    wait_until(lambda: re.search(line, cluster.head.journal('-u', 'scored-head')), "the head's line")
    wait_until(lambda: re.search('the head refuses: ' + line, node.journal('-u', 'scored-node')), "the node's line")


def test_exposure_of_the_units(cluster):
    """The launcher's has no bound: what the launcher may not do, no job could do."""
    for machine, unit, bound in ((cluster.head, 'head', 1.3), (cluster.nodes[0], 'node', 1.5),
                                 (cluster.nodes[0], 'launcher', 10)):
        shown = machine.run('systemd-analyze', 'security', '--no-pager', f'scored-{unit}').stdout
        exposure = float(re.search(r'exposure level .*: ([0-9.]+)', shown)[1])
        print(f'exposure of {unit}: {exposure} (bound {bound})')
        assert exposure <= bound, shown


def test_root_may_read_the_key_of_the_head(cluster):
    cluster.head.run('sh', '-c', 'cd /root && scored --role=head --node-key node00 && rm node00.key')


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
