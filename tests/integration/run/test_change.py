"""score change, score requeue, and the signal before a limit, as users and operators give them."""
import json
import time

import pytest
from cluster import LIMIT, wait_until

LINE = 'score change: '


def change(cluster, *words, code=0):
    return cluster.run('score', 'change', *words, code=code)


def refused(cluster, *words):
    """The one line of a refused change."""
    error = change(cluster, *words, code=125).stderr
    assert error.count('\n') == 1 and error.startswith(LINE), error
    return error.removeprefix(LINE).rstrip('\n')


def waiting(cluster, *words):
    return cluster.submit('--hold', *words, 'sleep', 600)


def starts(path):
    return path.read_text().count('start\n') if path.exists() else 0


def test_a_waiting_job_gets_every_key(few):
    first = waiting(few)
    job = waiting(few)
    change(few, job, 'time=2h', 'wall-time=3h', 'queue=high', 'nodes=2', 'ntasks=4', 'mem=32M', 'name=other', 'weight=50', 'priority=-1',
           'requeue=yes', f'after=afterok:{first}', 'begin=2h', 'exclude=node07', 'signal=USR1@90')
    shown = few.job(job)
    assert (shown['scheduled_limit_s'], shown['wall_limit_s'], shown['queue']) == (7200, 10800, 'high')
    assert (shown['nodes_wanted'], shown['tasks'], shown['memory_per_node_bytes']) == (2, 4, 32 << 20)
    assert (shown['name'], shown['weight'], shown['priority']) == ('other', 50, -1)
    assert shown['limit_signal'] == {'signal': 10, 'before_s': 90, 'script_only': False}
    reasons = '\n'.join(shown['reasons'])
    assert f'afterok:{first}' in reasons and '--begin' in reasons and 'held' in reasons, reasons
    change(few, job, 'time=none', 'wall-time=none', 'after=none', 'begin=none', 'nodes=none', 'mem=none', 'signal=none')
    shown = few.job(job)
    assert (shown['scheduled_limit_s'], shown['wall_limit_s'], shown['memory_per_node_bytes']) == (0, 0, 0)
    assert shown['reasons'] == ['held until it is released'] and 'limit_signal' not in shown


def test_a_job_that_becomes_small_enough_starts(few):
    job = few.submit('-N', 8, '--begin', '1h', 'sh', '-c', '[ $SCORE_SIZE = 2 ]')
    change(few, job, 'begin=now', 'nodes=2', 'ntasks=2', 'name=small')
    shown = few.wait_job(job, 'completed')
    assert (shown['tasks'], len(shown['nodes']), shown['name']) == (2, 2, 'small')


def test_a_refused_change_is_one_line_and_changes_nothing(few):
    job = waiting(few, '-N', 1, '-J', 'same')
    before = few.job(job)
    assert refused(few, job, 'name=new', 'nodes=100') == f'job {job}: nodes: requested 100 nodes; the cluster has 8'
    assert refused(few, job, 'name=new', 'mem=900T').startswith(f'job {job}: mem: requested 900T of memory per node')
    assert refused(few, job, 'name=new', f'after=afterok:{job}').startswith(f'job {job}: after: afterok:{job}: a job can wait only')
    assert refused(few, job, 'account=physics') == f'job {job}: account: no account physics: this cluster has no accounts'
    assert refused(few, job, 'reservation=none', 'reservation=x') == 'reservation is given twice'
    assert refused(few, job, 'reservation=x') == f'job {job}: reservation: no reservation x'
    assert refused(few, job, 'tim=1h').startswith("unknown key 'tim' (did you mean time?); the keys are time, wall-time")
    assert refused(few, job, 'time=abc').startswith("time 'abc': ")
    assert 'nodes' in refused(few, job, 'nodes=x')
    assert refused(few, job, 'mem=') == 'mem= needs a value; none removes it'
    assert refused(few, job).startswith('nothing to change')
    assert refused(few, 'time=1h') == 'no job given'
    assert refused(few, 99999, 'time=1h') == 'no job 99999'
    assert few.job(job) == before


def test_an_ended_job_is_not_changed(few):
    job = few.submit('true')
    few.wait_job(job, 'completed')
    assert refused(few, job, 'time=1h') == f'job {job} has ended'
    other = waiting(few)
    result = change(few, job, other, 'time=1h', code=125)
    assert result.stderr == f'{LINE}job {job} has ended\n'
    assert few.job(other)['scheduled_limit_s'] == 3600
    document = json.loads(change(few, '--json', job, other, 'time=2h', code=125).stdout)
    assert [one['done'] for one in document['jobs']] == [False, True]


