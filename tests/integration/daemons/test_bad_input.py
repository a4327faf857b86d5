"""Whatever comes in: one clear line, the right exit code, nothing left, daemons alive."""
import contextlib
import os
import pathlib
import random
import resource
import socket
import sys
import time

import pytest
from cluster import is_alive
from figures import figure

LINE = r'^[^\n]+\n$'


def refused(few, *words, code=125, says=()):
    result = few.run(*words, code=None)
    assert result.returncode == code, result
    assert result.stdout == ''
    assert len(result.stderr.splitlines()) == 1, result.stderr
    for text in says:
        assert text in result.stderr, result.stderr


@pytest.mark.parametrize('words, says', [
    (['scrun', '--bogus', 'true'], ['--bogus']),
    (['scrun'], ['program']),
    (['scrun', ''], ['program']),
    (['scattach', '--bogus'], ['--bogus']),
    (['scadm', '--bogus'], ['--bogus']),
    (['scacct', '-S', '2026-02-31'], ['2026-02-31']),
    (['scrun', '-N', 'many', 'true'], ['many']),
    (['scrun', '-p', 'debug', 'true'], ['no partition debug', 'no partitions']),
    (['scrun', '--exclusive', 'true'], ['--queue exclusive']),
    (['scrun', '--gres=gpu:1', 'true'], ['no node has generic resource', 'gpu']),
    (['scrun', '-nodes=0x2', 'true'], ['0x2']),
    (['scrun', '-nodes=2,bogus=1', 'true'], ['bogus']),
    (['scrun', '-t', 'soon', 'true'], ['soon']),
    (['scrun', '--mem', 'lots', 'true'], ['lots']),
    (['scrun', '--queue', 'fast', 'true'], ['fast']),
    (['scrun', '-w', 'node[00-', 'true'], ['node[00-']),
    (['scrun', '-N', '9', 'true'], ['8']),
    (['scrun', '-N', '4000000000', 'true'], []),
    (['scrun', '-n', '100', '-N', '2', '--ppn', '3', 'true'], []),
    (['scrun', '-w', 'node99', 'true'], ['node99']),
    (['scrun', '--weight', '1000000', 'true'], []),
    (['scrun', '--weight', '0', 'true'], ['--weight']),
    (['scrun', '-n', '0', 'true'], ['--ntasks', '0']),
    (['scrun', '-N', '0', 'true'], ['--nodes']),
    (['scrun', '-N', '4-2', 'true'], ['--nodes', '4-2']),
    (['scrun', '-N', '2-', 'true'], ['--nodes', '2-']),
    (['scrun', '-N', '9-12', 'true'], ['9', '8']),
    (['scrun', '-N', '4-8', '-n', '3', 'true'], []),
    (['scrun', '-n', '-1', 'true'], ['--ntasks', '-1']),
    (['scrun', '--ppn', '0', 'true'], ['--ntasks-per-node']),
    (['scrun', '-c', '0', 'true'], ['--cpus-per-task']),
    (['scrun', '--priority', '2147483647', '--nice', '-1', 'true'], ['--priority']),
    (['scrun', '--mem', '1000', 'true'], ['--mem 1000', '1M']),
    (['scrun', '-w', 'node[00-01]', '-i', '2', 'true'], ['rank 2']),
    (['scq', '--bogus'], ['--bogus']),
    (['scq', '-o', 'bogus'], ['bogus']),
    (['scq', '999999'], ['999999']),
    (['scq', '--why', 'x'], ["'x'"]),
    (['score', 'job', '999999'], ['999999']),
    (['score', 'bogus'], ['bogus']),
    (['score', 'release', '999999'], ['999999']),
    (['score', 'hold', 'x'], ["'x'"]),
    (['score', 'suspend'], ['jobs']),
    (['score', 'weight', '0', '1'], ['weight']),
    (['sccancel', '999999'], ['999999']),
    (['sccancel', 'x'], ["'x'"]),
    (['sccancel', '-s', 'BOGUS', '1'], ['BOGUS']),
    (['scattach', '999999'], ['999999']),
    (['scadm', 'set', 'quantum', '0'], ['1ms']),
    (['scadm', 'set', 'quantum', '1h'], ['10s']),
    (['scadm', 'set', 'quantum', '50'], ['50']),
    (['scadm', 'set', 'slots', '0'], ['0']),
    (['scadm', 'drain', 'node99'], ['node99']),
    (['scadm', 'bogus'], ['bogus']),
    (['scout', '-w', 'node99', 'true'], ['node99']),
    (['scnodes', '--server', '/no/such/socket'], ['/no/such/socket']),
    (['scnodes', '--server', 'other.example'], ['other.example']),
    (['score', 'virtual', '--nodes', '0', '--', 'true'], ['--nodes']),
    (['score', 'virtual', '--slice', '1h', '--', 'true'], ['1h']),
    (['score', 'virtual'], ['command']),
])
def test_refused(few, words, says):
    refused(few, *words, says=says)


