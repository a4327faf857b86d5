"""A client that speaks the wire protocol by message names, for tests that must see each frame and when it comes."""
import socket

from frames import Schema, read_frame
from protobuf import fields

SCHEMA = Schema()
NAMES = {kind: name for name, (kind, _) in SCHEMA.frames.items()}


def decode(name, payload):
    """{field: value} of a message: lists for repeated fields, numbers, bytes, and such dictionaries."""
    found = {field: [] for field, (_, _, repeated) in SCHEMA.messages[name].items() if repeated}
    known = {number: (field, kind, repeated) for field, (number, kind, repeated) in SCHEMA.messages[name].items()}
    for number, value in fields(payload):
        if number not in known:
            continue
        field, kind, repeated = known[number]
        if kind in SCHEMA.messages and isinstance(value, bytes):
            value = decode(kind, value)
        if repeated:
            found[field].append(value)
        else:
            found[field] = value
    return found


class WireClient:
    """A connection after its hello. Errors are OSError; a request that is refused is answered ('Failed', ...)."""

    def __init__(self, path, limit=10):
        self.peer = socket.socket(socket.AF_UNIX)
        try:
            self.peer.settimeout(limit)
            self.peer.connect(str(path))
            self.tag = 0
            self.peer.sendall(SCHEMA.frame('ClientHello', lowest_version=1, highest_version=1, program=b'test'))
            if self.hear()[0] != 'ServerHello':
                raise ConnectionError('refused')
        except BaseException:
            self.peer.close()
            raise

    def say(self, message, /, **values):
        """Sends a request; returns its tag."""
        self.tag += 1
        self.peer.sendall(SCHEMA.frame(message, tag=self.tag, **values))
        return self.tag

    def hear(self):
        """(name, values) of the next frame."""
        found = read_frame(self.peer)
        if found is None or found[1] is None:
            raise ConnectionError('closed')
        name = NAMES[found[0]]
        return name, decode(name, found[1])

    def ask(self, message, /, **values):
        self.say(message, **values)
        return self.hear()

    def rest(self):
        """The names of all frames until the peer closes the connection."""
        names = []
        try:
            while True:
                names.append(self.hear()[0])
        except TimeoutError:
            raise
        except OSError:
            return names
        finally:
            self.close()

    def close(self):
        self.peer.close()
