"""Jobs that wait for other jobs or for a time."""
import time

from cluster import LIMIT, wait_until


def why(cluster, job):
    return cluster.run('scq', '--why', job).stdout


def test_a_chain_runs_in_its_order(few, tmp_path):
    tmp_path.chmod(0o777)
    log = tmp_path / 'log'
    first = few.submit('sh', '-c', f'while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo first >> {log}')
    second = few.submit('--after', f'afterok:{first}', 'sh', '-c', f'echo second >> {log}')
    third = few.submit('-d', f'afterany:{first}:{second}', 'sh', '-c', f'echo third >> {log}')
    few.wait_job(first, 'running')
    assert why(few, second) == f'waits for job {first} to succeed (afterok:{first})\nexpected start: unknown\n'
    assert few.job(third)['state'] == 'pending'
    (tmp_path / 'go').touch()
    assert few.wait_job(third, 'completed')['exit_code'] == 0
    assert log.read_text().split() == ['first', 'second', 'third']


def test_dependencies_wait_for_failure_or_success(few):
    fails = few.submit('false')
    needs = few.submit('--after', f'afterok:{fails}', 'true')
    ends = few.submit('--after', f'afterok:{fails}', '--kill-on-invalid-dep', 'true')
    other = few.submit('--after', f'afternotok:{fails}', 'true')
    few.wait_job(other, 'completed')
    reason = f'can never start: job {fails} did not succeed (afterok:{fails})'
    assert why(few, needs) == reason + '\nexpected start: unknown\n'
    ended = few.wait_job(ends, 'cancelled')
    assert (ended['exit_code'], ended['reasons']) == (125, [reason])
    later = few.submit('--after', f'afterok:{fails}', 'true')  # it has ended long ago
    assert why(few, later) == reason + '\nexpected start: unknown\n'
    few.cancel(needs, later)


def test_a_front_end_waits_for_its_job(few, tmp_path):
    first = few.submit('sh', '-c', f'while [ ! -e {tmp_path}/go ]; do sleep 0.05; done')
    front = few.start('scrun', '--after', f'afterany:{first}', 'echo', 'here')
    wait_until(lambda: len(few.json('scq', '--active')['jobs']) == 2)
    (tmp_path / 'go').touch()
    out, _ = front.communicate(timeout=LIMIT)
    assert (out, front.returncode) == ('here\n', 0)


def test_singletons_run_one_at_a_time(few, tmp_path):
    tmp_path.chmod(0o777)
    script = f'mkdir {tmp_path}/alone || touch {tmp_path}/broken; sleep 0.1; rmdir {tmp_path}/alone'
    jobs = [few.submit('-J', 'single', '--after', 'singleton', 'sh', '-c', script) for _ in range(4)]
    for job in jobs:
        few.wait_job(job, 'completed')
    assert not (tmp_path / 'broken').exists()


def test_begin_and_deadline(few):
    begin = time.time() + 2
    job = few.submit('--begin', '2s', 'true')
    assert '(--begin)' in why(few, job)
    assert few.wait_job(job, 'completed')['started_unix_s'] >= begin - 0.1
    late = few.submit('--hold', '--deadline', '1s', 'true')
    assert 'deadline' in few.wait_job(late, 'cancelled')['reasons'][0]
    runs = few.submit('--deadline', '2s', 'sleep', 600)
    ended = few.wait_job(runs, 'timed-out')
    assert ended['exit_code'] == 124 and 'deadline' in ended['reasons'][0]


def test_a_restarted_head_knows_what_jobs_wait_for(fresh, tmp_path):
    cluster = fresh(2, '--slice', '20ms')
    first = cluster.submit('sh', '-c', f'while [ ! -e {tmp_path}/go ]; do sleep 0.05; done')
    second = cluster.submit('--after', f'afterok:{first}', 'true')
    later = cluster.submit('--begin', '1h', 'true')
    cluster.wait_job(first, 'running')
    cluster.restart('head')
    wait_until(lambda: cluster.run('scq', code=None).returncode == 0)
    assert 'afterok' in why(cluster, second) and '--begin' in why(cluster, later)
    (tmp_path / 'go').touch()
    cluster.wait_job(second, 'completed')
    assert cluster.job(later)['state'] == 'pending'


def test_bad_conditions_are_refused_in_one_line(few):
    for arguments, text in [
            (('--after', 'afterok:999999'), 'no job 999999'),
            (('--after', 'afterok'), "'afterok' is not afterok:JOB"),
            (('--after', '7'), "'7' is not afterok:JOB"),
            (('--begin', '2020-01-01'), 'is in the past'),
            (('--begin', 'soon'), "'soon' is not a time"),
            (('--begin', '2h', '--deadline', '1h'), 'the deadline'),
            (('--deadline', '1h', '--wall-time', '2h'), 'the deadline')]:
        result = few.run('scrun', '--detach', *arguments, 'true', code=125)
        assert text in result.stderr and result.stderr.count('\n') == 1, result.stderr
    assert few.json('scq', '--active')['jobs'] == []


def test_a_dry_run_says_what_it_would_wait_for(few):
    first = few.submit('sleep', 600)
    assert f'would wait: waits for job {first} to end' in few.run('scrun', '--dry-run', '--after', f'afterany:{first}',
                                                                   'true').stdout