def test_unreadable_directory(few, tmp_path, as_root):
    closed = tmp_path / 'closed'
    closed.mkdir()
    result = few.run('scrun', '-D', closed / 'below', 'true', code=None)
    assert result.returncode in (125, 126)
    assert str(closed) in result.stderr and 'node' in result.stderr


def tcp_listeners(few):
    """Of the daemons in this network namespace."""
    held = set()
    for pid in pids_of(few):
        for descriptor in os.listdir(f'/proc/{pid}/fd'):
            with contextlib.suppress(OSError):  # closed since
                held.add(os.readlink(f'/proc/{pid}/fd/{descriptor}'))
    for line in pathlib.Path('/proc/net/tcp').read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == '0A' and f'socket:[{words[9]}]' in held:
            host, port = words[1].split(':')
            yield socket.inet_ntoa(int(host, 16).to_bytes(4, sys.byteorder)), int(port, 16)


def pids_of(few):
    description = few.describe()
    return [daemon['pid'] for daemon in [description['head'], *description['nodes'], *description['launchers']]]


def listeners(few):
    """Every socket of the cluster that takes connections: nodes', the dashboard's, Unix sockets."""
    yield from ((socket.AF_INET, address) for address in tcp_listeners(few))
    for line in pathlib.Path('/proc/net/unix').read_text().splitlines():
        path = line.split()[-1]
        if path.startswith(str(few.directory) + '/') and line.split()[3] == '00010000':
            yield socket.AF_UNIX, path
    for path in few.directory.rglob('launcher.sock'):  # the kernel's table has its name alone
        yield socket.AF_UNIX, str(path)


def kind_of(path):
    for line in pathlib.Path('/proc/net/unix').read_text().splitlines():
        if line.split()[-1] in (path, os.path.basename(path)):
            return {'0001': socket.SOCK_STREAM, '0005': socket.SOCK_SEQPACKET}[line.split()[4]]
    return socket.SOCK_STREAM


def hostile_bytes(chance):
    header = b'SCRD\x01\x00' + bytes([chance.choice([1, 10, 12, 41, 100, 255]), 0])
    yield chance.randbytes(chance.randrange(1, 4096))
    yield header                                                    # truncated header
    yield header + (0xffffffff).to_bytes(4, 'little') + bytes(4)    # oversize
    yield header + (64).to_bytes(4, 'little') + bytes(4) + chance.randbytes(64)
    yield header + (64).to_bytes(4, 'little') + bytes(4) + b'short'  # truncated payload
    yield b'GET / HTTP/1.1\r\n\r\n'
    yield b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + chance.randbytes(200)  # half a TLS hello


