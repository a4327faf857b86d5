"""Two heads as browsers and Prometheus see them: the follower's web server leads to the head in charge."""
import contextlib
import http.client
import json
import os
import random
import resource
import signal
import socket

from cluster import LIMIT, wait_until
from test_two_heads import HEADS, at_node, boot, in_charge, is_ready, other
from web import ThroughSocket, Web, value


def web_of(cluster, head):
    port = (cluster.directory / head / 'dashboard.port').read_text().strip()
    return Web(f'http://127.0.0.1:{port}/')


def status_of(web, path='/'):
    """0: no server listens there at the moment, or it ended before it answered."""
    try:
        return web.ask(path).status
    except (OSError, http.client.HTTPException):
        return 0


def ask_follower(web, status, path='/', method='GET', body=None, **headers):
    """The answer with this status. A follower that has not heard of its leader for 1.5 s answers 503 meanwhile."""
    answers = []

    def has_come():
        answers.append(web.ask(path, method, body, **headers))
        return answers[-1].status == status
    wait_until(has_come, what=lambda: (path, answers[-1]))
    return answers[-1]


def test_the_page_of_the_follower_sends_to_the_head_in_charge(fresh):
    cluster = boot(fresh)
    leader = in_charge(cluster)
    there, here = web_of(cluster, leader), web_of(cluster, other(leader))
    shown = json.loads(cluster.run('score', 'info', '--json', extra_env=at_node(cluster)).stdout)['dashboard_url']
    assert shown == there.url.geturl()
    for path in ('/', '/nothing', '/api/v1/snapshot', '/api/v1/trace?seconds=1', '/api/v1/stream?rate=10'):
        for method in ('GET', 'HEAD'):
            if method == 'HEAD' and 'stream' in path:
                continue
            answer = ask_follower(here, 307, path, method)
            assert answer.headers['Location'] == shown.rstrip('/') + path, path
            assert (answer.body == b'') == (method == 'HEAD')
    assert there.json('/api/v1/snapshot')['schema'].startswith('scored.stream/')
    wait_until(lambda: json.loads(ask_follower(here, 503, '/api/v1/admin/set', 'POST', b'{}').body)['error'].startswith('the head at '))
    upgrade = here.ask('/api/v1/ws', Upgrade='websocket', Connection='Upgrade', Sec_WebSocket_Version='13',
                       Sec_WebSocket_Key='AAAAAAAAAAAAAAAAAAAAAA==')
    assert upgrade.status == 503 and upgrade.headers['Retry-After'] == '5'
    for web, what in ((here, 0), (there, 1)):
        assert value(web.ask('/metrics').body.decode(), 'scored_head_in_charge') == what

    cluster.kill(leader)
    wait_until(lambda: status_of(here, '/api/v1/snapshot') == 200, what=cluster.logs)
    cluster.restart(leader)
    wait_until(lambda: status_of(there) == 307, what=cluster.logs)
    assert ask_follower(there, 307).headers['Location'] == here.url.geturl()


def test_the_page_says_that_no_head_is_in_charge(fresh):
    """A follower alone, which may not take over because it lacks changes."""
    cluster = boot(fresh)
    first = in_charge(cluster)
    second = other(first)
    cluster.kill(second)
    cluster.submit('true', extra_env=at_node(cluster))
    cluster.kill(first)
    cluster.restart(second)
    here = web_of(cluster, second)
    wait_until(lambda: status_of(here) == 503, what=cluster.logs)
    answer = here.ask('/')
    assert b'no head of the cluster is in charge' in answer.body and answer.headers['Retry-After'], answer.body
    cluster.restart(first)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    wait_until(lambda: status_of(here) == 307)


