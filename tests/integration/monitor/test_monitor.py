"""The cluster as its viewers see it: documents, streams, rights, bad input."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pwd
import random
import resource
import shutil
import signal
import socket
import subprocess
import time

import pytest
from cluster import LIMIT, configure_head, wait_until
from figures import figure
from web import ThroughSocket, Web, WebSocket, faults, value

BUSY = ['sh', '-c', 'while :; do :; done']


@pytest.fixture(scope='module')
def web(few):
    return Web(few.json('score', 'info')['dashboard_url'])


def rows(document):
    columns = document['processes']['columns']
    return [dict(zip(columns, values)) for values in document['processes']['rows']]


def watched(web, query='?rate=10'):
    """Documents of a stream, until the caller has seen enough."""
    end = time.monotonic() + LIMIT
    for document in web.stream(query):
        assert faults(document) == [], faults(document)[:5]
        assert time.monotonic() < end, (f'not within {LIMIT} s', document['processes'])
        yield document


# ---- documents

def test_snapshot_shows_nodes_and_jobs(few, web):
    job = few.submit('-n', 8, '-J', '<script>alert(1)</script>', 'sleep', 600)
    few.wait_job(job, 'running')
    document = web.snapshot()
    assert [node['name'] for node in document['nodes']] == [f'node{i:02}' for i in range(8)]
    assert {node['state'] for node in document['nodes']} == {'up'}
    shown = [one for one in document['jobs'] if one['job'] == job]
    assert shown[0]['state'] == 'running' and shown[0]['tasks'] == 8
    assert shown[0]['name'] == '<script>alert(1)</script>'
    assert any(job in cell for row in document['matrix']['rows'] for cell in row['cells'])
    few.cancel(job)
    document = web.snapshot()
    assert [one['final'] for one in document['jobs'] if one['job'] == job] == [True]
    assert not any(job in cell for row in document['matrix']['rows'] for cell in row['cells'])
    assert any(event['job'] == job and event['kind'] == 'job' for event in document['events'])


def test_loads_are_of_scheduled_time(few, web, tmp_path):
    """Two gangs share two nodes: a load counts the time that its gang had, not that of the node."""
    # It says when it computes: before, a shell may wait for its own file.
    begun = ['sh', '-c', f': >{tmp_path}/$SCORE_JOBID.$SCORE_RANK; {BUSY[2]}']
    jobs = [few.submit('-w', 'node[00-01]', '-N', 2, '-n', 2, '-c', 2, *begun) for _ in range(2)]
    for job in jobs:
        few.wait_job(job, 'running')
    wait_until(lambda: len(list(tmp_path.iterdir())) == 4)
    states, compared, most = set(), 0, 0  # of the last documents
    differing = []
    for document in watched(web):
        busy = {0: 0, 1: 0}
        seen = [row for row in rows(document) if row['job'] in jobs]
        for row in seen:
            busy[row['node']] += (row['user'] + row['system']) * row['scheduled']
            states.add(row['state'])
            # A task that gets no processor counts as waiting until a full sample shows otherwise.
            if row['state'] == 'blocked':
                states, compared, differing = set(), 0, []
            most = max(most, row['user'] + row['system'])
        if len(seen) == 4 and all(0.1 < row['scheduled'] < 0.9 for row in seen):
            # Tasks are read one after another: with a switch in between a document may not agree with itself.
            shown = [(node, load, document['nodes'][node]) for node, load in busy.items()]
            if all(load == pytest.approx(sums['user'] + sums['system'], abs=0.05) for _, load, sums in shown):
                compared += 1
            else:
                differing.append((shown, seen))
        if compared > 20 and states >= {'running', 'frozen'} and most > 0.3:
            break
    assert states <= {'running', 'frozen'}, states
    assert len(differing) * 4 <= compared, differing


def test_events_call_a_job_that_heeds_its_cancelling_cancelled(few, web):
    job = few.submit('-n', 1, 'sleep', 600)
    few.wait_job(job, 'running')
    few.run('sccancel', job)
    few.wait_job(job, 'cancelled')
    texts = [event['text'] for event in web.snapshot()['events'] if event['job'] == job]
    assert any(') cancelled: cancelled by ' in text for text in texts), texts
    assert not any('failed' in text for text in texts), texts


def test_processes_that_get_no_processor_are_seen_to_wait_for_one(few, web):
    one = str(min(os.sched_getaffinity(0)))
    job = few.submit('-w', 'node02', '-N', 1, '-n', 2, 'taskset', '-c', one, *BUSY)
    few.wait_job(job, 'running')
    for document in watched(web):
        seen = [row for row in rows(document) if row['job'] == job]
        if len(seen) == 2 and all(row['waited'] > 0.25 for row in seen):
            break
    few.cancel_all()


def test_slices_and_switches_follow_the_timetable(few, web):
    jobs = [few.submit('-n', 16, *BUSY) for _ in range(2)]
    for job in jobs:
        few.wait_job(job, 'running')
    runs, count = {}, 0
    for document in watched(web):
        for node, job, start, end in document['slices']['runs']:
            if job in jobs:  # how long a job that was killed ran is known to a sample only
                runs[node, job, start] = end
        count = max(count, document['switches']['count'])
        ended = [key for key, end in runs.items() if end is not None]
        if count > 20 and len(ended) > 100 and document['cluster']['overhead'] is not None:
            break
    assert document['switches']['phases']['total']['max_s'] > 0
    assert document['switches']['skew']['count'] > 0
    for node in {key[0] for key in ended}:
        mine = sorted((start, runs[n, j, start], j) for n, j, start in ended if n == node)
        for (_, end, one), (start, _, other) in zip(mine, mine[1:]):
            assert one == other or start >= end - 1e-4, (node, one, other, end - start)


def test_a_shell_and_its_program_are_one_task(few, web):
    job = few.submit('-n', 1, 'sh', '-c', 'sh -c "while :; do :; done"; true')
    few.wait_job(job, 'running')
    for document in watched(web, f'?rate=10&job={job}'):
        seen = rows(document)
        # In a slice in which a busy machine gave it no processor it is not seen running.
        if seen and seen[0]['processes'] == 2 and seen[0]['user'] > 0.2 and seen[0]['state'] == 'running':
            break
    assert len(seen) == 1 and seen[0]['memory_bytes'] > 100_000


def test_rates_filters_and_counts(few, web):
    documents = []

    def is_smooth():  # a reader that is held up misses some
        documents[:] = web.stream('?rate=10&count=5&parts=jobs')
        assert len(documents) == 5
        assert 'nodes' not in documents[0] and 'jobs' in documents[0]
        steps = [b['seq'] - a['seq'] for a, b in zip(documents, documents[1:])]
        return steps == [1] * 4 and documents[-1]['time_s'] - documents[0]['time_s'] < 5
    wait_until(is_smooth, what=lambda: [(one['seq'], one['time_s']) for one in documents])
    for bad in ('rate=0', 'rate=100', 'rate=x', 'parts=x', 'job=0', 'nothing=1', 'count=0', 'rate=1&rate=2'):
        assert web.ask('/api/v1/stream?' + bad).status == 400, bad


def test_without_viewers_no_samples_are_sent(few, web):
    next(web.stream('?rate=10'))
    wait_until(lambda: web.snapshot()['cluster']['sample_period_s'] is None)


def test_curl_reads_the_stream(few, web):
    if shutil.which('curl') is None:
        pytest.skip('no curl')
    got = subprocess.run(['curl', '-sN', web.url.geturl() + 'api/v1/stream?rate=5&count=3'], capture_output=True,
                         timeout=LIMIT, check=True)
    assert len([json.loads(line) for line in got.stdout.splitlines()]) == 3


# ---- WebSocket

def test_socket_sends_whole_documents_and_takes_requests(few, web):
    viewer = WebSocket(web)
    assert viewer.status == 101
    assert viewer.document()['schema'] == 'scored.session/1'
    assert faults(viewer.document()) == []
    viewer.say({'rate': 10, 'parts': ['nodes']})
    wait_until(lambda: 'jobs' not in viewer.document())
    viewer.say({'pause': True})
    viewer.say({'pause': False, 'parts': None})
    wait_until(lambda: 'jobs' in viewer.document())


@pytest.mark.parametrize('data, opcode, code', [
    (b'{"rate":1000}', 1, 1008), (b'nonsense', 1, 1008), (b'{}', 2, 1008), (b'x' * 5000, 1, 1009), (b'\xff\xfe', 1, 1007)])
def test_socket_closes_on_invalid_messages(few, web, data, opcode, code):
    viewer = WebSocket(web)
    viewer.say(data, opcode)
    assert viewer.closed() == code


def test_socket_refuses_other_origins(few, web):
    assert WebSocket(web, Origin='http://evil.example').status == 403
    assert WebSocket(web, Origin='null').status == 403
    assert WebSocket(web, Origin=f'http://{web.url.netloc}').status == 101
    assert web.ask('/api/v1/ws').status == 426


def test_slow_viewer_misses_documents_and_delays_no_other(few, web):
    slow = WebSocket(web, '/api/v1/ws?rate=10')
    slow.link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    quick = WebSocket(web, '/api/v1/ws?rate=10')
    quick.document()  # the session's
    begin = quick.document()['seq']
    before = web.ask('/metrics').body.decode()
    for _ in range(60):
        quick.document()
    after = web.ask('/metrics').body.decode()
    fetched = time.time()
    while (document := quick.document())['time_unix_s'] < fetched:  # some were on their way
        pass
    made = document['seq'] - begin
    assert value(after, 'scored_documents_encoded_total') - value(before, 'scored_documents_encoded_total') <= made
    assert made >= 60
    assert value(after, 'process_resident_memory_bytes') < value(before, 'process_resident_memory_bytes') + 8e6
    slow.link.close()


def test_a_hundred_viewers_cost_one_encoding(few, web):
    viewers = [WebSocket(web, '/api/v1/ws?rate=10&parts=cluster') for _ in range(100)]
    before = web.ask('/metrics').body.decode()
    for _ in range(20):
        for viewer in viewers:
            viewer.document()
    after = web.ask('/metrics').body.decode()
    assert value(after, 'scored_viewers') >= 100

    def grown(what):
        return value(after, f'scored_documents_{what}_total') - value(before, f'scored_documents_{what}_total')
    assert grown('delivered') >= 1000 and grown('delivered') >= 50 * grown('encoded'), (grown('delivered'), grown('encoded'))
    for viewer in viewers:
        viewer.link.close()


# ---- rights

def test_login_works_once_and_actions_take_effect(few, web):
    few.run('scadm', 'set', 'quantum', '20ms')
    browser = Web(web.url.geturl())
    assert browser.act('set', {'name': 'quantum', 'value': '30ms'})[0] == 401
    answer = browser.login(few)
    assert 'HttpOnly' in answer.headers['Set-Cookie'] and 'SameSite=Strict' in answer.headers['Set-Cookie']
    session = browser.json('/api/v1/session')
    assert session['role'] == 'operator' and 'set' in session['can']
    assert browser.act('set', {'name': 'quantum', 'value': '30ms'}, X_Scored_Csrf='x')[0] == 403
    assert browser.act('set', {'name': 'quantum', 'value': '30ms'}, Origin='http://evil.example')[0] == 403
    assert browser.act('set', {'name': 'quantum', 'value': '30ms'}, Content_Type='text/plain')[0] == 415
    assert few.json('score', 'info')['quantum_s'] == 0.02
    assert browser.act('set', {'name': 'quantum', 'value': '30ms'})[0] == 200
    assert few.json('score', 'info')['quantum_s'] == 0.03
    assert browser.act('set', {'name': 'quantum', 'value': '20ms'})[1]['ok']
    assert browser.act('set', {'name': 'quantum', 'value': '1us'})[0] == 400
    assert browser.act('cancel', {'job': 999999})[0] == 404
    assert browser.act('drain', {'nodes': 'node07', 'reason': 'test'})[0] == 200
    assert browser.snapshot()['nodes'][7]['drained']
    assert browser.act('resume', {'nodes': 'node07'})[0] == 200
    assert any(e['kind'] == 'admin' and 'quantum' in e['text'] for e in browser.snapshot()['events'])
    assert 'via=web' in (few.directory / 'log/head').read_text()
    job = few.submit('-n', 1, 'sleep', 600)
    few.wait_job(job, 'running')
    assert browser.act('suspend', {'job': job})[0] == 200
    assert few.job(job)['state'] == 'suspended'
    assert browser.act('continue', {'job': job})[0] == 200
    assert browser.act('cancel', {'job': job, 'grace_s': 0})[0] == 200
    few.wait_job(job, 'cancelled')
    assert browser.act('logout', {})[0] == 200
    assert browser.act('set', {'name': 'quantum', 'value': '30ms'})[0] == 401


def test_streams_end_with_the_login(few, web):
    """Who logged in may see more than others: not for longer than the login lasts."""
    browser, other = Web(web.url.geturl()), Web(web.url.geturl())
    for one in (browser, other):
        one.login(few)
    sockets = [WebSocket(one, '/api/v1/ws?rate=10&parts=cluster') for one in (browser, other, web)]
    assert [socket.document()['role'] for socket in sockets] == ['operator', 'operator', 'viewer']
    assert browser.act('logout', {})[0] == 200
    assert sockets[0].closed() == 1008
    for socket in sockets[1:]:
        first = socket.document()['seq']
        assert socket.document()['seq'] > first
        socket.link.close()


def test_address_of_a_login_is_used_up(few, web):
    token = few.run('scadm', 'web-login').stdout.strip().split('/login#')[1]
    # Not by an address that a mail scanner or a prefetch opens, not from another page.
    assert web.ask(f'/login?token={token}').status == 405
    assert web.post_login(token, Origin='http://evil.example').status == 403
    flags = web.post_login(token).headers['Set-Cookie'].split('; ')[1:]
    figure('hole-11', f'GET 405, cookie: {", ".join(flags)}')
    assert flags == ['Path=/', 'HttpOnly', 'SameSite=Strict', 'Max-Age=43200']
    assert web.post_login(token).status == 401
    assert web.post_login('guess').status == 401


def test_guessed_logins_are_limited_and_block_no_other_client(fresh):
    cluster = fresh(1)
    web = Web(cluster.json('score', 'info')['dashboard_url'])
    with concurrent.futures.ThreadPoolExecutor(16) as guessers:  # also a busy machine is faster than the budget
        answers = list(guessers.map(lambda _: web.post_login('guess').status, range(200)))
    assert set(answers) == {401, 429}, answers
    web.login(cluster)
    assert web.json('/api/v1/session')['role'] == 'operator'


def test_too_many_requests_are_refused_with_a_reason(fresh):
    cluster = fresh(1)
    web = Web(cluster.json('score', 'info')['dashboard_url'])
    line = f'GET /api/v1/session HTTP/1.1\r\nHost: {web.url.netloc}\r\n'
    # One after the other over one connection, more than the server lets through at once.
    got = web.raw(f'{line}\r\n'.encode() * 9_999 + f'{line}Connection: close\r\n\r\n'.encode())
    assert got.startswith(b'HTTP/1.1 200 ') and b'HTTP/1.1 429 ' in got
    wait_until(lambda: web.ask('/api/v1/session').status == 200)


def test_silent_connections_block_no_other_client(fresh):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard) if hard > 0 else 4096, hard))
    cluster = fresh(1)
    web = Web(cluster.json('score', 'info')['dashboard_url'])
    stream = iter(web.stream('?rate=10'))
    first = next(stream)['seq']
    silent = [socket.create_connection((web.url.hostname, web.url.port)) for _ in range(1300)]
    took = []
    for _ in range(20):
        begun = time.monotonic()
        assert web.ask('/api/v1/session').status == 200
        took.append(time.monotonic() - begun)
    assert next(stream)['seq'] > first
    figure('hole-11', f'{max(took) * 1e3:.0f} ms at most for 20 requests beside 1,300 silent connections')
    for link in silent:
        link.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_private_cluster_hides_other_users(fresh):
    cluster = fresh(2)
    with open(cluster.directory / 'head/scored.toml', 'a') as config:
        config.write('[monitor]\nprivate = true\n')
    cluster.run('scadm', 'reload')
    job = cluster.submit('-n', 1, '-J', 'hidden-name', 'sleep', 61)
    cluster.wait_job(job, 'running')
    web = Web(cluster.json('score', 'info')['dashboard_url'])
    text = web.ask('/api/v1/snapshot').body.decode()
    assert 'hidden-name' not in text and 'sleep' not in text
    web.login(cluster)
    assert 'hidden-name' in web.ask('/api/v1/snapshot').body.decode()
    assert 'hidden-name' in cluster.run('score', 'top', '--json', '--once').stdout


def test_the_proxy_names_the_user(fresh, tmp_path):
    cluster = fresh(1)
    proxy = tmp_path / 'web.sock'
    configure_head(cluster, f'[monitor]\npublic_url = "https://cluster.example.org/"\nproxy_socket = "{proxy}"\n'
                       f'proxy_user = "{os.geteuid()}"\n')

    def ask(path, method='GET', body=None, **headers):
        link = ThroughSocket(proxy)
        link.request(method, path, body, {name.replace('_', '-'): text for name, text in headers.items()})
        answer = link.getresponse()
        return answer.status, json.loads(answer.read() or b'{}')
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert ask('/api/v1/session')[1]['role'] == 'viewer'
    assert ask('/api/v1/session', X_Remote_User='no-such-account-here')[0] == 403
    session = ask('/api/v1/session', X_Remote_User=me)[1]
    assert session['role'] == 'operator' and session['user'] == me
    headers = {'X_Remote_User': me, 'Content_Type': 'application/json', 'Origin': 'https://cluster.example.org'}
    assert ask('/api/v1/admin/set', 'POST', '{\"name\": \"quantum\", \"value\": \"40ms\"}', **headers)[0] == 403
    headers['X_Scored_Csrf'] = session['csrf']
    assert ask('/api/v1/admin/set', 'POST', '{\"name\": \"quantum\", \"value\": \"40ms\"}', **headers)[0] == 200
    assert cluster.json('score', 'info')['quantum_s'] == 0.04
    headers['Origin'] = 'http://cluster.example.org'
    assert ask('/api/v1/admin/set', 'POST', '{\"name\": \"quantum\", \"value\": \"30ms\"}', **headers)[0] == 403
    # The public name is only there behind https: so is its cookie. No header says so.
    for host, forwarded, secure in (('cluster.example.org', 'http', True), (f'localhost:{dashboard_port(cluster)}', 'https', False)):
        token = cluster.run('scadm', 'web-login').stdout.strip().split('/login#')[1]
        link = ThroughSocket(proxy)
        link.request('POST', '/login', f'token={token}', {'Host': host, 'X-Forwarded-Proto': forwarded})
        assert ('Secure' in link.getresponse().headers['Set-Cookie'].split('; ')) == secure, host
    # Who comes by TCP is not believed.
    web = Web(f'http://127.0.0.1:{dashboard_port(cluster)}/')
    assert web.json('/api/v1/session', X_Remote_User=me)['role'] == 'viewer'


@pytest.fixture
def account(as_root):
    """A user in a group, made for the test and removed again."""
    if shutil.which('useradd') is None or shutil.which('gpasswd') is None:
        pytest.skip('no useradd')
    name = group = f'scoretest{os.getpid()}'
    subprocess.run(['groupadd', '--system', group], check=True)
    try:
        subprocess.run(['useradd', '--system', '--no-create-home', '--no-user-group', '--gid', 'nogroup', name], check=True)
        subprocess.run(['gpasswd', '--add', name, group], check=True, capture_output=True)
        yield name
    finally:
        subprocess.run(['userdel', name], capture_output=True)
        subprocess.run(['groupdel', group], check=True)


def test_a_stream_ends_when_its_user_leaves_the_group(fresh, tmp_path, account):
    cluster = fresh(1)
    proxy = tmp_path / 'web.sock'
    file = cluster.directory / 'head/scored.toml'
    file.write_text(file.read_text().replace('[head]\n', f'[head]\noperator_group = "{account}"\n'))
    configure_head(cluster, f'[monitor]\npublic_url = "https://cluster.example.org/"\nproxy_socket = "{proxy}"\nproxy_user = "0"\n')
    link = ThroughSocket(proxy)
    link.request('GET', '/api/v1/stream?rate=10&parts=jobs', headers={'X-Remote-User': account})
    stream = link.getresponse()
    seen = [json.loads(stream.readline())['seq'] for _ in range(5)]
    assert seen == sorted(set(seen))
    session = ThroughSocket(proxy)
    session.request('GET', '/api/v1/session', headers={'X-Remote-User': account})
    assert json.loads(session.getresponse().read())['role'] == 'operator'
    subprocess.run(['gpasswd', '--delete', account, account], check=True, capture_output=True)
    cluster.run('scadm', 'reload')  # else the head asks for groups again within a minute
    begin = time.monotonic()
    with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
        while stream.readline():
            assert time.monotonic() < begin + LIMIT, 'the stream does not end'
    session = ThroughSocket(proxy)
    session.request('GET', '/api/v1/session', headers={'X-Remote-User': account})
    assert json.loads(session.getresponse().read())['role'] == 'user'


def dashboard_port(cluster):
    return int((cluster.directory / 'head/dashboard.port').read_text())


def test_the_dashboard_is_where_it_was_after_a_restart(fresh):
    cluster = fresh(1)
    before = cluster.json('score', 'info')['dashboard_url']
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    assert cluster.json('score', 'info')['dashboard_url'] == before


# ---- bad input

def test_status_codes(few, web):
    host = f'Host: {web.url.netloc}\r\n'.encode()
    for request, status in [
            (b'GET /nothing HTTP/1.1\r\n' + host + b'\r\n', 404), (b'GET /../etc/passwd HTTP/1.1\r\n' + host + b'\r\n', 400),
            (b'GET /%2e%2e/x HTTP/1.1\r\n' + host + b'\r\n', 400), (b'PUT / HTTP/1.1\r\n' + host + b'\r\n', 405),
            (b'GET / HTTP/1.1\r\n\r\n', 400), (b'GET / HTTP/1.1\r\nHost: evil\r\n\r\n', 421),
            (b'GET /' + b'a' * 5000 + b' HTTP/1.1\r\n' + host + b'\r\n', 414),
            (b'GET /' + b'a' * 50000, 414),
            (b'GET / HTTP/1.1\r\n' + host + b'X: ' + b'a' * 50000 + b'\r\n\r\n', 431),
            (b'GET / HTTP/1.1\r\n' + host + b'x: y\r\n' * 9000 + b'\r\n', 431),
            (b'POST /api/v1/admin/set HTTP/1.1\r\n' + host + b'Content-Length: 70000\r\n\r\n' + b'x' * 70000, 413),
            (b'POST / HTTP/1.1\r\n' + host + b'Content-Length: -1\r\n\r\n', 400), (b'nonsense\r\n\r\n', 400)]:
        got = web.raw(request)
        assert got.startswith(b'HTTP/1.1 %d ' % status), (request[:60], got[:60])
    answer = web.ask('/')
    assert "default-src 'self'" in answer.headers['Content-Security-Policy']
    assert answer.headers['X-Content-Type-Options'] == 'nosniff'
    assert web.ask('/', If_None_Match=answer.headers['ETag']).status == 304
    assert web.ask('/api/v1/admin/set').headers['Allow'] == 'POST'


def test_random_bytes_leave_the_head_alive(few, web):
    rng = random.Random(5)
    start = b'GET /api/v1/snapshot HTTP/1.1\r\nHost: ' + web.url.netloc.encode() + b'\r\n\r\n'
    for i in range(150):
        data = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 300))) if i % 2 else bytearray(start)
        if not i % 2:
            for _ in range(3):
                data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            web.raw(bytes(data[:rng.randrange(1, len(data) + 1)]))
        except ConnectionError:
            pass
    assert web.snapshot()['cluster']['nodes_up'] == 8


# ---- commands

def test_score_top_prints_the_same_documents(few, web):
    once = json.loads(few.run('score', 'top', '--json', '--once').stdout)
    assert faults(once) == [] and once['head'] == web.snapshot()['head']
    lines = few.run('score', 'top', '--json', '--rate', '10', '--count', '4').stdout.splitlines()
    assert [faults(json.loads(line)) for line in lines] == [[]] * 4
    assert "'x' is not a part; the parts are" in few.run('score', 'top', '--json', '--parts', 'x', code=125).stderr
    assert few.run('score', 'top', '--json', '--rate', '1000', code=125).stderr


def test_scq_watches_nothing_that_is_unknown(few):
    assert '888888' in few.run('scq', '--watch', '0.2', 888888, code=125).stderr


def test_scq_watches(few):
    watcher = few.start('scq', '--json', '--watch', '0.2')
    first = json.loads(watcher.stdout.readline())
    assert first['schema'] == 'scored.jobs/1'
    job = few.submit('-n', 1, 'sleep', 600)
    wait_until(lambda: job in [one['job'] for one in json.loads(watcher.stdout.readline())['jobs']])
    watcher.send_signal(signal.SIGINT)
    watcher.communicate(timeout=LIMIT)


def test_late_switch_has_its_trace(few, web):
    jobs = [few.submit('-n', 16, *BUSY) for _ in range(2)]
    for job in jobs:
        few.wait_job(job, 'running')
    trace = web.json('/api/v1/trace?seconds=1')
    assert trace['schema'] == 'scored.trace/1' and len(trace['nodes']) == 8
    assert web.ask('/api/v1/trace?late=99999').status == 404
    assert web.ask('/api/v1/trace?seconds=0').status == 400
