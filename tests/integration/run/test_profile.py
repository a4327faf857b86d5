"""What jobs and the cluster used over time: reported every ten seconds, shown while jobs run, and kept."""
import csv
import io
import json
import os
import pathlib
import signal

import pytest
from cluster import wait_until
from web import Web

USES = pathlib.Path(__file__).with_name('uses.py')
MIB = 1 << 20


@pytest.fixture(scope='module')
def nodes():
    if os.geteuid() != 0:
        pytest.skip("needs root: cgroups of jobs")
    from cluster import Cluster
    cluster = Cluster(2, '--slice', '20ms', '--cores', '2', '--memory', '2G')
    yield cluster
    cluster.stop()


def profile(cluster, job):
    return json.loads(cluster.run('score', 'job', job, '--profile', '--json').stdout)


def has_points(cluster, job, count):
    """Waits until the profile has so many points, and returns it."""
    wait_until(lambda: len(profile(cluster, job)['points']) >= count)
    return profile(cluster, job)


def test_a_job_is_followed_and_recorded(nodes):
    job = nodes.submit('-N', 2, 'sh', '-c', f'/usr/bin/python3 {USES} 600 200 0 & '
                       f'exec /usr/bin/python3 {USES} 600 100 0')
    now = has_points(nodes, job, 2)
    assert now['schema'] == 'scored.profile/1' and now['job'] == job and now['step_s'] == 10
    ends = [point['end_unix_s'] for point in now['points']]
    assert ends == sorted(set(ends)) and all(end % 10 == 0 for end in ends)
    assert sum(point['cpu_s'] for point in now['points']) > 0
    last = max(now['points'], key=lambda point: point['memory_bytes'])
    assert 2 * 300 * MIB < last['memory_bytes'] < 2 * 400 * MIB, last
    assert 300 * MIB < last['memory_largest_bytes'] < 400 * MIB, last
    nodes.run('sccancel', job)
    nodes.wait_job(job, 'cancelled')
    kept = profile(nodes, job)
    # A later point exists, so every node has reported for the first; the last one may still have grown.
    assert kept['points'][0] == now['points'][0]
    nodes.kill('head')
    nodes.restart('head')
    nodes.wait_up()
    assert profile(nodes, job) == kept
    row = nodes.json('scacct', job)['jobs'][0]
    used = row['cpu_user_s'] + row['cpu_system_s']
    assert 0 < sum(point['cpu_s'] for point in kept['points']) <= 1.02 * used, (kept, row)


def minutes(cluster):
    """What the cluster did, by minute, as the page asks for it: {begin: columns}."""
    found = Web(cluster.json('score', 'info')['dashboard_url']).json('/api/v1/history?step=60')
    return {row[0]: dict(zip(found['columns'], row)) for row in found['rows']}


def test_the_history_of_load_outlives_the_head(nodes):
    job = nodes.submit('-n', 1, 'sh', '-c', 'while :; do :; done')
    wait_until(lambda: any(row['user'] > 0 for row in minutes(nodes).values()))
    nodes.run('sccancel', job)
    before = minutes(nodes)
    nodes.kill('head', signal.SIGTERM)
    nodes.restart('head')
    nodes.wait_up()
    after = minutes(nodes)
    assert set(before) <= set(after), (before, after)
    # The last of these minutes goes on.
    assert all(after[begin]['user'] > 0 for begin, row in before.items() if row['user'] > 0), (before, after)


def test_a_restarted_daemon_reports_nothing_twice(nodes):
    job = nodes.submit('-n', 1, '/usr/bin/python3', USES, 600, 20, 0)
    has_points(nodes, job, 1)
    node = nodes.json('scq', job)['jobs'][0]['nodes'][0]
    nodes.kill(node)
    nodes.restart(node)
    nodes.wait_up()
    has_points(nodes, job, len(profile(nodes, job)['points']) + 1)
    nodes.run('sccancel', job)
    nodes.wait_job(job, 'cancelled')
    wait_until(lambda: nodes.run('scacct', job, code=None).returncode == 0)
    row = nodes.json('scacct', job)['jobs'][0]
    assert sum(point['cpu_s'] for point in profile(nodes, job)['points']) <= 1.02 * (row['cpu_user_s'] + row['cpu_system_s'])


def test_what_is_shown(nodes):
    job = nodes.submit('-N', 2, '/usr/bin/python3', USES, 600, 20, 0)
    short = nodes.submit('-n', 1, 'true')
    nodes.wait_job(short, 'completed')
    assert 'less than 10 s' in nodes.run('score', 'job', short, '--profile').stdout
    has_points(nodes, job, 1)
    page = nodes.run('score', 'job', job, '--profile').stdout
    assert 'processors busy: ' in page and 'memory of all nodes: ' in page and '#' in page, page
    rows = list(csv.DictReader(io.StringIO(nodes.run('score', 'job', job, '--profile', '--csv').stdout)))
    assert rows and set(rows[0]) == {'end_unix_s', 'cpu_s', 'processors', 'memory_bytes', 'memory_largest_bytes', 'pm_bytes'}
    failed = nodes.run('score', 'job', 4711, '--profile', code=None)
    assert failed.returncode == 125 and 'no job 4711' in failed.stderr, failed
    nodes.run('sccancel', job)
