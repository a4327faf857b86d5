"""Two heads whose lease is in an etcd of three members (ADR 138)."""
import os
import re
import subprocess
import time

import pytest

from cluster import BIN, free_port, wait_until
from etcd_members import Authority, EtcdMembers, use_etcd
from figures import figure
from test_two_heads import HEADS, at_node, boot, in_charge, info, is_ready, jobs, other


@pytest.fixture
def members(tmp_path):
    with EtcdMembers(tmp_path / 'etcd') as made:
        made.wait_healthy()
        yield made


def boot_with(fresh, members):
    cluster = boot(fresh)
    use_etcd(cluster, members)
    wait_until(lambda: is_ready(cluster) and state(cluster) == 'in charge, lease in etcd', what=cluster.logs)
    return cluster


def state(cluster):
    answer = info(cluster)
    return next((head['state'] for head in answer['heads'] if head['in_charge']), None) if answer else None


def test_take_overs_with_faults_of_etcd(fresh, members):
    """Each time the head in charge is killed; each second time a member of etcd is killed or stopped with it."""
    cluster = boot_with(fresh, members)
    assert 'lease in etcd' in cluster.run('score', 'doctor', '--quick', code=None, extra_env=at_node(cluster)).stdout
    long_job = cluster.submit('-N', 2, 'sleep', 100_000, extra_env=at_node(cluster))
    known, times = {long_job: 'sleep'}, ([], [])  # of the head alone, with a member of etcd
    for number in range(8):
        wait_until(lambda: is_ready(cluster), what=cluster.logs)
        first, member = in_charge(cluster), members.members[number % 3]
        name = f'before{number}'
        known[cluster.submit('-J', name, 'true', extra_env=at_node(cluster))] = name
        began = time.monotonic()
        if number % 4 == 1:
            members.stop(member)
        elif number % 4 == 3:
            members.kill(member)
        cluster.kill(first)
        wait_until(lambda: in_charge(cluster) == other(first), what=cluster.logs)
        times[number % 2].append(time.monotonic() - began)
        if number % 4 == 1:
            members.stop(member, False)
        elif number % 4 == 3:
            members.start(member)
        cluster.restart(first)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    listed = jobs(cluster)
    assert known.items() <= listed.items(), (known, listed)
    alone, both = (' '.join(f'{one:.1f}' for one in sorted(kind)) for kind in times)
    figure('two-heads-etcd', f'take-overs until all nodes are connected: {alone} s; with a fault of a member of etcd {both} s; '
           f'load {os.getloadavg()[0]:.0f}')
    cluster.run('sccancel', '--grace', '0', long_job, extra_env=at_node(cluster))


def test_without_etcd_both_heads_go_on_and_one_stands_down(fresh, members):
    cluster = boot_with(fresh, members)
    first = in_charge(cluster)
    for member in members.members[:2]:
        members.kill(member)
    wait_until(lambda: 'does not answer' in (state(cluster) or ''), what=cluster.logs)
    job = cluster.submit('-J', 'meanwhile', 'true', extra_env=at_node(cluster))
    assert in_charge(cluster) == first
    cluster.kill(other(first))
    log = cluster.directory / 'log' / first
    wait_until(lambda: 'leases of its witnesses have ended' in log.read_text(), what=cluster.logs)
    assert in_charge(cluster) is None
    for member in members.members[:2]:
        members.start(member)
    wait_until(lambda: in_charge(cluster) == first, what=cluster.logs)
    assert jobs(cluster)[job] == 'meanwhile'
    cluster.restart(other(first))
    wait_until(lambda: is_ready(cluster), what=cluster.logs)


def test_bad_configurations_are_one_line_each(fresh, members, tmp_path):
    """The head waits, and its journal says once why; a file that cannot be read ends it at the start."""
    cluster = boot_with(fresh, members)
    second = other(in_charge(cluster))
    config, log = cluster.directory / second / 'scored.toml', cluster.directory / 'log' / second
    number, sound = HEADS.index(second), config.read_text()
    plain = sound[:sound.index('\n[heads]')]
    cluster.kill(second)
    stranger = Authority(tmp_path, 'stranger')
    for changes, why in (
            ({'etcd': ['https://no-such-host.invalid:2379']}, 'no such host'),
            ({'etcd': [f'https://127.0.0.1:{free_port()}']}, 'Connection refused'),
            ({'etcd_ca': str(stranger.file)}, 'its certificate is not trusted'),
            ({'etcd': members.config(number).split('"')[3:4]}, 'etcd answers only while most of its members run')):
        if 'most of' in why:
            members.kill(members.members[1])
            members.kill(members.members[2])
        config.write_text(plain + members.config(number, **changes))
        before = len(log.read_text())
        cluster.restart(second)
        wait_until(lambda: why in log.read_text()[before:], what=cluster.logs)
        time.sleep(3)
        lines = [line for line in log.read_text()[before:].splitlines() if 'Cannot reach the etcd' in line]
        assert len(lines) == 1 and why in lines[0], lines
        cluster.kill(second)
    config.write_text(plain + members.config(number, etcd_ca='/no/such.pem'))
    started = subprocess.run([BIN / 'scored', '--role=head', '--config', config], capture_output=True, text=True, check=False)
    assert started.returncode != 0
    assert re.fullmatch(r'scored: head: \[heads\].*etcd_ca: cannot use /no/such\.pem.*\n', started.stderr), started.stderr
    for member in members.members[1:]:
        members.start(member)
    config.write_text(sound)
    cluster.restart(second)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)


def test_another_value_under_the_key_stops_no_head(fresh, members):
    """Who writes to etcd can hinder a take-over, but not make a head lead that lacks changes: marks have a seal."""
    cluster = boot_with(fresh, members)
    first = in_charge(cluster)
    put(members, f'{2**59} - {2**59} 7 3 0 0 1 2\n')
    time.sleep(3)
    assert in_charge(cluster) == first
    cluster.submit('true', extra_env=at_node(cluster))
    put(members, 'hello')
    wait_until(lambda: 'does not answer' in (state(cluster) or ''), what=cluster.logs)
    assert in_charge(cluster) == first


def put(members, value):
    import base64
    certificate, key = members.client
    member = members.members[0]
    words = {name: base64.b64encode(text.encode()).decode() for name, text in (('key', '/scored/virtual/lease'), ('value', value))}
    body = '{"key":"%(key)s","value":"%(value)s"}' % words
    subprocess.run(['curl', '-s', '-f', '--cacert', members.authority.file, '--cert', certificate, '--key', key, '-d', body,
                    f'https://{member.address}:{member.ports[0]}/v3/kv/put'], check=True, capture_output=True)
