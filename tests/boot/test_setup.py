"""scored-setup: what stops it, and that nothing is half done then."""
import pytest
from bed import Bed, wait_until
from booted_cluster import OF_HEAD, OF_NODE, install, node_lines


@pytest.fixture(scope='module')
def hosts(empty_bed, base, installed):
    """A head and two hosts with the programs and no configuration."""
    bed = Bed([installed, base])
    try:
        for name in ('head', 'node00', 'node01'):
            bed.machine(name)
        for machine in bed.machines.values():
            machine.boot()
            install(machine, OF_HEAD if machine.name == 'head' else OF_NODE)
        yield dict(bed.machines)
    finally:
        bed.close()


def refusal(machine, line):
    """The one line with which the command fails; the host has no key and no unit runs."""
    done = machine.run('sh', '-c', line, code=125)
    lines = [text for text in done.stderr.splitlines() if ': note: ' not in text]
    assert len(lines) == 1, done.stderr
    assert machine.run('systemctl', 'is-active', 'scored-node', code=None).stdout != 'active\n'
    return lines[0]


def test_the_head_needs_nodes_and_a_free_port(hosts):
    head = hosts['head']
    assert '--nodes' in refusal(head, 'scored-setup head')
    assert 'node[' in refusal(head, 'scored-setup head --nodes "node[3-1]"')
    head.run('systemd-run', '--unit=other', 'systemd-socket-activate', '--listen=0.0.0.0:7421', 'cat')
    wait_until(lambda: ':7421' in head.run('ss', '-ltn').stdout, 'the port is taken')
    assert '7421 is in use' in refusal(head, 'scored-setup head --nodes "node[00-01]"')
    head.run('systemctl', 'stop', 'other')
    assert head.run('test', '-e', '/etc/scored/key', code=None).returncode != 0
    assert refusal(head, 'scored-setup token node00').startswith('scored-setup token: this host is not a head')


def test_a_host_that_does_not_fit_is_refused_and_its_token_stays_valid(hosts):
    head, node, other = hosts['head'], hosts['node00'], hosts['node01']
    head.run('useradd', '--uid', '3001', 'carol')
    printed = head.run('scored-setup', 'head', '--nodes', 'node[00-01]').stdout
    lines = node_lines(printed)
    assert sorted(lines) == ['node00', 'node01']

    assert 'carol (3001)' in refusal(node, lines['node00'])
    node.run('useradd', '--uid', '3002', 'carol')
    assert 'carol has uid 3002 here and 3001' in refusal(node, lines['node00'])
    node.run('usermod', '--uid', '3001', 'carol')
    assert 'the token is for node00' in refusal(other, lines['node00'] + ' --ignore-users')
    node.run('ip', 'link', 'set', 'host0', 'mtu', '1280')
    assert 'MTU of 1280' in refusal(node, lines['node00'])
    node.run('ip', 'link', 'set', 'host0', 'mtu', '1500')
    assert 'scored-setup token node00' in refusal(node, lines['node00'][:-1] + ('0' if lines['node00'][-1] != '0' else '1'))
    assert 'not a whole token' in refusal(node, lines['node00'][:-1])
    assert 'cannot connect to head:7422' in refusal(node, lines['node00'].replace('--head head', '--head head:7422'))
    assert 'unknownhost' in refusal(node, lines['node00'].replace('--head head', '--head unknownhost'))

    node.run('sh', '-c', lines['node00'])
    hosts['lines'] = lines


def test_a_token_is_used_once_and_setup_can_be_repeated(hosts):
    head, node, other = hosts['head'], hosts['node00'], hosts['node01']
    line = hosts['lines']['node00']
    node.run('sh', '-c', line)  # again: the key is here already
    node.run('rm', '/etc/scored/node.key')
    node.run('systemctl', 'disable', '--now', 'scored-node')
    assert 'used' in refusal(node, line)
    head.run('systemctl', 'restart', 'scored-head')
    assert 'used' in refusal(node, line)
    again = node_lines(head.run('scored-setup', 'token', 'node00').stdout)['node00']
    node.run('sh', '-c', again)

    # Another node's key in the place of this one's.
    other.write('/etc/scored/node.key', node.read('/etc/scored/node.key'), mode='600')
    other.run('chown', 'scored-node:scored-node', '/etc/scored/node.key')
    assert 'remove it' in refusal(other, hosts['lines']['node01'] + ' --ignore-users')
    other.run('rm', '/etc/scored/node.key')
    other.run('sh', '-c', hosts['lines']['node01'] + ' --ignore-users')


def test_the_administrators_lines_stay(hosts):
    head = hosts['head']
    text = head.read('/etc/scored/scored.toml')
    head.write('/etc/scored/scored.toml', text.replace('# slots = 64', 'slots = 3  # ours'))
    head.run('scored-setup', 'head', '--nodes', 'node[00-02]')
    assert 'slots = 3  # ours\n' in head.read('/etc/scored/scored.toml')
    assert [node['node'] for node in head.json('scnodes')['nodes']] == ['node00', 'node01', 'node02']
    before = head.read('/etc/scored/scored.toml')
    assert 'scored.toml' in refusal(head, "scored-setup head --cluster \"$(printf 'a\\001b')\"")
    assert head.read('/etc/scored/scored.toml') == before
