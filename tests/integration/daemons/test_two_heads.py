"""Two heads: the second follows the first one's log and takes over when that is gone."""
import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import statistics
import subprocess
import threading
import time

from cluster import BIN, LIMIT, free_port, wait_until
from figures import figure
from forwarder import Forwarder
from wire_client import WireClient

HEADS = ('head', 'head2')


def at_node(cluster, node='node00'):
    """Commands go through a node's daemon, which passes them on to the head in charge."""
    return {'SCORED_SERVER': str(cluster.directory / node / 'commands.sock')}


def info(cluster, node='node00'):
    result = cluster.run('score', 'info', '--json', code=None, extra_env=at_node(cluster, node))
    return json.loads(result.stdout) if result.returncode == 0 else None


def in_charge(cluster):
    """The head in charge, once all nodes are connected to it; None: none."""
    answer = info(cluster)
    if answer is None or answer['nodes_up'] != cluster.nodes:
        return None
    leads = [head['in_charge'] for head in answer['heads']]
    assert leads.count(True) == 1, answer['heads']
    return HEADS[leads.index(True)]


def has_current_follower(cluster):
    answer = info(cluster)
    return answer is not None and any(head['state'] == 'current' for head in answer['heads'])


def is_ready(cluster):
    return in_charge(cluster) is not None and has_current_follower(cluster)


def jobs(cluster):
    """Names by number, of all jobs that the head in charge knows."""
    listed = json.loads(cluster.run('scq', '-a', '--json', extra_env=at_node(cluster)).stdout)['jobs']
    return {job['job']: job['name'] for job in listed}


def stored_jobs(cluster, head):
    """The same of all jobs in a head's database."""
    with contextlib.closing(sqlite3.connect(f'file:{cluster.directory}/{head}/jobs.db?mode=ro', uri=True)) as database:
        return dict(database.execute('SELECT id, name FROM jobs'))


def other(head):
    return HEADS[1 - HEADS.index(head)]


def boot(fresh):
    cluster = fresh(4, '--heads', '2')
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    return cluster


def test_the_follower_takes_over_again_and_again(fresh):
    """The head in charge is killed in turn, while clients submit, a job runs and an scrun is attached."""
    cluster = boot(fresh)
    acknowledged, stop = [], threading.Event()

    def submit(worker):
        number = 0
        while not stop.is_set():
            words = ['scrun', '--detach', '-J', f'w{worker}-{number}', 'true']
            result = cluster.run(*words, code=None, extra_env=at_node(cluster, f'node0{worker}'))
            if result.returncode == 0:
                acknowledged.append((int(result.stdout), f'w{worker}-{number}'))
                number += 1
            time.sleep(0.05)

    script = 'i=0; while [ ! -e "$0" ]; do i=$((i+1)); echo $i; sleep 0.2; done; exit 3'
    end = cluster.directory / 'end'
    front = cluster.start('scrun', '-n', 1, 'sh', '-c', script, end, extra_env=at_node(cluster))
    assert front.stdout.readline() == '1\n'
    long_job = cluster.submit('-N', 2, 'sleep', 100_000, extra_env=at_node(cluster))
    workers = [threading.Thread(target=submit, args=(worker,)) for worker in range(3)]
    for worker in workers:
        worker.start()
    times = []
    try:
        for _ in range(5):
            wait_until(lambda: is_ready(cluster), what=cluster.logs)
            first, count = in_charge(cluster), len(acknowledged)
            wait_until(lambda: len(acknowledged) > count + 5)
            cluster.kill(first)
            killed = time.monotonic()
            wait_until(lambda: in_charge(cluster) == other(first), what=cluster.logs)
            times.append(time.monotonic() - killed)
            cluster.restart(first)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    job = json.loads(cluster.run('score', 'job', long_job, '--json', extra_env=at_node(cluster)).stdout)['job']
    assert job['state'] == 'running' and job['restarts'] == 0, job
    end.write_text('')
    out, err = front.communicate(timeout=LIMIT)
    numbers = [int(line) for line in out.split()]
    assert front.returncode == 3, err
    assert numbers == list(range(2, len(numbers) + 2)), 'output is lost or repeated'
    assert err.count('reconnected to the head') >= 5, err
    for head in HEADS:
        known = stored_jobs(cluster, head)
        lost = [pair for pair in acknowledged if known.get(pair[0]) != pair[1]]
        assert not lost, (head, lost, len(acknowledged))
        names = [name for name in known.values() if name.startswith('w')]
        assert len(names) == len(set(names)), 'a submission was carried out twice'
    figure('two-heads-follow', f'{len(times)} take-overs, {statistics.median(times):.1f} s median, {max(times):.1f} s at most from '
           f'the kill until all nodes are connected; 0 of {len(acknowledged)} acknowledged submissions lost')
    cluster.run('sccancel', '--grace', '0', long_job, extra_env=at_node(cluster))


