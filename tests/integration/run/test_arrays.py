"""Job arrays."""
import re
import time

from cluster import wait_until


def record(cluster, job):
    return cluster.job(job)


def test_each_task_runs_once_with_its_number(few, tmp_path):
    tmp_path.chmod(0o777)
    array = few.submit('--array', '0-19,30-34:2', '-o', f'{tmp_path}/out-%A-%a', 'sh', '-c',
                       'echo $SCORE_ARRAY_JOB_ID $SCORE_ARRAY_TASK_ID')
    ended = few.wait_job(array, 'completed')
    assert (ended['exit_code'], ended['array']['completed_count']) == (0, 23)
    tasks = [*range(20), 30, 32, 34]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        f'out-{array}-{task}': f'{array} {task}\n' for task in tasks}
    rows = few.json('scacct', '--since', '1h')['jobs']
    assert sorted(row['array_task'] for row in rows if row.get('array_job') == array and row['job'] != array) == tasks


def test_no_more_than_the_limit_run_at_a_time(few, tmp_path):
    tmp_path.chmod(0o777)
    script = f'touch {tmp_path}/$SCORE_ARRAY_TASK_ID; ls {tmp_path} | wc -l; sleep 0.1; rm {tmp_path}/$SCORE_ARRAY_TASK_ID'
    out = tmp_path.parent / 'counts'
    out.mkdir()
    out.chmod(0o777)
    array = few.submit('--array', '0-14%3', '-o', f'{out}/%a', 'sh', '-c', script)
    few.wait_job(array, 'completed')
    assert max(int(path.read_text()) for path in out.iterdir()) <= 3


def test_scq_shows_one_line_and_expands_it(few):
    array = few.submit('--array', '0-99999%2', 'sleep', 600)
    wait_until(lambda: record(few, array)['array']['running_count'] == 2)
    rows = few.json('scq', '--active')['jobs']
    assert [(row['job'], row['array']['waiting']) for row in rows] == [(array, '2-99999%2')]
    assert '2 run, 99998 wait' in few.run('scq', '--active').stdout
    expanded = few.run('scq', '--active', '--expand', '--no-header', '-o', 'job').stdout.split()
    assert expanded == [str(array), f'{array}_0', f'{array}_1']
    assert few.json('scq', f'{array}_1')['jobs'][0]['array_task'] == 1
    assert few.json('score', 'job', f'{array}_77')['job']['job'] == array  # it waits: the array's record
    begin = time.monotonic()
    few.run('sccancel', array)
    assert few.job(array)['state'] == 'cancelled' and time.monotonic() - begin < 30


def test_tasks_are_cancelled_alone_and_in_ranges(few):
    array = few.submit('--array', '0-9%2', 'sleep', 600)
    wait_until(lambda: record(few, array)['array']['running_count'] == 2)
    few.run('sccancel', f'{array}_0')
    wait_until(lambda: few.json('scq', f'{array}_2')['jobs'][0].get('array_task') == 2)
    few.run('sccancel', f'{array}_[4-9]')
    assert record(few, array)['array']['waiting'] == '3%2'
    assert 'no task' in few.run('sccancel', f'{array}_[4-9]', code=125).stderr
    for task in (1, 2):
        wait_until(lambda: few.json('scq', f'{array}_{task}')['jobs'][0]['state'] == 'running')
    few.run('sccancel', '-s', 'TERM', f'{array}_[1-2]')
    wait_until(lambda: few.json('scq', f'{array}_3')['jobs'][0]['state'] == 'running')
    few.run('sccancel', array)
    assert few.job(array)['state'] == 'cancelled'


def test_an_array_of_which_tasks_were_cancelled_is_cancelled(few):
    array = few.submit('--array', '0-9%2', 'sh', '-c', '[ $SCORE_ARRAY_TASK_ID -gt 4 ] || exec sleep 0.1; sleep 0.1')
    few.run('sccancel', f'{array}_[5-9]')
    few.wait_job(array, 'cancelled')
    assert few.job(array)['reasons'] == ['5 of 10 tasks were cancelled']


def test_a_job_waits_for_a_whole_array(few):
    array = few.submit('--array', '0-4', 'sh', '-c', '[ $SCORE_ARRAY_TASK_ID != 3 ]')
    fails = few.submit('--after', f'afternotok:{array}', 'true')
    never = few.submit('--after', f'afterok:{array}', 'true')
    few.wait_job(fails, 'completed')
    assert few.job(array)['state'] == 'failed'
    assert few.job(array)['reasons'] == ['1 of 5 tasks did not complete']
    assert 'can never start' in few.run('scq', '--why', never).stdout


def test_a_head_that_is_killed_loses_no_task_and_repeats_none(fresh, tmp_path):
    tmp_path.chmod(0o777)
    cluster = fresh(4, '--slice', '20ms')
    array = cluster.submit('--array', '0-59%8', '-o', 'none', 'sh', '-c',
                           f'echo x >> {tmp_path}/$SCORE_ARRAY_TASK_ID; sleep 0.3')
    for _ in range(3):
        done = len(list(tmp_path.iterdir()))
        wait_until(lambda: len(list(tmp_path.iterdir())) >= min(60, done + 6))
        cluster.restart('head')
        wait_until(lambda: cluster.run('scq', code=None).returncode == 0)
    cluster.wait_job(array, 'completed')
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {str(task): 'x\n' for task in range(60)}


def test_bad_arrays_are_refused_in_one_line(few):
    for tasks, text in [('0-999999999', '1000000000 numbers; at most 1000000'), ('5-1', "'5-1' is not a number"),
                        ('0-9%0', '% must be followed'), ('x', "'x' is not a number"), ('9999999999', 'is larger than')]:
        result = few.run('scrun', '--detach', '--array', tasks, 'true', code=125)
        assert text in result.stderr and result.stderr.count('\n') == 1, result.stderr
    assert 'submit it with --detach' in few.run('scrun', '--array', '0-3', 'true', code=125).stderr
    assert re.search('12_', few.run('sccancel', '12_x', code=125).stderr)
    assert few.json('scq', '--active')['jobs'] == []
