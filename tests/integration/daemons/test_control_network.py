"""The PM network of the daemons: who is in it, what it survives, and that nothing needs it."""
import os

import pytest
from cluster import wait_until
from web import Web, value


def ways(cluster):
    return {node['node']: node['control'] for node in cluster.json('scnodes')['nodes']}


def use_pm(cluster):
    wait_until(lambda: set(ways(cluster).values()) == {'pm'}, what=lambda: ways(cluster))


def metrics(cluster):
    return Web(cluster.json('score', 'info')['dashboard_url']).ask('/metrics').body.decode()


def udp_ports(cluster, name):
    """Of the daemon's sockets, from /proc."""
    pid = cluster.daemon(name)['pid']
    links = [os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')]
    inodes = {link[8:-1] for link in links if link.startswith('socket:[')}
    with open(f'/proc/{pid}/net/udp') as table:
        rows = [line.split() for line in list(table)[1:]]
    return [int(row[1].split(':')[1], 16) for row in rows if row[9] in inodes]


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
    assert [udp_ports(cluster, name) for name in ('head', 'node00')] == [[], []]
    cluster.run('scrun', '-q', '-N', 2, 'true')