def test_random_bytes_on_every_listener(few):
    chance = random.Random(5)
    job = few.submit('-N', 8, 'sleep', '600')
    few.wait_job(job, 'running')
    pids = pids_of(few)
    seen, took, open_still = [], [], 0
    for family, address in listeners(few):
        seen.append(address)
        kind = kind_of(address) if family == socket.AF_UNIX else socket.SOCK_STREAM
        answers = kind == socket.SOCK_STREAM and '/shepherds/' not in str(address)  # these and launchers hear one daemon only
        for data in hostile_bytes(chance):
            with socket.socket(family, kind) as peer:
                peer.settimeout(30 if answers else 0.3)
                try:
                    peer.connect(address)
                    began = time.monotonic()
                    peer.sendall(data)
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(4096):
                        pass
                except TimeoutError:
                    open_still += answers
                except OSError:
                    pass  # closed on us: as it should be
                if answers:
                    took.append((time.monotonic() - began) * 1e3)
    for name in ('control', 'head.sock', *['launcher.sock'] * 8):
        paths = [path for path in seen if isinstance(path, str) and path.endswith('/' + name)]
        assert len(paths) == (8 if name == 'launcher.sock' else 1), (name, seen)
    assert len([address for address in seen if isinstance(address, tuple)]) == 2, seen
    assert all(is_alive(pid) for pid in pids)
    assert few.job(job)['state'] == 'running'
    assert few.run('scrun', '-N', 8, 'echo', 'x').stdout == 'x\n' * 8
    assert open_still == 0, 'each is closed'
    took.sort()
    figure('hostile-bytes', f'{len(took)} hostile inputs to {len(seen)} listeners: closed after {took[len(took) // 2]:.1f} ms (median), '
                            f'{took[len(took) * 99 // 100]:.1f} ms (p99)')


def rss_kib(pid):
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith('VmRSS'))


def test_ten_thousand_connections_with_random_bytes(few):
    """To every listener in turn; 10^4 in the long form (SCORE_RANDOM_CONNECTIONS)."""
    chance = random.Random(int(os.environ.get('SCORE_SEED', '7')))
    count = int(os.environ.get('SCORE_RANDOM_CONNECTIONS', '1000'))
    pids, doors = pids_of(few), list(listeners(few))
    before, worst = [rss_kib(pid) for pid in pids], 0.0
    for i in range(count):
        family, address = doors[i % len(doors)]
        kind = kind_of(address) if family == socket.AF_UNIX else socket.SOCK_STREAM
        with socket.socket(family, kind) as peer:
            peer.settimeout(0.05 if kind != socket.SOCK_STREAM else 5)
            begun = time.monotonic()
            with contextlib.suppress(OSError):
                peer.connect(address)
                peer.sendall(chance.randbytes(chance.randrange(16, 4096)))
                while peer.recv(4096):
                    pass
            if kind == socket.SOCK_STREAM:
                worst = max(worst, time.monotonic() - begun)
    grown = max(rss_kib(pid) - old for pid, old in zip(pids, before))
    figure('S01', f'{count} connections to {len(doors)} listeners: closed within {worst * 1e3:.0f} ms, +{grown} KiB of the '
                  'daemon that grew most')
    assert all(is_alive(pid) for pid in pids)
    assert grown < 32 * 1024
    assert few.run('scrun', '-N', 8, 'echo', 'x').stdout == 'x\n' * 8


def test_two_thousand_connections_of_one_user(few):
    """1,000 that are open and 1,000 that say nothing: the user is served all the same."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip('needs 4,096 descriptors')
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))
    hello = b'SCRD\x01\x00\x01\x00' + (4).to_bytes(4, 'little') + bytes(4) + b'\x08\x01\x10\x01'
    head = few.daemon('head')['pid']
    with contextlib.ExitStack() as crowd:
        for greets in [True] * 1000 + [False] * 1000:
            peer = crowd.enter_context(socket.socket(socket.AF_UNIX))
            peer.settimeout(30)
            peer.connect(few.description['socket'])
            if greets:
                peer.sendall(hello)
                assert peer.recv(4096)[:4] == b'SCRD'
        assert few.run('scrun', '-N', 2, 'echo', 'x').stdout == 'x\n' * 2
    assert is_alive(head)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_second_head_refuses_the_directory(few):
    config = few.directory / 'head' / 'scored.toml'
    result = few.run('scored', '--role=head', '--config', config, code=None)
    assert result.returncode != 0 and 'another head is running' in result.stderr, result
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    few.wait_up()


def test_text_of_others_cannot_move_the_cursor(few):
    job = few.submit('-J', '\x1b[2J\x07evil\x9b', 'true')
    few.wait_job(job, 'completed')
    for words in (['scq'], ['score', 'job', job], ['scq', '--json'], ['scrun', '-D', '/\x1b[2J', 'true']):
        result = few.run(*words, code=None)
        shown = result.stdout + result.stderr
        assert '\x1b' not in shown and '\x07' not in shown and os.linesep in shown