def test_a_running_job_gets_new_limits_name_and_queue(few):
    job = few.submit('-N', 1, '-t', '1h', 'sleep', 600)
    few.wait_job(job, 'running')
    change(few, job, 'time=30m', 'wall-time=40m', 'name=runs', 'queue=high')
    shown = few.job(job)
    assert (shown['scheduled_limit_s'], shown['wall_limit_s'], shown['name'], shown['queue']) == (1800, 2400, 'runs', 'high')
    assert 'nodes: ' in refused(few, job, 'nodes=2', 'name=no')
    assert 'queue exclusive' in refused(few, job, 'queue=exclusive')
    assert few.job(job)['name'] == 'runs'
    change(few, job, 'wall-time=2h')  # the user who runs the cluster is an operator
    assert few.job(job)['wall_limit_s'] == 7200


def test_a_shortened_limit_ends_the_job(few):
    job = few.submit('-N', 1, '--wall-time', '1h', 'sleep', 600)
    few.wait_job(job, 'running')
    change(few, job, 'wall-time=2m')
    assert few.job(job)['wall_limit_s'] == 120
    few.cancel(job)
    job = few.submit('-N', 1, 'sleep', 600)
    few.wait_job(job, 'running')
    change(few, job, f'wall-time={few.job(job)["elapsed_s"] + 3:.0f}s')
    few.wait_job(job, 'timed-out')


def test_an_array_is_changed_with_its_waiting_tasks(few):
    array = few.submit('--array', '0-9%1', '-n', 1, 'sleep', 600)
    wait_until(lambda: few.job(array)['array']['running_count'] == 1)
    note = change(few, array, 'mem=32M').stderr
    assert note == f'{LINE}1 task of job {array} started before the change and is not affected\n'
    assert few.job(array)['memory_per_node_bytes'] == 32 << 20
    change(few, array, 'name=tasks', 'time=1h')
    first = few.json('scq', f'{array}_0')['jobs'][0]
    assert (first['name'], first['scheduled_limit_s'], first['memory_per_node_bytes']) == ('tasks', 3600, 0)
    change(few, f'{array}_0', 'name=first')
    assert few.json('scq', f'{array}_0')['jobs'][0]['name'] == 'first' and few.job(array)['name'] == 'tasks'
    assert f'give {array}' in refused(few, f'{array}_7', 'time=1h')
    few.run('sccancel', f'{array}_0')
    wait_until(lambda: few.json('scq', f'{array}_1')['jobs'][0].get('array_task') == 1)
    second = few.json('scq', f'{array}_1')['jobs'][0]
    assert (second['name'], second['memory_per_node_bytes']) == ('tasks', 32 << 20)


def test_changes_survive_a_crash_of_the_head(fresh):
    cluster = fresh(2, '--slice', '20ms')
    job = waiting(cluster)
    for i in range(5):
        change(cluster, job, f'time={i + 1}h', f'name=n{i}')
        cluster.kill('head')
        cluster.restart('head')
        cluster.wait_up()
        shown = cluster.job(job)
        assert (shown['scheduled_limit_s'], shown['name']) == ((i + 1) * 3600, f'n{i}')


# ---- requeue

def test_a_requeued_job_runs_again_and_counts(few, tmp_path):
    log = tmp_path / 'log'
    script = f'trap "echo term >> {log}; exit 0" TERM; echo start >> {log}; while :; do sleep 0.05; done'
    job = few.submit('-N', 1, '--requeue', 'sh', '-c', script)
    for count in range(1, 6):  # more than max_requeues
        wait_until(lambda: starts(log) == count)
        few.run('score', 'requeue', job)
        wait_until(lambda: few.job(job)['restarts'] == count)
    wait_until(lambda: starts(log) == 6)
    assert log.read_text().count('term\n') == 5
    few.wait_job(job, 'running')
    events = few.run('score', 'job', '--events', job).stdout
    assert 'requeue requested by' in events and 'requeued, restart 5: requested by' in events, events


def test_requeue_is_refused_with_its_reason(few):
    def why(*words):
        error = few.run('score', 'requeue', *words, code=125).stderr
        assert error.count('\n') == 1, error
        return error

    job = few.submit('-N', 1, 'sleep', 600)
    few.wait_job(job, 'running')
    assert f'score change {job} requeue=yes' in why(job)
    change(few, job, 'requeue=yes')
    few.run('score', 'requeue', job)
    assert 'not running' in why(waiting(few, '--requeue'))
    ended = few.submit('--requeue', 'true')
    few.wait_job(ended, 'completed')
    assert f'job {ended} has ended' in why(ended)
    assert 'no job 99999' in why(99999)
    process = few.start('scrun', '--requeue', 'sh', '-c', 'echo on; sleep 600')
    assert process.stdout.readline() == 'on\n'
    driven = max(one['job'] for one in few.json('scq', '--active')['jobs'])
    assert 'has a front end' in why(driven)
    few.cancel(driven)
    process.communicate(timeout=LIMIT)


