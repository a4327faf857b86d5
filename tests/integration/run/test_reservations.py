"""Reservations, maintenance, urgent jobs and expected starts on a real cluster."""
import datetime
import json

import pytest
from cluster import wait_until
from login_users import other_user


def names(cluster):
    return [r['reservation'] for r in cluster.json('scadm', 'reservations')['reservations']]


def node(cluster, name):
    return next(n for n in cluster.json('scnodes')['nodes'] if n['node'] == name)


def why(cluster, job):
    return cluster.run('scq', '--why', job).stdout


def until(tmp_path, name='go'):
    return 'sh', '-c', f'while [ ! -e {tmp_path}/{name} ]; do sleep 0.05; done'


def busy_until(tmp_path, name='go'):
    return 'sh', '-c', f'while [ ! -e {tmp_path}/{name} ]; do :; done'


@pytest.fixture
def two(pair):
    """Two nodes of one core, without reservations before and after."""
    yield pair
    pair.cancel_all()
    for name in names(pair):
        pair.run('scadm', 'unreserve', name)
    pair.run('scadm', 'set', 'slots', 8)


def test_maintenance_keeps_jobs_off_and_ends_by_itself(two):
    said = two.run('scadm', 'reserve', 'node[00-01]', 'now', '20s', 'maintenance', '--name', 'maint', '-m', 'new disks')
    assert 'reservation maint: node[00-01] from ' in said.stderr and said.stderr.endswith(' for maintenance\n'), said.stderr
    row, = two.json('scadm', 'reservations')['reservations']
    assert (row['maintenance'], row['active'], row['reason'], row['nodes']) == (True, True, 'new disks', ['node00', 'node01'])
    assert 'maint  active' in two.run('scadm', 'reservations').stdout
    job = two.submit('-N', 2, 'true')
    assert 'reserved (maint): node[00-01]' in why(two, job)
    assert f"expected start: {datetime.datetime.fromtimestamp(int(row['end_unix_s']))}" in why(two, job)
    assert 'reserved' in two.run('scnodes').stdout and node(two, 'node00')['reservation'] == 'maint'
    assert 'reserved (maint)' in two.run('scrun', '--dry-run', 'true').stdout
    done = two.wait_job(job, 'completed')
    assert done['started_unix_s'] >= row['end_unix_s']
    wait_until(lambda: names(two) == [])
    assert node(two, 'node00')['reservation'] == ''


def test_only_jobs_that_are_sure_to_have_ended_start_before_it(two):
    two.run('scadm', 'reserve', 'node01', '2h', '1h', '-')
    brief = two.submit('-N', 2, '--wall-time', '1h', 'true')
    assert two.wait_job(brief, 'completed')['nodes'] == ['node00', 'node01']
    for words in ((), ('--wall-time', '3h'), ('--time', '1h')):  # scheduled time can take eight times as long
        job = two.submit('-N', 2, *words, 'true')
        assert 'begins in ' in why(two, job)
        two.cancel(job)
    other = two.submit('true')
    assert two.wait_job(other, 'completed')['nodes'] == ['node00']


def test_a_reservation_is_for_its_users_alone(two, tmp_path):
    two.run('scadm', 'reserve', 'node01', 'now', '1h', 'root', '--name', 'course')
    inside = two.submit('--reservation', 'course', 'true')
    done = two.wait_job(inside, 'completed')
    assert (done['nodes'], done['reservation']) == (['node01'], 'course')
    assert two.wait_job(two.submit('true'), 'completed')['nodes'] == ['node00']
    script = tmp_path / 'job.sh'
    script.write_text('#!/bin/sh\n#SBATCH --reservation=course\nscrun hostname\n')
    tmp_path.chmod(0o777)
    batch = int(two.run('scbatch', 'job.sh', cwd=tmp_path).stdout)
    assert two.wait_job(batch, 'completed')['nodes'] == ['node01']
    early = two.submit('--reservation', 'course', *until(tmp_path))
    two.wait_job(early, 'running')
    two.run('scadm', 'unreserve', 'course')
    assert two.job(early)['state'] == 'running'  # the end of a reservation ends no job
    (tmp_path / 'go').touch()
    two.wait_job(early, 'completed')
    assert 'no reservation course' in two.run('scrun', '--reservation', 'course', 'true', code=125).stderr


def test_reservations_survive_a_killed_head(fresh):
    cluster = fresh(2, '--slice', '50ms')
    cluster.run('scadm', 'reserve', 'node01', 'now', '1h', 'root', '--name', 'course')
    cluster.run('scadm', 'reserve', 'node00', 'now', '40s', '-', '--name', 'maint')
    waits = cluster.submit('true')
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    assert sorted(names(cluster)) == ['course', 'maint']
    assert cluster.wait_job(cluster.submit('--reservation', 'course', 'true'), 'completed')['nodes'] == ['node01']
    assert cluster.job(waits)['state'] == 'pending'
    assert cluster.wait_job(waits, 'completed')['nodes'] == ['node00']  # maintenance is over
    assert names(cluster) == ['course']
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    assert names(cluster) == ['course']


def test_running_jobs_block_a_reservation_or_are_ended(two, tmp_path):
    job = two.submit('-N', 2, *until(tmp_path))
    two.wait_job(job, 'running')
    refused = two.run('scadm', 'reserve', 'node00', 'now', '1h', '-', code=None)
    assert refused.returncode != 0 and f'job {job} may still run there' in refused.stderr, refused.stderr
    assert names(two) == []
    two.run('scadm', 'reserve', 'node00', 'now', '1h', '-', '--end-jobs', '--name', 'maint')
    ended = two.wait_job(job, 'timed-out')
    assert (ended['exit_code'], 'reservation maint has begun on node00' in ended['reasons'][0]) == (124, True)


