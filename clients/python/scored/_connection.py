"""One request to the HTTP API of a head, over a Unix socket or over TCP."""
from __future__ import annotations

import http.client
import json
import os
import pathlib
import socket
import ssl
import time
import typing
import urllib.parse

Json = typing.Dict[str, typing.Any]

_SOCKET = '/run/scored/api.sock'
_TIMEOUT = 60.0  # seconds until a silent head is taken for lost
_RETRY_FOR = 60.0  # seconds in which a head that restarts may come back


class ScoredError(Exception):
    """The head refused a request, or cannot be reached (status 0)."""

    def __init__(self, status: int, message: str, field: str = '') -> None:
        super().__init__(message)
        self.status = status
        self.field = field


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__('localhost', timeout=_TIMEOUT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def default_address() -> str:
    """SCORED_API, else the socket beside the head's command socket."""
    named = os.environ.get('SCORED_API')
    if named:
        return named
    commands = os.environ.get('SCORED_SERVER', '').split(',')[0].replace('unix:', '')
    return str(pathlib.Path(commands).with_name('api.sock')) if commands else _SOCKET


class Connection:
    """Sends requests, each on a connection of its own, so that threads may share it."""

    def __init__(self, address: str, token: str | None, context: ssl.SSLContext | None) -> None:
        self.address = address
        self._token = token
        self._context = context
        self._was_reached = False

    def _open(self) -> http.client.HTTPConnection:
        if '://' not in self.address:
            return _UnixConnection(self.address)
        url = urllib.parse.urlsplit(self.address)
        if url.scheme == 'https':
            return http.client.HTTPSConnection(url.hostname or '', url.port, timeout=_TIMEOUT, context=self._context)
        return http.client.HTTPConnection(url.hostname or '', url.port, timeout=_TIMEOUT)

    def _send(self, method: str, path: str, body: Json | None, headers: typing.Mapping[str, str]) -> http.client.HTTPResponse:
        connection = self._open()
        sent = dict(headers)
        if self._token:
            sent['Authorization'] = f'Bearer {self._token}'
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent['Content-Type'] = 'application/json'
        connection.request(method, path, data, sent)
        return connection.getresponse()

    def open(self, method: str, path: str, body: Json | None = None,
             headers: typing.Mapping[str, str] | None = None) -> http.client.HTTPResponse:
        """Returns the response, of which the body has not been read. A request that may be repeated is repeated while
        the head restarts."""
        may_repeat = method == 'GET' or 'Idempotency-Key' in (headers or {})
        end = time.monotonic() + _RETRY_FOR
        while True:
            try:
                response = self._send(method, path, body, headers or {})
                self._was_reached = True
            except (OSError, http.client.HTTPException) as error:
                # A head that ends in good order removes its socket. Without one from the start, the address is wrong.
                is_wrong = isinstance(error, ssl.SSLError) or (isinstance(error, FileNotFoundError) and not self._was_reached)
                if may_repeat and time.monotonic() < end and not is_wrong:
                    time.sleep(0.2)
                    continue
                raise ScoredError(0, f'cannot reach the head at {self.address}: {error}') from error
            if response.status in (429, 503) and may_repeat and time.monotonic() < end:
                response.close()
                time.sleep(0.2)
                continue
            if response.status < 400:
                return response
            raise self._error_of(response)

    def ask(self, method: str, path: str, body: Json | None = None,
            headers: typing.Mapping[str, str] | None = None) -> Json:
        """Returns the JSON document of the response."""
        with self.open(method, path, body, headers) as response:
            return typing.cast(Json, json.loads(response.read()))

    @staticmethod
    def _error_of(response: http.client.HTTPResponse) -> ScoredError:
        text = response.read()
        try:
            problem = json.loads(text)
        except ValueError:
            return ScoredError(response.status, response.reason)
        message = problem.get('message') or problem.get('error') or response.reason
        return ScoredError(response.status, message, problem.get('field', ''))