def test_a_requeue_survives_a_crash_of_the_head(fresh, tmp_path):
    cluster = fresh(1, '--slice', '20ms')
    log = tmp_path / 'log'
    script = f'trap "" TERM; echo start >> {log}; while :; do sleep 0.05; done'
    job = cluster.submit('-N', 1, '--requeue', 'sh', '-c', script)
    wait_until(lambda: starts(log) == 1)
    cluster.run('score', 'requeue', job)
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    wait_until(lambda: starts(log) == 2)
    cluster.wait_job(job, 'running')
    assert cluster.job(job)['restarts'] == 1


def test_running_tasks_of_an_array_are_requeued(few):
    array = few.submit('--array', '0-3%2', '--requeue', '-n', 1, 'sleep', 600)
    wait_until(lambda: few.job(array)['array']['running_count'] == 2)
    few.run('score', 'requeue', array)
    for task in (0, 1):
        wait_until(lambda: few.json('scq', f'{array}_{task}')['jobs'][0]['restarts'] == 1)


# ---- the signal before a limit

def script(tmp_path, *lines):
    path = tmp_path / 'job.sh'
    path.write_text('\n'.join(['#!/bin/sh', *lines, '']))
    return path


LOOP = 'while :; do sleep 0.05; done'


@pytest.mark.parametrize('limit', ['-t', '--wall-time'])
def test_the_signal_comes_before_both_kinds_of_limit(few, limit):
    trap = 'trap "echo warned; exit 0" USR1; '
    begin = time.monotonic()
    result = few.run('scrun', '-N', 2, limit, '60s', '--signal', 'USR1@57s', 'sh', '-c', trap + LOOP)
    assert result.stdout == 'warned\n' * 2 and time.monotonic() - begin > 2.5


@pytest.mark.parametrize('line', ['#SCORE --wall-time 60s --signal B:USR1@57', '#SBATCH --time=1 --signal=B:USR1@57'])
def test_a_batch_script_gets_its_signal(few, tmp_path, line):
    path = script(tmp_path, line, 'trap "echo script; exit 0" USR1', 'scrun -q sh -c "trap \\"echo step\\" USR1; ' + LOOP + '" &', LOOP)
    few.run('scbatch', '--wait', '-N', 1, '-o', tmp_path / 'out', path)
    assert (tmp_path / 'out').read_text() == 'script\n'


def test_steps_get_the_signal_without_the_script(few, tmp_path):
    path = script(tmp_path, 'trap "echo script" USR1', 'scrun -q -n 2 sh -c "trap \\"echo step; exit 0\\" USR1; ' + LOOP + '"')
    few.run('scbatch', '--wait', '-N', 1, '-n', 2, '-t', '60s', '--signal', 'USR1@57s', '-o', tmp_path / 'out', path)
    assert (tmp_path / 'out').read_text() == 'step\n' * 2


def test_a_frozen_job_gets_the_signal_in_its_slice(pair, tmp_path):
    """Jobs share one core, so each is frozen half of the time; the signal of an elapsed limit comes at any moment."""
    log = tmp_path / 'log'
    trap = f'trap "echo $SCORE_JOBID >> {log}; exit 0" USR1; '
    jobs = [pair.submit('-N', 2, '--wall-time', '60s', '--signal', 'USR1@56s', 'sh', '-c', trap + LOOP) for _ in range(4)]
    for job in jobs:
        pair.wait_job(job, 'completed')
    assert len(log.read_text().split()) == 8


@pytest.mark.parametrize(('words', 'why'), [
    (['--signal', 'USR1@5'], 'needs a limit'),
    (['-t', '30s', '--signal', 'USR1'], 'give a shorter time'),
    (['-t', '30s', '--signal', 'USR1@1x'], "--signal 'USR1@1x'"),
    (['-t', '30s', '--signal', 'NONE@5'], "--signal 'NONE@5'"),
    (['-t', '30s', '--signal', 'B:USR1@5'], 'no script'),
])
def test_a_wrong_signal_is_refused(few, words, why):
    error = few.run('scrun', *words, 'true', code=125).stderr
    assert error.count('\n') == 1 and why in error, error
