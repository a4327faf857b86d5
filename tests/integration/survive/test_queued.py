"""The head with many queued jobs: submit, list and cancel stay quick, also over a restart. By hand: SCORE_QUEUED=60000."""
import os
import socket
import time

import pytest
from cluster import wait_until
from frames import Schema, read_frame

QUEUED = int(os.environ.get('SCORE_QUEUED', 5000))
SAMPLES = 300
WINDOW = 500  # submissions under way


class Client:
    def __init__(self, cluster, schema):
        self.schema, self.types = schema, {name: kind for name, (kind, _) in schema.frames.items()}
        self.peer = socket.socket(socket.AF_UNIX)
        self.peer.settimeout(300)
        self.peer.connect(cluster.description['socket'])
        self.ask('ClientHello', 'ServerHello', lowest_version=1, highest_version=99)

    def put(self, name, **values):
        self.peer.sendall(self.schema.frame(name, **values))

    def wait(self, *names):
        while True:
            kind, payload = read_frame(self.peer)
            if kind == self.types['Failed']:
                raise AssertionError(payload)
            if kind in [self.types[name] for name in names]:
                return payload

    def ask(self, name, answer, **values):
        self.put(name, **values)
        return self.wait(answer)

    def submission(self, **more):
        return dict(tag=1, resources={'nodes': 1, 'held': 1, 'weight': 100}, detached=1, allow_root=1,
                    spec={'programs': [{'argv': [b'true']}], 'directory': b'/', 'env': [b'A=' + b'x' * 1000]}, **more)

    def submit_many(self, count):
        for sent in range(count + WINDOW):
            if sent < count:
                self.put('Submit', **self.submission())
            if sent >= WINDOW:
                self.wait('Submitted')


def timed(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


def resident(pid):
    text = open(f'/proc/{pid}/status', encoding='ascii').read()
    return int(text.split('VmRSS:')[1].split()[0]) / 1024


@pytest.mark.parametrize('kind', ['jobs', 'array'])
def test_queued_jobs_slow_nothing_down(fresh, kind):
    cluster = fresh(1, '--slice', '100ms')
    client = Client(cluster, Schema())
    if kind == 'array':
        client.ask('Submit', 'Submitted', **client.submission(array=b'0-99999'))
    else:
        client.submit_many(QUEUED)
    submit = p99([timed(lambda: client.ask('Submit', 'Submitted', **client.submission())) for _ in range(SAMPLES)])
    listing = p99([timed(lambda: client.ask('ListJobs', 'JobList', tag=1, all_users=1)) for _ in range(100)])
    first = 1 if kind == 'jobs' else 2
    cancel = p99([timed(lambda: client.ask('CancelJob', 'Done', tag=1, job=first + i)) for i in range(SAMPLES)])
    memory = resident(cluster.daemon('head')['pid'])
    everything = timed(lambda: cluster.run('scq', '--active', '--json'))
    cluster.kill('head')
    begin = time.monotonic()
    cluster.restart('head')
    wait_until(lambda: cluster.run('score', 'info', code=None).returncode == 0)
    restart = time.monotonic() - begin
    after = resident(cluster.daemon('head')['pid'])
    print(f'\n{kind}: p99 submit {submit * 1e3:.1f} ms, list {listing * 1e3:.1f} ms, cancel {cancel * 1e3:.1f} ms; whole scq '
          f'{everything:.2f} s; restart {restart:.2f} s; memory {memory:.0f} MiB, after the restart {after:.0f} MiB')
    assert max(submit, listing, cancel) < 5 and restart < 60 and max(memory, after) < 400
