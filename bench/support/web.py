"""Clients of a cluster's web server: requests, a WebSocket, a check of documents. Standard library only."""
import base64
import http.client
import json
import os
import pathlib
import socket
import struct
import urllib.parse

from cluster import LIMIT

SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / 'docs/reference/stream.schema.json').read_text())
TYPES = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'null': type(None)}


def is_type(value, name):
    if name == 'integer':
        return isinstance(value, int) and not isinstance(value, bool)
    if name == 'number':
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def faults(value, schema=SCHEMA, where='$'):
    """Returns the violations of the schema, which uses only a few keywords of JSON Schema."""
    names = schema.get('type', [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, name) for name in names):
        return [f'{where}: {value!r} is no {names}']
    found = []
    if 'enum' in schema and value not in schema['enum']:
        found.append(f'{where}: {value!r} is none of {schema["enum"]}')
    if 'minimum' in schema and is_type(value, 'number') and value < schema['minimum']:
        found.append(f'{where}: {value!r} < {schema["minimum"]}')
    if isinstance(value, dict):
        found += [f'{where}: no {name}' for name in schema.get('required', []) if name not in value]
        for name, part in value.items():
            found += faults(part, schema.get('properties', {}).get(name, {}), f'{where}.{name}')
    if isinstance(value, list):
        if not schema.get('minItems', 0) <= len(value) <= schema.get('maxItems', len(value)):
            found.append(f'{where}: {len(value)} items')
        first = schema.get('prefixItems', [])
        for i, part in enumerate(value):
            rule = first[i] if i < len(first) else schema.get('items', {})
            found += faults(part, rule, f'{where}[{i}]')
    return found


def value(text, name, labels=''):
    """Returns the values of a metric in the text of a scrape."""
    for line in text.splitlines():
        if line.startswith(name + labels + ' '):
            return float(line.rsplit(' ', 1)[1])
    raise AssertionError(f'no {name}{labels}')


class ThroughSocket(http.client.HTTPConnection):
    """Connects as a proxy on the head's host does."""

    def __init__(self, path):
        super().__init__('cluster.example.org', timeout=LIMIT)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


class Web:
    """An HTTP client that keeps its cookie."""

    def __init__(self, url):
        self.url = urllib.parse.urlsplit(url)
        self.cookie = None

    def ask(self, path, method='GET', body=None, **headers):
        connection = http.client.HTTPConnection(self.url.netloc, timeout=LIMIT)
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        if self.cookie:
            headers.setdefault('Cookie', self.cookie)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.body = answer.read()
        connection.close()
        return answer

    def json(self, path, **headers):
        answer = self.ask(path, **headers)
        assert answer.status == 200, (path, answer.status, answer.body)
        return json.loads(answer.body)

    def snapshot(self, query=''):
        document = self.json('/api/v1/snapshot' + query)
        assert faults(document) == [], faults(document)[:5]
        return document

    def login(self, cluster):
        address = urllib.parse.urlsplit(cluster.run('scadm', 'web-login').stdout.strip())
        answer = self.post_login(address.fragment)
        assert answer.status == 303, answer.body
        self.cookie = answer.headers['Set-Cookie'].split(';')[0]
        return answer

    def post_login(self, token, **headers):
        headers.setdefault('Content_Type', 'application/x-www-form-urlencoded')
        return self.ask('/login', 'POST', f'token={token}', **headers)

    def act(self, name, body, **headers):
        csrf = self.json('/api/v1/session')['csrf'] or ''
        headers.setdefault('Content_Type', 'application/json')
        headers.setdefault('X_Scored_Csrf', csrf)
        answer = self.ask(f'/api/v1/admin/{name}', 'POST', json.dumps(body), **headers)
        return answer.status, json.loads(answer.body)

    def raw(self, text):
        """Sends bytes; returns the answer, up to the end of the connection."""
        with socket.create_connection((self.url.hostname, self.url.port), timeout=LIMIT) as link:
            link.sendall(text)
            link.shutdown(socket.SHUT_WR)
            got = b''
            while part := link.recv(65536):
                got += part
        return got

    def stream(self, query=''):
        """Yields lines of the NDJSON stream."""
        connection = http.client.HTTPConnection(self.url.netloc, timeout=LIMIT)
        connection.request('GET', '/api/v1/stream' + query)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        for line in response:
            yield json.loads(line)
        connection.close()


class WebSocket:
    """A WebSocket client with the part of RFC 6455 that a viewer needs."""

    def __init__(self, web, path='/api/v1/ws', **headers):
        self.link = socket.create_connection((web.url.hostname, web.url.port), timeout=LIMIT)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f'GET {path} HTTP/1.1', f'Host: {web.url.netloc}', 'Upgrade: websocket', 'Connection: Upgrade',
                 f'Sec-WebSocket-Key: {key}', 'Sec-WebSocket-Version: 13']
        lines += [f'{name.replace("_", "-")}: {value}' for name, value in headers.items()]
        if web.cookie:
            lines.append(f'Cookie: {web.cookie}')
        self.link.sendall('\r\n'.join(lines + ['', '']).encode())
        self.buffer = b''
        while b'\r\n\r\n' not in self.buffer:
            part = self.link.recv(4096)
            assert part, self.buffer
            self.buffer += part
        head, self.buffer = self.buffer.split(b'\r\n\r\n', 1)
        self.status = int(head.split()[1])

    def exactly(self, count):
        while len(self.buffer) < count:
            part = self.link.recv(1 << 16)
            if not part:
                raise EOFError
            self.buffer += part
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def message(self):
        """(opcode, bytes): 1 text, 8 close."""
        first, second = self.exactly(2)
        size = second & 127
        if size == 126:
            size, = struct.unpack('>H', self.exactly(2))
        elif size == 127:
            size, = struct.unpack('>Q', self.exactly(8))
        return first & 15, self.exactly(size)

    def document(self):
        opcode, data = self.message()
        assert opcode == 1, (opcode, data)
        return json.loads(data)

    def say(self, data, opcode=1):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        mask = os.urandom(4)
        size = struct.pack('>B', 128 | len(data)) if len(data) < 126 else struct.pack('>BH', 254, len(data))
        body = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.link.sendall(bytes([128 | opcode]) + size + mask + body)

    def closed(self):
        """Reads to the end; returns the code of the close frame, None without one."""
        code = None
        try:
            while True:
                opcode, data = self.message()
                if opcode == 8:
                    code = struct.unpack('>H', data[:2])[0] if len(data) >= 2 else 1005
                    self.say(data[:2], 8)  # otherwise the server waits for the answer
        except (EOFError, ConnectionError):
            return code
