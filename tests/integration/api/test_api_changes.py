"""Programs change jobs over HTTP, follow them, and read shares, settings and records of ended jobs."""
import contextlib
import csv
import io
import json
import os

from cluster import wait_until
from programs import OnSocket, ask, socket_of, submit


def shown(cluster, job):
    return ask(cluster, 'GET', f'jobs/{job}')


def test_a_job_is_changed_and_requeued(pair):
    job = submit(pair, ['/bin/sleep', '600'], hold=True, time='1h')
    assert ask(pair, 'PATCH', f'jobs/{job}', {'time': '2h', 'name': 'renamed', 'tasks': 2}).status == 200
    changed = shown(pair, job).document['job']
    assert (changed['scheduled_limit_s'], changed['name'], changed['tasks']) == (7200, 'renamed', 2)
    assert ask(pair, 'PATCH', f'jobs/{job}', {'time': None}).status == 200
    assert shown(pair, job).document['job']['scheduled_limit_s'] == 0
    refused = ask(pair, 'PATCH', f'jobs/{job}', {'time': 'soon'})
    assert (refused.status, refused.document['field']) == (422, 'time')
    assert ask(pair, 'POST', f'jobs/{job}/requeue').status == 409
    assert ask(pair, 'PATCH', f'jobs/{job}', {'requeue': True}).status == 200
    ask(pair, 'POST', f'jobs/{job}/release')
    wait_until(lambda: shown(pair, job).document['job']['state'] == 'running')
    assert ask(pair, 'POST', f'jobs/{job}/requeue').status == 200
    wait_until(lambda: shown(pair, job).document['job']['restarts'] == 1)
    assert ask(pair, 'DELETE', f'jobs/{job}').status == 200


def test_if_match_refuses_a_change_of_a_changed_job(pair):
    job = submit(pair, ['/bin/sleep', '600'], hold=True)
    tag = shown(pair, job).headers['ETag']
    assert shown(pair, job).headers['ETag'] == tag
    assert ask(pair, 'PATCH', f'jobs/{job}', {'time': '1h'}, headers={'If-Match': tag}).status == 200
    refused = ask(pair, 'PATCH', f'jobs/{job}', {'time': '2h'}, headers={'If-Match': tag})
    assert (refused.status, refused.document['code']) == (412, 'precondition-failed')
    assert ask(pair, 'DELETE', f'jobs/{job}', headers={'If-Match': tag}).status == 412
    assert ask(pair, 'DELETE', f'jobs/{job}', headers={'If-Match': shown(pair, job).headers['ETag']}).status == 200


def test_a_dry_run_stores_nothing(pair):
    def plan(**members):
        return ask(pair, 'POST', 'jobs?dry_run=1', {'command': ['/bin/true'], 'directory': '/tmp', 'allow_root': True, **members})
    before = ask(pair, 'GET', 'jobs?limit=1000').document['jobs']
    starts = plan().document
    assert (starts['schema'], starts['starts'], starts['tasks']) == ('scored.plan/1', True, 1)
    waits = plan(hold=True).document
    assert not waits['starts'] and waits['reasons']
    assert plan(nodes=1000).status == 422
    assert [job['job'] for job in ask(pair, 'GET', 'jobs?limit=1000').document['jobs']] == [job['job'] for job in before]


def read_events(response):
    """Yields the kind and the document of each event until the response ends. The id of a line of the history is in the document."""
    fields = {}
    for line in response:
        name, _, value = line.decode().rstrip('\n').partition(': ')
        fields[name] = value
        if name == 'data':
            yield fields['event'], {**json.loads(value), **({'id': fields['id']} if 'id' in fields else {})}
            fields = {}


def test_events_are_sent_until_the_job_ends(pair, tmp_path):
    tmp_path.chmod(0o777)
    job = submit(pair, ['/bin/sh', '-c', f'echo out; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done'], hold=True)
    with contextlib.closing(OnSocket(socket_of(pair))) as connection:
        connection.request('GET', f'/api/v1/jobs/{job}/events')
        response = connection.getresponse()
        assert response.headers['Content-Type'] == 'text/event-stream'
        events = read_events(response)
        kind, document = next(events)
        assert (kind, document['text']) == ('event', 'accepted')
        ask(pair, 'POST', f'jobs/{job}/release')
        (tmp_path / 'go').touch()
        rest = list(events)
    states = [document['job']['state'] for kind, document in rest if kind == 'job']
    assert states[0] == 'pending' and states[-1] == 'completed', states
    assert rest[-1] == ('end', {})
    texts = [document['text'] for kind, document in rest if kind == 'event']
    assert len(texts) == len(set(texts)) and texts[-1].startswith('completed')
    ids = [document['id'] for kind, document in rest if kind == 'event']
    again = ask(pair, 'GET', f'jobs/{job}/events', headers={'Last-Event-ID': ids[-2]})
    assert [document['id'] for kind, document in read_events(again.body.splitlines()) if kind == 'event'] == ids[-1:]
    assert ask(pair, 'GET', 'jobs/999999/events').status == 404


def test_pools_and_settings_are_those_of_the_commands(pair):
    assert ask(pair, 'GET', 'shares').document == pair.json('scshare')
    assert ask(pair, 'GET', 'reservations').document == pair.json('scadm', 'reservations')
    settings = ask(pair, 'GET', 'settings').document['settings']
    found = {one['name']: one['value'] for one in settings}
    assert found['quantum'] and all(one['purpose'] and one['range'] for one in settings)


def test_records_are_read_as_json_and_csv(pair):
    job = submit(pair, ['/bin/true'], name='recorded, "twice"')
    wait_until(lambda: shown(pair, job).document['job']['final'])
    wait_until(lambda: any(one['job'] == job for one in ask(pair, 'GET', 'accounting').document['jobs']))
    rows = ask(pair, 'GET', 'accounting?since=1h').document
    assert rows['schema'] == 'scored.accounting/1'
    assert [row for row in rows['jobs'] if row['job'] == job] == pair.json('scacct', job)['jobs']
    table = ask(pair, 'GET', 'accounting?since=1h&format=csv')
    assert table.headers['Content-Type'].startswith('text/csv')
    found = [row for row in csv.DictReader(io.StringIO(table.body.decode())) if row['job'] == str(job)]
    assert [(row['name'], row['state'], row['exit_code']) for row in found] == [('recorded, "twice"', 'completed', '0')]
    assert ask(pair, 'GET', 'accounting?user=nobody-at-all').document['jobs'] == []
    assert ask(pair, 'GET', 'accounting?since=0&until=1').document['jobs'] == []


def test_another_user_neither_changes_nor_follows_a_job(fresh, as_root):
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
                        (('PATCH', f'jobs/{job}', {'time': '1h'}), ('POST', f'jobs/{job}/requeue'), ('GET', f'jobs/{job}/events'))]
            os.write(writer, json.dumps(statuses).encode())
        finally:
            os._exit(0)
    os.close(writer)
    statuses = json.loads(os.read(reader, 1000))
    os.waitpid(child, 0)
    assert statuses == [403, 403, 403]
