"""New keys for nodes and for the cluster, and keys that are revoked, while jobs run."""
import os
import select
import signal
import subprocess
import time

from cluster import BIN, LIMIT, wait_until
from figures import figure
from progress import start_progress


def keys(cluster, *words):
    listed = cluster.json('scadm', 'key', *words)['nodes']
    return {key['node']: key for key in listed}


def head_tool(cluster, *words):
    """What an administrator runs on the head's host."""
    result = subprocess.run([BIN / 'scored', '--role=head', '--config', cluster.directory / 'head/scored.toml', *words],
                            cwd=cluster.directory, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result
    return result


def fetch(cluster, node, generation):
    """As scored-setup does with a token: the key of this generation, in the node's key file. Gives the file's old text."""
    made = cluster.directory / f'{node}.key'
    made.unlink(missing_ok=True)
    head_tool(cluster, '--node-key', f'{node}#{generation}')
    place = cluster.directory / node / 'key'
    before = place.read_text()
    made.rename(place)
    return before


def restart_node(cluster, node):
    """As systemctl does: the head is told, and its jobs wait for node_timeout."""
    process = os.pidfd_open(cluster.daemon(node)['pid'])
    signal.pidfd_send_signal(process, signal.SIGTERM)
    select.select([process], [], [], LIMIT)
    os.close(process)
    cluster.restart(node)


def renew(cluster, node):
    old = fetch(cluster, node, keys(cluster, 'list')[node]['next_generation'])
    restart_node(cluster, node)
    wait_until(lambda: keys(cluster, 'list')[node]['next_generation'] == 0)
    return old


def is_refused(cluster, node, key):
    """Whether a daemon with this key stays outside; the node's own one is back afterwards."""
    place = cluster.directory / node / 'key'
    own = place.read_text()
    place.write_text(key)
    restart_node(cluster, node)
    time.sleep(2)
    state = {one['node']: one['state'] for one in cluster.json('scnodes')['nodes']}[node]
    place.write_text(own)
    restart_node(cluster, node)
    cluster.wait_up()
    return state != 'up'


def begin(fresh, tmp_path):
    cluster = fresh(3, '--slice', '50ms', '--node-timeout', '10m')
    job, counters = start_progress(cluster, tmp_path, 'job', 3)
    return cluster, job, counters


def check_goes_on(cluster, job, counters):
    assert cluster.job(job)['state'] == 'running' and cluster.job(job)['restarts'] == 0
    before = [counters.counter(rank) for rank in range(3)]
    wait_until(lambda: all(counters.counter(rank) > before[rank] for rank in range(3)))


def test_keys_of_nodes_are_rotated_while_jobs_run(fresh, as_root, tmp_path):
    cluster, job, counters = begin(fresh, tmp_path)
    rotated = keys(cluster, 'rotate', '--all')
    assert sorted(rotated) == ['node00', 'node01', 'node02'] and all(key['token'] for key in rotated.values())
    old = {'node01': renew(cluster, 'node01')}
    # Interrupted: the head is restarted, and the command repeated.
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    again = keys(cluster, 'rotate', '--all')
    assert sorted(again) == ['node00', 'node02']
    assert all(key['next_generation'] == rotated[node]['next_generation'] for node, key in again.items())
    for node in again:
        old[node] = renew(cluster, node)
    cluster.wait_up()
    check_goes_on(cluster, job, counters)
    assert all(key['generation'] and not key['next_generation'] for key in keys(cluster, 'list').values())
    refused = [node for node, key in old.items() if is_refused(cluster, node, key)]
    assert sorted(refused) == sorted(old), 'an old key is accepted'
    check_goes_on(cluster, job, counters)
    figure('hole-15', 'rotated: 3 keys over a restart of the head, 3 old ones refused, the job went on')
    cluster.cancel_all()


def test_a_revoked_key_is_refused_at_once(fresh, as_root, tmp_path):
    cluster, job, counters = begin(fresh, tmp_path)
    started = time.monotonic()
    revoked = keys(cluster, 'revoke', 'node02')['node02']
    wait_until(lambda: cluster.nodes_up() == 2)
    took = time.monotonic() - started
    assert revoked['revoked'] and revoked['token']
    restart_node(cluster, 'node02')
    time.sleep(1)
    assert cluster.nodes_up() == 2, 'the revoked key is accepted'
    reason = 'its key was revoked: `scadm key rotate node02` prints the line to run there, as root'
    node = next(node for node in cluster.json('scnodes')['nodes'] if node['node'] == 'node02')
    assert (node['state'] in ('down', 'suspect', 'unknown'), node['reason']) == (True, reason)
    assert reason in cluster.run('scnodes', 'node02').stdout
    assert f'node02: {reason}' in cluster.run('score', 'doctor', code=None).stdout
    assert cluster.job(job)['state'] == 'running', 'its job waits for the node'
    fetch(cluster, 'node02', revoked['next_generation'])
    restart_node(cluster, 'node02')
    cluster.wait_up()
    check_goes_on(cluster, job, counters)
    figure('hole-15', f'revoked: refused after {took:.2f} s, the job went on when the node had a new key')
    cluster.cancel_all()


def test_the_clusters_key_is_replaced_while_jobs_run(fresh, as_root, tmp_path):
    cluster, job, counters = begin(fresh, tmp_path)

    def restart_head():
        cluster.kill('head')
        cluster.restart('head')
        cluster.wait_up()

    old = (cluster.directory / 'node00/key').read_text()
    head_tool(cluster, '--rotate-key')
    restart_head()
    assert all(key['old_cluster_key'] for key in keys(cluster, 'list').values())
    for node in keys(cluster, 'rotate', '--all'):
        renew(cluster, node)
    cluster.wait_up()
    assert not [key for key in keys(cluster, 'list').values() if key['old_cluster_key']]
    head_tool(cluster, '--retire-key')
    assert len((cluster.directory / 'key').read_text().splitlines()) == 1
    restart_head()
    check_goes_on(cluster, job, counters)
    assert is_refused(cluster, 'node00', old)
    check_goes_on(cluster, job, counters)
    figure('hole-15', 'cluster key: replaced over 2 restarts of the head, the old node key refused, the job went on')
    cluster.cancel_all()


def test_only_root_manages_keys(fresh, as_root):
    cluster = fresh(1)
    os.chmod(cluster.directory, 0o711)
    result = subprocess.run(['setpriv', '--reuid=65534', '--clear-groups', BIN / 'scadm', 'key', 'rotate', '--all'],
                            env=cluster.env, capture_output=True, text=True, check=False, cwd='/')
    assert result.returncode != 0 and 'setup' not in result.stdout, result
    for words in (['key', 'rotate'], ['key', 'rotate', 'node07'], ['key', 'revoke'], ['key']):
        result = cluster.run('scadm', *words, code=None)
        assert result.returncode != 0 and len(result.stderr.splitlines()) <= 3, result
    assert keys(cluster, 'list')['node00'] == {'node': 'node00', 'generation': 0, 'next_generation': 0, 'revoked': False,
                                               'old_cluster_key': False}