def test_bad_reservations_are_refused_in_one_line(two):
    two.run('scadm', 'reserve', 'node00', '2h', '1h', '-', '--name', 'maint')
    past = (datetime.datetime.now() - datetime.timedelta(hours=3)).strftime('%Y-%m-%dT%H:%M')
    for words, text in [
            (('node07', 'now', '1h', '-'), 'node07'),
            (('node[00-01]', '150m', '1h', '-'), 'reservation maint has node00 from '),
            (('node01', past, '4h', '-'), 'which is past'),
            (('node01', 'soon', '1h', '-'), "'soon' is not a time"),
            (('node01', 'now', '0', '-'), 'DURATION 0'),
            (('node01', 'now', '99999999999999999h', '-'), 'DURATION'),
            (('node01', '99999999h', '1h', '-'), 'START'),
            (('node01', 'now', '1h', 'no_such_user'), 'no user no_such_user'),
            (('node01', 'now', '1h', ','), "'' is not a user name"),
            (('node01', 'now', '1h', ','.join(['root' + str(i) for i in range(1001)])), '1001 users'),
            (('node[0-99999999]', 'now', '1h', '-'), 'node'),
            (('node01', 'now', '1h', '-', '-A', 'art'), 'no account art'),
            (('node01', 'now', '1h', '-', '--name', '../x'), "'../x' is not a name"),
            (('node01', 'now', '1h', '-', '--name', 'maint'), 'there is a reservation maint already')]:
        refused = two.run('scadm', 'reserve', *words, code=None)
        assert refused.returncode != 0 and text in refused.stderr, (words, refused.stderr)
        assert refused.stderr.count('\n') == 1, refused.stderr
    refused = two.run('scadm', 'unreserve', 'other', code=None)
    assert refused.returncode != 0 and refused.stderr.count('\n') == 1 and 'no reservation other' in refused.stderr
    assert 'reservation' in two.run('scrun', '--reservation', '../x', 'true', code=125).stderr
    assert 'is for maintenance' in two.run('scrun', '--reservation', 'maint', 'true', code=125).stderr
    assert names(two) == ['maint']


def test_a_start_is_expected_when_time_limits_say_so(two, tmp_path):
    two.run('scadm', 'set', 'slots', 1)
    first = two.submit('-N', 2, '--wall-time', '10m', *until(tmp_path))
    begun = two.wait_job(first, 'running')['started_unix_s']
    second = two.submit('-N', 2, '--wall-time', '5m', 'true')
    wait = two.json('scq', '--why', second)
    assert abs(wait['expected_start_unix_s'] - (begun + 600)) < 5, wait
    plan = json.loads(two.run('scrun', '--dry-run', '--json', 'true').stdout)
    assert abs(plan['expected_start_unix_s'] - (begun + 900)) < 5 and not plan['starts'], plan
    third = two.submit('-N', 2, 'true')
    fourth = two.submit('-N', 2, 'true')
    assert abs(two.json('scq', '--why', third)['expected_start_unix_s'] - (begun + 900)) < 5
    assert two.json('scq', '--why', fourth)['expected_start_unix_s'] == 0
    assert why(two, fourth).endswith('expected start: unknown\n')
    (tmp_path / 'go').touch()
    for job in (second, third, fourth):
        two.wait_job(job, 'completed')


def test_an_urgent_job_starts_at_once_and_ends_no_other(two, tmp_path):
    two.run('scadm', 'set', 'slots', 1)
    first = two.submit('-N', 2, *busy_until(tmp_path))
    two.wait_job(first, 'running')
    waits = two.submit('true')
    assert 'too few free cores in each of the 1 slot' in why(two, waits)
    urgent = two.submit('--queue', 'urgent', *busy_until(tmp_path, 'urgent'))
    two.wait_job(urgent, 'running')
    assert (two.job(urgent)['slot'], two.job(urgent)['queue']) == (1, 'urgent')
    wait_until(lambda: 'queue high or urgent' in why(two, first))
    assert two.job(waits)['state'] == 'pending'
    (tmp_path / 'urgent').touch()
    two.wait_job(urgent, 'completed')
    wait_until(lambda: 'urgent' not in why(two, first))
    assert (two.job(first)['state'], two.job(waits)['state']) == ('running', 'pending')
    (tmp_path / 'go').touch()
    two.wait_job(first, 'completed')
    two.wait_job(waits, 'completed')


def test_other_users_can_neither_reserve_nor_be_urgent(as_root, fresh):
    cluster = fresh(2, '--slice', '50ms')
    with other_user(cluster) as guest:
        refused = guest.run('scadm', 'reserve', 'node01', 'now', '1h', 'nobody', code=None)
        assert refused.returncode != 0 and 'only operators may reserve' in refused.stderr, refused.stderr
        refused = guest.run('scrun', '--queue', 'urgent', 'true', code=125)
        assert 'queue urgent: users may ask for normal' in refused.stderr, refused.stderr
        cluster.run('scadm', 'reserve', 'node01', 'now', '1h', 'nobody', '--name', 'course')
        cluster.run('scadm', 'reserve', 'node00', 'now', '1h', 'root', '--name', 'admin')
        assert '"course"' in guest.run('scadm', 'reservations', '--json').stdout
        job = guest.submit('--reservation', 'course', 'true')
        assert cluster.wait_job(job, 'completed')['nodes'] == ['node01']
        refused = guest.run('scrun', '--reservation', 'admin', 'true', code=125)
        assert 'reservation admin is for other users' in refused.stderr, refused.stderr
        refused = guest.run('scadm', 'unreserve', 'course', code=None)
        assert refused.returncode != 0 and 'only operators may unreserve' in refused.stderr, refused.stderr
        assert sorted(names(cluster)) == ['admin', 'course']
