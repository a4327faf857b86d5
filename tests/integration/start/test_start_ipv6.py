"""score start over IPv6: the head is reached at ::1. A program in the place of ssh runs the command on this host."""
import os
import re
import socket
import subprocess

import pytest
from cluster import BIN, LIMIT


def has_ipv6():
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(('::1', 0))
        except OSError:
            return False
    return True


pytestmark = pytest.mark.skipif(not socket.has_ipv6 or not has_ipv6(), reason='no ::1 on this host')


@pytest.fixture
def ssh(tmp_path):
    path = tmp_path / 'ssh'
    # The last word is the command, the one before it the host.
    path.write_text(f'#!/bin/sh\nunset SSH_CONNECTION\nfor word; do target=$command; command=$word; done\n'
                    f'echo "$target" >> {tmp_path}/targets\nexec sh -c "$command"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize('head, hosts, node', [('::1', 'v6a', 'v6a'), ('[::1]', '::1', '0--1'), ('::1', '[::1]', '0--1'), ('127.0.0.1', 'v4', 'v4'), ('localhost', 'v6a', 'v6a')])
def test_the_head_is_reached(ssh, tmp_path, head, hosts, node):
    env = {key: value for key, value in os.environ.items() if not key.startswith(('SCORE', 'SLURM', 'PBS'))}
    done = subprocess.run([BIN / 'score', 'start', '--ssh', ssh, '--push', 'never', '--head-address', head, '--limit', '60s', '--memory', '300M',
                           '--hosts', hosts, '--', 'sh', '-c', f'{BIN}/scnodes --no-header -o node,state && {BIN}/scrun -q -n 1 sh -c "echo ran"'],
                          capture_output=True, text=True, env=env, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert re.split(r'\s+', done.stdout.strip()) == [node, 'up', 'ran'], done.stdout
    assert (tmp_path / 'targets').read_text().split()[-1] == hosts.strip('[]')


@pytest.mark.parametrize('head', ['[::1', 'a b', '::1;true', ''])
def test_an_invalid_address_is_refused_in_one_line(head):
    done = subprocess.run([BIN / 'score', 'start', '--head-address', head or ':', '--hosts', 'a', '--', 'true'], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 125 and '--head-address' in done.stderr and done.stderr.count('\n') == 1, done.stderr
