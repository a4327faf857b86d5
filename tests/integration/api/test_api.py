"""Programs drive a cluster over HTTP: jobs, output, tokens, and faults of requests."""
import http.client
import json
import os
import random
import threading

import pytest
from cluster import wait_until
from programs import OnSocket, ask, socket_of, submit


def state_of(cluster, job):
    return ask(cluster, 'GET', f'jobs/{job}').document['job']['state']


def test_a_job_is_submitted_shown_and_ends(pair):
    job = submit(pair, ['/bin/sh', '-c', 'echo out; echo err >&2'], nodes=2, name='two')
    wait_until(lambda: state_of(pair, job) == 'completed')
    shown = ask(pair, 'GET', f'jobs/{job}').document
    assert shown == pair.json('score', 'job', job)
    assert ask(pair, 'GET', f'jobs/{job}/output?stream=stdout').body == b'out\nout\n'
    assert sorted(ask(pair, 'GET', f'jobs/{job}/output').body.split()) == [b'err', b'err', b'out', b'out']
    assert ask(pair, 'GET', f'jobs/{job}/output?stream=stdout&offset=4').body == b'out\n'
    failed = submit(pair, ['/bin/sh', '-c', 'exit 3'])
    wait_until(lambda: state_of(pair, failed) == 'failed')
    assert ask(pair, 'GET', f'jobs/{failed}').document['job']['exit_code'] == 3


def test_documents_are_those_of_the_commands(pair):
    job = submit(pair, ['/bin/sleep', '600'])
    wait_until(lambda: state_of(pair, job) == 'running')
    listed = ask(pair, 'GET', 'jobs?ended=0').document
    assert listed['jobs'][0].keys() == pair.json('scq', '--active')['jobs'][0].keys()
    assert ask(pair, 'GET', 'nodes').document['nodes'][0].keys() == pair.json('scnodes')['nodes'][0].keys()
    assert ask(pair, 'GET', 'nodes/node01').document['node']['node'] == 'node01'
    assert ask(pair, 'GET', 'cluster').document.keys() == pair.json('score', 'info').keys()


def test_a_job_is_controlled(pair):
    job = submit(pair, ['/bin/sleep', '600'], hold=True)
    assert state_of(pair, job) == 'pending'
    for action, state in (('release', 'running'), ('suspend', 'suspended'), ('resume', 'running')):
        assert ask(pair, 'POST', f'jobs/{job}/{action}').status == 200
        wait_until(lambda: state_of(pair, job) == state)
    assert ask(pair, 'POST', f'jobs/{job}/hold').status == 409
    assert ask(pair, 'POST', f'jobs/{job}/signal', {'signal': 'TERM'}).status == 200
    wait_until(lambda: ask(pair, 'GET', f'jobs/{job}').document['job']['final'])
    cancelled = submit(pair, ['/bin/sleep', '600'])
    assert ask(pair, 'DELETE', f'jobs/{cancelled}').status == 200
    wait_until(lambda: state_of(pair, cancelled) == 'cancelled')


def test_output_is_followed_until_the_end(pair, tmp_path):
    tmp_path.chmod(0o777)
    job = submit(pair, ['/bin/sh', '-c', f'echo one; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo two'])
    connection = OnSocket(socket_of(pair))
    connection.request('GET', f'/api/v1/jobs/{job}/output?follow=1')
    response = connection.getresponse()
    assert response.readline() == b'one\n'
    (tmp_path / 'go').touch()
    assert response.read() == b'two\n'
    connection.close()


def test_an_idempotency_key_makes_one_job(pair):
    body = {'command': ['/bin/true'], 'directory': '/tmp', 'allow_root': True}
    answers = [ask(pair, 'POST', 'jobs', body, headers={'Idempotency-Key': 'once'}) for _ in range(5)]
    assert [answer.status for answer in answers] == [201, 200, 200, 200, 200]
    assert len({answer.document['job'] for answer in answers}) == 1


def test_an_array_is_listed_in_pages(pair):
    first = submit(pair, ['/bin/true'], name='paged')
    jobs = [first, *(submit(pair, ['/bin/true'], name='paged') for _ in range(6))]
    found, after = [], 0
    while True:
        answer = ask(pair, 'GET', f'jobs?name=paged&limit=2&after={after}')
        assert answer.status == 200, answer.body
        page = answer.document
        found += [job['job'] for job in page['jobs']]
        if not page['truncated']:
            break
        after = page['next']
    assert found == jobs


def test_a_personal_token_opens_the_web_server(pair):
    token = pair.run('score', 'token', 'new', 'test').stdout.strip()
    number = pair.json('score', 'token', 'list')['tokens'][-1]['token']
    assert ask(pair, 'GET', 'cluster', token=token).status == 200
    refused = ask(pair, 'GET', 'cluster', token=token[:-1] + ('0' if token[-1] != '0' else '1'))
    assert (refused.status, refused.headers['WWW-Authenticate']) == (401, 'Bearer')
    assert ask(pair, 'POST', 'tokens', {'name': 'more'}, token=token).status == 403
    pair.run('score', 'token', 'revoke', number)
    assert ask(pair, 'GET', 'cluster', token=token).status == 401


