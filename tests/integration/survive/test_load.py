"""What the head bears; bench/gang/load.py measures it with more jobs. By hand: SCORE_LOAD_JOBS=10000.

The bounds are ten times those of the promise: this machine may do something else at the same time."""
import os
import secrets
import statistics
import threading
import time

from cluster import wait_until
from figures import figure
from frames import Schema, read_frame
from test_clients import client

SCHEMA = Schema()
JOBS = int(os.environ.get('SCORE_LOAD_JOBS', 1000))
CLIENTS = 16


def submission(tag, **resources):
    return SCHEMA.frame('Submit', tag=tag, request_id=secrets.token_bytes(16), detached=1, allow_root=1,
                        resources={'nodes': 1, 'tasks': 1, 'tasks_per_node': 1, **resources},
                        spec={'programs': [{'argv': [b'true']}], 'env': [b'PATH=/bin:/usr/bin'], 'directory': b'/tmp'})


def submit(cluster, count, times, **resources):
    """One after the other over one connection; appends how long each took."""
    with client(cluster) as (peer, _):
        for tag in range(count):
            began = time.monotonic()
            peer.sendall(submission(tag, **resources))
            kind, payload = read_frame(peer)
            assert kind == SCHEMA.frames['Submitted'][0], payload
            times.append(time.monotonic() - began)


def submit_all(cluster, count, **resources):
    """From all clients at once: (seconds, how long each took)"""
    times, began = [], time.monotonic()
    threads = [threading.Thread(target=submit, args=(cluster, count // CLIENTS, times), kwargs=resources) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(times) == count // CLIENTS * CLIENTS, 'a client failed'
    return time.monotonic() - began, times


def p99(times):
    return sorted(times)[len(times) * 99 // 100]


def timed(cluster, *words):
    began = time.monotonic()
    cluster.run(*words)
    return time.monotonic() - began


def test_many_waiting_jobs(fresh):
    cluster = fresh(1)
    seconds, times = submit_all(cluster, JOBS, held=1)
    figure('load-submit', f'{len(times) / seconds:.0f} per second, p99 {p99(times) * 1000:.0f} ms')
    assert len(times) / seconds > 100
    single = []
    submit(cluster, 100, single, held=1)
    jobs = [job['job'] for job in cluster.json('scq', '--active')['jobs']]
    assert len(jobs) >= len(times)
    lists = [timed(cluster, 'scq', '--active') for _ in range(10)]
    cancels = [timed(cluster, 'sccancel', '--grace', '0', job) for job in jobs[:50]]
    figure('load-queue', f'{len(jobs)} waiting: submit p99 {p99(single) * 1000:.0f} ms, the commands scq {max(lists) * 1000:.0f} ms, '
           f'sccancel {p99(cancels) * 1000:.0f} ms at most')
    assert statistics.median(single) < 0.5 and statistics.median(lists) < 5 and statistics.median(cancels) < 5


def test_short_jobs_from_start_to_record(fresh):
    cluster = fresh(8, '--cores', 8, '--slice', '20ms')
    began = time.monotonic()
    _, times = submit_all(cluster, 320)
    wait_until(lambda: not cluster.json('scq', '--active')['jobs'])
    seconds = time.monotonic() - began
    assert len(cluster.json('scacct')['jobs']) == len(times)
    assert len(times) / seconds > 10
    figure('load-start', f'{len(times) / seconds:.0f} per second from submission to record')
