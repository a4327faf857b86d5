"""Data over PM: the same bytes as over TCP, several requests at once, and peers that mean harm."""
import contextlib
import ctypes
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from test_hostile_clients import READ, WRITE, Raw, counts
from volumes import BIN, Client, Servers, View, make_temporary

OPEN_CHANNEL, NEAR, UDP, REMOTE = 32, 1, 2, 4
PAYLOAD = 1424  # of a frame
TRANSPORTS = ('', 'pm', 'udp', 'tcp')


@pytest.fixture(scope='module')
def servers():
    with make_temporary() as root:
        made = Servers(root, 1, capacity='256M')
        yield made
        assert made.stop() == [0], made.log(0)


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_every_size_arrives_whole(servers, transport):
    client = Client(servers.file, transport)
    chance = random.Random(2)
    for size in (1, 47, 48, 49, 4095, 8192, 8193, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5_000_001):
        data = chance.randbytes(size)
        with client.open('size') as file:
            assert file.pwrite(data, 3) == size
            assert file.pread(size + 10, 3) == data
            assert file.pread(size, size + 3) == b''
        client.unlink('size')
    client.close()


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_many_extents_of_a_request(servers, transport):
    """More than one message of PM, in memory of their own order."""
    client = Client(servers.file, transport)
    chance = random.Random(3)
    extents = [(offset * 1000, chance.randrange(1, 900)) for offset in chance.sample(range(5000), 1500)]
    data = chance.randbytes(sum(length for _, length in extents))
    with client.open('extents') as file:
        assert file.write_extents(extents, data) == len(data)
        assert file.read_extents(extents) == (data, len(data))
        view = View(7, 10, 1000)
        written = chance.randbytes(20_000)
        assert file.write_view(view, written, 5) == len(written)
        assert file.read_view(view, len(written), 5) == written
    client.close()


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_threads_share_a_connection(servers, transport):
    client = Client(servers.file, transport)
    faults = []

    def work(number):
        try:
            chance = random.Random(number)
            with client.open(f'thread{number}') as file:
                for _ in range(30):
                    data, offset = chance.randbytes(chance.randrange(1, 300_000)), chance.randrange(1_000_000)
                    file.pwrite(data, offset)
                    assert file.pread(len(data), offset) == data
        except BaseException as fault:  # noqa: B902, reported below
            faults.append(fault)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults[0]
    client.close()


