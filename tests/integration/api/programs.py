"""A program that uses the HTTP API of a virtual cluster, on its socket or through the web server."""
import contextlib
import http.client
import json
import socket


class OnSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=600)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def document(self):
        return json.loads(self.body)


def socket_of(cluster):
    return cluster.directory / 'head/api.sock'


def ask(cluster, method, path, body=None, *, token=None, headers=()):
    """Sends one request: with a token through the web server, else on the socket, whose path may stand for the cluster."""
    sent = dict(headers)
    if token is not None:
        connection = http.client.HTTPConnection(cluster.json('score', 'info')['dashboard_url'].split('/')[2], timeout=600)
        sent['Authorization'] = f'Bearer {token}'
    else:
        connection = OnSocket(cluster if isinstance(cluster, str) else socket_of(cluster))
    with contextlib.closing(connection):
        if body is not None:
            sent.setdefault('Content-Type', 'application/json')
        connection.request(method, '/api/v1/' + path, body if isinstance(body, (bytes, type(None))) else json.dumps(body), sent)
        return Answer(connection.getresponse())


def submit(cluster, command, **members):
    answer = ask(cluster, 'POST', 'jobs', {'command': command, 'directory': '/tmp', 'allow_root': True, **members})
    assert answer.status == 201, answer.body
    assert answer.headers['Location'] == f'/api/v1/jobs/{answer.document["job"]}'
    return answer.document['job']