def test_a_follower_that_lacks_changes_does_not_take_over(fresh):
    """The follower is away while a job is submitted; then the head in charge is killed and the follower comes back."""
    cluster = boot(fresh)
    first = in_charge(cluster)
    second = other(first)
    cluster.kill(second)
    late = cluster.submit('-J', 'late', 'true', extra_env=at_node(cluster))
    cluster.kill(first)
    cluster.restart(second)
    log = cluster.directory / 'log' / second
    wait_until(lambda: 'it lacks changes' in log.read_text().split('Started as one')[-1],
               what=cluster.logs)
    assert in_charge(cluster) is None
    cluster.restart(first)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    assert in_charge(cluster) == first
    assert jobs(cluster)[late] == 'late'


def copy_database(source, target):
    with contextlib.closing(sqlite3.connect(source / 'jobs.db')) as now:
        with contextlib.closing(sqlite3.connect(target)) as then:
            now.backup(then)


def lose_disk(cluster, head, copy):
    """Both heads are killed, and one comes back with an earlier copy of its database."""
    cluster.kill(other(head))
    cluster.kill(head)
    for name in ('jobs.db', 'jobs.db-wal', 'jobs.db-shm'):
        (cluster.directory / head / name).unlink(missing_ok=True)
    shutil.copy(copy, cluster.directory / head / 'jobs.db')


def test_a_head_with_an_older_disk_does_not_lead(fresh):
    """It comes back first and says what it lacks; the other one has all changes, and leads."""
    cluster = boot(fresh)
    first = in_charge(cluster)
    second = other(first)
    copy_database(cluster.directory / second, cluster.directory / 'copy')
    late = [cluster.submit('-J', f'late{i}', 'true', extra_env=at_node(cluster)) for i in range(5)]
    lose_disk(cluster, second, cluster.directory / 'copy')
    cluster.restart(second)
    log = cluster.directory / 'log' / second
    wait_until(lambda: 'it lacks changes: its state ends at change' in log.read_text().split('Started as one')[-1],
               what=cluster.logs)
    assert in_charge(cluster) is None
    cluster.restart(first)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    assert in_charge(cluster) == first
    known = jobs(cluster)
    assert [known.get(job) for job in late] == [f'late{i}' for i in range(5)]


def test_recover_leads_with_an_older_disk(fresh):
    """The other head is lost for good: --take-charge does not accept a known loss, --recover does, and uses no job number again."""
    cluster = boot(fresh)
    first = in_charge(cluster)
    second = other(first)
    copy_database(cluster.directory / second, cluster.directory / 'copy')
    late = cluster.submit('-J', 'late', 'true', extra_env=at_node(cluster))
    cluster.wait_job(late, 'completed')
    lose_disk(cluster, second, cluster.directory / 'copy')
    for option, leads in (('--take-charge', False), ('--recover', True)):
        log = cluster.directory / f'log{option}'
        config = cluster.directory / second / 'scored.toml'
        with open(log, 'w') as out:
            head = subprocess.Popen([str(BIN / 'scored'), '--role=head', '--config', str(config), option],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=out)
        try:
            if leads:
                wait_until(lambda: in_charge(cluster) == second, what=log.read_text)
                assert cluster.submit('true', extra_env=at_node(cluster)) > late
            else:
                wait_until(lambda: 'it lacks changes' in log.read_text(), what=log.read_text)
        finally:
            head.kill()
            head.wait()


def test_a_cut_between_the_heads(fresh):
    """The nodes reach both heads, but these do not reach each other: the one in charge goes on, the other one only waits."""
    cluster = boot(fresh)
    host, port = cluster.description['address'].split(':')
    if in_charge(cluster) != 'head':
        cluster.kill('head2')
        wait_until(lambda: in_charge(cluster) == 'head', what=cluster.logs)
        cluster.restart('head2')
        wait_until(lambda: is_ready(cluster), what=cluster.logs)
    with contextlib.closing(Forwarder(('127.0.0.1', free_port()), int(port), host)) as way:
        cluster.kill('head2')
        config = cluster.directory / 'head2/scored.toml'
        near = '127.0.0.1:%d' % way.listener.getsockname()[1]
        config.write_text(config.read_text().replace(f'"{host}:{port}"', f'"{near}"'))
        cluster.restart('head2')
        wait_until(lambda: is_ready(cluster), what=cluster.logs)
        way.lead_to(1)  # a port without a listener
        wait_until(lambda: not has_current_follower(cluster), what=cluster.logs)
        alone = [cluster.submit('-J', f'alone{i}', 'true', extra_env=at_node(cluster)) for i in range(5)]
        wait_until(lambda: 'transactions behind' in state_of_other(cluster), what=lambda: state_of_other(cluster))
        end = time.monotonic() + 8  # three leases
        while time.monotonic() < end:
            assert in_charge(cluster) != 'head2', cluster.logs()
        way.lead_to(int(port))
        wait_until(lambda: has_current_follower(cluster), what=cluster.logs)
        cluster.kill('head')
        wait_until(lambda: in_charge(cluster) == 'head2', what=cluster.logs)
        known = jobs(cluster)
        assert [known.get(job) for job in alone] == [f'alone{i}' for i in range(5)]
        cluster.restart('head')


