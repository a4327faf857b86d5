"""The policy of filling: commands, configuration and accounting. What filling does is in the tests of the switcher."""
import pytest

from cluster import wait_until


@pytest.fixture(autouse=True)
def as_it_was(pair):
    yield
    pair.run('scadm', 'set', 'fill', 'off')


def policy(cluster):
    return cluster.json('score', 'info')['fill']


def test_operators_set_the_policy_and_everyone_sees_it(pair):
    assert policy(pair) == 'off'
    assert 'fill    off' in pair.run('score', 'info').stdout
    assert 'fill set to on' in pair.run('scadm', 'set', 'fill', 'on').stderr
    assert policy(pair) == 'on'
    assert 'fill    on, queues: high normal' in pair.run('score', 'info').stdout


def test_the_policy_in_force_is_printed(pair):
    assert pair.run('scadm', 'get', 'fill').stdout == 'fill          off\n'
    pair.run('scadm', 'set', 'fill', 'on')
    assert 'fill          on, queues: high normal\n' in pair.run('scadm', 'get').stdout
    assert pair.json('scadm', 'get', 'fill') == {'schema': 'scored.settings/1', 'fill': 'on, queues: high normal'}


def test_an_unknown_fill_policy_is_refused_in_one_line(pair):
    result = pair.run('scadm', 'set', 'fill', 'maybe', code=125)
    assert result.stderr.splitlines() == ["scadm: fill 'maybe': use on or off"]
    assert policy(pair) == 'off'


def test_a_job_can_refuse(pair):
    pair.run('scadm', 'set', 'fill', 'on')
    job = pair.submit('-N', 2, '--no-fill', 'sleep', '600')
    wait_until(lambda: pair.job(job)['state'] == 'running')
    assert pair.job(job)['no_fill']
    assert 'refused (--no-fill)' in pair.run('score', 'job', job).stdout
    other = pair.submit('-N', 2, 'sleep', '600')
    assert not pair.job(other)['no_fill']


def test_filled_time_is_accounted(pair):
    pair.run('scrun', '-N', 2, '-J', 'accounted', 'true')
    wait_until(lambda: any(row['name'] == 'accounted' for row in pair.json('scacct')['jobs']))
    row, = [row for row in pair.json('scacct')['jobs'] if row['name'] == 'accounted']
    assert row['filled_s'] >= 0
    assert 'FILLED' in pair.run('scacct', '-o', 'job,filled').stdout


def test_jobs_end_as_usual_whatever_the_policy(pair):
    for value in ('on', 'off', 'on'):
        pair.run('scadm', 'set', 'fill', value)
        fronts = [pair.start('scrun', '-N', 2, 'sh', '-c', 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.2')
                  for _ in range(3)]
        for front in fronts:
            out, err = front.communicate(timeout=120)
            assert front.returncode == 0, (out, err)
