"""The PM network of the daemons: who is in it, what it survives, and that nothing needs it."""
import os
import socket
import struct

import pytest
from cluster import wait_until
from progress import start_progress
from web import Web, value


def ways(cluster):
    return {node['node']: node['control'] for node in cluster.json('scnodes')['nodes']}


def use_pm(cluster):
    wait_until(lambda: set(ways(cluster).values()) == {'pm'}, what=lambda: ways(cluster))


def metrics(cluster):
    return Web(cluster.json('score', 'info')['dashboard_url']).ask('/metrics').body.decode()


def udp_sockets(cluster, name):
    """[(address, port)] of the daemon's sockets, from /proc."""
    pid = cluster.daemon(name)['pid']
    links = [os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')]
    inodes = {link[8:-1] for link in links if link.startswith('socket:[')}
    with open(f'/proc/{pid}/net/udp') as table:
        rows = [line.split() for line in list(table)[1:]]
    bound = [row[1].split(':') for row in rows if row[9] in inodes]
    return [(socket.inet_ntoa(struct.pack('=I', int(host, 16))), int(port, 16)) for host, port in bound]


def test_all_daemons_reach_each_other_over_pm(fresh):
    cluster = fresh(4, '--control', 'pm')
    use_pm(cluster)
    assert value(metrics(cluster), 'scored_control_members') == 5
    for lost in ('node02', 'head'):  # who comes again is a member again
        cluster.kill(lost)
        cluster.restart(lost)
        cluster.wait_up()
        use_pm(cluster)
    cluster.run('scrun', '-q', '-N', 4, 'true')


@pytest.mark.parametrize('mode', ['clock', 'barrier'])
def test_the_head_may_forbid_it(fresh, mode):
    cluster = fresh(2, '--control', 'tls', '--switch-mode', mode)
    assert set(ways(cluster).values()) == {'tls'}
    assert [udp_sockets(cluster, name) for name in ('head', 'node00')] == [[], []]
    cluster.run('scrun', '-q', '-N', 2, 'true')


def test_noise_at_the_ports_is_dropped(fresh, tmp_path):
    cluster = fresh(2, '--control', 'pm', '--switch-mode', 'barrier', '--slice', '20ms', '--cores', 1)
    use_pm(cluster)
    counters = [start_progress(cluster, tmp_path, name, 2)[1] for name in ('a', 'b')]
    sockets = [bound for name in ('head', 'node00', 'node01') for bound in udp_sockets(cluster, name)]
    assert len(sockets) == 5, 'a main loop each, and the switchers of the nodes'
    noise = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for i in range(300):
        for bound in sockets:
            noise.sendto(bytes((i * k) % 251 for k in range(i)), bound)
    before = [c.counter(rank) for c in counters for rank in range(2)]
    wait_until(lambda: all(c.counter(r) > b for (c, r), b in zip([(c, r) for c in counters for r in range(2)], before)))
    assert set(ways(cluster).values()) == {'pm'} and cluster.nodes_up() == 2
    wait_until(lambda: value(metrics(cluster), 'scored_control_dropped_total', '{reason="malformed"}') > 0)
    assert 'drop datagrams of the control network' in cluster.logs(100)
    cluster.cancel_all()