def state_of_other(cluster):
    answer = info(cluster)
    states = [] if answer is None else [head['state'] for head in answer['heads'] if not head['in_charge']]
    return states[0] if states else 'no head answers'


def test_commands_on_the_hosts_of_both_heads(fresh):
    """The follower passes the commands of its host on."""
    cluster = boot(fresh)
    for head in HEADS:
        server = {'SCORED_SERVER': str(cluster.directory / head / 'head.sock')}
        assert cluster.run('scrun', '-n', 2, 'echo', 'hello', extra_env=server).stdout == 'hello\nhello\n'
    # SCORED_SERVER names both sockets: a command takes the one that answers.
    assert cluster.env['SCORED_SERVER'].count(',') == 1
    first = in_charge(cluster)
    cluster.kill(first)
    assert cluster.run('scrun', '-n', 2, 'echo', 'hello').stdout == 'hello\nhello\n'
    assert in_charge(cluster) == other(first)
    doctor = cluster.run('score', 'doctor', '--quick', code=None)
    assert 'cannot take over' in doctor.stdout + doctor.stderr
    cluster.restart(first)


def test_the_log_is_for_the_other_head_alone(fresh):
    """Peers without its key, among them a node, get nothing of the log."""
    cluster = boot(fresh)
    address, port = cluster.description['address'].split(':')
    frame = b'SCRD' + (1).to_bytes(2, 'little') + (154).to_bytes(2, 'little') + bytes(8)
    with socket.create_connection((address, int(port)), timeout=LIMIT) as plain:
        plain.sendall(frame)
        assert plain.recv(1000)[:1] in (b'', b'\x15'), 'not TLS: closed, or an alert'
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    refused = False
    try:
        with socket.create_connection((address, int(port)), timeout=LIMIT) as raw:
            with context.wrap_socket(raw) as stranger:
                stranger.sendall(frame)
                refused = stranger.recv(1000) == b''
    except OSError:
        refused = True
    assert refused
    assert is_ready(cluster)


def test_a_stopped_head_is_replaced_and_stands_down(fresh):
    """SIGSTOP: the other head takes over. Commands wait at the socket of the first one, which goes on later: it
    acknowledges nothing that the cluster does not know, and follows."""
    cluster = boot(fresh)
    first = in_charge(cluster)
    pid = cluster.daemon(first)['pid']
    server = {'SCORED_SERVER': str(cluster.directory / first / 'head.sock')}
    os.kill(pid, signal.SIGSTOP)
    try:
        late = [cluster.start('scrun', '--detach', '-J', f'late{i}', 'true', extra_env=server) for i in range(5)]
        wait_until(lambda: in_charge(cluster) == other(first), what=cluster.logs)
        job = cluster.submit('-J', 'meanwhile', 'true', extra_env=at_node(cluster))
    finally:
        os.kill(pid, signal.SIGCONT)
    log = cluster.directory / 'log' / first
    wait_until(lambda: 'stand down' in log.read_text(), what=cluster.logs)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    assert in_charge(cluster) == other(first)
    acknowledged = {job: 'meanwhile'}
    for number, process in enumerate(late):
        out, _ = process.communicate(timeout=LIMIT)
        if process.returncode == 0:
            acknowledged[int(out)] = f'late{number}'
    known = jobs(cluster)
    assert acknowledged.items() <= known.items(), (acknowledged, known)
    figure('two-heads-follow', f'stopped and continued: {len(acknowledged)} acknowledged, all known to the head in charge')


def node_keys(cluster, head):
    path = cluster.directory / head / 'node-keys'
    return path.read_text() if path.exists() else ''