def test_transports_see_each_other_at_once(servers):
    clients = [Client(servers.file, transport) for transport in TRANSPORTS]
    with contextlib.ExitStack() as held:
        files = [held.enter_context(client.open('seen')) for client in clients]
        for turn in range(200):
            data = struct.pack('<Q', turn) * 2000
            files[turn % 4].pwrite(data, 12345)
            assert files[(turn + 1 + turn // 4) % 4].pread(len(data), 12345) == data, turn
    for client in clients:
        client.close()


def test_an_unknown_transport_is_refused(servers):
    with pytest.raises(OSError, match='PARIO_TRANSPORT: expected pm, udp or tcp'):
        Client(servers.file, 'ftp')
    os.environ['PARIO_TRANSPORT'] = ''


class Handle(ctypes.Structure):
    _fields_ = [('region', ctypes.c_uint32), ('nonce', ctypes.c_uint32), ('offset', ctypes.c_uint64), ('length', ctypes.c_uint64)]


class Message(ctypes.Structure):
    _fields_ = [('source', ctypes.c_uint32), ('flags', ctypes.c_uint32), ('data', ctypes.c_void_p), ('length', ctypes.c_uint64),
                ('internal', ctypes.c_uint64 * 6)]


class Hostile:
    """A client that says what it wants over PM: a connection of its own, and libpm with the address file of the pair."""

    def __init__(self, servers, root, key=None):
        self.raw = Raw(servers.ports[0], servers.key)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(('127.0.0.1', 0))
            own = free.getsockname()[1]
        self.raw.request(OPEN_CHANNEL, id=0, body=struct.pack('<IQ', UDP, PAYLOAD << 48 | int.from_bytes(bytes([127, 0, 0, 1]) + own.to_bytes(2, 'big'), 'big')))
        error, body, _, _ = self.raw.reply()
        assert error == 0
        self.key, address = struct.unpack_from('<QQ', body)
        path = root / f'addresses{own}'
        path.write_text(f'key {key or self.key:x}\ndevice udp\npayload {PAYLOAD}\npeer_timeout 0\nrank 0 here 127.0.0.1:{address & 0xffff}\n'
                        f'rank 1 here 127.0.0.1:{own}\n')
        self.pm = ctypes.CDLL(str(BIN.parent / 'lib/libpm.so.1'))
        self.context = ctypes.c_void_p()
        assert self.pm.pm_open_file(str(path).encode(), 1, ctypes.byref(self.context), None, 0) == 0

    def register(self, length):
        self.memory = ctypes.create_string_buffer(length)
        handle = Handle()
        assert self.pm.pm_register(self.context, self.memory, ctypes.c_uint64(length), ctypes.byref(handle)) == 0
        return handle

    def request(self, op, id, extents, handle, places, data=0, flags=REMOTE, tag=9):
        body = b'' if not flags & REMOTE else struct.pack('<IIQQ', handle.region, handle.nonce, handle.offset, handle.length)
        body += struct.pack('<I', len(extents))
        for (offset, length), place in zip(extents, places):
            body += struct.pack('<QI', offset, length) + (struct.pack('<Q', place) if flags & REMOTE else b'')
        self.send(struct.pack('<HHIIIQQ', op, flags, len(body), data, 0, tag, id) + body)

    def send(self, data):
        for at in range(0, len(data), 1400):
            part = data[at:at + 1400]
            self.pm.pm_send_message(self.context, 0, part, ctypes.c_size_t(len(part)))

    def progress(self, seconds=0.05):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.pm.pm_wait(self.context, ctypes.c_int64(1000))

    def reply(self, seconds=30):
        end = time.monotonic() + seconds
        message = Message()
        while time.monotonic() < end:
            if self.pm.pm_receive(self.context, ctypes.byref(message)) == 0:
                data = ctypes.string_at(message.data, message.length)
                self.pm.pm_release_receive_buffer(self.context, ctypes.byref(message))
                return struct.unpack_from('<IIIIQQ', data)
            self.pm.pm_wait(self.context, ctypes.c_int64(1000))
        return None

    def ends(self):
        """The server has closed the connection."""
        self.raw.socket.settimeout(0.02)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            self.progress(0.02)
            try:
                return self.raw.socket.recv(1) == b''
            except TimeoutError:
                continue
            except ConnectionError:
                return True
        return False

    def close(self):
        self.pm.pm_close(self.context)
        self.raw.socket.close()


@pytest.fixture
def hostile(servers, tmp_path):
    client = Client(servers.file, 'tcp')
    with client.open('victim') as file:
        file.pwrite(b'v' * (2 << 20), 0)
    number = client.stat('victim').ino
    made = Hostile(servers, tmp_path)
    made.file = number
    yield made
    made.close()
    assert client.contents('victim') == b'v' * (2 << 20)
    client.close()


def test_a_valid_request_of_the_test_is_answered(hostile):
    handle = hostile.register(8192)
    hostile.request(READ, hostile.file, [(0, 4096)], handle, [100])
    error, _, data, _, tag, _ = hostile.reply()
    assert (error, data, tag) == (0, 4096, 9)
    assert hostile.memory.raw[99:4197] == b'\0' + b'v' * 4096 + b'\0'


def foreign(handle, **changes):
    return Handle(**{name: changes.get(name, getattr(handle, name)) for name, _ in Handle._fields_})


ATTACKS = {
    'wrong nonce': lambda h, own: h.request(READ, h.file, [(0, 4096)], foreign(own, nonce=own.nonce ^ 1), [0]),
    'wrong region': lambda h, own: h.request(READ, h.file, [(0, 4096)], foreign(own, region=77), [0]),
    'region beyond the table': lambda h, own: h.request(READ, h.file, [(0, 4096)], foreign(own, region=2**32 - 1), [0]),
    'beyond the region': lambda h, own: h.request(READ, h.file, [(0, 4096)], foreign(own, length=2**40), [2**39]),
    'wrapping region': lambda h, own: h.request(READ, h.file, [(0, 4096)], foreign(own, offset=2**64 - 10, length=100), [0]),
    'place at the edge': lambda h, own: h.request(READ, h.file, [(0, 4096)], own, [2**64 - 1]),
    'place behind the end': lambda h, own: h.request(READ, h.file, [(0, 4096)], own, [8192 - 4095]),
    'write from foreign memory': lambda h, own: h.request(WRITE, h.file, [(0, 4096)], foreign(own, nonce=own.nonce ^ 1), [0], data=4096),
    'offset of the file': lambda h, own: h.request(READ, h.file, [(2**64 - 1, 4096)], own, [0]),
    'not remote': lambda h, own: h.request(READ, h.file, [(0, 4096)], own, [0], flags=0),
    'other operation': lambda h, own: h.send(struct.pack('<HHIIIQQ', 6, 0, 0, 0, 0, 1, h.file)),
    'remote attributes': lambda h, own: h.send(struct.pack('<HHIIIQQ', 6, REMOTE, 0, 0, 0, 1, h.file)),
    'size': lambda h, own: h.send(struct.pack('<HHIIIQQ', READ, REMOTE, 2**32 - 1, 0, 0, 1, h.file)),
    'random': lambda h, own: h.send(random.Random(1).randbytes(5000)),
    'no extents': lambda h, own: h.request(READ, h.file, [], own, []),
}


@pytest.mark.parametrize('attack', ATTACKS)
def test_malformed_requests_by_pm_end_the_connection(servers, hostile, attack):
    before = counts(servers)['malformed']
    ATTACKS[attack](hostile, hostile.register(8192))
    assert hostile.ends()
    assert counts(servers)['malformed'] == before + 1


def test_a_remote_request_by_tcp_ends_the_connection(servers, hostile):
    before = counts(servers)['malformed']
    body = struct.pack('<IIQQIQIQ', 0, 0, 0, 4096, 1, 0, 4096, 0)
    hostile.raw.request(READ, id=hostile.file, body=body, flags=REMOTE)
    assert hostile.raw.is_closed()
    assert counts(servers)['malformed'] == before + 1


def test_a_wrong_key_is_never_answered(servers, tmp_path):
    before = counts(servers)['requests']
    stranger = Hostile(servers, tmp_path, key=0xdeadbeef)
    handle = stranger.register(4096)
    stranger.request(READ, 4096, [(0, 4096)], handle, [0])
    assert stranger.reply(seconds=1) is None
    assert counts(servers)['requests'] <= before + 2  # the statistics and the channel alone
    stranger.close()


@pytest.mark.parametrize('kind', [0, 4, 2**32 - 1])
def test_unknown_channels_are_refused(servers, kind):
    raw = Raw(servers.ports[0], servers.key)
    raw.request(OPEN_CHANNEL, id=0, body=struct.pack('<IQ', kind, 0))
    assert raw.is_closed()


def test_channels_asked_for_again_and_again_are_bounded(servers):
    raw = Raw(servers.ports[0], servers.key)
    before = len(os.listdir(f'/proc/{servers.processes[0].pid}/fd'))
    for _ in range(100):
        raw.request(OPEN_CHANNEL, id=0, body=struct.pack('<IQ', NEAR, 0))
        assert raw.reply()[0] == 0
    assert len(os.listdir(f'/proc/{servers.processes[0].pid}/fd')) < before + 40
    raw.socket.close()


def test_more_requests_than_the_window_end_the_connection(servers, hostile):
    handle = hostile.register(1 << 20)
    before = counts(servers)['malformed']
    for _ in range(40):  # none of them is answered while the client does not take part
        hostile.request(READ, hostile.file, [(0, 1 << 20)], handle, [0])
    assert hostile.ends()
    assert counts(servers)['malformed'] == before + 1


def test_a_client_that_takes_no_data_does_not_keep_others(servers, hostile):
    """It holds its own requests' memory; others are served meanwhile, and it is disconnected."""
    handle = hostile.register(1 << 20)
    before = counts(servers)['slow']
    for _ in range(8):
        hostile.request(READ, hostile.file, [(0, 1 << 20)], handle, [0])  # and no progress after it
    client = Client(servers.file, 'udp')
    assert client.contents('victim') == b'v' * (2 << 20)
    client.close()
    status = open(f'/proc/{servers.processes[0].pid}/status').read()
    assert int(next(line.split()[1] for line in status.splitlines() if line.startswith('VmRSS'))) < 300_000
    end = time.monotonic() + 120
    while counts(servers)['slow'] == before and time.monotonic() < end:
        time.sleep(0.5)
    assert counts(servers)['slow'] == before + 1


READER = '''
import os, sys, time
sys.path.insert(0, sys.argv[1])
from volumes import Client
client = Client(sys.argv[2], sys.argv[3])
file = client.open('victim')
print('ready', flush=True)
while True:
    file.pread(1 << 20, 0)
    file.pwrite(b'v' * (1 << 20), 0)
'''


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_a_client_that_is_killed_leaves_nothing(servers, transport):
    here = os.path.dirname(__file__)
    client = Client(servers.file, 'tcp')
    with client.open('victim') as file:
        file.pwrite(b'v' * (2 << 20), 0)
    base = len(os.listdir(f'/proc/{servers.processes[0].pid}/fd'))
    for _ in range(5):
        child = subprocess.Popen([sys.executable, '-c', READER, here, servers.file, transport], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b'ready\n'
        time.sleep(0.1)
        child.kill()
        child.wait()
    end = time.monotonic() + 60
    while len(os.listdir(f'/proc/{servers.processes[0].pid}/fd')) > base + 2 and time.monotonic() < end:
        time.sleep(0.1)
    assert len(os.listdir(f'/proc/{servers.processes[0].pid}/fd')) <= base + 2
    assert client.contents('victim') == b'v' * (2 << 20)
    client.close()
