"""Commands on jobs: cancel, signal, hold, suspend, attach, accounting, JSON."""
import json
import pathlib
import re
import signal
import time

import pytest
from cluster import LIMIT, is_alive, wait_until


def test_sccancel_sends_a_signal(few):
    process = few.start('scrun', 'sh', '-c', 'trap "echo got; exit 4" HUP; echo on; while :; do sleep 0.05; done')
    assert process.stdout.readline() == 'on\n'
    job = few.json('scq', '--active')['jobs'][0]['job']
    few.run('sccancel', '-s', 'HUP', job)
    out, _ = process.communicate(timeout=LIMIT)
    assert (out, process.returncode) == ('got\n', 4)


def test_sccancel_returns_when_the_end_is_recorded(few):
    jobs = [few.submit('-N', 1, 'sh', '-c', 'trap "" TERM; while :; do sleep 0.1; done') for _ in range(2)]
    jobs.append(few.submit('-N', 1, 'sleep', 600))
    for job in jobs:
        few.wait_job(job, 'running')
    few.run('sccancel', '--grace', '1s', *jobs)
    ended = {row['job']: row['state'] for row in few.json('scacct', '--since', '1h')['jobs']}
    assert [ended.get(job) for job in jobs] == ['cancelled'] * 3


def test_sccancel_need_not_wait(few, tmp_path):
    job = few.submit('-N', 1, 'sh', '-c', f'trap "" TERM; touch {tmp_path}/on; while :; do sleep 0.1; done')
    wait_until((tmp_path / 'on').exists)
    few.run('sccancel', '--no-wait', '--grace', '1h', job)
    assert few.job(job)['state'] == 'running'
    few.run('sccancel', '--grace', 0, job)
    assert few.job(job)['state'] == 'cancelled'


def test_a_time_limit_ends_a_job_as_a_cancel_does(few):
    script = 'trap "echo term; sleep 0.2; echo done; exit 0" TERM; while :; do sleep 0.05; done'
    result = few.run('scrun', '-N', 2, '-t', '1s', 'sh', '-c', script, code=124)
    assert sorted(result.stdout.split()) == ['done', 'done', 'term', 'term']
    assert 'time limit' in result.stderr


def test_double_forker_that_ignores_term_is_gone(few, tmp_path):
    script = f'trap "" TERM; (setsid sh -c "trap \\"\\" TERM; echo \\$\\$ > {tmp_path}/pid; while :; do sleep 1; done" &) ; while :; do sleep 1; done'
    job = few.submit('-N', 1, 'sh', '-c', script)
    wait_until((tmp_path / 'pid').exists)
    wait_until(lambda: (tmp_path / 'pid').read_text().strip())
    pid = int((tmp_path / 'pid').read_text())
    assert is_alive(pid)
    few.run('sccancel', '--grace', '500ms', job)
    wait_until(lambda: few.job(job)['final'])
    wait_until(lambda: not is_alive(pid))


def ignoring(number):
    return {'preexec_fn': lambda: signal.signal(number, signal.SIG_IGN)}