def test_a_replaced_head_answers_no_request(fresh):
    """Requests reach a stopped head after the other one has taken over. When it goes on, it closes their connections."""
    cluster = boot(fresh)
    first = in_charge(cluster)
    job = cluster.submit('sleep', 1000, extra_env=at_node(cluster))
    wait_until(lambda: job_of(cluster, job)['state'] == 'running')
    requests = {'SignalJob': {'job': job, 'signal': signal.SIGKILL}, 'ManageKeys': {'what': 2, 'nodes': [b'node03']},
                'ListJobs': {}, 'ListNodes': {}, 'GetInfo': {}, 'CancelJob': {'job': job},
                'Set': {'name': b'slots', 'value': b'9'}, 'DrainNodes': {'nodes': [b'node02'], 'reason': b'stale'}}
    clients = {name: WireClient(cluster.directory / first / 'head.sock', LIMIT) for name in requests}
    pid = cluster.daemon(first)['pid']
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: in_charge(cluster) == other(first), what=cluster.logs)
        for name, values in requests.items():
            clients[name].say(name, **values)
    finally:
        os.kill(pid, signal.SIGCONT)
    answered = {name: client.rest() for name, client in clients.items()}
    assert not any(answered.values()), answered
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    assert node_keys(cluster, 'head') == node_keys(cluster, 'head2')
    found = job_of(cluster, job)
    assert (found['state'], found['restarts']) == ('running', 0), found
    assert not revoked(cluster)
    figure('two-heads-follow', f'a replaced head answered 0 of {len(answered)} requests')
    cluster.run('sccancel', '--grace', '0', job, extra_env=at_node(cluster))


def job_of(cluster, job):
    return json.loads(cluster.run('score', 'job', job, '--json', extra_env=at_node(cluster)).stdout)['job']


def revoked(cluster):
    listed = json.loads(cluster.run('scadm', 'key', 'list', '--json', extra_env=at_node(cluster)).stdout)
    return [key['node'] for key in listed['nodes'] if key['revoked']]


def leader(cluster):
    """The head in charge; nodes may be absent."""
    answer = info(cluster)
    leads = [] if answer is None else [head['in_charge'] for head in answer['heads']]
    return HEADS[leads.index(True)] if True in leads else None


def test_an_answered_revocation_outlives_the_head_that_answered(fresh):
    """The follower hangs while a key is revoked; the head in charge is killed as soon as it has answered."""
    cluster = boot(fresh)
    first = in_charge(cluster)
    second = other(first)
    client = WireClient(cluster.directory / first / 'head.sock', LIMIT)
    log = cluster.directory / 'log' / second
    before = log.stat().st_size
    pid = cluster.daemon(second)['pid']
    os.kill(pid, signal.SIGSTOP)
    try:
        answer, _ = client.ask('ManageKeys', what=2, nodes=[b'node03'])
        cluster.kill(first)
    finally:
        os.kill(pid, signal.SIGCONT)
        client.close()
    assert answer == 'NodeKeyList'
    wait_until(lambda: leader(cluster) == second or 'do not know that its state is complete' in log.read_text()[before:],
               what=cluster.logs)
    cluster.restart(first)
    wait_until(lambda: leader(cluster) is not None and has_current_follower(cluster), what=cluster.logs)
    assert revoked(cluster) == ['node03']
    wait_until(lambda: node_keys(cluster, 'head') == node_keys(cluster, 'head2') != '')


def nodes_of(cluster):
    return [node['node'] for node in json.loads(cluster.run('scnodes', '--json', extra_env=at_node(cluster)).stdout)['nodes']]


def test_removed_and_added_nodes_are_known_to_both_heads(fresh):
    cluster = boot(fresh)
    first = in_charge(cluster)
    socket = {'SCORED_SERVER': str(cluster.directory / first / 'head.sock')}
    for words in (['drain', 'node03'], ['node', 'remove', 'node03'], ['node', 'add', 'node04']):
        cluster.run('scadm', *words, extra_env=socket)
    assert nodes_of(cluster) == ['node00', 'node01', 'node02', 'node04']
    cluster.kill(first)
    wait_until(lambda: leader(cluster) == other(first), what=cluster.logs)
    assert nodes_of(cluster) == ['node00', 'node01', 'node02', 'node04']
    socket['SCORED_SERVER'] = str(cluster.directory / other(first) / 'head.sock')
    cluster.run('scadm', 'node', 'remove', 'node04', code=125, extra_env=socket)
    cluster.run('scadm', 'drain', 'node04', extra_env=socket)
    cluster.run('scadm', 'node', 'remove', 'node04', extra_env=socket)
    cluster.run('scadm', 'node', 'add', 'node03', extra_env=socket)
    wait_until(lambda: (info(cluster) or {}).get('nodes_up') == 4, what=cluster.logs)
    cluster.restart(first)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    assert nodes_of(cluster) == ['node00', 'node01', 'node02', 'node03']
