"""Tests the client with a server that closes early, refuses and sends malformed data."""
import contextlib
import http.server
import io
import json
import ssl
import threading

import pytest
import scored_stream
from scored_stream import Stream, StreamError, rows

DOCUMENT = {
    'schema': 'scored.stream/1', 'seq': 0, 'time_unix_s': 5.5,
    'nodes': [{'name': 'n0', 'state': 'up'}, {'name': 'n1', 'state': 'up'}],
    'processes': {'columns': ['node', 'job', 'rank', 'user'], 'rows': [[1, 7, 0, 0.5], [0, 7, 1, 1.0]]},
    'slices': {'runs': [[0, 7, 1.0, None]]},
    'matrix': {'rows': [{'slot': 3, 'active': True, 'cells': [[7], []]}]},
    'traffic': [None, [1, 2, 3, 4]],
}


@contextlib.contextmanager
def server(answers):
    """A server with one answer per request: a status, or the lines of a stream."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def do_GET(self):
            asked.append((self.path, self.headers.get('Authorization')))
            answer = answers[min(len(asked), len(answers)) - 1]
            if isinstance(answer, int):
                self.send_response(answer)
                self.send_header('Content-Length', '0')
                self.end_headers()
                return
            self.send_response(200)
            self.send_header('Transfer-Encoding', 'chunked')
            self.end_headers()
            for line in answer:
                self.wfile.write(b'%x\r\n%s\r\n' % (len(line), line))
            self.close_connection = True

        def log_message(self, *_):
            pass

    made = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    try:
        yield f'http://127.0.0.1:{made.server_port}/', asked
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


def line(**changes):
    return json.dumps({**DOCUMENT, **changes}).encode() + b'\n'


def test_gives_documents_until_the_count():
    with server([[line(seq=1), line(seq=2), line(seq=3)]]) as (url, asked):
        assert [d['seq'] for d in Stream(url, rate=5, parts=['jobs'], job=7, count=2)] == [1, 2]
        assert asked[0][0] == '/api/v1/stream?rate=5&parts=jobs&job=7'


def test_begins_again_when_a_stream_breaks():
    with server([[line(seq=1), b'{"half'], 503, [line(seq=9)]]) as (url, asked):
        assert [d['seq'] for d in Stream(url, count=2)] == [1, 9]
        assert len(asked) == 3


def test_survives_a_line_that_is_no_text():
    with server([[line(seq=1), b'{"name": "\xff\xfe"}\n'], [line(seq=2)]]) as (url, _):
        assert [d['seq'] for d in Stream(url, count=2)] == [1, 2]


@pytest.mark.parametrize('url', ['localhost:4711', 'http://host:port/', 'ftp://host/', '', 'http:///', 'http://[::1'])
def test_says_so_when_the_address_is_none(url, capsys):
    with pytest.raises(StreamError, match='is not an address'):
        Stream(url)
    assert not url or scored_stream.main([url]) == 1


def test_gives_up_when_the_certificate_is_wrong(monkeypatch):
    def refuse(self):
        raise ssl.SSLCertVerificationError('self-signed')
    monkeypatch.setattr(Stream, '_connect', refuse)
    with pytest.raises(StreamError, match='self-signed'):
        list(Stream('https://head:4711/', count=1))


def test_gives_up_when_it_is_refused():
    with server([401]) as (url, _), pytest.raises(StreamError, match='401'):
        list(Stream(url, count=1))


def test_sends_its_token():
    with server([[line()]]) as (url, asked):
        list(Stream(url, count=1, token='abc'))
        assert asked[0][1] == 'Bearer abc'


def test_turns_every_table_into_rows():
    assert list(rows(DOCUMENT, 'processes'))[0] == {
        'time_unix_s': 5.5, 'node': 'n1', 'job': 7, 'rank': 0, 'user': 0.5}
    assert list(rows(DOCUMENT, 'runs')) == [
        {'time_unix_s': 5.5, 'node': 'n0', 'job': 7, 'start_s': 1.0, 'end_s': None}]
    assert list(rows(DOCUMENT, 'cells')) == [
        {'time_unix_s': 5.5, 'slot': 3, 'node': 'n0', 'job': 7, 'active': True}]
    assert list(rows(DOCUMENT, 'traffic'))[0]['node'] == 'n1'
    assert len(list(rows(DOCUMENT, 'nodes'))) == 2
    with pytest.raises(ValueError):
        list(rows(DOCUMENT, 'bogus'))


def test_prints_csv():
    out = io.StringIO()
    with server([[line()]]) as (url, _), contextlib.redirect_stdout(out):
        assert scored_stream.main([url, '--count', '1']) == 0
    assert out.getvalue().splitlines()[:2] == ['time_unix_s,node,job,rank,user', '5.5,n1,7,0,0.5']
