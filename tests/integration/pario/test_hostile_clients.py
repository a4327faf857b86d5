"""Clients that mean harm: refused in a line, counted, and nothing is written outside the server's directory."""
import contextlib
import errno
import os
import random
import socket
import struct
import subprocess
import time

import pytest
from figures import figure
from volumes import BIN, Client, Servers, errno_of, make_temporary

MAGIC = b'PARIO\x04\x00\x00'
MASK = 2**64 - 1
OUTSIDE = f'/tmp/pario-outside-{os.getpid()}'
LOOKUP, CREATE, TRUNCATE, READ, WRITE, STATISTICS = 1, 2, 14, 15, 16, 19
STAGE, PREPARE, DECIDE, FINISH, JOIN, FILL_BEGIN, FILL_TABLE = 20, 21, 22, 23, 26, 27, 28
FORWARDED, ONCE, DESTROY, MOVE = 32, 64, 30, 31


def rotated(value, count):
    return (value << count | value >> (64 - count)) & MASK


def siphash(key, data):
    """SipHash-2-4 after its paper."""
    k0, k1 = struct.unpack('<QQ', key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]

    def rounds(count):
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotated(v[1], 13) ^ v[0]
            v[0] = rotated(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotated(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotated(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotated(v[1], 17) ^ v[2]
            v[2] = rotated(v[2], 32)
    padded = data + b'\0' * (7 - len(data) % 8) + bytes([len(data) % 256])
    for (word,) in struct.iter_unpack('<Q', padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xff
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def proof(key, nonces, volume, server=0):
    return b''.join(struct.pack('<Q', siphash(key, struct.pack('<III', half, 1, server) + nonces + volume)) for half in (0, 1))


class Raw:
    """A connection whose bytes a test makes."""

    def __init__(self, port, key=None, volume=b'test', host='127.0.0.1', server=0):
        self.socket = socket.create_connection((host, port), 20)
        greeting = self.receive(24)
        assert greeting[:8] == MAGIC
        if key is not None:
            mine = os.urandom(16)
            self.socket.sendall(MAGIC + mine + proof(key, greeting[8:] + mine, volume, server))
            self.welcome = self.receive(16)

    def receive(self, length):
        data = b''
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            if not part:
                break
            data += part
        return data

    def request(self, op, id=4096, body=b'', data=b'', tag=1, flags=0, sizes=None, part=0):
        body_size, data_size = sizes or (len(body), len(data))
        self.socket.sendall(struct.pack('<HHIIIQQ', op, flags, body_size, data_size, part, tag, id) + body + data)

    def reply(self):
        header = self.receive(32)
        if len(header) < 32:
            return None
        error, body, data, _, tag, number = struct.unpack('<IIIIQQ', header)
        return error, self.receive(body), self.receive(data), number

    def is_closed(self):
        self.socket.settimeout(20)
        try:
            return self.socket.recv(1) == b''
        except ConnectionError:
            return True


def name(text):
    return struct.pack('<H', len(text) & 0xffff) + text


@pytest.fixture(scope='module')
def servers():
    with make_temporary() as root:
        made = Servers(root, 1, capacity='64M')
        yield made
        assert made.stop() == [0], made.log(0)


def counts(servers, index=0, part=0):
    raw = Raw(servers.ports[index], servers.key, host=servers.hosts[index], server=index)
    raw.request(STATISTICS, id=0, part=part)
    error, body, _, _ = raw.reply()
    assert error == 0
    return dict(zip(('capacity', 'used', 'files', 'requests', 'read', 'written', 'keys', 'malformed', 'slow', 'queue',
                     'pm_bytes', 'pm_clients', 'fallbacks'), struct.unpack('<13Q', body)))


def files_below(path):
    return sorted(str(one.relative_to(path)) for one in path.rglob('*') if one.is_file())


def test_a_wrong_key_or_volume_is_refused_and_counted(servers):
    before = counts(servers)['keys']
    assert Raw(servers.ports[0], os.urandom(16)).welcome == b''
    assert Raw(servers.ports[0], servers.key, b'other').welcome == b''
    stranger = Raw(servers.ports[0])
    stranger.socket.sendall(b'GET / HTTP/1.0\r\n\r\n' + b'x' * 100)
    assert stranger.is_closed()
    assert counts(servers)['keys'] == before + 3
    assert 'Refused client' in servers.log(0) and 'wrong key or volume' in servers.log(0)


def test_silent_strangers_take_no_place_of_a_client(servers):
    old = counts(servers)['slow']
    proven = Client(servers.file)
    with contextlib.ExitStack() as strangers:
        for _ in range(1400):
            strangers.enter_context(socket.create_connection((servers.host, servers.ports[0])))
        new = Client(servers.file)
        assert new.names() == proven.names()
        new.close()
        assert counts(servers)['slow'] >= old + 1400 - 256
    proven.close()


def test_scio_reports_a_wrong_key_in_a_line(servers):
    text = servers.file.read_text().replace(servers.key.hex(), '0' * 32)
    other = servers.root / 'other'
    other.write_text(text)
    other.chmod(0o600)
    run = subprocess.run([BIN / 'scio', '--volume', other, 'ls'], capture_output=True, text=True)
    assert run.returncode == 125
    assert run.stderr == f'scio: {other}: server 127.0.0.1:{servers.ports[0]}: refuses the key of this file\n'
    other.chmod(0o644)
    run = subprocess.run([BIN / 'scio', '--volume', other, 'ls'], capture_output=True, text=True)
    assert 'chmod 600' in run.stderr and run.stderr.count('\n') == 1


HOSTILE = {
    'dots': lambda raw: raw.request(CREATE, body=struct.pack('<I', 0o100644) + name(b'..')),
    'slash': lambda raw: raw.request(CREATE, body=struct.pack('<I', 0o100644) + name(b'../../x')),
    'absolute': lambda raw: raw.request(CREATE, body=struct.pack('<I', 0o100644) + name(OUTSIDE.encode())),
    'nul': lambda raw: raw.request(CREATE, body=struct.pack('<I', 0o100644) + name(b'a\0b')),
    'long': lambda raw: raw.request(CREATE, body=struct.pack('<I', 0o100644) + name(b'x' * 10_000)),
    'empty': lambda raw: raw.request(LOOKUP, body=name(b'')),
    'no id': lambda raw: raw.request(LOOKUP, id=0, body=name(b'x')),
    'op 0': lambda raw: raw.request(0),
    'op 65535': lambda raw: raw.request(65535),
    'size': lambda raw: raw.request(LOOKUP, sizes=(2**32 - 1, 0)),
    'data': lambda raw: raw.request(WRITE, body=struct.pack('<IQI', 1, 0, 2**31), sizes=(16, 2**31)),
    'count': lambda raw: raw.request(READ, body=struct.pack('<I', 2**32 - 1)),
    'offset': lambda raw: raw.request(READ, body=struct.pack('<IQI', 1, 2**64 - 1, 10)),
    'end': lambda raw: raw.request(WRITE, body=struct.pack('<IQI', 1, 2**63 - 1, 1), data=b'x'),
    'length': lambda raw: raw.request(READ, body=struct.pack('<IQI', 1, 0, 2**32 - 1)),
    'negative': lambda raw: raw.request(TRUNCATE, body=struct.pack('<Q', 2**63)),
    'moved name': lambda raw: raw.request(MOVE, body=struct.pack('<IQQ', 0o100644, 8192, 4096) + name(b'x') + name(b'..')),
    'moved from 0': lambda raw: raw.request(MOVE, body=struct.pack('<IQQ', 0o100644, 8192, 0) + name(b'x') + name(b'y')),
    'part': lambda raw: raw.request(LOOKUP, body=name(b'x'), part=4097),
    'flag': lambda raw: raw.request(LOOKUP, body=name(b'x'), flags=0x8000),
    'forwarded': lambda raw: raw.request(LOOKUP, body=name(b'x'), flags=FORWARDED),
    'client 0': lambda raw: raw.request(CREATE, body=struct.pack('<QIII', 0, 0, 1, 0o100644) + name(b'x'), flags=ONCE),
    'slot': lambda raw: raw.request(CREATE, body=struct.pack('<QIII', 1, 16, 1, 0o100644) + name(b'x'), flags=ONCE),
    'once': lambda raw: raw.request(LOOKUP, body=struct.pack('<QII', 1, 0, 1) + name(b'x'), flags=ONCE),
    'transaction 0': lambda raw: raw.request(DECIDE, body=struct.pack('<Q', 0)),
    'outcome': lambda raw: raw.request(FINISH, body=struct.pack('<QQ', 1, 2)),
    'no servers': lambda raw: raw.request(PREPARE, body=struct.pack('<IQQH', 1, 1, 0, 0)),
    'order of servers': lambda raw: raw.request(PREPARE, body=struct.pack('<IQQHHH', 1, 1, 0, 2, 1, 0)),
    'server': lambda raw: raw.request(PREPARE, body=struct.pack('<IQQHH', 1, 1, 4096, 1, 4096)),
    'coordinator': lambda raw: raw.request(PREPARE, body=struct.pack('<IQQHH', 1, 1, 5, 1, 0)),
    'staged data': lambda raw: raw.request(STAGE, body=struct.pack('<IQQIQI', 0, 1, 0, 1, 0, 9), data=b'x'),
    'staged offset': lambda raw: raw.request(STAGE, body=struct.pack('<IQQIQI', 0, 1, 0, 1, 2**64 - 1, 1)),
    'rest': lambda raw: raw.request(LOOKUP, body=name(b'x') + b'more'),
}


@pytest.mark.parametrize('attack', HOSTILE)
def test_malformed_requests_end_the_connection(servers, attack):
    before = counts(servers)['malformed']
    files = files_below(servers.directory(0))
    raw = Raw(servers.ports[0], servers.key)
    HOSTILE[attack](raw)
    assert raw.is_closed()
    assert counts(servers)['malformed'] == before + 1
    assert files_below(servers.directory(0)) == files
    assert not os.path.exists(OUTSIDE)
    figure('S34', f'{len(HOSTILE)} kinds of hostile requests: connection closed, no file made')


def test_numbers_that_do_not_exist_are_errors(servers):
    raw = Raw(servers.ports[0], servers.key)
    for id in (1, 4095, 2**64 - 1, 12345 << 12):
        for op, body in ((READ, struct.pack('<IQI', 1, 0, 10)), (WRITE, struct.pack('<IQI', 1, 0, 1))):
            raw.request(op, id=id, body=body, data=b'x' if op == WRITE else b'')
            error, _, data, _ = raw.reply()
            assert error != 0 and data == b''


def test_orders_of_another_role_are_errors(servers):
    """A server without replicas, and transactions that it does not know."""
    raw = Raw(servers.ports[0], servers.key)
    forwarded = struct.pack('<QQQq', 1, 1, 8192, 0)
    for op, body, data, flags, part, expected in (
            (LOOKUP, name(b'x'), b'', 0, 2, errno.EINVAL), (JOIN, struct.pack('<Q', 2**64 - 1), b'', 0, 0, errno.EINVAL),
            (FILL_BEGIN, struct.pack('<Q', 1), b'', 0, 1, errno.EINVAL), (FILL_TABLE, struct.pack('<I', 1), b'rows', 0, 0, errno.EINVAL),
            (CREATE, forwarded + struct.pack('<I', 0o100644) + name(b'chosen'), b'', FORWARDED, 0, errno.EINVAL),
            (PREPARE, struct.pack('<IQQHH', 1, 77, 0, 1, 0), b'', 0, 0, errno.EAGAIN), (DECIDE, struct.pack('<Q', 77), b'', 0, 0, errno.ECANCELED),
            (FINISH, struct.pack('<QQ', 77, 1), b'', 0, 0, 0)):
        raw.request(op, body=body, data=data, flags=flags, part=part)
        assert raw.reply()[0] == expected, op
    raw.request(LOOKUP, body=name(b'chosen'))
    assert raw.reply()[0] == errno.ENOENT


def test_staged_transactions_are_bounded(servers):
    """What clients stage and do not commit: within memory and space, which come back after a while."""
    raw = Raw(servers.ports[0], servers.key)
    client = Client(servers.file)
    with client.open('staged') as file:
        file.pwrite(b'x', 0)
    number, data, refused = client.stat('staged').ino, b'd' * (1 << 20), 0
    for turn in range(600):
        raw.request(STAGE, id=number, body=struct.pack('<IQQIQI', turn % 10, 1000 + turn // 10, 0, 1, 0, len(data)), data=data)
        refused += raw.reply()[0] != 0
    assert refused > 300
    status = open(f'/proc/{servers.processes[0].pid}/status').read()
    assert int(next(line.split()[1] for line in status.splitlines() if line.startswith('VmRSS'))) < 600_000
    assert client.contents('staged') == b'x'
    end = time.monotonic() + 90
    with client.open('other') as file:
        while errno_of(file.pwrite, b'y' * (40 << 20), 0) is not None and time.monotonic() < end:
            time.sleep(0.5)
        assert file.pwrite(b'y' * (40 << 20), 0) == 40 << 20
    client.unlink('other')
    client.close()


def test_random_bytes_do_no_harm(servers):
    chance = random.Random(11)
    for _ in range(200):
        raw = Raw(servers.ports[0], servers.key)
        try:
            for _ in range(chance.randrange(1, 20)):
                op = chance.choice([one for one in range(37) if one != DESTROY])
                body = chance.randbytes(chance.randrange(0, 60))
                raw.request(op, id=chance.choice((4096, 8192, chance.getrandbits(64))), body=body, flags=chance.choice((0, 1, 2, 3, 8, 16, 32)))
            raw.socket.sendall(chance.randbytes(chance.randrange(0, 300)))
        except ConnectionError:
            pass
        raw.socket.close()
    assert counts(servers)['requests'] > 0
    outside = [one for one in servers.root.iterdir() if one.name not in ('server0', 'volume', 'other', 'log0')]
    assert outside == []


def test_a_client_that_never_reads_is_not_served_for_ever(servers):
    """Its requests stop to be read; others are served meanwhile."""
    client = Client(servers.file)
    with client.open('big') as file:
        file.pwrite(b'b' * (4 << 20), 0)
    number = client.stat('big').ino
    raw = Raw(servers.ports[0], servers.key)
    raw.socket.settimeout(2)
    sent = 0
    try:
        for _ in range(1_000_000):
            raw.request(READ, id=number, body=struct.pack('<IQI', 1, 0, 1 << 20))
            sent += 1
    except TimeoutError:
        pass
    assert sent < 1_000_000, 'all requests were taken although no reply was read'
    status = open(f'/proc/{servers.processes[0].pid}/status').read()
    resident = int(next(line.split()[1] for line in status.splitlines() if line.startswith('VmRSS')))
    assert resident < 300_000, f'{resident} KB'
    begin = time.monotonic()
    assert client.contents('big') == b'b' * (4 << 20)
    assert time.monotonic() - begin < 10
    client.close()


def test_a_directory_belongs_to_one_server_and_volume(servers):
    def start(volume, directory):
        return subprocess.run([BIN / 'scored-pario', '--volume', volume, '--index', '0', '--directory', directory, '--capacity', '1G'],
                              capture_output=True, text=True, timeout=30)
    run = start(servers.file, servers.directory(0))
    assert run.returncode == 125 and 'another scored-pario uses this directory' in run.stderr
    with make_temporary() as root:
        other = Servers(root, 1, name='other')
        other.stop()
        run = start(servers.file, other.directory(0))
        assert run.returncode == 125 and 'belongs to volume other' in run.stderr and run.stderr.count('\n') == 1
        for words, text in ((['--capacity', 'much'], 'expected a size'), (['--index', '7'], 'the volume has 1 servers'),
                            (['--directory', root + '/none'], 'No such file')):
            run = subprocess.run([BIN / 'scored-pario', '--volume', other.file, '--index', '0', '--directory', other.directory(0),
                                  '--capacity', '1G', *words], capture_output=True, text=True, timeout=30)
            assert run.returncode == 125 and text in run.stderr and run.stderr.count('\n') == 1