def test_a_revoked_token_reads_no_more_output(pair, tmp_path):
    tmp_path.chmod(0o777)
    token = pair.run('score', 'token', 'new', 'reader').stdout.strip()
    job = submit(pair, ['/bin/sh', '-c', f'echo one; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo two'])
    host = pair.json('score', 'info')['dashboard_url'].split('/')[2]
    connection = http.client.HTTPConnection(host, timeout=600)
    connection.request('GET', f'/api/v1/jobs/{job}/output?follow=1', headers={'Authorization': f'Bearer {token}'})
    response = connection.getresponse()
    assert response.readline() == b'one\n'
    pair.run('score', 'token', 'revoke', pair.json('score', 'token', 'list')['tokens'][-1]['token'])
    (tmp_path / 'go').touch()
    with pytest.raises(http.client.IncompleteRead):
        response.read()
    connection.close()


def test_a_token_that_reads_changes_nothing(pair):
    token = pair.run('score', 'token', 'new', '--scope', 'read', 'reader').stdout.strip()
    assert ask(pair, 'GET', 'jobs', token=token).status == 200
    body = {'command': ['/bin/true'], 'directory': '/tmp', 'allow_root': True}
    assert ask(pair, 'POST', 'jobs', body, token=token).status == 403
    assert ask(pair, 'DELETE', 'jobs/1', token=token).status == 403


def test_tokens_survive_a_restart_of_the_head(fresh):
    cluster = fresh(1)
    token = cluster.run('score', 'token', 'new', 'kept').stdout.strip()
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    assert ask(cluster, 'GET', 'jobs', token=token).status == 200


@pytest.mark.parametrize('method,path,body,status,field', [
    ('GET', 'jobs/999999', None, 404, None),
    ('GET', 'jobs/x', None, 404, 'job'),
    ('GET', 'nothing', None, 404, None),
    ('PUT', 'jobs', {}, 405, None),
    ('DELETE', 'jobs', None, 405, None),
    ('POST', 'jobs', {'command': ['a'], 'directory': 'tmp'}, 422, 'directory'),
    ('POST', 'jobs', {'command': ['a'], 'directory': '/tmp', 'nodse': 2}, 422, 'nodse'),
    ('POST', 'jobs', {'command': ['a'], 'directory': '/tmp', 'nodes': 1000, 'allow_root': True}, 422, None),
    ('POST', 'jobs', b'{', 422, None),
    ('POST', 'jobs', b'[' * 100_000, 422, None),
    ('POST', 'jobs/999999/hold', None, 404, None),
    ('GET', 'jobs?limit=many', None, 400, 'limit'),
    ('GET', 'jobs/999999/output', None, 404, None),
])
def test_a_fault_is_one_problem_document(pair, method, path, body, status, field):
    answer = ask(pair, method, path, body)
    problem = answer.document
    assert answer.headers['Content-Type'] == 'application/problem+json'
    assert (answer.status, problem['status'], problem.get('field')) == (status, status, field), problem
    assert problem['message'] and '\n' not in problem['message']


def test_large_bodies_are_for_known_callers(pair):
    script = '#!/bin/sh\n' + '#' * 200_000 + '\ntrue\n'
    body = json.dumps({'script': script, 'directory': '/tmp', 'allow_root': True, 'output': 'none'}).encode()
    assert ask(pair, 'POST', 'jobs', body).status == 201
    assert ask(pair, 'POST', 'jobs', body, token='scored_1_0').status in (401, 413)
    assert ask(pair, 'POST', 'jobs', b'{' + b' ' * 6_000_000).status == 413


def test_random_bytes_leave_the_head_serving(pair):
    chance = random.Random(11)
    for _ in range(200):
        connection = OnSocket(socket_of(pair))
        connection.connect()
        text = b'POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n' + b'{}' * 20
        damaged = bytearray(text[:chance.randrange(1, len(text))])
        for _ in range(3):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        connection.sock.sendall(damaged)
        connection.close()
    assert ask(pair, 'GET', 'cluster').status == 200


def test_many_programs_follow_at_once(pair):
    job = submit(pair, ['/bin/sh', '-c', 'for i in 1 2 3; do echo $i; sleep 0.2; done'])
    found = []

    def follow():
        found.append(ask(pair, 'GET', f'jobs/{job}/output?follow=1').body)

    threads = [threading.Thread(target=follow) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [b'1\n2\n3\n'] * 20


def test_the_description_is_valid_openapi(pair):
    validator = pytest.importorskip('openapi_spec_validator', reason='needs openapi-spec-validator')
    document = ask(pair, 'GET', 'openapi.json').document
    validator.validate(document)
    assert document['openapi'].startswith('3.1')


def test_another_user_sees_and_changes_only_what_commands_allow(fresh, as_root):
    cluster = fresh(1)
    job = submit(cluster, ['/bin/sleep', '600'])
    os.chmod(cluster.directory / 'head', 0o711)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # as an ordinary user, whom the kernel names to the head
        try:
            os.chdir(cluster.directory / 'head')
            os.setgid(65534)
            os.setuid(65534)
            statuses = [ask('api.sock', *words).status for words in
                        (('GET', f'jobs/{job}'), ('DELETE', f'jobs/{job}'), ('GET', f'jobs/{job}/output'))]
            os.write(writer, json.dumps(statuses).encode())
        finally:
            os._exit(0)
    os.close(writer)
    statuses = json.loads(os.read(reader, 1000))
    os.waitpid(child, 0)
    assert statuses == [200, 403, 403]
    assert not ask(cluster, 'GET', f'jobs/{job}').document['job']['final']