def test_the_follower_refers_a_proxy_to_the_active_head(fresh, tmp_path):
    """Both have the proxy's address, so a redirect would lead back to the follower. Users that the proxy names are not asked for."""
    cluster = boot(fresh)
    for head in HEADS:
        cluster.kill(head)
        with open(cluster.directory / head / 'scored.toml', 'a') as config:
            config.write(f'[monitor]\npublic_url = "https://cluster.example.org/"\nproxy_socket = "{tmp_path / head}"\n'
                         f'proxy_user = "{os.geteuid()}"\n')
    for head in HEADS:
        cluster.restart(head)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    leader = in_charge(cluster)

    def ask(head, path='/api/v1/session', **headers):
        link = ThroughSocket(tmp_path / head)
        link.request('GET', path, headers=headers)
        answer = link.getresponse()
        return answer.status, answer.read()

    for headers in ({}, {'X-Remote-User': 'no-such-account-here'}):
        wait_until(lambda headers=headers: b'the head at ' in ask(other(leader), **headers)[1], what=lambda: ask(other(leader)))
        assert ask(other(leader), **headers)[0] == 503
    assert ask(leader)[0] == 200
    assert ask(leader, **{'X-Remote-User': 'no-such-account-here'})[0] == 403


def test_strangers_do_not_stop_the_follower(fresh):
    """Its web server has the limits of the head's: damaged requests are refused, the oldest silent connections go first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard) if hard > 0 else 4096, hard))
    cluster = boot(fresh)
    second = other(in_charge(cluster))
    here = web_of(cluster, second)
    host = f'Host: {here.url.netloc}\r\n'.encode()
    for request, status in ((b'GET //evil.example/ HTTP/1.1\r\n' + host + b'\r\n', 400),
                            (b'GET http://evil.example/ HTTP/1.1\r\n' + host + b'\r\n', 400),
                            (b'GET /x%0d%0aSet-Cookie:a HTTP/1.1\r\n' + host + b'\r\n', 400),
                            (b'GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n', 421),
                            (b'GET /' + b'a' * 5000 + b' HTTP/1.1\r\n' + host + b'\r\n', 414),
                            (b'GET / HTTP/1.1\r\n' + host + b'X: ' + b'a' * 50000 + b'\r\n\r\n', 431),
                            (b'POST / HTTP/1.1\r\n' + host + b'Content-Length: 70000\r\n\r\n' + b'x' * 70000, 413)):
        got = here.raw(request)
        assert got.startswith(b'HTTP/1.1 %d ' % status), (request[:60], got[:60])
    chance = random.Random(7)
    begin = b'GET /api/v1/snapshot HTTP/1.1\r\n' + host + b'\r\n'
    for _ in range(100):
        data = bytearray(begin) if chance.random() < 0.5 else bytearray(chance.randbytes(chance.randrange(1, 300)))
        for _ in range(3):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            here.raw(bytes(data[:chance.randrange(1, len(data) + 1)]))
        except ConnectionError:
            pass
    silent = [socket.create_connection((here.url.hostname, here.url.port)) for _ in range(1300)]
    try:
        for _ in range(20):
            ask_follower(here, 307)
        assert is_ready(cluster) and other(in_charge(cluster)) == second, cluster.logs()
    finally:
        for link in silent:
            link.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def rest_of(connection):
    """All bytes until the server closes the connection."""
    found = b''
    with contextlib.suppress(ConnectionError), connection:
        while part := connection.recv(1 << 16):
            found += part
    return found


def test_a_replaced_head_shows_no_page(fresh):
    """Requests, and a stream of documents, wait at a stopped head until the other one leads."""
    cluster = boot(fresh)
    first = in_charge(cluster)
    port = int((cluster.directory / first / 'dashboard.port').read_text())
    request = b'GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n'
    paths = (b'/', b'/api/v1/snapshot', b'/metrics', b'/api/v1/session')
    waiting = [socket.create_connection(('127.0.0.1', port), LIMIT) for _ in paths]
    for connection in waiting:  # the server has accepted them and waits for the next request
        connection.sendall(request % (b'/api/v1/session', port))
        assert connection.recv(1 << 16).startswith(b'HTTP/1.1 200')
    pid = cluster.daemon(first)['pid']
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: in_charge(cluster) == other(first), what=cluster.logs)
        for connection, path in zip(waiting, paths):
            connection.sendall(request % (path, port))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert [rest_of(connection) for connection in waiting] == [b''] * len(paths)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
