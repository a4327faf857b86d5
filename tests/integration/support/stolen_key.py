"""A peer that has stolen the key of a node: TLS 1.3 with that key, through openssl, and frames of its own."""
import os
import select
import struct
import subprocess
import time

from cluster import LIMIT
from frames import Schema


class StolenKey:
    """A connection to the head with the key of `node`. Use it as a context."""

    def __init__(self, cluster, node):
        self.schema = Schema()
        self.names = {kind: name for name, (kind, _) in self.schema.frames.items()}
        key = (cluster.directory / node / 'key').read_text().split()
        identity = node if len(key) == 1 else f'{node}#{key[1]}'
        address = next(line.split('"')[1] for line in (cluster.directory / node / 'scored.toml').read_text().splitlines()
                       if line.startswith('head = '))
        self.process = subprocess.Popen(
            ['openssl', 's_client', '-connect', address, '-tls1_3', '-psk', key[0], '-psk_identity', identity,
             '-ciphersuites', 'TLS_AES_128_GCM_SHA256', '-quiet', '-nocommands'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        self.bytes = b''

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()

    def send(self, name, **values):
        try:
            self.process.stdin.write(self.schema.frame(name, **values))
        except BrokenPipeError:
            pass  # the head has closed the connection; receive() says so

    def receive(self):
        """(name of the message, its payload), or None if the head has closed the connection."""
        end = time.monotonic() + LIMIT
        while True:
            if len(self.bytes) >= 16:
                kind, length = struct.unpack('<HI', self.bytes[6:12])
                if len(self.bytes) >= 16 + length:
                    payload, self.bytes = self.bytes[16:16 + length], self.bytes[16 + length:]
                    return self.names[kind], payload
            assert time.monotonic() < end, 'the head neither answers nor closes the connection'
            if not select.select([self.process.stdout], [], [], 1)[0]:
                continue
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                return None
            self.bytes += part

    def answer(self):
        """The name of the next message; None if the connection was closed."""
        frame = self.receive()
        return frame and frame[0]
