"""Frames of the wire, made from the .proto files: encoded from names and values, or at random but well formed."""
import pathlib
import re
import struct

PROTO = pathlib.Path(__file__).resolve().parents[3] / 'proto'
FIELD = re.compile(r'^(?:(repeated)\s+)?(?:map<(\w+),\s*(\w+)>|([\w.]+))\s+(\w+)\s*=\s*(\d+)')
FRAME = re.compile(r'option \(frame\) = \{ type: (\d+) max_bytes: (\d+)\s+allow: \[([^\]]*)\]')
VARINTS = {'uint32', 'uint64', 'int32', 'int64', 'bool', 'sint32', 'sint64'}
LENGTHS = [0, 1, 2, 15, 16, 17, 63, 64, 65, 255, 4096]
NUMBERS = [0, 1, 2, 3, 7, 64, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]


class Schema:
    """messages: {name: {field: (number, type, repeated)}}; frames: {name: (type, max_bytes)}; roles: {name: who may send it}"""

    def __init__(self):
        self.messages, self.frames, self.roles, self.enums = {}, {}, {}, set()
        for path in sorted(PROTO.glob('*.proto')):
            self.read(re.sub(r'//[^\n]*|option \(value\)[^}]*\};|\[\(rule\)[^;]*\]', '', path.read_text(encoding='utf-8')))

    def read(self, text):
        open_names = []
        for statement in re.findall(r'\s*option \(frame\) = \{[^}]*\};|[^;{}]*[;{}]', text):
            statement = statement.strip()
            if found := FRAME.match(statement):
                self.frames[open_names[-1]] = (int(found[1]), int(found[2]))
                self.roles[open_names[-1]] = found[3].replace(',', ' ').split()
            elif statement.endswith('{'):
                words = statement[:-1].split()
                name = words[-1] if words else ''
                if words[:1] == ['enum']:
                    self.enums.add(name)
                elif words[:1] == ['message']:
                    self.messages[name] = {}
                elif words[:1] == ['oneof'] and open_names:
                    name = open_names[-1]
                open_names.append(name)
            elif statement == '}':
                open_names.pop()
            elif open_names and open_names[-1] in self.messages and (field := FIELD.match(statement)):
                if field[4] not in (None, 'option', 'reserved'):
                    self.messages[open_names[-1]][field[5]] = (int(field[6]), field[4], field[1] is not None)

    def sent_by(self, role):
        return [name for name, roles in self.roles.items() if role in roles]

    # ---- from values

    def encode(self, name, /, **values):
        fields, out = self.messages[name], b''
        for key, value in values.items():
            number, kind, repeated = fields[key]
            for one in value if repeated else [value]:
                out += self.field(number, kind, one)
        return out

    def field(self, number, kind, value):
        if kind in VARINTS or kind in self.enums:
            return varint(number << 3) + varint(value)
        if kind in ('double', 'fixed64'):
            return varint(number << 3 | 1) + struct.pack('<Q', value)
        if kind in ('float', 'fixed32'):
            return varint(number << 3 | 5) + struct.pack('<I', value)
        payload = self.encode(kind, **value) if isinstance(value, dict) else value
        return varint(number << 3 | 2) + varint(len(payload)) + payload

    def frame(self, name, /, **values):
        return frame(self.frames[name][0], self.encode(name, **values))

    # ---- at random

    def random(self, name, chance, hints=None, depth=0):
        """A payload of the message. hints: {field: values that make sense}; others are sent too, unless there is only one."""
        out = b''
        for key, (number, kind, repeated) in self.messages[name].items():
            for _ in range(chance.choice((0, 1, 2, 9)) if repeated else chance.choice((0, 1, 1))):
                out += self.field(number, kind, self.value(key, kind, chance, hints or {}, depth))
        return out

    def value(self, key, kind, chance, hints, depth):
        if key in hints and (len(hints[key]) == 1 or chance.random() < 0.7):
            return chance.choice(hints[key])
        if kind in VARINTS or kind in self.enums:
            return chance.choice(NUMBERS) if chance.random() < 0.7 else chance.randrange(1 << 16)
        if kind in self.messages:
            return self.random(kind, chance, hints, depth + 1) if depth < 6 else b''
        if kind in ('double', 'fixed64', 'float', 'fixed32'):
            return chance.choice(NUMBERS[:11])
        return chance.choice((b'', b'x', b'a=b', b'/tmp', b'\0', b'%t', chance.randbytes(chance.choice(LENGTHS))))

    def random_frame(self, names, chance, hints=None):
        """A frame of one of these messages; one of eight is damaged on its way."""
        name = chance.choice(names)
        data = bytearray(frame(self.frames[name][0], self.random(name, chance, hints)))
        if chance.random() < 1 / 8:
            place = chance.randrange(len(data))
            data[place] ^= 1 << chance.randrange(8)
        return name, bytes(data)


def frame(kind, payload, length=None):
    return struct.pack('<4sHHII', b'SCRD', 1, kind, len(payload) if length is None else length, 0) + payload


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def read_frame(peer):
    """(type, payload); None at the end of the stream."""
    head = read_exactly(peer, 16)
    if head is None:
        return None
    _, _, kind, length, _ = struct.unpack('<4sHHII', head)
    return kind, read_exactly(peer, length)


def read_exactly(peer, size):
    data = b''
    while len(data) < size:
        part = peer.recv(size - len(data))
        if not part:
            return None
        data += part
    return data