@pytest.mark.parametrize('number', [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_signals_that_were_ignored_at_the_start_stay_ignored(few, tmp_path, number):
    """As nohup(1) and the background jobs of a script start commands."""
    job = few.submit('sh', '-c', f'while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo done')
    few.wait_job(job, 'running')
    wait = f'echo on; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo done'
    commands = [few.start('scrun', 'sh', '-c', wait, **ignoring(number)),
                few.start('scout', '-w', 'node00', wait, **ignoring(number)),
                few.start('scattach', job, **ignoring(number))]
    assert commands[0].stdout.readline() == 'on\n'
    wait_until(lambda: len(few.json('scq', '--active')['jobs']) >= 2)
    time.sleep(0.3)  # scattach has no output that shows that it is attached
    for command in commands:
        command.send_signal(number)
    time.sleep(0.3)
    assert [command.poll() for command in commands] == [None] * 3
    (tmp_path / 'go').touch()
    for command in commands:
        out, err = command.communicate(timeout=LIMIT)
        assert (command.returncode, 'done\n' in out) == (0, True), (command.args, out, err)


def test_the_end_of_the_output_of_an_ended_job_is_shown(few):
    job = few.submit('sh', '-c', 'echo hello; echo oops >&2')
    few.wait_job(job, 'completed')
    for _ in range(2):
        time.sleep(0.5)
        result = few.run('scattach', job)
        assert (result.stdout, result.stderr) == ('hello\n', f'oops\nscattach: job {job} completed\n')


def test_a_signal_is_told_from_an_exit_code(few):
    killed = few.submit('-i', 'none', 'sh', '-c', 'kill -9 $$')
    exited = few.submit('-i', 'none', 'sh', '-c', 'exit 137')
    for job, number in ((killed, 9), (exited, 0)):
        shown = few.wait_job(job, 'failed')
        assert (shown['exit_code'], shown['signal']) == (137, number)
    rows = {row['job']: row for row in few.json('scacct')['jobs']}
    assert [(rows[job]['exit_code'], rows[job]['signal']) for job in (killed, exited)] == [(137, 9), (137, 0)]
    columns = few.run('scacct', '--no-header', '-o', 'job,exit,signal').stdout.splitlines()
    assert [str(killed), '137', '9'] in [line.split() for line in columns]
    assert 'exit code 137 (signal 9)' in few.run('score', 'job', killed).stdout


def test_a_refusal_names_the_state_of_the_job(few):
    job = few.submit('sleep', 60)
    few.wait_job(job, 'running')
    assert f'job {job} is running, not' in few.run('score', 'release', job, code=125).stderr


def test_detached_job_is_watched_by_others(few, tmp_path):
    job = few.submit('sh', '-c', f'while [ ! -e {tmp_path}/go ]; do echo on; sleep 0.1; done; echo seen; exit 6')
    watchers = [few.start('scattach', job) for _ in range(2)]
    for watcher in watchers:
        assert watcher.stdout.readline() == 'on\n'
    (tmp_path / 'go').touch()
    for watcher in watchers:
        *before, last = watcher.stdout.read().splitlines()
        assert last == 'seen' and set(before) <= {'on'}
        assert watcher.wait(LIMIT) == 6
        watcher.stderr.close()


def test_front_end_killed_ends_its_job(few):
    process = few.start('scrun', 'sleep', '600')
    wait_until(lambda: [j for j in few.json('scq', '--active')['jobs'] if j['state'] == 'running'])
    job = few.json('scq', '--active')['jobs'][0]['job']
    process.kill()
    process.communicate()
    few.wait_job(job, 'cancelled')


def test_held_job_waits_and_says_why(few):
    job = few.submit('--hold', 'true')
    assert few.job(job)['state'] == 'pending'
    assert 'held' in few.run('scq', '--why', job).stdout
    few.cancel(job)


def test_held_job_starts_when_it_is_released(few):
    jobs = [few.submit('--hold', 'true') for _ in range(2)]
    few.run('score', 'release', *jobs)
    assert [few.wait_job(job, 'completed')['exit_code'] for job in jobs] == [0, 0]


def test_a_waiting_job_is_held(few):
    runs = few.submit('--queue', 'exclusive', '-N', 8, 'sleep', 600)
    few.wait_job(runs, 'running')
    waits = few.submit('true')
    few.run('score', 'hold', waits)
    few.cancel(runs)
    assert 'held' in few.run('scq', '--why', waits).stdout
    few.run('score', 'release', waits)
    few.wait_job(waits, 'completed')


def test_priority_of_a_waiting_job_is_changed(few):
    job = few.submit('--hold', 'true')
    few.run('score', 'priority', -7, job)
    assert few.job(job)['priority'] == -7
    few.run('score', 'priority', '--', 1000001, job, code=125)
    few.run('score', 'release', job)
    few.wait_job(job, 'completed')


def test_suspend_resume_and_weight(few, tmp_path):
    job = few.submit('sh', '-c', f'while :; do echo >> {tmp_path}/steps; sleep 0.02; done')
    few.wait_job(job, 'running')
    few.run('score', 'weight', 300, job)
    assert few.job(job)['weight'] == 300
    few.run('score', 'suspend', job)
    few.wait_job(job, 'suspended')
    size = lambda: (tmp_path / 'steps').stat().st_size if (tmp_path / 'steps').exists() else 0
    steps = [size()]

    def stands_still():
        time.sleep(0.2)
        steps.append(size())
        return steps[-1] == steps[-2]

    wait_until(stands_still)
    few.run('score', 'resume', job)
    wait_until(lambda: size() > steps[-1])
    few.cancel(job)


def test_a_kept_job_reports_the_failed_rank(few):
    result = few.run('scrun', '-n', 4, '--keep-going', 'sh', '-c', '[ $SCORE_RANK -lt 2 ] || exit 9', code=9)
    assert 'rank 2 on ' in result.stderr and 'exited with 9, and 1 more failed' in result.stderr


def test_each_task_of_a_cancelled_job_has_the_grace(few, tmp_path):
    tmp_path.chmod(0o777)
    script = (f'[ $SCORE_RANK = 0 ] || trap "sleep 1; touch {tmp_path}/saved-$SCORE_RANK; exit 0" TERM; '
              f'touch {tmp_path}/ready-$SCORE_RANK; while :; do sleep 0.05; done')
    job = few.submit('-n', 3, 'sh', '-c', script)
    wait_until(lambda: len(list(tmp_path.glob('ready-*'))) == 3)
    few.run('sccancel', '--grace', '60', job)
    few.wait_job(job, 'cancelled')
    assert sorted(path.name for path in tmp_path.glob('saved-*')) == ['saved-1', 'saved-2']


def test_cancel_reaches_stopped_tasks(few, tmp_path):
    job = few.submit('sh', '-c', f'echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; kill -STOP $$; sleep 60')
    wait_until((tmp_path / 'pid').exists)
    stat = pathlib.Path('/proc', (tmp_path / 'pid').read_text().strip(), 'stat')
    wait_until(lambda: ') T ' in stat.read_text())
    few.run('sccancel', '--grace', '1h', job)
    shown = few.wait_job(job, 'cancelled')
    assert shown['exit_code'] == 128 + signal.SIGTERM


def test_attaching_to_an_ended_job_reports_its_end(few):
    job = few.submit('true')
    few.wait_job(job, 'completed')
    assert few.run('scattach', job).stderr == f'scattach: job {job} completed\n'
    assert few.run('scattach', '-q', job).stderr == ''


def test_commands_that_change_jobs_print_json(few):
    job = few.submit('--hold', '-N', 1, 'true')
    assert few.json('score', 'release', job) == {'schema': 'scored.done/1', 'jobs': [{'job': job, 'done': True}]}
    few.wait_job(job, 'completed')
    result = few.run('sccancel', '--json', job, 99999, code=125)
    first, second = json.loads(result.stdout)['jobs']
    assert not first['done'] and 'has ended' in first['error'] and second == {
        'job': 99999, 'done': False, 'error': 'no job 99999'}
    assert json.loads(few.run('scattach', '--json', job).stderr.splitlines()[-1])['job']['job'] == job
    shown = few.json('scadm', 'set', 'quantum', '100ms')
    assert shown['schema'] == 'scored.done/1' and '100ms' in shown['text']
    assert few.json('scadm', 'drain', 'node07')['text'] == ''
    assert few.json('scadm', 'resume', 'node07')['schema'] == 'scored.done/1'
    assert few.json('scadm', 'web-login')['url'].startswith('http://127.0.0.1:')
    result = few.run('scout', '--json', 'echo $((SCORE_RANK / 7)); exit $((SCORE_RANK / 7))', code=1)
    names = [f'node0{i}' for i in range(8)]
    assert json.loads(result.stdout) == {'schema': 'scored.outputs/1', 'outputs': [
        {'nodes': names[:7], 'stream': 'stdout', 'text': '0\n'},
        {'nodes': names[7:], 'stream': 'stdout', 'text': '1\n'}]}
    assert json.loads(result.stderr.splitlines()[-1])['job']['exit_code'] == 1


def test_json_has_a_schema(few):
    few.run('scrun', 'true')
    for words in (['scq'], ['scnodes'], ['score', 'info'], ['scadm', 'trace']):
        assert re.fullmatch(r'scored\.[a-z]+/1', few.json(*words)['schema'])


def test_tables(few):
    few.run('scrun', '-J', 'a\x1bname', 'true')
    text = few.run('scq').stdout
    assert '\x1b' not in text and 'JOB' in text.splitlines()[0]
    job = few.submit('true')
    few.wait_job(job, 'completed')
    assert few.run('scq', '--no-header', '-o', 'state', job).stdout.split() == ['completed']
    assert len(few.run('scnodes', '--no-header').stdout.splitlines()) == 8


def test_accounting_of_ended_jobs(few):
    job = few.submit('-N', 2, '-J', 'with, comma', 'sh', '-c', 'exit 3')
    few.wait_job(job, 'failed')
    wait_until(lambda: few.run('scacct', job, code=None).returncode == 0)  # the record is stored a moment later
    row, = [row for row in few.json('scacct', '--since', '1h')['jobs'] if row['job'] == job]
    assert (row['name'], row['state'], row['exit_code'], row['nodes']) == ('with, comma', 'failed', 3, 2)
    assert 0 <= row['scheduled_s'] <= row['elapsed_s'] + 0.1
    lines = few.run('scacct', '--csv', '-o', 'job,name,exit').stdout.splitlines()
    assert lines[0] == 'job,name,exit' and f'{job},"with, comma",3' in lines
    assert few.run('scacct', '--no-header', '--until', '1h').stdout == ''
    assert "'soon'" in few.run('scacct', '--since', 'soon', code=125).stderr


def test_events_report_what_happened(few):
    job = few.submit('-N', 2, 'sleep', '60')
    few.wait_job(job, 'running')
    few.run('scadm', 'drain', 'node07', '-m', 'unrelated')
    few.run('sccancel', '-s', 'CONT', job)
    few.run('scadm', 'resume', 'node07')
    few.cancel(job)
    texts = [event['text'] for event in few.json('score', 'job', job)['events']]
    wanted = ['accepted', 'launching on node', '2 tasks started', 'signal 18 requested by', 'cancel', 'cancelled, exit code']
    found = [next(i for i, text in enumerate(texts) if text.startswith(want)) for want in wanted]
    assert found == sorted(found), texts
    assert 'launching on' in few.run('score', 'job', job, '--events').stdout
    assert all('events' not in listed for listed in few.json('scq')['jobs'])
