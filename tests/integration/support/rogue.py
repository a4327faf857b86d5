"""A node daemon that is not one: it has a node's key, and says what it likes. Its TLS is `openssl s_client`."""
import os
import select
import socket
import struct
import subprocess
import time

from frames import Schema

MASK = (1 << 64) - 1
SCHEMA = Schema()
NAMES = {number: name for name, (number, _) in SCHEMA.frames.items()}
HEAD = 0  # rank
KEY_BYTES = 16


def rotated(word, by):
    return (word << by | word >> 64 - by) & MASK


def siphash(low, high, data):
    """SipHash-2-4 as in pmlib/wire/siphash.hpp."""
    v = [low ^ 0x736f6d6570736575, high ^ 0x646f72616e646f6d, low ^ 0x6c7967656e657261, high ^ 0x7465646279746573]

    def rounds(count):
        for _ in range(count):
            v[0] = v[0] + v[1] & MASK
            v[1] = rotated(v[1], 13) ^ v[0]
            v[0] = rotated(v[0], 32)
            v[2] = v[2] + v[3] & MASK
            v[3] = rotated(v[3], 16) ^ v[2]
            v[0] = v[0] + v[3] & MASK
            v[3] = rotated(v[3], 21) ^ v[0]
            v[2] = v[2] + v[1] & MASK
            v[1] = rotated(v[1], 17) ^ v[2]
            v[2] = rotated(v[2], 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack('<Q', padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xff
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def tag_key(key):
    """As in pmlib/wire/frame.hpp."""
    mixed = key + 0x9e3779b97f4a7c15 & MASK
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9 & MASK
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb & MASK
    return key, mixed ^ mixed >> 31


def values(payload):
    """{field: value} of a message without sub-messages; of a repeated field the last one."""
    found, at = {}, 0

    def varint():
        nonlocal at
        shift = value = 0
        while True:
            byte = payload[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(payload):
        key = varint()
        if key & 7 == 0:
            found[key >> 3] = varint()
        else:
            size = {1: 8, 5: 4}[key & 7] if key & 7 != 2 else varint()
            found[key >> 3] = payload[at:at + size]
            at += size
    return found


class Rogue:
    """`with Rogue(cluster, 'node01') as rogue:` while the node's own daemon is away."""

    def __init__(self, cluster, node):
        self.cluster, self.node = cluster, node
        self.key = (cluster.directory / node / 'key').read_text().split()[0]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(('127.0.0.1', 0))
        self.tls, self.bytes = None, b''
        self.address = cluster.description['address']

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.disconnect()
        self.socket.close()

    def connect(self):
        self.tls = subprocess.Popen(
            ['openssl', 's_client', '-connect', self.address, '-tls1_3', '-psk', self.key,
             '-psk_identity', self.node, '-ciphersuites', 'TLS_AES_128_GCM_SHA256', '-groups', 'X25519', '-quiet',
             '-nocommands'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        self.bytes = b''

    def disconnect(self):
        if self.tls:
            self.tls.kill()
            self.tls.wait()
            self.tls.stdin.close()
            self.tls.stdout.close()
        self.tls = None

    def send(self, name, /, **fields):
        self.tls.stdin.write(SCHEMA.frame(name, **fields))

    def receive(self, *names, limit=60):
        """The payload of the next frame of such a name; others are dropped."""
        end = time.monotonic() + limit
        while True:
            if len(self.bytes) >= 16 and len(self.bytes) >= 16 + (size := struct.unpack('<I', self.bytes[8:12])[0]):
                kind = NAMES[struct.unpack('<H', self.bytes[6:8])[0]]
                payload, self.bytes = self.bytes[16:16 + size], self.bytes[16 + size:]
                if kind in names:
                    return kind, payload
                continue
            assert select.select([self.tls.stdout], [], [], max(0.0, end - time.monotonic()))[0], f'no {names}'
            more = os.read(self.tls.stdout.fileno(), 1 << 20)
            assert more, 'the head has closed the connection'
            self.bytes += more

    def hello(self, **fields):
        """Connects and says hello; returns when the head has welcomed it."""
        self.disconnect()
        self.connect()
        self.send('NodeHello', lowest_version=1, highest_version=1, name=self.node.encode(), release=b'0', cores=1,
                  memory_bytes=1 << 33, pid=4711, instance=int.from_bytes(os.urandom(8), 'little'), **fields)
        return values(self.receive('NodeWelcome')[1])

    # ---- the PM network of the daemons

    def join(self):
        """Takes the roster, and the keys that go to this node only."""
        self.rank = self.hello()[6]
        host, port = self.socket.getsockname()
        self.send('ControlOffer', address=socket.inet_aton(host) + struct.pack('>H', port), signs=1)
        self.keys = {}
        while True:
            name, payload = self.receive('ControlKeys', 'ControlRoster')
            fields = values(payload)
            if name == 'ControlKeys':
                numbers = {key: number for key, (number, _, _) in SCHEMA.messages['ControlKeys'].items()}
                keys = fields[numbers['keys']]
                self.keys = {rank: struct.unpack_from('<QQ', keys, KEY_BYTES * i)
                             for i, rank in enumerate(fields[numbers['ranks']])}
            elif len(fields[3]) > 6 * self.rank and fields[3][6 * self.rank:6 * self.rank + 6] != bytes(6):
                self.generation, self.network_key, self.addresses = fields[1], struct.unpack('<Q', fields[2])[0], fields[3]
                return

    def tag(self, data):
        """The best that it can do: a tag with a key of its own."""
        return siphash(*next(iter(self.keys.values()), (1, 2)), data)

    def throw(self, source, destination, name, payload, is_tagged):
        """Sends a datagram that says it is of the rank `source`."""
        body = struct.pack('<HH', SCHEMA.frames[name][0], 1) + payload
        if is_tagged:
            body += struct.pack('<BQ', 15 << 3 | 1, self.tag(body))
        header = struct.pack('<BBBBHHQIIIIIHHII', ord('P'), 2, 32, 0, 0, len(body), 0, self.generation, source, destination,
                             0, 0, 0, 0, 0, 0)
        sealed = struct.pack('<Q', siphash(*tag_key(self.network_key), header + body))
        address = self.addresses[6 * destination:6 * destination + 6]
        self.socket.sendto(header[:8] + sealed + header[16:] + body,
                           (socket.inet_ntoa(address[:4]), struct.unpack('>H', address[4:])[0]))
